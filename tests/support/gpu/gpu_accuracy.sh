# shellcheck shell=bash disable=SC2034,SC2154
# Trainings on CIFAR-10 to the end, with the accuracy that their recipes promise. Sourced.

shards=$root/build/gpu_cifar  # and, beside it, the archives with the data

pack_data() { # FOLDER [MIB]
  [ -e "${1:-}/train/manifest.json" ] ||
    give_up "'${1:-}' has no shards: 'train/manifest.json' is missing. Make them with make_shards cifar10." 2
  [[ ${2:-38} =~ ^[1-9][0-9]{0,2}$ ]] || give_up "'$2' is not a number of MiB (pack-data)." 2
  mkdir -p "$root/build"
  python3 "$root/tests/support/gpu/carried_data.py" pack "$1" "$shards" "${2:-38}"
}

# accuracy_of RECIPE LEAST OPTIONS...: a training to the end, which must reach LEAST %.
accuracy_of() {
  local recipe=$1 least=$2 run=$scratch/accuracy result
  shift 2
  local name="$recipe${*:+ $*}"
  due "$name" || return 0
  rm -rf "$run"
  bounded $((budget / 2)) "$bundle/run" train_cifar --device cuda --data "$shards" --recipe "$recipe" \
    --output "$run" "$@"
  ((code == 0)) || { program_failed "$name"; return 0; }
  result=$(python3 "$root/tests/support/gpu/reached_accuracy.py" "$run/summary.json" "$least" 2>>"$log") &&
    code=0 || code=$?
  if ((code == 0)); then
    done_row "$name" "$result"
  else
    failed_row "$name" "${result:-no accuracy in summary.json}"
  fi
}

run_accuracy() {
  local state=0 missing
  missing=$(python3 "$root/tests/support/gpu/carried_data.py" unpack "$shards" "$shards" 2>>"$log") || state=$?
  case $state in
    0) ;;
    3) row "CIFAR-10" "left out: $missing"; return 0 ;;
    *) cut_short=0; failed_row "CIFAR-10" "${missing:-the archives cannot be unpacked, see ${log##*/}}"; return 0 ;;
  esac
  accuracy_of cifar10-94 93.5
  accuracy_of cifar10-94 93.5 --precision bf16
  accuracy_of cifar10-90 89.5
}
