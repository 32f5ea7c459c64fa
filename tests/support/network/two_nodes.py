"""Two nodes on this machine, as mpirun sees them: the second one's daemon is started by a shell instead of ssh."""
import pathlib

AGENT = """#!/bin/sh
# NODE COMMAND...: files of daemons that meet on a real machine never lie in one folder.
export TMPDIR="{folder}/$1"
mkdir -p "$TMPDIR"
shift
exec /bin/sh -c "$*"
"""


def settings(folder):
    """What mpirun's environment needs for it; `folder` is a short path of one's own (sockets lie in it)."""
    agent = pathlib.Path(folder) / "agent.sh"
    agent.write_text(AGENT.format(folder=folder))
    agent.chmod(0o755)
    # Other tests' networks come and go on this machine: ranks must not choose those.
    return {"OMPI_MCA_plm_rsh_agent": str(agent), "PRTE_MCA_plm_ssh_agent": str(agent),
            "OMPI_MCA_btl_tcp_if_include": "lo"}


def under_mpirun():
    """One rank on each of them."""
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "--host", "n1,n2", "-n", "2"]
