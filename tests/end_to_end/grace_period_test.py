#!/usr/bin/env python3
"""Asks a training of ResNet-18 to stop as schedulers do, kills all of it five seconds later, and wants nothing lost.

grace_period_test.py PROGRAMS
"""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, send, under_mpirun  # noqa: E402: found only now

GRACE_SECONDS = 5  # Slurm's KillWait may be that short
RANKS = 2


def to_every_rank(run, _):
    """As slurmstepd does."""
    for process in run.ranks().values():
        send(process, signal.SIGTERM)


def to_mpirun(_, program):
    send(program.pid, signal.SIGUSR1)


# What it is called, who is asked to stop, and after how many steps a checkpoint is written on the way: with one for
# every step the disk is busy when the request comes, and the last checkpoint has to wait for the one before.
CASES = [("SIGTERM to every rank, while a checkpoint is written", to_every_rank, "1"),
         ("SIGUSR1 to mpirun", to_mpirun, "1000000")]


def training(programs, data, output, every):
    return Training(under_mpirun(RANKS) + [
        programs / "train_cifar", "--data", data, "--model", "resnet18", "--epochs", "50", "--threads", "1",
        "--global-batch", "4", "--report-every", "1", "--checkpoint-every", every, "--device", "cpu",
        "--output", output], output)


def steps_of(run):
    return [entry["step"] for entry in run.history() if entry["kind"] == "training"]


def expect(condition, words, run):
    if not condition:
        sys.exit(f"{words}\n{run.words()}")


def stop_within_grace(run, ask):
    """Returns what the training ended with, in words."""
    program = run.start()
    expect(run.wait_for_step(program, 3), "it ended by itself", run)
    ask(run, program)
    start = time.monotonic()
    try:
        code = run.wait(program, GRACE_SECONDS)
    except TimeoutError:
        return f"killed after {GRACE_SECONDS} s"
    expect(code == 75, f"it ended with {code}", run)
    return f"75 after {time.monotonic() - start:.1f} s"


def goes_on_where_it_stopped(run, stopped):
    program = run.start()
    expect(run.wait_for_step(program, stopped + 1), "the same command ended by itself", run)
    run.kill(program)
    expect(f"resuming from '{run.checkpoints()[stopped]}'" in run.words(), "it went on from elsewhere", run)
    steps = steps_of(run)
    expect(steps == list(range(1, len(steps) + 1)), f"steps {steps} instead of each once", run)


def main():
    programs = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([programs / "make_shards", "synthetic", "--samples", "200", "--output", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)
        for number, (what, ask, every) in enumerate(CASES):
            run = training(programs, folder / "data", folder / f"run{number}", every)
            ended = stop_within_grace(run, ask)
            done, newest = max(steps_of(run)), max(run.checkpoints())
            expect(newest == done, f"{what}: {done} steps were done, the newest checkpoint is of step {newest}", run)
            goes_on_where_it_stopped(run, newest)
            print(f"{what}: {ended}, all {done} steps are in the checkpoint")


if __name__ == "__main__":
    main()
