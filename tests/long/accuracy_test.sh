#!/usr/bin/env bash
# ResNet-20 reaches 85 % on CIFAR-10's test set in ten epochs on two ranks, all by default: accuracy_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/words.sh"
programs=$1
cifar=${LOCKSTEP_TEST_DATA:-}/cifar-10-batches-bin
[ -e "$cifar/test_batch.bin" ] || skip "no CIFAR-10 (set LOCKSTEP_TEST_DATA)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$programs/make_shards" cifar10 --source "$cifar" --output "$work/shards"
mpirun -n 2 --oversubscribe --bind-to none "$programs/train_cifar" --data "$work/shards" --output "$work/run"
python3 - "$work/run/summary.json" <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
print("test accuracy", summary["test_accuracy"])
assert summary["model"] == "resnet20" and summary["epochs"] == 10 and summary["ranks"] == 2, summary
assert summary["test_accuracy"] >= 0.85, summary["test_accuracy"]
PYTHON
