#!/usr/bin/env bash
# Runs the GPU tests (ctest label gpu) and the benchmarks on a machine that has only a driver, CUDA's libraries and
# python3.
#
#   tests/gpu.sh pack [BUILD]                   on the build machine: packs BUILD in build/gpu_bundle.tar.xz
#   tests/gpu.sh run [PART] [OPTION]...         on the GPU machine: prints a table of tests and measurements
#   tests/gpu.sh                                both, on one machine
#
# PART: tests, benches, peers (the same steps in PyTorch), or all (default). Options of run:
#   --bundle FOLDER    folder of the bundle (default: build/gpu_bundle); if it is absent, FOLDER.tar.xz is unpacked
#   --out FOLDER       folder for PART.md (table) and PART.log (all output) (default: variable OUT, else BUNDLE/results)
#   --seconds N        time limit per part (default: 360, 270 and 420 s); what does not fit is left out and reported
#   --python PROGRAM   Python interpreter that can import torch
#
# Exit code: 77 without a GPU (peers: or without PyTorch), 1 if a test failed or was left out. pack refuses archives of
# more than 45 MiB (variable LOCKSTEP_BUNDLE_MIB: another limit).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/support/gpu/gpu_results.sh
source "$root/tests/support/gpu/gpu_results.sh"
# shellcheck source=tests/support/gpu/gpu_tests.sh
source "$root/tests/support/gpu/gpu_tests.sh"
# shellcheck source=tests/support/gpu/gpu_training.sh
source "$root/tests/support/gpu/gpu_training.sh"
bundle=$root/build/gpu_bundle
tests=(ops_test norm_test deferred_norm_test flat_passes_test sgd_rule_test adaptive_rule_test step_record_test layer_test
  layer_agreement_test golden_loss_test golden_test golden_optimizer_test ema_test whole_step_test recorded_step_test)
programs=(step_bench write_pictures make_shards train_cifar train_imagenet evaluate)
max_mib=${LOCKSTEP_BUNDLE_MIB:-45}  # limit of the archive, which is copied to the other machine
declare -A seconds_of=([tests]=360 [benches]=270 [peers]=420)

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
}

# A small training's steps, with everything and, where that fails, without NCCL, without recording, and without both: which
# tells apart what fails. The benches then run with as much as works.
rungs=("" "--reduce mpi" "--no-graphs" "--no-graphs --reduce mpi")
start_ladder() {
  local works=() rung name verdict
  for rung in "${!rungs[@]}"; do
    read -ra chosen <<<"${rungs[rung]}"
    name="start ${rungs[rung]:-with everything}"
    bounded $((budget / 6)) "$bundle/run" step_bench --device cuda --model lenet --batch 8 --steps 5 "${chosen[@]}"
    if ((rung == 0)) && ((code != 0)) && grep --quiet -E 'no GPU is visible|has no NVIDIA driver' "$words"; then
      cat "$words"
      echo "skipped: no GPU here"
      exit 77
    fi
    works[rung]=$((code == 0))
    if ((works[rung])); then
      row "$name" "$(sed -n 's/.*"device":"\([^"]*\)".*/\1/p' "$words")"
    else
      failed_row "$name" "$(reason)"
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
  run_training
  run_programs "${tests[@]}"
}

run_bench() { # NAME WORDS...
  local name=$1
  shift
  has_time_for "$name" || return 0
  bounded $((budget / 3)) "$bundle/run" "$@"
  if ((code == 0)) && [ -n "$(value_of samples_per_second "$words")" ]; then
    row "$name" "$(value_of samples_per_second "$words") samples/s, first step $(value_of first_step_seconds "$words") s"
  else
    failed_row "$name" "$(reason)"
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
    failed_row "$name" "$(reason)"
  fi
}

run_benches() {
  local precision word
  local resnet50=(--device cuda --model resnet50 --image-size 224 --classes 1000 --batch 256)
  for precision in bf16 fp32 fp16; do
    run_bench "resnet18-$precision" step_bench --device cuda --model resnet18 --batch 512 --precision "$precision" \
      --steps 50 --verbose "${chosen[@]}"
    run_bench "resnet50-$precision" step_bench "${resnet50[@]}" --precision "$precision" --steps 30 --verbose "${chosen[@]}"
  done
  run_first_step "first-step-resnet50-bf16" "${resnet50[@]}" --precision bf16 "${chosen[@]}"
  local two_ranks=(--reduce mpi)
  for word in "${chosen[@]}"; do [ "$word" != --no-graphs ] || two_ranks+=("$word"); done
  run_bench "resnet20-2ranks-1gpu-bf16" mpirun -n 2 step_bench --device cuda --model resnet20 --batch 256 \
    --precision bf16 --steps 30 "${two_ranks[@]}"
}

# compare_with_peer CASE SECONDS OPTIONS...: a row of compare.py's table, of which the first brings the head along.
compare_with_peer() {
  local which=$1 limit=$2 left
  shift 2
  left=$(seconds_left)
  has_time_for "$which, $1" || return 0
  limit=$((left < limit ? left : limit))
  bounded "$limit" python3 "$root/bench/compare.py" --device cuda --build "$bundle" --only "$which" --ours="${chosen[*]}" \
    --time-limit $((limit > 20 ? limit - 10 : limit / 2)) "${python[@]}" "$@"
  if ((code == 2)) && grep --quiet 'cannot import torch' "$words"; then
    row "against PyTorch" "not compared: $(reason)"
    skipped=1
  elif ((code != 0)); then
    failed_row "$which, $1" "$(reason)"
  elif ((has_head)); then
    say "$(grep '^| ' "$words" | tail -1)"
  else
    say ""
    say "$(grep -E '^(- .*|\|.*|)$' "$words")"
    has_head=1
  fi
}

# First a quick look at every case, then pairs as long as there is time, of those that matter most and can be measured.
run_peers() {
  local has_head=0 which works=() fails=()
  for which in resnet18-bf16-eager resnet18-bf16-compile resnet50-fp16 resnet50-bf16; do
    ((skipped)) || compare_with_peer "$which" $((budget / 3)) --quick
    if ((code == 0)); then works=("$which" "${works[@]}"); else fails+=("$which"); fi
  done
  for which in "${works[@]}" "${fails[@]}"; do
    ((skipped)) || compare_with_peer "$which" "$budget" --pairs 3 --seconds 2
  done
}

run_part() { # NAME
  open_part "$1" "${seconds:-${seconds_of[$1]}}"
  row "$1" "result"
  say "|---|---|"
  note_machine
  start_ladder
  "run_$1"
}

run() { # OPTIONS...
  local parts=(tests benches peers) only='' code_of_all=0
  out=${OUT:-} seconds='' python=()
  while (($#)); do
    case $1 in
      tests | benches | peers) parts=("$1") only=$1 ;;
      all) ;;
      --bundle | --out | --seconds | --python)
        [ -n "${2:-}" ] || give_up "$1 wants a value." 2
        case $1 in
          --bundle) bundle=$2 ;;
          --out) out=$2 ;;
          --seconds) seconds=$2 ;;
          --python) python=(--python "$2") ;;
        esac
        shift ;;
      *) give_up "what is '$1'? Parts are tests, benches, peers and all; options --bundle, --out, --seconds and --python." 2 ;;
    esac
    shift
  done
  [[ $seconds =~ ^([1-9][0-9]{0,4})?$ ]] || give_up "'$seconds' is no number of seconds (--seconds)." 2
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
  local part
  for part in "${parts[@]}"; do
    run_part "$part"
    ((failed == 0)) || code_of_all=1
    say ""
  done
  if [ "$only" = peers ] && ((skipped && !code_of_all)); then exit 77; fi
  exit "$code_of_all"
}

case ${1:-both} in
  pack) pack "${2:-$root/build/release}" ;;
  run) run "${@:2}" ;;
  both) pack "$root/build/release" && run all ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
