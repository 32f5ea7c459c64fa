#!/usr/bin/env python3
"""Trains with 12 virtual ranks on several numbers of ranks and threads, and on one number after another with a kill in
between, and wants the same weights every time.

virtual_ranks_run_test.py PROGRAMS --ranks 1 5 12 [--precision bf16]
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

VIRTUAL_RANKS = 12


def words_of_program(options, folder, output, ranks, threads):
    program = [f"{options.programs}/train_cifar", "--data", folder / "data", "--model", "resnet20", "--epochs", "2",
               "--threads", str(threads), "--global-batch", "24", "--virtual-ranks", str(VIRTUAL_RANKS), "--precision",
               options.precision, "--report-every", "1", "--checkpoint-every", "3", "--device", "cpu", "--output", output]
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] + program


def train(options, folder, output, ranks, threads=1):
    """The hash of the weights that a training, or the rest of one, ends with."""
    run = subprocess.run(words_of_program(options, folder, output, ranks, threads), capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        sys.exit(f"{ranks} ranks failed with {run.returncode}: {run.stderr}")
    summary = json.loads((output / "summary.json").read_text())
    if summary["virtual_ranks"] != VIRTUAL_RANKS or summary["ranks"] != ranks:
        sys.exit(f"the summary is of another run: {summary}")
    return summary["weights_hash"]


def start_and_kill(options, folder, output, ranks, reports):
    """Starts a training, and kills all of it once so many steps are reported."""
    log = output / "metrics.jsonl"
    words = words_of_program(options, folder, output, ranks, 1)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as program:
        deadline = time.monotonic() + 60
        while not log.exists() or len(log.read_text().splitlines()) < reports:
            if program.poll() is not None or time.monotonic() > deadline:
                sys.exit("the training ended before it could be killed")
            time.sleep(0.002)
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(program.pid)], capture_output=True, text=True,
                                check=False)
        for process in listed.stdout.split():
            try:
                os.kill(int(process), signal.SIGKILL)
            except ProcessLookupError:
                pass
        program.wait(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--precision", default="fp32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([f"{options.programs}/make_shards", "synthetic", "--samples", "240", "--output", folder / "data"],
                       check=True, stdout=subprocess.DEVNULL)
        hashes = {}
        for ranks in options.ranks:
            hashes[f"{ranks} ranks"] = train(options, folder, folder / f"ranks {ranks}", ranks)
        hashes["1 rank with 3 threads"] = train(options, folder, folder / "threads", 1, 3)
        start_and_kill(options, folder, folder / "killed", 2, 7)
        hashes["2 ranks, killed, then 3"] = train(options, folder, folder / "killed", 3)
        for run, weights in hashes.items():
            print(f"{run:24} {weights}")
        if len(set(hashes.values())) != 1:
            sys.exit("weights differ")


if __name__ == "__main__":
    main()
