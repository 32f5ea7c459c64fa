#!/usr/bin/env python3
"""The trace of a training on two ranks that a signal stops, and of the one that goes on: trace_run_test.py PROGRAMS

Each attempt has a trace of its own. Phases of a rank follow one another without overlap, both ranks begin each sum, and
weights are those of a training without a trace.
"""
import collections
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 2
STOPPED_EARLY = 75
OF_A_STEP = {"waiting for data", "in forward", "in backward", "summing gradients", "updating weights"}


def start(programs, folder, output, *more, stderr=None):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", RANKS, f"{programs}/train_cifar", "--data",
               folder / "data", "--model", "lenet", "--threads", "1", "--global-batch", "32", "--epochs", "8",
               "--report-every", "2", "--output", folder / output, *more]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=stderr)


def check(trace, first_step):
    spans = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            spans[event["pid"]].append(event)
    assert sorted(spans) == list(range(RANKS)), sorted(spans)
    ends = collections.defaultdict(list)
    for rank, events in spans.items():
        phases = sorted((event for event in events if event["cat"] != "sum"), key=lambda event: event["ts"])
        for one, other in zip(phases, phases[1:]):
            assert one["ts"] + one["dur"] <= other["ts"] + 0.002, (one, other)
        steps = collections.defaultdict(set)
        for event in phases:
            steps[event["args"]["step"]].add(event["name"])
        done = [step for step, names in steps.items() if names >= OF_A_STEP]
        assert first_step + 1 in done and done == sorted(done), (first_step, done)
        sums = [event["args"]["number"] for event in events if event["cat"] == "sum"]
        assert sums == list(range(1, len(sums) + 1)), sums
        ends[len(sums)].append(rank)
    assert len(ends) == 1, f"ranks began different numbers of sums: {dict(ends)}"
    assert trace["otherData"]["clocks_differ_by_at_most_us"] < 1e5, trace["otherData"]
    return max(done)


def main(programs):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "320", "--output", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        traces = folder / "traces"
        training = start(programs, folder, "run", "--trace", traces)
        while not (folder / "run" / "metrics.jsonl").exists() or (folder / "run" / "metrics.jsonl").stat().st_size < 1000:
            assert training.poll() is None, "it ended too soon"
            time.sleep(0.01)
        training.send_signal(signal.SIGUSR1)
        assert training.wait(60) == STOPPED_EARLY
        last = check(json.loads((traces / "trace-0.json").read_text()), 0)
        assert start(programs, folder, "run", "--trace", traces).wait(60) == 0
        check(json.loads((traces / f"trace-{last}.json").read_text()), last)
        assert len(list(traces.iterdir())) == 2, list(traces.iterdir())
        assert start(programs, folder, "plain").wait(60) == 0
        hashes = {json.loads((folder / run / "summary.json").read_text())["weights_hash"] for run in ("run", "plain")}
        assert len(hashes) == 1, hashes
        other = start(programs, folder, "other", "--trace", traces, stderr=subprocess.PIPE)
        said = other.communicate(timeout=60)[1].decode()
        assert other.returncode == 0 and f"'{traces}/trace-0.json'" in said and "--trace" in said, said
        (folder / "file").write_text("text")
        refused = start(programs, folder, "refused", "--trace", folder / "file" / "traces")
        assert refused.wait(60) == 2
    print("two attempts have a trace each")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
