#!/usr/bin/env python3
"""--early-stop ends a training at the same step with the same weights, wherever it was killed.

early_stop_run_test.py PROGRAMS
"""
import json
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import Training, make_data, under_mpirun  # noqa: E402: found only now

EPOCHS = 12
RULE = ("test-accuracy", 2, 0.03)


def step_by_rule(history, patience, min_delta):
    """The step after which the rule ends the training of these reports; 0 if it does not."""
    best, tests = None, 0
    for entry in history:
        if entry["kind"] != "test":
            continue
        better = best is None or entry["accuracy"] - min_delta > best
        best, tests = (entry["accuracy"], 0) if better else (best, tests + 1)
        if tests >= patience:
            return entry["step"]
    return 0


class Runs:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.faults = programs, folder, []
        make_data(programs, "train_cifar", 300, folder / "data")

    def training(self, name, rule=":".join(map(str, RULE)), ranks=1, more=()):
        command = [f"{self.programs}/train_cifar", "--data", self.folder / "data", "--output", self.folder / name,
                   "--model", "convnet", "--image-size", "16", "--epochs", EPOCHS, "--threads", "1", "--device", "cpu",
                   "--global-batch", "60", "--virtual-ranks", "2", "--checkpoint-every", "2", "--keep-latest", "99",
                   *more]
        command += ["--early-stop", rule] if rule else []
        return Training(under_mpirun(ranks) + command if ranks > 1 else command, self.folder / name)

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def copy_killed_after(self, name, step):
        """The first training, as if it had been killed after `step`, before anything else was written."""
        shutil.copytree(self.folder / "whole", self.folder / name)
        run = self.training(name)
        for later, file in run.checkpoints().items():
            if later > step:
                file.unlink()
        (run.output / "model.h5").unlink()
        summary = run.output / "summary.json"
        summary.write_text(summary.read_text().replace('"state": "done"', '"state": "running"'))
        return run

    def expect_same_end(self, what, run, whole):
        code = run.run()
        self.expect(f"{what}: code", code == 0, f"{code} {run.words()[-600:]}")
        for field in ("state", "step", "weights_hash", "early_stop", "best_step"):
            found = run.summary().get(field)
            self.expect(f"{what}: {field}", found == whole.summary()[field], found)
        self.expect(f"{what}: model.h5", (run.output / "model.h5").exists())
        self.expect(f"{what}: reports", run.history() == whole.history())


def main(programs):
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(programs, pathlib.Path(name))
        whole = runs.training("whole")
        runs.expect("the undisturbed training", whole.run() == 0, whole.words())
        summary = whole.summary()
        end = step_by_rule(whole.history(), *RULE[1:])
        runs.expect("the rule ends it early", 0 < end < EPOCHS * 5, end)
        runs.expect("it ends as the rule says", (summary["state"], summary["step"]) == ("done", end), summary)
        stop = summary["early_stop"]
        runs.expect("the summary", stop["ended"] and stop["metric"] == RULE[0] and stop["best_step"] < end, stop)
        runs.expect("the log at the start", f"early stopping: the training ends after {RULE[1]} successive test"
                    in whole.words(), whole.words())
        runs.expect("the log", f"early stopping after step {end} of {EPOCHS * 5}" in whole.words(), whole.words())

        before = {file: file.read_bytes() for file in whole.output.rglob("*") if file.is_file()}
        runs.expect("again: code", whole.run() == 0, whole.words())
        runs.expect("again: told", "already complete" in whole.words(), whole.words())
        after = {file: file.read_bytes() for file in whole.output.rglob("*") if file.is_file()}
        runs.expect("again: nothing changes", before == after)

        for step in sorted(whole.checkpoints()):
            runs.expect_same_end(f"killed after {step}", runs.copy_killed_after(f"after-{step}", step), whole)
        runs.expect("a complete one trains no more", "  loss " not in runs.training(f"after-{end}").words())
        for name, more in (("two ranks", ()), ("two ranks, sharded", ("--shard-optimizer",))):
            run = runs.training(name, ranks=2, more=more)
            runs.expect_same_end(name, run, whole)
            runs.expect(f"{name}: log", ("divided among 2 ranks (--shard-optimizer)" in run.words()) == bool(more),
                        run.words())

        for what, rule in (("more patience", "test-accuracy:3:0.03"), ("without it", "")):
            shutil.copytree(whole.output, runs.folder / what)
            longer = runs.training(what, rule)
            runs.expect(f"{what}: code", longer.run() == 0, longer.words())
            runs.expect(f"{what}: goes on", longer.summary()["step"] > end, longer.summary()["step"])
            plain = runs.training(f"from the start {what}", rule)
            plain.run()
            runs.expect(f"{what}: weights", longer.summary()["weights_hash"] == plain.summary()["weights_hash"])

        refused = runs.training("refused", "validation-loss:2:0")
        runs.expect("no validation split: code", refused.run() == 2, refused.words())
        runs.expect("no validation split: named", "--early-stop validation-loss:2:0 " in refused.words(),
                    refused.words())
        print("\n".join(runs.faults) or f"ends after step {end} in {len(whole.checkpoints()) + 2} ways")
        return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
