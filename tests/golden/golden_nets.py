"""The models in plain torch.nn, written apart from Lockstep's: two authors of one network rarely make the same mistake."""

import torch
from torch import nn
from torch.nn import functional


class LeNet(nn.Module):
    last_norm_of_branch = ()

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(functional.relu(self.fc2(x)))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions; shortcuts without parameters (He et al. 2015, option A)."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - channels_in

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        shortcut = x[:, :, :: self.stride, :: self.stride]
        return functional.relu(y + functional.pad(shortcut, (0, 0, 0, 0, 0, self.new_channels)))


class ResNet20(nn.Module):
    last_norm_of_branch = "bn2.weight"

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, 1)
        self.layer2 = self._stage(16, 32, 2)
        self.layer3 = self._stage(32, 64, 2)
        self.fc = nn.Linear(64, classes)

    @staticmethod
    def _stage(channels_in, channels, stride):
        blocks = [BasicBlock(channels_in, channels, stride)]
        blocks += [BasicBlock(channels, channels, 1) for _ in range(2)]
        return nn.Sequential(*blocks)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 (with the stride), 1 x 1 to four times the channels; projection shortcuts."""

    def __init__(self, channels_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride != 1 or channels_in != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    last_norm_of_branch = "bn3.weight"

    def __init__(self, classes, width_divisor=1):
        super().__init__()
        stem = 64 // width_divisor
        self.conv1 = nn.Conv2d(3, stem, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(stem)
        channels = stem
        for number, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
            width //= width_divisor
            stage = []
            for block in range(blocks):
                stage.append(Bottleneck(channels, width, 2 if number > 0 and block == 0 else 1))
                channels = 4 * width
            setattr(self, f"layer{number + 1}", nn.Sequential(*stage))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def blur_before_strides(net):
    """Zhang 2019, placed as by FFCV: what strided convolutions of at least 16 input channels read is blurred first, by a
    binomial kernel with zeros beyond the edge. Hooks leave the names of parameters as they are."""

    def blur(conv, inputs):
        (x,) = inputs
        binomial = torch.tensor([0.25, 0.5, 0.25], dtype=x.dtype)
        kernels = torch.outer(binomial, binomial).expand(x.shape[1], 1, 3, 3)
        return functional.conv2d(x, kernels, padding=1, groups=x.shape[1])

    for module in net.modules():
        if isinstance(module, nn.Conv2d) and max(module.stride) > 1 and module.in_channels >= 16:
            module.register_forward_pre_hook(blur)
    return net
