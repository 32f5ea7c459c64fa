#!/usr/bin/env python3
"""A training over two nodes in a network full of unauthenticated peers: hostile_network_test.py PROGRAMS [--seconds N]

Peers that connect to rank 0's port for other nodes, with floods of newlines and noise, lines without end, slow bytes, false
proofs and thousands of connections, ended the training, had an innocent rank blamed, or left it no file to write its model
to. Now it must come to the same weights as one that nobody disturbed, with nobody blamed and nothing warned of.

The port is open until all nodes have come, which takes milliseconds: so the other node is made slow to come.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "network")]
import training  # noqa: E402
import two_nodes  # noqa: E402

WAYS = ["newlines", "endless_line", "noise", "hello", "pose", "dawdle", "stay", "stay", "stay", "stay"]
FILES = 256  # that a rank may have open, as strict systems have it
# Who come while the port is open, if the machine has other work too, and to how many of them rank 0 speaks: most do not listen.
ENOUGH = 100
ENOUGH_HEARD = 1
SLOW_NODE = "libslow_node.so"


def fail(words, log=""):
    sys.exit(f"failed: {words}\n{log}")


def make(folder, programs, name, epochs):
    return training.Training(
        ["sh", "-c", f'ulimit -Sn {FILES}; exec "$@"', "sh", *two_nodes.under_mpirun(),
         "-x", f"LD_PRELOAD={folder / SLOW_NODE}", programs / "train_cifar", "--data", folder / "data",
         "--model", "lenet", "--epochs", epochs, "--threads", 1, "--global-batch", 60, "--hang-timeout", 30,
         "--output", folder / name], folder / name)


def processes_of_ranks(attacked, program):
    deadline = time.monotonic() + 20
    while program.poll() is None and time.monotonic() < deadline:
        ranks = attacked.ranks()
        if len(ranks) == 2:
            return ranks
    fail("the ranks did not start", attacked.words())


def attack(programs, attacked, seconds):
    """How many unauthenticated peers connected, and how many of them rank 0 answered."""
    program = attacked.start()
    ranks = processes_of_ranks(attacked, program)
    peer = programs / "unauthenticated_program"
    unauthenticated = subprocess.Popen([peer, f"pid:{ranks[0]}:60", str(seconds), *WAYS], stdout=subprocess.PIPE,
                                 text=True)
    try:
        if not attacked.wait_for_step(program, 1):
            fail("the training ended before its first step", attacked.words())
        port = subprocess.run([peer, f"pid:{ranks[0]}:0.2", "0.2", "hello"], capture_output=True, text=True, check=True).stdout
        if not port.startswith("port 0, 0 connections"):
            fail(f"rank 0 still listens at {port}", attacked.words())
        code = attacked.wait(program)
    finally:
        said = unauthenticated.communicate()[0]
    if code != 0 or attacked.failure():
        fail(f"code {code}, {attacked.failure()}", attacked.words())
    for words in ("cannot reach rank 0", "no longer be reached", "authentication code is wrong", "too many open files"):
        if words in attacked.words().lower():
            fail(f"it was told that '{words}'", attacked.words())
    print(said, end="")
    return [int(count) for count in re.search(r"(\d+) connections, (\d+) answers", said).groups()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=4, help="for how long peers connect to each training")
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ls") as name:
        folder = pathlib.Path(name)
        shutil.copy(arguments.programs / SLOW_NODE, folder)  # LD_PRELOAD takes a space for the end of a name
        os.environ.update(two_nodes.settings(folder))
        # The library of the slow node comes before a sanitizer's.
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        probe = subprocess.run([*two_nodes.under_mpirun(), "hostname"], capture_output=True, text=True, check=False)
        if probe.returncode != 0 or sorted(probe.stdout.split()) != ["n1", "n2"]:
            print(f"skipped: this mpirun makes no two nodes of one machine\n{probe.stderr}")
            sys.exit(77)
        made = subprocess.run([arguments.programs / "make_shards", "synthetic", "--samples", "600", "--output",
                               folder / "data"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            fail("make_shards", made.stderr)
        quiet = make(folder, arguments.programs, "quiet", arguments.epochs)
        if quiet.run() != 0:
            fail("the training that nobody disturbs", quiet.words())
        wanted = quiet.summary()["weights_hash"]
        attacked = make(folder, arguments.programs, "attacked", arguments.epochs)
        came, heard = attack(arguments.programs, attacked, arguments.seconds)
        if attacked.summary()["weights_hash"] != wanted or not (attacked.output / "model.h5").stat().st_size:
            fail(f"other weights than {wanted}", attacked.words())
        if came < ENOUGH or heard < ENOUGH_HEARD:
            fail(f"only {came} peers connected in time, and {heard} were answered")
        print(f"passed: {came} peers connected, and rank 0 answered {heard} of them")


if __name__ == "__main__":
    main()
