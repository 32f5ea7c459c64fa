#!/usr/bin/env python3
"""Times what step_bench --device cuda times, in PyTorch on one GPU: whole training steps on a batch in its memory.

    python3 gpu_step_peer.py --model resnet50 --image-size 224 --classes 1000 --batch 256 --precision bf16 --mode compile
    python3 gpu_step_peer.py --device cpu --model resnet20 --batch 8 --steps 2      for tests

Prints one JSON line with step_bench's fields. PyTorch is at its best: channels_last, automatic mixed precision, cuDNN's
engines measured, fused SGD, gradients set to none; `compile` adds torch.compile. In fp32 TF32 is off, as in step_bench.
"""

import argparse
import contextlib
import json
import platform
import statistics
import sys
import time

import torch
from networks import NAMES, make_network
from step_peer import LEARNING_RATE, peak_memory_bytes, seconds_since_process_start
from torch import nn

WRONG_USE = 2
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def refuse(text):
    print(text, file=sys.stderr)
    sys.exit(WRONG_USE)


def versions():
    cudnn = torch.backends.cudnn.version()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "CUDA": torch.version.cuda or "none",
        "cuDNN": str(cudnn) if cudnn else "none",
    }


class Gpu:
    """The current GPU; times are what its own clock says between two points of its stream."""

    name = "cuda"

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, first, second):
        return first.elapsed_time(second)

    def synchronize(self):
        torch.cuda.synchronize()

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated()

    def description(self):
        return torch.cuda.get_device_name()


class Cpu:
    name = "cpu"

    def mark(self):
        return time.perf_counter()

    def milliseconds(self, first, second):
        return 1e3 * (second - first)

    def synchronize(self):
        pass

    def peak_bytes(self):
        return peak_memory_bytes()

    def description(self):
        return "cpu"


def make_device(options):
    if options.device == "cpu":
        if options.precision == "fp16":
            refuse("--precision fp16 needs a GPU. Use bf16 or fp32.")
        return Cpu()
    if not torch.cuda.is_available():
        version = torch.__version__
        refuse(f"PyTorch {version} finds no GPU (--device cuda). Install a driver, and PyTorch for CUDA.")
    return Gpu()


def make_optimizer(model, device):
    fused = {}
    if device.name == "cuda":
        with contextlib.suppress(TypeError, RuntimeError):  # older ones know no fused SGD
            torch.optim.SGD(model.parameters(), LEARNING_RATE, fused=True)
            fused = {"fused": True}
    settings = {"momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}
    return torch.optim.SGD(model.parameters(), LEARNING_RATE, **settings, **fused)


def compiled(model, options):
    if options.mode == "eager":
        return model
    if not hasattr(torch, "compile"):
        refuse(f"PyTorch {torch.__version__} has no torch.compile (--mode compile). Install PyTorch 2.0 or newer.")
    return torch.compile(model, mode=options.compile_mode)


def make_step(options, device):
    """Returns a function that queues one training step."""
    torch.manual_seed(0)
    model = make_network(options.model, options.image_size, options.classes)
    model = model.to(device.name, memory_format=torch.channels_last)
    optimizer = make_optimizer(model, device)
    network = compiled(model, options)
    images = torch.randn(options.batch, 3, options.image_size, options.image_size, device=device.name)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(options.classes, (options.batch,), device=device.name)
    lower = HALF.get(options.precision)
    scaler = torch.cuda.amp.GradScaler(enabled=options.precision == "fp16")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.name, lower) if lower else contextlib.nullcontext():
            loss = nn.functional.cross_entropy(network(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def measure(options, device):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    step = make_step(options, device)
    step()
    device.synchronize()
    first_step_seconds = seconds_since_process_start()
    for _ in range(options.untimed):
        step()
    device.synchronize()
    marks = [device.mark()]
    for _ in range(options.steps):
        step()
        marks.append(device.mark())
    device.synchronize()
    step_ms = [device.milliseconds(*pair) for pair in zip(marks, marks[1:])]  # noqa: B905: one is shorter
    return {
        "samples_per_second": 1e3 * options.steps * options.batch / device.milliseconds(marks[0], marks[-1]),
        "step_ms_median": statistics.median(step_ms),
        "first_step_seconds": first_step_seconds,
        "peak_memory_bytes": device.peak_bytes(),
        "device": device.description(),
    }


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--mode", default="eager", choices=["eager", "compile"])
    parser.add_argument("--compile-mode", default="max-autotune", help="mode of torch.compile (%(default)s)")
    parser.add_argument("--model", default="resnet18", choices=NAMES)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="fp32", choices=["fp32", *HALF])
    parser.add_argument("--steps", type=int, default=20, help="timed steps (%(default)s)")
    parser.add_argument("--untimed", type=int, default=10,
                        help="steps between the first and the timed ones (%(default)s)")
    return parser.parse_args()


def main():
    options = parse_options()
    line = measure(options, make_device(options))
    line |= {name: getattr(options, name) for name in ("model", "image_size", "precision", "steps", "mode")}
    line |= {"batch_per_rank": options.batch, "ranks": 1, "versions": versions()}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
