#!/usr/bin/env python3
"""Compares all-reduce over the ranks of this machine: Lockstep, Open MPI's default and PyTorch's gloo, in turn.

    python3 bench/compare_sums.py [--build build/release] [--ranks 2] [--pairs 5] [--python python3]

A pair is a run of allreduce_bench, which times Lockstep and Open MPI alternately, and one of sum_peer.py. Prints a
table of medians, and ratios with 95 % intervals over pairs.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from comparison import ratio_interval, short
from processes import ProgramFailed, cpu_facts, output_of, python_with_torch
from suite import ENVIRONMENT

HERE = pathlib.Path(__file__).resolve().parent
KILOBYTES = (1, 16, 64, 256, 1000, 4000, 25000, 45000, 100000)


def launcher(ranks):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]


def ours(options):
    """{kilobytes: {"shared": milliseconds, "open_mpi": milliseconds}}"""
    sizes = "|".join(map(str, KILOBYTES))
    printed = output_of([*launcher(options.ranks), options.build.resolve() / "bin" / "allreduce_bench",
                         "--benchmark_format=json", f"--benchmark_filter=/({sizes})/"], ENVIRONMENT)
    found = json.loads(printed[printed.index("{"):])["benchmarks"]
    return {int(one["name"].split("/")[2]): {name: one[f"{name}_ms"] for name in ("shared", "open_mpi")} for one in found}


def theirs(options):
    with tempfile.TemporaryDirectory() as folder:
        printed = output_of([*launcher(options.ranks), options.python, HERE / "peers" / "sum_peer.py", "--store",
                             f"{folder}/ranks", "--kilobytes", *map(str, KILOBYTES)], ENVIRONMENT)
    line = json.loads(printed[printed.index("{"):])
    return line["torch"], {kilobytes: line[str(kilobytes)] for kilobytes in KILOBYTES}


def ratio_cell(peer, own):
    if len(own) == 1:
        return f"{peer[0] / own[0]:.2f}"
    median, low, high = ratio_interval(peer, own)
    return f"{median:.2f} ({low:.2f}–{high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"),
                        help="build folder with allreduce_bench (%(default)s)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs (%(default)s)")
    parser.add_argument("--python", help="interpreter with torch (default: the first one found)")
    options = parser.parse_args()
    options.python = python_with_torch(options.python)
    pairs = []
    torch = ""
    for _ in range(options.pairs):
        own = ours(options)
        torch, gloo = theirs(options)
        pairs.append((own, gloo))
    print(f"{cpu_facts()[2]}, {options.ranks} ranks, PyTorch {torch}; ms, medians of {options.pairs} runs\n")
    print("| kB | shared memory | Open MPI | ratio | gloo | ratio |\n|---|---|---|---|---|---|")
    for kilobytes in KILOBYTES:
        shared = [own[kilobytes]["shared"] for own, _ in pairs]
        default = [own[kilobytes]["open_mpi"] for own, _ in pairs]
        gloo = [peer[kilobytes] for _, peer in pairs]
        cells = [short(statistics.median(shared)), short(statistics.median(default)), ratio_cell(default, shared),
                 short(statistics.median(gloo)), ratio_cell(gloo, shared)]
        print(f"| {kilobytes} | {' | '.join(cells)} |")


if __name__ == "__main__":
    try:
        main()
    except ProgramFailed as failed:
        sys.exit(str(failed))
