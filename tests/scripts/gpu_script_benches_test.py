#!/usr/bin/env python3
"""What tests/gpu.sh measures, and with how much of Lockstep where a training's first steps fail:
gpu_script_benches_test.py SOURCE_FOLDER
"""

import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support" / "gpu"))

from pretended_bundle import PEER_FIGURES, Bundle, echo, rows_of, step_bench, write  # noqa: E402: found only now


class Ladder(unittest.TestCase):
    def benches(self, fault):
        bundle = Bundle(ROOT)
        self.addCleanup(bundle.folder.cleanup)
        bundle.program("step_bench", step_bench(fault))
        return bundle, bundle.run("benches", "--seconds", "60")

    def verdict(self, fault):
        """The verdict, and what a bench after it was started with."""
        bundle, done = self.benches(fault)
        self.assertEqual(done.returncode, 1, done.stderr)
        last = next(call for call in bundle.calls() if "--model resnet18" in call)
        return rows_of(done.stdout)["verdict"], last.partition("--verbose")[2]

    def test_is_one_rung_where_everything_works(self):
        bundle, done = self.benches("")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = rows_of(done.stdout)
        self.assertNotIn("verdict", rows)
        self.assertEqual(rows["resnet50-bf16"], "300.5 samples/s, first step 1.25 s")
        self.assertEqual(rows["first-step-resnet50-bf16"], "9.5 s, with kernels chosen before 3.5 s")
        for name in ("resnet50-tf32", *(f"resnet20-{ranks}ranks-1gpu-bf16" for ranks in (1, 2, 4))):
            self.assertEqual(rows[name], "300.5 samples/s, first step 1.25 s")
        self.assertEqual(len(bundle.calls()), 2 + 4 * 2 + 1 + 3)
        self.assertTrue(all("fp32" in call and "tf32" not in call for call in bundle.calls()[-2:]), "fp32 comes last")
        self.assertEqual([call for call in bundle.calls() if "--tf32" in call], bundle.calls()[-4:-2])

    def test_passes_stand_beside_a_copy(self):
        _, done = self.benches("")
        self.assertEqual(rows_of(done.stdout)["passes"], "2 passes, 95 % of a copy (median)")
        self.assertIn("\n| pass | GB/s | of a copy |\n|---|---|---|\n| `copy/bf16/1x2x3x4` | 4000 | 100 % |\n"
                      "| `add/bf16/1x2x3x4` | 3600 | 90 % |\n", done.stdout)

    def test_what_cudnn_knows_of_the_gpu_is_a_file(self):
        bundle, done = self.benches("")
        self.assertEqual(json.loads(bundle.result("cudnn_device.json")), {"deviceVer": 900})
        bundle.program("describe_gpu", "#!/bin/bash\necho none; exit 1\n")
        self.assertEqual(rows_of(bundle.run("benches", "--seconds", "60").stdout)["cudnn_device.json"], "FAILED: none")

    def test_two_ranks_of_a_gpu_use_nccl_from_2_30_on(self):
        name = "resnet20-2ranks-1gpu-nccl"
        bundle, done = self.benches("")
        self.assertEqual(rows_of(done.stdout)[name], "left out: NCCL 2.30 or newer is needed, the bundle loads 2.28.9")
        for version in ("2.30.3", "3.0.1"):
            bundle.program("step_bench", step_bench('echo "$NCCL_MULTI_RANK_GPU_ENABLE" >>"$0.shared"', nccl=version))
            rows = rows_of(bundle.run("benches", "--seconds", "60").stdout)
            self.assertEqual(rows[name], "300.5 samples/s, first step 1.25 s")
            self.assertEqual(sum("--reduce nccl" in call for call in bundle.calls()), 1)
            shared = (bundle.path / "bin" / "step_bench.shared").read_text(encoding="utf-8").split("\n")
            self.assertEqual(shared.count("1"), 1)
            (bundle.path / "bin" / "step_bench.shared").unlink()
            (bundle.path / "bin" / "calls").unlink()

    def test_tells_nccl(self):
        fault = "case $* in *'--reduce mpi'*) ;; *) echo 'NCCL: no | socket' >&2; exit 1;; esac"
        self.assertEqual(self.verdict(fault), ("NCCL fails. Goes on with --reduce mpi", " --reduce mpi"))

    def test_tells_why_a_start_failed(self):
        _, done = self.benches("echo 'NCCL: no | socket' >&2; exit 1")
        self.assertEqual(rows_of(done.stdout)["start with everything"], "FAILED: NCCL: no / socket")

    def test_tells_recording(self):
        self.assertEqual(self.verdict("case $* in *--no-graphs*) ;; *) kill -BUS $$;; esac"),
                         ("recording steps as graphs fails. Goes on with --no-graphs", " --no-graphs"))

    def test_tells_what_fails_together_only(self):
        self.assertEqual(self.verdict("case $* in *--no-graphs*|*'--reduce mpi'*) ;; *) exit 3;; esac"),
                         ("NCCL and recording work, but not together. Goes on with --reduce mpi", " --reduce mpi"))

    def test_tells_what_fails_each(self):
        self.assertEqual(self.verdict("case $* in *'--no-graphs --reduce mpi'*) ;; *) exit 3;; esac"),
                         ("NCCL fails, and so does recording steps as graphs. Goes on with --no-graphs --reduce mpi",
                          " --no-graphs --reduce mpi"))

    def test_tells_kernels_and_tries_the_benches_all_the_same(self):
        self.assertEqual(self.verdict("case $* in *lenet*) echo oh; exit 3;; esac"),
                         ("it is neither NCCL nor recording alone: kernels, libraries or the driver fail. "
                          "Goes on with --no-graphs --reduce mpi", " --no-graphs --reduce mpi"))

    def test_does_not_give_two_ranks_an_option_twice(self):
        bundle, _ = self.benches("case $* in *'--no-graphs --reduce mpi'*) ;; *) exit 3;; esac")
        two_ranks = [call for call in bundle.calls() if "resnet20" in call]
        self.assertTrue(all(call.endswith("--steps 30 --reduce mpi --no-graphs") for call in two_ranks), two_ranks)

    def test_skips_where_there_is_no_gpu(self):
        for words in ("no GPU is visible to this rank.", "no GPU can be used: this node has no NVIDIA driver (why)."):
            _, done = self.benches(f"echo '{words}' >&2; exit 2")
            self.assertEqual(done.returncode, 77)
            self.assertTrue(done.stdout.endswith(f"{words}\nskipped: no GPU here\n"), done.stdout)

    def test_does_not_skip_where_a_gpu_cannot_be_used(self):
        _, done = self.benches("echo 'no GPU can be used: out of date.' >&2; exit 2")
        self.assertEqual(done.returncode, 1)

    def test_a_bench_without_figures_has_failed(self):
        _, done = self.benches("case $* in *resnet18*fp16*) echo done; exit 0;; esac")
        self.assertEqual((done.returncode, rows_of(done.stdout)["resnet18-fp16"]), (1, "FAILED: done"))


class Peers(unittest.TestCase):
    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)

    def peers(self, fault="", seconds=60):
        write(self.bundle.root / "python", f"#!/bin/bash\n[ $1 = -c ] && exit 0\n{fault}\n{echo(PEER_FIGURES)}\n")
        return self.bundle.run("peers", "--seconds", str(seconds), "--python", str(self.bundle.root / "python"))

    def test_come_quick_first_and_then_in_pairs(self):
        done = self.peers()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [line for line in done.stdout.splitlines() if "samples" not in line and line.startswith("| ResNet")]
        self.assertEqual(len(rows), 8)
        self.assertTrue(all("| 1.50 (one run each) |" in row for row in rows[:4]), rows)
        self.assertIn("bf16, against eager", rows[0])
        self.assertTrue(all("| 1.50 (1.50–1.50) |" in row for row in rows[4:]), rows)
        self.assertEqual(done.stdout.count("| whole training steps |"), 1)
        self.assertEqual(self.bundle.result("peers.md"), done.stdout)

    def test_a_case_that_fails_costs_itself(self):
        done = self.peers('case "$*" in *resnet50*fp16*) echo "no compiler" >&2; exit 3;; esac')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(rows_of(done.stdout)["resnet50-fp16, --quick"], "FAILED: no compiler")
        self.assertEqual(done.stdout.count("| 1.50 (1.50–1.50) |"), 3)
        self.assertEqual(list(rows_of(done.stdout))[-1], "resnet50-fp16, --pairs", "is tried again last")

    def test_pass_the_mode_of_compilation_on(self):
        write(self.bundle.root / "python", f"#!/bin/bash\n[ $1 = -c ] && exit 0\necho $* >>\"$0.calls\"\n{echo(PEER_FIGURES)}\n")
        done = self.bundle.run("peers", "--seconds", "60", "--python", str(self.bundle.root / "python"),
                               "--compile-mode", "max-autotune")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("torch.compile: max-autotune", done.stdout)
        calls = (self.bundle.root / "python.calls").read_text(encoding="utf-8").splitlines()
        self.assertTrue(all("--compile-mode max-autotune" in call for call in calls if "--mode compile" in call), calls)

    def test_a_case_whose_time_is_short_is_left_out_and_has_not_failed(self):
        done = self.peers('case "$*" in *compile\ *) sleep 60;; esac', seconds=10)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("FAILED", done.stdout)
        self.assertRegex(rows_of(done.stdout)["resnet50-bf16, --quick"], "^left out, ")

    def test_run_on_the_rung_that_works(self):
        self.bundle.program("step_bench", step_bench("case $* in *--no-graphs*|--version) ;; *) exit 3;; esac"))
        done = self.peers()
        self.assertEqual(done.stdout.count("| 1.50 (1.50–1.50) |"), 4)
        self.assertTrue(all(call.endswith(" --no-graphs") for call in self.bundle.calls() if "resnet" in call))

    def test_are_skipped_without_torch(self):
        done = self.bundle.run("peers", "--python", "/usr/bin/false")
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stdout, "not compared: .*/usr/bin/false")


if __name__ == "__main__":
    unittest.main()
