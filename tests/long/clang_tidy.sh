#!/usr/bin/env bash
# Runs clang-tidy over every source of the build: clang_tidy.sh BUILD_FOLDER. Without findings it prints nothing.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"
build=$1
need clang-tidy clang-tidy
need run-clang-tidy clang-tidy
# What clang-tidy cannot read it must not pass over in silence.
[ -r "$build/compile_commands.json" ] || skip "no $build/compile_commands.json (a preset writes it: cmake --preset release)"
words=$(run-clang-tidy -quiet -j 2 -p "$build" "$root/(lib|apps|bench|tests)/" 2>&1)
code=$?
grep -vE '^(clang-tidy|[0-9]+ warnings? generated|Suppressed|Use -)|^$' <<<"$words"
((code == 0)) || fail "clang-tidy has findings, see above"
