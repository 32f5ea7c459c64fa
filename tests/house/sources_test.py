#!/usr/bin/env python3
"""Rules about the project's files that no compiler checks: sources_test.py ROOT

Every C++ file is named in the CMakeLists.txt of its folder or of one above; a header opens with a comment; no tabs, no
spaces at line ends, a newline at the end. In lib and apps, calls that open files, turn JSON into text or read the
environment need a marker that says why they are safe. Advice that fails nothing: long files, and folders with more sources
than a reader takes in at once.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

TEXT = {".cpp", ".hpp", ".py", ".sh", ".sbatch", ".cmake", ".txt", ".md", ".json"}
CODE = {".cpp", ".hpp", ".py", ".sh", ".sbatch"}
SOURCE = CODE | {".cu", ".inl", ".in"}
ROOTS = {"apps", "bench", "data", "lib", "slurm", "tests"}
MOST_SOURCES_OF_A_FOLDER = 30
LONG_FILE = 300
LONG_PUBLIC_HEADER = 120
# Calls that files of others make dangerous. Each needs a marker above it, `// careful-open: reason`, or what does it with
# care: base/io/regular_file, base/io/partial_file, base/text/json_text, job/job_environment.
CAREFUL = {
    "careful-open": re.compile(r"(?<![\w.])(::)?(open|openat|fopen|gzopen|H5Fopen)\(|\b[io]?fstream\b(?!>)"),
    "careful-json": re.compile(r"\.dump\("),
    "careful-environment": re.compile(r"\b(secure_)?getenv\(|\benviron\b"),
}


def tracked_files(root):
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
        if listed.returncode == 0:
            return [root / name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    hidden_or_built = re.compile(r"(^|/)(\.|__pycache__/)|^(build|build-[^/]*|runs)/")
    return [path for path in root.rglob("*") if path.is_file() and not hidden_or_built.search(f"{path.relative_to(root)}")]


def named_in_cmake(path, root):
    """Headers of tests and benches are found by their includes and need no name."""
    if path.suffix == ".hpp" and path.relative_to(root).parts[0] != "lib":
        return True
    for folder in path.parents:
        cmake = folder / "CMakeLists.txt"
        if cmake.exists():
            text = cmake.read_text()
            name = path.relative_to(folder).as_posix()
            stem = name.removesuffix(".cpp")
            if re.search(rf"(?<![\w/]){re.escape(name)}(?![\w.])", text):
                return True
            if re.search(rf"_(bench|program|test)\({re.escape(stem)}\b|foreach\(program[^)]*\b{re.escape(stem)}\b", text):
                return True
        if folder == root:
            return False
    return False


def unmarked_calls(name, text, calls):
    """Lines with such a call and no marker with a reason in the comment above; markers above nothing."""
    lines = text.split("\n")
    for marker, call in calls.items():
        marked = set()
        for number, line in enumerate(lines):
            if re.search(rf"// {marker}: \S", line):
                marked.add(next((at for at in range(number + 1, len(lines)) if not lines[at].lstrip().startswith("//")), -1))
        for number, line in enumerate(lines):
            found = call.search(re.sub(r"//.*", "", line))
            if found and number not in marked:
                yield f"{name}:{number + 1}: '{found.group()}' without '// {marker}: reason' above it"
            if number in marked and not found:
                yield f"{name}:{number + 1}: '{marker}' above a line that needs none"


def faults_of(path, root):
    text = path.read_text()
    name = path.relative_to(root)
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield f"{name}:{number}: a tab"
        if line != line.rstrip():
            yield f"{name}:{number}: spaces at the end of the line"
    if text and not text.endswith("\n"):
        yield f"{name}: no newline at the end"
    if path.suffix == ".hpp" and not text.startswith("//"):
        yield f"{name}: does not open with a comment"
    if path.suffix in {".cpp", ".hpp"} and name.parts[0] in {"lib", "apps"}:
        yield from unmarked_calls(name, text, CAREFUL)
    if path.suffix in {".cpp", ".hpp"} and not named_in_cmake(path, root):
        yield f"{name}: in no CMakeLists.txt"


def crowded_folders(paths, root):
    of_folder = collections.Counter(path.parent.relative_to(root) for path in paths if path.suffix in SOURCE)
    for folder, sources in sorted(of_folder.items()):
        if folder.parts and folder.parts[0] in ROOTS and sources > MOST_SOURCES_OF_A_FOLDER:
            yield f"note: {folder} has {sources} sources, more than {MOST_SOURCES_OF_A_FOLDER}: folders by subject?"


def main(root):
    root = pathlib.Path(root).resolve()
    tracked = tracked_files(root)
    files = sorted(path for path in tracked if path.suffix in TEXT)
    faults = [fault for path in files for fault in faults_of(path, root)]
    for note in crowded_folders(tracked, root):
        print(note)
    for path in files:
        limit = LONG_PUBLIC_HEADER if path.suffix == ".hpp" and "lib" in path.parts else LONG_FILE
        lines = path.read_text().count("\n")
        if lines > limit and path.suffix not in {".md", ".json"}:
            print(f"note: {path.relative_to(root)} has {lines} lines, more than {limit}: one subject?")
    print("\n".join(faults) or f"{len(files)} files are in order")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
