#!/usr/bin/env bash
# What the two commands of README.md say on their way: how far they are, and what cannot be installed. first_run_test.sh ROOT
# shellcheck disable=SC2015,SC2016,SC2089,SC2090
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $*"; exit 1; }
# shellcheck source=lib/cmake/progress.sh
source "$root/lib/cmake/progress.sh"
# shellcheck source=lib/cmake/debian_packages.sh
source "$root/lib/cmake/debian_packages.sh"

# A build of three steps, of which one warns and one fails.
steps='echo "[1/3] Building a"; echo "a.cpp:1: warning: odd"; echo "[2/3] Building b"; echo "ninja: hidden"; echo "[3/3] b"; exit 7'
code=0
with_progress Building "$work/log" '^\[([0-9]+)/([0-9]+)\] ' '^ninja: ' bash -c "$steps" >"$work/said" || code=$?
[ "$code" = 7 ] || fail "the command's code is lost: $code"
mapfile -t said <"$work/said"
[ "${#said[@]}" = 2 ] && [ "${said[0]}" = 'a.cpp:1: warning: odd' ] && [[ ${said[1]} =~ ^'Building: 3 of 3, '[0-9]+' s'$ ]] ||
  fail "a log has other lines: $(cat "$work/said")"
[ "$(wc -l <"$work/log")" = 5 ] || fail "the whole output is not kept: $(cat "$work/log")"
duration 59 | grep -qx '59 s' && duration 185 | grep -qx '3 min 5 s' || fail "durations are other words"

# On a terminal one line is redrawn, and what the compiler says stands above it.
export -f show_steps show_progress duration
export steps
SHELL=$BASH script --quiet --return --command 'stty cols 80; bash -c "$steps" | show_steps Building "^\[([0-9]+)/([0-9]+)\] " "^ninja: "' \
  "$work/typescript" </dev/null >/dev/null
tr -d '\n' <"$work/typescript" | grep -qE $'\r\e\\[KBuilding: 1 of 3, [0-9]+ s\r\e\\[Ka.cpp:1: warning: odd' ||
  fail "the line is not redrawn: $(cat -v "$work/typescript")"
quiet='echo "[1/3] Building a"; sleep 2.5; printf "[2/3] Bui"; sleep 1.5; echo "lding b"; printf "no newline"'
export quiet
SHELL=$BASH script --quiet --return --command 'stty cols 80; bash -c "$quiet" | show_steps Building "^\[([0-9]+)/([0-9]+)\] " "^ninja: "' \
  "$work/typescript" </dev/null >/dev/null
tr -d '\n' <"$work/typescript" | grep -qE $'1 of 3, 1 s.*1 of 3, 2 s.*2 of 3, 4 s.*no newline.*2 of 3, 4 s' ||
  fail "what prints nothing shows no progress: $(cat -v "$work/typescript")"
echo "  progress"

# A build that fails names its log, and a second one in the folder is refused while the first, or what it has left, lasts.
mkdir "$work/tools"
printf '#!/bin/sh\n[ "$1" = --build ] || exit 0\necho "ninja: error: a is missing"\nexit 3\n' >"$work/tools/cmake"
chmod +x "$work/tools/cmake"
configure() {
  code=0
  (cd "$work" && PATH=$work/tools:$PATH bash -c "set -o pipefail; source '$root/lib/cmake/progress.sh'; configure_and_build ci") \
    >"$work/said" 2>&1 || code=$?
}
configure
[ "$code" = 3 ] && grep -q '^ninja: error: a is missing' "$work/said" && grep -qF "'$work/build/release.log'" "$work/said" ||
  fail "a failed build ended with $code: $(cat "$work/said")"
flock --close "$work/build/lock" sleep 20 &
holder=$!
while flock --nonblock "$work/build/lock" true; do sleep 0.02; done
configure
[ "$code" = 2 ] && grep -q "another run uses '$work/build'.* processes: $holder\$" "$work/said" ||
  fail "a second build ended with $code: $(cat "$work/said")"
kill "$holder"
wait "$holder" || true
configure
[ "$code" = 3 ] || fail "a lock that nobody holds ended a build with $code: $(cat "$work/said")"
echo "  build"

# Help starts no build.
"$root/tests/run.sh" --help | grep -q -- '--record' || fail "tests/run.sh has no help"

# What apt-get does not know is named, with the command that installs all that is missing.
printf '#!/bin/sh\nfor name; do :; done\n[ "$name" = g++ ] && echo "install ok installed"\n' >"$work/tools/dpkg-query"
printf '#!/bin/sh\ncase "$*" in *install*) echo "E: Unable to locate package libodd-dev"; exit 100 ;; esac\n' >"$work/tools/apt-get"
printf '#!/bin/sh\nexec "$@"\n' >"$work/tools/sudo"
chmod +x "$work"/tools/*
install() { (PATH=$work/tools:$PATH; install_missing "$@") >"$work/said" 2>&1; }
install g++ || fail "what is there is installed again: $(cat "$work/said")"
! install g++ libodd-dev cmake || fail "a package that is not there is no failure"
grep -qE '^cannot install libodd-dev: .* (sudo )?apt-get install --no-install-recommends libodd-dev cmake$' \
  "$work/said" || fail "the message names another package or command: $(cat "$work/said")"
echo "  packages"
