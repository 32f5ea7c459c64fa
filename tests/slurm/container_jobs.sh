# A job file whose role runs in a container of this machine's own files. Sourced by tests that have a cluster.
# shellcheck shell=bash disable=SC2154

# make_container_job PROGRAM: writes contained.yaml with site.profile, and linked.yaml with nodes.profile.
make_container_job() {
  [ -d "$work/image" ] || "$here/small_image.sh" "$work/image" bash sh sleep cat printenv touch
  mkdir -p "$work/share"
  printf greeting >"$work/share/file"
  echo "storage.confignfs=$work/share" >"$work/nodes.profile"
  { cat "$work/nodes.profile"; echo "container=$1"; echo "image.tiny/image:1.0=$work/image"; } >"$work/site.profile"
  rm -f "$work"/{told,variables,ready,signalled}
  cat >"$work/contained.yaml" <<'YAML'
protocolVersion: 2
name: contained
type: job
prerequisites: [{type: dockerimage, name: docker_image_0, uri: "tiny/image:1.0"}]
taskRoles:
  worker:
    dockerImage: docker_image_0
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands:
      - '[ ! -e /usr/bin/env ] || exit 9'
      - cat /mnt/confignfs/file >told
      - printenv PAI_TASK_INDEX LOCKSTEP_ROLE SLURM_PROCID LOCKSTEP_STORAGE_confignfs >variables
      - type run_roles || exit 9
      - exec sh -c 'trap "touch signalled; exit 3" USR1; touch ready; while :; do sleep 0.1; done'
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: teamwise_storage
      parameters: {storageConfigNames: [confignfs]}
YAML
  cat >"$work/linked.yaml" <<'YAML'
protocolVersion: 2
name: linked
type: job
taskRoles:
  worker:
    resourcePerInstance: {cpu: 1, memoryMB: 100}
    commands: ['echo "$(cat storage/confignfs/file) $(cat "$LOCKSTEP_STORAGE_confignfs/file")" >linked']
extras: {storages: [{name: confignfs}]}
YAML
}

# Stops the job `id` of contained.yaml, and checks what it found.
check_container_job() {
  wait_for 60 test -e "$work/ready" || { cp "$work/slurm-$id.out" "$work/contained.out"; fail "no command runs in the container"; }
  scancel --batch --signal=USR1 "$id"
  wait_for_end
  cp "$work/slurm-$id.out" "$work/contained.out"
  expect "ExitCode=3:0"
  [ -e "$work/signalled" ] || fail "the signal did not reach the command in the container"
  [ "$(<"$work/told")" = greeting ] || fail "the storage is not mounted in the container"
  [ "$(paste -sd ' ' "$work/variables")" = "0 worker 0 /mnt/confignfs" ] ||
    fail "the container lacks variables: $(<"$work/variables")"
}
