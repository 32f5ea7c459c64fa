#!/usr/bin/env python3
"""Every option of every program, given what is neither a number nor a known name: option_values_test.py BIN_FOLDER

It is taken as the text it is, or refused with exit code 2 in words that quote it. CLI11 converts numbers its own way
(nan passes ranges, 010 is eight, 2^64 becomes 2^64 - 1), and never quotes: so nobody declares a number but through
launch/number_option.hpp.
"""
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys

COMMANDS = [["train_cifar"], ["evaluate"], ["export_model"], ["inspect"], ["predict"], ["check_cluster"], ["report"],
            ["scaling_study"], ["plan"], ["make_shards"], ["train_recommendation"],
            ["step_bench"], ["conv_bench"]]
COMMANDS += [["make_shards", source] for source in ("cifar10", "cifar100", "mnist", "fashion_mnist", "idx", "synthetic", "movielens",
                                                      "verify")]
OPTIONAL = {"step_bench", "conv_bench"}  # built where benches and their peers are
PROBE = "12abc"
UNKNOWN = "--quantum-leap"
TEXT_TYPES = {"FOLDER", "FILE", "DIR", "NAME", "TEXT", "auto|never|FILE"}
LEAST_NUMBERS = {"train_cifar": 20, "evaluate": 2, "predict": 3, "report": 2, "scaling_study": 9, "plan": 6, "step_bench": 6, "conv_bench": 4, "make_shards synthetic": 4,
                 "make_shards movielens": 2, "train_recommendation": 16}


def crashed_in_open_mpi(result):
    """Rarely, a thread of Open MPI 4.1 crashes as a process ends on a busy machine: no frame is of our program."""
    frames = re.findall(r"\] \[ *\d+\] ([^\s(]+)", result.stderr)
    return (result.returncode == -signal.SIGSEGV and any("libopen-pal" in frame for frame in frames)
            and all(frame.startswith("/lib") for frame in frames))


def run(folder, words):
    for _ in range(2):
        result = subprocess.run([folder / words[0], *words[1:]], capture_output=True, text=True, check=False, timeout=60,
                                stdin=subprocess.DEVNULL, env={**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1"})
        if not crashed_in_open_mpi(result):
            break
    return result


def options_of(folder, command):
    """(name, type if it has one) of each option in --help, or --help-all."""
    text = run(folder, [*command, "--help"]).stdout
    if "--help-all" in text:
        text = run(folder, [*command, "--help-all"]).stdout
    for found in re.finditer(r"^ {2,10}(?:-\w, *)?--([\w-]+)(?:, *--[\w-]+)?(?: (\S+))?(?= |$)", text, re.MULTILINE):
        name, type_name = found[1], (found[2] or "").removesuffix("...")
        if name not in ("help", "help-all", "version"):
            yield name, type_name


def judge(folder, command, name, type_name):
    """What became of the option: "number", "text", "refused" or "flag"; anything else is a fault."""
    result = run(folder, [*command, f"--{name}={PROBE}", UNKNOWN])
    said = result.stderr
    if result.returncode == 2 and re.search(rf"--{name}: '{PROBE}' is not a (whole )?number ", said):
        return "number"
    if result.returncode == 2 and f"--{name}: " in said and f"'{PROBE}'" in said:
        return "refused"
    if result.returncode == 2 and f"--{name} takes no value" in said:
        return "flag"
    # What a taken text meets next: the unknown option, or another option that it needs.
    if result.returncode == 2 and type_name in TEXT_TYPES and (UNKNOWN in said or f"--{name} requires --" in said):
        return "text"
    return f"--{name}={PROBE} ends with {result.returncode}: {said.strip() or 'taken without a word'}"


def main(folder):
    commands = [command for command in COMMANDS if command[0] not in OPTIONAL or (folder / command[0]).exists()]
    faults, total = [], 0
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for command in commands:
            options = list(options_of(folder, command))
            verdicts = list(pool.map(lambda option: judge(folder, command, *option), options))
            total += len(verdicts)
            title = " ".join(command)
            faults += [f"{title}: {verdict}" for verdict in verdicts
                       if verdict not in ("number", "text", "refused", "flag")]
            numbers = verdicts.count("number")
            print(f"{title}: {len(options)} options, {numbers} of them numbers")
            if numbers < LEAST_NUMBERS.get(title, 0):
                faults.append(f"{title}: {numbers} options are numbers, there should be {LEAST_NUMBERS[title]} or more")
    print("\n".join(faults) or f"{total} options are in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
