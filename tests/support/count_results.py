#!/usr/bin/env python3
"""Counts CTest's results: count_results.py JUNIT_FILE CTEST_EXIT_CODE [LINE].

Names every skipped and failed test, prints LINE and last `N passed, N failed, N skipped`, and exits as the tests deserve.
"""
import sys
import xml.etree.ElementTree as ElementTree


def main(junit_file, ctest_code, *lines):
    try:
        cases = ElementTree.parse(junit_file).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(f"ctest left no results: {error}")
        cases = []
    by_status = {"run": [], "fail": [], "notrun": [], "disabled": []}
    for case in cases:
        by_status.setdefault(case.get("status"), []).append(case.get("name"))
    skipped = by_status["notrun"] + by_status["disabled"]
    passed, failed = by_status["run"], by_status["fail"]
    for name in sorted(skipped):
        print(f"skipped: {name}")
    for name in sorted(failed):
        print(f"failed: {name}")
    if ctest_code != 0 and not failed:
        failed = [f"ctest itself, with code {ctest_code}"]
        print(f"failed: {failed[0]}")
    for line in lines:
        print(line)
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
