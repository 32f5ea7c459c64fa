#!/usr/bin/env bash
# Packs programs, Open MPI's runtime and all libraries except glibc and CUDA into one folder, for GPU nodes on which
# nothing can be installed. The node needs x86-64 Linux, glibc 2.36 or newer, a driver and CUDA's libraries.
#
#   tests/bundle.sh OUT PROGRAM...       writes the folder OUT and OUT.tar.xz. Then, on the node:
#   OUT/run PROGRAM ARGUMENTS...         one rank
#   OUT/run mpirun -n 4 PROGRAM ARGUMENTS...
#
# OUT/run searches the usual folders of the node, and Python's nvidia-* packages, for cuBLAS, cuDNN and NCCL. With
# BUNDLE_VERBOSE set, it prints the folders it uses.
set -euo pipefail
out=${1:?usage: bundle.sh OUT PROGRAM...}; shift
system=usr/lib/x86_64-linux-gnu
modules=$system/openmpi/lib/openmpi3
[ -d "/$modules" ] || { echo "bundle.sh: no Open MPI 4 in /$modules (Debian 12: openmpi-bin)" >&2; exit 1; }
mkdir -p "$out"/{bin,lib,usr/bin,usr/share,etc,"$modules","$system/pmix2/lib","$system/pmix2/share"}

cp -L "$@" "$out/bin/"
cp -L /usr/bin/orted "$out/usr/bin/"
cp -L /usr/bin/mpirun.openmpi "$out/usr/bin/mpirun"
cp -r /usr/share/openmpi "$out/usr/share/"
cp -rL /etc/openmpi "$out/etc/"
cp -r "/$system/pmix2/lib/pmix" "$out/$system/pmix2/lib/"
cp -r "/$system/pmix2/share/." "$out/$system/pmix2/share/"
# One node only: the transports for network cards would bring half a distribution along.
find "/$modules" -name '*.so' -not -name '*ucx*' -not -name '*ofi*' -not -name '*psm*' -not -name '*openib*' \
  -not -name '*monitoring*' -not -name '*slurm*' -not -name 'mca_spml*' -not -name 'mca_memheap*' -not -name 'mca_scoll*' \
  -not -name 'mca_sshmem*' -not -name 'mca_atomic*' -not -name 'mca_io_romio*' -exec cp {} "$out/$modules/" \;

# What programs and modules ask for, wherever it lies on this machine.
needed() {
  find "$out" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u
}
stays_here() {
  case $(basename "$1") in
    libc.so*|libm.so*|libdl.so*|librt.so*|libpthread.so*|libresolv.so*|libutil.so*|ld-linux*) true ;;
    libcuda.so*|libcudart*|libcublas*|libcudnn*|libnccl*|libnvrtc*|libnvJitLink*|libcurand*|libnvidia*) true ;;
    *) false ;;
  esac
}
needed | while read -r library; do
  stays_here "$library" || cp -nL "$library" "$out/lib/"
done
strip --strip-unneeded "$out"/lib/*.so* "$out"/bin/* 2>/dev/null || true

cat >"$out/run" <<'RUN'
#!/usr/bin/env bash
# Runs a program of this bundle (or `mpirun ... program`) with the bundle's libraries and this node's CUDA.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cuda=
add() { [ ! -d "$1" ] || cuda+=":$1"; }
for path in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib /usr/local/nvidia/lib64 \
            /usr/local/nvidia/lib; do add "$path"; done
for python in python3 /opt/*/.venv/bin/python3; do
  command -v "$python" >/dev/null || continue
  while read -r path; do add "$path"; done < <("$python" -c '
import glob, site, sys
for root in site.getsitepackages() + sys.path:
    for path in sorted(glob.glob(root + "/nvidia/*/lib")): print(path)' 2>/dev/null | sort -u)
done
export OPAL_PREFIX=$here/usr PMIX_INSTALL_PREFIX=$here/usr/lib/x86_64-linux-gnu/pmix2
export LD_LIBRARY_PATH="$here/lib$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$here/bin:$here/usr/bin:$PATH"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader,tcp OMPI_MCA_plm=isolated OMPI_MCA_ess_singleton_isolated=1
export PMIX_MCA_pcompress_base_silence_warning=1
[ -z "${BUNDLE_VERBOSE:-}" ] || echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" >&2
exec "$@"
RUN
chmod +x "$out/run"
# Programs that share their libraries' code lie side by side, within the 64 MiB that xz -9 looks back on.
tar --directory "$(dirname "$out")" --create --sort=name --use-compress-program='xz -9' --file "$out.tar.xz.part" \
  "$(basename "$out")"
mv "$out.tar.xz.part" "$out.tar.xz"  # whole, or not there
du -sh "$out" "$out.tar.xz"
