#!/usr/bin/env bash
# Runs a program on several nodes without Slurm, with mpirun:
#
#   run_on_nodes --hostfile FILE [--dispatch FOLDER]... [--logs FOLDER] PROGRAM ARGUMENTS...
#
# FILE is mpirun's host file. It lists one node per line: "n1 slots=2" or "user@n1 slots=2".
#
# --dispatch copies a data set to each node, under the same path. A node that already has the same data set keeps it:
# run_on_nodes compares the root hashes. It verifies a copy before it moves it to its final path. It deletes nothing:
# other data under that path is moved to FOLDER.set-aside-N. Only FOLDER.partial, an interrupted copy, is replaced.
#
# --logs also writes the output of each rank to separate files below FOLDER.
#
# SIGUSR1 stops the program with a checkpoint. Ctrl-C, SIGTERM and SIGHUP do the same; after 30 seconds, or at a second
# signal, run_on_nodes kills everything that it started on the nodes. It reaches other nodes with ssh, or with the
# program in OMPI_MCA_plm_rsh_agent. The programs must be in the same folder on all nodes. A PROGRAM without a path is
# taken from the folder of this script.
# shellcheck disable=SC2015,SC2317
set -uo pipefail
programs=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
grace=30     # seconds from the stop request until the program is killed
patience=10  # seconds that a node has to answer at the end

say() { echo "run_on_nodes: $*" >&2; }
refuse() { say "$*"; exit 2; }
fail() { say "$*"; exit 1; }
# Quotes the text and escapes each byte that is not printable ASCII, so that different names stay different.
shown() { local LC_ALL=C; printf '%s' "${1@Q}"; }

# Sets `nodes` to those that mpirun reads in the host file.
read_hosts() {
  local LC_ALL=C text odd node
  [ -f "$hostfile" ] && [ -r "$hostfile" ] ||
    refuse "cannot read the host file '$hostfile'. Write one node per line: n1 slots=2"
  case $(tr -dc '\0\r' <"$hostfile" | head -c 1 | od -An -tx1) in
    *0d) refuse "'$hostfile' has Windows line endings, which mpirun does not accept. Convert it: sed -i 's/\\r\$//'" ;;
    *00) refuse "'$hostfile' has zero bytes, so it is not a text file. Write one node per line: n1 slots=2" ;;
  esac
  text=$(sed -E 's%(#|//).*%%; s/[[:blank:]]*=[[:blank:]]*/=/g' "$hostfile")
  odd=$(grep -oE 'slots=[^[:space:]]*' <<<"$text" | grep -vxE 'slots=[1-9][0-9]{0,4}' | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "$odd"), but slots must be a whole number from 1 to 99999. Write: n1 slots=2"
  odd=$(grep -oE '[[:blank:]]user=[^[:space:]]*' <<<"$text" | head -1)
  [ -z "$odd" ] ||
    refuse "'$hostfile' has $(shown "${odd:1}"), which mpirun does not support. Write: user@n1 slots=2"
  mapfile -t nodes < <(awk 'NF {
      node = $1
      for (i = 2; i <= NF; ++i) if ($i ~ /^user_?name=/) node = substr($i, index($i, "=") + 1) "@" $1
      if (!seen[node]++) print node
    }' <<<"$text")
  ((${#nodes[@]})) || refuse "'$hostfile' lists no node. Write one node per line: n1 slots=2"
  for node in "${nodes[@]}"; do
    [[ $node =~ ^([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*$ ]] ||
      refuse "'$hostfile' lists $(shown "$node"), which is not a valid node name."
  done
}

# Sets `agent`, the command that reaches nodes, as mpirun does: the first installed one of several alternatives
# separated by colons.
find_agent() {
  local alternatives alternative
  IFS=: read -r -a alternatives <<<"$1"
  for alternative in ${alternatives[@]+"${alternatives[@]}"}; do
    read -r -a agent <<<"$alternative"
    ((${#agent[@]})) && type -P -- "${agent[0]}" >/dev/null && return
  done
  refuse "no program of $(shown "$1") is installed, so nodes cannot be reached. Set OMPI_MCA_plm_rsh_agent."
}

# mpirun does not use the agent for this node either.
is_this_node() { [[ $1 == localhost || $1 == 127.0.0.1 || $1 == "$HOSTNAME" ]]; }

# on NODE COMMAND...: passes the words literally, in quotes that every shell understands.
on() {
  local node=$1 words='' word reach=("${agent[@]}" "$1")
  for word in "${@:2}"; do words+="'${word//\'/\'\\\'\'}' "; done
  ! is_this_node "$node" || reach=(sh -c)
  ${limit[@]+"${limit[@]}"} "${reach[@]}" "$words"
}

# Runs on a node, for one target: PROGRAM TARGET TOKEN. It reads commands, one word per line, and answers each with a
# line and the line "end". It ends at the end of its input: once run_on_nodes has ended, nothing more happens on the
# node.
#
# TARGET.partial is the folder of an incomplete copy:
#   lockstep-dispatch  marks it as ours. The copying run holds its lock
#   data               the copy
#   TOKEN              of the run that copies
read -r -d '' node_script <<'NODE'
make_shards=$1 target=$2 token=$3
partial=$2.partial
mark=$partial/lockstep-dispatch
LC_ALL=C
export LC_ALL

answer() { printf '%s\n' "$*" || exit 1; }
exists() { [ -e "$1" ] || [ -L "$1" ]; }

# Whether PATH holds a manifest, or each of its splits does.
has_manifests() {
  [ ! -f "$1/manifest.json" ] || return 0
  for split in train validation test; do
    ! exists "$1/$split" || [ -f "$1/$split/manifest.json" ] || return 1
  done
  exists "$1/train" || exists "$1/validation" || exists "$1/test"
}

# Prints what PATH holds: absent | foreign | whole HASHES | damaged REASON | unchecked REASON
state_of() {
  [ -x "$make_shards" ] || { answer "unchecked '$make_shards' does not exist"; return; }
  exists "$1" || { answer absent; return; }
  [ -d "$1" ] || { answer foreign; return; }
  find "$1/." -maxdepth 2 >/dev/null || { answer "unchecked the folder cannot be listed"; return; }
  has_manifests "$1" || { answer foreign; return; }
  text=$("$make_shards" verify --root-hash "$1" 2>&1)
  code=$?
  hashes=$(printf '%s\n' "$text" | grep -xE '(\.|[a-z]+) [0-9a-f]{32}')
  reason=$(printf '%s\n' "$text" | grep -v '^-*$' | tail -n 1)
  case $code-$hashes in
    0-?*) answer whole $hashes ;;
    65-) answer "damaged $reason" ;;
    *) answer "unchecked $reason (code $code)" ;;
  esac
}

# Moves PATH out of the way, and sets `aside` to the number in its new name.
set_aside() {
  aside=1
  while exists "$1.set-aside-$aside"; do aside=$((aside + 1)); done
  mv -T -- "$1" "$1.set-aside-$aside"
}
is_ours() { [ -d "$partial" ] && [ ! -L "$partial" ] && [ -O "$partial" ] && [ -f "$mark" ] && [ ! -L "$mark" ]; }

lock() { flock -n 9 || { answer busy; flock 9 || exit 1; }; }

# Locks TARGET.partial, and empties it: begun | moved NUMBER | failed. "busy" comes first if another run copies.
begin() {
  moved='' tries=0
  mkdir -p -- "${target%/*}/" || { answer failed; return; }
  until is_ours && command exec 9>>"$mark" && lock && [ "$mark" -ef /proc/self/fd/9 ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { answer failed; return; }
    ! is_ours || continue
    if exists "$partial"; then
      set_aside "$partial" || { answer failed; return; }
      moved=$aside
    fi
    # Created together with its mark, then moved into place. Another run may do the same at this moment.
    mkdir -- "$partial.$token" && touch -- "$partial.$token/${mark##*/}" || { answer failed; return; }
    mv -T -- "$partial.$token" "$partial" 2>/dev/null || rm -r -- "$partial.$token"
  done
  rm -rf -- "$partial/data"
  mkdir -- "$partial/data" && touch -- "$partial/$token" || { answer failed; return; }
  answer "${moved:+moved }${moved:-begun}"
}
give_up() { is_ours && rm -rf -- "$partial"; exec 9>&-; }

# Moves the copy to its final path: published | aside NUMBER | failed
publish() {
  aside=''
  if exists "$target"; then set_aside "$target" || { give_up; answer failed; return; }; fi
  if ! mv -T -- "$partial/data" "$target"; then
    [ -z "$aside" ] || mv -T -- "$target.set-aside-$aside" "$target"
    give_up
    answer failed
    return
  fi
  give_up
  answer "${aside:+aside }${aside:-published}"
}

while read -r command; do
  case $command in
    look) state_of "$target" ;;
    identity) answer identity $(stat -L -c '%i:%Z' "$target"/manifest.json "$target"/*/manifest.json 2>/dev/null) ;;
    begin) begin ;;
    room) answer "room $(($(stat -f -c '%a * %S' "$partial")))" ;;
    check) state_of "$partial/data" ;;
    publish) publish ;;
    give_up) give_up ;;
  esac
  answer end
done
NODE

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

hostfile='' logs='' dispatched=()
while (($#)); do
  case $1 in
    --hostfile | --dispatch | --logs)
      [ -n "${2:-}" ] || refuse "$1 needs a value. See --help."
      [ "$1" != --hostfile ] || hostfile=$2
      [ "$1" != --dispatch ] || dispatched+=("$2")
      [ "$1" != --logs ] || logs=$(realpath -m -- "$2")
      shift 2 ;;
    -h | --help) sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "$0"; exit ;;
    -*) refuse "unknown option '$1'. Known: --hostfile, --dispatch, --logs." ;;
    *) break ;;
  esac
done
[ -n "$hostfile" ] && (($#)) || refuse "--hostfile FILE and a program are required. See --help."
read_hosts; program=$1; shift
[[ $program == */* ]] || program=$programs/$program
[ -x "$program" ] || refuse "'$program' does not exist. Choose a program of '$programs', or a path."
version=$(mpirun --version 2>/dev/null) || refuse "mpirun is not in PATH. Install Open MPI, or set PATH."
# Keeps the program's error message last. A variable, because Open MPI 5 has no --quiet.
export OMPI_MCA_orte_execute_quiet=${OMPI_MCA_orte_execute_quiet:-1}
# Open MPI 5 loses a rank's standard error unless it goes into the same file as the output.
launch=(mpirun --hostfile "$hostfile" --bind-to none)
if [[ $version == *'(Open MPI) 4.'* ]]; then
  output=(--output-filename "$logs") reserved=:
  find_agent "${OMPI_MCA_plm_rsh_agent:-ssh : rsh}"
else
  output=(--output "merge-stderr-to-stdout,dir=$logs") reserved=:,
  export PRTE_MCA_plm_ssh_agent=${PRTE_MCA_plm_ssh_agent:-${OMPI_MCA_plm_rsh_agent:-ssh : rsh}}
  find_agent "$PRTE_MCA_plm_ssh_agent"
fi
if [ -n "$logs" ]; then
  [[ $logs != *[$reserved]* ]] ||
    refuse "'$logs' (--logs) has one of the characters '$reserved', where mpirun options begin. Choose another folder."
  mkdir -p -- "$logs" 2>/dev/null && [ -w "$logs" ] || refuse "cannot write to '$logs' (--logs). Choose another folder."
  launch+=("${output[@]}")
fi

# A variable in its environment identifies every process of this run. This script and the agents do not have it.
run=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
unset LOCKSTEP_RUN
launcher='' ended_by='' is_begun=''
sweep() {
  trap '' TERM INT HUP
  [ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null
  [ -n "$is_begun" ] || return
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null
  local node why limit=(timeout -k 1 "$patience") sweeps=()
  for node in "${nodes[@]}"; do
    # shellcheck disable=SC2016
    on "$node" sh -c 'for p in /proc/[0-9]*; do
        tr "\0" "\n" <"$p/environ" 2>/dev/null | grep -qx "LOCKSTEP_RUN=$1" && kill -KILL "${p#/proc/}"
      done 2>/dev/null; true' sh "$run" </dev/null &
    sweeps+=($!)
  done
  for node in "${!sweeps[@]}"; do
    wait "${sweeps[node]}"
    case $? in
      0) continue ;;
      124 | 137) why="did not answer within $patience s" ;;
      *) why="cannot be reached by '${agent[*]}'" ;;
    esac
    say "${nodes[node]} $why. Processes of this run may still exist there, with LOCKSTEP_RUN=$run in their environment."
  done
}
# The first request stops the program with a checkpoint; the second one kills everything.
end() { # CODE
  [ -n "$launcher" ] && [ -z "$ended_by" ] || exit "$1"
  ended_by=$1
  deadline=$((SECONDS + grace))
  kill -USR1 "$launcher" 2>/dev/null
}
trap sweep EXIT
trap ':' PIPE
trap 'end 143' TERM
trap 'end 130' INT
trap 'end 129' HUP
trap '[ -n "$launcher" ] || exit 138; kill -USR1 "$launcher"' USR1

for folder in ${dispatched[@]+"${dispatched[@]}"}; do
  folder=$(realpath -s -- "$folder") || exit 2
  hashes=$("$programs/make_shards" verify --root-hash "$folder") || exit
  is_begun=yes
  for node in "${nodes[@]}"; do dispatch "$node" "$folder" "${hashes//$'\n'/ }"; done
done

# Runs in a session of its own: Ctrl-C then reaches only this script, and mpirun gets one signal. At a second signal, it
# would abandon its ranks at once.
is_begun=yes
LOCKSTEP_RUN=$run setsid "${launch[@]}" -x LOCKSTEP_RUN "$program" "$@" </dev/null &
launcher=$!
while kill -0 "$launcher" 2>/dev/null; do
  if [ -z "$ended_by" ]; then
    wait "$launcher"
  elif ((SECONDS < deadline)); then
    sleep 0.1
  else
    say "'$program' did not stop within $grace s, and is killed."
    exit "$ended_by"
  fi
done
wait "$launcher"
code=$? launcher=''
# apps/README.md lists the programs' exit codes. Other codes are mpirun's, which may have printed nothing.
[[ -n $ended_by || $code =~ ^(0|1|2|65|7[0156]|79)$ ]] ||
  say "mpirun ended with code $code. If no reason is above, set OMPI_MCA_orte_execute_quiet=0 to see mpirun's messages."
exit "${ended_by:-$code}"
