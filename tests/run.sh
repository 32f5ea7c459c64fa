#!/usr/bin/env bash
# Installs missing packages, builds Lockstep and runs the tests. The last line of the output is the result.
#
#   tests/run.sh                   the default tests: 10 minutes, 21 with the first build
#   tests/run.sh --long            the long tests, a day: sanitizers, clang-tidy, accuracy, Debian 13, other processors
#   tests/run.sh --long 3/10       one slice of them (tests/long/slices.txt); prints when each slice last passed
#   tests/run.sh --long 3/10 --record    also records in tests/long/passed.json that it passed, if no test was skipped
#   tests/run.sh ... -R shard      passes further options to ctest (not with --record)
#
# Tests on real data need LOCKSTEP_TEST_DATA, a folder with cifar-10-batches-bin/, mnist/ and caltech101_31/.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit ;; esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=lib/cmake/debian_packages.sh
source lib/cmake/debian_packages.sh
# shellcheck source=lib/cmake/progress.sh
source lib/cmake/progress.sh

selection=(--label-exclude long)
packages=("${build_packages[@]}" "${test_packages[@]}")
slice='' is_recorded=''
if [ "${1:-}" = --long ]; then
  shift
  selection=(--label-regex long)
  packages+=("${long_test_packages[@]}")
  if [[ ${1:-} =~ ^[0-9]+/[0-9]+$ ]]; then
    slice=$1
    shift
    pattern=$(tests/long/slices.py . pattern "$slice") || exit 2
    selection+=(--tests-regex "$pattern")
    if [ "${1:-}" = --record ]; then is_recorded=yes; shift; fi
  fi
fi
if [[ " $* " == *" --record "* ]] || { [ -n "$is_recorded" ] && (($# > 0)); }; then
  echo "--record needs a whole slice: it must follow one, and no option may follow it." \
    "Write: tests/run.sh --long 3/10 --record" >&2
  exit 2
fi
install_missing "${packages[@]}"

# With LOCKSTEP_WERROR=ON, warnings are errors. Other flags are those of data/quick_start.sh.
configure_and_build ci -D "LOCKSTEP_WERROR=${LOCKSTEP_WERROR:-OFF}"
# Six tests at a time, also on two cores, because most tests mostly wait.
results=build/release/tests.xml
rm -f "$results"
code=0
with_progress Testing build/tests.log '^ *([0-9]+)/([0-9]+) Test +#.*( Passed |Skipped)' '^( +Start |Test project |Internal ctest)' \
  ctest --test-dir build/release "${selection[@]}" --parallel 6 --output-on-failure --no-tests=error \
  --output-junit "$root/$results" "$@" || code=$?
cuda=$(sed -n 's/^LOCKSTEP_CUDA_SUMMARY:INTERNAL=//p' build/release/CMakeCache.txt)
[ -z "$slice" ] || tests/long/slices.py . stale
results_code=0
words=$(python3 tests/support/count_results.py "$results" "$code" "$cuda") || results_code=$?
if [ -n "$is_recorded" ] && [[ $words == *" passed, 0 failed, 0 skipped" ]]; then tests/long/slices.py . record "$slice"; fi
echo "$words"
exit "$results_code"
