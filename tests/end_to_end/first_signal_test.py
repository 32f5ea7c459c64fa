#!/usr/bin/env python3
"""Programs that have nothing to save end by the first signal, as all programs do; a training alone stops in order.
SIGUSR2, which asks where a rank is, ends none of them, however early it comes.

first_signal_test.py PROGRAMS
"""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SIGNALS = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT)
# A part that MPI_Init loads: of Open MPI 4 one of its own, of Open MPI 5, which has them within, one of PMIx.
PARTS_OF_4 = any(pathlib.Path("/usr/lib").glob("*/openmpi/lib/openmpi*/mca_btl_*.so"))
PART = "mca_btl" if PARTS_OF_4 else "pmix_mca"


def stop_at_work(program):
    """Stops it while it starts MPI: far beyond the first line of main."""
    deadline = time.monotonic() + 60
    maps = pathlib.Path(f"/proc/{program.pid}/maps")
    while PART not in maps.read_text() and time.monotonic() < deadline:
        time.sleep(0.001)
    program.send_signal(signal.SIGSTOP)


def main():
    programs = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands = {"evaluate": ["--model-file", folder / "model.h5", "--data", folder],
                    "inspect": [folder / "model.h5"],
                    "make_shards": ["synthetic", "--samples", "2000000", "--output", folder / "data"]}
        asked = subprocess.Popen([programs / "inspect", *commands["inspect"]], stderr=subprocess.DEVNULL)
        stop_at_work(asked)
        asked.send_signal(signal.SIGUSR2)
        asked.send_signal(signal.SIGCONT)
        if asked.wait(20) != 2:  # there is no such file
            sys.exit(f"inspect ended with {asked.returncode} after SIGUSR2")
        for number in SIGNALS:
            for program, options in commands.items():
                running = subprocess.Popen([programs / program, *options], stdout=subprocess.DEVNULL)
                stop_at_work(running)
                if running.poll() is not None:
                    sys.exit(f"{program} ended with {running.returncode} before it was asked to")
                running.send_signal(number)
                running.send_signal(signal.SIGCONT)
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
