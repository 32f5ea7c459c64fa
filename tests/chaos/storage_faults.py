"""Disks that are full, read-only or gone, where checkpoints go; no shared memory.

A disk is a small file system that only the training sees: in a name space of its own, mounted by this user or by root.
Whatever happens, nothing stays mounted.
"""
import os
import shutil
import subprocess
import tempfile

from ground import Fault, Skipped, last_line

NOT_WRITTEN = r"checkpoint of step [0-9]+ .*: .*"

# $1 folder, $2 bytes of the disk, $3 a file that triggers the fault, $4 the fault, ... the command. What the disk held in
# the end is kept.
ON_A_DISK = """
set -u
folder=$1 bytes=$2 trigger=$3 fault=$4; shift 4
mkdir -p "$folder" && mount -t tmpfs -o size="$bytes",mode=1777 tmpfs "$folder" || exit 100
(
  until [ -e "$trigger" ]; do sleep 0.02; kill -0 $$ 2>/dev/null || exit; done
  case $fault in
    fill) head -c "$bytes" /dev/zero >"$folder/filling" ;;
    free) rm "$folder/filling" ;;
    "fill for a while") head -c "$bytes" /dev/zero >"$folder/filling"; sleep 0.3; rm "$folder/filling" ;;
    lock) mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder" ;;
  esac
) 2>/dev/null &
[ "$fault" = free ] && head -c $((bytes * 2 / 3)) /dev/zero >"$folder/filling"
"$@"
code=$?
kill %1 2>/dev/null
mkdir "$folder.kept" && cp -a "$folder/." "$folder.kept"
umount "$folder"; [ "$fault" = lock ] && umount "$folder"
rm -rf "$folder" && mv "$folder.kept" "$folder"
exit $code
"""


def name_space():
    """The words that start a command where it may mount. Throws Skipped where this user may not."""
    words = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        words[1:1] = ["--user", "--map-root-user"]
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", folder], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise Skipped("wants root, or name spaces that users may mount in") from None
    return words


def require_local_ranks(case):
    if case.ground.options.launcher[:1] not in ([], ["mpirun"]):
        raise Skipped("only mpirun's ranks, on this machine, see a disk of their own")


def training_on_a_disk(case, checkpoints, fault, name=""):
    """Its checkpoints lie on a disk for so many of them. `strike` lets the fault happen."""
    require_local_ranks(case)
    folder = case.ground.options.folder / f"{case.name}{name}"
    folder.mkdir()
    trigger = folder / "trigger"
    size = max(file.stat().st_size for file in case.ground.reference.checkpoints().values())
    wrapper = [*name_space(), "bash", "-c", ON_A_DISK, "disk", folder / "checkpoints", int(size * checkpoints), trigger,
               fault]
    training = case.training("--checkpoint-every", 10, name=name, wrapper=wrapper)
    return training, lambda _: trigger.touch()


def without_disk(case, training):
    """The same training where there is room."""
    return case.training("--checkpoint-every", 10, name=training.output.name.removeprefix(case.name))


def expect_no_loss(case, training, code):
    """It was trained to its end, said what was not written, and the last good checkpoint is there to go on from."""
    case.expect(code == 1, f"it ended with {code}")
    case.expect_report(training, 1, "last checkpoint")
    case.expect_right_weights(training)
    case.expect(training.checkpoints(), "the last good checkpoint is gone")
    said = case.expect_words(training, NOT_WRITTEN)
    case.expect_words(training, "[0-9]+ checkpoints were not written")
    again = without_disk(case, training)
    case.expect_to_go_on(again)
    case.expect_words(again, "resuming from")
    return said


def full_from_the_start(case):
    case.where = "checkpoints, room for one"
    training, _ = training_on_a_disk(case, 1.5, "none")
    return expect_no_loss(case, training, training.run())


def full_on_the_way(case):
    case.where = "checkpoints"
    training, fill = training_on_a_disk(case, 20, "fill")
    _, code = case.disturb(training, fill)
    return expect_no_loss(case, training, code)


def full_for_a_while(case):
    case.where = "checkpoints"
    training, free = training_on_a_disk(case, 4.5, "free")
    _, code = case.disturb(training, free)
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    case.expect(max(training.checkpoints()) == case.ground.steps, "the last checkpoint is missing")
    return case.expect_words(training, NOT_WRITTEN)


def read_only(case):
    case.where = "checkpoints"
    training, lock = training_on_a_disk(case, 20, "lock")
    _, code = case.disturb(training, lock)
    return expect_no_loss(case, training, code)


MADE_AGAIN = r"(removed|renamed) .*'.*'|'.*' .*(removed|renamed)"


def vanished(case):
    case.where = "checkpoints"
    training = case.training("--checkpoint-every", 10)
    # At once: a lock that is gone from a folder still there would be another job's doing.
    _, code = case.disturb(training, lambda it: (it.output / "checkpoints").rename(it.output / "gone"))
    return expect_made_again(case, training, code)


def output_vanished(case):
    case.where = "output"
    training = case.training("--checkpoint-every", 10)
    _, code = case.disturb(training, lambda it: it.output.rename(it.output.with_name(f"{case.name}-gone")))
    case.expect(len(training.history()) >= case.ground.steps, "lines of metrics.jsonl are missing")
    return expect_made_again(case, training, code)


def expect_made_again(case, training, code):
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    case.expect(max(training.checkpoints()) == case.ground.steps, "the last checkpoint is missing")
    return case.expect_words(training, MADE_AGAIN)


def output_full_for_a_while(case):
    """Room for the metrics alone is missing, until there is room again."""
    case.where = "output"
    require_local_ranks(case)
    folder = case.ground.options.folder / case.name
    folder.mkdir()
    output = folder / "output"
    wrapper = [*name_space(), "bash", "-c", ON_A_DISK, "disk", output, 8 << 20, output / "metrics.jsonl",
               "fill for a while"]
    training = case.training("--checkpoints", folder / "checkpoints", name="/output", wrapper=wrapper)
    code = case.code_of(training, training.run())
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    case.expect(len(training.history()) >= case.ground.steps, "lines of metrics.jsonl are missing")
    case.expect_words(training, "metrics.jsonl' is complete again")
    return case.expect_words(training, "'.*metrics.jsonl': .*")


SHARED_MEMORY = 'mount -t tmpfs -o size="$1" tmpfs /dev/shm || exit 100; shift; trigger=$1; shift; ' \
                '(until [ -e "$trigger" ]; do sleep 0.02; kill -0 $$ 2>/dev/null || exit; done; ' \
                'cat /dev/zero >/dev/shm/filling) 2>/dev/null & "$@"; code=$?; kill %1 2>/dev/null; exit $code'


def training_with_shared_memory(case, size):
    require_local_ranks(case)
    trigger = case.ground.options.folder / f"{case.name}-trigger"
    wrapper = [*name_space(), "bash", "-c", SHARED_MEMORY, "shm", size, trigger]
    return case.training(wrapper=wrapper), lambda _: trigger.touch()


def shared_memory_fills(case):
    case.where = "/dev/shm"
    training, fill = training_with_shared_memory(case, "64m")
    _, code = case.disturb(training, fill)
    case.expect(code == 0, f"it ended with {code}")
    case.expect_right_weights(training)
    return "it went on"


def no_shared_memory(case):
    """It may end, but by its own words."""
    case.where = "/dev/shm, 16 KiB"
    training, _ = training_with_shared_memory(case, "16k")
    code = case.code_of(training, training.run())
    if code == 0:  # by messages, which more than two ranks sum in another order
        by_messages = case.training("--reduce", "mpi", name="-by-messages")
        case.expect(by_messages.run() == 0, f"--reduce mpi failed: {last_line(by_messages.words())}")
        found, right = (it.summary()["weights_hash"] for it in (training, by_messages))
        case.expect(found == right, f"weights {found} instead of {right}")
        return "it needs none"
    case.expect("SIGBUS" not in training.words(), "it ended by SIGBUS")
    # Before its folder is claimed, so failure.json is not its to write.
    said = case.expect_words(training, r"[0-9]+ bytes of shared memory on a node: .* /dev/shm.*")
    case.expect_to_go_on(case.training())
    return f"code {code}, {said}"


ONE_LEFT = "told, trains on, 1, last good one stays"
FAULTS = [
    Fault("full disk from the start", ONE_LEFT, full_from_the_start, quick=True),
    Fault("full disk on the way", ONE_LEFT, full_on_the_way),
    Fault("full disk for a while", "told, trains on, 0", full_for_a_while),
    Fault("read-only disk on the way", ONE_LEFT, read_only),
    Fault("the folder of checkpoints vanishes", "told, made again, 0", vanished),
    Fault("the output folder vanishes", "told, made again, 0", output_vanished),
    Fault("the output folder is full for a while", "told, trains on, 0", output_full_for_a_while),
    Fault("shared memory fills on the way", "goes on", shared_memory_fills),
    Fault("no shared memory from the start", "goes on, or ends in its own words", no_shared_memory),
]
