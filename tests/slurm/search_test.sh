#!/usr/bin/env bash
# Searches on a real cluster of three nodes, in one job and as job arrays: search_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below.
# shellcheck disable=SC2317
set -uo pipefail
build=$(readlink -f "$1")
shift
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/support.sh"

"$programs/make_shards" synthetic --samples 600 --output "$work/data" >"$work/make_shards.log" 2>&1 || fail "make_shards"
# Decisions do not depend on the order in which trials end.
cat >"$work/space.yaml" <<'YAML'
program: train_cifar
arguments: --data data --model lenet --global-batch 48 --threads 1 --checkpoint-every 5
searcher: {name: successive_halving, metric: test-loss, max_length: {epochs: 40}, max_trials: 3, max_concurrent_trials: 3, divisor: 2}
hyperparameters: {lr: {type: log, minval: -2.5, maxval: -0.5}}
YAML
cd "$work" || exit 1
# Prints results and decisions of a search, without the order in which trials have ended.
decided() {
  python3 - "$work/$1/search.jsonl" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
print(sorted((line["rung"], line["trial"], line["steps"], line["metric"]) for line in lines if "metric" in line))
print(sorted((order["rung"], order["trial"]) for line in lines for order in line.get("orders", [])))
PYTHON
}
undisturbed() {
  [ -e undisturbed ] || "$programs/search" space.yaml --output undisturbed >undisturbed.log 2>&1 ||
    fail "search: $(<undisturbed.log)"
  decided undisturbed
}
expect_decisions() { [ "$(decided "$1")" = "$(undisturbed)" ] || fail "$1 decides: $(decided "$1"), not $(undisturbed)"; }
trains() { [ -s "$work/$1/trial-$2/metrics.jsonl" ]; }
all_train() { trains "$1" 1 && trains "$1" 2 && trains "$1" 3; }
# submit_array NAME OPTIONS...: sets `id`.
submit_array() {
  local name=$1 words; shift
  words=$("$programs/search" --array space.yaml --output "$name" -- "--output=$work/$name.%a.out" "$@" 2>&1) ||
    fail "search --array: $words"
  id=$(sed -n 's/^Submitted batch job //p' <<<"$words")
  [ -n "$id" ] || fail "search --array does not say the job's number: $words"
}
node_of_task() { squeue -h -j "${id}_$1" -o %N; }

# A task ends for good with a checkpoint: another one continues its trial at once.
array() {
  "$programs/search" --array space.yaml --output array --dry-run >dry_run.log 2>&1 || fail "--dry-run"
  grep -qF "site_sbatch' '--array=1-3%3' " dry_run.log || grep -qF "site_sbatch '--array=1-3%3' " dry_run.log || fail "--dry-run prints: $(<dry_run.log)"
  submit_array array
  wait_for 100 all_train array || fail "the tasks do not run a trial each"
  task=$(task_of_trial 1 array)
  bash "$scripts/stop_job" "${id}_$task" || fail "stop_job"
  wait_for_end
  expect_decisions array
  [ "$(grep -l 'best: trial' array.?.out | wc -l)" = 2 ] || fail "not two tasks have seen the end"
  grep -q '"lease":[2-9]' array/trial-1/lease || fail "nobody has taken trial 1: $(<array/trial-1/lease)"
}

# A node dies, and its task does not come back. Its trial continues on another node after three missed heartbeats.
node_dies() {
  local node
  submit_array node_dies --no-requeue --exclusive  # each task on a node of its own
  wait_for 100 all_train node_dies || fail "the tasks do not run a trial each"
  task=$(task_of_trial 2 node_dies)
  node=$(node_of_task "$task")
  cluster kill "$node"
  wait_for_end
  expect_decisions node_dies
  [ "$(grep -l 'best: trial' node_dies.?.out | wc -l)" -ge 2 ] || fail "not two tasks have seen the end"
  cluster start "$node"  # other scenarios need three nodes
}

# A search in one job is requeued, and continues.
requeued() {
  submit requeued --nodes=3 "$scripts/search.sbatch" space.yaml --output requeued
  wait_for 100 all_train requeued || fail "three trials do not run at once"
  scontrol requeue "$id"
  wait_for_end
  expect "JobState=COMPLETED"
  expect "Restarts=1"
  expect_decisions requeued
}

run_scenarios "$@"
