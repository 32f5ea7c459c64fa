#!/usr/bin/env bash
# Steps on 6 and 8 ranks as predicted from those on 1 to 4, between nodes whose links are slow and whose computing is
# waiting: at most 15 % off. prediction_test.sh BUILD_FOLDER SCENARIO...
set -uo pipefail
build=$(realpath "$1")
CLUSTER_NODES=8
# shellcheck source=tests/slurm/support.sh
source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
command -v tc >/dev/null || skip "no tc here (it makes links slow)"

make_links_slow() { # [BURST QUEUE]
  local node
  for node in n1 n2 n3 n4 n5 n6 n7 n8; do cluster slow "$node" 200mbit "$@"; done
}

predict_and_compare() {
  mkdir "$work/study"
  srun --nodes=8 --ntasks=8 --ntasks-per-node=1 --time=8 "$build/bin/waiting_study" "$work/study" >"$work/study.out" 2>&1 ||
    fail "the study did not end well"
  "$build/bin/waiting_study" "$work/study" predict 4 6 8 | tee "$work/prediction.out" ||
    fail "a prediction is off by more than 15 %"
}

a_rank_a_node() {
  make_links_slow
  predict_and_compare
}

# Milliseconds that a port of n2 takes to refuse n1: there and back, the middle one of several.
round_trip() {
  cluster in n1 python3 -c '
import socket, statistics, time
times = []
for _ in range(21):
    with socket.socket() as caller:
        begin = time.perf_counter()
        caller.connect_ex(("n2", 9))
        times.append(1e3 * (time.perf_counter() - begin))
print(f"{statistics.median(times):.2f}")'
}
is_between() { awk "BEGIN { exit !($2 <= $1 && $1 <= $3) }"; } # NUMBER LEAST MOST

links_with_delay() {
  local trip round relay lateness
  cluster delay 5 "$build/bin/delaying_relay" || fail "links are not delayed"
  make_links_slow 32kb 60ms  # pieces of many segments pass whole, and the queue holds what is under way: nothing is lost
  trip=$(round_trip)
  echo "  a round trip takes $trip ms"
  is_between "$trip" 10 11.5 || fail "a delay of 5 ms each way made a round trip of $trip ms"
  predict_and_compare
  # Messages cross once in a round, large ones thrice, for they ask first; the fit may take some of it for bytes.
  round=$(sed -n 's/^a round between nodes takes \(.*\) ms.*/\1/p' "$work/prediction.out")
  is_between "$round" 2.5 15 || fail "with a delay of 5 ms the model takes a round for $round ms"
  relay=$(cat "$work/cluster/pid/relay")
  kill -TERM "$relay"
  wait_for 5 grep "frames passed" "$work/cluster/log/relay.log" || fail "the relay did not end"
  grep -qF ", 0 dropped" "$work/cluster/log/relay.log" || fail "the relay could not carry the frames"
  lateness=$(sed -n 's/.*average \(.*\) ms late.*/\1/p' "$work/cluster/log/relay.log")
  is_between "$lateness" 0 0.5 || fail "the machine is too busy to delay by 5 ms: frames were $lateness ms late"
}
run_scenarios "${@:2}"
