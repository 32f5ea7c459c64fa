#!/usr/bin/env bash
# What a job's script does for each cause, on a real cluster with programs that pretend: causes_test.sh BUILD_FOLDER
set -uo pipefail
build=$(readlink -f "$1")
# The scripts themselves need up to 100 MiB.
export CLUSTER_ACCOUNTING=linux CLUSTER_ACCOUNTING_PARAMETERS=OverMemoryKill CLUSTER_MEMORY=400
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

# A train_cifar that does what word number ATTEMPT of $PRETEND says: vCODE a verdict and its code, kSIGNAL, xCODE a code
# alone, sNAME says one of Slurm's sentences and fails, m uses more memory than it has.
pretended="$work/pretended programs"
mkdir "$pretended"
# With STOP_AT_THE_END the job is stopped for good when it has been decided to repeat it.
cat >"$pretended/job_attempt" <<PROGRAM
#!/usr/bin/env bash
"$programs/job_attempt" "\$@"
code=\$?
if [ "\$1 \${STOP_AT_THE_END:-}" = "end 1" ]; then scancel --batch --signal=USR2 "\$SLURM_JOB_ID"; sleep 2; fi
exit \$code
PROGRAM
chmod +x "$pretended/job_attempt"
cat >"$pretended/train_cifar" <<'PROGRAM'
#!/usr/bin/env bash
read -r -a acts <<<"$PRETEND"
act=${acts[${SLURM_RESTART_COUNT:-0}]}
say() { echo "$1"; sleep 1; }  # srun may lose what a task says last
case $act in
  v*) printf '{"code": %d, "signal": null, "rank": 0, "host": "%s", "step": 1, "sentence": "it pretends."}\n' \
        "${act#v}" "$SLURMD_NODENAME" >"$LOCKSTEP_VERDICT"; exit "${act#v}" ;;
  k*) kill "-${act#k}" $$ ;;
  x*) exit "${act#x}" ;;
  soom) say "slurmstepd: error: Detected 1 oom_kill event in StepId=$SLURM_JOB_ID.0."; kill -KILL $$ ;;
  m) python3 -c 'import time; used = bytearray(900 << 20); time.sleep(60)' ;;
  secc) say 'CUDA failure: uncorrectable ECC error encountered'; exit 1 ;;
  sport) say 'bind: Address already in use'; exit 1 ;;
  sours) say 'license server says no'; exit 1 ;;
esac
PROGRAM
chmod +x "$pretended/train_cifar"
ln -s "$programs/run_roles" "$pretended/"
export LOCKSTEP_BIN=$pretended JOB_RETRY_COUNT=1

declare -A job_of=()
# pretend NAME ACTS [SBATCH-OPTIONS...]
pretend() {
  local name=$1 acts=$2; shift 2
  PRETEND=$acts submit "$name" --ntasks=1 --ntasks-per-node=1 "$@" "$scripts/train_cifar.sbatch" --data nothing
  job_of[$name]=$id
}
# role NAME TASKS COMMAND: a job of one role, whose instances are one world, with a program that is not Lockstep's.
role() {
  python3 - "$@" >"$work/$1.json" <<'PYTHON'
import json, sys
name, tasks, command = sys.argv[1:]
role = {"name": "worker", "instances": int(tasks), "world": "all", "command": ["bash", "-c", command]}
print(json.dumps({"format": 1, "roles": [role]}))
PYTHON
  submit "$1" --ntasks="$2" "$scripts/run_roles.sbatch" "$work/$1.json"
  job_of[$1]=$id
}
# came_to NAME CAUSE ACTION [ATTEMPT]
line_of() { python3 - "$work/"*-"${job_of[$1]}.attempts.jsonl" "$2" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
line = [line for line in lines if line["attempt"] == int(sys.argv[2])][-1]
print(line["cause"], line["kind"], line["action"], ",".join(line["excluded"]) or "-")
PYTHON
}
came_to() {
  local name=$1 expected=$2 attempt=${3:-0} seen
  id=${job_of[$name]}
  decided() { grep -q "^action [rsh]" "$work/$name.out"; }
  wait_for 120 decided 2>/dev/null || fail "no decision on $name"
  seen=$(line_of "$name" "$attempt")
  # shellcheck disable=SC2053  # a pattern
  [[ $seen == $expected ]] || fail "$name: '$seen', not '$expected'"
  printf '  %-14s %s\n' "$name" "$seen"
}

printf 'permanent log license server\ntransient code 42\n' >"$work/rules of mine"
pretend usage v2
pretend bad_data v65
pretend out_of_memory v70
pretend diverged v79
pretend oom_kill soom
pretend over_memory m --mem-per-cpu=300
pretend illegal kILL
pretend bus kBUS
pretend arithmetic kFPE
pretend no_program x127
LOCKSTEP_RETRY_RULES="$work/rules of mine" pretend rule_log sours
pretend segv "kSEGV kSEGV"
pretend hung "v76 x0"
pretend failed "v1 x0"
pretend other "x42 x0"
LOCKSTEP_RETRY_RULES="$work/rules of mine" pretend rule_code "x42 x0"
pretend stopped "v75 x0"
STOP_AT_THE_END=1 pretend stopped_at_the_end "v1 x0"
pretend bad_node "v71 x0"
pretend ecc "secc x0"
pretend port sport
# The last task of an array has the number of the array: it puts itself back, and nobody else.
pretend array "v76 x0" --array=0-1 --output="$work/array-%a.out"
pretend held v71 --nodelist=n2
LOCKSTEP_ATTEMPT_LIMIT=1 pretend limit v76
# What programs of others print. The lines of a task that srun has killed, or that were handled, decide nothing.
print_full='echo "cp: x: No space left on device" >&2'
role missing_module 1 'python3 -c "import no_such_module"'
role full_disk 1 '((SLURM_RESTART_COUNT)) || echo x >/dev/full'
role full_everywhere 1 'echo x >/dev/full'
# srun may lose what a task prints in its last moment.
role full_in_a_world 2 "((SLURM_PROCID)) || exec sleep 60; $print_full; sleep 1; exit 1"
JOB_RETRY_COUNT=0 role killed_with_a_line 2 "((SLURM_PROCID)) || { sleep 2; exit 3; }; $print_full; exec sleep 60"
# One stream, because srun does not keep the order of two.
JOB_RETRY_COUNT=0 role handled 1 "$print_full; seq 500 >&2; sleep 1; exit 1"
# The nodes are kept after a failure.
LOCKSTEP_HOLD_ON_FAILURE=1h pretend looked_at "v1 x0"
LOCKSTEP_HOLD_ON_FAILURE=1h pretend look_and_stop_job "v1 x0"
LOCKSTEP_HOLD_ON_FAILURE=1h pretend look_and_scancel "v1 x0"
LOCKSTEP_HOLD_ON_FAILURE=2s pretend looked_away v2

came_to usage "usage permanent stop -"
came_to bad_data "bad_data permanent stop -"
came_to out_of_memory "out_of_memory permanent stop -"
came_to diverged "diverged permanent stop -"
came_to oom_kill "out_of_memory permanent stop -"
came_to over_memory "out_of_memory permanent stop -"
came_to illegal "illegal_instruction permanent stop -"
came_to bus "bus_error permanent stop -"
came_to arithmetic "arithmetic_error permanent stop -"
came_to no_program "no_program permanent stop -"
came_to rule_log "rule permanent stop -"
came_to segv "crashed unknown requeue -"
came_to hung "out_of_step unknown requeue -"
came_to failed "failed unknown requeue -"
came_to other "other_code unknown requeue -"
came_to rule_code "rule transient requeue -"
came_to stopped "stopped_early transient requeue -"
came_to bad_node "bad_node transient requeue n[123]"
came_to ecc "bad_node transient requeue n[123]"
came_to port "resource_conflict transient_conflict requeue -"
came_to held "bad_node transient hold -"
came_to limit "out_of_step unknown stop -"

came_to missing_module "import_error permanent stop -"
came_to full_disk "disk_full transient requeue n[123]"
came_to full_everywhere "disk_full transient requeue n[123]"
came_to full_in_a_world "disk_full transient requeue n[123]"
came_to killed_with_a_line "other_code unknown stop -"
came_to handled "failed unknown stop -"
expect_log missing_module "ModuleNotFoundError: No module named 'no_such_module'"
scancel "${job_of[full_in_a_world]}"

is_kept() { grep -q 'keeps its nodes until' "$work/$1.out"; }
for name in looked_at look_and_stop_job look_and_scancel; do
  wait_for 60 is_kept "$name" || fail "the nodes of $name are not kept"
done
shell=$(sed -n 's/.*\(srun --overlap .*\) --pty bash$/\1/p' "$work/looked_at.out")
read -r -a shell <<<"$shell"
node=$(cluster in n1 "${shell[@]}" hostname) || fail "no way to the node: ${shell[*]}"
[[ " ${shell[*]} " == *" --nodelist=$node "* ]] || fail "'${shell[*]}' leads to $node"
scancel --batch --signal=USR1 "${job_of[looked_at]}"
"$scripts/stop_job" "${job_of[look_and_stop_job]}" || fail "stop_job of a job that keeps its nodes"
scancel "${job_of[look_and_scancel]}"

# A conflict waits its while, a held job waits for a person; both are cancelled here.
expect_start_later() {
  id=${job_of[port]}
  ended >/dev/null
  grep -q 'JobState=PENDING' <<<"$job" &&
    (($(date -d "$(sed -n 's/.*StartTime=\([^ ]*\).*/\1/p' <<<"$job")" +%s) > $(date +%s) + 30))
}
wait_for 120 expect_start_later || fail "the conflict does not wait: $job"
is_held() { id=${job_of[held]}; ended; grep -qE 'Reason=(JobHeld|job_requeued_in_held_state)' <<<"$job"; }
wait_for 60 is_held || fail "the job that no node is left for is not held: $job"
expect_log held '--nodelist requests n2'
scancel "${job_of[port]}" "${job_of[held]}"

for name in hung failed other rule_code stopped bad_node ecc full_disk looked_at; do
  id=${job_of[$name]}
  wait_for_end
  expect "JobState=COMPLETED"
  expect "Restarts=1"
done
id=${job_of[stopped_at_the_end]}
wait_for_end
expect "JobState=FAILED"
expect "Restarts=0"
expect_log stopped_at_the_end 'stop_job ended the job'
id=${job_of[look_and_stop_job]}
wait_for_end
expect "JobState=FAILED"
expect "Restarts=0"
came_to look_and_stop_job "stopped_for_good permanent stop -"
id=${job_of[look_and_scancel]}
wait_for_end
expect "JobState=CANCELLED"
came_to look_and_scancel "cancelled permanent stop -"
id=${job_of[looked_away]}
wait_for_end
expect "ExitCode=2:0"
is_kept looked_away || fail "the nodes of looked_away were not kept"
id=${job_of[full_everywhere]}
wait_for_end
expect "JobState=FAILED"
expect "Restarts=1"
came_to full_everywhere "disk_full permanent stop n[123]" 1
for name in bad_node ecc full_disk; do
  id=${job_of[$name]}
  ended
  node=$(line_of "$name" 1 | sed 's/.* //')
  [[ $job == *"ExcNodeList=$node"* ]] || fail "$name: $node is not excluded: $job"
  [[ $job != *"BatchHost=$node"* ]] || fail "$name ran on $node again: $job"
done
for task in 0 1; do
  id=${job_of[array]}_$task
  wait_for_end
  expect "JobState=COMPLETED"
  expect "Restarts=1"
done
id=${job_of[segv]}
wait_for_end
expect "JobState=FAILED"
came_to segv "crashed unknown stop -" 1
expect_log oom_kill "The job requested 400 MiB with --mem-per-cpu."
grep -qE "a step used [0-9]+ MiB of memory, more than its limit of 300 MiB\. The job requested 300 MiB" \
  "$work/over_memory.out" || fail "the log does not say how much memory was used: $(<"$work/over_memory.out")"
expect_log limit "LOCKSTEP_ATTEMPT_LIMIT"
expect_log rule_log "rule 'license server'"
echo "passed: ${#job_of[@]} causes"
