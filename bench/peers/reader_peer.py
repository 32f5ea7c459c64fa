#!/usr/bin/env python3
"""Times what picture_bench --threads times, in PyTorch's DataLoader with h5py or webdataset. Prints one JSON line.

    python3 reader_peer.py --reader h5py --data SPLIT --workers 2 --samples 20000 --batch 128
    python3 reader_peer.py --reader webdataset --data SPLIT --tars FOLDER ...      FOLDER is written by --write-tars

SPLIT is a folder of shards that make_shards wrote. h5py reads the consecutive samples of a batch at once, and shuffles
batches only. webdataset shuffles tar files, and samples through a buffer of 1000. Images of one size are cropped and
mirrored a whole batch at a time. Pictures are decoded by Pillow, and a random crop is resized. Measures wall-clock time
after the first batches.
"""

import argparse
import io
import json
import pathlib
import time

import h5py
import numpy
import torch
from PIL import Image
from torchvision.transforms import RandomResizedCrop

PADDING = 4
TARS = 16
BUFFER = 1000  # samples that webdataset draws from; filled before any is timed
UNTIMED = 4  # batches of each worker: as many as lie ready
AREAS, SHAPES = (0.08, 1.0), (3 / 4, 4 / 3)


class Split:
    """Shards of one split, opened at the first read, because workers must open them after they are started."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        manifest = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        self.store = manifest.get("store", "images")
        self.mean = torch.tensor(manifest["mean"]).view(1, 3, 1, 1)
        self.deviation = torch.tensor(manifest["deviation"]).view(1, 3, 1, 1)
        self.sizes = [shard["samples"] for shard in manifest["shards"]]
        self.names = [shard["file"] for shard in manifest["shards"]]
        self.files = None

    def open(self):
        if self.files is None:
            self.files = [h5py.File(self.folder / name) for name in self.names]
            self.labels = [file["labels"][:] for file in self.files]
            if self.store != "images":
                self.offsets = [file["offsets"][:] for file in self.files]
                self.pictures = [file["sizes"][:] for file in self.files]

    def samples(self, shard, first, count):
        """`count` consecutive samples as stored, and their labels."""
        self.open()
        file, labels = self.files[shard], self.labels[shard][first : first + count]
        if self.store == "images":
            return file["images"][first : first + count], labels
        begins = self.offsets[shard][first : first + count + 1]
        whole = file["samples"][begins[0] : begins[-1]]
        parts = [whole[begin - begins[0] : end - begins[0]] for begin, end in zip(begins, begins[1:])]
        if self.store == "jpeg":
            return parts, labels
        sizes = self.pictures[shard][first : first + count]
        return [part.reshape(*size, 3) for part, size in zip(parts, sizes)], labels


class Augment:
    """Converts samples as stored to planes of bytes [n, 3, side, side], and those to floats.

    The main process does the second step: a worker would have to pass on four times as many bytes.
    """

    def __init__(self, split, side):
        self.store, self.side = split.store, side
        self.scale = 1 / (255 * split.deviation)
        self.shift = split.mean / split.deviation

    def cropped(self, images):
        """Separates the planes first, so that whole rows are copied."""
        images = numpy.asarray(images)
        count, height, width, channels = images.shape
        padded = numpy.zeros((count, channels, height + 2 * PADDING, width + 2 * PADDING), numpy.uint8)
        padded[:, :, PADDING:-PADDING, PADDING:-PADDING] = images.transpose(0, 3, 1, 2)
        planes = numpy.empty((count, channels, height, width), numpy.uint8)
        corners = numpy.random.randint(0, 2 * PADDING + 1, (count, 2)).tolist()
        for place, ((top, left), mirrored) in enumerate(zip(corners, numpy.random.rand(count) < 0.5)):
            window = padded[place, :, top : top + height, left : left + width]
            planes[place] = window[:, :, ::-1] if mirrored else window
        return planes

    def resized(self, sample):
        if self.store == "jpeg":
            picture = Image.open(io.BytesIO(sample)).convert("RGB")
        else:
            picture = Image.fromarray(sample)
        shape = torch.empty(3, picture.height, picture.width, device="meta")
        top, left, height, width = RandomResizedCrop.get_params(shape, AREAS, SHAPES)
        box = (left, top, left + width, top + height)
        made = numpy.asarray(picture.resize((self.side, self.side), Image.Resampling.BILINEAR, box))
        return made[:, ::-1] if numpy.random.rand() < 0.5 else made

    def __call__(self, samples):
        if self.store == "images":
            planes = self.cropped(samples)
        else:
            planes = numpy.empty((len(samples), 3, self.side, self.side), numpy.uint8)
            for place, sample in enumerate(samples):
                planes[place] = self.resized(sample).transpose(2, 0, 1)
        return torch.from_numpy(planes)

    def normalised(self, planes):
        return planes.to(torch.float32).mul_(self.scale).sub_(self.shift)


class Blocks(torch.utils.data.Dataset):
    """Batches of consecutive samples."""

    def __init__(self, split, augment, batch):
        self.split, self.augment, self.batch = split, augment, batch
        self.places = []
        for shard, size in enumerate(split.sizes):
            self.places += [(shard, first) for first in range(0, size - batch + 1, batch)]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        samples, labels = self.split.samples(*self.places[index], self.batch)
        return self.augment(samples), torch.from_numpy(labels.astype(numpy.int64))


def seed_worker(_):
    torch.set_num_threads(1)
    numpy.random.seed(torch.initial_seed() % 2**32)


def loading(workers):
    options = {"batch_size": None, "num_workers": workers, "worker_init_fn": seed_worker}
    return options | ({"persistent_workers": True, "prefetch_factor": 4} if workers else {})


def from_shards(options, split, augment):
    blocks = Blocks(split, augment, options.batch)
    loader = torch.utils.data.DataLoader(blocks, shuffle=True, **loading(options.workers))
    while True:
        yield from loader


def tar_names(folder):
    return [str(pathlib.Path(folder) / f"{number:02}.tar") for number in range(TARS)]


def write_tars(split, folder):
    import webdataset

    writers = [webdataset.TarWriter(name, encoder=False) for name in tar_names(folder)]
    number = 0
    for shard, size in enumerate(split.sizes):
        samples, labels = split.samples(shard, 0, size)
        for sample, label in zip(samples, labels):
            size_of_it = numpy.array(sample.shape[:2], numpy.int32).tobytes() if split.store == "pictures" else b""
            data = size_of_it + sample.tobytes()
            writers[number % TARS].write({"__key__": f"{number:08}", "bin": data, "cls": b"%d" % label})
            number += 1
    for writer in writers:
        writer.close()


def as_stored(store, data):
    if store == "jpeg":
        return data
    if store == "images":
        return numpy.frombuffer(data, numpy.uint8).reshape(32, 32, 3)
    return numpy.frombuffer(data, numpy.uint8, offset=8).reshape(*numpy.frombuffer(data, numpy.int32, 2), 3)


def from_tars(options, split, augment):
    import webdataset

    def batch_of(samples):
        labels = torch.tensor([int(label) for _, label in samples])
        return augment([as_stored(split.store, data) for data, _ in samples]), labels

    dataset = webdataset.WebDataset(tar_names(options.tars), resampled=True, shardshuffle=False)
    dataset = dataset.shuffle(BUFFER, initial=BUFFER).to_tuple("bin", "cls")
    dataset = dataset.batched(options.batch, collation_fn=batch_of)
    yield from webdataset.WebLoader(dataset, **loading(options.workers))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=("h5py", "webdataset"), required=True)
    parser.add_argument("--data", required=True, help="folder of a split that make_shards wrote")
    parser.add_argument("--tars", help="folder of tar files with the same samples")
    parser.add_argument("--write-tars", action="store_true", help="only write the tar files")
    parser.add_argument("--side", type=int, default=224, help="side of images made from pictures (%(default)s)")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    split = Split(options.data)
    if options.write_tars:
        write_tars(split, options.tars)
        return
    torch.set_num_threads(1)
    augment = Augment(split, options.side)
    batches = (from_shards if options.reader == "h5py" else from_tars)(options, split, augment)
    for _ in range(UNTIMED * max(1, options.workers)):
        next(batches)
    start = time.perf_counter()
    loaded = 0
    for _ in range(options.batches):
        planes, labels = next(batches)
        augment.normalised(planes)
        loaded += len(labels)
    rate = loaded / (time.perf_counter() - start)
    versions = {"PyTorch": torch.__version__, "h5py": h5py.__version__, "Pillow": Image.__version__}
    if options.reader == "webdataset":
        import webdataset

        versions["webdataset"] = webdataset.__version__
    allocator = "jemalloc" if "jemalloc" in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8") else "malloc"
    line = {"samples_per_second": rate, "workers": options.workers, "allocator": allocator, "versions": versions}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
