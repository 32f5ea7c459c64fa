#!/usr/bin/env bash
# Builds with clang-tidy beside the compiler; any finding is an error: clang_tidy_test.sh ROOT BUILD_FOLDER
set -euo pipefail
command -v clang-tidy >/dev/null || { echo "skipped: no clang-tidy here"; exit 77; }
cmake --preset tidy -S "$1" -B "$2/tidy"
cmake --build "$2/tidy" -- -k 0
