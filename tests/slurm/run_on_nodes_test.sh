#!/usr/bin/env bash
# Several nodes without Slurm, by mpirun: run_on_nodes_test.sh BUILD_FOLDER
set -uo pipefail
build=$(readlink -f "$1")
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

# A shell on a node, as ssh would give: NODE COMMAND...
cat >"$work/agent" <<AGENT
#!/bin/bash
node=\$1; shift
export TMPDIR=$work/tmp.\$node
mkdir -p "\$TMPDIR"
exec "$here/cluster.sh" "$work/cluster" in "\$node" /bin/sh -c "\$*"
AGENT
chmod +x "$work/agent"
export OMPI_MCA_plm_rsh_agent=$work/agent PRTE_MCA_plm_ssh_agent=$work/agent OMPI_MCA_plm=rsh
export OMPI_MCA_oob_tcp_if_include=$CLUSTER_NET.0/24 OMPI_MCA_btl_tcp_if_include=$CLUSTER_NET.0/24

data="$work/data of nodes/shards"
"$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 || fail "make_shards"
# n2 and n3 see another disk there, which is empty.
for node in n2 n3; do cluster in "$node" mount -t tmpfs tmpfs "$work/data of nodes" || fail "no disk for $node"; done
printf '%s slots=1\n' n1 n2 n3 >"$work/hosts"
run=("$programs/run_on_nodes" --hostfile "$work/hosts" --dispatch "$data" --logs "$work/logs")
options=(--data "$data" --model lenet --global-batch 48 --threads 1)

"${run[@]}" train_cifar "${options[@]}" --epochs 1 --output "$work/good" >"$work/good.out" 2>&1 || fail "the training"
grep -q '"ranks": 3,' "$work/good/summary.json" || fail "not three ranks"
expect_log good "n1 already has '$data'"
expect_log good "copied '$data' to n2"
[ "$(grep -rl 'model: lenet' "$work/logs" | wc -l)" = 1 ] || fail "rank 0 has no log of its own"

# What is there and damaged is set aside; a signal leaves a checkpoint, and nothing behind on the nodes.
cluster in n3 sh -c "echo x >>\"\$(ls '$data'/train/*.h5 | head -1)\"" || fail "cannot damage a shard"
"${run[@]}" train_cifar "${options[@]}" --epochs 100000 --output "$work/killed" >"$work/killed.out" 2>&1 &
script=$!
wait_for 60 test -s "$work/killed/metrics.jsonl" || fail "the training to be killed wrote no metrics"
expect_log killed "n2 already has '$data'"
expect_log killed "copied '$data' to n3. "
expect_log killed "a damaged data set"
expect_log killed "'$data.set-aside-1'"
kill -TERM "$script"
wait "$script"
[ $? = 143 ] || fail "a kill is not told by the code"
ls "$work"/killed/checkpoints/*.h5 >/dev/null || fail "no checkpoint"
! grep -e '^sh: ' -e Killed "$work/killed.out" || fail "a node's shell does not understand what ends the ranks there"
for node in n1 n2 n3; do
  for name in train_cifar orted prted; do
    ! cluster in "$node" pgrep -x "$name" >/dev/null || fail "$name lives on at $node"
  done
done

printf 'n1;reboot\n' >"$work/hosts"
"${run[@]}" train_cifar >"$work/wrong.out" 2>&1
[ $? = 2 ] || fail "a wrong list of nodes is not refused"
expect_log wrong "'n1;reboot'"
printf 'n1 slots=-3\n' >"$work/hosts"
"${run[@]}" train_cifar >"$work/wrong_slots.out" 2>&1
[ $? = 2 ] || fail "a wrong number of slots is not refused"
expect_log wrong_slots "'slots=-3'"
printf 'n1\n' >"$work/hosts"
"$programs/run_on_nodes" --hostfile "$work/hosts" --logs "$work/hosts" train_cifar >"$work/wrong_logs.out" 2>&1
[ $? = 2 ] || fail "logs where no folder can be are not refused"
expect_log wrong_logs "'$work/hosts' (--logs)"
"$programs/run_on_nodes" --hostfile /dev/zero train_cifar >"$work/device.out" 2>&1
[ $? = 2 ] || fail "a device as a list of nodes is not refused"
expect_log device "'/dev/zero'"
echo "passed: a training over three nodes, dispatch and reuse of data, a kill"
