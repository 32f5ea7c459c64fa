#!/usr/bin/env python3
"""Every long test is in exactly one slice, and every slice has tests: slices_test.py ROOT BUILD"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from slices import slices_in  # noqa: E402: found only now


def main():
    root, build = sys.argv[1:3]
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", "-L", "long"], check=True,
                          capture_output=True, text=True).stdout
    names = [test["name"] for test in json.loads(told)["tests"]]
    slices = [(name, re.compile(pattern)) for name, pattern in slices_in(pathlib.Path(root))]
    faults = []
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
