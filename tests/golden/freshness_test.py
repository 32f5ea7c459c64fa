"""The committed golden values are what make_golden.py and make_pictures.py write. Exit code 77 (skipped) where PyTorch or
Pillow is not installed."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy
    import torch  # noqa: F401: make_golden.py needs it
    import torchvision  # noqa: F401: likewise
    from make_pictures import pixels
except ImportError as error:
    print(f"skipped: {error}. Debian: apt install python3-torch python3-torchvision python3-h5py python3-pil")
    sys.exit(77)

HERE = pathlib.Path(__file__).parent
FILES = ["lenet.h5", "resnet20.h5", "resnet50_narrow.h5", "resnet50.h5", "resnet50-blur.h5", "torchvision.h5", "optimizers.h5", "losses.h5"]


def datasets(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def compare_values(committed, written):
    """Returns what differs. float64 sums in another order, and one unit of what was rounded, may."""
    with h5py.File(committed) as old_file, h5py.File(written) as new_file:
        old, new = datasets(old_file), datasets(new_file)
        problems = [f"only in one of them: {name}" for name in old.keys() ^ new.keys()]
        for name in old.keys() & new.keys():
            scale = numpy.abs(old[name]).max()
            if old[name].shape != new[name].shape or numpy.abs(old[name].astype(float) - new[name]).max() > 1e-4 * scale:
                problems.append(f"differs: {name}")
        for name in (set(old_file.attrs) | set(new_file.attrs)) - {"torch", "torchvision"}:  # their versions
            value, expected = new_file.attrs.get(name), old_file.attrs.get(name)
            if value != expected and not (isinstance(value, float) and abs(value - expected) <= 1e-9):
                problems.append(f"differs: attribute {name}")
    return [f"{committed.name}: {problem}" for problem in problems]


def compare_pictures(committed, written):
    """Returns what differs. Other versions of libraries may pack a file otherwise, and decode it one level of 255 off."""
    with h5py.File(committed) as old_file, h5py.File(written) as new_file:
        old, new = datasets(old_file), datasets(new_file)
        problems = [f"only in one of them: {name}" for name in old.keys() ^ new.keys()]
        for name in old.keys() & new.keys():
            seen = [pixels(values.tobytes()) if name.endswith("/bytes") else values for values in (old[name], new[name])]
            levels = 1 if name.startswith("files/") else 0
            if seen[0].shape != seen[1].shape or numpy.abs(seen[0].astype(int) - seen[1]).max() > levels:
                problems.append(f"differs: {name}")
            for attribute in ("box", "factors"):
                if list(old_file[name].attrs.get(attribute, [])) != list(new_file[name].attrs.get(attribute, [])):
                    problems.append(f"differs: {attribute} of {name}")
    return [f"{committed.name}: {problem}" for problem in problems]


def main():
    with tempfile.TemporaryDirectory() as folder:
        problems = []
        for script in ("make_golden.py", "make_pictures.py"):
            subprocess.run([sys.executable, HERE / script, "--output", folder], check=True)
        for name in FILES:
            problems += compare_values(HERE / name, pathlib.Path(folder) / name)
        problems += compare_pictures(HERE / "pictures.h5", pathlib.Path(folder) / "pictures.h5")
    print("\n".join(problems) or "the golden values are fresh")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
