#!/usr/bin/python3
"""PyTorch gives a model's logits where it does what "The same numbers in another program" of apps/files.md says, line by
line: same_numbers_test.py BIN PAGE. Ends with 77 where there is no torch, torchvision or h5py."""
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
    import torch
    import torchvision
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error}. Debian: apt install python3-torch python3-torchvision python3-h5py")
    sys.exit(77)

LARGEST_DIFFERENCE = 1e-5  # as a share of the largest logit


def code_on(page, pattern):
    """The page's own words, which are run here."""
    text = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    found = re.search(pattern, text)
    assert found, f"{page} has no {pattern}"
    return found.group(1)


class Block(nn.Module):
    def __init__(self, before, channels, shortcut):
        super().__init__()
        stride = 1 if before == channels else 2
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = shortcut if before != channels else lambda x: x

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet20(nn.Module):
    def __init__(self, first, shortcut):
        super().__init__()
        self.conv1, self.bn1 = first, nn.BatchNorm2d(16)
        before = 16
        for stage, channels in enumerate((16, 32, 64), 1):
            blocks = [Block(before, channels, shortcut), Block(channels, channels, shortcut), Block(channels, channels, shortcut)]
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
            before = channels
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def networks(page):
    names = {"functional": functional, "Conv2d": nn.Conv2d, "torch": torch, "channels": 3}
    shortcut = eval("lambda x: " + code_on(page, r"Right is `(functional\.pad\([^`]*\))`"), names)
    first = eval(code_on(page, r"Its first convolution is `(Conv2d\([^`]*\))`"), names)
    resnet18 = torchvision.models.resnet18(num_classes=10)
    resnet18.conv1 = eval(code_on(page, r"pixels `conv1` is `(Conv2d\([^`]*\))`"), names)
    resnet18.maxpool = eval(code_on(page, r"`maxpool` is left out \(`(torch\.nn\.Identity\(\))`\)"), names)
    # As other programs pad: the page says that these weights load without a word, and that answers are wrong.
    both_sides = lambda x: functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, x.shape[1] // 2, x.shape[1] // 2))
    return {"resnet20": ResNet20(first, shortcut), "resnet18": resnet18,
            "wrong": ResNet20(nn.Conv2d(3, 16, 3, 1, 1, bias=False), both_sides)}


def logits_of(network, model, images):
    with h5py.File(model) as file:
        state = {name: torch.from_numpy(data[()]) for name, data in file.items()}
        mean, deviation = file.attrs["mean"], file.attrs["deviation"]
    found = network.load_state_dict(state, strict=False)
    assert not found.unexpected_keys and all(key.endswith("num_batches_tracked") for key in found.missing_keys), found
    pixels = (images.astype(numpy.float32) / 255 - mean) / deviation
    with torch.no_grad():
        return network.eval()(torch.from_numpy(pixels.transpose(0, 3, 1, 2).astype(numpy.float32))).numpy()


def main(programs, page):
    run = lambda program, *words: subprocess.run([f"{programs}/{program}", *map(str, words)], check=True,
                                                 stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        data = work / "data"
        run("make_shards", "synthetic", "--samples", 300, "--output", data)
        with h5py.File(data / "test" / "test-00000.h5") as shard:
            images, labels = shard["images"][()], shard["labels"][()]
        found = networks(pathlib.Path(page))
        for model in ("resnet20", "resnet18"):
            output, file = work / model, work / f"{model}.h5"
            run("train_cifar", "--data", data, "--model", model, "--epochs", 1, "--lr", 0.01, "--output", output, "--device", "cpu")
            run("evaluate", "--model-file", output / "model.h5", "--data", data, "--logits", file, "--device", "cpu")
            with h5py.File(file) as written:
                ours = written["logits"][()]
                assert (written["labels"][()] == labels).all(), "the labels differ"
            theirs = logits_of(found[model], output / "model.h5", images)
            difference = numpy.abs(ours - theirs).max() / numpy.abs(ours).max()
            print(f"{model}: {len(labels)} images, logits from {ours.min():.2f} to {ours.max():.2f}, "
                  f"largest difference {difference:.1e} of the largest")
            assert ours.std(0).max() > 0.01 and difference < LARGEST_DIFFERENCE, "the logits differ"
        wrong = logits_of(found["wrong"], work / "resnet20" / "model.h5", images)
        with h5py.File(work / "resnet20.h5") as written:
            ours = written["logits"][()]
        difference = numpy.abs(ours - wrong).max() / numpy.abs(ours).max()
        print(f"padded on both sides: largest difference {difference:.2f} of the largest")
        assert difference > 1000 * LARGEST_DIFFERENCE, "the other padding gives the same, which the page denies"


if __name__ == "__main__":
    main(*sys.argv[1:3])
