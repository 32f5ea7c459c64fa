#!/usr/bin/env bash
# Runs the GPU tests (ctest label gpu) and the benchmarks on a machine that has only a driver, CUDA's libraries and
# python3.
#
#   tests/gpu.sh pack [BUILD]                   on the build machine: packs BUILD in build/gpu_bundle.tar.xz
#   tests/gpu.sh pack-data SHARDS [MIB]         likewise: packs the shards of CIFAR-10 in build/gpu_cifar.N.part of at most
#                                               MIB (38), and their SHA-256 sums in build/gpu_cifar.sums
#   tests/gpu.sh run [PART]... [OPTION]...      on the GPU machine: prints a table of tests and measurements
#   tests/gpu.sh                                pack and run, on one machine
#
# PART, by default all in this order; accuracy is always the last one:
#   tests      test programs, as many side by side as the GPU has memory for
#   training   trainings on pictures, the same one on 1, 2 and 4 ranks, and checks of memory accesses
#   benches    whole steps, and passes over feature maps beside a copy
#   kernels    GPU time and memory traffic of each kernel of a step (Nsight Compute), and GPU time of each layer (Nsight
#              Systems)
#   peers      the same steps in PyTorch
#   accuracy   CIFAR-10 to the end: at least 93.5 % by cifar10-94, 89.5 % by cifar10-90
#
# Packing takes about 3 minutes, pack-data a minute, on an idle core. On the GPU machine, unpacking and the first start may
# take 5 minutes before the first part: on a cold machine, use --seconds 120 where a call may last 10 minutes.
#
# If a call is short, or carries few files, repeat the call. A part goes on where the last call ended: what passed or was
# measured is kept in BUNDLE.rows and printed again, if the bundle, the kind of GPU and what works there are the same.
# CIFAR-10 is unpacked once all its archives are here. For example, with 64 MiB and 10 minutes per call:
#
#   carried files                                                          command
#   build/gpu_bundle.tar.xz, build/gpu_cifar.sums, build/gpu_cifar.1.part  tests/gpu.sh run tests training
#   build/gpu_cifar.2.part                                                 tests/gpu.sh run benches kernels --seconds 280
#   build/gpu_cifar.3.part                                                 tests/gpu.sh run peers accuracy --seconds 280
#
# All of them need the same machine, which keeps what was carried: `accuracy` needs all archives. If a call gets another
# one, carry the bundle again; to keep rows, append "; cp -r build/gpu_bundle.rows $OUT" and carry that folder, too, as
# build/gpu_bundle.rows.
#
# Options of run:
#   --bundle FOLDER      folder of the bundle (default: build/gpu_bundle); if it is absent, FOLDER.tar.xz is unpacked
#   --out FOLDER         folder for PART.md (table) and PART.log (all output) (default: variable OUT, else BUNDLE/results)
#   --seconds N          time limit of each part, without unpacking and the first start on the GPU (default: 120, 180, 330,
#                        210, 420 and 240 s; peers with max-autotune: 1800 s); what does not fit is listed
#   --jobs N             test programs side by side (default: by the GPU's free memory)
#   --python PROGRAM     Python interpreter that can import torch
#   --compile-mode MODE  mode of torch.compile (default: reduce-overhead; max-autotune takes minutes to the first step)
#
# Exit code: 77 without a GPU (peers: or without PyTorch), 2 without a bundle, 1 if something failed. pack refuses archives of more than
# 45 MiB (variable LOCKSTEP_BUNDLE_MIB: another limit).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/support/gpu/gpu_results.sh
source "$root/tests/support/gpu/gpu_results.sh"
# shellcheck source=tests/support/gpu/gpu_tests.sh
source "$root/tests/support/gpu/gpu_tests.sh"
# shellcheck source=tests/support/gpu/gpu_training.sh
source "$root/tests/support/gpu/gpu_training.sh"
# shellcheck source=tests/support/gpu/gpu_benches.sh
source "$root/tests/support/gpu/gpu_benches.sh"
# shellcheck source=tests/support/gpu/gpu_peers.sh
source "$root/tests/support/gpu/gpu_peers.sh"
# shellcheck source=tests/support/gpu/gpu_accuracy.sh
source "$root/tests/support/gpu/gpu_accuracy.sh"
bundle=$root/build/gpu_bundle
tests=(ops_test norm_test deferred_norm_test flat_passes_test sgd_rule_test adaptive_rule_test matrix_passes_test muon_test
  step_record_test layer_test layer_agreement_test golden_loss_test golden_test golden_optimizer_test onnx_numbers_test
  ema_test whole_step_test recorded_step_test)
programs=(step_bench ops_bench describe_gpu write_pictures make_shards train_cifar train_imagenet evaluate)
max_mib=${LOCKSTEP_BUNDLE_MIB:-45}  # limit of the archive, which is copied to the other machine
nccl_for_shared_gpus=2.30            # with NCCL_MULTI_RANK_GPU_ENABLE=1
all_parts=(tests training benches kernels peers)  # and then accuracy
declare -A seconds_of=([tests]=120 [training]=180 [benches]=330 [kernels]=210 [peers]=420 [accuracy]=240)
seconds_of_start=300  # for the first start on the GPU, which loads libraries, beside the time of the parts

give_up() { # TEXT [CODE]
  echo "gpu.sh: $1" >&2
  exit "${2:-1}"
}

pack() { # BUILD
  local paths=() name bytes
  [[ $max_mib =~ ^[1-9][0-9]{0,4}$ ]] || give_up "'$max_mib' is not a number of MiB (LOCKSTEP_BUNDLE_MIB)." 2
  for name in "${tests[@]}" "${programs[@]}"; do
    [ -x "$1/bin/$name" ] || give_up "'$1/bin/$name' does not exist. Build it first."
    paths+=("$1/bin/$name")
  done
  rm -rf "$bundle" "$bundle.tar.xz"
  "$root/tests/bundle.sh" "$bundle" "${paths[@]}"
  sha256sum <"$bundle.tar.xz" >"$bundle/.archive"
  bytes=$(stat --format=%s "$bundle.tar.xz")
  echo "$bundle.tar.xz: $((bytes >> 20)) MiB of $max_mib"
  ((bytes <= max_mib << 20)) && return
  echo "Largest files, in bytes before compression:" >&2
  find "$bundle" -type f -printf '%s %P\n' | sort -rn | sed -n 1,5p >&2
  give_up "the archive has more than $max_mib MiB, the limit for the other machine. Pack fewer programs."
}

# The archive is what was carried here: a folder of another one is old.
unpack() {
  local archive=$bundle.tar.xz
  if [ -f "$archive" ] && ! sha256sum <"$archive" | cmp --quiet - "$bundle/.archive"; then
    rm -rf "$bundle"
    mkdir -p "$bundle"
    # Without xz on this machine Python's own does it.
    tar --extract --file "$archive" --directory "$bundle" --strip-components=1 2>/dev/null ||
      python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$(dirname "$bundle")"
    sha256sum <"$archive" >"$bundle/.archive"
  fi
  [ -x "$bundle/run" ] || give_up "no bundle in '$bundle'. Make one with tests/gpu.sh pack." 2
}

# One value of step_bench's JSON line.
value_of() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p" "$2"; }

# What a reader of the log wants to know of the machine.
note_machine() {
  ! command -v nvidia-smi >/dev/null || bounded $((budget / 12)) nvidia-smi
  BUNDLE_VERBOSE=1 bounded $((budget / 12)) "$bundle/run" step_bench --version
  nccl=$(sed -n 's/^NCCL  *\([0-9.]*\)$/\1/p' "$words")
}

# A small training's steps, with everything and, where that fails, without NCCL, without recording, and without both: which
# tells apart what fails. The benches then run with as much as works.
rungs=("" "--reduce mpi" "--no-graphs" "--no-graphs --reduce mpi")
start_ladder() {
  local works=() rung name verdict
  gpu=
  for rung in "${!rungs[@]}"; do
    read -ra chosen <<<"${rungs[rung]}"
    name="start ${rungs[rung]:-with everything}"
    bounded $((budget / 4)) "$bundle/run" step_bench --device cuda --model lenet --batch 8 --steps 5 "${chosen[@]}"
    if ((rung == 0)) && ((code != 0)) && grep --quiet -E 'no GPU is visible|has no NVIDIA driver' "$words"; then
      cat "$words"
      echo "skipped: no GPU here"
      exit 77
    fi
    works[rung]=$((code == 0))
    if ((works[rung])); then
      gpu=$(sed -n 's/.*"device":"\([^"]*\)".*/\1/p' "$words")
      row "$name" "$gpu"
    else
      program_failed "$name"
    fi
    if ((works[0])); then return; fi
  done
  case "${works[1]}${works[2]}${works[3]}" in
    11?) rung=1 verdict="NCCL and recording work, but not together" ;;
    10?) rung=1 verdict="NCCL fails" ;;
    01?) rung=2 verdict="recording steps as graphs fails" ;;
    001) rung=3 verdict="NCCL fails, and so does recording steps as graphs" ;;
    *) rung=3 verdict="it is neither NCCL nor recording alone: kernels, libraries or the driver fail" ;;
  esac
  read -ra chosen <<<"${rungs[rung]}"
  row "verdict" "$verdict. Goes on with ${rungs[rung]}"
}

run_tests() {
  set_jobs "$jobs_asked"
  run_programs "${tests[@]}"
}

run_part() { # NAME
  local conditions=
  open_part "$1" "$seconds_of_start"
  row "$1" "result"
  say "|---|---|"
  if ((!has_started)); then
    note_machine
    start_ladder
    has_started=1
  fi
  # Where the GPU is in the machine does not matter.
  [ -z "$gpu" ] || { conditions=$(cat "$bundle/.archive" 2>/dev/null) && conditions+=" ${gpu%, at *} ${chosen[*]}"; }
  open_kept "$1" "$conditions"
  start_clock "${seconds:-${seconds_of[$1]}}"
  "run_$1"
}

take_option() { # OPTION VALUE
  [ -n "$2" ] || give_up "$1 wants a value." 2
  case $1 in
    --bundle) bundle=$2 ;;
    --out) out=$2 ;;
    --seconds) seconds=$2 ;;
    --jobs) jobs_asked=$2 ;;
    --python) python=(--python "$2") ;;
    --compile-mode) compile_mode=$2 ;;
  esac
}

run() { # OPTIONS...
  local parts=() last=() code_of_all=0 has_started=0 part name
  out=${OUT:-} seconds='' jobs_asked='' python=() compile_mode=reduce-overhead
  while (($#)); do
    case $1 in
      accuracy) last=(accuracy) ;;
      tests | training | benches | kernels | peers) parts+=("$1") ;;
      all) parts+=("${all_parts[@]}") last=(accuracy) ;;
      --bundle | --out | --seconds | --jobs | --python | --compile-mode)
        take_option "$1" "${2:-}"
        shift ;;
      *) give_up "what is '$1'? Parts are ${all_parts[*]} accuracy and all; tests/gpu.sh help lists the options." 2 ;;
    esac
    shift
  done
  ((${#parts[@]} + ${#last[@]})) || parts=("${all_parts[@]}") last=(accuracy)
  parts+=("${last[@]}")
  for name in seconds jobs_asked; do
    [[ ${!name} =~ ^([1-9][0-9]{0,4})?$ ]] || give_up "'${!name}' is not a number (--seconds, --jobs)." 2
  done
  [[ $compile_mode =~ ^[a-z][a-z-]*$ ]] || give_up "'$compile_mode' is not a mode of torch.compile (--compile-mode)." 2
  [[ $compile_mode != max-autotune* ]] || seconds_of[peers]=1800
  unpack
  bundle=$(cd "$bundle" && pwd)
  out=${out:-$bundle/results}
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap stopped TERM INT HUP
  export XDG_CACHE_HOME=$scratch/cache               # kernel choices of this run alone
  # Where the programs were built is another machine.
  export LOCKSTEP_GOLDEN_DIR=$root/tests/golden LOCKSTEP_TESTS_FOLDER=$root/tests
  export LOCKSTEP_ONNX_NUMBERS=$root/tests/golden/onnx
  for part in "${parts[@]}"; do
    run_part "$part"
    ((failed == 0)) || code_of_all=1
    say ""
  done
  if [ "${parts[*]}" = peers ] && ((skipped && !code_of_all)); then exit 77; fi
  exit "$code_of_all"
}

case ${1:-both} in
  pack) pack "${2:-$root/build/release}" ;;
  pack-data) pack_data "${@:2}" ;;
  run) run "${@:2}" ;;
  both) pack "$root/build/release" && run all ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
