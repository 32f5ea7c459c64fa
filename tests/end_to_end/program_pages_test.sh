#!/usr/bin/env bash
# Programs write a manual page and a completion for bash that hold what --help does: program_pages_test.sh BIN
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }

programs=(make_shards train_cifar train_imagenet evaluate export_model inspect predict report check_cluster job_status)
for program in "${programs[@]}"; do
  [ -x "$1/$program" ] || fail "$1/$program is not built"
  said=$("$1/$program" --write-pages "$work" 2>&1) || fail "$program writes no pages: $said"
  [ -z "$said" ] || fail "$program says '$said'"
  page=$work/man/$program.1
  if command -v groff >/dev/null; then
    groff -man -ww -Tutf8 -z "$page" 2>"$work/words" || fail "groff refuses the page of $program"
    [ ! -s "$work/words" ] || fail "the page of $program: $(<"$work/words")"
  fi
  while read -r option; do
    grep -qF -- "${option//-/\\-}" "$page" || fail "the page of $program does not name $option"
  done < <({ "$1/$program" --help-all 2>/dev/null || "$1/$program" --help; } | grep -oP '^  (-\w, )?\K--[\w-]+')
  ! "$1/$program" --help | grep -q write-pages || fail "--help of $program tells users of --write-pages"
done
grep -qF '(auto, cpu, cuda; default: auto).' "$work/man/train_cifar.1" || fail "no values on the page of train_cifar"
grep -qx '\.SS Precision and device' "$work/man/train_cifar.1" || fail "no groups on the page of train_cifar"
grep -qF '\fBRUN_FOLDER...\fR' "$work/man/report.1" || fail "the page of report does not say that it takes several folders"

# complete WORDS...: what bash would offer for the last of them.
complete_words() {
  # shellcheck disable=SC1090
  . "$work/completions/$1"
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  "_lockstep_$1"
  printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' '
}
expect() {
  local wanted=$1 found
  shift
  found=$(complete_words "$@")
  [ "$found" = "$wanted" ] || fail "'$*' is completed by '$found', not '$wanted'"
}
mkdir "$work/data" "$work/date" && touch "$work/dated"
expect '--model --momentum' train_cifar --mo
expect 'resized-crop resized-crop-flip' train_cifar --data x --augment resized
expect 'sgd' train_cifar --optimizer = s
expect "$work/data $work/date" train_cifar --data "$work/dat"
expect '' train_cifar --epochs ''
expect 'cifar10 cifar100' make_shards cif
expect '--samples --samples-per-shard' make_shards synthetic --samp
expect '' make_shards verify --samp
# shellcheck disable=SC1091
registered=$(. "$work/completions/evaluate" && complete -p evaluate)
[[ $registered == *_lockstep_evaluate* ]] || fail "the completion of evaluate is not registered: $registered"
echo "passed: ${#programs[@]} programs"
