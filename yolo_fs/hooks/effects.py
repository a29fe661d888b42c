"""What a command does to a file, or to the rules, as far as its text tells. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from glob import escape

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.hooks.shell import UNKNOWN, Word
from yolo_fs.protocol.verbs import OwnVerb


class Effect(StrEnum):
    """Effect on a file."""

    READ = "read"
    WRITE = "write"
    REMOVE = "remove"
    """It is removed, with everything below it if it is a folder."""
    FILL = "fill"
    """Any file in it may be written over, if it is a folder."""
    ALTER = "alter"
    """Its mode, time or layout changes, or a folder is made.
    This is forbidden only for files that a command maintains.
    """


class StagingMode(StrEnum):
    """How git takes files into the index."""

    UNIGNORED = "unignored"
    """A folder stands for the new files in it that git does not ignore."""
    FORCED = "forced"
    """A folder stands for all new files in it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """One file that is read or changed."""

    path: str
    """As spelled, relative to where the command starts; may contain `UNKNOWN`."""
    effect: Effect
    is_pattern: bool = False
    """Whether `path` is a pattern of `glob`."""
    name_in_folder: str = ""
    """Name of the file if `path` turns out to be a folder, as with `cp`."""
    must_exist: bool = False
    """Whether it only counts if there is such a file: `git checkout x` may name a branch."""
    or_below_root: bool = False
    """Whether it may also be relative to the root."""
    is_deep: bool = False
    """Whether everything below a folder is included."""
    is_named: bool = False
    """Whether it is only named to a program, which reads it if it wants: what is installed or
    generated does not count."""
    staged: StagingMode | None = None
    """Whether git takes it into the index, and then keeps and publishes what it holds."""

    @property
    def writes(self) -> bool:
        """Whether it does more than read."""
        return self.effect is not Effect.READ

    @property
    def is_certain(self) -> bool:
        """Whether the whole path is known."""
        return UNKNOWN not in self.path


@dataclass(frozen=True, slots=True)
class Destruction:
    """A command that may destroy uncommitted content."""

    what: str
    """The command, for messages."""
    paths: tuple[str, ...] = ()
    """What it names, relative to where the command begins; empty for the whole work tree."""
    tracked: bool = True
    """Whether it discards changes of tracked files."""
    untracked: bool = False
    """Whether it removes untracked files."""

    def below(self, folder: str) -> Destruction:
        """Return it with paths relative to the folder above."""
        return replace(self, paths=tuple(posixpath.join(folder, path) for path in self.paths))


_ANYBODYS = OwnVerb("")


@dataclass(frozen=True, slots=True)
class OwnUse:
    """A command of ours that not every agent may use."""

    what: str
    """The command, for messages."""
    verb: OwnVerb = _ANYBODYS
    """Its row; that of anybody's verb by default."""
    department: str = ""
    """The department that it names."""
    speaks_for: str = ""
    """The agent in whose name it acts, if it names one."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """Something of a command that its text does not tell."""

    what: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A use of git that our hooks would not see."""

    what: str


@dataclass(frozen=True, slots=True)
class NewTree:
    """A work tree that the command makes: the files in it are those of the repository."""

    path: str


OneSeen = Touch | NewTree | Undecided | Unchecked | Destruction | OwnUse
Seen = Iterator[OneSeen]


_NAME = re.compile(r"[^\s=:,;|&<>()\[\]{}'\"`@!\\]+")


def names_in(text: str) -> Iterator[str]:
    """Yield the words of a text that may name a file, relative to a folder."""
    for name in dict.fromkeys(_NAME.findall(text)):
        if "." in name or "/" in name:
            yield re.sub(r"^[-+?#%]*(?:\.{1,2}/)+|^[-+?#%]+", "", name)


def touch_named(text: str) -> Iterator[Touch]:
    """Yield the files that are there by the words of a text, such as `--require ./FILE`."""
    for name in dict.fromkeys(_NAME.findall(text)):
        if "." in name or "/" in name:
            name = re.sub(r"^~[+-]/", "", name)
            yield Touch(name, Effect.READ, must_exist=True, is_named=True)


def touch_of(
    word: Word, effect: Effect, name_in_folder: str = "", must_exist: bool = False
) -> Iterator[Touch]:
    """Yield the file that a word names; addresses, versions and the like are no files."""
    text = word.text
    if text.startswith("file:"):
        text = text.removeprefix("file:").removeprefix("//")
        word = Word(text)
    is_remote = "://" in text or re.match(r"[\w.@-]+:(?!\\)", text)
    is_device = re.match(r"/dev/(?!shm/)", posixpath.normpath(text))  # shm holds files
    if not text or text == "-" or is_remote or is_device or "\0" in text:
        return
    path = word.pattern if word.is_pattern else text
    yield Touch(path, effect, word.is_pattern, name_in_folder, must_exist)


def touch_all(words: Sequence[Word], effect: Effect) -> Iterator[Touch]:
    """Yield one effect on each file that words name."""
    for word in words:
        yield from touch_of(word, effect)


def touch_chosen(folder: str, patterns: str) -> Iterator[Touch]:
    """Yield the files in a folder that a search chooses by name, as with `--glob`.

    A pattern that begins with a wildcard names no file.
    """
    is_of_tree = PLANNING_ROOT in folder
    within = escape(folder)
    for pattern in re.split(r"[\s,{}]+", patterns):
        name = posixpath.basename(pattern)
        if pattern.startswith("!") or not name.strip(".") or name[0] in "*?[":
            continue
        below = "**" if is_of_tree else f"{PLANNING_ROOT}/**"
        for place in (name, f"*/{name}", f"{below}/{name}"):
            path = f"{within}/{place}"
            yield Touch(path, Effect.READ, is_pattern=True, must_exist=True)


def touch_deep(words: Iterable[Word]) -> Iterator[Touch]:
    """Yield what words name as read, with everything below."""
    for word in words:
        for seen in touch_of(word, Effect.READ):
            yield replace(seen, is_deep=True)
