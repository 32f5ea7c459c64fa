# shellcheck shell=bash disable=SC2034,SC2154
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
  has_time_for "$1" || return 0
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
    row "$1" "$result"
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
    fi
  done <"$scratch/$1.rest"
  row "$1, the rest one by one" "$passes passed, $fails failed, $left left out"
}

# First every program as a whole, of what time is left no more than its share and as much again; then what did not pass.
run_programs() { # PROGRAM...
  local name count=$# rests=()
  for name in "$@"; do
    run_together "$name" $(($(seconds_left) * 2 / (count + 1)))
    count=$((count - 1))
    [ ! -s "$scratch/$name.rest" ] || rests+=("$name")
  done
  count=${#rests[@]}
  for name in "${rests[@]}"; do
    run_alone "$name" $(($(seconds_left) / count))
    count=$((count - 1))
  done
  ((told <= max_told)) || say "$((told - max_told)) more failures stand in ${log##*/}"
}
