#!/usr/bin/env python3
"""Draws the accuracy of runs as SVG: plot_metrics.py OUTPUT.svg RUN_FOLDER...

Reads metrics.jsonl of each folder (train_cifar --output). A thin line shows the training accuracy between two reports.
A thick line with dots shows the test accuracy after each epoch.
"""
import json
import pathlib
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 36, 44
COLOURS = ["#1f6fb2", "#c8501e", "#2a8c4a", "#7a4fa3"]


def read_run(folder):
    """Lists of (epochs done, accuracy) of training and test reports."""
    reports = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    tests = [report for report in reports if report["kind"] == "test"]
    if not tests:
        sys.exit(f"'{folder}' has no finished epoch. Wait until the first epoch ends.")
    steps_per_epoch = tests[0]["step"] / tests[0]["epoch"]

    def points(kind):
        return [(r["step"] / steps_per_epoch, r["accuracy"]) for r in reports if r["kind"] == kind]

    return points("training"), points("test")


def draw(runs):
    epochs = max(x for _, (_, test) in runs for x, _ in test)
    plot_width, plot_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(point):
        return f"{LEFT + point[0] / epochs * plot_width:.1f},{TOP + (1 - point[1]) * plot_height:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for percent in range(0, 101, 20):
        y = TOP + (1 - percent / 100) * plot_height
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{percent} %</text>')
    every = max(1, round(epochs / 10))
    for epoch in range(0, int(epochs) + 1, every):
        x = LEFT + epoch / epochs * plot_width
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epoch}</text>')
    parts.append(f'<text x="{LEFT + plot_width / 2:.1f}" y="{HEIGHT - 8}" text-anchor="middle">epoch</text>')
    for index, (name, (training, test)) in enumerate(runs):
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<polyline points="{" ".join(map(at, training))}" fill="none" stroke="{colour}" opacity="0.45"/>')
        parts.append(f'<polyline points="{" ".join(map(at, test))}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{at(p).split(",")[0]}" cy="{at(p).split(",")[1]}" r="3.5" fill="{colour}"/>' for p in test]
        last = f"{name}: test accuracy {100 * test[-1][1]:.2f} % after epoch {round(test[-1][0])} (thin: training)"
        parts.append(f'<text x="{LEFT}" y="{16 + 15 * index}" fill="{colour}">{escape(last)}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__.strip())
    output, *folders = arguments
    runs = [(pathlib.Path(folder).name, read_run(folder)) for folder in folders]
    pathlib.Path(output).write_text(draw(runs))


if __name__ == "__main__":
    main(sys.argv[1:])
