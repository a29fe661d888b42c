"""Files that a script touches which a command gives to its interpreter. Pure."""

from __future__ import annotations

import posixpath
import re
from itertools import chain, pairwise

from yolo_fs.hooks.effects import Effect, Seen, Touch, Undecided, touch_all
from yolo_fs.hooks.program import Program, input_of
from yolo_fs.hooks.program_touches import examine_own_verb, examine_program
from yolo_fs.protocol.verbs import PROGRAM_NAMES

_CODE_PATH = re.compile(
    r"(?<![\w./~-])[\w./~-]*\.yolo-planning[\w./*-]*|(?<![\w./-])(?:[\w./-]*HANDOFF\.md"
    r"|[\w./-]*\.(?:dept|handoff|escalation)-[\w.*-]+|(?!/)[\w./-]*state\.json)"
)
_CODE_LITERAL = re.compile(r"""(["'`])([^"'`\s\\]+)\1""")
_CODE_FOLDER = re.compile(r"\.yolo-planning(?:/[\w-]+)*/?\Z")
_CODE_WRITES = re.compile(
    r"""open\((?:(?!open\()[^)])*(?:,\s*(?:mode\s*=\s*)?['"][rb]*[wax]|['"]>)|Mode\.WRITE
    |\.(?:write_text|write_bytes|unlink|rmtree|touch|rename|symlink_to|hardlink_to|truncate)\(
    |\b(?:os|shutil|fs|fsp|promises|File|FileUtils|Deno|Bun)\.(?:promises\.)?
     (?:remove|unlink|rename|replace|copy|move|rm|cp|mv|write|append|truncate|delete|create|symlink
     |link)
    |\b(?:writeFile|appendFile|writeFileSync|unlinkSync|rmSync)\b
    |\b(?:dump|unlink|file_put_contents)\s*\(?
    |\b(?:extractall|urlretrieve|FileIO|createWriteStream|openSync|cpSync|copy|copyfile|chmod|chown
     |utime|sqlite3\.connect|os\.open)\(
    |\bIO\.write|\bFileUtils\.
    |\bopen\s*\(?[^()]{0,80}["']\+?>|\.open\(\s*(?:mode\s*=\s*)?["'][rb]*[wax]
    |["']r(?:b?\+|\+b)["']
    |inplace\s*=|\bfopen\([^()]{0,200}["'][wax]""",
    re.VERBOSE,
)
_CODE_OPTION = re.compile(r"-[A-Za-z]*[ceEpr]|--eval|--print")
_CODE_RUNS = re.compile(
    r"\b(?:exec|eval|system|popen|subprocess|spawn\w*|child_process|b64decode)\b|`"
)

_CHANGES = re.compile(r"\b(?:rm|mv|cp|tee|dd|ln|truncate|touch|sed -i|unlink)\b|>")
"""Programs that code may run to change a file."""


def examine_interpreter(program: Program) -> Seen:
    """Examine the code given to an interpreter; a script is not opened."""
    name = program.name
    if (ours := _find_own_program(program)) is not None:
        yield from examine_own_verb(ours)
        return
    in_place = name in ("perl", "ruby") and any(
        re.match(r"-[a-z0-9]*i", word.text) for word in program.arguments
    )
    codes = dict.fromkeys(
        word.text for word in program.arguments if re.search(r"[\s()=;]", word.text)
    )
    for option, word in pairwise(program.arguments):
        if _CODE_OPTION.fullmatch(option.text):
            codes[word.text] = None
    if (given := input_of(program.command)) is not None:
        codes[given] = None
    for code in codes:
        yield from _of_code(program, code)
    operands = [word for word in program.operands() if word.text not in codes]
    if in_place:
        yield from touch_all(operands, Effect.WRITE)
    elif (module := _find_module(program)) is not None:
        yield from examine_program(module)
    elif name in ("perl", "ruby") and any(_IS_FILTER.match(w.text) for w in program.arguments):
        yield from touch_all(operands, Effect.READ)
    elif codes:
        yield from touch_all([word for word in operands if "/" in word.text], Effect.READ)
    elif operands or program.command.source:
        yield Undecided(program.line)


def _find_own_program(program: Program) -> Program | None:
    """Return our own program if the interpreter runs it, by module or by path."""
    for at, word in enumerate(program.arguments):
        named = posixpath.basename(word.text.removeprefix("-m"))
        if named in PROGRAM_NAMES:
            return Program("yolo-fs", program.arguments[at + 1 :], program.command)
        if not word.text.startswith("-"):
            return None
    return None


def _find_module(program: Program) -> Program | None:
    """Return the module that Python runs, as a program of its own."""
    words = [word.text for word in program.arguments]
    at = words.index("-m") + 1 if "-m" in words else len(words)
    if at >= len(words):
        return None
    return Program(words[at], program.arguments[at + 1 :], program.command)


_IS_FILTER = re.compile(r"-[a-zA-Z0-9]*[pn]")
"""Options by which an interpreter reads the files in its arguments."""


def _of_code(program: Program, code: str) -> Seen:
    writes, runs = _CODE_WRITES.search(code) is not None, _CODE_RUNS.search(code) is not None
    paths = _CODE_PATH.findall(code)
    literals = (literal[1] for literal in _CODE_LITERAL.findall(code))
    yield from (Touch(path, Effect.READ, must_exist=True) for path in literals if "." in path)
    folders = dict.fromkeys(path for path in paths if _CODE_FOLDER.search(path))
    names = dict.fromkeys(path for path in paths if "/" not in path and path not in folders)
    put_together = (posixpath.join(folder, name) for folder in folders for name in names)
    effect = Effect.WRITE if writes else Effect.READ
    yield from (Touch(path, effect) for path in chain(dict.fromkeys(paths), put_together))
    yield from (Touch(folder, Effect.FILL) for folder in folders if writes)
    if runs and _CHANGES.search(code):
        yield from (Touch(path, Effect.FILL) for path in dict.fromkeys(paths))
    if runs or (writes and not paths):
        yield Undecided(program.line)
