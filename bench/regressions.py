#!/usr/bin/env python3
"""Tests whether one build is slower than another. Runs each bench of both builds in turn.

    regressions.py build/base build/new                 all benches: 22 minutes on two idle cores
    regressions.py build/base build/new --only step     benches whose names contain "step"

The builds alternate, in the other order every second time, so that changes of the machine affect both. A figure is
slower or faster if the medians differ by more than --least and the difference is significant: Mann-Whitney U test
(1947), exact if no times are equal, at 5 % over all figures together (Holm 1979). Otherwise it is the same if the 95 %
bootstrap interval of the ratio lies within --least. If not, it is not known: repeat on a quieter machine.

Exit code 0: nothing is slower. 1: something is. 2: nothing could be compared.
"""
import argparse
import functools
import json
import math
import pathlib
import random
import statistics
import sys

import suite
from processes import CANNOT_COMPARE, ProgramFailed, give_up, say

LEVEL = 0.05
RESAMPLES = 2000
SEED = 1  # the same times give the same interval


@functools.cache
def ways(first, second, u):
    """How many orders of first + second different values have that U."""
    if u < 0 or first < 0 or second < 0:
        return 0
    if first == 0 or second == 0:
        return int(u == 0)
    return ways(first - 1, second, u - second) + ways(first, second - 1, u)


def mann_whitney(base, new):
    """The two-sided p of U: exact, or where times are equal by the normal distribution, with ties and continuity."""
    n, m = len(base), len(new)
    u = sum((a > b) + 0.5 * (a == b) for a in base for b in new)
    everything = sorted([*base, *new])
    if len(set(everything)) == n + m:
        extreme = int(min(u, n * m - u))
        return min(1.0, 2 * sum(ways(n, m, value) for value in range(extreme + 1)) / math.comb(n + m, n))
    ties = sum(count**3 - count for count in (everything.count(value) for value in set(everything)))
    size = n + m
    variance = n * m / 12 * (size + 1 - ties / (size * (size - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc(max(0.0, abs(u - n * m / 2) - 0.5) / math.sqrt(2 * variance))


def holm(values):
    """Each p as it counts among all (Holm 1979)."""
    counted, least = {}, 0.0
    for place, name in enumerate(sorted(values, key=values.get)):
        least = max(least, min(1.0, values[name] * (len(values) - place)))
        counted[name] = least
    return counted


def ratio_interval(base, new):
    draw = random.Random(SEED)
    ratios = sorted(statistics.median(draw.choices(new, k=len(new))) / statistics.median(draw.choices(base, k=len(base)))
                    for _ in range(RESAMPLES))
    return ratios[RESAMPLES // 40], ratios[-1 - RESAMPLES // 40]


def judge(times, least):
    """{name: figures} from {name: (milliseconds of the base, of the new one)}."""
    chances = holm({name: mann_whitney(base, new) for name, (base, new) in times.items()})
    judged = {}
    for name, (base, new) in times.items():
        ratio = statistics.median(new) / statistics.median(base)
        low, high = ratio_interval(base, new)
        if chances[name] < LEVEL and abs(ratio - 1) > least:
            verdict = "slower" if ratio > 1 else "faster"
        else:
            verdict = "the same" if 1 - least <= low and high <= 1 + least else "not known"
        judged[name] = {"base_ms": statistics.median(base), "new_ms": statistics.median(new), "ratio": ratio, "low": low,
                        "high": high, "p": chances[name], "verdict": verdict}
    return judged


def measure(benches, base, new, repeats):
    times = {}
    for bench in benches:
        for repeat in range(repeats):
            say(f"{bench.name}: {repeat + 1} of {repeats}")
            figures = [None, None]
            for side in (0, 1) if repeat % 2 == 0 else (1, 0):
                figures[side] = suite.times(suite.run(bench, (base, new)[side]))
            for name in figures[0].keys() & figures[1].keys():
                for side in (0, 1):
                    times.setdefault(name, ([], []))[side].append(figures[side][name])
    return times


ORDER = ("slower", "not known", "faster", "the same")


def table(judged):
    lines = ["| figure | base, ms | new, ms | new / base (95 %) | p | |", "|---|---|---|---|---|---|"]
    for name, one in sorted(judged.items(), key=lambda item: (ORDER.index(item[1]["verdict"]), item[0])):
        lines.append(f"| {name} | {one['base_ms']:.4g} | {one['new_ms']:.4g} | {one['ratio']:.3f} "
                     f"({one['low']:.3f}–{one['high']:.3f}) | {one['p']:.2g} | {one['verdict']} |")
    return "\n".join(lines)


def summary(judged):
    counts = {verdict: sum(one["verdict"] == verdict for one in judged.values()) for verdict in ORDER}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def options(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="build folder to compare with")
    parser.add_argument("new", metavar="NEW", help="build folder to test")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only benches whose names contain TEXT")
    parser.add_argument("--repeats", type=int, default=9, metavar="COUNT",
                        help="runs of each bench of each build (%(default)s)")
    parser.add_argument("--least", type=float, default=0.03, metavar="SHARE",
                        help="smallest relative difference that counts (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures to FILE")
    given = parser.parse_args(words)
    if given.repeats < 4:
        parser.error("--repeats must be at least 4. With fewer runs, no difference is significant.")
    if not 0 < given.least < 1:
        parser.error("--least must be between 0 and 1.")
    return given


def main(words):
    given = options(words)
    named = [bench for bench in suite.SUITE if given.only in bench.name]
    benches = [bench for bench in named if all(suite.is_built(bench, build) for build in (given.base, given.new))]
    for bench in named:
        if bench not in benches:
            say(f"'{bench.name}' is left out, because {bench.program} is not in both builds.")
    if not benches:
        give_up("no bench (--only) is in both builds. Build both with -DLOCKSTEP_BENCH=ON.", CANNOT_COMPARE)
    try:
        times = measure(benches, given.base, given.new, given.repeats)
    except ProgramFailed as reason:
        give_up(str(reason), CANNOT_COMPARE)
    judged = judge(times, given.least)
    print(table(judged))
    print(f"\n{len(judged)} figures: {summary(judged)}.")
    if given.json:
        given.json.write_text(json.dumps(judged, indent=1) + "\n")
    return int(any(one["verdict"] == "slower" for one in judged.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
