# A real cluster for a test, of three nodes or CLUSTER_NODES, and what tests ask of it. A test sources this file with its build folder in
# `build`; the cluster is taken down when the test ends.
# shellcheck shell=bash disable=SC2034,SC2154
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$build/bin
scripts=$build/slurm

skip() { echo "skipped: $*"; exit 77; }
fail() { tail -n 30 "$work"/*.out 2>/dev/null; echo "failed: $*"; exit 1; }
for needed in munged slurmctld slurmd sbatch ip unshare; do
  command -v "$needed" >/dev/null || skip "no $needed here (Slurm, munge and iproute2 start the cluster)"
done
((EUID == 0)) || skip "a cluster of namespaces wants root"
unshare --net --mount --uts --ipc --pid --fork --mount-proc ip link add probe type bridge 2>/dev/null ||
  skip "this machine allows no network namespaces or bridges"

work=$(mktemp -d)
# Another run may have a cluster of its own up at the same time, or was killed and left its bridge.
free_tag() {
  local tag=$((RANDOM % 90 + 10)) tries=50
  while ip link show "ls${tag}br" >/dev/null 2>&1 && ((tries-- > 0)); do tag=$((RANDOM % 90 + 10)); done
  echo "$tag"
}
export CLUSTER_TAG=${CLUSTER_TAG:-$(free_tag)}
export CLUSTER_NET=${CLUSTER_NET:-10.$((RANDOM % 100 + 100)).$((RANDOM % 250))}
export CLUSTER_PORT=${CLUSTER_PORT:-$((RANDOM % 10000 + 20000))}
export SLURM_CONF=$work/cluster/etc/slurm.conf OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset LOCKSTEP_BIN SLURM_PMIX_FENCE LOCKSTEP_SITE LOCKSTEP_LAUNCHER LOCKSTEP_RETRY_RULES LOCKSTEP_ATTEMPT_LIMIT JOB_RETRY_COUNT
cluster() { "$here/cluster.sh" "$work/cluster" "$@"; }
trap 'cluster down; rm -rf "$work"' EXIT
mkdir "$work/cluster"
cluster up "${CLUSTER_NODES:-3}" || { cat "$work"/cluster/log/*; fail "the cluster did not come up"; }

# submit NAME SBATCH-OPTIONS... SCRIPT OPTIONS...: sets `id`; the log is $work/NAME.out.
submit() {
  local name=$1; shift
  id=$(cd "$work" && sbatch --parsable --output="$work/$name.out" "$@") || fail "sbatch refused $name"
}
# wait_for SECONDS COMMAND...: until it succeeds, and so early that the cluster is down before CTest kills this.
wait_for() {
  local end=$((SECONDS + $1 < time_limit_of_test ? SECONDS + $1 : time_limit_of_test)); shift
  until "$@"; do ((SECONDS < end)) || return 1; sleep 0.1; done
}
time_limit_of_test=${TIME_LIMIT_OF_TEST:-270}
[[ $time_limit_of_test =~ ^[1-9][0-9]{0,5}$ ]] || fail "TIME_LIMIT_OF_TEST is no number of seconds: '$time_limit_of_test'"
ended() { job=$(scontrol show job "$id") && ! grep -qE 'JobState=(PENDING|RUNNING|SIGNALING|COMPLETING|CONFIGURING|REQUEUED)' <<<"$job"; }
# Sets `job` to what Slurm knows of it.
wait_for_end() { wait_for "$time_limit_of_test" ended || { scancel "$id"; fail "job $id did not end: $job"; }; }
# expect WORDS: what Slurm knows of the job contains them.
expect() { grep -qF "$1" <<<"$job" || fail "Slurm does not say '$1': $job"; }
# expect_log NAME WORDS: the job's log contains them.
expect_log() { grep -qF -- "$2" "$work/$1.out" || fail "the log of $1 does not say '$2'"; }
# task_of_trial TRIAL FOLDER: the task of a job array that runs the trial of a shared search. Only ARRAY_TASK identifies a
# task: the last one has the number of the whole array.
task_of_trial() {
  local number
  number=$(sed -n 's/.*"job":"\([0-9]*\)".*/\1/p' "$2/trial-$1/lease")
  grep -l "\"job\":\"$number\"" "$2"/tasks/*/lock | sed 's:.*/[0-9]*\.\([0-9]*\)/lock:\1:'
}
# run_scenarios NAME...: functions, one after another; the first that fails ends the test.
run_scenarios() {
  local scenario begin
  for scenario in "$@"; do
    begin=$SECONDS
    echo "$scenario"
    "$scenario"
    echo "  passed in $((SECONDS - begin)) s"
  done
  echo "passed: $#"
}
