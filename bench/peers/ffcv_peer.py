#!/usr/bin/env python3
"""Times what picture_bench times, in FFCV on the CPU: a folder of class folders. Prints one JSON line.

    python3 ffcv_peer.py --pictures FOLDER --size 224

Pictures are first written into an FFCV file as JPEG (encoded again, quality 90). Then a random crop of each is decoded,
resized, mirrored with probability 0.5 and normalized. The first epoch compiles the steps. The second one counts, with
the processor time of all threads.
"""

import argparse
import importlib.metadata
import json
import pathlib
import tempfile
import time

import numpy
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from torchvision import datasets

MEAN, DEVIATION = ([255 * x for x in of_channels] for of_channels in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "pictures.beton")
        fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
        DatasetWriter(file, fields, num_workers=1).from_indexed_dataset(datasets.ImageFolder(options.pictures))
        image = [
            RandomResizedCropRGBImageDecoder((options.size, options.size)),
            RandomHorizontalFlip(),
            NormalizeImage(numpy.array(MEAN), numpy.array(DEVIATION), numpy.float32),
            ToTensor(),
            ToTorchImage(),
        ]
        label = [IntDecoder(), ToTensor()]
        loader = Loader(file, options.batch, num_workers=1, order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                        pipelines={"image": image, "label": label})
        for _ in loader:
            pass
        start = time.process_time()
        loaded = sum(len(labels) for _, labels in loader)
        rate = loaded / (time.process_time() - start)
    print(json.dumps({"samples_per_second": rate, "ffcv": importlib.metadata.version("ffcv")}))


if __name__ == "__main__":
    main()
