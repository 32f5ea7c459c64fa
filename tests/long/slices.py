#!/usr/bin/env python3
"""Slices of the long tests, and when each passed last: slices.py ROOT COMMAND

    pattern K/N          what ctest is to run: prints a regular expression
    commit               prints the commit on which a slice can be recorded, or why it cannot
    record K/N COMMIT    notes in passed.json that the slice passed on it, today, if the clone is still as it was
    stale                prints each slice with the commits since it passed
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


def file_in(root):
    return root / "tests/long/passed.json"


def passed_in(root):
    """A commit and a date for each slice that has passed."""
    try:
        passed = json.loads(file_in(root).read_text()) if file_in(root).exists() else {}
        return {name: {key: str(entry[key]) for key in ("commit", "date")} for name, entry in passed.items()}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        sys.exit(f"cannot read {file_in(root)}: {error}. Restore it with git checkout.")


def commit_of(root):
    """The commit that the clone is, without a change; else says so."""
    passed_in(root)
    try:
        changes = git(root, "status", "--porcelain", "--", ".", ":!tests/long/passed.json")
        commit = git(root, "rev-parse", "--short=12", "HEAD")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"cannot record: git does not tell the commit ({getattr(error, 'stderr', None) or error}).")
    if changes:
        sys.exit("cannot record: the clone has changes that are not committed, or files that git does not know.")
    return commit


def record(root, name, commit):
    if commit_of(root) != commit:
        sys.exit(f"not recorded: the tests began on {commit}, which is no longer the clone's commit.")
    passed = passed_in(root)
    passed[name] = {"commit": commit, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    file_in(root).write_text(json.dumps(passed, indent=1, sort_keys=True) + "\n")
    print(f"recorded in {file_in(root).relative_to(root)}: '{name}' passed on {commit}")


def age(root, commit):
    try:
        return f"{git(root, 'rev-list', '--count', f'{commit}..HEAD')} commits ago"
    except (OSError, subprocess.CalledProcessError):
        return "on a commit that is not here"


def print_stale(root):
    passed, slices = passed_in(root), slices_in(root)
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
    elif command == "commit":
        print(commit_of(root))
    elif command == "record":
        record(root, chosen(root, sys.argv[3])[0], sys.argv[4])
    elif command == "stale":
        print_stale(root)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
