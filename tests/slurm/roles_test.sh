#!/usr/bin/env bash
# Jobs of several roles on a real cluster: roles_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below.
# shellcheck disable=SC1003,SC2016,SC2317
set -uo pipefail
build=$(readlink -f "$1")
shift
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

# role NAME INSTANCES FIELDS COMMAND...: one role, as JSON; COMMAND are texts for bash, in a script with $0 and its words.
role() {
  python3 - "$@" <<'PYTHON'
import json, sys
name, instances, fields, *command = sys.argv[1:]
print(json.dumps({"name": name, "instances": int(instances), "command": command, **json.loads("{" + fields + "}")}))
PYTHON
}
# roles NAME ROLE...: writes $work/NAME.json.
roles() {
  local name=$1; shift
  (IFS=,; printf '{"format": 1, "roles": [%s]}\n' "$*") >"$work/$name.json"
}
# run NAME SBATCH-OPTIONS... [-- RUN_ROLES-OPTIONS...]: the job of $work/NAME.json.
run() {
  local name=$1 options=(); shift
  while (($#)) && [ "$1" != -- ]; do options+=("$1"); shift; done
  submit "$name" "${options[@]}" "$scripts/run_roles.sbatch" "$work/$name.json" "${@:2}"
}
# started NAME: all instances of the job have begun.
started() { grep -qs 'instances have joined' "$work/$1.out"; }
wait_for_start() { wait_for 60 started "$1" || fail "the instances of $1 did not begin"; }
sleeps() { cluster in "$1" pgrep -x sleep >/dev/null; }
nobody_lives() {
  local node
  for node in n1 n2 n3; do
    wait_for 20 eval "! sleeps $node" || fail "an instance lives on at $node"
  done
}
expect_code() { wait_for_end; expect "ExitCode=$1:0"; nobody_lives; }

sleeping='exec sleep 1000'

# A server that never ends does not keep workers that finish; and the server's failure ends the workers.
all_workers() {
  roles all_workers "$(role server 1 '"min_succeeded_instances": -1' bash -c "$sleeping")" \
    "$(role worker 2 '"ports": {"SynPort": 2}' bash -c 'echo "told $LOCKSTEP_ROLE $LOCKSTEP_INSTANCE $PAI_HOST_IP_server_0 \
$PAI_worker_1_SynPort_PORT $LOCKSTEP_PORTS_worker_1_SynPort"')"
  run all_workers --nodes=3 --ntasks=3
  expect_code 0
  expect_log all_workers "role 'worker' succeeded: 2 of its 2 instances "
  grep -qE "\[worker\[1\]\]  told worker 1 $CLUSTER_NET.1[1-3] ([0-9]+,[0-9]+) \1\$" "$work/all_workers.out" ||
    fail "a worker was not told its ports and the address of the server"
  cluster_file=$work/cluster-$id.0.json
  "$programs/show_environment" "$cluster_file" >"$work/table" || fail "show_environment cannot read cluster.json"
  grep -q '^worker\[1\] on n' "$work/table" || fail "the table does not name worker[1]"

  roles server_fails "$(role server 1 '' bash -c 'sleep 1; exit 42')" "$(role worker 2 '' bash -c "$sleeping")"
  JOB_RETRY_COUNT=0 run server_fails --nodes=3 --ntasks=3
  expect_code 42
  expect_log server_fails "server[0] with code 42"
}

master() {
  roles master "$(role master 1 '' bash -c 'sleep 1')" \
    "$(role worker 2 '"min_failed_instances": -1, "min_succeeded_instances": -1' \
      bash -c '[ "$LOCKSTEP_INSTANCE" = 0 ] && exit 3; exec sleep 1000')"
  run master --nodes=2 --ntasks=3
  expect_code 0
  expect_log master "worker[0] ended with code 3."
  expect_log master "role 'master' succeeded"
}

any_worker() {
  roles any_worker "$(role worker 3 '"min_failed_instances": 3, "min_succeeded_instances": 1' \
    bash -c 'sleep "0.$LOCKSTEP_INSTANCE"; ((LOCKSTEP_INSTANCE == 2)) || exit 2')"
  run any_worker --nodes=2 --ntasks=3
  expect_code 0
  expect_log any_worker "role 'worker' succeeded: 1 of its 3 instances "
  roles no_worker "$(role worker 3 '"min_failed_instances": 3, "min_succeeded_instances": 1' bash -c 'exit 65')"
  run no_worker --nodes=2 --ntasks=3
  expect_code 65
}

make_data() {
  data="$work/shards with spaces"
  [ -d "$data" ] || "$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 ||
    fail "make_shards"
  training=("$programs/train_cifar" --data "$data" --model lenet --global-batch 48 --virtual-ranks 6 --threads 1)
}

# Two roles, each on a component of a heterogeneous job: a server, and a training of two ranks.
het() {
  make_data
  output="$work/results of het"
  roles het "$(role server 1 '"min_succeeded_instances": -1' bash -c "$sleeping")" \
    "$(role worker 2 '"world": "training"' "${training[@]}" --epochs 1 --output "$output")"
  run het --nodes=1 --ntasks=1 : --nodes=1 --ntasks=2
  expect_code 0
  expect_log het "[training]  [rank 0, n2]"
  expect_log het "role 'worker' succeeded"
  [ "$(readlink "$work/run_roles-$id.output")" = "$output" ] || fail "the training's folder is unknown"
  grep -q '"ranks": 2,' "$output/summary.json" || fail "the training had not two ranks"
  python3 - "$work/cluster-$id.0.json" <<'PYTHON' || fail "cluster.json does not say who runs where"
import json, sys
cluster = json.load(open(sys.argv[1]))
assert [one["host"] for one in cluster["instances"]] == ["n1", "n2", "n2"], cluster
assert [one["rank"] for one in cluster["instances"]] == [0, 0, 1], cluster
assert [node["slots"] for node in cluster["nodes"]] == [1, 2], cluster
assert cluster["master"]["port"] == cluster["instances"][0]["ports"]["master"][0], cluster
PYTHON
}

# Two roles on two components share one world: three ranks, which end together.
shared_world() {
  make_data
  output="$work/results of shared_world"
  local command=("${training[@]}" --epochs 100000 --output "$output")
  roles shared_world "$(role chief 1 '"world": "training"' "${command[@]}")" \
    "$(role worker 2 '"world": "training", "min_failed_instances": 2' "${command[@]}")"
  local try
  # Over nodes a start may hang inside MPI_Init (Slurm 22.05's PMIx, see slurm/README.md): then it is tried again.
  for try in 1 2 3 4; do
    JOB_RETRY_COUNT=0 run shared_world --nodes=1 --ntasks=1 : --nodes=2 --ntasks=2
    wait_for 20 test -s "$output/metrics.jsonl" && break
    scancel "$id"
    wait_for_end
  done
  [ -s "$output/metrics.jsonl" ] || fail "the training wrote no metrics in $try starts"
  cluster in n3 pkill -KILL --newest train_cifar || fail "no rank to kill on n3"
  expect_code 1
  expect_log shared_world "role 'chief' failed"
  expect_log shared_world "rank 2 on n3 was killed"
}

# A request to stop reaches all, the training writes a checkpoint, and the next attempt goes on from it, with new ports.
stop() {
  make_data
  output="$work/results of stop"
  roles stop "$(role worker 2 '"world": "training"' "${training[@]}" --epochs 60 --output "$output")" \
    "$(role server 1 '"min_succeeded_instances": -1' bash -c 'trap "" USR1; sleep 1000 & wait; wait')"
  run stop --nodes=2 --ntasks=3 --ntasks-per-node=2 -- --grace 3  # the checkpoints are found in the command
  wait_for 60 test -s "$output/metrics.jsonl" || fail "the training wrote no metrics"
  scancel --batch --signal=USR1 "$id"
  second_attempt() { [ -s "$work/cluster-$id.1.json" ]; }
  wait_for 90 second_attempt || fail "there is no second attempt"
  expect_log stop "(User defined signal 1)"
  expect_log stop "training ended with code 75."
  expect_log stop ": 3 instances stopped, 0 succeeded and 0 failed."
  expect_code 0
  expect_log stop " from '$output/checkpoints/step-"
  python3 - "$work/cluster-$id" "$output" <<'PYTHON' || fail "the attempts do not differ as they should"
import json, sys
first, second = (json.load(open(f"{sys.argv[1]}.{attempt}.json")) for attempt in (0, 1))
assert first["attempt"] == 0 and second["attempt"] == 1
assert first["checkpoint"] is None and second["checkpoint"].startswith(sys.argv[2] + "/checkpoints/step-"), second
assert first["instances"][0]["ports"] != second["instances"][0]["ports"]
PYTHON
  expect_undisturbed 60
}

hash_of() { sed -n 's/.*"weights_hash": "\(.*\)".*/\1/p' "$1/summary.json"; }
# expect_undisturbed EPOCHS: the weights in `output` are those of the same training without a disturbance.
expect_undisturbed() {
  [ -s "$work/undisturbed_$1/summary.json" ] || "${training[@]}" --epochs "$1" --output "$work/undisturbed_$1" \
    >"$work/undisturbed_$1.log" 2>&1 || fail "the undisturbed training"
  [ "$(hash_of "$output")" = "$(hash_of "$work/undisturbed_$1")" ] || fail "other weights than undisturbed"
}
has_checkpoint() { compgen -G "$output/checkpoints/step-*.h5" >/dev/null; }
# train_beside_server NAME EPOCHS SBATCH-OPTIONS...: a training of two ranks, one a node, beside a server that never ends.
# Returns when it has written a checkpoint. A start over nodes that hangs (see shared_world) is an attempt like others.
train_beside_server() {
  local name=$1 epochs=$2; shift 2
  make_data
  output="$work/results of $name"
  roles "$name" "$(role server 1 '"min_succeeded_instances": -1' bash -c "$sleeping")" \
    "$(role worker 2 '"world": "training"' "${training[@]}" --checkpoint-every 25 --epochs "$epochs" --output "$output")"
  LOCKSTEP_START_TIMEOUT=15 JOB_RETRY_COUNT=9 run "$name" --nodes=3 --ntasks=3 --ntasks-per-node=1 "$@" -- \
    --checkpoints "$output/checkpoints" --grace 3
  wait_for 150 has_checkpoint || fail "the training wrote no checkpoint"
}
# expect_attempt NAME CAUSE: an attempt of the job ended so, and was followed by another.
expect_attempt() {
  python3 - "$work/run_roles-$id.attempts.jsonl" "$2" <<'PYTHON' || fail "no attempt of $1 ended as $2"
import json, sys
ends = [line for line in map(json.loads, open(sys.argv[1])) if line["cause"] == sys.argv[2]]
assert ends and ends[0]["action"] == "requeue", ends
PYTHON
}

# SIGTERM to run_roles alone is a request to stop, for all roles.
told_alone() {
  train_beside_server told_alone 60
  cluster in n1 pkill -TERM -x run_roles || fail "no run_roles on n1"
  expect_code 0
  expect_log told_alone "(Terminated)"
  expect_log told_alone "training ended with code 75."
  expect_attempt told_alone stopped_early
  expect_undisturbed 60
}

# Another job needs the nodes: within the grace the training stops with a checkpoint, and the job goes on later.
preempted() {
  train_beside_server preempted 60
  (cd "$work" && sbatch --partition=urgent --nodes=3 --exclusive --output=/dev/null --wrap 'sleep 2' >/dev/null)
  expect_code 0
  expect_attempt preempted stopped_early
  expect_undisturbed 60
}

# Slurm's time limit comes near: the training stops by itself, and goes on with a limit of its own.
time_limit() {
  train_beside_server time_limit 600 --time=1
  wait_for "$time_limit_of_test" ended || fail "job $id did not end: $job"  # a minute an attempt
  expect_code 0
  expect_attempt time_limit stopped_early
  expect_undisturbed 600
}

# A rank that is alone on its node is killed: the job says so of the right instance, and is put back.
killed_alone() {
  train_beside_server killed_alone 60
  cluster in n3 pkill -KILL --newest train_cifar || fail "no rank to kill on n3"
  expect_code 0
  expect_attempt killed_alone killed
  grep -qE "role 'worker' failed.* worker\[1\] with code (1|137)\. worker\[1\] " "$work/killed_alone.out" || fail "worker[1] is not named"
  expect_undisturbed 60
}

# train_with_server NAME SBATCH-OPTIONS...: trainers and a parameter server, of one world. Each on its own node. Returns
# when they have written a checkpoint.
train_with_server() {
  local name=$1; shift
  make_data
  output="$work/results of $name"
  local command=("${training[@]}" --sync ps --servers 1 --checkpoint-every 25 --epochs 60 --output "$output")
  roles "$name" "$(role trainer 2 '"world": "training"' "${command[@]}")" \
    "$(role server 1 '"world": "training"' "${command[@]}")"
  LOCKSTEP_START_TIMEOUT=15 JOB_RETRY_COUNT=9 run "$name" "$@" -- --checkpoints "$output/checkpoints" --grace 3
  wait_for 150 has_checkpoint || fail "the training wrote no checkpoint"
}
# The server dies, or a trainer: the job says which, and the next attempt ends with the weights of an all-reduce.
server_killed() {
  train_with_server server_killed --nodes=3 --ntasks=3 --ntasks-per-node=1
  cluster in n3 pkill -KILL --newest train_cifar || fail "no server to kill on n3"
  expect_code 0
  expect_attempt server_killed killed
  expect_log server_killed "server[0] was the first to end."
  expect_undisturbed 60
}
trainer_killed() {
  train_with_server trainer_killed --nodes=2 --ntasks=2 --ntasks-per-node=1 : --nodes=1 --ntasks=1
  cluster in n2 pkill -KILL --newest train_cifar || fail "no trainer to kill on n2"
  expect_code 0
  expect_attempt trainer_killed killed
  expect_log trainer_killed "trainer[1] was the first to end."
  expect_undisturbed 60
}

# train_with_trainers NAME: a server and three trainers, all programs of their own. Returns when all have joined.
train_with_trainers() {
  local name=$1 trainer=("$programs/train_cifar" --threads 1 --trainer-of)
  make_data
  output="$work/results of $name"
  roles "$name" "$(role server 1 '"min_succeeded_instances": 1' "${training[@]}" --sync ps --trainers 3 \
    --checkpoint-every 25 --hang-timeout 30 --epochs 60 --output "$output")" \
    "$(role trainer 3 '"min_failed_instances": -1, "min_succeeded_instances": -1' "${trainer[@]}" "$output")"
  JOB_RETRY_COUNT=9 run "$name" --nodes=3 --ntasks=4 --ntasks-per-node=2 -- --checkpoints "$output/checkpoints" --grace 3
  wait_for 60 grep -q ': 3 trainers now' "$work/$name.out" || fail "the trainers did not join"
}
# kill_on_a_node PATTERN: the process whose command is like it.
kill_on_a_node() {
  local node
  for node in n1 n2 n3; do
    cluster in "$node" pkill -KILL --full "^$programs/train_cifar .*$1" && return
  done
  fail "no process '$1' to kill"
}
# A trainer of its own dies: the job goes on without it, with the same weights.
own_trainer_killed() {
  train_with_trainers own_trainer_killed
  kill_on_a_node '--trainer-of'
  expect_code 0
  expect_log own_trainer_killed "has ended without a goodbye"
  expect_log own_trainer_killed "role 'server' succeeded"
  [ ! -e "$work/cluster-$id.1.json" ] || fail "there was a second attempt"
  expect_undisturbed 60
}
# Their server dies: the attempt ends, and the next one goes on from the checkpoint.
own_server_killed() {
  train_with_trainers own_server_killed
  wait_for 60 has_checkpoint || fail "the training wrote no checkpoint"
  kill_on_a_node '--trainers 3'
  expect_code 0
  expect_attempt own_server_killed killed
  expect_log own_server_killed "role 'server' failed"
  expect_undisturbed 60
}

# An instance that cannot join is named, and so is one whose program is not there.
absent() {
  roles absent "$(role worker 3 '' bash -c "$sleeping")"
  mkdir "$work/other programs"
  cp "$programs"/{run_roles,job_attempt} "$work/other programs/"
  printf '#!/bin/bash\n[ "$SLURM_JOB_NAME" = worker-1 ] && exec sleep 1000\nexec "%s/start_instance"\n' "$programs" \
    >"$work/other programs/start_instance"
  chmod +x "$work/other programs/start_instance"
  LOCKSTEP_BIN="$work/other programs" JOB_RETRY_COUNT=0 run absent --nodes=3 --ntasks=3 -- --arrival-timeout 6 --grace 2
  expect_code 76
  expect_log absent ": worker[1]. "

  roles nowhere "$(role worker 2 '' "$work/no such program")"
  run nowhere --nodes=2 --ntasks=2
  expect_code 2
  expect_log nowhere "'$work/no such program'"

  roles too_many "$(role worker 5 '' bash -c "$sleeping")"
  run too_many --nodes=2 --ntasks=2
  expect_code 2
  expect_log too_many "role 'worker' has 5 instances"
}

# Words of a command, and the job's name, are what they are.
hostile() {
  local words=("a'b" 'c"d' $'e\nf' '$(touch executed)' '`touch executed`' ';touch executed' '\\' '* ~' '<%' '--')
  roles hostile "$(role worker 2 '' python3 -c 'import json, os, sys
print("words", json.dumps(sys.argv[1:]), json.dumps(os.environ["PAI_JOB_NAME"]))' "${words[@]}")"
  local name=$'n\';touch executed; $(touch executed) "'
  run hostile --nodes=2 --ntasks=2 --job-name="$name"
  expect_code 0
  [ ! -e "$work/executed" ] || fail "a word of a command was executed"
  python3 - "$work/hostile.out" "$name" "${words[@]}" <<'PYTHON' || fail "words came out otherwise"
import json, sys
log, name, *words = sys.argv[1:]
lines = [line.split("]  words ")[1] for line in open(log) if "]  words " in line]
assert len(lines) == 2, lines
for line in lines:
    assert line.strip() == json.dumps(words) + " " + json.dumps(f"root~{name}"), line
PYTHON
}

run_scenarios "$@"
