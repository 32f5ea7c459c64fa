#!/usr/bin/env bash
# Downloads the official CIFAR-10 archive (binary version, 162 MB) and unpacks it into FOLDER/cifar-10-batches-bin.
#
#   data/fetch_cifar10.sh [FOLDER]        default: the folder of this script
#
# It verifies the checksum that the authors publish. If the download fails, it exits with 1 and leaves no partial files.
set -euo pipefail
folder=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
checksum=c32a1d4ab5d03f1284b67883e8d87530

[ -e "$folder/cifar-10-batches-bin/test_batch.bin" ] && exit 0
mkdir -p "$folder"
work=$(mktemp -d "$folder/.cifar10.XXXXXX")
trap 'rm -rf "$work"' EXIT

if command -v curl >/dev/null; then
  download=(curl --fail --location --silent --show-error --connect-timeout 10 --output "$work/archive" "$url")
elif command -v wget >/dev/null; then
  download=(wget --quiet --tries=1 --timeout=10 --output-document="$work/archive" "$url")
else
  echo "cannot download CIFAR-10: neither curl nor wget is installed. Install one of them." >&2
  exit 1
fi
echo "Downloading $url"
"${download[@]}" || { echo "cannot download CIFAR-10 from '$url'. Check the network." >&2; exit 1; }
echo "$checksum  $work/archive" | md5sum --check --status || {
  echo "the downloaded CIFAR-10 archive does not match its published checksum. Try again." >&2
  exit 1
}
tar --extract --gzip --file "$work/archive" --directory "$work"
mv "$work/cifar-10-batches-bin" "$folder/cifar-10-batches-bin"
