#!/usr/bin/env python3
"""What suite.py makes of benches: suite_test.py ROOT [BUILD]

Of programs that pretend, and with BUILD of all of its own, each once and as short as can be.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
sys.path.insert(0, str(ROOT / "bench"))
import suite  # noqa: E402

GOOGLE = """#!/usr/bin/env python3
import json, os, pathlib
turn = pathlib.Path(__file__).with_suffix(".turn")
time = 10 + len(turn.read_text() if turn.exists() else "")
turn.write_text("x" * (time - 9))
print(json.dumps({"benchmarks": [
    {"name": "fc/f32/iterations:40/manual_time", "real_time": 1000 * time, "time_unit": "us", "cpu_time": 1,
     "GFLOP_per_second": 50.0, "of_peak": 0.25},
    {"name": "fc/f32", "run_type": "aggregate", "real_time": 1, "time_unit": "us"}]}))
"""
STEP = """#!/bin/sh
case $1 in
  --version) echo 'lockstep 0.1.0'; echo 'commit abc'; echo 'MPI  Open MPI v4' ;;
  *) echo 'among others: {"step_ms_median": 20, "samples_per_second": 100, "first_step_seconds": 2, "peak_memory_bytes": 1048576}' ;;
esac
"""


def run(*words):
    return subprocess.run([sys.executable, ROOT / "bench/suite.py", *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})


class Pretended(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name) / "a build"
        (self.build / "bin").mkdir(parents=True)
        self.json = self.build / "out.json"

    def pretend(self, program, text):
        path = self.build / "bin" / program
        path.write_text(text)
        path.chmod(0o755)

    def test_each_figure_has_its_unit_and_all_repeats(self):
        self.pretend("layer_bench", GOOGLE)
        result = run(self.build, "--only", "layers", "--repeats", "3", "--json", self.json)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| layers: fc/f32 | 11 | 10–12 | 50 GFLOP/s, of peak 0.25 |", result.stdout)
        told = json.loads(self.json.read_text())
        self.assertEqual(told["figures"]["layers: fc/f32"],
                         {"bench": "layers", "unit": "ms", "counter": "", "values": [10, 11, 12], "median": 11})
        self.assertEqual(told["figures"]["layers: fc/f32, GFLOP_per_second"]["unit"], "GFLOP/s")
        self.assertEqual((told["repeats"], told["failed"], told["left_out"]), (3, {}, {}))
        self.assertGreater(told["machine"]["cores"], 0)

    def test_steps_give_their_time_rate_memory_and_cold_start(self):
        self.pretend("step_bench", STEP)
        result = run(self.build, "--only", "step resnet20", "--repeats", "1", "--json", self.json)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| step resnet20: step | 20 | 20–20 | rate 100 samples/s, peak memory 1 MiB |", result.stdout)
        self.assertIn("| step resnet20: first step | 2000 | 2000–2000 |  |", result.stdout)
        told = json.loads(self.json.read_text())
        self.assertEqual((told["commit"], told["versions"]["MPI"]), ("abc", "Open MPI v4"))

    def test_a_bench_that_fails_costs_its_own_figures_alone(self):
        self.pretend("layer_bench", GOOGLE)
        self.pretend("state_bench", "#!/bin/sh\necho 'out of cores' >&2\nexit 3\n")
        result = run(self.build, "--repeats", "2", "--json", self.json)
        self.assertEqual(result.returncode, 1)
        self.assertIn("state: failed: ", result.stdout)
        self.assertIn("failed (3):\nout of cores", result.stdout)
        self.assertRegex(result.stderr, "'loader' is left out.*loader_bench")
        told = json.loads(self.json.read_text())
        self.assertEqual((list(told["failed"]), told["left_out"]["loader"]), (["state"], "loader_bench is not built"))
        self.assertEqual(told["figures"]["layers: fc/f32"]["values"], [10, 11])

    def test_a_bench_that_says_so_itself_or_prints_nothing_has_failed(self):
        failed = {"name": "fc", "error_occurred": True, "error_message": "no memory"}
        self.pretend("layer_bench", f"#!/bin/sh\necho '{json.dumps({'benchmarks': [failed]})}'\n")
        self.assertIn("layers: failed: fc failed: no memory", run(self.build, "--only", "layers").stdout)
        self.pretend("layer_bench", """#!/bin/sh\necho '{"benchmarks": []}'\n""")
        self.assertIn("layers: failed: the bench printed no figures", run(self.build, "--only", "layers").stdout)

    def test_a_folder_without_benches_is_refused(self):
        result = run(self.build / "nowhere")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr.splitlines()[-1], "nowhere'.*-DLOCKSTEP_BENCH=ON")


@unittest.skipUnless(BUILD, "no build folder was named")
class Real(unittest.TestCase):
    def test_every_bench_runs_and_gives_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "out.json"
            result = run(BUILD, "--quick", "--json", file)
            self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}")
            told = json.loads(file.read_text())
        self.assertEqual(told["failed"], {})
        self.assertEqual({one["bench"] for one in told["figures"].values()}, {bench.name for bench in suite.SUITE})
        self.assertTrue(all(one["median"] > 0 for one in told["figures"].values() if not one["counter"]))
        for name, unit in (("layers: resnet20/basic_block/f32/backward/threads:2, GFLOP_per_second", "GFLOP/s"),
                           ("layers: resnet20/basic_block/f32/backward/threads:2, of_peak", ""),
                           ("loader: loader/images/one_thread, items_per_second", "samples/s"),
                           ("loader: loader/pictures/one_thread, items_per_second", "samples/s"),
                           ("loader: loader/jpeg/one_thread, items_per_second", "samples/s"),
                           ("sums: buckets/resnet20, shared_bus_GB/s", "GB/s"), ("state: checkpoint/write", "ms"),
                           ("state: update/sgd/threads:2, bytes_per_second", "GB/s"), ("cold start: first step", "ms")):
            self.assertEqual(told["figures"][name]["unit"], unit, name)
            self.assertGreater(told["figures"][name]["median"], 0, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
