#!/usr/bin/env bash
# Submits slurm/train_cifar.sbatch to a real cluster of three nodes: train_cifar_test.sh BUILD_FOLDER [few]
#
# few: what a job is without faults, with a killed rank, in another job's folder and with a wrong option.
set -uo pipefail
build=$(readlink -f "$1")
few=$([ "${2:-}" = few ] && echo 1 || echo 0)
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"
export JOB_RETRY_COUNT=0  # retry_test.sh is about what is repeated

# train NAME RANKS OPTIONS...: sets `id`. Without RANKS ('') the script says how many.
train() {
  local name=$1 ranks=$2; shift 2
  local tasks=()
  [ -z "$ranks" ] || tasks=(--ntasks-per-node=$((ranks / 3)) --ntasks="$ranks")
  submit "$name" --nodes=3 "${tasks[@]}" "$scripts/train_cifar.sbatch" "$@"
}
verdict() { echo "$work/train_cifar-$1.0.json"; }

data="$work/shards with spaces"
"$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 || fail "make_shards"
options=(--data "$data" --model lenet --global-batch 48 --threads 1)

output="$work/results with spaces"
train good '' "${options[@]}" --epochs 1 --output "$output"
wait_for_end
expect "JobState=COMPLETED"
expect "NodeList=n[1-3]"
[ ! -e "$(verdict "$id")" ] || fail "a job that ends well leaves a verdict"
python3 - "$output" <<'PYTHON' || fail "the results are not those of a training on two ranks a node"
import json, pathlib, sys
output = pathlib.Path(sys.argv[1])
summary = json.loads((output / "summary.json").read_text())
assert 0 < summary["test_accuracy"] <= 1, summary
assert summary["ranks"] == 6 and summary["global_batch"] == 48, summary
assert [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
assert (output / "model.h5").stat().st_size > 0
assert not (output / "failure.json").exists()
PYTHON

# A rank is killed: srun reports 137, the verdict, written by the rank beside it, says why and decides the job's code.
# A second job in the same folder is refused before, and the first one's verdict stays its own.
output=$work/killed
train killed 6 "${options[@]}" --epochs 100000 --output="$output"
killed=$id
wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to be killed wrote no metrics"
train bystander 3 "${options[@]}" --epochs 1 --output="$output"
wait_for_end
expect "ExitCode=2:0"
grep -q "sentence .*job $killed on n1" "$work/bystander.out" ||
  fail "the second job does not say whose folder it is"
[ ! -e "$output/failure.json" ] || fail "the second job wrote into the first one's folder"
id=$killed
cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
wait_for_end
expect "JobState=FAILED"
expect "ExitCode=1:0"
grep -q 'sentence .*rank [23] on n2 was killed' "$work/killed.out" ||
  fail "the job does not name the rank"

# A wrong option is refused before there is an output folder.
train wrong_option 3 "${options[@]}" --epochs many
wait_for_end
expect "ExitCode=2:0"
grep -q -- 'sentence .*--epochs' "$work/wrong_option.out" || fail "the verdict does not name the option"

# A search shares the job's tasks: three trials of two ranks at once, each a job step. One search is stopped for good,
# another one runs to its end.
cat >"$work/long.yaml" <<YAML
program: train_cifar
arguments: [--data, "$data", --model, lenet, --global-batch, "48", --threads, "1"]
ranks_per_trial: 2
searcher: {name: random, metric: test-accuracy, max_length: {epochs: 2000}, max_trials: 3}
hyperparameters: {lr: {type: log, minval: -3, maxval: -1}}
YAML
# search NAME: runs NAME.yaml in a job, into the folder NAME.
search() { submit "$1" --nodes=3 "$scripts/search.sbatch" "$1.yaml" --output "$1"; }
all_train() { [ -s "$work/long/trial-1/metrics.jsonl" ] && [ -s "$work/long/trial-2/metrics.jsonl" ] &&
  [ -s "$work/long/trial-3/metrics.jsonl" ]; }
search long
wait_for 100 all_train || fail "three trials do not run at once"
bash "$scripts/stop_job" "$id" || fail "stop_job"
wait_for_end
expect "ExitCode=75:0"
expect_log long 'cause stopped_for_good'
for trial in 1 2 3; do
  grep -q '"state": "stopped"' "$work/long/trial-$trial/summary.json" || fail "trial $trial was not stopped cleanly"
done
sed 's/epochs: 2000/epochs: 1/' "$work/long.yaml" >"$work/short.yaml"
search short
wait_for_end
expect "JobState=COMPLETED"
expect_log short "best: trial"
grep -q '"ranks": 2,' "$work/short/trial-3/summary.json" || fail "a trial has not two ranks"

if ((few)); then
  echo "passed: six jobs on three nodes"
  exit
fi

# A rank of a trial is killed: that trial alone starts again.
sed 's/epochs: 2000/epochs: 20/' "$work/long.yaml" >"$work/killed.yaml"
search killed
wait_for 60 test -s "$work/killed/trial-2/metrics.jsonl" || fail "the second trial does not run"
cluster in n2 pkill -KILL --newest train_cifar || fail "no train_cifar on n2"
wait_for_end
expect "JobState=COMPLETED"
expect_log killed "is restarted (1 of 5)"

# The only rank of a node is killed, or stopped: another node tells it.
for signal in KILL STOP; do
  output=$work/alone_$signal
  train "alone_$signal" 3 "${options[@]}" --epochs 100000 --hang-timeout 3 --output="$output"
  wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to get SIG$signal wrote no metrics"
  cluster in n2 pkill "-$signal" --newest train_cifar || fail "no train_cifar on n2"
  wait_for_end
  expect "JobState=FAILED"
  case $signal in
    KILL) told='rank [0-2] on n2 was killed or ended without a word' code=1 ;;
    STOP) told='no heartbeat from rank [0-2] on n2 for' code=76 ;;
  esac
  expect "ExitCode=$code:0"
  grep -q "sentence .*$told" "$work/alone_$signal.out" || fail "the job does not name the rank"
done

# The link of a node dies, and the job is asked to stop: no stop can be agreed on, but nothing waits for ever either.
output=$work/cut
train cut 3 "${options[@]}" --epochs 100000 --hang-timeout 3 --output="$output"
wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to be cut apart wrote no metrics"
cluster cut n2 && scancel --signal=TERM "$id" || fail "cannot cut n2 off"
wait_for 30 test -s "$output/failure.json" || fail "nobody tells that n2 is silent"
wait_for 30 grep -q 'sentence .*no heartbeat from rank [0-2] on n2 for' "$work/cut.out" ||
  fail "the job does not end, or does not name the silent rank"
grep -q '"code": 76, .*"host": "n2"' "$output/failure.json" || fail "not code 76 on n2: $(<"$output/failure.json")"
for node in n1 n2 n3; do
  nobody_trains() { ! cluster in "$node" pgrep train_cifar >/dev/null; }
  wait_for 10 nobody_trains || fail "a rank on $node lives on"
done
cluster mend n2  # for Slurm, which waits for word from the node
wait_for_end
expect "ExitCode=76:0"

# An output folder is chosen where none is stated; data that are not there are wrong use. LOCKSTEP_BIN names programs.
ln -s "$programs" "$work/other programs"
export LOCKSTEP_BIN="$work/other programs"
train no_output 3 --data "$work/nowhere"
wait_for_end
expect "ExitCode=2:0"
[ -r "$work/runs/$id/failure.json" ] || fail "no failure.json in runs/$id"

LOCKSTEP_BIN="$work/no programs" train no_program 3 "${options[@]}"
wait_for_end
expect "JobState=FAILED"
expect_log no_program 'LOCKSTEP_BIN'
echo "passed: eleven jobs on three nodes"
