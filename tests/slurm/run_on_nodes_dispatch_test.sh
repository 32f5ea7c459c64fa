#!/usr/bin/env bash
# What run_on_nodes does on nodes before and after the program runs:
#
#   run_on_nodes_dispatch_test.sh BUILD_FOLDER [SCENARIO...]
# shellcheck disable=SC2012,SC2015,SC2016,SC2317
# shellcheck source-path=SCRIPTDIR source=run_on_nodes_support.sh
source "$(dirname "$0")/run_on_nodes_support.sh"

"$programs/make_shards" synthetic --samples 40 --output "$data" >"$work/out" 2>&1 || fail "make_shards"
"$programs/make_shards" synthetic --samples 40 --seed 2 --output "$work/other" >"$work/out" 2>&1 || fail "make_shards"
is_source() { diff -r "$data" "$1" >/dev/null || fail "'$1' is not the source"; }

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

run_scenarios
