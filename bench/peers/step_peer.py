#!/usr/bin/env python3
"""Times what step_bench times, in PyTorch: whole training steps on noise. Prints one JSON line with the same fields.

    python3 step_peer.py --model resnet18 --batch 64 --threads 2
    python3 -m torch.distributed.run --nproc_per_node=2 step_peer.py --model resnet18 --batch 32 --threads 1

The second form all-reduces gradients with DistributedDataParallel over gloo. Allocator and OpenMP threads decide much
of the speed: bench/compare.py sets them.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import statistics
import time

import torch
from networks import NAMES, make_network
from torch import distributed, nn

LEARNING_RATE = 1e-3  # small: noise has no pattern to learn, and the loss must stay finite


def seconds_since_process_start():
    fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # field 22 of proc(5); the first here is field 3
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start


def peak_memory_bytes():
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))


def allocator():
    return "jemalloc" if "jemalloc" in pathlib.Path("/proc/self/maps").read_text() else "malloc"


def versions():
    one_dnn = re.search(r"MKL-DNN v?([\d.]+)", torch.__config__.show())
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "oneDNN": one_dnn.group(1) if one_dnn else "none",
    }


class World:
    """The ranks that torch.distributed.run started, or one alone."""

    def __init__(self):
        self.size = int(os.environ.get("WORLD_SIZE", 1))
        if self.size > 1:
            distributed.init_process_group("gloo")
        self.rank = distributed.get_rank() if self.size > 1 else 0

    def leave(self):
        """At the end, when nothing uses the model any more: gloo's threads must not outlive what they work on."""
        if self.size > 1:
            distributed.destroy_process_group()

    def wrap(self, model):
        if self.size == 1:
            return model
        return nn.parallel.DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)

    def barrier(self):
        if self.size > 1:
            distributed.barrier()

    def max(self, value):
        highest = torch.tensor(value, dtype=torch.float64)
        if self.size > 1:
            distributed.all_reduce(highest, distributed.ReduceOp.MAX)
        return highest.item()


def make_step(options, world):
    """Returns a function that takes one training step."""
    torch.manual_seed(world.rank)
    model = make_network(options.model, options.image_size, options.classes)
    model = world.wrap(model.to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(model.parameters(), LEARNING_RATE, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images = torch.randn(options.batch, 3, options.image_size, options.image_size)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(options.classes, (options.batch,))
    lower = options.precision == "bf16"

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if lower else contextlib.nullcontext():
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step


def milliseconds_of(step):
    start = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - start)


def measure(options, world):
    step = make_step(options, world)
    step()
    first_step_seconds = seconds_since_process_start()
    for _ in range(options.untimed):
        step()
    world.barrier()
    start = time.perf_counter()
    step_ms = [milliseconds_of(step) for _ in range(options.steps)]
    seconds = world.max(time.perf_counter() - start)
    return {
        "samples_per_second": options.steps * options.batch * world.size / seconds,
        "step_ms_median": world.max(statistics.median(step_ms)),
        "first_step_seconds": world.max(first_step_seconds),
        "peak_memory_bytes": int(world.max(peak_memory_bytes())),
    }


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet18", choices=NAMES)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="samples per rank and step (%(default)s)")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--threads", type=int, default=1, help="threads per rank (%(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="timed steps (%(default)s)")
    parser.add_argument("--untimed", type=int, default=3,
                        help="steps between the first and the timed ones (%(default)s)")
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    world = World()
    line = measure(options, world)
    line |= {name: getattr(options, name) for name in ("model", "image_size", "precision", "steps", "threads")}
    line |= {"batch_per_rank": options.batch, "ranks": world.size, "allocator": allocator(), "versions": versions()}
    if world.rank == 0:
        print(json.dumps(line), flush=True)
    world.leave()


if __name__ == "__main__":
    main()
