#!/usr/bin/env python3
"""Checks of the long tests: slices_test.py ROOT BUILD

Every long test is in exactly one slice, every slice has tests, --record needs a whole one, and the tests that the
sanitizers leave out exist.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from slices import slices_in  # noqa: E402: found only now


# run.sh passed --record on to ctest if no slice stood before it, and recorded a slice of which -R had run a part.
def faults_of_record(root):
    with tempfile.TemporaryDirectory() as folder:
        for tool in ("dpkg-query", "apt-get", "sudo", "cmake", "ctest"):  # it must end before it calls any of them
            path = pathlib.Path(folder) / tool
            path.write_text("#!/bin/sh\nexit 9\n")
            path.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        for words in (["--record"], ["--long", "--record"], ["--long", "1/10", "-V", "--record"],
                      ["--long", "1/10", "--record", "-R", "sanitizers"]):
            ran = subprocess.run([f"{root}/tests/run.sh", *words], capture_output=True, text=True, check=False,
                                 env=environment)
            if ran.returncode != 2 or not ran.stderr.startswith("--record "):
                yield f"run.sh {' '.join(words)} ends with {ran.returncode}: {ran.stdout}{ran.stderr}"


# A test that had been renamed was no longer left out.
def faults_of_filter(root):
    sources = "".join(file.read_text() for file in (root / "tests").rglob("*_test.cpp"))
    script = (root / "tests" / "long" / "sanitizers_test.sh").read_text()
    lines = " ".join(line for line in script.splitlines() if "GTEST_FILTER" in line)
    left_out = re.findall(r"([A-Z]\w+)\.([a-z]\w+)", lines)
    if not left_out:
        yield "sanitizers_test.sh leaves out no test"
    for suite, test in left_out:
        if f"({suite}, {test})" not in sources:
            yield f"sanitizers_test.sh leaves out {suite}.{test}, which does not exist"


def main():
    root, build = sys.argv[1:3]
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-L", "long"], check=True,
                          capture_output=True, text=True).stdout
    names = [test["name"] for test in json.loads(told)["tests"]]
    slices = [(name, re.compile(pattern)) for name, pattern in slices_in(pathlib.Path(root))]
    faults = [*faults_of_record(root), *faults_of_filter(pathlib.Path(root))]
    for name in names:
        found = [label for label, pattern in slices if pattern.fullmatch(name)]
        if len(found) != 1:
            faults.append(f"{name} is in {found or 'no slice'}")
    # Some tests exist only where their programs are installed.
    empty = [label for label, pattern in slices if not any(pattern.fullmatch(name) for name in names)]
    faults += [f"slice {label} has no test" for label in empty if label != "hours"]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(names)} long tests in {len(slices)} slices")


if __name__ == "__main__":
    main()
