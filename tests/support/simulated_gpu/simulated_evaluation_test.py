#!/usr/bin/env python3
"""evaluate and predict on simulated GPUs, in all orders of their work: simulated_evaluation_test.py BIN all

They give what the training's last test gave, and the classes that the CPU gives.
"""
import json
import sys

import simulated_trainings


def evaluate(trainings, how, **options):
    result = trainings.folder / "result.json"
    code, words = trainings.start("evaluate", "--model-file", trainings.folder / "run" / "model.h5", "--data",
                                  trainings.data, "--json", result, *how, **options)
    trainings.expect(f"evaluate {how} {options}", code == 0, words[-3000:])
    return json.loads(result.read_text()) if code == 0 else {}


def predict(trainings, pictures, **options):
    code, words = trainings.start("predict", trainings.folder / "run" / "model.h5", pictures, **options)
    trainings.expect(f"predict {options}", code == 0, words[-3000:])
    return [line.split(",") for line in words.splitlines() if ".jpg," in line]


def everything(trainings):
    trainings.weights("--reduce", "mpi", name="run")
    tested = trainings.metrics("run", "test")[-1]
    for order in ("direct", *simulated_trainings.ORDERS):
        for ranks in 1, 2:
            found = evaluate(trainings, ["--plan-folder", ""], order=order, ranks=ranks)
            trainings.expect_equal(f"evaluate, {order}, {ranks} ranks", [found.get("loss"), found.get("accuracy")],
                                   [tested["loss"], tested["accuracy"]])
    pictures = trainings.folder / "pictures"
    trainings.run_words([f"{trainings.programs}/write_pictures", pictures, "12"])
    direct = predict(trainings, pictures)
    for order in simulated_trainings.ORDERS:
        trainings.expect_equal(f"predict, {order}", predict(trainings, pictures, order=order), direct)
    on_cpu = predict(trainings, pictures, device="cpu")
    trainings.expect_equal("classes on the CPU", [row[2] for row in on_cpu], [row[2] for row in direct])
    trainings.expect_equal("pictures", len(direct), 12)


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"all": everything}))
