"""Mechanical repairs that keep the meaning. Pure; nothing is written.

They cover UTF-16, byte order mark, CR LF, Markdown fence, trailing comma, old name of a key, final
newline; objects that are spread over lines, or share one; control characters and lone backslashes
in texts; single quotes, bare keys, comments, and prose around the objects, which is kept as a
`note`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from yolo_fs.artifacts.catalogue import ANY_MESSAGE, Kind, artifact_of
from yolo_fs.artifacts.corrections import Correction, corrected, unwrapped
from yolo_fs.artifacts.table import Artifact
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.fields import fields_of, is_whole
from yolo_fs.schemas.layout import Format
from yolo_fs.schemas.messages.catalogue import MESSAGES, with_own_type

MAX_BYTES = 1 << 20
"""Larger files are not repaired: their diff would be of no use."""

_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=[ \t\r\n]*(?:[}}\]]|\Z))")
_TOKENS = re.compile(rf"({_STRING})([ \t\r\n]*:)?|[{{}}\[\]]")
_LONE_BACKSLASH = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
"""A backslash in a text that does not start a valid JSON escape."""
_LOOSE = re.compile(
    r"""(?<!\\)(?:(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")|'(?P<quoted>(?:[^'\\\n]|\\[^\n])*+)')"""
    r"|(?P<comment>//[^\n]*|#[^\n]*|/\*.{0,999}?\*/|<!--.{0,999}?-->)"
    r"|(?P<key>[A-Za-z_$][\w$-]*+)(?=[ \t]*+:)|(?P<word>[A-Za-z_$][\w$-]*+)"
    r"|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<other>.)",
    re.DOTALL,
)
"""The tokens that people and Python write instead of JSON."""
_WORDS = {"True": "true", "False": "false", "None": "null"}
_PROSE = re.compile(r"(?!.*\"[ \t]*:)[^{}\[\]]*")
"""A line that cannot be a part of an object."""
_LISTS = frozenset({
    "tasks", "findings", "checks", "issues", "critique", "decisions", "gaps", "results", "entries",
    "items",
})  # fmt: skip
"""Keys of a header that may hold all records below it."""
_NOTE = "note"
"""Key for text from outside of the objects."""
_LENIENT = json.JSONDecoder(strict=False)
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)
"""A line with which git leaves two versions of a passage side by side."""
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


def mended(data: bytes, kind: Kind, by: Correction | None = None) -> bytes | None:
    """Return the content with every repair that needs no decision, or None if nothing changes.

    `by`: the context of the file; without it, only what the text alone allows is repaired.
    """
    if len(data) > MAX_BYTES:
        return None
    try:
        text = data.removeprefix(_MARK).decode(_encoding_of(data))
    except UnicodeDecodeError:
        return None
    text = text.replace("\r\n", "\n")
    if not text.strip() or _CONFLICT.search(text):
        return None  # of two versions, the author says which holds
    if kind.format is not Format.TEXT:
        text = _strip_fence(text)
    if kind.format in (Format.JSON, Format.JSONL):
        is_ended = text.endswith("\n") or kind.format is Format.JSON
        text = _mend_json(text, kind, by)
        if not is_ended and _record(text.rstrip("\n").rpartition("\n")[2]) is None:
            return None  # the half of a line: its writer knows the rest
    try:
        fresh = (text if text.endswith("\n") else text + "\n").encode()
    except UnicodeEncodeError:
        return None  # half of an escape pair: its writer knows the other half
    return fresh if fresh != data else None


def _encoding_of(data: bytes) -> str:
    """Return the encoding of a text, which in every format begins with a sign of ASCII."""
    if b"\0" not in data:
        return "utf-8"
    if data.startswith(_WIDE_MARKS):
        return "utf-16"
    return {b"\0": "utf-16-be"}.get(data[:1]) or ("utf-16-le" if not data[1] else "utf-8")


def diff(before: bytes, after: bytes, path: str) -> str:
    """Return the change as a unified diff that `git apply` takes."""
    pieces = difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in pieces
    )


def _lines(data: bytes) -> list[str]:
    """Return the lines with their line ends; only LF ends a line."""
    text = data.decode(errors="backslashreplace")
    return [piece for piece in re.split(r"(?<=\n)", text) if piece]


def _strip_fence(text: str) -> str:
    lines = text.strip().split("\n")
    if len(lines) > 2 and _is_fence(lines[0]) and lines[-1].strip() in ("```", "~~~"):
        return "\n".join([*lines[1:-1], ""])
    return text


def _mend_json(text: str, kind: Kind, by: Correction | None) -> str:
    if kind.format is Format.JSON:
        body = text.rstrip("\n")
        if _record(body) is None and len(objects := _objects_in(body)) == 1:
            body = json.dumps(objects[0], ensure_ascii=False, indent=2)
        if by is not None:
            body = _unwrap(body, kind)
        return _mend_records([body], kind, by)[0] + "\n"
    lines = text.split("\n")
    if by is not None:
        if any(_record(line) is None for line in lines if line.strip()):
            right = {_write_compact(record): line for line in lines if (record := _record(line))}
            lines = [
                right.get(_write_compact(each)) or _written_like(text, each)
                for each in _objects_in(text)
            ] or lines
        lines = _drop_copies([line for line in lines if line.strip(" \t\r")], kind)
        lines = [_unwrap(line, kind) for line in _unfold_list(lines, kind)]
        lines = _put_header_first(lines, kind)
    return "\n".join(_mend_records(lines, kind, by))


def _objects_in(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text, whether spread over lines or in one array.

    Comments and prose become notes of the objects. With any other content, nothing is returned.
    """
    escaped = _LONE_BACKSLASH.sub(lambda match: match[1] or "\\\\", text)
    return _read_objects(escaped) or _read_objects(text)


def _read_objects(text: str) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = []
    notes: list[str] = []
    position = 0
    while position < len(text):
        if text[position] in " \t\r\n,":
            position += 1
            continue
        if text[position] == '"':
            within, end = _objects_in_string(text, position)
            if within:
                objects += within
                position = end
                continue
        if text[position] not in "{[":
            end = text.find("\n", position) % (len(text) + 1)
            line = text[position:end].strip()
            if not _PROSE.fullmatch(line):
                return []
            line = "" if _is_fence(line) else line.strip("/*#<!-> \t")
            notes += [line] if any(map(str.isalnum, line)) else []
            position = end
            continue
        value, end, comments = _value_at(text, position)
        members = _flattened(value)
        if not all(isinstance(member, dict) for member in members):
            return []
        notes += comments
        if notes and members:
            members[0] = _add_note(members[0], notes)
            notes = []
        objects += members
        position = end
    if notes and objects:
        objects[-1] = _add_note(objects[-1], notes)
    return objects


def _flattened(value: Any) -> list[Any]:
    """Return the members of a list and of the lists in it, or the value itself."""
    members, waiting = list[Any](), [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        else:
            members.append(item)
    return members


def _objects_in_string(text: str, position: int) -> tuple[list[dict[str, Any]], int]:
    """Return the objects that a JSON string holds as text, such as `"{\\"id\\": \\"C1\\"}"`, and
    the position behind the string.
    """
    try:
        string, end = _LENIENT.raw_decode(text, position)
    except ValueError:
        return [], position
    return (_read_objects(string) if string.lstrip().startswith(("{", "[")) else []), end


def _is_fence(line: str) -> bool:
    return line.startswith(("```", "~~~"))


def _add_note(value: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    key = next(key for number in count(2) if (key := f"{_NOTE}_{number}") not in value)
    return {**value, _NOTE if _NOTE not in value else key: "\n".join(notes)}


def _value_at(text: str, position: int) -> tuple[Any, int, list[str]]:
    """Return the value at a position, its end, and the comments within it.

    The value is None if it cannot be parsed with certainty.
    """
    try:
        value, end = _LENIENT.raw_decode(text, position)
        return (None if _repeats_a_key(text[position:end]) else value), end, []
    except (ValueError, RecursionError):
        pass
    pieces: list[str] = []
    comments: list[str] = []
    depth = 0
    for token in _LOOSE.finditer(text, position):
        depth += _STEPS.get(token[0], 0)
        if token["comment"]:
            comments.append(token["comment"].strip("/*#<!-> \t\n"))
        else:
            pieces.append(_as_json(token))
        if depth == 0:
            break
    try:
        fresh = _strip_trailing_commas("".join(pieces))
        value = None if depth or _repeats_a_key(fresh) else json.loads(fresh, strict=False)
    except (ValueError, RecursionError):
        value = None
    return value, token.end(), comments


def _as_json(token: re.Match[str]) -> str:
    if token["quoted"] is not None:
        inner = re.sub(r'\\([^"])|(")', _requote, token["quoted"])
        return f'"{inner}"'
    if token["key"]:
        return f'"{token["key"]}"'
    return _WORDS.get(token[0], token[0])


def _requote(match: re.Match[str]) -> str:
    """Return a character of a single-quoted text as it is written in double quotes."""
    if match[2]:
        return '\\"'
    return "'" if match[1] == "'" else match[0]


def _strip_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text)


def _unfold_list(lines: Sequence[str], kind: Kind) -> list[str]:
    """Return one line per record, if a single object holds all of them in one list."""
    artifact, whole = artifact_of(kind), _record(lines[0]) if len(lines) == 1 else None
    if artifact is None or whole is None or artifact.is_one_line:
        return list(lines)
    if named := _records_by_name(artifact, whole):
        return [_written_like(lines[0], record) for record in named]
    is_known = _LISTS if artifact.header else whole.keys() - fields_of(artifact.shapes[0]).keys()
    lists = [key for key, item in whole.items() if key in is_known and isinstance(item, list)]
    if len(lists) != 1 or (not artifact.header and len(whole) > 1):
        return list(lines)
    members = whole[lists[0]]
    if not members or not all(isinstance(member, dict) for member in members):
        return list(lines)
    counts = fields_of(artifact.shapes[0]).get(lists[0])
    if counts is not None and is_whole(counts):
        whole[lists[0]] = len(members)
    else:
        del whole[lists[0]]
    records = [whole, *members] if artifact.header else members
    return [_written_like(lines[0], record) for record in records]


def _records_by_name(artifact: Artifact, whole: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of an object that has each of several under its id; none for any other."""
    own = {key for shape in artifact.shapes for key in fields_of(shape)}
    is_named = "id" in own and all(
        isinstance(item, dict) and item.get("id", key) == key for key, item in whole.items()
    )
    if artifact.header or len(whole) < 2 or not is_named or not own.isdisjoint(whole):
        return []
    return [{"id": key, **item} for key, item in whole.items()]


def _unwrap(text: str, kind: Kind) -> str:
    """Return the text of the record that an object of one key wraps, or the text as it is."""
    artifact, record = artifact_of(kind), _record(text)
    if artifact is None or record is None or _repeats_a_key(text):
        return text
    inner = dict(unwrapped(record, artifact.shapes))
    return text if inner == record else _spread_like(text, inner)


def _put_header_first(lines: Sequence[str], kind: Kind) -> list[str]:
    """Return the lines with the only header on top, where a line of the body precedes it."""
    artifact = artifact_of(kind)
    if artifact is None or not artifact.header or not artifact.body or artifact.repeats_header:
        return list(lines)
    records = [_record(line) or {} for line in lines]
    at = [number for number, each in enumerate(records) if artifact.looks_like_header(each)]
    if len(at) != 1 or not all(records):
        return list(lines)
    return [lines[at[0]], *lines[: at[0]], *lines[at[0] + 1 :]]


def _drop_copies(lines: Sequence[str], kind: Kind) -> list[str]:
    """Return the lines without duplicates, where the artifact allows none."""
    artifact = artifact_of(kind)
    if artifact is None or artifact.may_repeat_lines:
        return list(lines)
    return list(dict.fromkeys(lines))


def _mend_records(texts: Sequence[str], kind: Kind, by: Correction | None) -> list[str]:
    texts = [_strip_trailing_commas(text) for text in texts]
    if kind is ANY_MESSAGE:
        texts = [_name_type(text) for text in texts]
    records = [_record(text) for text in texts]
    first = records[0] or {}
    artifact = artifact_of(kind)
    if by is not None and artifact is not None and not artifact.is_headless(first):
        is_autonomous = first.get("auto", True) is True
        by = replace(by, is_autonomous=is_autonomous, below=[each or {} for each in records[1:]])
        return [
            _corrected(text, record, artifact.shape_of(record, position=position, first=first), by)
            if record
            else text
            for position, (text, record) in enumerate(zip(texts, records, strict=True))
        ]
    return [
        _renamed(text, _former_keys_of(kind, position, record, first)) if record else text
        for position, (text, record) in enumerate(zip(texts, records, strict=True))
    ]


def _name_type(text: str) -> str:
    """Return a message with its type as the catalogue spells it."""
    record = _record(text) or {}
    fresh = with_own_type(record)
    return text if fresh == record or _repeats_a_key(text) else _spread_like(text, fresh)


def _corrected(text: str, record: dict[str, Any], shape: type[Shape] | None, by: Correction) -> str:
    """Return the corrected text of a record; a text that needs no correction is unchanged."""
    if shape is None or _repeats_a_key(text):
        return text
    fresh = corrected(shape, record, by)
    if fresh == record and list(fresh) == list(record):
        return text
    return _spread_like(text, fresh)


def _spread_like(text: str, value: dict[str, Any]) -> str:
    """Return an object on several lines where the text has several, else with its spacing."""
    is_spread = "\n" in text.strip()
    return (
        json.dumps(value, ensure_ascii=False, indent=2) if is_spread else _written_like(text, value)
    )


def _written_like(text: str, value: dict[str, Any]) -> str:
    """Return an object on one line, with the author's spacing."""
    return json.dumps(value, ensure_ascii=False) if '": ' in text else _write_compact(value)


def _write_compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _repeats_a_key(text: str) -> bool:
    """Return whether an object has a duplicate key: parsing it would lose a value."""
    repeated = False

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=keep, strict=False)
    return repeated


def _record(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _former_keys_of(
    kind: Kind, position: int, record: Mapping[str, Any], first: Mapping[str, Any]
) -> Mapping[str, str]:
    """Return old key → present key for a record of this kind."""
    if artifact := artifact_of(kind):
        shape = artifact.shape_of(record, position=position, first=first)
    elif kind.lines:
        shape = kind.lines[0].shape
    else:
        shape = MESSAGES.get(str(record.get("type")))
    return shape.renamed_keys if shape else {}


def _renamed(text: str, renamed_keys: Mapping[str, str]) -> str:
    """Return the object with its old keys renamed; nested objects are unchanged."""
    keys = list(_top_level_keys_in(text)) if renamed_keys else []
    present = {key for _, _, key in keys}
    renames = {}
    for start, end, key in keys:
        if (fresh := renamed_keys.get(key)) and fresh not in present:
            present.add(fresh)
            renames[start, end] = json.dumps(fresh)
    for (start, end), fresh in reversed(renames.items()):
        text = text[:start] + fresh + text[end:]
    return text


def _top_level_keys_in(text: str) -> Iterator[tuple[int, int, str]]:
    depth = 0
    for token in _TOKENS.finditer(text):
        depth += _STEPS.get(token[0], 0)
        if depth == 1 and token[2]:
            yield token.start(1), token.end(1), json.loads(token[1])
