"""The advisory hooks: they read the host's JSON on stdin, may print advice, and always exit 0."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.script_io import LIMIT_BYTES, Folder, object_of
from yolo_fs.core.ids import GRAMMAR, TYPES
from yolo_fs.core.reasons import Finding, safe
from yolo_fs.protocol.departments import WORKING


def read_input() -> Mapping[str, Any]:
    """Return the host's input; empty if it is not a JSON object."""
    return object_of(sys.stdin.buffer.read(LIMIT_BYTES)) or {}


def tool_input(payload: Mapping[str, Any], key: str) -> str:
    """Return a text of `tool_input`, or an empty one."""
    given = payload.get("tool_input")
    value = given.get(key) if isinstance(given, dict) else None
    return value if isinstance(value, str) else ""


def advise(text: str) -> None:
    """Print advice for the agent."""
    print(
        json.dumps(
            {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text}},
            indent=2,
        )
    )


def content(path: str) -> bytes | None:
    """Return the bytes of a file named in the input, or None."""
    folder, name = os.path.split(path)
    body = Folder(folder or ".").content(name) if name else None
    return None if isinstance(body, Finding) else body


_FLAG = r"(?:^|\s)(?:-[a-zA-Z]*m|--message)(?:\s+|=)?"
_TEXTS = (
    re.compile(_FLAG + r'"((?:[^"\\]|\\.)*)"', re.DOTALL),
    re.compile(_FLAG + r"'([^']*)'"),
    re.compile(_FLAG + r"([^\s\"']\S*)"),
)


def validate_commit(_: Sequence[str]) -> int:
    """`validate-commit`: whether the subject of a `git commit` is `{type}({scope}): {text}`.

    Only the text of `-m` is seen, and of several the last.
    """
    subject = _subject(tool_input(read_input(), "command"))
    if subject and not GRAMMAR.match(subject):
        form = f"{{type}}({{scope}}): {{desc}}, type one of {', '.join(TYPES)}"
        advise(f"Commit message does not match format {form}: {safe(subject)}")
    return 0


def _subject(command: str) -> str:
    """Return the first line of the commit message in a command, if any."""
    if "git commit" not in command or "cat <<" in command:
        return ""
    messages = next((texts for pattern in _TEXTS if (texts := pattern.findall(command))), [])
    return str(messages[-1]).lstrip("\n").partition("\n")[0] if messages else ""


_KEY = "description:"
_BLOCK = re.compile(r"[|>][-+0-9]*(\s+#.*)?")
_EMPTY = ("", '""', "''", "~", "null")


def validate_frontmatter(_: Sequence[str]) -> int:
    """`validate-frontmatter`: whether the `description:` of a Markdown file is on one line."""
    path = tool_input(read_input(), "file_path")
    data = content(path) if path.endswith(".md") else None
    lines = _front_matter_of(data.decode("utf-8", "replace")) if data is not None else ()
    if fault := _fault(lines):
        advise(f"Frontmatter warning: description field in {safe(path)} {fault}")
    return 0


def _front_matter_of(text: str) -> Sequence[str]:
    """Return the lines between the fences; none without front matter.

    The second fence may be missing.
    """
    first, *rest = [line.rstrip() for line in text.split("\n")]
    if not first.startswith("---"):
        return ()
    return rest[: rest.index("---")] if "---" in rest else rest


def _fault(lines: Sequence[str]) -> str:
    at = next((number for number, line in enumerate(lines) if line.startswith(_KEY)), None)
    if at is None:
        return ""
    value = lines[at].removeprefix(_KEY).strip()
    goes_on = at + 1 < len(lines) and lines[at + 1][:1] in (" ", "\t")
    if _BLOCK.fullmatch(value) or goes_on:
        return "must be a single line. Put the whole text behind `description:`."
    return "is empty. Say in one line what it is for." if value in _EMPTY else ""


ACTIVE_AGENT = ".yolo-planning/.active-agent"
_SHARED = ("critic", "scout", "debugger", "security")
_TALKS_TO_ALL = ("shared", "owner")


def validate_send_message(_: Sequence[str]) -> int:
    """`validate-send-message`: warns when an agent writes to one of another department."""
    payload = read_input()
    recipient = tool_input(payload, "recipient")
    sender = (content(ACTIVE_AGENT) or b"").decode("utf-8", "replace").strip()
    if (
        payload.get("tool_name") == "SendMessage"
        and recipient
        and sender
        and not _may_write(sender, recipient)
    ):
        whose = (
            f"{safe(sender)} ({_department(sender)}) to {safe(recipient)} "
            f"({_department(recipient)})"
        )
        advise(
            f"WARNING: cross-department message from {whose}; "
            "departments hand over by files, or through the Owner"
        )
    return 0


def _may_write(sender: str, recipient: str) -> bool:
    ours, theirs = _department(sender), _department(recipient)
    return ours == theirs or ours in _TALKS_TO_ALL or theirs in _TALKS_TO_ALL


def _department(name: str) -> str:
    own = name.removeprefix("yolo-")
    if own == name:
        return "unknown"
    if own == "owner":
        return "owner"
    if own in _SHARED:
        return "shared"
    return next(
        (row.name.value for row in reversed(WORKING) if own.startswith(row.prefix)), "unknown"
    )


KEYS = {"p": "phase", "s": "status", "fm": "files_modified"}
HEADINGS = ("## What Was Built", "## Files Modified")
_FILE = re.compile(r"(?<![^\s'\"<>|;&])[^\s'\"<>|;&]*(?:\.summary\.jsonl|SUMMARY\.md)(?![\w.])")


def validate_summary(_: Sequence[str]) -> int:
    """`validate-summary`: advice for the writer of a summary; a torn line is advice as well."""
    payload = read_input()
    path = tool_input(payload, "file_path") or tool_input(payload, "command")
    match = _FILE.search(path)
    if match is None:
        return 0
    path = path if path.endswith(("SUMMARY.md", ".summary.jsonl")) else match[0]
    if ".yolo-planning/" not in os.path.abspath(path):
        return 0
    data = content(path)
    if data is not None:
        lacks = list(_check_markdown(data) if path.endswith(".md") else _check_lines(data))
        if lacks:
            advise(f"SUMMARY validation: {' '.join(lacks)}")
    return 0


def _check_lines(data: bytes) -> Iterator[str]:
    rows = [object_of(line) for line in data.split(b"\n") if line.strip()]
    for number, row in enumerate(rows, 1):
        if row is None:
            yield f"Line {number}: invalid JSON."
    header = rows[0] if rows else {}
    if header is None:
        return
    for key, meaning in KEYS.items():
        if key not in header:
            yield f"Missing '{key}' ({meaning}) field."
    if "sg" in header and not _are_texts(header["sg"]):
        yield "Field 'sg' must be an array of non-empty strings."


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def _check_markdown(data: bytes) -> Iterator[str]:
    lines = [line.rstrip() for line in data.decode("utf-8", "replace").split("\n")]
    if lines[0] != "---" or "---" not in lines[1:]:
        yield "Missing YAML frontmatter."
    for heading in HEADINGS:
        if heading not in lines:
            yield f"Missing '{heading}'."
