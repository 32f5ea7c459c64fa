#!/usr/bin/env python3
"""train_recommendation, on synthetic ratings and on MovieLens in both forms: recommendation_test.py BIN_FOLDER

The same models on one and two ranks and after an interruption, predictions of the best one, and refusals, after which
everything is as it was.
"""
import errno
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()
SMALL = ["--width", "8", "--global-batch", "100", "--virtual-ranks", "4", "--lr", "0.01"]
SYNTHETIC = ["--users", "40", "--movies", "30", "--ratings", "1000"]  # 9 steps per pass
USERS, MOVIES, RATINGS = 30, 20, 600
faults = []


def expect(what, is_so, shown=""):
    if not is_so:
        faults.append(f"{what}: {shown}")


def command(program, *words, ranks=1):
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    return [*launcher, str(BIN / program), *[str(word) for word in words]]


def run(program, *words, ranks=1, code=0, **how):
    result = subprocess.run(command(program, *words, ranks=ranks), capture_output=True, text=True, timeout=300, check=False,
                            **how)
    expect(f"{program} {' '.join(map(str, words))}: code {result.returncode}, not {code}", result.returncode == code,
           result.stdout[-2000:] + result.stderr[-2000:])
    return result.stdout + result.stderr


def refused(code, subjects, program, *words):
    said = run(program, *words, code=code)
    for subject in subjects:
        expect(f"{program} {' '.join(map(str, words))}: no '{subject}'", subject in said, said)


def contents(folder):
    """Of all files but those that a refused start may write."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.name not in ("lock", "failure.json")}


def expect_same_files(folder, before):
    after = contents(folder)
    differ = sorted(str(file) for file in before.keys() | after.keys() if before.get(file) != after.get(file))
    expect("files that a refused start has changed", not differ, differ)


def models(folder):
    return {file.name: file.read_bytes() for file in folder.glob("*.h5")}


def metrics(folder):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def fill_disk(room=8000):
    """Limits files of the process, by default to a size at which metrics fit, but no checkpoint and no model."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))


def a_full_disk_does_not_end_a_training(folder):
    train = [*SMALL, *SYNTHETIC, "--max-steps", 18]
    run("train_recommendation", *train, "--output", folder / "roomy")
    said = run("train_recommendation", *train, "--output", folder / "full", code=1, preexec_fn=fill_disk, restore_signals=False)
    for words in ("the checkpoint of step 9 was not written", "pass-00002.h5' was not written", "no model could be written"):
        expect(f"no '{words}'", words in said, said)
    # A search stops for such an end, and otherwise counts the trial as failed for good.
    sentence = json.loads((folder / "full" / "failure.json").read_text())["sentence"]
    expect("the failure names the cause", os.strerror(errno.EFBIG) in sentence, sentence)
    expect("a model on a full disk", models(folder / "full") == {}, list(models(folder / "full")))
    expect("metrics on a full disk", metrics(folder / "full")[:2] == metrics(folder / "roomy")[:2], metrics(folder / "full"))
    run("train_recommendation", *train, "--output", folder / "full")
    expect("models once there is room", models(folder / "full") == models(folder / "roomy"))


def predictions_without_room_leave_the_training_done(folder):
    """It was marked as failed, although its models and its checkpoint were written."""
    (folder / "many_pairs").write_text("1,1\n" * 200_000)
    output, table = folder / "predicting", folder / "many.csv"
    train = [*SMALL, *SYNTHETIC, "--max-steps", 18, "--output", output, "--pairs", folder / "many_pairs", "--predictions", table]
    run("train_recommendation", *train, code=2, preexec_fn=lambda: fill_disk(2_000_000), restore_signals=False)
    sentence = json.loads((output / "failure.json").read_text())["sentence"]
    expect("the failure names the predictions", f"predictions could not be written: cannot write '{table}'" in sentence, sentence)
    expect("the training is done", json.loads((output / "summary.json").read_text())["state"] == "done")
    before = contents(output)
    run("train_recommendation", *train)
    expect("predictions once there is room", table.exists())
    expect_same_files(output, before)


def interrupted_runs_have_the_same_models(folder):
    train = [*SMALL, *SYNTHETIC, "--report-every", 5, "--max-steps", 25]
    run("train_recommendation", *train, "--output", folder / "whole")
    expect("models", set(models(folder / "whole")) == {"pass-00001.h5", "pass-00002.h5", "step-00000025.h5"},
           sorted(models(folder / "whole")))
    run("train_recommendation", *train, "--output", folder / "two", ranks=2)
    expect("two ranks have other models", models(folder / "two") == models(folder / "whole"))
    expect("two ranks have other metrics", metrics(folder / "two") == metrics(folder / "whole"))

    # Stops after its first checkpoint, then goes on with two ranks.
    stopped = folder / "stopped"
    long = [*SMALL, *SYNTHETIC, "--report-every", 5, "--checkpoint-every", 1]
    process = subprocess.Popen(command("train_recommendation", *long, "--max-steps", 1_000_000, "--output", stopped),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 60
    while not list(stopped.glob("checkpoints/step-*.h5")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    expect("a stopped run ends with 75", process.returncode == 75, said)
    last = max(int(file.stem[5:]) for file in stopped.glob("checkpoints/step-*.h5"))
    until = last + 20
    run("train_recommendation", *long, "--max-steps", until, "--output", stopped, ranks=2)
    run("train_recommendation", *long, "--max-steps", until, "--output", folder / "compared")
    expect("a resumed run has another last model",
           models(stopped)[f"step-{until:08}.h5" if until % 9 else f"pass-{until // 9:05}.h5"] ==
           models(folder / "compared")[f"step-{until:08}.h5" if until % 9 else f"pass-{until // 9:05}.h5"])
    # A checkpoint of another folder, whose best model is not in this one, with no step left.
    said = run("train_recommendation", *train, "--output", folder / "other", "--resume",
               folder / "whole/checkpoints/step-000000000025.h5")
    expect("an absent best model is not named", "is absent" in said, said)
    expect("the model of another folder's checkpoint",
           models(folder / "other") == {"step-00000025.h5": models(folder / "whole")["step-00000025.h5"]},
           sorted(models(folder / "other")))
    refused(2, ["--lr", "0.01", "0.02"], "train_recommendation", *SMALL[:-1], "0.02", *SYNTHETIC, "--max-steps", until,
            "--output", stopped)


def another_trainings_results_are_set_aside(folder):
    """By --resume with its checkpoint, a training mixed its results with those that were in its folder, and lost some."""
    train = [*SMALL, *SYNTHETIC, "--report-every", 5, "--max-steps", 25]
    output = folder / "taken"
    run("train_recommendation", *train, "--seed", 2, "--output", output)
    before = contents(output)
    said = run("train_recommendation", *train, "--output", output, "--resume",
               folder / "stopped_early/checkpoints/step-000000000018.h5")
    expect("an absent best model is not named", "is absent" in said, said)
    expect("results set aside", {file.name: content for file, content in before.items() if "checkpoints" not in file.parts} ==
           {file.name: content for file, content in contents(output / "set-aside-1").items()}, said)
    expect("checkpoints set aside", {file.name: content for file, content in before.items() if "checkpoints" in file.parts} ==
           {file.name: content for file, content in contents(output / "checkpoints/set-aside-1").items()}, said)
    expect("models", models(output) == {"step-00000025.h5": models(folder / "whole")["step-00000025.h5"]}, sorted(models(output)))
    expect("metrics", metrics(output) == metrics(folder / "whole")[-len(metrics(output)):], metrics(output))


def write_movielens(folder):
    """Both forms of the same ratings."""
    draw = random.Random(1)
    colons, tabs = folder / "ml-1m", folder / "ml-100k"
    for form in (colons, tabs):
        form.mkdir()
    (colons / "users.dat").write_text("".join(f"{user}::{'FM'[user % 2]}::25::{user % 21}::1\n" for user in range(1, USERS + 1)))
    (tabs / "u.user").write_text("".join(f"{user}|27|{'FM'[user % 2]}|job{user % 21}|1\n" for user in range(1, USERS + 1)))
    titles = ["Caf\u00e9 (1990)", *(f"Movie {movie} ({1990 + movie})" for movie in range(2, MOVIES + 1))]
    (colons / "movies.dat").write_text("".join(f"{movie}::{titles[movie - 1]}::Drama|Comedy\n" for movie in range(1, MOVIES + 1)),
                                       encoding="latin-1")
    (tabs / "u.item").write_text("".join(f"{movie}|{titles[movie - 1]}|1||" + "|0|0|0|0|0|1" + "|0" * 13 + "\n"
                                         for movie in range(1, MOVIES + 1)), encoding="latin-1")
    ratings = [(draw.randint(1, USERS), draw.randint(1, MOVIES), draw.randint(1, 5)) for _ in range(RATINGS)]
    (colons / "ratings.dat").write_text("".join(f"{u}::{m}::{r}::9783\n" for u, m, r in ratings))
    (tabs / "u.data").write_text("".join(f"{u}\t{m}\t{r}\t9783\n" for u, m, r in ratings))
    return colons, tabs


def movielens_is_trained(folder):
    (folder / "pairs").write_text("1,1\n30,20\n1,1\n")
    for form in write_movielens(folder):
        shards = folder / f"{form.name}-shards"
        run("make_shards", "movielens", "--source", form, "--output", shards, "--samples-per-shard", 200, ranks=2)
        expect("shards", (shards / "train-00002.h5").exists(), sorted(shards.iterdir()))
        expect("verify", "are intact" in run("make_shards", "verify", shards))
        output, table = folder / f"{form.name}-run", folder / f"{form.name}.csv"
        train = [*SMALL, "--data", shards, "--output", output, "--pairs", folder / "pairs", "--predictions", table]
        run("train_recommendation", *train, "--max-steps", 12, ranks=2)
        lines = table.read_text().splitlines()
        expect("predictions", lines[0] == "user,movie,stars" and [line.rsplit(",", 1)[0] for line in lines[1:]] ==
               ["1,1", "30,20", "1,1"] and lines[1] == lines[3], lines)
        expect("stars", all(0 <= float(line.rsplit(",", 1)[1]) <= 5 for line in lines[1:]), lines)
        written, summary = table.stat().st_mtime_ns, (output / "summary.json").read_text()
        expect("validation", json.loads(summary)["validation_metrics"], summary)
        said = run("train_recommendation", *train, "--max-steps", 12)
        expect("a done run keeps its summary", (output / "summary.json").read_text() == summary, summary)
        expect("a done run predicts again", table.read_text().splitlines() == lines and table.stat().st_mtime_ns > written, said)
    return folder / "ml-1m", shards, output


def foreign_files_are_refused(folder, source, shards, output):
    before, results = {file: file.read_bytes() for file in shards.iterdir()}, contents(output)
    refused(2, ["already has ratings"], "make_shards", "movielens", "--source", source, "--output", shards)
    with open(source / "ratings.dat", "a", encoding="ascii") as file:
        file.write("1,1,5,9783\n")
    refused(65, ["line 601", "ratings.dat"], "make_shards", "movielens", "--source", source, "--output", folder / "new")
    expect("a refused conversion writes nothing", not (folder / "new").exists())
    (folder / "beyond").write_text("1,1\n31,1\n")
    train = ["train_recommendation", *SMALL, "--data", shards, "--max-steps", 20, "--output", output]
    refused(65, ["line 2", "31,1"], *train, "--pairs", folder / "beyond", "--predictions", folder / "p.csv")
    refused(2, ["--device", "cuda", "CPUs only"], *train, "--device", "cuda")
    refused(2, ["adagrad", "--weight-decay"], *train[:1], *SMALL, "--optimizer", "adagrad", "--weight-decay", "0.1",
            "--max-steps", 1, "--output", folder / "none")
    refused(2, ["other ratings"], "train_recommendation", *SMALL, "--data", folder / "ml-1m-shards", "--max-steps", 20,
            "--output", output)
    for model in output.glob("*.h5"):
        model.write_bytes(results[model][:-200])
    refused(65, ["pass-0000"], "train_recommendation", *SMALL, "--data", shards, "--max-steps", 12, "--output", output, "--pairs",
            folder / "pairs", "--predictions", folder / "p.csv")
    last = output / "pass-00002.h5"
    for model in output.glob("*.h5"):  # each in the place of the other
        model.write_bytes(results[last if model != last else output / "pass-00001.h5"])
    refused(65, ["pass-0000", "is not the model of step"], "train_recommendation", *SMALL, "--data", shards, "--max-steps", 12,
            "--output", output, "--pairs", folder / "pairs", "--predictions", folder / "p.csv")
    for model in output.glob("*.h5"):
        model.write_bytes(results[model])
    (folder / "no_line").write_text("")
    refused(65, ["no_line", "is empty"], *train, "--pairs", folder / "no_line", "--predictions", folder / "p.csv")
    expect_same_files(output, results)
    expect("refusals change no shards", before == {file: file.read_bytes() for file in before})
    (shards / "train-00001.h5").write_bytes(before[shards / "train-00000.h5"])
    refused(65, ["train-00001.h5", "has changed"], *train)
    refused(65, ["train-00001.h5", "has changed"], "make_shards", "verify", shards)


def results_stay_when_a_start_is_refused(folder):
    """A start that was refused set earlier results aside, or marked them as failed."""
    train = ["train_recommendation", *SMALL, *SYNTHETIC, "--max-steps", 25, "--output", folder / "whole"]
    (folder / "no_pairs").write_text("1,1\nuser\n")
    before = contents(folder / "whole")
    refused(2, ["1 server"], *train, "--sync", "ps", "--resume", "never")
    refused(2, ["--virtual-ranks"], *train[:1], "--virtual-ranks", "0", *train[1:])
    refused(65, ["line 2"], *train, "--pairs", folder / "no_pairs", "--predictions", folder / "p.csv")
    refused(2, ["warm-up of 891 steps"], *train, "--warmup", "99", "--resume", "never")
    expect_same_files(folder / "whole", before)


def a_new_training_sets_earlier_models_aside(folder):
    output, earlier = folder / "two", models(folder / "two")
    train = ["train_recommendation", *SMALL, *SYNTHETIC, "--report-every", 5, "--output", output]
    said = run(*train, "--max-steps", 9, "--resume", "never")
    expect("earlier results are not named", "set-aside-1" in said, said)
    expect("models of a new training", set(models(output)) == {"pass-00001.h5"}, sorted(models(output)))
    expect("models set aside", models(output / "set-aside-1") == earlier, sorted(models(output / "set-aside-1")))
    run(*train, "--max-steps", 18)
    expect("a resumed training lists earlier models", json.loads((output / "summary.json").read_text())["results"] ==
           ["pass-00001.h5", "pass-00002.h5"], (output / "summary.json").read_text())


with tempfile.TemporaryDirectory() as name:
    os.environ["OMPI_MCA_mpi_yield_when_idle"] = "1"
    place = pathlib.Path(name)
    a_full_disk_does_not_end_a_training(place)
    predictions_without_room_leave_the_training_done(place)
    interrupted_runs_have_the_same_models(place)
    run("train_recommendation", *SMALL, *SYNTHETIC, "--max-steps", 18, "--output", place / "stopped_early")
    another_trainings_results_are_set_aside(place)
    results_stay_when_a_start_is_refused(place)
    a_new_training_sets_earlier_models_aside(place)
    foreign_files_are_refused(place, *movielens_is_trained(place))
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
