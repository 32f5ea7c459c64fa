#!/usr/bin/env python3
"""Writes the ONNX files of tests/golden/onnx with both of PyTorch's exporters, and logits: make_onnx.py FOLDER

Needs torch 2.9 or newer and onnxscript. The network has every operator that the reader takes from PyTorch.
"""
import pathlib
import sys

import onnx
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(out)

    def forward(self, x):
        return self.bn(self.conv(x))


class Net(nn.Module):
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


def main(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    net = Net().train()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.0  # an export may run the network, which must not move its statistics
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    images = torch.zeros(2, 3, 32, 32)
    torch.onnx.export(net, images, folder / "by_torchscript.onnx", dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, opset_version=13)
    torch.onnx.export(net, images, folder / "by_dynamo.onnx", dynamo=True, optimize=False, external_data=True)


    for file in folder.glob("*.onnx"):  # without notes about the machine that wrote them
        model = onnx.load(file, load_external_data=False)
        for node in model.graph.node:
            node.ClearField("metadata_props")
            node.ClearField("doc_string")
        for part in (model, model.graph, *model.graph.value_info, *model.graph.input, *model.graph.output):
            part.ClearField("metadata_props")
        file.write_bytes(model.SerializeToString())
    count = 2 * 3 * 32 * 32
    inputs = ((torch.arange(count) * 37 % 101) - 50).double() / 50
    logits = net.eval().double()(inputs.reshape(2, 3, 32, 32)).flatten().tolist()
    (folder / "logits.txt").write_text("".join(f"{value:.9g}\n" for value in logits))


if __name__ == "__main__":
    main(*sys.argv[1:])
