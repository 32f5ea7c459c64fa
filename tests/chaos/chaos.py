#!/usr/bin/env python3
"""Injects faults into trainings, and reports which ones the trainings survive.

    chaos.py                                              two ranks on this machine: 20 minutes
    chaos.py --quick                                      a selection: a minute
    chaos.py --launcher "srun -n 4" --folder /scratch/me  in an allocation; all nodes must see the folder

A fault is survived if the training continues, or ends with the right exit code and a message that names the fault, and
the same command then reaches the weights of an undisturbed training. Signals go to ranks on this machine. The last line
counts the faults. The exit code is 1 if one was not survived.
"""
import argparse
import pathlib
import random
import shlex
import sys
import tempfile
import time

import checkpoint_faults
import rank_faults
import shard_faults
import storage_faults
import write_kills
from ground import Case, Ground, Lost, Options, Skipped

WIDTHS = (39, 28, 47)
LONGEST = 110
BUILT = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin"
FAULTS = [*rank_faults.FAULTS, *shard_faults.FAULTS, *checkpoint_faults.FAULTS, *storage_faults.FAULTS, *write_kills.FAULTS]


def row(fault, where, expected, happened, seconds):
    cells = [f"{text:{width}}" for text, width in zip((fault, where, expected), WIDTHS)]
    return f"{'  '.join(cells)}  {seconds:>5}  {happened}"


def shortened(happened, folder):
    text = str(happened).replace(f"{folder}/", "").replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def inject(fault, ground):
    """(verdict, row of the table)"""
    case = Case(ground, fault.name)
    start = time.monotonic()
    try:
        verdict, happened = "survived", fault.inject(case)
    except Skipped as reason:
        verdict, happened = "skipped", reason
    except (Lost, OSError) as reason:  # a TimeoutError is an OSError
        verdict, happened = "LOST", reason
    if verdict != "LOST":
        happened = shortened(happened, ground.options.folder)
    seconds = f"{time.monotonic() - start:.1f}"
    return verdict, row(fault.name, case.where, fault.expected, f"{verdict}: {happened}", seconds)


def report(faults, ground):
    """Prints the table. Returns the exit code."""
    print(row("fault", "where", "expected", "what happened", "s"))
    verdicts = []
    for fault in faults:
        verdict, line = inject(fault, ground)
        verdicts.append(verdict)
        print(line, flush=True)
    skipped, lost = verdicts.count("skipped"), verdicts.count("LOST")
    if skipped:
        print(f"{skipped} could not be injected on this machine (see above)")
    injected = len(verdicts) - skipped
    print(f"{injected} faults injected, {injected - lost} survived, {lost} lost")
    return 1 if lost or not injected else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", default="mpirun --oversubscribe --bind-to none -n 2",
                        help="command that starts the ranks; '' for one rank (%(default)s)")
    parser.add_argument("--programs", type=pathlib.Path, default=BUILT, help="folder of the programs (%(default)s)")
    parser.add_argument("--folder", type=pathlib.Path,
                        help="folder for data and trainings, on a file system that all nodes see")
    parser.add_argument("--device", default="cpu", help="device of the trainings (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="inject a selection of the faults")
    parser.add_argument("--only", default="", metavar="TEXT", help="inject only faults whose names contain TEXT")
    parser.add_argument("--write-kills", type=int, metavar="COUNT",
                        help="kills during checkpoint writes (default: 100, with --quick 2)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30),
                        help="seed of the choice of steps, ranks and bytes (default: random)")
    return parser.parse_args()


def main():
    options = parse()
    random.seed(options.seed)
    faults = [fault for fault in FAULTS if options.only in fault.name and (fault.quick or not options.quick)]
    if not faults:
        sys.exit(f"no fault has '{options.only}' in its name (--only).")
    if not (options.programs / "train_cifar").exists():
        sys.exit(f"'{options.programs}' (--programs) has no train_cifar. Build the release preset.")
    kills = options.write_kills or (2 if options.quick else 100)
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=options.folder) as name:
        ground = Ground(Options(options.programs.resolve(), shlex.split(options.launcher), pathlib.Path(name),
                                options.device, write_kills=kills))
        print(f"{ground.ranks} ranks, {ground.steps} steps, weights {ground.weights}; --seed {options.seed}")
        sys.exit(report(faults, ground))


if __name__ == "__main__":
    main()
