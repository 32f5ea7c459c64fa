# shellcheck shell=bash
# Words and skips that the scripts of this folder share.
fail() { echo "failed: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
# need PROGRAM PACKAGE: skips where the program is not installed.
need() { command -v "$1" >/dev/null || skip "no $1 here (Debian package $2)"; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
