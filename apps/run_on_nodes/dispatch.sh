# Copies folders to nodes, which run on_node.sh: its commands and answers are there.
# shellcheck shell=bash disable=SC2154

# Sets `folders`.
read_folders() { # FOLDER...
  local LC_ALL=C folder other
  folders=()
  for folder in "$@"; do
    [[ $folder$PWD != *[[:cntrl:]]* ]] ||
      refuse "$(shown "$folder") (--dispatch) has control characters in its path. Rename it."
    folder=$(realpath -s -- "$folder") && [ -d "$folder" ] ||
      refuse "'$folder' (--dispatch) is not a folder. Choose a folder with data, programs or configuration."
    [ "$folder" != / ] || refuse "'/' (--dispatch) is the root of this node. Choose a folder below it."
    for other in ${folders[@]+"${folders[@]}"}; do
      [[ $folder/ != "$other"/* && $other/ != "$folder"/* ]] ||
        refuse "'$folder' and '$other' (--dispatch) have files in common. Leave out the one that is part of the other."
    done
    folders+=("$folder")
  done
}
# Sets `contents` and `hashes`: what the node's script calls CONTENT and HASHES of each folder.
hash_folders() {
  local folder text content
  contents=() hashes=()
  for folder in ${folders[@]+"${folders[@]}"}; do
    if is_data_set "$folder"; then
      text=$("$programs/make_shards" verify --root-hash "$folder") || exit
      contents+=('') hashes+=("${text//$'\n'/ }")
    else
      read_content "$folder"
      contents+=("$content") hashes+=("$content")
    fi
  done
}
is_data_set() { # FOLDER
  local manifest
  for manifest in "$1"/manifest.json "$1"/{train,validation,test}/manifest.json; do
    ! grep -qs '"root_hash"' "$manifest" || return 0
  done
  return 1
}
# Sets `content` to the hash of a folder that is no data set.
read_content() { # FOLDER
  local odd mark=$1/.lockstep-dispatch
  odd=$(find -H "$1" ! -type d ! -type f ! -type l -print -quit 2>/dev/null)
  [ -n "$odd" ] || [ -f "$mark" ] || [ ! -e "$mark" ] || odd=$mark
  [ -z "$odd" ] || refuse "$(shown "$odd") is no plain file, so '$1' (--dispatch) cannot be copied. Remove it."
  content=$(sh -c "$node_script" sh '' "$1" '' '' <<<content)
  odd=${content%%$'\n'*} content=${content%$'\nend'} content=${content##*$'\n'}
  [[ $content =~ ^[0-9a-f]{64}$ ]] || refuse "cannot read all of '$1' (--dispatch): $odd. Nothing was copied."
}

# Opens a session with NODE for FOLDER: `to` and `from` are its streams.
open_session() { # NODE FOLDER CONTENT
  coproc session { on "$1" env "LOCKSTEP_RUN=$run" sh -c "$node_script" sh "$programs/make_shards" "$2" "$run" "$3"; }
  { exec {to}>&"${session[1]}" {from}<&"${session[0]}"; } 2>/dev/null || lost "$1"
  session_closes=${session[1]}
}
close_session() {
  exec {to}>&- {from}<&- {session_closes}>&-
  wait "${session_PID:-}" 2>/dev/null
}
lost() { fail "$1 does not answer (through $(way_to "$1")). Check that it is up, and reachable without a password."; }
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
  echo identity $(stat -L -c '%i:%Z' ${content:+"$1"} "$1"/manifest.json "$1"/*/manifest.json 2>/dev/null)
}

# Sets `before` to the state of the target. Fails unless it has the wanted content or may be moved away.
look() {
  ask look
  before=$reply
  case $before in
    "whole $wanted" | absent | ours | changed) return ;;
    foreign) [ -n "$content" ] || return ;;
    whole* | damaged*) ;;
    *) fail "cannot check '$folder' on $node: ${before#unchecked }. Nothing was changed there." ;;
  esac
  ask identity
  [ "$reply" != "$(identity "$folder")" ] || fail_at_source
  [ "$before" != foreign ] || fail "'$folder' on $node differs, and run_on_nodes did not make it." \
    "Nothing was changed there. Rename or remove it."
}
fail_at_source() {
  fail "'$folder' on $node is the source itself, on a shared file system, but differs from what was read here." \
    "Nothing was changed. Check whether it is being written, and the file system of $node."
}
described() { # describes the previous contents
  case $before in
    changed) echo "a copy that was changed there" ;;
    foreign) echo "no data set" ;;
    damaged*) echo "a damaged data set" ;;
    *) echo "another data set" ;;
  esac
}

# Copies FOLDER unless NODE has it already. WANTED: its hashes.
dispatch() { # NODE FOLDER CONTENT WANTED
  local node=$1 folder=$2 content=$3 wanted=$4 before needed
  open_session "$node" "$folder" "$content"
  look
  [ "$before" = "whole $wanted" ] || begin_copy
  if [ "$before" = "whole $wanted" ]; then
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
    *) fail "cannot copy '$folder' to $node: ${reply#failed }. Nothing was changed there." ;;
  esac
  # Another run may have copied it since.
  [[ -z $waited && $before != absent ]] || look
  [ "$before" != "whole $wanted" ] || { ask give_up; return; }
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
  # Folders that their owner cannot write could neither be renamed nor removed.
  local said=$temporary/tar
  : >"$said"
  # shellcheck disable=SC2016
  tar -C "$folder" --mode=u+rwX --anchored --exclude=./.lockstep-dispatch -cf - . 2>>"$said" |
    on "$node" env "LOCKSTEP_RUN=$run" sh -c 'exec tar -C "$1" -xf -' sh "$folder.partial/data" >>"$said" 2>&1 &
  wait $! || give_up_copy "$(grep -m 1 '^tar: ' "$said" || tail -n 1 "$said")"
  ask check
  [ "$reply" = "whole $wanted" ] || give_up_copy "${content:+it differs from the source, which was changed meanwhile}"
  ask publish
  case $reply in
    published) echo "copied '$folder' to $node" ;;
    aside*)
      echo "copied '$folder' to $node. The previous content ($(described)) was moved to" \
        "'$folder.set-aside-${reply#aside }'" ;;
    *) fail "cannot rename the copy of '$folder' on $node: ${reply#failed }. The previous content is unchanged." ;;
  esac
}
give_up_copy() { # REASON
  local why=${1:-${reply#* }}
  ask give_up
  fail "the copy of '$folder' to $node is incomplete (${why:-the connection broke}). The previous content is unchanged." \
    "Check the free space."
}
