#!/usr/bin/env python3
"""Compares pictures per second of one core: Lockstep's loader with PyTorch's DataLoader, DALI, FFCV and libjpeg-turbo.

    python3 bench/compare_loading.py --build build/release --pictures FOLDER

FOLDER has one folder of JPEG files per class. make_shards first converts it: as JPEG, and as pixels with 256 on the
shorter side. The sides run in turn. Prints a Markdown table; progress goes to stderr.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from comparison import ratio_interval, short
from processes import say

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
HEAD = """\
| {size} pixels a side | Lockstep, pictures/s of a core | the other | ratio (95 % interval) | libjpeg-turbo, whole pictures \
| Lockstep / libjpeg-turbo |
|---|---|---|---|---|---|"""


def json_of(command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def converted(options, folder, store):
    say(f"{store}: converting '{options.pictures}'")
    target = pathlib.Path(folder) / store
    program = pathlib.Path(options.build) / "bin" / "make_shards"
    words = [program, "images", "--source", options.pictures, "--output", target, "--store", store]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return target / "train"


def row(name, ours, theirs):
    rates = [[run["samples_per_second"] for run in runs] for runs in (ours, theirs)]
    median, low, high = ratio_interval(*rates)
    cells = [name, *(short(statistics.median(side)) for side in rates), f"{median:.2f} ({low:.2f}–{high:.2f})"]
    if "whole_pictures_per_second" in ours[0]:
        whole = [run["whole_pictures_per_second"] for run in ours]
        share, *_ = ratio_interval(rates[0], whole)
        cells += [short(statistics.median(whole)), f"{share:.2f}"]
    else:
        cells += ["–", "–"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="build folder with picture_bench (%(default)s)")
    parser.add_argument("--pictures", required=True, help="folder with one folder of JPEG files per class")
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch and torchvision (%(default)s)")
    parser.add_argument("--dali-python", help="interpreter with nvidia.dali (default: without DALI)")
    parser.add_argument("--ffcv-python", help="interpreter with ffcv and torchvision (default: without FFCV)")
    parser.add_argument("--size", type=int, default=224, help="image side in pixels (%(default)s)")
    parser.add_argument("--batches", type=int, default=60, help="batches of 32 pictures in each run (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs (%(default)s)")
    options = parser.parse_args()
    bench = pathlib.Path(options.build) / "bin" / "picture_bench"
    size = ["--size", str(options.size)]
    with tempfile.TemporaryDirectory() as folder:
        jpeg, raw = (converted(options, folder, store) for store in ("jpeg", "raw"))
        mine = [bench, *size, "--batches", str(options.batches), "--data"]
        pictures = [*size, "--pictures", options.pictures]
        work = [*pictures, "--samples", str(options.batches * 32)]
        peer = [options.python, PEERS / "loader_peer.py", *work]
        ours = {
            "JPEG": [*mine, jpeg],
            "JPEG, --decode exact": [*mine, jpeg, "--decode", "exact"],
            "pixels": [*mine, raw],
        }
        peers = {
            "DataLoader with Pillow": peer,
            "DataLoader with torchvision's decoder": [*peer, "--decoder", "torchvision"],
        }
        if options.dali_python:
            peers["DALI"] = [options.dali_python, PEERS / "dali_peer.py", *work]
        if options.ffcv_python:
            peers["FFCV"] = [options.ffcv_python, PEERS / "ffcv_peer.py", *pictures]
        sides = ours | peers
        runs = {name: [] for name in sides}
        for pair in range(options.pairs):
            for name, command in sides.items():
                runs[name].append(json_of(command))
            say(f"pair {pair + 1} of {options.pairs}")
    print(HEAD.format(size=options.size))
    for peer_name in peers:
        for name in ours:
            print(row(f"{name}; {peer_name}", runs[name], runs[peer_name]))


if __name__ == "__main__":
    main()
