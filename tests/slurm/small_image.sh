#!/usr/bin/env bash
# Makes the root of a container image of this machine's own files: small_image.sh IMAGE FILE|FOLDER|PROGRAM...
#
# Programs come from PATH and lie in /bin. Files and folders keep their paths. Libraries that they need come along.
set -euo pipefail
image=$1
shift
mkdir -p "$image"/{dev,etc,proc,sys,tmp,usr/{bin,lib,lib64}}
ln -s usr/{bin,lib,lib64} "$image"
: | tee "$image"/etc/{passwd,group,hosts,resolv.conf} >"$image/etc/nsswitch.conf"
for name in "$@"; do
  if [[ $name == /* ]]; then
    cp -r --parents -- "$name" "$image"
    find "$name" -type f
  else
    cp -L -- "$(command -v "$name")" "$image/bin/$name"
    command -v "$name"
  fi
done | xargs -d '\n' ldd 2>/dev/null | sed -nE 's/.*(=> |^\s)(\/[^ ]+) \(0x.*/\2/p' | sort -u |
  xargs -d '\n' cp -L --parents -t "$image" --
