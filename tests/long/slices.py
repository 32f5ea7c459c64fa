#!/usr/bin/env python3
"""Slices of the long tests, and when each passed last: slices.py ROOT COMMAND

    pattern K/N      what ctest is to run: prints a regular expression
    record K/N       notes in passed.json that the slice passed on this commit, today
    stale            prints each slice with the commits since it passed
"""
import json
import pathlib
import subprocess
import sys
import time


def slices_in(root):
    lines = (root / "tests/long/slices.txt").read_text().splitlines()
    return [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]


def chosen(root, text):
    slices = slices_in(root)
    number, _, count = text.partition("/")
    if not (number.isdigit() and count == str(len(slices)) and 1 <= int(number) <= len(slices)):
        names = ", ".join(f"{place}/{len(slices)} {name}" for place, (name, _) in enumerate(slices, 1))
        sys.exit(f"'{text}' is no slice. Known: {names}.")
    return slices[int(number) - 1]


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True).stdout.strip()


def record(root, name):
    file = root / "tests/long/passed.json"
    passed = json.loads(file.read_text()) if file.exists() else {}
    if git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/long/passed.json"):
        sys.exit("not recorded: the clone has changes that are not committed.")
    passed[name] = {"commit": git(root, "rev-parse", "--short=12", "HEAD"), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    file.write_text(json.dumps(passed, indent=1, sort_keys=True) + "\n")
    print(f"recorded in {file.relative_to(root)}: '{name}' passed on {passed[name]['commit']}")


def age(root, commit):
    try:
        return f"{git(root, 'rev-list', '--count', f'{commit}..HEAD')} commits ago"
    except subprocess.CalledProcessError:
        return "on a commit that is not here"


def print_stale(root):
    file = root / "tests/long/passed.json"
    passed = json.loads(file.read_text()) if file.exists() else {}
    slices = slices_in(root)
    for place, (name, _) in enumerate(slices, 1):
        entry = passed.get(name)
        words = f"passed on {entry['date']}, {age(root, entry['commit'])}" if entry else "never recorded as passed"
        print(f"slice {place}/{len(slices)} {name}: {words}")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    root, command = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    if command == "pattern":
        print(f"^({chosen(root, sys.argv[3])[1]})$")
    elif command == "record":
        record(root, chosen(root, sys.argv[3])[0])
    elif command == "stale":
        print_stale(root)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
