#!/usr/bin/env python3
"""Compares --sync and --compress between emulated nodes of this machine, in turn: on slow links, or beside a slow rank.

    python3 bench/compare_sync.py [--build build/release] [--nodes 4] [--rate 200mbit] [--models resnet20:32,resnet18:8]
                                  [--rounds 3] [--pause 50 --first-rank-pause 100]

Needs root and what the tests of a Slurm cluster need. A node is a network namespace with one rank and one thread; all
nodes share this machine's cores. With --pause, ranks sleep in the place of computing, and parameter servers have nodes
beside the others. Each round runs every case once. Prints a table of medians in samples per second, and
their ratios to all-reduce with 95 % intervals over rounds.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

from comparison import ratio_interval, short
from processes import ProgramFailed, cpu_facts

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "tests" / "slurm" / "cluster.sh"
CASES = {
    "all-reduce": [],
    "local 4": ["--sync", "local", "--local-steps", "4"],
    "local 16": ["--sync", "local", "--local-steps", "16"],
    "local 16, shares by speed": ["--sync", "local", "--local-steps", "16", "--local-shares", "by-speed"],
    "ps": ["--sync", "ps"],
    "ps-async 16": ["--sync", "ps-async", "--local-steps", "16"],
    "powersgd 4": ["--compress", "powersgd:4"],
    "local 4, powersgd 4": ["--sync", "local", "--local-steps", "4", "--compress", "powersgd:4"],
}


class Cluster:
    def __init__(self, folder, nodes, rate):
        self.folder = folder
        self.environment = {**os.environ, "CLUSTER_TAG": "cs", "SLURM_CONF": f"{folder}/etc/slurm.conf",
                            "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.nodes, self.rate = nodes, rate

    def start(self):
        self.call("up", str(self.nodes))
        for node in range(1, self.nodes + 1) if self.rate != "none" else []:
            self.call("slow", f"n{node}", self.rate)

    def call(self, *words):
        code = subprocess.run([CLUSTER, self.folder, *words], env=self.environment, check=False,
                              stdout=subprocess.DEVNULL).returncode
        if code != 0:
            raise ProgramFailed(f"tests/slurm/cluster.sh {' '.join(words)} failed with {code}, see above.")

    # A rank on each of the nodes, which print one JSON line.
    def run(self, nodes, program):
        command = ["srun", "--mpi=pmix", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", *map(str, program)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            raise ProgramFailed(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}{done.stderr}")
        return json.loads(lines[-1])


def nodes_of(options, case):
    has_server_beside = options.pause > 0 and any(mode in CASES[case] for mode in ("ps", "ps-async"))
    return options.nodes + (1 if has_server_beside else 0)


def measure(cluster, options, model, batch, case):
    more = CASES[case]
    updates = int(more[more.index("--local-steps") + 1]) if "--local-steps" in more else 1
    program = [options.build.resolve() / "bin" / "step_bench", "--model", model, "--batch", batch, "--threads", 1,
               "--device", "cpu", "--steps", max(options.updates // updates, 2), *more]
    program += ["--pause", options.pause, "--first-rank-pause", options.first_rank_pause]
    return cluster.run(nodes_of(options, case), program)["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"),
                        help="build folder with step_bench (%(default)s)")
    parser.add_argument("--nodes", type=int, default=4, help="nodes of one rank each (%(default)s)")
    parser.add_argument("--rate", default="200mbit", help="of each node's link, as tc has it, or none for no limit (%(default)s)")
    parser.add_argument("--pause", type=int, default=0, help="milliseconds of sleep before each micro-batch (%(default)s)")
    parser.add_argument("--first-rank-pause", type=int, default=0, help="the same on rank 0, if it is to be slower")
    parser.add_argument("--models", default="resnet20:32,resnet18:8",
                        help="NAME:SAMPLES of a rank's update, with commas between them (%(default)s)")
    parser.add_argument("--updates", type=int, default=32, help="timed updates of a run, at least (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case (%(default)s)")
    parser.add_argument("--cases", help=f"with semicolons between them (default: {';'.join(CASES)})")
    options = parser.parse_args()
    cases = options.cases.split(";") if options.cases else list(CASES)
    unknown = [case for case in cases if case not in CASES]
    if unknown or "all-reduce" not in cases:
        parser.error(f"--cases: known are '{';'.join(CASES)}', and all-reduce must be among them")
    models = [one.split(":") for one in options.models.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(folder, max(nodes_of(options, case) for case in cases), options.rate)
        try:
            cluster.start()
            found = {(model, case): [] for model, _ in models for case in cases}
            for _ in range(options.rounds):
                for model, batch in models:
                    for case in cases:
                        found[model, case].append(measure(cluster, options, model, batch, case))
                        print(f"{model}, {case}: {found[model, case][-1]:.1f} samples/s", file=sys.stderr)
        finally:
            cluster.call("down")
    links = "links without a limit" if options.rate == "none" else f"{options.rate} links"
    pauses = f", {options.pause} ms of sleep per micro-batch, {options.first_rank_pause} on rank 0" if options.pause else ""
    print(f"{cpu_facts()[2]}, {options.nodes} emulated nodes, {links}{pauses}; samples/s, medians of {options.rounds} runs\n")
    print("| model, samples per rank and update | " + " | ".join(cases) + " |")
    print("|---|" + "---|" * len(cases))
    for model, batch in models:
        base = found[model, "all-reduce"]
        cells = []
        for case in cases:
            rates = found[model, case]
            median, low, high = ratio_interval(rates, base)
            ratio = "" if case == "all-reduce" else f" ({median:.2f}x, {low:.2f}–{high:.2f})"
            cells.append(short(statistics.median(rates)) + ratio)
        print(f"| {model}, {batch} | {' | '.join(cells)} |")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the nodes are taken down
    try:
        main()
    except ProgramFailed as failed:
        sys.exit(str(failed))
