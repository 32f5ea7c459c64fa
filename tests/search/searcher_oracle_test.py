#!/usr/bin/env python3
"""The decisions of lib/search equal those of a slow, obvious implementation, on random tables of results.

searcher_oracle_test.py DECIDE
"""
import json
import math
import random
import subprocess
import sys

WORST = math.inf
CASES = 3000


def levels(number, divisor):
    """floor(log_divisor(number)) + 1, by multiplication."""
    count = 1
    while divisor ** count <= number:
        count += 1
    return count


def brackets(search):
    divisor = search["divisor"]
    if search["kind"] in ("random", "grid", "single"):
        return [dict(rungs=1, trials=search["trials"], lengths=[search["length"]],
                     start=min(search["concurrent"], search["trials"]))]
    most = min(search["rungs"], levels(search["length"], divisor), levels(search["trials"], divisor))
    kinds = {"aggressive": [most], "standard": range((most - 1) // 2 + 1, most + 1), "conservative": range(1, most + 1)}
    mode = search["mode"] if search["kind"] == "adaptive_asha" else "aggressive"
    rungs = sorted(kinds[mode], reverse=True)
    weights = [divisor ** (count - 1) / count for count in rungs]
    trials = [max(int(weight / sum(weights) * search["trials"]), 1) for weight in weights]
    trials[0] += max(search["trials"] - sum(trials), 0)
    found = []
    for index, count in enumerate(rungs):
        share = search["concurrent"] // len(rungs) + (index < search["concurrent"] % len(rungs))
        start = trials[index] if search["kind"] == "successive_halving" else max(1, min(share, trials[index]))
        found.append(dict(rungs=count, trials=trials[index], start=start,
                          lengths=[max(int(search["length"] / divisor ** (count - 1 - rung)), 1)
                                   for rung in range(count)]))
    return found


class Oracle:
    """Sorts the whole table anew for every question."""

    def __init__(self, search):
        self.search, self.divisor = search, search["divisor"]
        self.brackets = brackets(search)
        self.trials = []  # bracket of each
        self.seen = [[[] for _ in range(one["rungs"])] for one in self.brackets]  # (metric, trial) as they arrive
        self.promoted = [[set() for _ in range(one["rungs"])] for one in self.brackets]
        self.rung_of, self.failed = {}, set()

    def create(self, bracket):
        self.trials.append(bracket)
        self.rung_of[len(self.trials)] = 0
        return self.order(len(self.trials))

    def order(self, trial):
        rung = self.rung_of[trial]
        return trial, rung, self.brackets[self.trials[trial - 1]]["lengths"][rung]

    def start(self):
        return [self.create(index) for index, one in enumerate(self.brackets) for _ in range(one["start"])]

    def report(self, trial, metric):
        if metric is None:
            self.failed.add(trial)
        value = WORST if metric is None else metric
        if self.search["kind"] == "successive_halving":
            return self.synchronous(trial, value)
        return self.asynchronous(trial, value)

    def asynchronous(self, trial, value):
        bracket = self.trials[trial - 1]
        rung = self.rung_of[trial]
        seen, promoted = self.seen[bracket][rung], self.promoted[bracket][rung]
        before = int(len(seen) / self.divisor)
        seen.append((value, trial))
        ranked = [one for _, one in sorted(seen, key=lambda entry: entry[0])]  # stable: earlier before later
        best = int(len(seen) / self.divisor)
        if rung + 1 < self.brackets[bracket]["rungs"]:
            chosen = None
            if self.search["stop_once"]:
                chosen = trial if ranked.index(trial) < max(best, 1) else None
            elif ranked.index(trial) < best:
                chosen = trial
            elif best != before:
                # The others kept their order, so the place that has become one of the best is known.
                others = [one for one in ranked if one != trial]
                chosen = others[before] if others[before] not in promoted else None
            if chosen is not None:
                promoted.add(chosen)
                self.rung_of[chosen] += 1
                if chosen in self.failed:
                    return self.asynchronous(chosen, WORST)
                return [self.order(chosen)]
        if self.trials.count(bracket) < self.brackets[bracket]["trials"]:
            return [self.create(bracket)]
        return []

    def synchronous(self, trial, value):
        rung = self.rung_of[trial]
        self.seen[0][rung].append((value, trial))
        waiting = [one for one, at in self.rung_of.items() if at == rung]
        if len(self.seen[0][rung]) < len(waiting) or rung + 1 == self.brackets[0]["rungs"]:
            return []
        best = sorted(self.seen[0][rung])[:max(int(len(waiting) / self.divisor), 1)]
        chosen = sorted(one for _, one in best if one not in self.failed)
        for one in chosen:
            self.rung_of[one] += 1
        return [self.order(one) for one in chosen]


def random_search(source):
    trials = source.randint(1, 40)
    kinds = ["single", "random", "grid", "adaptive_asha", "adaptive_asha", "asha", "asha", "successive_halving"]
    kind = source.choice(kinds)
    metrics = source.choice([[0.1, 0.2, 0.3], [index / 1000 for index in range(1000)]])  # with many ties, or with few
    failures = source.choice([0, 0, 0.2, 0.8])
    return {"kind": kind, "trials": 1 if kind == "single" else trials, "concurrent": source.randint(1, 20),
            "length": source.choice([1, 2, 7, 10, 64, 100, 1000, 12345]), "divisor": source.choice([1.5, 2, 3, 4, 10]),
            "rungs": source.randint(1, 6), "mode": source.choice(["aggressive", "standard", "conservative"]),
            "stop_once": kind in ("asha", "adaptive_asha") and source.random() < 0.4,
            "results": [[None if source.random() < failures else source.choice(metrics) for _ in range(8)]
                        for _ in range(trials + 8)],
            "picks": [source.randint(0, 1000) for _ in range(50)]}


def decisions(search):
    oracle = Oracle(search)
    waiting = oracle.start()
    lines = [list(waiting)]
    turn = 0
    while waiting:
        trial, rung, _ = waiting.pop(search["picks"][turn % 50] % len(waiting))
        following = oracle.report(trial, search["results"][trial - 1][rung])
        lines.append(following)
        waiting.extend(following)
        turn += 1
    return ["".join("{}:{}:{} ".format(*order) for order in line) for line in lines] + ["end"]


def main(program):
    source = random.Random(20261126)
    searches = [random_search(source) for _ in range(CASES)]
    text = "".join(json.dumps(search) + "\n" for search in searches)
    printed = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
    found = iter(printed.splitlines())
    decided = promotions = 0
    for number, search in enumerate(searches):
        for place, line in enumerate(decisions(search)):
            decided += 1
            promotions += sum(":0:" not in order for order in line.split())
            given = next(found, "nothing")
            if given != line:
                print(f"search {number}, decision {place}: '{given}' instead of '{line}'\n{json.dumps(search)}")
                return 1
    print(f"{CASES} searches, {decided} decisions, {promotions} promotions")
    return 0 if promotions > CASES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
