#!/usr/bin/env python3
"""Times what allreduce_bench times, in PyTorch's gloo: float32 sums over the ranks of one machine. Prints one JSON line.

    mpirun -n 2 python3 sum_peer.py --kilobytes 1 4 16 --store FILE

FILE is a new file for each run, through which ranks connect. Times are those of the slowest rank, medians over rounds.
"""

import argparse
import json
import os
import time

import torch
from torch import distributed


def seconds_of_round(values):
    distributed.barrier()
    start = time.perf_counter()
    distributed.all_reduce(values)
    seconds = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    distributed.all_reduce(seconds, op=distributed.ReduceOp.MAX)
    return seconds.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kilobytes", type=int, nargs="+", required=True)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--store", required=True)
    options = parser.parse_args()
    rank, size = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=size)
    milliseconds = {}
    for kilobytes in options.kilobytes:
        values = torch.zeros(kilobytes * 1000 // 4)
        for _ in range(3):
            distributed.all_reduce(values)
        rounds = sorted(seconds_of_round(values) for _ in range(options.rounds))
        milliseconds[kilobytes] = 1e3 * rounds[len(rounds) // 2]
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, **milliseconds}), flush=True)  # milliseconds by kilobytes
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
