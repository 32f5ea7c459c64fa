# shellcheck shell=bash disable=SC2034,SC2154
# Test programs on a GPU, of which a crash, a hang or an error that stays with the GPU's context costs one test. Sourced.

gpu_tests='*/cuda*-*/cuda_on_host*'  # of all that a program has
most_told=30                         # failures that are named in the table; the log has all
told=0

# Names in the output of --gtest_list_tests.
listed_tests() { awk '/^[^ ]+\.( *#.*)?$/ { suite = $1; next } /^  [^ ]/ && suite != "" { print suite $1 }' "$1" | sort -u; }
# tests_that RESULT FILE: names of tests with that result.
tests_that() { sed -n "s|^.*\[ *$1 *\] \([^ ,]*\.[^ ,]*\).*|\1|p" "$2" | sort -u; }

tell_failure() { # TEST REASON
  ((++told <= most_told)) || return 0
  row "  ${1}" "$2"
}

# run_alone PROGRAM FILE: the tests named in the file, a process each. Counts them in $alone, $broken and $left.
run_alone() {
  local until=$((SECONDS + budget / 4 + 1)) test
  alone=0 broken=0 left=0
  while read -r test; do
    if ((SECONDS >= until || $(seconds_left) == 0)); then
      left=$((left + 1))
      continue
    fi
    bounded $((budget / 12)) "$bundle/run" "$1" --gtest_filter="$test"
    if ((code == 0)) && [ "$(tests_that OK "$words")" = "$test" ]; then
      alone=$((alone + 1))
    else
      broken=$((broken + 1))
      tell_failure "$test" "$(reason 'Failure|could not|error|exception')"
    fi
  done <"$2"
}

# What has not passed together is run again, a process a test: first what has no result at all.
run_test_program() { # PROGRAM
  has_time_for "$1" || return 0
  local all=$scratch/all passed=$scratch/passed skipped_tests=$scratch/skipped rest=$scratch/rest together how
  bounded $((budget / 12)) "$bundle/run" "$1" --gtest_list_tests --gtest_filter="$gpu_tests"
  listed_tests "$words" >"$all"
  if [ ! -s "$all" ]; then
    failed_row "$1" "has no test for a GPU: $(reason)"
    return
  fi
  bounded $((budget * 5 / 12)) "$bundle/run" "$1" --gtest_filter="$gpu_tests"
  together=$words
  tests_that OK "$together" >"$passed"
  tests_that SKIPPED "$together" >"$skipped_tests"
  sort -u "$passed" "$skipped_tests" | comm -23 "$all" - >"$rest.all"
  tests_that FAILED "$together" | comm -23 "$rest.all" - >"$rest"
  tests_that FAILED "$together" | comm -12 "$rest.all" - >>"$rest"
  local skips
  skips=$(wc -l <"$skipped_tests")
  if ((code == 0)) && [ ! -s "$rest" ] && [ -s "$passed" ]; then
    row "$1" "$(wc -l <"$passed") passed$( ((skips == 0)) || echo ", $skips skipped")"
    return
  fi
  if [ ! -s "$rest" ]; then
    failed_row "$1" "$(wc -l <"$passed") passed, $skips skipped, but: $(reason)"
    return
  fi
  how=$(reason 'Failure|could not|error|exception')
  run_alone "$1" "$rest"
  failed_row "$1" "$(wc -l <"$passed") passed; of the rest, one by one, $alone passed, $broken failed, $left left out; $how"
}
