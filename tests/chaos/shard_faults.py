"""Shards that are damaged, cut or removed: before a training, and under it."""
import random
import re
import shutil

from ground import STEPS_PER_EPOCH, Fault, flip_byte

STEPS_READ_AHEAD = 5
PAGE = 4096


def some_shard(case, data):
    shard = random.choice(sorted((data / "train").glob("*.h5")))
    case.where = shard.name
    return shard


def flip_sample(shard):
    """In the samples, after HDF5's own structures: the first page of the file."""
    flip_byte(shard, random.randrange(PAGE, shard.stat().st_size))


def flip_header(shard):
    flip_byte(shard, random.randrange(0, 1024))


def cut(file):
    """To whole pages: of a mapped file whose last page is cut, the rest of that page reads as zeros."""
    with open(file, "r+b") as handle:
        handle.truncate(random.randrange(0, file.stat().st_size) // PAGE * PAGE)


def remove(shard):
    shard.unlink()


def mend(case, shard):
    shutil.copy(case.ground.data / "train" / shard.name, shard)


def before(damage):
    def inject(case):
        data = case.copy_of_data()
        shard = some_shard(case, data)
        damage(shard)
        training = case.training(data=data)
        code = case.code_of(training, training.run())
        case.expect(code != 0, "nobody noticed")
        said = case.expect_report(training, 65, shard.name)
        mend(case, shard)
        case.expect_to_go_on(training)
        return said

    return inject


def go_on_from_before(case, training, data):
    """What was learned since an epoch that the program names may be wrong; so it goes on from before that epoch."""
    epoch = int(re.search("since epoch ([0-9]+) first read it", training.failure()["sentence"]).group(1))
    whole = [file for step, file in training.checkpoints().items() if step <= (epoch - 1) * STEPS_PER_EPOCH]
    again = case.training("--keep-latest", 4, "--resume", max(whole), data=data)
    case.expect_to_go_on(again)


def same_command(case, training, _):
    case.expect_to_go_on(training)


def during(damage, go_on):
    def inject(case):
        data = case.copy_of_data()
        shard = some_shard(case, data)
        training = case.training("--keep-latest", 4, data=data)
        steps = []

        def do_damage(it):
            damage(shard)
            steps.append(it.steps_reported())

        _, code = case.disturb(training, do_damage)
        case.expect(code != 0, "nobody noticed")
        said = case.expect_report(training, 65, shard.name)
        found, latest = training.failure()["step"], steps[0] + STEPS_READ_AHEAD
        case.expect(found // STEPS_PER_EPOCH <= latest // STEPS_PER_EPOCH + 1, f"only found at step {found}")
        mend(case, shard)
        go_on(case, training, data)
        return f"step {found}, {said}"

    return inject


def cut_manifest(case):
    data = case.copy_of_data()
    manifest = data / "train" / "manifest.json"
    case.where = manifest.name
    cut(manifest)
    training = case.training(data=data)
    training.run()
    said = case.expect_report(training, 65, manifest.name)
    mend(case, manifest)
    case.expect_to_go_on(training)
    return said


NAMED = "named, 65; mended, it goes on"
IN_TIME = "named by the next epoch, 65; mended, it goes on"
FAULTS = [
    Fault("damage a shard's samples", NAMED, before(flip_sample)),
    Fault("damage a shard's header", NAMED, before(flip_header)),
    Fault("cut a shard", NAMED, before(cut)),
    Fault("remove a shard", NAMED, before(remove)),
    Fault("cut the manifest", NAMED, cut_manifest),
    Fault("damage a shard during the training", IN_TIME, during(flip_sample, go_on_from_before), quick=True),
    Fault("cut a shard during the training", IN_TIME, during(cut, same_command)),
    Fault("remove a shard during the training", IN_TIME, during(remove, same_command)),
]
