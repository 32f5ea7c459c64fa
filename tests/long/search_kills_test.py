#!/usr/bin/env python3
"""A search that is killed at random moments decides as an undisturbed one.

search_kills_test.py PROGRAMS [KILLS [SEED]]

Kills the search (SIGKILL), stops it (SIGTERM, SIGHUP) or kills one of its trials, and calls it again. Results,
promotions and best.h5 must be those of a search that nobody disturbed. With several trials at once, the synchronous
searcher decides by trial number, so only the order of the results may differ.
"""
import hashlib
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from training import make_data, send  # noqa: E402: found only now

SPACE = """program: train_cifar
arguments: --data data --model lenet --global-batch 30 --device cpu --threads 1 --checkpoint-every 3
searcher:
  name: {name}
  metric: test-loss
  max_length: {{batches: 24}}
  max_trials: 6
  max_concurrent_trials: {concurrent}
  divisor: 2
  max_rungs: 3
hyperparameters:
  lr: {{type: log, minval: -2.5, maxval: -0.5, base: 10}}
max_restarts: 1000
"""
SEARCHES = (("asha", 1), ("successive_halving", 3))


def trials_of(search):
    """Processes of its trials, not those that only check options."""
    try:
        children = pathlib.Path(f"/proc/{search}/task/{search}/children").read_text().split()
        return [int(child) for child in children if "\0--output=" in pathlib.Path(f"/proc/{child}/cmdline").read_text()]
    except OSError:
        return []


class Search:
    def __init__(self, programs, folder, name, concurrent):
        self.programs, self.folder, self.name = programs, folder, name
        self.in_order = concurrent == 1
        (folder / f"{name}.yaml").write_text(SPACE.format(name=name, concurrent=concurrent))

    def start(self, output):
        return subprocess.Popen([self.programs / "search", f"{self.name}.yaml", "--output", output], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def outcome(self, output):
        """Decisions, in order if one trial runs at a time, and the best model."""
        lines = [json.loads(line) for line in (self.folder / output / "search.jsonl").read_text().splitlines()]
        results = [json.dumps({key: line.get(key) for key in ("trial", "rung", "steps", "metric", "code")}, sort_keys=True)
                   for line in lines[1:] if "orders" in line]
        orders = [json.dumps(order, sort_keys=True) for line in lines for order in line.get("orders", [])]
        if not self.in_order:
            results, orders = sorted(results), sorted(orders)
        return results, orders, hashlib.sha256((self.folder / output / "best.h5").read_bytes()).hexdigest()

    def disturb(self, process, chance):
        """What was done."""
        trials = trials_of(process.pid)
        kind = chance.choice(("kill", "kill", "stop", "hang up", "kill a trial"))
        if kind == "kill a trial":
            return kind if trials and send(chance.choice(trials), signal.SIGKILL) else ""
        number = {"kill": signal.SIGKILL, "stop": signal.SIGTERM, "hang up": signal.SIGHUP}[kind]
        return kind if process.poll() is None and send(process.pid, number) else ""

    def run(self, kills, chance):
        """Faults, as sentences."""
        began = time.monotonic()
        words = self.start(f"{self.name}-calm").communicate()[0]
        seconds = time.monotonic() - began
        expected = self.outcome(f"{self.name}-calm")
        done, attempt = 0, 1
        while True:
            output = f"{self.name}-{attempt}"
            process = self.start(output)
            kind = ""
            if done < kills:
                time.sleep(chance.uniform(0, seconds / 4))
                kind = self.disturb(process, chance)
                done += kind != ""
            words = process.communicate()[0]
            print(f"{output}: {done} of {kills} {kind or 'left alone'}: {process.returncode}", flush=True)
            if process.returncode == 0:
                if self.outcome(output) != expected:
                    return [f"{output} differs: {self.outcome(output)} instead of {expected}\n{words}"]
                if done >= kills:
                    return []
                attempt += 1
            elif kind in ("", "kill a trial") or process.returncode not in (75, -signal.SIGKILL, -signal.SIGTERM,
                                                                            -signal.SIGHUP):
                return [f"{output} ended with {process.returncode}: {words}"]


def main(programs, kills, seed):
    print(f"seed {seed}")
    chance = random.Random(seed)
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_data(programs, "train_cifar", 300, folder / "data")
        for searcher, concurrent in SEARCHES:
            faults += Search(programs, folder, searcher, concurrent).run(kills // len(SEARCHES), chance)
    print("\n".join(faults) or f"{kills} kills change no decision")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 100,
                  int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 31)))
