#!/usr/bin/env python3
"""Writes the ONNX files of tests/golden/onnx with both of PyTorch's exporters, and logits: make_onnx.py FOLDER

Needs torch 2.9 or newer and onnxscript. The networks have every operator that the reader takes from PyTorch:

    residual_*.onnx    convolutions with norms, which one layer computes
    operators_*.onnx   norms, activations, sums and joined channels on their own

NAME.txt has the logits of both modes and, for one training step, the L2 norm and a projection of each gradient and
running statistic, all in float64, and the largest relative error of such a number in PyTorch's fp32.
"""
import copy
import pathlib
import sys

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(out)

    def forward(self, x):
        return self.bn(self.conv(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.layers = nn.ModuleList([Layer(8, 8, 1), Layer(8, 8, 1), Layer(8, 12, 2)])
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(12, 16)
        self.last = nn.Linear(16, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        y = torch.relu(self.layers[0](x))
        x = torch.relu(self.layers[1](y) + x)
        x = torch.relu(self.layers[2](x))
        x = torch.flatten(self.mean(x), 1)
        return self.last(torch.relu(self.fc(x)))


class Unit(nn.Module):
    """Norm and activation before the convolution, as in DenseNet."""

    def __init__(self, channels, out, activation):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, eps=1e-3)
        self.activation = activation
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)

    def forward(self, x):
        return self.conv(self.activation(self.norm(x)))


class Operators(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 10, 3, padding=1, bias=False)
        self.units = nn.ModuleList([Unit(10, 6, nn.ReLU()), Unit(16, 6, nn.LeakyReLU(0.1)), Unit(22, 22, nn.ReLU6())])
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.means = nn.ModuleList([nn.AvgPool2d(2), nn.AvgPool2d(3, 2, 1, ceil_mode=True)])
        self.last_conv = nn.Conv2d(22, 12, 1)
        self.hidden = nn.Linear(24, 16, bias=False)
        self.last = nn.Linear(16, 10, bias=False)

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        for unit in self.units[:2]:
            x = torch.cat([x, unit(x)], 1)
        x = x + self.units[2](x)
        x = self.last_conv(self.means[1](self.means[0](x)))
        x = torch.cat([torch.sigmoid(x), torch.tanh(x)], 1).mean((2, 3))
        return self.last(torch.relu(self.hidden(x)))


def export(net, folder, name):
    images = torch.zeros(2, 3, 32, 32)
    torch.onnx.export(net, images, folder / f"{name}_by_torchscript.onnx", dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, opset_version=13)
    torch.onnx.export(net, images, folder / f"{name}_by_dynamo.onnx", dynamo=True, optimize=False, external_data=True)


def without_notes(file):
    """The file says nothing of the machine that wrote it."""
    import onnx  # here, because other users of this module do without
    model = onnx.load(file, load_external_data=False)
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for part in (model, model.graph, *model.graph.value_info, *model.graph.input, *model.graph.output):
        part.ClearField("metadata_props")
    file.write_bytes(model.SerializeToString())


def projected(values):
    """The L2 norm, and a sum with fixed factors."""
    values = values.detach().double().flatten()
    factors = (torch.arange(len(values)) * 37 % 101 - 50).double() / 50
    return [values.norm().item(), (values * factors).sum().item()]


def one_step(net, side):
    """Numbers by name, in the network's precision."""
    count = 4 * 3 * side * side
    images = (((torch.arange(count) * 37 % 101) - 50).double() / 50).reshape(4, 3, side, side)
    images = images.to(next(net.parameters()).dtype)
    norms = {name: module for name, module in net.named_modules() if isinstance(module, nn.BatchNorm2d)}
    numbers = {"logits": net.eval()(images).flatten().tolist()}
    for norm in norms.values():
        norm.momentum = 0.1
    logits = net.train()(images)
    numbers["training_logits"] = logits.flatten().tolist()
    nn.functional.cross_entropy(logits, torch.arange(4) * 3 % 10).backward()
    for name, parameter in net.named_parameters():
        numbers[name] = projected(parameter.grad)
    for name, norm in norms.items():
        numbers[name + ".running_mean"] = projected(norm.running_mean)
        numbers[name + ".running_var"] = projected(norm.running_var)
    return numbers


def lines(net, side):
    """"name number...", and how far PyTorch's own fp32 is from them."""
    exact = one_step(copy.deepcopy(net).double(), side)
    single = one_step(copy.deepcopy(net), side)
    gradients = [name for name in exact if "logits" not in name and ".running_" not in name]
    largest = max(exact[name][0] for name in gradients)
    errors = [abs(a - b) / exact[name][0] for name in gradients if exact[name][0] > 1e-6 * largest
              for a, b in zip(exact[name], single[name])]
    yield f"fp32_error {max(errors):.3g}"
    for name, numbers in exact.items():
        yield name + "".join(f" {number:.9g}" for number in numbers)


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for name, kind in {"residual": Residual, "operators": Operators}.items():
        torch.manual_seed(1)
        net = kind().train()
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = 0.0  # an export may run the network, which must not move its statistics
                nn.init.uniform_(module.running_mean, -0.2, 0.2)
                nn.init.uniform_(module.running_var, 0.5, 1.5)
        export(net, folder, name)
        (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines(net, 32)))
    for file in folder.glob("*.onnx"):
        without_notes(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
