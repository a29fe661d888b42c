"""The common parts of all drop-in scripts: arguments, input and output.

The command line is `--name value`, without abbreviations and without `=`. A directory is read
leniently, as the reference scripts read it: each line on its own, and no shape is required; links,
pipes and files of other users are not read. JSON is printed as they print it: indented, and in
ASCII whatever the locale.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.system.files import read

Row = Mapping[str, Any] | None
"""The object on one line; None where the line is not a JSON object."""


class UsageError(YoloError):
    """The arguments are wrong for the script. The message is printed unchanged."""

    def __init__(self, message: str, *, more: str = ""):
        super().__init__(Reason.BAD_NAME, message, hint=more, exit_code=Exit.USAGE)


class ScriptInput(NamedTuple):
    """The arguments of one call."""

    usage: str
    """The script's name and its arguments."""
    values: Mapping[str, str]
    """Flag → its value; the last one counts."""
    switches: frozenset[str]
    """Flags without a value."""
    rest: tuple[str, ...]
    """Arguments that are not flags, in order."""

    def need(self, flag: str, message: str = "") -> str:
        """Return the value of a required flag.

        Raises:
            UsageError: it is absent or empty; `message` replaces the line with the usage.
        """
        if value := self.values.get(flag, ""):
            return value
        raise UsageError(message or f"Usage: {self.usage} ({flag} is missing)")

    def choose(self, flag: str, choices: Sequence[str]) -> str:
        """Return the value of a flag that must be one of a closed list.

        Raises:
            UsageError: it is absent, or not in the list.
        """
        value = self.need(flag)
        if value in choices:
            return value
        comma = "," if len(choices) > 2 else ""
        listed = f"{', '.join(choices[:-1])}{comma} or {choices[-1]}"
        raise UsageError(f"ERROR: {flag} must be {listed} (got {value})")


def require_folder(path: str, message: str) -> str:
    """Return the path of a directory.

    Raises:
        UsageError: there is none; `message` is followed by the path.
    """
    if os.path.isdir(path):
        return path
    raise UsageError(f"{message}: {path}")


def folder_to_write(path: str) -> tuple[str, str]:
    """Return the directory from which a folder to write is reached safely, and its absolute path.

    In a work tree, the outermost around it, no link may lead to it; elsewhere a person's own links
    may.

    Raises:
        YoloError: NOT_REGULAR, PATH_ESCAPES.
    """
    from yolo_fs.system.store import environment, opened
    from yolo_fs.system.typed_path import resolve_typed_path

    above = os.path.abspath(path)
    root = None
    while above != (above := os.path.dirname(above)):
        root = above if os.path.lexists(f"{above}/.git") else root
    top, place = resolve_typed_path(os.path.join(path, "_"), os.curdir, root)
    with environment(os.path.dirname(place)), opened(place, top):
        return top, os.path.dirname(place)


def parse(
    arguments: Sequence[str],
    usage: str,
    *,
    valued: Collection[str] = (),
    switches: Collection[str] = (),
    joined: Collection[str] = (),
    most: int = 0,
    names_flag: bool = True,
) -> ScriptInput:
    """Return the parsed arguments.

    `joined`: those of `valued` that may also be written `--name=value`. `most`: the maximum number
    of arguments that are not flags. `names_flag`: report an unknown flag by its name, not with the
    usage.

    Raises:
        UsageError: an unknown flag, a flag without its value, too many other arguments.
    """
    values: dict[str, str] = {}
    switched: set[str] = set()
    rest: list[str] = []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        if argument in switches:
            switched.add(argument)
        elif equals and name in joined:
            values[name] = value
        elif argument in valued:
            if not left:
                raise UsageError(f"Usage: {usage} ({argument} has no value)")
            values[argument] = left.pop(0)
        elif (argument.startswith("-") and argument != "-") or len(rest) == most:
            if names_flag:
                raise UsageError(f"Unknown flag: {argument}")
            raise UsageError(f"Usage: {usage} (unknown flag: {argument})")
        else:
            rest.append(argument)
    return ScriptInput(usage, values, frozenset(switched), tuple(rest))


_unsaid: list[str] = []
"""Pending warnings of the running script."""


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON value. An object gets the warnings, under `warnings`.

    On stderr they would end up inside it for every caller that joins the two streams.
    """
    if isinstance(value, Mapping) and _unsaid:
        value = {**value, "warnings": [*value.get("warnings", ()), *_unsaid]}
        _unsaid.clear()
    print(json.dumps(value, indent=2))


def say_warnings() -> None:
    """Print the warnings on stderr that no JSON output has included."""
    for text in _unsaid:
        print(f"[warn] {text}", file=sys.stderr)
    _unsaid.clear()


def print_verdict(errors: Sequence[str], warnings: Sequence[str]) -> int:
    """Print the result of a validator, and return its exit code."""
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


_JSON_TYPES = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def json_type(value: object) -> str:
    """Return the JSON type of a value, as jq names it."""
    return _JSON_TYPES.get(type(value), "null")


def warn(text: str) -> None:
    """Keep a warning for the end or for the JSON output; ignore an empty text."""
    if text:
        _unsaid.append(safe(text, 500))


def now() -> str:
    """Return the current time, UTC, to the second."""
    return iso(time.time())


LIMIT_BYTES = 8 << 20
"""Larger files are not read."""

_BLANKS = " \t\r\n"
_BLANK = frozenset(_BLANKS)


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class Folder:
    """One directory, inside or outside of a repository.

    A file "is there" when it is regular; a sentinel is an empty file and only has to be there.
    """

    def __init__(self, path: str):
        self.path = path

    def content(self, name: str) -> bytes | Finding:
        """Return the bytes of a file, or a finding in their place."""
        content = read(self.path, name, LIMIT_BYTES)
        return content if isinstance(content, Finding) else content.data

    def stands(self, name: str) -> bool:
        """Return whether a regular file has this name."""
        return isinstance(self.content(name), bytes)

    def has(self, name: str) -> bool:
        """Return whether a regular file has this name and content."""
        data = self.content(name)
        return isinstance(data, bytes) and bool(data)

    def is_json(self, name: str) -> bool:
        """Return whether the whole file parses as JSON, on any number of lines."""
        data = self.content(name)
        return isinstance(data, bytes) and bool(data) and _is_stream(data)

    def names(self, beginning: str, ending: str) -> Sequence[str]:
        """Return the names of files with that prefix and suffix, sorted."""
        if not os.path.isdir(self.path):
            return ()
        matching = sorted(
            name
            for name in os.listdir(self.path)
            if name.startswith(beginning) and name.endswith(ending)
        )
        return [name for name in matching if os.path.isfile(os.path.join(self.path, name))]

    def rows(self, name: str) -> Sequence[Row]:
        """Return the lines of a file; a single None if it cannot be read."""
        data = self.content(name)
        if isinstance(data, Finding):
            return () if data.reason is Reason.FILE_MISSING else (None,)
        return [object_of(line) for line in data.split(b"\n") if line.strip()]

    def object(self, name: str) -> Mapping[str, Any]:
        """Return the single JSON object of a file; empty if there is none."""
        data = self.content(name)
        return (object_of(data) or {}) if isinstance(data, bytes) else {}


def first(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the first line; empty if there is none, or if it is not a JSON object."""
    return (rows[0] if rows else None) or {}


def says(row: Row, key: str, *values: object) -> bool:
    """Return whether a key of a line has one of the values."""
    return row is not None and row.get(key) in values


def object_of(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in the bytes, or None."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_stream(data: bytes) -> bool:
    """Return whether the bytes are a sequence of JSON values, as `jq empty` checks."""
    try:
        text = data.decode("utf-8").strip(_BLANKS)
        at = 0
        while at < len(text):
            _, at = _DECODER.raw_decode(text, at)
            while text[at : at + 1] in _BLANK:
                at += 1
    except (ValueError, RecursionError):
        return False
    return True


def read_object(path: str) -> dict[str, Any] | None:
    """Return the JSON object in a file, or None when there is no file.

    Raises:
        YoloError: it is there and holds anything else.
    """
    from yolo_fs.system.store import Damaged, read_json

    content = read_json(path)
    if isinstance(content, Damaged):
        raise YoloError(content.reason, f"{path}: {content.reason.sentence}: {content.detail}")
    return content
