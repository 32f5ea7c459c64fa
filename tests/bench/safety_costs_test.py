#!/usr/bin/env python3
"""What bench/safety_costs.py makes of its runs: safety_costs_test.py SOURCE_FOLDER.

The programs are stand-ins that take a chosen time: what safety really costs is not for a test.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
TRAIN_CIFAR = """#!/usr/bin/env python3
import json, os, pathlib, sys
end = os.times().user + (0.2 if SAFE in " ".join(sys.argv) else 0.1)
while os.times().user < end:
    pass
output = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
output.mkdir(exist_ok=True)
seconds = 12.0 if SAFE in " ".join(sys.argv) else 10.0
(output / "summary.json").write_text(json.dumps({"training_seconds": seconds}))
"""


class SafetyCosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "bin").mkdir()
        self.stand_in("make_shards", "#!/bin/sh\n")

    def stand_in(self, name, text):
        program = self.build / "bin" / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)

    def costs(self, case, words_of_the_safe_run):
        self.stand_in("train_cifar", TRAIN_CIFAR.replace("SAFE", repr(words_of_the_safe_run)))
        result = subprocess.run([sys.executable, ROOT / "bench" / "safety_costs.py", "--build", self.build, "--pairs",
                                 "3", "--only", case], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()[-1]

    def test_gives_the_share_by_which_training_takes_longer(self):
        row = self.costs("virtual-12", "--virtual-ranks 12")
        self.assertIn("ResNet-18 | +20.0 % (+20.0 to +20.0) | +", row)
        self.assertTrue(row.endswith(" |  |"), row)

    def test_gives_the_share_of_processor_time_beside_it(self):
        share = self.costs("virtual-12", "--virtual-ranks 12").split(" | ")[2]
        self.assertGreater(float(share.split()[0]), 10)  # twice as long, but for the start of the stand-in

    def test_spreads_checkpoints_over_as_many_minutes(self):
        # Two seconds more for six checkpoints: a third of a second in a minute.
        self.assertTrue(self.costs("checkpoints", "--checkpoint-every 2").endswith("2 ranks | +0.6 % (+0.6 to +0.6) |  | ≤ 2 % |"))


if __name__ == "__main__":
    unittest.main()
