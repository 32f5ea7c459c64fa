#!/usr/bin/env python3
"""Ctrl-C on a terminal of 80 columns: what a training says then, and what it leaves. Alone and under mpirun.

interrupt_test.py PROGRAMS [--long-steps]    the second: only trainings whose steps take five seconds
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import under_mpirun  # noqa: E402: found only now

COLUMNS = 80
LIMIT_SECONDS = 300 if "--long-steps" in sys.argv else 60


def start(command):
    """Returns the process, first of its terminal, and the terminal's other end."""
    process, terminal = pty.fork()
    if process == 0:
        # As from a shell, which has the terminal too: where it has none a training keeps a log.
        os.execvp("sh", ["sh", "-c", 'trap : INT; "$@"; exit $?', "sh"] + [str(word) for word in command])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    return process, terminal


def interrupt(command, output, steps):
    """Ctrl-C after so many lines of metrics. Returns the code, and all that the terminal was given."""
    code, said, _ = interrupt_timed(command, output, steps)
    return code, said


def interrupt_timed(command, output, steps, times=1):
    """The same, and the seconds from Ctrl-C to the first word after it. Several times: a bit more than a second apart."""
    process, terminal = start(command)
    metrics, said, sent, deadline = output / "metrics.jsonl", b"", None, time.monotonic() + LIMIT_SECONDS
    answered = None
    while time.monotonic() < deadline:
        if not sent and metrics.exists() and metrics.read_text().count("\n") >= steps:
            os.write(terminal, b"\x03")
            sent = time.monotonic()
        if sent and times > 1 and time.monotonic() - sent > 1.2:
            os.write(terminal, b"\x03")
            times = 1
        if sent and not answered and (b"mpirun is ending this training" in said or b"the training stops after" in said):
            answered = time.monotonic()
        if not select.select([terminal], [], [], 0.02)[0]:
            continue
        try:
            said += os.read(terminal, 1 << 16)
        except OSError:  # nobody holds it any more
            break
    else:
        os.kill(process, 9)
        sys.exit(f"{command} did not end:\n{said.decode()}")
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code, said.decode(), (answered or time.monotonic()) - sent


def open_mpi():
    """Its first number."""
    told = subprocess.run(["mpirun", "--version"], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"\(Open MPI\) (\d+)", told)[1])


def wait_for_lines(output, lines):
    metrics, deadline = output / "metrics.jsonl", time.monotonic() + LIMIT_SECONDS
    while not metrics.exists() or metrics.read_text().count("\n") < lines:
        expect(time.monotonic() < deadline, "it stands still where nobody reads what it says", "")
        time.sleep(0.02)


def hang_up(command, output):
    """Takes the terminal away from a training. Returns the code."""
    process, terminal = pty.fork()
    if process == 0:
        os.execv(command[0], [str(word) for word in command])
    wait_for_lines(output, 5)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def terminate_unread(command, output, reader_goes):
    """TERM to a training whose words nobody reads, long after they fill their pipe. Returns the code."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen([str(word) for word in command], stdout=writer, stderr=writer) as process:
        try:
            os.close(writer)
            wait_for_lines(output, 5)
            if reader_goes:
                os.close(reader)
            wait_for_lines(output, 200)
            process.terminate()
            return process.wait(LIMIT_SECONDS)
        finally:
            process.kill()
            if not reader_goes:
                os.close(reader)


def expect(condition, words, said):
    if not condition:
        sys.exit(f"{words}\n{said}")


def expect_stopped(output, said):
    failure = json.loads((output / "failure.json").read_text())
    expect(failure["code"] == 75 and failure["sentence"].startswith("stopped after step "), f"told as {failure}", said)
    state = json.loads((output / "summary.json").read_text())["state"]
    expect(state == "stopped", f"summary.json says {state}", said)
    expect(not list(output.rglob("lock")), "a lock is left", said)


class LongSteps:
    """Trainings whose epochs have one step, and what comes of them after it was cut short."""
    def __init__(self, programs, folder, batch, accumulate):
        self.programs, self.folder, self.batch, self.accumulate = programs, folder, batch, accumulate
        self.hashes = {}  # of undisturbed trainings, by steps
        subprocess.run([programs / "make_shards", "synthetic", "--samples", str(batch * 5 // 4), "--output",
                        folder / "long data"], check=True, stdout=subprocess.DEVNULL)

    def command(self, output, *more):
        command = under_mpirun(2) + [
            self.programs / "train_cifar", "--data", self.folder / "long data", "--output", output, "--model",
            "resnet20", "--global-batch", self.batch, "--accumulate", self.accumulate, "--epochs", "50", "--ema", "0.9",
            "--threads", "1", "--report-every", "1", "--device", "cpu", *more]
        return [str(word) for word in command]

    def hash_after(self, output, steps):
        told = subprocess.run(self.command(output, "--max-steps", str(steps)), check=True, capture_output=True,
                              text=True).stdout
        return json.loads((output / "summary.json").read_text())["weights_hash"], told

    def expect_resumes(self, output, reason, said):
        """Its last completed step was saved, and the same command goes on from it with the weights of no kill."""
        expect_stopped(output, said)
        expect(not list(output.rglob(".*.lockstep-partial")), "a file is half written", said)
        sentence = json.loads((output / "failure.json").read_text())["sentence"]
        stopped = re.match(rf"stopped after step (\d+) of 50 \({reason}\), with a checkpoint in ", sentence)
        expect(stopped, sentence, said)
        steps = int(stopped[1]) + 1
        weights, told = self.hash_after(output, steps)
        expect(f"checkpoints/step-{steps - 1:012}.h5'" in told, "it goes on from elsewhere", told)
        if steps not in self.hashes:
            self.hashes[steps] = self.hash_after(self.folder / f"undisturbed {steps}", steps)[0]
        expect(weights == self.hashes[steps], "it goes on with other weights", told)


def expect_last_step_kept(trainings, options=()):
    """Ctrl-C in a long step."""
    output = trainings.folder / "interrupted"
    launch = trainings.command(output)
    launch[1:1] = options
    _, said, seconds = interrupt_timed(launch, output, 3)  # a step, the slowest rank, a test
    expect(seconds < 1, f"its first word came {seconds:.1f} s after Ctrl-C", said)
    expect("checkpoint is from step " in said and "mpirun --mca odls_base_sigkill_timeout 60" in said and
           "kill -USR1" in said, "it does not name the checkpoint and the ways to more time", said)
    expect_told(said)
    trainings.expect_resumes(output, "SIGTERM", said)


def expect_kept_without_mpirun(trainings):
    """SIGKILL to mpirun in a long step. Ranks lived on for seconds, and the next start was refused."""
    output = trainings.folder / "without mpirun"
    with open(trainings.folder / "said", "w+", encoding="utf-8") as said:
        with subprocess.Popen(trainings.command(output), stdout=said, stderr=said) as launcher:
            wait_for_lines(output, 3)
            launcher.kill()
        killed = time.monotonic()
        while not (output / "failure.json").exists() or list(output.rglob("lock")):
            expect(time.monotonic() - killed < 5, "it does not end with mpirun", said.read())
            time.sleep(0.02)
        trainings.expect_resumes(output, "mpirun has ended", said.read())


def expect_second_ends_at_once(programs, folder):
    """Ctrl-C in a step of many seconds, and once more. It ended without a word."""
    output = folder / "twice"
    code, said, seconds = interrupt_timed(
        [programs / "train_cifar", "--data", folder / "long data", "--output", output, "--model", "resnet20",
         "--global-batch", "3072", "--accumulate", "12", "--threads", "1", "--device", "cpu"], output, 0, times=2)
    expect(code == 128 + 2, f"after a second Ctrl-C it ended with {code}", said)
    expect(seconds < 1, f"its first word came {seconds:.1f} s after Ctrl-C", said)
    expect("SIGINT: the training stops after this step, with a checkpoint. A second Ctrl-C ends it at once." in said and
           "ended immediately by a second stop request." in said,
           "it does not say how it ends", said)


def expect_told(said):
    expect("The same command resumes from it." in said, "it does not say that it stopped", said)


def expect_narrow(said):
    """What is redrawn in place fits the window, and has the time that is left."""
    live = re.findall(r"\r\x1b\[K(epoch [^\r\n\x1b]*)", said)
    expect(live, "no live line", said)
    for line in live:
        expect(len(line) < COLUMNS and " left" in line, f"a live line of {len(line)} columns: {line}", said)


def long_steps(programs):
    """Steps of five seconds, with a second between mpirun's signals and with three."""
    for options in ([], ["--mca", "odls_base_sigkill_timeout", "3"]):
        with tempfile.TemporaryDirectory() as name:
            expect_last_step_kept(LongSteps(programs, pathlib.Path(name), 8192, 16), options)


def main():
    programs = pathlib.Path(sys.argv[1])
    if "--long-steps" in sys.argv:
        long_steps(programs)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([programs / "make_shards", "synthetic", "--samples", "600", "--output", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)

        def training(output, model, batch):
            return [programs / "train_cifar", "--data", folder / "data", "--output", output, "--model", model,
                    "--global-batch", batch, "--epochs", "100000", "--threads", "1", "--report-every", "1",
                    "--device", "cpu"]

        alone = folder / "alone"
        code, said = interrupt(training(alone, "lenet", 60), alone, 25)
        expect(code == 75, f"alone it ended with {code}", said)
        expect_stopped(alone, said)
        expect_told(said)
        expect_narrow(said)
        expect(re.search(r"\[rank 0, \S+\]  epoch 1/100000  step 10/1000000  loss ", said),
               "the training's loss of an epoch does not stand on the screen", said)
        expect(re.search(r"\r\x1b\[Ktest  \[", said), "a test is not seen", said)

        # mpirun sends SIGTERM a second after Ctrl-C and SIGKILL after another: time enough for a small net. Its own
        # code is not theirs. Meanwhile it takes nothing of what they say, which once held them up until they were
        # killed; what they say on its terminal is seen.
        under = folder / "under mpirun"
        code, said = interrupt(under_mpirun(2) + training(under, "lenet", 60), under, 5)
        expect(code not in (0, 75), f"mpirun ended with {code}", said)
        expect_stopped(under, said)
        expect_told(said)

        # A step that took longer than that was lost, with all since the last checkpoint; and a lock was left. Open MPI
        # 5 leaves half a second.
        if open_mpi() < 5:
            trainings = LongSteps(programs, folder, 3072, 6)
            expect_last_step_kept(trainings)
            expect_kept_without_mpirun(trainings)
            expect_second_ends_at_once(programs, folder)

        for name, reader_goes in (("unread", False), ("left by its reader", True)):
            unread = folder / name
            code = terminate_unread(training(unread, "lenet", 60), unread, reader_goes)
            expect(code == 75, f"{name} it ended with {code}", "")
            expect_stopped(unread, "")

        without = folder / "without terminal"
        code = hang_up(training(without, "lenet", 60), without)
        expect(code == 75, f"without its terminal it ended with {code}", "")
        expect_stopped(without, "")


if __name__ == "__main__":
    main()
