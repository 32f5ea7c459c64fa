#!/usr/bin/env python3
"""Each program that writes results refuses one file for two of them, and a file that it reads, before it works.

evaluate --json a --predictions a ended with 0 after the test, and one of the results was lost.

  result_options_of_programs_test.py FOLDER_OF_PROGRAMS
"""

import os
import pathlib
import subprocess
import sys
import tempfile

programs = pathlib.Path(sys.argv[1]).resolve()

# The program and its other arguments; two options that name results.
two_results = [
    (["evaluate", "--model-file", "m", "--data", "d"], "--json", "--predictions"),
    (["evaluate", "--model-file", "m", "--data", "d"], "--predictions", "--logits"),
    (["check_cluster"], "--write-floors", "--json"),
    (["export_model", "m"], "--onnx", "--safetensors"),
]
# The program; its argument or option that names what is read, as words; the option of the result.
inputs = [
    (["evaluate", "--data", "d"], "--model-file", "--json"),
    (["evaluate", "--model-file", "m"], "--data", "--logits"),
    (["predict"], "MODEL", "--predictions"),
    (["train_recommendation", "--max-steps", "1", "--output", "o"], "--pairs", "--predictions"),
    (["predict", "m"], "PICTURES", "--predictions"),
    (["predict", "m"], "--list", "--predictions"),
    (["predict", "m", "--model", "resnet18"], "--classes", "--predictions"),
    (["check_cluster"], "--floors", "--json"),
    (["check_cluster"], "--floors", "--write-floors"),
    (["report"], "RUN_FOLDER", "--output"),
    (["inspect"], "FILE", "--pictures"),
    (["export_model"], "MODEL", "--safetensors"),
    (["run_roles"], "ROLES", "--cluster"),
]


def require_refused(words, subjects):
    line = [programs / words[0], *words[1:]]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    result = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2 and all(subject in result.stderr for subject in subjects), (
        words, result.returncode, result.stderr)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for words, one, other in two_results:
        require_refused([*words, one, "a", other, "./a"], ["'a'", "'./a'", one, other])
    pathlib.Path("read").write_text("")
    for words, name, result in inputs:
        what = [name, "read"] if name.startswith("--") else ["read"]
        require_refused([*words, *what, result, "./read"], [f"'./read' of {result}", f"'read' of {name}"])
    assert os.listdir(".") == ["read"] and pathlib.Path("read").read_text() == "", os.listdir(".")
