#!/usr/bin/env python3
"""Checks of the long tests: slices_test.py ROOT BUILD

Every long test is in exactly one slice, every slice has tests, run.sh takes no other options than its own, --record
records what passed and nothing else, and the tests that the sanitizers leave out exist.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from slices import slices_in  # noqa: E402: found only now


# Where words were unknown or in another order, ctest ran other tests, all of them, or a part of a slice that was recorded.
REFUSED = [["--record"], ["--long", "--record"], ["--long", "1/11", "-V", "--record"], ["-R", "x", "--long", "1/11"],
           ["--long", "1/11", "--record", "-R", "sanitizers"], ["--long", "1/11", "-R", "sanitizers"], ["--long=1/11"],
           ["--long", "1/11", "--long", "2/11"], ["--long", "1"], ["--long", "12/11"], ["1/11"], ["--lnog"], ["-R"]]


def stubs(folder, ctest):
    """Programs that run.sh calls: they do nothing, and ctest does as told."""
    for tool in ("dpkg-query", "apt-get", "sudo", "cmake", "ctest"):
        path = folder / tool
        path.write_text(f"#!/bin/bash\n{ctest if tool == 'ctest' else 'exit 9' if ctest is None else 'exit 0'}\n")
        path.chmod(0o755)
    (folder / "dpkg-query").write_text("#!/bin/sh\necho install ok installed\n")
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def run_sh(root, environment, *words):
    return subprocess.run([root / "tests" / "run.sh", *words], capture_output=True, text=True, check=False, env=environment)


def faults_of_options(root):
    with tempfile.TemporaryDirectory() as folder:
        environment = stubs(pathlib.Path(folder), None)  # it must end before it calls any of them
        for words in REFUSED:
            ran = run_sh(root, environment, *words)
            if ran.returncode != 2 or ran.stderr.count("\n") != 1 or ran.stdout:
                yield f"run.sh {' '.join(words)} ends with {ran.returncode}: {ran.stdout}{ran.stderr}"


# As ctest does it: options are words, and its last word but one is the file of results.
CTEST = """for word; do case $last in --output-junit) file=$word;; esac; last=$word; done
echo "<testsuite>CASES</testsuite>" >"$file"
MORE"""
PASSED = "<testcase name='a' status='run'/>"


class Clone:
    """A clone with one commit, in which run.sh runs with programs that do nothing."""

    def __init__(self, root, folder):
        self.root, self.tools = folder / "clone", folder / "tools"
        self.tools.mkdir()
        for name in ("tests/run.sh", "tests/long/slices.py", "tests/long/slices.txt", "tests/support/count_results.py",
                     "lib/cmake/debian_packages.sh", "lib/cmake/progress.sh", ".gitignore"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self.root / name)
        self.git("init", "--quiet")
        self.commit("first")
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/CMakeCache.txt").write_text("LOCKSTEP_CUDA_SUMMARY:INTERNAL=CUDA: no\n")

    def git(self, *words):
        return subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self, name):
        (self.root / name).write_text(name)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", name)

    def record(self, cases, more="exit 0"):
        """What run.sh says, and what it has recorded."""
        environment = stubs(self.tools, CTEST.replace("CASES", cases).replace("MORE", more))
        ran = run_sh(self.root, environment, "--long", "3/11", "--record")
        passed = self.root / "tests/long/passed.json"
        return ran, json.loads(passed.read_text()) if passed.exists() and ran.returncode in (0, 1) else {}


def faults_of_record(root):
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(root, pathlib.Path(folder))
        for cases, more in (("", "exit 0"), (PASSED, "exit 8"), (PASSED.replace("run", "strange"), "exit 0"),
                            (PASSED, "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty --message later; exit 0"),
                            (PASSED, "echo new >unknown; exit 0")):
            ran, passed = clone.record(cases, more)
            if passed or ran.returncode == 0 or not re.search(r"^\d+ passed, \d+ failed, \d+ skipped$", ran.stdout.splitlines()[-1]):
                yield f"{cases} {more}: {ran.returncode}, {passed}: {ran.stdout}{ran.stderr}"
        ran, passed = clone.record(PASSED)  # with the file that git does not know
        if ran.returncode != 2 or "cannot record" not in ran.stderr or passed:
            yield f"a changed clone: {ran.returncode}, {passed}: {ran.stderr}"
        (clone.root / "unknown").unlink()
        first = clone.git("rev-parse", "--short=12", "HEAD")
        ran, passed = clone.record(PASSED)
        if ran.returncode != 0 or passed.get("sanitizers_programs", {}).get("commit") != first:
            yield f"a passed slice: {ran.returncode}, {passed}: {ran.stdout}{ran.stderr}"
        clone.commit("second")
        (clone.root / "tests/long/passed.json").write_text("[")
        ran, _ = clone.record(PASSED)
        if ran.returncode != 2 or "Traceback" in ran.stderr or "passed.json" not in ran.stderr:
            yield f"a damaged passed.json: {ran.returncode}: {ran.stderr}"


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
    faults = [*faults_of_options(pathlib.Path(root)), *faults_of_record(pathlib.Path(root)),
              *faults_of_filter(pathlib.Path(root))]
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
