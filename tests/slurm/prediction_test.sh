#!/usr/bin/env bash
# Steps on 6 and 8 ranks as predicted from those on 1 to 4, between nodes whose links are slow and whose computing is
# waiting: at most 15 % off. prediction_test.sh BUILD_FOLDER
set -uo pipefail
build=$(realpath "$1")
CLUSTER_NODES=8
# shellcheck source=tests/slurm/support.sh
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
command -v tc >/dev/null || skip "no tc here (it makes links slow)"

a_rank_a_node() {
  local node
  mkdir "$work/study"
  for node in n1 n2 n3 n4 n5 n6 n7 n8; do cluster slow "$node" 200mbit; done
  srun --nodes=8 --ntasks=8 --ntasks-per-node=1 --time=5 "$build/bin/waiting_study" "$work/study" >"$work/study.out" 2>&1 ||
    fail "the study did not end well"
  "$build/bin/waiting_study" "$work/study" predict 4 6 8 | tee "$work/prediction.out" ||
    fail "a prediction is off by more than 15 %"
}
run_scenarios a_rank_a_node
