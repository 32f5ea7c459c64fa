#!/usr/bin/env bash
# A real Slurm cluster on one machine: munged, slurmctld and a slurmd for each node. Needs root, but no systemd.
#
#   cluster.sh FOLDER up NODES       writes FOLDER/etc/slurm.conf: clients need SLURM_CONF to name it
#   cluster.sh FOLDER status
#   cluster.sh FOLDER in NODE COMMAND...
#   cluster.sh FOLDER cut NODE       its link is dead, and what runs there lives; mend NODE brings it back
#   cluster.sh FOLDER slow NODE RATE [BURST [QUEUE]]   its link carries no more than that, each way: 200mbit, as tc has
#                                    it, in bursts of 8kb, from a queue of 20ms
#   cluster.sh FOLDER delay MILLISECONDS RELAY   once: frames take that long from node to node, half of it at each link.
#                                    RELAY is delaying_relay of the build
#   cluster.sh FOLDER kill NODE      it loses power, and all that runs there; start NODE switches it on again
#   cluster.sh FOLDER kill-slurmd NODE     its daemon alone dies; start-slurmd NODE brings it back
#   cluster.sh FOLDER kill-controller      slurmctld dies; start-controller brings it back, with what it had written down
#   cluster.sh FOLDER down           takes everything along that still runs on the nodes
#
# A node is a set of namespaces of its own (network, host name, mounts, IPC, processes) on a bridge; the file system is
# shared, as on a cluster. Jobs of the partition "urgent" preempt those of "all", which get a grace of ten seconds.
# CLUSTER_ACCOUNTING=linux measures what steps use, with CLUSTER_ACCOUNTING_PARAMETERS (JobAcctGatherParams). A job gets
# CLUSTER_MEMORY (100) MiB per CPU. CLUSTER_GPUS (0): Slurm grants this many devices of each node as GPUs, which they are not.
# CLUSTER_TAG (two letters or digits), CLUSTER_NET (10.77.0) and CLUSTER_PORT (6817) keep two
# clusters apart.
set -uo pipefail
self=$(readlink -f "${BASH_SOURCE[0]}")
base=$(readlink -f "${1:?usage: cluster.sh FOLDER COMMAND, see the head of the script}")
command=${2:-}
tag=ls${CLUSTER_TAG:-00}  # names of bridge, links and network namespaces begin with it
net=${CLUSTER_NET:-10.77.0}
bridge=${tag}br
far=${tag}far  # the network namespace of the relay that delays links
control_host=$(hostname -s)
export SLURM_CONF=$base/etc/slurm.conf

die() { echo "cluster.sh: $*" >&2; exit 1; }
nodes() { cat "$base/nodes" 2>/dev/null; }
recorded() { cat "$base/pid/$1" 2>/dev/null; }

# A zombie is not alive: the first process of a container may reap late or never.
alive() { [ -n "$1" ] && [ -r "/proc/$1/stat" ] && ! grep -q '^[0-9]* (.*) [ZX] ' "/proc/$1/stat" 2>/dev/null; }

# wait_until SECONDS COMMAND...
wait_until() {
  local tries=$(($1 * 20)); shift
  until "$@"; do ((tries-- > 0)) || return 1; sleep 0.05; done
}
dead() { ! alive "$1"; }
end_process() { # PID SECONDS
  alive "$1" || return 0
  kill -TERM "$1" 2>/dev/null
  wait_until "$2" dead "$1" || kill -KILL "$1" 2>/dev/null
}

write_config() { # NODES
  mkdir -p "$base"/{etc,pid,log,state,spool,tmp,munge}
  chmod 755 "$base" "$base"/*
  dd if=/dev/urandom of="$base/etc/munge.key" bs=128 count=1 status=none
  chmod 600 "$base/etc/munge.key"
  printf 'n%d\n' $(seq "$1") >"$base/nodes"
  { echo "127.0.0.1 localhost"; echo "$net.1 $control_host"
    for i in $(seq "$1"); do echo "$net.$((10 + i)) n$i"; done; } >"$base/etc/hosts"
  echo "hosts: files" >"$base/etc/nsswitch.conf"
  cat >"$SLURM_CONF" <<CONF
ClusterName=lockstep
SlurmctldHost=$control_host($net.1)
SlurmctldAddr=$net.1
SlurmctldPort=${CLUSTER_PORT:-6817}
SlurmdPort=6818
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until its credentials have expired: two minutes, unless told otherwise.
AuthInfo=socket=$base/munge/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool/%n
SlurmctldPidFile=$base/pid/slurmctld.pid
SlurmdPidFile=$base/pid/slurmd.%n.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.%n.log
# All nodes see one /tmp: with one folder for all, srun's PMIx sockets collide.
TmpFS=$base/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/${CLUSTER_ACCOUNTING:-none}
JobAcctGatherFrequency=task=1
${CLUSTER_ACCOUNTING_PARAMETERS:+JobAcctGatherParams=$CLUSTER_ACCOUNTING_PARAMETERS}
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=${CLUSTER_MEMORY:-100}
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MessageTimeout=10
SlurmdTimeout=15
BatchStartTimeout=5
KillWait=${CLUSTER_KILL_WAIT:-5}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
# Nodes claim more cores than the machine has.
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
${CLUSTER_GPUS:+GresTypes=gpu}
NodeName=n[1-$1] NodeAddr=$net.[11-$((10 + $1))] CPUs=4 CoresPerSocket=4 RealMemory=2000 ${CLUSTER_GPUS:+Gres=gpu:$CLUSTER_GPUS}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10:00 State=UP PriorityTier=1 GraceTime=10
PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=10:00 State=UP PriorityTier=10 PreemptMode=OFF
CONF
  # slurmd loads a cgroup plugin even where nothing uses one, and finding it out fails without /sys/fs/cgroup.
  echo "CgroupPlugin=cgroup/v1" >"$base/etc/cgroup.conf"
  # Slurm 22.05's default fence loses one start over nodes in fourteen, or hangs it, inside MPI_Init.
  echo "PMIxCollFence=ring" >"$base/etc/mpi.conf"
  [ -z "${CLUSTER_GPUS:-}" ] || make_gpus "$1"
}

make_gpus() { # NODES
  local gpu
  mkdir "$base/dev"
  for ((gpu = 0; gpu < CLUSTER_GPUS; ++gpu)); do mknod "$base/dev/gpu$gpu" c 1 3 || die "cannot make a device"; done
  echo "NodeName=n[1-$1] Name=gpu File=$base/dev/gpu[0-$((CLUSTER_GPUS - 1))]" >"$base/etc/gres.conf"
}

start_munge() { # with a key and a socket of its own: the machine's munge stays untouched
  munged --force --key-file="$base/etc/munge.key" --socket="$base/munge/munge.socket" --num-threads=2 \
    --pid-file="$base/munge/munged.pid" --log-file="$base/munge/munged.log" --seed-file="$base/munge/seed" \
    </dev/null >"$base/log/munged.out" 2>&1 || die "munged did not start: $(tail -3 "$base/log/munged.out")"
}

start_network() {
  ip link add "$bridge" type bridge && ip addr add "$net.1/24" dev "$bridge" && ip link set "$bridge" up ||
    die "cannot make the bridge $bridge"
  local node
  for node in $(nodes); do
    ip netns add "$tag$node" && ip link add "${tag}v$node" type veth peer name eth0 netns "$tag$node" ||
      die "cannot make the network of $node"
    ip link set "${tag}v$node" master "$bridge" up
    ip -n "$tag$node" addr add "$net.$((10 + ${node#n}))/24" dev eth0
    ip -n "$tag$node" link set lo up
    ip -n "$tag$node" link set eth0 up
  done
}

start_node() { # NODE
  # A requeued job has the number of its former self, whose sockets it would find in the way.
  rm -rf "$base/spool/$1" "$base/tmp/$1"
  mkdir -p "$base/spool/$1" "$base/tmp/$1"
  chmod 1777 "$base/tmp/$1"
  setsid ip netns exec "$tag$1" unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc \
    --propagation private "$self" "$base" inside "$1" </dev/null >>"$base/log/$1.log" 2>&1 &
  echo $! >"$base/pid/$1"
}

# Since 23.11, Slurm looks up the names of addresses, and its daemons wait while a name server does not answer.
use_own_names() {
  mount --bind "$base/etc/hosts" /etc/hosts
  mount --bind "$base/etc/nsswitch.conf" /etc/nsswitch.conf
}

start_controller() { # [-c: without what an earlier one wrote down]
  setsid unshare --mount --propagation private "$self" "$base" inside-controller "$@" \
    </dev/null >>"$base/log/slurmctld.out" 2>&1 &
  echo $! >"$base/pid/slurmctld"
}

run_controller() {
  use_own_names
  exec slurmctld -D -i "$@" -f "$SLURM_CONF"
}

run_inside_node() { # NODE: the first process of its namespaces
  hostname "$1"
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm
  use_own_names
  slurmd -D -N "$1" -f "$SLURM_CONF" &
  while :; do wait -n || sleep 1; done  # reaps what slurmd leaves; the node ends with the unshare above
}

idle_nodes() { sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l; }
all_idle() { [ "$(idle_nodes)" = "$1" ]; }

up() { # NODES
  [ -e "$base/nodes" ] && die "the cluster in $base is up already: take it down first"
  write_config "$1"
  start_network
  start_munge
  start_controller -c
  local node
  for node in $(nodes); do start_node "$node"; done
  wait_until 60 all_idle "$1" || die "only $(idle_nodes) of $1 nodes came up: see $base/log"
}

down() {
  end_process "$(recorded slurmctld)" 3
  local node
  for node in $(nodes); do
    kill -KILL "$(recorded "$node")" 2>/dev/null  # unshare's death kills the node's first process, that all others
    ip netns del "$tag$node" 2>/dev/null  # its link goes with it
    ip link del "${tag}v$node" 2>/dev/null
  done
  end_process "$(recorded relay)" 2
  ip netns del "$far" 2>/dev/null
  ip link del "$bridge" 2>/dev/null
  end_process "$(cat "$base/munge/munged.pid" 2>/dev/null)" 2
  rm -f "$base/nodes"
}

# The shell that unshare left as the node's first process is its only child.
first_process() { pgrep -P "$(recorded "$1")" || die "$1 is not up"; } # NODE
in_node() { # NODE COMMAND...
  local first
  first=$(first_process "$1") || exit
  exec nsenter -t "$first" -n -m -u -i -p -r -w -- "${@:2}"
}

link() { ip link set "${tag}v$1" "$2" || die "$1 has no link"; } # NODE up|down

slow() { # NODE RATE [BURST [QUEUE]]
  local bucket=(root tbf rate "$2" burst "${3:-8kb}" latency "${4:-20ms}")
  tc qdisc replace dev "${tag}v$1" "${bucket[@]}" && tc -n "$tag$1" qdisc replace dev eth0 "${bucket[@]}" ||
    die "the link of $1 cannot be made slow"
}

# Each node's link ends in a namespace without addresses, which itself answers nothing, and the relay carries frames on
# from there to the bridge. What has to wait for its turn (slow) does so before it comes there, both ways. Segments leave
# nodes several in a piece, as the relay's work is by the piece, and by Reno, which every kernel has, so that it does not
# matter what a machine takes by default.
delay() { # MILLISECONDS RELAY
  local node wires=()
  ip netns add "$far" || die "links are delayed already, or namespaces cannot be made"
  for node in $(nodes); do
    ip link set "${tag}v$node" nomaster down netns "$far" name "near$node" &&
      ip link add "${tag}v$node" type veth peer name "far$node" netns "$far" || die "cannot lengthen the link of $node"
    ip -n "$far" link set "near$node" up
    ip -n "$far" link set "far$node" up
    ip link set "${tag}v$node" master "$bridge" up
    ip -n "$tag$node" link set eth0 gso_max_size 30000 &&
      ip netns exec "$tag$node" sysctl -qw net.ipv4.tcp_congestion_control=reno || die "cannot set how $node sends"
    wires+=("near$node:far$node")
  done
  setsid ip netns exec "$far" "$2" "$(awk "BEGIN { print int($1 * 500) }")" "${wires[@]}" \
    </dev/null >"$base/log/relay.log" 2>&1 &
  echo $! >"$base/pid/relay"
  wait_until 5 grep -qs ready "$base/log/relay.log" || die "no relay: $(cat "$base/log/relay.log")"
}

case $command in
  up) up "${3:-3}" ;;
  down) down ;;
  status) sinfo -N -o "%N %t %c %m %E" ;;
  in) in_node "${@:3}" ;;
  cut) link "$3" down ;;
  mend) link "$3" up ;;
  slow) slow "$3" "${4:?a rate}" "${@:5}" ;;
  delay) delay "${3:?milliseconds}" "${4:?the relay}" ;;
  kill) kill -KILL "$(recorded "$3")" && wait_until 10 dead "$(recorded "$3")" ;;
  start) start_node "$3" ;;
  kill-slurmd) pkill -KILL -P "$(first_process "$3")" -x slurmd ;;
  start-slurmd) in_node "$3" slurmd -N "$3" -f "$SLURM_CONF" </dev/null ;;
  kill-controller) kill -KILL "$(recorded slurmctld)" ;;
  start-controller) start_controller ;;
  inside) run_inside_node "$3" ;;
  inside-controller) run_controller "${@:3}" ;;
  *) die "unknown command '$command'. Known: up, status, in, cut, mend, slow, delay, kill, start," \
    "kill-slurmd, start-slurmd, kill-controller, start-controller, down" ;;
esac
