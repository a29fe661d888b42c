"""A directory read leniently, as the reference scripts read it: each line for itself, no shape
asked for.

Links, pipes and other people's files are not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from yolo_fs.edges.files import read
from yolo_fs.reasons import Finding, Reason, YoloError

if TYPE_CHECKING:
    from yolo_fs.rules.phase.gate_sources import Row

LIMIT_BYTES = 8 << 20
"""Larger files are not read."""

_BLANKS = " \t\r\n"
_BLANK = frozenset(_BLANKS)


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class Folder:
    """One directory; see `rules.phase.gate_sources.PhaseFolder`."""

    def __init__(self, path: str):
        self.path = path

    def content(self, name: str) -> bytes | Finding:
        """Return the bytes of a file, or what takes its place."""
        found = read(self.path, name, LIMIT_BYTES)
        return found if isinstance(found, Finding) else found.data

    def stands(self, name: str) -> bool:
        return isinstance(self.content(name), bytes)

    def has(self, name: str) -> bool:
        data = self.content(name)
        return isinstance(data, bytes) and bool(data)

    def is_json(self, name: str) -> bool:
        data = self.content(name)
        return isinstance(data, bytes) and bool(data) and _is_stream(data)

    def names(self, beginning: str, ending: str) -> Sequence[str]:
        if not os.path.isdir(self.path):
            return ()
        matching = sorted(
            name
            for name in os.listdir(self.path)
            if name.startswith(beginning) and name.endswith(ending)
        )
        return [name for name in matching if os.path.isfile(os.path.join(self.path, name))]

    def rows(self, name: str) -> Sequence[Row]:
        data = self.content(name)
        if isinstance(data, Finding):
            return () if data.reason is Reason.FILE_MISSING else (None,)
        return [object_of(line) for line in data.split(b"\n") if line.strip()]

    def object(self, name: str) -> Mapping[str, Any]:
        data = self.content(name)
        return (object_of(data) or {}) if isinstance(data, bytes) else {}


def object_of(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object that the bytes spell, or None."""
    try:
        value = _DECODER.decode(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_stream(data: bytes) -> bool:
    """Return whether the bytes are JSON values one after the other, as `jq empty` asks."""
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
    from yolo_fs.edges.store import Damaged, read_json

    found = read_json(path)
    if isinstance(found, Damaged):
        raise YoloError(found.reason, f"{path}: {found.reason.sentence}: {found.detail}")
    return found
