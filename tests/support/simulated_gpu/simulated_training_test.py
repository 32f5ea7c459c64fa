#!/usr/bin/env python3
"""Trainings on one simulated GPU end with the same bits in every order of its work: simulated_training_test.py BIN PART

Parts:
  orders PRECISION: one and two micro-batches, in all orders; losses as on the CPU, within rounding
  resume: from a checkpoint, with the bits of a training without an interruption
"""
import sys

import simulated_trainings

TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2}


def orders(trainings, precision):
    for micro_batches in 1, 2:
        options = ["--reduce", "mpi", "--precision", precision, "--accumulate", micro_batches]
        name = f"gpu{micro_batches}"
        trainings.expect_same(f"{precision}, {micro_batches} micro-batches", *options, name=name)
        trainings.run(*options, name=f"cpu{micro_batches}", device="cpu")
        on_gpu, on_cpu = trainings.losses(name), trainings.losses(f"cpu{micro_batches}")
        far = max(abs(one - other) for one, other in zip(on_gpu, on_cpu, strict=True))
        trainings.expect(f"losses, {precision}, {micro_batches} micro-batches", far < TOLERANCE[precision],
                         f"{on_gpu}, on the CPU {on_cpu}")
    if precision == "fp32":  # in which Muon computes anyway
        trainings.expect_same("muon", "--reduce", "mpi", "--optimizer", "muon", "--lr", "0.02")


def resume(trainings):
    options = ["--reduce", "mpi"]
    whole = trainings.weights(*options, name="whole", order="late")
    checkpoint = trainings.folder / "whole" / "checkpoints" / "step-000000000003.h5"
    rest = trainings.weights(*options, "--resume", checkpoint, order="early")
    trainings.expect_equal("resume", rest, whole)


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"orders": orders, "resume": resume}))
