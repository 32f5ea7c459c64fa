#!/usr/bin/env python3
"""Trainings of networks from ONNX files: own_network_test.py BIN GOLDEN

GOLDEN: folder of ONNX files that PyTorch wrote (tests/golden/make_onnx.py).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Runs:
    """Trainings of ten steps an epoch in one folder."""

    def __init__(self, programs, golden, folder):
        self.programs, self.golden, self.folder, self.faults = pathlib.Path(programs).resolve(), golden.resolve(), folder, []
        self.data = folder / "data"
        self.say("make_shards", "synthetic", "--samples", "600", "--output", self.data)

    def start(self, program, *words, ranks=1):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        done = subprocess.run([*launcher, f"{self.programs}/{program}", *map(str, words)], capture_output=True, text=True,
                              check=False, cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def say(self, program, *words, ranks=1):
        code, words_of_it = self.start(program, *words, ranks=ranks)
        if code != 0:
            sys.exit(f"{program} {words} failed: {words_of_it}")
        return words_of_it

    def options(self, output, model):
        return ["--data", self.data, "--output", output, "--model", model, "--global-batch", "60", "--threads", "1",
                "--plan-folder", self.folder / "plans"]

    def train(self, output, model, *more, ranks=1):
        """The fingerprint of the weights."""
        said = self.say("train_cifar", *self.options(output, model), *more, ranks=ranks)
        return re.search(r"weights (\w{16})\)", said).group(1)

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def expect_refused(self, what, code, words, *message):
        found, said = self.start(*words)
        self.expect(what, found == code and all(one in said for one in message), (found, said))


def same_as_by_name(runs):
    """An exported model trains on as by name, and its files need no other file."""
    runs.train("first", "resnet20", "--max-steps", "6", "--schedule", "constant")
    runs.say("export_model", "first/model.h5", "--onnx", "net.onnx")
    more = ["--epochs", "1", "--virtual-ranks", "2"]
    by_name = runs.train("by_name", "resnet20", "--init-from", "first/model.h5", *more)
    runs.expect("weights by name", runs.train("by_file", "net.onnx", *more) == by_name)
    runs.expect("two ranks", runs.train("two", "net.onnx", *more, ranks=2) == by_name)

    logits = [runs.say("evaluate", "--model-file", f"{name}/model.h5", "--data", runs.data) for name in
              ("by_name", "by_file")]
    found = [re.search(r"top-1 +(\S+) %", words).group(1) for words in logits]
    runs.expect("evaluations", found[0] == found[1], logits)
    (runs.folder / "net.onnx").rename(runs.folder / "away.onnx")
    for name in ("by_name", "by_file"):
        runs.say("export_model", f"{name}/model.h5", "--safetensors", f"{name}.safetensors", "--onnx", f"{name}.onnx")
    runs.expect("another export", len((runs.folder / "by_file.onnx").read_bytes()) > 1e6)
    said = runs.say("evaluate", "--model-file", "by_file.safetensors", "--data", runs.data)
    runs.expect("evaluation of safetensors", f"{found[0]} %" in said, said)
    said = runs.say("inspect", "by_file/model.h5")
    runs.expect("inspect", "net.onnx" in said, said)
    (runs.folder / "away.onnx").rename(runs.folder / "net.onnx")


def resumed(runs):
    """With the file, without it, and not with another one."""
    more = ["--epochs", "2", "--checkpoint-every", "5", "--keep-latest", "9"]
    whole = runs.train("whole", "net.onnx", *more)
    for name in ("with", "without", "elsewhere", "damaged", "other"):
        shutil.copytree(runs.folder / "whole", runs.folder / name)
        for file in (runs.folder / name / "checkpoints").glob("step-*.h5"):
            if int(file.stem[5:]) > 15:
                file.unlink()
        (runs.folder / name / "model.h5").unlink()
    runs.expect("resumed", runs.train("with", "net.onnx", *more) == whole)
    file = runs.folder / "net.onnx"
    file.rename(runs.folder / "away.onnx")
    runs.expect("resumed without the file", runs.train("without", "net.onnx", *more) == whole)
    (runs.folder / "there").mkdir()
    shutil.copy(runs.folder / "away.onnx", runs.folder / "there" / "net.onnx")
    runs.expect("resumed with the file elsewhere", runs.train("elsewhere", "there/net.onnx", *more) == whole)
    file.write_bytes((runs.folder / "away.onnx").read_bytes()[:-1000])
    runs.expect("resumed with a damaged file", runs.train("damaged", "net.onnx", *more) == whole)
    shutil.copy(runs.golden / "residual_by_torchscript.onnx", file)
    runs.expect_refused("another network", 2, ["train_cifar", *runs.options("other", "net.onnx"), *more], "net.onnx",
                        "not the one with which the checkpoint was trained")
    (runs.folder / "away.onnx").rename(file)


def from_pytorch(runs):
    """The files of both exporters hold one network with the same weights."""
    for name, layer, operations in (("operators", "units.1.norm", "norm"),
                                    ("residual", "layers.1.conv", "conv 3x3 norm add relu")):
        files = [runs.golden / f"{name}_by_{exporter}.onnx" for exporter in ("torchscript", "dynamo")]
        ends = [runs.train(file.stem, file, "--epochs", "1") for file in files]
        runs.expect(f"{name}: both exporters", ends[0] == ends[1], ends)
        said = runs.say("inspect", "--model", files[1])
        runs.expect(f"inspect --model {name}", layer in said and operations in said, said)
    code, said = runs.start("train_cifar", *runs.options("head", files[0]), "--new-head", "--max-steps", "2")
    runs.expect("a new head", code == 0 and "except for the last layer, which is new (10 classes)" in said, said)
    # It was trained for the size of the data, or of the program's default, without a word.
    runs.expect("the size of the file", "was exported for" not in said, said)
    said = runs.say("train_cifar", *runs.options("larger", files[0]), "--image-size", "40", "--max-steps", "1")
    runs.expect("another size", "exported for images of 32 x 32 pixels, but is trained for 40 x 40" in said, said)
    fresh, again = (runs.train(f"fresh{i}", file, "--fresh-weights", "--max-steps", "2") for i, file in enumerate(files))
    runs.expect("fresh weights", fresh == again != runs.train("given", files[0], "--max-steps", "2"), (fresh, again))


def measured(runs):
    runs.say("step_bench", "--model", runs.golden / "residual_by_torchscript.onnx", "--batch", "4", "--steps", "2",
             "--image-size", "32", "--classes", "10")


def refusals(runs):
    train = ["train_cifar", *runs.options("refused", "absent.onnx")]
    runs.expect_refused("an absent file", 2, train, "absent.onnx")
    train[train.index("absent.onnx")] = "net.onnx"
    runs.expect_refused("blur", 2, [*train, "--blur-pool"], "--blur-pool", "ONNX")
    runs.expect_refused("zero gamma", 2, [*train, "--zero-init-gamma"], "--zero-init-gamma")
    runs.expect_refused("a head without a file", 2, ["train_cifar", *runs.options("refused", "lenet"), "--new-head"],
                        "--new-head", "--init-from")
    for name in "inspect", "evaluate":
        option = [] if name == "inspect" else ["--data", runs.data, "--model-file"]
        runs.expect_refused(f"{name} of an ONNX file", 2, [name, *option, "net.onnx"], "is an ONNX file")
    (runs.folder / "broken.onnx").write_bytes((runs.folder / "net.onnx").read_bytes()[:-1000])
    train[train.index("net.onnx")] = "broken.onnx"
    runs.expect_refused("a broken file", 65, train, "broken.onnx")
    runs.expect("something was written", not (runs.folder / "refused" / "model.h5").exists())


def main(programs, golden, *with_benches):
    os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(programs, pathlib.Path(golden), pathlib.Path(folder))
        for part in (same_as_by_name, resumed, from_pytorch, refusals, *([measured] if any(with_benches) else [])):
            part(runs)
        print("\n".join(runs.faults) or "all as expected")
        return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
