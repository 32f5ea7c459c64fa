#!/usr/bin/env bash
# Trains on an emulated processor without AVX-512: older_processor.sh FOLDER_OF_PROGRAMS. Wide instructions would end it
# by SIGILL.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"
programs=$1
need qemu-x86_64 qemu-user
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$programs/make_shards" synthetic --samples 240 --output "$work/shards" >"$work/words" 2>&1 || {
  cat "$work/words"
  fail "make_shards"
}
# qemu-user's threads are slow to hand over: one is enough to meet every instruction.
qemu-x86_64 -cpu Haswell "$programs/train_cifar" --data "$work/shards" --model lenet --epochs 1 --global-batch 40 --threads 1 \
  --output "$work/output" || fail "train_cifar ended with $? on an emulated Haswell"
python3 - "$work/output/summary.json" <<'PYTHON' || fail "the training left no sound summary"
import json, sys
summary = json.load(open(sys.argv[1]))
assert summary["steps"] > 0 and summary["epochs"] == 1 and 0 <= summary["test_accuracy"] <= 1, summary
PYTHON
