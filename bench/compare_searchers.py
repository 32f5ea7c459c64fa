#!/usr/bin/env python3
"""Compares searchers: ASHA with random search, at about the same number of epochs, on CIFAR-10.

    python3 bench/compare_searchers.py --build build/release --cifar FOLDER --output FOLDER

FOLDER of --cifar has CIFAR-10 in its binary version. Both searchers train ResNet-20 on every fourth picture for at most
eight epochs per trial, over learning rate, weight decay, label smoothing and batch size. With each seed, ASHA has 16
trials, and random search as many as train about the same epochs. Prints a Markdown table. The same command continues after an
interruption.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

from processes import say

EPOCHS = 8
RECORD = 3073  # bytes of a picture and its label
SPACE = """\
program: train_cifar
arguments: --data {data} --model resnet20 --threads 1
searcher: {{name: {name}, metric: test-accuracy, max_length: {{epochs: {epochs}}}, max_trials: {trials}{more}}}
seed: {seed}
hyperparameters:
  lr: {{type: log, minval: -3, maxval: 0, base: 10}}
  weight-decay: {{type: log, minval: -5, maxval: -2, base: 10}}
  label-smoothing: {{type: double, minval: 0, maxval: 0.3}}
  global-batch: {{type: categorical, vals: [32, 64, 128, 256]}}
"""


def every_fourth(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for number in range(1, 6):
        records = (source / f"data_batch_{number}.bin").read_bytes()
        kept = [records[start:start + RECORD] for start in range(0, len(records), 4 * RECORD)]
        (target / f"data_batch_{number}.bin").write_bytes(b"".join(kept))
    (target / "test_batch.bin").write_bytes((source / "test_batch.bin").read_bytes())


class Search:
    """A search that has ended: `results` has the epochs that all trials together had trained, and the best accuracy by
    then, after each of its results."""

    def __init__(self, options, name, seed, trials, more=""):
        folder = pathlib.Path(options.output) / f"{name}-{seed}"
        space = folder.with_suffix(".yaml")
        space.write_text(SPACE.format(data=options.output / "data", name=name, epochs=EPOCHS, trials=trials, more=more,
                                      seed=seed))
        say(f"{name}, seed {seed}, {trials} trials")
        subprocess.run([options.build / "bin" / "search", space, "--output", folder], check=True,
                       stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (folder / "search.jsonl").read_text().splitlines()]
        orders = [order for line in lines for order in line.get("orders", [])]
        length = {(order["trial"], order["rung"]): order["length"] for order in orders}
        reached, best, self.results = {}, 0, []
        for line in lines[1:]:
            if "metric" not in line:
                continue
            reached[line["trial"]] = length[line["trial"], line["rung"]]
            best = max(best, line["metric"])
            self.results.append((sum(reached.values()), best))
        self.trials = len(reached)
        self.epochs, self.best = self.results[-1]

    def epochs_until(self, accuracy):
        """None if no trial reached it."""
        return next((epochs for epochs, best in self.results if best >= accuracy), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default="build/release", help="build folder (%(default)s)")
    parser.add_argument("--cifar", type=pathlib.Path, required=True, help="folder with data_batch_1.bin and so on")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder for data and searches")
    parser.add_argument("--seeds", type=int, default=3, help="searches of each kind (%(default)s)")
    options = parser.parse_args()

    if not (options.output / "data" / "test" / "manifest.json").exists():
        every_fourth(options.cifar, options.output / "pictures")
        subprocess.run([options.build / "bin" / "make_shards", "cifar10", "--source", options.output / "pictures",
                        "--output", options.output / "data"], check=True, stdout=subprocess.DEVNULL)
    print("| seed | ASHA: trials, epochs | best accuracy | random search: trials, epochs | best accuracy "
          "| ASHA's epochs until random's best |\n|---|---|---|---|---|---|", flush=True)
    differences = []
    for seed in range(1, options.seeds + 1):
        asha = Search(options, "asha", seed, 16, ", divisor: 2, max_rungs: 4")
        random = Search(options, "random", seed, round(asha.epochs / EPOCHS))
        until = asha.epochs_until(random.best)
        share = "never" if until is None else f"{until} ({until / random.epochs:.0%})"
        print(f"| {seed} | {asha.trials}, {asha.epochs} | {asha.best:.2%} | {random.trials}, {random.epochs} "
              f"| {random.best:.2%} | {share} |", flush=True)
        differences.append(asha.best - random.best)
    print(f"\nASHA's best accuracy less random search's: mean {statistics.mean(differences):+.2%}, "
          f"from {min(differences):+.2%} to {max(differences):+.2%}.")


if __name__ == "__main__":
    main()
