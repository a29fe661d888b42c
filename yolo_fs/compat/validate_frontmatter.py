"""`validate-frontmatter`: advises when the `description:` of a Markdown file's front matter is empty or multi-line.

Always 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from yolo_fs.compat.hook import advise, content, read_input, tool_input
from yolo_fs.reasons import safe

_KEY = "description:"
_BLOCK = re.compile(r"[|>][-+0-9]*(\s+#.*)?")
_EMPTY = ("", '""', "''", "~", "null")


def run(_: Sequence[str]) -> int:
    path = tool_input(read_input(), "file_path")
    data = content(path) if path.endswith(".md") else None
    lines = _front_matter(data.decode("utf-8", "replace")) if data is not None else ()
    if fault := _fault(lines):
        advise(f"Frontmatter validation: {safe(path)}: {fault}")
    return 0


def _front_matter(text: str) -> Sequence[str]:
    """Return the lines between the fences; none when there is no front matter."""
    first, *rest = [line.rstrip() for line in text.split("\n")]
    return rest[: rest.index("---")] if first == "---" and "---" in rest else ()


def _fault(lines: Sequence[str]) -> str:
    at = next((number for number, line in enumerate(lines) if line.startswith(_KEY)), None)
    if at is None:
        return ""
    value = lines[at].removeprefix(_KEY).strip()
    goes_on = at + 1 < len(lines) and lines[at + 1][:1] in (" ", "\t")
    if _BLOCK.fullmatch(value) or goes_on:
        return "description must be on one line"
    return "description is empty" if value in _EMPTY else ""
