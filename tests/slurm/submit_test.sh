#!/usr/bin/env bash
# Job files and hostile names through a real sbatch, on three nodes: submit_test.sh BUILD_FOLDER [few]
#
# few: one of the six examples, and ten hostile names. Examples run on CPUs, with the options that they state for this,
# and with smaller data.
set -uo pipefail
build=$(readlink -f "$1")
few=$([ "${2:-}" = few ] && echo 1 || echo 0)
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/support.sh"
# shellcheck source-path=SCRIPTDIR source=instances.sh
source "$here/instances.sh"

"$programs/make_shards" synthetic --samples 800 --output "$work/data" >"$work/make_shards.log" 2>&1 || fail "make_shards"

run_example() { # NAME EPOCHS
  local file words on_cpus role=worker nodes=2 smaller=()
  file=$(readlink -f "$here/../../slurm/examples/$1.yaml")
  read -r -a on_cpus < <(sed -n 's/^# On CPUs: //p' "$file")
  case $1 in
    *single-node*) role=taskrole nodes=1 smaller=(--set parameters.milestones=1) ;;
    imagenet*) smaller=(--set parameters.batch=4 --set parameters.model=lenet) ;;
  esac
  smaller+=(--set parameters.data=data --set "parameters.epochs=$2" --set "taskRoles.$role.resourcePerInstance.cpu=1"
    --set "taskRoles.$role.resourcePerInstance.memoryMB=150")
  words=$("$programs/submit_job" "$file" 2>&1) && fail "$1 was submitted to a cluster without GPUs"
  [[ $words == *"the cluster has none"*"--set taskRoles.$role.resourcePerInstance.gpu=0"* ]] || fail "$words"
  submit_file "$file" "${on_cpus[@]}" "${smaller[@]}"
  wait_for_end
  cp "$work/slurm-$id.out" "$work/example.out"
  expect "JobState=COMPLETED"
  expect "JobName=$1"
  expect "NumNodes=$nodes"
  [ -s "$work/runs/$1/model.h5" ] || fail "$1 has trained nothing"
  grep -q '"action":"stop".*"cause":"done"' "$work/run_roles-$id.attempts.jsonl" || fail "$1: its attempt is not written down"
  (cd "$work" && "$programs/job_status" "$id" --follow) >"$work/status.log" 2>&1 || fail "job_status: $(<"$work/status.log")"
  for words in "job         $id $1: COMPLETED" "attempt     0, retries: 0 counted, 0 not counted; on n" \
    "ended       attempt 0, done: " "state       done" "checkpoint  step "; do
    grep -qF "$words" "$work/status.log" || fail "job_status does not say '$words': $(<"$work/status.log")"
  done
  echo "$1: done"
}

run_example cifar10-single-mul-DDP-gloo 1
python3 - "$work/runs/cifar10-single-mul-DDP-gloo/summary.json" <<'PYTHON' || fail "the instances are not ranks of one world"
import json, sys
summary = json.load(open(sys.argv[1]))
assert summary["ranks"] == 4 and summary["global_batch"] == 400, summary
PYTHON

mpirun_over_instances
echo "mpirun over instances: done"
independent_tasks 4
echo "independent tasks: done"

# Two roles: workers that finish beside a server that never ends, each told of the other under the platform's names.
cat >"$work/roles.yaml" <<'YAML'
protocolVersion: 2
name: two-roles
type: job
prerequisites:
  - type: script
    name: tools
    plugin: com.microsoft.pai.runtimeplugin.cmd
    callbacks: [{event: taskStarts, commands: ['echo "prepared $PAI_TASK_INDEX in $PAI_WORK_DIR"']}]
taskRoles:
  server:
    completion: {minSucceededInstances: -1}
    resourcePerInstance: {cpu: 1, memoryMB: 100, ports: {rpc: 1}}
    commands: [exec sleep 1000]
  worker:
    instances: 2
    prerequisites: [tools]
    resourcePerInstance: {cpu: 2, memoryMB: 100}
    commands:
      - echo "told $PAI_TASK_INDEX $PAI_HOST_IP_server_0 $PAI_server_0_rpc_PORT"
YAML
submit_file roles.yaml
wait_for_end
cp "$work/slurm-$id.out" "$work/roles.out"
expect "JobState=COMPLETED"
for worker in 0 1; do
  expect_log roles "prepared $worker in $work"
  grep -qE "told $worker $CLUSTER_NET.1[1-3] [0-9]+\$" "$work/roles.out" || fail "worker $worker was not told of the server"
done
echo "two roles: done"

# A role in a container finds its storage, its environment and the job's folder, and gets signals; its code counts.
# Beside it, a job without a container uses the same storage.
# shellcheck source-path=SCRIPTDIR source=container_jobs.sh
source "$here/container_jobs.sh"
if command -v ch-run >/dev/null; then
  make_container_job charliecloud
  submit_file contained.yaml --site site.profile
  contained=$id
  submit_file linked.yaml --site nodes.profile
  wait_for_end
  cp "$work/slurm-$id.out" "$work/linked.out"
  expect "JobState=COMPLETED"
  [ "$(<"$work/linked")" = "greeting greeting" ] || fail "a job without a container does not find its storage"
  id=$contained
  check_container_job
  echo "containers: done"
else
  echo "containers: skipped, no ch-run (Debian: charliecloud-runtime)"
fi

# A job that is stopped is not done, although its last command would have succeeded.
cat >"$work/stopped.yaml" <<'YAML'
protocolVersion: 2
name: stopped
type: job
jobRetryCount: 0
deployments: [{name: here, taskRoles: {worker: {postCommands: [echo post]}}}]
defaults: {deployment: here}
taskRoles:
  worker:
    instances: 2
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands: [sleep 1000, echo finished]
YAML
submit_file stopped.yaml
has_line() { grep -qs -- "$1" "$work/run_roles-$id.attempts.jsonl"; }
sleeps() { (($(cluster in n1 pgrep -xc sleep) == 2)); }
wait_for 60 sleeps || fail "the commands of the job to stop do not run"
scancel --batch --signal=USR1 "$id"
wait_for 60 has_line '"action":"requeue".*"cause":"stopped_early".*"code":75' ||
  fail "the stopped job does not go on"
wait_for 60 has_line '"attempt":1' || fail "the stopped job has no second attempt"
scancel "$id"
wait_for_end
cp "$work/slurm-$id.out" "$work/stopped.out"
expect_log stopped ": 2 instances stopped, 0 succeeded and 0 failed."
! grep -qE "\]  (finished|post)" "$work/stopped.out" || fail "commands ran after the stop request"
echo "stopped: done"

# A name is itself wherever it goes: a job's, a path's, an option's, a parameter's.
# shellcheck disable=SC2016
hostile=('two words' "it's" '"quoted"' ';touch PWNED;' '$(touch PWNED)' '`touch PWNED`' $'new\nline' '*' '-n --wrap=x' '&& touch PWNED #')
ids=()
for number in "${!hostile[@]}"; do
  name=${hostile[number]}
  id=$(cd "$work" && sbatch --parsable --job-name="$name" --ntasks=1 --output="$work/hostile-$number.out" \
    "$scripts/evaluate.sbatch" --model-file "$name" --data "$name") || fail "sbatch refused '$name'"
  ids+=("$id")
done
python3 - "$work/hostile.yaml" "${hostile[@]}" <<'PYTHON'
import json, sys
names = sys.argv[2:]
lines = ["protocolVersion: 2", "name: hostile", "type: job", "parameters:"]
lines += [f"  v{number}: {json.dumps(name)}" for number, name in enumerate(names)] + ["secrets: {token: hunter2}", "taskRoles:"]
lines += ["  worker:", "    resourcePerInstance: {cpu: 1, memoryMB: 100}", "    commands:"]
lines += [f"      - printf '%s\\0' \"<% $parameters.v{number} %>\" >>found" for number in range(len(names))]
lines += ["      - printf '%s\\0' <% $secrets.token %> >>found", "extras: {lockstep: {world: [worker]}}"]
open(sys.argv[1], "w").write("\n".join(lines) + "\n")
PYTHON
submit_file hostile.yaml
wait_for_end
cp "$work/slurm-$id.out" "$work/hostile.out"
expect "JobState=COMPLETED"
printf '%s\0' "${hostile[@]}" hunter2 >"$work/wanted"
cmp "$work/wanted" "$work/found" || fail "a parameter is not itself"
[ -z "$(find "$work" -name '.hostile.*.secrets')" ] || fail "the secrets are still there"
! grep -q hunter2 "$work/slurm-$id.out" || fail "the log has a secret"
! scontrol write batch_script "$id" - | grep -q hunter2 || fail "Slurm keeps a secret"
# A job that is repeated finds its secrets again.
cat >"$work/again.yaml" <<'YAML'
protocolVersion: 2
name: again
type: job
jobRetryCount: 1
secrets: {token: hunter2}
taskRoles:
  worker:
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands:
      - '[ -e tried ] || { touch tried; exit 1; }'
      - printf %s <% $secrets.token %> >told
YAML
submit_file again.yaml
wait_for_end
cp "$work/slurm-$id.out" "$work/again.out"
expect "JobState=COMPLETED"
expect "Restarts=1"
[ "$(<"$work/told")" = hunter2 ] || fail "the second attempt has not the secret"
[ -z "$(find "$work" -name '.again.*.secrets')" ] || fail "the secrets of a repeated job are still there"
# SIGTERM while sbatch works, which has said nothing: squeue tells whether there is a job.
sed 's/name: again/name: ended/' "$work/again.yaml" >"$work/ended.yaml"
mkdir "$work/slow"
interrupt() { # SBATCH: what it does before it is slow; sets `words`
  local process
  rm -f "$work/begun"
  printf '#!/usr/bin/env bash\n%s\ntouch begun\nsleep 9\n' "$1" >"$work/slow/sbatch"
  chmod +x "$work/slow/sbatch"
  (cd "$work" && PATH=$work/slow:$PATH exec setsid "$programs/submit_job" ended.yaml >ended.log 2>&1) &
  process=$!
  wait_for 20 test -e "$work/begun" || fail "sbatch was not called: $(<"$work/ended.log")"
  kill -TERM -- "-$process"
  wait "$process"
  words=$(<"$work/ended.log")
}
interrupt "$(command -v sbatch) \"\$@\" >/dev/null"
id=$(sed -n "s/.*job \([0-9]*\) was submitted. Its secrets are in '.*/\1/p" <<<"$words")
[ -n "$id" ] || fail "a job of an interrupted sbatch is not named: $words"
[ -f "$(sed -n "s/.* Its secrets are in '\([^']*\)' until.*/\1/p" <<<"$words")" ] || fail "its secrets are gone: $words"
wait_for_end
expect "JobName=ended"
expect "JobState=COMPLETED"
[ -z "$(find "$work" -name '.ended.*.secrets')" ] || fail "the secrets of a job that has ended are still there"
interrupt 'cat >/dev/null'
grep -qF 'squeue' <<<"$words" || fail "$words"
[ -z "$(find "$work" -name '.ended.*.secrets')" ] || fail "the secrets of no job are still there"
echo "interrupted: done"
for number in "${!hostile[@]}"; do
  id=${ids[number]}
  wait_for_end
  expect "ExitCode=2:0"
  python3 - "$work/evaluate-$id.0.json" "${hostile[number]}" <<'PYTHON' || fail "the verdict does not name '${hostile[number]}'"
import json, sys
sentence = json.load(open(sys.argv[1]))["sentence"]
assert f"'{sys.argv[2]}'" in sentence and "does not exist" in sentence, sentence
PYTHON
done
[ -z "$(find "$work" -name PWNED)" ] || fail "a name was run"

if ((!few)); then
  for example in cifar10-single-node-gpus-cpu-DP cifar10-single-mul-DDP-nccl cifar10-single-mul-DDP-gloo-Apex-mixed \
    cifar10-single-mul-DDP-nccl-Apex-mixed imagenet-single-mul-DDP-gloo; do
    run_example "$example" 2
  done
fi
echo "passed"
