# shellcheck shell=bash disable=SC2034,SC2154
# Whole steps, and their kernels one by one. Sourced.

run_bench() { # NAME WORDS...
  local name=$1
  shift
  due "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" "$@"
  if ((code == 0)) && [ -n "$(value_of samples_per_second "$words")" ]; then
    done_row "$name" "$(value_of samples_per_second "$words") samples/s, first step $(value_of first_step_seconds "$words") s"
  else
    program_failed "$name"
  fi
}

# Both figures, from two starts of one program.
run_first_step() { # NAME WORDS...
  local name=$1
  shift
  due "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" step_bench --first-step "$@"
  if ((code == 0)) && [ -n "$(value_of first_step_seconds_cold "$words")" ]; then
    done_row "$name" "$(value_of first_step_seconds_cold "$words") s, with kernels chosen before \
$(value_of first_step_seconds_warm "$words") s"
  else
    program_failed "$name"
  fi
}

resnet50=(--device cuda --model resnet50 --image-size 224 --classes 1000 --batch 256)

both_models() { # NAME ARITHMETIC...
  local name=$1
  shift
  run_bench "resnet18-$name" step_bench --device cuda --model resnet18 --batch 512 "$@" --steps 50 --verbose "${chosen[@]}"
  run_bench "resnet50-$name" step_bench "${resnet50[@]}" "$@" --steps 30 --verbose "${chosen[@]}"
}

# Steps of 1, 2 and 4 ranks that share the GPU: sums by MPI, and by NCCL if it can connect them.
run_ranks() {
  local ranks word graphs=()
  local step=(step_bench --device cuda --model resnet20 --batch 256 --precision bf16 --steps 30)
  for word in "${chosen[@]}"; do [ "$word" != --no-graphs ] || graphs=("$word"); done
  for ranks in 1 2 4; do
    run_bench "resnet20-${ranks}ranks-1gpu-bf16" mpirun -n "$ranks" "${step[@]}" --reduce mpi "${graphs[@]}"
  done
  if [ "$(printf '%s\n' "$nccl_for_shared_gpus" "$nccl" | sort --version-sort | head -1)" = "$nccl_for_shared_gpus" ]; then
    run_bench "resnet20-2ranks-1gpu-nccl" env NCCL_MULTI_RANK_GPU_ENABLE=1 mpirun -n 2 "${step[@]}" --reduce nccl \
      "${graphs[@]}"
  else
    row "resnet20-2ranks-1gpu-nccl" \
      "left out: NCCL $nccl_for_shared_gpus or newer is needed, the bundle loads ${nccl:-none}"
  fi
}

# What cuDNN needs to make plans for this GPU on machines without one (tests/models/cudnn_plans_test.cpp), in a file of its own.
describe_for_cudnn() {
  has_time_for "cudnn_device.json" || return 0
  bounded $((budget / 12)) "$bundle/run" describe_gpu
  if ((code == 0)) && python3 -m json.tool "$words" "$out/cudnn_device.json" 2>>"$log"; then
    row "cudnn_device.json" "$(wc -l <"$out/cudnn_device.json") lines"
  else
    program_failed "cudnn_device.json"
  fi
}

# Passes over feature maps, beside a copy of the same memory in the same run.
run_passes() {
  local measured=$scratch/passes.json
  due "passes" || return 0
  bounded $((budget / 3)) "$bundle/run" ops_bench --device cuda --benchmark_out="$measured" --benchmark_out_format=json
  if ((code == 0)) && python3 "$root/tests/support/gpu/pass_rates.py" "$measured" >"$scratch/passes"; then
    say_table "passes" "$scratch/passes"
  else
    program_failed "passes"
  fi
}

# Those in fp32 take longest and matter least.
run_benches() {
  describe_for_cudnn
  both_models bf16 --precision bf16
  run_first_step "first-step-resnet50-bf16" "${resnet50[@]}" --precision bf16 "${chosen[@]}"
  run_ranks
  both_models fp16 --precision fp16
  run_passes
  both_models tf32 --precision fp32 --tf32
  both_models fp32 --precision fp32
}

# A program of CUDA's toolkit, which may be anywhere.
tool() { # NAME
  local pattern
  command -v "$1" && return
  for pattern in "/usr/local/cuda*/bin/$1" "/opt/nvidia/nsight-compute/*/$1" "/opt/nvidia/nsight-systems/*/bin/$1"; do
    if compgen -G "$pattern" | tail -1 | grep .; then return; fi
  done
  return 1
}

# profile_step NAME LAUNCHES OPTIONS...: a table of a step's kernels. Those of the first steps, which choose kernels, are
# skipped: a first run has kept the choices.
profile_step() {
  local name=$1 launches=$2
  shift 2
  due "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" step_bench "$@" --steps 2
  ((code == 0)) || { program_failed "$name"; return 0; }
  has_time_for "$name" || return 0
  bounded $((budget / 2)) "$ncu" --clock-control none --print-units base --csv --target-processes all \
    --metrics gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum \
    --launch-skip $((4 * launches)) --launch-count "$launches" --kill yes \
    "$bundle/run" step_bench "$@" --no-graphs --steps 12
  if python3 "$root/tests/support/gpu/kernel_table.py" "$words" >"$scratch/kernels"; then
    say_table "$name" "$scratch/kernels"
  else
    failed_row "$name" "$(reason '==ERROR==')"
  fi
}

# profile_layers NAME OPTIONS: a table of GPU time by layer, from the NVTX ranges of steps without graphs.
profile_layers() {
  local name=$1
  shift
  due "$name" || return 0
  bounded $((budget / 3)) "$nsys" profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --output="$scratch/layers" \
    --force-overwrite=true "$bundle/run" step_bench "$@" --no-graphs --steps 12
  ((code == 0)) || { program_failed "$name"; return 0; }
  bounded $((budget / 3)) "$nsys" stats --report=nvtx_gpu_proj_sum --format=csv --force-export=true \
    "$scratch/layers.nsys-rep"
  if ((code == 0)) && python3 "$root/tests/support/gpu/layer_table.py" "$words" >"$scratch/layers"; then
    say_table "$name" "$scratch/layers"
  else
    failed_row "$name" "$(reason)"
  fi
}

run_kernels() {
  local ncu nsys
  local small=(--device cuda --model resnet18 --batch 512 --precision bf16 --reduce mpi)
  if ncu=$(tool ncu); then
    profile_step "resnet50-bf16" 800 "${resnet50[@]}" --precision bf16 --reduce mpi
    profile_step "resnet18-bf16" 300 "${small[@]}"
  else
    row "kernels" "not measured: Nsight Compute (ncu) is not installed"
  fi
  if nsys=$(tool nsys); then
    profile_layers "resnet50-bf16, layers" "${resnet50[@]}" --precision bf16 --reduce mpi
    profile_layers "resnet18-bf16, layers" "${small[@]}"
  else
    row "layers" "not measured: Nsight Systems (nsys) is not installed"
  fi
}
