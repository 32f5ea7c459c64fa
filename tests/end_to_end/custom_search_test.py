#!/usr/bin/env python3
"""search with a custom searcher: the example of apps/search.md, killed and continued, and a program that dies.

custom_search_test.py PROGRAMS DOCUMENT
"""
import pathlib
import signal
import sys
import tempfile

from search_test import Searches

SPACE = """program: train_cifar
arguments: {arguments}
searcher:
  name: custom
  command: [python3, propose.py]
  metric: test-loss
  max_length: {{epochs: 2}}
  max_trials: 3
hyperparameters:
  lr: {{type: log, minval: -2.5, maxval: -0.5, base: 10}}
  momentum: {{type: categorical, vals: [0.5, 0.9]}}
  warmup: {{type: int, minval: 0, maxval: 1}}
"""
# Judges after one epoch, and continues a trial whose number is odd.
JUDGES = """import json, sys
for ask in map(json.loads, sys.stdin):
    if ask["ask"] == "propose":
        settings = {"lr": 0.01 * ask["trial"], "momentum": "0.9", "warmup": 0}
        print(json.dumps({"settings": settings, "length": 1}), flush=True)
    elif ask["ask"] == "report":
        DIES
        print(json.dumps({"length": 2} if ask["trial"] % 2 and ask["length"] == 1 else "stop"), flush=True)
"""


def example_of(document):
    return document.read_text().split("```python\n")[1].split("```")[0]


def answers(searches, name):
    return [(line["ask"], line["trial"], line["answer"]) for line in searches.journal(name) if "ask" in line]


def killed_and_continued(searches, example):
    searches.expect("the example has 30 lines or fewer", example.count("\n") <= 30, example.count("\n"))
    (searches.folder / "optuna.py").write_text("raise ImportError\n")
    (searches.folder / "propose.py").write_text(example)
    searches.write("example", SPACE)
    process = searches.start("example")
    searches.wait_for_journal(process, "example", 3, 0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=200)
    before = searches.journal("example")
    code, words = searches.run("example")
    after = searches.journal("example")
    searches.expect("example: code", code == 0, words)
    searches.expect("example: answers are not asked for again", after[:len(before)] == before and len(before) < len(after))
    asked = [one[:2] for one in answers(searches, "example")]
    searches.expect("example: each question once", sorted(asked) == [
        (what, trial) for what in ("propose", "report") for trial in (1, 2, 3)], asked)
    searches.expect_best("example", "example", words, smaller=True)
    searches.expect("example: page", "3 of 3 trials" in (searches.folder / "example/search.html").read_text())
    (searches.folder / "propose.py").unlink()
    code, words = searches.run("example")
    searches.expect("example again: no program is needed", code == 0 and searches.journal("example") == after, words)


def dies_and_is_corrected(searches):
    program = searches.folder / "propose.py"
    program.write_text(JUDGES.replace("DIES", "assert ask['trial'] != 2, 'a fault'"))
    searches.write("judges", SPACE)
    code, words = searches.run("judges")
    last = words.splitlines()[-1]
    searches.expect("a program that dies: code", code == 1, words)
    searches.expect("a program that dies: named", "'python3 propose.py' ended with code 1" in last and
                    "searcher.log" in last, words)
    searches.expect("a program that dies: its own words", "a fault" in (searches.folder / "judges/searcher.log").read_text())
    searches.expect("a program that dies: results", any(line.get("trial") == 2 and "metric" in line
                                                        for line in searches.journal("judges")), words)
    program.write_text(JUDGES.replace("DIES", "pass"))
    code, words = searches.run("judges")
    lengths = {line["trial"]: line["steps"] for line in searches.journal("judges") if "metric" in line}
    searches.expect("corrected: code", code == 0, words)
    searches.expect("corrected: odd trials continue", lengths == {1: 20, 2: 10, 3: 20}, lengths)
    code, words = searches.run("judges", "--dry-run", "--describe", output="judges-dry")
    searches.expect("dry run", code == 0 and "settings: by 'python3 propose.py'" in words, words)


def main(programs, document):
    with tempfile.TemporaryDirectory() as name:
        searches = Searches(programs.resolve(), pathlib.Path(name))
        killed_and_continued(searches, example_of(document))
        dies_and_is_corrected(searches)
        print("\n".join(searches.faults) or "programs decide as they should")
        return 1 if searches.faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
