#!/usr/bin/env python3
"""evaluate --follow scores each checkpoint of a training as it appears: follow_test.py BIN PAGE

Its accuracy for a checkpoint is the one that the training itself has measured there. Started anew it adds nothing,
unless data or options differ. The fields of its list are those of PAGE.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from written_fields_test import tables


def follow(programs, run, data, *options, ranks=1):
    command = [f"{programs}/evaluate", "--follow", str(run), "--data", str(data), "--device", "cpu", "--threads", "1",
               *options]
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    return subprocess.Popen(mpirun + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main(programs, page):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data, run = folder / "data", folder / "run with spaces"
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "400", "--output", data], check=True,
                       stdout=subprocess.DEVNULL)
        (folder / "search").mkdir()
        (folder / "search" / "search.jsonl").write_text("{}\n")
        for place, reason in ((data, "contains no training"), (folder / "search", "contains a search")):
            words, _ = (refused := follow(programs, place, data)).communicate(timeout=60)
            assert refused.returncode == 2 and reason in words, words
        follower = follow(programs, run, data)
        waits = f"'{run}' "
        lines = [follower.stdout.readline() for _ in range(2)]
        assert waits in lines[1], lines
        subprocess.run([f"{programs}/train_cifar", "--data", data, "--output", run, "--model", "lenet", "--epochs", "4",
                        "--global-batch", "20", "--device", "cpu", "--threads", "1", "--keep-latest", "9"], check=True,
                       stdout=subprocess.DEVNULL)
        words, _ = follower.communicate(timeout=100)
        assert follower.returncode == 0, words
        assert "(done)" in words, words
        assert "waiting" not in words, words

        file = folder / "run with spaces.evaluations.test.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        tests = {line["step"]: line for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
                 if line["kind"] == "test"}
        scored = {line["step"]: line for line in lines}
        # One that is due while another is being written comes some steps late, where nothing was tested.
        files = {int(file.stem.removeprefix("step-")) for file in (run / "checkpoints").glob("step-*.h5")}
        assert len(scored) == len(lines) and set(scored) == files, (sorted(scored), sorted(files))
        both = set(tests) & files
        assert max(tests) in both, (sorted(tests), sorted(files))
        for step, test in ((step, tests[step]) for step in both):
            for field in ("accuracy", "loss", "top5", "samples"):
                assert scored[step][field] == test[field], (step, field, scored[step], test)
        named = tables(pathlib.Path(page))["FOLDER.evaluations.SPLIT.jsonl"] - {"plain_accuracy"}
        assert set(lines[0]) == named, (sorted(lines[0]), sorted(named))

        before = file.read_text()
        again = follow(programs, run, data, ranks=2)
        words, _ = again.communicate(timeout=100)
        assert again.returncode == 0 and file.read_text() == before, words
        file.write_text(before.splitlines()[0] + "\n")
        again = follow(programs, run, data, ranks=2)
        words, _ = again.communicate(timeout=100)
        found = {line["step"]: line["accuracy"] for line in map(json.loads, file.read_text().splitlines())}
        assert again.returncode == 0, words
        assert found == {step: line["accuracy"] for step, line in scored.items()}, words
        other = folder / "other data"
        subprocess.run([f"{programs}/make_shards", "synthetic", "--samples", "60", "--output", other], check=True,
                       stdout=subprocess.DEVNULL)
        for place, options in ((other, ()), (data, ("--test-augment", "flip"))):
            before = file.read_text()
            words, _ = (again := follow(programs, run, place, *options)).communicate(timeout=100)
            assert again.returncode == 0, words
            added = [json.loads(line) for line in file.read_text().removeprefix(before).splitlines()]
            assert {line["step"] for line in added} == files, (options, words)
            assert {line["samples"] for line in added} == {scored[max(files)]["samples"] if options else 12}, added
        file.write_text(file.read_text().splitlines()[0] + "\n")

        run.rename(folder / "moved")
        words, _ = (moved := follow(programs, folder / "moved", data)).communicate(timeout=100)
        assert moved.returncode == 0, words
        list_of_moved = folder / "moved.evaluations.test.jsonl"
        assert [json.loads(line)["weights_hash"] for line in list_of_moved.read_text().splitlines()] == [
            line["weights_hash"] for line in lines], words
        (folder / "moved" / "checkpoints").rename(folder / "checkpoints elsewhere")
        words, _ = (bare := follow(programs, folder / "moved", data)).communicate(timeout=100)
        assert bare.returncode == 2, words
        assert f"'{folder}/moved/checkpoints'" in words, words
        foreign = folder / "other.evaluations.test.jsonl"
        foreign.write_text("notes\n")
        words, _ = (refused := follow(programs, folder / "other", data)).communicate(timeout=100)
        assert refused.returncode == 2 and foreign.read_text() == "notes\n", words
        assert f"'{foreign}'" in words, words
        words, _ = (of_file := follow(programs, file, data)).communicate(timeout=100)
        assert of_file.returncode == 2, words
        assert f"'{file}'" in words and "--follow" in words, words

        neither = subprocess.run([f"{programs}/evaluate", "--data", data], capture_output=True, text=True, check=False)
        assert neither.returncode == 2, neither
        assert "--model-file" in neither.stderr and "--follow" in neither.stderr, neither
    print("each checkpoint was scored once, as the training had scored it")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
