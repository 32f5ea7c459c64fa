#!/usr/bin/env python3
"""The training of learning_test.py in PyTorch and torchvision: learning_peer.py '{"data": ..., "seed": 0, ...}'

Reads the JPEG files out of Lockstep's shards, decodes them by Pillow and shows them by torchvision's transforms. One
process with one thread, which takes each batch in as many parts as the other side has ranks. Prints one JSON line.
"""

import io
import json
import math
import pathlib
import sys

import h5py
import torch
from PIL import Image
from torch import nn
from torchvision import models, transforms

NORM_MOMENTUM = 0.1  # of running statistics, a step: PyTorch's own


def read_split(folder):
    """The manifest; pictures, decoded once for all; labels."""
    manifest = json.loads((folder / "manifest.json").read_text())
    pictures, labels = [], []
    for shard in manifest["shards"]:
        with h5py.File(folder / shard["file"]) as file:
            offsets, samples = file["offsets"][()], file["samples"][()]
            labels += file["labels"][()].tolist()
        for begin, end in zip(offsets[:-1], offsets[1:]):
            pictures.append(Image.open(io.BytesIO(samples[begin:end].tobytes())).convert("RGB"))
    return manifest, pictures, torch.tensor(labels)


def transforms_of(recipe, manifest):
    """For training and for tests."""
    last = [transforms.ToTensor(), transforms.Normalize(manifest["mean"], manifest["deviation"])]
    crop = transforms.RandomResizedCrop(recipe["image_size"], scale=(recipe["crop_area"], 1.0))
    middle = [transforms.Resize(recipe["resize"]), transforms.CenterCrop(recipe["image_size"])]
    return transforms.Compose([crop, transforms.RandomHorizontalFlip(), *last]), transforms.Compose([*middle, *last])


def batch_of(pictures, transform):
    return torch.stack([transform(picture) for picture in pictures]).contiguous(memory_format=torch.channels_last)


def rate_at(recipe, step, steps_per_epoch):
    """Rises over the warm-up, then falls along half a cosine wave to 0."""
    warm_up = recipe["warmup"] * steps_per_epoch
    if step < warm_up:
        return recipe["lr"] * (step + 1) / warm_up
    done = (step - warm_up) / (recipe["epochs"] * steps_per_epoch - warm_up)
    return recipe["lr"] * (1 + math.cos(math.pi * done)) / 2


def make_model(recipe, classes):
    """Its norms see each part by itself; together the parts move running statistics as far as one step does."""
    model = models.resnet18(num_classes=classes).to(memory_format=torch.channels_last)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1 - (1 - NORM_MOMENTUM) ** (1 / recipe["parts"])
    return model


def make_optimizer(recipe, model):
    """Norms and biases do not decay."""
    vectors = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    groups = [{"params": weights, "weight_decay": recipe["weight_decay"]}, {"params": vectors, "weight_decay": 0}]
    return torch.optim.SGD(groups, lr=recipe["lr"], momentum=recipe["momentum"], nesterov=True)


class Training:
    def __init__(self, recipe):
        self.recipe = recipe
        folder = pathlib.Path(recipe["data"])
        manifest, self.pictures, self.labels = read_split(folder / "train")
        _, *self.tests = read_split(folder / "validation")
        self.train_transform, self.test_transform = transforms_of(recipe, manifest)
        torch.manual_seed(recipe["seed"])
        self.model = make_model(recipe, len(manifest["classes"]))
        self.optimizer = make_optimizer(recipe, self.model)

    def train_part(self, chosen, parts):
        logits = self.model(batch_of([self.pictures[i] for i in chosen], self.train_transform))
        smoothing = self.recipe["label_smoothing"]
        loss = nn.functional.cross_entropy(logits, self.labels[chosen], label_smoothing=smoothing) / parts
        loss.backward()
        return loss.item()

    def train_epoch(self, epoch):
        """The mean loss of its steps."""
        self.model.train()
        batch, parts = self.recipe["global_batch"], self.recipe["parts"]
        steps = len(self.pictures) // batch
        order = torch.randperm(len(self.pictures))
        losses = 0.0
        for step in range(steps):
            for group in self.optimizer.param_groups:
                group["lr"] = rate_at(self.recipe, epoch * steps + step, steps)
            self.optimizer.zero_grad(set_to_none=True)
            for chosen in order[step * batch :][:batch].split(batch // parts):
                losses += self.train_part(chosen.tolist(), parts)
            self.optimizer.step()
        return losses / steps

    def test(self):
        """Loss, top-1 and top-5, of each picture once."""
        self.model.eval()
        pictures, labels = self.tests
        sums = torch.zeros(3, dtype=torch.float64)
        for chosen in torch.arange(len(pictures)).split(64):
            with torch.no_grad():
                logits = self.model(batch_of([pictures[i] for i in chosen], self.test_transform))
            right = logits.topk(5).indices == labels[chosen, None]
            loss = nn.functional.cross_entropy(logits, labels[chosen], reduction="sum")
            sums += torch.stack([loss, right[:, 0].sum(), right.sum()])
        return (sums / len(pictures)).tolist()

    def run(self):
        names = ("training_loss", "loss", "accuracy", "top5")
        return [
            dict(zip(names, [self.train_epoch(epoch), *self.test()])) for epoch in range(self.recipe["epochs"])
        ]


def main():
    torch.set_num_threads(1)
    epochs = Training(json.loads(sys.argv[1])).run()
    print(json.dumps({"epochs": epochs, "versions": f"PyTorch {torch.__version__}"}))


if __name__ == "__main__":
    main()
