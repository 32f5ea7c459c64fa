#!/usr/bin/env python3
"""The messages of the programs and scripts, and which sentences tests have approved: messages.py ROOT [--write]

A message is what the sources give to `Error`, `require`, `refuse`, `log::warning` and the like (script_messages.py:
what scripts give to `say`, `echo` and the like): a template whose `{}` are filled at run time.
tests/<room>/messages.txt holds, for the sources of one folder of lib/, and for the other folders of ROOMS:

    the sentences that unit tests render and a person approved (tests/approve_messages.py), by test
    under "# Not rendered by a test": the templates of scripts, and of sources that no sentence matches, with their file

Without --write it fails where a template is in neither list, or a listed template is no longer in its file. So no message
changes without a line in a diff.
"""
import pathlib
import re
import sys

from script_messages import python_messages, shell_messages

ROOMS = {  # files outside the folders of lib/ that have rooms of their own name
    "apps": ("apps/*.cpp", "apps/**/*.sh"),
    "bench": ("bench/*.py", "bench/peers/*.py"),
    "scripts": ("data/*.sh", "lib/cmake/*.sh"),
    "slurm": ("slurm/**/*.in",),
}
CALL = re.compile(r"\b(?:require|refuse|add_refusal|Error|ValidationError|PictureFault|give_up|damaged|fail|log::(?:info|warning|error"
                  r"|info_to_terminal)|system_failure)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
NOT_RENDERED = "# Not rendered by a test"
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def without_comments(text):
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda found: found[1] or "", text)


def arguments_from(text, start):
    """The text between the bracket before `start` and its partner."""
    depth, at = 1, start
    while depth and at < len(text):
        if text[at] == '"':
            at = LITERAL.match(text, at).end()
            continue
        if text[at] == "'" and text[at + 2:at + 3] == "'":
            at += 3
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def unescaped(literal):
    return literal.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\").replace("{{", "{").replace("}}", "}")


def cpp_messages(text):
    """Literals, neighbours joined as the compiler joins them."""
    code = without_comments(text)
    for call in CALL.finditer(code):
        joined = re.sub(r'"\s*"', "", arguments_from(code, call.end()))
        yield from (unescaped(literal[1]) for literal in LITERAL.finditer(joined))


def templates_of(path):
    """Messages with at least two words."""
    reader = {".cpp": cpp_messages, ".hpp": cpp_messages, ".py": python_messages}.get(path.suffix, shell_messages)
    for words in map(str.strip, reader(path.read_text())):
        if len(re.findall(r"[A-Za-z]{2,}", PLACEHOLDER.sub("", words))) >= 2 and " " in words:
            yield words


def rooms(root):
    """{room: {template: file}}"""
    files = [(path.relative_to(root).parts[1], path) for path in root.glob("lib/**/*.[ch]pp")]
    files += [(room, path) for room, patterns in ROOMS.items() for pattern in patterns for path in root.glob(pattern)]
    found = {}
    for room, path in sorted(files, key=lambda file: file[1]):
        for template in templates_of(path):
            found.setdefault(room, {}).setdefault(template, path.relative_to(root).as_posix())
    return found


def is_made_of(sentence, parts):
    """Whether the fixed parts of a template stand in the sentence, in their order."""
    at = 0
    for part in parts:
        at = sentence.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def matches(template, sentences):
    parts = [part for part in PLACEHOLDER.split(template) if part]
    return any(is_made_of(sentence, parts) for sentence in sentences)


def read(file):
    """({place: {sentences}}, "file: template" lines); a place is a test and the number of the message in it"""
    lines = file.read_text().splitlines() if file.exists() else []
    at = lines.index(NOT_RENDERED) if NOT_RENDERED in lines else len(lines)
    places, test = {}, ""
    for line in lines[:at]:
        found = re.match(r" +(\d+): (.*)", line)
        if found:
            places.setdefault((test, int(found[1])), set()).add(found[2])
        elif not line.startswith("#"):
            test = line
    return places, [line for line in lines[at + 1:] if line]


def write(file, room, places, templates):
    lines = [f"# Messages of {room}, by test, as tests render them. Made by tests/approve_messages.py: review its diff. {{...}}",
             "# stands for what differs between runs."]
    test = None
    for place, sentences in sorted(places.items()):
        if place[0] != test:
            test = place[0]
            lines += ["", test]
        lines += [f"  {place[1]}: {sentence}" for sentence in sorted(sentences)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*lines, "", NOT_RENDERED, "", *sorted(templates)]).rstrip() + "\n")


def main(root, is_written):
    root = pathlib.Path(root).resolve()
    found = rooms(root)
    places = {room: read(root / "tests" / room / "messages.txt")[0] for room in found}
    everything = [sentence for of_room in places.values() for of_place in of_room.values() for sentence in of_place]
    faults, rendered = [], 0
    for room, templates in found.items():
        file = root / "tests" / room / "messages.txt"
        missing = {f"{name}: {template}" for template, name in templates.items()
                   if not (name.endswith("pp") and matches(template, everything))}  # tests render only messages of C++
        rendered += len(templates) - len(missing)
        if is_written:
            write(file, room, places[room], missing)
            continue
        listed = set(read(file)[1])
        faults += [f"{line}\n    is in no messages.txt" for line in sorted(missing - listed)]
        faults += [f"{line}\n    is listed in tests/{room}/messages.txt and no longer there, or rendered" for line in
                   sorted(listed - missing)]
    print("\n".join(faults[:40]))
    total = sum(len(templates) for templates in found.values())
    print(f"{len(faults)} faults: run tests/approve_messages.py and review the diff" if faults else
          f"{total} messages, {rendered} of them rendered by tests")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--write" in sys.argv[2:]))
