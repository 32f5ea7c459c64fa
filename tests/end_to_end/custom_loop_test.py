#!/usr/bin/env python3
"""A program with a training loop of its own, count_up: its result after interruptions, and in searches.

custom_loop_test.py COUNT_UP SEARCH [--long]    --long: other searches, also on eight ranks, and refusals
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

STEPS = 100
RANKS = 8
SPACE = """program: {program}
searcher: {{name: {searcher}, metric: x, smaller_is_better: {smaller}, max_length: {{batches: 100}}{more}}}
hyperparameters:
  increment_by: {{type: int, minval: {least}, maxval: {most}}}
ranks_per_trial: {ranks}
seed: {seed}
"""
# A program without the libraries: apps/search.md has the contract.
SCRIPT = """#!/usr/bin/env python3
import argparse, json, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--print-recipe", action="store_true")
parser.add_argument("--increment-by", type=int, choices=range(1, 9))
parser.add_argument("--max-steps", type=int)
parser.add_argument("--output", type=pathlib.Path)
options = parser.parse_args()
if options.print_recipe:
    print(json.dumps({"metrics": ["x"]}))
    raise SystemExit
options.output.mkdir(exist_ok=True)
file = options.output / "state.json"
state = json.loads(file.read_text()) if file.exists() else {"step": 0, "x": 0}
print(f"step {state['step']} of {options.max_steps}")
while state["step"] < options.max_steps:
    state = {"step": state["step"] + 1, "x": state["x"] + options.increment_by}
file.write_text(json.dumps(state))
with open(options.output / "metrics.jsonl", "a") as lines:
    lines.write(json.dumps({"kind": "validation", "epoch": 1, **state}) + chr(10))
"""


class Runs:
    def __init__(self, program, search, folder):
        self.program, self.search, self.folder, self.faults = program, search, folder, []

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def start(self, name, increment, ranks=RANKS, step_seconds=0.0):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        return subprocess.Popen([*launcher, self.program, "--increment-by", str(increment), "--step-seconds",
                                 str(step_seconds), "--output", name, "--max-steps", str(STEPS)], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, process):
        words = process.communicate(timeout=200)[0]
        return process.returncode, words

    def lines(self, name):
        file = self.folder / name / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for_step(self, name, step):
        deadline = time.monotonic() + 100
        while not any(line["step"] >= step for line in self.lines(name)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"'{name}' has not reported step {step}")
            time.sleep(0.01)

    def ranks(self, name):
        """The processes of the program's ranks with this output folder."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0] == self.program and name in words and os.readlink(entry / "cwd") == str(self.folder):
                found.append(int(entry.name))
        return found

    def expect_result(self, what, name, increment, ranks):
        """Each line of metrics has the x of its step, once; the last one is the validation's."""
        lines = self.lines(name)
        expected = [(kind, step, step * ranks * increment) for kind, step in
                    [("training", step) for step in range(10, STEPS + 1, 10)] + [("validation", STEPS)]]
        self.expect(what, [(line["kind"], line["step"], line["x"]) for line in lines] == expected, lines)
        checkpoints = sorted(file.name for file in (self.folder / name / "checkpoints").glob("step-*.h5"))
        self.expect(f"{what}: checkpoints", checkpoints == ["step-000000000090.h5", "step-000000000100.h5"], checkpoints)

    def interruptions(self):
        """Asked to stop, killed, and then to the end."""
        process = self.start("interrupted", 3, step_seconds=0.01)
        self.wait_for_step("interrupted", 20)
        process.send_signal(signal.SIGUSR1)
        code, words = self.finish(process)
        self.expect("SIGUSR1", code == 75 and "The same command resumes from it." in words, (code, words))
        asked = max(line["step"] for line in self.lines("interrupted"))
        process = self.start("interrupted", 3, step_seconds=0.01)
        self.wait_for_step("interrupted", asked + 20)
        ranks = self.ranks("interrupted")
        self.expect("its ranks", len(ranks) == RANKS, ranks)
        os.kill(ranks[-1], signal.SIGKILL)
        code, words = self.finish(process)
        self.expect("SIGKILL", code not in (0, 75), (code, words))
        code, words = self.finish(self.start("interrupted", 3))
        self.expect("the last attempt", code == 0 and "resuming from" in words, (code, words))
        self.expect_result("interrupted", "interrupted", 3, RANKS)
        summary = json.loads((self.folder / "interrupted" / "summary.json").read_text())
        states = [one["state"] for one in summary["interruptions"]]
        self.expect("interruptions", summary["state"] == "done" and len(states) == 2 and states[0] == "stopped", states)

    def alone(self):
        code, words = self.finish(self.start("alone", 7, ranks=1))
        self.expect("one rank", code == 0, (code, words))
        self.expect_result("one rank", "alone", 7, 1)

    def find(self, name, *options, **fields):
        usual = {"program": self.program, "more": "", "smaller": "true", "least": 1, "most": 8, "ranks": 1, "seed": 0}
        (self.folder / f"{name}.yaml").write_text(SPACE.format(**{**usual, **fields}))
        done = subprocess.run([self.search, f"{name}.yaml", "--output", name, *options], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=500)
        return done.returncode, done.stdout + done.stderr

    def settings(self, name, trial):
        log = (self.folder / name / f"trial-{trial}.log").read_text()
        return int(re.search(r"--increment-by=(\d+)", log).group(1))

    def adaptive(self, name, seed, **fields):
        """The smallest value that was drawn wins, and a promoted trial has the x of one straight through."""
        code, words = self.find(name, searcher="adaptive_asha", more=", max_trials: 10", seed=seed, **fields)
        self.expect(name, code == 0, words)
        drawn = {trial: self.settings(name, trial) for trial in range(1, 11)}
        best = int(re.search(r"best: trial (\d+), x (\d+) after 100 steps", words).group(1))
        self.expect(f"{name}: best", drawn[best] == min(drawn.values()), (drawn, words))
        journal = [json.loads(line) for line in (self.folder / name / "search.jsonl").read_text().splitlines()]
        results = [(line["trial"], line["steps"], line["metric"]) for line in journal if "metric" in line]
        self.expect(f"{name}: rungs", {steps for _, steps, _ in results} == {25, 100}, results)
        self.expect(f"{name}: results", all(x == steps * drawn[trial] for trial, steps, x in results), results)
        promoted = [line["trial"] for line in journal if line.get("steps") == 100 and line["rung"] == 2]
        logs = [(self.folder / name / f"trial-{trial}.log").read_text() for trial in promoted]
        self.expect(f"{name}: promoted", logs and all("step 25 of 100" in log for log in logs), logs)
        self.expect(f"{name}: nothing set aside", not list((self.folder / name).glob("trial-*/set-aside*")))

    def grid(self, name, ranks, least, most, *options):
        code, words = self.find(name, *options, searcher="grid", least=least, most=most, ranks=ranks)
        trials = most - least + 1
        self.expect(name, code == 0 and f"{trials} trials, {trials * STEPS}.0 batches in total" in words, (code, words))
        self.expect(f"{name}: best", f"best: trial 1, x {STEPS * ranks * least} after 100 steps" in words, words)

    def refusals(self):
        code, words = self.find("wrong", searcher="grid", smaller="true", most=2000)
        self.expect("a value that the program refuses", code == 2 and "--increment-by" in words, words)
        self.expect("nothing was started", not (self.folder / "wrong").exists())


def main():
    program, search = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(program, search, pathlib.Path(folder).resolve())
        if "--long" in sys.argv:
            runs.alone()
            runs.refusals()
            runs.grid("grid", 1, 2, 3)
            runs.grid("grid on 8 ranks", RANKS, 1, 8, "--oversubscribe")
            for seed in range(1, 4):
                runs.adaptive(f"adaptive-{seed}", seed)
            script = runs.folder / "count_up.py"
            script.write_text(SCRIPT)
            script.chmod(0o755)
            runs.adaptive("script", 0, program=script)
        else:
            runs.interruptions()
            runs.adaptive("adaptive", 0)
    for fault in runs.faults:
        print(fault)
    return 1 if runs.faults else 0


if __name__ == "__main__":
    sys.exit(main())
