#!/usr/bin/env python3
"""Models of ours as onnxruntime runs them: onnxruntime_test.py FOLDER_OF_PROGRAMS [MODEL...]

Trained on photographs (Caltech-101, where LOCKSTEP_TEST_DATA has it, else drawn ones), each model gives the same logits
for each of them within 1e-3. Of lenet and resnet20, trained on CIFAR-10 (or synthetic pictures), a whole test split has
the classes that `evaluate` predicts, and the same loss. Exit code 77 (skipped) where onnxruntime is not installed: Debian
12 has none, Debian 13 has python3-onnxruntime.
"""
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
    import onnxruntime
    from PIL import Image
except ImportError as error:
    print(f"skipped: {error}. Debian 13: apt install python3-onnxruntime python3-h5py python3-pil")
    sys.exit(77)

PROGRAMS = pathlib.Path(sys.argv[1])
DATA = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "/nowhere"))
SIDES = {"lenet": 32, "resnet20": 32, "resnet18": 72, "resnet50": 72}  # of photographs: up to 64 pixels have another stem
MODELS = sys.argv[2:] or list(SIDES)
PHOTOGRAPHS = 60
LARGEST_DIFFERENCE = 1e-3


def run(program, *words):
    return subprocess.run([PROGRAMS / program, *map(str, words)], check=True, capture_output=True, text=True).stdout


def photographs(folder):
    """A folder of class folders: six classes of Caltech-101, or three that are drawn."""
    source = DATA / "caltech101_31"
    if source.exists():
        for of_class in sorted(path for path in source.iterdir() if path.is_dir())[:6]:
            shutil.copytree(of_class, folder / of_class.name)
    else:
        run("write_pictures", folder, 90)
    return folder


def exported(model_file, work):
    run("export_model", model_file, "--onnx", work / "model.onnx")
    return onnxruntime.InferenceSession(str(work / "model.onnx"), providers=["CPUExecutionProvider"])


def logits_of(session, pixels):
    """Of pixels [n, c, h, w] from 0 to 1, some hundred at a time."""
    batches = numpy.array_split(pixels, 1 + len(pixels) // 300)
    return numpy.concatenate([session.run(["logits"], {"images": batch})[0] for batch in batches]).astype(float)


def seen_by_test(file, side):
    """As the middle of the picture is shown to a network: [c, h, w] from 0 to 1."""
    with Image.open(file) as picture:
        whole = picture.convert("RGB")
    size = [side * length // min(whole.size) for length in whole.size]
    resized = whole.resize(size, Image.BILINEAR)
    left, top = (round((length - side) / 2) for length in size)
    window = resized.crop((left, top, left + side, top + side))
    return numpy.asarray(window).transpose(2, 0, 1).astype(numpy.float32) / 255


def check_logits(model, data, files, work):
    side = SIDES[model]
    output = work / f"{model}-photographs"
    run("train_imagenet", "--data", data, "--model", model, "--image-size", side, "--epochs", 2, "--global-batch", 8,
        "--lr", 0.002, "--lr-batch", 0, "--device", "cpu", "--output", output)
    session = exported(output / "model.h5", work)
    printed = run("print_logits", output / "model.h5", side, *files)
    ours = numpy.array([[float(word) for word in line.split()] for line in printed.splitlines()])
    theirs = logits_of(session, numpy.stack([seen_by_test(file, side) for file in files]))
    assert ours.shape == theirs.shape and len(ours) == len(files), (ours.shape, theirs.shape)
    difference = numpy.abs(ours - theirs).max()
    print(f"{model}: {len(files)} photographs, logits from {ours.min():.2f} to {ours.max():.2f}, "
          f"largest difference {difference:.1e}", flush=True)
    assert ours.std(0).max() > 0.01, "all photographs have the same logits"
    assert difference < LARGEST_DIFFERENCE, "the logits differ"


def samples_of(folder):
    """Pixels as [n, c, h, w] of 0 to 1, and labels, of all shards of a split."""
    images, labels = [], []
    for shard in sorted(folder.glob("*.h5")):
        with h5py.File(shard) as file:
            images.append(file["images"][()])
            labels.append(file["labels"][()])
    pixels = numpy.concatenate(images).transpose(0, 3, 1, 2).astype(numpy.float32) / 255
    return pixels, numpy.concatenate(labels)


def check_split(model, data, work, *more):
    run("train_cifar", "--data", data, "--model", model, *more, "--epochs", 1, "--output", work / model)
    file = work / model / "model.h5"
    predictions = work / "predictions.csv"
    said = run("evaluate", "--model-file", file, "--data", data, "--predictions", predictions)
    loss = float(re.search(r"loss +([\d.]+)", said).group(1))
    with open(predictions, newline="") as table:
        expected = [int(row["prediction"]) for row in csv.DictReader(table)]
    pixels, labels = samples_of(data / "test")
    logits = logits_of(exported(file, work), pixels)
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
        pictures = photographs(work / "pictures")
        run("make_shards", "images", "--source", pictures, "--output", work / "photographs")
        files = sorted(pictures.glob("*/*"))
        files = files[::max(1, len(files) // PHOTOGRAPHS)]
        for model in MODELS:
            check_logits(model, work / "photographs", files, work)
        cifar = DATA / "cifar-10-batches-bin"
        source = ["cifar10", "--source", cifar] if cifar.exists() else ["synthetic", "--samples", 1000]
        run("make_shards", *source, "--output", work / "data")
        for model, *more in (("lenet",), ("resnet20", "--blur-pool")):
            if model in MODELS:
                check_split(model, work / "data", work, *more)


if __name__ == "__main__":
    main()
