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
submit evaluate --nodes=1 "$scripts/evaluate.sbatch" --model-file "$output/model.h5" --data "$data" \
  --predictions "$work/predictions.csv"
wait_for_end
expect "JobState=COMPLETED"
[ "$(wc -l <"$work/predictions.csv")" -gt 60 ] || fail "no predictions"
echo "  make_shards, train_cifar and evaluate, from a prefix with a space"

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
expect_log no_array "this script is a task of a job array"
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
expect_log no_pmix "this Slurm has no PMIx (srun --mpi=list): mpirun starts the ranks."
expect "JobState=COMPLETED"
PATH="$work/pretended:$PATH" LACKS=nothing submit alone --nodes=2 "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "ExitCode=2:0"
expect_log alone "srun started 4 processes, and each finds itself alone"
LOCKSTEP_LAUNCHER=aprun submit launcher "$scripts/train_cifar.sbatch" "${common[@]}"
wait_for_end
expect "ExitCode=2:0"
expect_log launcher "'aprun' is no launcher"
sbatch --partition=nowhere "$scripts/train_cifar.sbatch" >"$work/partition.log" 2>&1 && fail "a partition that is not there"
echo "  no PMIx, no common world, no such launcher, no such partition"

[ -z "$(find "$work" "$PWD" -maxdepth 1 -name hurt)" ] || fail "a name was executed"
echo "passed: scripts"
