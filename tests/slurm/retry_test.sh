#!/usr/bin/env bash
# What becomes of a training that something ends early, on a real cluster: retry_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below. A training that is repeated comes to the weights of one that nobody disturbed.
# causes_test.sh pretends what a cluster cannot be made to do.
set -uo pipefail
build=$(readlink -f "$1")
shift
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

data="$work/shards with spaces"
"$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 || fail "make_shards"
# The number of epochs follows from the machine's speed, and lenet diverges after some of them at the default rate.
options=(--data "$data" --model lenet --lr 0.05 --global-batch 48 --virtual-ranks 6 --threads 1 --checkpoint-every 25)

hash_of() { sed -n 's/.*"weights_hash": "\(.*\)".*/\1/p' "$1/summary.json"; }
# undisturbed EPOCHS: what the same training comes to where nothing disturbs it; virtual ranks make it the same on one.
undisturbed() {
  [ -s "$work/undisturbed_$1/summary.json" ] || "$programs/train_cifar" "${options[@]}" --epochs "$1" \
    --output "$work/undisturbed_$1" >"$work/undisturbed_$1.log" 2>&1 || fail "the undisturbed training"
  hash_of "$work/undisturbed_$1"
}
# train NAME EPOCHS SBATCH-OPTIONS...: three nodes, two ranks on each, results in $work/NAME. Sets `id` and `output`.
train() {
  local name=$1 epochs=$2; shift 2
  output="$work/results of $name"
  submit "$name" --nodes=3 "$@" "$scripts/train_cifar.sbatch" "${options[@]}" --epochs "$epochs" --output "$output"
  attempts=$work/train_cifar-$id.attempts.jsonl
}
has_checkpoint_after() { # STEP
  local newest
  newest=$(cd "$output/checkpoints" 2>/dev/null && printf '%s\n' step-*.h5 | tail -1) || return 1
  [[ $newest =~ ^step-0*([0-9]+)\.h5$ ]] && ((BASH_REMATCH[1] > $1))
}
wait_for_checkpoint_after() { wait_for 90 has_checkpoint_after "$1" || fail "no checkpoint after step $1"; }
# field ATTEMPT NAME: of the attempt's last line.
field() {
  python3 - "$attempts" "$1" "$2" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
print([line for line in lines if line["attempt"] == int(sys.argv[2])][-1][sys.argv[3]])
PYTHON
}
# expect_attempt NUMBER CAUSE ACTION
expect_attempt() {
  local cause action
  cause=$(field "$1" cause) action=$(field "$1" action)
  [ "$cause $action" = "$2 $3" ] || fail "attempt $1 of job $id is '$cause $action', not '$2 $3': $(cat "$attempts")"
}
# finished EPOCHS: the job has come to the end, with the weights of the undisturbed training.
finished() {
  wait_for_end
  expect "JobState=COMPLETED"
  [ "$(hash_of "$output")" = "$(undisturbed "$1")" ] || fail "other weights than undisturbed: $(hash_of "$output")"
  echo "  weights $(hash_of "$output"), as undisturbed"
}
reports_again() { sed '1,/^---- attempt 1 of job/d' "$work/$1.out" | grep -q ' step '; }
# next_step_after NAME SECONDS: prints how long it took from SECONDS on to the first report of attempt 1.
next_step_after() {
  wait_for 90 reports_again "$1" || fail "attempt 1 of $1 reports no step"
  awk -v from="$2" -v to="$EPOCHREALTIME" 'BEGIN { printf "  %.1f s to the first report of the next attempt\n", to - from }'
}

# A rank is killed, nobody says why: the job is put back once more, and counted. At the end of the count it stops.
killed_rank() {
  local since
  train killed_rank 60
  wait_for_checkpoint_after 20
  since=$EPOCHREALTIME
  cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
  next_step_after killed_rank "$since"
  finished 60
  expect_attempt 0 killed requeue
  expect_attempt 1 "done" stop
  [ "$(field 1 counted_retries)" = 1 ] || fail "a killed rank is not counted"
  expect_log killed_rank " from '$output/checkpoints/step-"
  expect_log killed_rank "cause killed"
  expect_log killed_rank "next attempt 1 resumes"

  JOB_RETRY_COUNT=0 train no_retries 100000
  wait_for_checkpoint_after 0
  cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
  wait_for_end
  expect "ExitCode=1:0"
  expect_attempt 0 killed stop
  expect_log no_retries "JOB_RETRY_COUNT"
}

# scancel is final, although the training ends with code 75, which is repeated otherwise.
scancelled() {
  train scancelled 100000
  wait_for_checkpoint_after 0
  scancel "$id"
  wait_for_end
  expect "JobState=CANCELLED"
  expect "Restarts=0"
  expect_attempt 0 cancelled stop
}

# stop_job ends a job for good, with a checkpoint of the step it had come to.
stopped_for_good() {
  train stopped_for_good 100000
  wait_for_checkpoint_after 0
  "$scripts/stop_job" "$id" || fail "stop_job"
  wait_for_end
  expect "ExitCode=75:0"
  expect "Restarts=0"
  expect_attempt 0 stopped_for_good stop
  local step
  step=$(field 0 checkpoint_step)
  grep -q "stopped.*step $step\b" "$work/stopped_for_good.out" || fail "no checkpoint of the step it stopped at ($step)"
  "$scripts/stop_job" 999999 'no job; reboot' 2>"$work/stop_job.log" && fail "stop_job takes anything for a job"
  grep -q "'no job; reboot'" "$work/stop_job.log" || fail "stop_job does not say what it refuses"
  # One that waits is cancelled.
  submit waiting --nodes=3 --begin=now+1hour "$scripts/train_cifar.sbatch" "${options[@]}"
  "$scripts/stop_job" "$id" 2>"$work/stop_job.log" || fail "stop_job of one that waits"
  wait_for_end
  expect "JobState=CANCELLED"
}

# Only the script is told to stop: the ranks write a checkpoint, and the job goes on.
told_to_stop() {
  train told_to_stop 60
  wait_for_checkpoint_after 20
  scancel --batch --signal=USR1 "$id"
  finished 60
  expect_attempt 0 stopped_early requeue
  [ "$(field 1 counted_retries)" = 0 ] || fail "a stop in good order is counted"
}

# Put back by hand: Slurm ends the attempt, the ranks write a checkpoint on SIGTERM.
requeued() {
  train requeued 60
  wait_for_checkpoint_after 20
  scontrol requeue "$id"
  finished 60
  expect_attempt 0 requeued requeue
  expect "Restarts=1"
}

urgent_job() { (cd "$work" && sbatch --parsable --partition=urgent --nodes=3 --exclusive --output=/dev/null --wrap 'sleep 2'); }
preempt() { # ATTEMPT: wait until it has got on, and take its nodes away
  local began='---- attempt '$1
  wait_for 90 grep -qs "^$began of job" "$work/$2.out" || fail "attempt $1 of $2 does not begin"
  wait_for_checkpoint_after "$(($(field "$1" checkpoint_step | sed 's/None/-1/') + 15))"
  urgent_job >/dev/null || fail "no urgent job"
}
# Another job needs the nodes. Within the grace the training stops with a checkpoint, and its script puts it back.
preempted() {
  train preempted 60
  preempt 0 preempted
  finished 60
  expect_attempt 0 stopped_early requeue
  [ "$(field 1 counted_retries)" = 0 ] || fail "a preemption is counted"
}
preempted_five_times() {
  local attempt
  train preempted_five_times 120
  for attempt in 0 1 2 3 4; do preempt "$attempt" preempted_five_times; done
  finished 120
  # Slurm 24.11 remembers a preemption whose job has put itself back: it starts the job once more when it is done.
  [[ $job =~ Restarts=[56]\  ]] || fail "not five restarts: $job"
  [ "$(field 5 transient_retries)" = 5 ] || fail "not five retries: $(cat "$attempts")"
}

# Slurm's time limit comes near: the training stops by itself, and goes on with a limit of its own. Slurm has none below
# a minute, so the training is one that takes longer, on a machine however fast.
time_limit() {
  local start=$SECONDS epochs
  undisturbed 60 >/dev/null
  epochs=$((60 * 70 / (SECONDS - start + 1)))
  ((epochs >= 120)) || epochs=120
  train time_limit "$epochs" --time=1
  finished "$epochs"
  expect_attempt 0 stopped_early requeue
}

# A node loses power, and its ranks with it, until Slurm has noticed.
node_fails() {
  train node_fails 60
  wait_for_checkpoint_after 20
  cluster kill n3
  wait_for 60 is_down n3 || fail "Slurm does not notice that n3 is dead"
  cluster start n3
  finished 60
  echo "  attempt 0: $(field 0 cause), $(field 0 sentence)"
}
is_down() { sinfo -h -N -n "$1" -o %E | grep -q 'Not responding'; }
# The same to the node that runs the script: nobody ends the attempt, so the next one does on paper.
first_node_fails() {
  train first_node_fails 60
  wait_for_checkpoint_after 20
  cluster kill n1
  wait_for 60 is_down n1 || fail "Slurm does not notice that n1 is dead"
  cluster start n1
  finished 60
  expect_attempt 0 lost requeue
}
# The node with the script dies after stop_job and before there is a checkpoint: Slurm starts the job again, and it ends
# at once. Likewise the script of a job of roles.
first_node_fails_after_stop_job() {
  local training
  echo '{"format": 1, "roles": [{"name": "worker", "command": ["bash", "-c", "trap : USR1; sleep 900; sleep 900"]}]}' \
    >"$work/roles.json"
  submit roles_stopped --nodelist=n1 --ntasks=1 "$scripts/run_roles.sbatch" "$work/roles.json"
  local roles=$id
  train stopped_and_lost 100000
  training=$id
  wait_for_checkpoint_after 0
  wait_for 60 grep -q 'instances have joined' "$work/roles_stopped.out" || fail "the roles do not begin"
  cluster in n2 pkill -STOP train_cifar || fail "no train_cifar to stop on n2"
  "$scripts/stop_job" "$training" "$roles" || fail "stop_job"
  wait_for 20 test -e "$work/train_cifar-$training.stop" || fail "the request is not written down"
  wait_for 20 test -e "$work/run_roles-$roles.stop" || fail "the request is not written down for the roles"
  cluster kill n1
  wait_for 60 is_down n1 || fail "Slurm does not notice that n1 is dead"
  cluster start n1
  for id in "$training" "$roles"; do
    wait_for_end
    expect "JobState=FAILED"
    expect "ExitCode=75:0"
    expect "Restarts=1"
    attempts=$(echo "$work"/*-"$id".attempts.jsonl)
    expect_attempt 0 stopped_for_good stop
    expect_attempt 1 stopped_for_good stop
    [ "$(field 1 code)" = 75 ] || fail "the record has another code: $(cat "$attempts")"
  done
  expect_log stopped_and_lost "The attempt does not start: stop_job"
  expect_log roles_stopped "The attempt does not start: stop_job"
}
# A node dies and is back before Slurm notices: the ranks that are left do.
node_is_back_at_once() {
  train node_is_back_at_once 60
  wait_for_checkpoint_after 20
  cluster kill n3
  cluster start n3
  finished 60
  echo "  attempt 0: $(field 0 cause), $(field 0 sentence)"
}

# slurmd alone dies, and is back before Slurm notices: nothing happens to what runs.
slurmd_is_back_at_once() {
  train slurmd_is_back_at_once 60
  wait_for_checkpoint_after 20
  cluster kill-slurmd n2 || fail "no slurmd to kill on n2"
  cluster start-slurmd n2 || fail "slurmd of n2 does not start"
  finished 60
  expect "Restarts=0"
}
# slurmd alone dies until Slurm notices: the job is put back as if the node had failed, although its ranks live on. They
# are gone before the next attempt begins. Likewise on the node of the script, which lives on, too.
slurmd_dies() {
  local node
  for node in n2 n1; do
    train "slurmd_of_${node}_dies" 60
    wait_for_checkpoint_after 20
    cluster in n3 pkill -STOP train_cifar || fail "no train_cifar to stop on n3"  # it is not to be done before
    cluster kill-slurmd "$node" || fail "no slurmd to kill on $node"
    wait_for 60 is_down "$node" || fail "Slurm does not notice that slurmd of $node is dead"
    cluster start-slurmd "$node" || fail "slurmd of $node does not start"
    finished 60
    expect "Restarts=1"
    echo "  attempt 0: $(field 0 cause), $(field 0 sentence)"
  done
}

# slurmctld is away while a rank dies, and comes back: the script waits for it.
controller_is_away() {
  train controller_is_away 300
  wait_for_checkpoint_after 20
  sleep 6  # it writes its state down every five seconds
  cluster kill-controller
  cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
  wait_for 60 grep -q '^action requeue' "$work/controller_is_away.out" || fail "no decision while slurmctld is away"
  cluster start-controller
  finished 300
  expect_attempt 0 killed requeue
}

run_scenarios "$@"
