"""Networks of lib/models in plain torch.nn, as eager PyTorch is fastest (ReLU in place)."""

from torch import nn
from torch.nn import functional

SMALL_PICTURE = 64  # up to here 3 x 3 convolutions see the picture first, as for CIFAR


def conv_norm(channels_in, channels, kernel, stride=1):
    return [nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels)]


class Subsample(nn.Module):
    """Every stride-th pixel, new channels zero: shortcuts without parameters (He et al. 2015, option A)."""

    def __init__(self, stride, new_channels):
        super().__init__()
        self.stride = stride
        self.new_channels = new_channels

    def forward(self, x):
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.new_channels))


class Residual(nn.Module):
    def __init__(self, main, shortcut):
        super().__init__()
        self.main = nn.Sequential(*main)
        self.shortcut = shortcut

    def forward(self, x):
        return functional.relu(self.main(x).add_(self.shortcut(x)), inplace=True)


def basic(channels, width, stride):
    """Returns layers and their channels: two 3 x 3 convolutions."""
    first = [*conv_norm(channels, width, 3, stride), nn.ReLU(inplace=True)]
    return first + conv_norm(width, width, 3), width


def bottleneck(channels, width, stride):
    """Returns layers and their channels: 1 x 1, 3 x 3 with the stride, 1 x 1 to four times the channels."""
    first = [*conv_norm(channels, width, 1), nn.ReLU(inplace=True)]
    second = [*conv_norm(width, width, 3, stride), nn.ReLU(inplace=True)]
    return first + second + conv_norm(width, 4 * width, 1), 4 * width


def projection(channels_in, channels, stride):
    return nn.Sequential(*conv_norm(channels_in, channels, 1, stride))


def subsample(channels_in, channels, stride):
    return Subsample(stride, channels - channels_in)


# Block, shortcut where the shape changes, (width, blocks) of each stage.
PLANS = {
    "resnet18": (basic, projection, [(64, 2), (128, 2), (256, 2), (512, 2)]),
    "resnet20": (basic, subsample, [(16, 3), (32, 3), (64, 3)]),
    "resnet50": (bottleneck, projection, [(64, 3), (128, 4), (256, 6), (512, 3)]),
}


NAMES = [*PLANS, "airbench"]


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def make_airbench(classes):
    """Its first convolution is not trained, and its norms have no scale."""
    whiten = nn.Conv2d(3, 24, 2)
    whiten.weight.requires_grad_(False)
    layers = [whiten, nn.GELU()]
    channels = 24
    for width in (64, 256, 256):
        norms = [nn.BatchNorm2d(width, eps=1e-12, momentum=0.4) for _ in range(2)]
        for norm in norms:
            norm.weight.requires_grad_(False)
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.MaxPool2d(2), norms[0], nn.GELU()]
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), norms[1], nn.GELU()]
        channels = width
    return nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(channels, classes, bias=False), Scaled(1 / 9))


def make_network(name, image_size, classes):
    return make_airbench(classes) if name == "airbench" else make_resnet(name, image_size, classes)


def make_resnet(name, image_size, classes):
    block, shortcut, stages = PLANS[name]
    channels = stages[0][0]
    if shortcut is subsample or image_size <= SMALL_PICTURE:
        layers = [*conv_norm(3, channels, 3), nn.ReLU(inplace=True)]
    else:
        layers = [*conv_norm(3, channels, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    for stage, (width, blocks) in enumerate(stages):
        for index in range(blocks):
            stride = 2 if stage > 0 and index == 0 else 1
            main, channels_out = block(channels, width, stride)
            same = stride == 1 and channels == channels_out
            layers.append(Residual(main, nn.Identity() if same else shortcut(channels, channels_out, stride)))
            channels = channels_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
