#!/usr/bin/env python3
"""ops_bench measures each pass on the simulated GPU, and its table has them all: simulated_passes_test.py BIN ROOT"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def main(programs, root):
    bench = [pathlib.Path(programs) / "ops_bench_on_simulated_gpu", "--device", "cuda"]
    with tempfile.TemporaryDirectory() as folder:
        measured = pathlib.Path(folder) / "measured.json"
        done = subprocess.run([*bench, "--batch", "1", "--benchmark_filter=/1x32x32x64", f"--benchmark_out={measured}",
                               "--benchmark_out_format=json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        entries = json.loads(measured.read_text())["benchmarks"]
        table = subprocess.run([pathlib.Path(root) / "tests" / "support" / "gpu" / "pass_rates.py", measured],
                               capture_output=True, text=True, check=True).stdout
    print(table)
    passes = re.findall(r'^      \{"(\w+)", \d,', (pathlib.Path(root) / "bench" / "ops_bench.cpp").read_text(), re.M)
    assert len(passes) == 15, passes
    rows = re.findall(r"^\| `(\w+)/(f32|bf16)/1x32x32x64` \| (\d+) \| (\d+) % \|$", table, re.M)
    assert sorted(row[:2] for row in rows) == sorted((one, kind) for one in passes for kind in ("f32", "bf16")), rows
    assert all(entry["GB_per_second"] > 0 and entry["of_copy"] > 0 for entry in entries), entries
    refused = subprocess.run([*bench, "--threads", "2"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "--threads" in refused.stderr, refused


if __name__ == "__main__":
    main(*sys.argv[1:])
