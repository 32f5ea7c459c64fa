# shellcheck shell=bash disable=SC2034,SC2154
# Whole steps, and their kernels one by one. Sourced.

run_bench() { # NAME WORDS...
  local name=$1
  shift
  has_time_for "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" "$@"
  if ((code == 0)) && [ -n "$(value_of samples_per_second "$words")" ]; then
    row "$name" "$(value_of samples_per_second "$words") samples/s, first step $(value_of first_step_seconds "$words") s"
  else
    program_failed "$name"
  fi
}

# Both figures, from two starts of one program.
run_first_step() { # NAME WORDS...
  local name=$1
  shift
  has_time_for "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" step_bench --first-step "$@"
  if ((code == 0)) && [ -n "$(value_of first_step_seconds_cold "$words")" ]; then
    row "$name" "$(value_of first_step_seconds_cold "$words") s, with kernels chosen before \
$(value_of first_step_seconds_warm "$words") s"
  else
    program_failed "$name"
  fi
}

resnet50=(--device cuda --model resnet50 --image-size 224 --classes 1000 --batch 256)

# In fp32, which takes longest and matters least, at the end.
run_benches() {
  local precision word
  local two_ranks=(--reduce mpi)
  for word in "${chosen[@]}"; do [ "$word" != --no-graphs ] || two_ranks+=("$word"); done
  for precision in bf16 fp16 fp32; do
    run_bench "resnet18-$precision" step_bench --device cuda --model resnet18 --batch 512 --precision "$precision" \
      --steps 50 --verbose "${chosen[@]}"
    run_bench "resnet50-$precision" step_bench "${resnet50[@]}" --precision "$precision" --steps 30 --verbose "${chosen[@]}"
    [ "$precision" = bf16 ] || continue
    run_first_step "first-step-resnet50-bf16" "${resnet50[@]}" --precision bf16 "${chosen[@]}"
    run_bench "resnet20-2ranks-1gpu-bf16" mpirun -n 2 step_bench --device cuda --model resnet20 --batch 256 \
      --precision bf16 --steps 30 "${two_ranks[@]}"
  done
}

# A program of CUDA's toolkit, which may be anywhere.
tool() { # NAME
  command -v "$1" || compgen -G "/usr/local/cuda*/bin/$1" | tail -1 || compgen -G "/opt/nvidia/nsight-compute/*/$1" | tail -1
}

# profile_step NAME LAUNCHES OPTIONS...: a table of a step's kernels. Those of the first steps, which choose kernels, are
# skipped: a first run has kept the choices.
profile_step() {
  local name=$1 launches=$2
  shift 2
  has_time_for "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" step_bench "$@" --steps 2
  ((code == 0)) || { program_failed "$name"; return 0; }
  has_time_for "$name" || return 0
  bounded $((budget / 2)) "$ncu" --clock-control none --print-units base --csv --target-processes all \
    --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum \
    --launch-skip $((4 * launches)) --launch-count "$launches" --kill yes \
    "$bundle/run" step_bench "$@" --no-graphs --steps 12
  if python3 "$root/tests/support/gpu/kernel_table.py" "$words" >"$scratch/kernels"; then
    row "$name" "$(head -1 "$scratch/kernels")"
    say ""
    say "$(sed 1d "$scratch/kernels")"
    say ""
  else
    failed_row "$name" "$(reason '==ERROR==')"
  fi
}

run_kernels() {
  local ncu
  ncu=$(tool ncu) || { row "kernels" "not measured: Nsight Compute (ncu) is not installed"; return 0; }
  profile_step "resnet50-bf16" 800 "${resnet50[@]}" --precision bf16 --reduce mpi
  profile_step "resnet18-bf16" 300 --device cuda --model resnet18 --batch 512 --precision bf16 --reduce mpi
}
