#!/usr/bin/env python3
"""Trainings on the simulated GPU end with the same bits in every order of its work: simulated_training_test.py BIN PART

Parts:
  orders PRECISION: one rank, one and two micro-batches, in all orders; losses as on the CPU, within rounding
  resume: from a checkpoint, with the bits of a training without an interruption
  ranks: two ranks with a GPU each, which exchange gradients by MPI
  faults: each mistake that the simulation can make is found
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ORDERS = ("late", "early", "random:1")
FINGERPRINT = re.compile(r"\w{16}")
TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2}
# What finds each fault: a part of the message with which the training ends, or "bits": it ends with other weights.
FAULTS = {
    "missing_wait": "bits",
    "early_event": "bits",
    "offset_memory": "CUBLAS_STATUS_INVALID_VALUE",  # cuDNN's engines with a workspace are left out, as others work
    "freed_under_graph": "an illegal memory access was encountered",
    "short_pinned": "invalid argument",
    "wrong_stride": "bits",
}


class Trainings:
    """Three steps an epoch, so that the second epoch replays graphs only."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.faults = programs, folder, []
        self.data = folder / "data"
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "48", "--output", self.data], check=True,
                       stdout=subprocess.DEVNULL)

    def run(self, *options, name=None, device="cuda", order="direct", fault="none", ranks=1):
        """The exit code and all output."""
        program = "train_cifar_on_simulated_gpu" if device == "cuda" else "train_cifar"
        launcher = [] if ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        output = ["--output", self.folder / name] if name else []
        command = [*launcher, f"{self.programs}/{program}", "--device", device, "--data", self.data, "--model", "lenet",
                   "--epochs", "2", "--global-batch", "16", "--threads", "1", "--plan-folder", "", *output, *options]
        environment = {**os.environ, "LOCKSTEP_GPU_ORDER": order, "LOCKSTEP_GPU_FAULT": fault}
        done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True,
                              check=False, timeout=100)
        return done.returncode, done.stdout + done.stderr

    def outcome(self, *options, **how):
        """The fingerprint of the weights with which the training ends; its message if it fails."""
        code, words = self.run(*options, **how)
        found = re.search(r"weights (\w{16})\)", words)
        return found.group(1) if code == 0 and found else words[-1000:]

    def weights(self, *options, **how):
        """Of a training that must not fail."""
        found = self.outcome(*options, **how)
        self.expect(f"{options} {how} failed", FINGERPRINT.fullmatch(found), found)
        return found

    def losses(self, name):
        lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
        return [entry["loss"] for entry in map(json.loads, lines) if entry["kind"] in ("training", "test")]

    def expect(self, what, is_so, shown=""):
        if not is_so:
            self.faults.append(f"{what}: {shown}")

    def expect_same(self, what, *options, **how):
        """In all orders. Returns the weights."""
        direct = self.weights(*options, **how)
        for order in ORDERS:
            found = self.weights(*options, order=order, **{**how, "name": None})
            self.expect(f"{what}, {order}", found == direct, f"{found}, directly {direct}")
        return direct

    def orders(self, precision):
        for micro_batches in 1, 2:
            options = ["--reduce", "mpi", "--precision", precision, "--accumulate", micro_batches]
            name = f"gpu{micro_batches}"
            self.expect_same(f"{precision}, {micro_batches} micro-batches", *options, name=name)
            self.run(*options, name=f"cpu{micro_batches}", device="cpu")
            on_gpu, on_cpu = self.losses(name), self.losses(f"cpu{micro_batches}")
            far = max(abs(one - other) for one, other in zip(on_gpu, on_cpu, strict=True))
            self.expect(f"losses, {precision}, {micro_batches} micro-batches", far < TOLERANCE[precision],
                        f"{on_gpu}, on the CPU {on_cpu}")
        self.expect_same(f"{precision}, muon", "--reduce", "mpi", "--precision", precision, "--optimizer", "muon", "--lr",
                         "0.02")

    def resume(self):
        options = ["--reduce", "mpi"]
        whole = self.weights(*options, name="whole", order="late")
        checkpoint = self.folder / "whole" / "checkpoints" / "step-000000000003.h5"
        rest = self.weights(*options, "--resume", checkpoint, order="early")
        self.expect("resume", rest == whole, f"{rest}, without an interruption {whole}")

    def ranks(self):
        self.expect_same("two ranks", "--reduce", "mpi", ranks=2)

    def find_faults(self):
        right = self.weights("--reduce", "mpi")
        for fault, finding in FAULTS.items():
            found = self.outcome("--reduce", "mpi", order="late", fault=fault)
            if finding == "bits":
                self.expect(fault, FINGERPRINT.fullmatch(found) and found != right, f"not found: {found}")
            else:
                self.expect(fault, finding in found, f"not found: {found}")


def main(programs, part, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(programs, pathlib.Path(folder))
        parts = {"orders": trainings.orders, "resume": trainings.resume, "ranks": trainings.ranks,
                 "faults": trainings.find_faults}
        parts[part](*arguments)
        print("\n".join(trainings.faults) or "all as expected")
        return 1 if trainings.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
