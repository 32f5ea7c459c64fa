#!/usr/bin/env python3
"""What becomes of job files as the platform's users write them: job_files_test.py BUILD

Each file of job_files begins with comments that say what `submit_job FILE --dry-run` does with it:

    # options: --set parameters.epochs=1      further options of submit_job (shell words)
    # profile: image.tf=/images/tf.sif        a line of the site profile
    # refused: TEXT                           the code is 2 and the message contains TEXT
    # warns: TEXT                             a warning contains TEXT; all other warnings fail the test
    # script: TEXT                            the script that sbatch would get contains the line TEXT
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hostile_values import PRETENDED, job_environment, pretend  # noqa: E402

KEYS = ("options", "profile", "refused", "warns", "script")
NO_TIME = "no time limit"  # every file here leaves it to the partition


def expectations(file):
    stated = {key: [] for key in KEYS}
    for line in file.read_text().splitlines():
        key, _, text = line.removeprefix("# ").partition(": ")
        if not line.startswith("# ") or key not in KEYS:
            break
        stated[key].append(text)
    assert any(stated[key] for key in ("refused", "warns", "script")), f"{file.name} states nothing"
    return stated


def check(submit_job, file, folder):
    stated = expectations(file)
    pretend(folder / "slurm", PRETENDED)
    (folder / "site.profile").write_text("".join(line + "\n" for line in stated["profile"]))
    words = [submit_job, file, "--dry-run", "--site", folder / "site.profile",
             *(word for line in stated["options"] for word in shlex.split(line))]
    done = subprocess.run(words, cwd=folder, env=job_environment(folder / "slurm"), capture_output=True, text=True,
                          timeout=60)
    said = f"{file.name}: code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == (2 if stated["refused"] else 0), said
    for text in stated["refused"] + stated["warns"]:
        assert text in done.stderr, f"it does not say '{text}'. {said}"
    for line in done.stderr.splitlines():
        is_stated = NO_TIME in line or any(text in line for text in stated["warns"])
        assert stated["refused"] or is_stated, f"a warning that the file does not state. {said}"
    for text in stated["script"]:
        assert text in done.stdout.splitlines(), f"the script lacks '{text}'. {said}"


def main(build):
    files = sorted((pathlib.Path(__file__).resolve().parent / "job_files").glob("*.yaml"))
    with tempfile.TemporaryDirectory() as name:
        for file in files:
            folder = pathlib.Path(name) / file.stem
            folder.mkdir()
            check(pathlib.Path(build).resolve() / "bin" / "submit_job", file, folder)
    print(f"{len(files)} job files had the fate that they state")


if __name__ == "__main__":
    main(sys.argv[1])
