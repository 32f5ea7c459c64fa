#!/usr/bin/env bash
# Trains lenet on processors without AVX-512 and without AVX, emulated: older_processors_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
programs=$1
need qemu-x86_64 qemu-user
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$programs/make_shards" synthetic --samples 2000 --output "$work/shards"
for processor in Haswell Nehalem; do
  qemu-x86_64 -cpu "$processor" "$programs/train_cifar" --data "$work/shards" --model lenet --epochs 2 --threads 1 \
    --output "$work/$processor" 2>"$work/errors" || { cat "$work/errors"; exit 1; }
  python3 - "$work/$processor/summary.json" <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
print(summary["cpu"], "test accuracy", summary["test_accuracy"])
assert "AVX-512" not in json.dumps(summary["cpu"])
assert summary["test_accuracy"] > 0.15, "no better than guessing among ten classes"
PYTHON
done
