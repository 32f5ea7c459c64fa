# shellcheck shell=bash
# How the scripts of this folder fail and skip.
fail() { echo "failed: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
# need PROGRAM PACKAGE: skips where the program is not installed.
need() { command -v "$1" >/dev/null || skip "no $1 here (Debian package $2)"; }
