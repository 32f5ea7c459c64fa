#!/usr/bin/env python3
"""Programs that have nothing to save end by the first signal, as all programs do; a training alone stops in order.

first_signal_test.py PROGRAMS
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)


def wait_until_it_works(program):
    """Until it has started MPI, and some time longer."""
    deadline = time.monotonic() + 60
    maps = pathlib.Path(f"/proc/{program.pid}/maps")
    while "mca_btl" not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)


def main():
    programs = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pipe = folder / "model.h5"  # whoever opens it waits for a writer
        os.mkfifo(pipe)
        commands = {"evaluate": ["--model-file", pipe, "--data", folder],
                    "inspect": [pipe],
                    "make_shards": ["synthetic", "--samples", "2000000", "--output", folder / "data"]}
        for number in SIGNALS:
            for program, options in commands.items():
                running = subprocess.Popen([programs / program, *options], stdout=subprocess.DEVNULL)
                wait_until_it_works(running)
                if running.poll() is not None:
                    sys.exit(f"{program} ended with {running.returncode} before it was asked to")
                running.send_signal(number)
                try:
                    code = running.wait(20)
                except subprocess.TimeoutExpired:
                    running.kill()
                    sys.exit(f"{program} lives on after {number.name}")
                if code != -number:
                    sys.exit(f"{program} ended with {code} after {number.name}")
                print(f"{program}: {number.name}")


if __name__ == "__main__":
    main()
