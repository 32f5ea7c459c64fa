#!/usr/bin/env python3
"""mpirun starts a search: trials run in the places of its ranks, on all nodes: search_under_mpirun_test.py PROGRAMS"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "network")]
import two_nodes  # noqa: E402
from training import make_data  # noqa: E402

SPACE = """program: ./trial
arguments: --data data --model lenet --global-batch 30 --device cpu --threads 1 --virtual-ranks 2
ranks_per_trial: {ranks}
searcher: {{name: random, metric: test-loss, max_length: {{epochs: {epochs}}}, max_trials: 4}}
hyperparameters: {{lr: {{type: log, minval: -2, maxval: -1, base: 10}}}}
"""


class Searches:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.one_node = ["mpirun", "--oversubscribe", "-n"]
        os.environ.update(two_nodes.settings(folder))
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
        trial = folder / "trial"
        trial.write_text('#!/bin/sh\ngrep Cpus_allowed_list /proc/self/status >>cores\nexec train_cifar "$@"\n')
        trial.chmod(0o755)
        make_data(programs, "train_cifar", 300, folder / "data")

    def words(self, output, ranks=1, epochs=1):
        (self.folder / f"{output}.yaml").write_text(SPACE.format(ranks=ranks, epochs=epochs))
        return [self.programs / "search", f"{output}.yaml", "--output", output]

    def run(self, launch, *search, code=0):
        done = subprocess.run([*launch, *search], cwd=self.folder, capture_output=True, text=True, check=False, timeout=200,
                              stdin=subprocess.DEVNULL)
        said = done.stdout + done.stderr
        assert done.returncode == code, (done.returncode, said)
        return said

    def metrics(self, output):
        lines = [json.loads(line) for line in (self.folder / output / "search.jsonl").read_text().splitlines()]
        return {line["trial"]: line["metric"] for line in lines[1:]}

    def logs(self, output):
        return [(self.folder / output / f"trial-{number}.log").read_text() for number in range(1, 5)]


def main(programs):
    with tempfile.TemporaryDirectory(prefix="s", dir="/tmp") as name:
        searches = Searches(pathlib.Path(programs).resolve(), pathlib.Path(name))
        searches.run([], *searches.words("alone"))
        expected = searches.metrics("alone")

        # mpirun binds each rank to a core, and the search may use those of all.
        bound = len(os.sched_getaffinity(0)) >= 2
        (searches.folder / "cores").unlink()
        searches.run(["mpirun", "--bind-to", "core" if bound else "none", "-n", "2" if bound else "1"],
                     *searches.words("bound"))
        cores = set((searches.folder / "cores").read_text().splitlines())
        assert len(cores) == 1 and (not bound or "-" in min(cores) or "," in min(cores)), cores
        assert searches.metrics("bound") == expected, (searches.metrics("bound"), expected)

        said = searches.run([*searches.one_node, "3"], *searches.words("three"))
        assert said.count("best: trial") == 1 and "up to 3 trials at the same time" in said, said
        assert searches.metrics("three") == expected, (searches.metrics("three"), expected)

        said = searches.run([*searches.one_node, "4"], *searches.words("pairs", ranks=2))
        assert "up to 2 trials at the same time" in said, said
        assert searches.metrics("pairs") == expected, (searches.metrics("pairs"), expected)

        said = searches.run(two_nodes.under_mpirun(), *searches.words("nodes"))
        logs = searches.logs("nodes")
        assert "up to 2 trials at the same time" in said, said
        assert any("[rank 0, n1]" in log for log in logs) and any("[rank 0, n2]" in log for log in logs), logs
        assert searches.metrics("nodes") == expected, (searches.metrics("nodes"), expected)

        said = searches.run([*searches.one_node, "2"], *searches.words("large", ranks=3), code=2)
        assert "line 3" in said and "a trial has 3 ranks" in said, said
        assert not (searches.folder / "large").exists()
        said = searches.run([*searches.one_node, "2"], searches.programs / "search", "--quantum-leap", code=2)
        assert said.count("[rank 0") == 1, said

        # Stopped in the middle: the same command continues.
        words = searches.words("stopped", epochs=10)
        process = subprocess.Popen([*searches.one_node, "2", *words], cwd=searches.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + 60
        while not list(searches.folder.glob("stopped/trial-1/metrics.jsonl")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[0]
        assert process.returncode != 0, said
        searches.run([*searches.one_node, "2"], *words)
        assert len(searches.metrics("stopped")) == 4
    print("searches under mpirun decide as one alone")


if __name__ == "__main__":
    main(sys.argv[1])
