"""Parses a shell command line into the simple commands that it runs, as far as possible. Pure.

Quotes, expansions, redirections and here-documents are read as a POSIX shell or bash reads them.
What only execution would show, such as the output of `$(…)`, becomes `UNKNOWN`.

No parser library is used: tree-sitter-bash 0.25 reports errors for commands that bash runs, such as
`a=1 > b`, `rm a <> b`, `cat<<E>f` or two here-documents of one command, and those have to be judged
as well.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

UNKNOWN = "…"
"""Stands in a word for text that only execution would show."""

_MOST_WORDS = 64
"""Words that one spelling such as `{1..9}` may expand to; more are unknown."""

# Marks for characters with a meaning for the shell while a word is read; quoting removes that
# meaning.
_STAR, _QUESTION, _BRACKET, _OPEN, _COMMA, _CLOSE = map(chr, range(0xE000, 0xE006))
_MARKS = {"*": _STAR, "?": _QUESTION, "[": _BRACKET, "{": _OPEN, ",": _COMMA, "}": _CLOSE}
_GLOBS = str.maketrans({char: _MARKS[char] for char in "*?["})
_PLAIN = str.maketrans({mark: char for char, mark in _MARKS.items()})
_WITHOUT_MARKS = dict.fromkeys(map(ord, _MARKS.values()))
_MAGIC = re.compile(f"[{_STAR}{_QUESTION}{_BRACKET}]")
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")

_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_SEPARATOR = re.compile(r";;&|;&|;;|&&|\|\||\|&|&(?!>)|[;|\n]")
_SUBSTITUTION = re.compile(r"\$\(|`|[<>]\(")
_EXPANSION = re.compile(r"\\.|\$[({]|`", re.DOTALL)
"""What is expanded in a here-document, or a character that is not."""
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())")
_DELIMITER = re.compile(r"[ \t]*((?:'[^']*'|\"[^\"]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_LITERAL = re.compile(r"[^\s;&|()<>\\'\"$`*?\[{,}]+")
_IN_QUOTES = re.compile(r'[^"\\$`]+')
_UNESCAPED = {"\n": "", **{char: char for char in '"\\$`'}}
"""Meaning of a backslash before each character in double quotes; other backslashes stay."""
_C_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'?", re.DOTALL)
_C_ESCAPE = re.compile(
    rb"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|x\{(?P<braced>[0-9A-Fa-f]*)\}?"
    rb"|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})|c(?P<control>\\\\|.)"
    rb"|(?P<letter>[abeEfnrtv'\"?\\]))",
    re.DOTALL,
)
_C_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n",
    b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip
_PARAMETER = re.compile(r"\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*)|[0-9@*#?$!_-]")
_SAYS = re.compile(r"\s*(?:echo|printf)\s+([\w./~-]+)\s*")
"""A command whose output is one plain word."""
_FINDS = re.compile(r"\s*(?:which|command\s+-v|type\s+-\w+)\s+(?:-\S+\s+)*([\w.-]+)\s*")
"""A command whose output is the path of a program."""
_TILDE = re.compile(r"~([+-])(?=[/\s;&|()<>]|\Z)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_ASSIGNED = re.compile(r"(?<![\w])([A-Za-z_]\w*)\+?=")
_KEYWORDS = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time",
    "esac",
})  # fmt: skip
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_FORGETS = frozenset({"read", "mapfile", "readarray", "unset", "getopts"})


class TooMuchError(Exception):
    """The words of a command exceed the limit."""


class Allowance:
    """Remaining budget for the words of a command and of all texts within it.

    Without a limit, a text could double its variables any number of times.
    """

    def __init__(self, chars: int):
        self.chars = chars

    def take(self, chars: int) -> None:
        """Use up some of the budget.

        Raises:
            TooMuchError: there is not so much left.
        """
        self.chars -= chars
        if self.chars < 0:
            raise TooMuchError


class Word(NamedTuple):
    """One word of a command after its expansions."""

    marked: str
    """Its text, with marks of ours for characters that have a meaning for the shell."""

    @classmethod
    def of_pattern(cls, text: str) -> Word:
        """Return the word that stands for the names that match a pattern of `glob`."""
        return cls(text.translate(_GLOBS))

    @property
    def text(self) -> str:
        """The word as the program receives it, with its patterns not expanded."""
        return self.marked.translate(_PLAIN)

    @property
    def is_pattern(self) -> bool:
        """Whether the shell replaces it by the names of matching files."""
        return _MAGIC.search(self.marked) is not None

    @property
    def pattern(self) -> str:
        """The word as a pattern of `glob`, in which quoted characters match themselves."""
        return re.sub(r"[*?[]", r"[\g<0>]", self.marked).translate(_PLAIN)


@dataclass(slots=True)
class SimpleCommand:
    """One program that is run, and its input."""

    words: tuple[Word, ...]
    redirections: tuple[tuple[str, Word], ...]
    """Operators such as `>>`, each with its file."""
    folder: str
    """Its working directory; empty for that of the command line."""
    source: SimpleCommand | None
    """The command whose output it reads, through a pipe or `<(…)`."""
    text_in: str | None = None
    """Its here-document or here-string."""
    environment: tuple[Word, ...] = ()
    """Assignments `NAME=VALUE` to the environment of the program, or of all that follow."""


def simple_commands(
    text: str, variables: Mapping[str, str], allowance: Allowance | None = None
) -> list[SimpleCommand]:
    """Return the commands of a line in order; `$(…)` comes before the command that uses it.

    Raises:
        TooMuchError: its words come to more than is allowed.
    """
    allowance = allowance or Allowance(sys.maxsize)
    allowance.take(len(text))
    reader = _Reader(text.translate(_WITHOUT_MARKS), variables, allowance)
    reader.read_list("")
    return reader.commands


@dataclass(slots=True)
class _HereDocument:
    delimiter: str
    is_indented: bool
    is_quoted: bool
    """Whether nothing in it is expanded."""
    command: SimpleCommand | None = None


@dataclass(slots=True)
class _Parts:
    """A simple command while it is read."""

    words: list[Word] = field(default_factory=list)
    redirections: list[tuple[str, Word]] = field(default_factory=list)
    documents: list[_HereDocument] = field(default_factory=list)
    text_in: str | None = None
    source: SimpleCommand | None = None
    """The last command of its `<(…)`."""


class _Reader:
    """Reads a text from left to right, and tracks the values of its variables."""

    def __init__(self, text: str, variables: Mapping[str, str], allowance: Allowance):
        self.commands: list[SimpleCommand] = []
        self._allowance = allowance
        self._found: dict[str, int] = {}
        self._text = text
        self._at = 0
        self._variables: dict[str, list[str]] = {name: [value] for name, value in variables.items()}
        self._documents: list[_HereDocument] = []
        self._substituted: SimpleCommand | None = None
        """The last command of the `<(…)` that was read last."""

    def read_list(self, closing: str) -> None:
        """Read commands up to a closing `)` or backtick, or to the end."""
        is_piped = False
        while self._skip_blanks():
            char = self._text[self._at]
            if char == closing:
                self._at += 1
                return
            separator = _SEPARATOR.match(self._text, self._at)
            if separator:
                self._at = separator.end()
                is_piped = separator[0] in ("|", "|&")
                if separator[0] == "\n":
                    self._read_documents()
            elif char == "(":
                self._read_parentheses()
            elif char == ")":  # behind a pattern of `case`
                self._at += 1
            else:
                self._read_command(closing, is_piped)
                is_piped = False

    def _skip_blanks(self) -> bool:
        """Skip blanks and comments; return whether anything is left."""
        while blank := _BLANKS.match(self._text, self._at) or _COMMENT.match(self._text, self._at):
            self._at = blank.end()
        return self._at < len(self._text)

    def _find(self, sign: str) -> int:
        """Return the next position of a sign, -1 if there is none; no text is searched twice."""
        position = self._found.get(sign, 0)
        if 0 <= position < self._at or sign not in self._found:
            position = self._found[sign] = self._text.find(sign, self._at)
        return position

    def _read_parentheses(self) -> None:
        if self._text.startswith("((", self._at) and (end := self._find("))")) >= 0:  # arithmetic
            self._read_substitutions(end + 2)
            return
        self._at += 1
        self._read_subshell(")")

    def _read_subshell(self, closing: str) -> str:
        """Read commands that leave folder and variables as they are; return their text."""
        self._allowance.take(len(self._variables))
        start, before = self._at, dict(self._variables)
        self.read_list(closing)
        self._variables = before
        return self._text[start : self._at - 1]

    def _read_command(self, closing: str, is_piped: bool) -> None:
        parts = _Parts()
        while self._skip_blanks():
            self._substituted, parts.source = None, self._substituted or parts.source
            if redirection := _REDIRECTION.match(self._text, self._at):
                self._at = redirection.end()
                self._read_redirection(redirection[1], parts)
                continue
            char = self._text[self._at]
            if char in ";&|()\n" or char == closing:
                break
            if self._text.startswith("[[ ", self._at) and not parts.words:
                self._skip_condition()
                continue
            before = self._at
            parts.words += self._read_word(closing)
            if self._at == before:  # a character that begins nothing
                self._at += 1
        self._substituted, parts.source = None, self._substituted or parts.source
        self._finish(parts, is_piped)

    def _skip_condition(self) -> None:
        end = self._find("]]")
        self._read_substitutions(end + 2 if end >= 0 else len(self._text))

    def _read_substitutions(self, end: int) -> None:
        """Go to the end of a condition or calculation: only the commands in it are read."""
        while match := _SUBSTITUTION.search(self._text, self._at, end):
            self._at = match.start()
            self._read_word("")
            self._at = max(self._at, match.end())
        self._at = max(self._at, end)

    def _read_redirection(self, operator: str, parts: _Parts) -> None:
        if operator in ("<<", "<<-"):
            if delimiter := _DELIMITER.match(self._text, self._at):
                self._at = delimiter.end()
                plain = re.sub(r"['\"\\]", "", delimiter[1])
                parts.documents.append(
                    _HereDocument(plain, operator == "<<-", plain != delimiter[1])
                )
            return
        self._skip_blanks()
        words = self._read_word("")
        if operator == "<<<":
            parts.text_in = words[0].text if words else ""
            return
        for word in words:
            is_descriptor = operator in (">&", "<&") and re.fullmatch(r"\d*-?", word.text)
            if not is_descriptor:
                parts.redirections.append((operator, word))

    def _read_documents(self) -> None:
        """Read the here-documents that begin on the next line."""
        documents, self._documents = self._documents, []
        for document in documents:
            lines = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = end if end >= 0 else len(self._text)
                line, self._at = self._text[self._at : end], end + 1
                if (line.lstrip("\t ") if document.is_indented else line) == document.delimiter:
                    break
                lines.append(line)
            if document.command:
                document.command.text_in = "\n".join(lines)
            if not document.is_quoted:
                inner = _Reader("\n".join(lines), {}, self._allowance)
                inner._variables = self._variables
                inner._read_expansions()
                self.commands += inner.commands
        self._at = min(self._at, len(self._text))

    def _read_expansions(self) -> None:
        """Read a text in which quotes mean nothing: only the commands in it are read."""
        while match := _EXPANSION.search(self._text, self._at):
            self._at = match.end()
            if not match[0].startswith("\\"):
                self._at = match.start()
                self._read_piece()

    def _finish(self, parts: _Parts, is_piped: bool) -> None:
        words = self._strip_keywords(parts.words)
        given = 0
        while given < len(words) and _ASSIGNMENT.fullmatch(words[given].marked):
            given += 1
        environment = words[:given]
        if given == len(words):
            self._assign_variables(words)
            environment = []
        words = words[given:]
        environment += self._exported(words)
        folder = self._folder()
        self._allowance.take(len(folder))
        self._run_builtin(words)
        if not (words or parts.redirections or parts.documents):
            return
        command = SimpleCommand(
            tuple(words),
            tuple(parts.redirections),
            folder,
            self.commands[-1] if is_piped and self.commands else parts.source,
            parts.text_in,
            tuple(environment),
        )
        for document in parts.documents:
            document.command = command
        self._documents += parts.documents
        self.commands.append(command)

    def _strip_keywords(self, words: list[Word]) -> list[Word]:
        """Return a command without leading keywords; the variable of a `for` takes its values."""
        given = 0
        while given < len(words) and words[given].text in _KEYWORDS:
            given += 1
        if words[given - 1 : given] == [Word("time")] and words[given:][:1]:
            given -= words[given].text.startswith("-o")  # the program of that name
        words = words[given:]
        match [word.text for word in words[:3]]:
            case [("for" | "select"), name, "in"]:
                self._variables[name] = [word.marked for word in words[3:]]
                return []
            case ["case" | "for" | "select", *_]:
                return []
            case ["function", *_] | ["coproc", _, "{"]:
                return self._strip_keywords(words[2:])
        return words

    def _exported(self, words: Sequence[Word]) -> list[Word]:
        """Return the assignments of `export` and the like; a bare name has the value it has."""
        if not words or words[0].text not in _DECLARES:
            return []
        named = [word for word in words[1:] if re.match(r"[A-Za-z_]", word.text)]
        return [
            word if "=" in word.text else Word(f"{word.text}={self._value(word.text)[0]}")
            for word in named
        ]

    def _run_builtin(self, words: Sequence[Word]) -> None:
        """Apply the effect of a builtin to variables and folder."""
        verb = words[0].text if words else ""
        operands = [word for word in words[1:] if not re.match(r"-.", word.text)]
        if verb in _DECLARES:
            self._assign_variables(operands)
            if any(re.match(r"-\w*n", word.text) for word in words[1:]):  # another one's name
                self._forget(word.text.partition("=")[0] for word in operands)
        elif verb == "printf" and [word.text for word in words[1:2]] == ["-v"]:
            self._forget(word.text for word in words[2:3])
        elif verb == "eval":
            self._forget(_ASSIGNED.findall(" ".join(word.text for word in words[1:])))
        elif verb in _FORGETS:
            self._forget(word.text for word in operands)
        elif verb == "popd":
            self._enter_folder(UNKNOWN)
        elif verb in ("cd", "pushd"):
            self._enter_folder(operands[0].marked if operands else self._value("HOME")[0])

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._variables[name] = [UNKNOWN]

    def _assign_variables(self, words: Sequence[Word]) -> None:
        for word in words:
            if assignment := _ASSIGNMENT.fullmatch(word.marked):
                name, added, value = assignment.groups()
                before = self._value(name)[0] if added else ""
                self._allowance.take(len(before))
                self._variables[name] = [before + value]

    def _enter_folder(self, folder: str) -> None:
        here, before = self._folder(), self._variables.get("OLDPWD", [UNKNOWN])[0]
        self._variables["OLDPWD"] = [here]
        self._variables["PWD"] = [before if folder == "-" else posixpath.join(here, folder)]

    def _folder(self) -> str:
        return self._variables.get("PWD", [""])[0]

    def _value(self, name: str) -> list[str]:
        if name == "PWD":
            return ["."]  # each path is spelled from there
        if name == "OLDPWD":
            return [_from(self._folder(), self._variables.get(name, [UNKNOWN])[0])]
        return self._variables.get(name, [UNKNOWN])

    def _read_word(self, closing: str) -> list[Word]:
        """Read one word; return the words that it expands to."""
        start = self._at
        pieces: list[list[str]] = []
        if tilde := _TILDE.match(self._text, self._at):  # the folder, or the one before
            self._at = tilde.end()
            pieces.append(self._value("PWD" if tilde[1] == "+" else "OLDPWD"))
        while self._at < len(self._text):
            char = self._text[self._at]
            if self._text.startswith(("<(", ">("), self._at):
                is_read, self._at = char == "<", self._at + 2
                self._read_subshell(")")
                self._substituted = self.commands[-1] if is_read and self.commands else None
                pieces.append(["/dev/fd/63"])
            elif char.isspace() or char in ";&|()<>" or char == closing:
                break
            else:
                pieces.append(self._read_piece())
        if self._at == start:
            return []
        if _is_too_many(pieces):
            return [Word(UNKNOWN)]
        texts = ("".join(texts) for texts in product(*pieces))
        words = [Word(text) for whole in texts for text in _expand_braces(whole)]
        self._allowance.take(sum(len(word.marked) for word in words))
        return words

    def _read_piece(self) -> list[str]:
        """Read the next piece of a word; return its possible values."""
        text, at = self._text, self._at
        if literal := _LITERAL.match(text, at):
            self._at = literal.end()
            return [literal[0]]
        self._at += 1
        match text[at]:
            case "\\":
                self._at += 1
                return [text[at + 1 : at + 2].replace("\n", "")]
            case "'":
                return [self._until("'")]
            case '"':
                return self._read_quoted()
            case "`":
                return self._output_of(self._read_subshell("`"))
            case "$":
                return self._read_dollar()
            case char:
                return [_MARKS.get(char, char)]

    def _until(self, end: str) -> str:
        start, at = self._at, self._text.find(end, self._at)
        self._at = at + 1 if at >= 0 else len(self._text)
        return self._text[start : at if at >= 0 else len(self._text)]

    def _read_quoted(self) -> list[str]:
        """Read up to the closing double quote."""
        pieces: list[list[str]] = []
        while self._at < len(self._text):
            if literal := _IN_QUOTES.match(self._text, self._at):
                self._at = literal.end()
                pieces.append([literal[0]])
                continue
            char = self._text[self._at]
            self._at += 1
            if char == '"':
                break
            if char == "\\":
                escaped = self._text[self._at : self._at + 1]
                self._at += 1
                pieces.append([_UNESCAPED.get(escaped, f"\\{escaped}")])
            elif char == "`":
                pieces.append(self._output_of(self._read_subshell("`")))
            else:
                pieces.append(self._read_parameter())
        if _is_too_many(pieces):
            return [UNKNOWN]
        return ["".join(texts) for texts in product(*pieces)]

    def _read_dollar(self) -> list[str]:
        """Read what follows an unquoted dollar; its value is split, its patterns match files."""
        if self._text.startswith("'", self._at):
            return [self._read_escapes()]
        if self._text.startswith('"', self._at):
            self._at += 1
            return self._read_quoted()
        values = self._read_parameter()
        parts = [part for value in values for part in value.split()]
        return [part.translate(_GLOBS) for part in parts] or [""]

    def _read_escapes(self) -> str:
        """Read `$'…'`, with the escapes of C."""
        quoted = _C_QUOTED.match(self._text, self._at)
        assert quoted is not None
        self._at = quoted.end()
        text = _C_ESCAPE.sub(_unescape, quoted[1].encode(errors="surrogatepass"))
        # A C string ends at its first NUL, and so does the shell's word.
        return text.partition(b"\0")[0].decode(errors="replace")

    def _read_parameter(self) -> list[str]:
        """Read what follows a dollar; return its possible values."""
        text = self._text
        if text.startswith("((", self._at):
            end = self._find("))")
            self._read_substitutions(end + 2 if end >= 0 else len(text))
            return [UNKNOWN]
        if text.startswith("(", self._at):
            self._at += 1
            return self._output_of(self._read_subshell(")"))
        if parameter := _PARAMETER.match(text, self._at):
            self._at = parameter.end()
            name = parameter[1] or parameter[2]
            values = self._value(name) if name else [UNKNOWN]
            self._allowance.take(len(values) + sum(map(len, values)))
            return values
        if text.startswith("{", self._at):
            self._read_substitutions(self._find_end_of_braces())
            return [UNKNOWN]
        return ["$"]

    def _find_end_of_braces(self) -> int:
        depth = 0
        for brace in re.compile(r"[{}]").finditer(self._text, self._at):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.end()
        return len(self._text)

    def _output_of(self, command: str) -> list[str]:
        if command.strip() == "pwd":
            return self._value("PWD")
        if program := _FINDS.fullmatch(command):
            return [f"/usr/bin/{program[1]}"]  # or elsewhere: its name is what counts
        match = _SAYS.fullmatch(command)
        return [match[1]] if match else [UNKNOWN]


def _from(here: str, folder: str) -> str:
    """Return the path of a folder relative to another."""
    if folder.startswith("/"):
        return folder
    if UNKNOWN in folder or UNKNOWN in here or here.startswith("/"):
        return UNKNOWN
    return posixpath.relpath(f"/{folder}", f"/{here}") if ".." not in here + folder else UNKNOWN


def _unescape(escape: re.Match[bytes]) -> bytes:
    """Return the bytes that one escape of C within `$'…'` stands for."""
    kind = str(escape.lastgroup)
    value = escape[kind]
    if kind == "letter":
        return _C_LETTERS.get(value, value)
    if kind == "control":
        letter = value.upper()[0]
        return b"\x7f" if value == b"?" else bytes([letter & 0x1F])
    base = 8 if kind == "octal" else 16
    code = int(value or b"0", base)
    if kind in ("octal", "hex", "braced"):
        return bytes([code & 0xFF])
    if code > sys.maxunicode:
        return _encode_beyond_unicode(code)
    return chr(code).encode(errors="surrogatepass")


def _encode_beyond_unicode(code: int) -> bytes:
    """Return the bytes that bash writes for a number beyond Unicode: UTF-8 in its original form."""
    for count, first, limit in ((3, 0xF0, 1 << 21), (4, 0xF8, 1 << 26), (5, 0xFC, 1 << 31)):
        if code < limit:
            rest = [0x80 | code >> 6 * at & 0x3F for at in reversed(range(count))]
            return bytes([first | code >> 6 * count, *rest])
    return b""


def _is_too_many(pieces: Sequence[Sequence[str]]) -> bool:
    """Return whether the pieces of a word have too many combinations."""
    count = 1
    for texts in pieces:
        count *= len(texts)
        if count > _MOST_WORDS:
            return True
    return False


def _expand_braces(text: str) -> list[str]:
    """Return the words of `a{b,c}` or `a{1..3}`; braces without alternatives stay."""
    if text.count(_OPEN) > _MOST_WORDS:
        return [UNKNOWN]
    done: list[str] = []
    open_ = [text]
    while open_ and len(done) + len(open_) <= _MOST_WORDS:
        marked = open_.pop(0)
        braces = _BRACES.search(marked)
        if braces is None:
            done.append(marked)
            continue
        before, after = marked[: braces.start()], marked[braces.end() :]
        choices = _choices(braces[1])
        if len(choices) > _MOST_WORDS:
            return [UNKNOWN]
        open_ += [f"{before}{choice}{after}" for choice in choices]
    return [UNKNOWN] if open_ else done


def _choices(inner: str) -> list[str]:
    if _COMMA in inner:
        return inner.split(_COMMA)
    if span := re.fullmatch(r"(\d{1,4})\.\.(\d{1,4})", inner):
        first, last = sorted((int(span[1]), int(span[2])))
        return [str(number) for number in range(first, last + 1)]
    return [f"{{{inner}}}"]
