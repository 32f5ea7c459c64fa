#!/usr/bin/env python3
"""Programs that do not train, on two ranks of which one is stopped (SIGSTOP): it is named, and the program ends with
76. They hung for ever.

stopped_rank_test.py PROGRAMS
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

from training import under_mpirun  # noqa: E402: found only now

LIMIT_SECONDS = 60


def expect(condition, words):
    if not condition:
        sys.exit(words)


class Run:
    """A program of two ranks, each of which knows it by a variable."""

    def __init__(self, programs, folder, program, *options):
        self.program = program
        self.mark = f"STOPPED_RANK_TEST={folder}/{program}"
        environment = dict(os.environ, STOPPED_RANK_TEST=f"{folder}/{program}")
        command = under_mpirun(2) + [programs / program, *options, "--hang-timeout", "1"]
        self.log = open(folder / f"{program}.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([str(word) for word in command], env=environment, stdout=self.log,
                                        stderr=self.log)

    def words(self):
        self.log.seek(0)
        return self.log.read()

    def rank(self, number):
        """Its process, once the thread of its watcher has started."""
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (entry / "environ").read_text(errors="replace").split("\0")
                if self.mark not in variables or f"OMPI_COMM_WORLD_RANK={number}" not in variables:
                    continue
                threads = [(task / "comm").read_text().strip() for task in (entry / "task").iterdir()]
            except OSError:
                continue
            if "watcher" in threads:
                return int(entry.name)
        return None

    def stop_rank_1(self):
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if (rank := self.rank(1)) is not None:
                os.kill(rank, signal.SIGSTOP)
                return
            time.sleep(0.02)
        sys.exit(f"{self.program} has no rank to stop:\n{self.words()}")

    def expect_named(self):
        try:
            code = self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            sys.exit(f"{self.program} hangs:\n{self.words()}")
        finally:
            if (rank := self.rank(1)) is not None:
                os.kill(rank, signal.SIGKILL)
            self.process.kill()
        words = self.words()
        expect(code == 76, f"{self.program} ended with {code}:\n{words}")
        expect(f"rank 1 on {socket.gethostname()} has been stopped for " in words,
               f"{self.program} does not name the rank:\n{words}")
        print(f"{self.program}: 76")


def main():
    programs = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        few, data, training = folder / "few", folder / "data", folder / "run"
        for command in ([programs / "make_shards", "synthetic", "--samples", "200", "--output", few],
                        [programs / "make_shards", "synthetic", "--samples", "60000", "--output", data],
                        [programs / "train_cifar", "--data", few, "--model", "resnet20", "--max-steps", "1",
                         "--output", training, "--device", "cpu"],
                        [programs / "write_pictures", folder / "pictures", "1"]):
            subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        picture = next(path for path in (folder / "pictures").rglob("*") if path.is_file())
        (folder / "list").write_text(f"{picture}\n" * 200000)
        for case in (
                ["evaluate", "--follow", folder / "nothing", "--data", data, "--device", "cpu"],
                ["predict", training, "--list", folder / "list", "--device", "cpu"],
                ["report", training, "--data", data, "--output", folder / "page.html", "--device", "cpu"],
                ["scaling_study", "--output", folder / "study", "--seconds", "20", "--device", "cpu"],
                ["make_shards", "synthetic", "--samples", "2000000", "--output", folder / "more"]):
            run = Run(programs, folder, *case)
            run.stop_rank_1()
            run.expect_named()


if __name__ == "__main__":
    main()
