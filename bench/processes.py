"""Finds and runs the programs that are compared, and describes the processor."""

import contextlib
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

CANNOT_COMPARE = 2
RUN_LIMIT_S = 600
LEAST_RUN_S = 2  # no program that computes is done sooner


class ProgramFailed(Exception):
    """A program failed or took too long. The text names it and the reason."""


class TimeIsUp(ProgramFailed):
    """No time is left to start a program, so a repeat is useless."""


class TimeLimit:
    """Limit for all programs together, from now on. None: no limit."""

    def __init__(self, seconds=None):
        self.end = None if seconds is None else time.monotonic() + seconds

    def of_next_run(self):
        left = RUN_LIMIT_S if self.end is None else self.end - time.monotonic()
        if left < LEAST_RUN_S:
            raise TimeIsUp("the time limit (--time-limit) has passed.")
        return min(left, RUN_LIMIT_S)


def say(text):
    print(text, file=sys.stderr, flush=True)


def give_up(text, code=1):
    say(text)
    sys.exit(code)


def cpu_facts():
    """Vendor, family and name of this CPU, from Linux."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = ("vendor_id", "cpu family", "model name")
    return [re.search(rf"^{field}\s*: (.*)$", text, re.MULTILINE).group(1) for field in fields]


def output_of(command, environment, limit=RUN_LIMIT_S):
    """The output of a program. Kills it and all its children after `limit` seconds."""
    words = " ".join(map(str, command))
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
    ) as process:
        try:
            printed, _ = process.communicate(timeout=limit)
        except BaseException as reason:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(reason, subprocess.TimeoutExpired):
                raise ProgramFailed(f"{words} took more than {limit:.0f} s.") from reason
            raise
        if process.returncode != 0:
            errors.seek(0)
            raise ProgramFailed(f"{words} failed ({process.returncode}):\n{errors.read()[-2000:]}")
        return printed


def json_line(printed):
    """The figures of training steps that a program printed."""
    # torch.distributed.run puts the rank's name in front.
    with contextlib.suppress(ValueError):
        line = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
        if "samples_per_second" in line:
            return line
    raise ProgramFailed(f"the program printed no figures. It ended with '{printed[-200:].strip()}'.")


def step_bench(build):
    """The command that starts step_bench, in a build folder or in a bundle with its own libraries."""
    folder = pathlib.Path(build).resolve()
    program = folder / "bin" / "step_bench"
    if not program.is_file():
        give_up(
            f"'{pathlib.Path(build) / 'bin'}' (--build) has no step_bench. "
            "Build the preset ci: cmake --preset ci && cmake --build --preset ci.",
            CANNOT_COMPARE,
        )
    return [folder / "run", "step_bench"] if (folder / "run").is_file() else [program]


# Does not import torch, which takes seconds. If the import fails, the peer reports it.
HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def python_with_torch(wanted):
    usual = [sys.executable, "/usr/bin/python3", "python3", *glob.glob("/opt/*/.venv/bin/python3")]
    for python in [wanted] if wanted else usual:
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", HAS_TORCH], capture_output=True, check=False).returncode == 0:
                return python
    where = wanted or "python3"
    return give_up(
        f"'{where}' cannot import torch. Install it (Debian: python3-torch), or choose another interpreter (--python).",
        CANNOT_COMPARE,
    )
