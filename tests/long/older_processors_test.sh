#!/usr/bin/env bash
# Trains lenet on processors without AVX-512 and without AVX, emulated: older_processors_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
programs=$1
need qemu-x86_64 qemu-user
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Emulation is some hundred times slower than a processor: just enough to meet every instruction.
"$programs/make_shards" synthetic --samples 240 --output "$work/shards"
for processor in Haswell:AVX2 Nehalem:SSE2; do
  qemu-x86_64 -cpu "${processor%:*}" "$programs/train_cifar" --data "$work/shards" --model lenet --epochs 1 \
    --global-batch 40 --threads 1 --output "$work/$processor" || fail "train_cifar on an emulated ${processor%:*}"
  python3 - "$work/$processor/summary.json" "${processor#*:}" <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
print(summary["device"], "test loss", summary["test_loss"])
assert sys.argv[2] in summary["device"], "vector loops for another processor"
assert summary["steps"] == 6 and summary["test_loss"] < 2.5, "worse than guessing among ten classes"
PYTHON
done
