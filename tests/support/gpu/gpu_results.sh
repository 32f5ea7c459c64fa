# shellcheck shell=bash disable=SC2001,SC2034,SC2119,SC2120,SC2154
# What tests/gpu.sh leaves behind, and programs that cannot take it down with them. Sourced.
#
# Each part has a table and a log in the folder of results, written as things happen: whatever ends the script, what was
# printed until then is there. A program has a bound of time and a session of its own, of which nothing is left running.

max_of_a_log=$((15 << 20))       # bytes; what a program prints beyond that is left out
max_of_a_program=$((64 << 20))   # one that prints more is ended by it
max_of_reruns=10                 # of programs that failed, with the logs of the libraries
max_of_libraries=200000          # bytes of each of those logs: its end
programs_run=0
reruns=0
worker=                          # of several programs side by side: what this one's files are called
session=

# open_part NAME SECONDS: new results; `seconds_left` counts down from now.
open_part() {
  start_clock "$2"
  failed=0
  skipped=0
  table=$out/$1.md
  log=$out/$1.log
  : >"$table"
  : >"$log"
  rm -f "$out/$1.libraries.log"
}

start_clock() { # SECONDS
  budget=$1
  deadline=$((SECONDS + budget))
}

seconds_left() { echo $((deadline > SECONDS ? deadline - SECONDS : 0)); }

say() {
  last_said=$1
  printf '%s\n' "$1" >>"$table"
  printf '%s\n' "$1"
}

# row NAME RESULT: of one line, short enough for a table.
row() {
  local result=${2//$'\n'/ }
  say "$(printf '| %-32s | %s |' "$1" "$(printf '%.200s' "${result//|//}")")"
}

# Rows that are finished are kept beside the bundle. Later calls print them again, if the bundle, the GPU and what works of
# Lockstep are the same.
open_kept() { # PART CONDITIONS
  local first=
  kept=/dev/null
  [ -n "$2" ] || return 0
  kept=$bundle.rows/$1
  mkdir -p "$bundle.rows"
  [ ! -f "$kept" ] || IFS= read -r first <"$kept" || true
  [ "$first" = "$2" ] || printf '%s\n' "$2" >"$kept"
}
keep() { # NAME LINES
  local line
  while IFS= read -r line; do printf '%s\t%s\n' "$1" "$line" >>"$kept"; done <<<"$2"
}
done_row() { # NAME RESULT
  row "$1" "$2"
  keep "$1" "$last_said"
}
# FILE: the row's result, and a table that follows.
say_table() { # NAME FILE
  local lines
  lines=$'\n'$(sed 1d "$2")$'\n'
  done_row "$1" "$(head -1 "$2")"
  say "$lines"
  keep "$1" "$lines"
}
kept_lines() { awk -v name="$1"$'\t' 'index($0, name) == 1 { print substr($0, length(name) + 1) }' "$kept"; } # NAME

# due NAME: whether to run it now. If not, its kept rows, or one that says that no time is left.
due() {
  local lines
  lines=$(kept_lines "$1")
  [ -n "$lines" ] || { has_time_for "$1"; return; }
  say "$(sed 's/^\(| [^|]* | [^|]*\) |$/\1, from an earlier call |/' <<<"$lines")"
  return 1
}

# What the end of the part's time cut short has not failed.
failed_row() {
  if ((cut_short)); then
    left_out "$1"
    return
  fi
  row "$1" "FAILED: $2"
  failed=1
}
left_out() { row "$1" "left out, no time is left of $budget s"; }

# has_time_for NAME: or a row that says it is left out.
has_time_for() {
  (($(seconds_left) > 0)) && return
  left_out "$1"
  return 1
}

# program_failed NAME: a row for the program that ran last, and what cuDNN and NCCL log if it runs again.
program_failed() {
  failed_row "$1" "$(reason)"
  again_with_logs
}

# Of programs whose output names neither library, only the first three of a call.
again_with_logs() {
  local most=3
  ! grep --quiet --text --ignore-case -E 'cudnn|nccl' "$words" || most=$max_of_reruns
  ((took_too_long == 0 && $(seconds_left) > 0 && reruns < most)) || return 0
  reruns=$((reruns + 1))
  local kept_code=$code kept_words=$words
  rm -f "$scratch"/libraries.*
  CUDNN_LOGLEVEL_DBG=2 CUDNN_LOGDEST_DBG=$scratch/libraries.cudnn NCCL_DEBUG=INFO \
    NCCL_DEBUG_FILE=$scratch/libraries.nccl.%p bounded 60 "${last[@]}"
  if compgen -G "$scratch/libraries.*" >/dev/null; then
    printf -- '--- %s\n' "${last[*]#"$bundle/"}" >>"${log%.log}.libraries.log"
    tail --quiet --bytes="$max_of_libraries" "$scratch"/libraries.* >>"${log%.log}.libraries.log"
  fi
  code=$kept_code words=$kept_words took_too_long=0 cut_short=0
}

# bounded SECONDS WORDS...: runs a program, for no longer than what is left. Its exit code is then in $code, what it printed
# in the file $words.
bounded() {
  local limit=$1 room start=$SECONDS pipe reader left
  shift
  last=("$@")
  left=$(seconds_left)
  cut_short=$((limit > left || limit < 1))
  limit=$((limit > left ? left : limit))
  limit=$((limit < 1 ? 1 : limit))
  code=0
  words=$scratch/words$worker.$((++programs_run))
  pipe=$words.pipe
  mkfifo "$pipe"
  printf -- '--- %s\n' "${*#"$bundle/"}" >>"$log"
  room=$((max_of_a_log - $(stat --format=%s "$log")))
  stdbuf -o0 head --bytes="$max_of_a_program" <"$pipe" | tee "$words" |
    { stdbuf -o0 head --bytes="$((room > 0 ? room : 0))"; cat >/dev/null; } >>"$log" &
  reader=$!
  setsid timeout --kill-after=2 "$limit" "$@" </dev/null >"$pipe" 2>&1 &
  session=$!
  wait "$session" 2>/dev/null || code=$?
  end_session
  # What cannot be killed holds its end of the pipe: then the reader is left behind.
  local tries=0
  while kill -0 "$reader" 2>/dev/null && ((++tries < 100)); do sleep 0.02; done
  took_too_long=0
  if ((code == 124 || (code == 137 && SECONDS - start >= limit))); then took_too_long=$limit; fi
  cut_short=$((cut_short && took_too_long))
  printf -- '--- exit code %d after %d s\n\n' "$code" $((SECONDS - start)) >>"$log"
}

# Kills whatever the program has left behind, in whichever process group.
end_session() {
  [ -n "$session" ] || return 0
  local process
  { cat /proc/[0-9]*/stat 2>/dev/null || true; } |
    awk -v session="$session" '{ id = $1; sub(/^.*\) /, ""); if ($4 == session) print id }' |
    while read -r process; do kill -KILL "$process" 2>/dev/null || true; done
  session=
}

# Why the program that ran last failed: how it ended, and the last of its words or the first that match a pattern.
reason() { # [PATTERN]
  local how='' line='' signal
  if ((took_too_long)); then
    how="took more than $took_too_long s"
  elif ((code > 128)) && signal=$(kill -l $((code - 128)) 2>/dev/null); then
    how="ended by SIG$signal"
  fi
  [ -z "${1:-}" ] || line=$(grep --text --max-count=1 -E "$1" "$words" || true)
  [ -n "$line" ] || line=$(grep --text '[^[:space:]]' "$words" | tail -1 || true)
  line=${line:-$([ -n "$how" ] || echo "exit code $code, without a word")}
  echo "$how${how:+${line:+: }}$line"
}

stopped() {
  end_workers
  disown -a  # so that nothing is said of what ends now
  end_session
  say "stopped by a signal after $SECONDS s: what stands above is all there is"
  exit 143
}
