#!/usr/bin/env bash
# Job files whose roles request different resources, on a cluster that grants GPUs without a driver:
# components_test.sh BUILD_FOLDER SCENARIO...
# Each scenario is a function below.
# shellcheck disable=SC2016,SC2317
set -uo pipefail
build=$(readlink -f "$1")
shift
export CLUSTER_GPUS=2
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/support.sh"

"$programs/make_shards" synthetic --samples 800 --output "$work/data" >"$work/make_shards.log" 2>&1 || fail "make_shards"
training='train_cifar --data data --model lenet --epochs 1 --global-batch 48 --threads 1'

# submit_file NAME: submits the job file of the standard input; sets `id`.
submit_file() {
  local words
  cat >"$work/$1.yaml"
  words=$(cd "$work" && "$programs/submit_job" "$1.yaml" -- "--output=$work/$1.out" 2>&1) ||
    fail "submit_job refused $1: $words"
  id=$(sed -n 's/^Submitted batch job //p' <<<"$words")
  [ -n "$id" ] || fail "submit_job does not say the job's number: $words"
}
# submit_beside_server NAME COMMAND...: a server that never ends, and a worker on another node.
submit_beside_server() {
  local name=$1; shift
  submit_file "$name" <<YAML
protocolVersion: 2
name: $name
type: job
jobRetryCount: 3
secrets: {token: hunter2}
taskRoles:
  server:
    completion: {minSucceededInstances: -1}
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands: ['echo "GPUs \${SLURM_GPUS_ON_NODE-none}"', exec sleep 1000]
  worker:
    resourcePerInstance: {cpu: 2, memoryMB: 200, gpu: 2}
    commands:
$(printf "    - '%s'\n" "$@")
extras: {lockstep: {world: [worker]}}
YAML
}
started() { grep -qs 'instances have joined' "$work/$1.out"; }
has_attempt() { grep -qs -- "$1" "$work/run_roles-$id.attempts.jsonl"; }
secrets_of() { find "$work" -name ".$1.*.secrets"; }
# node_of COMPONENT: the node on which it runs.
node_of() { squeue -h -t R -j "$id" -o '%i %N' | sed -n "s/^$id+$1 //p"; }

# The worker has a rank for each GPU. Its first attempt reports a bad node, so the whole job is retried without it.
own_resources() {
  submit_beside_server own_resources \
    'echo "rank $SLURM_PROCID of $SLURM_NTASKS, instance $PAI_TASK_INDEX of $PAI_TASK_ROLE_TASK_COUNT_worker, GPU $CUDA_VISIBLE_DEVICES, <% $secrets.token %>"' \
    '[ "$LOCKSTEP_ATTEMPT" != 0 ] || exit 71' "$training --device cpu --output own"
  wait_for_end
  expect "JobState=COMPLETED"
  expect "Restarts=1"
  expect_log own_resources "[server[0]]  GPUs none"
  for rank in 0 1; do
    expect_log own_resources "rank $rank of 2, instance 0 of 1, GPU $rank, hunter2"
  done
  ! grep -q 'exceeds' "$work/own_resources.out" || fail "srun finds too many CPUs in a step"
  python3 - "$work/run_roles-$id.attempts.jsonl" "$work/own/summary.json" <<'PYTHON' || fail "the attempts are not as they should be"
import json, sys
first, second = [line for line in map(json.loads, open(sys.argv[1])) if line["cause"] != "running"]
assert first["cause"] == "bad_node" and len(first["nodes"]) == 2, first
assert first["excluded"] == first["nodes"][1:] and not set(first["excluded"]) & set(second["nodes"]), (first, second)
assert json.load(open(sys.argv[2]))["ranks"] == 2
PYTHON
  [ -z "$(secrets_of own_resources)" ] || fail "the secrets are still there"
}

# No program computes on the CPU where Slurm has granted GPUs, unless told to.
granted_gpus() {
  ! nvidia-smi -L >/dev/null 2>&1 || { echo "  not tested: this machine has a GPU"; return; }
  submit_file granted_gpus <<YAML
protocolVersion: 2
name: granted_gpus
type: job
taskRoles:
  worker: {resourcePerInstance: {cpu: 1, memoryMB: 200, gpu: 1}, commands: [$training --output granted]}
YAML
  said() { grep -qs 'Slurm granted this rank GPUs (CUDA_VISIBLE_DEVICES=0), but ' "$work/granted_gpus.out"; }
  wait_for 60 said || fail "the training does not say that it has no GPU"
  scancel "$id"
  wait_for_end
  [ ! -e "$work/granted/model.h5" ] || fail "the training has used the CPU"
}

# Each step of a search has a GPU of its own, whatever the job's options for GPUs are.
search_gpus() { # [OPTION OF SBATCH]
  cat >"$work/on_cpu" <<SCRIPT
#!/usr/bin/env bash
case " \$* " in *' --print-recipe '*) ;; *) echo "\$CUDA_VISIBLE_DEVICES" >>gpus; sleep 1 ;; esac
exec '$programs/train_cifar' --device cpu "\$@"
SCRIPT
  chmod +x "$work/on_cpu"
  cat >"$work/search_gpus.yaml" <<'YAML'
program: ./on_cpu
arguments: --data data --model lenet --global-batch 48 --threads 1
searcher: {name: random, metric: test-accuracy, max_length: {batches: 1}, max_trials: 2}
hyperparameters: {lr: {type: log, minval: -3, maxval: -1}}
YAML
  submit search_gpus --ntasks=2 --nodes=1 "${1:---gpus-per-node=2}" "$scripts/search.sbatch" search_gpus.yaml \
    --output "search_gpus${1:-}"
  wait_for_end
  expect "JobState=COMPLETED"
  [ "$(sort "$work/gpus" | paste -sd ' ')" = "0 1" ] || fail "the steps have these GPUs: $(paste -sd ' ' "$work/gpus")"
  rm "$work/gpus"
}
search_gpus_per_task() { search_gpus --gpus-per-task=1; }

# One world over both components.
world() {
  submit_file world <<YAML
protocolVersion: 2
name: world
type: job
taskRoles:
  chief: {resourcePerInstance: {cpu: 2, memoryMB: 100}, commands: [$training --output world]}
  worker: {instances: 2, resourcePerInstance: {cpu: 1, memoryMB: 100}, commands: [$training --output world]}
extras: {lockstep: {world: [chief, worker], output: world}}
YAML
  wait_for_end
  expect "JobState=COMPLETED"
  grep -q '"ranks": 3,' "$work/world/summary.json" || fail "the training had not three ranks"
}

stopped() {
  submit_beside_server stopped 'sleep 1000'
  wait_for 60 started stopped || fail "the job does not start"
  (cd "$work" && "$programs/job_status" "$id") >"$work/status.log" 2>&1
  grep -qF "job         $id stopped: RUNNING" "$work/status.log" || fail "job_status: $(<"$work/status.log")"
  grep -qE "not counted; on n[1-3] n[1-3]$" "$work/status.log" || fail "job_status lacks nodes: $(<"$work/status.log")"
  [ -n "$(secrets_of stopped)" ] || fail "the secrets of a running job are gone"
  bash "$scripts/stop_job" "$id" || fail "stop_job"
  wait_for_end
  has_attempt '"cause":"stopped_for_good"' || fail "the job has another cause"
  [ -z "$(secrets_of stopped)" ] || fail "the secrets are still there"
}

# The node of the second component is taken away by a job of higher priority, and later fails: each time, the whole job
# is repeated.
node_lost() {
  submit_beside_server node_lost '[ "$LOCKSTEP_ATTEMPT" -ge 2 ] || exec sleep 1000'
  wait_for 60 started node_lost || fail "the job does not start"
  sbatch --partition=urgent --nodelist="$(node_of 1)" --exclusive --output=/dev/null --wrap 'sleep 2' >/dev/null
  wait_for 60 has_attempt '"action":"requeue","attempt":0,"cause":"stopped_early"' || fail "the job was not preempted"
  attempt_1() { (($(grep -c 'instances have joined' "$work/node_lost.out") == 2)); }
  wait_for 60 attempt_1 || fail "the preempted job does not go on"
  cluster kill "$(node_of 1)"
  wait_for_end
  expect "JobState=COMPLETED"
  has_attempt '"attempt":1,"cause":"node_failure"' || fail "the failed node is not the cause"
  has_attempt '"attempt":2,"cause":"done"' || fail "the job has no third attempt"
  [ -z "$(secrets_of node_lost)" ] || fail "the secrets are still there"
}

run_scenarios "$@"
