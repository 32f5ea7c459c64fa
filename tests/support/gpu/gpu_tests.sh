# shellcheck shell=bash disable=SC2030,SC2031,SC2034,SC2154
# Test programs on a GPU, of which a crash, a hang or an error that stays with the GPU's context costs one test. Sourced.

gpu_tests='*/cuda*-*/cuda_on_host*'  # of all that a program has
max_told=30                         # failures that are named in the table; the log has all
told=0
what_failed='Failure|could not|error|exception'

# Names in the output of --gtest_list_tests.
listed_tests() { awk '/^[^ ]+\.( *#.*)?$/ { suite = $1; next } /^  [^ ]/ && suite != "" { print suite $1 }' "$1" | sort -u; }
# tests_that RESULT FILE: names of tests with that result.
tests_that() { sed -n "s|^.*\[ *$1 *\] \([^ ,]*\.[^ ,]*\).*|\1|p" "$2" | sort -u; }

tell_failure() { # TEST REASON
  ((++told <= max_told)) || return 0
  row "  ${1}" "$2"
}

# run_together PROGRAM SECONDS: all its tests in one process. What did not pass is then named in $scratch/PROGRAM.rest: first
# what has no result at all.
run_together() {
  due "$1" || return 0
  local all=$scratch/$1.all rest=$scratch/$1.rest passes skips not_passed together result
  bounded "$2" "$bundle/run" "$1" --gtest_list_tests --gtest_filter="$gpu_tests"
  listed_tests "$words" >"$all"
  if [ ! -s "$all" ]; then
    failed_row "$1" "has no test for a GPU: $(reason)"
    return
  fi
  bounded "$2" "$bundle/run" "$1" --gtest_filter="$gpu_tests"
  together=$words
  passes=$(tests_that OK "$together")
  skips=$(tests_that SKIPPED "$together")
  not_passed=$(comm -23 "$all" <(printf '%s\n' "$passes" "$skips" | sort -u))
  comm -23 <(echo "$not_passed") <(tests_that FAILED "$together") >"$rest"
  comm -12 <(echo "$not_passed") <(tests_that FAILED "$together") >>"$rest"
  sed -i '/^$/d' "$rest"
  result="$(grep -c . <<<"$passes" || true) of $(wc -l <"$all") passed"
  [ -z "$skips" ] || result+=", $(grep -c . <<<"$skips") skipped"
  if ((code == 0)) && [ -n "$passes" ] && [ ! -s "$rest" ]; then
    done_row "$1" "$result"
  else
    failed_row "$1" "$result; $(reason "$what_failed")"
  fi
}

# run_alone PROGRAM SECONDS: what did not pass together, a process a test.
run_alone() {
  local until=$((SECONDS + $2)) test passes=0 fails=0 left=0
  while read -r test; do
    if ((SECONDS > until || $(seconds_left) == 0)); then
      left=$((left + 1))
      continue
    fi
    bounded $((budget / 12)) "$bundle/run" "$1" --gtest_filter="$test"
    if ((code == 0)) && [ "$(tests_that OK "$words")" = "$test" ]; then
      passes=$((passes + 1))
    else
      fails=$((fails + 1))
      tell_failure "$test" "$(reason "$what_failed")"
      again_with_logs
    fi
  done <"$scratch/$1.rest"
  row "$1, the rest one by one" "$passes passed, $fails failed, $left left out"
}

# Programs side by side, each in a process of its own with its own table and log, which collect() adds to the part's.
declare -A worker_of=()  # process, by program

# set_jobs [COUNT]: programs that run side by side, or as many as the GPU has memory for.
memory_limit=2560      # MiB for the tensors of each of several programs
memory_of_libraries=1536
set_jobs() {
  local free
  jobs=${1:-1}
  if [ -z "${1:-}" ] && command -v nvidia-smi >/dev/null; then
    free=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits 2>/dev/null | head -1 | tr -dc 0-9)
    jobs=$((${free:-0} / (memory_limit + memory_of_libraries)))
    jobs=$((jobs < 1 ? 1 : jobs))
  fi
  ((jobs == 1)) || export LOCKSTEP_GPU_MEMORY_LIMIT=$memory_limit
}

start_worker() { # PROGRAM WORDS...
  local name=$1
  shift
  (
    trap 'end_session; exit 143' TERM INT HUP
    worker=.$name table=$scratch/table.$name log=${log%.log}.$name.log failed=0 session=
    : >"$table"
    : >"$log"
    "$@"
    exit "$failed"
  ) >/dev/null &
  worker_of[$name]=$!
}

collect() { # PROGRAM
  local room own=${log%.log}.$1.log line
  wait "${worker_of[$1]}" || failed=1
  unset "worker_of[$1]"
  while IFS= read -r line; do say "$line"; done <"$scratch/table.$1"
  room=$((max_of_a_log - $(stat --format=%s "$log")))
  head --bytes="$((room > 0 ? room : 0))" "$own" >>"$log"
  rm -f "$own"
}

end_workers() {
  ((${#worker_of[@]})) || return 0
  kill -TERM "${worker_of[@]}" 2>/dev/null || true
  wait "${worker_of[@]}" 2>/dev/null || true
}

# First every program as a whole, $jobs of them side by side, for no longer than twice its share of the time that is left;
# then what did not pass.
run_programs() { # PROGRAM...
  local name count=$# rests=() waiting=()
  for name in "$@"; do
    if ((${#worker_of[@]} >= jobs)); then
      collect "${waiting[0]}"
      waiting=("${waiting[@]:1}")
    fi
    start_worker "$name" run_together "$name" $(($(seconds_left) * 2 * jobs / (count + 2 * jobs - 1)))
    waiting+=("$name")
    count=$((count - 1))
  done
  for name in "${waiting[@]}"; do collect "$name"; done
  for name in "$@"; do [ ! -s "$scratch/$name.rest" ] || rests+=("$name"); done
  count=${#rests[@]}
  for name in "${rests[@]}"; do
    run_alone "$name" $(($(seconds_left) / count))
    count=$((count - 1))
  done
  ((told <= max_told)) || say "$((told - max_told)) more failures stand in ${log##*/}"
}
