#!/usr/bin/env bash
# Everything that wants a GPU: the tests of label gpu and the benches, on a machine with no more than a driver and CUDA's
# libraries.
#
#   tests/gpu.sh pack [BUILD]     where Lockstep was built (build/release): writes build/gpu_bundle and its archive
#   tests/gpu.sh run [BUNDLE]     on the machine with the GPU (build/gpu_bundle): runs all of it, prints one table
#   tests/gpu.sh                  both, one after the other, on one machine
#
# Exit code 77 without a GPU, 1 where a test failed. What each program said is left in BUNDLE/log.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/build/gpu_bundle
tests=(ops_test norm_test layer_test layer_agreement_test golden_test whole_step_test recorded_step_test)
programs=(step_bench make_shards train_cifar evaluate)

pack() { # BUILD
  local paths=() name
  for name in "${tests[@]}" "${programs[@]}"; do
    [ -x "$1/bin/$name" ] || { echo "gpu.sh: no $1/bin/$name. Build first." >&2; exit 1; }
    paths+=("$1/bin/$name")
  done
  rm -rf "$bundle" "$bundle.tar.gz"
  "$root/tests/bundle.sh" "$bundle" "${paths[@]}"
}

# row NAME RESULT
row() { printf '| %-52s | %s |\n' "$1" "$2"; }

# One value of step_bench's JSON line.
value_of() { sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"; }

export LOCKSTEP_GOLDEN_DIR=$root/tests/golden  # where the programs were built is another machine

run_test() { # PROGRAM
  local log=$bundle/log/$1.txt
  if "$bundle/run" "$1" --gtest_filter='*/cuda*-*/cuda_on_host*' >"$log" 2>&1 && grep -q 'PASSED' "$log"; then
    row "$1" "$(sed -n 's/.*PASSED. *//p' "$log" | tail -1) passed"
  else
    row "$1" "FAILED: $(grep -m1 -E 'Failure|could not|error' "$log" || tail -1 "$log")"
    failed=1
  fi
}

run_bench() { # NAME ARGUMENTS...
  local log=$bundle/log/$1.txt name=$1
  shift
  if "$bundle/run" "$@" >"$log" 2>&1; then
    row "$name" "$(value_of samples_per_second "$log") samples/s, first step $(value_of first_step_seconds "$log") s"
  else
    row "$name" "FAILED: $(tail -1 "$log")"
    failed=1
  fi
}

# Both figures, from two starts of one program.
run_first_step() { # NAME ARGUMENTS...
  local log=$bundle/log/$1.txt name=$1
  shift
  if "$bundle/run" step_bench --first-step "$@" >"$log" 2>&1; then
    row "$name" "$(value_of first_step_seconds_cold "$log") s, with kernels chosen before $(value_of first_step_seconds_warm "$log") s"
  else
    row "$name" "FAILED: $(tail -1 "$log")"
    failed=1
  fi
}

# The same steps in PyTorch, in turn with ours: a table of its own, or a word about what is missing.
run_peers() {
  local log=$bundle/log/peers
  if python3 "$root/bench/compare.py" --device cuda --build "$bundle" --seconds 3 >"$log.md" 2>"$log.txt"; then
    printf '\n%s\n' "$(cat "$log.md")"
  else
    row "against PyTorch" "not compared: $(grep . "$log.txt" | tail -1)"
  fi
}

run() {
  [ -x "$bundle/run" ] || { echo "gpu.sh: no bundle in '$bundle'. Make one with tests/gpu.sh pack." >&2; exit 2; }
  mkdir -p "$bundle/log"
  XDG_CACHE_HOME=$(cd "$bundle" && pwd)/cache  # kernel choices of this run alone
  export XDG_CACHE_HOME
  rm -rf "$XDG_CACHE_HOME"
  if ! "$bundle/run" step_bench --device cuda --model lenet --batch 8 --steps 1 >"$bundle/log/first.txt" 2>&1; then
    cat "$bundle/log/first.txt"
    grep -q 'no GPU' "$bundle/log/first.txt" && { echo "skipped: no GPU here"; exit 77; }
    exit 1
  fi
  failed=0
  sed -n 's/.*"device":"\([^"]*\)".*/\1/p' "$bundle/log/first.txt"
  row "what" "result"
  row "---" "---"
  local name precision
  for name in "${tests[@]}"; do run_test "$name"; done
  for precision in fp32 bf16 fp16; do
    run_bench "resnet18-$precision" step_bench --device cuda --model resnet18 --batch 512 --precision "$precision" \
      --steps 50 --verbose
    run_bench "resnet50-$precision" step_bench --device cuda --model resnet50 --image-size 224 --classes 1000 --batch 256 \
      --precision "$precision" --steps 30 --verbose
  done
  run_first_step "first-step-resnet50-bf16" --device cuda --model resnet50 --image-size 224 --classes 1000 --batch 256 \
    --precision bf16
  run_bench "resnet20-2ranks-1gpu-bf16" mpirun -n 2 step_bench --device cuda --model resnet20 --batch 256 \
    --precision bf16 --reduce mpi --steps 30
  run_peers
  exit "$failed"
}

case ${1:-both} in
  pack) pack "${2:-$root/build/release}" ;;
  run) bundle=${2:-$bundle} && run ;;
  both) pack "$root/build/release" && run ;;
  *) sed -n '2,9p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
