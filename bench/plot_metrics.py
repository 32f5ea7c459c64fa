#!/usr/bin/env python3
"""Draws test accuracy over minutes, for several trainings, as an SVG file.

    bench/plot_metrics.py curve.svg "Lockstep=runs/a/metrics.jsonl" "PyTorch=peer.csv" [--lowest 60]

A curve is a training's metrics.jsonl, or a CSV file with lines "seconds,accuracy", accuracy from 0 to 1.
"""
import argparse
import json
import math
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 36, 44
COLOURS = ["#1f6fb2", "#c8501e", "#2a8c4a", "#7a4fa3"]


def read_curve(path):
    """(minutes, accuracy) of every test, in order of time."""
    lines = [line for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line]
    if path.endswith(".csv"):
        pairs = [tuple(map(float, line.split(","))) for line in lines]
    else:
        tests = [record for record in map(json.loads, lines) if record["kind"] == "test"]
        pairs = [(record["seconds"], record["accuracy"]) for record in tests]
    if not pairs:
        sys.exit(f"'{path}' has no test. Wait until the first test ends.")
    return sorted((seconds / 60, accuracy) for seconds, accuracy in pairs)


def minutes_between_ticks(last):
    """1, 2 or 5 times a power of ten, so that at most ten ticks follow the first."""
    power = 10 ** math.floor(math.log10(last / 10))
    return next(factor * power for factor in (1, 2, 5, 10) if last <= 10 * factor * power)


def draw(curves, lowest):
    last = max(points[-1][0] for _, points in curves)
    every = minutes_between_ticks(last)
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x_of(minutes):
        return LEFT + minutes / last * plot_width

    def y_of(percent):
        return TOP + (100 - percent) / (100 - lowest) * plot_height

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for percent in range(lowest, 101, 10):
        y = y_of(percent)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    for tick in range(int(last / every) + 1):
        x = x_of(tick * every)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick * every:g}</text>')
    parts.append(f'<text x="{LEFT + plot_width / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">minutes</text>')
    for index, (name, points) in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        shown = [(x_of(minutes), y_of(100 * accuracy)) for minutes, accuracy in points if 100 * accuracy >= lowest]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in shown)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in shown]
        end = f"{name}: {100 * points[-1][1]:.2f} % after {points[-1][0]:.1f} minutes"
        parts.append(f'<text x="{LEFT}" y="{16 + 15 * index}" fill="{colour}">{escape(end)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, metavar="OUTPUT.svg")
    parser.add_argument("curves", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--lowest", type=int, default=0, choices=range(0, 100, 10), metavar="PERCENT",
                        help="where the axis of accuracy begins, a multiple of 10 (default: 0)")
    options = parser.parse_args()
    curves = []
    for curve in options.curves:
        name, separator, path = curve.partition("=")
        if not separator:
            parser.error(f"'{curve}' has no name. Write NAME=FILE.")
        curves.append((name, read_curve(path)))
    options.output.write_text(draw(curves, options.lowest), encoding="utf-8")


if __name__ == "__main__":
    main()
