#!/usr/bin/env bash
# Submits slurm/train_cifar.sbatch to a real cluster of three nodes: train_cifar_test.sh BUILD_FOLDER [few]
#
# few: what a job is without faults, with a killed rank, in another job's folder and with a wrong option.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$(readlink -f "$1")/bin
script=$(readlink -f "$1")/slurm/train_cifar.sbatch
few=$([ "${2:-}" = few ] && echo 1 || echo 0)

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "failed: $*"; cat "$work"/*.out 2>/dev/null; exit 1; }
for program in munged slurmctld slurmd sbatch ip unshare; do
  command -v "$program" >/dev/null || skip "no $program here (Slurm, munge and iproute2 start the cluster)"
done
((EUID == 0)) || skip "a cluster of namespaces wants root"
unshare --net --mount --uts --ipc --pid --fork --mount-proc ip link add probe type bridge 2>/dev/null ||
  skip "this machine allows no network namespaces or bridges"

work=$(mktemp -d)
# Another run may have a cluster of its own up at the same time.
export CLUSTER_TAG=$((RANDOM % 90 + 10)) CLUSTER_NET=10.$((RANDOM % 100 + 100)).$((RANDOM % 250))
export CLUSTER_PORT=$((RANDOM % 10000 + 20000))
export SLURM_CONF=$work/cluster/etc/slurm.conf OMPI_MCA_mpi_yield_when_idle=1
unset LOCKSTEP_BIN SLURM_PMIX_FENCE
trap '"$here/cluster.sh" "$work/cluster" down; rm -rf "$work"' EXIT
mkdir "$work/cluster"
"$here/cluster.sh" "$work/cluster" up 3 || { cat "$work"/cluster/log/*; fail "the cluster did not come up"; }

# submit NAME RANKS OPTIONS...: sets `id`. Without RANKS ('') the script says how many.
submit() {
  local name=$1 ranks=$2; shift 2
  local tasks=()
  [ -z "$ranks" ] || tasks=(--ntasks-per-node=$((ranks / 3)) --ntasks="$ranks")
  id=$(cd "$work" && sbatch --parsable --nodes=3 "${tasks[@]}" --output="$work/$name.out" "$script" "$@") ||
    fail "sbatch refused $name"
}
verdict() { echo "$work/train_cifar-$1.0.json"; }
# wait_for SECONDS COMMAND...: until it succeeds, and so early that the cluster is down before CTest kills this.
wait_for() {
  local end=$((SECONDS + $1 < 270 ? SECONDS + $1 : 270)); shift
  until "$@"; do ((SECONDS < end)) || return 1; sleep 0.25; done
}
ended() { job=$(scontrol show job "$id") && ! grep -qE 'JobState=(PENDING|RUNNING|COMPLETING|CONFIGURING)' <<<"$job"; }
# Sets `job` to what Slurm knows of it.
wait_for_end() { wait_for 100 ended || { scancel "$id"; fail "job $id did not end: $job"; }; }
# expect WORDS: what Slurm knows of the job contains them.
expect() { grep -qF "$1" <<<"$job" || fail "Slurm does not say '$1': $job"; }

data="$work/shards with spaces"
"$programs/make_shards" synthetic --samples 600 --output "$data" >"$work/make_shards.out" 2>&1 || fail "make_shards"
options=(--data "$data" --model lenet --global-batch 48 --threads 1)

output="$work/results with spaces"
submit good '' "${options[@]}" --epochs 1 --output "$output"
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
submit killed 6 "${options[@]}" --epochs 100000 --output="$output"
killed=$id
wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to be killed wrote no metrics"
submit bystander 3 "${options[@]}" --epochs 1 --output="$output"
wait_for_end
expect "ExitCode=2:0"
grep -q "from its verdict: .*belongs to another training: job $killed on n1" "$work/bystander.out" ||
  fail "the second job does not say whose folder it is"
[ ! -e "$output/failure.json" ] || fail "the second job wrote into the first one's folder"
id=$killed
"$here/cluster.sh" "$work/cluster" in n2 pkill -KILL --newest train_cifar || fail "no train_cifar to kill on n2"
wait_for_end
expect "JobState=FAILED"
expect "ExitCode=1:0"
grep -q 'from its verdict: .*rank [23] on n2 was killed' "$work/killed.out" ||
  fail "the job does not name the rank"

# A wrong option is refused before there is an output folder.
submit wrong_option 3 "${options[@]}" --epochs many
wait_for_end
expect "ExitCode=2:0"
grep -q -- 'from its verdict: .*--epochs' "$work/wrong_option.out" || fail "the verdict does not name the option"

if ((few)); then
  echo "passed: four jobs on three nodes"
  exit
fi

# The only rank of a node is killed, or stopped: another node tells it.
for signal in KILL STOP; do
  output=$work/alone_$signal
  submit "alone_$signal" 3 "${options[@]}" --epochs 100000 --hang-timeout 3 --output="$output"
  wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to get SIG$signal wrote no metrics"
  "$here/cluster.sh" "$work/cluster" in n2 pkill "-$signal" --newest train_cifar || fail "no train_cifar on n2"
  wait_for_end
  expect "JobState=FAILED"
  case $signal in
    KILL) told='rank [0-2] on n2 was killed or ended without a word' code=1 ;;
    STOP) told='nothing has been heard of rank [0-2] on n2 for' code=76 ;;
  esac
  expect "ExitCode=$code:0"
  grep -q "from its verdict: .*$told" "$work/alone_$signal.out" || fail "the job does not name the rank"
done

# The link of a node dies, and the job is asked to stop: no stop can be agreed on, but nothing waits for ever either.
output=$work/cut
submit cut 3 "${options[@]}" --epochs 100000 --hang-timeout 3 --output="$output"
wait_for 60 test -s "$output/metrics.jsonl" || fail "the training to be cut apart wrote no metrics"
"$here/cluster.sh" "$work/cluster" cut n2 && scancel --signal=TERM "$id" || fail "cannot cut n2 off"
wait_for 30 test -s "$output/failure.json" || fail "nobody tells that n2 is silent"
wait_for 30 grep -q 'from its verdict: .*nothing has been heard of rank [0-2] on n2 for' "$work/cut.out" ||
  fail "the job does not end, or does not name the silent rank"
grep -q '"code": 76, .*"host": "n2"' "$output/failure.json" || fail "not code 76 on n2: $(<"$output/failure.json")"
for node in n1 n2 n3; do
  nobody_trains() { ! "$here/cluster.sh" "$work/cluster" in "$node" pgrep train_cifar >/dev/null; }
  wait_for 10 nobody_trains || fail "a rank on $node lives on"
done
"$here/cluster.sh" "$work/cluster" mend n2  # for Slurm, which waits for word from the node
wait_for_end
expect "ExitCode=76:0"

# An output folder is chosen where none is stated; data that are not there are wrong use. LOCKSTEP_BIN names programs.
ln -s "$programs" "$work/other programs"
export LOCKSTEP_BIN="$work/other programs"
submit no_output 3 --data "$work/nowhere"
wait_for_end
expect "ExitCode=2:0"
[ -r "$work/runs/$id/failure.json" ] || fail "no failure.json in runs/$id"

LOCKSTEP_BIN="$work/no programs" submit no_program 3 "${options[@]}"
wait_for_end
expect "JobState=FAILED"
grep -q 'before it could say why' "$work/no_program.out" || fail "the job does not point at srun's words"
echo "passed: nine jobs on three nodes"
