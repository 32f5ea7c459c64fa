#!/usr/bin/env python3
"""What becomes of job files as the platform's users write them: job_files_test.py BUILD

Each file of job_files begins with comments that say what `submit_job FILE --dry-run` does with it, and what a job of one
instance prints. Each file of slurm/examples has the options for a cluster without GPUs in a comment.

    # options: --set parameters.epochs=1      further options of submit_job (shell words)
    # profile: image.tf=/images/tf.sif        a line of the site profile
    # refused: TEXT                           the code is 2 and the message contains TEXT
    # warns: TEXT                             a warning contains TEXT; all other warnings fail the test
    # script: TEXT                            the script that sbatch would get contains the line TEXT
    # sinfo: cpu (null)                       a partition and its generic resources, as sinfo shows them
    # prints: TEXT                            the job runs, succeeds, and prints lines that end with these texts, in order
"""
import concurrent.futures
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hostile_values import PRETENDED, job_environment, pretend  # noqa: E402

KEYS = ("options", "profile", "refused", "warns", "script", "sinfo", "prints")
ALWAYS = ("no time limit", "options of sbatch: ")  # every file here leaves the limit to the partition


def expectations(file):
    stated = {key: [] for key in KEYS}
    for line in file.read_text().splitlines():
        key, _, text = line.removeprefix("# ").partition(": ")
        if not line.startswith("# ") or key not in KEYS:
            break
        stated[key].append(text)
    assert any(stated[key] for key in ("refused", "warns", "script", "prints")), f"{file.name} states nothing"
    return stated


# An sinfo that shows these lines, or those of its --partition.
def pretended_sinfo(lines):
    shown = "\n".join(lines)
    return f"""for word; do case $word in --partition=*) wanted=${{word#*=}} ;; esac; done
while read -r line; do
  if [ -z "${{wanted:-}}" ] || [ "$wanted" = "${{line%% *}}" ]; then echo "$line"; fi
done <<'LINES'
{shown}
LINES"""


def dry_run(submit_job, file, folder, options):
    words = [submit_job, file, "--dry-run", "--site", folder / "site.profile", *options]
    return subprocess.run(words, cwd=folder, env=job_environment(folder / "slurm"), capture_output=True, text=True,
                          timeout=60)


# Runs a script with the pretended Slurm.
def check_prints(file, folder, script, texts):
    ran = subprocess.run(["bash"], input=script, cwd=folder, env=job_environment(folder / "slurm"), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    said = f"{file.name}: code {ran.returncode}\n{ran.stdout}"
    assert ran.returncode == 0, said
    lines = iter(ran.stdout.splitlines())
    for text in texts:
        assert any(line.endswith(text) for line in lines), f"it does not print '{text}' at its place. {said}"


def check(submit_job, file, folder):
    stated = expectations(file)
    pretend(folder / "slurm", PRETENDED | ({"sinfo": pretended_sinfo(stated["sinfo"])} if stated["sinfo"] else {}))
    (folder / "site.profile").write_text("".join(line + "\n" for line in stated["profile"]))
    done = dry_run(submit_job, file, folder, [word for line in stated["options"] for word in shlex.split(line)])
    said = f"{file.name}: code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == (2 if stated["refused"] else 0), said
    for text in stated["refused"] + stated["warns"]:
        assert text in done.stderr, f"it does not say '{text}'. {said}"
    for line in done.stderr.splitlines():
        is_stated = any(text in line for text in (*ALWAYS, *stated["warns"]))
        assert stated["refused"] or is_stated, f"a warning that the file does not state. {said}"
    for text in stated["script"]:
        assert text in done.stdout.splitlines(), f"the script lacks '{text}'. {said}"
    if stated["prints"]:
        check_prints(file, folder, done.stdout, stated["prints"])


# On a cluster without GPUs, an example is refused, and runs with the options that its comment states.
def check_example(submit_job, file, folder):
    pretend(folder / "slurm", PRETENDED | {"sinfo": pretended_sinfo(["all* (null)"])})
    (folder / "site.profile").write_text("")
    refused = dry_run(submit_job, file, folder, [])
    options = [line for line in file.read_text().splitlines() if line.startswith("# On CPUs: ")][0].split()[3:]
    assert refused.returncode == 2 and " ".join(options[:2]) in refused.stderr, f"{file.name}: {refused.stderr}"
    done = dry_run(submit_job, file, folder, options)
    assert done.returncode == 0 and "#SBATCH --gpus" not in done.stdout, f"{file.name}: {done.stderr}"


def main(build):
    here = pathlib.Path(__file__).resolve().parent
    submit_job = pathlib.Path(build).resolve() / "bin" / "submit_job"
    rows = [(check, file) for file in sorted((here / "job_files").glob("*.yaml"))]
    examples = sorted((here.parents[2] / "slurm" / "examples").glob("*.yaml"))
    assert len(examples) == 6, examples
    rows += [(check_example, file) for file in examples]
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        def run(row):
            row[0](submit_job, row[1], pathlib.Path(tempfile.mkdtemp(dir=name)))
        list(pool.map(run, rows))
    print(f"{len(rows)} job files had the fate that they state")


if __name__ == "__main__":
    main(sys.argv[1])
