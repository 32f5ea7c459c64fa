#!/usr/bin/python3
"""Networks of torchvision and random ones have PyTorch's logits, gradients and statistics (float64), by their ONNX files:
pytorch_networks_test.py BIN RANDOM_NETWORKS [DEVICES]. DEVICES filters the devices, for example "cpu_*".
Ends with 77 where there is no torch or torchvision.
"""
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


class RandomNetwork(nn.Module):
    """A convolution, then operations that each read a random earlier map, then the mean and linear layers."""

    def __init__(self, draw):
        super().__init__()
        self.parts = nn.ModuleList()
        self.plan = []  # (inputs, part or "add" or "cat")
        self.shapes = []  # (channels, side) of each value
        self.shapes.append((draw.choice([3, 8, 13, 16]), 16))
        self.parts.append(nn.Conv2d(3, self.shapes[0][0], 3, padding=1, bias=draw.random() < 0.5))
        for _ in range(draw.randint(4, 12)):
            self.add_operation(draw)
        channels = self.shapes[-1][0]
        self.hidden = nn.Linear(channels, 12, bias=draw.random() < 0.5)
        self.last = nn.Linear(12, 10, bias=draw.random() < 0.5)

    def add_operation(self, draw):
        # The newest value is read at once, so that none is left unread.
        channels, side = self.shapes[-1]
        others = [i for i, shape in enumerate(self.shapes) if shape[1] == side]
        same = [i for i in others if self.shapes[i] == (channels, side)]
        newest = len(self.shapes) - 1
        kind = draw.choice(["conv", "conv", "norm", "activation", "add", "cat", "pool"])
        if kind == "add":
            self.record([newest, draw.choice(same)], "add", (channels, side))
        elif kind == "cat" and channels < 60:
            other = draw.choice(others)
            self.record([newest, other], "cat", (channels + self.shapes[other][0], side))
        elif kind == "pool" and side > 3:
            kernel, stride = draw.choice([(2, 2), (3, 2), (3, 1)])
            padding, ceil = draw.choice([0, 1]), draw.random() < 0.5
            make = draw.choice([nn.MaxPool2d, nn.AvgPool2d])
            # The older exporter writes Pad and AveragePool, which have other windows then.
            ceil = ceil and not (make is nn.AvgPool2d and kernel == 2 and padding == 1)
            more = {} if make is nn.MaxPool2d else {"count_include_pad": draw.random() < 0.5}
            pool = make(kernel, stride, padding, ceil_mode=ceil, **more)
            self.record([newest], pool, (channels, pool(torch.zeros(1, 1, side, side)).shape[-1]))
        elif kind == "norm":
            self.record([newest], nn.BatchNorm2d(channels, eps=draw.choice([1e-5, 1e-3])), (channels, side))
        elif kind == "activation":
            made = draw.choice([nn.ReLU(), nn.LeakyReLU(0.2), nn.ReLU6(), nn.Sigmoid(), nn.Tanh(), nn.Hardtanh(-0.5, 0.8)])
            self.record([newest], made, (channels, side))
        else:
            out, stride = draw.choice([4, 8, 11, 16, 20]), draw.choice([1, 1, 2])
            kernel = draw.choice([(1, 1), (3, 3), (5, 5), (1, 7), (7, 1), (5, 3)])
            padding = tuple(size // 2 for size in kernel)
            conv = nn.Conv2d(channels, out, kernel, stride, padding, bias=draw.random() < 0.5)
            self.record([newest], conv, (out, (side - 1) // stride + 1))

    def record(self, inputs, operation, shape):
        if isinstance(operation, nn.Module):
            self.parts.append(operation)
            operation = len(self.parts) - 1
        self.plan.append((inputs, operation))
        self.shapes.append(shape)

    def forward(self, x):
        values = [self.parts[0](x)]
        for inputs, operation in self.plan:
            read = [values[i] for i in inputs]
            if operation == "add":
                values.append(read[0] + read[1])
            elif operation == "cat":
                values.append(torch.cat(read, 1))
            else:
                values.append(self.parts[operation](read[0]))
        return self.last(torch.relu(self.hidden(values[-1].mean((2, 3)))))


def write(folder, name, net, side):
    net = net.train()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            module.momentum = 0.0  # the exporter runs the network
    older = {} if torch.__version__ < "2.5" else {"dynamo": False}
    torch.onnx.export(net, torch.zeros(4, 3, side, side), str(folder / f"{name}_by_torchscript.onnx"), opset_version=13,
                      do_constant_folding=False, training=torch.onnx.TrainingMode.PRESERVE, **older)
    (folder / f"{name}.txt").write_text("".join(line + "\n" for line in make_onnx.lines(net, side)))


def main(programs, count, devices="*"):
    warnings.simplefilter("ignore")  # the exporter's
    torch.manual_seed(SEED)
    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, net in torchvision_networks():
            write(folder, name, net, 64)
        for i in range(int(count)):
            write(folder, f"random{i}", RandomNetwork(draw), 16)
        command = [pathlib.Path(programs) / "onnx_numbers_test", f"--gtest_filter=*/{devices}", "--gtest_brief=1"]
        done = subprocess.run(command, env={**os.environ, "LOCKSTEP_ONNX_NUMBERS": str(folder)})
        print(f"seed {SEED}: {len(list(folder.glob('*.onnx')))} networks, exit code {done.returncode}")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
