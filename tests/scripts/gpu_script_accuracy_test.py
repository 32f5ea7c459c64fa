#!/usr/bin/env python3
"""What tests/gpu.sh makes of CIFAR-10 in archives, and of trainings to the end: gpu_script_accuracy_test.py SOURCE_FOLDER"""

import lzma
import pathlib
import random
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support" / "gpu"))

from pretended_bundle import Bundle, accuracy, rows_of, training  # noqa: E402: found only now


def pictures(count, seed):
    """Rows of 32 pixels, red, green and blue: soft slopes of gray with a little noise."""
    draw = random.Random(seed)
    content = bytearray()
    for _ in range(count):
        slopes = [draw.uniform(-3, 3) for _ in range(2)]
        for row in range(32):
            for column in range(32):
                gray = 120 + slopes[0] * row + slopes[1] * column + draw.gauss(0, 2)
                content += bytes(int(gray + draw.gauss(0, 0.4)) % 256 for _ in range(3))
    return bytes(content)


class Accuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Bytes before the pixels, and after them, as HDF5 has.
        cls.files = {"train/manifest.json": b"{}", "train/train-00000.h5": random.Random(1).randbytes(50_001),
                     "test/test-00000.h5": b"h5" + pictures(60, 2) + b"end", "empty": b"", "short": b"12"}

    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)
        self.shards = self.bundle.root / "shards"
        for name, content in self.files.items():
            (self.shards / name).parent.mkdir(parents=True, exist_ok=True)
            (self.shards / name).write_bytes(content)
        self.build = self.bundle.root / "build"
        self.data = self.build / "gpu_cifar"

    def pack(self, *words):
        return subprocess.run([self.bundle.root / "tests" / "gpu.sh", "pack-data", *words], capture_output=True, text=True,
                              check=False, timeout=60)

    def parts(self):
        return sorted(self.build.glob("gpu_cifar.*.part"))

    def rows(self, code, *options):
        self.done = self.bundle.run("accuracy", "--seconds", "200", *options)
        self.assertEqual(self.done.returncode, code, self.done.stdout + self.done.stderr)
        return rows_of(self.done.stdout)

    def test_is_left_out_without_archives(self):
        self.assertRegex(self.rows(0)["CIFAR-10"], "^left out: no archive of CIFAR-10 is here .*gpu_cifar.sums")

    def test_waits_for_all_archives(self):
        big = {"train/train-00001.h5": random.Random(3).randbytes(2_200_000)}
        (self.shards / "train" / "train-00001.h5").write_bytes(big["train/train-00001.h5"])
        done = self.pack(self.shards, "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(self.parts()), 3)
        self.assertTrue(all(path.stat().st_size <= 1 << 20 for path in self.parts()))
        last = self.parts()[2].rename(self.build / "later")
        self.assertEqual(self.rows(0)["CIFAR-10"], "left out: 2 of 3 archives of CIFAR-10 are here")
        last.rename(self.build / "gpu_cifar.3.part")
        rows = self.rows(0)
        self.assertEqual(self.done.stderr, "")
        for name in ("cifar10-94", "cifar10-94 --precision bf16", "cifar10-90"):
            self.assertEqual(rows[name], "94.01 % with flip-shift, 93.20 % without, 21.3 s of training")
        self.assertEqual({path.relative_to(self.data).as_posix(): path.read_bytes()
                          for path in self.data.rglob("*") if path.is_file() and path.name != ".sums"}, self.files | big)
        for path in self.parts():
            path.unlink()
        self.assertIn("cifar10-94", self.rows(0), "it is unpacked once")

    def test_other_archives_take_the_place_of_the_first(self):
        self.pack(self.shards)
        self.rows(0)
        (self.build / "gpu_cifar.2.part").write_bytes(b"of an earlier pack-data")
        (self.shards / "train" / "train-00000.h5").write_bytes(b"other")
        self.pack(self.shards)
        self.assertEqual(len(self.parts()), 1)
        self.rows(0)
        self.assertEqual((self.data / "train" / "train-00000.h5").read_bytes(), b"other")

    def test_a_damaged_archive_is_named(self):
        self.pack(self.shards)
        content = bytearray(self.parts()[0].read_bytes())
        content[1000] ^= 1
        self.parts()[0].write_bytes(content)
        self.assertRegex(self.rows(1)["CIFAR-10"], "^FAILED: .*gpu_cifar.1.part' does not match its sum in .*gpu_cifar.sums")

    def test_pictures_take_less_than_by_xz(self):
        for name in ("train/train-00000.h5", "empty", "short"):
            (self.shards / name).unlink()
        self.pack(self.shards)
        plain = len(lzma.compress(self.files["test/test-00000.h5"], preset=9))
        self.assertLess(self.parts()[0].stat().st_size, 0.92 * plain)

    def test_below_the_recipes_it_has_failed(self):
        self.pack(self.shards)
        self.bundle.program("train_cifar", accuracy("case $* in *cifar10-94*) reached=0.9349;; *) reached=0.895;; esac"))
        rows = self.rows(1)
        self.assertEqual(rows["cifar10-94"], "FAILED: 93.49 % with flip-shift, 93.20 % without, 21.3 s of training, below "
                                             "93.5 %")
        self.assertTrue(rows["cifar10-90"].startswith("89.50 % "), rows)

    def test_a_training_that_has_not_ended_has_failed(self):
        self.pack(self.shards)
        self.bundle.program("train_cifar", accuracy("state=stopped"))
        self.assertRegex(self.rows(1)["cifar10-90"], "^FAILED: 94.01 % .*, stopped$")
        self.bundle.program("train_cifar", "#!/bin/bash\necho out of memory; exit 71\n")
        self.assertEqual(self.rows(1)["cifar10-90"], "FAILED: out of memory")
        self.bundle.program("train_cifar", "#!/bin/bash\n")
        self.assertEqual(self.rows(1)["cifar10-90"], "FAILED: no accuracy in summary.json")
        self.assertEqual(self.done.stderr, "")

    def test_comes_last(self):
        self.pack(self.shards)
        done = self.bundle.run("accuracy", "benches", "--seconds", "60")
        names = list(rows_of(done.stdout))
        self.assertLess(names.index("resnet50-fp32"), names.index("cifar10-94"))

    def test_wants_shards(self):
        done = self.pack(self.build)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, f"^gpu.sh: '{self.build}' has no shards: .*make_shards cifar10")
        self.assertRegex(self.pack(self.shards, "0").stderr, "^gpu.sh: '0' is not a number of MiB")


class Kept(unittest.TestCase):
    """A second call prints what the first one has finished."""

    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)
        self.bundle.carried()
        self.bundle.tool("compute-sanitizer", "echo sanitized >>\"$0.calls\"; echo ========= ERROR SUMMARY: 0 errors")

    def calls(self):
        """Without those that every call makes."""
        return [call for call in self.bundle.calls() if "lenet" not in call and "--version" not in call]

    def run_part(self, name, *options, code=0):
        done = self.bundle.run(name, "--seconds", "200", *options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return rows_of(done.stdout)

    def test_benches(self):
        first = self.run_part("benches")
        calls = self.calls()
        second = self.run_part("benches")
        self.assertEqual(self.calls(), calls, "nothing is measured again")
        self.assertEqual(list(second), list(first))
        self.assertEqual(second["resnet50-bf16"], first["resnet50-bf16"] + ", from an earlier call")
        self.assertEqual(second["`copy/bf16/1x2x3x4`"], first["`copy/bf16/1x2x3x4`"])

    def test_what_failed_or_was_left_out_is_run_again(self):
        self.bundle.program("train_imagenet", training('[ "$RANKS" = 4 ] && hash=0ff5'))
        first = self.run_part("training", code=1)
        self.assertTrue(first["same weights"].startswith("FAILED"), first)
        self.bundle.program("train_imagenet", training())
        (self.bundle.path / "bin" / "trainings").unlink()
        second = self.run_part("training")
        self.assertEqual(second["same weights"], "5 trainings: e2c4")
        self.assertEqual(second["its model"], first["its model"] + ", from an earlier call")
        self.assertEqual(second["memcheck"], first["memcheck"] + ", from an earlier call")
        trainings = (self.bundle.path / "bin" / "trainings").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(trainings), 6, "those of the weights")

    def test_test_programs(self):
        first = self.run_part("tests")
        self.bundle.program("ops_test", "#!/bin/bash\nexit 3\n")
        self.assertEqual(self.run_part("tests")["ops_test"], first["ops_test"] + ", from an earlier call")

    def test_a_call_in_which_nothing_starts_loses_no_row(self):
        self.run_part("tests")
        works = (self.bundle.path / "bin" / "step_bench").read_text(encoding="utf-8")
        self.bundle.program("step_bench", "#!/bin/bash\nexit 3\n")
        self.run_part("tests", code=1)
        self.bundle.program("step_bench", works)
        self.assertEqual(self.run_part("tests")["ops_test"], "4 of 4 passed, from an earlier call")

    def test_another_bundle_or_gpu_begins_anew(self):
        for change in (lambda: self.bundle.carried("another archive"),
                       lambda: self.bundle.program("step_bench", (self.bundle.path / "bin" / "step_bench").read_text(
                           encoding="utf-8").replace("a GPU", "another GPU, at 00:1B"))):
            self.run_part("tests")
            change()
            self.assertEqual(self.run_part("tests")["ops_test"], "4 of 4 passed")
        text = (self.bundle.path / "bin" / "step_bench").read_text(encoding="utf-8")
        self.bundle.program("step_bench", text.replace("00:1B", "00:2C"))
        self.assertEqual(self.run_part("tests")["ops_test"], "4 of 4 passed, from an earlier call", "the same kind of GPU")


if __name__ == "__main__":
    unittest.main()
