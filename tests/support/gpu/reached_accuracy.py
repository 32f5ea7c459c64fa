#!/usr/bin/env python3
"""What a training has reached: reached_accuracy.py SUMMARY_JSON LEAST

Prints the test accuracy of the weights in model.h5, with and without test-time augmentation, and the training's seconds.
Exit code 1 if the training has not ended or the accuracy is below LEAST %.
"""

import json
import pathlib
import sys


def main(path, least):
    summary = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    kind = "test_accuracy" if summary.get("ema_test_accuracy") is None else "ema_test_accuracy"
    accuracy, plain = 100 * summary[kind], summary.get(f"plain_{kind}")
    text = f"{accuracy:.2f} %"
    if plain is not None:
        text += f" with {summary['test_augment']}, {100 * plain:.2f} % without"
    text += f", {summary['training_seconds']:.1f} s of training"
    if summary["state"] != "done":
        text += f", {summary['state']}"
    if accuracy < float(least):
        text += f", below {least} %"
    print(text)
    return 0 if summary["state"] == "done" and accuracy >= float(least) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
