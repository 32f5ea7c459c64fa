#!/usr/bin/env python3
"""Whole training steps, Lockstep against PyTorch at its best, interleaved on the same cores; prints a Markdown table.

    python3 bench/compare.py --build build/release
    python3 bench/compare.py --build build/release --only resnet18-fp32 --pairs 9
    python3 bench/compare.py --build build/gpu_bundle --device cuda      on one GPU, against eager and torch.compile

bench/README.md says what is measured and how. Progress goes to stderr.
"""

import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import signal
import sys
import tempfile

from comparison import HEAD, missing_row, table_row
from processes import CANNOT_COMPARE, ProgramFailed, give_up, json_line, output_of, python_with_torch, say, step_bench

HERE = pathlib.Path(__file__).resolve().parent
PEER = HERE / "peers" / "step_peer.py"
GPU_PEER = HERE / "peers" / "gpu_step_peer.py"
ZEN_5 = ("AuthenticAMD", "26")  # targets are stated for it alone
# PyTorch gives large blocks back to the kernel at every step unless its allocator keeps them: 15 to 45 % of its speed.
JEMALLOC = {
    "LD_PRELOAD": "libjemalloc.so.2",
    "MALLOC_CONF": "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
# A peer this much slower lacks kernels for this CPU; pairs would take an hour to say the same.
HOPELESS = 10


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    description: str
    model: str
    batch: int  # of each rank
    precision: str
    ranks: int
    threads: int  # of each rank
    target: float  # ratio to reach; on CPUs: on Zen 5
    peer_mode: str = ""  # on a GPU: eager or compile
    image_size: int = 32
    classes: int = 10

    def options(self):
        named = {"model": self.model, "batch": self.batch, "precision": self.precision}
        named |= {"image-size": self.image_size, "classes": self.classes}
        named |= {"device": "cuda"} if self.peer_mode else {"threads": self.threads}
        return [word for name, value in named.items() for word in (f"--{name}", str(value))]

    def title(self):
        if self.peer_mode:
            return f"{self.description}, against {self.peer_mode}"
        return f"{self.description}, {counted(self.ranks, 'rank')} x {counted(self.threads, 'thread')}"


def resnet50(batch, precision, threads, target, peer_mode=""):
    description = f"ResNet-50, 224 px, batch {batch}, {precision}"
    return Case(f"resnet50-{precision}", description, "resnet50", batch, precision, 1, threads, target, peer_mode, 224, 1000)


# Name, description, model, batch, precision, ranks, threads, target.
CASES = [
    Case("resnet18-fp32", "ResNet-18 (CIFAR), batch 64, fp32", "resnet18", 64, "fp32", 1, 2, 2.5),
    Case("resnet20-fp32", "ResNet-20, batch 128, fp32", "resnet20", 128, "fp32", 1, 2, 2.5),
    Case("resnet18-bf16", "ResNet-18, batch 64, bf16", "resnet18", 64, "bf16", 1, 2, 1.7),
    Case("resnet20-bf16", "ResNet-20, batch 128, bf16", "resnet20", 128, "bf16", 1, 2, 1.9),
    Case("resnet18-2ranks", "ResNet-18, batch 32 each, fp32", "resnet18", 32, "fp32", 2, 1, 2.7),
    resnet50(16, "fp32", 2, 1.5),
    resnet50(16, "bf16", 2, 1.3),
]
GPU_CASES = [
    resnet50(256, "bf16", 1, 1.3, "compile"),
    resnet50(256, "fp16", 1, 1.5, "compile"),
    Case("resnet18-bf16-eager", "ResNet-18 (CIFAR), batch 512, bf16", "resnet18", 512, "bf16", 1, 1, 2.0, "eager"),
    Case("resnet18-bf16-compile", "ResNet-18 (CIFAR), batch 512, bf16", "resnet18", 512, "bf16", 1, 1, 1.5, "compile"),
]


class Lockstep:
    name = "Lockstep"

    def __init__(self, build):
        self.program = step_bench(build)

    def run(self, case, steps):
        launcher = ["mpirun", "--bind-to", "none", "-n", str(case.ranks)] if case.ranks > 1 else []
        command = [*launcher, *self.program, *case.options(), "--steps", str(steps)]
        command += [] if case.peer_mode else ["--convolution-bound"]
        command += ["--plan-folder", ""]  # the first step measures its kernels, as the peer chooses its own
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        line = json_line(output_of(command, as_root))
        return line | {"peak_memory_bytes": line["device_memory_bytes"]} if case.peer_mode else line

    def versions(self):
        lines = output_of([*self.program, "--version"], {}).splitlines()
        return ", ".join(" ".join(line.split()) for line in lines)


class GpuPyTorch:
    name = "PyTorch"

    def __init__(self, python):
        self.python = python

    def run(self, case, steps, untimed=None):
        del untimed  # as many as torch.compile's graphs want
        command = [self.python, GPU_PEER, *case.options(), "--mode", case.peer_mode, "--steps", str(steps)]
        return json_line(output_of(command, {}))


class PyTorch:
    name = "PyTorch"

    def __init__(self, python, allocator):
        self.python = python
        self.allocator = allocator

    def run(self, case, steps, untimed=3):
        with tempfile.TemporaryDirectory() as logs:
            # Naming what to redirect keeps PyTorch 1.13 from failing under Python 3.11.
            launch = ["-m", "torch.distributed.run", "--redirects", "1", "--tee", "1", "--log_dir", logs]
            launcher = [*launch, f"--nproc_per_node={case.ranks}"] if case.ranks > 1 else []
            count = ["--steps", str(steps), "--untimed", str(untimed)]
            command = [self.python, *launcher, PEER, *case.options(), *count]
            line = json_line(output_of(command, {**self.allocator, "OMP_NUM_THREADS": str(case.threads)}))
        if self.allocator and line["allocator"] != "jemalloc":
            give_up(
                f"no {JEMALLOC['LD_PRELOAD']} (without it PyTorch is 15 to 45 % slower: not an honest comparison). "
                "Debian: apt install libjemalloc2. Or accept that: --without-jemalloc.",
                CANNOT_COMPARE,
            )
        return line


def summary(side, line):
    rate, start = line["samples_per_second"], line["first_step_seconds"]
    return f"  {side.name}: {rate:.1f} samples/s, first step after {start:.1f} s"


def measure(case, sides, options):
    """Runs both sides in turn. Returns the lines of each; one of each where PyTorch has no kernels to speak of."""
    lockstep, pytorch = sides
    say(f"{case.name}: one step each, to learn how many fill {options.seconds} s")
    first = [lockstep.run(case, 1), pytorch.run(case, 1, untimed=0)]
    for side, line in zip(sides, first, strict=True):
        say(summary(side, line))
    if first[0]["samples_per_second"] > HOPELESS * first[1]["samples_per_second"]:
        return [[line] for line in first]
    steps = [options.steps or max(3, round(1e3 * options.seconds / line["step_ms_median"])) for line in first]
    lines = [[], []]
    for pair in range(options.pairs):
        say(f"{case.name}: pair {pair + 1} of {options.pairs}")
        for side, count, taken in zip(sides, steps, lines, strict=True):
            taken.append(side.run(case, count))
            say(summary(side, taken[-1]))
    return lines


def cpu_facts():
    """Vendor, family and name of this CPU, as Linux tells them."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = ("vendor_id", "cpu family", "model name")
    return [re.search(rf"^{field}\s*: (.*)$", text, re.MULTILINE).group(1) for field in fields]


def header(hardware, lockstep, peer):
    return "\n".join([
        f"- {hardware}",
        f"- Lockstep: {lockstep.versions()}",
        f"- PyTorch: {peer}",
        f"- {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "",
    ])


def peer_words(line):
    torch = ", ".join(f"{part} {version}" for part, version in line["versions"].items())
    return f"{torch}, channels_last, {line.get('allocator', 'mixed precision, fused SGD, TF32 off in fp32')}"


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def parse_options():
    parser = argparse.ArgumentParser(description="Compares whole training steps with PyTorch; prints a Markdown table.")
    parser.add_argument("--build", default="build/release", help="folder with bin/step_bench")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    names = sorted({case.name for case in CASES + GPU_CASES})
    parser.add_argument("--only", action="append", choices=names, help="this case alone; may be repeated")
    parser.add_argument("--pairs", type=positive, default=5, help="of runs; fewer than five prove little")
    parser.add_argument("--seconds", type=float, default=6, help="that the timed steps of one run shall take")
    parser.add_argument("--steps", type=positive, help="timed steps of each run, instead of --seconds")
    parser.add_argument("--python", help="an interpreter that can import torch")
    parser.add_argument("--without-jemalloc", action="store_true", help="run PyTorch with the C library's allocator")
    return parser.parse_args()


def compare_on_cpu(cases, options):
    load = os.getloadavg()[0]
    allocator = {} if options.without_jemalloc else JEMALLOC
    sides = [Lockstep(options.build), PyTorch(python_with_torch(options.python), allocator)]
    cores = sorted(os.sched_getaffinity(0))[: max(case.ranks * case.threads for case in CASES)]
    os.sched_setaffinity(0, cores)  # every process started from here inherits it
    has_targets = tuple(cpu_facts()[:2]) == ZEN_5
    rows = []
    for case in cases:
        ours, theirs = measure(case, sides, options)
        rows.append(table_row(case.title(), case.target if has_targets else None, ours, theirs))
    vendor, family, name = cpu_facts()
    words = f"CPU: {name} ({vendor}, family {family}), cores {','.join(map(str, cores))}; load at the start {load:.1f}"
    return [header(words, sides[0], peer_words(theirs[0])), HEAD, *rows]


def compare_on_gpu(cases, options):
    """A case that fails leaves its row without figures, unless all do."""
    sides = [Lockstep(options.build), GpuPyTorch(python_with_torch(options.python))]
    rows, gpu, peer = [], None, None
    for case in cases:
        try:
            ours, theirs = measure(case, sides, options)
        except ProgramFailed as reason:
            if gpu is None and case is cases[-1]:
                raise
            say(str(reason))
            rows.append(missing_row(case.title(), str(reason)))
            continue
        rows.append(table_row(case.title(), case.target, ours, theirs))
        gpu, peer = f"GPU: {ours[0]['device']}", peer_words(theirs[0])
    return [header(gpu, sides[0], peer), HEAD, *rows]


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that output_of() ends what it started
    on_gpu = options.device == "cuda"
    known = GPU_CASES if on_gpu else CASES
    cases = [case for case in known if options.only is None or case.name in options.only]
    if not cases:
        named = ", ".join(options.only)
        give_up(f"no case of that name with --device {options.device}: {named} (--only).", CANNOT_COMPARE)
    try:
        print("\n".join((compare_on_gpu if on_gpu else compare_on_cpu)(cases, options)))
    except ProgramFailed as reason:
        give_up(str(reason).rstrip())


if __name__ == "__main__":
    main()
