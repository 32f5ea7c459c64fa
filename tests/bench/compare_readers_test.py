#!/usr/bin/env python3
"""What compare_readers.py makes of programs that pretend, or with BUILD of real ones: compare_readers_test.py ROOT [BUILD]

The real ones read CIFAR-10 from LOCKSTEP_TEST_DATA, and want a python3 with torch, torchvision and h5py.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
CIFAR = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "")) / "cifar-10-batches-bin"
SKIPPED = 77
# Two threads are the fastest, and one worker.
PICTURE_BENCH = """#!/usr/bin/env python3
import json, sys
threads = int(sys.argv[sys.argv.index("--threads") + 1])
print(json.dumps({"samples_per_second": 3000 if threads == 2 else 1000, "threads": threads}))
"""
PYTHON = """#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "-c":
    print(HAS_WEBDATASET)
elif "--write-tars" not in sys.argv:
    workers = int(sys.argv[sys.argv.index("--workers") + 1])
    rate = {"h5py": 500, "webdataset": 250}[sys.argv[sys.argv.index("--reader") + 1]]
    print("a warning\\n" + json.dumps({"samples_per_second": rate * (2 if workers == 1 else 1), "workers": workers,
                                     "allocator": "ALLOCATOR", "versions": {"PyTorch": "2.0"}}))
"""
MAKE_SHARDS = """#!/usr/bin/env python3
import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).mkdir()
"""


class CompareReaders(unittest.TestCase):
    def compare(self, *words, has_webdataset="True", allocator="jemalloc"):
        with tempfile.TemporaryDirectory() as name:
            build = pathlib.Path(name)
            (build / "bin").mkdir()
            peer = PYTHON.replace("HAS_WEBDATASET", has_webdataset).replace("ALLOCATOR", allocator)
            for program, text in (("picture_bench", PICTURE_BENCH), ("make_shards", MAKE_SHARDS), ("python", peer)):
                (build / "bin" / program).write_text(text)
                (build / "bin" / program).chmod(0o755)
            command = [sys.executable, ROOT / "bench/compare_readers.py", "--build", build, "--python", build / "bin/python"]
            return subprocess.run([*command, "--pairs", "2", *words], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def test_each_side_runs_with_its_best_number_and_gives_a_row(self):
        result = self.compare("--cifar", "somewhere")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = result.stdout.splitlines()[-2:]
        self.assertEqual(rows[0], "| CIFAR-10, images of 32 pixels | h5py | 3000 | 2 | 1000 | 1 | 3.00 (3.00–3.00) |")
        self.assertEqual(rows[1], "| CIFAR-10, images of 32 pixels | webdataset | 3000 | 2 | 500 | 1 | 6.00 (6.00–6.00) |")
        self.assertIn("PyTorch 2.0, jemalloc", result.stdout)
        self.assertIn("medians of 2 runs in turn", result.stdout)

    def test_pictures_are_read_in_both_forms(self):
        rows = self.compare("--pictures", "somewhere", has_webdataset="False").stdout.splitlines()[-2:]
        self.assertEqual([row.split(" | ")[0] for row in rows],
                         ["| pictures as JPEG files, to 224", "| pictures as pixels, shorter side 256, to 224"])

    def test_a_reader_that_is_not_there_is_left_out(self):
        result = self.compare("--cifar", "somewhere", has_webdataset="False")
        self.assertRegex(result.stderr, "webdataset .*--python")
        self.assertNotIn("webdataset", result.stdout)

    def test_a_peer_without_its_best_allocator_is_refused(self):
        result = self.compare("--cifar", "somewhere", allocator="malloc")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'libjemalloc.so.2'", result.stderr)

    def test_nothing_to_read_is_refused(self):
        result = self.compare()
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "error: .*--cifar, --pictures")


def lacking():
    """What the real programs want and have not got."""
    if not (CIFAR / "data_batch_1.bin").is_file():
        return "CIFAR-10 in LOCKSTEP_TEST_DATA"
    wanted = ["/usr/bin/python3", "-c", "import torch, torchvision, h5py, PIL"]
    if subprocess.run(wanted, capture_output=True, check=False).returncode != 0:
        return "a python3 with torch, torchvision and h5py"
    preload = {**os.environ, "LD_PRELOAD": "libjemalloc.so.2"}
    if subprocess.run(["true"], env=preload, capture_output=True, check=False).stderr:
        return "libjemalloc2"
    return ""


def compare_real_ones():
    if lacking():
        print(f"skipped: no {lacking()}")
        return SKIPPED
    command = [sys.executable, ROOT / "bench/compare_readers.py", "--build", BUILD, "--python", "/usr/bin/python3"]
    result = subprocess.run([*command, "--cifar", CIFAR, "--pairs", "2", "--seconds", "0.3"], capture_output=True,
                            text=True, check=False)
    print(result.stdout, result.stderr)
    cells = [row.split(" | ") for row in result.stdout.splitlines() if "| h5py |" in row]
    return int(not (result.returncode == 0 and len(cells) == 1 and all(float(cells[0][place]) > 0 for place in (2, 3, 4))))


if __name__ == "__main__":
    if BUILD:
        sys.exit(compare_real_ones())
    unittest.main(argv=sys.argv[:1])
