#!/usr/bin/env python3
"""Kills a training at random steps, starts it again, and wants the bits of one that nobody disturbed.

kill_and_resume_test.py PROGRAMS --ranks R --precision P --kills K [--in-checkpoint] [--program NAME] [--model NAME]
                        [--steps STEPS] [--seed S] [--with=OPTIONS]
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, image_options, make_data, send, under_mpirun  # noqa: E402: found only now


def training(options, data, folder, output):
    program = [f"{options.programs}/{options.program}", "--data", data, "--model", options.model, "--epochs", "5",
               "--threads", "1", "--global-batch", "24", "--precision", options.precision, "--report-every", "1",
               "--plan-folder", f"{folder}/plans", *image_options(options.program), "--checkpoint-every", "4",
               "--device", "cpu", "--output", output, *options.more.replace("FOLDER", str(folder)).split()]
    return Training(program if options.ranks == 1 else under_mpirun(options.ranks) + program, output)


def run_until_killed(run, step):
    """Starts the training and kills one of its ranks once it reports `step`. Returns whether it came to that."""
    program = run.start()
    if not run.wait_for_step(program, step):
        return False
    time.sleep(random.uniform(0, 0.02))
    processes = list(run.ranks().values())
    if processes:
        send(random.choice(processes), signal.SIGKILL)
    run.wait(program, 60)
    return True


def partial_checkpoints(run):
    try:
        return [file for file in os.listdir(run.output / "checkpoints") if file.endswith(".lockstep-partial")]
    except FileNotFoundError:
        return []


def run_until_killed_in_checkpoint(run, step):
    """Likewise while it writes a checkpoint after `step`."""
    program = run.start()
    if not run.wait_for_step(program, step):
        return False
    while not partial_checkpoints(run):
        if program.poll() is not None:
            return False
    ranks = run.ranks()
    if ranks:
        send(ranks[max(ranks)], signal.SIGKILL)  # not rank 0, which writes
    run.wait(program, 60)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--program", default="train_cifar")
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60, help="of the training, if its options change them")
    parser.add_argument("--in-checkpoint", action="store_true", help="kill the last rank while rank 0 writes a checkpoint")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--with", dest="more", default="", help="further options of the training; FOLDER: one of the test's own")
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"{options.ranks} ranks, {options.precision}, {options.kills} kills, --seed {options.seed}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "data"
        make_data(options.programs, options.program, 288, data)
        whole, killed = (training(options, data, folder, folder / name) for name in ("whole", "killed"))
        if whole.run() != 0:
            sys.exit(f"the undisturbed run failed: {whole.words()}")

        left = 0
        for kill, step in enumerate(sorted(random.sample(range(1, options.steps), min(options.kills, options.steps - 1)))):
            kill_one = run_until_killed_in_checkpoint if options.in_checkpoint else run_until_killed
            came_to_it = kill_one(killed, step)
            left += len(partial_checkpoints(killed))  # of this kill: a start removes those of earlier ones
            print(f"kill {kill + 1} after step {step}: {'done' if came_to_it else 'the training had ended'}, "
                  f"{killed.steps_reported()} steps reported")
        if options.in_checkpoint:
            print(f"{left} kills left a part of a checkpoint")
        if options.in_checkpoint and left == 0:
            sys.exit("no kill came while a checkpoint was being written")
        code = killed.run()
        if code != 0:
            sys.exit(f"the last run failed with {code}: {killed.words()}")

        hashes = [run.summary()["weights_hash"] for run in (whole, killed)]
        if hashes[0] != hashes[1]:
            sys.exit(f"weights differ: {hashes}\n{killed.words()}")
        expected, found = whole.history(), killed.history()
        for index, (one, other) in enumerate(zip(expected, found)):
            if one != other:
                sys.exit(f"report {index} differs:\n{one}\n{other}")
        if len(expected) != len(found):
            sys.exit(f"{len(found)} reports instead of {len(expected)}")
        print(f"weights {hashes[0]} and {len(found)} reports are the same")


if __name__ == "__main__":
    main()
