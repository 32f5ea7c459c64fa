#!/usr/bin/env bash
# Submits the scripts of all programs to a real cluster, in the ways that users do: scripts_test.sh BUILD_FOLDER
set -uo pipefail
build=$(readlink -f "$1")
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$0")/support.sh"

# From an installed prefix with a space, and from a folder that is nobody's; resources as sbatch is told.
prefix="$work/a prefix"
cmake --install "$build" --prefix "$prefix" >"$work/install.log" || fail "cmake --install"
scripts="$prefix/share/lockstep/slurm"
data="$work/shards 'with' \$(touch hurt); spaces"
submit shards --nodes=2 "$scripts/make_shards.sbatch" synthetic --samples 300 --output "$data"
wait_for_end
expect "JobState=COMPLETED"
expect "NumTasks=4"
common=(--data "$data" --model lenet --global-batch 24 --threads 1 --epochs 1)
output="$work/results; touch hurt \"&\" 'it'"
submit train --nodes=3 --job-name='a job; touch hurt' "$scripts/train_cifar.sbatch" "${common[@]}" --output "$output"
wait_for_end
expect "JobState=COMPLETED"
expect "NodeList=n[1-3]"
grep -q '"ranks": 6' "$output/summary.json" || fail "not two ranks on each of three nodes"
# From copies on the nodes' own disk. The nodes here have one disk, so the ranks of both share what they copy.
submit staged --nodes=2 "$scripts/train_imagenet.sbatch" "${common[@]}" --image-size 24 --stage "$work/a node's own" \
  --output "$work/staged"
wait_for_end
expect "JobState=COMPLETED"
expect_log staged "'$work/a node's own' on 2 nodes"
find "$work/a node's own" -name '.*' -type f | grep -q . && fail "something is left half staged"
submit evaluate --nodes=1 "$scripts/evaluate.sbatch" --model-file "$output/model.h5" --data "$data" \
  --predictions "$work/predictions.csv"
wait_for_end
expect "JobState=COMPLETED"
[ "$(wc -l <"$work/predictions.csv")" -gt 60 ] || fail "no predictions"
submit imagenet --nodes=2 "$scripts/train_imagenet.sbatch" "${common[@]}" --image-size 24 --output "$output 2"
wait_for_end
expect "JobState=COMPLETED"
grep -q '"augment": "resized-crop-flip"' "$output 2/summary.json" || fail "not train_imagenet's defaults"
echo "  make_shards, train_cifar, train_imagenet and evaluate, from a prefix with a space"

# A look at the nodes; one that cannot write is left out of the next attempt.
echo '{"compute_share": 0, "link_share": 0}' >"$work/floors.json"  # nodes that share a machine's cores compute unevenly
submit check --nodes=3 "$scripts/check_cluster.sbatch" --output "$work" --floors "$work/floors.json" --json "$work/check.json"
wait_for_end
expect "JobState=COMPLETED"
expect_log check "3 nodes with 6 ranks: "
grep -q '"hosts":\[\],' "$work/check.json" || fail "somebody is to blame: $(cat "$work/check.json")"
mkdir "$work/programs"
ln -s "$prefix"/bin/* "$work/programs"
rm "$work/programs/check_cluster"
cat >"$work/programs/check_cluster" <<END
#!/usr/bin/env bash
[ "\$(hostname)" != n2 ] || set -- --output /proc/none --floors '$work/floors.json'
exec '$prefix/bin/check_cluster' "\$@"
END
chmod +x "$work/programs/check_cluster"
LOCKSTEP_BIN=$work/programs LOCKSTEP_CHECK=$work/floors.json submit checked --nodes=2 "$scripts/train_cifar.sbatch" \
  "${common[@]}" --output "$work/checked"
wait_for_end
expect "JobState=COMPLETED"
expect "ExcNodeList=n2"
expect_log checked "cause bad_node"
expect_log checked ": n2. "
expect_log checked "cannot write to the folder of '/proc/"
grep -q '"state": "done"' "$work/checked/summary.json" || fail "the training did not go on elsewhere"
echo "  a look at the nodes first"

# A sweep of four, two at a time.
printf -- '--seed %d\n' 1 2 3 >"$work/a sweep.txt"
echo "--seed 4 --optimizer \$(touch hurt)" >>"$work/a sweep.txt"
submit array --array=0-3%2 --output="$work/array-%a.out" "$scripts/array.sbatch" "$work/a sweep.txt" "${common[@]}"
array_ended() { [ -z "$(squeue -h -j "$id" 2>/dev/null)" ]; }
wait_for 120 array_ended || fail "the array does not end"
for task in 0 1 2; do
  grep -q "\"seed\": $((task + 1))" "$work/runs/${id}_$task/summary.json" || fail "task $task did not train with its line"
done
grep -q 'cause usage' "$work/array-3.out" || fail "the line that is no option is not refused"
submit no_array "$scripts/array.sbatch" "$work/a sweep.txt"
wait_for_end
expect "ExitCode=2:0"
expect_log no_array "--array"
echo "  an array of four"

# The site's profile: at submission, and in the job. What is no setting is refused.
printf 'partition=urgent\n# ours\ngpus=--gres=gpu:{}\ninterface=eth0\nlauncher=mpirun\n' >"$work/site of mine"
export LOCKSTEP_SITE="$work/site of mine"
id=$(cd "$work" && "$scripts/site_sbatch" --parsable --output="$work/site.out" --nodes=2 "$scripts/train_cifar.sbatch" \
  "${common[@]}" --output "$work/by mpirun") || fail "site_sbatch"
wait_for_end
expect "JobState=COMPLETED"
expect "Partition=urgent"
grep -q '"ranks": 4' "$work/by mpirun/summary.json" || fail "mpirun did not start a rank for each task"
printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >"$work/sbatch" && chmod +x "$work/sbatch"
words=$(PATH="$work:$PATH" "$scripts/site_sbatch" --gpus-per-node=4 --partition=all 'a script')
[ "$words" = "<--partition=urgent><--gres=gpu:4><--partition=all><a script>" ] || fail "sbatch gets $words"
touch "$work/a script"
words=$(cd "$work" && PATH="$work:$PATH" "$scripts/site_sbatch" --nodes 2 --gpus-per-node 4 'a script' --gpus-per-node=1)
[ "$words" = "<--partition=urgent><--nodes><2><--gres=gpu:4><a script><--gpus-per-node=1>" ] || fail "sbatch gets $words"
for line in "account=\$(touch hurt)" 'acount=a' 'account' 'modules=a;b'; do
  echo "$line" >"$work/site of mine"
  "$scripts/site_sbatch" --version >"$work/site.log" 2>&1 && fail "'$line' is taken for a setting"
  grep -q "line 1 of '$work/site of mine'" "$work/site.log" || fail "the line is not named: $(<"$work/site.log")"
done
unset LOCKSTEP_SITE
echo "  a site's profile"

# No PMIx: mpirun, with a sentence. Ranks that do not find each other: refused at once. A srun that pretends is found first.
mkdir "$work/pretended"
real=$(command -v srun)
cat >"$work/pretended/srun" <<SRUN
#!/bin/bash
[ "\$1" = --mpi=list ] && { echo "MPI plugin types are..."; [ "\$LACKS" = pmix ] || echo pmix; exit; }
exec "$real" "\${@/#--mpi=pmix/--mpi=none}"
SRUN
chmod +x "$work/pretended/srun"
PATH="$work/pretended:$PATH" LACKS=pmix submit no_pmix --nodes=2 "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect_log no_pmix "mpirun starts the ranks."
expect "JobState=COMPLETED"
PATH="$work/pretended:$PATH" LACKS=nothing submit alone --nodes=2 "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "ExitCode=2:0"
expect_log alone "srun started 4 processes"
LOCKSTEP_LAUNCHER=aprun submit launcher "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "ExitCode=2:0"
expect_log launcher "'aprun'"
sbatch --partition=nowhere "$scripts/train_cifar.sbatch" >"$work/partition.log" 2>&1 && fail "a partition that is not there"
echo "  no PMIx, no common world, no such launcher, no such partition"

# A log of its own for each rank, under both launchers: it has what the job's log has, the ranks get each signal once and
# the job has their code. Slurm's SIGTERM to all that runs does not cost their last words.
mkdir "$work/pretended ranks"
ln -s "$programs/job_attempt" "$work/pretended ranks/"
cat >"$work/pretended ranks/train_cifar" <<'PROGRAM'
#!/usr/bin/env bash
asked=0
trap 'asked=$((asked + 1))' USR1
trap 'sleep 1; echo "last words of $PMIX_RANK"; exit 75' TERM
echo "rank $PMIX_RANK prints"; echo "rank $PMIX_RANK complains" >&2
[ "$2" != fail ] || exit 42
while ((asked == 0)); do sleep 0.1; done
sleep 1
echo "rank $PMIX_RANK was asked $asked times"
exit 75
PROGRAM
chmod +x "$work/pretended ranks/train_cifar"
export LOCKSTEP_BIN="$work/pretended ranks" JOB_RETRY_COUNT=0
logs="$work/logs of 'ranks'"
pretend_ranks() { LOCKSTEP_RANK_LOGS=$logs LOCKSTEP_LAUNCHER=$launcher submit "$1" --nodes=2 "$scripts/train_cifar.sbatch" --pretend "$2"; }
# both_say NAME WORDS: for each rank R, the job's log and that of the rank say WORDS, with R for it.
both_say() {
  local rank
  for rank in 0 1 2 3; do
    expect_log "$1" "${2//R/$rank}"
    grep -qF "${2//R/$rank}" "$logs/$id.0.rank-$rank.log" || fail "the log of rank $rank of $1 does not say '$2'"
  done
}
begun() { [ "$(cat "$logs/$id".0.rank-?.log 2>/dev/null | grep -c prints)" = 4 ]; }
for launcher in srun mpirun; do
  pretend_ranks "code_$launcher" fail
  wait_for_end
  expect "ExitCode=42:0"
  expect_log "code_$launcher" "complains"
  pretend_ranks "asked_$launcher" wait
  wait_for 60 begun || fail "the ranks of asked_$launcher do not begin"
  scancel --batch --signal=USR1 "$id"
  wait_for_end
  expect "ExitCode=75:0"
  both_say "asked_$launcher" "rank R prints"
  both_say "asked_$launcher" "rank R complains"
  both_say "asked_$launcher" "rank R was asked 1 times"
done
launcher=srun pretend_ranks term wait
wait_for 60 begun || fail "the ranks of term do not begin"
scancel "$id"
wait_for_end
both_say term "last words of R"
LOCKSTEP_RANK_LOGS=/dev/null/logs submit no_folder "$scripts/train_cifar.sbatch"
wait_for_end
expect "ExitCode=2:0"
expect_log no_folder "'/dev/null/logs' (LOCKSTEP_RANK_LOGS)"
unset LOCKSTEP_BIN JOB_RETRY_COUNT
echo "  logs of ranks"

# A network that the node does not have: refused before ranks start, and not repeated.
LOCKSTEP_INTERFACE=eth0,ib7 submit interface --nodes=2 "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "ExitCode=2:0"
expect "Restarts=0"
grep -qE "n1 .*'ib7' \(LOCKSTEP_INTERFACE.*: eth0, lo\.$" "$work/interface.out" || fail "the interfaces that there are are not named"
LOCKSTEP_INTERFACE=$CLUSTER_NET.0/24 submit network --nodes=2 "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "JobState=COMPLETED"
echo "  a wrong network interface"

[ -z "$(find "$work" "$PWD" -maxdepth 1 -name hurt)" ] || fail "a name was executed"
echo "passed: scripts"
