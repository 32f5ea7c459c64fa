# shellcheck shell=bash disable=SC2154
# Whole trainings on pictures: a model tested on the GPU and on the CPU, and the same weights on any number of ranks.
# Sourced.

# What evaluate and train_imagenet print last of a test, without the percent sign.
evaluated_in() { sed -n 's/^top-1 *\([0-9.]*\) %$/\1/p' "$1"; }
reached_in() { sed -n 's/.*test accuracy \([0-9.]*\) %.*/\1/p' "$1" | tail -1; }

# train_step NAME WORDS...: a program of the bundle; returns 1 after a row that says why it failed.
train_step() {
  local name=$1
  shift
  has_time_for "$name" || return 1
  bounded $((budget / 8)) "$bundle/run" "$@"
  ((code == 0)) || { program_failed "$name"; return 1; }
}

run_training() {
  local data=$scratch/data pictures=missing
  if due "its model" && make_pictures; then train_and_test; fi
  if due "same weights" && make_pictures; then compare_hashes; fi
  check_memory memcheck 'ERROR SUMMARY|Invalid|========= Error'
  check_memory initcheck 'ERROR SUMMARY|Uninitialized|========= Error'
}

# Once. Returns 1 if there are none.
make_pictures() {
  [ "$pictures" = missing ] || [ "$pictures" = made ] || return 1
  [ "$pictures" = missing ] || return 0
  pictures=failed
  train_step "pictures" write_pictures "$scratch/pictures" 600 || return 1
  train_step "pictures as shards" make_shards images --source "$scratch/pictures" --output "$data" || return 1
  pictures=made
}

train_and_test() {
  local run=$scratch/training recipe device trained
  recipe=(--model resnet18 --image-size 64 --global-batch 54 --epochs 2 --mixup 0.2 --cutout 8 --precision bf16)
  train_step "training on pictures" train_imagenet --device cuda --data "$data" --output "$run" "${recipe[@]}" || return 0
  row "training on pictures" "test accuracy $(reached_in "$words") %"
  trained=$last_said
  local -A found=()
  for device in cuda cpu; do
    train_step "its model, $device" evaluate --device "$device" --model-file "$run/model.h5" --data "$data" || return 0
    found[$device]=$(evaluated_in "$words")
  done
  # Of 60 pictures: one that lies between two classes may fall to either side.
  if awk -v a="${found[cuda]}" -v b="${found[cpu]}" 'BEGIN { exit !(a != "" && b != "" && a - b < 2 && b - a < 2) }'; then
    keep "its model" "$trained"
    done_row "its model" "test accuracy ${found[cuda]} %, on the CPU ${found[cpu]} %"
  else
    failed_row "its model" "test accuracy ${found[cuda]} %, on the CPU ${found[cpu]} %"
  fi
}

# hash_of NAME RANKS OPTIONS...: of the weights after a small training, as summary.json states it. The first words of NAME
# may be those of a program that starts another.
hash_of() {
  local name=$1 ranks=$2 run=$scratch/hashes/${1// /_} start=()
  shift 2
  [ "$ranks" = 1 ] || start=(mpirun -n "$ranks")
  train_step "hash: $name" "${start[@]}" train_imagenet --device cuda --data "$data" --output "$run" --model resnet20 \
    --image-size 32 --global-batch 36 --virtual-ranks 4 --max-steps 240 --precision bf16 --checkpoint-every 20 \
    --reduce mpi "$@" || return 1
  hash=$(sed -n 's/.*"weights_hash": *"\([^"]*\)".*/\1/p' "$run/summary.json" | head -1)
  hashes+=("$name: ${hash:-none}")
  [ -n "$hash" ] && [ "$hash" = "${first_hash:=$hash}" ] || same=0
}

# With virtual ranks, the weights have the same bits on any number of ranks, with a divided optimizer, and after a kill.
compare_hashes() {
  local hashes=() hash first_hash='' same=1 run=$scratch/hashes/killed
  hash_of "1 rank" 1 || return 0
  hash_of "2 ranks" 2 || return 0
  hash_of "4 ranks" 4 || return 0
  hash_of "4 ranks sharded" 4 --shard-optimizer || return 0
  has_time_for "hash: killed" || return 0
  bounded $((budget / 8)) "$root/tests/support/gpu/kill_at_checkpoint.sh" "$run" "$bundle/run" train_imagenet --device cuda \
    --data "$data" --output "$run" --model resnet20 --image-size 32 --global-batch 36 --virtual-ranks 4 --max-steps 240 \
    --precision bf16 --checkpoint-every 20 --reduce mpi
  if ((code == 0)); then
    hash_of "killed" 1 || return 0
  else
    failed_row "hash: killed" "$(reason)"
  fi
  local text
  printf -v text '%s; ' "${hashes[@]}"
  if ((same)); then
    done_row "same weights" "${#hashes[@]} trainings: $first_hash"
  else
    failed_row "same weights" "${text%; }"
  fi
}

# A few steps of a small network. memcheck finds accesses outside of allocated memory, initcheck reads of memory that
# nothing has written.
check_memory() { # TOOL PATTERN
  local sanitizer
  sanitizer=$(tool compute-sanitizer) || { row "$1" "not run: compute-sanitizer is not installed"; return 0; }
  due "$1" || return 0
  bounded $((budget / 2)) "$sanitizer" --tool "$1" --target-processes all --error-exitcode 9 "$bundle/run" step_bench \
    --device cuda --separate-blocks --model lenet --batch 8 --steps 3 --reduce mpi
  if ((code == 0)); then
    done_row "$1" "$(grep --text -o 'ERROR SUMMARY: .*' "$words" | tail -1)"
  else
    failed_row "$1" "$(reason "$2")"
  fi
}
