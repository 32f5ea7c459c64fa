"""Running the programs that are timed and compared, finding them, and what they run on."""

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
    """A program ended with an error, or not in time; the text says which and why."""


class TimeIsUp(ProgramFailed):
    """No time is left to start a program: trying again would not help."""


class TimeLimit:
    """How long all programs together may take, from now on; None: as long as they like."""

    def __init__(self, seconds=None):
        self.end = None if seconds is None else time.monotonic() + seconds

    def of_next_run(self):
        left = RUN_LIMIT_S if self.end is None else self.end - time.monotonic()
        if left < LEAST_RUN_S:
            raise TimeIsUp("no time was left (--time-limit).")
        return min(left, RUN_LIMIT_S)


def say(text):
    print(text, file=sys.stderr, flush=True)


def give_up(text, code=1):
    say(text)
    sys.exit(code)


def cpu_facts():
    """Vendor, family and name of this CPU, as Linux tells them."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    fields = ("vendor_id", "cpu family", "model name")
    return [re.search(rf"^{field}\s*: (.*)$", text, re.MULTILINE).group(1) for field in fields]


def output_of(command, environment, limit=RUN_LIMIT_S):
    """What a program printed. Ends it with all its children when it takes more than `limit` seconds."""
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
    """The figures of a training's steps that a program printed."""
    # torch.distributed.run puts the rank's name in front.
    with contextlib.suppress(ValueError):
        line = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
        if "samples_per_second" in line:
            return line
    raise ProgramFailed(f"a program printed no figures but '{printed[-200:].strip()}'.")


def step_bench(build):
    """The words that start step_bench: in a build folder, or in a bundle that brings its libraries along."""
    folder = pathlib.Path(build).resolve()
    program = folder / "bin" / "step_bench"
    if not program.is_file():
        give_up(f"no step_bench in {pathlib.Path(build) / 'bin'} (--build). Build the preset ci: cmake --preset ci && cmake --build --preset ci.", CANNOT_COMPARE)
    return [folder / "run", "step_bench"] if (folder / "run").is_file() else [program]


# Loading torch takes seconds: whether it loads is seen when the peer runs.
HAS_TORCH = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


def python_with_torch(wanted):
    usual = [sys.executable, "/usr/bin/python3", "python3", *glob.glob("/opt/*/.venv/bin/python3")]
    for python in [wanted] if wanted else usual:
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", HAS_TORCH], capture_output=True, check=False).returncode == 0:
                return python
    where = wanted or "python3"
    return give_up(
        f"{where} cannot import torch (the peer to compare with). "
        "Debian: apt install python3-torch. Or name another: --python.",
        CANNOT_COMPARE,
    )
