#!/usr/bin/env python3
"""Asks a training to stop at moments spread over its start, and wants a verdict and the undisturbed weights each time.

Such requests killed it without a word, before it took any: while MPI started, data were opened or a lock was awaited.

start_stop_test.py PROGRAMS --ranks R --tries T
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, expect, send, under_mpirun  # noqa: E402: found only now

SENTENCE = re.compile(
    r"stopped before the first step \((SIGUSR1|SIGTERM)\): .*"
    r"|stopped after step \d+ of \d+ \((SIGUSR1|SIGTERM)\), with a checkpoint in '.*'.*")
STARTED = "model: "  # in what a training says when its start is nearly done


def training(options, folder, output):
    program = [options.programs / "train_cifar", "--data", folder / "data", "--model", "lenet", "--epochs", "12",
               "--threads", "1", "--global-batch", "24", "--report-every", "1", "--device", "cpu", "--plan-folder", "",
               "--output", output]
    return Training((under_mpirun(options.ranks) if options.ranks > 1 else []) + program, output)


def catches(process, *signals):
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    mask = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status)[1], 16)
    return all(mask >> (number - 1) & 1 for number in signals)


def wait_until(condition, run, program):
    deadline = time.monotonic() + 60
    while not condition():
        expect(program.poll() is None, f"it ended with {program.poll()}", run)
        expect(time.monotonic() < deadline, "waited in vain", run)
        time.sleep(0.001)


def start_until_it_listens(options, run):
    """Started up to the moment when all ranks take requests: that must be before they do anything."""
    program = run.start()
    wait_until(lambda: len(run.ranks()) == options.ranks and
               all(catches(process, signal.SIGUSR1, signal.SIGTERM) for process in run.ranks().values()), run, program)
    expect(STARTED not in run.words(), "no request could be made before the start was done", run)
    return program


def seconds_of_start(options, run):
    program = start_until_it_listens(options, run)
    start = time.monotonic()
    expect(run.wait_for_step(program, 1), "it ended by itself", run)
    seconds = time.monotonic() - start
    run.kill(program)
    return seconds


def stop_during_start(options, run, number, delay, rank):
    """One request, at the first step at the latest; returns the sentence that the training ends with.

    A start may be quicker than the one measured, and the whole training ends soon after its first step.
    """
    program = start_until_it_listens(options, run)
    deadline = time.monotonic() + delay
    while time.monotonic() < deadline and not run.reports_step(1):
        time.sleep(0.001)
    send(run.ranks().get(rank, program.pid), number)
    code = run.wait(program, 60)
    expect(code == 75, f"{signal.Signals(number).name} to rank {rank} after {delay:.3f} s: it ended with {code}", run)
    sentence = SENTENCE.search(run.words())
    expect(sentence, "it does not say why it stopped", run)
    verdict = json.loads(pathlib.Path(os.environ["LOCKSTEP_VERDICT"]).read_text())
    expect(verdict["code"] == 75 and SENTENCE.fullmatch(verdict["sentence"]), f"the verdict is {verdict}", run)
    return sentence[0]


def ends_with(run, weights):
    expect(run.run() == 0, "the same command failed", run)
    expect(run.summary()["weights_hash"] == weights, f"weights {run.summary()['weights_hash']} and not {weights}", run)


def sweep(options, folder, stopped, weights):
    seconds = seconds_of_start(options, training(options, folder, folder / "measured"))
    for index in range(options.tries):
        output = folder / f"try{index}"
        resumes = index % 2 == 1
        if resumes:
            shutil.copytree(stopped, output)
        number = signal.SIGTERM if index // 2 % 2 else signal.SIGUSR1
        delay = 1.1 * seconds * index / max(1, options.tries - 1)
        run = training(options, folder, output)
        sentence = stop_during_start(options, run, number, delay, index % options.ranks)
        print(f"{'resumed' if resumes else 'fresh'}, {delay:.3f} of {seconds:.3f} s: {sentence}", flush=True)
        ends_with(run, weights)


def stop_while_a_lock_is_awaited(options, folder, weights):
    """Another node's training holds the folder, for all that is known: that takes half a minute to find out."""
    run = training(options, folder, folder / "locked")
    run.output.mkdir()
    holder = {"job": "17", "restarts": 0, "host": "elsewhere", "process": 4711, "start": "1", "name_space": 1,
              "token": "another"}
    lock = run.output / "lock"
    text = json.dumps(holder) + "\n" + "0" * 20 + "\n"
    lock.write_text(text)
    program = run.start()
    wait_until(lambda: "waiting 30 s to see whether job 17" in run.words(), run, program)
    send(run.ranks()[options.ranks - 1], signal.SIGUSR1)
    start = time.monotonic()
    expect(run.wait(program, 60) == 75, "it did not end with 75", run)
    seconds = time.monotonic() - start
    expect(seconds < 15, f"it took {seconds:.0f} s", run)
    expect("(SIGUSR1): " in run.words(), "it does not say so", run)
    expect(lock.read_text() == text, "the lock is changed", run)
    lock.unlink()
    ends_with(run, weights)
    print(f"waiting for a lock: 75 after {seconds:.1f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--tries", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        os.environ["LOCKSTEP_VERDICT"] = str(folder / "verdict.json")
        subprocess.run([options.programs / "make_shards", "synthetic", "--samples", "288", "--output", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)
        whole = training(options, folder, folder / "whole")
        expect(whole.run() == 0, "the undisturbed run failed", whole)
        weights = whole.summary()["weights_hash"]
        half = training(options, folder, folder / "half")
        program = half.start()
        expect(half.wait_for_step(program, 2), "it ended by itself", half)
        send(program.pid, signal.SIGUSR1)
        expect(half.wait(program) == 75, "a training that runs does not stop", half)
        sweep(options, folder, half.output, weights)
        stop_while_a_lock_is_awaited(options, folder, weights)


if __name__ == "__main__":
    main()
