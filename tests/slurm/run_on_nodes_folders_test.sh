#!/usr/bin/env bash
# How run_on_nodes --dispatch copies folders with programs and configuration:
#
#   run_on_nodes_folders_test.sh BUILD_FOLDER [SCENARIO...]
# shellcheck disable=SC2012,SC2015,SC2016,SC2317
# shellcheck source-path=SCRIPTDIR source=run_on_nodes_support.sh
source "$(dirname "$0")/run_on_nodes_support.sh"

mark=.lockstep-dispatch
write_source() { # in the place of an earlier one
  rm -rf "$data"
  mkdir -p "$data/empty" "$data/ -rf \$(touch hurt)" "$data/locked"
  printf '#!/bin/sh\necho one\n' >"$data/run me"
  chmod +x "$data/run me"
  echo "epochs: 1" >"$data/config.yaml"
  echo odd >"$data/ -rf \$(touch hurt)/"$'line\nbreak \\ \xff "\''
  echo closed >"$data/locked/file"
  chmod 555 "$data/locked"
  ln -s config.yaml "$data/link"
  ln -s /nowhere/at\ all "$data/broken link"
}
is_source() { # COPY
  diff -r --no-dereference --exclude=$mark "$data" "$1" >"$work/diff" 2>&1 || fail "not the source: $(cat "$work/diff")"
  [ -x "$1/run me" ] || fail "the program cannot be executed"
}
is_marked() { grep -qxE 'lockstep-dispatch [0-9a-f]{64}' "$1/$mark" || fail "'$1' has no mark"; }
# The content of the node, as a text.
content() { (cd "$work/node" && find . -printf '%p %y %l\n' -type f -exec cat {} + | sort); }
# A dispatch to n1 fails for this reason, and changes nothing there.
refused() { # SUBJECT
  local before
  before=$(content)
  dispatch 1
  says "$1"
  says "n1"
  [ "$(content)" = "$before" ] || fail "the node was changed"
  ! grep -q launched "$work/out" || fail "the program was started"
}

copies_programs_and_configuration() {
  write_source
  dispatch 0
  says "copied '$data' to n1"
  says "launched --hostfile"
  holds "$name"
  is_source "$there"
  is_marked "$there"
  [ ! -e "$data/$mark" ] || fail "the source was marked"
  local copy; copy=$(stat -c %i "$there" "$there/config.yaml")
  dispatch 0
  says "n1 already has '$data'"
  [ "$(stat -c %i "$there" "$there/config.yaml")" = "$copy" ] || fail "a copy was replaced by the same"
}

replaces_its_copy_when_the_source_changed() {
  write_source
  dispatch 0
  changed() { # WHAT COMMAND...
    "${@:2}" || fail "cannot change the source"
    dispatch 0
    says "copied '$data' to n1"
    holds "$name"
    is_source "$there"
    [ -x "$there/config.yaml" ] || [ ! -x "$data/config.yaml" ] || fail "no difference by $1"
  }
  changed content sh -c 'echo "epochs: 2" >"$1"' sh "$data/config.yaml"
  changed mode chmod +x "$data/config.yaml"
  changed name mv "$data/ -rf \$(touch hurt)" "$data/moved"
  changed link ln -sfn "run me" "$data/link"
}

sets_a_copy_aside_that_was_changed_on_the_node() {
  write_source
  dispatch 0
  echo precious >"$there/result"
  dispatch 0
  says "a copy that was changed there"
  says "'$data.set-aside-1'"
  [ "$(cat "$there.set-aside-1/result")" = precious ] || fail "a result is gone"
  is_source "$there"
  echo "epochs: 3" >"$there/config.yaml"
  echo "epochs: 2" >"$data/config.yaml"
  dispatch 0
  says "'$data.set-aside-2'"
  grep -q 3 "$there.set-aside-2/config.yaml" || fail "a change on the node is gone"
  holds "$name" "$name".set-aside-{1,2}
}

refuses_to_replace_what_it_did_not_make() {
  write_source
  mkdir "$there"
  echo precious >"$there/notes"
  refused "'$data' on n1 differs, and run_on_nodes did not make it."
  echo "lockstep-dispatch 0123" >"$there/$mark"
  refused "did not make it"
  rm "$there/$mark"
  mkdir "$there/$mark"
  refused "did not make it"
  rm -r "$there"
  echo file >"$there"
  refused "did not make it"
  rm "$there"
  # A copy behind a link, and the copy of another user.
  dispatch 0
  echo "epochs: 2" >"$data/config.yaml"
  mv "$there" "$work/node/elsewhere"
  ln -s "$work/disk/elsewhere" "$there"
  refused "did not make it"
  rm "$there"
  mv "$work/node/elsewhere" "$there"
  chown 12345 "$there"
  refused "did not make it"
  ln -sfn "$work/nowhere" "$work/node/dangling"
  data=$work/disk/dangling there=$work/node/dangling
  mkdir "$data"
  refused "did not make it"
  rm -r "$data"
  data=$work/disk/$name there=$work/node/$name
}

keeps_the_same_content_of_others() {
  write_source
  cp -a "$data" "$there"
  chmod -R go+w "$there/empty"
  dispatch 0
  says "n1 already has '$data'"
  [ ! -e "$there/$mark" ] || fail "a folder of others was marked"
}

# The source is a copy itself, or pretends to be one.
does_not_copy_a_mark() {
  write_source
  echo precious >"$work/victim"
  ln -s "$work/victim" "$data/$mark"
  dispatch 0
  is_source "$there"
  is_marked "$there"
  [ "$(cat "$work/victim")" = precious ] || fail "a link was followed"
}

leaves_the_source_alone() {
  write_source
  mount --bind "$work/node" "$work/disk"
  write_source
  dispatch 0
  says "n1 already has '$data'"
  # n1 reads something else in a file of the same file system.
  echo other >"$work/other"
  before "mount --bind $work/other $work/disk/*/config.yaml"
  refused "'$data' on n1 is the source itself"
  before ''
  # The source is a copy that another run_on_nodes made.
  echo "lockstep-dispatch $(printf '%064d' 0)" >"$data/$mark"
  before "mount --bind $work/other $work/disk/*/config.yaml"
  refused "'$data' on n1 is the source itself"
  holds "$name"
  umount "$work/disk"
}

# A run was killed after it had moved the previous copy, and before it moved its own.
never_takes_an_interrupted_copy() {
  write_source
  dispatch 0
  mkdir "$there.partial"
  touch "$there.partial/lockstep-dispatch"
  mv "$there" "$there.partial/old"
  echo "epochs: 2" >"$data/config.yaml"
  cp -a "$data" "$there.partial/data"
  rm "$there.partial/data/run me"
  before "mount -t tmpfs -o ro tmpfs $work/disk/*.partial/data"
  dispatch 1
  says "cannot copy '$data' to n1"
  grep -q 1 "$there/config.yaml" && is_marked "$there" || fail "the previous copy is not back"
  before ''
  dispatch 0
  says "copied '$data' to n1"
  holds "$name"
  is_source "$there"
}

names_the_node_whose_disk_is_full() {
  write_source
  head -c 200000 /dev/urandom >"$data/large"
  mount -t tmpfs -o size=64k tmpfs "$work/node"
  refused "not enough space for '$data' on n1: "
  umount "$work/node"
  # The file system has enough space, but too few inodes.
  mount -t tmpfs -o nr_inodes=12 tmpfs "$work/node"
  refused "the copy of '$data' to n1 is incomplete (tar: "
  says "No space left on device"
  umount "$work/node"
  mount -t tmpfs -o ro tmpfs "$work/node"
  refused "cannot copy '$data' to n1: mkdir: "
  says "Read-only file system"
  umount "$work/node"
}

copies_several_folders_programs_first() {
  write_source
  local bin=$work/disk/bin
  mkdir "$bin"
  cp "$programs/run_on_nodes" "$programs/make_shards" "$bin"
  "$programs/make_shards" synthetic --samples 40 --output "$work/disk/shards" >"$work/out" 2>&1 || fail "make_shards"
  programs=$bin nodes 0 --dispatch "$bin/" --dispatch "$data" --dispatch "$work/disk/./shards"
  says "copied '$bin' to n1"
  says "copied '$data' to n1"
  says "copied '$work/disk/shards' to n1"
  holds "$name" bin shards
  [ ! -e "$work/node/shards/$mark" ] || fail "a data set was marked"
  rm -r "$bin" "$work/disk/shards"
}

refuses_folders_that_cannot_be_copied() {
  write_source
  refused_here() { # SUBJECT FOLDER...
    local subject=$1 folders=(); shift
    for folder in "$@"; do folders+=(--dispatch "$folder"); done
    nodes 2 "${folders[@]}"
    says "$subject"
    holds
  }
  refused_here "'$data/config.yaml' (--dispatch) is not a folder" "$data" "$data/config.yaml"
  refused_here "'$data/none' (--dispatch) is not a folder" "$data/none"
  refused_here "'$data' and '$data/empty' (--dispatch) have files in common" "$data/empty" "$data"
  refused_here "'$data' and '$data' (--dispatch) have files in common" "$data" "$data/../$name"
  refused_here "'/' (--dispatch)" /
  mkdir "$work/disk/line"$'\n'
  refused_here "/line\\n' (--dispatch) has control characters" "$work/disk/line"$'\n'
  nodes 2 --dispatch "$data" --logs "$data/empty/logs"
  says "'$data/empty/logs' (--logs) is in '$data' (--dispatch)"
  [ ! -e "$data/empty/logs" ] || fail "the folder was made"
  mkfifo "$data/pipe"
  refused_here "/pipe' is no plain file" "$data"
  rm "$data/pipe"
  mkdir "$data/$mark"
  refused_here "/$mark' is no plain file" "$data"
  rmdir "$data"/.lockstep* "$work/disk/line"$'\n'
}

# The node's disk or memory gives an error where it is read; root may read everything else.
refuses_what_it_cannot_read() {
  write_source
  dispatch 0
  echo "epochs: 2" >"$data/config.yaml"
  # A process of its own, whose memory has no byte 0.
  before "mount --bind /proc/self/mem $work/disk/*/config.yaml"
  refused "cannot check '$data' on n1: sha256sum: ./config.yaml: "
  before ''
  mount --bind /proc/self/mem "$data/config.yaml"
  nodes 2 --dispatch "$data"
  umount "$data/config.yaml"
  says "cannot read all of '$data' (--dispatch): sha256sum: ./config.yaml: "
}

# Two sources of the same path. The one that is dispatched last counts.
two_at_once_leave_one_whole_copy() {
  write_source
  for turn in 1 2 3; do
    nodes_of() { unshare --mount bash -c 'mount --bind "$1" "$2" && exec "${@:3}"' bash "$1" "$work/disk" \
      "$programs/run_on_nodes" --hostfile "$work/hosts" --dispatch "$data" /bin/true >"$work/out.$2" 2>&1; }
    rm -rf "$work/source1" "$work/source2" "$work/node"
    mkdir "$work/node"
    cp -a "$work/disk" "$work/source1"
    cp -a "$work/disk" "$work/source2"
    echo "epochs: $turn" >"$work/source1/$name/config.yaml"
    echo "epochs: 9" >"$work/source2/$name/config.yaml"
    nodes_of "$work/source1" 1 &
    nodes_of "$work/source2" 2 || fail "the second: $(cat "$work/out.2")"
    wait $! || fail "the first: $(cat "$work/out.1")"
    holds "$name"
    cmp -s "$work/source1/$name/config.yaml" "$there/config.yaml" ||
      cmp -s "$work/source2/$name/config.yaml" "$there/config.yaml" || fail "neither of both"
    is_marked "$there"
  done
}

# At every moment the node has a whole copy, the previous one or the new one, or none for a moment.
survives_a_kill_at_any_moment() {
  write_source
  for i in $(seq 200); do echo "$i" >"$data/empty/$i"; done
  local turn signal
  for turn in $(seq 0 24); do
    echo "epochs: $turn" >"$data/config.yaml"
    signal=$((turn % 2 ? 9 : 15))
    "$programs/run_on_nodes" --hostfile "$work/hosts" --dispatch "$data" /bin/true >"$work/out" 2>&1 &
    sleep "0.$(printf %02d $((turn * 2)))"
    kill -$signal $! 2>/dev/null
    wait $! 2>/dev/null
    sleep 0.3  # after SIGKILL, the node notices by the end of its input
    [ ! -e "$there" ] || { [ -x "$there/run me" ] && is_marked "$there" && [ -e "$there/empty/200" ]; } ||
      fail "an incomplete copy: $(ls -lA "$there")"
    rm -rf "$there".set-aside-*
  done
  sleep 1
  echo "epochs: 99" >"$data/config.yaml"
  dispatch 0
  is_source "$there"
  holds "$name"
}

run_scenarios
