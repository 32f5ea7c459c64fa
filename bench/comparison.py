"""Ratios with an interval, and the rows of a Markdown table, from the measurements of compare.py."""

import random
import statistics

RESAMPLES = 10_000
SEED = 1  # the same figures give the same interval
MIB = 1 << 20


def ratio_interval(ours, theirs):
    """Median of the pairs' ratios, and its 95 % bootstrap interval (percentiles): (median, low, high)."""
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    draw = random.Random(SEED)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    tail = RESAMPLES // 40
    return statistics.median(ratios), medians[tail], medians[-1 - tail]


def median_of(runs, field):
    return statistics.median(run[field] for run in runs)


def short(value):
    """Three digits: 9.51, 137, 1380."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def ratio_cell(ours, theirs, lost):
    """`lost`: pairs without figures, because a program failed or no time was left."""
    rates = [[run["samples_per_second"] for run in runs] for runs in (ours, theirs)]
    left = f"{len(ours)} of {len(ours) + lost} pairs" if lost else ""
    if len(ours) == 1:
        return f"{rates[0][0] / rates[1][0]:.2f} ({left or 'one run each'})"
    median, low, high = ratio_interval(*rates)
    return f"{median:.2f} ({low:.2f}–{high:.2f}{left and f'; {left}'})"


def share_cell(ours):
    shares = [run["share_of_convolution_bound"] for run in ours if "share_of_convolution_bound" in run]
    return f"{100 * statistics.median(shares):.0f} %" if shares else "–"


def both(ours, theirs, field, scale):
    return " / ".join(short(median_of(runs, field) / scale) for runs in (ours, theirs))


def table_row(description, target, ours, theirs, lost=0):
    """One row. `target` is None if this CPU has none; `lost` is the number of pairs without figures."""
    cells = [
        description,
        short(median_of(ours, "samples_per_second")),
        short(median_of(theirs, "samples_per_second")),
        ratio_cell(ours, theirs, lost),
        f"≥ {target}" if target else "–",
        share_cell(ours),
        both(ours, theirs, "peak_memory_bytes", MIB),
        both(ours, theirs, "first_step_seconds", 1),
    ]
    return "| " + " | ".join(cells) + " |"


def missing_row(description, reason):
    """The row of a case that could not be measured: the last line of the program that failed."""
    words = reason.strip().splitlines()[-1].replace("|", "/")
    return "| " + " | ".join([description, "–", "–", f"not measured: {words}", *["–"] * 4]) + " |"


HEAD = """\
| whole training steps | Lockstep, samples/s | PyTorch, samples/s | ratio (95 % interval) | to reach \
| of the convolution-only bound | peak memory of a rank, MiB (Lockstep / PyTorch) \
| first step, s from process start (Lockstep / PyTorch) |
|---|---|---|---|---|---|---|---|"""
