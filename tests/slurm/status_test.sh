#!/usr/bin/env bash
# What job_status says of jobs on a real cluster: status_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below. All call it from another folder than the job's.
# shellcheck disable=SC2317
set -uo pipefail
build=$(readlink -f "$1")
shift
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

"$programs/make_shards" synthetic --samples 600 --output "$work/shards" >"$work/make_shards.out" 2>&1 || fail "make_shards"
options=(--data shards --model lenet --global-batch 48 --threads 1 --checkpoint-every 25)

# train NAME EPOCHS: on two nodes, by paths that are relative to the job's folder.
train() {
  submit "$1" --nodes=2 --ntasks-per-node=1 "$scripts/train_cifar.sbatch" "${options[@]}" --epochs "$2" --output "runs/$1"
}
status() { (cd / && "$programs/job_status" "$@"); }
says() { grep -qE -- "$1" < <(status "$id" 2>&1); }
expect_words() { wait_for "$2" says "$1" || fail "job_status does not say '$1': $(status "$id" 2>&1)"; }
refuse_words() { ! says "$1" || fail "job_status says '$1': $(status "$id" 2>&1)"; }

running() {
  train running 100000
  expect_words '^state +running: job [0-9]+ on n1 \(process [0-9]+\)$' 60
  expect_words '^step +[0-9]+ of ' 10
  expect_words '^checkpoint +step [0-9]+$' 10
  refuse_words 'or killed with its node'
  # A second job in the same folder is refused, and shows nothing of the first one.
  local first=$id follower
  submit second --nodes=1 "$scripts/train_cifar.sbatch" "${options[@]}" --epochs 1 --output runs/running
  wait_for_end
  expect_words "^state +not started.* \(job $first on n1 " 1
  refuse_words '^(step|speed) '
  id=$first
  status "$id" --follow >"$work/followed" 2>&1 &
  follower=$!
  sleep 7
  "$scripts/stop_job" "$id" 2>/dev/null
  wait_for_end
  wait "$follower" || fail "job_status --follow ends with $?: $(cat "$work/followed")"
  (($(grep -cE '^job [0-9]+: RUNNING, attempt 0  step ' "$work/followed") >= 2)) ||
    fail "nothing was followed: $(cat "$work/followed")"
  (($(grep -c '^state ' "$work/followed") == 2)) || fail "not the first and the last state: $(cat "$work/followed")"
  tail -n 7 "$work/followed" | grep -q '^state  *stopped' || fail "the end is not told: $(cat "$work/followed")"
}

requeued() {
  train requeued 100000
  expect_words '^step +[0-9]+ of ' 60
  scontrol requeue "$id"
  expect_words '^job +[0-9]+ train_cifar: PENDING' 30
  expect_words '^ended +attempt 0, requeued: ' 20
  expect_words '^state +stopped' 1
  expect_words '^job +[0-9]+ train_cifar: RUNNING' 30
  expect_words '^state +starting' 1
  refuse_words '^(step|speed|time left) '
  expect_words '^attempt +1, ' 20
  expect_words '^step +[0-9]+ of ' 60
  scancel "$id"
  wait_for_end
}

# The script cannot write its last line: it is killed first, as by Slurm with a short KillWait.
cancelled() {
  train cancelled 100000
  expect_words '^step +[0-9]+ of ' 60
  scancel "$id"
  cluster in n1 pkill -KILL -f slurm_script || fail "no script to kill on n1"
  wait_for_end
  grep -q '"cause":"running"' < <(tail -n 1 "$work/train_cifar-$id.attempts.jsonl") || fail "the script wrote its last line"
  expect_words '^ended +attempt 0, cancelled: ' 1
  expect_words '^state +(stopped|killed)' 1
}

array_task() {
  printf -- '--seed %d\n' 1 2 3 >"$work/sweep"
  submit array --array=0-2 --ntasks-per-node=1 "$scripts/array.sbatch" sweep "${options[@]}" --epochs 100000
  local whole=$id
  expect_words "^task +${whole}_1: RUNNING$" 30
  expect_words " job_status ${whole}_TASK$" 1
  id=${whole}_1
  expect_words "^job +${whole}_1 \([^)]*[0-9]+\) array: RUNNING$" 1
  expect_words '^step +[0-9]+ of ' 60
  id=$whole
  scancel "$id"
  wait_for_end
  submit het --nodes=1 --ntasks=1 : --nodes=1 --ntasks=1 --wrap 'sleep 100'
  expect_words "^job +$id wrap: RUNNING$" 30
  whole=$id
  id=$whole+1
  expect_words "^job +$whole wrap: RUNNING$" 1
  scancel "$whole"
}

run_scenarios "$@"
