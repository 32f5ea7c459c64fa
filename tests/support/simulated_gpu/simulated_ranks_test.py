#!/usr/bin/env python3
"""Trainings of two ranks, each with a simulated GPU, in all orders of their work: simulated_ranks_test.py BIN PART ...

Parts:
  staged: gradients go through the host
  nccl PRECISION MICRO_BATCHES: with the bits of sums through the host
  options: an optimizer divided between the ranks, gradients in bf16, and virtual ranks
  resume: from a checkpoint, with the weights and tests of a training without an interruption
  kernels MODEL: one epoch, with kernels that the first training measures and the second one keeps
  diverging: a training that ends with an error destroys its graphs before it aborts NCCL
"""
import json
import sys

import simulated_trainings

NCCL = ("--reduce", "nccl")


def staged(trainings):
    by_mpi = trainings.expect_same("two ranks", "--reduce", "mpi", ranks=2)
    trainings.expect_equal("shared memory", trainings.weights("--reduce", "shared", ranks=2, order="late"), by_mpi)


def nccl(trainings, precision, micro_batches):
    options = ["--precision", precision, "--accumulate", micro_batches]
    name = f"{precision}, {micro_batches} micro-batches"
    by_nccl = trainings.expect_same(name, *NCCL, *options, ranks=2)
    through_host = trainings.weights("--reduce", "mpi", *options, ranks=2)
    trainings.expect_equal(f"{name}, through the host", through_host, by_nccl)


def options(trainings):
    trainings.expect_same("divided optimizer", *NCCL, "--shard-optimizer", ranks=2)
    trainings.expect_same("wire", *NCCL, "--wire", "bf16", "--shard-optimizer", ranks=2)
    virtual = ["--virtual-ranks", "4", *NCCL]
    by_two = trainings.expect_same("virtual ranks", *virtual, ranks=2)
    trainings.expect_equal("virtual ranks of one rank", trainings.weights(*virtual), by_two)


def resume(trainings):
    whole = trainings.weights(*NCCL, name="whole", order="late", ranks=2)
    checkpoint = trainings.folder / "whole" / "checkpoints" / "step-000000000003.h5"
    rest = trainings.weights(*NCCL, "--resume", checkpoint, name="rest", order="early", ranks=2)
    trainings.expect_equal("resume", rest, whole)
    tests = [[(test["epoch"], test["loss"], test["accuracy"]) for test in trainings.metrics(name, "test")]
             for name in ("whole", "rest")]
    trainings.expect_equal("tests after the resume", tests[1][-1:], tests[0][-1:])


def kernels(trainings, model):
    words = [*NCCL, "--model", model, "--epochs", "1", "--precision", "bf16", "--plan-folder", trainings.folder / "plans"]
    first = trainings.weights(*words, name="measured", order="late", ranks=2)
    kept = trainings.weights(*words, name="kept", order="random:2", ranks=2)
    trainings.expect_equal("with the kernels of the first training", kept, first)
    for name, measured in ("measured", True), ("kept", False):
        summary = json.loads((trainings.folder / name / "summary.json").read_text())
        trainings.expect_equal(f"kernels of '{name}'",
                               (summary["kernels_measured"] > 0, summary["kernels_recalled"] > 0),
                               (measured, not measured))


def diverging(trainings):
    for order in "direct", "late":
        code, words = trainings.run(*NCCL, "--lr", "1e9", "--epochs", "3", ranks=2, order=order)
        trainings.expect(f"diverging, {order}", code != 0 and "Lower --lr" in words and "simulated NCCL" not in words,
                         words[-3000:])


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"staged": staged, "nccl": nccl, "options": options, "resume": resume,
                                       "kernels": kernels, "diverging": diverging}))
