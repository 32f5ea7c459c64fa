#!/usr/bin/env python3
"""Looks at sources with clang-tidy; a finding is an error: tidy.py ROOT BUILD [--seconds N] [--share K/N]

Without --seconds it looks at whole compiled files, because most of the time goes to headers, which joined sources share.
The static analyzer reads the main file alone: it looks at each source by itself, but those of tests.

With --seconds it looks at single sources, and starts none that would end later. Sources that are not committed come
first, then those whose last commit is the newest. It names how many are stale: not looked at since they, their headers
or the checks changed.

What is clean is noted in BUILD/tidy.json, and not looked at again as long as none of them changes.
"""
import argparse
import concurrent.futures
import dataclasses
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
OVERLAY = "tidy_joined.json"  # where clang-tidy finds joined sources
SOURCES = r"/(lib|apps|bench|tests)/[^ ]*\.(cpp|hpp|inl)$"
NO_ANALYSIS = "-clang-analyzer-*"
ANALYSIS = "-bugprone-*,-cppcoreguidelines-*,-google-*,-misc-*,-modernize-*,-performance-*,-readability-*"
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclasses.dataclass
class Compiled:
    """A file that is compiled, and the sources that it joins, or itself."""
    file: pathlib.Path
    sources: list
    directory: str
    command: list

    @property
    def is_joined(self):
        return self.sources != [self.file]


def compiled_files(root, build):
    files = []
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
                 word not in ("-Winvalid-pch", "-Wno-restrict", "-Werror", "-DNDEBUG", "-c", entry["file"])]
        file = pathlib.Path(entry["file"]).resolve()
        sources = [file]
        if file.parent.name == "Unity":
            sources = [pathlib.Path(name).resolve() for name in re.findall(r'#include "([^"]+)"', file.read_text())]
        if all(root in source.parents and build not in source.parents for source in sources):
            files.append(Compiled(file, sources, entry["directory"], words))
    return files


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


@dataclasses.dataclass
class Job:
    """One run of clang-tidy, and what is clean if it finds nothing: "style SOURCE", "analysis SOURCE"."""
    file: pathlib.Path
    compiled: Compiled
    checks: str
    covers: list
    flags: list = dataclasses.field(default_factory=list)  # beside the compiler's


def is_analyzed(root, source):
    return root / "tests" not in source.parents


def single_sources(root, files):
    jobs = {}
    for compiled in files:
        for source in compiled.sources:
            kinds, checks = ["style", "analysis"], ""
            if not is_analyzed(root, source):
                kinds, checks = ["style"], NO_ANALYSIS
            jobs[source] = Job(source, compiled, checks, [(kind, source) for kind in kinds])
    return [jobs[source] for source in newest_first(root, jobs)]


def whole_files(root, files, build):
    """clang-tidy takes joined sources for a file of their folder, whose settings apply."""
    jobs, analyses, overlay = [], {}, []
    for number, compiled in enumerate(files):
        file, checks, flags = compiled.file, NO_ANALYSIS, []
        if compiled.is_joined:
            file = compiled.sources[0].parent / f"joined_{number}.cpp"
            overlay.append({"type": "file", "name": str(file), "external-contents": str(compiled.file)})
            checks += ",-bugprone-suspicious-include"  # of sources
            flags = ["-Wno-shadow"]  # a header may follow a source whose names it hides
        jobs.append(Job(file, compiled, checks, [("style", source) for source in compiled.sources], flags))
        for source in compiled.sources:
            if is_analyzed(root, source):
                analyses[source] = Job(source, compiled, ANALYSIS, [("analysis", source)])
    (build / OVERLAY).write_text(json.dumps({"version": 0, "roots": overlay}))
    return jobs + list(analyses.values())


def look_at(job, build):
    start = time.monotonic()
    options = ["--quiet", "--warnings-as-errors=*", "--header-filter", SOURCES, "--checks", job.checks,
               "--extra-arg=-Wno-unknown-warning-option"]
    if (build / OVERLAY).exists():
        options += ["--vfsoverlay", build / OVERLAY]
    done = subprocess.run([PROGRAM, *options, job.file, "--", *job.compiled.command[1:], *job.flags],
                          cwd=job.compiled.directory, capture_output=True, text=True, check=False)
    words = ""
    if done.returncode != 0:
        words = done.stdout + done.stderr or f"{job.file}: {PROGRAM} ended with code {done.returncode}, without a word"
    return job, words, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--share", default="1/1")
    options = parser.parse_args()
    if not shutil.which(PROGRAM):
        print(f"skipped: no {PROGRAM} here (Debian package {PROGRAM})")
        return SKIPPED
    root, build = options.root.resolve(), options.build.resolve()
    share, shares = (int(number) for number in options.share.split("/"))
    notes = build / "tidy.json"
    try:
        clean = json.loads(notes.read_text())
    except (FileNotFoundError, ValueError):
        clean = {}  # none yet, or the disk was full
    files, inputs = compiled_files(root, build), Inputs(root, build)
    jobs = whole_files(root, files, build) if options.seconds is None else single_sources(root, files)
    jobs = jobs[share - 1::shares]
    hashes = {}
    for job in jobs:
        for kind, source in job.covers:
            hashes[f"{kind} {source.relative_to(root)}"] = inputs.hash(source, job.compiled.command)

    def covered(job):
        return {name: hashes[name] for name in (f"{kind} {source.relative_to(root)}" for kind, source in job.covers)}

    stale = [job for job in jobs if covered(job).items() - clean.items()]
    left, begun, found = list(stale), time.monotonic(), 0
    workers = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running, longest = set(), 0.0
        while left or running:
            while left and len(running) < workers and (
                    options.seconds is None or time.monotonic() - begun + longest < options.seconds):
                running.add(pool.submit(look_at, left.pop(0), build))
            if not running:
                break
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in done:
                job, words, seconds = one.result()
                longest = max(longest, seconds)
                if words:
                    found += 1
                    print(words, flush=True)
                else:
                    clean.update(covered(job))
                    new = notes.with_suffix(".new")
                    new.write_text(json.dumps(clean, indent=1, sort_keys=True))
                    new.replace(notes)
    print(f"{len(jobs)} runs of clang-tidy: {len(jobs) - len(stale)} not needed, their sources are unchanged since they "
          f"were clean; {len(stale) - len(left)} made, {found} with findings; {len(left)} stale (not made)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
