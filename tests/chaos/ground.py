"""Where faults are done to trainings: data, a launcher, and the weights of a training that nobody disturbed."""
import dataclasses
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training  # noqa: E402: found only now

STEPS_PER_EPOCH = 20
BATCH_PER_RANK = 8
SECONDS_TO_NAME_A_DEATH = 10


class Lost(Exception):
    """The fault cost work, or nobody could tell what happened."""


class Skipped(Exception):
    """The fault cannot be done here."""


@dataclasses.dataclass
class Fault:
    """`inject(case)` does it, and returns what happened in a few words, or throws Lost or Skipped."""

    name: str
    expected: str
    inject: Callable
    quick: bool = False  # among the short selection


@dataclasses.dataclass
class Options:
    programs: pathlib.Path
    launcher: list
    folder: pathlib.Path
    device: str = "cpu"
    epochs: int = 30
    write_kills: int = 5


class Ground:
    """Every fault is done to the same training, which lasts a few seconds; a fault has survived if its weights come
    out right in the end."""

    def __init__(self, options):
        self.options = options
        self.data = options.folder / "data"
        self.reference = self.training("undisturbed", "--keep-latest", 4)
        self._make_data(STEPS_PER_EPOCH * BATCH_PER_RANK)
        self._require_success(self.reference)
        ranks = self.reference.summary()["ranks"]
        if ranks > 1:
            shutil.rmtree(self.data)
            self._make_data(STEPS_PER_EPOCH * BATCH_PER_RANK * ranks)
            shutil.rmtree(self.reference.output)
            self._require_success(self.reference)
        summary = self.reference.summary()
        self.ranks, self.steps, self.weights = summary["ranks"], summary["steps"], summary["weights_hash"]

    def command(self, output, data, epochs, report_every):
        program = [self.options.programs / "train_cifar", "--data", data, "--model", "convnet", "--epochs", epochs,
                   "--batch-per-rank", BATCH_PER_RANK, "--threads", 1, "--report-every", report_every, "--device",
                   self.options.device, "--plan-folder", "", "--output", output]
        return [*self.options.launcher, *program]

    def training(self, name, *options, data=None, epochs=None, report_every=1, wrapper=()):
        output = self.options.folder / name
        command = self.command(output, data or self.data, epochs or self.options.epochs, report_every)
        return Training([*wrapper, *command, *options], output)

    def _make_data(self, samples):
        subprocess.run([self.options.programs / "make_shards", "synthetic", "--samples", str(samples),
                        "--samples-per-shard", str(samples // 4), "--output", self.data], check=True,
                       stdout=subprocess.DEVNULL)

    @staticmethod
    def _require_success(training):
        code = training.run()
        if code != 0:
            raise SystemExit(f"the undisturbed training ended with {code}; nothing can be tested.\n{training.words()}")


class Case:
    """One fault, its trainings, and what is expected of them."""

    def __init__(self, ground, name):
        self.ground = ground
        self.name = re.sub(r"\W+", "-", name)
        self.where = ""
        self.step = 0  # at which the fault was done

    def training(self, *options, name="", **more):
        return self.ground.training(self.name + name, *options, **more)

    def copy_of_data(self):
        """To be damaged."""
        copy = self.ground.options.folder / f"{self.name}-data"
        shutil.copytree(self.ground.data, copy)
        return copy

    def finished_training(self):
        """A copy of the undisturbed training: with its four last checkpoints."""
        training = self.training("--keep-latest", 4)
        shutil.copytree(self.ground.reference.output, training.output)
        return training

    def some_step(self):
        return random.randint(2, self.ground.steps // 3)

    def some_rank(self, training):
        """(rank, process) of one on this machine."""
        ranks = training.ranks()
        if not ranks:
            raise Skipped("no rank runs on this machine")
        return random.choice(sorted(ranks.items()))

    def disturb(self, training, fault, limit=120):
        """Does `fault` to a training at work. Returns the seconds from then to its end, and its code."""
        program = training.start()
        if not training.wait_for_step(program, self.some_step()):
            raise Lost(f"it ended by itself: {last_line(training.words())}")
        self.step = training.steps_reported()
        self.where += f"{', ' if self.where else ''}step {self.step}"
        try:
            fault(training)
            start = time.monotonic()
            code = training.wait(program, limit)
            return time.monotonic() - start, self.code_of(training, code)
        finally:
            training.kill(program)

    @staticmethod
    def code_of(training, code):
        """Launchers change codes; failure.json does not."""
        return training.failure().get("code", code)

    @staticmethod
    def expect(condition, words):
        if not condition:
            raise Lost(words)

    def expect_report(self, training, code, pattern):
        """A sentence in failure.json, which is returned."""
        failure = training.failure()
        self.expect(failure, f"no failure.json; its last words: {last_line(training.words())}")
        self.expect(failure["code"] == code and re.search(pattern, failure["sentence"]),
                    f"code {failure['code']} instead of {code}, or no '{pattern}' in: {failure['sentence']}")
        return f"code {code}, {failure['sentence']}"

    def expect_words(self, training, pattern):
        found = re.search(pattern, training.words())
        self.expect(found, f"no '{pattern}' in what it said")
        return found.group(0)

    def expect_right_weights(self, training):
        found = training.summary().get("weights_hash")
        self.expect(found == self.ground.weights, f"weights {found} instead of {self.ground.weights}")

    def expect_to_go_on(self, training):
        """The same command, which is to end well and with the right weights; from a checkpoint, if there is one."""
        had_checkpoints = bool(training.checkpoints())
        code = self.code_of(training, training.run())
        self.expect(code == 0, f"the same command ended with {code}: {last_line(training.words())}")
        self.expect_right_weights(training)
        if had_checkpoints:
            self.expect_words(training, "resuming from '.*'")


def last_line(words):
    lines = [line for line in words.strip().splitlines() if line.startswith("[")] or [""]
    return lines[-1]


def flip_byte(file, offset):
    with open(file, "r+b") as handle:
        handle.seek(offset)
        byte = handle.read(1)[0]
        handle.seek(offset)
        handle.write(bytes([byte ^ 0x10]))
