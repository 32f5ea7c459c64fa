# shellcheck shell=bash disable=SC2154
# A whole training on pictures, and its model tested on the GPU and on the CPU. Sourced.

# What evaluate and train_imagenet print last of a test, without the percent sign.
evaluated_in() { sed -n 's/^top-1 *\([0-9.]*\) %$/\1/p' "$1"; }
reached_in() { sed -n 's/.*test accuracy \([0-9.]*\) %.*/\1/p' "$1" | tail -1; }

# train_step NAME WORDS...: a program of the bundle; returns 1 after a row that says why it failed.
train_step() {
  local name=$1
  shift
  has_time_for "$name" || return 1
  bounded $((budget / 8)) "$bundle/run" "$@"
  ((code == 0)) || { failed_row "$name" "$(reason)"; return 1; }
}

run_training() {
  local data=$scratch/data run=$scratch/training recipe device
  train_step "pictures" write_pictures "$scratch/pictures" 600 || return 0
  train_step "pictures as shards" make_shards images --source "$scratch/pictures" --output "$data" || return 0
  recipe=(--model resnet18 --image-size 64 --global-batch 54 --epochs 2 --mixup 0.2 --cutout 8 --precision bf16)
  train_step "training on pictures" train_imagenet --device cuda --data "$data" --output "$run" "${recipe[@]}" || return 0
  row "training on pictures" "test accuracy $(reached_in "$words") %"
  local -A found=()
  for device in cuda cpu; do
    train_step "its model, $device" evaluate --device "$device" --model-file "$run/model.h5" --data "$data" || return 0
    found[$device]=$(evaluated_in "$words")
  done
  # Of 60 pictures: one that lies between two classes may fall to either side.
  if awk -v a="${found[cuda]}" -v b="${found[cpu]}" 'BEGIN { exit !(a != "" && b != "" && a - b < 2 && b - a < 2) }'; then
    row "its model" "test accuracy ${found[cuda]} %, on the CPU ${found[cpu]} %"
  else
    failed_row "its model" "test accuracy ${found[cuda]} %, on the CPU ${found[cpu]} %"
  fi
}
