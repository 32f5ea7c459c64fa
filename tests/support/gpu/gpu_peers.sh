# shellcheck shell=bash disable=SC2034,SC2154
# The same steps in PyTorch. Sourced.

# A row of compare.py's table. The head comes before the first one.
say_compared() { # HEAD ROW
  if ((!has_head)); then say "$1"; fi
  has_head=1
  say "$2"
}

# compare_with_peer CASE SECONDS OPTIONS...: a row of compare.py's table.
compare_with_peer() {
  local which=$1 limit=$2 left head compared
  shift 2
  left=$(seconds_left)
  compared=$(kept_lines "$which, $1, $compile_mode")
  if [ -n "$compared" ]; then
    code=0
    say_compared "$(kept_lines head)" "$compared"
    return 0
  fi
  has_time_for "$which, $1" || return 0
  limit=$((left < limit ? left : limit))
  bounded "$limit" python3 "$root/bench/compare.py" --device cuda --build "$bundle" --only "$which" --ours="${chosen[*]}" \
    --compile-mode "$compile_mode" --time-limit $((limit > 20 ? limit - 10 : limit / 2)) "${python[@]}" "$@"
  if ((code == 2)) && grep --quiet 'cannot import torch' "$words"; then
    row "against PyTorch" "not compared: $(reason)"
    skipped=1
  elif ((code != 0)) && { ((took_too_long)) || grep --quiet -E 'took more than [0-9]+ s\.|\(--time-limit\) has passed' "$words"; }; then
    row "$which, $1" "left out, $limit s are too short: $(reason)"
  elif ((code != 0)); then
    failed_row "$which, $1" "$(reason)"
  else
    head=$'\n'$(grep -E '^(- .*|\|.*|)$' "$words" | sed '/^|-/q')
    compared=$(grep '^| ' "$words" | tail -1)
    [ -n "$(kept_lines head)" ] || keep head "$head"
    keep "$which, $1, $compile_mode" "$compared"
    say_compared "$head" "$compared"
  fi
}

# First a quick look at every case, then pairs as long as there is time, of those that matter most and can be measured.
# One that takes its time may have all that is left: the others come first.
run_peers() {
  local has_head=0 which works=() fails=()
  for which in resnet18-bf16-eager resnet50-bf16 resnet18-bf16-compile resnet50-fp16; do
    ((skipped)) || compare_with_peer "$which" $((budget / 2)) --quick
    if ((code == 0)); then works=("$which" "${works[@]}"); else fails+=("$which"); fi
  done
  for which in "${works[@]}" "${fails[@]}"; do
    ((skipped)) || compare_with_peer "$which" "$budget" --pairs 3 --seconds 2
  done
}
