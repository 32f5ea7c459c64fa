"""Two nodes on this machine, as mpirun sees them: daemons are started by a shell instead of ssh,
in name spaces of their own, and with folders of their own where a test asks for them."""
import os
import pathlib
import shlex

AGENT = """#!/bin/sh
# In the place of ssh, because Open MPI 5 passes no other agent on to mpirun under mpirun. [OPTION...] NODE COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
# Files of daemons that meet on a real machine never lie in one folder, and no two have one host name:
# where they do, Open MPI 5's ranks disagree on who shares a node with whom, and MPI_Comm_split_type fails or hangs.
node=$1
export TMPDIR="{folder}/$node"
mkdir -p "$TMPDIR"
shift
name_spaces="--uts --mount"
[ "$(id -u)" = 0 ] || name_spaces="--user --map-current-user --keep-caps $name_spaces"
[ "$node" != n2 ] || mounts={mounts}
exec unshare $name_spaces /bin/sh -c "hostname $node && ${{mounts:-true}} && $*"
"""


def settings(folder, folders_of_n2=None):
    """What mpirun's environment needs for it; `folder` is a short path of one's own (sockets lie in it). `folders_of_n2`
    maps paths to the folders or files that n2 sees there."""
    mounts = " && ".join(f"mount --bind {shlex.quote(str(seen))} {shlex.quote(str(path))}"
                         for path, seen in (folders_of_n2 or {}).items()) or "true"
    agent = pathlib.Path(folder) / "agent" / "ssh"
    agent.parent.mkdir(exist_ok=True)
    agent.write_text(AGENT.format(folder=folder, mounts=shlex.quote(mounts)))
    agent.chmod(0o755)
    # Other tests' networks come and go on this machine: ranks must not choose those.
    path = os.environ["PATH"].removeprefix(f"{agent.parent}:")
    return {"PATH": f"{agent.parent}:{path}", "OMPI_MCA_btl_tcp_if_include": "lo"}


def under_mpirun():
    """One rank on each of them."""
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "--host", "n1,n2", "-n", "2"]
