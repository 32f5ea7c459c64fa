#!/usr/bin/env python3
"""Runs the benches of a build. Prints a table, and writes each figure with its unit and all repeats as JSON.

    suite.py build/release --json figures.json      all benches
    suite.py build/release --only layers            benches whose names contain "layers"
    suite.py build/release --quick                  tests that all benches run; the figures mean nothing

Each bench runs --repeats times, in turn with the others, so that changes of the machine affect all. A bench that fails
is reported, and loses only its own figures. Exit code 0: every bench gave figures. Otherwise 1.
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import sys

from processes import CANNOT_COMPARE, ProgramFailed, cpu_facts, give_up, output_of, say

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TWO_RANKS = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2")
MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}


@dataclasses.dataclass(frozen=True)
class Bench:
    name: str
    program: str
    words: tuple
    quick: tuple  # arguments with --quick, instead of `words`
    launcher: tuple = ()


def only(pattern):
    return (f"--benchmark_filter={pattern}",)


def step(model, batch, threads):
    return ("--model", model, "--batch", batch, "--threads", threads, "--steps", 10)


QUICK_STEP = ("--model", "resnet20", "--batch", 8, "--threads", 1, "--steps", 2)
SUITE = (
    Bench("passes", "ops_bench", only("f32.*threads:2"), only("norm_.*/f32/128x8x8x64/threads:2")),
    Bench("layers", "layer_bench", only("f32.*threads:2"), only("resnet20/.*f32.*threads:2")),
    Bench("state", "state_bench", (), only("sgd/threads:2|checkpoint")),
    Bench("loader", "loader_bench", (), ()),
    Bench("sums", "allreduce_bench", only("/(1|64|1000|4000|45000|256000)/|buckets"), only("/64/|buckets/resnet20"),
          TWO_RANKS),
    Bench("step resnet18", "step_bench", step("resnet18", 64, 2), QUICK_STEP),
    Bench("step resnet20", "step_bench", step("resnet20", 128, 2), QUICK_STEP),
    Bench("step resnet18, 2 ranks", "step_bench", step("resnet18", 32, 1), QUICK_STEP, TWO_RANKS),
    Bench("cold start", "step_bench", ("--first-step", *step("resnet18", 64, 2)), ("--first-step", *QUICK_STEP)),
)


@dataclasses.dataclass(frozen=True)
class Figure:
    value: float
    unit: str
    counter: str = ""  # name of a figure that is not a time; empty: the time


HOW_TIMED = re.compile(r"/(iterations:\d+|manual_time|real_time)")  # in names
# Counters by the end of their names: unit and factor.
UNITS = (
    ("bytes_per_second", "GB/s", 1e-9), ("items_per_second", "samples/s", 1), ("GB_per_second", "GB/s", 1),
    ("GFLOP_per_second", "GFLOP/s", 1), ("_GB/s", "GB/s", 1), ("_ms", "ms", 1), ("of_peak", "", 1), ("of_copy", "", 1),
    ("last_share", "", 1), ("last_rank", "", 1), ("shared_over_mpi", "", 1), ("low", "", 1), ("high", "", 1),
)
# Fields of step_bench: name of the figure, unit and factor.
OF_STEPS = {
    "step_ms_median": ("step", "ms", 1), "first_step_seconds": ("first step", "ms", 1e3),
    "first_step_seconds_cold": ("first step", "ms", 1e3),
    "first_step_seconds_warm": ("first step, kernels recalled", "ms", 1e3),
}
BESIDE_STEPS = {"samples_per_second": ("samples/s", 1, "rate"), "peak_memory_bytes": ("MiB", 2**-20, "peak memory")}


def of_google_benchmark(found):
    figures = {}
    for one in found:
        if one.get("run_type") == "aggregate":
            continue
        if one.get("error_occurred"):
            raise ProgramFailed(f"{one['name']} failed: {one.get('error_message', 'no reason given')}")
        name = HOW_TIMED.sub("", one["name"])
        figures[name] = Figure(one["real_time"] * MILLISECONDS[one["time_unit"]], "ms")
        for field, value in one.items():
            for end, unit, scale in UNITS:
                if field.endswith(end):
                    counter = field.removesuffix(end).strip("_") or field
                    figures[f"{name}, {field}"] = Figure(value * scale, unit, counter)
                    break
    return figures


def of_step_bench(line):
    figures = {}
    for field, (name, unit, scale) in OF_STEPS.items():
        if field in line:
            figures[name] = Figure(line[field] * scale, unit)
    for field, (unit, scale, counter) in BESIDE_STEPS.items():
        if field in line:
            figures[f"step, {field}"] = Figure(line[field] * scale, unit, counter)
    return figures


def figures_of(printed):
    """{name: Figure} of Google Benchmark's JSON or of a line of step_bench."""
    try:
        told = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
    except ValueError as reason:
        raise ProgramFailed(f"the bench printed no JSON. It ended with '{printed[-200:].strip()}'.") from reason
    figures = of_google_benchmark(told["benchmarks"]) if "benchmarks" in told else of_step_bench(told)
    if not figures:
        raise ProgramFailed(f"the bench printed no figures. It ended with '{printed[-200:].strip()}'.")
    return figures


def is_built(bench, build):
    return (pathlib.Path(build) / "bin" / bench.program).is_file()


def run(bench, build, quick=False):
    """Runs it once: {"passes: norm_forward/...": Figure}."""
    words = [pathlib.Path(build).resolve() / "bin" / bench.program, *map(str, bench.quick if quick else bench.words)]
    if bench.program != "step_bench":
        words.append("--benchmark_format=json")
        # allreduce_bench counts its rounds itself. Google Benchmark 1.9 warns about a time without a unit, 1.7 about a
        # time with one. With two ranks, the warning of the second would end up within the JSON of the first.
        if bench.program != "allreduce_bench":
            words.append(f"--benchmark_min_time={0.001 if quick else 0.2}")
    figures = figures_of(output_of([*bench.launcher, *words], ENVIRONMENT))
    return {f"{bench.name}: {name}": figure for name, figure in figures.items()}


def times(figures):
    return {name: figure.value for name, figure in figures.items() if not figure.counter}


def versions(build):
    """{"lockstep": "0.1.0", "commit": ...} from step_bench, and the versions of Linux and Python."""
    told = {}
    program = pathlib.Path(build).resolve() / "bin" / "step_bench"
    if program.is_file():
        lines = output_of([program, "--version"], ENVIRONMENT).splitlines()
        told = dict(line.split(maxsplit=1) for line in lines if line.split(maxsplit=1)[1:])
    return told | {"Linux": platform.release(), "Python": platform.python_version()}


def facts(build):
    """The machine, the versions and the time."""
    vendor, family, name = cpu_facts()
    told = versions(build)
    return {
        "when": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "machine": {
            "processor": name,
            "vendor": vendor,
            "family": family,
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "load_at_start": os.getloadavg()[0],
        },
        "commit": told.pop("commit", "unknown"),
        "versions": told,
    }


def header(told, given):
    machine = told["machine"]
    return "\n".join([
        f"- {machine['processor']}, {machine['cores']} cores; load at the start {machine['load_at_start']:.1f}",
        f"- commit {told['commit']}; {', '.join(' '.join(pair) for pair in told['versions'].items())}",
        f"- {told['when']}; runs of each bench: {given.repeats}{', only to see that they run' if given.quick else ''}",
        "",
    ])


class Measured:
    """Figures by name with the values of all repeats, and the reasons of benches that failed."""

    def __init__(self):
        self.figures = {}
        self.failed = {}

    def add(self, bench, figures):
        for name, figure in figures.items():
            first = {"bench": bench.name, "unit": figure.unit, "counter": figure.counter, "values": []}
            self.figures.setdefault(name, first)["values"].append(figure.value)

    def result(self):
        return {name: entry | {"median": statistics.median(entry["values"])} for name, entry in self.figures.items()}


def measure(benches, given):
    measured = Measured()
    for repeat in range(given.repeats):
        for bench in benches:
            if bench.name in measured.failed:
                continue
            say(f"{bench.name}: {repeat + 1} of {given.repeats}")
            try:
                measured.add(bench, run(bench, given.build, given.quick))
            except ProgramFailed as reason:
                say(str(reason))
                measured.failed[bench.name] = str(reason)
    return measured


def four_digits(value):
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def in_words(one):
    """A figure that a bench reports beside a time: "mpi p99 3.1 ms"."""
    label = "" if one["counter"].endswith("_per_second") else one["counter"].replace("_", " ")
    return f"{label} {four_digits(one['median'])} {one['unit']}".strip()


def table(figures):
    """A row for each time, with the other figures of its bench."""
    lines = ["| figure | median, ms | least–most | beside it |", "|---|---|---|---|"]
    for name, one in figures.items():
        if one["counter"]:
            continue
        beside = [in_words(other) for key, other in figures.items() if other["counter"] and key.startswith(f"{name}, ")]
        lines.append(f"| {name} | {four_digits(one['median'])} | {four_digits(min(one['values']))}–"
                     f"{four_digits(max(one['values']))} | {', '.join(beside)} |")
    return "\n".join(lines)


def options(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD", help="build folder with benches")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only benches whose names contain TEXT")
    parser.add_argument("--repeats", type=int, metavar="COUNT", help="runs of each bench (default: 5, with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="run the smallest case of each bench once")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures to FILE")
    given = parser.parse_args(words)
    given.repeats = given.repeats or (1 if given.quick else 5)
    if given.repeats < 1:
        parser.error("--repeats must be at least 1.")
    return given


def main(words):
    given = options(words)
    named = [bench for bench in SUITE if given.only in bench.name]
    benches = [bench for bench in named if is_built(bench, given.build)]
    left_out = {bench.name: f"{bench.program} is not built" for bench in named if bench not in benches}
    for name, reason in left_out.items():
        say(f"'{name}' is left out, because {reason}.")
    if not benches:
        give_up(f"'{given.build}' has no such bench (--only). Build it with -DLOCKSTEP_BENCH=ON.", CANNOT_COMPARE)
    told = facts(given.build)
    measured = measure(benches, given)
    figures = measured.result()
    print(header(told, given))
    print(table(figures))
    for name, reason in measured.failed.items():
        print(f"\n{name}: failed: {reason.strip()}")
    if given.json:
        result = told | {"repeats": given.repeats, "quick": given.quick, "figures": figures, "failed": measured.failed,
                         "left_out": left_out}
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return int(bool(measured.failed or left_out))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
