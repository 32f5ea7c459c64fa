#!/usr/bin/env python3
"""What tidy.py finds in small projects, with the real clang-tidy: tidy_test.py"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TIDY = pathlib.Path(__file__).resolve().parent / "tidy.py"
CHECKS = "Checks: '-*,clang-analyzer-core.*,modernize-use-nullptr,modernize-use-bool-literals'\n"
CLEAN = '#include "base/shared.hpp"\nint {name}() {{ return shared(); }}\n'
NULL_AS_0 = "int* {name}() {{ return 0; }}\n"
NULL_IS_READ = "int {name}() {{ int* p = nullptr; return *p; }}\n"
BOOL_AS_1 = "bool {name}() {{ return 1; }}\n"


class Project:
    """lib/a.cpp, lib/b.cpp and tests/c.cpp, tests/d.cpp, joined in twos, and lib/alone.cpp."""
    def __init__(self, folder):
        self.root, self.build = folder, folder / "build"
        self.write(".clang-tidy", CHECKS)
        self.write("tests/.clang-tidy", "InheritParentConfig: true\nChecks: '-modernize-use-bool-literals'\n")
        self.write("lib/base/shared.hpp", "#pragma once\ninline int shared() { return 1; }\n")
        entries = []
        for kind, names in (("lib", "ab"), ("tests", "cd")):
            joined = self.write(f"build/{kind}/Unity/unity_0.cxx",
                                "".join(f'#include "{folder / kind / name}.cpp"\n' for name in names))
            entries.append(joined)
        entries.append(folder / "lib" / "alone.cpp")
        for name in ("lib/a", "lib/b", "tests/c", "tests/d", "lib/alone"):
            self.source(name, CLEAN)
        self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.build), "file": str(file),
             "command": shlex.join(["/usr/bin/c++", "-I", str(folder / "lib"), "-std=c++20", "-o", "x.o", "-c", str(file)])}
            for file in entries]))

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def source(self, name, text):
        self.write(f"{name}.cpp", text.format(name=pathlib.Path(name).name))

    def look(self, *options, program=None):
        """(exit code, runs made, runs stale, output). `program` takes clang-tidy's place."""
        environment = dict(os.environ)
        if program:
            self.write("tools/clang-tidy-16", program).chmod(0o755)
            environment["PATH"] = f"{self.root / 'tools'}:{environment['PATH']}"
        done = subprocess.run([sys.executable, TIDY, self.root, self.build, *options], env=environment,
                              capture_output=True, text=True, check=False)
        made, stale = re.search(r"(\d+) made, .* (\d+) stale", done.stdout).groups()
        return done.returncode, int(made), int(stale), done.stdout + done.stderr


def expect(found, code, made, stale, words=""):
    assert found[:3] == (code, made, stale), f"expected {(code, made, stale)}, not {found[:3]}:\n{found[3]}"
    assert words in found[3], f"'{words}' is missing in:\n{found[3]}"


def check_project(folder):
    project = Project(folder)
    # Three files that are compiled, and three sources for the analyzer.
    expect(project.look("--share", "1/2"), 0, 3, 0)
    expect(project.look(), 0, 3, 0)
    expect(project.look(), 0, 0, 0)

    project.source("lib/b", NULL_AS_0)
    expect(project.look(), 1, 2, 0, "lib/b.cpp:1:")
    expect(project.look(), 1, 1, 0, "modernize-use-nullptr")
    project.source("lib/b", CLEAN)
    expect(project.look(), 0, 1, 0)  # by the analyzer, which found nothing in the other text either

    project.source("lib/b", NULL_IS_READ)
    expect(project.look(), 1, 2, 0, "clang-analyzer-core.NullDereference")
    project.source("lib/b", CLEAN)
    project.source("tests/d", NULL_IS_READ)
    expect(project.look(), 0, 2, 0)
    project.source("tests/d", BOOL_AS_1)
    expect(project.look(), 0, 1, 0)
    project.source("lib/alone", BOOL_AS_1)
    expect(project.look(), 1, 2, 0, "modernize-use-bool-literals")
    project.source("lib/alone", CLEAN)

    # One that is killed has found nothing clean, and a file that a full disk has cut counts as none.
    project.source("lib/alone", NULL_IS_READ)
    killed = '#!/bin/sh\n[ "$1" != --version ] || exec /usr/bin/clang-tidy-16 --version\nkill -KILL $$\n'
    expect(project.look(program=killed), 1, 2, 0, "alone.cpp: clang-tidy-16 ended with code -9")
    expect(project.look(), 1, 2, 0, "clang-analyzer-core.NullDereference")
    project.source("lib/alone", CLEAN)
    notes = project.build / "tidy.json"
    notes.write_text(notes.read_text()[:30])
    expect(project.look(), 0, 6, 0)

    # A header's sources; of the five, those that end in time.
    project.write("lib/base/shared.hpp", "#pragma once\ninline int shared() { return 2; }\n")
    code, made, stale, words = project.look("--seconds", "0.01")
    assert code == 0 and made >= 1 and made + stale == 4, words
    expect(project.look("--seconds", "60"), 0, stale, 0)
    expect(project.look(), 0, 0, 0)


def main():
    if not shutil.which("clang-tidy-16"):
        print("skipped: no clang-tidy-16 here")
        return 77
    with tempfile.TemporaryDirectory(prefix="lockstep tidy ") as folder:
        check_project(pathlib.Path(folder).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
