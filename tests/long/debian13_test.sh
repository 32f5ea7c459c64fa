#!/usr/bin/env bash
# The test command of README.md in a fresh Debian 13 (Open MPI 5, HDF5 1.14, oneDNN 3, g++ 14).
#
#   debian13_test.sh ROOT BUILD_FOLDER [OPTIONS_OF_CTEST...]
#
# Makes a root file system (2 GB with all packages), copies what HEAD holds into it and runs tests/run.sh there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"
need git git
work=$2/debian13
trap 'rm -rf --one-file-system "$work"' EXIT
rm -rf --one-file-system "$work"
mkdir -p "$work"
make_debian_root trixie "$work/root" "$work/log"
mkdir "$work/root/lockstep"
git -C "$1" archive HEAD | tar --directory "$work/root/lockstep" --extract
in_debian_root "$work/root" /lockstep/tests/run.sh "${@:3}" || fail "Lockstep fails on Debian 13, see above"
