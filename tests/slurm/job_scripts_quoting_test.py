#!/usr/bin/env python3
"""Arguments of a job script are themselves, whatever they hold: job_scripts_quoting_test.py BUILD

1,000 generated arguments, with names of jobs, folders of programs, results, logs and verdicts, go through
train_cifar.sbatch. A srun that pretends writes down the words it is given.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from hostile_values import PRETENDED, job_environment, planted, pretend, value

CASES, CASES_OF_A_JOB = 1000, 40
SRUN = '[ "$1" = --mpi=list ] && { echo pmix; exit; }\n[ "${@: -1}" != true ] || exit 0\nprintf "%s\\0" "$@" >>"$FOUND"'
LAUNCH = ["--mpi=pmix", "--kill-on-bad-exit=1"]


def main(build):
    build = pathlib.Path(build).resolve()
    source = random.Random(16)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "it's a \"folder\" $(touch PWNED)"
        pretend(folder / "slurm", PRETENDED | {"srun": SRUN})
        for job in range(1, CASES // CASES_OF_A_JOB + 1):
            programs, logs, output = (folder / (prefix + str(job) + value(source)) for prefix in ("bin", "logs", "results"))
            pretend(programs, {"train_cifar": ":"})
            (programs / "job_attempt").symlink_to(build / "bin" / "job_attempt")
            logs.mkdir()
            found = folder / "found"
            found.write_bytes(b"")
            environment = job_environment(folder / "slurm", job) | {
                "FOUND": str(found), "LOCKSTEP_BIN": str(programs), "SLURM_JOB_NAME": value(source),
                "LOCKSTEP_VERDICT": str(logs / ("verdict" + value(source)))}
            arguments = [value(source) for _ in range(CASES_OF_A_JOB)]
            wanted = [str(programs / "train_cifar"), *arguments, "--output", f"runs/{job}"]
            if job % 2:
                arguments += source.choice([["--output", str(output)], [f"--output={output}"]])
                wanted = [str(programs / "train_cifar"), *arguments]
            else:
                environment["LOCKSTEP_RANK_LOGS"] = str(output)
                wanted = [str(build / "slurm" / "rank_log"), f"{output}/{job}.0", *wanted]
            with open(logs / ("out" + value(source)), "wb") as log:
                ran = subprocess.run(["bash", build / "slurm" / "train_cifar.sbatch", *arguments], cwd=folder,
                                     env=environment, stdout=log, stderr=log, check=False)
            words = pathlib.Path(log.name).read_text(errors="replace")
            assert ran.returncode == 0, (job, words)
            there = found.read_bytes().decode().split("\0")[:-1]
            for number, (one, want) in enumerate(zip(there, LAUNCH + wanted)):
                assert one == want, (job, number, one, want)
            assert len(there) == len(LAUNCH + wanted), (job, len(there))
            attempt = json.loads((logs / f"train_cifar-{job}.attempts.jsonl").read_text().splitlines()[-1])
            assert attempt["cause"] == "done", attempt
            results = output if job % 2 else folder / "runs" / str(job)
            assert (logs / f"train_cifar-{job}.output").readlink() == results, (job, results)
        assert not planted(pathlib.Path(name)), planted(pathlib.Path(name))
    print(f"{CASES} arguments were themselves")


if __name__ == "__main__":
    main(sys.argv[1])
