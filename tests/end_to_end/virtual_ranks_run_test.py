#!/usr/bin/env python3
"""Trains with 12 virtual ranks on several numbers of ranks and threads, and on one number after another with a kill in
between, and wants the same weights every time.

virtual_ranks_run_test.py PROGRAMS --ranks 1 5 12 [--program NAME] [--precision bf16] [--with=OPTIONS]
"""
import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, image_options, make_data, under_mpirun  # noqa: E402: found only now

VIRTUAL_RANKS = 12


def training(options, folder, output, ranks, threads=1):
    program = [f"{options.programs}/{options.program}", "--data", folder / "data", "--model", "resnet20", "--epochs", "2",
               "--threads", str(threads), "--global-batch", "24", "--virtual-ranks", str(VIRTUAL_RANKS), "--precision",
               options.precision, "--report-every", "1", "--checkpoint-every", "3", *image_options(options.program),
               "--device", "cpu", "--output", output, *options.more.split()]
    return Training(under_mpirun(ranks) + program, output)


def train(options, folder, output, ranks, threads=1):
    """The hash of the weights that a training, or the rest of one, ends with."""
    run = training(options, folder, output, ranks, threads)
    code = run.run()
    if code != 0:
        sys.exit(f"{ranks} ranks failed with {code}: {run.words()}")
    summary = run.summary()
    if summary["virtual_ranks"] != VIRTUAL_RANKS or summary["ranks"] != ranks:
        sys.exit(f"the summary is of another run: {summary}")
    return summary["weights_hash"]


def start_and_kill(options, folder, output, ranks, step):
    """Starts a training, and kills all of it once `step` is reported."""
    run = training(options, folder, output, ranks)
    program = run.start()
    if not run.wait_for_step(program, step):
        sys.exit("the training ended before it could be killed")
    run.kill(program)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--program", default="train_cifar")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--with", dest="more", default="", help="further options of the training")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(options.programs, options.program, 240, folder / "data")
        hashes = {}
        for ranks in options.ranks:
            hashes[f"{ranks} ranks"] = train(options, folder, folder / f"ranks {ranks}", ranks)
        hashes["1 rank with 3 threads"] = train(options, folder, folder / "threads", 1, 3)
        start_and_kill(options, folder, folder / "killed", 2, 7)
        hashes["2 ranks, killed, then 3"] = train(options, folder, folder / "killed", 3)
        for run, weights in hashes.items():
            print(f"{run:24} {weights}")
        if len(set(hashes.values())) != 1:
            sys.exit("weights differ")


if __name__ == "__main__":
    main()
