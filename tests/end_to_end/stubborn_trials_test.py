#!/usr/bin/env python3
"""search and trials that do not end: programs that ignore signals, and processes that they leave behind.

stubborn_trials_test.py PROGRAMS
"""
import json
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
SPACE = """program: ./trial
searcher: {name: random, metric: x, smaller_is_better: true, max_length: {batches: 1}, max_trials: 2}
hyperparameters: {n: {type: int, minval: 1, maxval: 9}}
"""
TRIAL = """#!/bin/bash
for word; do case $word in --print-recipe) echo '{"metrics": ["x"]}'; exit ;; --output=*) folder=${word#*=} ;; esac; done
mkdir -p "$folder"
BODY
echo '{"kind":"validation","epoch":1,"step":1,"x":1}' >>"$folder/metrics.jsonl"
"""


class StubbornTrials(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "space.yaml").write_text(SPACE)

    def start(self, body, **more):
        trial = self.folder / "trial"
        trial.write_text(TRIAL.replace("BODY", body))
        trial.chmod(0o755)
        return subprocess.Popen([PROGRAMS / "search", "space.yaml", "--output", "out"], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)

    def journal(self):
        return [json.loads(line) for line in (self.folder / "out/search.jsonl").read_text().splitlines()]

    def test_processes_that_a_trial_leaves_behind_are_ended(self):
        search = self.start('sleep 600 & echo $! >"$folder/child"')
        words = search.communicate(timeout=60)[0]
        self.assertEqual(search.returncode, 0, words)
        for child in self.folder.glob("out/trial-*/child"):
            status = pathlib.Path(f"/proc/{child.read_text().strip()}/stat")
            self.assertTrue(not status.exists() or status.read_text().split()[2] == "Z", words)

    def test_a_second_signal_ends_a_trial_that_ignores_all(self):
        search = self.start("trap '' USR1 TERM INT HUP; touch \"$folder/begun\"; for i in {1..600}; do sleep 0.1; done")
        while not list(self.folder.glob("out/trial-*/begun")):
            self.assertIsNone(search.poll(), "it ended by itself")
            time.sleep(0.05)
        search.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertIsNone(search.poll())
        search.send_signal(signal.SIGTERM)
        words = search.communicate(timeout=40)[0]
        self.assertEqual(search.returncode, 75, words)
        self.assertIn("at once", words)
        self.assertEqual(len(self.journal()), 1, "nothing is decided")

    def test_a_limit_on_file_sizes_is_an_error_with_a_name(self):
        for most in (100, 3000):  # bytes: less than the lock, and than the page
            search = self.start("", preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
            words = search.communicate(timeout=60)[0]
            self.assertIn(search.returncode, (0, 1, 2), words)
            self.assertIn("ulimit -f", words)


if __name__ == "__main__":
    unittest.main()
