#!/usr/bin/env python3
"""Carries a folder of pictures in small archives: carried_data.py pack FOLDER PREFIX MIB | unpack PREFIX FOLDER

pack writes PREFIX.1.part, PREFIX.2.part, ... of at most MIB each, and PREFIX.sums with their SHA-256 sums. unpack checks
the parts and, once all are there, writes FOLDER as a whole. It prints how many are there; exit code 3: not all.

The parts are slices of an .xz file with a tar file. Pictures of bytes in the order red, green, blue compress better in
three planes, of which two are differences to green; xz then takes the difference to the neighbors on the left and above
(rows of 32 pixels). CIFAR-10 takes 98 MiB instead of 134.
"""

import hashlib
import io
import lzma
import pathlib
import shutil
import sys
import tarfile

FILTERS = [{"id": lzma.FILTER_DELTA, "dist": 1}, {"id": lzma.FILTER_DELTA, "dist": 32},
           {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0, "mf": lzma.MF_HC3, "nice_len": 12, "depth": 1}]
PHASE = "LOCKSTEP.phase"  # of a file in the archive: its bytes before the first red one, 0 to 2
SAMPLE = 3 << 16


def subtract(left, right):
    """Byte by byte, modulo 256: all bytes in one addition, whose carries are kept within each byte."""
    top = int.from_bytes(b"\x80" * len(left), "little")
    a, b = int.from_bytes(left, "little"), int.from_bytes(right, "little")
    return (((a | top) - (b & ~top)) ^ (a ^ ~b) & top).to_bytes(len(left), "little")


def add(left, right):
    top = int.from_bytes(b"\x80" * len(left), "little")
    a, b = int.from_bytes(left, "little"), int.from_bytes(right, "little")
    return (((a & ~top) + (b & ~top)) ^ (a ^ b) & top).to_bytes(len(left), "little")


def bounds(size, phase):
    """Where the whole pixels of a file begin and end."""
    return phase, size - (size - phase) % 3


def to_planes(content, phase):
    first, end = bounds(len(content), phase)
    red, green, blue = (content[first + color:end:3] for color in range(3))
    return content[:first] + subtract(red, green) + green + subtract(blue, green) + content[end:]


def from_planes(planes, phase):
    first, end = bounds(len(planes), phase)
    count = (end - first) // 3
    red, green, blue = (planes[first + color * count:first + (color + 1) * count] for color in range(3))
    content = bytearray(planes)
    content[first:end:3], content[first + 1:end:3], content[first + 2:end:3] = add(red, green), green, add(blue, green)
    return bytes(content)


def best_phase(content):
    middle = max(0, len(content) - SAMPLE) // 6 * 3
    sample = content[middle:middle + SAMPLE]
    sizes = [len(lzma.compress(to_planes(sample, phase), filters=FILTERS)) if len(sample) > 2 else 0 for phase in range(3)]
    return sizes.index(min(sizes))


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def part(prefix, number):
    return pathlib.Path(f"{prefix}.{number}.part")


def pack(folder, prefix, mib):
    files = sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    if not files:
        sys.exit(f"carried_data.py: '{folder}' has no files. Name the folder that make_shards has written.")
    whole = io.BytesIO()
    with lzma.open(whole, "wb", filters=FILTERS) as xz, tarfile.open(fileobj=xz, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in files:
            content = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            phase = best_phase(content)
            member.size, member.pax_headers = len(content), {PHASE: str(phase)}
            tar.addfile(member, io.BytesIO(to_planes(content, phase)))
    for old in pathlib.Path(prefix).parent.glob(f"{pathlib.Path(prefix).name}.*.part"):
        old.unlink()
    content, limit = whole.getvalue(), int(mib) << 20
    parts = [part(prefix, 1 + start // limit) for start in range(0, len(content), limit)]
    for number, path in enumerate(parts):
        path.write_bytes(content[number * limit:(number + 1) * limit])
    pathlib.Path(f"{prefix}.sums").write_text("".join(f"{sum_of(path)}  {path.name}\n" for path in parts))
    print("\n".join(f"{path}: {path.stat().st_size / (1 << 20):.1f} MiB" for path in parts))


def unpack(prefix, folder):
    listed = pathlib.Path(f"{prefix}.sums")
    if not listed.exists():
        print(f"no archive of CIFAR-10 is here ('{listed}' is missing)")
        return 3
    sums = [line.split()[0] for line in listed.read_text().splitlines()]
    marker = pathlib.Path(folder) / ".sums"
    if marker.exists() and marker.read_text() == listed.read_text():
        return 0
    found = [(number, path) for number, path in ((n, part(prefix, n)) for n in range(1, len(sums) + 1)) if path.exists()]
    for number, path in found:
        if sum_of(path) != sums[number - 1]:
            print(f"'{path}' does not match its sum in '{listed}'. Carry both again.")
            return 1
    if len(found) < len(sums):
        print(f"{len(found)} of {len(sums)} archives of CIFAR-10 are here")
        return 3
    target = pathlib.Path(f"{folder}.partial")
    shutil.rmtree(target, ignore_errors=True)
    content = io.BytesIO(b"".join(path.read_bytes() for _, path in found))
    with lzma.open(content) as xz, tarfile.open(fileobj=xz, mode="r|") as tar:
        for member in tar:
            path = target / member.name
            if not member.isfile() or not path.resolve().is_relative_to(target.resolve()):
                print(f"'{prefix}.*.part' have a file '{member.name}', which does not lie in a folder of shards.")
                return 1
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(from_planes(tar.extractfile(member).read(), int(member.pax_headers[PHASE])))
    shutil.rmtree(folder, ignore_errors=True)
    target.rename(folder)
    marker.write_text(listed.read_text())
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "pack":
        pack(*sys.argv[2:])
    else:
        sys.exit(unpack(*sys.argv[2:]))
