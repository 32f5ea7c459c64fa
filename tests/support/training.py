"""One training as seen from outside: starting it, watching how far it is, finding its ranks, reading what it leaves."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

PROGRAMS = ("train_cifar", "train_imagenet")
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
TIMES = ("seconds", "samples_per_second", "loader_waited_ms")


def under_mpirun(ranks):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def make_data(programs, program, samples, folder):
    """A data set for `program` in `folder`: pixels, or for train_imagenet JPEG files of several sizes."""
    source = ["synthetic", "--samples", str(samples)]
    if program == "train_imagenet":
        pictures = pathlib.Path(f"{folder}.pictures")
        subprocess.run([f"{programs}/write_pictures", pictures, str(samples)], check=True)
        source = ["images", "--source", pictures]
    subprocess.run([f"{programs}/make_shards", *source, "--output", folder], check=True, stdout=subprocess.DEVNULL)


def image_options(program):
    """What makes a step of `program` small."""
    return ["--image-size", "32"] if program == "train_imagenet" else []


def send(process, number):
    """Whether there was such a process."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def expect(condition, words, run):
    """Ends the test, and the ranks of the training, unless the condition holds."""
    if condition:
        return
    for process in run.ranks().values():
        send(process, signal.SIGKILL)
    sys.exit(f"{words}\n{run.words()}")


def words_of_process(entry):
    try:
        return (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def rank_of_process(entry):
    try:
        variables = dict(word.split("=", 1) for word in (entry / "environ").read_text(errors="replace").split("\0")
                         if "=" in word)
    except OSError:
        return 0
    return next((int(variables[name]) for name in RANK_VARIABLES if name in variables), 0)


class Training:
    """`command` starts it; `output` is its --output."""

    def __init__(self, command, output):
        self.command = [str(word) for word in command]
        self.output = pathlib.Path(output)
        self.log = self.output.parent / f"{self.output.name}.log"
        self.log_start = 0
        self.metrics_before = 0

    def start(self):
        self.log_start = self.log.stat().st_size if self.log.exists() else 0
        self.metrics_before = self._metrics_file()  # a run that goes on writes the file anew before its first step
        with open(self.log, "ab") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                    start_new_session=True)

    def run(self, limit=120):
        return self.wait(self.start(), limit)

    def wait(self, program, limit=120):
        """Its exit code. Throws TimeoutError, and leaves nothing running, if it does not end."""
        try:
            return program.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill(program)
            raise TimeoutError(f"no end after {limit} s") from None

    def kill(self, program):
        """Ends all of it at once."""
        for process in self.ranks().values():
            send(process, signal.SIGKILL)
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.wait()

    def wait_for_step(self, program, step, limit=120):
        """Until it has reported `step` since it was started. Whether it came to that before it ended."""
        deadline = time.monotonic() + limit
        while not self.reports_step(step):
            if program.poll() is not None:
                return False
            if time.monotonic() > deadline:
                self.kill(program)
                raise TimeoutError(f"step {step} not reported after {limit} s")
            time.sleep(0.002)
        return True

    def reports_step(self, step):
        """Whether it has reported `step` since it was started."""
        return self._metrics_file() != self.metrics_before and self.steps_reported() >= step

    def ranks(self):
        """The processes of its ranks on this machine: {rank: process}."""
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            words = words_of_process(entry)
            if words and pathlib.PurePath(words[0]).name in PROGRAMS and str(self.output) in words:
                found[rank_of_process(entry)] = int(entry.name)
        return found

    def words(self):
        """What the last run has said."""
        with open(self.log, "rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def history(self):
        """What its runs have reported of the training, without the times that it took."""
        lines = []
        for line in (self.output / "metrics.jsonl").read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["kind"] != "slowest rank":
                lines.append({name: value for name, value in entry.items() if name not in TIMES})
        return lines

    def steps_reported(self):
        try:
            return max((entry["step"] for entry in self.history()), default=0)
        except FileNotFoundError:
            return 0

    def failure(self):
        """failure.json; empty if there is none."""
        return self._json("failure.json")

    def summary(self):
        return self._json("summary.json")

    def checkpoints(self):
        """{step: file}"""
        files = (self.output / "checkpoints").glob("step-*.h5")
        return {int(re.sub(r"\D", "", file.stem)): file for file in sorted(files)}

    def _metrics_file(self):
        try:
            return (self.output / "metrics.jsonl").stat().st_ino
        except FileNotFoundError:
            return 0

    def _json(self, name):
        try:
            return json.loads((self.output / name).read_text())
        except FileNotFoundError:
            return {}
