#!/usr/bin/env python3
"""Models of ours as onnxruntime runs them: onnxruntime_test.py FOLDER_OF_PROGRAMS

On real pictures, where LOCKSTEP_TEST_DATA has CIFAR-10, else on synthetic ones: the same classes as `evaluate` predicts,
and the same loss within 1e-3. Exit code 77 (skipped) where onnxruntime is not installed: Debian 12 has none, Debian 13 has
python3-onnxruntime.
"""
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
    import onnxruntime
except ImportError as error:
    print(f"skipped: {error}. Debian 13: apt install python3-onnxruntime python3-h5py")
    sys.exit(77)

PROGRAMS = pathlib.Path(sys.argv[1])


def run(program, *words):
    return subprocess.run([PROGRAMS / program, *map(str, words)], check=True, capture_output=True, text=True).stdout


def samples_of(folder):
    """Pixels as [n, c, h, w] of 0 to 1, and labels, of all shards of a split."""
    images, labels = [], []
    for shard in sorted(folder.glob("*.h5")):
        with h5py.File(shard) as file:
            images.append(file["images"][()])
            labels.append(file["labels"][()])
    pixels = numpy.concatenate(images).transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    return pixels, numpy.concatenate(labels)


def check(data, work, model, *more):
    run("train_cifar", "--data", data, "--model", model, *more, "--epochs", 1, "--output", work / model)
    file = work / model / "model.h5"
    run("export_model", file, "--onnx", work / "model.onnx")
    predictions = work / "predictions.csv"
    said = run("evaluate", "--model-file", file, "--data", data, "--predictions", predictions)
    loss = float(re.search(r"loss +([\d.]+)", said).group(1))
    with open(predictions, newline="") as table:
        expected = [int(row["prediction"]) for row in csv.DictReader(table)]
    pixels, labels = samples_of(data / "test")
    session = onnxruntime.InferenceSession(str(work / "model.onnx"), providers=["CPUExecutionProvider"])
    logits = numpy.concatenate([session.run(["logits"], {"images": batch})[0]
                                for batch in numpy.array_split(pixels, 1 + len(pixels) // 300)]).astype(float)
    rows = logits - logits.max(1, keepdims=True)
    own_loss = (numpy.log(numpy.exp(rows).sum(1)) - rows[numpy.arange(len(labels)), labels]).mean()
    differing = int((logits.argmax(1) != expected).sum())
    print(f"{model}: loss {own_loss:.4f} of onnxruntime, {loss:.4f} of ours; {differing} of {len(labels)} classes differ")
    assert abs(own_loss - loss) < 1e-3, "the losses differ"
    # Two logits within rounding may change places.
    assert differing <= len(labels) // 1000, "the predictions differ"


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        cifar = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "/nowhere")) / "cifar-10-batches-bin"
        source = ["cifar10", "--source", cifar] if cifar.exists() else ["synthetic", "--samples", 1000]
        run("make_shards", *source, "--output", work / "data")
        check(work / "data", work, "lenet")
        check(work / "data", work, "resnet20", "--blur-pool")


if __name__ == "__main__":
    main()
