"""Kills while a checkpoint is being written: whatever the moment, there is one to go on from."""
import os
import random
import signal
import time

from ground import STEPS_PER_EPOCH, Fault, last_line
from training import send

KILLS_PER_EPOCH = 3
SECONDS_OF_A_WRITE = 0.01


def partial_files(folder):
    try:
        return [name for name in os.listdir(folder) if name.endswith(".partial") and name.startswith(".step-")]
    except FileNotFoundError:
        return []


def kill_in_a_write(case, training):
    """Starts the training and kills all ranks in one of its first writes. Whether a file was left half written; nothing
    if the training had ended before."""
    program = training.start()
    folder = training.output / "checkpoints"
    writes, before = random.randint(1, 4), set()
    deadline = time.monotonic() + 60
    while writes > 0:
        if program.poll() is not None:
            return None
        case.expect(time.monotonic() < deadline, "no checkpoint was begun in a minute")
        seen = set(partial_files(folder))
        writes -= bool(seen - before)
        before = seen
        time.sleep(0.0002)
    time.sleep(random.uniform(0, SECONDS_OF_A_WRITE))
    for process in training.ranks().values():
        send(process, signal.SIGKILL)
    training.wait(program, 60)  # a launcher may still have to hand over what the ranks have said
    return bool(partial_files(folder))


def kill_while_writing(case):
    kills = case.ground.options.write_kills
    options = ("--checkpoint-every", 1, "--keep-latest", 2)
    more = {"epochs": max(case.ground.options.epochs, kills // KILLS_PER_EPOCH)}
    undisturbed = case.training(name="-undisturbed", **more)
    case.expect(undisturbed.run() == 0, "the undisturbed training failed")
    training = case.training(*options, **more)
    half_written, done = 0, 0
    for _ in range(kills):
        newest = max(training.checkpoints(), default=None)
        left = kill_in_a_write(case, training)
        if left is None:
            break
        if newest is not None:
            went_on = case.expect_words(training, "going on from '.*step-0*([0-9]+).h5'")
            case.expect(f"{newest}.h5" in went_on, f"step {newest} was there, but: {went_on}")
        case.expect("passed over" not in training.words(), "a checkpoint under its own name was not whole")
        half_written += left
        done += 1
    case.where = f"{done} times, {half_written} half written"
    case.expect(training.run() == 0, f"the last run failed: {last_line(training.words())}")
    hashes = [run.summary()["weights_hash"] for run in (undisturbed, training)]
    case.expect(hashes[0] == hashes[1], f"weights {hashes[1]} instead of {hashes[0]}")
    case.expect(done == kills, f"only {done} of {kills} kills before the training had ended")
    return f"{done} times there was one to go on from; the weights are right after {more['epochs'] * STEPS_PER_EPOCH} steps"


FAULTS = [Fault("kill while a checkpoint is written", "always one to go on from", kill_while_writing, quick=True)]
