#!/usr/bin/env python3
"""A Markdown table of GPU time by layer, after one line about it: layer_table.py FILE

FILE has what `nsys stats --report=nvtx_gpu_proj_sum --format=csv` printed, between other lines. A layer's time is the
median over steps of its ranges "forward LAYER" and "backward LAYER" (device/profiler_range.hpp).
"""

import collections
import csv
import pathlib
import re
import sys

RANGE = re.compile(r"^(?:lockstep)?:?(forward|backward) (.+)$")
SHOWN = 40


def main():
    lines = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace").splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("Range,")), len(lines))
    layers = collections.defaultdict(lambda: {"forward": 0.0, "backward": 0.0})  # microseconds
    for row in csv.DictReader(lines[start:]):
        found = RANGE.match(row["Range"])
        if found:
            layers[found[2]][found[1]] += float(row["Proj Med (ns)"].replace(",", "")) / 1e3
    if not layers:
        sys.exit("layer_table.py: there is no layer in what nsys printed")
    total = sum(sum(times.values()) for times in layers.values())
    print(f"{len(layers)} layers, {total:.0f} us")
    print("| layer | forward, us | backward, us | share |\n|---|---|---|---|")
    for name, times in sorted(layers.items(), key=lambda item: -sum(item[1].values()))[:SHOWN]:
        print(f"| `{name.replace('|', '/')}` | {times['forward']:.1f} | {times['backward']:.1f} | "
              f"{100 * sum(times.values()) / total:.1f} % |")


if __name__ == "__main__":
    main()
