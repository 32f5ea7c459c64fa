#!/usr/bin/env bash
# Roles in containers on a real cluster: containers_test.sh BUILD_FOLDER
#
# Charliecloud runs them. Apptainer and pyxis are stand-ins, which run their command lines with Charliecloud.
set -uo pipefail
build=$(readlink -f "$1")
# shellcheck source-path=SCRIPTDIR source=support.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/support.sh"
command -v ch-run >/dev/null || skip "no ch-run (Debian: charliecloud-runtime)"
# shellcheck source-path=SCRIPTDIR source=container_jobs.sh
source "$here/container_jobs.sh"

# submit_contained [OPTIONS...]: sets `id`.
submit_contained() {
  local words
  words=$(cd "$work" && "$programs/submit_job" contained.yaml --site site.profile "$@" 2>&1) || fail "refused: $words"
  id=$(sed -n 's/^Submitted batch job //p' <<<"$words")
}

mkdir "$work/tools"
real_srun=$(command -v srun)
apptainer() {
  cat >"$work/tools/apptainer" <<'BASH'
#!/usr/bin/env bash
[ "$1" = exec ] || exit 1
shift
options=()
while [[ $1 == -* ]]; do
  case $1 in
    --bind=*) options+=("$1"); mkdir -p "$IMAGE${1#*:}" ;;
    --pwd=*) options+=("--cd=${1#*=}") ;;
    *) exit 1 ;;
  esac
  shift
done
exec ch-run "${options[@]}" "$1" -- "${@:2}"
BASH
  chmod +x "$work/tools/apptainer"
  make_container_job apptainer
  IMAGE=$work/image PATH=$work/tools:$PATH submit_contained
  check_container_job
}

# The plugin of srun mounts what --container-mounts names, and starts each task in the image.
pyxis() {
  cat >"$work/tools/srun" <<BASH
#!/usr/bin/env bash
[ "\$*" != --help ] || { echo '    --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'; exit; }
options=() contained=() mounts=()
while [[ \${1:-} == -* ]]; do
  case \$1 in
    --container-image=*) image=\${1#*=} ;;
    --container-mounts=*) IFS=, read -r -a mounts <<<"\${1#*=}" ;;
    --container-workdir=*) contained+=("--cd=\${1#*=}") ;;
    *) options+=("\$1") ;;
  esac
  shift
done
[ -n "\${image:-}" ] || exec '$real_srun' "\${options[@]}" "\$@"
for mount in "\${mounts[@]}"; do
  mkdir -p "\$image\${mount#*:}"
  contained+=("--bind=\$mount")
done
exec '$real_srun' "\${options[@]}" env USER=root ch-run "\${contained[@]}" "\$image" -- "\$@"
BASH
  chmod +x "$work/tools/srun"
  make_container_job pyxis
  PATH=$work/tools:$PATH submit_contained
  check_container_job
  local words
  words=$(cd "$work" && "$programs/submit_job" contained.yaml --site site.profile 2>&1) && fail "a Slurm without pyxis is not told"
  grep -qF -- "--container-image" <<<"$words" || fail "the missing plugin is not named: $words"
}

# Four ranks on two nodes, each in a container of its own, are one world.
world() {
  local libraries
  libraries=$(dirname "$(ldd "$programs/train_cifar" | sed -n 's/.*libmpi.so[^ ]* => \([^ ]*\).*/\1/p')")
  "$programs/make_shards" synthetic --samples 600 --output "$work/data" >"$work/make_shards.out" 2>&1 || fail make_shards
  "$here/small_image.sh" "$work/mpi_image" bash sh "$programs/train_cifar" "$libraries/openmpi" "$libraries/pmix2" \
    /usr/share/openmpi
  make_container_job charliecloud
  sed -i "s|=$work/image|=$work/mpi_image|" "$work/site.profile"
  cat >"$work/contained.yaml" <<'YAML'
protocolVersion: 2
name: contained
type: job
prerequisites: [{type: dockerimage, name: docker_image_0, uri: "tiny/image:1.0"}]
taskRoles:
  worker:
    instances: 4
    dockerImage: docker_image_0
    resourcePerInstance: {cpu: 1, memoryMB: 300}
    commands:
      - '[ ! -e /usr/bin/env ] && train_cifar --data data --model lenet --epochs 1 --global-batch 60 --threads 1 --output runs/world'
extras: {lockstep: {world: [worker]}}
YAML
  submit_contained -- --nodes=2 --ntasks-per-node=2
  wait_for_end
  cp "$work/slurm-$id.out" "$work/world.out"
  expect "JobState=COMPLETED"
  grep -q '"ranks": 4,' "$work/runs/world/summary.json" || fail "the ranks in containers were no world"
}

# The node lacks the program, or the image.
missing() {
  make_container_job charliecloud
  sed -i "s|=$work/image|=$work/no_image|" "$work/site.profile"
  submit_contained
  wait_for_end
  cp "$work/slurm-$id.out" "$work/missing.out"
  expect "ExitCode=2:0"
  expect_log missing "the image '$work/no_image' does not exist on n1."
  make_container_job apptainer
  rm "$work/tools/apptainer"
  submit_contained
  wait_for_end
  cp "$work/slurm-$id.out" "$work/missing.out"
  expect "ExitCode=2:0"
  expect_log missing "cannot start 'apptainer' of role 'worker'"
}

run_scenarios apptainer pyxis world missing
