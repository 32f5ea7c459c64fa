#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests.
#
#   tests/run.sh           everything that fits a quarter of an hour
#   tests/run.sh --long    the rest: sanitizers, clang-tidy, accuracy, Debian 13, other processors
#   tests/run.sh ... -R shard    more options go to ctest
#
# Tests on real data need LOCKSTEP_TEST_DATA, a folder with cifar-10-batches-bin/, mnist/ and caltech101_31/. The last line
# counts.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=lib/cmake/debian_packages.sh
source lib/cmake/debian_packages.sh

selection=(--label-exclude long)
packages=("${build_packages[@]}" "${test_packages[@]}")
if [ "${1:-}" = --long ]; then
  shift
  selection=(--label-regex long)
  packages+=("${long_test_packages[@]}")
fi
install_missing "${packages[@]}"

cmake --preset ci
cmake --build --preset ci
results=build/release/tests.xml
rm -f "$results"
code=0
ctest --test-dir build/release "${selection[@]}" --parallel 2 --output-on-failure --no-tests=error \
  --output-junit "$root/$results" "$@" || code=$?
cuda=$(sed -n 's/^LOCKSTEP_CUDA_SUMMARY:INTERNAL=//p' build/release/CMakeCache.txt)
exec python3 tests/support/count_results.py "$results" "$code" "$cuda"
