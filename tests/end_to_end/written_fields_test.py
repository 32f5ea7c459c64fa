#!/usr/bin/env python3
"""What a training writes has the fields that apps/files.md names, no more and no less: written_fields_test.py BIN PAGE"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
ALWAYS = {"kind", "epoch", "step", "seconds"}


def tables(page):
    """Fields by the heading that their table stands under."""
    fields, heading = collections.defaultdict(set), ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("| `"):
            fields[heading].update(re.findall(r"`([\w-]+)`", line.split("|")[1]))
    return fields


def compare(what, written, named):
    if written == named:
        return []
    return [f"{what}: written and not named: {sorted(written - named)}; named and not written: {sorted(named - written)}"]


def train(programs, data, output, *options):
    command = [f"{programs}/train_cifar", "--data", data, "--output", output, "--model", "lenet", "--global-batch", "32",
               "--device", "cpu", "--threads", "1", "--report-every", "2", *options]
    environment = {name: text for name, text in os.environ.items() if name != "LOCKSTEP_VERDICT"}
    return subprocess.run(MPIRUN + command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)


def evaluated(programs, data, run, fields):
    """What `evaluate --json` writes of the training's best model."""
    file = run.parent / "test.json"
    command = [*MPIRUN, f"{programs}/evaluate", "--model-file", run, "--data", data, "--device", "cpu", "--threads", "1",
               "--json", file]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    again = subprocess.run([*command[len(MPIRUN):-1], run / "metrics.jsonl"], capture_output=True, text=True, check=False)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # over its own result
    result = json.loads(file.read_text())
    faults = compare("evaluate --json", set(result), fields)
    best = run / "model-best.h5"
    facts = {"model_file": str(best), "model": "lenet", "data_hash": None, "split": "test", "samples": 32, "test_flip": False,
             "test_augment": "none", "plain_accuracy": None,
             "image_size": [32, 32], "shorter_side": None}
    facts["data_hash"] = json.loads((data / "test" / "manifest.json").read_text())["root_hash"]
    rows = result["confusion"]
    facts |= {"correct": sum(row[label] for label, row in enumerate(rows)), "accuracy": result["correct"] / 32}
    faults += [f"evaluate --json: {key} is {result[key]}, not {fact}" for key, fact in facts.items() if result[key] != fact]
    if sum(map(sum, rows)) != 32 or len(result["classes"]) != len(rows) or result["top5"] != result["in_top5"] / 32:
        faults.append(f"evaluate --json: the counts are {result}")
    if f"model: model-best.h5 of '{run}'" not in said:
        faults.append(f"evaluate does not say which model it tests: {said[:300]}")
    refusal = "--json"
    if again.returncode != 2 or refusal not in again.stderr or "top-1" in again.stdout:
        faults.append(f"evaluate --json replaces another file, or tests first: {again.returncode} {again.stderr[-300:]}")
    return faults


def main(programs, page):
    fields = tables(pathlib.Path(page))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data, output = folder / "data", folder / "run"
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "160", "--validation", "40", "--output", data],
                       check=True, stdout=subprocess.DEVNULL)
        done = train(programs, data, output, "--epochs", "2", "--momentum", "0.9", "--ema", "0.9", "--clip-norm", "5",
                     "--image-size", "32", "--image-size-ramp", "32:0:1", "--note", "the first, of \"two\"", "--tag", "set=a",
                     "--tag", "try=1", "--early-stop", "test-accuracy:9:0", "--test-augment", "flip-shift")
        if done.returncode != 0:
            sys.exit(f"the training failed: {done.stderr}")
        summary = json.loads((output / "summary.json").read_text())
        faults = compare("summary.json", set(summary), fields["summary.json"])
        kinds, samples = collections.defaultdict(set), {}
        for line in (output / "metrics.jsonl").read_text().splitlines():
            entry = json.loads(line)
            kinds[entry["kind"]].update(entry)
            samples[entry["kind"]] = entry.get("samples")
        for kind in ("training", "test", "slowest rank"):
            faults += compare(f"metrics.jsonl, {kind}", kinds[kind], fields[kind] | ALWAYS)
        faults += compare("metrics.jsonl, validation", kinds["validation"], fields["test"] | ALWAYS)
        if not {"skipped"} <= set(fields) or set(kinds) - {"training", "test", "validation", "slowest rank"}:
            faults.append(f"metrics.jsonl has kinds {sorted(kinds)}")
        if (samples["test"], samples["validation"], samples["training"]) != (32, 40, 2 * 96):
            faults.append(f"samples of the last lines are {samples}")
        facts = {"state": "done", "step": summary["steps"], "commit": summary["commit"], "epochs": 2, "ranks": 2}
        facts |= {"test_augment": "flip-shift", "interruptions": [], "best_step": summary["best_step"]}
        faults += [f"summary.json: {key} is {summary[key]}" for key, value in facts.items() if summary[key] != value]
        if summary["recipe"]["momentum"] != 0.9 or '"momentum": 0.9,' not in (output / "summary.json").read_text():
            faults.append("the recipe's numbers are not those that were given")
        if sorted(rank for ranks in summary["hosts"].values() for rank in ranks) != [0, 1]:
            faults.append(f"hosts are {summary['hosts']}")
        if summary["command_line"][0].split("/")[-1] != "train_cifar" or "--momentum" not in summary["command_line"]:
            faults.append(f"the command line is {summary['command_line']}")
        if (summary["run"]["note"], summary["run"]["tag"]) != ('the first, of "two"', ["set=a", "try=1"]):
            faults.append(f"note and tags are {summary['run']}")
        inspected = subprocess.run([f"{programs}/inspect", output], capture_output=True, text=True, check=True)
        if '\n  note       the first, of "two"\n  tag        set=a\n  tag        try=1\n' not in inspected.stdout:
            faults.append(f"inspect does not show note and tags: {inspected.stdout}")
        checkpoint = max((output / "checkpoints").glob("step-*.h5"))
        inspected = subprocess.run([f"{programs}/inspect", checkpoint], capture_output=True, text=True, check=True)
        if '\n  note       the first, of "two"\n  tag        set=a\n  tag        try=1\n' not in inspected.stdout:
            faults.append(f"inspect does not show note and tags of a checkpoint: {inspected.stdout[:900]}")
        inspected = subprocess.run([f"{programs}/inspect", output / "model.h5"], capture_output=True, text=True, check=True)
        if f"weights    {summary['weights_hash']}" not in inspected.stdout:
            faults.append(f"inspect does not find the weights {summary['weights_hash']}: {inspected.stdout[:600]}")

        faults += evaluated(programs, data, output, fields["The result of evaluate"])

        refused = train(programs, data, output, "--epochs", "2", "--momentum", "0.8")
        failure = json.loads((output / "failure.json").read_text())
        always = fields["failure.json"] - {"bad_hosts", "error_line"}  # of check_cluster and run_roles
        faults += compare("failure.json", set(failure), always)
        if refused.returncode != 2 or json.loads((output / "summary.json").read_text()) != summary:
            faults.append(f"a refused start ended with {refused.returncode}, or changed summary.json")
    print("\n".join(faults) or f"{sum(len(names) for names in fields.values())} fields are as {page} says")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
