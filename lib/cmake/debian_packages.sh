# shellcheck shell=bash disable=SC2034
# The Debian packages that building and testing need. Sourced by data/quick_start.sh and tests/run.sh.
build_packages=(
  g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libhdf5-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libsodium-dev libxxhash-dev libyaml-cpp-dev zlib1g-dev
  libjpeg62-turbo-dev libpng-dev libexif-dev libmatio-dev libonnx-dev libprotobuf-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev libdnnl-dev lld python3 binutils clang-format
  slurm-wlm slurm-client slurmctld slurmd munge slurm-wlm-basic-plugins iproute2 procps xz-utils git
  charliecloud-runtime
)
# .clang-tidy is for version 16, which only Debian 12 has.
# shellcheck source=/dev/null
if [ "$(. /etc/os-release && echo "${VERSION_ID:-}")" = 12 ]; then
  test_packages+=(clang-tidy-16 libomp-16-dev)
fi
long_test_packages=(
  debootstrap qemu-user python3-torch python3-torchvision python3-h5py python3-numpy python3-pil
  python3-fusepy fuse3 chromium
  bochs bochs-term bochsbios vgabios isolinux syslinux-common genisoimage busybox cpio
)

# install_missing PACKAGE...: installs missing packages, with sudo unless it runs as root. If none is missing, it needs
# neither root nor a network.
install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  ((${#missing[@]} == 0)) && return 0
  echo "Installing ${missing[*]}"
  local as_root=() output unknown=()
  ((EUID == 0)) || as_root=(sudo)
  refuse_install() { # REASON PACKAGES...
    echo "cannot install ${*:2}: $1. Install with:" \
      "${as_root[*]:+${as_root[*]} }apt-get install --no-install-recommends ${missing[*]}" >&2
    ((EUID == 0)) || echo "Without root, README.md states how to build." >&2
    return 1
  }
  command -v apt-get >/dev/null || { refuse_install "this system has no apt-get" "${missing[@]}"; return 1; }
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    refuse_install "this needs root, and sudo is not installed" "${missing[@]}"
    return 1
  fi
  local apt=("${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 --quiet=2)
  output=$("${apt[@]}" update 2>&1) || {
    tail -5 <<<"$output" >&2
    echo "apt-get update failed (see above), so the package lists may be old." >&2
  }
  output=$("${apt[@]}" install --yes --no-install-recommends "${missing[@]}" 2>&1) && return 0
  tail -5 <<<"$output" >&2
  mapfile -t unknown < <(sed -nE \
    "s/^(E: )?(Unable to locate package |Package '?)([a-z0-9.+-]+)'?( has no installation candidate)?.*/\\3/p" \
    <<<"$output" | sort -u)
  ((${#unknown[@]} > 0)) || unknown=("${missing[@]}")
  refuse_install "apt-get failed (see above). Check the network, free space, and that this is Debian 12 or newer" \
    "${unknown[@]}"
}
