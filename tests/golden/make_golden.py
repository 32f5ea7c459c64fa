"""Writes the golden values that tests/models/golden_test.cpp compares with: PyTorch, float64.

    python3 make_golden.py [--output DIR]

lenet.h5, resnet20.h5, resnet50_narrow.h5 (all widths divided by 8), in full:
    /weights/NAME     float16  initial parameters, rounded so that every precision holds them exactly
    /images           float16  [n, h, w, c]
    /labels           int32    [n]
    /logits           float64  [n, classes], of the first step
    /gradients/NAME   float32  of the first step's mean loss, rounded to 16 significant bits: three bytes each when packed
    /running/NAME     float32  batch-norm statistics after the first step
    /updated/NAME     float32  parameters and statistics after `steps` SGD steps on the same batch
resnet50.h5 and resnet50-blur.h5, the real one at 72 pixels, without and with blurred maps: weights and images follow counter_uniform(), so they are not stored, and of each
tensor, in the order of names, a row of 17 values is kept: its L2 norm and 16 of its elements, evenly spaced
    /labels, /logits  as above
    /gradients        float64  [parameters, 17]
    /updated          float64  [parameters and statistics, 17]
torchvision.h5, a group for each of torchvision's networks for 224 pixels and 1000 classes; values follow counter_uniform()
    /NAME/entries     uint8    "layer1.0.conv1.weight 64 64 3 3\\n": parameters and statistics, names in order
    /NAME/logits      float32  [1, classes], of one picture, in evaluation
Root attributes, but of torchvision.h5: loss, steps, learning_rate, momentum, weight_decay (of every parameter), torch.

optimizers.h5: the parameters OPTIMIZED after OPTIMIZER_STEPS steps on gradients from counter_uniform(), as are the first
values; the rate of step s, from 1, is s / steps of learning_rate
    /adamw/NAME       float64  by torch.optim.AdamW
    /lars/NAME        float64  by the formula of You et al. 2017, algorithm 1; norms and biases neither adapt nor decay
    /clipped/NAME     float64  by torch.optim.SGD on gradients that clip_grad_norm_ bounded by clip_norm
    /sgd_value/NAME, /adamw_value/NAME, /lars_value/NAME
                      float64  as above, on gradients that clip_grad_value_ bounded by clip_value
    /value_norm/NAME  float64  by torch.optim.SGD on gradients that both bounded, the values first
Root attributes: steps, learning_rate, momentum, weight_decay, beta1, beta2, epsilon, trust, clip_norm, clip_value, torch.

losses.h5: cross-entropy of logits from counter_uniform() against two labels mixed by a share
    /labels, /others  int32    [n]
    /shares           float64  [n], of the first label
    /losses           float64  [n], by torch.nn.functional.cross_entropy against probabilities
    /gradients        float64  [n, classes], of their sum
Root attributes: label_smoothing, torch.
"""

import argparse
import pathlib

import h5py
import numpy
import torch
import torchvision
from torch.nn import functional

import golden_nets

STEPS = 3
LEARNING_RATE = 0.01
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
IMAGE_STREAM = 1000  # of counter_uniform: beyond the number of any parameter
STATISTICS_STREAM = 2000
TORCHVISION_NETS = {"resnet18": "bn2.weight", "resnet34": "bn2.weight", "resnet50": "bn3.weight", "resnet101": "bn3.weight",
                    "resnet18-blur": "bn2.weight", "resnet50-blur": "bn3.weight"}
OPTIMIZER_STEPS = 10
OPTIMIZED = {"bn.bias": (6,), "bn.weight": (6,), "conv.weight": (6, 5, 3, 3), "fc.bias": (7,), "fc.weight": (7, 6)}
OPTIMIZER = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
             "trust": 0.01, "clip_norm": 5.0, "clip_value": 0.75}
GRADIENT_STREAM = 2000  # and a hundred more for each step


def counter_uniform(stream, count):
    """splitmix64 of (stream, element) as float32 in [-1, 1); tests/models/counter_values.hpp is the same in C++."""
    with numpy.errstate(over="ignore"):
        z = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(stream << 32)
        z = (z + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return ((z >> numpy.uint64(40)).astype(numpy.float64) * 2.0**-23 - 1.0).astype(numpy.float32)


def sorted_parameters(net):
    return sorted(net.named_parameters())


def set_counter_weights(net):
    for stream, (name, parameter) in enumerate(sorted_parameters(net)):
        values = counter_uniform(stream, parameter.numel())
        if parameter.dim() == 4:
            bound = numpy.float32(numpy.sqrt(6.0 / (parameter.shape[0] * parameter.shape[2] * parameter.shape[3])))
            values = values * bound
        elif name.startswith("fc."):
            values = values * numpy.float32(1.0 / 64.0)
        else:
            values = values * numpy.float32(0.25) + numpy.float32(1.0 if name.endswith("weight") else 0.0)
        if name.endswith(net.last_norm_of_branch):
            values = values * numpy.float32(0.1)
        parameter.data = torch.from_numpy(values.astype(numpy.float64)).reshape(parameter.shape)


def set_counter_statistics(net):
    for stream, (name, buffer) in enumerate(statistics(net)):
        values = counter_uniform(STATISTICS_STREAM + stream, buffer.numel()) * numpy.float32(0.25)
        values = values + numpy.float32(1.0 if name.endswith("running_var") else 0.0)
        buffer.copy_(torch.from_numpy(values.astype(numpy.float64)))


def set_random_weights(net, random):
    """He-normal convolutions; norms away from 1 and 0, so that a swapped or forgotten scale shows.

    Norms that end a residual branch get a tenth of the scale: with whole ones the gradients of a deep net are so sensitive
    that PyTorch's own bf16 has nothing in common with its float64 (cosine 0.09 for resnet50_narrow).
    """
    for name, parameter in sorted_parameters(net):
        values = random.standard_normal(parameter.shape)
        if parameter.dim() == 4:
            values *= numpy.sqrt(2.0 / (parameter.shape[0] * parameter.shape[2] * parameter.shape[3]))
        elif parameter.dim() == 2:
            values /= numpy.sqrt(parameter.shape[1])
        else:
            is_norm_scale = ("bn" in name or "downsample.1" in name) and name.endswith("weight")
            values = 0.1 * values + (1.0 if is_norm_scale else 0.0)
        if name.endswith(net.last_norm_of_branch):
            values *= 0.1
        parameter.data = torch.from_numpy(values.astype(numpy.float16).astype(numpy.float64))


def statistics(net):
    return sorted((name, b) for name, b in net.named_buffers() if not name.endswith("num_batches_tracked"))


def train(net, images, labels):
    """Three steps; returns what the files hold, as float64 arrays by name."""
    net.train()
    sgd = torch.optim.SGD(net.parameters(), LEARNING_RATE, MOMENTUM, weight_decay=WEIGHT_DECAY)
    x = torch.from_numpy(images.astype(numpy.float64)).permute(0, 3, 1, 2).contiguous()
    golden = {}
    for step in range(STEPS):
        sgd.zero_grad()
        logits = net(x)
        loss = functional.cross_entropy(logits, torch.from_numpy(labels).long())
        loss.backward()
        if step == 0:
            golden["loss"] = loss.item()
            golden["logits"] = logits.detach().numpy().copy()
            golden["gradients"] = {name: p.grad.numpy().copy() for name, p in sorted_parameters(net)}
            golden["running"] = {name: b.numpy().copy() for name, b in statistics(net)}
        sgd.step()
    after = sorted_parameters(net) + statistics(net)
    golden["updated"] = {name: t.detach().numpy().copy() for name, t in sorted(after)}
    return golden


def write_array(group, name, values, dtype):
    # Below a page, filters cost more than they save.
    filters = {"compression": "gzip", "compression_opts": 9, "shuffle": True} if values.size > 1024 else {}
    group.create_dataset(name, data=values.astype(dtype), track_times=False, **filters)


def open_golden(path, golden):
    file = h5py.File(path, "w", libver=("v108", "v110"))
    file.attrs["loss"] = golden["loss"]
    file.attrs["steps"] = numpy.int32(STEPS)
    file.attrs["learning_rate"] = LEARNING_RATE
    file.attrs["momentum"] = MOMENTUM
    file.attrs["weight_decay"] = WEIGHT_DECAY
    file.attrs["torch"] = str(torch.__version__)
    return file


def write_full(path, net, image_size, batch, seed):
    random = numpy.random.RandomState(seed)  # its stream is frozen: numpy promises the same values in every version
    net.double()
    set_random_weights(net, random)
    weights = {name: p.detach().numpy().copy() for name, p in sorted_parameters(net)}
    images = random.standard_normal((batch, image_size, image_size, 3)).astype(numpy.float16)
    labels = random.randint(0, 10, batch).astype(numpy.int32)
    golden = train(net, images, labels)
    golden["gradients"] = {name: rounded_to_16_bits(values) for name, values in golden["gradients"].items()}
    with open_golden(path, golden) as file:
        write_array(file, "images", images, numpy.float16)
        write_array(file, "labels", labels, numpy.int32)
        write_array(file, "logits", golden["logits"], numpy.float64)
        for name, values in weights.items():
            write_array(file, f"weights/{name}", values, numpy.float16)
        for group in ("gradients", "running", "updated"):
            file.create_group(group)
            for name, values in golden[group].items():
                write_array(file, f"{group}/{name}", values, numpy.float32)


def rounded_to_16_bits(values):
    mantissa, exponent = numpy.frexp(values)
    return numpy.ldexp(numpy.round(mantissa * 2.0**16), exponent - 16)


def probe(values):
    flat = values.reshape(-1)
    places = numpy.arange(16) * flat.size // 16
    return numpy.concatenate([[numpy.linalg.norm(flat)], flat[places]])


def write_probes(path, net, image_size, batch, classes):
    net.double()
    set_counter_weights(net)
    shape = (batch, image_size, image_size, 3)
    images = counter_uniform(IMAGE_STREAM, int(numpy.prod(shape))).reshape(shape)
    labels = (numpy.arange(batch) * 271 % classes).astype(numpy.int32)
    golden = train(net, images, labels)
    with open_golden(path, golden) as file:
        write_array(file, "labels", labels, numpy.int32)
        write_array(file, "logits", golden["logits"], numpy.float64)
        for group in ("gradients", "updated"):
            rows = numpy.stack([probe(values) for _, values in sorted(golden[group].items())])
            write_array(file, group, rows, numpy.float64)


def write_torchvision(path, image_size):
    images = counter_uniform(IMAGE_STREAM, image_size * image_size * 3).reshape(1, image_size, image_size, 3)
    x = torch.from_numpy(images.astype(numpy.float64)).permute(0, 3, 1, 2).contiguous()
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        file.attrs["torchvision"] = str(torchvision.__version__)
        for name, last_norm_of_branch in TORCHVISION_NETS.items():
            net = getattr(torchvision.models, name.removesuffix("-blur"))().double().eval()
            if name.endswith("-blur"):
                golden_nets.blur_before_strides(net)
            net.last_norm_of_branch = last_norm_of_branch
            set_counter_weights(net)
            set_counter_statistics(net)
            entries = sorted(sorted_parameters(net) + statistics(net))
            text = "".join(f"{entry} {' '.join(map(str, values.shape))}\n" for entry, values in entries)
            write_array(file, f"{name}/entries", numpy.frombuffer(text.encode(), numpy.uint8), numpy.uint8)
            with torch.no_grad():
                write_array(file, f"{name}/logits", net(x).numpy(), numpy.float32)


def optimizer_start():
    return {name: counter_uniform(stream, int(numpy.prod(shape))).astype(numpy.float64).reshape(shape)
            for stream, (name, shape) in enumerate(sorted(OPTIMIZED.items()))}


def optimizer_gradients(step):
    """They grow, so that the first one is not clipped."""
    growth = numpy.float32(0.25 * (step + 1))
    gradients = {}
    for stream, (name, shape) in enumerate(sorted(OPTIMIZED.items())):
        values = growth * counter_uniform(GRADIENT_STREAM + 100 * step + stream, int(numpy.prod(shape)))
        gradients[name] = values.astype(numpy.float64).reshape(shape)
    return gradients


def optimizer_rate(step):
    return OPTIMIZER["learning_rate"] * (step + 1) / OPTIMIZER_STEPS


def updated_by(make_optimizer, clip_norm=None, clip_value=None):
    parameters = {name: torch.nn.Parameter(torch.from_numpy(values)) for name, values in optimizer_start().items()}
    optimizer = make_optimizer(parameters)
    for step in range(OPTIMIZER_STEPS):
        for name, gradient in optimizer_gradients(step).items():
            parameters[name].grad = torch.from_numpy(gradient)
        if clip_value is not None:
            torch.nn.utils.clip_grad_value_(parameters.values(), clip_value)
        if clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters.values(), clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = optimizer_rate(step)
        optimizer.step()
    return {name: parameter.detach().numpy() for name, parameter in parameters.items()}


def updated_by_lars(clip_value=numpy.inf):
    values = optimizer_start()
    velocity = {name: numpy.zeros(shape) for name, shape in OPTIMIZED.items()}
    for step in range(OPTIMIZER_STEPS):
        for name, gradient in optimizer_gradients(step).items():
            gradient = gradient.clip(-clip_value, clip_value)
            adapts = values[name].ndim > 1
            decay = OPTIMIZER["weight_decay"] if adapts else 0.0
            norm = numpy.linalg.norm(values[name])
            local = OPTIMIZER["trust"] * norm / (numpy.linalg.norm(gradient) + decay * norm) if adapts else 1.0
            move = optimizer_rate(step) * local * (gradient + decay * values[name])
            velocity[name] = OPTIMIZER["momentum"] * velocity[name] + move
            values[name] = values[name] - velocity[name]
    return values


def write_optimizers(path):
    def adamw(parameters):
        return torch.optim.AdamW(parameters.values(), betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]),
                                 eps=OPTIMIZER["epsilon"], weight_decay=OPTIMIZER["weight_decay"])

    def sgd(parameters):
        return torch.optim.SGD(parameters.values(), lr=1, momentum=OPTIMIZER["momentum"],
                               weight_decay=OPTIMIZER["weight_decay"])

    norm, value = OPTIMIZER["clip_norm"], OPTIMIZER["clip_value"]
    updated = {"adamw": updated_by(adamw), "lars": updated_by_lars(), "clipped": updated_by(sgd, norm),
               "sgd_value": updated_by(sgd, clip_value=value), "adamw_value": updated_by(adamw, clip_value=value),
               "lars_value": updated_by_lars(value), "value_norm": updated_by(sgd, norm, value)}
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        file.attrs["steps"] = numpy.int32(OPTIMIZER_STEPS)
        file.attrs["torch"] = str(torch.__version__)
        for name, value in OPTIMIZER.items():
            file.attrs[name] = value
        for group, parameters in updated.items():
            for name, values in parameters.items():
                write_array(file, f"{group}/{name}", values, numpy.float64)


def write_losses(path):
    samples, classes = 6, 11
    logits = torch.from_numpy(4 * counter_uniform(0, samples * classes).astype(numpy.float64).reshape(samples, classes))
    logits.requires_grad_()
    labels, others = numpy.array([3, 0, 10, 7, 5, 2]), numpy.array([4, 10, 0, 7, 1, 9])
    shares = numpy.array([0.75, 0.25, 1, 0.5, 0, 0.625])
    target = numpy.zeros((samples, classes))
    for sample in range(samples):
        target[sample, labels[sample]] += shares[sample]
        target[sample, others[sample]] += 1 - shares[sample]
    losses = functional.cross_entropy(logits, torch.from_numpy(target), reduction="none", label_smoothing=0.1)
    losses.sum().backward()
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        file.attrs.update(label_smoothing=0.1, torch=str(torch.__version__))
        file.update(labels=labels.astype(numpy.int32), others=others.astype(numpy.int32), shares=shares,
                    losses=losses.detach().numpy(), gradients=logits.grad.numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    output = parser.parse_args().output
    write_full(output / "lenet.h5", golden_nets.LeNet(10), image_size=32, batch=16, seed=1)
    write_full(output / "resnet20.h5", golden_nets.ResNet20(10), image_size=32, batch=8, seed=2)
    write_full(output / "resnet50_narrow.h5", golden_nets.ResNet50(10, width_divisor=8), image_size=72, batch=8, seed=3)
    write_optimizers(output / "optimizers.h5")
    write_losses(output / "losses.h5")
    write_probes(output / "resnet50.h5", golden_nets.ResNet50(1000), image_size=72, batch=4, classes=1000)
    blurred = golden_nets.blur_before_strides(golden_nets.ResNet50(1000))
    write_probes(output / "resnet50-blur.h5", blurred, image_size=72, batch=4, classes=1000)
    write_torchvision(output / "torchvision.h5", image_size=224)


if __name__ == "__main__":
    main()
