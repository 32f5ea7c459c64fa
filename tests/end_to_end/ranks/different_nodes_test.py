#!/usr/bin/env python3
"""Two nodes that do not have the same program, options, data or weights: different_nodes_test.py PROGRAMS

Programs computed on a mixture and ended with 0; their summaries had the hashes of rank 0's node alone. Now each refuses
with code 2, and names the node and what differs. Node n2 sees other files under the same paths (mount namespaces).
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "support"
sys.path[:0] = [str(SUPPORT / "network")]
import two_nodes  # noqa: E402

ADVICE = "run_on_nodes --dispatch"


def fail(words, log=""):
    sys.exit(f"failed: {words}\n{log}")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=100,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


class Nodes:
    """Runs programs on n1 and n2; `folder` has the files of both."""

    def __init__(self, folder, programs):
        self.folder = folder
        self.programs = programs

    def prepare(self, name, *command):
        code, log = run(self.programs / name, *command)
        if code != 0:
            fail(f"{name} {command} ended with {code}", log)

    def on_both(self, folders_of_n2, *command):
        os.environ.update(two_nodes.settings(self.folder, folders_of_n2))
        program, *arguments = command
        return run(*two_nodes.under_mpirun(), self.programs / program, *arguments)

    def expect_refusal(self, what, folders_of_n2, sentence, *command):
        code, log = self.on_both(folders_of_n2, *command)
        words = " ".join(log.split())
        if code != 2:
            fail(f"{what}: code {code} and not 2", log)
        if any(part not in words for part in sentence):
            fail(f"{what}: not told in the words {sentence}", log)


def root_hash(data):
    text = (data / "manifest.json").read_text()
    return text[text.index('"root_hash"'):].split('"')[3]


def training(nodes, output, data="data"):
    return ["train_cifar", "--data", nodes.folder / data, "--model", "lenet", "--epochs", "1", "--global-batch", "40",
            "--threads", "1", "--output", nodes.folder / output]


def test_data(nodes):
    folder = nodes.folder
    nodes.prepare("make_shards", "synthetic", "--samples", "200", "--output", folder / "data")
    nodes.prepare("make_shards", "synthetic", "--samples", "200", "--seed", "7", "--output", folder / "other")
    nodes.prepare("make_shards", "synthetic", "--samples", "200", "--validation", "40", "--output", folder / "split")
    differs = {folder / "data": folder / "other"}
    sentence = [f"do not have the same data set '{folder}/data/train' (--data):", "on n1 (rank 0)",
                f"200 samples with the root hash {root_hash(folder / 'other/train')} on n2 (rank 1)", ADVICE]
    nodes.expect_refusal("a training on different data", differs, sentence, *training(nodes, "mixture"))
    if (folder / "mixture" / "metrics.jsonl").exists():
        fail("the refused training wrote metrics")
    nodes.expect_refusal("a study of different data", differs, sentence, "scaling_study", "--model", "lenet", "--data",
                         folder / "data", "--output", folder / "study")
    nodes.expect_refusal("validation samples on one node alone", {folder / "split": folder / "data"},
                         [f"do not have the same data set '{folder}/split/train' (--data):", "160 samples", "200 samples"],
                         *training(nodes, "split_run", "split"))


def test_models(nodes):
    """With the data that test_data() made."""
    folder = nodes.folder
    for seed in (1, 2):
        nodes.prepare(*training(nodes, f"run{seed}"), "--seed", seed)
    model = folder / "run1/model.h5"
    differs = {model: folder / "run2/model.h5"}
    nodes.expect_refusal("different initial weights", differs,
                         [f"do not have the same weights in '{model}' (--init-from): hash", "on n1 (rank 0)", "on n2 (rank 1)", ADVICE],
                         *training(nodes, "finetuned"), "--init-from", model)
    sentence = [f"do not have the same model '{model}' (", "hash", "on n2 (rank 1)", ADVICE]
    nodes.expect_refusal("an evaluation of different models", differs, sentence, "evaluate", "--model-file", model,
                         "--data", folder / "data")
    nodes.expect_refusal("an evaluation on different data", {folder / "data": folder / "other"},
                         [f"do not have the same data set '{folder}/data/test' (--data): 40 samples"], "evaluate",
                         "--model-file", model, "--data", folder / "data")
    pictures = folder / "pictures" / "class 0"
    nodes.expect_refusal("a prediction by different models", differs, sentence, "predict", model, pictures)
    changed = folder / "changed.jpg"
    changed.write_bytes((pictures / "0.jpg").read_bytes() + b"x")
    nodes.expect_refusal("a prediction of different pictures", {pictures / "0.jpg": changed},
                         [f"'{pictures}/0.jpg' (PICTURES) has {changed.stat().st_size} bytes on n2 (rank 1), but has "
                          f"{changed.stat().st_size - 1} bytes on the node of rank 0", ADVICE],
                         "predict", model, pictures)
    code, log = nodes.on_both({}, "predict", model, pictures)
    if code != 0:
        fail(f"a prediction of the same pictures ended with {code}", log)


def test_sources(nodes):
    folder = nodes.folder
    source = folder / "pictures"
    output = folder / "shards"
    (folder / "empty").mkdir()
    nodes.expect_refusal("pictures that one node lacks", {source / "class 1": folder / "empty"},
                         [f"'{source}/class 1/", "cannot be found on n2 (rank 1), but has", ADVICE], "make_shards",
                         "images", "--source", source, "--output", output)
    if output.exists():
        fail("the refused conversion wrote shards")
    for name, label in (("cifar", 1), ("cifar_n2", 2)):
        (folder / name).mkdir()
        for batch in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"):
            (folder / name / f"{batch}.bin").write_bytes((bytes([label]) + bytes(3072)) * 2)
    nodes.expect_refusal("different batches of CIFAR-10", {folder / "cifar": folder / "cifar_n2"},
                         ["do not have the same source files: 10 and 2 samples, hash"], "make_shards", "cifar10",
                         "--source", folder / "cifar", "--output", output)


def test_programs(nodes):
    programs = nodes.programs
    other = nodes.folder / "train_cifar"
    original = (programs / "train_cifar").read_bytes()
    if original.count(b", g++ ") == 0:
        fail("the program does not say what it was built by")
    other.write_bytes(original.replace(b", g++ ", b", gXX "))
    other.chmod(0o755)
    nodes.expect_refusal("different versions", {programs / "train_cifar": other},
                         ["do not have the same program: train_cifar 0.1", "gXX", "on n2 (rank 1)",
                          "Install the same version on all nodes"], *training(nodes, "versions"))


def test_command_lines(nodes):
    """A launcher may give each rank a command line of its own. One with a mistake made all ranks hang without a word."""
    os.environ.update(two_nodes.settings(nodes.folder))
    launcher = two_nodes.under_mpirun()[:-4]
    two_commands = ["--host", "n1", "-n", "1", "hostname", ":", "--host", "n2", "-n", "1", "hostname"]
    code, log = run(*launcher, *two_commands)
    if code != 0 or sorted(log.split()) != ["n1", "n2"]:
        print(f"left out: command lines that differ, because this mpirun starts no two commands on two nodes\n{log}")
        return
    program, *options = training(nodes, "options")
    for more, sentence in (
            (["--lr", "0.2"], "do not have the same --lr: 0.2 on n2 (rank 1); none on n1 (rank 0)."),
            (["--bogus"], "do not have the same command line: unknown option '--bogus' on n2 (rank 1); "
                          "a valid one on n1 (rank 0)."),
            (["--help"], "do not have the same command line: --help on n2 (rank 1)")):
        code, log = run(*launcher, "--host", "n1", "-n", "1", nodes.programs / program, *options, ":", "--host", "n2",
                        "-n", "1", nodes.programs / program, *options, *more)
        if code != 2 or sentence not in " ".join(log.split()):
            fail(f"{more} on one rank: code {code} and not '{sentence}'", log)


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="ls") as name:
        folder = pathlib.Path(name)
        os.environ.update(two_nodes.settings(folder))
        code, log = run(*two_nodes.under_mpirun(), "hostname")
        if code != 0 or sorted(log.split()) != ["n1", "n2"]:
            print(f"skipped: this mpirun makes no two nodes of one machine\n{log}")
            sys.exit(77)
        nodes = Nodes(folder, programs)
        nodes.prepare("write_pictures", folder / "pictures", "12")
        for test in (test_data, test_models, test_sources, test_programs, test_command_lines):
            test(nodes)
    print("passed: programs, options, data, pictures and weights that differ between nodes are refused")


if __name__ == "__main__":
    main()
