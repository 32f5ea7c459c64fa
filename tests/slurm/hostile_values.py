"""Values that mean something to a shell, to sbatch, to a terminal or to our own templates; and a Slurm that pretends."""
import os

PIECES = [" ", "  ", "'", '"', "\\", "\n", "\t", ";", "&", "|", "<", ">", "(", ")", "{a,b}", "[a]", "*", "?", "~", "!!", "#", "%",
          "$", "$$", "$HOME", "${IFS}", "$(touch PWNED)", "`touch PWNED`", ";touch PWNED;", "'$(touch PWNED)'", "\"; touch PWNED #",
          "\n#SBATCH --comment=PWNED\n", "-n", "--", "=", "a", "0", "x y", "<% $parameters.v0 %>", "\u00e4", "\u202e", "\x1b[2J",
          "\r", "\x7f", "\\n", "%s", "'\\''", "EOF\n", "\U0001f600"]
PRETENDED = {
    "srun": 'while [[ $1 == -* ]]; do shift; done\nSLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0 exec "$@"',
    "squeue": 'case $* in *RestartCnt*) echo 0 ;; *) echo "RUNNING|None|||all" ;; esac',
    "scontrol": ":", "sinfo": ":", "sacct": ":", "scancel": ":",
}


# Up to six pieces of a random.Random.
def value(source):
    return "".join(source.choice(PIECES) for _ in range(source.randint(0, 6)))


# pretend(FOLDER, TOOLS): writes the tools there, {name: lines of bash}.
def pretend(folder, tools):
    folder.mkdir(parents=True, exist_ok=True)
    for tool, text in tools.items():
        (folder / tool).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / tool).chmod(0o755)


# What a job on one node of its own, this one, finds in its environment, with FOLDER before all other programs.
def job_environment(folder, job=1):
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("SLURM", "LOCKSTEP"))}
    return environment | {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_ID": str(job),
                          "SLURM_JOB_NODELIST": os.uname().nodename, "SLURM_TASKS_PER_NODE": "1", "SLURM_JOB_NUM_NODES": "1"}


# Files below FOLDER that a value made, had one of them been executed.
def planted(folder):
    return [path for path in folder.rglob("*") if path.name == "PWNED"]
