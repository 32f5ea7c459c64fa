#!/usr/bin/env bash
# What data/quick_start.sh refuses, and on what it trains after each end of a download. Programs that do nothing take the
# place of those that install, build, download and train: quick_start_test.sh ROOT
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

# A folder with the script, and programs that do nothing but tell what they were called with.
mkdir -p "$work/root/data" "$work/root/lib/cmake" "$work/root/build/release/bin" "$work/tools"
cp "$1"/data/{quick_start,fetch_cifar10}.sh "$work/root/data"
cp "$1"/lib/cmake/{debian_packages,progress}.sh "$work/root/lib/cmake"
quick_start=$work/root/data/quick_start.sh
program() { printf '#!/bin/bash\n%s\n' "$2" >"$1"; chmod +x "$1"; }
program "$work/tools/dpkg-query" 'echo install ok installed'
program "$work/tools/cmake" 'exit 0'
program "$work/tools/mpirun" 'echo "trains: $*"; kill -TERM $$'
program "$work/root/build/release/bin/make_shards" 'echo "makes $*"; [ ! -e "$0.fails" ] || exit 2'
export PATH=$work/tools:$PATH

# downloads CODE: curl ends with it, after it has written some bytes.
downloads() { program "$work/tools/curl" 'for word; do [ "$last" != --output ] || echo x >"$word"; last=$word; done; exit '"$1"; }
downloads 6
says 143 '--data data/stand_in --recipe cifar10-90 --output runs/synthetic'  # mpirun has taken the script's place
downloads 23
says 1 'Check its free space'
! grep -q 'makes' "$work/out" || fail "a full disk ends in synthetic pictures"
downloads 0
says 1 'does not match its published checksum'
! grep -q 'makes' "$work/out" || fail "a damaged archive ends in synthetic pictures"
[ -z "$(find "$work/root/data" -name '.cifar10*')" ] || fail "a partial download is left"
mkdir "$work/cifar"
touch "$work/cifar/data_batch_1.bin"
says 143 '--data data/cifar10 --recipe cifar10-90 --output runs/quick_start' "$work/cifar"
touch "$work/root/build/release/bin/make_shards.fails"
says 2 "remove the folders 'data/cifar10' and 'runs/quick_start'" "$work/cifar"
program "$work/root/build/release/bin/make_shards" 'echo "makes $*"; kill -INT $$'
says 130 'makes' "$work/cifar"
! grep -q remove "$work/out" || fail "after Ctrl-C it says to remove folders"
"$work/root/data/fetch_cifar10.sh" --help | grep -q 'fetch_cifar10.sh \[FOLDER\]' || fail "fetch_cifar10.sh has no help"

# What another user has built cannot be written, and is not taken for this run's.
rm -rf "$work/root/build/release.log"
mkdir "$work/root/build/release.log"
says 1 "cannot write '$work/root/build/release.log'" "$work/cifar"
(cd "$work/root" && quick_start=data/quick_start.sh && CDPATH=. says 1 'cannot write' "$work/cifar") || exit 1
echo passed
