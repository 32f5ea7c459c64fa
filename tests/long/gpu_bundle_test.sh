#!/usr/bin/env bash
# The archive of tests/gpu.sh pack, unpacked and started in a bare Debian 12 and a bare Debian 13, which have neither MPI
# nor HDF5: gpu_bundle_test.sh ROOT BUILD_FOLDER [--packed]
#
# --packed: the archive that is in ROOT/build, instead of one of this build.
# CUDA's libraries, which a GPU machine has, are this machine's. No GPU is used.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"
need objdump binutils
[[ $(ldd "$2/bin/step_bench") == *libcudnn* ]] || skip "this build has no CUDA"
bundle=$1/build/gpu_bundle
newest_glibc=2.36
work=$2/gpu_bundle
trap 'rm -rf --one-file-system "$work"' EXIT
rm -rf --one-file-system "$work"
mkdir -p "$work"

if [ "${3:-}" != --packed ]; then
  "$1/tests/gpu.sh" pack "$2" >"$work/log" 2>&1 || { tail -20 "$work/log"; fail "the archive cannot be packed, see above"; }
fi
du --human-readable "$bundle.tar.xz"

# The newest version of glibc that a file of the bundle asks for. Scripts are no files for objdump.
newest=$({ find "$bundle" -type f \( -perm -u+x -o -name '*.so*' \) -exec objdump --dynamic-syms {} + 2>/dev/null || true; } |
  sed -n 's/.*[ (]GLIBC_\(2\.[0-9.]*\)).*/\1/p' | sort --version-sort --unique | tail -1)
[ -n "$newest" ] || fail "no file of the bundle asks for glibc"
[ "$(printf '%s\n' "$newest" "$newest_glibc" | sort --version-sort | tail -1)" = "$newest_glibc" ] ||
  fail "a file of the bundle asks for glibc $newest, newer than $newest_glibc"
echo "glibc $newest or newer"

# Those that the bundle leaves to the GPU machine, and the part of cuDNN that tells its version.
cuda_libraries() {
  ldd "$bundle"/bin/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -E '/lib(cudnn|cublas|cudart|nccl|nv)[^/]*$' |
    sed 's|\(.*\)/libcudnn.so\(.*\)|&\n\1/libcudnn_graph.so\2|'
}

# SUITE
try_in() {
  local root=$work/$1
  make_debian_root "$1" "$root" "$work/log"
  [ -z "$(find "$root" -xdev \( -name 'libmpi*' -o -name 'libhdf5*' -o -name mpirun \) -print -quit)" ] ||
    fail "Debian '$1' has MPI or HDF5 of its own"
  mkdir -p "$root/usr/local/cuda/lib"
  cuda_libraries | xargs cp --dereference --target-directory "$root/usr/local/cuda/lib"
  tar --extract --file "$bundle.tar.xz" --directory "$root/opt"
  in_debian_root "$root" bash -euc '
    cd /root
    run=/opt/gpu_bundle/run
    for program in step_bench make_shards train_cifar train_imagenet evaluate; do
      $run $program --version
    done
    $run ops_test --gtest_list_tests >/dev/null
    $run ops_bench --benchmark_list_tests >/dev/null
    $run make_shards synthetic --samples 64 --output data
    $run mpirun -n 2 train_cifar --device cpu --data data --model lenet --epochs 1 --global-batch 16 --output run
    $run evaluate --device cpu --model-file run --data data' >"$work/log" 2>&1 ||
    { tail -20 "$work/log"; fail "the bundle does not work in Debian '$1', see above"; }
  grep --quiet "2 ranks" "$work/log" || { tail -20 "$work/log"; fail "Debian '$1': no training by two ranks"; }
  echo "Debian '$1': works"
  rm -rf --one-file-system "$root"
}

try_in bookworm
try_in trixie
