#!/usr/bin/env python3
"""A training whose trainers are programs of their own: what it learns, and what it does if they or the server die.

remote_trainers_run_test.py PROGRAMS [--kills K] [--seed S]

One trainer gets the bits of a training without servers, also if the server is killed and resumes. With several, trainers
die, are stopped, leave and join at random moments: each is named, and every micro-batch of every step is used once.
"""
import argparse
import atexit
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, expect, make_data, send  # noqa: E402: found only now

SAMPLES, BATCH, STEPS = 288, 8, 3  # of the training set, of an update, of --local-steps
OUT_OF_STEP, STOPPED, USAGE = 76, 75, 2
LIMIT = 120


class Trainer:
    """A trainer of the training in `server`."""

    def __init__(self, programs, folder, server, *options):
        self.log = folder / f"trainer-{time.monotonic_ns()}.log"
        command = [programs / "train_cifar", "--trainer-of", server, "--threads", "1", *options]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        atexit.register(self.process.kill)  # if the test fails

    def words(self):
        return self.log.read_text(errors="replace")

    def name(self):
        return f"(process {self.process.pid} on "

    def expect_end(self, code):
        if self.process.wait(LIMIT) != code:
            sys.exit(f"a trainer ended with {self.process.returncode} instead of {code}: {self.words()}")


def training(options, data, output, *more, epochs=2):
    return Training([options.programs / "train_cifar", "--data", data, "--model", "lenet", "--lr", "0.02", "--threads", "1",
                     "--epochs", str(epochs), "--report-every", "1", "--checkpoint-every", "4", "--device", "cpu",
                     "--plan-folder", "", "--output", output, *more], output)


def served(options, data, output, trainers, *more, epochs=2):
    return training(options, data, output, "--global-batch", str(BATCH * trainers), "--sync", "ps-async", "--trainers",
                    str(trainers), "--local-steps", str(STEPS), *more, epochs=epochs)


def one_trainer_gets_the_same_bits(options, folder, data):
    alone = training(options, data, folder / "alone", "--global-batch", str(BATCH))
    expect(alone.run() == 0, "the training without servers failed", alone)
    run = served(options, data, folder / "served", 1, "--hang-timeout", "60")
    program = run.start()
    trainer = Trainer(options.programs, folder, run.output)
    expect(run.wait(program) == 0, "the server failed", run)
    trainer.expect_end(0)
    hashes = [one.summary()["weights_hash"] for one in (alone, run)]
    expect(hashes[0] == hashes[1], f"weights differ: {hashes}", run)
    expect(not (run.output / "trainers.json").exists(), "trainers.json is left", run)
    accuracies = [one.summary()["test_accuracy"] for one in (alone, run)]
    expect(accuracies[0] == accuracies[1], f"accuracies differ: {accuracies}", run)
    return hashes[0]


def a_killed_server_resumes(options, folder, data, expected, kills):
    run = served(options, data, folder / "killed", 1, "--hang-timeout", "60")
    steps = 2 * (SAMPLES // (BATCH * STEPS))
    killed = 0
    for step in sorted(random.sample(range(1, steps), kills)):
        program = run.start()
        trainer = Trainer(options.programs, folder, run.output)
        if not run.wait_for_step(program, step):
            trainer.expect_end(0)
            continue
        contact = run.output / "trainers.json"
        expect(contact.stat().st_mode & 0o077 == 0, "others can read the token", run)
        send(program.pid, signal.SIGKILL)
        killed += program.wait() == -signal.SIGKILL
        trainer.expect_end(OUT_OF_STEP)
        if "the server has ended without a reason" not in trainer.words():
            sys.exit(f"the trainer does not say why it ended: {trainer.words()}")
    program = run.start()
    trainer = Trainer(options.programs, folder, run.output)
    expect(killed > 0, "the server ended before each kill", run)
    expect(run.wait(program) == 0, "the last attempt failed", run)
    trainer.expect_end(0)
    expect(run.summary()["weights_hash"] == expected, "a resume changed the weights", run)


def wait_for_line(run, program, words, *alternatives):
    """Until the log has a line with these words and, if there are any, with one of the alternatives."""
    deadline = time.monotonic() + LIMIT
    while not any(words in line and (not alternatives or any(other in line for other in alternatives))
                  for line in run.words().splitlines()):
        expect(program.poll() is None and time.monotonic() < deadline, f"{words} {alternatives}: not said", run)
        time.sleep(0.01)


def joined_trainer(options, folder, run, program):
    trainer = Trainer(options.programs, folder, run.output)
    wait_for_line(run, program, trainer.name(), "has joined")
    return trainer


def flood_port(options, run, seconds):
    """Peers that do not know the token, beside trainers that join: nobody waits for the end."""
    port = json.loads((run.output / "trainers.json").read_text())["port"]
    peers = subprocess.Popen([options.programs / "unauthenticated_program", str(port), str(seconds), "newlines", "endless_line",
                              "noise", "hello", "pose", "dawdle", "stay", "stay"], stdout=subprocess.DEVNULL)
    atexit.register(peers.kill)


# A stopped trainer also reads nothing, which TCP may report first.
CHANGES = ((signal.SIGKILL, ["has ended without a goodbye"], -signal.SIGKILL),
           (signal.SIGSTOP, ["has sent nothing for 10 seconds", "can no longer be reached"], OUT_OF_STEP),
           (signal.SIGUSR1, ["leaves: stopped between two micro-batches (SIGUSR1)"], STOPPED))


def trainers_come_and_go(options, folder, data, changes):
    run = served(options, data, folder / "changing", 3, "--hang-timeout", "10", epochs=10000)
    program = run.start()
    trainers = [joined_trainer(options, folder, run, program) for _ in range(3)]
    if changes > 1:
        flood_port(options, run, seconds=5)
    for change in range(changes):
        expect(run.wait_for_step(program, run.steps_reported() + 1), "it ended early", run)
        victim = trainers.pop(random.randrange(len(trainers)))
        number, sayings, code = CHANGES[change % len(CHANGES)]
        send(victim.process.pid, number)
        wait_for_line(run, program, victim.name(), *sayings)
        if number == signal.SIGSTOP:
            send(victim.process.pid, signal.SIGCONT)
        victim.expect_end(code)
        trainers.append(joined_trainer(options, folder, run, program))
    expect(run.wait_for_step(program, run.steps_reported() + 1), "it ended early", run)
    send(program.pid, signal.SIGUSR1)
    expect(run.wait(program) == STOPPED, "the server was not stopped", run)
    for trainer in trainers:
        trainer.expect_end(STOPPED)
    summary = run.summary()
    micro_batches = summary["step"] * STEPS * 3
    expect(sum(summary["pushes"]) == micro_batches, f"{summary['pushes']} pushes instead of {micro_batches}", run)
    samples = [entry["samples"] for entry in run.history() if entry["kind"] == "training"]
    expect(samples[-1] == micro_batches * BATCH, f"{samples[-1]} samples", run)


def a_server_without_trainers_ends(options, folder, data):
    run = served(options, data, folder / "lonely", 2, "--hang-timeout", "1")
    code = run.run()
    expect(code == OUT_OF_STEP, f"it ended with {code}", run)
    expect("no trainer has been there for 1 seconds" in run.failure()["sentence"], str(run.failure()), run)


def what_a_trainer_must_not_say_is_refused(options, folder, data):
    server = folder / "lonely"
    other = folder / "other"
    make_data(options.programs, "train_cifar", SAMPLES + 8, other)
    late = Trainer(options.programs, folder, server, "--hang-timeout", "1")
    own = Trainer(options.programs, folder, server, "--lr", "0.1")
    own.expect_end(USAGE)
    late.expect_end(OUT_OF_STEP)
    run = served(options, data, folder / "same", 1, "--hang-timeout", "60")
    program = run.start()
    elsewhere = Trainer(options.programs, folder, run.output, "--data", other)
    elsewhere.expect_end(USAGE)
    wait_for_line(run, program, "leaves: the training set has 296 samples")
    copy = Trainer(options.programs, folder, run.output, "--data", data)
    expect(run.wait(program) == 0, "the server failed", run)
    copy.expect_end(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=0, help="of the server, and of trainers; 0: only the short checks")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"{options.kills} kills, --seed {options.seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "data"
        make_data(options.programs, "train_cifar", SAMPLES, data)
        weights = one_trainer_gets_the_same_bits(options, folder, data)
        trainers_come_and_go(options, folder, data, max(options.kills, 1))
        if options.kills == 0:
            return print(f"weights {weights}")
        a_killed_server_resumes(options, folder, data, weights, options.kills)
        a_server_without_trainers_ends(options, folder, data)
        what_a_trainer_must_not_say_is_refused(options, folder, data)
        print(f"weights {weights}, also after {options.kills} kills of the server")


if __name__ == "__main__":
    main()
