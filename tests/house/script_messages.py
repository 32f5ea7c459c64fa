"""The messages of scripts, as templates like those of fmt: an expression becomes {}."""
import ast
import re

# A command that reports something, and its words. Expansions nest up to three deep.
SHELL_CALL = re.compile(r"(?:^|[;&|{()!]|\b(?:then|else|do)\b)[ \t]*"
                        r"(?:echo|say|refuse|refuse_install|fail|lost|answer|give_up_copy)(?=[ \t])", re.MULTILINE)
EXPANSION = (r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|"
             r"\$\{(?:[^{}]|\{[^{}]*\})*\}|\$\w+|\$[@*#?!$]")
PIECE = rf""""((?:{EXPANSION}|\\.|[^"\\])*)"|\$?'([^']*)'|({EXPANSION}|\\[^\n]|[^\s"'\\;&|<>(){{}}]+)"""
SPACE = r"(?:[ \t]|\\\n)+"
WORDS = re.compile(rf"(?:{SPACE}(?:{PIECE})+)*")
PYTHON_CALLS = {"say", "give_up", "refuse", "error", "exit", "ProgramFailed", "TimeIsUp"}


def shell_template(words):
    pieces = [quoted or literal or plain or " " for quoted, literal, plain in re.findall(rf"{PIECE}|{SPACE}", words)]
    return re.sub(r"\\(.)", r"\1", re.sub(EXPANSION, "{}", "".join(pieces)).replace(r"\n", " "))


def shell_messages(text):
    """The words of each command, joined by spaces as echo joins them."""
    code = re.sub(r"^\s*#.*", "", text, flags=re.MULTILINE)
    for call in SHELL_CALL.finditer(code):
        yield shell_template(WORDS.match(code, call.end())[0])
    yield from re.findall(r"\$\{\w+:\?'([^']*)'\}", code)


def python_template(node):
    if isinstance(node, ast.JoinedStr):
        return "".join(map(python_template, node.values))
    return str(node.value).replace("\n", " ") if isinstance(node, ast.Constant) else "{}"


def python_messages(text):
    for call in ast.walk(ast.parse(text)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in PYTHON_CALLS:
            yield from map(python_template, call.args)
