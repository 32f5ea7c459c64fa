"""Runs of lib's programs on the simulated GPU, and what they must have in common."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from training import under_mpirun

ORDERS = ("late", "early", "random:1")
FINGERPRINT = re.compile(r"\w{16}")


class Trainings:
    """LeNet, three steps an epoch, so that the second epoch replays graphs only."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.faults = programs, folder, []
        self.data = folder / "data"
        self.run_words([f"{programs}/make_shards", "synthetic", "--samples", "48", "--output", self.data])

    @staticmethod
    def run_words(words, **environment):
        """The exit code and all output."""
        done = subprocess.run([str(word) for word in words], env={**os.environ, **environment}, capture_output=True,
                              text=True, check=False, timeout=200)
        return done.returncode, done.stdout + done.stderr

    def start(self, program, *options, device="cuda", order="direct", fault="none", ranks=1,
              **environment):
        """A program that computes."""
        name = f"{program}_on_simulated_gpu" if device == "cuda" else program
        launcher = [] if ranks == 1 else under_mpirun(ranks)
        return self.run_words([*launcher, f"{self.programs}/{name}", "--device", device, "--threads", "1", *options],
                              LOCKSTEP_GPU_ORDER=order, LOCKSTEP_GPU_FAULT=fault, **environment)

    def run(self, *options, name=None, **how):
        output = ["--output", self.folder / name] if name else []
        defaults = {"--model": "lenet", "--epochs": "2", "--global-batch": "16", "--plan-folder": ""}
        others = [word for pair in defaults.items() if pair[0] not in options for word in pair]
        return self.start("train_cifar", "--data", self.data, *others, *output, *options, **how)

    def outcome(self, *options, **how):
        """The fingerprint of the weights with which the training ends; its message if it fails."""
        code, words = self.run(*options, **how)
        found = re.search(r"weights (\w{16})\)", words)
        return found.group(1) if code == 0 and found else words[-3000:]

    def weights(self, *options, **how):
        """Of a training that must not fail."""
        found = self.outcome(*options, **how)
        self.expect(f"{options} {how} failed", FINGERPRINT.fullmatch(found), found)
        return found

    def metrics(self, name, *kinds):
        lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["kind"] in kinds]

    def losses(self, name):
        return [entry["loss"] for entry in self.metrics(name, "training", "test")]

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def expect_equal(self, what, found, expected):
        self.expect(what, found == expected, f"{found}, expected {expected}")

    def expect_same(self, what, *options, **how):
        """In all orders. Returns the weights."""
        direct = self.weights(*options, **how)
        for order in ORDERS:
            found = self.weights(*options, order=order, **{**how, "name": None})
            self.expect(f"{what}, {order}", found == direct, f"{found}, directly {direct}")
        return direct

    def expect_found(self, fault, finding, right, *options, **how):
        """`finding`: a pattern in the message with which the training ends, or "bits": it ends with other weights."""
        found = self.outcome(*options, fault=fault, **how)
        is_found = FINGERPRINT.fullmatch(found) and found != right if finding == "bits" else re.search(finding, found)
        self.expect(fault, is_found, f"not found: {found}")


def main(parts):
    """`parts`: by name, functions of Trainings and the further arguments. Arguments of the test: BIN PART ..."""
    programs, part, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(programs, pathlib.Path(folder))
        parts[part](trainings, *arguments)
        print("\n".join(trainings.faults) or "all as expected")
        return 1 if trainings.faults else 0
