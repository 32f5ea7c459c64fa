#!/usr/bin/env bash
# Downloads the official CIFAR-10 archive (binary version, 162 MB) and unpacks it into FOLDER/cifar-10-batches-bin.
#
#   data/fetch_cifar10.sh [FOLDER]        default: the folder of this script
#
# It verifies the checksum that the authors publish. If it cannot download, it exits with 3, and with 1 after any other
# failure. Neither leaves partial files.
set -euo pipefail
unset CDPATH
case ${1:-} in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit ;;
  -*) echo "fetch_cifar10: unknown option '$1'. See --help." >&2; exit 2 ;;
esac
folder=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
checksum=c32a1d4ab5d03f1284b67883e8d87530

[ -e "$folder/cifar-10-batches-bin/test_batch.bin" ] && exit 0
[ ! -e "$folder/cifar-10-batches-bin" ] || {
  echo "'$folder/cifar-10-batches-bin' exists, but has no test_batch.bin. Remove it, or name another folder." >&2
  exit 1
}
mkdir -p "$folder"
work=$(mktemp -d "$folder/.cifar10.XXXXXX")
trap 'rm -rf "$work"' EXIT

if command -v curl >/dev/null; then
  # A connection that brings less than 1000 bytes per second for 30 seconds is given up.
  download=(curl --fail --location --show-error --connect-timeout 10 --speed-limit 1000 --speed-time 30
    --output "$work/archive" "$url")
  if [ -t 2 ]; then download+=(--progress-bar); else download+=(--silent); fi
  cannot_write=23
elif command -v wget >/dev/null; then
  download=(wget --quiet --tries=1 --timeout=30 --output-document="$work/archive" "$url")
  cannot_write=3
else
  echo "cannot download CIFAR-10: neither curl nor wget is installed. Install one of them." >&2
  exit 3
fi
echo "Downloading $url"
code=0
"${download[@]}" || code=$?
if ((code == cannot_write)); then
  echo "cannot write CIFAR-10 to '$folder'. Check its free space." >&2
  exit 1
elif ((code != 0)); then
  echo "cannot download CIFAR-10 from '$url'. Check the network." >&2
  exit 3
fi
echo "$checksum  $work/archive" | md5sum --check --status || {
  echo "the downloaded CIFAR-10 archive does not match its published checksum. Try again." >&2
  exit 1
}
if ! tar --extract --gzip --file "$work/archive" --directory "$work" ||
  ! mv -T "$work/cifar-10-batches-bin" "$folder/cifar-10-batches-bin"; then
  echo "cannot unpack CIFAR-10 in '$folder'. Check its free space." >&2
  exit 1
fi
