"""Repairs of a HANDOFF.md that need no decision of its author. Pure.

A packet in another form, such as Markdown, JSON or the text of a chat, gets the form of the
document. What belongs to no field, comments among it, becomes text below the front matter, so that
no word is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yolo_fs.handoffs.lifecycle import ABSENT
from yolo_fs.handoffs.packets import FENCE, as_front_matter, is_heading
from yolo_fs.protocol.handoffs import PACKET_FIELDS, TRIGGER_BY_ID, FieldRule, directive_role
from yolo_fs.schemas.layout import spelling_of

_RULES = {row.name: row.rule for row in PACKET_FIELDS}
_FIELD_OF_SPELLING = {spelling_of(name): name for name in _RULES} | {
    "from": "from_role", "to": "to_role", "session": "session_id", "task": "task_file",
    "branch": "directive_branch", "reading": "required_reading", "blocking": "blocking_rule",
}  # fmt: skip
"""Letters of a key → the field that is meant."""
_FREE_TEXT = (FieldRule.ONE_LINE,)
_PATHS = (FieldRule.TASK_FILE, FieldRule.READING)
_MEMBER = re.compile(
    r"(?P<indent>\s*(?:[-*+]\s+)?)(?P<sign>[*_`\"']*)(?P<key>[A-Za-z][\w -]{0,40}?)(?P=sign)"
    r"\s*:(?P<end>[*_]*)(?P<value>.*)"
)
_NAME = re.compile(r"[A-Za-z][\w -]{0,40}")
_TOP = re.compile(r"[\"'*]*handoff[\"'*]*\s*:[*]*\s*", re.IGNORECASE)
_FENCE = re.compile(r"-{3,}|\+{3}|\.{3}|(?:```|~~~)\w*")
"""A line that begins or ends front matter or a block of code."""
_BLOCK = re.compile(r"[|>][+-]?")
_ITEM = re.compile(r"[-*+]\s+(?P<item>.+)")
_COMMENT = re.compile(r"(?:^|\s)#\s*(?P<said>.*)")
_ASIDE = re.compile(r"\s#\s+(?P<said>.*)")
"""A comment behind a text, in which `#12` is a word."""
_QUOTED = re.compile(r"(?P<sign>[\"'`])(?P<text>.*)(?P=sign)")
_LISTED = re.compile(r"\[(?P<item>[^][,]*)\]|\{(?P<inner>[^{},:]*)\}")


@dataclass(slots=True)
class _Loose:
    """A packet as its author wrote it, in whatever form."""

    texts: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    """What stands above the packet, and comments within it."""
    after: Sequence[str] = ()
    is_certain: bool = True
    """Whether every line is understood, and no field is given two values."""


def mended_packet(text: str, texts: Mapping[str, str], root: str) -> str:
    """Return the text of a HANDOFF.md with every repair that needs no decision.

    `texts`: field → value as the strict reader has it; empty where it refuses the form. `root`:
    absolute path of the repository; empty if unknown.
    """
    lines = text.split("\n")
    if texts:
        corrected = _corrected(texts, root)
        if corrected == texts:
            return text
        return _written(corrected, (), lines[lines.index(FENCE, 1) + 1 :])
    loose = _read_json(text) or _read_lines(lines)
    if not loose.is_certain or len(_RULES.keys() & loose.texts.keys()) < _FEWEST:
        return text
    return _written(_corrected(loose.texts, root), loose.before, loose.after)


_FEWEST = 4
"""Fields from which on a text is taken for a packet."""


def _written(texts: Mapping[str, str], before: Sequence[str], after: Sequence[str]) -> str:
    above = ["", *before] if before else []
    body = "\n".join((*above, *after))
    return as_front_matter(texts) + (body if body.endswith("\n") or not body else f"{body}\n")


def _read_json(text: str) -> _Loose | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inner = value.get("handoff", value) if isinstance(value, dict) else None
    if not isinstance(inner, dict) or not all(isinstance(each, str) for each in inner.values()):
        return None
    loose = _Loose(is_certain=all(map(_NAME.fullmatch, inner)))
    for key, item in inner.items():
        _add(loose, _field_of(key) or key, " ".join(item.split("\n")))
    return loose


def _read_lines(lines: Sequence[str]) -> _Loose:
    loose, key, indent = _Loose(), "", 0
    fences = {number for number, line in enumerate(lines) if _FENCE.fullmatch(line.strip())}
    last_fence = max(fences, default=0)
    for number, line in enumerate(lines):
        bare = line.replace("\u00a0", " ").strip()
        depth = _depth_of(line)
        member = _member_of(line, within=bool(key))
        if member and (member[0] in _RULES or depth <= indent):
            key, indent = member[0], depth
            _add(loose, key, _value_of(key, member[1], loose))
        elif not key:
            loose.before += [line] if _says_something(bare) else []
        elif number in fences or (not bare and number > last_fence):
            loose.after = lines[number + 1 :] if bare else lines[number:]
            break
        elif bare.startswith("#"):
            loose.before.append(bare.lstrip("# "))
        elif bare and not member and depth > indent:
            _continue(loose, key, bare)
        elif bare:
            loose.is_certain = False
    return loose


def _depth_of(line: str) -> int:
    """Return by how many blanks a line is indented."""
    spread = line.replace("\u00a0", " ").expandtabs(2)
    return len(spread) - len(spread.lstrip())


def _says_something(bare: str) -> bool:
    """Return whether a line above the packet is more than a sign of its form."""
    is_form = _FENCE.fullmatch(bare) or _TOP.fullmatch(bare) or is_heading(bare)
    return bool(bare) and not is_form


def _member_of(line: str, *, within: bool) -> tuple[str, str] | None:
    """Return the field of a line and its value, or None. `within`: a packet has begun."""
    match = _MEMBER.fullmatch(line.replace("\u00a0", " "))
    if match is None or _TOP.fullmatch(line.strip()):
        return None
    value = match["value"]
    key = _field_of(match["key"])
    is_plain = re.fullmatch(r"[a-z_]+", match["key"]) is not None and value[:1] in ("", " ")
    if key is None and not (within and is_plain):
        return None
    return key or match["key"], value.strip()


def _field_of(key: str) -> str | None:
    return _FIELD_OF_SPELLING.get(spelling_of(key))


def _add(loose: _Loose, key: str, text: str) -> None:
    if loose.texts.setdefault(key, text) != text:
        loose.is_certain = False  # of two values, the author says which holds


def _continue(loose: _Loose, key: str, bare: str) -> None:
    """Add a line below a field to its value."""
    item = _ITEM.fullmatch(bare)
    before, rule = loose.texts[key], _RULES.get(key)
    if before and rule not in _FREE_TEXT:
        loose.is_certain = False  # several values, of which the field takes one
    link = "; " if item else " "
    added = _value_of(key, item["item"] if item else bare, loose)
    loose.texts[key] = f"{before}{link}{added}" if before else added


def _value_of(key: str, text: str, loose: _Loose) -> str:
    """Return a value without the signs of its form; a comment becomes text."""
    is_free = _RULES.get(key) in _FREE_TEXT
    if _BLOCK.fullmatch(text):
        return ""
    comment = (_ASIDE if is_free else _COMMENT).search(text)
    if comment and not _QUOTED.fullmatch(text):
        loose.before += [comment["said"]] if comment["said"] else []
        text = text[: comment.start()].strip()
    if quoted := _QUOTED.fullmatch(text):
        return _unquoted(quoted)
    if is_free:
        return text.lstrip("\"'")
    listed = _LISTED.fullmatch(text)
    return (listed["item"] or listed["inner"] or "").strip(" \"'") if listed else text


def _unquoted(quoted: re.Match[str]) -> str:
    sign, text = quoted["sign"], quoted["text"]
    if sign == "'":
        return text.replace("''", "'")
    return text.replace('\\"', '"').replace("\\\\", "\\") if sign == '"' else text


def _corrected(texts: Mapping[str, str], root: str) -> dict[str, str]:
    named = {_field_of(key) if _is_free(key, texts) else key: text for key, text in texts.items()}
    return {str(key): _correct(str(key), text, root) for key, text in named.items()}


def _is_free(key: str, texts: Mapping[str, str]) -> bool:
    """Return whether a key is another spelling of a field that the packet lacks."""
    meant = _field_of(key)
    return meant is not None and meant not in texts


def _correct(key: str, text: str, root: str) -> str:
    rule, bare = _RULES.get(key), text.strip()
    if rule in _FREE_TEXT or rule is None:
        return text
    if bare.casefold() == ABSENT:
        return ABSENT
    match rule:
        case FieldRule.ROLE:
            return directive_role(bare.casefold()) or text
        case FieldRule.TRIGGER:
            word = re.sub(r"[\s-]+", "_", bare.casefold())
            return word if word in TRIGGER_BY_ID else text
        case FieldRule.BRANCH:
            return bare.removeprefix("refs/heads/")
    if rule in _PATHS:
        path = bare if "/" in bare else bare.replace("\\", "/")
        return path[len(root) + 1 :] if root and path.startswith(f"{root}/") else path
    return text
