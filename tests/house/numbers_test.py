#!/usr/bin/env python3
"""Text becomes a number in one place: numbers_test.py ROOT

Sources of lib/, apps/ and bench/ call lib/base/text/number.hpp instead of the C and C++ libraries' conversions, each of
which takes something that people do not mean (nan, 010 for eight, -1 for 2^64 - 1, the number in front of a typing
mistake), and no option of theirs is converted or checked by CLI11. tests/end_to_end/option_values_test.py asks the
programs themselves.
"""
import pathlib
import re
import sys

CONVERSION = re.compile(r"\b(?:sto(?:i|l|ll|ul|ull|f|d|ld)|ato(?:i|l|ll|f)|strto(?:l|ll|ul|ull|imax|umax|f|d|ld)|v?s?scanf"
                        r"|from_chars|lexical_cast)\s*\(")
BY_CLI11 = re.compile(r"\bCLI::(?:Range|Bound|Number|PositiveNumber|NonNegativeNumber|TypeValidator|CheckedTransformer"
                      r"|Transformer|AsNumberWithUnit|AsSizeValue)\b"
                      r"|add_option_function<(?!std::string>|std::vector<std::string>>)")
# Numbers that no people write, and why they are read as they are.
OTHERS = {
    "lib/base/text/number.cpp": "the place",
    "lib/device/cuda/conv/engine_choice.cpp": "a line of a plan, which takes one number after another off its front",
    "lib/files/checkpoint/checkpoint_folder.cpp": "names of our own files: exactly twelve digits",
    "lib/runtime/link/node_link.cpp": "from our own ranks",
    "bench/machine/process_facts.hpp": "from /proc",
}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def faults_of(name, text):
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if name not in OTHERS and CONVERSION.search(line):
            yield f"{name}:{number}: converts text to a number by itself; use base/text/number.hpp"
        if BY_CLI11.search(line):
            yield f"{name}:{number}: CLI11 converts or checks a number; use launch/number_option.hpp"


def main(root):
    root = pathlib.Path(root).resolve()
    files = sorted(path for folder in ("lib", "apps", "bench") for path in (root / folder).rglob("*")
                   if path.suffix in {".cpp", ".hpp", ".cu", ".inl"})
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in files}
    faults = [fault for name, text in texts.items() for fault in faults_of(name, text)]
    faults += [f"{name}: is excepted and converts nothing" for name in OTHERS
               if not CONVERSION.search(without_comments(texts.get(name, "")))]
    print("\n".join(faults) or f"{len(texts)} files are in order")
    return 1 if faults or not texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
