#!/usr/bin/env bash
# Builds with the address and undefined-behaviour sanitizers and passes all tests: sanitizers_test.sh ROOT BUILD_FOLDER
set -euo pipefail
root=$1 build=$2/sanitizers
cmake --preset asan -S "$root" -B "$build"
cmake --build "$build"
export ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$root/tests/support/leaks.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
ctest --test-dir "$build" --label-exclude long --parallel 2 --output-on-failure --no-tests=error
