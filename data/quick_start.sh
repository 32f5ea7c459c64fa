#!/usr/bin/env bash
# Installs missing packages, builds Lockstep, makes shards, and trains a network for CIFAR-10 on two ranks: about 90 %
# accuracy in five minutes on two cores.
#
#   data/quick_start.sh [CIFAR_FOLDER]
#
# CIFAR-10 (binary version) comes from the first of: CIFAR_FOLDER, data/cifar-10-batches-bin, a download. Without it, it
# trains on synthetic pictures. Results are written to runs/quick_start, of synthetic pictures to runs/synthetic.
set -euo pipefail
unset CDPATH
refuse() { echo "quick_start: $*" >&2; exit 2; }
case ${1:-} in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit ;;
  -*) refuse "unknown option '$1'. See --help." ;;
esac
(($# <= 1)) || refuse "at most one folder is allowed. See --help."
(($# == 0)) || [ -r "$1/data_batch_1.bin" ] ||
  refuse "'$1' has no CIFAR-10: data_batch_1.bin is missing. Choose the folder 'cifar-10-batches-bin'."
cifar=${1:+$(realpath "$1")}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=lib/cmake/debian_packages.sh
source lib/cmake/debian_packages.sh
# shellcheck source=lib/cmake/progress.sh
source lib/cmake/progress.sh

install_missing "${build_packages[@]}"
# Tests and benches stay if tests/run.sh has built them: the programs are the same.
configure_and_build release

programs=$root/build/release/bin
if [ -z "$cifar" ]; then
  cifar=data/cifar-10-batches-bin code=0
  [ -d "$cifar" ] || data/fetch_cifar10.sh || code=$?
  ((code == 0 || code == 3)) || exit "$code"
  ((code == 0)) || cifar=
fi
if [ -n "$cifar" ]; then
  shards=data/cifar10 output=runs/quick_start
  "$programs/make_shards" cifar10 --source "$cifar" --output "$shards" || {
    code=$?
    ((code != 2)) || echo "To begin with the data in '$cifar', remove the folders '$shards' and '$output'." >&2
    exit "$code"
  }
else
  shards=data/stand_in output=runs/synthetic
  echo "CIFAR-10 was not found and cannot be downloaded. Training on SYNTHETIC pictures instead: this shows that the"
  echo "programs work, but the accuracy says nothing about CIFAR-10."
  "$programs/make_shards" synthetic --samples 20000 --output "$shards"
fi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
echo "Results: $output. Look at them with build/release/bin/inspect and evaluate. If the training is interrupted, the same"
echo "command continues it."
[ -z "$cifar" ] || echo "With --recipe cifar10-94, train_cifar reaches about 94 %, in three to four times as long."
# Three seconds from SIGTERM to SIGKILL after Ctrl-C (Open MPI 4): time for a checkpoint on a busy machine. mpirun takes
# the script's place, so that whatever ends the script ends the training.
exec 200>&-  # the lock of lib/cmake/progress.sh: the training needs no build
exec mpirun -n 2 --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 3 "$programs/train_cifar" \
  --data "$shards" --recipe cifar10-90 --output "$output"
