#!/usr/bin/env python3
"""Does harm to trainings and tells what became of them.

    chaos.py                                              two ranks on this machine, a quarter of an hour
    chaos.py --quick                                      a selection, half a minute
    chaos.py --launcher "srun -n 4" --folder /scratch/me  in an allocation; the folder is one that all nodes see

A fault has survived if the training goes on, or ends with the right code and a sentence that names the fault, and the same
command then comes to the weights of a training that nobody disturbed. Signals go to ranks on the machine where this runs.
The last line counts; the exit code is 1 if anything was lost.
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
        print(f"{skipped} could not be done here, see above")
    injected = len(verdicts) - skipped
    print(f"{injected} faults injected, {injected - lost} survived, {lost} lost")
    return 1 if lost or not injected else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launcher", default="mpirun --oversubscribe --bind-to none -n 2",
                        help="what starts the ranks; '' for one rank (%(default)s)")
    parser.add_argument("--programs", type=pathlib.Path, default=BUILT, help="folder of train_cifar (%(default)s)")
    parser.add_argument("--folder", type=pathlib.Path, help="for data and trainings, on a disk that all nodes see")
    parser.add_argument("--device", default="cpu", help="%(default)s")
    parser.add_argument("--quick", action="store_true", help="a selection of the faults")
    parser.add_argument("--only", default="", help="faults whose names contain this")
    parser.add_argument("--write-kills", type=int, help="kills while a checkpoint is written (100, with --quick 2)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of steps, ranks and bytes")
    return parser.parse_args()


def main():
    options = parse()
    random.seed(options.seed)
    faults = [fault for fault in FAULTS if options.only in fault.name and (fault.quick or not options.quick)]
    if not faults:
        sys.exit(f"no fault has '{options.only}' in its name (--only)")
    if not (options.programs / "train_cifar").exists():
        sys.exit(f"no train_cifar in '{options.programs}' (--programs). Build the release preset.")
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
