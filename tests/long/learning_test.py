#!/usr/bin/env python3
"""Photographs are learnt as in PyTorch: ResNet-18 from scratch on Caltech-101, ten seeds each, here by train_imagenet on
two ranks, there by learning_peer.py. The means of what both reach on the validation split must be near each other, and
so must those of their training losses in each epoch.

learning_test.py PROGRAMS [--python PYTHON_WITH_TORCH] [--results FOLDER]

Runs that are finished in FOLDER are not made again. Images have 72 pixels: up to 64 our network has a stem for small
pictures, with eleven times the arithmetic.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = range(10)
RECIPE = {"image_size": 72, "resize": 82, "crop_area": 0.25, "global_batch": 32, "epochs": 4, "warmup": 1, "lr": 0.04,
          "momentum": 0.9, "weight_decay": 5e-4, "label_smoothing": 0.1}
RANKS = 2
VALIDATION = 600
# Of means over seeds: of every epoch, and after the last one.
LARGEST_DIFFERENCES = {"training_loss": 0.05}
LARGEST_LAST_DIFFERENCES = LARGEST_DIFFERENCES | {"loss": 0.1, "accuracy": 0.03, "top5": 0.03}
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def output_of(words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{words[0]} failed with {run.returncode}: {run.stderr}")
    return run.stdout


def epochs_of(metrics):
    """What a run of ours reported: the mean training loss of each epoch, and what it reached on the validation split."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    epochs, losses, steps = [], 0.0, 0
    for line in lines:
        if line["kind"] == "training":  # a mean over the steps since the report before
            stretch = line["step"] - steps - sum(epoch["steps"] for epoch in epochs)
            losses += line["loss"] * stretch
            steps += stretch
        elif line["kind"] == "validation":
            names = ("loss", "accuracy", "top5")
            epochs.append({"training_loss": losses / steps, "steps": steps} | {name: line[name] for name in names})
            losses, steps = 0.0, 0
    return epochs


def train_ours(options, data, seed):
    output = options.results / f"run-{seed}"
    shutil.rmtree(output, ignore_errors=True)
    stated = [word for name, value in RECIPE.items() for word in (f"--{name.replace('_', '-')}", value)]
    output_of(["mpirun", "-n", RANKS, "--oversubscribe", "--bind-to", "none", f"{options.programs}/train_imagenet",
               "--data", data, "--model", "resnet18", "--device", "cpu", "--threads", 1, "--seed", seed, "--lr-batch", 0,
               "--schedule", "cosine", "--optimizer", "sgd", "--nesterov", "--no-decay-norm", "--keep-best", 0,
               "--checkpoint-every", f"{RECIPE['epochs']}epochs", "--output", output, *stated])
    epochs = epochs_of(output / "metrics.jsonl")
    shutil.rmtree(output)
    return {"epochs": epochs}


def train_theirs(options, data, seed):
    recipe = RECIPE | {"data": str(data), "seed": seed, "parts": RANKS}
    return json.loads(output_of([options.python, HERE / "learning_peer.py", json.dumps(recipe)]))


def result(options, train, side, data, seed):
    """Of a run that is made now, unless it is there."""
    file = options.results / f"{side}-{seed}.json"
    if not file.exists():
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(train(options, data, seed) | {"recipe": RECIPE}))
        unfinished.rename(file)
    found = json.loads(file.read_text())
    if found["recipe"] != RECIPE:
        sys.exit(f"'{file}' is of another recipe. Name another folder (--results).")
    last = found["epochs"][-1]
    print(f"{side:8} seed {seed}: top-1 {100 * last['accuracy']:.2f} %, top-5 {100 * last['top5']:.2f} %, "
          f"training loss {last['training_loss']:.4f}", flush=True)
    return found["epochs"]


def all_results(options, data):
    """Epochs of each seed, by side. Ours have a process for each core, PyTorch's one: so two of these at a time."""
    ours, theirs = [], []
    with concurrent.futures.ThreadPoolExecutor(RANKS) as cores:
        for pair in (SEEDS[i:i + RANKS] for i in range(0, len(SEEDS), RANKS)):
            ours += [result(options, train_ours, "Lockstep", data, seed) for seed in pair]
            runs = [cores.submit(result, options, train_theirs, "PyTorch", data, seed) for seed in pair]
            theirs += [run.result() for run in runs]
    return {"Lockstep": ours, "PyTorch": theirs}


def mean_and_error(values):
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def judge(found):
    """Prints means and standard errors of all epochs, and names what is too far apart."""
    far = []
    for epoch in range(RECIPE["epochs"]):
        largest = LARGEST_LAST_DIFFERENCES if epoch + 1 == RECIPE["epochs"] else LARGEST_DIFFERENCES
        for name in LARGEST_LAST_DIFFERENCES:
            (ours, our_error), (theirs, their_error) = (
                mean_and_error([run[epoch][name] for run in found[side]]) for side in ("Lockstep", "PyTorch"))
            words = f"{name} of epoch {epoch + 1}: {ours:.4f} +- {our_error:.4f} and {theirs:.4f} +- {their_error:.4f}"
            print(words)
            if name in largest and abs(ours - theirs) > largest[name]:
                far.append(f"{words}: more than {largest[name]} apart")
    return far


def study(options):
    options.results.mkdir(parents=True, exist_ok=True)
    data = options.results / "data"
    output_of([f"{options.programs}/make_shards", "images", "--source", options.pictures, "--output", data,
               "--validation", VALIDATION])
    found = all_results(options, data)
    far = judge(found)
    if far:
        sys.exit("\n".join(far))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--results", type=pathlib.Path)
    options = parser.parse_args()
    options.pictures = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "/nowhere")) / "caltech101_31"
    if not options.pictures.exists():
        skip("no Caltech-101, 31 pictures a class, in caltech101_31 (set LOCKSTEP_TEST_DATA)")
    if subprocess.run([options.python, "-c", "import h5py, torchvision"], capture_output=True, check=False).returncode != 0:
        skip(f"{options.python} cannot import h5py and torchvision. Debian: apt install python3-h5py python3-torchvision")
    with tempfile.TemporaryDirectory() as folder:
        options.results = options.results or pathlib.Path(folder)
        study(options)


if __name__ == "__main__":
    main()
