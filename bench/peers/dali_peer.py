#!/usr/bin/env python3
"""Times what picture_bench times, in NVIDIA DALI on the CPU: a folder of class folders. Prints one JSON line.

    python3 dali_peer.py --pictures FOLDER --size 224 --samples 2000

A random crop of each picture is decoded, resized with antialiasing, mirrored with probability 0.5 and normalized. The
processor time of all threads counts.
"""

import argparse
import json
import time

from nvidia import dali
from nvidia.dali import fn, types

MEAN, DEVIATION = ([255 * x for x in of_channels] for of_channels in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


@dali.pipeline_def
def images(options):
    files, labels = fn.readers.file(file_root=options.pictures, random_shuffle=True, initial_fill=10_000, seed=1)
    parts = fn.decoders.image_random_crop(files, output_type=types.RGB, random_area=[0.08, 1], seed=2)
    resized = fn.resize(parts, size=(options.size, options.size), interp_type=types.INTERP_LINEAR, antialias=True)
    mirror = fn.random.coin_flip(seed=3)
    return fn.crop_mirror_normalize(resized, mirror=mirror, mean=MEAN, std=DEVIATION, output_layout="CHW"), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    pipeline = images(options, batch_size=options.batch, num_threads=1, device_id=None)
    pipeline.build()
    for _ in range(4):  # more than it makes ahead
        pipeline.run()
    batches = options.samples // options.batch
    start = time.process_time()
    for _ in range(batches):
        pipeline.run()
    rate = batches * options.batch / (time.process_time() - start)
    print(json.dumps({"samples_per_second": rate, "dali": dali.__version__}))


if __name__ == "__main__":
    main()
