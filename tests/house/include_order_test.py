#!/usr/bin/env python3
"""Each folder of lib/ includes only itself and the folders above it in lib/CMakeLists.txt: include_order_test.py ROOT"""
import pathlib
import re
import sys


def main(root):
    lib = pathlib.Path(root) / "lib"
    order = re.findall(r"^add_subdirectory\((\w+)\)", (lib / "CMakeLists.txt").read_text(), re.MULTILINE)
    wrong = [f"lib/{folder.name} is not in lib/CMakeLists.txt" for folder in lib.iterdir()
             if folder.is_dir() and folder.name not in [*order, "cmake"]]
    for place, folder in enumerate(order):
        for source in sorted((lib / folder).rglob("*.[ch]pp")):
            for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"', source.read_text(), re.MULTILINE):
                if included.split("/")[0] not in order[:place + 1]:
                    wrong.append(f"{source.relative_to(root)} includes {included}, which is not above {folder}")
    print("\n".join(wrong) or f"{len(order)} folders in order")
    return 1 if wrong or not order else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
