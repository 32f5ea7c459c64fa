#!/usr/bin/env python3
"""Tests what bench/compare.py says and refuses: comparison_test.py SOURCE_FOLDER.

The two programs it runs are stand-ins that print chosen figures: how fast the real ones are is not for a test.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "bench"))

from comparison import HEAD, ratio_interval, table_row  # noqa: E402: found only now


def line(rate, **more):
    figures = {"samples_per_second": rate, "step_ms_median": 1e3, "peak_memory_bytes": 100 << 20}
    return figures | {"first_step_seconds": 1.25, "allocator": "jemalloc", "versions": {"torch": "1.13"}} | more


class Ratio(unittest.TestCase):
    def test_is_the_median_of_pairs_not_the_ratio_of_medians(self):
        self.assertEqual(ratio_interval([10, 200, 40], [10, 100, 10])[0], 2)

    def test_of_equal_pairs_has_an_interval_without_width(self):
        self.assertEqual(ratio_interval([30, 60, 90], [20, 40, 60]), (1.5, 1.5, 1.5))

    def test_of_three_pairs_spans_them_all(self):
        # The least is the median of 7 in 27 resamples, the greatest of as many: both above 2.5 %.
        self.assertEqual(ratio_interval([2, 1, 3], [1, 1, 1]), (2, 1, 3))

    def test_leaves_out_a_rare_outlier(self):
        # 9 of 10 equal: a median above 1 needs the outlier in 5 of 10 draws, in 0.16 % of resamples.
        self.assertEqual(ratio_interval([1] * 9 + [50], [1] * 10), (1, 1, 1))

    def test_needs_pairs(self):
        with self.assertRaises(ValueError):
            ratio_interval([1, 2], [1])


class Row(unittest.TestCase):
    def test_gives_medians_of_both_sides(self):
        ours = [line(rate, share_of_convolution_bound=share) for rate, share in ((200, 0.8), (300, 0.9), (220, 0.87))]
        theirs = [line(rate, peak_memory_bytes=250 << 20) for rate in (100, 150, 110)]
        row = table_row("a net", 1.5, ours, theirs)
        self.assertEqual(row, "| a net | 220 | 110 | 2.00 (2.00–2.00) | ≥ 1.5 | 87 % | 100 / 250 | 1.25 / 1.25 |")

    def test_says_when_there_was_but_one_run(self):
        row = table_row("a net", None, [line(50)], [line(2)])
        self.assertEqual(row, "| a net | 50 | 2 | 25.00 (one run each) | – | – | 100 / 100 | 1.25 / 1.25 |")

    def test_tells_how_many_pairs_remain(self):
        ours, theirs = [line(50), line(60)], [line(25), line(30)]
        self.assertIn("| 2.00 (2.00–2.00; 2 of 5 pairs) |", table_row("a net", None, ours, theirs, 3))
        self.assertIn("| 2.00 (1 of 5 pairs) |", table_row("a net", None, ours[:1], theirs[:1], 4))

    def test_fits_the_head(self):
        columns = {text.count("|") for text in [*HEAD.splitlines(), table_row("a net", 1.5, [line(1)], [line(1)])]}
        self.assertEqual(len(columns), 1)


class StandIns(unittest.TestCase):
    """compare.py with programs that print what they are told."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.calls = self.build / "calls"
        (self.build / "bin").mkdir()
        self.python = self.stand_in("python", line(10))
        self.stand_in("bin/step_bench", line(20))

    def stand_in(self, name, figures, fault=":"):
        """`fault` is done before the figures are printed, `$call` being the how manieth call of this program it is."""
        program = self.build / name
        note = f'(printf "%s\\t" {program.name} "$@"; echo) >> "{self.calls}"'
        call = f'call=$(grep -c "^{program.name}" "{self.calls}")'
        text = f"""#!/bin/sh\n[ "$1" = -c ] && exit 0\n{note}\n{call}\n{fault}\necho '{json.dumps(figures)}'\n"""
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        return program

    def steps_taken(self):
        """The words of every call that named a model."""
        calls = [call.split("\t") for call in self.calls.read_text(encoding="utf-8").splitlines()]
        return [call for call in calls if "--model" in call]

    def compare(self, *options):
        command = [sys.executable, ROOT / "bench" / "compare.py", "--build", self.build, "--python", self.python]
        return subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=60)

    def refused(self, *options):
        result = self.compare(*options)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        return result.stderr.splitlines()[-1]


class Compare(StandIns):
    def test_runs_both_sides_in_turn_behind_one_step_each(self):
        result = self.compare("--only", "resnet20-fp32", "--pairs", "3", "--steps", "7")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.steps_taken()
        self.assertEqual([call[0] for call in calls], ["step_bench", "python"] * 4)
        self.assertEqual([call[call.index("--steps") + 1] for call in calls], ["1"] * 2 + ["7"] * 6)
        self.assertIn("| ResNet-20, batch 128, fp32, 1 rank x 2 threads | 20 | 10 | 2.00 (2.00–2.00) |", result.stdout)

    def test_does_not_repeat_a_peer_without_kernels(self):
        self.stand_in("python", line(1))
        result = self.compare("--only", "resnet20-bf16")
        self.assertIn("| 20.00 (one run each) |", result.stdout)

    def test_refuses_without_jemalloc(self):
        self.stand_in("python", line(10, allocator="malloc"))
        self.assertIn("'libjemalloc.so.2'", self.refused("--only", "resnet20-fp32"))
        self.assertEqual(self.compare("--only", "resnet20-fp32", "--without-jemalloc").returncode, 0)

    def test_refuses_without_torch(self):
        self.assertRegex(self.refused("--python", "/usr/bin/false"), "'/usr/bin/false'.*torch.*--python")

    def test_refuses_without_step_bench(self):
        (self.build / "bin" / "step_bench").unlink()
        self.assertRegex(self.refused(), f"'{self.build}/bin' \\(--build\\).*step_bench")


def fails_at(*calls):
    return f'case $call in {"|".join(map(str, calls))}) echo "terminate | called" >&2; kill -ABRT $$;; esac'


class FailingRuns(StandIns):
    """A run that fails is repeated once, and costs its pair alone: one run in hundreds ended the whole comparison."""

    def pairs(self, *options, count=3):
        result = self.compare("--only", "resnet20-fp32", "--pairs", str(count), "--steps", "7", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def row(self, result):
        return [text for text in result.stdout.splitlines() if text.startswith("| ResNet-20")]

    def test_one_that_fails_once_is_repeated_and_told(self):
        self.stand_in("python", line(10), fails_at(3))
        result = self.pairs()
        self.assertIn("| 2.00 (2.00–2.00) |", result.stdout)
        repeated = ["step_bench", "python", "python"]
        self.assertEqual([call[0] for call in self.steps_taken()], ["step_bench", "python"] * 2 + repeated + repeated[:2])
        # A library's warning may precede the program's output.
        self.assertRegex(result.stderr, r"failed \(-6\):\n(ERROR: ld\.so: .*\n)*terminate \| called\n\n"
                                        r"  PyTorch: .* repeated once")

    def test_one_that_fails_twice_costs_its_pair(self):
        self.stand_in("python", line(10), fails_at(3, 4))
        result = self.pairs()
        self.assertIn("| 2.00 (2.00–2.00; 2 of 3 pairs) |", result.stdout)
        self.assertRegex(result.stderr, r"\nresnet20-fp32: pair 2 of 3 .*lost\n")

    def test_one_of_ours_costs_its_pair_alike(self):
        self.stand_in("bin/step_bench", line(20), fails_at(2, 3, 4, 5))
        self.assertIn("| 2.00 (1 of 3 pairs) |", self.pairs().stdout)
        self.assertEqual([call[0] for call in self.steps_taken()][2:], ["step_bench"] * 5 + ["python"])

    def test_the_first_that_only_counts_steps_is_repeated_too(self):
        self.stand_in("python", line(10), fails_at(1))
        self.assertIn("| 2.00 (2.00–2.00) |", self.pairs().stdout)

    def test_a_case_without_pairs_has_a_row_without_figures(self):
        self.stand_in("python", line(10), 'case "$*" in *resnet18*) echo "no | kernels" >&2; exit 3;; esac')
        result = self.pairs("--only", "resnet18-fp32")
        rows = [text for text in result.stdout.splitlines() if text.startswith("| ResNet")]
        self.assertEqual(rows[0], "| ResNet-18 (CIFAR), batch 64, fp32, 1 rank x 2 threads | – | – "
                                  "| not measured: no / kernels | – | – | – | – |")
        self.assertIn("| 2.00 (2.00–2.00) |", rows[1])
        self.assertLess(result.stdout.index("- CPU: "), result.stdout.index(rows[0]))

    def test_pairs_that_all_fail_leave_a_row_without_figures(self):
        self.stand_in("python", line(10), f'case "$*" in *resnet20*) {fails_at(*range(2, 20))};; esac')
        result = self.pairs("--only", "resnet18-fp32", count=2)
        self.assertIn("| not measured: terminate / called |", result.stdout)

    def test_where_all_fail_so_does_the_comparison(self):
        self.stand_in("python", line(10), "echo 'no memory' >&2; exit 3")
        result = self.compare("--only", "resnet20-fp32", "--only", "resnet18-fp32")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "no memory")

    def test_a_program_without_figures_has_failed(self):
        self.stand_in("python", line(10), "[ $call -gt 2 ] || { echo 'all is { well }'; exit 0; }")
        result = self.compare("--only", "resnet20-fp32")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'all is { well }'", result.stderr.splitlines()[-1])


class Limits(StandIns):
    def test_quick_runs_each_side_once(self):
        result = self.compare("--only", "resnet20-fp32", "--quick")
        self.assertIn("| 2.00 (one run each) |", result.stdout)
        calls = self.steps_taken()
        self.assertEqual([call[0] for call in calls], ["step_bench", "python"])
        self.assertEqual([call[call.index("--steps") + 1] for call in calls], ["20", "20"])

    def test_starts_no_run_when_time_is_up(self):
        self.stand_in("python", line(10), "[ $call -lt 3 ] || sleep 60")
        options = ("--pairs", "4", "--steps", "7", "--time-limit", "6", "--only", "resnet20-fp32", "--only", "resnet18-fp32")
        result = self.compare(*options)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [text for text in result.stdout.splitlines() if text.startswith("| ResNet")]
        self.assertIn("| 2.00 (1 of 4 pairs) |", rows[0])
        self.assertRegex(rows[1], r"\| not measured: .*--time-limit.* \|")
        self.assertRegex(result.stderr, r"step_peer\.py .* [1-6] s\.\n  PyTorch: .* repeated once")

    def test_gives_our_side_more_options(self):
        self.compare("--only", "resnet20-fp32", "--quick", "--ours", "--no-graphs --reduce mpi")
        ours, theirs = self.steps_taken()
        self.assertEqual(ours[-4:-1], ["--no-graphs", "--reduce", "mpi"])
        self.assertNotIn("--no-graphs", theirs)

    def test_prints_a_row_as_its_case_ends(self):
        self.stand_in("python", line(10), "[ $call -lt 2 ] || sleep 60")
        command = [sys.executable, ROOT / "bench" / "compare.py", "--build", self.build, "--python", self.python, "--quick"]
        with subprocess.Popen([*command, "--only", "resnet18-fp32", "--only", "resnet20-fp32"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            rows = iter(process.stdout.readline, "")
            self.assertIn("| 2.00 (one run each) |", next(row for row in rows if row.startswith("| ResNet-18")))
            process.terminate()


class CompareOnGpu(StandIns):
    """The same stand-ins as programs for a GPU; what they would measure is not for a test."""

    def setUp(self):
        super().setUp()
        self.stand_in("bin/step_bench", line(300, device="cuda: a GPU, 80 GiB", device_memory_bytes=200 << 20))
        self.stand_in("python", line(200))

    def compare(self, *options):
        return super().compare("--device", "cuda", *options)

    def test_pairs_both_sides_on_the_gpu(self):
        result = self.compare("--only", "resnet50-bf16", "--pairs", "3", "--steps", "7")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.steps_taken()
        self.assertEqual([call[0] for call in calls], ["step_bench", "python"] * 4)
        for call in calls:
            self.assertEqual(call[call.index("--device") + 1], "cuda")
            self.assertEqual(call[call.index("--image-size") + 1], "224")
            self.assertNotIn("--threads", call)
        self.assertTrue(calls[1][1].endswith("gpu_step_peer.py"))
        self.assertEqual(calls[1][calls[1].index("--mode") + 1], "compile")
        title = "ResNet-50, 224 px, batch 256, bf16, against compile"
        self.assertIn(f"| {title} | 300 | 200 | 1.50 (1.50–1.50) | ≥ 1.3 | – | 200 / 100 |", result.stdout)
        self.assertIn("- GPU: cuda: a GPU, 80 GiB", result.stdout)

    def test_goes_on_where_one_case_fails(self):
        refusal = 'case "$*" in *compile*) echo "no | compiler" >&2; exit 2;; esac'
        self.python.write_text(
            f"""#!/bin/sh\n[ "$1" = -c ] && exit 0\n{refusal}\necho '{json.dumps(line(200))}'\n""", encoding="utf-8"
        )
        result = self.compare("--pairs", "2", "--steps", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("| not measured: no / compiler |"), 3)
        self.assertEqual(result.stdout.count("| 1.50 (1.50–1.50) |"), 1)
        self.assertEqual(len({text.count("|") for text in result.stdout.splitlines() if text.startswith("|")}), 1)

    def test_fails_where_no_case_can_be_measured(self):
        (self.build / "bin" / "step_bench").write_text("#!/bin/sh\necho 'no GPU here' >&2\nexit 2\n", encoding="utf-8")
        result = self.compare("--pairs", "1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr.splitlines()[-1], "no GPU here")

    def test_starts_a_bundle_by_its_own_script(self):
        run = self.build / "run"
        run.write_text(f'#!/bin/sh\necho bundle "$@" >> "{self.calls}"\nexec {self.build}/bin/"$@"\n', encoding="utf-8")
        run.chmod(0o755)
        self.assertEqual(self.compare("--only", "resnet18-bf16-eager", "--pairs", "1").returncode, 0)
        self.assertIn("bundle step_bench --model resnet18", self.calls.read_text(encoding="utf-8"))

    def test_refuses_a_case_of_the_other_device(self):
        self.assertRegex(self.refused("--only", "resnet20-fp32"), "--only.*--device cuda.*resnet18-bf16-compile")


if __name__ == "__main__":
    unittest.main()
