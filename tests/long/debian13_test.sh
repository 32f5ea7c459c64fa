#!/usr/bin/env bash
# The test command of README.md in a fresh Debian 13 (Open MPI 5, HDF5 1.14, oneDNN 3, g++ 14).
#
#   debian13_test.sh ROOT BUILD_FOLDER
#
# Makes a root file system from the mirror this machine installs from (2 GB with all packages), copies what HEAD holds into it
# and runs tests/run.sh there. Namespaces of its own: nothing stays mounted or running, however this ends.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"

((EUID == 0)) || skip "a root file system of its own wants root"
need debootstrap debootstrap
need git git
own_namespaces=(unshare --mount --pid --fork --kill-child --propagation private)
"${own_namespaces[@]}" true 2>/dev/null || skip "this machine allows no mount namespaces"
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -1)
[ -n "$mirror" ] || skip "no Debian mirror in apt's sources"

work=$2/debian13
trap 'rm -rf --one-file-system "$work"' EXIT
rm -rf --one-file-system "$work"
mkdir -p "$work"
debian=$work/root
"${own_namespaces[@]}" \
  debootstrap --variant=minbase --include=ca-certificates trixie "$debian" "$mirror" >"$work/log" 2>&1 || {
  tail -5 "$work/log"
  grep -qE 'Failed getting release file|Could not resolve|Unable to connect' "$work/log" && skip "$mirror is out of reach"
  fail "debootstrap could not make Debian 13, its words are above"
}
# Packages must start no services here.
printf '#!/bin/sh\nexit 101\n' >"$debian/usr/sbin/policy-rc.d"
chmod +x "$debian/usr/sbin/policy-rc.d"
mkdir "$debian/lockstep" "$debian/test-data"
git -C "$1" archive HEAD | tar --directory "$debian/lockstep" --extract

# shellcheck disable=SC2016
"${own_namespaces[@]}" env --unset=TMPDIR PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 bash -euc '
  mount --bind "$0" "$0"
  mount --types proc proc "$0/proc"
  mount --rbind /sys "$0/sys"
  mount --rbind /dev "$0/dev"
  mount --types tmpfs -o mode=1777 tmpfs "$0/dev/shm"
  if [ -n "${LOCKSTEP_TEST_DATA:-}" ]; then
    mount --bind "$LOCKSTEP_TEST_DATA" "$0/test-data"
    export LOCKSTEP_TEST_DATA=/test-data
  fi
  exec chroot "$0" /lockstep/tests/run.sh' "$debian" || fail "Lockstep fails on Debian 13, see above"
