#!/usr/bin/env python3
"""Trainings on one simulated GPU end with the same bits in every order of its work: simulated_training_test.py BIN PART

Parts:
  orders PRECISION: one and two micro-batches, in all orders; losses as on the CPU, within rounding
  resume: from a checkpoint, with the bits of a training without an interruption
  ranges: what a profiler sees of phases, layers, loader and captured graphs
  engines: how many of cuDNN's engines are timed
"""
import collections
import re
import sys

import simulated_trainings

TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2}


def orders(trainings, precision):
    for micro_batches in 1, 2:
        options = ["--reduce", "mpi", "--precision", precision, "--accumulate", micro_batches]
        name = f"gpu{micro_batches}"
        trainings.expect_same(f"{precision}, {micro_batches} micro-batches", *options, name=name)
        trainings.run(*options, name=f"cpu{micro_batches}", device="cpu")
        on_gpu, on_cpu = trainings.losses(name), trainings.losses(f"cpu{micro_batches}")
        far = max(abs(one - other) for one, other in zip(on_gpu, on_cpu, strict=True))
        trainings.expect(f"losses, {precision}, {micro_batches} micro-batches", far < TOLERANCE[precision],
                         f"{on_gpu}, on the CPU {on_cpu}")
    if precision == "fp32":  # in which Muon computes anyway
        trainings.expect_same("muon", "--reduce", "mpi", "--optimizer", "muon", "--lr", "0.02")


def resume(trainings):
    options = ["--reduce", "mpi"]
    whole = trainings.weights(*options, name="whole", order="late")
    checkpoint = trainings.folder / "whole" / "checkpoints" / "step-000000000003.h5"
    rest = trainings.weights(*options, "--resume", checkpoint, order="early")
    trainings.expect_equal("resume", rest, whole)



class Ranges:
    """Of a file that noted_ranges has written: how often each began, and what was captured."""

    def __init__(self, path):
        self.times, self.open_phases = collections.Counter(), collections.Counter()
        self.stacks = collections.defaultdict(list)  # names by thread
        self.captured = []
        for line in path.read_text().splitlines():
            thread, call, *name = line.split(" ", 2)
            {"push": self.push, "pop": self.pop, "start": self.start, "end": self.end}[call](self.stacks[thread], *name)

    def push(self, stack, name):
        if "capture a step" in stack:
            self.captured.append(name)
        stack.append(name)
        self.times[name] += 1

    def pop(self, stack):
        stack.pop()  # raises IndexError if none began

    def start(self, _, name):
        self.times[name] += 1
        self.open_phases[name] += 1

    def end(self, _, name):
        self.open_phases[name] -= 1


def ranges(trainings):
    noted = trainings.folder / "ranges"
    trainings.weights("--reduce", "mpi", LOCKSTEP_NOTED_RANGES=str(noted),
                      NVTX_INJECTION64_PATH=f"{trainings.programs}/libnoted_ranges.so")
    found = Ranges(noted)
    trainings.expect("ranges do not end", not any(found.stacks.values()), found.stacks)
    trainings.expect_equal("phases that do not end", sum(found.open_phases.values()), 1)
    # Six steps. The choice of kernels and the first one are not captured; of the others, backward and update are a graph
    # each, and the host sums between them.
    expected = {"capture a step": 2, "launch a captured step": 10, "in forward": 3, "in backward": 3,
                "updating weights": 2, "starting a sum": 6}
    trainings.expect_equal("ranges", {name: found.times[name] for name in expected}, expected)
    loaded, uploaded = found.times["load a micro-batch"], found.times["upload a micro-batch"]
    trainings.expect("micro-batches are uploaded", loaded >= uploaded >= 6, f"{loaded} loaded, {uploaded} uploaded")
    layers = ["conv1", "MaxPool_3", "conv2", "MaxPool_6", "Flatten_7", "fc1", "fc2", "fc3"]
    trainings.expect_equal("captured layers", found.captured, [f"forward {layer}" for layer in layers] +
                           [f"backward {layer}" for layer in reversed(layers)])


def engines(trainings):
    """Engines 1 and 0, and three of the four candidates of engine 3. The others must not be used, or do not run."""
    _, words = trainings.run("--reduce", "mpi", "--verbose")
    timed = re.findall(r"convolution .*best of (\d+)", words)
    trainings.expect("timed engines", len(timed) == 5 and set(timed) == {"5"}, f"{timed}: {words[-2000:]}")
    _, words = trainings.run("--reduce", "mpi", "--verbose", "--deterministic")
    trainings.expect("deterministic", set(re.findall(r"best of (\d+)", words)) == {"1"}, words[-2000:])


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"orders": orders, "resume": resume, "ranges": ranges, "engines": engines}))
