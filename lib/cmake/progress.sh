# shellcheck shell=bash
# Progress of long commands: on a terminal, one line that is redrawn; in a log, a line every 30 seconds. Sourced by
# data/quick_start.sh and tests/run.sh, which set pipefail.

# "40 s", "3 min 5 s"
duration() {
  if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# Reads lines. PATTERN captures the numbers of completed and of all steps: its lines become the progress. Lines that
# match HIDDEN are left out. Other lines are printed.
show_steps() { # NAME PATTERN HIDDEN
  local line done=0 all=0 start=$SECONDS shown_at=$SECONDS columns=80 is_terminal='' text
  if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    is_terminal=yes
    read -r _ columns < <(stty size 2>/dev/null </dev/tty) || columns=80
    ((columns > 20)) || columns=80
  fi
  while IFS= read -r line; do
    if [[ $line =~ $2 ]]; then
      done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      text="$1: $done of $all, $(duration $((SECONDS - start)))"
      if ((SECONDS - start >= 10 && done > 0)); then
        text+=", about $(duration $(((SECONDS - start) * (all - done) / done))) left"
      fi
      if [ -n "$is_terminal" ]; then
        printf '\r\033[K%s' "${text:0:columns-1}"
      elif ((SECONDS - shown_at >= 30)); then
        echo "$text"
        shown_at=$SECONDS
      fi
    elif ! [[ -z $line || $line =~ $3 ]]; then
      [ -z "$is_terminal" ] || printf '\r\033[K'
      printf '%s\n' "$line"
    fi
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

# configure_and_build PRESET OPTIONS...: builds in build/release.
configure_and_build() {
  local preset=$1 log=build/release.log
  shift
  begin_log "$log" || return
  echo "Configuring: cmake --preset $preset"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log"
    echo "cmake failed, see above. If the folder 'build' is of another place or another user, remove it." >&2
    return 1
  fi
  grep -E '^-- (CUDA|Compiler cache)' "$log" || true
  with_progress Building "$log" '^\[([0-9]+)/([0-9]+)\] ' '^(ninja: |\[0/)' cmake --build --preset "$preset"
}
