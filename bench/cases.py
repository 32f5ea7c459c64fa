"""The cases of compare.py: networks, sizes, and target ratios."""

import dataclasses


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    description: str
    model: str
    batch: int  # of each rank
    precision: str
    ranks: int
    threads: int  # of each rank
    target: float  # ratio to reach; on CPUs: on Zen 5
    peer_mode: str = ""  # on a GPU: eager or compile
    image_size: int = 32
    classes: int = 10

    def options(self):
        named = {"model": self.model, "batch": self.batch, "precision": self.precision}
        named |= {"image-size": self.image_size, "classes": self.classes}
        named |= {"device": "cuda"} if self.peer_mode else {"threads": self.threads}
        return [word for name, value in named.items() for word in (f"--{name}", str(value))]

    def title(self):
        if self.peer_mode:
            return f"{self.description}, against {self.peer_mode}"
        return f"{self.description}, {counted(self.ranks, 'rank')} x {counted(self.threads, 'thread')}"


def resnet50(batch, precision, threads, target, peer_mode=""):
    description = f"ResNet-50, 224 px, batch {batch}, {precision}"
    return Case(f"resnet50-{precision}", description, "resnet50", batch, precision, 1, threads, target, peer_mode, 224, 1000)


def resnet18_photographs(precision, target):
    description = f"ResNet-18, 224 px, batch 32, {precision}"
    return Case(f"resnet18-224-{precision}", description, "resnet18", 32, precision, 1, 2, target, "", 224, 1000)


# Name, description, model, batch, precision, ranks, threads, target.
CASES = [
    Case("resnet18-fp32", "ResNet-18 (CIFAR), batch 64, fp32", "resnet18", 64, "fp32", 1, 2, 3.0),
    Case("resnet20-fp32", "ResNet-20, batch 128, fp32", "resnet20", 128, "fp32", 1, 2, 2.7),
    Case("resnet18-bf16", "ResNet-18, batch 64, bf16", "resnet18", 64, "bf16", 1, 2, 1.9),
    Case("resnet20-bf16", "ResNet-20, batch 128, bf16", "resnet20", 128, "bf16", 1, 2, 2.3),
    Case("airbench-fp32", "airbench, batch 256, fp32", "airbench", 256, "fp32", 1, 2, 2.5),
    Case("airbench-bf16", "airbench, batch 256, bf16", "airbench", 256, "bf16", 1, 2, 2.5),
    Case("resnet18-2ranks", "ResNet-18, batch 32 each, fp32", "resnet18", 32, "fp32", 2, 1, 3.0),
    resnet50(16, "fp32", 2, 1.9),
    resnet50(16, "bf16", 2, 1.5),
    resnet18_photographs("fp32", 1.8),
    resnet18_photographs("bf16", 1.3),
]
GPU_CASES = [
    Case("resnet18-bf16-eager", "ResNet-18 (CIFAR), batch 512, bf16", "resnet18", 512, "bf16", 1, 1, 2.0, "eager"),
    Case("resnet18-bf16-compile", "ResNet-18 (CIFAR), batch 512, bf16", "resnet18", 512, "bf16", 1, 1, 1.5, "compile"),
    resnet50(256, "bf16", 1, 1.3, "compile"),
    resnet50(256, "fp16", 1, 1.5, "compile"),
]
