#!/usr/bin/env python3
"""A Markdown table of what ops_bench has measured, after one line about it: pass_rates.py FILE

FILE: from --benchmark_out with --benchmark_out_format=json.
"""

import json
import pathlib
import statistics
import sys


def main():
    rates = {}  # pass and map: (GB/s, share of a copy)
    for entry in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["benchmarks"]:
        name = "/".join(entry["name"].split("/")[:3])
        rates[name] = (entry["GB_per_second"], entry["of_copy"])
    if not rates:
        sys.exit("pass_rates.py: ops_bench has measured no pass")
    print(f"{len(rates)} passes, {100 * statistics.median(share for _, share in rates.values()):.0f} % of a copy (median)")
    print("| pass | GB/s | of a copy |\n|---|---|---|")
    for name, (rate, share) in rates.items():
        print(f"| `{name}` | {rate:.0f} | {100 * share:.0f} % |")


if __name__ == "__main__":
    main()
