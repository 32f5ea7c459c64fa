#!/usr/bin/env python3
"""What slurm/environment.sh gives to a program: environment_script_test.py BUILD_FOLDER

Names of jobs and paths are made of what means something to a shell. They arrive unchanged, and nothing is executed.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
SCRIPT = BUILD / "slurm/environment.sh"
SHOW = BUILD / "bin/show_environment"
PIECES = ["'", '"', "\n", "$(touch executed)", "`touch executed`", ";touch executed;", "\\", "|", "&", " ", "\t", "*", "~",
          "${HOME}", "=", "a", "é", "-n", "<(", ")", "!", "#", "\x1b[31m", "\r", "%s"]
PRINT = "import json, os; print(json.dumps(dict(os.environ)))"


def cluster(name, checkpoint):
    ports = {"ssh": [20001], "http": [20002], "master": [20003], "SynPort": [20004, 20005]}
    role = {"name": "worker", "command": ["program"], "ports": {"SynPort": 2}}
    return {"format": 1, "job": {"id": 17, "name": name, "user": "ada", "partition": "all",
                                   "folder": "/home/ada"}, "attempt": 1,
            "checkpoint": checkpoint, "roles": [role],
            "instances": [{"role": "worker", "instance": 0, "host": "n1", "address": "10.0.0.1", "ports": ports}]}


def run(command, folder, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    draw = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="a b'$(touch executed)") as name:
        folder = pathlib.Path(name)
        file = folder / "cluster file.json"
        task = {"LOCKSTEP_CLUSTER": str(file), "LOCKSTEP_ROLE": "worker", "LOCKSTEP_INSTANCE": "0"}
        for case in range(rounds):
            job, checkpoint = ("".join(draw.choices(PIECES, k=draw.randint(1, 8))) for _ in range(2))
            file.write_text(json.dumps(cluster(job, checkpoint)))
            argument = "".join(draw.choices(PIECES, k=5))
            if case % 2:
                command = [SCRIPT, sys.executable, "-c", PRINT, argument]
            else:
                command = ["bash", "-c", 'source "$1" && exec "$2" -c "$3"', "bash", SCRIPT, sys.executable, PRINT]
            result = run(command, folder, **task)
            assert result.returncode == 0, result
            seen = json.loads(result.stdout)
            assert seen["PAI_JOB_NAME"] == f"ada~{job}", (job, seen["PAI_JOB_NAME"])
            assert seen["LOCKSTEP_CHECKPOINT"] == checkpoint, (checkpoint, seen["LOCKSTEP_CHECKPOINT"])
            assert seen["PAI_worker_0_SynPort_PORT"] == "20004,20005"
            assert not list(folder.glob("**/executed")), job
        table = run([SHOW], folder, **task)
        assert table.returncode == 0 and "\x1b" not in table.stdout, table
        assert "LOCKSTEP_ROLE " in table.stdout and "10.0.0.1" in table.stdout, table
        for role, instance in (("nosuch", "0"), ("worker", "1")):
            nobody = run([SHOW, file, "--role", role, "--instance", instance], folder)
            told = nobody.stderr.replace("\\n", "\n")
            assert nobody.returncode == 2 and all(one in told for one in (f"'{file}'", f"'{role}'", "worker[0]")), nobody
        everybody = run([SHOW, file], folder)
        assert everybody.returncode == 0 and everybody.stdout.startswith("worker[0] on n1\n"), everybody

        ignored = run([SHOW, file, "--instance", "1"], folder)
        assert ignored.returncode == 2 and "--instance" in ignored.stderr and "--role" in ignored.stderr, ignored
        ignored = run([SHOW, file, "--exports"], folder)
        assert ignored.returncode == 2 and "--exports" in ignored.stderr and "--role" in ignored.stderr, ignored
        outside = run([SHOW], folder)
        assert outside.returncode == 2 and "LOCKSTEP_CLUSTER" in outside.stderr
        nobody = run([SHOW, "--role", "worker", "--instance", "7", file], folder)
        assert nobody.returncode == 2 and " 7 " in nobody.stderr and "'worker'" in nobody.stderr, nobody
        file.write_text("{}")
        broken = run([SCRIPT, "true"], folder, **task)
        assert broken.returncode == 65 and file.name in broken.stderr, broken

        plain = run([SCRIPT, "env"], folder, LOCKSTEP_INTERFACE="lo")
        assert {"OMPI_MCA_btl_tcp_if_include=lo", "NCCL_SOCKET_IFNAME==lo"} <= set(plain.stdout.splitlines()), plain
        wrong = run([SCRIPT, "env"], folder, LOCKSTEP_INTERFACE="ib7")
        assert wrong.returncode == 2 and "'ib7'" in wrong.stderr, wrong
        nowhere = run([SCRIPT, "env"], folder, LOCKSTEP_BIN=str(folder))
        assert nowhere.returncode != 0 and not nowhere.stdout, nowhere
    print(f"passed: {rounds} names of jobs and paths, the table, a network interface")


if __name__ == "__main__":
    main()
