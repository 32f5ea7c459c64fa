#!/usr/bin/env python3
"""Writes the ONNX files of tests/golden/onnx with both of PyTorch's exporters, and logits: make_onnx.py FOLDER

Needs torch 2.9 or newer and onnxscript. The networks have every operator that the reader takes from PyTorch:

    residual_*.onnx    convolutions with norms, which one layer computes
    operators_*.onnx   norms, activations, sums and joined channels on their own

NAME.txt has numbers in float64: the logits of both modes, the loss, and the L2 norm and a projection of each gradient
(NAME), of what five steps of SGD change in each parameter (change.NAME), and of the running statistics after them
(NAME). fp32_error and fp32_change_error are the largest relative errors of gradients and changes in PyTorch's fp32.
"""
import copy
import math
import pathlib
import sys

import torch
from torch import nn

SAMPLES = 4
STEPS, LEARNING_RATE, MOMENTUM = 5, 0.05, 0.9


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


def prepared(net):
    """In training mode, with running statistics that an export, which may run the network, does not move."""
    for module in net.train().modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = 0.0
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return net


def export_by_torchscript(net, file, side):
    older = {} if torch.__version__ < "2.5" else {"dynamo": False}
    torch.onnx.export(net, torch.zeros(2, 3, side, side), str(file), do_constant_folding=False, opset_version=13,
                      training=torch.onnx.TrainingMode.PRESERVE, **older)


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


def training(net, side):
    """Numbers by name, in the network's precision."""
    count = SAMPLES * 3 * side * side
    images = (((torch.arange(count) * 37 % 101) - 50).double() / 50).reshape(SAMPLES, 3, side, side)
    images = images.to(next(net.parameters()).dtype)
    logits = net.eval()(images)
    labels = torch.arange(SAMPLES) * 3 % logits.shape[1]
    numbers = {"logits": logits.flatten().tolist()}
    for module in net.train().modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = 0.1
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE, MOMENTUM)
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = net(images)
        loss = nn.functional.cross_entropy(logits, labels)
        loss.backward()
        if step == 0:
            numbers["training_logits"] = logits.flatten().tolist()
            numbers["loss"] = [loss.item()]
            numbers.update((name, projected(parameter.grad)) for name, parameter in net.named_parameters())
        optimizer.step()
    for name, parameter in net.named_parameters():
        numbers["change." + name] = projected(parameter.detach().double() - before[name].double())
    for name, values in net.named_buffers():
        if ".running_" in name:
            numbers[name] = projected(values)
    return numbers


def largest_error(exact, other, names):
    """Relative to a tensor's norm; for small tensors, to 1 % of the largest norm. Infinite if nothing is learned."""
    largest = max(exact[name][0] for name in names)
    if not 0 < largest < math.inf:
        return math.inf
    return max(abs(a - b) / max(exact[name][0], 1e-2 * largest)
               for name in names for a, b in zip(exact[name], other[name]))


def errors(exact, other):
    """Of the gradients, and of what the steps change."""
    changes = [name for name in exact if name.startswith("change.")]
    gradients = [name.removeprefix("change.") for name in changes]
    return [largest_error(exact, other, names) for names in (gradients, changes)]


def numbers_of(net, side):
    """All of them, by name, with how far PyTorch's own fp32 is from them."""
    exact = training(copy.deepcopy(net).double(), side)
    of_gradients, of_changes = errors(exact, training(copy.deepcopy(net), side))
    return {"fp32_error": [of_gradients], "fp32_change_error": [of_changes], **exact}


def write_numbers(file, numbers):
    """Lines "name number number ..."."""
    file.write_text("".join(f"{name} {' '.join(f'{number:.9g}' for number in values)}\n"
                            for name, values in numbers.items()))


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for name, kind in {"residual": Residual, "operators": Operators}.items():
        torch.manual_seed(1)
        net = prepared(kind())
        export_by_torchscript(net, folder / f"{name}_by_torchscript.onnx", 32)
        torch.onnx.export(net, torch.zeros(2, 3, 32, 32), folder / f"{name}_by_dynamo.onnx", dynamo=True,
                          optimize=False, external_data=True)
        write_numbers(folder / f"{name}.txt", numbers_of(net, 32))
    for file in folder.glob("*.onnx"):
        without_notes(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
