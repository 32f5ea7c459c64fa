#!/usr/bin/env python3
"""Each type of lib/ has a name of its own: type_names_test.py ROOT

Two types of one name in one namespace break C++'s one definition rule: each file compiles, and a program that holds both
may take the functions of one for those of the other. Of types in headers, which others see; those of a source belong
into an unnamed namespace.
"""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"^namespace ([\w:]*) ?\{")
NAMESPACE_END = re.compile(r"^\}  // namespace( (\S+))?$")
TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum) (?:alignas\([^)]*\) )?(\w+)(?: final)?\b(?=[^;]*\{)")
ALIAS = re.compile(r"^using (\w+) =")


def types_of(header):
    spaces = []
    for line in header.read_text().split("\n"):
        if space := NAMESPACE.match(line):
            spaces.append(space[1])
        elif NAMESPACE_END.match(line) and spaces:
            spaces.pop()
        elif named := TYPE.match(line) or ALIAS.match(line):
            yield "::".join([*spaces, named[1]])


def main(root):
    lib = pathlib.Path(root) / "lib"
    places = collections.defaultdict(set)
    for header in sorted(lib.rglob("*.hpp")):
        for name in types_of(header):
            places[name].add(f"{header.relative_to(root)}")
    twice = [f"{name} is in {', '.join(sorted(headers))}" for name, headers in places.items() if len(headers) > 1]
    print("\n".join(twice) or f"{len(places)} names of types, each once")
    return 1 if twice or not places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
