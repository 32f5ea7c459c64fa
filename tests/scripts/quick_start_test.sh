#!/usr/bin/env bash
# What data/quick_start.sh says before it installs or builds anything: quick_start_test.sh ROOT
set -uo pipefail
quick_start=$1/data/quick_start.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/out"; echo "failed: $*"; exit 1; }
# says CODE WORDS ARGUMENTS...
says() {
  timeout 20 "$quick_start" "${@:3}" >"$work/out" 2>&1
  [ $? = "$1" ] || fail "not code $1: ${*:3}"
  grep -qF -- "$2" "$work/out" || fail "does not say '$2': ${*:3}"
}
says 0 'data/quick_start.sh [CIFAR_FOLDER]' --help
says 2 "'--fast'" --fast
says 2 'one folder' "$work" "$work"
says 2 "'$work'" "$work"
says 2 "data_batch_1.bin" ''
echo passed
