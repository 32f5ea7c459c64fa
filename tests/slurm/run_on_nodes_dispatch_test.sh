#!/usr/bin/env bash
# What run_on_nodes does on nodes before and after the program runs, and how it reads its host file:
#
#   run_on_nodes_dispatch_test.sh BUILD_FOLDER [SCENARIO...]
#
# A node is this machine with another folder in the place of $work/disk. mpirun starts nothing unless a scenario says so.
# shellcheck disable=SC2012,SC2015,SC2059,SC2317
set -uo pipefail
programs=$(readlink -f "$1")/bin
skip() { echo "skipped: $*"; exit 77; }
((EUID == 0)) || skip "a disk of its own for a node wants root"
unshare --mount true 2>/dev/null || skip "this machine allows no mount namespaces"
work=$(mktemp -d)
trap 'umount -l "$work/disk" "$work/node" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
real_mpirun=$(command -v mpirun) || skip "no mpirun"
fail() { cat "$work/out"; echo "failed: $*"; exit 1; }
says() { grep -qF -- "$1" "$work/out" || fail "it does not say '$1'"; }

mkdir -p "$work/bin" "$work/disk" "$work/node"
cat >"$work/bin/mpirun" <<SH
#!/bin/sh
[ "\$1" != --version ] || exec $real_mpirun --version
echo launched "\$@"
SH
cat >"$work/agent" <<SH
#!/bin/bash
# NODE COMMAND: the node "down" cannot be reached, "hangs" does not answer.
[ "\$1" != down ] || exit 255
[ "\$1" != hangs ] || exec sleep 60
echo "\$1" >>"$work/asked"
exec unshare --mount --propagation private bash -c \
  'mount --bind "\$1/node" "\$1/disk" && . "\$1/before" && exec sh -c "\$2"' bash "$work" "\$2"
SH
chmod +x "$work/bin/mpirun" "$work/agent"
export PATH=$work/bin:$PATH
# What is done on the node before its command.
before() { echo "$1" >"$work/before"; }
agent_is() { export OMPI_MCA_plm_rsh_agent=$1 PRTE_MCA_plm_ssh_agent=$1; }
agent_is "$work/agent"

data="$work/disk/it's a \"set\""
there="$work/node/it's a \"set\""
"$programs/make_shards" synthetic --samples 40 --output "$data" >"$work/out" 2>&1 || fail "make_shards"
"$programs/make_shards" synthetic --samples 40 --seed 2 --output "$work/other" >"$work/out" 2>&1 || fail "make_shards"
echo "n1 slots=1" >"$work/hosts"
# nodes CODE [OPTIONS...]: a run whose output is $work/out
nodes() {
  local wanted=$1; shift
  "$programs/run_on_nodes" --hostfile "$work/hosts" "$@" /bin/true >"$work/out" 2>&1
  local code=$?
  [ $code = "$wanted" ] || fail "code $code, not $wanted"
}
dispatch() { nodes "$1" --dispatch "$data"; }
clear() { rm -rf "$work/node"; mkdir "$work/node"; before ''; }
have() { cp -r "$1" "$there"; }
is_source() { diff -r "$data" "$1" >/dev/null || fail "'$1' is not the source"; }
holds() { [ "$(ls -A "$work/node")" = "$(printf '%s\n' "$@" | sort)" ] || fail "the node holds: $(ls -A "$work/node")"; }
name=$(basename "$data")

copies_what_is_missing() {
  dispatch 0
  says "copied '$data' to n1"
  says "launched --hostfile"
  holds "$name"
  is_source "$there"
  local before
  before=$(stat -c %i "$there/train/manifest.json")
  dispatch 0
  says "n1 already has '$data'"
  [ "$(stat -c %i "$there/train/manifest.json")" = "$before" ] || fail "a copy was replaced by the same"
}

# A data set that was right in itself was used in the place of the one that was asked for.
moves_another_data_set_aside() {
  have "$work/other"
  dispatch 0
  says "copied '$data' to n1. "
  says "another data set"
  says "'$data.set-aside-1'"
  is_source "$there"
  diff -r "$work/other" "$there.set-aside-1" >/dev/null || fail "the other data set is not what it was"
}

# All of these were deleted.
moves_foreign_and_damaged_files_aside() {
  mkdir -p "$there/train"
  echo precious >"$there/notes"
  dispatch 0
  says "no data set"
  says "'$data.set-aside-1'"
  [ "$(cat "$there.set-aside-1/notes")" = precious ] || fail "foreign files are gone"
  printf x >>"$(ls "$there"/train/*.h5 | head -1)"
  dispatch 0
  says "a damaged data set"
  says "'$data.set-aside-2'"
  rm -r "$there"
  ln -s "$work/other" "$there"
  dispatch 0
  says "another data set"
  says "'$data.set-aside-3'"
  [ -L "$there.set-aside-3" ] && [ -d "$work/other/train" ] || fail "a link was followed"
  rm -r "$there"
  echo file >"$there"
  dispatch 0
  says "no data set"
  says "'$data.set-aside-4'"
  [ "$(cat "$there.set-aside-4")" = file ] || fail "a foreign file is gone"
  is_source "$there"
  holds "$name" "$name".set-aside-{1,2,3,4}
}

replaces_an_interrupted_copy_and_nothing_else_of_that_name() {
  mkdir -p "$there.partial/data/train"
  echo half >"$there.partial/data/train/half"
  touch "$there.partial/lockstep-dispatch"
  dispatch 0
  holds "$name"
  rm -r "$there"
  mkdir "$there.partial"
  echo precious >"$there.partial/notes"
  dispatch 0
  says "n1: '$data.partial' "
  says "'$data.partial.set-aside-1'"
  [ "$(cat "$there.partial.set-aside-1/notes")" = precious ] || fail "foreign files are gone"
  holds "$name" "$name.partial.set-aside-1"
}

# A correct copy was deleted because it could not be checked for want of file descriptors.
refuses_what_it_cannot_check() {
  have "$data"
  before 'ulimit -n 8'  # of which the shell itself wants more
  dispatch 1
  says "n1 does not answer (through '$work/agent')"
  before 'ulimit -n 12'
  dispatch 1
  says "cannot check '$data' on n1: "
  holds "$name"
  is_source "$there"
  mkdir "$work/empty"
  before "mount --bind $work/empty ${programs@Q}"
  dispatch 1
  says "cannot check '$data' on n1: '$programs/make_shards' "
  holds "$name"
  rmdir "$work/empty"
}

# The node's path is the source: it stays where it is, whatever the node finds there.
leaves_the_source_alone() {
  mount --bind "$work/node" "$work/disk"
  cp -r "$work/other" "$data"
  dispatch 0
  says "n1 already has '$data'"
  holds "$name"
  # n1 reads something else in a file of the same file system.
  cp "$(ls "$data"/train/*.h5 | head -1)" "$work/damaged"
  printf x >>"$work/damaged"
  before "mount --bind $work/damaged \"\$(ls $work/disk/*/train/*.h5 | head -1)\""
  dispatch 1
  says "'$data' on n1 is the source itself"
  holds "$name"
  # Even its manifest is gone there.
  before "mount -t tmpfs tmpfs $work/disk/*/"
  dispatch 1
  says "'$data' on n1 is the source itself"
  holds "$name"
  umount "$work/disk"
}

tells_when_there_is_no_room() {
  mount -t tmpfs -o size=64k tmpfs "$work/node"
  dispatch 1
  says "not enough space for '$data' on n1: "
  says " MB free."
  holds
  umount "$work/node"
}

# tar ended early, as the disk was full.
removes_its_own_copy_when_it_does_not_come_whole() {
  have "$work/other"
  before 'ulimit -f 8'
  dispatch 1
  says "the copy of '$data' to n1 is incomplete"
  holds "$name"
  diff -r "$work/other" "$there" >/dev/null || fail "what was there is not what it was"
}

waits_for_another_run() {
  mkdir "$there.partial"
  touch "$there.partial/lockstep-dispatch"
  mkfifo "$work/wait"
  flock "$there.partial/lockstep-dispatch" cat "$work/wait" &
  until ! flock -n "$there.partial/lockstep-dispatch" true; do sleep 0.05; done
  dispatch 0 &
  until grep -qs "waiting: another run_on_nodes is copying '$data' to n1" "$work/out"; do sleep 0.05; done
  have "$data"
  rm -r "$there.partial"
  : >"$work/wait"
  wait $! || exit 1
  says "n1 already has '$data'"
  holds "$name"
}

two_at_once_make_one_copy() {
  (cd "$work" && "$programs/run_on_nodes" --hostfile hosts --dispatch "$data" /bin/true >"$work/first" 2>&1) &
  dispatch 0
  wait $! || fail "the other run: $(cat "$work/first")"
  [ "$(cat "$work/out" "$work/first" | grep -c "copied '$data' to n1$")" = 1 ] || fail "$(cat "$work/first")"
  holds "$name"
  is_source "$there"
}

# After SIGTERM the deletion still ran.
does_nothing_more_after_a_signal() {
  have "$work/other"
  # The stream of the copy stands still.
  before "[ ! -e $work/begun ] && ls -d $work/disk/*.partial >/dev/null 2>&1 && touch $work/begun && exec sleep 5"
  sed -i '1s/$/ || true/' "$work/before"
  "$programs/run_on_nodes" --hostfile "$work/hosts" --dispatch "$data" /bin/true >"$work/out" 2>&1 &
  local script=$!
  until [ -e "$work/begun" ]; do sleep 0.05; done
  kill -TERM $script
  wait $script
  [ $? = 143 ] || fail "a signal is not told by the code"
  sleep 1
  holds "$name" "$name.partial"
  diff -r "$work/other" "$there" >/dev/null || fail "what was there is not what it was"
  ! grep -q launched "$work/out" || fail "the program was started"
}

names_nodes_that_do_not_answer() {
  echo down >"$work/hosts"
  dispatch 1
  says "down does not answer (through '$work/agent')"
  echo hangs >>"$work/hosts"
  local begin=$SECONDS
  nodes 0
  ((SECONDS - begin < 20)) || fail "the end took $((SECONDS - begin)) s"
  says "hangs did not answer within 10 s. "
  says "down cannot be reached by '$work/agent'. "
  says "LOCKSTEP_RUN="
  echo "n1 slots=1" >"$work/hosts"
}

reads_host_files_as_mpirun_does() {
  : >"$work/asked"
  printf '%s\n' 'root@n1 slots=1 # first' '// comment' $'\tn2  user_name = ann' 'n3 username=bob max_slots=2' \
    'n3 username=bob' >"$work/hosts"
  nodes 0
  [ "$(sort "$work/asked" | tr '\n' ' ')" = "ann@n2 bob@n3 root@n1 " ] || fail "asked: $(cat "$work/asked")"
  refused() { # HOSTS SUBJECT
    printf "$1" >"$work/hosts"
    nodes 2
    says "$2"
  }
  refused 'n1 slots=1\r\n' "sed -i 's/\\r\$//'"
  refused 'n\0001\n' "zero bytes"
  refused 'n1 user=root\n' "'user=root'"
  refused 'n1\001\n' "\$'n1\\001'"
  refused 'n1\002\n' "\$'n1\\002'"
  refused 'n1\377\n' "\$'n1\\377'"
  refused '\357\273\277n1\n' "\$'\\357\\273\\277n1'"
  refused '%%s@n1\n' "'%s@n1'"
  refused '\055oProxyCommand=x@n1\n' "'-oProxyCommand=x@n1'"
  echo "n1 slots=1" >"$work/hosts"
}

reads_the_agent_as_mpirun_does() {
  agent_is "/nowhere/rsh -x : env  WORD='a   $work/agent"
  nodes 0
  agent_is "/nowhere/rsh:"
  nodes 2
  says "'/nowhere/rsh:'"
  says "OMPI_MCA_plm_rsh_agent"
  agent_is "$work/agent"
}

refuses_logs_that_mpirun_would_take_for_options() {
  nodes 2 --logs "$work/logs:12:30"
  says "'$work/logs:12:30'"
  says "--logs"
  [ ! -e "$work/logs:12:30" ] || fail "the folder was made"
}

# With --quiet mpirun fails without a word, for example if a node lacks the program.
tells_when_mpirun_itself_fails() {
  local fake; fake=$(<"$work/bin/mpirun")
  sed -i 's/^echo launched.*/echo "quiet: $OMPI_MCA_orte_execute_quiet"; exit 132/' "$work/bin/mpirun"
  nodes 132
  says "quiet: 1"
  says "run_on_nodes: mpirun ended with code 132. "
  says "OMPI_MCA_orte_execute_quiet=0"
  OMPI_MCA_orte_execute_quiet=0 nodes 132
  says "quiet: 0"
  sed -i 's/exit 132$/exit 76/' "$work/bin/mpirun"
  nodes 76
  ! grep -q "mpirun ended" "$work/out" || fail "it explains the program's own code"
  printf '%s\n' "$fake" >"$work/bin/mpirun"
}

# Without sshd a good run on localhost ended with a warning that the node did not answer.
reaches_this_node_without_the_agent() {
  agent_is false
  printf 'localhost slots=1\n%s\n' "$HOSTNAME" >"$work/hosts"
  nodes 0 --dispatch "$data"
  says "localhost already has '$data'"
  ! grep -qE 'reached|answer' "$work/out" || fail "it asks the agent"
  echo "n1 slots=1" >"$work/hosts"
  agent_is "$work/agent"
}

with_mpirun() { ln -sf "$real_mpirun" "$work/bin/mpirun"; echo "localhost slots=1" >"$work/hosts"; }

# Ctrl-C left a program one second, and two of a terminal's signals none.
leaves_a_program_time_after_ctrl_c() {
  with_mpirun
  set -m  # a process group of its own, as in a terminal
  "$programs/run_on_nodes" --hostfile "$work/hosts" /bin/sh -c \
    "trap 'sleep 2; touch $work/saved; exit 75' USR1; touch $work/up; while :; do sleep 0.1; done" >"$work/out" 2>&1 &
  local script=$!
  set +m
  until [ -e "$work/up" ]; do sleep 0.1; done
  rm "$work/up"
  kill -INT -- -$script
  wait $script
  [ $? = 130 ] || fail "a signal is not told by the code"
  [ -e "$work/saved" ] || fail "the program had no time"
}

stops_a_training_with_a_checkpoint() {
  with_mpirun
  "$programs/run_on_nodes" --hostfile "$work/hosts" train_cifar --data "$data" --model lenet --global-batch 20 \
    --threads 1 --epochs 1000000 --output "$work/run" >"$work/out" 2>&1 &
  local script=$!
  until [ -s "$work/run/metrics.jsonl" ]; do kill -0 $script || fail "no training"; sleep 0.1; done
  kill -TERM $script
  wait $script
  [ $? = 143 ] || fail "a signal is not told by the code"
  grep -q '"state": "stopped"' "$work/run/summary.json" || fail "the training was not stopped"
  ls "$work"/run/checkpoints/*.h5 >/dev/null || fail "no checkpoint"
  [[ $("$real_mpirun" --version) != *'(Open MPI) 4.'* ]] || ! grep -q mpirun "$work/out" || fail "mpirun has the last word"
}

ends_at_once_at_a_second_signal() {
  with_mpirun
  "$programs/run_on_nodes" --hostfile "$work/hosts" \
    /bin/sh -c "trap '' USR1; touch '$work/up'; sleep 100" >"$work/out" 2>&1 &
  local script=$!
  until [ -e "$work/up" ]; do sleep 0.1; done
  local begin=$SECONDS
  kill -TERM $script
  sleep 1
  kill -0 $script || fail "it did not wait for the program"
  kill -TERM $script
  wait $script
  [ $? = 143 ] || fail "a signal is not told by the code"
  ((SECONDS - begin < 10)) || fail "the second signal took $((SECONDS - begin)) s"
}

shift
(($#)) || mapfile -t all < <(sed -nE 's/^([a-z_]+)\(\) \{$/\1/p' "$0" | grep -vx nodes)
for scenario in "${@:-${all[@]}}"; do
  clear
  begin=$SECONDS
  echo "$scenario"
  "$scenario"
  echo "  passed in $((SECONDS - begin)) s"
done
