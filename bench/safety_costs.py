#!/usr/bin/env python3
"""Measures what the safety features and records of a training cost: trainings with and without them, in turn.

    safety_costs.py                      all cases: half an hour on two idle cores
    safety_costs.py --only checkpoints --pairs 3

The cost is the median over pairs of the ratio of training time, with its 95 % bootstrap interval. Evaluations do not
count. The table also has the cost in processor time (user and system) of the whole programs, which depends less on
other load. Prints a table for bench/results.
"""
import argparse
import dataclasses
import json
import pathlib
import resource
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
    pairs: int = 1  # at least; small costs need many
    checkpoints: int = 0  # in the safe run; the cost is then scaled to one per minute


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
# LeNet has short steps, so records of each step cost most.
RECORDED = {"resnet20": ("ResNet-20, 32 samples a rank, 2 ranks", 64 * 24),
            "lenet": ("LeNet, 32 samples a rank, 2 ranks", 64 * 900)}
for option in ("trace", "tensorboard"):
    for model, (words, samples) in RECORDED.items():
        CASES[f"{option}-{model}"] = Case(f"--{option}, {words}", "< 2 %", model, samples,
                                          ("--batch-per-rank", 32, "--threads", 1), (f"--{option}", "FOLDER"), (), pairs=15)


def make_data(options, samples, folder):
    output_of([options.build / "bin" / "make_shards", "synthetic", "--samples", str(samples), "--output", folder],
              ENVIRONMENT)


@dataclasses.dataclass
class Cost:
    training: float  # seconds
    processor: float  # seconds of all processes


def processor_seconds():
    """Of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost_of_training(options, case, more, data, output):
    more = [output.with_suffix(".records") if word == "FOLDER" else word for word in more]
    words = [*case.launcher, options.build / "bin" / "train_cifar", "--data", data, "--model", case.model, "--epochs", 1,
             "--device", "cpu", "--plan-folder", "", "--output", output, *case.common, *more]
    before = processor_seconds()
    output_of([str(word) for word in words], ENVIRONMENT)
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    return Cost(summary["training_seconds"], processor_seconds() - before)


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f}"


def interval_words(safe, plain):
    median, low, high = ratio_interval(safe, plain)
    return f"{percent(median)} % ({percent(low)} to {percent(high)})"


def measured(options, case, folder):
    """A row of the table."""
    data = folder / "data"
    make_data(options, case.samples, data)
    costs = {"safe": [], "plain": []}
    for pair in range(max(options.pairs, case.pairs)):
        turn = [("safe", case.safe), ("plain", case.plain)]
        for name, more in turn if pair % 2 == 0 else reversed(turn):  # so that neither side is always second
            costs[name].append(cost_of_training(options, case, more, data, folder / f"{name}-{pair}"))
        print(f"{case.name}: {costs['safe'][-1]}, without {costs['plain'][-1]}", file=sys.stderr, flush=True)
    safe, plain = ([cost.training for cost in costs[name]] for name in ("safe", "plain"))
    processor = interval_words(*([cost.processor for cost in costs[name]] for name in ("safe", "plain")))
    if case.checkpoints:  # many in a short run: scale the cost to one per minute
        safe = [MINUTE + (with_them - without) / case.checkpoints for with_them, without in zip(safe, plain)]
        plain = [MINUTE] * len(safe)
        processor = ""  # is that of six checkpoints, not of one per minute
    return f"| {case.name} | {interval_words(safe, plain)} | {processor} | {case.target} |"


def integrity(options, folder):
    """Each rank hashes each block that it reads once per epoch: at most all blocks."""
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
    step = cost_of_training(options, case, (), folder / "small", folder / "out").training / case.samples
    share = statistics.median(times) / (50_000 * step)
    return f"| hashing 50,000 samples again, of an epoch of ResNet-20 | {100 * share:+.2f} % | | ≤ 2 % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"),
                        help="build folder (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs of each case (%(default)s)")
    parser.add_argument("--only", choices=[*CASES, "integrity"], help="run only this case")
    options = parser.parse_args()
    print("| what | cost in training time (95 %) | in processor time | to reach |\n|---|---|---|---|")
    for name in [options.only] if options.only else [*CASES, "integrity"]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            row = integrity(options, folder) if name == "integrity" else measured(options, CASES[name], folder)
            print(row, flush=True)


if __name__ == "__main__":
    main()
