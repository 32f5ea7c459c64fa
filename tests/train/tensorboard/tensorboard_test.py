#!/usr/bin/env python3
"""TensorBoard's own reader on what trainings write: tensorboard_test.py PROGRAMS

A training is stopped and goes on from an earlier checkpoint: the reader finds each step once, in order, with the numbers
of metrics.jsonl. Skipped (77) where Python has no tensorboard.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("no tensorboard here")
    sys.exit(77)

STOPPED_EARLY = 75
DRAWN = [("training", "loss", "loss/training"), ("training", "learning_rate", "learning_rate"),
         ("training", "samples_per_second", "samples_per_second"), ("test", "accuracy", "accuracy/test"),
         ("test", "loss", "loss/test"), ("test", "ema_accuracy", "accuracy/test_of_mean_weights")]


def start(programs, folder):
    command = [f"{programs}/train_cifar", "--data", folder / "data", "--model", "lenet", "--threads", "1", "--global-batch",
               "32", "--report-every", "3", "--checkpoint-every", "50", "--epochs", "40", "--ema", "0.9", "--output",
               folder / "run", "--tensorboard", folder / "events"]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)


def stop_on_the_way(training, metrics):
    while not metrics.exists() or metrics.read_text().count("\n") < 60:
        assert training.poll() is None, "it ended too soon"
        time.sleep(0.02)
    training.send_signal(signal.SIGUSR1)
    assert training.wait(60) == STOPPED_EARLY


def read(folder):
    events = EventAccumulator(str(folder / "events"), size_guidance={"tensors": 0, "scalars": 0})
    events.Reload()
    tags = events.Tags()
    scalars = {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags["scalars"]}
    tensors = {tag: [(event.step, event.tensor_proto) for event in events.Tensors(tag)] for tag in tags["tensors"]}
    return scalars, tensors


def values_of(tag, scalars, tensors):
    """Newer readers make tensors of scalars."""
    return scalars[tag] if tag in scalars else [(step, tensor.float_val[0]) for step, tensor in tensors[tag]]


def main(programs):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "960", "--output", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        stop_on_the_way(start(programs, folder), folder / "run" / "metrics.jsonl")
        # As after a kill: what was told of later steps than the checkpoint's holds no more.
        told = max(step for step, _ in values_of("loss/training", *read(folder)))
        max((folder / "run" / "checkpoints").glob("*.h5")).unlink()
        assert start(programs, folder).wait(300) == 0
        lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
        scalars, tensors = read(folder)
        for kind, field, tag in DRAWN:
            wanted = [(line["step"], line[field]) for line in lines if line["kind"] == kind]
            found = values_of(tag, scalars, tensors)
            assert [step for step, _ in wanted] == [step for step, _ in found], (tag, wanted, found)
            assert all(abs(a - b) <= 1e-6 * max(1, abs(a)) for (_, a), (_, b) in zip(wanted, found)), tag
        summary = json.loads((folder / "run" / "summary.json").read_text())
        assert summary["interruptions"][0]["step"] + 3 < told, (summary["interruptions"], told)
        text = next(values for tag, values in tensors.items() if tag.startswith("recipe"))[-1][1].string_val[0].decode()
        assert json.loads(text) == summary["recipe"], text
    print(f"{len(lines)} reports are read as they were written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
