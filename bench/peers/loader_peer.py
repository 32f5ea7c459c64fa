#!/usr/bin/env python3
"""Times what picture_bench times, in PyTorch: a DataLoader over a folder of class folders. Prints one JSON line.

    python3 loader_peer.py --pictures FOLDER --size 224 --samples 2000

torchvision's usual transforms: RandomResizedCrop, RandomHorizontalFlip, ToTensor, Normalize. --decoder torchvision
reads files with torchvision.io and transforms tensors. Without --workers, the process itself loads the pictures, which
costs the least processor time. The processor time of the process and its workers counts.
"""

import argparse
import json
import resource

import torch
from torchvision import datasets, io, transforms

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def processor_seconds():
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime


def transform_of(options):
    crop = transforms.RandomResizedCrop(options.size, antialias=True)
    to_tensor = (
        transforms.ToTensor() if options.decoder == "pillow" else transforms.ConvertImageDtype(torch.float32)
    )
    steps = [crop, transforms.RandomHorizontalFlip(), to_tensor, transforms.Normalize(MEAN, DEVIATION)]
    return transforms.Compose(steps)


def read_by_torchvision(path):
    return io.read_image(path, io.ImageReadMode.RGB)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--decoder", choices=("pillow", "torchvision"), default="pillow")
    options = parser.parse_args()
    torch.set_num_threads(1)
    reader = {"loader": read_by_torchvision} if options.decoder == "torchvision" else {}
    pictures = datasets.ImageFolder(options.pictures, transform_of(options), **reader)
    order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(1))
    order = order.repeat(options.samples // len(order) + 1)[: options.samples].tolist()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.Subset(pictures, order), options.batch, num_workers=options.workers
    )
    start = processor_seconds()
    loaded = sum(len(labels) for _, labels in loader)
    rate = loaded / (processor_seconds() - start)
    print(json.dumps({"samples_per_second": rate, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
