#!/usr/bin/env python3
"""Kills a training at random steps, starts it again, and wants the bits of one that nobody disturbed.

kill_and_resume_test.py PROGRAMS --ranks R --precision P --kills K [--seed S]
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TIMES = ("seconds", "samples_per_second", "loader_waited_ms")
STEPS = 60


def words_of_program(options, data, folder, output):
    program = [f"{options.programs}/train_cifar", "--data", data, "--model", "convnet", "--epochs", "5", "--threads", "1",
               "--global-batch", "24", "--precision", options.precision, "--report-every", "1", "--plan-folder",
               f"{folder}/plans", "--checkpoint-every", "4", "--device", "cpu", "--output", output]
    if options.ranks == 1:
        return program
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(options.ranks)] + program


def history(output):
    """What a run has reported, without the times that it took."""
    lines = []
    for line in (output / "metrics.jsonl").read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        lines.append({name: value for name, value in entry.items() if name not in TIMES})
    return lines


def steps_reported(output):
    try:
        return max((entry["step"] for entry in history(output)), default=0)
    except FileNotFoundError:
        return 0


def file_number(path):
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def processes_of_ranks(launcher, ranks):
    if ranks == 1:
        return [launcher]
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(launcher)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


def run_until_killed(words, output, step, options):
    """Starts the program and kills one of its ranks once it reports `step`. Returns whether it came to that."""
    metrics = output / "metrics.jsonl"
    earlier = file_number(metrics)  # a run that goes on writes the file anew before its first step
    with open(output.parent / "killed.log", "ab") as log, subprocess.Popen(words, stdout=log, stderr=log) as program:
        while file_number(metrics) == earlier or steps_reported(output) < step:
            if program.poll() is not None:
                return False
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.02))
        processes = processes_of_ranks(program.pid, options.ranks)
        if program.poll() is None and processes:
            try:
                os.kill(random.choice(processes), signal.SIGKILL)
            except ProcessLookupError:
                pass
        program.wait(60)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"{options.ranks} ranks, {options.precision}, {options.kills} kills, --seed {options.seed}")

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "data"
        subprocess.run([f"{options.programs}/make_shards", "synthetic", "--samples", "288", "--output", data],
                       check=True, stdout=subprocess.DEVNULL)
        whole, killed = folder / "whole", folder / "killed"
        subprocess.run(words_of_program(options, data, folder, whole), check=True, stdout=subprocess.DEVNULL)

        words = words_of_program(options, data, folder, killed)
        for kill, step in enumerate(sorted(random.sample(range(1, STEPS), min(options.kills, STEPS - 1)))):
            came_to_it = run_until_killed(words, killed, step, options)
            print(f"kill {kill + 1} after step {step}: {'done' if came_to_it else 'the training had ended'}, "
                  f"{steps_reported(killed)} steps reported")
        last = subprocess.run(words, capture_output=True, text=True, check=False)
        if last.returncode != 0:
            sys.exit(f"the last run failed with {last.returncode}: {last.stderr}")

        hashes = [json.loads((output / "summary.json").read_text())["weights_hash"] for output in (whole, killed)]
        if hashes[0] != hashes[1]:
            sys.exit(f"weights differ: {hashes}\n{last.stdout}")
        expected, found = history(whole), history(killed)
        for index, (one, other) in enumerate(zip(expected, found)):
            if one != other:
                sys.exit(f"report {index} differs:\n{one}\n{other}")
        if len(expected) != len(found):
            sys.exit(f"{len(found)} reports instead of {len(expected)}")
        print(f"weights {hashes[0]} and {len(found)} reports are the same")


if __name__ == "__main__":
    main()
