# Nodes without Slurm for the tests of run_on_nodes. A test sources this file with its arguments: BUILD_FOLDER
# [SCENARIO...]. It then defines scenarios, as functions, and ends with run_scenarios.
#
# A node is this machine with another folder in the place of $work/disk. mpirun starts nothing unless a scenario says so.
# shellcheck shell=bash disable=SC2012,SC2034,SC2154
set -uo pipefail
programs=$(readlink -f "$1")/bin
skip() { echo "skipped: $*"; exit 77; }
((EUID == 0)) || skip "a disk of its own for a node wants root"
unshare --mount true 2>/dev/null || skip "this machine allows no mount namespaces"
work=$(mktemp -d)
# A child that a signal ends before it has become another program runs this trap, too.
trap '[ $BASHPID != $$ ] || { umount -l "$work/disk" "$work/node" 2>/dev/null; rm -rf --one-file-system "$work"; }' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
real_mpirun=$(command -v mpirun) || skip "no mpirun"
fail() { cat "$work/out"; echo "failed: $*"; exit 1; }
says() { grep -qF -- "$1" "$work/out" || fail "it does not say '$1'"; }

mkdir -p "$work/bin" "$work/disk" "$work/node" "$work/tmp"
export TMPDIR=$work/tmp
cat >"$work/bin/mpirun" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec $real_mpirun --version
echo launched "\$@"
SH
cat >"$work/agent" <<SH
#!/bin/bash
# NODE COMMAND: the node "down" cannot be reached, "hangs" does not answer.
[ "\$1" != down ] || exit 255
[ "\$1" != hangs ] || exec sleep 60
echo "\$1" >>"$work/asked"
exec unshare --mount --propagation private bash -c \
  'mount --bind "\$1/node" "\$1/disk" && . "\$1/before" && exec sh -c "\$2"' bash "$work" "\$2"
SH
chmod +x "$work/bin/mpirun" "$work/agent"
export PATH=$work/bin:$PATH
# What is done on the node before its command.
before() { echo "$1" >"$work/before"; }
agent_is() { export OMPI_MCA_plm_rsh_agent=$1 PRTE_MCA_plm_ssh_agent=$1; }

# The copy on the node of what is in $work/disk.
name="it's a \"set\""
data=$work/disk/$name
there=$work/node/$name
# nodes CODE [OPTIONS...]: a run whose output is $work/out
nodes() {
  local wanted=$1; shift
  "$programs/run_on_nodes" --hostfile "$work/hosts" "$@" /bin/true >"$work/out" 2>&1
  local code=$?
  [ $code = "$wanted" ] || fail "code $code, not $wanted"
}
dispatch() { nodes "$1" --dispatch "$data"; }
clear() {
  rm -rf "$work/node"
  mkdir "$work/node"
  echo "n1 slots=1" >"$work/hosts"
  agent_is "$work/agent"
  before ''
}
have() { cp -r "$1" "$there"; }
holds() { [ "$(ls -A "$work/node")" = "$(printf '%s\n' "$@" | sort)" ] || fail "the node holds: $(ls -A "$work/node")"; }

scenarios=("${@:2}")
run_scenarios() { # by default all functions of the test that have nothing after the brace
  ((${#scenarios[@]})) || mapfile -t scenarios < <(sed -nE 's/^([a-z_0-9]+)\(\) \{$/\1/p' "$0")
  local begin scenario
  for scenario in "${scenarios[@]}"; do
    clear
    begin=$SECONDS
    echo "$scenario"
    "$scenario"
    echo "  passed in $((SECONDS - begin)) s"
  done
}
