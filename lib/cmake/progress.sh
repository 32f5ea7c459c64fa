# shellcheck shell=bash
# Progress of long commands: on a terminal, one line that is redrawn; in a log, a line every 30 seconds, also while they
# print nothing. Sourced by data/quick_start.sh and tests/run.sh, which set pipefail.

# "40 s", "3 min 5 s"
duration() {
  if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# Of show_steps, whose variables it uses.
show_progress() { # NAME
  local seconds=$((SECONDS - start)) text="$1: "
  ((all == 0)) || text+="$done of $all, "
  text+=$(duration "$seconds")
  if ((seconds >= 10 && done > 0)); then text+=", about $(duration $((seconds * (all - done) / done))) left"; fi
  if [ -n "$is_terminal" ]; then
    printf '\r\033[K%s' "${text:0:columns-1}"
  elif ((SECONDS - shown_at >= 30)); then
    echo "$text"
    shown_at=$SECONDS
  fi
}

# Reads lines. PATTERN captures the numbers of completed and of all steps: its lines become the progress. Lines that
# match HIDDEN are left out. Other lines are printed.
show_steps() { # NAME PATTERN HIDDEN
  local line='' part code done=0 all=0 start=$SECONDS shown_at=$SECONDS columns=80 is_terminal='' patience=30
  if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    is_terminal=yes patience=1
    read -r _ columns < <(stty size 2>/dev/null </dev/tty) || columns=80
    ((columns > 20)) || columns=80
  fi
  while true; do
    code=0
    IFS= read -r -t "$patience" part || code=$?
    line+=$part
    if ((code > 128)); then  # nothing, or a part of a line
      show_progress "$1"
      continue
    fi
    if [[ $line =~ $2 ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      show_progress "$1"
    elif ! [[ -z $line || $line =~ $3 ]]; then
      [ -z "$is_terminal" ] || printf '\r\033[K'
      printf '%s\n' "$line"
    fi
    line=''
    ((code == 0)) || break
  done
  [ -z "$is_terminal" ] || printf '\r\033[K'
  ((all == 0)) || echo "$1: $done of $all, $(duration $((SECONDS - start)))"
}

# begin_log FILE: empties it. Otherwise an older one could be taken for this run's.
begin_log() {
  mkdir -p "$(dirname "$1")" && { : >"$1"; } 2>/dev/null && return
  echo "cannot write '$PWD/$1'. If another user has built here, remove the folder 'build'; else check the free space." >&2
  return 1
}

# with_progress NAME LOG PATTERN HIDDEN COMMAND...: returns the command's exit code. LOG gets its whole output.
with_progress() {
  local name=$1 log=$2 pattern=$3 hidden=$4 code=0
  shift 4
  begin_log "$log" || return
  "$@" 2>&1 | tee "$log" | show_steps "$name" "$pattern" "$hidden" || code=$?
  return "$code"
}

# The caller and what it starts hold `build`, until the last of them has ended or closes descriptor 200: a script that is
# killed may leave a build or tests behind. Some tests have few descriptors, whose numbers are small.
lock_build() {
  exec 200>build/lock || return
  flock --nonblock 200 && return
  exec 200>&-
  echo "another run uses '$PWD/build'. Wait for its end, or stop its processes:" \
    "$(find /proc/[0-9]*/fd -lname "$PWD/build/lock" 2>/dev/null | cut -d / -f 3 | sort -nu | paste -sd ' ')" >&2
  return 2
}

# configure_and_build PRESET OPTIONS...: builds in build/release, which stays locked.
configure_and_build() {
  local preset=$1 log=build/release.log code=0
  shift
  mkdir -p build && lock_build || return
  begin_log "$log" || return
  echo "Configuring: cmake --preset $preset"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log"
    echo "cmake failed, see above. If the folder 'build' is of another place or another user, remove it." >&2
    return 1
  fi
  grep -E '^-- (CUDA|Compiler cache)' "$log" || true
  with_progress Building "$log" '^\[([0-9]+)/([0-9]+)\] ' '^(ninja: (no work|Entering directory)|\[0/)' \
    cmake --build --preset "$preset" || code=$?
  ((code == 0)) || echo "The build failed, see above. Its whole output is in '$PWD/$log'." >&2
  return "$code"
}
