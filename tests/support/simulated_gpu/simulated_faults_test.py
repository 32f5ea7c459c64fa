#!/usr/bin/env python3
"""Trainings on the simulated GPU find each mistake that the simulation can make: simulated_faults_test.py BIN PART

Parts:
  alone: one rank, whose sums go through the host
  nccl: two ranks, which add with NCCL
"""
import sys

import simulated_trainings

# What finds each fault, see Trainings.expect_found.
ALONE = {
    "missing_wait": "bits",
    "early_event": "bits",
    # cuDNN's engines with a workspace are left out, as others work. Builds with assertions have one on the address.
    "offset_memory": "CUBLAS_STATUS_INVALID_VALUE|Assertion `.*base.* % .*block_alignment",
    "freed_under_graph": "an illegal memory access was encountered",
    "short_pinned": "invalid argument",
    "wrong_stride": "bits",
    "unset_memory": "gradients overflow at step 0",
}
NCCL = ("--reduce", "nccl")


def alone(trainings):
    options = ["--reduce", "mpi"]
    right = trainings.weights(*options)
    for fault, finding in ALONE.items():
        trainings.expect_found(fault, finding, right, *options, order="late")


def nccl(trainings):
    right = trainings.weights(*NCCL, ranks=2)
    at_once = [*NCCL, "--no-graphs"]
    trainings.expect_equal("without graphs", trainings.weights(*at_once, ranks=2), right)
    for fault, finding, options in (
            ("missing_wait", "bits", at_once),
            ("detached_sum", "bits", at_once),
            ("detached_sum", "capturing stream has unjoined work", NCCL),
            ("kept_graph", "ncclCommFinalize waits forever, because a captured graph holds the communicator", NCCL),
            ("left_out_sum", "of the communicator is nccl", [*at_once, "--shard-optimizer"])):
        trainings.expect_found(fault, finding, right, *options, order="late", ranks=2)


if __name__ == "__main__":
    sys.exit(simulated_trainings.main({"alone": alone, "nccl": nccl}))
