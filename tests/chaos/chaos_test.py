#!/usr/bin/env python3
"""Tests what chaos.py prints and counts: chaos_test.py. Its faults only return a result."""
import contextlib
import io
import pathlib
import subprocess
import sys
import types
import unittest

import chaos
from ground import Fault, Lost, Skipped, last_line

GROUND = types.SimpleNamespace(options=types.SimpleNamespace(folder=pathlib.Path("/scratch/chaos")))


def survive(case):
    case.where = "rank 1 of 2"
    return f"'{GROUND.options.folder}/a' {'went on ' * 30}"


def throw(error):
    def inject(_):
        raise error

    return inject


def reported(*ways):
    faults = [Fault(f"fault {number}", "the best", way) for number, way in enumerate(ways)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = chaos.report(faults, GROUND)
    return code, printed.getvalue().splitlines()


class Table(unittest.TestCase):
    def test_counts_what_survived(self):
        code, lines = reported(survive, survive)
        self.assertEqual((code, lines[-1]), (0, "2 faults injected, 2 survived, 0 lost"))
        self.assertRegex(lines[1], r"^fault 0 +rank 1 of 2 +the best +\d\.\d  survived: 'a' went on .*\.\.\.$")

    def test_fails_if_anything_was_lost(self):
        code, lines = reported(survive, throw(Lost("weights 1 instead of 2")), survive)
        self.assertEqual((code, lines[-1]), (1, "3 faults injected, 2 survived, 1 lost"))
        self.assertTrue(lines[2].endswith("LOST: weights 1 instead of 2"), lines[2])

    def test_takes_a_training_without_end_as_lost(self):
        code, lines = reported(throw(TimeoutError("no end after 60 s")))
        self.assertEqual((code, lines[-1]), (1, "1 faults injected, 0 survived, 1 lost"))

    def test_names_what_could_not_be_done(self):
        code, lines = reported(survive, throw(Skipped("wants root")))
        self.assertEqual(code, 0)
        self.assertTrue(lines[2].endswith("skipped: wants root"), lines[2])
        self.assertRegex(lines[-2], "^1 could not be injected")
        self.assertEqual(lines[-1], "1 faults injected, 1 survived, 0 lost")

    def test_fails_if_nothing_could_be_done(self):
        self.assertEqual(reported(throw(Skipped("wants root")))[0], 1)


class Selection(unittest.TestCase):
    def refuses(self, pattern, *options):
        command = [sys.executable, pathlib.Path(chaos.__file__), *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, pattern)

    def test_names_of_faults_differ_and_some_are_quick(self):
        names = [fault.name for fault in chaos.FAULTS]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), sum(fault.quick for fault in chaos.FAULTS))

    def test_a_name_that_no_fault_has_is_refused(self):
        self.refuses("'flood'.*--only", "--only", "flood")

    def test_a_folder_without_programs_is_refused(self):
        self.refuses("'/nowhere' \\(--programs\\).*train_cifar", "--programs", "/nowhere")


class LastWords(unittest.TestCase):
    def test_are_those_of_a_rank(self):
        self.assertEqual(last_line("[rank 0, a]  one\n[rank 1, a]  two\nmpirun has exited\n"), "[rank 1, a]  two")
        self.assertEqual(last_line(""), "")


if __name__ == "__main__":
    unittest.main()
