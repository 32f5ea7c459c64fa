#!/usr/bin/env python3
"""The file of secrets stays where Slurm has the job, and nowhere else, whatever ends sbatch: submission_test.py BUILD

submit_job runs with an sbatch and a squeue that pretend: signals come while sbatch works, sbatch is killed, or does not say
whether there is a job.
"""
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hostile_values import PRETENDED, job_environment, pretend  # noqa: E402

JOB = """protocolVersion: 2
name: job
type: job
secrets: {token: hunter2}
taskRoles: {worker: {resourcePerInstance: {cpu: 1}, commands: ['login <% $secrets.token %>']}}
"""
# Reads the script, and has Slurm know the job's comment.
ACCEPT = 'cat >script\nfor word; do case $word in --comment=*) echo "17|${word#*=}" >known ;; esac; done'
KNOWS = "cat known 2>/dev/null; true"
# One process for the whole wait: with short sleeps, bash would miss a SIGINT that comes between them, and a trap that sends
# bash the SIGINT again may do so for ever.
WAIT = """import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
open('begun', 'w').close()
while not os.path.exists('signalled'):
    time.sleep(0.05)"""
SLOW = f'{sys.executable} -c "{WAIT}"'
NO_JOB = "squeue lists no job"
SUBMITTED = "job 17 was submitted. Its secrets are in '{}'"
UNKNOWN = "squeue does not answer. Its secrets are in '{}'"
REFUSED = "sbatch refused the job"
NUMBER = "echo Submitted batch job 17"
alone, group = "submit_job", "its whole process group"

# What sbatch does, what squeue does, the signal and who gets it, options (a tuple: the job has no secrets); then the code,
# whether secrets stay, words.
CASES = {
    "accepted": (f"{ACCEPT}; {NUMBER}", "exit 1", None, None, [], 0, True, NUMBER[5:]),
    "parsable": (f"{ACCEPT}; echo '17;cluster'", "exit 1", None, None, ["--parsable"], 0, True, "17;cluster"),
    "refused": ("exit 1", KNOWS, None, None, [], 2, False, REFUSED),
    "refused_and_no_squeue": ("exit 1", "exit 1", None, None, [], 2, False, REFUSED),
    "interrupt": (f"{ACCEPT}; {SLOW}; {NUMBER}", KNOWS, signal.SIGINT, alone, [], -signal.SIGINT, True, SUBMITTED),
    "terminate": (f"{ACCEPT}; {SLOW}; {NUMBER}", KNOWS, signal.SIGTERM, alone, [], -signal.SIGTERM, True, SUBMITTED),
    "hang_up": (f"{SLOW}; exit 1", KNOWS, signal.SIGHUP, alone, [], -signal.SIGHUP, False, REFUSED),
    "ctrl_c_before": (f"{SLOW}; {ACCEPT}", KNOWS, signal.SIGINT, group, [], -signal.SIGINT, False,
                      f"(Interrupt), and {NO_JOB}"),
    "ctrl_c_after": (f"{ACCEPT}; {SLOW}; {NUMBER}", KNOWS, signal.SIGINT, group, [], -signal.SIGINT, True, SUBMITTED),
    "ctrl_c_in_the_dark": (f"{SLOW}; {ACCEPT}", "exit 1", signal.SIGINT, group, [], -signal.SIGINT, True, UNKNOWN),
    "killed": (f"{ACCEPT}; kill -KILL $$", KNOWS, None, None, [], 137, True, SUBMITTED),
    "killed_without_secrets": ("kill -KILL $$", KNOWS, None, None, (), 2, False, "squeue --me"),
    "silent": (ACCEPT, KNOWS, None, None, ["--quiet"], 0, True, ""),
    "silent_without_a_job": ("cat >script", KNOWS, None, None, [], 2, False, NO_JOB),
    "silent_in_the_dark": (ACCEPT, "exit 1", None, None, [], 0, True, UNKNOWN),
    "accepted_and_failed": (f"{ACCEPT}; exit 1", KNOWS, None, None, [], 1, True, SUBMITTED),
    "waits_for_a_failing_job": (f"{ACCEPT}; {NUMBER}; exit 3", KNOWS, None, None, ["--wait"], 3, True, NUMBER[5:]),
    "waits_quietly_for_a_failing_job": (f"{ACCEPT}; rm -f .job.*.secrets; exit 3", KNOWS, None, None,
                                        ["--wait", "--quiet"], 3, False, ""),
    "waits_without_secrets": (f"cat >script; {NUMBER}; exit 3", KNOWS, None, None, ("--wait",), 3, False, NUMBER[5:]),
    "waits_quietly_without_secrets": ("cat >script; exit 3", KNOWS, None, None, ("-WQ",), 3, False,
                                      "the code of the job (--wait)"),
    "own_comment": (f"{ACCEPT}; grep -q '^17|mine submit_job:' known", KNOWS, None, None, ["--comment=no", "--com=mine"], 0,
                    True, ""),
    "other_cluster": (ACCEPT, 'case " $* " in *" --clusters=x "*) cat known ;; esac', None, None, ["--clusters=x"], 0, True, ""),
}


def run(programs, folder, case):
    sbatch, squeue, number, receiver, options, code, stays, words = CASES[case]
    folder.mkdir()
    pretend(folder / "slurm", PRETENDED | {"sbatch": sbatch, "squeue": squeue})
    (folder / "job.yaml").write_text(JOB if isinstance(options, list) else
                                     JOB.replace("secrets: {token: hunter2}\n", "").replace("login <% $secrets.token %>", "x"))
    process = subprocess.Popen([programs / "submit_job", "job.yaml", "--time", "1", "--", *options], cwd=folder,
                               env=job_environment(folder / "slurm"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, start_new_session=True)
    if number is not None:
        end = time.monotonic() + 20
        while not (folder / "begun").exists() and time.monotonic() < end:
            time.sleep(0.02)
        (os.kill if receiver == alone else os.killpg)(process.pid, number)
        (folder / "signalled").touch()
    said = process.communicate(timeout=60)[0]
    kept = list(folder.glob(".job.*.secrets"))
    assert process.returncode == code, (case, process.returncode, said)
    assert len(kept) == int(stays), (case, kept, said)
    assert words.format(kept[0] if kept else "") in said, (case, said)
    assert (REFUSED in said) == (words == REFUSED), (case, said)
    assert stays or "Its secrets are in" not in said, (case, said)
    assert "hunter2" not in said, (case, said)


def main(build):
    programs = pathlib.Path(build).resolve() / "bin"
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda case: run(programs, pathlib.Path(name).resolve() / case, case), CASES))
    print(f"{len(CASES)} submissions left what they should")


if __name__ == "__main__":
    main(sys.argv[1])
