#!/usr/bin/env python3
"""What tests/gpu.sh makes of programs that hang, crash, run nothing or fail: gpu_script_test.py SOURCE_FOLDER

A bundle of small scripts stands for the programs, which want a GPU. What the script could lose is told by its table, its
folder of results and its exit code. It ended at the first start that failed, and a killed one left no results.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support" / "gpu"))

from pretended_bundle import LISTING, PROGRAMS, TESTS, Bundle, rows_of, running, step_bench, test_program, write  # noqa: E402


class TestsPart(unittest.TestCase):
    """One call with a fault of each kind in one program each."""

    @classmethod
    def setUpClass(cls):
        cls.bundle = bundle = Bundle(ROOT)
        cls.addClassCleanup(bundle.folder.cleanup)
        bundle.program("norm_test", test_program("*breaks*) kill -SEGV $$;;"))
        poisoned = "*breaks*) poison=1;; esac; case ${poison:-0} in 1) echo 'x.cpp:1: Failure'; result=FAILED; code=1;;"
        bundle.program("layer_agreement_test", test_program(poisoned, end="exit ${code:-0}"))
        bundle.program("golden_test", "#!/bin/bash\necho '0 tests PASSED'\n")
        bundle.program("whole_step_test", "#!/bin/bash\n[ \"$1\" = --gtest_list_tests ] && { " + LISTING + "; }\nexit 0\n")
        bundle.program("recorded_step_test", test_program(end="kill -ABRT $$"))
        cls.done = bundle.run("tests", "--seconds", "200")
        cls.rows = rows_of(cls.done.stdout)

    def test_fails(self):
        self.assertEqual(self.done.returncode, 1, self.done.stderr)

    def test_prints_nothing_beside_its_table(self):
        self.assertEqual(self.done.stderr, "")
        self.assertEqual({line[:1] for line in self.done.stdout.splitlines()}, {"|", ""})
        self.assertLess(len(self.done.stdout), 12_000)

    def test_names_the_gpu(self):
        self.assertEqual(self.rows["start with everything"], "cuda: a GPU")

    def test_counts_what_passed(self):
        self.assertEqual(self.rows["ops_test"], "4 of 4 passed")

    def test_a_crash_costs_one_test(self):
        crash = "ended by SIGSEGV: [ RUN      ] Devices/norm_test.breaks/cuda"
        self.assertEqual(self.rows["norm_test"], f"FAILED: 1 of 4 passed; {crash}")
        self.assertEqual(self.rows["norm_test, the rest one by one"], "2 passed, 1 failed, 0 left out")
        self.assertEqual(self.rows["Devices/norm_test.breaks/cuda"], crash)

    def test_an_error_that_spoils_what_follows_costs_one_test(self):
        self.assertEqual(self.rows["layer_agreement_test"], "FAILED: 1 of 4 passed; x.cpp:1: Failure")
        self.assertEqual(self.rows["layer_agreement_test, the rest one by one"], "2 passed, 1 failed, 0 left out")
        self.assertEqual(self.rows["Devices/layer_agreement_test.breaks/cuda"], "x.cpp:1: Failure")

    def test_a_program_that_ran_no_test_has_not_passed(self):
        self.assertEqual(self.rows["golden_test"], "FAILED: has no test for a GPU: 0 tests PASSED")
        self.assertEqual(self.rows["whole_step_test"], "FAILED: 0 of 4 passed; exit code 0, without a word")
        self.assertEqual(self.rows["whole_step_test, the rest one by one"], "0 passed, 4 failed, 0 left out")

    def test_a_crash_after_the_last_test_is_told(self):
        self.assertIn("FAILED: 4 of 4 passed; ended by SIGABRT", self.rows["recorded_step_test"])

    def test_leaves_a_table_and_a_log(self):
        self.assertEqual(sorted(path.name for path in self.bundle.out.iterdir()), ["tests.log", "tests.md"])
        self.assertEqual(self.bundle.result("tests.md"), self.done.stdout)
        log = self.bundle.result("tests.log")
        for name in set(TESTS) - {"golden_test"}:
            self.assertIn(f"--- run {name} --gtest_filter=*/cuda*-*/cuda_on_host*\n", log)
        self.assertRegex(log, r"\[       OK \] Devices/ops_test.divides/cuda \(1 ms\)\n--- exit code 0 after \d+ s\n")


class Libraries(unittest.TestCase):
    """Failures that name cuDNN or NCCL are run again with the libraries' logs; of others, the first three."""

    def test_log_what_they_do_when_a_test_fails(self):
        bundle = Bundle(ROOT)
        self.addCleanup(bundle.folder.cleanup)
        logs = """echo "cudnn of $test" >>"${CUDNN_LOGDEST_DBG:-/dev/null}"
          [ -z "$NCCL_DEBUG_FILE" ] || head -c 300000 /dev/zero | tr '\\0' n >"${NCCL_DEBUG_FILE%\\%p}7"
          result=FAILED; code=1;;"""
        bundle.program("ops_test", test_program(f"*) echo 'wrong numbers'; {logs}", end="exit ${code:-0}"))
        bundle.program("norm_test", test_program(f"*) echo 'CUDNN_STATUS_BAD_PARAM'; {logs}", end="exit ${code:-0}"))
        self.assertEqual(bundle.run("tests", "--seconds", "200").returncode, 1)
        log = bundle.result("tests.libraries.log")
        self.assertEqual([log.count(f"cudnn of Devices/{name}") for name in ("ops_test", "norm_test")], [3, 4])
        self.assertEqual(log.count("n" * 200_000), 7)
        self.assertLess(len(log), 7 * 200_500)


class SideBySide(unittest.TestCase):
    """Two programs, each of which waits until the other one has started."""

    MEET = """*adds*) here=$(dirname "$0"); touch "$here/met.$name"
      for try in {1..400}; do [ "$(ls "$here" | grep -c '^met')" = 2 ] && break; sleep 0.02; done
      [ "$(ls "$here" | grep -c '^met')" = 2 ] || result=FAILED
      echo "limit ${LOCKSTEP_GPU_MEMORY_LIMIT:-none}";;"""

    def rows(self, mib, *options):
        bundle = Bundle(ROOT)
        self.addCleanup(bundle.folder.cleanup)
        for name in ("ops_test", "recorded_step_test"):
            bundle.program(name, test_program(self.MEET))
        bundle.tool("nvidia-smi", f"echo {mib}")
        done = bundle.run("tests", *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(list(rows_of(done.stdout))[-len(TESTS):], TESTS)
        self.assertEqual(sorted(path.name for path in bundle.out.iterdir()), ["tests.log", "tests.md"])
        log = bundle.result("tests.log")
        self.assertEqual(log.count("\nlimit 2560\n"), 2, log[:2000])

    def test_run_as_many_as_there_is_memory_for(self):
        self.rows(143_000)

    def test_run_as_many_as_are_asked_for(self):
        self.rows(100, "--jobs", str(len(TESTS)))


class Programs(unittest.TestCase):
    def test_are_those_that_ctest_runs_on_a_gpu(self):
        named = set()
        for page in (ROOT / "tests").rglob("CMakeLists.txt"):
            text = page.read_text(encoding="utf-8")
            for names in re.findall(r"foreach\(test ([^)]*)\)\n +lockstep_ctest\(\$\{test\}_on_gpu ", text):
                named.update(names.split())
            named.update(re.findall(r"lockstep_ctest\((\w+)_on_gpu ", text))
        self.assertEqual(set(TESTS), named)
        script = (ROOT / "tests" / "gpu.sh").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"^tests=\(([^)]*)\)", script, re.MULTILINE)[1].split(), TESTS)


class Bounds(unittest.TestCase):
    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)

    def test_of_time_let_a_hang_cost_one_test(self):
        self.bundle.program("ops_test", test_program("*breaks*) sleep 77.25;;"))
        rows = rows_of(self.bundle.run("tests", "--seconds", "26").stdout)
        self.assertRegex(rows["ops_test"], r"^FAILED: 1 of 4 passed; took more than [2-4] s: \[ RUN      \] Devices/ops_test\.br")
        self.assertEqual(rows["ops_test, the rest one by one"], "2 passed, 1 failed, 0 left out")
        self.assertEqual(rows["Devices/ops_test.breaks/cuda"],
                         "took more than 2 s: [ RUN      ] Devices/ops_test.breaks/cuda")
        self.assertEqual(rows["recorded_step_test"], "4 of 4 passed")
        self.assertFalse(running("sleep 77.25"))

    def test_of_time_leave_the_rest_out_and_say_so(self):
        self.bundle.program("step_bench", step_bench("case $* in *lenet*) ;; *) sleep 78.25;; esac"))
        start = time.monotonic()
        done = self.bundle.run("benches", "--seconds", "12")
        self.assertLess(time.monotonic() - start, 40)
        self.assertEqual(done.returncode, 1)
        rows = rows_of(done.stdout)
        self.assertEqual(rows["resnet18-bf16"], "FAILED: took more than 4 s")
        self.assertEqual(rows["resnet18-fp32"], "left out, no time is left of 12 s")

    def test_of_a_part_that_cut_a_program_short_are_no_failure(self):
        self.bundle.program("step_bench", step_bench("case $* in *'resnet50 '*) sleep 78.25;; *'bf16 --steps 50'*) sleep 3;; esac"))
        done = self.bundle.run("benches", "--seconds", "4")
        rows = rows_of(done.stdout)
        self.assertEqual((done.returncode, rows["resnet50-bf16"]), (1, "FAILED: took more than 1 s"), done.stdout)
        self.bundle.program("step_bench", step_bench("case $* in *lenet*) ;; *) sleep 78.25;; esac"))
        done = self.bundle.run("benches", "--seconds", "1")
        others = ("cudnn_device.json", "resnet20-2ranks-1gpu-nccl")  # which take no time
        results = {result for name, result in rows_of(done.stdout).items() if name not in others}
        self.assertEqual((done.returncode, results), (0, {"result", "cuda: a GPU", "left out, no time is left of 1 s"}))

    def test_end_what_a_program_leaves_behind(self):
        # As ranks do whose mpirun was killed: in a process group of its own, deaf, and with its hands on the output.
        deaf = "set -m; (trap '' TERM; sleep 79.25; sleep 79.25) & exit 0"
        self.bundle.program("ops_test", test_program(end=deaf))
        done = self.bundle.run("tests", "--seconds", "60")
        self.assertEqual((done.returncode, rows_of(done.stdout)["ops_test"]), (0, "4 of 4 passed"))
        self.assertFalse(running("sleep 79.25"))

    def test_of_a_log_do_not_cut_the_verdict(self):
        flood = "*adds*) head -c 20000000 /dev/zero | tr '\\\\0' x; echo;;"
        self.bundle.program("ops_test", test_program(flood))
        done = self.bundle.run("tests", "--seconds", "60")
        self.assertEqual((done.returncode, rows_of(done.stdout)["ops_test"]), (0, "4 of 4 passed"))
        self.assertEqual(rows_of(done.stdout)["norm_test"], "4 of 4 passed")
        self.assertLess((self.bundle.out / "tests.log").stat().st_size, 16 << 20)

    def test_name_the_first_failures_only(self):
        listing = "printf 'A.\\n'; printf '  a%s/cuda\\n' {1..40}; exit"
        self.bundle.program("ops_test", test_program(listing=listing, end="exit 1"))
        done = self.bundle.run("tests", "--seconds", "60")
        self.assertEqual(done.stdout.count("|   A.a"), 30)
        self.assertIn("\n10 more failures stand in tests.log\n", done.stdout)


class Killed(unittest.TestCase):
    def killed_by(self, number):
        """The bundle, after the script was killed while its second test program hung."""
        bundle = Bundle(ROOT)
        self.addCleanup(bundle.folder.cleanup)
        bundle.program("norm_test", test_program("*breaks*) echo here I am; sleep 80.25;;"))
        running_log = bundle.out / "tests.norm_test.log"  # until the program has ended
        deadline = time.monotonic() + 20  # the program may run for more than twice as long
        with subprocess.Popen(bundle.words("tests", "--seconds", "200"), stdout=subprocess.PIPE, text=True) as script:
            while not running_log.exists() or "here I am" not in running_log.read_text(encoding="utf-8"):
                time.sleep(0.05)
                if time.monotonic() > deadline:
                    script.terminate()
                    self.fail("what a program prints is not in the log while it runs")
            script.send_signal(number)
            if number == signal.SIGKILL:
                subprocess.run(["pkill", "--full", "sleep 80.25"], check=False)
            printed, _ = script.communicate(timeout=20)
        self.assertEqual(rows_of(bundle.result("tests.md"))["ops_test"], "4 of 4 passed")
        self.assertIn("[ RUN      ] Devices/norm_test.breaks/cuda\nhere I am\n", running_log.read_text(encoding="utf-8"))
        return script.returncode, printed

    def test_leaves_what_came_before(self):
        self.assertEqual(self.killed_by(signal.SIGKILL)[0], -signal.SIGKILL)

    def test_by_a_timeout_it_says_so_and_ends_what_runs(self):
        code, printed = self.killed_by(signal.SIGTERM)
        self.assertEqual(code, 143)
        self.assertRegex(printed, r"stopped by a signal after \d+ s: what stands above is all there is\n$")
        self.assertFalse(running("sleep 80.25"))


class Use(unittest.TestCase):
    def setUp(self):
        self.bundle = Bundle(ROOT)
        self.addCleanup(self.bundle.folder.cleanup)

    def test_every_part_leaves_its_files(self):
        done = self.bundle.run("--python", "/usr/bin/false")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        parts = ("accuracy", "benches", "kernels", "peers", "tests", "training")
        names = [f"{part}.{kind}" for part in parts for kind in ("log", "md")]
        self.assertEqual(sorted(path.name for path in self.bundle.out.iterdir()), sorted([*names, "cudnn_device.json"]))

    def test_several_parts_start_once(self):
        done = self.bundle.run("benches", "tests", "--seconds", "60")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(sum("lenet" in call for call in self.bundle.calls()), 1)
        self.assertEqual(self.bundle.result("benches.md") + self.bundle.result("tests.md"), done.stdout)

    def test_the_variable_out_names_the_folder(self):
        self.bundle.out.mkdir()
        words = self.bundle.words("tests")[:-2]
        environment = os.environ | {"OUT": str(self.bundle.out)}
        subprocess.run(words, check=True, capture_output=True, timeout=60, env=environment)
        self.assertIn("| ops_test", self.bundle.result("tests.md"))

    def refused(self, *options):
        done = self.bundle.run(*options)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr

    def test_refuses_what_it_does_not_know(self):
        self.assertEqual(self.refused("test"), "gpu.sh: what is 'test'? Parts are tests training benches kernels peers "
                                               "accuracy and all; tests/gpu.sh help lists the options.\n")
        for option in ("--seconds", "--jobs"):
            self.assertEqual(self.refused("tests", option, "soon"), "gpu.sh: 'soon' is not a number (--seconds, --jobs).\n")
        self.assertIn("'--x' is not a mode", self.refused("peers", "--compile-mode", "--x"))
        self.assertEqual(self.refused("tests", "--out", ""), "gpu.sh: --out wants a value.\n")
        self.assertEqual(self.refused("--bundle", "/none"),
                         "gpu.sh: no bundle in '/none'. Make one with tests/gpu.sh pack.\n")

    def carry_archive(self):
        """The archive alone, and a folder of an earlier one."""
        archive = self.bundle.path.with_name("gpu_bundle.tar.xz")
        subprocess.run(["tar", "-C", archive.parent, "-cJf", archive, "gpu_bundle"], check=True)
        shutil.rmtree(self.bundle.path)
        write(self.bundle.path / "run", "#!/bin/bash\nexit 3\n")

    def test_unpacks_the_archive_that_was_carried_here(self):
        self.carry_archive()
        self.assertEqual(rows_of(self.bundle.run("tests").stdout)["ops_test"], "4 of 4 passed")
        changed = test_program(listing="exit")
        self.bundle.program("ops_test", changed)
        self.bundle.run("tests")
        self.assertEqual((self.bundle.path / "bin" / "ops_test").read_text(encoding="utf-8"), changed, "unpacked once")

    def test_unpacks_without_xz(self):
        self.carry_archive()
        write(self.bundle.root / "bin" / "xz", "#!/bin/bash\nexit 127\n")
        done = self.bundle.run("tests", PATH=f"{self.bundle.root / 'bin'}:{os.environ['PATH']}")
        self.assertEqual(rows_of(done.stdout)["ops_test"], "4 of 4 passed")


class Pack(unittest.TestCase):
    """With a stand-in for bundle.sh, which wants Open MPI and takes its time."""

    def pack(self, megabytes, limit="45"):
        bundle = Bundle(ROOT)
        self.addCleanup(bundle.folder.cleanup)
        (bundle.root / "tests" / "bundle.sh").unlink()
        write(bundle.root / "tests" / "bundle.sh",
              f'#!/bin/bash\nmkdir -p "$1/bin"; head -c 3000 /dev/zero >"$1/bin/big"; echo >"$1/small"\n'
              f'truncate --size {megabytes}M "$1.tar.xz"\n')
        build = bundle.root / "build" / "release"
        for name in [*TESTS, *PROGRAMS]:
            write(build / "bin" / name, "")
        return bundle, subprocess.run([bundle.root / "tests" / "gpu.sh", "pack", build], capture_output=True, text=True,
                                      check=False, timeout=60, env=os.environ | {"LOCKSTEP_BUNDLE_MIB": limit})

    def test_refuses_a_limit_that_is_none(self):
        _, done = self.pack(1, "all")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^gpu.sh: 'all' .*LOCKSTEP_BUNDLE_MIB.*\n$")

    def test_refuses_without_a_program(self):
        bundle, _ = self.pack(1)
        (bundle.root / "build" / "release" / "bin" / "evaluate").unlink()
        done = subprocess.run([bundle.root / "tests" / "gpu.sh", "pack"], capture_output=True, text=True, check=False,
                              timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"^gpu.sh: .*{bundle.root}/build/release/bin/evaluate")

    def test_says_how_large_the_archive_is(self):
        bundle, done = self.pack(45)
        self.assertEqual((done.returncode, done.stdout), (0, f"{bundle.path}.tar.xz: 45 MiB of 45\n"))

    def test_fails_beyond_the_limit_and_names_what_is_largest(self):
        _, done = self.pack(46)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines()[1], "3000 bin/big")
        self.assertRegex(done.stderr.splitlines()[-1], "^gpu.sh: .*45 MiB")


if __name__ == "__main__":
    # Bounds are waited for: they run where they are named.
    classes = [name for name, it in list(globals().items()) if isinstance(it, type) and issubclass(it, unittest.TestCase)]
    unittest.main(defaultTest=[name for name in classes if name != "Bounds"])
