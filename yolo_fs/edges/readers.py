"""The strict reader of each file format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yolo_fs.edges.strict_json import read_lines, read_object
from yolo_fs.edges.text_checks import Limits, Reading, read_text
from yolo_fs.edges.toon import read_toon
from yolo_fs.schemas.layout import Format


def _read_front_matter(data: bytes, path: str, limits: Limits) -> Reading:
    from yolo_fs.edges.front_matter import read_front_matter  # only those who meet YAML pay for it

    return read_front_matter(data, path, limits)


READERS: Mapping[Format, Callable[[bytes, str, Limits], Reading]] = {
    Format.JSON: read_object,
    Format.JSONL: read_lines,
    Format.FRONT_MATTER: _read_front_matter,
    Format.TOON: read_toon,
    Format.TEXT: read_text,
}

FORMAT_BY_SUFFIX: Mapping[str, Format] = {
    "md": Format.TEXT,
    "json": Format.JSON,
    "jsonl": Format.JSONL,
    "toon": Format.TOON,
}
"""Formats of files that are not artifacts."""
