#!/usr/bin/env python3
"""Trains ResNet-20 on CIFAR-10 with convolutions by the rule, which is Winograd's for most of them, and with direct ones
only, from the same seeds, and wants the means of the test accuracies within half a point. Trainings run side by side,
each on one thread, as many as there are cores.

convolutions_accuracy_test.py PROGRAMS [--seeds 5] [--epochs 5]
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

LARGEST_DIFFERENCE = 0.5  # percentage points
SKIPPED = 77


class Failed(Exception):
    """Says what is wrong."""


def train(options, folder, convolutions, seed):
    """The test accuracy in percent, and the hash of the weights."""
    output = folder / f"{convolutions} {seed}"
    words = [f"{options.programs}/train_cifar", "--data", folder / "shards", "--model", "resnet20", "--epochs",
             str(options.epochs), "--seed", str(seed), "--device", "cpu", "--threads", "1", "--convolutions", convolutions,
             "--output", output]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failed(f"--convolutions {convolutions} failed with {run.returncode}: {run.stderr}")
    summary = json.loads((output / "summary.json").read_text())
    if ("direct convolutions" in summary["device"]) != (convolutions == "direct") or summary["seed"] != seed:
        raise Failed(f"the summary is of another run: {summary}")
    accuracy = 100 * summary["test_accuracy"]
    print(f"{convolutions:6} seed {seed}: {accuracy:.2f} %, weights {summary['weights_hash']}", flush=True)
    return accuracy, summary["weights_hash"]


def train_all(options, folder):
    """Accuracies of both kinds of convolutions, by seed."""
    seeds = range(1, options.seeds + 1)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        runs = {(convolutions, seed): cores.submit(train, options, folder, convolutions, seed)
                for seed in seeds for convolutions in ("direct", "auto")}  # the slower ones first
        try:
            found = {run: future.result() for run, future in runs.items()}
        except Failed:
            cores.shutdown(cancel_futures=True)
            raise
    if any(found["auto", seed][1] == found["direct", seed][1] for seed in seeds):
        raise Failed("both trainings gave the same bits: they computed alike")
    return {convolutions: [found[convolutions, seed][0] for seed in seeds] for convolutions in ("auto", "direct")}


def standard_error(accuracies):
    return statistics.stdev(accuracies) / math.sqrt(len(accuracies)) if len(accuracies) > 1 else math.nan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    source = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "")) / "cifar-10-batches-bin"
    if not (source / "test_batch.bin").exists():
        print("skipped: no CIFAR-10 (set LOCKSTEP_TEST_DATA)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([f"{options.programs}/make_shards", "cifar10", "--source", source, "--output", folder / "shards"],
                       check=True, stdout=subprocess.DEVNULL)
        found = train_all(options, folder)
    for convolutions, accuracies in found.items():
        print(f"{convolutions:6} mean {statistics.mean(accuracies):.2f} %, standard error {standard_error(accuracies):.2f}")
    difference = abs(statistics.mean(found["auto"]) - statistics.mean(found["direct"]))
    if difference > LARGEST_DIFFERENCE:
        sys.exit(f"the means are {difference:.2f} points apart, more than {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    try:
        main()
    except Failed as reason:
        sys.exit(str(reason))
