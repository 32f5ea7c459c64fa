# shellcheck shell=bash
# A Debian of its own in a folder, from the mirror that this machine installs from. Read after words.sh. Namespaces of its
# own: nothing stays mounted or running, however the caller ends.

own_namespaces=(unshare --mount --pid --fork --kill-child --propagation private)
((EUID == 0)) || skip "a root file system of its own wants root"
need debootstrap debootstrap
"${own_namespaces[@]}" true 2>/dev/null || skip "this machine allows no mount namespaces"
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -1)
[ -n "$mirror" ] || skip "no Debian mirror in apt's sources"

# make_debian_root SUITE FOLDER LOG
make_debian_root() {
  "${own_namespaces[@]}" debootstrap --variant=minbase --include=ca-certificates "$1" "$2" "$mirror" >"$3" 2>&1 || {
    tail -5 "$3"
    grep -qE 'Failed getting release file|Could not resolve|Unable to connect' "$3" && skip "$mirror is out of reach"
    fail "debootstrap could not make Debian '$1', its words are above"
  }
  # Packages must start no services here.
  printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
  chmod +x "$2/usr/sbin/policy-rc.d"
  mkdir "$2/test-data"
}

# in_debian_root FOLDER COMMAND...: with LOCKSTEP_TEST_DATA, if that is set, as /test-data.
in_debian_root() {
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
    cd "$0"
    # Not chroot, inside which the kernel allows no user namespaces, and so no containers.
    pivot_root . .
    umount --lazy .
    exec "$@"' "$@"
}
