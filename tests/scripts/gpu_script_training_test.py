#!/usr/bin/env python3
"""What tests/gpu.sh makes of trainings, of kernels that it profiles, and of programs that fail:
gpu_script_training_test.py SOURCE_FOLDER
"""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support" / "gpu"))

from pretended_bundle import TESTED, Bundle, rows_of, step_bench, training  # noqa: E402: found only now

MEASURED = """"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","7","void for_each<lockstep::cuda::Normalize<1>>(long, T1)","dram__bytes_read.sum","byte","3,000,000"
"0","7","void for_each<lockstep::cuda::Normalize<1>>(long, T1)","dram__bytes_write.sum","byte","1,000,000"
"0","7","void for_each<lockstep::cuda::Normalize<1>>(long, T1)","gpu__time_duration.sum","ns","2,000"
"1","7","void for_each<lockstep::cuda::Normalize<1>>(long, T1)","gpu__time_duration.sum","ns","2,000"
"2","7","cutlass__conv(Params)","gpu__time_duration.sum","ns","12,000"
"""
PROJECTED = """Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns)
lockstep:in forward,PushPop,99000,9,3,33000.0,33000.0
lockstep:forward conv1,PushPop,90000,9,3,30000.0,10000.0
lockstep:backward conv1,PushPop,60000,9,3,20000.0,20000.0
lockstep:backward fc,PushPop,30000,9,3,10000.0,10000.0
"""


class Part(unittest.TestCase):
    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)

    def rows(self, code, part="training"):
        self.done = self.bundle.run(part, "--seconds", "200")
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return rows_of(self.done.stdout)


class Training(Part):
    def test_is_one_on_pictures_and_the_same_one_five_times(self):
        self.bundle.tool("compute-sanitizer", "echo ========= ERROR SUMMARY: 0 errors")
        rows = self.rows(0)
        self.assertEqual(self.done.stderr, "")
        self.assertEqual(rows["training on pictures"], "test accuracy 95.00 %")
        self.assertEqual(rows["its model"], "test accuracy 95.00 %, on the CPU 95.00 %")
        self.assertEqual(rows["same weights"], "5 trainings: e2c4")
        for tool in ("memcheck", "initcheck"):
            self.assertEqual(rows[tool], "ERROR SUMMARY: 0 errors")
        trainings = (self.bundle.path / "bin" / "trainings").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sum("/killed " in call for call in trainings), 2, "once more after the kill")
        self.assertEqual(sum("--shard-optimizer" in call for call in trainings), 1)
        self.assertIn("\nkilled at ", self.bundle.result("training.log"))

    def test_other_weights_on_four_ranks_are_told(self):
        self.bundle.program("train_imagenet", training('[ "$RANKS" = 4 ] && hash=0ff5'))
        self.assertEqual(self.rows(1)["same weights"], "FAILED: 1 rank: e2c4; 2 ranks: e2c4; 4 ranks: 0ff5; "
                                                       "4 ranks sharded: 0ff5; killed: e2c4")

    def test_a_model_must_be_worth_the_same_on_the_cpu(self):
        other = TESTED.replace("echo", "[[ $* == *cpu* ]] && echo 'top-1    35.00 %' && exit\necho")
        self.bundle.program("evaluate", other)
        self.assertEqual(self.rows(1)["its model"], "FAILED: test accuracy 95.00 %, on the CPU 35.00 %")

    def test_one_that_fails_says_why_and_what_the_libraries_said(self):
        text = "env | grep -E '^(NCCL|CUDNN)'; echo called >\"${CUDNN_LOGDEST_DBG:-/dev/null}\"; echo 'out of memory'; exit 71"
        self.bundle.program("train_imagenet", f"#!/bin/bash\n{text}\n")
        rows = self.rows(1)
        self.assertEqual(rows["training on pictures"], "FAILED: out of memory")
        self.assertNotIn("its model", rows)
        self.assertEqual(rows["hash: 1 rank"], "FAILED: out of memory")
        log = self.bundle.result("training.log")
        self.assertRegex(log, "NCCL_DEBUG=INFO\n(.*\n)*.*CUDNN_LOGLEVEL_DBG=2|CUDNN_LOGLEVEL_DBG=2\n(.*\n)*NCCL_DEBUG=INFO")
        self.assertIn("\ncalled\n", self.bundle.result("training.libraries.log"))

    def test_an_access_outside_of_memory_is_told(self):
        self.bundle.tool("compute-sanitizer", "case $* in *memcheck*) echo ========= Invalid __global__ read of size 4 bytes;; "
                                              "*initcheck*) echo ========= Uninitialized __global__ memory read;; esac; exit 9")
        rows = self.rows(1)
        self.assertEqual(rows["memcheck"], "FAILED: ========= Invalid __global__ read of size 4 bytes")
        self.assertEqual(rows["initcheck"], "FAILED: ========= Uninitialized __global__ memory read")

    def test_without_a_sanitizer_no_access_is_checked(self):
        if subprocess.run(["bash", "-c", "command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer'"],
                          stdout=subprocess.DEVNULL, check=False).returncode == 0:
            self.skipTest("this machine has compute-sanitizer")
        rows = self.rows(0)
        for tool in ("memcheck", "initcheck"):
            self.assertEqual(rows[tool], "not run: compute-sanitizer is not installed")


class Kernels(Part):
    def test_are_summed_up_by_name(self):
        self.bundle.tool("ncu", f"echo '{{\"steps\": 1}}'\ncat <<'CSV'\n{MEASURED}CSV\nexit 137\n")
        rows = self.rows(0, "kernels")
        self.assertEqual(rows["resnet50-bf16"], "3 launches, 16 us")
        self.assertIn("| `cutlass__conv` | 1 | 12.0 | 75.0 % | 0 |\n| `Normalize` | 2 | 4.0 | 25.0 % | 1000 |\n",
                      self.done.stdout)

    def test_that_cannot_be_measured_say_why(self):
        self.bundle.tool("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM: no permission'; exit 1")
        self.assertEqual(self.rows(1, "kernels")["resnet50-bf16"], "FAILED: ==ERROR== ERR_NVGPUCTRPERM: no permission")

    def test_layers_are_summed_up_by_name(self):
        self.bundle.tool("nsys", f"""case $1 in
profile) touch "$(sed 's/.*--output=\\(.*\\) --force-overwrite.*/\\1/' <<<"$*").nsys-rep";;
stats) echo Generating; [ -e "${{@: -1}}" ] && cat <<'CSV'
{PROJECTED}CSV
esac\n""")
        rows = self.rows(0, "kernels")
        self.assertEqual(rows["resnet50-bf16, layers"], "2 layers, 40 us")
        self.assertIn("\n| layer | forward, us | backward, us | share |\n|---|---|---|---|\n"
                      "| `conv1` | 10.0 | 20.0 | 75.0 % |\n| `fc` | 0.0 | 10.0 | 25.0 % |\n", self.done.stdout)

    def test_layers_that_cannot_be_measured_say_why(self):
        self.bundle.tool("nsys", "[ $1 = profile ] || echo 'SKIPPED: no NVTX data'")
        self.assertEqual(self.rows(1, "kernels")["resnet18-bf16, layers"], "FAILED: SKIPPED: no NVTX data")

    def test_of_a_step_that_fails_are_not_measured(self):
        self.bundle.tool("ncu", "exit 1")
        self.bundle.program("step_bench", step_bench("case $* in *resnet50*) echo oh; exit 3;; esac"))
        self.assertEqual(self.rows(1, "kernels")["resnet50-bf16"], "FAILED: oh")


if __name__ == "__main__":
    unittest.main()
