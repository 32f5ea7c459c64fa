#!/usr/bin/env python3
"""Counts how a training reads shards of photographs from a file system far away: read_requests_test.py PROGRAMS [--show]

Of one epoch from a cold start, in each order of samples, and of an evaluation: the requests that reach the file system,
their mean size, and what share of the data they come to. Fails where requests are small, or where they read far more than
there is. --show: says all and fails for nothing, for a comparison of two builds.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SUPPORT = pathlib.Path(__file__).resolve().parent.parent / "support"
PYTHON = "/usr/bin/python3"  # Debian's, whose packages these are
PICTURES = 480
DELAY_MS = "10"
LEAST_MEAN_BYTES = 96 << 10
MOST_SHARE = 1.6

MAKE_PICTURES = """
import pathlib, sys
import numpy, PIL.Image
random = numpy.random.default_rng(1)
for index in range(int(sys.argv[2])):
    folder = pathlib.Path(sys.argv[1], f"class-{index % 4}")
    folder.mkdir(parents=True, exist_ok=True)
    coarse = PIL.Image.fromarray(random.integers(0, 256, (94, 125, 3), numpy.uint8))
    coarse.resize((500, 375), PIL.Image.BILINEAR).save(folder / f"{index}.jpg", quality=97)
"""


def can_mount():
    has_package = subprocess.run([PYTHON, "-c", "import fusepy, numpy, PIL"], capture_output=True, check=False).returncode == 0
    return has_package and pathlib.Path("/dev/fuse").exists() and shutil.which("fusermount3") is not None


def counted(folder, mount_point, command):
    """Runs `command` while `folder` shows at `mount_point`. Returns what was counted, and the seconds it took."""
    mount_point.mkdir(exist_ok=True)
    server = subprocess.Popen([PYTHON, SUPPORT / "counting_file_system.py", folder, mount_point, DELAY_MS],
                              stdout=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 20
        while not mount_point.is_mount():
            if time.monotonic() > deadline or server.poll() is not None:
                sys.exit("the counting file system does not come up")
            time.sleep(0.05)
        begun = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        seconds = time.monotonic() - begun
        if result.returncode != 0:
            sys.exit(f"{command}: {result.stdout}{result.stderr}")
    finally:
        subprocess.run(["fusermount3", "-u", mount_point], check=False)
    return json.loads(server.communicate(timeout=20)[0]), seconds


def main(programs, shows_only):
    if not can_mount():
        print("no FUSE here (python3-fusepy, fuse3, /dev/fuse): nothing was counted")
        return 77
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([PYTHON, "-c", MAKE_PICTURES, folder / "pictures", str(PICTURES)], check=True)
        data = folder / "data"
        subprocess.run([programs / "make_shards", "images", "--source", folder / "pictures", "--output", data],
                       check=True, stdout=subprocess.DEVNULL)
        seen = folder / "seen"
        train = [programs / "train_imagenet", "--data", seen, "--model", "convnet", "--image-size", "32", "--epochs", "1",
                 "--global-batch", "24", "--threads", "1", "--loader-threads", "2", "--plan-folder", folder / "plans"]
        cases = {"full shuffle": train,
                 "block shuffle": [*train, "--shuffle", "blocks", "--shuffle-window", "8"]}
        subprocess.run([programs / "train_imagenet", "--data", data, *train[3:], "--output", folder / "run"], check=True,
                       stdout=subprocess.DEVNULL)
        cases["evaluation of the training split"] = [programs / "evaluate", "--model-file", folder / "run/model.h5", "--data",
                                                     seen, "--split", "train", "--loader-threads", "2"]
        for words, command in cases.items():
            splits = ["train"] if "evaluation" in words else ["train", "test"]
            size = sum(file.stat().st_size for split in splits for file in (data / split).glob("*.h5"))
            found, seconds = counted(data, seen, command)
            mean = found["bytes"] / found["requests"]
            print(f"{words}: {found['requests']} requests of {mean / 1024:.0f} KiB on average, "
                  f"{found['at_once']:.1f} at once, {found['bytes'] / size:.2f} "
                  f"times the {size / 1e6:.1f} MB there are, {seconds:.1f} s", flush=True)
            if mean < LEAST_MEAN_BYTES or found["bytes"] > MOST_SHARE * size:
                faults.append(words)
    if faults and not shows_only:
        sys.exit(f"small requests, or far too many: {', '.join(faults)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--show" in sys.argv))
