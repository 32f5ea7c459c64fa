#!/usr/bin/env python3
"""search, as a user calls it: results, interruptions at any moment, failures of trials, and refusals.

search_test.py PROGRAMS
"""
import hashlib
import html
import json
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from tensorboard_events import at, fields_of, summaries_of  # noqa: E402: found only now
from training import make_data  # noqa: E402: found only now

ARGUMENTS = "--data data --model lenet --global-batch 30 --device cpu --threads 1 --checkpoint-every 3"
ASHA = """program: train_cifar
arguments: {arguments}
searcher:
  name: asha
  metric: test-loss
  max_length: {{batches: 24}}   # ten batches an epoch: the last rungs end within an epoch
  max_trials: 5
  max_concurrent_trials: {concurrent}
  divisor: 2
  max_rungs: 3
hyperparameters:
  lr: {{type: log, minval: -2.5, maxval: -0.5, base: 10}}
  optimizer: {{momentum: {{type: categorical, vals: [0.5, 0.9]}}}}
seed: 3
"""
RANDOM = """program: train_cifar
arguments: {arguments}
searcher: {{name: random, metric: test_accuracy, max_length: {{epochs: 1}}, max_trials: 3}}
hyperparameters:
  lr: {{type: double, minval: 0.01, maxval: 0.2}}
  momentum: {{type: const, val: 0.5}}
  nesterov: true
"""
EXPERIMENT = """name: experiment
entrypoint: model_def:Trial
resources: {{slots_per_trial: 1}}
hyperparameters:
  learning_rate: 0.05
  global_batch_size: 30
searcher: {{name: single, metric: test_accuracy, {smaller}max_length: {{batches: 5}}}}
environment: {{image: some/image}}
"""
GRID = """program: {program}
arguments: {arguments}
searcher: {{name: grid, metric: test-accuracy, max_length: {{epochs: 1}}}}
hyperparameters: {hyperparameters}
max_restarts: 1
"""
# Is killed the first time that it trains.
KILLED_ONCE = """#!/bin/sh
case "$*" in *--print-recipe*) exec {train_cifar} "$@" ;; esac
[ -e killed ] || {{ touch killed; kill -KILL $$; }}
exec {train_cifar} "$@"
"""
# A disk is full the first time that it trains.
FULL_ONCE = """#!/bin/sh
case "$*" in *--print-recipe*) exec {train_cifar} "$@" ;; esac
[ -e full ] || {{ touch full; exec cp data/train/manifest.json /dev/full; }}
exec {train_cifar} "$@"
"""


def hash_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Searches:
    def __init__(self, programs, folder):
        self.programs, self.folder, self.faults = programs, folder, []
        make_data(programs, "train_cifar", 300, folder / "data")

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def write(self, name, text, **fields):
        (self.folder / f"{name}.yaml").write_text(text.format(**{"arguments": ARGUMENTS, **fields}))

    def start(self, name, *more, output=None):
        return subprocess.Popen([f"{self.programs}/search", f"{name}.yaml", "--output", output or name, *more],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name, *more, output=None):
        process = self.start(name, *more, output=output)
        words = process.communicate(timeout=400)[0]
        return process.returncode, words

    def journal(self, name):
        file = self.folder / name / "search.jsonl"
        text = file.read_text() if file.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def decisions(self, name):
        return [line for line in self.journal(name) if "restart" not in line]

    def result(self, name, trial):
        lines = [line for line in self.journal(name)[1:] if line["trial"] == trial and "metric" in line]
        return lines[-1]

    def command(self, words):
        line = next(line for line in words.splitlines() if "its command: " in line)
        return shlex.split(line.split("its command: ")[1])

    def expect_best(self, what, name, words, smaller):
        """best.h5 is the best trial's model, and that of a training by the printed command, straight through."""
        last = {line["trial"]: line for line in self.journal(name)[1:] if "metric" in line}
        order = sorted(last, key=lambda one: (last[one]["metric"] * (1 if smaller else -1), -last[one]["steps"], one))
        best = self.folder / name / "best.h5"
        self.expect(f"{what}: best trial", f"best: trial {order[0]}," in words, words)
        self.expect(f"{what}: best.h5", hash_of(best) == hash_of(self.folder / name / f"trial-{order[0]}" / "model.h5"))
        command = [word.replace("OUTPUT", f"{name}-again") for word in self.command(words)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.expect(f"{what}: its command", done.returncode == 0, done.stdout + done.stderr)
        self.expect(f"{what}: trained straight through",
                    hash_of(self.folder / f"{name}-again" / "model.h5") == hash_of(best), command)

    def random(self):
        self.write("random", RANDOM)
        code, words = self.run("random")
        self.expect("random: code", code == 0, words)
        self.expect("random: results", len(self.journal("random")) == 4, self.journal("random"))
        for line in self.journal("random")[1:]:
            self.expect("random: full length", line["steps"] == 10 and line["orders"] == [], line)
        first = (self.folder / "random" / "trial-1.log").read_text().splitlines()[0]
        self.expect("random: options", "--momentum=0.5 --nesterov --epochs=1 --max-steps=10 " in first, first)
        self.expect_best("random", "random", words, smaller=False)
        code, words = self.run("random")
        self.expect("random again: code", code == 0, words)
        self.expect("random again: nothing is trained", len(self.journal("random")) == 4)
        (self.folder / "other.yaml").write_text((self.folder / "random.yaml").read_text() + "seed: 9\n")
        code, words = self.run("other", output="random")
        self.expect("another space: refused", code == 2 and "'seed' differs" in words, words)

    def asha(self):
        self.write("asha", ASHA, concurrent=1)
        code, words = self.run("asha")
        self.expect("asha: code", code == 0, words)
        rungs = [order["length"] for line in self.journal("asha") for order in line["orders"]]
        self.expect("asha: rungs", set(rungs) == {6, 12, 24} and rungs.count(6) == 5, rungs)
        for line in self.journal("asha")[1:]:
            reports = [json.loads(text) for text in
                       (self.folder / "asha" / f"trial-{line['trial']}" / "metrics.jsonl").read_text().splitlines()]
            told = [one["loss"] for one in reports if one["kind"] == "test" and one["step"] == line["steps"]]
            self.expect("asha: the metric is that of the training", told == [line["metric"]], (told, line))
        self.expect("asha: columns", all(len(line) <= 80 for line in words.splitlines() if not line.startswith("[")))
        self.expect_best("asha", "asha", words, smaller=True)

    def page(self):
        """Written at the end, and again on request; its command trains the best model."""
        page = self.folder / "asha" / "search.html"
        written = page.read_text()
        page.unlink()
        done = subprocess.run([f"{self.programs}/search", "--report", "asha"], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        self.expect("page: code", done.returncode == 0 and done.stdout == "asha/search.html\n", done.stdout + done.stderr)
        self.expect("page: the same", page.read_text() == written)
        last = {line["trial"]: line["steps"] for line in self.journal("asha")[1:]}
        cost = f"trained for {sum(last.values())} batches in total"
        self.expect("page: cost", cost in written, (cost, last))
        self.expect("page: curves", written.count("<polyline") >= 5)
        command = html.unescape(written.split("<pre>")[1].split("</pre>")[0]).replace("OUTPUT", "page-again")
        done = subprocess.run(shlex.split(command), cwd=self.folder, capture_output=True, text=True, check=False)
        self.expect("page: its command", done.returncode == 0 and hash_of(self.folder / "page-again/model.h5") ==
                    hash_of(self.folder / "asha/best.h5"), (command, done.stdout + done.stderr))
        for words in (["--report", "nowhere"], []):
            done = subprocess.run([f"{self.programs}/search", *words], cwd=self.folder, capture_output=True, text=True,
                                  check=False)
            self.expect(f"page: refused: {words}", done.returncode == 2 and len(done.stderr.splitlines()) == 1, done)
    def ended(self):
        """What remains of a search that has ended, and what may be wrong when it is called again."""
        folder = self.folder / "asha"
        best = hash_of(folder / "best.h5")
        self.expect("no copies of earlier rungs", not list(folder.glob("trial-*/**/set-aside-*")))
        kept = [len(list((folder / f"trial-{trial}" / "checkpoints").glob("step-*.h5"))) for trial in range(1, 6)]
        self.expect("the latest and the best checkpoint remain", max(kept) <= 2 and min(kept) >= 1, kept)
        shown = subprocess.run([self.programs / "inspect", folder], capture_output=True, text=True, check=False)
        self.expect("inspect", shown.returncode == 0 and "asha, 5 trials" in shown.stdout and "best.h5" in shown.stdout
                    and "complete" in shown.stdout, shown.stdout + shown.stderr)
        page = self.folder / "asha.html"
        shown = subprocess.run([self.programs / "report", folder, "--output", page], capture_output=True, text=True,
                               check=False)
        self.expect("report", shown.returncode == 0 and "5 trainings" in shown.stdout, shown.stdout + shown.stderr)
        self.write("changed", ASHA + "description: again\nmax_restarts: 1\n", concurrent=3)
        number = next(line for line in self.run("changed", output="asha")[1].splitlines() if "best: trial" in line)
        trial = folder / f"trial-{number.split('best: trial ')[1].split(',')[0]}"
        model = trial / "model.h5"
        damaged = bytearray(model.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        model.write_bytes(damaged)
        code, words = self.run("asha")
        self.expect("a damaged model: code", code == 65 and str(model.relative_to(self.folder)) in words, words)
        self.expect("a damaged model: best.h5", hash_of(folder / "best.h5") == best)
        shutil.rmtree(trial)
        code, words = self.run("asha")
        self.expect("a missing trial is trained again", code == 0 and "trained again" in words, words)
        self.expect("a missing trial: best.h5", hash_of(folder / "best.h5") == best == hash_of(model), words)
        self.expect("results are shown", re.search(r"  state +lr  momentum\n", words) and "  complete " in words, words)
        journal = folder / "search.jsonl"
        whole = journal.read_text()
        journal.write_text(whole.splitlines(keepends=True)[0])
        code, words = self.run("asha")
        self.expect("a journal older than a trial", code == 65 and "lines are missing" in words and "from step" in words
                    and "counts as the worst" not in words, words)
        journal.write_text(whole)
        self.expect("columns", all(len(line) <= 80 for line in words.splitlines() if not line.startswith("[")), words)

    def strangers(self):
        """Files of others in the folder."""
        (self.folder / "elsewhere").mkdir()
        (self.folder / "linked").mkdir()
        (self.folder / "linked" / "trial-2").symlink_to(self.folder / "elsewhere")
        self.write("linked", RANDOM)
        code, words = self.run("linked")
        self.expect("trials without a journal", code == 2 and "trial-2" in words and "search.jsonl" in words, words)
        self.expect("nothing was written", [file.name for file in (self.folder / "linked").iterdir()] == ["trial-2"])
        (self.folder / "linked" / "trial-2").unlink()
        process = self.start("linked")
        self.wait_for_journal(process, "linked", 1)
        process.kill()
        process.communicate()
        trial = self.folder / "linked" / "trial-3"
        shutil.rmtree(trial, ignore_errors=True)
        trial.symlink_to(self.folder / "elsewhere")
        code, words = self.run("linked")
        self.expect("a link in place of a trial", code == 2 and "linked/trial-3" in words, words)
        self.expect("a link is not followed", not list((self.folder / "elsewhere").iterdir()))
        trial.unlink()
        code, words = self.run("linked")
        self.expect("without the link", code == 0, words)

    def full_disk(self):
        program = self.folder / "full_once"
        program.write_text(FULL_ONCE.format(train_cifar=shlex.quote(str(self.programs / "train_cifar"))))
        program.chmod(0o755)
        self.write("full_disk", GRID.replace("max_restarts: 1", "max_restarts: 0"), program="./full_once",
                   hyperparameters="{lr: {type: categorical, vals: [0.05, 0.1]}}")
        code, words = self.run("full_disk")
        self.expect("a full disk: code", code == 1, (code, words))
        self.expect("a full disk: cause", "No space left on device" in words and "Nothing is decided" in words, words)
        self.expect("a full disk: no result of its trial", not [line for line in self.journal("full_disk")
                                                                if "code" in line], self.journal("full_disk"))
        code, words = self.run("full_disk")
        self.expect("with space again: code", code == 0, words)
        self.expect("with space again: results", len(self.journal("full_disk")) == 3, self.journal("full_disk"))

    def wait_for_journal(self, process, name, lines, more=0.0):
        deadline = time.monotonic() + 100
        while len(self.journal(name)) < lines and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(more)

    def interrupted(self):
        """The same search, killed and stopped in the middle of trials."""
        self.write("kills", ASHA, concurrent=1)
        for lines, more, number in ((1, 0.0, signal.SIGKILL), (2, 0.3, signal.SIGHUP), (4, 0.2, signal.SIGTERM),
                                    (6, 0.1, signal.SIGKILL)):
            process = self.start("kills", "--tensorboard", "events")
            self.wait_for_journal(process, "kills", lines, more)
            process.send_signal(number)
            words = process.communicate(timeout=200)[0]
            expected = -number if number == signal.SIGKILL else 75
            self.expect(f"interrupted after {lines} lines: code", process.returncode == expected, words)
            if number == signal.SIGKILL:
                with open(self.folder / "kills" / "search.jsonl", "a") as journal:
                    journal.write('{"trial": 3, "me')
                events = self.folder / "events/trial-1/events.out.tfevents.search"
                events.write_bytes(events.read_bytes()[:-5])
        second = self.start("kills", "--tensorboard", "events")
        self.wait_for_journal(second, "kills", 7)
        code, words = self.run("kills")
        self.expect("a second search is refused", code == 2 and "--output" in words, words)
        words = second.communicate(timeout=400)[0]
        self.expect("after interruptions: code", second.returncode == 0, words)
        self.expect("after interruptions: warning", "is damaged" in words, words)
        self.expect("after interruptions: decisions", self.decisions("kills") == self.decisions("asha"),
                    (self.decisions("kills"), self.decisions("asha")))
        self.expect("after interruptions: best.h5", hash_of(self.folder / "kills" / "best.h5") ==
                    hash_of(self.folder / "asha" / "best.h5"))

    def events(self):
        """For TensorBoard, each record once after the interruptions, and the numbers of the journal."""
        _, _, experiment = summaries_of(self.folder / "events/events.out.tfevents.search")[0]
        experiment = fields_of(at(experiment, 2))
        names = [at(info, 1).decode() for info in experiment[4]]
        self.expect("events: hyperparameters", names == ["lr", "momentum"], experiment)
        self.expect("events: range of lr", abs(at(experiment[4][0], 6, 1) - 10 ** -2.5) < 1e-12, experiment)
        self.expect("events: metric", at(experiment[5][0], 1, 2) == b"test-loss", experiment)
        for trial in range(1, 6):
            (start, _, settings), *results, (end, _, status) = summaries_of(
                self.folder / f"events/trial-{trial}/events.out.tfevents.search")
            self.expect("events: sessions", (start, end) == ("_hparams_/session_start_info", "_hparams_/session_end_info"))
            self.expect("events: status", at(status, 4, 1) == 1, status)
            settings = dict((at(entry, 1).decode(), fields_of(at(entry, 2))) for entry in fields_of(at(settings, 3))[1])
            told = [order["settings"] for line in self.journal("kills") for order in line["orders"]
                    if order["trial"] == trial and "settings" in order][0]
            found = [f"--lr={settings['lr'][2][0]!r}", f"--momentum={settings['momentum'][3][0].decode()}"]
            self.expect("events: settings", found == told, (found, told))
            wanted = [("test-loss", line["steps"], line["metric"]) for line in self.journal("kills")[1:]
                      if line.get("trial") == trial and "metric" in line]
            self.expect("events: results", len(wanted) == len(results) > 0 and all(
                one[:2] == other[:2] and abs(one[2] - other[2]) < 1e-6 for one, other in zip(wanted, results)),
                (wanted, results))
            self.expect("events: of the training", any((self.folder / f"events/trial-{trial}/training").iterdir()))
        process = self.start("random", "--tensorboard", "events", output="random-events")
        words = process.communicate(timeout=200)[0]
        self.expect("events of another search", process.returncode == 2 and "--tensorboard" in words, words)

    def failures(self):
        self.write("fails", GRID, program="train_cifar", hyperparameters="{lr: {type: categorical, vals: [0.05, 1e9]}}")
        code, words = self.run("fails")
        self.expect("a trial diverges: code", code == 0, words)
        self.expect("a trial diverges: named", "trial 2 has failed with code 79" in words, words)
        self.expect("a trial diverges: recorded", [line.get("code") for line in self.journal("fails")[1:]] == [None, 79]
                    or [line.get("code") for line in self.journal("fails")[1:]] == [79, None], self.journal("fails"))
        program = self.folder / "killed_once"
        program.write_text(KILLED_ONCE.format(train_cifar=shlex.quote(str(self.programs / "train_cifar"))))
        program.chmod(0o755)
        self.write("restarts", GRID, program="./killed_once", hyperparameters="{lr: {type: const, val: 0.05}}")
        code, words = self.run("restarts")
        self.expect("a killed trial: code", code == 0, words)
        self.expect("a killed trial: restarted", "is restarted (1 of 1)" in words, words)
        self.expect("a killed trial: result", hash_of(self.folder / "restarts/best.h5") ==
                    hash_of(self.folder / "fails/trial-1/model.h5"))

    def ranks(self):
        self.write("ranks", GRID + "ranks_per_trial: 2\n", program="train_cifar", hyperparameters="{lr: 0.05}")
        code, words = self.run("ranks", "--launcher", "mpirun")
        self.expect("two ranks: code", code == 0, words)
        summary = json.loads((self.folder / "ranks/trial-1/summary.json").read_text())
        self.expect("two ranks: summary", summary["ranks"] == 2, summary["ranks"])
        self.expect("two ranks: command", self.command(words)[0] == "mpirun", words)
        process = self.start("ranks", output="stopped")
        while not (self.folder / "stopped/trial-1/lock").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        words = process.communicate(timeout=200)[0]
        self.expect("two ranks, stopped: code", process.returncode in (0, 75), words)
        code, words = self.run("ranks", output="stopped")
        self.expect("two ranks, continued", code == 0 and hash_of(self.folder / "stopped/best.h5") ==
                    hash_of(self.folder / "ranks/best.h5"), words)

    def refusals(self):
        grid = dict(program="train_cifar", hyperparameters="{lr: 0.1}")
        cases = [
            ("an unknown option", GRID, dict(grid, hyperparameters="{lrr: 0.1}"), ("line 4", "--lrr", "--lr?")),
            ("a value out of range", GRID, dict(grid, hyperparameters="{momentum: {type: double, minval: 0.1, maxval: 7, "
                                                "count: 2}}"), ("line 4", "--momentum", "7")),
            ("no such program", GRID, dict(grid, program="train_nothing"), ("line 1", "train_nothing")),
            ("a program in the folder", GRID, dict(grid, program="bad.yaml"), ("line 1", "'./bad.yaml'")),
            ("no such data", GRID, dict(grid, arguments="--data nowhere"), ("nowhere",)),
            ("no such data to validate with", GRID.replace("test-accuracy", "validation-loss"),
             dict(grid, arguments="--data nowhere"), ("nowhere", "does not exist")),
            ("values in place of exponents", GRID, dict(grid, hyperparameters="{lr: {type: log, minval: 0.001, "
                                                        "maxval: 0.1, count: 3}}"), ("line 4", "minval: -3")),
            ("no such network", GRID, dict(grid, arguments="--data data --model net.onnx"), ("line 2", "net.onnx")),
            ("no data", GRID, dict(grid, arguments="--model lenet"), ("line 2", "--data")),
            ("no validation split", GRID.replace("test-accuracy", "validation-loss"), grid, ("line 3", "validation")),
            ("more ranks than cores", GRID + "ranks_per_trial: 60000\n", grid, ("line 6", "60000")),
        ]
        for what, text, fields, subjects in cases:
            self.write("bad", text, **fields)
            for more in ((), ("--dry-run",)):
                code, words = self.run("bad", *more)
                self.expect(f"{what}: code", code == 2, (code, words))
                self.expect(f"{what}: named", all(subject in words for subject in subjects), words)
                self.expect(f"{what}: one sentence", len(words.splitlines()) == 1, words)
        self.expect("refusals start nothing", not (self.folder / "bad").exists())

    def experiment(self):
        """A file of Determined: refused with all reasons, shown, run and continued."""
        command = ("--program", "train_cifar", "--arguments", ARGUMENTS.replace("--global-batch 30", ""))
        self.write("experiment", EXPERIMENT, smaller="")
        code, words = self.run("experiment")
        lines = words.splitlines()
        self.expect("experiment: refused", code == 2 and len(lines) == 2, (code, words))
        self.expect("experiment: reasons", "--program" in words and "smaller_is_better: false" in words, words)
        self.write("experiment", EXPERIMENT, smaller="smaller_is_better: false, ")
        code, words = self.run("experiment", *command, "--array", "--dry-run")
        lines = words.splitlines()
        table = [line.split() for line in lines if line.startswith(("in Det", "hyper"))]
        self.expect("experiment: table", code == 0 and table == [
            ["in", "Determined", "here"], ["hyperparameters.learning_rate", "--lr"],
            ["hyperparameters.learning_rate", "--lr-batch", "0"], ["hyperparameters.global_batch_size", "--global-batch"]],
            (code, words))
        self.expect("experiment: columns", all(len(line) <= 80 for line in lines[:-1] if line[:1] != "["), words)
        self.expect("experiment: array", all(word in shlex.split(lines[-1]) for word in (
            "--program=train_cifar", f"--arguments={command[3]}")), words)
        code, words = self.run("experiment", *command)
        self.expect("experiment: code", code == 0 and "'environment' has no effect" in words, words)
        steps = [line["steps"] for line in self.journal("experiment")[1:]]
        self.expect("experiment: results", steps == [5], self.journal("experiment"))
        self.expect("experiment: its command", all(word in self.command(words) for word in (
            "--global-batch=30", "--lr-batch", "--max-steps=5")), words)
        code, words = self.run("experiment", *command)
        self.expect("experiment: continued", code == 0 and len(self.journal("experiment")) == 2, words)
        code, words = self.run("experiment", *command[:3], command[3] + " --seed 1")
        self.expect("experiment: other arguments", code == 2 and "'arguments' differs" in words, (code, words))

    def dry_run(self):
        self.write("dry", ASHA.replace("batches: 24", "epochs: 100").replace("asha", "adaptive_asha"), concurrent=4)
        code, words = self.run("dry", "--dry-run", "--describe")
        self.expect("dry run: code", code == 0, words)
        self.expect("dry run: columns", max(map(len, words.splitlines())) <= 80, words)
        for text in ("     1     1            25       3\n", "     1     3           100       1\n", "cost: about ",
                     "\n    5  0.", "3 trials: judged after 25, 50, 100 epochs."):
            self.expect(f"dry run: '{text}'", text in words, words)
        self.expect("dry run: nothing started", not (self.folder / "dry").exists())


def main(programs):
    with tempfile.TemporaryDirectory() as name:
        searches = Searches(programs.resolve(), pathlib.Path(name))
        for part in (searches.dry_run, searches.refusals, searches.experiment, searches.random, searches.asha, searches.page,
                     searches.interrupted, searches.events, searches.ended, searches.strangers, searches.full_disk,
                     searches.failures, searches.ranks):
            try:
                part()
            except (FileNotFoundError, IndexError, StopIteration) as error:
                searches.faults.append(f"{part.__name__}: {error!r}")
        print("\n".join(searches.faults) or "searches end as they should")
        return 1 if searches.faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
