#!/usr/bin/env bash
# The package for Debian, made and installed as lockstep.def says for Apptainer, in a bare Debian 12 each, and used there:
# package_test.sh ROOT BUILD_FOLDER
#
# Apptainer itself is not run: chroot takes its place, and its parts of the definition (%help, From:) are not tested.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"
need git git
work=$2/package
trap 'rm -rf --one-file-system "$work"' EXIT
rm -rf --one-file-system "$work"
mkdir -p "$work"
definition=$1/lib/cmake/packaging/lockstep.def

# section STAGE NAME: its lines.
section() {
  awk -v stage="$1" -v name="%$2" '
    $1 == "Stage:" { now = $2 }
    /^%/ { within = $1 == name }
    /^Bootstrap:/ { within = 0 }
    within && now == stage && !/^%/' "$definition"
}

make_debian_root bookworm "$work/build" "$work/log"
mkdir "$work/build/src"
git -C "$1" archive HEAD | tar --directory "$work/build/src" --extract
in_debian_root "$work/build" bash -c "umask 077; $(section build post)" >"$work/log" 2>&1 ||
  { tail -30 "$work/log"; fail "the stage 'build' of lockstep.def fails, see above"; }

make_debian_root bookworm "$work/final" "$work/log"
cp "$work"/build/build/lockstep_*.deb "$work/final/"
in_debian_root "$work/final" bash -c "$(section final post)" >"$work/log" 2>&1 ||
  { tail -30 "$work/log"; fail "the stage 'final' of lockstep.def fails, see above"; }
in_debian_root "$work/final" bash -euc "$(section final environment)
  $(section final test)
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  [ -z \"\$(find /opt -type d ! -perm 755)\" ]
  cd /root
  make_shards synthetic --samples 400 --output data
  mpirun -n 2 --oversubscribe --bind-to none train_cifar --data data --model lenet --epochs 1 --output run
  evaluate --model-file run --data data
  test -s /opt/lockstep/share/man/man1/train_cifar.1" || fail "the installed package does not work, see above"
du -h "$work"/build/build/lockstep_*.deb
