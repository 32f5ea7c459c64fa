#!/usr/bin/env python3
"""Looks at sources with clang-tidy; a finding is an error: tidy.py ROOT BUILD [--seconds N] [--share K/N]

Sources whose last commit is the newest come first, and those that are not committed before them. With --seconds it
stops then, and names how many are stale: not looked at since they, their headers or the checks changed. What is clean is
noted in BUILD/tidy.json, and not looked at again as long as none of them changes.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

PROGRAM = "clang-tidy-16"  # 14 does not know std::source_location
SKIPPED = 77
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def commands_of(build):
    """Of each source that is compiled; those of joined sources from the file that joins them."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not entry["file"].endswith((".cpp", ".cxx")):
            continue  # nvcc's
        words = shlex.split(entry["command"])
        while not words[0].endswith(("c++", "g++", "clang++")):
            words.pop(0)  # a compiler cache
        for option in ("-include", "-o"):
            if option in words:
                place = words.index(option)
                del words[place:place + 2]
        words = [word for word in words if not word.startswith("--param=") and
                 word not in ("-Winvalid-pch", "-Wno-restrict", "-Werror", "-DNDEBUG", "-c")]
        file = pathlib.Path(entry["file"])
        sources = [file]
        if file.parent.name == "Unity":
            sources = [pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', file.read_text())]
        for source in sources:
            commands[source.resolve()] = (entry["directory"], [word for word in words if word != str(file)])
    return commands


class Inputs:
    """The hash of a source with all of our headers that it includes."""
    def __init__(self, root, build):
        self.folders = [root / "lib", root / "tests", root / "bench", build / "generated"]
        self.contents = {}
        settings = (root / ".clang-tidy").read_bytes() + b"".join(
            file.read_bytes() for file in sorted(root.glob("*/**/.clang-tidy")) if build not in file.parents)
        version = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True).stdout
        self.checks = settings + version

    def read(self, file):
        if file not in self.contents:
            text = file.read_bytes()
            names = [name.decode(errors="replace") for name in INCLUDE.findall(text)]
            found = []
            for name in names:
                for folder in [file.parent, *self.folders]:
                    if (folder / name).is_file():
                        found.append((folder / name).resolve())
                        break
            self.contents[file] = (hashlib.sha256(text).digest(), found)
        return self.contents[file]

    def hash(self, source, command):
        seen, left = set(), [source]
        while left:
            file = left.pop()
            if file not in seen:
                seen.add(file)
                left.extend(self.read(file)[1])
        whole = hashlib.sha256(self.checks + "\0".join(command).encode())
        for file in sorted(seen):
            whole.update(self.read(file)[0])
        return whole.hexdigest()


def newest_first(root, sources):
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True).stdout.split("\n")

    order = {}
    try:
        for line in git("status", "--porcelain", "--no-renames"):
            order.setdefault((root / line[3:]).resolve(), len(order))
        for line in git("log", "--format=", "--name-only", "-n", "2000"):
            order.setdefault((root / line).resolve(), len(order))
    except (OSError, subprocess.CalledProcessError):
        pass  # no repository: in the order of names
    return sorted(sources, key=lambda source: (order.get(source, len(order)), source))


def look_at(source, directory, command):
    start = time.monotonic()
    done = subprocess.run([PROGRAM, "--quiet", "--warnings-as-errors=*", "--extra-arg=-Wno-unknown-warning-option", source,
                           "--", *command[1:]], cwd=directory, capture_output=True, text=True, check=False)
    words = "" if done.returncode == 0 else done.stdout + done.stderr
    return source, words, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--share", default="1/1")
    options = parser.parse_args()
    if not shutil.which(PROGRAM):
        print(f"skipped: no {PROGRAM} here (Debian package {PROGRAM})")
        return SKIPPED
    root, build = options.root.resolve(), options.build.resolve()
    share, shares = (int(number) for number in options.share.split("/"))
    notes = build / "tidy.json"
    clean = json.loads(notes.read_text()) if notes.exists() else {}
    commands, inputs = commands_of(build), Inputs(root, build)
    names = sorted(source for source in commands if root in source.parents and build not in source.parents)
    mine = newest_first(root, names[share - 1::shares])
    hashes = {source: inputs.hash(source, commands[source][1]) for source in mine}
    stale = [source for source in mine if clean.get(str(source.relative_to(root))) != hashes[source]]
    left, begun, found = list(stale), time.monotonic(), 0
    workers = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running, longest = set(), 20.0
        while left or running:
            # None that would end too late.
            while left and len(running) < workers and time.monotonic() - begun + longest < options.seconds:
                source = left.pop(0)
                running.add(pool.submit(look_at, source, *commands[source]))
            if not running:
                break
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in done:
                source, words, seconds = one.result()
                longest = max(longest, seconds)
                if words:
                    found += 1
                    print(words, flush=True)
                else:
                    clean[str(source.relative_to(root))] = hashes[source]
                    notes.write_text(json.dumps(clean, indent=1, sort_keys=True))
    print(f"{len(mine)} sources: {len(mine) - len(stale)} unchanged since they were clean, {len(stale) - len(left)} looked at, "
          f"{found} with findings, {len(left)} stale (not looked at)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
