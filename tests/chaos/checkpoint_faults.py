"""Checkpoints that are damaged in each of their parts, cut, emptied, or half written."""
import hashlib
import random

from ground import Fault, Lost, flip_byte

WINDOW = 64


def is_data(window):
    """Weights, not text and not filling."""
    return len(set(window)) > 40 and any(byte > 127 for byte in window)


def first_of(words):
    return lambda image, _: image.index(words)


def in_state(image, _):
    return image.index(b'"tested_step"')


def header(*_):
    return random.randrange(0, 8)


def weights(image, model):
    """model.h5 of the same step has the same weights: what both files have."""
    for start in range(0, len(model) - WINDOW, WINDOW):
        if is_data(model[start : start + WINDOW]) and model[start : start + WINDOW] in image:
            return image.index(model[start : start + WINDOW])
    raise Lost("model.h5 has other weights than the last checkpoint")


def velocity(image, model):
    for start in range(len(image) - WINDOW, 0, -WINDOW):
        if is_data(image[start : start + WINDOW]) and image[start : start + WINDOW] not in model:
            return start
    raise Lost("no velocity found in the checkpoint")


def anywhere(image, _):
    return random.randrange(0, len(image))


def flip(place):
    def damage(file, model):
        offset = place(file.read_bytes(), model)
        flip_byte(file, offset)
        return f"byte {offset}"

    return damage


def cut(file, _):
    length = random.randrange(1, file.stat().st_size)
    with open(file, "r+b") as handle:
        handle.truncate(length)
    return f"{length} bytes left"


def empty(file, _):
    file.write_bytes(b"")
    return "no byte left"


def swap_for_text(file, _):
    file.write_text("not a checkpoint\n")
    return "another file"


def damage_newest(damage):
    def inject(case):
        training = case.finished_training()
        newest = max(training.checkpoints().items())[1]
        case.where = f"newest, {damage(newest, (training.output / 'model.h5').read_bytes())}"
        case.expect_to_go_on(training)
        case.expect_words(training, f"'.*{newest.name}' .*")
        return "named, the one before was used"

    return inject


def damage_anywhere(case):
    """Between its objects an HDF5 file has bytes that mean nothing."""
    training = case.finished_training()
    newest = max(training.checkpoints().items())[1]
    case.where = f"newest, {flip(anywhere)(newest, b'')}"
    case.expect_to_go_on(training)
    was_named = f"{newest.name}' is " in training.words()
    return "named, the one before was used" if was_named else "a byte without meaning: it was used"


def damage_many(case):
    """The newest but one is whole: what is newer is named."""
    training = case.finished_training()
    damaged = [file for _, file in sorted(training.checkpoints().items())][-2:]
    for file in damaged:
        flip(in_state)(file, b"")
    case.where = "the two newest"
    case.expect_to_go_on(training)
    for file in damaged:
        case.expect_words(training, f"{file.name}' ")
    return "both named, the one before was used"


def digests(training):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in training.checkpoints().values()}


def damage_all(case):
    training = case.finished_training()
    files = training.checkpoints().values()
    for file in files:
        flip(in_state)(file, b"")
    case.where = f"all {len(files)}"
    before = digests(training)
    training.run()
    said = case.expect_report(training, 65, "checkpoints")
    case.expect(digests(training) == before, "checkpoints were overwritten")
    return said


def leave_partial(keep):
    def inject(case):
        training = case.finished_training()
        partial = training.output / "checkpoints" / ".step-000000000300.h5.00000000004711ab.lockstep-partial"
        files = [file for _, file in sorted(training.checkpoints().items())]
        partial.write_bytes(files[-1].read_bytes()[:1000])
        # The newest, too: a training that is done leaves its folder as it is.
        for file in files[-1:] if keep else files:
            file.unlink()
        case.where = "beside them" if keep else "alone"
        case.expect_to_go_on(training)
        case.expect(not partial.exists(), "it is still there")
        return case.expect_words(training, "'.*lockstep-partial'.*")

    return inject


NAMED = "named, the one before used"
FAULTS = [
    Fault("damage a checkpoint's header", NAMED, damage_newest(flip(header))),
    Fault("damage a checkpoint's attributes", NAMED, damage_newest(flip(first_of(b"checkpoint_format")))),
    Fault("damage a checkpoint's hash", NAMED, damage_newest(flip(first_of(b"hash\0")))),
    Fault("damage a checkpoint's state", NAMED, damage_newest(flip(in_state))),
    Fault("damage a checkpoint's weights", NAMED, damage_newest(flip(weights)), quick=True),
    Fault("damage a checkpoint's velocity", NAMED, damage_newest(flip(velocity))),
    *[Fault(f"damage a checkpoint anywhere, {number}", f"{NAMED}, or harmless", damage_anywhere) for number in range(1, 6)],
    Fault("cut a checkpoint", NAMED, damage_newest(cut)),
    Fault("empty a checkpoint", NAMED, damage_newest(empty)),
    Fault("put another file in its place", NAMED, damage_newest(swap_for_text)),
    Fault("damage the two newest checkpoints", NAMED, damage_many),
    Fault("damage all checkpoints", "65, nothing overwritten", damage_all, quick=True),
    Fault("leave a half-written checkpoint", "named and removed", leave_partial(keep=True)),
    Fault("leave nothing but a half-written one", "named and removed; starts from scratch", leave_partial(keep=False)),
]
