#!/usr/bin/env python3
"""Trainings on one simulated GPU end with the same bits in every order of its work: simulated_training_test.py BIN PART

Parts:
  orders PRECISION: one and two micro-batches, in all orders; losses as on the CPU, within rounding
  resume: from a checkpoint, with the bits of a training without an interruption
  ranges: what a profiler sees of phases, layers, loader and captured graphs
  launches: how many kernels and copies a captured step has, by layer and precision
  traffic PRECISION: how many bytes of device memory each layer of a captured step reads and writes
  engines: how many of cuDNN's engines are timed
"""
import collections
import re
import sys

import simulated_trainings

# LeNet, by range. The rest of a captured step is the loss, and the update in a graph of its own.
IN_FP32 = {"forward conv1": 2, "forward MaxPool_3": 1, "forward conv2": 2, "forward MaxPool_6": 1, "forward Flatten_7": 1,
           "forward fc1": 2, "forward fc2": 2, "forward fc3": 2, "backward fc3": 4, "backward fc2": 4, "backward fc1": 4,
           "backward Flatten_7": 1, "backward MaxPool_6": 1, "backward conv2": 4, "backward MaxPool_3": 1,
           "backward conv1": 3, "capture a step": 7}
# Half-precision gradients of weights are widened. In fp16, overflows are counted when the bucket is full, and summed.
LAUNCHES = {"fp32": IN_FP32,
            "bf16": IN_FP32 | {"backward conv2": 5, "backward conv1": 4},
            "fp16": IN_FP32 | {"backward conv2": 5, "backward conv1": 6}}
# A residual block of ResNet-20: how often feature maps are read and written, each counted once in a launch. Its first
# conv reads the input, and its own output for the statistics and for the norm; the second one also reads the residual.
# The backward pass of the first one adds to the gradient of the residual.
PASSES = {"forward layer1.1.conv1": [3, 2], "forward layer1.1.conv2": [4, 2],
          "backward layer1.1.conv2": [7, 3], "backward layer1.1.conv1": [8, 2]}
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
        self.works = collections.Counter()  # in captured steps, by innermost range
        self.range_of = {}  # of works in captured steps, by number
        self.traffic = {}  # bytes that works read and write, by number
        for line in path.read_text().splitlines():
            thread, call, *name = line.split(" ", 2)
            {"push": self.push, "pop": self.pop, "start": self.start, "end": self.end,
             "work": self.work, "traffic": self.note_traffic}[call](self.stacks[thread], *name)

    def push(self, stack, name):
        if "capture a step" in stack:
            self.captured.append(name)
        stack.append(name)
        self.times[name] += 1

    def pop(self, stack):
        stack.pop()  # raises IndexError if none began

    def work(self, stack, number):
        if "capture a step" in stack:
            self.works[stack[-1]] += 1
            self.range_of[number] = stack[-1]

    def note_traffic(self, _, text):
        number, *read_and_written = text.split()
        self.traffic[number] = [int(count) for count in read_and_written]

    def bytes_by_range(self):
        """Read and written in a captured step."""
        total = collections.defaultdict(lambda: [0, 0])
        for number, name in self.range_of.items():
            for way, count in enumerate(self.traffic[number]):
                total[name][way] += count
        return total

    def start(self, _, name):
        self.times[name] += 1
        self.open_phases[name] += 1

    def end(self, _, name):
        self.open_phases[name] -= 1


def noted_ranges(trainings, name, *options, **environment):
    noted = trainings.folder / name
    trainings.weights("--reduce", "mpi", *options, **environment, LOCKSTEP_NOTED_RANGES=str(noted),
                      NVTX_INJECTION64_PATH=f"{trainings.programs}/libnoted_ranges.so")
    return Ranges(noted)


def launches(trainings):
    for precision, expected in LAUNCHES.items():
        found = noted_ranges(trainings, precision, "--precision", precision)
        trainings.expect_equal(f"launches in {precision}", dict(found.works), expected)


def traffic(trainings, precision):
    found = noted_ranges(trainings, f"traffic-{precision}", "--precision", precision, "--model", "resnet20", "--epochs", "1",
                         LOCKSTEP_GPU_TRAFFIC="1")
    by_range = found.bytes_by_range()
    print(f"{precision}, batch 16: KiB that each layer of a captured step reads and writes")
    for name, counts in by_range.items():
        print(f"  {name:36}{counts[0] // 1024:8}{counts[1] // 1024:8}")
    for name, expected in PASSES.items():
        feature_map = 16 * 16 * 32 * 32 * (4 if precision == "fp32" else 2)
        trainings.expect_equal(f"passes over memory of {name}", [round(count / feature_map) for count in by_range[name]],
                               expected)


def ranges(trainings):
    found = noted_ranges(trainings, "ranges")
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
    trainings.expect("timed engines", set(timed) == {"5"}, f"{timed}: {words[-2000:]}")
    _, words = trainings.run("--reduce", "mpi", "--verbose", "--deterministic")
    trainings.expect("deterministic", set(re.findall(r"best of (\d+)", words)) == {"1"}, words[-2000:])


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"orders": orders, "resume": resume, "ranges": ranges, "launches": launches, "traffic": traffic,
                                      "engines": engines}))
