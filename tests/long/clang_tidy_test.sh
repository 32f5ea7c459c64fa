#!/usr/bin/env bash
# Builds with clang-tidy beside the compiler; any finding is an error: clang_tidy_test.sh ROOT BUILD_FOLDER
#
# A later run looks only at what changed since. Version 16, because 14 does not know std::source_location.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
need clang-tidy-16 clang-tidy-16
cmake --preset tidy -S "$1" -B "$2/tidy"
cmake --build "$2/tidy" --parallel 2 -- -k 0 || fail "clang-tidy has findings, see above"
