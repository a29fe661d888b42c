"""One message a line: how much of it is read, and the id of one that cannot be read otherwise."""

from __future__ import annotations

import json
import re
from typing import BinaryIO, NamedTuple

LONGEST = 16 << 20
"""Bytes of the longest message."""
_HEAD, _TAIL = 1 << 20, 4_096
"""Bytes in which an id is looked for; at the end, without regard to what stands before."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+\\?(?:"|\Z)|[{}\[\]]', re.DOTALL)
"""A string, ended or not, or a bracket. Linear: no place is looked at twice."""
_VALUE = re.compile(rb'\s*:\s*("(?:[^"\\]++|\\.){0,1000}+"|-?[0-9]{1,18}(?![0-9.eE]))')
_IN_TAIL = re.compile(rb'"id"\s*:\s*("[^"\\]{0,1000}"|-?[0-9]{1,18})\s*\}\s*\Z')
_Id = int | str


class ClientLine(NamedTuple):
    """One line of the client."""

    data: bytes
    """The line, or its beginning where it is too long."""
    tail: bytes = b""
    """The end of one that is too long; empty for all others."""

    @property
    def id(self) -> _Id | None:
        """The id that a request has, if it can be found without understanding the rest."""
        request_id = _find_request_id(self.data[:_HEAD])
        if request_id is None and (end := _IN_TAIL.search(self.end)):
            request_id = _parse_request_id(end[1])
        return request_id

    @property
    def end(self) -> bytes:
        """The end of a line that is too long to be looked through; empty for all others."""
        return self.tail or (self.data[-_TAIL:] if len(self.data) > _HEAD else b"")

    @property
    def has_id(self) -> bool:
        """Whether it has an id, of whatever form."""
        return _place_of_id(self.data[:_HEAD]) is not None


def read_line(stream: BinaryIO) -> ClientLine | None:
    """Return the next line, of which no more is kept than the longest may have; None at the end."""
    data = stream.readline(LONGEST + 1)
    if not data:
        return None
    if len(data) <= LONGEST or data.endswith(b"\n"):
        return ClientLine(data)
    tail, more = b" ", data[-_TAIL:]
    while more:
        tail = (tail + more)[-_TAIL:]
        if more.endswith(b"\n"):
            break
        more = stream.readline(1 << 20)
    return ClientLine(data, tail)


def _find_request_id(data: bytes) -> _Id | None:
    at = _place_of_id(data)
    value = _VALUE.match(data, at) if at is not None else None
    return _parse_request_id(value[1]) if value else None


def _place_of_id(data: bytes) -> int | None:
    """Return where the value of the outermost object's `id` follows."""
    if not data.lstrip().startswith(b"{"):
        return None
    depth = 0
    for token in _TOKEN.finditer(data):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case b'"id"' if depth == 1 and re.match(rb"\s*:", data[token.end() : token.end() + 99]):
                return token.end()
    return None


def _parse_request_id(value: bytes) -> _Id | None:
    try:
        request_id = json.loads(value)
    except ValueError:
        return None
    return request_id if isinstance(request_id, int | str) else None
