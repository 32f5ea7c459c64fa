#!/usr/bin/env python3
"""Tests the PyTorch peer for CPUs: step_peer_test.py SOURCE_FOLDER

A pretended torch takes notes of what is called; where a python3 has the real one, two ranks run with it, too.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

PEER = pathlib.Path(sys.argv.pop(1)) / "bench" / "peers" / "step_peer.py"
OPTIONS = ["--model", "resnet20", "--batch", "2", "--steps", "2", "--untimed", "0"]
# What the peer asks of torch. Calls of torch.distributed go to standard output, among what the peer prints.
PRETENDED_TORCH = '''
import sys, types
from unittest.mock import MagicMock

class Number:
    def __init__(self, value, **_): self.value = value
    def item(self): return self.value

class Module:
    def __init__(self, *_, **__): pass
    def to(self, *_, **__): return self
    def __call__(self, *_): return MagicMock()
    def parameters(self): return []

def noted(name):
    return lambda *words: print(name, *map(str, words), flush=True)

nn = types.ModuleType("torch.nn")
for name in ("Module", "Conv2d", "BatchNorm2d", "ReLU", "Sequential", "Identity", "AdaptiveAvgPool2d", "Flatten", "Linear"):
    setattr(nn, name, type(name, (Module,), {}))
nn.functional, nn.parallel = MagicMock(), MagicMock()
distributed = types.ModuleType("torch.distributed")
for name in ("init_process_group", "destroy_process_group"):
    setattr(distributed, name, noted(name))
distributed.get_rank, distributed.ReduceOp = (lambda: 0), MagicMock()
distributed.barrier = distributed.all_reduce = lambda *_: None
sys.modules.update({"torch.nn": nn, "torch.nn.functional": nn.functional, "torch.distributed": distributed})

__version__, tensor, float64 = "0", Number, None
__config__, optim = MagicMock(), MagicMock()
__config__.show.return_value = ""
channels_last = manual_seed = randn = randint = set_num_threads = MagicMock()
'''


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class PretendedTorch(unittest.TestCase):
    def lines(self, **environment):
        """What rank 0 printed: its calls of torch.distributed, and "figures"."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text(PRETENDED_TORCH, encoding="utf-8")
            result = subprocess.run([sys.executable, PEER, *OPTIONS], capture_output=True, text=True, check=False, timeout=60,
                                    env=os.environ | {"PYTHONPATH": folder} | environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return ["figures" if line.startswith("{") else line for line in result.stdout.splitlines()]

    def test_two_ranks_leave_their_group_behind_the_figures(self):
        # Without that the process ended while gloo's threads still worked, and now and then they aborted it.
        self.assertEqual(self.lines(WORLD_SIZE="2"), ["init_process_group gloo", "figures", "destroy_process_group"])

    def test_one_rank_has_no_group(self):
        self.assertEqual(self.lines(), ["figures"])


class RealTorch(unittest.TestCase):
    def test_two_ranks_print_one_line_of_figures_and_end_well(self):
        python = python_with_torch()
        if python is None:
            self.skipTest("no python3 here can import torch")
        with tempfile.TemporaryDirectory() as logs:
            launcher = [python, "-m", "torch.distributed.run", "--master_port", str(free_port()), "--redirects", "1"]
            command = [*launcher, "--tee", "1", "--log_dir", logs, "--nproc_per_node=2", PEER, *OPTIONS]
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120,
                                    env=os.environ | {"OMP_NUM_THREADS": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        line = json.loads(result.stdout[result.stdout.index("{"):])
        self.assertEqual((line["ranks"], line["batch_per_rank"]), (2, 2))
        self.assertGreater(line["samples_per_second"], 0)


if __name__ == "__main__":
    unittest.main()
