"""Kills while a checkpoint is being written: whatever the moment, there is one to go on from."""
import os
import random
import re
import shutil
import signal
import time

from ground import Fault
from training import send

SECONDS_OF_A_WRITE = 0.01


def partial_files(folder):
    try:
        return [name for name in os.listdir(folder) if name.endswith(".lockstep-partial") and name.startswith(".step-")]
    except FileNotFoundError:
        return []


def kill_in_a_write(case, training):
    """Starts the training and kills all ranks in one of its first writes. Whether a file was left half written; nothing
    if the training had ended before."""
    folder = training.output / "checkpoints"
    writes, before = random.randint(1, 4), set(partial_files(folder))  # leftovers are no writes of this one
    program = training.start()
    deadline = time.monotonic() + 60
    try:
        while writes > 0:
            if program.poll() is not None:
                return None
            case.expect(time.monotonic() < deadline, "no checkpoint was begun in a minute")
            seen = set(partial_files(folder))
            writes -= bool(seen - before)
            before = seen
            time.sleep(0.0002)
        time.sleep(random.uniform(0, SECONDS_OF_A_WRITE))
    finally:
        for process in training.ranks().values():
            send(process, signal.SIGKILL)
        training.wait(program, 60)  # a launcher may still have to hand over what the ranks have said
    return bool(partial_files(folder))


def kill_while_writing(case):
    training = case.training("--checkpoint-every", 1, "--keep-latest", 2)
    half_written, done, trainings = 0, 0, 1
    while done < case.ground.options.write_kills:
        newest = max(training.checkpoints(), default=None)
        left = kill_in_a_write(case, training)
        if left is None:  # it came to its end: another one
            case.expect_to_go_on(training)
            trainings += 1
            case.expect(trainings <= case.ground.options.write_kills, "trainings end before they can be killed")
            shutil.rmtree(training.output)
            continue
        if newest is not None:
            went_on = case.expect_words(training, "resuming from '.*step-0*([0-9]+).h5'")
            case.expect(went_on.endswith(f"{newest:012}.h5'"), f"step {newest} was there, but: {went_on}")
        case.expect(not re.search("passed over|skipped", training.words()),
                    "a checkpoint under its own name was not whole")
        half_written += left
        done += 1
        case.where = f"{done} times, {half_written} half written"
    case.expect_to_go_on(training)
    return f"each time there was one to go on from; {trainings} trainings came to the right weights"


FAULTS = [Fault("kill while a checkpoint is written", "always one to go on from", kill_while_writing, quick=True)]
