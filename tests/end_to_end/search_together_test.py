#!/usr/bin/env python3
"""A search that several processes share, as tasks of a job array do. If one is killed, others continue its trials.

search_together_test.py PROGRAMS [PART]...
"""
import json
import os
import pathlib
import random
import shlex
import signal
import sys
import tempfile
import time

from search_test import Searches, hash_of

# Synchronous, so decisions do not depend on the order in which trials end.
HALVING = """program: train_cifar
arguments: {arguments}
searcher:
  name: successive_halving
  metric: test-loss
  max_length: {{batches: 24}}
  max_trials: 5
  divisor: 2
  max_rungs: 3
hyperparameters:
  lr: {{type: log, minval: -2.5, maxval: -0.5, base: 10}}
seed: 3
"""


class SharedSearches(Searches):
    def decided(self, name):
        """Results and decisions, without the order in which trials have ended."""
        lines = [{key: value for key, value in line.items() if key != "line"} for line in self.decisions(name)]
        return lines[:1], sorted(lines[1:], key=lambda line: (line["rung"], line["trial"]))

    def results(self, name):
        """Without the decisions: those of a rung follow its last result, whichever that is."""
        return [{key: value for key, value in line.items() if key != "orders"} for line in self.decided(name)[1]]

    def orders(self, name):
        return sorted((order["rung"], order["trial"]) for line in self.journal(name) for order in line.get("orders", []))

    def slow_trainer(self):
        """./slow: train_cifar after a second."""
        slow = self.folder / "slow"
        slow.write_text("#!/bin/sh\ncase \"$*\" in *--print-recipe*) ;; *) sleep 1 ;; esac\nexec "
                        + shlex.quote(str(self.programs / "train_cifar")) + ' "$@"\n')
        slow.chmod(0o755)

    def alone(self):
        self.write("alone", HALVING)
        code, words = self.run("alone")
        self.expect("alone: code", code == 0, words)

    def expect_as_alone(self, what, name):
        self.expect(f"{what}: results", self.results(name) == self.results("alone"),
                    (self.results(name), self.results("alone")))
        self.expect(f"{what}: decisions", self.orders(name) == self.orders("alone"), self.orders(name))
        self.expect(f"{what}: best.h5", hash_of(self.folder / name / "best.h5") == hash_of(self.folder / "alone/best.h5"))

    def together(self):
        """Three processes, of which one is killed now and then, and another one takes its place."""
        self.slow_trainer()  # or the search ends before others ask for it
        self.write("together", HALVING.replace("train_cifar", "./slow"))
        source = random.Random(5)
        processes = [self.start("together", "--join", "17") for _ in range(3)]
        while not list((self.folder / "together").glob("trial-*/lease")) and processes[0].poll() is None:
            time.sleep(0.01)
        code, words = self.run("together", "--join", "18")
        self.expect("a second search is refused", code == 2 and "belongs to another search" in words, words)
        code, words = self.run("together")
        self.expect("a search that works alone is refused", code == 2 and "belongs to another search" in words, words)
        for _ in range(5):
            time.sleep(source.uniform(0.2, 1.2))
            killed = processes.pop(0)
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
            processes.append(self.start("together", "--join", "17"))
        for process in processes:
            words = process.communicate(timeout=400)[0]
            self.expect("together: code", process.returncode == 0, words)
            self.expect("together: best", "best: trial" in words, words)
        self.expect_as_alone("together", "together")
        (self.folder / "changed.yaml").write_text((self.folder / "together.yaml").read_text().replace("seed: 3", "seed: 4"))
        code, words = self.run("changed", "--join", "17", output="together")
        self.expect("another space is refused", code == 2 and "'seed' differs" in words, words)
        # From a process that has lost the journal's lock without knowing it.
        with open(self.folder / "together/search.jsonl", "a") as journal:
            journal.write('{"trial": 1, "rung": 1, "steps": 6, "metric": 0.1, "orders": [], "line": 3}\n')
        code, words = self.run("together")
        self.expect("a search that works alone continues", code == 0 and "best: trial" in words, words)

    def stopped(self):
        """A process that stops gives its trials back, and another one continues them at once."""
        self.write("stopped", HALVING)
        first = self.start("stopped", "--join", "a")
        while not list((self.folder / "stopped").glob("trial-*/lease")) and first.poll() is None:
            time.sleep(0.01)
        second = self.start("stopped", "--join", "a")
        first.send_signal(signal.SIGTERM)
        words = first.communicate(timeout=200)[0]
        self.expect("stopped: code", first.returncode == 75, words)
        words = second.communicate(timeout=400)[0]
        self.expect("stopped: the other one ends", second.returncode == 0, words)
        self.expect_as_alone("stopped", "stopped")

    def silent(self):
        """A paused process loses its trial. When it is back, it finds that out and changes nothing."""
        self.slow_trainer()
        self.write("silent", HALVING.replace("train_cifar", "./slow").replace("max_trials: 5", "max_trials: 1"))
        first = self.start("silent", "--join", "a")
        lease = self.folder / "silent/trial-1/lease"
        while not lease.exists() and first.poll() is None:
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        held = json.loads(lease.read_text().splitlines()[0])
        # As another process would write it, after three missed heartbeats.
        part = lease.with_name("part")
        part.write_text(json.dumps({**held, "lease": held["lease"] + 1, "token": "another"}) + "\n0\n")
        os.replace(part, lease)
        first.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and first.poll() is None and self.journal("silent")[1:] == []:
            log = self.folder / "silent/trial-1.log"
            if log.exists() and (self.folder / "silent/trial-1/summary.json").exists():
                break
            time.sleep(0.05)
        time.sleep(1.5)
        self.expect("silent: no result is recorded", self.journal("silent")[1:] == [], self.journal("silent"))
        first.send_signal(signal.SIGTERM)
        words = first.communicate(timeout=100)[0]
        self.expect("silent: told", "another process has taken trial 1" in words, words)


def main(programs, parts):
    with tempfile.TemporaryDirectory() as name:
        searches = SharedSearches(programs.resolve(), pathlib.Path(name))
        for part in ["alone", *(parts or ["together", "stopped", "silent"])]:
            try:
                getattr(searches, part)()
            except (FileNotFoundError, IndexError, StopIteration) as error:
                searches.faults.append(f"{part}: {error!r}")
        print("\n".join(searches.faults) or "shared searches end as they should")
        return 1 if searches.faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
