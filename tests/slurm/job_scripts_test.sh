#!/usr/bin/env bash
# What job scripts say and do where Slurm only pretends, so that it can be away, refuse or remember: job_scripts_test.sh BUILD
# shellcheck disable=SC2016,SC2317
set -uo pipefail
build=$(readlink -f "$1")
programs=$build/bin
scripts=$build/slurm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/out" 2>/dev/null; echo "failed: $*"; exit 1; }
unset "${!LOCKSTEP_@}" "${!SLURM_@}" JOB_RETRY_COUNT
unset -f module

# pretend TOOL LINES: found before all other programs. What it is given is written into the file of its calls.
mkdir "$work/tools" "$work/programs"
pretend() {
  printf '#!/usr/bin/env bash\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/tools/$1"
  chmod +x "$work/tools/$1"
}
export PATH=$work/tools:$PATH
job_runs='case $* in *RestartCnt*) echo 0 ;; *) echo "RUNNING|None|||all" ;; esac'
for tool in scontrol sinfo sacct scancel; do pretend "$tool" ''; done
# called WORDS TIMES: so many calls are these.
called() {
  local times
  times=$(grep -cxF -- "$1" "$work/calls")
  [ "$times" = "$2" ] || fail "'$1' was called $times times, not $2: $(cat "$work/calls")"
}
says() { grep -qF -- "$1" "$work/out" || fail "it does not say '$1'"; }

# stop_job: one request for each part of the job that has a script, the rest is cancelled.
stop() { # CODE ANSWER JOBS...
  local code=$1; shift
  pretend squeue "$1"; shift
  : >"$work/calls"
  "$scripts/stop_job" "$@" >"$work/out" 2>&1
  local came=$?
  [ "$came" = "$code" ] || fail "stop_job $* ended with $came, not $code"
}
stop 0 'printf "%s\n" "17+0|RUNNING" "17+1|RUNNING"' 17
called "scancel --batch --signal=USR2 17" 1
[ "$(grep -c scancel "$work/calls")" = 1 ] || fail "a component without a script got a signal: $(cat "$work/calls")"
says "stop_job: job 17 stops when its checkpoint is written."
stop 0 'printf "%s\n" "17+0|PENDING" "17+1|PENDING"' 17
called "scancel 17+0" 1
called "scancel 17+1" 1
says "stop_job: job 17+1 (PENDING) is cancelled: no attempt of it runs."
stop 0 'printf "%s\n" "16_0|RUNNING" "16_1|SIGNALING" "16_2|REQUEUE_HOLD" "16_[3-9%2]|PENDING"' 16
called "scancel --batch --signal=USR2 16_0" 1
called "scancel --batch --signal=USR2 16_1" 1
called "scancel 16_2" 1
called "scancel 16_[3-9%2]" 1
stop 0 'printf "%s\n" "16_3|RUNNING"' 16_3
called "squeue -h -j 16_3 -o %i|%T" 1
called "scancel --batch --signal=USR2 16_3" 1
stop 1 'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1' 17
says "stop_job: Slurm does not answer (slurm_load_jobs error: Unable to contact slurm controller (connect failure)), so job 17 \
is as it was. Try again when it does."
stop 1 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1' 17 18
says "stop_job: Slurm knows no job 18 that has not ended."
stop 0 '' 17
says "stop_job: job 17 has ended."
! grep -q scancel "$work/calls" || fail "scancel was called for jobs that are not there"
stop 2 "echo '17|RUNNING'" '17;x' 17
says "stop_job: '17;x' is no number of a job. Known forms: 17, 16_3."
called "scancel --batch --signal=USR2 17" 1
stop 2 ''
says "stop_job: name a job: stop_job 17"
pretend scancel 'echo "scancel: error: Access/permission denied" >&2; exit 1'
stop 1 "echo '17|RUNNING'" 17
says "Access/permission denied"
pretend scancel ''
for word in --help -h; do
  [ "$("$scripts/stop_job" "$word" | head -1)" = "Ends a job for good: with a checkpoint where it runs, and without another \
attempt." ] || fail "stop_job $word"
  "$scripts/stop_job" "$word" >"$work/out"
  says "  stop_job JOB [JOB...]"
  [ "$("$programs/run_on_nodes" "$word" | head -1)" = "Runs a program on several nodes without Slurm, by mpirun:" ] ||
    fail "run_on_nodes $word"
  "$programs/run_on_nodes" "$word" >"$work/out"
  says "  run_on_nodes --hostfile FILE [--dispatch FOLDER]... [--logs FOLDER] PROGRAM ARGUMENTS..."
  ! grep -q 'shellcheck\|set -u' "$work/out" || fail "run_on_nodes $word shows its code"
done
echo "  stop_job, and what --help says"

# job NUMBER [ARGUMENTS...]: runs train_cifar.sbatch as that job, and sets `code`; its log is $work/out.
ln -s "$programs/job_attempt" "$work/programs/"
printf '#!/bin/sh\n' >"$work/programs/train_cifar"
chmod +x "$work/programs/train_cifar"
slurm() { # NUMBER
  export LOCKSTEP_BIN=$work/programs SLURM_JOB_ID=$1 SLURM_JOB_NUM_NODES=1
  SLURM_JOB_NODELIST=$(hostname -s) SLURM_TASKS_PER_NODE=1
  export SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE
  : >"$work/calls"
}
job() {
  slurm "$1"; shift
  (cd "$work" && bash "$scripts/${job_script:-train_cifar.sbatch}" "$@" >"$work/out" 2>&1)
  code=$?
}
ended_with() { [ "$code" = "$1" ] || fail "the script ended with $code, not $1"; }
pretend squeue "$job_runs"
srun_ends() { pretend srun '[ "$1" = --mpi=list ] && { echo pmix; exit; }'$'\n'"$1"; }

# Started without Slurm.
for script in train_cifar train_imagenet run_roles; do
  (cd "$work" && env -u SLURM_JOB_ID bash "$scripts/$script.sbatch" roles.json >"$work/out" 2>&1)
  code=$?
  ended_with 2
  says "$script.sbatch: this is a job script. Submit it: sbatch $scripts/$script.sbatch OPTIONS"
done

# The script that README.md tells to write.
{ echo '#!/usr/bin/env bash'; sed -n '/^    scripts=/,/^    end_attempt/s/^    //p' "$(dirname "$0")/../../slurm/README.md"; } >"$work/own"
sed -i "s:^scripts=.*:scripts='$scripts':" "$work/own"
ln -s train_cifar "$work/programs/train_imagenet"
srun_ends 'printf "<%s>" "${@:3}"'
slurm 7
(cd "$work" && bash own --epochs 2 >"$work/out" 2>&1)
code=$?
ended_with 0
says "<$work/programs/train_imagenet><--data><data/flowers><--output><runs/flowers><--epochs><2>"

# A look at the nodes before the program, which does not start where they are bad; and such a look alone.
ln -s train_cifar "$work/programs/check_cluster"
srun_ends 'printf "<%s>" "${@:3}"; echo; case $3 in *check_cluster)
  echo "{\"code\": 71, \"host\": \"n1\", \"bad_hosts\": [\"n2\", \"n3\"], \"sentence\": \"they are slow.\"}" >"$LOCKSTEP_VERDICT"
  exit 71 ;; esac'
pretend sinfo 'printf "n%s\n" 1 2 3 4 5'
LOCKSTEP_CHECK="my floors.json" job 8 --data nothing --output "my runs"
ended_with 71
says "<$work/programs/check_cluster><--output><my runs><--floors><my floors.json>"
! grep -q '<--data>' "$work/out" || fail "the program has started on nodes that are bad"
says "cause bad_node"
called "scontrol requeue 8" 1
called "scontrol update JobId=8 ExcNodeList=n2,n3" 1
LOCKSTEP_CHECK=yes job 9 --data nothing
ended_with 71
says "<$work/programs/check_cluster><--output><runs/9>"
job_script=check_cluster.sbatch job 10 --output "my runs"
ended_with 71
says "they are slow."
! grep -q requeue "$work/calls" || fail "a check is repeated: $(cat "$work/calls")"
srun_ends 'printf "<%s>" "${@:3}"; echo'
LOCKSTEP_CHECK=yes job 11 --data nothing
ended_with 0
says "<$work/programs/train_cifar><--data><nothing>"
pretend sinfo ''
echo "  a look at the nodes first"

# A scaling study has a folder of its own where none is named.
ln -s train_cifar "$work/programs/scaling_study"
job_script=scaling_study.sbatch job 12 --model resnet20
ended_with 0
says "<$work/programs/scaling_study><--model><resnet20><--output><studies/12>"
job_script=scaling_study.sbatch job 13 --output "my study"
ended_with 0
says "<$work/programs/scaling_study><--output><my study>"
echo "  a scaling study"

# What is wrong with the site: code 2, before any rank.
srun_ends 'env >"'"$work"'/environment"'
refused() { # NUMBER WORDS
  job "$1" --data nothing
  ended_with 2
  says "$2"
  ! grep -q 'srun --mpi=pmix\|requeue' "$work/calls" || fail "ranks have started: $(cat "$work/calls")"
}
mkfifo "$work/a fifo"
for profile in /dev/null "$work/a fifo" "$work" "$work/nowhere"; do
  LOCKSTEP_SITE=$profile refused 1 "cannot read the site's profile '$profile' (LOCKSTEP_SITE). Name another one."
done
export LOCKSTEP_SITE=$work/site
echo 'modules=openmpi/4.1 hdf5' >"$LOCKSTEP_SITE"
refused 1 "this node has no command 'module' (the site's profile names modules)."
module() { false; }
export -f module
refused 1 "cannot load openmpi/4.1 hdf5 (modules in the site's profile)."
unset -f module
echo 'interface=lo,nowhere0' >"$LOCKSTEP_SITE"
refused 1 "$(hostname -s) has no network interface 'nowhere0' (LOCKSTEP_INTERFACE, or interface in the site's profile: MPI \
and NCCL could not talk). It has: "
grep -qE 'It has: (.*, )?lo(, .*)?\.$' "$work/out" || fail "the interfaces that there are are not named"
for name in '' ../net/lo . 'lo;x' $'lo\nlo' '10.0.0.0/16x' 'l*'; do
  LOCKSTEP_INTERFACE=lo,$name,lo refused 1 " has no network interface '"
done
[ ! -e "$work/train_cifar-1.attempts.jsonl" ] || fail "an attempt that did not begin is written down"
has() { grep -qxF -- "$1" "$work/environment" || fail "a rank does not find $1"; }
echo 'interface=lo' >"$LOCKSTEP_SITE"
job 1
ended_with 0
for name in LOCKSTEP_INTERFACE=lo OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo NCCL_SOCKET_IFNAME==lo; do
  has "$name"
done
LOCKSTEP_INTERFACE=127.0.0.0/8 job 1
ended_with 0
has OMPI_MCA_btl_tcp_if_include=127.0.0.0/8
! grep -q '^NCCL_SOCKET_IFNAME' "$work/environment" || fail "NCCL is given a network, and knows names alone"
unset LOCKSTEP_SITE
echo "  a site that is wrong"

# A signal to the script stops the ranks, once, and the job is put back.
srun_ends 'trap "echo asked >>\"'"$work"'/asked\"; exit 75" USR1; : >"'"$work"'/begun"; for ((i = 0; i < 300; ++i)); do sleep 0.1; done'
# signalled NUMBER SIGNAL: that job, whose ranks get on until its script gets the signal.
signalled() {
  rm -f "$work/asked" "$work/begun"
  slurm "$1"
  (cd "$work" && exec env --default-signal bash "$scripts/train_cifar.sbatch" >"$work/out" 2>&1) &
  local process=$! tries
  for ((tries = 0; tries < 200; ++tries)); do [ ! -e "$work/begun" ] || break; sleep 0.05; done
  kill "-$2" "$process"
  wait "$process"
  code=$?
  ended_with 75
  [ "$(cat "$work/asked")" = asked ] || fail "SIG$2 did not stop the ranks once"
}
number=20
for signal in INT HUP USR1; do
  signalled "$((++number))" "$signal"
  says "cause stopped_early"
  called "scontrol requeue $number" 1
  [ ! -e "$work/train_cifar-$number.stop" ] || fail "SIG$signal has ended the job for good"
done
# USR2, from stop_job, is for good: what Slurm starts nevertheless ends at once, and another job with the number does not.
signalled 24 USR2
says "cause stopped_for_good"
! grep -q "scontrol requeue" "$work/calls" || fail "what was stopped for good is put back"
SLURM_RESTART_COUNT=1 job 24
ended_with 75
says "It does not begin: stop_job ended this job for good. Submit it again: it goes on from its checkpoint ----"
! grep -q srun "$work/calls" || fail "ranks of a job that was stopped for good have started"
tail -1 "$work/train_cifar-24.attempts.jsonl" | grep -q '"attempt":1,"cause":"stopped_for_good",.*"code":75' ||
  fail "the end is not written down: $(tail -1 "$work/train_cifar-24.attempts.jsonl")"
signalled 24 USR1
srun_ends 'mkdir -p train_cifar-25.stop; trap "echo asked >>asked; exit 75" USR1; : >begun; for ((i = 0; i < 300; ++i)); do sleep 0.1; done'
signalled 25 USR2
says "train_cifar.sbatch: cannot write '$work/train_cifar-25.stop': if this node fails now, Slurm runs the job again. Repeat \
stop_job then."
echo "  signals to the script"

# slurmctld does not come back: the job ends with words, after as many tries as take five minutes where sleep sleeps.
srun_ends 'exit 76'
pretend sleep ''
pretend squeue 'exit 1'
JOB_RETRY_COUNT=3 job 30
ended_with 76
says "train_cifar.sbatch: Slurm did not put the job back into the queue (scontrol requeue). Submit it again: it goes on from \
its checkpoint."
called "sleep 1" 300
rm "$work/tools/sleep"
pretend squeue "$job_runs"
echo "  a controller that stays away"

# Slurm's SIGTERM after a requeue ended scontrol, or the script asked Slurm at length what that was about: SIGKILL came before
# the delay was said. Where scontrol fails after all, and squeue knows that the job does not run, but not yet that it is back:
srun_ends 'echo "bind: Address already in use"; exit 1'
pretend squeue 'if [ ! -e "'"$work"'/is_back" ]; then '"$job_runs"'; exit; fi
case $* in *RestartCnt*) rm "'"$work"'/is_silent" 2>/dev/null || echo 1 ;; *) echo "COMPLETING|None|||all" ;; esac'
for harm in 'kill -TERM "$(ps -o ppid= $PPID)" "$PPID" $$' 'touch "'"$work"'/is_silent"; exit 1'; do
  rm -f "$work/is_back"
  pretend scontrol 'if [ "$1" = requeue ]; then touch "'"$work"'/is_back"; '"$harm"'; fi'
  JOB_RETRY_COUNT=3 job 35
  ended_with 1
  called "scontrol requeue 35" 1
  [ "$(grep -cE '^scontrol update JobId=35 StartTime=now\+[0-9]+$' "$work/calls")" = 1 ] ||
    fail "the delay of a conflict is lost: $(cat "$work/calls")"
  [[ $harm != kill* || $(grep -A 1 "scontrol requeue" "$work/calls" | tail -1) == "scontrol update"* ]] ||
    fail "something else comes before the delay: $(cat "$work/calls")"
done
pretend scontrol ''
pretend squeue "$job_runs"
echo "  a signal while the job is put back"

# A verdict that an earlier attempt left is not this one's.
srun_ends 'exit 79'
echo '{"code": 71, "signal": null, "rank": 0, "host": "n1", "step": 1, "sentence": "an old one."}' >"$work/a verdict"
LOCKSTEP_VERDICT="$work/a verdict" job 40
ended_with 79
says "cause diverged"
LOCKSTEP_VERDICT="$work/a fifo" job 40
says "cause diverged"
[ -p "$work/a fifo" ] || fail "what is no file is removed for a verdict"
# Rules that would take too long are refused before ranks start.
printf '%s\n' 'transient log (a*)*\1b' >"$work/rules"
LOCKSTEP_RETRY_RULES=$work/rules job 41
ended_with 2
says "line 1 of '$work/rules': a pattern has no back references (\\1) (LOCKSTEP_RETRY_RULES). Correct it."
echo "  an old verdict, rules that take too long"

# Jobs of roles find the profile's network, too. What names logs of ranks is for ranks: run_roles marks lines itself.
printf '#!/bin/sh\necho "roles on $LOCKSTEP_INTERFACE"\n' >"$work/programs/run_roles"
chmod +x "$work/programs/run_roles"
LOCKSTEP_SITE=$work/site LOCKSTEP_RANK_LOGS=$work/logs job_script=run_roles.sbatch job 45 roles.json
ended_with 0
says "roles on lo"
says "run_roles.sbatch: LOCKSTEP_RANK_LOGS is for jobs without roles: nothing is written there."
LOCKSTEP_RANK_LOGS=/dev/null/logs job 46
ended_with 2
says "cannot make the folder '/dev/null/logs' (LOCKSTEP_RANK_LOGS). Name another one."
says "cause usage"
LOCKSTEP_LAUNCHER=aprun job 47
ended_with 2
says "'aprun' is no launcher (LOCKSTEP_LAUNCHER, or launcher in the site's profile). Known: srun, mpirun."
says "cause usage"
# mpirun's own messages would stand behind a rank's sentence. Where no rank has said anything, they are missed.
pretend mpirun 'echo "quiet: $OMPI_MCA_orte_execute_quiet"; [ -n "${silent:-}" ] || echo "{}" >"$LOCKSTEP_VERDICT"; exit 1'
LOCKSTEP_LAUNCHER=mpirun job 48
says "quiet: 1"
hint="mpirun ended with 1, and no rank said why. OMPI_MCA_orte_execute_quiet=0 makes mpirun print its messages."
! grep -qF "$hint" "$work/out" || fail "it misses words although a rank has spoken"
silent=yes OMPI_MCA_orte_execute_quiet=0 LOCKSTEP_LAUNCHER=mpirun job 49
says "quiet: 0"
says "$hint"
echo "  jobs of roles, logs of ranks, mpirun's silence"

# A sweep: its lines' mistakes are named, and an output folder is for all.
srun_ends 'printf "<%s>" "${@:3}"'
job_script=array.sbatch
export SLURM_ARRAY_JOB_ID=50
{ echo '--seed 1'; echo '--seed 2 --output x'; echo '--output=x'; head -c 3000000 /dev/zero | tr '\0' a; echo; } >"$work/sweep"
SLURM_ARRAY_TASK_ID=0 job 50 sweep --output 'a folder' --epochs 2 --output='the folder'
ended_with 0
says "<$work/programs/train_cifar><--epochs><2><--seed><1><--output><the folder/50_0>"
SLURM_ARRAY_TASK_ID=0 job 50 sweep --epochs 2
says "<$work/programs/train_cifar><--epochs><2><--seed><1><--output><runs/50_0>"
for task in 1 2; do
  SLURM_ARRAY_TASK_ID=$task job 50 sweep
  ended_with 2
  says "line $((task + 1)) of 'sweep' has --output: each task has a folder of its own. State --output FOLDER for all, after the \
sweep."
done
SLURM_ARRAY_TASK_ID=3 job 50 sweep
ended_with 2
says "line 4 of 'sweep' has 3000000 characters, and may have 65536: is it a sweep, one task a line?"
SLURM_ARRAY_TASK_ID=4 job 50 sweep
ended_with 2
says "'sweep' has 4 lines, and this is task 4. Ask for tasks 0 to 3: --array."
echo "  a sweep"

# Bash ran what a number of Slurm's held in a subscript.
hostile_number='PATH[$(touch PWNED)]'
SLURM_ARRAY_TASK_ID=$hostile_number job 50 sweep
ended_with 2
says "this script is a task of a job array: sbatch --array=0-3 array.sbatch FILE OPTIONS"
unset SLURM_ARRAY_JOB_ID
job_script=train_cifar.sbatch
pretend squeue 'case $* in *RestartCnt*) echo "PATH[\$(touch${IFS}PWNED)]" ;; *) echo "RUNNING|None|||all" ;; esac'
SLURM_RESTART_COUNT=$hostile_number job 51
ended_with 0
[ -z "$(find "$work" -name PWNED)" ] || fail "a number of Slurm's was run"
echo "passed"
