"""Which files a shell command or a patch reads and writes, as far as its words tell. Pure; nothing is resolved.

A shell can hide anything; this finds what agents write in good faith.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_HEREDOC = re.compile(
    r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:\n[ \t]*\2[ \t]*(?=\n|\Z)|\Z)", re.DOTALL
)
_PATCHED = re.compile(
    r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)[ \t]*$", re.MULTILINE
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_QUOTED_PATH = re.compile(r"[\w./~-]*\.yolo-planning[\w./*-]*|[\w./-]*HANDOFF\.md")
_WRITING_CODE = re.compile(
    r"['\"][rb]*[wax]\+?b?['\"]|write|unlink|remove|rename|replace|touch|copy|move|dump|>",
    re.IGNORECASE,
)
_BEFORE = frozenset(
    {
        "sudo",
        "env",
        "command",
        "time",
        "nohup",
        "xargs",
        "exec",
        "nice",
        "builtin",
        "then",
        "do",
        "!",
    }
)
_WRITERS = frozenset(
    {
        "tee",
        "rm",
        "rmdir",
        "touch",
        "truncate",
        "mkdir",
        "mv",
        "unlink",
        "shred",
        "ln",
        "sponge",
        "ed",
        "patch",
    }
)
_COPIERS = frozenset({"cp", "install", "rsync"})
_INTERPRETERS = re.compile(r"python[0-9.]*|node|perl|ruby|deno|bun|php")
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "eval"})
_GIT_WRITES = frozenset({"rm", "mv", "checkout", "restore"})
_REMOVERS = frozenset({"rm", "rmdir", "mv", "unlink", "shred"})
_SEPARATORS = frozenset(";&|()\n")
_DEEPEST = 3
"""Shells within shells that are looked into."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One file that is read or written."""

    path: str
    """As spelled, relative to where the command begins."""
    writes: bool
    removes: bool = False
    """What lies below it goes as well, where it is a folder."""


def touches_of(command: str) -> tuple[Touch, ...]:
    """Return the files that a command names, or those of a patch."""
    if "*** Begin Patch" in command:
        return tuple(Touch(path, writes=True) for path in _PATCHED.findall(command))
    return tuple(_touches(command, "", 0))


def _touches(command: str, base: str, depth: int) -> Iterator[Touch]:
    outside: list[str] = []
    for words in _segments(_HEREDOC.sub(r"\3\n", command)):
        if words == ["("]:
            outside.append(base)
        elif words == [")"]:
            base = outside.pop() if outside else base
        verb, given = _verb(words)
        if verb == "cd":
            base = _below(base, given[0]) if given else base
            continue
        if verb in _SHELLS and depth < _DEEPEST:
            yield from (
                inner for word in given for inner in _touches(word, base, depth + 1) if " " in word
            )
        found = [*_redirected(words), *_given(verb, given)]
        yield from (Touch(_below(base, one.path), one.writes, one.removes) for one in found)


def _segments(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command; redirections stay words of their own."""
    words: list[str] = []
    for line in command.replace("\\\n", " ").split("\n"):
        for word in _words(line):
            if word and set(word) <= _SEPARATORS:
                yield words
                yield from ([char] for char in word if char in "()")
                words = []
            else:
                words.append(word)
        yield words
        words = []


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # a quote that ends on another line
        return re.findall(r"[<>]+|[^\s<>'\"]+", line)


def _verb(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program that a simple command runs, and its arguments without redirections."""
    left = [word for index, word in enumerate(words) if not _is_redirection(words, index)]
    while left and (left[0] in _BEFORE or _ASSIGNMENT.fullmatch(left[0])):
        left.pop(0)
    return (posixpath.basename(left[0]), left[1:]) if left else ("", [])


def _is_redirection(words: Sequence[str], index: int) -> bool:
    return _arrow(words[index]) != "" or (index > 0 and _arrow(words[index - 1]) != "")


def _arrow(word: str) -> str:
    return word if set(word) <= set("<>&|") and ("<" in word or ">" in word) else ""


def _redirected(words: Sequence[str]) -> Iterator[Touch]:
    for before, word in pairwise(words):
        if _arrow(before) and "<<" not in before:
            yield Touch(word, writes=">" in before)


def _given(verb: str, given: Sequence[str]) -> Iterator[Touch]:
    paths = [word for word in given if not word.startswith("-")]
    if _INTERPRETERS.fullmatch(verb):
        yield from _in_code(given)
    if verb == "dd":
        yield from (Touch(word[3:], writes=True) for word in given if word.startswith("of="))
    elif verb in _WRITERS:
        yield from (Touch(path, writes=True, removes=verb in _REMOVERS) for path in paths)
    elif verb in _COPIERS:
        yield from (Touch(path, writes=path == paths[-1]) for path in paths)
    elif verb == "git":
        yield from _of_git(given)
    else:
        in_place = verb in ("sed", "perl") and any(
            re.match(r"-\w*i|--in-place", word) for word in given
        )
        yield from (Touch(path, writes=in_place) for path in paths if "/" in path or "." in path)


def _of_git(given: Sequence[str]) -> Iterator[Touch]:
    """Yield what `git rm`, `mv` and `restore` write, and `checkout` behind `--`: before it stands a branch."""
    command = given[0] if given else ""
    paths = (
        given[1:] if command != "checkout" else given[given.index("--") :] if "--" in given else ()
    )
    if command in _GIT_WRITES:
        removes = command in _REMOVERS
        yield from (
            Touch(path, writes=True, removes=removes) for path in paths if not path.startswith("-")
        )


def _in_code(given: Sequence[str]) -> Iterator[Touch]:
    for word in given:
        writes = _WRITING_CODE.search(word) is not None
        yield from (
            Touch(path, writes=writes) for path in _QUOTED_PATH.findall(word) if path != word
        )


def _below(base: str, path: str) -> str:
    return posixpath.join(base, path) if base else path
