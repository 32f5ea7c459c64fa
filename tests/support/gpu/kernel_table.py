#!/usr/bin/env python3
"""Sums up what Nsight Compute measured of each kernel: kernel_table.py FILE

FILE has what `ncu --csv --print-units base --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum`
printed, between other lines. Prints one line about all kernels, and a Markdown table of those that take most of the time.
"""

import collections
import csv
import pathlib
import re
import sys

SHOWN = 30
DURATION = "gpu__time_duration.sum"
TRAFFIC = ("dram__bytes_read.sum", "dram__bytes_write.sum")


def short_name(kernel):
    """`Normalize` for for_each<lockstep::cuda::Normalize<...>>(...), else the function without its arguments."""
    own = re.search(r"for_each<(?:\w+::)*(\w+)", kernel)
    name = own[1] if own else re.sub(r"^void ", "", kernel).split("(")[0]
    return name.replace("|", "/")[:60]


def measurements(text):
    """{launch: (kernel, {metric: value})}"""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found = {}
    for row in csv.DictReader(line for line in lines[start:] if line.startswith('"')):
        values = found.setdefault(row["ID"], (row["Kernel Name"], {}))[1]
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return {launch: entry for launch, entry in found.items() if DURATION in entry[1]}


def main():
    launches = measurements(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    if not launches:
        sys.exit("kernel_table.py: there is no kernel in what ncu printed")
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])  # launches, nanoseconds, bytes
    for kernel, values in launches.values():
        entry = sums[short_name(kernel)]
        entry[0] += 1
        entry[1] += values[DURATION]
        entry[2] += sum(values.get(metric, 0) for metric in TRAFFIC)
    total = sum(entry[1] for entry in sums.values())
    print(f"{len(launches)} launches, {total / 1e3:.0f} us")
    print("| kernel | launches | us | share | GB/s |\n|---|---|---|---|---|")
    for name, (count, duration, traffic) in sorted(sums.items(), key=lambda item: -item[1][1])[:SHOWN]:
        rate = f"{traffic / duration:.0f}" if duration else "–"
        print(f"| `{name}` | {count} | {duration / 1e3:.1f} | {100 * duration / total:.1f} % | {rate} |")


if __name__ == "__main__":
    main()
