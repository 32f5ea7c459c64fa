#!/usr/bin/env python3
"""Searches whose folders another process has, or takes: search_holders_test.py FOLDER_OF_PROGRAMS

A search that was suspended and lost its folder adds no line to the journal. A trial waits for a process that has its
folder. A program that fails for a while when it is asked for its options costs no trial.
"""
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import make_data  # noqa: E402: found only now

SPACE = """program: {program}
arguments: --data data --model lenet --device cpu --threads 1
searcher: {{name: grid, metric: test-accuracy, max_length: {{batches: {batches}}}, max_concurrent_trials: 1}}
hyperparameters: {{{option}: {{type: categorical, vals: {values}}}}}
"""
STOPPED_EARLY, OUT_OF_STEP = 75, 76
# Fails at the fourth question: two come before the first trial, and one with each of the trials.
FAILS_ONCE = """#!/bin/sh
case "$*" in
  *--print-recipe*)
    echo >>asked
    [ "$(wc -l <asked)" != 4 ] || {{ echo "out of memory: 4 MiB are missing"; exit 70; }} ;;
esac
exec {train_cifar} "$@"
"""


class Folder:
    def __init__(self, programs, path):
        self.programs, self.path = programs, path
        make_data(programs, "train_cifar", 300, path / "data")

    def write(self, program="train_cifar", batches=4, option="lr", values="[0.05, 0.1]"):
        (self.path / "space.yaml").write_text(
            SPACE.format(program=program, batches=batches, option=option, values=values))

    def start(self, output):
        return subprocess.Popen([self.programs / "search", "space.yaml", "--output", output], cwd=self.path,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, output):
        process = self.start(output)
        words = process.communicate(timeout=300)[0]
        return process.returncode, words

    def journal(self, output):
        return (self.path / output / "search.jsonl").read_text()

    def results(self, output):
        return sum("metric" in json.loads(line) for line in self.journal(output).splitlines())


def wait_until(is_so, process):
    while not is_so():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)


def lock_of(process, token):
    """The text of a lock that this process of the node holds."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return json.dumps({"job": "", "restarts": 0, "host": socket.gethostname(), "process": process,
                       "start": f"{fields[19]}@{boot}", "name_space": os.stat("/proc/self/ns/pid").st_ino,
                       "token": token}) + "\n" + f"{1:020}\n"


def suspended(folder):
    folder.write(batches=2000)
    search = folder.start("suspended")
    wait_until(lambda: (folder.path / "suspended/trial-1/lock").exists(), search)
    before = folder.journal("suspended")
    search.send_signal(signal.SIGSTOP)
    # As another process takes it over.
    new = folder.path / "suspended/lock.new"
    new.write_text(lock_of(os.getpid(), "another"))
    new.rename(folder.path / "suspended/lock")
    for trial in ("trial-1/lock", "trial-2/lock"):
        (folder.path / "suspended" / trial).unlink(missing_ok=True)  # its training stops
    search.send_signal(signal.SIGCONT)
    words = search.communicate(timeout=300)[0]
    assert search.returncode == OUT_OF_STEP, (search.returncode, words)
    assert folder.journal("suspended") == before, folder.journal("suspended")


def held_trial(folder):
    folder.write(batches=60)
    search = folder.start("held")
    wait_until(lambda: (folder.path / "held/search.jsonl").exists(), search)
    search.send_signal(signal.SIGINT)
    words = search.communicate(timeout=300)[0]
    assert search.returncode == STOPPED_EARLY, (search.returncode, words)
    trial = f"held/trial-{folder.results('held') + 1}"
    (folder.path / trial).mkdir(exist_ok=True)
    with subprocess.Popen(["sleep", "3"]) as sleeper:
        (folder.path / trial / "lock").write_text(lock_of(sleeper.pid, "held"))
        code, words = folder.run("held")
    assert code == 0 and f"waits until '{trial}' is free: process {sleeper.pid} on " in words, (code, words)
    assert folder.results("held") == 2, folder.journal("held")


def failing_question(folder):
    program = folder.path / "fails_once"
    program.write_text(FAILS_ONCE.format(train_cifar=shlex.quote(str(folder.programs / "train_cifar"))))
    program.chmod(0o755)
    folder.write(program="./fails_once", option="global-batch", values="[30, 60]")
    code, words = folder.run("asked_folder")
    assert code == 70 and "has failed with code 70: out of memory: 4 MiB are missing" in words, (code, words)
    assert '"code"' not in folder.journal("asked_folder"), folder.journal("asked_folder")
    code, words = folder.run("asked_folder")
    assert code == 0, (code, words)
    assert folder.results("asked_folder") == 2, folder.journal("asked_folder")


def main(programs):
    with tempfile.TemporaryDirectory(prefix="lockstep holders ") as name:
        folder = Folder(programs.resolve(), pathlib.Path(name))
        for part in (suspended, held_trial, failing_question):
            part(folder)
            print(f"{part.__name__}: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
