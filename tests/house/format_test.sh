#!/usr/bin/env bash
# Every C++ file is as Debian 12's clang-format would write it (other versions differ): format_test.sh ROOT
set -euo pipefail
command -v clang-format >/dev/null || { echo "skipped: no clang-format here"; exit 77; }
[[ $(clang-format --version) == *" version 14."* ]] || { echo "skipped: $(clang-format --version) is not 14"; exit 77; }
cd "$1"
find apps bench lib tests -name '*.[ch]pp' -print0 | xargs -0 clang-format --dry-run -Werror
