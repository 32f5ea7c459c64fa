#!/usr/bin/env python3
"""model-best.h5 has the weights of a training's best test, and is what a training's folder stands for: best_model_test.py BIN"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


class Runs:
    """Trainings of ten steps an epoch in one folder."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.faults = programs, folder, []
        self.data = folder / "data"
        self.say("make_shards", "synthetic", "--samples", "600", "--output", self.data)

    def say(self, program, *words):
        done = subprocess.run([f"{self.programs}/{program}", *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} {words} failed: {done.stderr}")
        return done.stdout + done.stderr

    def train(self, output, *more):
        return self.say("train_cifar", "--data", self.data, "--output", output, "--model", "lenet", "--global-batch", "60",
                        "--threads", "1", "--keep-latest", "9", "--plan-folder", self.folder / "plans", *more)

    def summary(self, output):
        return json.loads((output / "summary.json").read_text())

    def weights(self, file):
        return re.search(r"^  weights +(\w+)$", self.say("inspect", file), re.M).group(1)

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def expect_true(self, output, what):
        """The file is of the step that summary.json calls the best, and has the weights of its checkpoint."""
        step = self.summary(output)["best_step"]
        said = self.say("inspect", output / "model-best.h5")
        self.expect(f"{what}: its step is not {step}", f"\n  step       {step}\n" in said, said[:200])
        checkpoint = output / "checkpoints" / f"step-{step:012}.h5"
        kept = re.search(r"mean +weights (\w+)", self.say("inspect", checkpoint))
        wanted = kept.group(1) if kept else self.weights(checkpoint)
        self.expect(f"{what}: its weights are not those of step {step}", self.weights(output / "model-best.h5") == wanted)
        return step

    def cut_back(self, name, step):
        """As if the first training had been killed after `step`."""
        copy = self.folder / name
        shutil.copytree(self.folder / "first", copy)
        for file in (copy / "checkpoints").glob("step-*.h5"):
            if int(file.stem[5:]) > step:
                file.unlink()
        (copy / "model.h5").unlink()
        return copy


def best_of_trainings(runs):
    first = runs.folder / "first"
    trained = runs.train(first, "--epochs", "4", "--schedule", "constant", "--lr", "0.1", "--warmup", "0", "--seed", "3")
    best = runs.expect_true(first, "a training")
    runs.expect("the best test was the last one, which proves little", best < 40, best)
    accuracy = runs.summary(first)["best_accuracy"]
    runs.expect("the last line does not tell it", f" %, best {100 * accuracy:.2f} % after step {best}  (" in trained, trained)
    said = runs.say("inspect", first)
    runs.expect("inspect RUN does not name it", f"after step {best} (model-best.h5)" in said, said)
    mean = runs.folder / "mean"
    runs.train(mean, "--epochs", "2", "--ema", "0.5")
    runs.expect_true(mean, "with a mean of weights")
    tested = runs.summary(mean)
    runs.expect("the weights are not tested", tested["test_loss"] != tested["ema_test_loss"], tested)
    led = runs.folder / "lookahead"
    runs.train(led, "--epochs", "2", "--ema", "0.5", "--ema-every", "3", "--warmup", "0", "--lookahead")
    runs.expect_true(led, "with Lookahead")
    tested = runs.summary(led)
    runs.expect("Lookahead's fast weights are tested", tested["test_loss"] == tested["ema_test_loss"], tested)

    said = runs.say("evaluate", "--model-file", first, "--data", runs.data)
    runs.expect("evaluate does not say which file", f"model: model-best.h5 of '{first}'" in said, said)
    runs.expect("evaluate finds another accuracy", f"{100 * accuracy:.2f} %" in said, (accuracy, said[:300]))
    picture = runs.folder / "batch.png"
    runs.say("inspect", runs.data, "--pictures", picture)
    said = runs.say("predict", first, picture)
    runs.expect("predict does not take it", f"model: model-best.h5 of '{first}'" in said and "batch.png" in said, said)
    runs.say("export_model", first / "model-best.h5", "--safetensors", runs.folder / "named.safetensors")
    said = runs.say("export_model", first, "--safetensors", runs.folder / "folder.safetensors")
    runs.expect("export_model does not say which file", f"model: model-best.h5 of '{first}'" in said, said)
    same = (runs.folder / "named.safetensors").read_bytes() == (runs.folder / "folder.safetensors").read_bytes()
    runs.expect("export_model takes other weights", same)
    said = runs.train(runs.folder / "from best", "--epochs", "1", "--init-from", first)
    runs.expect("--init-from does not say which file", f"weights from model-best.h5 of '{first}'" in said, said)
    return best


def best_of_resumed(runs, best):
    # Killed before the best test: the file was of a step that is not done any more.
    before = runs.cut_back("before", best - 10)
    runs.train(before, "--epochs", str((best - 10) // 10), "--schedule", "constant", "--lr", "0.1", "--warmup", "0", "--seed",
               "3")
    earlier = runs.expect_true(before, "after a kill before the best test")
    runs.expect("the best step lies ahead", earlier < best, earlier)
    # The same tests again give the same file.
    again = runs.cut_back("again", best - 10)
    before = (again / "model-best.h5").read_bytes()
    runs.train(again, "--epochs", "4", "--schedule", "constant", "--lr", "0.1", "--warmup", "0", "--seed", "3")
    runs.expect_true(again, "after a kill and the best test again")
    runs.expect("the same test gives another file", before == (again / "model-best.h5").read_bytes())
    # A training that is begun anew takes none of it.
    runs.train(again, "--epochs", "1", "--resume", "never", "--lr", "0.001")
    runs.expect_true(again, "of one begun anew")
    runs.expect("the earlier one's is not set aside", (again / "set-aside-1" / "model-best.h5").exists())


def refusals(runs):
    """Of what would not fit into a checkpoint."""
    def refused(subjects, *more):
        command = [f"{runs.programs}/train_cifar", "--data", runs.data, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        runs.expect(f"{more[0]} is not refused", done.returncode == 2 and all(one in done.stderr for one in subjects),
                    done.stderr)

    refused(["--note", "4097", "4096"], "--note", "n" * 4097)
    refused(["--tag", "257", "255", "--note"], "--tag", "t=" + "a" * 255)
    many = [word for number in range(65) for word in ("--tag", f"t{number}=1")]
    refused(["65", "--tag", "64"], *many)


def main(programs):
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(programs, pathlib.Path(name) / "a folder")
        best = best_of_trainings(runs)
        best_of_resumed(runs, best)
        refusals(runs)
        print("\n".join(runs.faults) or f"the best of 40 steps is that of {best}")
        return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
