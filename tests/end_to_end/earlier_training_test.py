#!/usr/bin/env python3
"""Checkpoints and a model that version 0.1.0 wrote lead to the same bits as there.

earlier_training_test.py PROGRAMS [--write]

Each training is resumed to its end, from its checkpoint in tests/golden/trainings and with each instruction set that
the processor has, with a replicated and with a sharded optimizer. expected.json there has the weights' hash and the loss at the end, and the model's loss. Other
compilers and build types may round differently: there only losses are compared, up to rounding. --write makes all of
these files anew: only if a change of bits is meant.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import under_mpirun  # noqa: E402: found only now

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "trainings"
EXPECTED = GOLDEN / "expected.json"
CHECKPOINT_STEP = 6  # of twelve, in the middle of an epoch
SETS = ("baseline", "avx2", "avx512")
# By name: the numbers of ranks that must give the same bits, the first of which writes; options.
TRAININGS = {
    "sgd": ((1,), ("--global-batch", "24", "--nesterov")),
    "adamw": ((2,), ("--batch-per-rank", "12", "--reduce", "shared", "--optimizer", "adamw", "--lr", "0.005",
                     "--warmup", "1", "--clip-norm", "1", "--ema", "0.9")),
    "virtual_ranks": ((2, 1, 3), ("--global-batch", "24", "--virtual-ranks", "6")),
}


class Trainings:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.data = folder / "data"
        self.run("make_shards", "synthetic", "--samples", "96", "--output", self.data)

    def run(self, program, *words, ranks=1):
        command = [f"{self.programs}/{program}", *map(str, words)]
        command = under_mpirun(ranks) + command if ranks > 1 else command
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 2 and "--instruction-set" in done.stderr and "baseline" not in words:
            raise NotImplementedError(done.stderr)
        if done.returncode != 0:
            sys.exit(f"{command} failed with {done.returncode}: {done.stderr}")

    def train(self, name, instruction_set, ranks, *more):
        """Its output folder."""
        output = self.folder / f"{name}-{instruction_set}-{ranks}"
        shutil.rmtree(output, ignore_errors=True)
        self.run("train_cifar", "--data", self.data, "--output", output, "--model", "convnet", "--image-size", "8",
                 "--epochs", "3", "--threads", "1", "--device", "cpu", "--instruction-set", instruction_set,
                 *TRAININGS[name][1], *more, ranks=ranks)
        return output

    def resume(self, name, instruction_set, ranks, *more):
        output = self.train(name, instruction_set, ranks, "--resume", GOLDEN / f"{name}.h5", *more)
        summary = json.loads((output / "summary.json").read_text())
        return {field: summary[field] for field in ("build", "weights_hash", "test_loss")}

    def evaluate(self, instruction_set):
        result = self.folder / "evaluation.json"
        self.run("evaluate", "--model-file", GOLDEN / "model.h5", "--data", self.data, "--threads", "1",
                 "--device", "cpu", "--instruction-set", instruction_set, "--json", result)
        return {"test_loss": json.loads(result.read_text())["loss"]}

    def write(self, name):
        """A checkpoint is skipped while an earlier one is being written, so this may take several attempts."""
        left = pathlib.Path("none")
        while not left.exists():
            output = self.train(name, "avx2", TRAININGS[name][0][0],
                                "--checkpoint-every", CHECKPOINT_STEP, "--keep-latest", "9")
            left = output / "checkpoints" / f"step-{CHECKPOINT_STEP:012}.h5"
        shutil.copy(left, GOLDEN / f"{name}.h5")
        if name == "sgd":
            shutil.copy(output / "model.h5", GOLDEN / "model.h5")


def results(trainings, instruction_set):
    """By training and number of ranks."""
    found = {"model": trainings.evaluate(instruction_set)}
    for name, (ranks, _) in TRAININGS.items():
        found.update({f"{name} on {count}": trainings.resume(name, instruction_set, count) for count in ranks})
    return found


def is_same(found, expected, built_alike):
    return found == expected if built_alike else abs(found["test_loss"] - expected["test_loss"]) < 1e-3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        trainings = Trainings(options.programs, pathlib.Path(name))
        if options.write:
            for training in TRAININGS:
                trainings.write(training)
            EXPECTED.write_text(json.dumps({one: results(trainings, one) for one in SETS}, indent=2) + "\n")
        faults = []
        for one, expected in json.loads(EXPECTED.read_text()).items():
            try:
                found = results(trainings, one)
            except NotImplementedError:
                print(f"{one}: not on this processor")
                continue
            alike = found["sgd on 1"]["build"] == expected["sgd on 1"]["build"]
            for name, (ranks, _) in TRAININGS.items():
                key = f"{name} on {ranks[0]}"
                found[f"{key}, sharded"] = trainings.resume(name, one, ranks[0], "--shard-optimizer")
                expected[f"{key}, sharded"] = expected[key]
            faults += [f"{one}: {name}: {found[name]} instead of {expected[name]}" for name in expected
                       if not is_same(found[name], expected[name], alike)]
            print(f"{one}: compared {'bits' if alike else 'losses'}")
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
