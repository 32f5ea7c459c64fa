#!/usr/bin/env python3
"""train_recommendation with parameter servers: embedding_servers_test.py BIN_FOLDER

Models, metrics and predictions are those of one rank, for several numbers of servers and trainers; also of a training
that is stopped and killed, and goes on with other numbers. Impossible numbers are refused.
"""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve() / "train_recommendation"
TRAIN = ["--width", "8", "--global-batch", "60", "--virtual-ranks", "12", "--lr", "0.01", "--optimizer", "adamw",
         "--weight-decay", "0.1", "--users", "40", "--movies", "30", "--ratings", "400", "--report-every", "3"]
WHOLE = ["--schedule", "cosine", "--max-steps", "15"]  # 6 steps per pass
faults = []


def expect(what, is_so, shown=""):
    if not is_so:
        faults.append(f"{what}: {shown}")


def command(output, ranks, servers, *words):
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    roles = ["--sync", "ps", "--servers", str(servers)] if servers else []
    return [*launcher, str(PROGRAM), *TRAIN, *roles, "--output", str(output), *[str(word) for word in words]]


def run(output, ranks, servers, *words, code=0):
    result = subprocess.run(command(output, ranks, servers, *words), capture_output=True, text=True, timeout=100,
                            check=False)
    expect(f"{ranks} ranks, {servers} servers, {words}: code {result.returncode}, not {code}",
           result.returncode == code, result.stdout[-2000:] + result.stderr[-2000:])
    return result.stdout + result.stderr


def results(folder):
    """A hash over models, metrics without times, and predictions."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.h5")):
        digest.update(file.name.encode() + file.read_bytes())
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        fields = json.loads(line)
        fields.pop("seconds")
        digest.update(json.dumps(fields, sort_keys=True).encode())
    digest.update((folder / "stars.csv").read_bytes())
    return digest.hexdigest()


def wait_for_checkpoint(folder, after):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        steps = [int(file.stem[5:]) for file in folder.glob("checkpoints/step-*.h5")]
        if steps and max(steps) > after:
            return max(steps)
        time.sleep(0.01)
    raise TimeoutError(f"no checkpoint after step {after} in {folder}")


def start(output, ranks, servers):
    """In a process group of its own. Endless, with a checkpoint after each step."""
    words = command(output, ranks, servers, "--max-steps", 1_000_000, "--checkpoint-every", 1)
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def ranks_of(process):
    """Process ids of the ranks that mpirun has started, the last rank last."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return sorted(int(child) for child in children)


def a_stopped_and_killed_training_goes_on(place):
    """Stopped with two trainers and a server; a server killed among three; ended on one rank without servers."""
    output = place / "stopped"
    process = start(output, 3, 1)
    step = wait_for_checkpoint(output, 0)
    process.send_signal(signal.SIGUSR1)
    said = process.communicate(timeout=60)[0]
    expect("a stopped training ends with 75", process.returncode == 75, said)
    process = start(output, 4, 2)
    step = wait_for_checkpoint(output, step + 2)
    os.kill(ranks_of(process)[-1], signal.SIGKILL)
    said = process.communicate(timeout=60)[0]
    expect("a killed server ends the training", process.returncode not in (0, 2, 75), said)
    step = wait_for_checkpoint(output, 0)
    until = ["--max-steps", step + 3, "--checkpoint-every", 1]
    run(output, 1, 0, *until)
    run(place / "whole", 1, 0, *until)
    expect("a stopped and killed training has another last model",
           last_model(output, step + 3) == last_model(place / "whole", step + 3), step)


def last_model(folder, step):
    return (folder / (f"step-{step:08}.h5" if step % 6 else f"pass-{step // 6:05}.h5")).read_bytes()


def peak_mib(process):
    """The most memory that each rank has taken, by rank, until mpirun ends."""
    peaks = {}
    while process.poll() is None:
        for rank in ranks_of(process):
            try:
                status = pathlib.Path(f"/proc/{rank}/status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            for line in status.splitlines():
                if line.startswith("VmHWM:"):
                    peaks[rank] = int(line.split()[1]) / 1024
        time.sleep(0.01)
    return [peaks[rank] for rank in sorted(peaks)]


def trainers_hold_no_rows(place):
    """The table of users has 183 MiB, with the optimizer's state. Rank 0 needs memory for it when a training resumes."""
    large = ["--width", 32, "--global-batch", 60, "--virtual-ranks", 2, "--optimizer", "adamw", "--users", 500_000,
             "--movies", 30, "--ratings", 400, "--output", place / "large"]
    for steps, light in ((1, (0, 1)), (2, (1,))):
        words = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 3, PROGRAM, *large, "--sync", "ps",
                 "--max-steps", steps]
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as process:
            peaks = peak_mib(process)
            said = process.communicate()[0]
        expect("a large table is trained", process.returncode == 0 and len(peaks) == 3, said)
        for rank in light:
            expect(f"rank {rank} holds rows in step {steps}", peaks[rank] < peaks[2] - 120 and peaks[2] > 183, peaks)


def impossible_numbers_are_refused(place):
    for ranks, words, subject in ((2, ["--sync", "ps", "--servers", "2"], "2 ranks cannot be 2 servers and a trainer"),
                                  (2, ["--sync", "ps", "--servers", "5"], "2 ranks cannot be 5 servers and a trainer"),
                                  (1, ["--sync", "ps"], "1 rank cannot be 1 server and a trainer"),
                                  (1, ["--servers", "1"], "--servers 1 has no effect with --sync all-reduce"),
                                  (1, ["--sync", "ps", "--servers", "0"], "--servers: '0'"),
                                  (6, ["--sync", "ps", "--servers", "1"], "5 trainers cannot share 12 virtual ranks")):
        said = run(place / "refused", ranks, 0, *WHOLE, *words, code=2)
        expect(f"{ranks} ranks, {words}: no '{subject}'", said.count(subject) == 1, said)


with tempfile.TemporaryDirectory() as name:
    os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
    folder = pathlib.Path(name)
    (folder / "pairs").write_text("".join(f"{i % 40},{i % 30}\n" for i in range(600)))
    hashes = {}
    for trainers, servers in ((1, 0), (1, 1), (2, 2), (3, 3), (4, 1), (1, 3), (4, 0)):
        output = folder / f"{trainers}-{servers}"
        output.mkdir()
        run(output, trainers + servers, servers, *WHOLE, "--pairs", folder / "pairs", "--predictions", output / "stars.csv")
        hashes[trainers, servers] = results(output)
    expect("results depend on trainers and servers", len(set(hashes.values())) == 1, hashes)
    a_stopped_and_killed_training_goes_on(folder)
    trainers_hold_no_rows(folder)
    impossible_numbers_are_refused(folder)
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
