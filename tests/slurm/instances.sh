# Job files on a real cluster, for tests that have sourced support.sh.
# shellcheck shell=bash disable=SC2154,SC2016

# submit_file FILE OPTIONS...: sets `id`.
submit_file() {
  local words
  words=$(cd "$work" && "$programs/submit_job" "$@" 2>&1) || fail "submit_job refused $1: $words"
  id=$(sed -n 's/^Submitted batch job //p' <<<"$words")
  [ -n "$id" ] || fail "submit_job does not say the job's number: $words"
}

# The job of $work/NAME.yaml, to its end. Its log is $work/NAME.out.
run_file() { # NAME
  submit_file "$1.yaml"
  wait_for_end
  cp "$work/slurm-$id.out" "$work/$1.out"
}

# It needs a data set in $work/data. Two instances on two nodes, then both on one.
mpirun_over_instances() {
  cat >"$work/horovod.yaml" <<'YAML'
protocolVersion: 2
name: horovod
type: job
taskRoles:
  master:
    instances: 1
    completion: {minSucceededInstances: 1}
    resourcePerInstance: {cpu: 2, memoryMB: 600}
    commands:
      - ssh -o StrictHostKeyChecking=no -p 22 worker-0 'printf "there [%s] %s-%s %s\n" "a  b" $LOCKSTEP_ROLE $PAI_TASK_INDEX' '$(hostname)'
      - echo piped | ssh root@worker-0 cat
      - ssh $PAI_HOST_IP_worker_0 exit 7 || echo "code $?"
      - host=worker-1; ssh $host true || echo "unknown $?"
      - >
        mpirun -np 3 -H master-0:1,worker-0:2 -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib -x PATH
        train_cifar --data data --model lenet --global-batch 48 --epochs 1 --threads 1 --output runs/horovod
  worker:
    instances: 1
    resourcePerInstance: {cpu: 2, memoryMB: 600}
    commands: [sleep infinity]
extras:
  lockstep: {nodes: 2}
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true, sshbarrier: true}
YAML
  run_file horovod
  expect "JobState=COMPLETED"
  expect_log horovod "there [a  b] worker-0 n2"
  expect_log horovod "  piped"
  expect_log horovod "  code 7"
  expect_log horovod "  unknown 255"
  expect_log horovod "ranks: 3 on n1 (1), n2 (2)"
  ! grep -q "master.*srun: error" "$work/horovod.out" || fail "ssh is not silent about the code of a command"
  grep -q '"ranks": 3,' "$work/runs/horovod/summary.json" || fail "the training had not three ranks"
  sed 's/nodes: 2/nodes: 1/; s/name: horovod/name: one_node/; s|runs/horovod|runs/one_node|' "$work/horovod.yaml" >"$work/one_node.yaml"
  run_file one_node
  expect "JobState=COMPLETED"
  expect_log one_node "ranks: 3 on n1"
  [ -z "$(cluster in n1 find /dev/shm -name 'instance.*')" ] || fail "ssh left files in /dev/shm"
}

# submit_tasks NAME INSTANCES FIELDS COMMAND: independent tasks. FIELDS are further ones of the role.
submit_tasks() {
  cat >"$work/$1.yaml" <<YAML
protocolVersion: 2
name: $1
type: job
secrets: {token: hunter2}
taskRoles:
  taskrole:
    instances: $2
    $3
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands:
      - '[ <% \$secrets.token %> = hunter2 ] || exit 2'
      - |
        $4
extras: {gangAllocation: false}
YAML
  submit_file "$1.yaml"
}
tasks_ended() { [ -z "$(squeue -h -j "$id" -o %i 2>/dev/null)" ]; }
wait_for_tasks() { wait_for 240 tasks_ended || fail "tasks of job $id did not end: $(squeue -r -j "$id")"; }
# expect_tasks COUNT STATE: COUNT tasks of the array are in STATE.
expect_tasks() {
  local number
  number=$(scontrol show job "$id" | grep -c "JobState=$2 ")
  ((number == $1)) || fail "$number tasks of job $id are $2, not $1: $(scontrol show job "$id" | grep -E 'JobId|JobState')"
}
nothing_is_left_of() { # NAME
  [ ! -e "$work/run_roles-$id.array" ] || fail "the array's folder is still there: $(ls "$work/run_roles-$id.array")"
  [ -z "$(find "$work" -name ".$1.*.secrets")" ] || fail "the secrets of $1 are still there"
}

# The first attempt of every task with a 3 in its number fails, and it alone is retried. Two arrays end with their first
# failure and their first success: the remaining tasks are cancelled. The last task is repeated whenever it succeeds.
independent_tasks() { # INSTANCES
  local retried failing any endless task attempt
  submit_tasks retried "$1" 'taskRetryCount: 1' '[[ $PAI_TASK_INDEX == *3* && $FC_TASK_ATTEMPT_ID == 0 ]] && exit 1
        echo "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX of $PAI_TASK_ROLE_TASK_COUNT_taskrole, $FC_TASK_ATTEMPT_ID" >done-$PAI_TASK_INDEX'
  retried=$id
  submit_tasks failing 3 'taskRetryCount: -1' '((PAI_TASK_INDEX == 1)) || exec sleep 1000
        exit 65'
  failing=$id
  submit_tasks any 2 'completion: {minSucceededInstances: 1}' '((PAI_TASK_INDEX)) || exec sleep 1000'
  any=$id
  LOCKSTEP_ATTEMPT_LIMIT=2 submit_tasks endless 1 'taskRetryCount: -2' 'echo "attempt $FC_TASK_ATTEMPT_ID" >>endless'
  endless=$id
  id=$retried
  wait_for_tasks
  expect_tasks "$1" COMPLETED
  for ((task = 0; task < $1; ++task)); do
    attempt=$([[ $task == *3* ]] && echo 1 || echo 0)
    [ "$(cat "$work/done-$task")" = "$task of $1, $attempt" ] || fail "task $task: '$(cat "$work/done-$task")'"
  done
  nothing_is_left_of retried
  id=$failing
  wait_for_tasks
  expect_tasks 1 FAILED
  expect_tasks 2 CANCELLED
  scontrol show job "${id}_1" | grep -qF "ExitCode=65:0" || fail "the failing task has another code"
  grep -qF "1 of the array's tasks failed (minFailedInstances 1). The other tasks are cancelled." \
    "$work/slurm-${id}_1.out" || fail "the failing task does not say that it ends the array"
  nothing_is_left_of failing
  id=$any
  wait_for_tasks
  expect_tasks 1 COMPLETED
  expect_tasks 1 CANCELLED
  nothing_is_left_of any
  id=$endless
  wait_for_tasks
  expect_tasks 1 COMPLETED
  [ "$(<"$work/endless")" = $'attempt 0\nattempt 1' ] || fail "the endless task was not repeated: $(<"$work/endless")"
  nothing_is_left_of endless
}
