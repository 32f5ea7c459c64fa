#!/usr/bin/env python3
"""What safety costs: trainings with it and without it, in turn.

    safety_costs.py                      all, a quarter of an hour on two idle cores
    safety_costs.py --only checkpoints --pairs 3

Each pair is two runs, one after the other; the cost is the median of the pairs' ratios of training time, with its 95 %
bootstrap interval. Tests of the model do not count. Prints a table for bench/results.
"""
import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile
import time

from comparison import ratio_interval
from processes import output_of

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TWO_RANKS = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2")
MINUTE = 60


@dataclasses.dataclass
class Case:
    name: str
    target: str
    model: str
    samples: int  # one epoch, without what makes no whole batch
    common: tuple
    safe: tuple
    plain: tuple
    launcher: tuple = TWO_RANKS
    checkpoints: int = 0  # in the safe run: the cost is then that of one a minute


CASES = {
    "checkpoints": Case("a checkpoint a minute, ResNet-18, 2 ranks", "≤ 2 %", "resnet18", 64 * 12,
                        ("--global-batch", 64, "--threads", 1), ("--checkpoint-every", 2),
                        ("--checkpoint-every", "100epochs"), checkpoints=6),
    "watching": Case("watching and audits, ResNet-20, 2 ranks", "< 0.5 %", "resnet20", 128 * 60,
                     ("--global-batch", 128, "--threads", 1), ("--hang-timeout", 300, "--audit-every", 50),
                     ("--hang-timeout", 0, "--audit-every", 0)),
    "virtual-2": Case("--virtual-ranks 2 of 32 on 2 ranks, ResNet-18", "≤ 10 %", "resnet18", 64 * 10,
                      ("--global-batch", 64, "--threads", 1), ("--virtual-ranks", 2), ()),
    "virtual-12": Case("--virtual-ranks 12 of 8 against --accumulate 12, 1 rank, ResNet-18", "", "resnet18", 96 * 6,
                       ("--threads", 2), ("--global-batch", 96, "--virtual-ranks", 12),
                       ("--batch-per-rank", 8, "--accumulate", 12), launcher=()),
}


def make_data(options, samples, folder):
    output_of([options.build / "bin" / "make_shards", "synthetic", "--samples", str(samples), "--output", folder],
              ENVIRONMENT)


def training_seconds(options, case, more, data, output):
    words = [*case.launcher, options.build / "bin" / "train_cifar", "--data", data, "--model", case.model, "--epochs", 1,
             "--device", "cpu", "--plan-folder", "", "--output", output, *case.common, *more]
    output_of([str(word) for word in words], ENVIRONMENT)
    return json.loads((output / "summary.json").read_text(encoding="utf-8"))["training_seconds"]


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f}"


def measured(options, case, folder):
    """A row of the table."""
    data = folder / "data"
    make_data(options, case.samples, data)
    safe, plain = [], []
    for pair in range(options.pairs):
        for seconds, more, name in ((safe, case.safe, "safe"), (plain, case.plain, "plain")):
            seconds.append(training_seconds(options, case, more, data, folder / f"{name}-{pair}"))
        print(f"{case.name}: {safe[-1]:.2f} s, without {plain[-1]:.2f} s", file=sys.stderr, flush=True)
    if case.checkpoints:  # so many in a short run: what they cost, spread over as many minutes
        safe = [MINUTE + (with_them - without) / case.checkpoints for with_them, without in zip(safe, plain)]
        plain = [MINUTE] * len(safe)
    median, low, high = ratio_interval(safe, plain)
    return f"| {case.name} | {percent(median)} % ({percent(low)} to {percent(high)}) | {case.target} |"


def integrity(options, folder):
    """Every rank hashes each block it touches once an epoch: at most all of them."""
    make_data(options, 50_000, folder / "data")
    verify = [options.build / "bin" / "make_shards", "verify", folder / "data" / "train"]
    empty = [options.build / "bin" / "make_shards", "--version"]
    times = []
    for _ in range(options.pairs):
        start = time.monotonic()
        output_of(verify, ENVIRONMENT)
        middle = time.monotonic()
        output_of(empty, ENVIRONMENT)
        times.append(middle - start - (time.monotonic() - middle))
    case = CASES["watching"]
    make_data(options, case.samples, folder / "small")
    step = training_seconds(options, case, (), folder / "small", folder / "out") / case.samples
    share = statistics.median(times) / (50_000 * step)
    return f"| hashing 50,000 samples again, of an epoch of ResNet-20 | {100 * share:+.2f} % | ≤ 2 % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"), help="%(default)s")
    parser.add_argument("--pairs", type=int, default=5, help="%(default)s")
    parser.add_argument("--only", choices=[*CASES, "integrity"], help="one of the costs")
    options = parser.parse_args()
    print("| what | cost in training time (95 %) | to reach |\n|---|---|---|")
    for name in [options.only] if options.only else [*CASES, "integrity"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            row = integrity(options, folder) if name == "integrity" else measured(options, CASES[name], folder)
            print(row, flush=True)


if __name__ == "__main__":
    main()
