#!/usr/bin/env python3
"""Text becomes a number in one place: numbers_test.py ROOT

Sources of lib/, apps/ and bench/ call lib/base/text/number.hpp instead of the conversions of C and C++, each of which
accepts something that people do not mean: nan, 010 for eight, -1 for 2^64 - 1, the number in front of a typing error. A
marker above a call says why it may (`// careful-number: reason`). CLI11 converts and checks no option. The programs
themselves are tested by tests/end_to_end/option_values_test.py.
"""
import pathlib
import re
import sys

from sources_test import unmarked_calls

CONVERSION = re.compile(r"\b(?:sto(?:i|l|ll|ul|ull|f|d|ld)|ato(?:i|l|ll|f)|strto(?:l|ll|ul|ull|imax|umax|f|d|ld)|v?s?scanf"
                        r"|from_chars|lexical_cast)\s*\(")
BY_CLI11 = re.compile(r"\bCLI::(?:Range|Bound|Number|PositiveNumber|NonNegativeNumber|TypeValidator|CheckedTransformer"
                      r"|Transformer|AsNumberWithUnit|AsSizeValue)\b"
                      r"|add_option_function<(?!std::string>|std::vector<std::string>>)")
def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def faults_of(name, text):
    yield from unmarked_calls(name, text, {"careful-number": CONVERSION})
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if BY_CLI11.search(line):
            yield f"{name}:{number}: CLI11 converts or checks a number; use launch/number_option.hpp"


def main(root):
    root = pathlib.Path(root).resolve()
    files = sorted(path for folder in ("lib", "apps", "bench") for path in (root / folder).rglob("*")
                   if path.suffix in {".cpp", ".hpp", ".cu", ".inl"})
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in files}
    faults = [fault for name, text in texts.items() for fault in faults_of(name, text)]
    print("\n".join(faults) or f"{len(texts)} files are in order")
    return 1 if faults or not texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
