#!/usr/bin/env bash
# Builds Lockstep and passes its tests on Debian 13: a fresh root from debootstrap, what HEAD holds in it, tests/run.sh there.
#
# The mirror is the one this machine's apt uses. The root lives in namespaces of its own, so that nothing stays mounted or
# running, however this ends.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"
codename=trixie

# Runs inside the namespaces: enter_root FOLDER.
enter_root() {
  local system=$1
  mount --make-rprivate / && mount --bind "$system" "$system" && mount -t proc proc "$system/proc" &&
    mount --rbind /dev "$system/dev" && mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm" &&
    mount --rbind /sys "$system/sys" || fail "cannot mount /proc, /dev, /sys in $system"
  local variables=(HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
  if [ -n "${LOCKSTEP_TEST_DATA:-}" ]; then
    mkdir -p "$system/data" && mount --bind -o ro "$LOCKSTEP_TEST_DATA" "$system/data" || fail "cannot mount $LOCKSTEP_TEST_DATA"
    variables+=(LOCKSTEP_TEST_DATA=/data)
  fi
  exec env -i "${variables[@]}" ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$system" /lockstep/tests/run.sh
}
if [ "${1:-}" = inside ]; then enter_root "$2"; fi

((EUID == 0)) || skip "a Debian 13 root wants root"
need debootstrap debootstrap
need git git
own_namespaces=(unshare --mount --pid --fork --kill-child)
"${own_namespaces[@]}" mount --make-rprivate / 2>/dev/null || skip "this machine allows no mount namespaces"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -1)
[ -n "$mirror" ] || skip "this machine's apt knows no Debian mirror"

work=$(mktemp -d -p "${LOCKSTEP_SCRATCH:-/var/tmp}" lockstep-debian13-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
system=$work/root
debootstrap --variant=minbase --include=ca-certificates $codename "$system" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  tail -3 "$work/debootstrap.log"
  skip "debootstrap could not build Debian 13 from $mirror, its words are above"
}
# Packages must start no services here.
printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d" && chmod +x "$system/usr/sbin/policy-rc.d"
mkdir "$system/lockstep"
git -C "$root" archive HEAD | tar -x -C "$system/lockstep" || fail "cannot copy HEAD into $system"
"${own_namespaces[@]}" "$(readlink -f "${BASH_SOURCE[0]}")" inside "$system" || fail "Lockstep fails on Debian 13, see above"
