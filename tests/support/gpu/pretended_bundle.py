"""What tests/gpu.sh is tested with: a bundle of small scripts in place of programs that want a GPU."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

TESTS = ["ops_test", "norm_test", "deferred_norm_test", "flat_passes_test", "sgd_rule_test", "adaptive_rule_test",
         "matrix_passes_test", "muon_test", "step_record_test", "layer_test", "layer_agreement_test", "golden_loss_test",
         "golden_test", "golden_optimizer_test", "onnx_numbers_test", "ema_test", "whole_step_test", "recorded_step_test"]
PROGRAMS = ["step_bench", "ops_bench", "describe_gpu", "write_pictures", "make_shards", "train_cifar", "train_imagenet", "evaluate"]
RUN = '#!/bin/bash\nexport PATH="$(dirname "$0")/bin:$PATH"\nexec "$@"\n'
# Leaves a checkpoint, of which a killed one takes its time to go on, and a summary.
TRAINED = """#!/bin/bash
echo "$*" >>"$(dirname "$0")/trainings"
for word; do case $last in --output) out=$word;; --virtual-ranks) again=1;; esac; last=$word; done
mkdir -p "$out"/checkpoints
FAULT
case $out in *killed) [ -e "$out"/checkpoints/step-20.h5 ] || { touch "$out"/checkpoints/step-20.h5; sleep 5; };; esac
echo "{\\"weights_hash\\": \\"${hash:-e2c4}\\"}" >"$out"/summary.json
echo "[rank 0, n1]  test accuracy 95.00 %  (60 samples)"
"""
# Reaches what its case says: 94.01 % with augmentation, unless FAULT says otherwise.
TRAINED_CIFAR = """#!/bin/bash
echo "$*" >>"$(dirname "$0")/accuracies"
for word; do case $last in --output) out=$word;; --data) data=$word;; esac; last=$word; done
[ -e "$data/train/manifest.json" ] || exit 3
mkdir -p "$out"
reached=0.9401 plain=0.932 state=done
FAULT
echo "{\\"state\\": \\"$state\\", \\"test_accuracy\\": 0.5, \\"ema_test_accuracy\\": $reached, \\"test_augment\\": \\"flip-shift\\",
  \\"plain_ema_test_accuracy\\": $plain, \\"training_seconds\\": 21.26}" >"$out"/summary.json
"""
PASSES = {"benchmarks": [{"name": "copy/bf16/1x2x3x4/iterations:5", "GB_per_second": 4000.4, "of_copy": 1.0},
                         {"name": "add/bf16/1x2x3x4/iterations:5", "GB_per_second": 3600.0, "of_copy": 0.9}]}
TESTED = '#!/bin/bash\necho "top-1    95.00 %"\n'
MPIRUN = '#!/bin/bash\n[ "$1" = -n ] && export RANKS=$2 && shift 2\nexec "$@"\n'
FIGURES = {"samples_per_second": 300.5, "first_step_seconds": 1.25, "step_ms_median": 1e3, "device_memory_bytes": 1 << 30,
           "device": "cuda: a GPU"}
FIRST_STEPS = {"first_step_seconds_cold": 9.5, "first_step_seconds_warm": 3.5}
PEER_FIGURES = FIGURES | {"samples_per_second": 200, "peak_memory_bytes": 1 << 30, "versions": {"torch": "2"}}
# Four tests, of which each does what the body of a `case "$test"` says: nothing, or something that keeps it from passing.
TEST_PROGRAM = """#!/bin/bash
name=$(basename "$0")
[ "$1" = --gtest_list_tests ] && { LISTING; }
for test in Devices/$name.{adds,breaks,copies,divides}/cuda; do
  case "$*" in *'*/cuda'* | *"=$test") ;; *) continue;; esac
  echo "[ RUN      ] $test"
  result=OK
  case "$test" in BODY
  esac
  [ $result = OK ] && echo "[       OK ] $test (1 ms)" || echo "[  FAILED  ] $test, where GetParam() = 1 (1 ms)"
done
END
"""
LISTING = r"""printf 'Devices/%s.\n' "$name"; printf '  %s/cuda  # GetParam() = cuda\n' adds breaks copies divides; exit"""


def test_program(body="", listing=LISTING, end=""):
    return TEST_PROGRAM.replace("BODY", body).replace("LISTING", listing).replace("END", end)


def echo(figures):
    """As step_bench prints them, without spaces."""
    return f"""echo '{json.dumps(figures, separators=(",", ":"))}'"""


def training(fault=""):
    return TRAINED.replace("FAULT", fault)


def accuracy(fault=""):
    return TRAINED_CIFAR.replace("FAULT", fault)


def ops_bench(fault=""):
    return f"""#!/bin/bash\n{fault}
for word; do case $word in --benchmark_out=*) {echo(PASSES)} >"${{word#*=}}";; esac; done\n"""


def step_bench(fault="", nccl="2.28.9"):
    return f"""#!/bin/bash\necho "$*" >>"$(dirname "$0")/calls"\n{fault}
case "$*" in *--first-step*) {echo(FIRST_STEPS)};; *--version*) echo 'NCCL           {nccl}';; *) {echo(FIGURES)};; esac\n"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Bundle:
    """A copy of the script with a bundle of its own."""

    def __init__(self, source):
        self.folder = tempfile.TemporaryDirectory(prefix="gpu script ")
        self.root = pathlib.Path(self.folder.name)
        (self.root / "tests").mkdir()
        for name in ("tests/bundle.sh", "tests/support", "bench"):
            (self.root / name).symlink_to(source / name)
        # No link: it would be written through, under the eyes of a test that runs beside this one.
        write(self.root / "tests" / "gpu.sh", (source / "tests" / "gpu.sh").read_text(encoding="utf-8"))
        self.path = self.root / "build" / "gpu_bundle"
        write(self.path / "run", RUN)
        write(self.path / "bin" / "mpirun", MPIRUN)
        self.program("step_bench", step_bench())
        for name in ("write_pictures", "make_shards"):
            self.program(name, "#!/bin/bash\n")
        self.program("train_imagenet", training())
        self.program("train_cifar", accuracy())
        self.program("ops_bench", ops_bench())
        self.program("describe_gpu", """#!/bin/bash\necho '{"deviceVer": 900}'\n""")
        self.program("evaluate", TESTED)
        for name in TESTS:
            self.program(name, test_program())
        self.out = self.root / "results"

    def carried(self, name="an archive"):
        """As after it was unpacked: only then are rows kept."""
        (self.path / ".archive").write_text(f"{name}\n", encoding="utf-8")

    def program(self, name, text):
        write(self.path / "bin" / name, text)

    def tool(self, name, text):
        """A program of the machine. There is no other of its name where CUDA's lie."""
        write(self.root / "bin" / name, "#!/bin/bash\n" + text)

    def words(self, *options):
        return [self.root / "tests" / "gpu.sh", "run", *options, "--out", self.out]

    def run(self, *options, **environment):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(self.words(*options), capture_output=True, text=True, check=False, timeout=100,
                              env=os.environ | {"PATH": path} | environment)

    def result(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def calls(self):
        return (self.path / "bin" / "calls").read_text(encoding="utf-8").splitlines()


def rows_of(table):
    """{name: result}"""
    found = re.findall(r"^\| (.*?) +\| (.*?) +\|$", table, re.MULTILINE)
    return {name.strip(): result for name, result in found}


def running(words):
    """Whether a process with these words is there."""
    return subprocess.run(["pgrep", "--full", words], capture_output=True, check=False).returncode == 0
