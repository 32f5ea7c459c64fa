#!/usr/bin/env python3
"""Tests the PyTorch peer for GPUs where it can run without one, on the CPU: gpu_peer_test.py SOURCE_FOLDER.

Skipped (77) where no python3 has PyTorch.
"""

import json
import pathlib
import subprocess
import sys
import unittest

PEER = pathlib.Path(sys.argv.pop(1)) / "bench" / "peers" / "gpu_step_peer.py"
SKIPPED = 77


def has_torch(python):
    try:
        return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


PYTHON = next((python for python in (sys.executable, "/usr/bin/python3") if has_torch(python)), None)


def peer(*options):
    words = [PYTHON, PEER, "--model", "resnet20", "--batch", "2", "--steps", "2", "--untimed", "0", *options]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)


class GpuPeer(unittest.TestCase):
    def test_prints_the_fields_that_a_comparison_reads(self):
        result = peer("--device", "cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        line = json.loads(result.stdout)
        for field in ("samples_per_second", "step_ms_median", "first_step_seconds", "peak_memory_bytes"):
            self.assertGreater(line[field], 0)
        self.assertEqual((line["steps"], line["batch_per_rank"], line["mode"]), (2, 2, "eager"))
        self.assertIn("torch", line["versions"])

    def test_refuses_fp16_without_a_gpu(self):
        result = peer("--device", "cpu", "--precision", "fp16")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, "^--precision fp16 .*\n$")

    def test_says_what_it_lacks_on_a_machine_without_a_gpu(self):
        result = peer()
        if result.returncode == 0:
            self.skipTest("there is a GPU")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^PyTorch .*--device cuda.*\n$")


if __name__ == "__main__":
    if PYTHON is None:
        print("no python3 here can import torch")
        sys.exit(SKIPPED)
    unittest.main()
