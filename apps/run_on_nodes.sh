#!/usr/bin/env bash
# Runs a program on several nodes without Slurm, with mpirun:
#
#   run_on_nodes --hostfile FILE [--dispatch FOLDER]... [--logs FOLDER] PROGRAM ARGUMENTS...
#
# FILE is mpirun's host file. It lists one node per line: "n1 slots=2", "user@n1:2222 slots=2" or "[2001:db8::1]". Ports
# need ssh. ssh takes all else, such as keys, from ~/.ssh/config.
#
# --dispatch copies a folder to each node, under the same path. It may be repeated: programs before data sets. An
# interrupted copy, FOLDER.partial, is never used. run_on_nodes verifies a copy before it moves it to its final path.
#
# A data set of make_shards is compared by its root hashes. A node that already has it keeps it. Nothing is deleted:
# other data under that path is moved to FOLDER.set-aside-N.
#
# Another folder, with programs or configuration, is compared by a hash of its contents. Its copy has that hash in the
# file .lockstep-dispatch. If the folder here has changed, run_on_nodes replaces the copy. A copy that was changed on the
# node is moved to FOLDER.set-aside-N. If run_on_nodes did not make what is under that path, it refuses. The program
# should write its results elsewhere.
#
# --logs also writes the output of each rank to separate files below FOLDER.
#
# SIGUSR1 stops the program with a checkpoint. Ctrl-C, SIGTERM and SIGHUP do the same; after 30 seconds, or at a second
# signal, run_on_nodes kills everything that it started on the nodes. It reaches other nodes with ssh, or with the
# program in OMPI_MCA_plm_rsh_agent. The programs must be in the same folder on all nodes (see --dispatch). A PROGRAM
# without a path is taken from the folder of this script.
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

# apps/CMakeLists.txt replaces these lines by the contents of the files.
# shellcheck source=apps/run_on_nodes/hosts.sh
source "$programs/run_on_nodes/hosts.sh"
# shellcheck source=apps/run_on_nodes/dispatch.sh
source "$programs/run_on_nodes/dispatch.sh"
node_script=$(<"$programs/run_on_nodes/on_node.sh")

# For files that end with this run. mpirun would split a path with a blank or colon.
temporary=${TMPDIR:-/tmp}
[[ $temporary != *[[:space:]:]* ]] || temporary=/tmp
temporary=$(mktemp -d "$temporary/run_on_nodes.XXXXXX") || exit 1
trap 'rm -rf -- "$temporary"' EXIT

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
read_hosts; read_folders ${dispatched[@]+"${dispatched[@]}"}; program=$1; shift
[[ $program == */* ]] || program=$programs/$program
[ -x "$program" ] || refuse "'$program' does not exist. Choose a program of '$programs', or a path."
version=$(mpirun --version 2>/dev/null) || refuse "mpirun is not in PATH. Install Open MPI, or set PATH."
# Keeps the program's error message last. Open MPI 5 knows no such setting, and refuses --quiet.
export OMPI_MCA_orte_execute_quiet=${OMPI_MCA_orte_execute_quiet:-1}
# Open MPI 5 loses a rank's standard error unless it goes into the same file as the output.
launch=(mpirun --hostfile "$mpirun_hosts" --bind-to none)
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
  for folder in ${folders[@]+"${folders[@]}"}; do
    [[ $logs/ != "$folder"/* ]] ||
      refuse "'$logs' (--logs) is in '$folder' (--dispatch), so the next run would copy it. Choose another folder."
  done
  mkdir -p -- "$logs" 2>/dev/null && [ -w "$logs" ] || refuse "cannot write to '$logs' (--logs). Choose another folder."
  launch+=("${output[@]}")
fi

# A variable in its environment identifies every process of this run. This script and the agents do not have it.
run=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
unset LOCKSTEP_RUN
launcher='' ended_by='' is_begun=''
sweep() {
  trap '' TERM INT HUP
  end_processes
  rm -rf -- "$temporary"
}
end_processes() {
  [ -z "$launcher" ] || kill -KILL "$launcher" 2>/dev/null
  [ -n "$is_begun" ] || return
  # shellcheck disable=SC2046
  kill $(jobs -p) 2>/dev/null
  local node why limit=(timeout -k 1 "$patience") sweeps=()
  for node in "${nodes[@]}"; do
    # shellcheck disable=SC2016
    on "$node" sh -c 'for p in $(grep -Fxzlas "LOCKSTEP_RUN=$1" /proc/[0-9]*/environ); do
        p=${p%/environ}; kill -KILL "${p#/proc/}"
      done 2>/dev/null; true' sh "$run" </dev/null &
    sweeps+=($!)
  done
  for node in "${!sweeps[@]}"; do
    wait "${sweeps[node]}"
    case $? in
      0) continue ;;
      124 | 137) why="did not answer within $patience s" ;;
      *) why="cannot be reached by $(way_to "${nodes[node]}")" ;;
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

hash_folders
for at in "${!folders[@]}"; do
  is_begun=yes
  for node in "${nodes[@]}"; do dispatch "$node" "${folders[at]}" "${contents[at]}" "${hashes[at]}"; done
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
