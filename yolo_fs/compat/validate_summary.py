"""`validate-summary`: advises the writer of a summary. Always 0.

A torn line is advice as well; the reference ends without a word on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from yolo_fs.compat.folder import object_of
from yolo_fs.compat.hook import advise, content, read_input, tool_input
from yolo_fs.reasons import safe

KEYS = ("p", "s", "fm")
HEADINGS = ("## What Was Built", "## Files Modified")
_FILE = re.compile(r"[^\s'\"<>|;&]*(?:\.summary\.jsonl|SUMMARY\.md)(?![\w.])")


def run(_: Sequence[str]) -> int:
    said = read_input()
    path = tool_input(said, "file_path") or tool_input(said, "command")
    found = _FILE.search(path)
    data = (
        content(path if path.endswith(("SUMMARY.md", ".summary.jsonl")) else found[0])
        if found
        else None
    )
    if found and data is not None:
        lacks = list(_of_markdown(data) if found[0].endswith(".md") else _of_lines(data))
        if lacks:
            advise(f"SUMMARY validation: {'; '.join(lacks)}")
    return 0


def _of_lines(data: bytes) -> Iterator[str]:
    rows = [object_of(line) for line in data.split(b"\n") if line.strip()]
    for number, row in enumerate(rows, 1):
        if row is None:
            yield f"Line {number}: invalid JSON"
    header = rows[0] if rows else {}
    if header is None:
        return
    for key in KEYS:
        if key not in header:
            yield f"missing required key: {key}"
    if "sg" in header and not _are_texts(header["sg"]):
        yield "sg must be an array of non-empty strings"


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def _of_markdown(data: bytes) -> Iterator[str]:
    lines = [line.rstrip() for line in data.decode("utf-8", "replace").split("\n")]
    if lines[0] != "---" or "---" not in lines[1:]:
        yield "missing front matter"
    for heading in HEADINGS:
        if heading not in lines:
            yield f"missing section: {safe(heading)}"
