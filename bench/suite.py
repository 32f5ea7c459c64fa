"""The benches of a build, as programs that each give figures by name: what run_benches.py and regressions.py run."""
import dataclasses
import json
import pathlib

from processes import ProgramFailed, json_line, output_of

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TWO_RANKS = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2")
MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}


@dataclasses.dataclass(frozen=True)
class Bench:
    name: str
    program: str
    words: tuple = ()
    launcher: tuple = ()


STEP = ("--threads", 2, "--steps", 10)
SUITE = (
    Bench("passes", "ops_bench", ("--benchmark_filter=f32.*threads:2",)),
    Bench("state", "state_bench"),
    Bench("loader", "loader_bench"),
    Bench("sums", "allreduce_bench", ("--benchmark_filter=/(1|64|1000|4000|45000)/",), TWO_RANKS),
    Bench("step resnet18", "step_bench", ("--model", "resnet18", "--batch", 64, *STEP)),
    Bench("step resnet20", "step_bench", ("--model", "resnet20", "--batch", 128, *STEP)),
    Bench("step resnet18, 2 ranks", "step_bench",
          ("--model", "resnet18", "--batch", 32, "--threads", 1, "--steps", 10), TWO_RANKS),
)


def figures_of(printed):
    """Milliseconds by name, of Google Benchmark's JSON or of a line of step_bench."""
    if '"benchmarks"' not in printed:
        line = json_line(printed)
        return {"step": line["step_ms_median"], "first step": 1e3 * line["first_step_seconds"]}
    try:
        found = json.loads(printed[printed.index("{"):])["benchmarks"]
    except ValueError as reason:
        raise ProgramFailed(f"a bench printed no JSON but '{printed[-200:].strip()}'.") from reason
    return {one["name"]: one["real_time"] * MILLISECONDS[one["time_unit"]] for one in found
            if one.get("run_type") != "aggregate"}


def is_built(bench, build):
    return (pathlib.Path(build) / "bin" / bench.program).is_file()


def run(bench, build, seconds=0.2):
    """Runs it once: {"passes: norm_forward/...": milliseconds}. `seconds` of each of Google Benchmark's figures."""
    words = [pathlib.Path(build).resolve() / "bin" / bench.program, *map(str, bench.words)]
    if bench.program != "step_bench":
        words += ["--benchmark_format=json", f"--benchmark_min_time={seconds}"]
    printed = output_of([*bench.launcher, *words], ENVIRONMENT)
    return {f"{bench.name}: {name}": value for name, value in figures_of(printed).items()}
