#!/usr/bin/env python3
"""Approves the messages that tests render: approve_messages.py [--build DIR] [ROOM...]

Runs the unit tests of these folders below tests/ (all of them unless rooms are named) from a build with tests
(build/release), and writes the sentences to tests/<room>/messages.txt. Review the diff: it is what users will read.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "house"))
import messages  # noqa: E402


def is_written(test, sources):
    """Whether a source has this test, with whatever prefix, type and parameter."""
    suite, name = test.split(".", 1)
    suites = "|".join(re.escape(part) for part in suite.split("/"))
    return re.search(rf"TEST\w*\(\s*(?:{suites}),\s*{re.escape(name.split('/')[0])}\)", sources) is not None


def kept(file, places, room):
    """What is approved for tests that this build does not have (of CUDA, say), as long as a source has them."""
    sources = "".join(path.read_text() for path in (ROOT / "tests" / room).rglob("*.cpp"))
    rendered = {test for test, _ in places}
    return {place: sentences for place, sentences in messages.read(file)[0].items()
            if place[0] not in rendered and is_written(place[0], sources)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    options = parser.parse_args()
    found = messages.rooms(ROOT)
    rooms = options.rooms or sorted(room for room in found
                                    if (options.build / "tests" / room).is_dir() and (ROOT / "lib" / room).is_dir())
    with tempfile.TemporaryDirectory() as folder:
        for room in rooms:
            tests = options.build / "tests" / room
            if not tests.is_dir():
                sys.exit(f"no tests of '{room}' in {options.build} (build them first: tests/run.sh).")
            done = subprocess.run(["ctest", "--test-dir", tests, "--label-regex", "unit|mpi", "--label-exclude", "long|gpu",
                                   "--parallel", "2", "--quiet"], check=False,
                                  env={**os.environ, "LOCKSTEP_APPROVE_MESSAGES": folder})
            if done.returncode:
                sys.exit(f"tests of '{room}' fail (ctest --test-dir {tests} shows why): nothing is approved.")
            rendered = pathlib.Path(folder) / room
            places = {}
            for line in rendered.read_text().splitlines() if rendered.exists() else []:
                place, sentence = line.split("\t", 1)
                test, number = place.rsplit(" ", 1)
                places.setdefault((test, int(number)), set()).add(sentence)
            file = ROOT / "tests" / room / "messages.txt"
            places |= kept(file, places, room)
            messages.write(file, room, places, [])
            print(f"{room}: {len(places)} messages")
    return messages.main(ROOT, True)


if __name__ == "__main__":
    sys.exit(main())
