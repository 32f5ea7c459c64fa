#!/usr/bin/env python3
"""Compares whole training steps of Lockstep with PyTorch at its best, interleaved on the same cores.

    python3 bench/compare.py --build build/release
    python3 bench/compare.py --build build/release --only resnet18-fp32 --pairs 9
    python3 bench/compare.py --build build/gpu_bundle --device cuda      on one GPU, against eager and torch.compile

Prints a Markdown table, one row as each case ends. Progress and errors go to stderr. A run that fails is repeated once.
bench/README.md describes what is measured and how.
"""

import argparse
import dataclasses
import datetime
import os
import pathlib
import shlex
import signal
import sys
import tempfile

from cases import CASES, GPU_CASES, counted
from comparison import HEAD, missing_row, table_row
from processes import (
    CANNOT_COMPARE,
    ProgramFailed,
    TimeIsUp,
    TimeLimit,
    cpu_facts,
    give_up,
    json_line,
    output_of,
    python_with_torch,
    say,
    step_bench,
)

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
QUICK_STEPS = 20


class Lockstep:
    name = "Lockstep"

    def __init__(self, build, more, time):
        self.program = step_bench(build)
        self.more = more
        self.time = time

    def run(self, case, steps):
        launcher = ["mpirun", "--bind-to", "none", "-n", str(case.ranks)] if case.ranks > 1 else []
        command = [*launcher, *self.program, *case.options(), "--steps", str(steps)]
        command += [] if case.peer_mode else ["--convolution-bound"]
        command += ["--plan-folder", ""]  # the first step measures its kernels, as the peer chooses its own
        command += self.more
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        line = json_line(output_of(command, as_root, self.time.of_next_run()))
        return line | {"peak_memory_bytes": line["device_memory_bytes"]} if case.peer_mode else line

    def versions(self):
        lines = output_of([*self.program, "--version"], {}).splitlines()
        return ", ".join(" ".join(line.split()) for line in lines)


class GpuPyTorch:
    name = "PyTorch"

    def __init__(self, python, compile_mode, time):
        self.python = python
        self.compile_mode = compile_mode
        self.time = time

    def run(self, case, steps, untimed=None):
        del untimed  # as many as torch.compile's graphs want
        command = [self.python, GPU_PEER, *case.options(), "--mode", case.peer_mode, "--steps", str(steps)]
        command += ["--compile-mode", self.compile_mode] if case.peer_mode == "compile" else []
        return json_line(output_of(command, {}, self.time.of_next_run()))


class PyTorch:
    name = "PyTorch"

    def __init__(self, python, allocator, time):
        self.python = python
        self.allocator = allocator
        self.time = time

    def run(self, case, steps, untimed=3):
        with tempfile.TemporaryDirectory() as logs:
            # Naming what to redirect keeps PyTorch 1.13 from failing under Python 3.11.
            launch = ["-m", "torch.distributed.run", "--redirects", "1", "--tee", "1", "--log_dir", logs]
            launcher = [*launch, f"--nproc_per_node={case.ranks}"] if case.ranks > 1 else []
            count = ["--steps", str(steps), "--untimed", str(untimed)]
            command = [self.python, *launcher, PEER, *case.options(), *count]
            environment = {**self.allocator, "OMP_NUM_THREADS": str(case.threads)}
            line = json_line(output_of(command, environment, self.time.of_next_run()))
        if self.allocator and line["allocator"] != "jemalloc":
            give_up(
                f"'{JEMALLOC['LD_PRELOAD']}' is not installed. Without it, PyTorch is 15 to 45 % slower. "
                "Install it (Debian: libjemalloc2), or add --without-jemalloc.",
                CANNOT_COMPARE,
            )
        return line


def run(side, case, steps, **more):
    """The line of one run. One that fails is repeated once."""
    try:
        line = side.run(case, steps, **more)
    except TimeIsUp:
        raise
    except ProgramFailed as reason:
        say(f"{reason}\n  {side.name}: this run failed. It is repeated once.")
        line = side.run(case, steps, **more)
    rate, start = line["samples_per_second"], line["first_step_seconds"]
    say(f"  {side.name}: {rate:.1f} samples/s, first step after {start:.1f} s")
    return line


@dataclasses.dataclass
class Measured:
    """The lines of both sides, in pairs."""

    ours: list
    theirs: list
    lost: int = 0  # pairs that were to be measured and could not


def measure_pairs(case, sides, steps, count):
    """`steps` of each side. A run that fails twice costs its pair; raises ProgramFailed where none remains."""
    measured = Measured([], [])
    reason = None
    for pair in range(count):
        say(f"{case.name}: pair {pair + 1} of {count}")
        try:
            ours, theirs = (run(side, case, number) for side, number in zip(sides, steps, strict=True))
        except ProgramFailed as failure:
            reason = failure
            measured.lost += 1
            say(f"{reason}\n{case.name}: pair {pair + 1} of {count} is lost")
            continue
        measured.ours.append(ours)
        measured.theirs.append(theirs)
    if not measured.ours:
        raise reason
    return measured


def measure(case, sides, options):
    """Runs both sides in turn; once only if that is asked for, or where PyTorch has no kernels to speak of."""
    lockstep, pytorch = sides
    if options.quick:
        steps = options.steps or QUICK_STEPS
        say(f"{case.name}: {counted(steps, 'step')} each")
        return Measured(*([run(side, case, steps)] for side in sides))
    say(f"{case.name}: one step each, to find how many steps take {options.seconds} s")
    first = [run(lockstep, case, 1), run(pytorch, case, 1, untimed=0)]
    if first[0]["samples_per_second"] > HOPELESS * first[1]["samples_per_second"]:
        return Measured(*([line] for line in first))
    steps = [options.steps or max(3, round(1e3 * options.seconds / line["step_ms_median"])) for line in first]
    return measure_pairs(case, sides, steps, options.pairs)


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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="build folder with step_bench (%(default)s)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="device of both sides (%(default)s)")
    names = sorted({case.name for case in CASES + GPU_CASES})
    parser.add_argument("--only", action="append", choices=names, help="run only this case; may be repeated")
    parser.add_argument("--pairs", type=positive, default=5,
                        help="pairs of runs of each case (%(default)s); fewer than five give no useful interval")
    parser.add_argument("--seconds", type=float, default=6, help="duration of the timed steps of a run (%(default)s)")
    parser.add_argument("--steps", type=positive, help="timed steps of a run, instead of --seconds")
    parser.add_argument("--quick", action="store_true", help=f"run each side and case once, with {QUICK_STEPS} steps")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS",
                        help="limit for all runs; the table lists cases left out")
    parser.add_argument("--ours", default="", metavar="OPTIONS", help="further options of step_bench, as one argument")
    parser.add_argument("--compile-mode", default="max-autotune", metavar="MODE",
                        help="mode of torch.compile on a GPU (%(default)s, which takes minutes to the first step)")
    parser.add_argument("--python", help="interpreter with torch (default: the first one found)")
    parser.add_argument("--without-jemalloc", action="store_true", help="run PyTorch with the C library's allocator")
    return parser.parse_args()


def print_table(cases, sides, options, hardware, target):
    """A case that cannot be measured leaves its row without figures, unless none can: then this raises ProgramFailed."""
    held = []  # rows until the head can be printed, which says what was measured on
    has_head = False
    for case in cases:
        try:
            measured = measure(case, sides, options)
        except ProgramFailed as reason:
            say(str(reason))
            held.append(missing_row(case.title(), str(reason)))
            last = reason
        else:
            held.append(table_row(case.title(), target(case), measured.ours, measured.theirs, measured.lost))
            if not has_head:
                words = header(hardware(measured.ours[0]), sides[0], peer_words(measured.theirs[0]))
                held[:0] = [words, HEAD]
                has_head = True
        if has_head:
            print("\n".join(held), flush=True)
            held.clear()
    if not has_head:
        raise last


def compare_on_cpu(cases, options, time):
    load = os.getloadavg()[0]
    allocator = {} if options.without_jemalloc else JEMALLOC
    ours = Lockstep(options.build, shlex.split(options.ours), time)
    sides = [ours, PyTorch(python_with_torch(options.python), allocator, time)]
    cores = sorted(os.sched_getaffinity(0))[: max(case.ranks * case.threads for case in CASES)]
    os.sched_setaffinity(0, cores)  # every process started from here inherits it
    vendor, family, name = cpu_facts()
    words = f"CPU: {name} ({vendor}, family {family}), cores {','.join(map(str, cores))}; load at the start {load:.1f}"
    has_targets = (vendor, family) == ZEN_5
    print_table(cases, sides, options, lambda _: words, lambda case: case.target if has_targets else None)


def compare_on_gpu(cases, options, time):
    ours = Lockstep(options.build, shlex.split(options.ours), time)
    sides = [ours, GpuPyTorch(python_with_torch(options.python), options.compile_mode, time)]
    words = f"torch.compile: {options.compile_mode}"
    print_table(cases, sides, options, lambda line: f"GPU: {line['device']}; {words}", lambda case: case.target)


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that output_of() ends what it started
    on_gpu = options.device == "cuda"
    known = GPU_CASES if on_gpu else CASES
    cases = [case for case in known if options.only is None or case.name in options.only]
    if not cases:
        names = ", ".join(sorted(case.name for case in known))
        give_up(f"--only names no case of --device {options.device}. Known: {names}.", CANNOT_COMPARE)
    try:
        (compare_on_gpu if on_gpu else compare_on_cpu)(cases, options, TimeLimit(options.time_limit))
    except ProgramFailed as reason:
        give_up(str(reason).rstrip())


if __name__ == "__main__":
    main()
