# shellcheck shell=bash disable=SC2034
# The Debian packages that Lockstep is built from and tested with. Read by data/quick_start.sh and tests/run.sh.
build_packages=(
  g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libhdf5-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libsodium-dev libxxhash-dev libyaml-cpp-dev zlib1g-dev
  libjpeg62-turbo-dev libpng-dev libexif-dev libmatio-dev libonnx-dev libprotobuf-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev libdnnl-dev python3 binutils clang-format
  slurm-wlm slurm-client slurmctld slurmd munge slurm-wlm-basic-plugins iproute2 procps xz-utils
)
long_test_packages=(
  clang-tidy-16 libomp-16-dev debootstrap qemu-user python3-torch python3-torchvision python3-h5py python3-numpy python3-pil
  python3-fusepy fuse3 chromium
  bochs bochs-term bochsbios vgabios isolinux syslinux-common genisoimage busybox cpio
)

# install_missing PACKAGE...: installs what is not there yet. Without root it asks sudo; where nothing is missing it needs
# neither root nor a network.
install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return 0
  echo "Installing ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || { echo "cannot install packages: neither root nor sudo. Install them first." >&2; return 1; }
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 --quiet=2)
  local words
  if ! words=$({ "${apt[@]}" update && "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"; } 2>&1); then
    tail -5 <<<"$words" >&2
    echo "cannot install packages: apt-get failed, its words are above. Is the network up?" >&2
    return 1
  fi
}
