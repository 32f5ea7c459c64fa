#!/usr/bin/env bash
# The test command of README.md in a fresh Debian 13: Open MPI 5, HDF5 1.14, oneDNN 3, g++ 14.
#
#   debian13_test.sh ROOT BUILD_FOLDER
#
# Makes a root file system from the mirror this machine installs from (1 GB with all packages, kept for the next time),
# copies the checkout into it and runs tests/run.sh there. Slurm's tests stay outside: no cluster in a chroot.
set -euo pipefail
root=$1 debian=$2/debian13

skip() { echo "skipped: $*"; exit 77; }
((EUID == 0)) || skip "a root file system of its own wants root"
command -v debootstrap >/dev/null || skip "no debootstrap here"
unshare --mount --pid --fork true 2>/dev/null || skip "this machine allows no mount namespaces"
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 -E '/debian/?$') || skip "no Debian mirror in apt's sources"

if [ ! -e "$debian/.complete" ]; then
  rm -rf "$debian"
  mkdir -p "$debian"
  debootstrap --variant=minbase trixie "$debian" "$mirror" >"$debian.log" 2>&1 || {
    tail -5 "$debian.log"
    grep -qE 'Failed getting release file|Could not resolve|Unable to connect' "$debian.log" && skip "$mirror is out of reach"
    exit 1
  }
  touch "$debian/.complete"
fi

# What git tracks or does not ignore, as it lies here, over what an earlier run left; its build folder stays.
mkdir -p "$debian/lockstep" "$debian/test-data"
find "$debian/lockstep" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -C "$root" ls-files --cached --others --exclude-standard -z |
  tar --directory "$root" --create --null --files-from - --ignore-failed-read | tar --directory "$debian/lockstep" --extract

# shellcheck disable=SC2016
LOCKSTEP_TEST_DATA=${LOCKSTEP_TEST_DATA:-} unshare --mount --pid --fork bash -euc '
  mount --make-rprivate /
  mount --types proc proc "$0/proc"
  mount --rbind /dev "$0/dev"
  mount --types tmpfs tmpfs "$0/dev/shm"
  if [ -n "$LOCKSTEP_TEST_DATA" ]; then
    mount --bind "$LOCKSTEP_TEST_DATA" "$0/test-data"
    export LOCKSTEP_TEST_DATA=/test-data
  fi
  exec env --unset=TMPDIR PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    chroot "$0" /lockstep/tests/run.sh --label-regex "unit|mpi|end_to_end"' "$debian"
