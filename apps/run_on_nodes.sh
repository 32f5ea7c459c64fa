#!/usr/bin/env bash
# Runs a program on several nodes without Slurm, by mpirun:
#
#   run_on_nodes --hostfile FILE [--dispatch FOLDER]... [--logs FOLDER] PROGRAM ARGUMENTS...
#
# FILE is mpirun's: a node a line, "n1 slots=2". --dispatch: a data set that each node gets a copy of, under the same
# path, unless what is there passes `make_shards verify`. --logs: what each rank prints, also as files of its own
# below FOLDER. SIGUSR1 stops the program with a checkpoint; SIGTERM, SIGINT and whatever else ends this script end all
# that it has started, on all nodes. Nodes are reached by ssh, or by what OMPI_MCA_plm_rsh_agent names. The program's
# folder is the same on all nodes; programs without a path are those beside this script.
# shellcheck disable=SC2015,SC2317
set -uo pipefail
programs=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
agent=${OMPI_MCA_plm_rsh_agent:-ssh}

refuse() { echo "run_on_nodes: $*" >&2; exit 2; }
hostfile='' logs='' dispatched=()
while (($#)); do
  case $1 in
    --hostfile | --dispatch | --logs)
      [ -n "${2:-}" ] || refuse "$1 wants a value. See --help."
      case $1 in
        --hostfile) hostfile=$2 ;;
        --dispatch) dispatched+=("$2") ;;
        --logs) logs=$(realpath -m "$2") ;;
      esac
      shift 2 ;;
    -h | --help) sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "$0"; exit ;;
    -*) refuse "unknown option '$1'. Known: --hostfile, --dispatch, --logs." ;;
    *) break ;;
  esac
done
[ -n "$hostfile" ] && (($#)) || refuse "state --hostfile FILE and a program. See --help."
[ -f "$hostfile" ] && [ -r "$hostfile" ] ||
  refuse "cannot read '$hostfile' (a file that lists the nodes). Write a node a line: n1 slots=2"
odd=$(sed 's/#.*//' "$hostfile" | grep -oE 'slots=[^[:space:]]*' | grep -vxE 'slots=[1-9][0-9]{0,4}' | head -1)
[ -z "$odd" ] || refuse "'$hostfile' says '$odd' (slots are a whole number from 1 to 99999). Write a node a line: n1 slots=2"
mapfile -t nodes < <(sed 's/#.*//' "$hostfile" | awk 'NF && !seen[$1]++ { print $1 }')
((${#nodes[@]})) || refuse "'$hostfile' lists no node. Write a node a line: n1 slots=2"
for node in "${nodes[@]}"; do
  [[ $node =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || refuse "'$hostfile' lists '$node', which is no name of a node."
done
program=$1; shift
[[ $program == */* ]] || program=$programs/$program
[ -x "$program" ] || refuse "'$program' is not there. Name a program of $programs, or a path."

# on NODE COMMAND...: the words as they are, in quotes that every shell knows.
on() {
  local node=$1 words='' word
  for word in "${@:2}"; do words+="'${word//\'/\'\\\'\'}' "; done
  "$agent" "$node" "$words"
}

# dispatch NODE FOLDER: the copy takes its place when it is whole.
dispatch() {
  local node=$1 folder=$2
  if on "$node" "$programs/make_shards" verify "$folder" </dev/null >/dev/null 2>&1; then
    echo "$node has '$folder' already: used as it is"
    return
  fi
  # shellcheck disable=SC2016
  tar -C "$folder" -cf - . | on "$node" sh -c \
    'rm -rf "$1.partial" && mkdir -p "$1.partial" && tar -C "$1.partial" -xf - && rm -rf "$1" && mv "$1.partial" "$1"' \
    sh "$folder" && on "$node" "$programs/make_shards" verify "$folder" </dev/null >/dev/null ||
    { echo "run_on_nodes: '$folder' did not come to $node whole (see above). Is there room?" >&2; return 1; }
  echo "$node got a copy of '$folder'"
}
for folder in ${dispatched[@]+"${dispatched[@]}"}; do
  folder=$(realpath "$folder") || exit 2
  "$programs/make_shards" verify "$folder" >/dev/null || exit
  for node in "${nodes[@]}"; do dispatch "$node" "$folder" || exit 1; done
done

output=()
if [ -n "$logs" ]; then
  mkdir -p "$logs" 2>/dev/null && [ -w "$logs" ] || refuse "cannot write into '$logs' (--logs). Name another folder."
  output=(--output-filename "$logs")
  # Open MPI 5 names it otherwise, and loses a rank's standard error if it is to be a file of its own.
  [[ $(mpirun --version) == *'(Open MPI) 4.'* ]] || output=(--output "merge-stderr-to-stdout,dir=$logs")
fi

# Every process of this run is known by a word in its environment.
LOCKSTEP_RUN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export LOCKSTEP_RUN
launcher=''
sweep() {
  local run=$LOCKSTEP_RUN
  unset LOCKSTEP_RUN  # or an agent that hands it on would be swept as well
  trap '' TERM INT
  [ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null
  for node in "${nodes[@]}"; do
    # shellcheck disable=SC2016
    on "$node" sh -c 'for p in /proc/[0-9]*; do
        tr "\0" "\n" <"$p/environ" 2>/dev/null | grep -qx "LOCKSTEP_RUN=$1" && kill -KILL "${p#/proc/}"
      done 2>/dev/null; true' sh "$run" </dev/null &
  done
  wait
}
trap sweep EXIT
trap 'kill -USR1 "$launcher"' USR1
trap 'kill -TERM "$launcher"; ended_by=143' TERM
trap 'kill -TERM "$launcher"; ended_by=130' INT
ended_by=''
mpirun --hostfile "$hostfile" --bind-to none -x LOCKSTEP_RUN ${output[@]+"${output[@]}"} "$program" "$@" </dev/null &
launcher=$!
while kill -0 "$launcher" 2>/dev/null; do wait "$launcher"; done
wait "$launcher"
code=$?
launcher=''
exit "${ended_by:-$code}"
