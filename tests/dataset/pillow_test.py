#!/usr/bin/env python3
"""Images as Pillow makes them, of the same boxes of 200 photographs: pillow_test.py FOLDER_OF_PROGRAMS

With --decode exact the mean absolute difference is at most one of 255 levels; with scaled it is printed, and held to
two. Exit code 77 (skipped) without Caltech-101 in LOCKSTEP_TEST_DATA.
"""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy
from PIL import Image, features

PROGRAMS = pathlib.Path(sys.argv[1])
COUNT = 200
SIDES = (64, 128, 224)
LARGEST = {"exact": 1.0, "scaled": 2.0}  # mean difference, in levels


def run(program, *words):
    subprocess.run([PROGRAMS / program, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def read_pictures(split):
    """The first COUNT pictures of a split, decoded whole."""
    pictures = []
    for shard in json.loads((split / "manifest.json").read_text())["shards"]:
        with h5py.File(split / shard["file"]) as file:
            offsets, samples = file["offsets"][()], file["samples"]
            for begin, end in list(zip(offsets[:-1], offsets[1:]))[:COUNT - len(pictures)]:
                pictures.append(Image.open(io.BytesIO(samples[begin:end].tobytes())).convert("RGB"))
    return pictures


def image_by_pillow(picture, view, side):
    """What torchvision's crop and resize of a PIL picture do."""
    top, left, height, width, new_height, new_width, window_top, window_left = view
    resized = picture.crop((left, top, left + width, top + height)).resize((new_width, new_height), Image.BILINEAR)
    return numpy.asarray(resized.crop((window_left, window_top, window_left + side, window_top + side)))


def check(split, pictures, side, work):
    run("print_augmentations", split, side, COUNT, work)
    views = [tuple(map(int, line.split())) for line in (work / "views.txt").read_text().splitlines()]
    expected = numpy.stack([image_by_pillow(picture, view, side) for picture, view in zip(pictures * 2, views)])
    for decoding, largest in LARGEST.items():
        images = numpy.fromfile(work / f"{decoding}.bin", numpy.uint8).reshape(expected.shape)
        difference = numpy.abs(images.astype(int) - expected)
        means = [of_kind.mean() for of_kind in numpy.split(difference, 2)]
        print(f"{side} pixels, {decoding}: mean difference {means[0]:.4f} of 255 in training and {means[1]:.4f} in tests; "
              f"largest {difference.max()}; {(difference.max((1, 2, 3)) == 0).mean():.0%} of images the same to the bit")
        assert max(means) <= largest, "images differ from Pillow's"


def main():
    source = pathlib.Path(os.environ.get("LOCKSTEP_TEST_DATA", "/nowhere")) / "caltech101_31"
    if not source.exists():
        print("skipped: no Caltech-101, 31 pictures a class, in caltech101_31 (set LOCKSTEP_TEST_DATA)")
        sys.exit(77)
    print(f"Pillow {Image.__version__} with libjpeg-turbo {features.version('libjpeg_turbo')}")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        run("make_shards", "images", "--source", source, "--output", work / "data")
        pictures = read_pictures(work / "data" / "train")
        assert len(pictures) == COUNT
        for side in SIDES:
            check(work / "data" / "train", pictures, side, work)


if __name__ == "__main__":
    main()
