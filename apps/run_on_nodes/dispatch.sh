# Copies a data set to a node, which runs on_node.sh: its commands and answers are there.
# shellcheck shell=bash

# Opens a session with NODE for FOLDER: `to` and `from` are its streams.
open_session() { # NODE FOLDER
  coproc session { on "$1" env "LOCKSTEP_RUN=$run" sh -c "$node_script" sh "$programs/make_shards" "$2" "$run"; }
  { exec {to}>&"${session[1]}" {from}<&"${session[0]}"; } 2>/dev/null || lost "$1"
  session_closes=${session[1]}
}
close_session() {
  exec {to}>&- {from}<&- {session_closes}>&-
  wait "${session_PID:-}" 2>/dev/null
}
lost() { fail "$1 does not answer (through '${agent[*]}'). Check that it is up, and reachable without a password."; }
# ask COMMAND: sets `reply`, and `waited` if another run had to end first.
ask() {
  local line
  reply='' waited=''
  { echo "$1" >&"$to"; } 2>/dev/null || lost "$node"
  while read -r line <&"$from"; do
    case $line in
      end) return ;;
      busy) waited=yes; echo "waiting: another run_on_nodes is copying '$folder' to $node" ;;
      *) reply=$line ;;
    esac
  done
  lost "$node"
}

identity() { # FOLDER: in the format of the node's script
  local LC_ALL=C
  # shellcheck disable=SC2046
  echo identity $(stat -L -c '%i:%Z' "$1"/manifest.json "$1"/*/manifest.json 2>/dev/null)
}

# Sets `before` to the state of the target. Fails unless it is the same data set or may be moved away.
look() {
  ask look
  before=$reply
  case $before in
    "whole $hashes" | absent | foreign) return ;;
    whole* | damaged*) ;;
    *) fail "cannot check '$folder' on $node: ${before#unchecked }. Nothing was changed there." ;;
  esac
  ask identity
  [ "$reply" != "$(identity "$folder")" ] || fail_at_source
}
fail_at_source() {
  fail "'$folder' on $node is the source itself, on a shared file system, but differs from what was verified here." \
    "Nothing was changed. Check whether it is being written, and the file system of $node."
}
described() { # describes the previous contents
  case $before in
    foreign) echo "no data set" ;; damaged*) echo "a damaged data set" ;; *) echo "another data set" ;;
  esac
}

# dispatch NODE FOLDER HASHES
dispatch() {
  local node=$1 folder=$2 hashes=$3 before needed
  open_session "$node" "$folder"
  look
  [ "$before" = "whole $hashes" ] || begin_copy
  if [ "$before" = "whole $hashes" ]; then
    echo "$node already has '$folder'"
  else
    copy
  fi
  close_session
}
# Begins a copy. If another run has just completed one, sets `before` accordingly.
begin_copy() {
  ask begin
  case $reply in
    begun) ;;
    moved*)
      echo "$node: '$folder.partial' is not a copy of Lockstep. It was moved to" \
        "'$folder.partial.set-aside-${reply#moved }'" ;;
    *) fail "cannot copy '$folder' to $node (see above). Nothing was changed there." ;;
  esac
  [ -z "$waited" ] || look
  [ "$before" != "whole $hashes" ] || { ask give_up; return; }
  # The node shares this file system.
  [ ! -e "$folder.partial/$run" ] || { ask give_up; fail_at_source; }
}

copy() {
  needed=$(du -s --block-size=1 --apparent-size -- "$folder/" | cut -f 1)
  ask room
  ((${reply#room } >= needed)) || {
    local free=${reply#room }
    ask give_up
    fail "not enough space for '$folder' on $node: $((needed / 1000000)) MB needed, $((free / 1000000)) MB free." \
      "Nothing was changed there. Free some space and run again."
  }
  # shellcheck disable=SC2016
  tar -C "$folder" -cf - . |
    on "$node" env "LOCKSTEP_RUN=$run" sh -c 'exec tar -C "$1" -xf -' sh "$folder.partial/data" &
  wait $! || give_up_copy "see above"
  ask check
  [ "$reply" = "whole $hashes" ] || give_up_copy "${reply#* }"
  ask publish
  case $reply in
    published) echo "copied '$folder' to $node" ;;
    aside*)
      echo "copied '$folder' to $node. The previous content ($(described)) was moved to" \
        "'$folder.set-aside-${reply#aside }'" ;;
    *) fail "cannot rename the copy of '$folder' on $node (see above)." ;;
  esac
}
give_up_copy() { # REASON
  ask give_up
  fail "the copy of '$folder' to $node is incomplete ($1). The previous content is unchanged. Check the free space."
}
