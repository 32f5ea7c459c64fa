#!/usr/bin/env bash
# Builds the preset `asan` (AddressSanitizer with LeakSanitizer, and UndefinedBehaviorSanitizer) and runs every test under it
# but those of the labels long and slurm. A finding ends the program that has it.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"
cd "$root" || fail "no $root"
cmake --preset asan || fail "the preset asan does not configure"
cmake --build --preset asan || fail "the preset asan does not build"
export LSAN_OPTIONS=suppressions=$root/tests/support/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
ctest --test-dir build/asan --label-exclude 'long|slurm' --parallel 2 --timeout 900 --output-on-failure --no-tests=error ||
  fail "tests fail under the sanitizers, see above"
