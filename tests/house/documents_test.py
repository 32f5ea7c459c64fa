#!/usr/bin/env python3
"""What documents name is there: documents_test.py ROOT

A link leads to a file or a folder, and to a heading of it. A path in code (`lib/nn/layer.hpp`, `tests/run.sh`) exists, as it
stands, as a header or a source without its ending, or as a pattern; so does a source that is named by the end of its path
(`nn/layer.hpp`). An option (`--threads`) stands in some source. README.md stays a page, and lines of prose stay short.
"""
import pathlib
import re
import sys

from sources_test import tracked_files

MOST_LINES_OF_README = 90
MOST_LETTERS_OF_LINE = 120
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# What data holds beside its own files is made by programs.
PATH = re.compile(r"(?<![\w./-])(?:apps|bench|lib|slurm|tests)/[\w./*-]+")
SOURCE = re.compile(r"(?<![\w./*<$-])[\w./]*\w\.(?:hpp|cpp|cu|inl|py|sh)(?![\w.])")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])")
# A word in quotes may be an option: the table of fields has them so.
OPTION_OF_SOURCE = re.compile(r"(?:--|\")([a-z][a-z0-9-]*[a-z0-9])")
OPTIONS_OF_OTHERS = {"cuda-graph-trace", "mca", "multi-prog"}
# Other systems' words, beside ours.
FIRST_CELL_OF_OTHERS = ("apps/coming_from.md", re.compile(r"^\|[^|]*\|", re.MULTILINE))
ENDINGS = ("", ".hpp", ".cpp", ".in", "*")


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.lstrip("#").strip().lower()).replace(" ", "-")


def links_of(path, text):
    for target in LINK.findall(text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists():
            yield f"leads to '{target}', which is not there"
        elif anchor and anchor not in [anchor_of(line) for line in there.read_text().split("\n") if line[:1] == "#"]:
            yield f"leads to '{target}', a heading that is not there"


def code_of(text):
    """Spans, indented lines and fenced blocks without a language: others may name files of the reader."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    fenced = [block for language, block in blocks if not language]
    return re.findall(r"(?<!`)`([^`\n]+)`", text) + re.findall(r"^    (.+)$", text, re.MULTILINE) + fenced


def paths_of(root, text):
    for span in code_of(text):
        for name in PATH.findall(span):
            if not any(next(root.glob(name.rstrip("./") + ending), None) for ending in ENDINGS):
                yield f"names '{name}', which is not there"


def sources_of(names, text):
    for span in code_of(text):
        for name in SOURCE.findall(span):
            if not any(f"/{there}".endswith(f"/{name}") for there in names):
                yield f"names '{name}', which is the end of no path"


def options_of(known, text):
    for span in code_of(text):
        for option in OPTION.findall(span):
            if option not in known | OPTIONS_OF_OTHERS:
                yield f"names '--{option}', which no source does"


def long_lines_of(text):
    """Tables and code may be as wide as they need."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MOST_LETTERS_OF_LINE and not line.startswith(("|", "    ")):
            yield f"line {number} has {len(line)} letters, more than {MOST_LETTERS_OF_LINE}"


def main(root):
    root = pathlib.Path(root).resolve()
    tracked = tracked_files(root)
    names = [path.relative_to(root).as_posix().removesuffix(".in") for path in tracked]
    documents = sorted(path for path in tracked if path.suffix == ".md")
    options = {option for path in tracked if path.suffix != ".md"
               for option in OPTION_OF_SOURCE.findall(path.read_text(errors="ignore"))}
    faults = []
    for path in documents:
        text = path.read_text()
        ours = FIRST_CELL_OF_OTHERS[1].sub("|", text) if path == root / FIRST_CELL_OF_OTHERS[0] else text
        faults += [f"{path.relative_to(root)} {fault}" for fault in
                   [*links_of(path, text), *paths_of(root, text), *sources_of(names, ours), *options_of(options, ours),
                    *long_lines_of(text)]]
    lines = (root / "README.md").read_text().count("\n")
    if lines > MOST_LINES_OF_README:
        faults.append(f"README.md has {lines} lines, more than {MOST_LINES_OF_README}: what is depth has a page of its own")
    print("\n".join(faults) or f"{len(documents)} documents are in order")
    return 1 if faults or not documents else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
