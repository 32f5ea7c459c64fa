#!/usr/bin/python3
"""Networks of torchvision, or random ones, have PyTorch's logits, gradients and weights after five steps (float64):

    pytorch_networks_test.py BIN torchvision
    pytorch_networks_test.py BIN 20 [SEED]

PyTorch writes their ONNX files and numbers; onnx_numbers_test in BIN reads and compares them on each device. Ends with
77 where there is no torch or torchvision.
"""
import copy
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    import torchvision
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}. Debian: apt install python3-torch python3-torchvision")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import make_onnx  # noqa: E402

SEED = 7
SIDE = 16  # of images, at most
WIDTHS = [1, 3, 8, 11, 16, 20]
MOST_CHANNELS = 60


def without_dropout(net):
    for name, child in net.named_children():
        if isinstance(child, nn.Dropout):
            setattr(net, name, nn.Identity())
        else:
            without_dropout(child)
    return net


def torchvision_networks():
    models = torchvision.models
    for name in "resnet18", "resnet50", "densenet121", "squeezenet1_1":
        yield name, without_dropout(getattr(models, name)(num_classes=10))
    yield "googlenet", without_dropout(models.googlenet(num_classes=10, aux_logits=False, init_weights=True))
    vgg = without_dropout(models.vgg11_bn(num_classes=10))
    vgg.avgpool = nn.Identity()
    vgg.classifier = nn.Sequential(nn.Linear(512 * 4, 64), nn.ReLU(), nn.Linear(64, 10))
    yield "vgg11_bn", vgg


# ---- random networks

class Add(nn.Module):
    others = 1  # inputs besides the newest value

    @staticmethod
    def fits(shape, other):
        return shape == other

    def forward(self, x, y):
        return x + y


class Concat(nn.Module):
    def __init__(self, others):
        super().__init__()
        self.others = others

    @staticmethod
    def fits(shape, other):
        return shape[1:] == other[1:]

    def forward(self, *values):
        return torch.cat(values, 1)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class Constants(nn.Module):
    """Sums with, differences from, products with and quotients by one number, or one for each channel."""

    def __init__(self, draw, shape):
        super().__init__()
        self.kind = draw.choice(["x + c", "x - c", "c - x", "x * c", "x / c"])
        by_channel = len(shape) == 3 and draw.random() < 0.5
        values = [draw.choice([-1.5, 0.5, 0.75, 2.0]) for _ in range(shape[0] if by_channel else 1)]
        self.register_buffer("c", torch.tensor(values).reshape((-1, 1, 1) if by_channel else ()))

    def forward(self, x):
        c = self.c
        return {"x + c": lambda: x + c, "x - c": lambda: x - c, "c - x": lambda: c - x, "x * c": lambda: x * c,
                "x / c": lambda: x / c}[self.kind]()


def bias(draw):
    return draw.random() < 0.5


def conv(draw, shape):
    kernel = (draw.randint(1, 5),) * 2
    if draw.random() < 0.3:
        kernel = draw.choice([(1, 7), (7, 1), (1, 3), (5, 2)])
    stride = (draw.choice([1, 1, 2, 3]),) * 2 if draw.random() < 0.8 else draw.choice([(1, 2), (2, 1)])
    padding = [draw.randint(0, side - 1) for side in kernel]
    return nn.Conv2d(shape[0], draw.choice(WIDTHS), kernel, stride, padding, bias=bias(draw))


def window(draw):
    kernel = draw.randint(2, 4)
    return kernel, draw.randint(1, 3), draw.randint(0, kernel // 2)


def average_pool(draw, shape):
    kernel, stride, padding = window(draw)
    ceil, counts_padding = draw.random() < 0.5, draw.random() < 0.5
    pool = nn.AvgPool2d(kernel, stride, padding, ceil_mode=ceil, count_include_pad=counts_padding)
    if ceil and counts_padding and padding > 0:
        # PyTorch's exporter writes Pad and AveragePool, which have other windows for some sizes.
        x = torch.zeros(1, *shape)
        padded = nn.functional.pad(x, [padding] * 4)
        if pool(x).shape != nn.functional.avg_pool2d(padded, kernel, stride, ceil_mode=True).shape:
            return None
    return pool


# Name: (how often, module). A function makes the module for the shape of the newest value, without the batch. It may
# return None.
ACTIVATIONS = {
    "relu": (2, lambda draw, shape: nn.ReLU()),
    "leaky relu": (1, lambda draw, shape: nn.LeakyReLU(draw.choice([0.01, 0.2]))),
    "clip": (1, lambda draw, shape: draw.choice([nn.ReLU6(), nn.Hardtanh(-0.5, 0.8)])),
    "sigmoid": (1, lambda draw, shape: nn.Sigmoid()),
    "tanh": (1, lambda draw, shape: nn.Tanh()),
    "gelu": (1, lambda draw, shape: nn.GELU()),
    "add": (2, lambda draw, shape: Add()),
    "constants": (2, Constants),
}
OF_MAPS = {
    **ACTIVATIONS,
    "conv": (6, conv),
    "norm": (4, lambda draw, shape: nn.BatchNorm2d(shape[0], eps=draw.choice([1e-5, 1e-3]))),
    "concat": (2, lambda draw, shape: Concat(draw.randint(1, 3))),
    "max pool": (1, lambda draw, shape: nn.MaxPool2d(*window(draw), ceil_mode=draw.random() < 0.5)),
    "average pool": (2, average_pool),
}
TO_ROWS = {
    "mean": (2, lambda draw, shape: Mean()),
    "adaptive mean": (1, lambda draw, shape: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())),
    "flatten": (1, lambda draw, shape: nn.Flatten()),
}
OF_ROWS = {
    **ACTIVATIONS,
    "norm of rows": (2, lambda draw, shape: nn.BatchNorm1d(shape[0])),
    "linear": (3, lambda draw, shape: nn.Linear(shape[0], draw.choice(WIDTHS), bias=bias(draw))),
}


class RandomNetwork(nn.Module):
    """Each layer reads the value of the layer before it; sums and joins read earlier values, too."""

    def __init__(self, draw):
        super().__init__()
        self.layers = nn.ModuleList()
        self.reads = []  # of each layer: indices of values; the images are value 0
        self.shapes = [(3, *[draw.randint(6, SIDE)] * 2)]
        self.names = []
        while not self.add(draw, {"conv": OF_MAPS["conv"]}):  # only convolutions read images
            pass
        for _ in range(draw.randint(3, 12)):
            self.add(draw, OF_MAPS)
        self.add(draw, TO_ROWS)
        for _ in range(draw.randint(0, 4)):
            self.add(draw, OF_ROWS)
        self.append("linear", nn.Linear(self.shapes[-1][0], draw.randint(2, 10), bias=bias(draw)), [len(self.layers)])

    def add(self, draw, table):
        """Whether it drew a layer that can read the newest value."""
        name = draw.choices(list(table), [weight for weight, _ in table.values()])[0]
        shape = self.shapes[-1]
        newest = len(self.shapes) - 1
        try:
            layer = table[name][1](draw, shape)
            if layer is None:
                return False
            reads = [newest]
            for _ in range(getattr(layer, "others", 0)):
                reads.append(draw.choice([i for i in range(1, newest + 1) if layer.fits(shape, self.shapes[i])]))
            return self.append(name, layer, reads)
        except RuntimeError:  # the window is larger than the map
            return False

    def append(self, name, layer, reads):
        shape = tuple(layer(*[torch.zeros(2, *self.shapes[i]) for i in reads]).shape[1:])
        if len(shape) == 3 and (shape[0] > MOST_CHANNELS or max(shape[1:]) > SIDE):
            return False
        self.layers.append(layer)
        self.reads.append(reads)
        self.shapes.append(shape)
        self.names.append(name)
        return True

    def forward(self, x):
        values = [x]
        for layer, reads in zip(self.layers, self.reads):
            values.append(layer(*[values[i] for i in reads]))
        return values[-1]


# Means over whole maps that are not flattened were refused. DenseNet has one with images of 32 x 32 pixels.
class MeanAsMap(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(16, 12, 1), nn.Linear(12, 5)

    def forward(self, x):
        x = nn.functional.avg_pool2d(self.first(x), 6)  # of 8 x 8 pixels
        return self.last(torch.tanh(self.second(torch.cat([x, x], 1))).mean((2, 3)))


def is_comparable(net, side, numbers):
    """Whether the logits are not zeros, and rounding changes little. Near a bend of an activation it changes much."""
    if not any(numbers["logits"]) or not any(numbers["training_logits"]):
        return False
    other = copy.deepcopy(net).double()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter *= 1 + 3e-6 * torch.randn_like(parameter)
    changes = make_onnx.errors(numbers, make_onnx.training(other, side))
    return max(numbers["fp32_error"] + numbers["fp32_change_error"]) < 5e-5 and max(changes) < 2e-4


def random_networks(count, seed):
    """With their numbers. Those that cannot be compared are drawn anew."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    used, tries = {}, 0
    for i in range(count):
        while True:
            tries += 1
            net = make_onnx.prepared(RandomNetwork(draw))
            side = net.shapes[0][1]
            numbers = make_onnx.numbers_of(net, side)
            if is_comparable(net, side, numbers):
                break
        for name in net.names:
            used[name] = used.get(name, 0) + 1
        yield f"random{i}", net, side, numbers
    print(f"seed {seed}, {tries} networks drawn. Layers:", ", ".join(f"{n} {name}" for name, n in sorted(used.items())))


def networks(which, seed):
    if which == "torchvision":
        torch.manual_seed(seed)
        for name, net in torchvision_networks():
            yield name, make_onnx.prepared(net), 64, make_onnx.numbers_of(net, 64)
    else:
        torch.manual_seed(seed)
        net = make_onnx.prepared(MeanAsMap())
        yield "mean_as_map", net, 8, make_onnx.numbers_of(net, 8)
        yield from random_networks(int(which), seed)


def main(programs, which, seed=SEED):
    warnings.simplefilter("ignore")  # the exporter's
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, net, side, numbers in networks(which, int(seed)):
            make_onnx.write_numbers(folder / f"{name}.txt", numbers)
            make_onnx.export_by_torchscript(net, folder / f"{name}_by_torchscript.onnx", side)
        command = [pathlib.Path(programs) / "onnx_numbers_test", "--gtest_brief=1"]
        return subprocess.run(command, env={**os.environ, "LOCKSTEP_ONNX_NUMBERS": str(folder)}).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
