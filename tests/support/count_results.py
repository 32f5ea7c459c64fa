#!/usr/bin/env python3
"""Counts CTest's results: count_results.py JUNIT_FILE CTEST_EXIT_CODE [LINE].

Names every skipped and failed test, prints LINE and last `N passed, N failed, N skipped`, and exits as the tests deserve.
A test that could not start has failed: CTest calls it skipped.
"""
import sys
import xml.etree.ElementTree as ElementTree


def list_for(case, passed, failed, skipped):
    skips = [skip.get("message", "") for skip in case.findall("skipped")]
    is_skipped = case.get("status") == "disabled" or any(skip.startswith("SKIP_") for skip in skips)
    return passed if case.get("status") == "run" else skipped if is_skipped else failed


def main(junit_file, ctest_code, *lines):
    try:
        cases = ElementTree.parse(junit_file).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"ctest left no results: {error}")
        cases = []
    passed, failed, skipped = [], [], []
    for case in cases:
        list_for(case, passed, failed, skipped).append(case.get("name"))
    for name in sorted(skipped):
        print(f"skipped: {name}")
    for name in sorted(failed):
        print(f"failed: {name}")
    if not failed and (ctest_code != 0 or not cases):
        failed = [f"ctest itself, with code {ctest_code}" if cases else f"ctest has run no test (code {ctest_code})"]
        print(f"failed: {failed[0]}")
    for line in lines:
        print(line)
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
