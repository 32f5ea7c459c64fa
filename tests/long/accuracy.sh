#!/usr/bin/env bash
# ResNet-20 learns the real CIFAR-10 in 10 epochs with the default recipe: accuracy.sh FOLDER_OF_PROGRAMS. The test accuracy
# must reach 85 %.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/script.sh"
programs=$1
[ -n "${LOCKSTEP_TEST_DATA:-}" ] || skip "LOCKSTEP_TEST_DATA is not set (a folder with cifar-10-batches-bin/)"
[ -d "$LOCKSTEP_TEST_DATA/cifar-10-batches-bin" ] || skip "no cifar-10-batches-bin/ in $LOCKSTEP_TEST_DATA"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$programs/make_shards" cifar10 --source "$LOCKSTEP_TEST_DATA/cifar-10-batches-bin" --output "$work/shards" || fail "make_shards"
mpirun --oversubscribe --bind-to none -n 2 "$programs/train_cifar" --data "$work/shards" --model resnet20 --epochs 10 \
  --output "$work/output" || fail "train_cifar"
python3 - "$work/output/summary.json" <<'PYTHON' || fail "ResNet-20 learns less than it should"
import json, sys
accuracy = json.load(open(sys.argv[1]))["test_accuracy"]
print(f"test accuracy {accuracy:.4f}, at least 0.85 wanted")
sys.exit(accuracy < 0.85)
PYTHON
