#!/usr/bin/env python3
"""The last words of tests/run.sh are true: count_results_test.py COUNT_RESULTS"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

COUNT_RESULTS = sys.argv.pop()


def count(junit, ctest_code, *lines):
    """Exit code and lines for a result file with these words; None: no file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tests.xml"
        if junit is not None:
            path.write_text(junit)
        done = subprocess.run([sys.executable, COUNT_RESULTS, path, str(ctest_code), *lines], capture_output=True,
                              text=True, check=False)
    return done.returncode, done.stdout.splitlines()


SKIPPED = {"notrun": '<skipped message="SKIP_RETURN_CODE=77"/>', "disabled": '<skipped message="Disabled"/>',
           "missing": '<skipped message="Unable to find executable: bin/a"/>'}


def suite(**status_of):
    """As CTest writes it; "missing": a test whose program does not exist."""
    cases = "".join(f'<testcase name="{name}" status="{status.replace("missing", "notrun")}">{SKIPPED.get(status, "")}</testcase>'
                    for name, status in status_of.items())
    return f'<?xml version="1.0" encoding="UTF-8"?><testsuite name="(empty)">{cases}</testsuite>'


class CountResults(unittest.TestCase):
    def test_passes_when_all_tests_passed(self):
        self.assertEqual(count(suite(a="run", b="run"), 0), (0, ["2 passed, 0 failed, 0 skipped"]))

    def test_names_what_was_skipped_and_passes(self):
        self.assertEqual(count(suite(a="run", c="notrun", b="disabled"), 0),
                         (0, ["skipped: b", "skipped: c", "1 passed, 0 failed, 2 skipped"]))

    def test_says_a_line_before_the_last(self):
        self.assertEqual(count(suite(a="run"), 0, "CUDA: compiled for 90"),
                         (0, ["CUDA: compiled for 90", "1 passed, 0 failed, 0 skipped"]))

    def test_names_what_failed_and_fails(self):
        self.assertEqual(count(suite(a="run", b="fail"), 8), (1, ["failed: b", "1 passed, 1 failed, 0 skipped"]))

    def test_fails_when_every_test_was_skipped(self):
        self.assertEqual(count(suite(a="notrun"), 0), (1, ["skipped: a", "0 passed, 0 failed, 1 skipped"]))

    def test_takes_what_could_not_start_and_what_it_does_not_know_for_failures(self):
        self.assertEqual(count(suite(a="run", b="missing", c="strange", d="notrun"), 8),
                         (1, ["skipped: d", "failed: b", "failed: c", "1 passed, 2 failed, 1 skipped"]))

    def test_fails_when_no_test_ran(self):
        self.assertEqual(count(suite(), 0), (1, ["failed: ctest has run no test (code 0)", "0 passed, 1 failed, 0 skipped"]))

    def test_fails_when_ctest_failed_but_no_test_did(self):
        self.assertEqual(count(suite(a="run"), 8),
                         (1, ["failed: ctest itself, with code 8", "1 passed, 1 failed, 0 skipped"]))

    def test_fails_when_ctest_was_killed_while_it_wrote(self):
        code, lines = count(suite(a="run")[:-12], 137)
        self.assertEqual((code, lines[1:]), (1, ["failed: ctest has run no test (code 137)", "0 passed, 1 failed, 0 skipped"]))
        self.assertRegex(lines[0], "^ctest left no results: ")

    def test_fails_when_ctest_left_no_file(self):
        code, lines = count(None, 0)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
