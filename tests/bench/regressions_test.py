#!/usr/bin/env python3
"""What regressions.py makes of times, made-up and of programs that pretend: regressions_test.py ROOT"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "bench"))
import regressions  # noqa: E402

# As SciPy 1.17's mannwhitneyu gives them: exact, and where times are equal by the normal distribution.
for base, new, chance in (([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 0.007936507936507936),
                          ([1, 2, 3, 4, 7, 9, 11], [5, 6, 8, 10, 12, 13, 14], 0.05303030303030303),
                          ([1, 2, 3, 9], [4, 5, 6, 7], 0.34285714285714286), ([1, 4, 5, 8], [2, 3, 6, 7], 1),
                          ([1, 2, 2, 3, 4], [3, 4, 5, 5, 6], 0.034453637039471276), ([1, 1, 1], [1, 1, 1], 1)):
    assert abs(regressions.mann_whitney(base, new) - chance) < 1e-12, (base, new)
# Holm's own rule: the least counts as often as there are, and none less than one before it.
assert regressions.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == {"a": 0.03, "c": 0.06, "b": 0.06}


def times(median, spread, seed, count=9):
    draw = random.Random(seed)
    return [draw.gauss(median, spread * median) for _ in range(count)]


judged = regressions.judge({
    "slower": (times(10, 0.005, 1), times(11, 0.005, 2)),
    "faster": (times(10, 0.005, 3), times(9, 0.005, 4)),
    "the same": (times(10, 0.005, 5), times(10.02, 0.005, 6)),
    "not known": (times(10, 0.3, 7), times(10.5, 0.3, 8)),
    "the same, though surely not equal": (times(10, 0.0005, 9), times(10.1, 0.0005, 10)),
}, 0.03)
for name, one in judged.items():
    assert one["verdict"] == name.split(",")[0], (name, one)
assert regressions.summary(judged) == "1 slower, 1 not known, 1 faster, 2 the same"
assert regressions.table(judged).splitlines()[2].startswith("| slower | 1"), regressions.table(judged)

# A whole run, with benches that pretend.
GOOGLE = """#!/usr/bin/env python3
import json, random
times = {{"a": {a}, "b": {b}}}
print(json.dumps({{"benchmarks": [{{"name": name, "real_time": value * (1 + random.random() / 100), "time_unit": "us"}}
                                  for name, value in times.items()]}}))
"""


def pretend(folder, program, text):
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "bin" / program).write_text(text)
    (folder / "bin" / program).chmod(0o755)


def compare(*words):
    return subprocess.run([sys.executable, ROOT / "bench/regressions.py", *words], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    base, new = folder / "base build", folder / "new"
    pretend(base, "state_bench", GOOGLE.format(a=100, b=100))
    pretend(new, "state_bench", GOOGLE.format(a=150, b=100))
    result = compare(base, new, "--json", folder / "out.json")
    assert result.returncode == 1, result.stderr
    assert "| state: a | 0.1" in result.stdout and "2 figures: 1 slower, 0 not known, 0 faster, 1 the same." in result.stdout
    assert "'passes' is left out" in result.stderr and "ops_bench" in result.stderr, result.stderr
    assert json.loads((folder / "out.json").read_text())["state: a"]["verdict"] == "slower"
    assert compare(new, base).returncode == 0
    pretend(new, "state_bench", "#!/bin/sh\necho 'out of cores' >&2\nexit 3\n")
    result = compare(base, new)
    assert result.returncode == 2 and "failed (3):\nout of cores" in result.stderr, result.stderr
    result = compare(base, folder / "nowhere")
    assert result.returncode == 2 and "-DLOCKSTEP_BENCH=ON" in result.stderr.splitlines()[-1], result.stderr
    result = compare(base, new, "--repeats", "3")
    assert result.returncode == 2 and "--repeats must be at least 4" in result.stderr, result.stderr
print("regressions are told from noise")
