#!/usr/bin/env python3
"""Samples a second of a whole machine: Lockstep's loader, PyTorch's DataLoader with h5py, and webdataset, in turn.

    python3 bench/compare_readers.py --build build/release --python PYTHON [--cifar FOLDER] [--pictures FOLDER]

--cifar names the binary version of CIFAR-10 (images of one size), --pictures a folder of JPEG files for each class (as
JPEG files, and as pixels). Both are converted first. PYTHON has torch, torchvision, h5py and webdataset; without
webdataset its rows are left out. Each side first runs with 1, 2, ... threads or 0, 1, ... workers, up to one more than
there are cores, and keeps the number that is fastest; then all run in turn. Prints a Markdown table; progress goes to
stderr.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

from compare import JEMALLOC
from comparison import ratio_interval, short
from processes import CANNOT_COMPARE, ProgramFailed, cpu_facts, give_up, json_line, output_of, python_with_torch, say
from suite import versions

PEER = pathlib.Path(__file__).resolve().parent / "peers" / "reader_peer.py"
HEAD = """\
| shards hold | reader | Lockstep, samples/s | threads | the other, samples/s | workers | ratio (95 % interval) |
|---|---|---|---|---|---|---|"""
HAS_WEBDATASET = "import importlib.util; print(importlib.util.find_spec('webdataset') is not None)"


class Form:
    """A form of storage: its name in the table, words of make_shards, and samples of a batch."""

    def __init__(self, title, name, words, batch):
        self.title, self.name, self.words, self.batch = title, name, words, batch


def forms_of(options):
    forms = []
    if options.cifar:
        forms.append(Form("CIFAR-10, images of 32 pixels", "cifar", ["cifar10", "--source", options.cifar], 128))
    for store, title in (("jpeg", "pictures as JPEG files"), ("raw", "pictures as pixels, shorter side 256")):
        if options.pictures:
            words = ["images", "--source", options.pictures, "--store", store]
            forms.append(Form(f"{title}, to 224", store, words, 32))
    return forms


class Lockstep:
    name = "Lockstep"
    numbers = range(1, len(os.sched_getaffinity(0)) + 2)  # of threads

    def __init__(self, form, options, folder):
        bench = pathlib.Path(options.build).resolve() / "bin" / "picture_bench"
        self.command = [bench, "--data", folder / form.name / "train", "--batch", str(form.batch)]
        self.batch = form.batch

    def run(self, number, batches):
        return json_line(output_of([*self.command, "--threads", str(number), "--batches", str(batches)], {}))


class Peer:
    numbers = range(len(os.sched_getaffinity(0)) + 2)  # of workers

    def __init__(self, reader, form, options, folder):
        self.name, self.batch = reader, form.batch
        self.command = [options.python, PEER, "--reader", reader, "--data", folder / form.name / "train"]
        self.environment = JEMALLOC | {"OMP_NUM_THREADS": "1"}
        if reader == "webdataset":
            tars = folder / form.name / "tars"
            tars.mkdir()
            self.command += ["--tars", tars]
            output_of([*self.command, "--write-tars"], self.environment)

    def run(self, number, batches):
        words = ["--batch", str(self.batch), "--workers", str(number), "--batches", str(batches)]
        line = json_line(output_of([*self.command, *words], self.environment))
        if line["allocator"] != "jemalloc":
            give_up(f"'{JEMALLOC['LD_PRELOAD']}' is not installed. Without it, PyTorch is slower. "
                    "Install it (Debian: libjemalloc2).", CANNOT_COMPARE)
        return line


class Chosen:
    """A side with the number of threads or workers that was the fastest, and as many batches as fill the time."""

    def __init__(self, side, seconds):
        self.side, self.lines = side, []
        rates = {}
        for number in side.numbers:
            batches = 10
            for _ in range(2):  # the first run tells how many batches make a second
                rates[number] = side.run(number, batches)["samples_per_second"]
                batches = max(10, round(rates[number] / side.batch))
            say(f"  {side.name}, {number}: {rates[number]:.0f} samples/s")
        self.number = max(rates, key=rates.get)
        self.batches = max(10, round(seconds * rates[self.number] / side.batch))

    def run(self):
        self.lines.append(self.side.run(self.number, self.batches))

    def rates(self):
        return [line["samples_per_second"] for line in self.lines]


def row(form, ours, theirs):
    median, low, high = ratio_interval(ours.rates(), theirs.rates())
    cells = [form.title, theirs.side.name, short(statistics.median(ours.rates())), str(ours.number),
             short(statistics.median(theirs.rates())), str(theirs.number), f"{median:.2f} ({low:.2f}–{high:.2f})"]
    return "| " + " | ".join(cells) + " |"


def compare(form, readers, options, folder):
    """The rows of a form of storage, and the peers' versions."""
    say(f"{form.title}: converting")
    make_shards = pathlib.Path(options.build).resolve() / "bin" / "make_shards"
    output_of([make_shards, *form.words, "--output", folder / form.name], {})
    sides = [Lockstep(form, options, folder), *(Peer(reader, form, options, folder) for reader in readers)]
    ours, *others = [Chosen(side, options.seconds) for side in sides]
    for pair in range(options.pairs):
        say(f"{form.title}: pair {pair + 1} of {options.pairs}")
        for side in (ours, *others):
            side.run()
    found = {name: version for other in others for name, version in other.lines[0]["versions"].items()}
    return [row(form, ours, other) for other in others], found


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder with picture_bench (%(default)s)")
    parser.add_argument("--cifar", help="folder with the binary version of CIFAR-10")
    parser.add_argument("--pictures", help="folder with one folder of JPEG files per class")
    parser.add_argument("--python", help="interpreter with torch, torchvision, h5py and, optionally, webdataset")
    parser.add_argument("--pairs", type=int, default=5,
                        help="pairs of runs (%(default)s); fewer than five give no useful interval")
    parser.add_argument("--seconds", type=float, default=3, help="duration of each timed run (%(default)s)")
    options = parser.parse_args()
    if not options.cifar and not options.pictures:
        parser.error("no data is given. Add --cifar, --pictures or both.")
    return options


def main():
    options = parse_options()
    options.python = python_with_torch(options.python)
    readers = ["h5py"]
    if output_of([options.python, "-c", HAS_WEBDATASET], {}).strip() == "True":
        readers.append("webdataset")
    else:
        say(f"webdataset is left out, because '{options.python}' (--python) cannot import it.")
    rows, peers = [], {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for form in forms_of(options):
            made, found = compare(form, readers, options, pathlib.Path(folder))
            rows += made
            peers |= found
    told = versions(options.build)
    cores = len(os.sched_getaffinity(0))
    print(f"- {cpu_facts()[2]}, {cores} cores; load at the start {load:.1f}")
    print(f"- Lockstep {told.get('lockstep', '')} (commit {told.get('commit', 'unknown')})")
    print(f"- {', '.join(f'{name} {version}' for name, version in peers.items())}, jemalloc")
    print(f"- medians of {options.pairs} runs in turn, {options.seconds:g} s each\n")
    print(HEAD)
    print("\n".join(rows))


if __name__ == "__main__":
    try:
        main()
    except ProgramFailed as failed:
        sys.exit(str(failed))
