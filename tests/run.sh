#!/usr/bin/env bash
# Installs missing packages, builds Lockstep and runs the tests. The last line of the output is the result.
#
#   tests/run.sh                   the default tests: 10 minutes, 21 with the first build
#   tests/run.sh --long            the long tests, a day: sanitizers, clang-tidy, accuracy, Debian 13, other processors
#   tests/run.sh --long 3/11       one slice of them (tests/long/slices.txt); prints when each slice last passed
#   tests/run.sh --long 3/11 --record    also records in tests/long/passed.json that it passed, if no test was skipped
#   tests/run.sh ... -R shard      only tests with such names: -R and -E REGEX, --repeat, --rerun-failed,
#                                  --stop-on-failure and -V are those of ctest
#
# Tests on real data need LOCKSTEP_TEST_DATA, a folder with cifar-10-batches-bin/, mnist/ and caltech101_31/.
set -euo pipefail
unset CDPATH
for word; do
  case $word in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit ;; esac
done
refuse() { echo "run.sh: $*" >&2; exit 2; }
if [ -n "${LOCKSTEP_TEST_DATA:-}" ]; then  # tests run in other folders
  [ -d "$LOCKSTEP_TEST_DATA" ] || refuse "'$LOCKSTEP_TEST_DATA' (LOCKSTEP_TEST_DATA) is no folder."
  LOCKSTEP_TEST_DATA=$(realpath -- "$LOCKSTEP_TEST_DATA")
  export LOCKSTEP_TEST_DATA
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=lib/cmake/debian_packages.sh
source lib/cmake/debian_packages.sh
# shellcheck source=lib/cmake/progress.sh
source lib/cmake/progress.sh

selection=(--label-exclude long)
packages=("${build_packages[@]}" "${test_packages[@]}")
slice='' recorded_commit=''
if [ "${1:-}" = --long ]; then
  shift
  selection=(--label-regex long)
  packages+=("${long_test_packages[@]}")
  if [[ ${1:-} == [0-9]* ]]; then
    slice=$1
    shift
    install_missing python3 git
    pattern=$(tests/long/slices.py . pattern "$slice") || exit 2
    selection+=(--tests-regex "$pattern")
    if [ "${1:-}" = --record ]; then
      shift
      (($# == 0)) || refuse "--record needs a whole slice: no option may follow it."
      recorded_commit=$(tests/long/slices.py . commit) || exit 2
    fi
  fi
fi
while (($#)); do
  case $1 in
    --long*) refuse "'$1' must be the first option, followed by one slice or none: tests/run.sh --long 3/11" ;;
    --record) refuse "--record must follow a slice: tests/run.sh --long 3/11 --record" ;;
    -R | -E | --repeat)
      [ -n "${2:-}" ] || refuse "$1 wants a value."
      [ "$1" != -R ] || [ -z "$slice" ] || refuse "-R cannot choose tests of a slice. Use --long -R, or -E."
      selection+=("$1" "$2")
      shift ;;
    -V | --rerun-failed | --stop-on-failure) selection+=("$1") ;;
    *) refuse "unknown option '$1'. See --help." ;;
  esac
  shift
done
install_missing "${packages[@]}"

# With LOCKSTEP_WERROR=ON, warnings are errors. Other flags are those of data/quick_start.sh.
configure_and_build ci -D "LOCKSTEP_WERROR=${LOCKSTEP_WERROR:-OFF}"
# Six tests at a time, also on two cores, because most tests mostly wait.
results=build/release/tests.xml
rm -f "$results"
code=0
with_progress Testing build/tests.log '^ *([0-9]+)/([0-9]+) Test +#.*( Passed |Skipped)' '^( +Start |Test project |Internal ctest)' \
  ctest --test-dir build/release "${selection[@]}" --parallel 6 --output-on-failure --no-tests=error \
  --output-junit "$root/$results" || code=$?
cuda=$(sed -n 's/^LOCKSTEP_CUDA_SUMMARY:INTERNAL=//p' build/release/CMakeCache.txt)
results_code=0
words=$(python3 tests/support/count_results.py "$results" "$code" "$cuda") || results_code=$?
if [ -n "$recorded_commit" ] && ((results_code == 0)) && [[ $words == *" 0 skipped" ]]; then
  tests/long/slices.py . record "$slice" "$recorded_commit" || results_code=1
fi
[ -z "$slice" ] || tests/long/slices.py . stale || true
echo "$words"
exit "$results_code"
