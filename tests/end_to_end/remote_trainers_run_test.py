#!/usr/bin/env python3
"""A training whose trainers are programs of their own: what it learns, and what it does if they or the server die.

remote_trainers_run_test.py PROGRAMS [--sync ps-async ps] [--kills K] [--seed S]

Trainers die, are stopped, leave and join at random moments: each is named, and every micro-batch of every step is used once.
With ps-async, one trainer gets the bits of a training without servers. With ps, any number does, also if trainers die or
join late.
"""
import argparse
import atexit
import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, expect, make_data, send, under_mpirun  # noqa: E402: found only now

SAMPLES, BATCH, STEPS = 288, 8, 3  # of the training set, of an update of one trainer, of --local-steps
VIRTUAL_RANKS, SYNCHRONOUS_BATCH = 6, 24
OUT_OF_STEP, STOPPED, USAGE = 76, 75, 2
LIMIT = 120


class Trainer:
    """A trainer of the training in `server`."""

    def __init__(self, programs, folder, server, *options):
        self.log = folder / f"trainer-{time.monotonic_ns()}.log"
        if "--hang-timeout" not in options:  # which limits how long one waits that comes when the training is done
            options = (*options, "--hang-timeout", "60")
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


def training(options, data, output, *more, epochs=2, model="lenet", launcher=()):
    if "--checkpoint-every" not in more:
        more = (*more, "--checkpoint-every", "4")
    return Training([*launcher, options.programs / "train_cifar", "--data", data, "--model", model, "--lr", "0.02",
                     "--threads", "1", "--epochs", str(epochs), "--report-every", "1", "--device", "cpu",
                     "--plan-folder", "", "--output", output, *more], output)


def served(options, data, output, trainers, *more, epochs=2):
    return training(options, data, output, "--global-batch", str(BATCH * trainers), "--sync", "ps-async", "--trainers",
                    str(trainers), "--local-steps", str(STEPS), *more, epochs=epochs)


def synchronous(options, data, output, *more, epochs=2, model="lenet", launcher=()):
    """With virtual ranks."""
    return training(options, data, output, "--global-batch", str(SYNCHRONOUS_BATCH), "--virtual-ranks", str(VIRTUAL_RANKS),
                    *more, epochs=epochs, model=model, launcher=launcher)


def synchronously_served(options, data, output, trainers, *more, epochs=2, model="lenet"):
    return synchronous(options, data, output, "--sync", "ps", "--trainers", str(trainers), "--hang-timeout", "60", *more,
                       epochs=epochs, model=model)


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


def a_killed_server_resumes(options, folder, run, expected, kills):
    steps = 2 * (SAMPLES // SYNCHRONOUS_BATCH)  # also of --local-steps
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
           (signal.SIGUSR1, ["leaves: stopped between two steps (SIGUSR1)"], STOPPED))


def trainers_come_and_go(options, folder, run, changes):
    """Three of them, until the server is stopped."""
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


def expect_each_micro_batch_once(run):
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
    other_bits = Trainer(options.programs, folder, run.output, "--instruction-set", "baseline")
    other_bits.expect_end(USAGE)
    wait_for_line(run, program, "leaves: --instruction-set baseline is not that of the server")
    copy = Trainer(options.programs, folder, run.output, "--data", data)
    expect(run.wait(program) == 0, "the server failed", run)
    copy.expect_end(0)


def weights_of(run, code):
    expect(code == 0, f"it ended with {code}", run)
    return run.summary()["weights_hash"]


def join(options, folder, run, count):
    return [Trainer(options.programs, folder, run.output) for _ in range(count)]


def learn_served(options, folder, run, trainers):
    program = run.start()
    all_of_them = join(options, folder, run, trainers)
    weights = weights_of(run, run.wait(program))
    for trainer in all_of_them:
        trainer.expect_end(0)
    return weights


def learn_while_trainers_change(options, folder, run):
    """Of three trainers, one is stopped within a step, which the others complete, and then killed. One joins late."""
    program = run.start()
    stopped, other = join(options, folder, run, 2)
    expect(run.wait_for_step(program, 3), "it ended early", run)
    send(stopped.process.pid, signal.SIGSTOP)
    expect(run.wait_for_step(program, run.steps_reported() + 2), "the others wait for a stopped trainer", run)
    send(other.process.pid, signal.SIGSTOP)  # so that the training cannot end meanwhile
    send(stopped.process.pid, signal.SIGKILL)
    wait_for_line(run, program, stopped.name(), "has ended without a goodbye")
    (run.output / "trainers.json").unlink()  # the server writes it again
    late = joined_trainer(options, folder, run, program)
    send(other.process.pid, signal.SIGCONT)
    weights = weights_of(run, run.wait(program))
    for trainer in (other, late):
        trainer.expect_end(0)
    return weights


def learn_after_a_kill(options, folder, first, second, trainers_of_first, trainers_of_second):
    """Of two ways to train in one folder."""
    program = first.start()
    trainers = join(options, folder, first, trainers_of_first)
    expect(first.wait_for_step(program, 9), "it ended early", first)
    send(program.pid, signal.SIGKILL)
    program.wait()
    for trainer in trainers:
        trainer.expect_end(OUT_OF_STEP)
    return learn_served(options, folder, second, trainers_of_second)


def all_ways_have_one_hash(options, folder, data):
    """All-reduce, servers in one MPI world, and any number of trainers that come and go."""
    # Trainers compute as their server does, whatever else their processors could do.
    more = ("--optimizer", "adamw", "--clip-norm", "1", "--ema", "0.9", "--mixup", "0.4", "--label-smoothing", "0.1",
            "--instruction-set", "baseline")
    whole = synchronous(options, data, folder / "whole", *more, model="convnet")
    hashes = {"all-reduce": weights_of(whole, whole.run())}
    world = synchronous(options, data, folder / "world", "--sync", "ps", *more, model="convnet", launcher=under_mpirun(3))
    hashes["2 trainers and a server in one MPI world"] = weights_of(world, world.run())

    def over_tcp(name, trainers):
        return synchronously_served(options, data, folder / name, trainers, *more, model="convnet")

    one, three = over_tcp("one", 1), over_tcp("three", 3)
    hashes["1 trainer"] = learn_served(options, folder, one, 1)
    hashes["3 trainers that change"] = learn_while_trainers_change(options, folder, three)
    alone = synchronous(options, data, folder / "resumed", *more, model="convnet")
    hashes["2 trainers, killed, then all-reduce"] = learn_after_a_kill(options, folder, over_tcp("resumed", 2), alone, 2, 0)
    alone = synchronous(options, data, folder / "served", *more, model="convnet")
    hashes["all-reduce, killed, then 2 trainers"] = learn_after_a_kill(options, folder, alone, over_tcp("served", 2), 0, 2)
    for way, weights in hashes.items():
        print(f"{way:42} {weights}")
    expect(len(set(hashes.values())) == 1, "weights differ", whole)
    for run in (one, three):
        reports = [entry for entry in run.history() if entry["kind"] != "trainer"]
        expect(reports == whole.history(), f"reports differ from {whole.history()}", run)
    changes = [(entry["change"], entry["trainers"]) for entry in three.history() if entry["kind"] == "trainer"]
    expect(changes == [("joined", 1), ("joined", 2), ("left", 1), ("joined", 2)], f"changes: {changes}", three)
    told = subprocess.run([options.programs / "inspect", three.output], check=True, capture_output=True, text=True).stdout
    expect("; 3 joined, 1 left\n" in told and ") has ended without a goodbye" in told, f"inspect says {told}", three)


def expect_weights_of_all_reduce(options, folder, data, run):
    """Of a training that was stopped, and whose schedule is for more epochs."""
    step = run.summary()["step"]
    whole = synchronous(options, data, folder / "undisturbed", "--max-steps", str(step), epochs=10000)
    expect(whole.run() == 0, "the training without servers failed", whole)
    hashes = [one.summary()["weights_hash"] for one in (whole, run)]
    expect(hashes[0] == hashes[1], f"weights differ after {step} steps: {hashes}", run)
    samples = [entry["samples"] for entry in run.history() if entry["kind"] == "training"]
    expect(samples[-1] == step * SYNCHRONOUS_BATCH, f"{samples[-1]} samples", run)
    print(f"weights {hashes[0]} after {step} steps with all-reduce, and with trainers that come and go")


def a_stop_of_all_loses_no_step(options, folder, run):
    """Server and trainers get the same signal, as in a job that is told to stop."""
    program = run.start()
    trainers = join(options, folder, run, 2)
    expect(run.wait_for_step(program, 5), "it ended early", run)
    for process in (program, *(trainer.process for trainer in trainers)):
        send(process.pid, signal.SIGUSR1)
    expect(run.wait(program) == STOPPED, f"the server ended with {program.returncode}", run)
    for trainer in trainers:
        trainer.expect_end(STOPPED)
    summary = run.summary()
    expect(summary["state"] == "stopped", f"its state is {summary['state']}", run)
    steps = run.checkpoints()
    expect(max(steps) == summary["step"], f"step {summary['step']} is not in a checkpoint: {list(steps)}", run)


def a_server_left_alone_keeps_its_steps(options, folder, data):
    """No trainer is left within a step: the server stops, or gives up, with a checkpoint of the step before."""
    def server(patience):
        return synchronous(options, data, folder / "alone", "--sync", "ps", "--trainers", "2", "--checkpoint-every", "1000000",
                           "--hang-timeout", patience)

    def leave_alone(run, program, step):
        trainers = join(options, folder, run, 2)
        expect(run.wait_for_step(program, step), "it ended early", run)
        for trainer in trainers:
            send(trainer.process.pid, signal.SIGKILL)
        wait_for_line(run, program, "No trainer is left")

    def expect_checkpoint(run):
        last = [entry for entry in run.history() if entry["kind"] == "trainer"][-1]
        expect((last["change"], last["trainers"]) == ("left", 0), f"the last change: {last}", run)
        step = run.summary()["step"]
        expect(step > 0 and max(run.checkpoints()) == step, f"step {step} is not in a checkpoint", run)
        return step

    run = server("60")
    program = run.start()
    leave_alone(run, program, 4)
    send(program.pid, signal.SIGUSR1)
    expect(run.wait(program) == STOPPED, f"the server ended with {program.returncode}", run)
    first = expect_checkpoint(run)
    run = server("2")
    program = run.start()
    leave_alone(run, program, first + 3)
    expect(run.wait(program) == OUT_OF_STEP, f"the server ended with {program.returncode}", run)
    expect("no trainer has been there for 2 seconds" in run.failure()["sentence"], str(run.failure()), run)
    expect(expect_checkpoint(run) > first, "no step was saved", run)
    whole = synchronous(options, data, folder / "not alone")
    expect(learn_served(options, folder, server("60"), 2) == weights_of(whole, whole.run()), "weights differ", run)


def pass_on(source, target):
    while words := source.recv(1 << 16):
        target.sendall(words)
    target.shutdown(socket.SHUT_WR)


def relay(listener, port):
    """Connects who connects to the listener to a port of this machine."""
    while True:
        caller, server = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
        for ends in ((caller, server), (server, caller)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()


def a_trainer_tries_all_addresses(options, folder, data):
    """It tried the first one for ever, if it led to a stranger who says nothing."""
    run = synchronously_served(options, data, folder / "addresses", 1)
    program = run.start()
    deadline = time.monotonic() + LIMIT
    while not (run.output / "trainers.json").exists():
        expect(program.poll() is None and time.monotonic() < deadline, "no trainers.json", run)
        time.sleep(0.01)
    contact = json.loads((run.output / "trainers.json").read_text())
    stranger = socket.create_server(("127.0.0.2", 0))
    port = stranger.getsockname()[1]
    threading.Thread(target=relay, args=(socket.create_server(("127.0.0.3", port)), contact["port"]), daemon=True).start()
    (folder / "named").mkdir()
    addresses = {"addresses": ["127.0.0.2", "127.0.0.3"], "port": port}
    (folder / "named" / "trainers.json").write_text(json.dumps(contact | addresses))
    trainer = Trainer(options.programs, folder, folder / "named")
    expect(run.wait(program) == 0, "the server failed", run)
    trainer.expect_end(0)


def test_asynchronous(options, folder, data):
    weights = one_trainer_gets_the_same_bits(options, folder, data)
    changing = served(options, data, folder / "changing", 3, "--hang-timeout", "10", epochs=10000)
    trainers_come_and_go(options, folder, changing, max(options.kills, 1))
    expect_each_micro_batch_once(changing)
    print(f"weights {weights}")
    stopped = served(options, data, folder / "stopped", 2, "--checkpoint-every", "1000000", epochs=10000)
    a_stop_of_all_loses_no_step(options, folder, stopped)
    if options.kills == 0:
        return
    killed = served(options, data, folder / "killed", 1, "--hang-timeout", "60")
    a_killed_server_resumes(options, folder, killed, weights, options.kills)
    a_server_without_trainers_ends(options, folder, data)
    what_a_trainer_must_not_say_is_refused(options, folder, data)


def test_synchronous(options, folder, data):
    all_ways_have_one_hash(options, folder, data)
    a_trainer_tries_all_addresses(options, folder, data)
    stopped = synchronously_served(options, data, folder / "stopped", 2, "--checkpoint-every", "1000000", epochs=10000)
    a_stop_of_all_loses_no_step(options, folder, stopped)
    a_server_left_alone_keeps_its_steps(options, folder, data)
    if options.kills == 0:
        return
    changing = synchronous(options, data, folder / "changing", "--sync", "ps", "--trainers", "3", "--hang-timeout", "10",
                           epochs=10000)
    trainers_come_and_go(options, folder, changing, options.kills)
    expect_weights_of_all_reduce(options, folder, data, changing)
    alone = synchronous(options, data, folder / "alone", model="lenet")
    weights = weights_of(alone, alone.run())
    a_killed_server_resumes(options, folder, synchronously_served(options, data, folder / "killed", 1), weights,
                            options.kills)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--sync", nargs="+", default=["ps-async"], choices=["ps-async", "ps"])
    parser.add_argument("--kills", type=int, default=0, help="of the server, and of trainers; 0: only the short checks")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"{options.kills} kills, --seed {options.seed}")
    for sync in options.sync:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            data = folder / "data"
            make_data(options.programs, "train_cifar", SAMPLES, data)
            test_synchronous(options, folder, data) if sync == "ps" else test_asynchronous(options, folder, data)


if __name__ == "__main__":
    main()
