#!/usr/bin/env bash
# What becomes of a training that something ends early, on a real cluster: retry_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below. A training that is repeated comes to the weights of one that nobody disturbed.
set -uo pipefail
build=$(readlink -f "$1")
shift
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

data="$work/shards with spaces"
"$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 || fail "make_shards"
options=(--data "$data" --model lenet --global-batch 48 --virtual-ranks 6 --threads 1 --checkpoint-every 25)

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
  train killed_rank 15
  wait_for_checkpoint_after 20
  local since=$EPOCHREALTIME
  cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
  next_step_after killed_rank "$since"
  finished 15
  expect_attempt 0 killed requeue
  expect_attempt 1 "done" stop
  [ "$(field 1 counted_retries)" = 1 ] || fail "a killed rank is not counted"
  expect_log killed_rank "going on from '$output/checkpoints/step-"
  expect_log killed_rank "cause killed"
  expect_log killed_rank "next attempt 1 goes on from the checkpoint of step"

  JOB_RETRY_COUNT=0 train no_retries 100000
  wait_for_checkpoint_after 0
  cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
  wait_for_end
  expect "ExitCode=1:0"
  expect_attempt 0 killed stop
  expect_log no_retries "next not repeated: 0 of 0 counted retries are used up (JOB_RETRY_COUNT)"
}

# scancel is final, although the training ends with code 75, which is repeated otherwise.
scancelled() {
  train scancelled 100000
  wait_for_checkpoint_after 0
  scancel "$id"
  wait_for_end
  expect "JobState=CANCELLED"
  expect_attempt 0 cancelled stop
  expect "Restarts=0"
}

for scenario in "$@"; do
  begin=$SECONDS
  echo "$scenario"
  "$scenario"
  echo "  passed in $((SECONDS - begin)) s"
done
echo "passed: $#"
