#!/usr/bin/env bash
# What job scripts print and do with a pretended Slurm, which can refuse, hang or be away: job_scripts_test.sh BUILD
# shellcheck disable=SC2016,SC2034
set -uo pipefail
shopt -s extglob
build=$(readlink -f "$1")
readme=$(readlink -f "$(dirname "$0")/../../slurm/README.md")
scripts=$build/slurm host=$(hostname -s)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bin=$work/programs table='' name=''
fail() { cat out 2>/dev/null; echo "failed: $table: '$name': $*"; exit 1; }
unset "${!LOCKSTEP_@}" "${!SLURM_@}" JOB_RETRY_COUNT
unset -f module

# pretend TOOL LINES: found before all other programs. It writes its arguments to the file `calls`, and does what the
# variable on_TOOL holds, or LINES.
mkdir tools programs
pretend() {
  printf '%s\n' '#!/usr/bin/env bash' "echo \"$1 \$*\" >>'$work/calls'" "lines=\${on_$1:-}" \
    'case $* in --mpi=list) echo pmix; exit ;; --mpi=pmix*" true") eval "${on_trial:-}"; exit ;; esac' \
    '[ -z "$lines" ] || { eval "$lines"; exit; }' "$2" >"tools/$1"
  chmod +x "tools/$1"
}
export PATH=$work/tools:$PATH
for tool in scontrol sacct; do pretend "$tool" ''; done
pretend scancel '! [[ $* == *[%.]* ]] || { echo "scancel: error: Invalid job id"; exit 1; }'
pretend sinfo 'printf "n%s\n" 1 2 3 4 5'
pretend squeue 'case $* in *RestartCnt*) echo 0 ;; *) echo "RUNNING|None|||all" ;; esac'
pretend srun 'printf "<%s>" "${@:3}"; echo'
pretend sleep 'exec /usr/bin/sleep "$@"'
pretend mpirun 'echo "quiet: $OMPI_MCA_orte_execute_quiet"
[ -n "${silent:-}" ] || echo "{}" >"$LOCKSTEP_VERDICT"; exit 1'
ln -s "$build/bin/job_attempt" programs/
printf '#!/bin/sh\necho "roles on $LOCKSTEP_INTERFACE"\n' >programs/run_roles
printf '#!/bin/sh\nprintf "<%%s>" search "$@"\n' >programs/search
for name in train_cifar train_imagenet check_cluster scaling_study make_shards; do printf '#!/bin/sh\n' >"programs/$name"; done
chmod +x programs/*

prints() { grep -qF -- "$1" out || fail "it does not print '$1'"; }
# calls "TOOL ARGUMENTS; ARGUMENTS": these are all calls of the tool, in this order.
calls() {
  local tool=${1%% *} found
  found=$(sed -nE "s/now\\+[0-9]+/now+N/; s/^$tool //p" calls | paste -sd ';' | sed 's/;/; /g')
  [ "$tool${found:+ $found}" = "$1" ] || fail "the calls are not '$1': $(<calls)"
}

# run_case NAME | JOB [SIGNAL] | SETTINGS | COMMAND | CODE [| WORDS]: runs the command (default: train_cifar.sbatch) as
# that job, and sends it the signal once ranks run. It must end with the code, and print the words. A script that ends
# with 2 must have started no ranks and not requeue the job.
run_case() {
  local job settings command wanted words number signal code process tries
  IFS='|' read -r name job settings command wanted words <<<"$1"
  local -n column
  for column in name job settings command wanted words; do column=${column##+( )} column=${column%%+( )}; done
  read -r number signal <<<"$job"
  rm -f asked begun
  : >calls
  (
    set -a
    LOCKSTEP_BIN=$bin SLURM_JOB_ID=$number SLURM_JOB_NUM_NODES=1 SLURM_JOB_NODELIST=$host SLURM_TASKS_PER_NODE=1
    eval "$settings"
    eval "set -- ${command:-train_cifar.sbatch}"
    command=$1; shift
    [ -e "$command" ] || command=$scripts/$command
    exec env --default-signal bash "$command" "$@"
  ) >out 2>&1 </dev/null &
  process=$!
  if [ -n "$signal" ]; then
    for ((tries = 0; tries < 200; ++tries)); do [ ! -e begun ] || break; sleep 0.05; done
    kill "-$signal" "$process"
  fi
  wait "$process"
  code=$?
  [ "$code" = "$wanted" ] || fail "it ends with $code, not $wanted"
  [ -z "$signal" ] || [ "$(cat asked)" = asked ] || fail "SIG$signal does not stop the ranks exactly once"
  [ "$code" != 2 ] || ! grep -v ' true$' calls | grep -q 'srun --mpi=pmix\|requeue' || fail "ranks start, or it requeues: $(<calls)"
  [ -z "$words" ] || prints "$words"
}

# check TABLE: reads cases from the standard input. Indented lines are what else must be true of the case above them.
check() {
  local line text
  table=$1
  while IFS= read -r line; do
    text=${line#  +([a-z]) }
    case $line in
      '  prints '*) prints "$text" ;;
      '  never '*) ! grep -qF -- "$text" out || fail "it prints '$text'" ;;
      '  line '*) grep -qxF -- "$text" out || fail "it does not print the line '$text'" ;;
      '  first '*) [ "$(head -1 out)" = "$text" ] || fail "its first line is not '$text'" ;;
      '  calls '*) calls "$text" ;;
      '  test '*) (eval "$text") >found 2>&1 || fail "this is false: $text $(<found)" ;;
      '  '* | '') fail "the test's table has the line '$line'" ;;
      *) run_case "$line" ;;
    esac
  done
  echo "  $table"
}

knows='on_squeue=$answer'
answer='[ "${SLURM_BITSTR_LEN:-}" = 0 ] || exit 3; [ -z "$jobs" ] || tr " =" "\n|" <<<"$jobs"'
fails='on_squeue="echo \"slurm_load_jobs error: \$error\" >&2; exit 1"'
check "stop_job requests one stop for each part of a job that has a script, and cancels the rest" <<TABLE
both parts run | | jobs='17+0=RUNNING 17+1=RUNNING' $knows | stop_job 17 | 0
  prints stop_job: job 17 stops
  calls scancel --batch --signal=USR2 17
both parts are pending | | jobs='17+0=PENDING 17+1=PENDING' $knows | stop_job 17 | 0
  prints stop_job: job 17+1 (PENDING) is cancelled
  calls scancel 17+0; 17+1
an array | | jobs='16_0=RUNNING 16_1=SIGNALING 16_2=REQUEUE_HOLD 16_[3-9%2]=PENDING' $knows | stop_job 16 | 0
  calls scancel --batch --signal=USR2 16_0; --batch --signal=USR2 16_1; 16_2; 16_[3-9]
a task of an array | | jobs='16_3=RUNNING' $knows | stop_job 16_3 | 0
  calls squeue -h -j 16_3 -o %i|%T
  calls scancel --batch --signal=USR2 16_3
no controller | | error='Unable to contact slurm controller (connect failure)' $fails | stop_job 17 | 1
  prints slurm_load_jobs error: Unable to contact slurm controller (connect failure)
  prints job 17
a suspended job | | jobs='17=SUSPENDED' $knows | stop_job 17 | 1 | scontrol resume 17
  calls scancel
an unknown job | | error='Invalid job id specified' $fails | stop_job 17 18 | 1
  prints no unfinished job 18
a job that has ended | | jobs='' $knows | stop_job 17 | 0 | job 17 has ended
  calls scancel
no number | | jobs='17=RUNNING' $knows | stop_job '17;x' 17 | 2
  prints stop_job: '17;x'
  calls scancel --batch --signal=USR2 17
no job | | | stop_job | 2 | stop_job 17
no permission | | jobs='17=RUNNING' $knows on_scancel='echo Access/permission denied; exit 1' | stop_job 17 | 1
  prints Access/permission denied
stop_job --help | | | stop_job --help | 0 | stop_job JOB [JOB...]
  first Stops a running job with a checkpoint, or cancels a pending one. Slurm does not retry it.
stop_job -h | | | stop_job -h | 0
  test bash '$scripts/stop_job' --help | diff - out
run_on_nodes --help | | | '$build/bin/run_on_nodes' --help | 0
  first Runs a program on several nodes without Slurm, with mpirun:
  prints   run_on_nodes --hostfile FILE [--dispatch FOLDER]... [--logs FOLDER] PROGRAM ARGUMENTS...
  never shellcheck
  never set -u
run_on_nodes -h | | | '$build/bin/run_on_nodes' -h | 0
  test bash '$build/bin/run_on_nodes' --help | diff - out
TABLE

check "started without Slurm" <<TABLE
train_cifar | | unset SLURM_JOB_ID | train_cifar.sbatch | 2
  prints sbatch $scripts/train_cifar.sbatch OPTIONS
train_imagenet | | unset SLURM_JOB_ID | train_imagenet.sbatch | 2
  prints sbatch $scripts/train_imagenet.sbatch OPTIONS
run_roles | | unset SLURM_JOB_ID | run_roles.sbatch roles.json | 2
  prints sbatch $scripts/run_roles.sbatch OPTIONS
TABLE

{ echo '#!/usr/bin/env bash'; sed -n '/^    scripts=/,/^    end_attempt/s/^    //p' "$readme"; } >own
sed -i "s:^scripts=.*:scripts='$scripts':" own
export verdict='{"code": 71, "host": "n1", "bad_hosts": ["n2", "n3"], "sentence": "they are slow."}'
bad_nodes='printf "<%s>" "${@:3}"; [[ $3 != *check_cluster ]] || { echo "$verdict" >"$LOCKSTEP_VERDICT"; exit 71; }'
on_bad='on_srun=$bad_nodes'
check "which programs run, with which options" <<TABLE
the script in README.md | 7 | | own --epochs 2 | 0
  prints <$bin/train_imagenet><--data><data/flowers><--output><runs/flowers><--epochs><2>
a check finds bad nodes | 8 | LOCKSTEP_CHECK='my floors' $on_bad | train_cifar.sbatch --data x --output 'my runs' | 71
  prints <$bin/check_cluster><--output><my runs><--floors><my floors>
  never <--data>
  prints cause bad_node
  calls scontrol requeue 8; update JobId=8 ExcNodeList=n2,n3
a check without floors | 9 | LOCKSTEP_CHECK=yes $on_bad | train_cifar.sbatch --data x | 71
  prints <$bin/check_cluster><--output><runs/9>
a check alone is not repeated | 10 | $on_bad | check_cluster.sbatch --output 'my runs' | 71 | they are slow.
  calls scontrol
a check finds nothing | 11 | LOCKSTEP_CHECK=yes | train_cifar.sbatch --data x | 0 | <$bin/train_cifar><--data><x>
a scaling study | 12 | | scaling_study.sbatch --model resnet20 | 0
  prints <$bin/scaling_study><--model><resnet20><--output><studies/12>
a scaling study with a folder | 13 | | scaling_study.sbatch --output 'my study' | 0
  prints <$bin/scaling_study><--output><my study>
a search | 14 | | search.sbatch space.yaml --output 'my search' | 0
  prints <search><space.yaml><--output><my search>
a search with mpirun | 15 | LOCKSTEP_LAUNCHER=mpirun LOCKSTEP_RANK_LOGS=logs | search.sbatch space.yaml | 0
  prints <search><space.yaml><--launcher><mpirun>
  prints search.sbatch: LOCKSTEP_RANK_LOGS
TABLE

mkfifo 'a fifo'
echo 'modules=openmpi/4.1 hdf5' >modules
echo 'interface=lo,nowhere0' >nowhere0
echo 'interface=lo' >lo
echo 'mail_type=END,ALWAYS' >mail
echo 'container=docker' >docker
echo 'image.x/y:1=images/x.sif' >relative
echo 'storage.nfs=/gpfs/a b' >space
echo 'storage.../x=/gpfs' >no_name
profile_refused() { echo "'$1' (LOCKSTEP_SITE)"; }
lo_and='LOCKSTEP_SITE=lo LOCKSTEP_INTERFACE=lo,'
check "the site" <<TABLE
a profile that is a device | 1 | LOCKSTEP_SITE=/dev/null | | 2 | $(profile_refused /dev/null)
a profile that is a FIFO | 1 | LOCKSTEP_SITE='a fifo' | | 2 | $(profile_refused 'a fifo')
a profile that is a folder | 1 | LOCKSTEP_SITE=$work | | 2 | $(profile_refused "$work")
no profile | 1 | LOCKSTEP_SITE=nowhere | | 2 | $(profile_refused nowhere)
no modules | 1 | LOCKSTEP_SITE=modules | | 2
  prints 'module'
an unknown container program | 1 | LOCKSTEP_SITE=docker | | 2
  prints line 1 of 'docker': 'docker' is not a container program
an image that is no path | 1 | LOCKSTEP_SITE=relative | | 2
  prints line 1 of 'relative': the value of 'image.x/y:1' is not
a storage with a space | 1 | LOCKSTEP_SITE=space | | 2
  prints line 1 of 'space': the value of 'storage.nfs' is not
a storage that is no name | 1 | LOCKSTEP_SITE=no_name | | 2
  prints line 1 of 'no_name' is not a setting: 'storage.../x=/gpfs'
modules that fail | 1 | LOCKSTEP_SITE=modules; module() { false; } | | 2
  prints 'openmpi/4.1 hdf5'
no such interface | 1 | LOCKSTEP_SITE=nowhere0 | | 2
  prints train_cifar.sbatch: $host
  prints network interface 'nowhere0' (LOCKSTEP_INTERFACE
  test grep -qE ': (.*, )?lo(, .*)?\.\$' out
an unknown event of a job | 1 | LOCKSTEP_SITE=mail | | 2
  prints line 1 of 'mail': 'END,ALWAYS'
an empty interface | 1 | $lo_and,lo | | 2 | network interface ''
an interface with a slash | 1 | $lo_and../net/lo,lo | | 2 | network interface '../net/lo'
a dot | 1 | $lo_and.,lo | | 2 | network interface '.'
an interface with a semicolon | 1 | $lo_and'lo;x',lo | | 2 | network interface 'lo;x'
an interface of two lines | 1 | $lo_and$'lo\nlo',lo | | 2 | network interface 'lo?lo'
a network with a letter | 1 | ${lo_and}10.0.0.0/16x,lo | | 2 | network interface '10.0.0.0/16x'
a pattern | 1 | $lo_and'l*',lo | | 2 | network interface 'l*'
  test [ ! -e train_cifar-1.attempts.jsonl ]
an interface | 1 | LOCKSTEP_SITE=lo on_srun=env | | 0
  line LOCKSTEP_INTERFACE=lo
  line OMPI_MCA_btl_tcp_if_include=lo
  line OMPI_MCA_oob_tcp_if_include=lo
  line NCCL_SOCKET_IFNAME==lo
a network, which NCCL cannot use | 1 | LOCKSTEP_SITE=lo LOCKSTEP_INTERFACE=127.0.0.0/8 on_srun=env | | 0
  line OMPI_MCA_btl_tcp_if_include=127.0.0.0/8
  never NCCL_SOCKET_IFNAME
jobs of roles, whose lines run_roles marks | 45 | LOCKSTEP_SITE=lo LOCKSTEP_RANK_LOGS=logs | run_roles.sbatch x | 0
  prints roles on lo
  prints run_roles.sbatch: LOCKSTEP_RANK_LOGS
TABLE

until_asked='[ -z "${folder:-}" ] || mkdir "$folder"; trap "echo asked >>asked; exit 75" USR1; : >begun
for ((i = 0; i < 300; ++i)); do sleep 0.1; done'
stops='on_srun=$until_asked'
check "a signal to the script stops the ranks once" <<TABLE
SIGINT | 21 INT | $stops | | 75 | cause stopped_early
  calls scontrol requeue 21
  test [ ! -e train_cifar-21.stop ]
SIGHUP | 22 HUP | $stops | | 75 | cause stopped_early
  calls scontrol requeue 22
  test [ ! -e train_cifar-22.stop ]
SIGUSR1 | 23 USR1 | $stops | | 75 | cause stopped_early
  calls scontrol requeue 23
  test [ ! -e train_cifar-23.stop ]
SIGUSR2, which stop_job sends | 24 USR2 | $stops | | 75 | cause stopped_for_good
  calls scontrol
Slurm starts the stopped job again | 24 | SLURM_RESTART_COUNT=1 | | 75
  prints The attempt does not start: stop_job
  calls srun
  test tail -1 train_cifar-24.attempts.jsonl | grep -q '"attempt":1,"cause":"stopped_for_good",.*"code":75'
another job with that number | 24 USR1 | $stops | | 75
Slurm does not answer | 26 USR2 | on_squeue='exit 1' $stops | | 75 | cause stopped_for_good
  calls scancel
a request that cannot be written | 25 USR2 | folder=train_cifar-25.stop $stops | | 75
  prints train_cifar.sbatch: cannot write '$work/train_cifar-25.stop'
TABLE

# Slurm's SIGTERM after a requeue ended scontrol, or the script asked Slurm at length what that was about: SIGKILL came
# before the delay was stated. In the last case scontrol fails although it has requeued the job, and squeue reports at
# first only that the job does not run.
conflict='echo "bind: Address already in use"; exit 1'
state='if [ ! -e is_back ]; then case $* in *RestartCnt*) echo 0 ;; *) echo "RUNNING|None|||all" ;; esac; exit; fi
case $* in *RestartCnt*) rm is_silent 2>/dev/null || echo 1 ;; *) echo "COMPLETING|None|||all" ;; esac'
killed='[ "$1" != requeue ] || { touch is_back; kill -TERM "$(ps -o ppid= $PPID)" "$PPID" $$; }'
silent='[ "$1" != requeue ] || { touch is_back is_silent; exit 1; }'
late='rm -f is_back; JOB_RETRY_COUNT=3 on_srun=$conflict on_squeue=$state'
check "requeue" <<TABLE
five minutes without a controller | 30 | JOB_RETRY_COUNT=3 on_srun='exit 76' on_squeue='exit 1' on_sleep=: | | 76
  prints (scontrol requeue)
  test [ "\$(grep -cx 'sleep 1' calls)" = 300 ]
SIGTERM while scontrol runs | 35 | $late on_scontrol=\$killed | | 1
  calls scontrol requeue 35; update JobId=35 StartTime=now+N
  test grep -A 1 '^scontrol requeue' calls | tail -1 | grep '^scontrol update'
scontrol fails after a requeue | 35 | $late on_scontrol=\$silent | | 1
  calls scontrol requeue 35; update JobId=35 StartTime=now+N
TABLE

# The third call of sleep sends the signal to the script.
signals='echo >>sleeps; [ "$(wc -l <sleeps)" != 3 ] || kill "-$signal" "$PPID"'
fails_again='rm -f sleeps; JOB_RETRY_COUNT=3 on_srun="exit 1" on_sleep=$signals'
check "nodes that are kept after a failure" <<TABLE
no time | 80 | LOCKSTEP_HOLD_ON_FAILURE='a while' | | 2 | 'a while' (LOCKSTEP_HOLD_ON_FAILURE)
an option as the time | 80 | LOCKSTEP_HOLD_ON_FAILURE=--code | | 2 | '--code' (LOCKSTEP_HOLD_ON_FAILURE)
until the time is over | 81 | LOCKSTEP_HOLD_ON_FAILURE=2s on_srun='exit 65' | | 65
  prints --jobid=81 --nodes=1 --ntasks=1 --pty bash
  prints hold_seconds 2
until the retry is wanted | 82 | $fails_again LOCKSTEP_HOLD_ON_FAILURE=0:30 signal=USR1 | | 1
  calls scontrol requeue 82
  test [ "\$(wc -l <sleeps)" = 3 ]
until stop_job | 83 | $fails_again LOCKSTEP_HOLD_ON_FAILURE=1-0 signal=USR2 | | 1
  calls scontrol
  test tail -1 train_cifar-83.attempts.jsonl | grep -q '"cause":"stopped_for_good"'
not after a success | 84 | LOCKSTEP_HOLD_ON_FAILURE=1h | | 0
  calls sleep
not after an early stop | 85 USR1 | LOCKSTEP_HOLD_ON_FAILURE=1h $stops | | 75
  never keeps its nodes
TABLE

echo '{"code": 71, "signal": null, "rank": 0, "host": "n1", "step": 1, "sentence": "an old one."}' >'a verdict'
printf '%s\n' 'transient log (a*)*\1b' >rules
mkdir logs
ln -s ../link_target logs/43.0.rank-0.log
mkfifo logs/44.0.rank-0.log
ranks='"$3" "$4" sh -c "echo out; echo err >&2"'
logs='LOCKSTEP_RANK_LOGS=logs on_srun=$ranks'
no_log="rank-0.log'"
hint='mpirun ended with code 1'
unloadable='echo "srun: error: Invalid MPI type '"'pmix'"', --mpi=list for acceptable types" >&2; exit 1'
unlaunched='echo "srun: error: Application launch failed: Unspecified error" >&2'
# More steps than the words of one program can name.
many_steps='echo "70|RUNNING"; for ((i = 0; i < 9000; ++i)); do echo "70.$i|COMPLETED"; done; echo "70.9000|NODE_FAIL"'
retried='LOCKSTEP_ATTEMPT_LIMIT=9 on_srun="exit 75"'
check "facts for job_attempt" <<TABLE
a job of many steps | 70 | on_srun='exit 1' on_sacct=\$many_steps | | 1 | cause node_failure
  calls scontrol requeue 70
a conversion, which has no checkpoints | 71 | $retried | make_shards.sbatch cifar10 --source c --output x | 75
  prints counted_retries 0
a training without a checkpoint | 72 | $retried | train_cifar.sbatch --output x | 75
  prints counted_retries 1
TABLE

# Slurm's answers about an array of three: task 1 has ended, and scancel ends task 2, if it does.
for name in plain array; do
  printf '%s\n' '#!/usr/bin/env bash' "source '$scripts/job.sh' || exit 2" >"$name"
done
cat >>plain <<'SCRIPT'
begin_attempt train_cifar --output x
env | grep '^LOCKSTEP_VERDICT=' || echo 'a job submitted here has its own exit report'
run_ranks train_cifar "${arguments[@]}"
end_attempt $?
SCRIPT
cat >>array <<SCRIPT
secrets=$work/secrets
source '$scripts/job_array.sh' || exit 2
begin_array_task 1 -1
begin_attempt train_cifar
run_ranks train_cifar
end_attempt \$?
SCRIPT
in_array='SLURM_ARRAY_JOB_ID=90 SLURM_ARRAY_TASK_ID=0'
tasks='case $* in
  *RestartCnt*) echo 0 ;;
  *-r*) echo 90_0; [ -z "$stays" ] && grep -q "^scancel" "$work/calls" || echo 90_2 ;;
  *) echo "RUNNING|None|||all" ;;
esac'
fails_in_array='touch secrets; on_squeue=$tasks on_srun="exit 65" on_sleep=: work=$work'
check "jobs within a job, and arrays" <<TABLE
the report of the script | 73 | on_srun='echo "it is \$LOCKSTEP_VERDICT"' | plain | 0
  prints it is $work/train_cifar-73.0.json
  prints a job submitted here has its own exit report
the report that a user chose | 74 | LOCKSTEP_VERDICT='my report' on_srun='echo "it is \$LOCKSTEP_VERDICT"' | plain | 0
  prints it is my report
  prints a job submitted here has its own exit report
the other task ends | 91 | $in_array stays=; $fails_in_array | array | 65 | The other tasks are cancelled
  calls scancel 90_2
  test [ ! -e secrets ] && [ ! -e run_roles-90.array ]
the other task stays | 91 | $in_array stays=yes; $fails_in_array | array | 65 | The other tasks are cancelled
  calls scancel 90_2
  test [ -e secrets ] && [ -e run_roles-90.array/over ]
TABLE

check "verdicts, rules, logs of ranks and launchers" <<TABLE
an earlier attempt's verdict | 40 | LOCKSTEP_VERDICT='a verdict' on_srun='exit 79' | | 79 | cause diverged
a verdict that is no file | 40 | LOCKSTEP_VERDICT='a fifo' on_srun='exit 79' | | 79 | cause diverged
  test [ -p 'a fifo' ]
a rule that would take too long | 41 | LOCKSTEP_RETRY_RULES=rules | | 2
  prints line 1 of 'rules' (LOCKSTEP_RETRY_RULES)
a log | 42 | $logs | | 0 | out
  prints err
  test [ "\$(sort logs/42.0.rank-0.log)" = "\$(printf 'err\nout')" ]
a log that is a symbolic link, which was followed | 43 | $logs | | 0 | out
  prints err
  prints rank_log: cannot write '$work/logs/43.0.$no_log
  test [ ! -e link_target ]
a log that is a FIFO | 44 | $logs | | 0 | out
  prints rank_log: cannot write '$work/logs/44.0.$no_log
a folder that cannot be made | 46 | LOCKSTEP_RANK_LOGS=/dev/null/logs | | 2 | cause usage
  prints '/dev/null/logs' (LOCKSTEP_RANK_LOGS)
an unknown launcher | 47 | LOCKSTEP_LAUNCHER=aprun | | 2 | cause usage
  prints 'aprun'
mpirun is silent after a rank's sentence | 48 | LOCKSTEP_LAUNCHER=mpirun | | 1 | quiet: 1
  never $hint
PMIx is listed, but does not load | 52 | on_trial=\$unloadable | | 1 | quiet: 1
  line srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types
  prints train_cifar.sbatch: srun cannot start ranks with PMIx
  calls srun --mpi=list; --mpi=pmix --nodes=1 --ntasks=1 true
PMIx does not load on a node, and srun returns 0 | 53 | on_trial=\$unlaunched | | 1 | quiet: 1
a trial start fails otherwise | 54 | on_trial='echo "srun: error: Node failure on n1"; exit 1' | | 0 | <$bin/train_cifar>
  test [ "\$(grep -c '^srun.* true\$' calls)" = 1 ]
mpirun's words are missed | 49 | LOCKSTEP_LAUNCHER=mpirun silent=yes OMPI_MCA_orte_execute_quiet=0 | | 1
  prints quiet: 0
  prints $hint
TABLE

{ echo '--seed 1'; echo '--seed 2 --output x'; echo '--output=x'; head -c 3000000 /dev/zero | tr '\0' a; echo; } >sweep
task() { SLURM_ARRAY_JOB_ID=50 SLURM_ARRAY_TASK_ID=$1; }
has_output="of 'sweep' has --output"
# Bash ran what a number of Slurm's held in a subscript.
hostile='PATH[$(touch PWNED)]'
hostile_restarts='case $* in *RestartCnt*) echo "PATH[\$(touch\${IFS}PWNED)]" ;; *) echo "RUNNING|None|||all" ;; esac'
check "a sweep, and hostile numbers" <<TABLE
a folder for all | 50 | task 0 | array.sbatch sweep --output 'a folder' --epochs 2 --output='the folder' | 0
  prints <$bin/train_cifar><--epochs><2><--seed><1><--output><the folder/50_0>
no folder | 50 | task 0 | array.sbatch sweep --epochs 2 | 0
  prints <$bin/train_cifar><--epochs><2><--seed><1><--output><runs/50_0>
--output FOLDER in a line | 50 | task 1 | array.sbatch sweep | 2 | line 2 $has_output
--output=FOLDER in a line | 50 | task 2 | array.sbatch sweep | 2 | line 3 $has_output
a long line | 50 | task 3 | array.sbatch sweep | 2
  prints line 4 of 'sweep'
  prints 3000000
a task without a line | 50 | task 4 | array.sbatch sweep | 2
  prints --array=0-3
a task number that is code | 50 | task "\$hostile" | array.sbatch sweep | 2
  prints sbatch --array=0-3 array.sbatch FILE OPTIONS
restart counts that are code | 51 | SLURM_RESTART_COUNT=\$hostile on_squeue=\$hostile_restarts | | 0
  test [ -z "\$(find . -name PWNED)" ]
TABLE
# A site's script, and the records of a job that an earlier version ran: names in them are kept, so both go on.
cat >site_script <<SCRIPT
#!/usr/bin/env bash
#SBATCH --nodes=1 --ntasks-per-node=2 --requeue --open-mode=append
source '$scripts/job.sh' || exit 2
begin_attempt train_cifar --data data/cifar10 --output runs/old "\$@"
run_ranks train_cifar "\${arguments[@]}"
end_attempt \$?
SCRIPT
cat >train_cifar-60.attempts.jsonl <<'LINE'
{"action":"requeue","attempt":0,"cause":"out_of_step","checkpoint_step":120,"code":76,"counted":true,"counted_retries":1,"ended":1795000100,"excluded":["n2"],"job":60,"kind":"unknown","log_from":0,"nodes":["n1"],"sentence":"rank 1 hung.","started":1795000000,"transient_retries":0}
LINE
sed 's/"job":60/"job":61/; s/"counted_retries":1/"counted_retries":2/' train_cifar-60.attempts.jsonl >train_cifar-61.attempts.jsonl
old='JOB_RETRY_COUNT=2 SLURM_RESTART_COUNT=1'
hangs='echo "{\"code\": 76, \"rank\": 1, \"host\": \"n1\", \"step\": 7, \"sentence\": \"rank 1 hung again.\"}" >"$LOCKSTEP_VERDICT"; exit 76'
check "a script and records of an earlier version" <<TABLE
one retry is left | 60 | $old on_srun=\$hangs | site_script --epochs 2 | 76 | rank 1 hung again.
  calls scontrol requeue 60
  test tail -1 train_cifar-60.attempts.jsonl | grep -q '"attempt":1,"cause":"out_of_step",.*"counted_retries":2'
no retry is left | 61 | $old on_srun=\$hangs | site_script --epochs 2 | 76 | rank 1 hung again.
  calls scontrol
its options reach the program | 62 | | site_script --epochs 2 | 0
  prints <$bin/train_cifar><--data><data/cifar10><--output><runs/old><--epochs><2>
TABLE
echo "passed"
