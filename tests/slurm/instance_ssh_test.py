#!/usr/bin/env python3
"""The ssh between the instances of a job, with an srun that pretends: instance_ssh_test.py BUILD"""
import pathlib
import subprocess
import sys
import tempfile

from hostile_values import PIECES, job_environment, planted, pretend

# Writes its options to `options`, and runs the rest here.
SRUN = """: >options
while [[ $1 == -* ]]; do printf '%s\\n' "$1" >>options; shift; done
printf '%s\\n' "${!SLURM_@}" "${!PMIX_@}" >names
echo "srun: error: n2: task 0: Exited with exit code 7" >&2
exec "$@"
"""
TOOLS = {"srun": SRUN, "scontrol": "tr , '\n' <<<\"$3\"", "show_environment": "printf 'PAI_TASK_INDEX=%s\\0' \"$LOCKSTEP_INSTANCE\""}
JOB = {"LOCKSTEP_ROLES": "master,worker", "LOCKSTEP_HOSTS_master": "n1", "LOCKSTEP_ADDRESSES_master": "10.0.0.1",
       "LOCKSTEP_HOSTS_worker": "n2,n3", "LOCKSTEP_ADDRESSES_worker": "10.0.0.2,10.0.0.3", "LOCKSTEP_ROLE": "master",
       "LOCKSTEP_INSTANCE": "0", "SLURM_NTASKS": "7", "SLURM_STEP_ID": "3", "SLURM_CONF": "/etc/slurm.conf",
       "PMIX_RANK": "0", "PMIX_MCA_gds": "hash"}


class Ssh:
    def __init__(self, build, folder):
        self.ssh = build / "slurm" / "instance_ssh" / "ssh"
        self.folder = folder
        pretend(folder / "tools", TOOLS)
        self.environment = job_environment(folder / "tools", 17) | JOB | {"LOCKSTEP_BIN": str(folder / "tools")}

    def __call__(self, *words, stdin="", **changes):
        return subprocess.run([self.ssh, *words], input=stdin, cwd=self.folder, env=self.environment | changes,
                              capture_output=True, text=True, timeout=30)

    def options(self):
        return (self.folder / "options").read_text().splitlines()

    def expect(self, words, output, node, stdin=""):
        done = self(*words, stdin=stdin)
        assert (done.returncode, done.stdout) == (0, output), (words, done)
        assert f"--nodelist={node}" in self.options(), (words, self.options())


def main(build):
    with tempfile.TemporaryDirectory() as name:
        ssh = Ssh(pathlib.Path(build).resolve(), pathlib.Path(name))
        who = "echo $LOCKSTEP_ROLE $LOCKSTEP_INSTANCE $PAI_TASK_INDEX"
        ssh.expect(["master-0", who], "master 0 0\n", "n1")
        ssh.expect(["worker-1", who], "worker 1 1\n", "n3")
        ssh.expect(["root@worker-1", who], "worker 1 1\n", "n3")
        ssh.expect(["10.0.0.2", who], "worker 0 0\n", "n2")
        ssh.expect(["n3", who], "worker 1 1\n", "n3")
        # Options of ssh, before and after the host.
        ssh.expect(["-x", "-p", "22", "-oBatchMode=yes", "-o", "StrictHostKeyChecking=no", "worker-0", "-q", who],
                   "worker 0 0\n", "n2")
        assert "--input=none" not in ssh.options()
        ssh.expect(["-n", "worker-0", "echo", "-n", "x"], "x", "n2")
        assert "--input=none" in ssh.options()
        # Words are joined by blanks and read by a shell, as by ssh.
        ssh.expect(["worker-0", "echo", "a  b", "'c  d'", "&&", "exit 0"], "a b c  d\n", "n2")
        ssh.expect(["worker-0", "cat"], "piped\n", "n2", stdin="piped\n")
        ssh.expect(["worker-0"], "worker 0 0\n", "n2", stdin=who)
        # A daemon of Open MPI 5 has the name of its instance, because several may be on one node.
        daemon = 'echo --prtemca ess "env" ${SLURMD_NODENAME-none}'
        ssh.expect(["worker-1", daemon], "--prtemca ess slurm worker-1\n", "n3")
        ssh.expect(["n3", daemon], "--prtemca ess env none\n", "n3")
        failed = ssh("worker-0", "echo why >&2; exit 7")
        assert (failed.returncode, failed.stderr) == (7, "why\n"), failed
        # The step is one of this job, and has nothing of the step from which it starts.
        assert {"--jobid=17", "--overlap", "--ntasks=1", "--nodes=1", "--mpi=none"} <= set(ssh.options())
        names = (ssh.folder / "names").read_text().split()
        assert {"SLURM_CONF", "SLURM_JOB_ID", "PMIX_MCA_gds"} <= set(names), names
        assert not {"SLURM_NTASKS", "SLURM_STEP_ID", "PMIX_RANK"} & set(names), names
        # In a heterogeneous job, a role has a component of its own.
        assert not any("het-group" in option for option in ssh.options())
        ssh("worker-0", "true", SLURM_JOB_ID="18", SLURM_JOB_ID_HET_GROUP_0="17", SLURM_JOB_NODELIST_HET_GROUP_0="n1",
            SLURM_JOB_NODELIST_HET_GROUP_1="n2,n3")
        assert {"--jobid=17", "--het-group=1"} <= set(ssh.options()), ssh.options()
        for words, said in ((["worker-2", "x"], "no instance 'worker-2'. Known: master-0 worker-0 worker-1."),
                            (["-L", "8080:localhost:80", "worker-0"], "the option -L"), (["-p"], "the option -p"),
                            ([], "no host")):
            done = ssh(*words)
            assert done.returncode == 255 and said in done.stderr, (words, done)
        alone = ssh("worker-0", "x", LOCKSTEP_ROLES="")
        assert alone.returncode == 255 and "not an instance" in alone.stderr, alone
        for piece in PIECES:
            done = ssh(piece + "x")
            assert done.returncode == 255, (piece, done)
            ssh("worker-0", "x", LOCKSTEP_ROLES=f"{piece},x[$(touch PWNED)]")
        # A container without Slurm.
        (ssh.folder / "tools" / "srun").unlink()
        (ssh.folder / "tools" / "bash").symlink_to("/bin/bash")
        contained = ssh("worker-0", "x", PATH=str(ssh.folder / "tools"))
        assert contained.returncode == 255 and "'world'" in contained.stderr, contained
        assert not planted(ssh.folder)
    print("passed")


if __name__ == "__main__":
    main(sys.argv[1])
