"""Finds citations that lead nowhere: faults, anchors, sections of documents, tests, links, absent
papers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CITING = ("yolo_fs", "tests", "bench", "tools", "scripts")

_FAULT = re.compile(r"(?<![\w#])F\d\d\b")
_ANCHOR = re.compile(r"\b(docs/[\w/-]+\.md)((?:#[\w-]+(?:, | and | to )?)+)")
_PAGE = re.compile(r"\bSee (docs/[\w/-]+\.md)")
_SECTION = re.compile(r"[Dd]ocument (00\d) \(((?:\"[^\"]+\"(?:, )?)+)")
_DOCUMENT = re.compile(r"[Dd]ocuments? (00\d)")
_TEST = re.compile(r"\btests/[\w/]+\.py::(\w+)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PAPER = re.compile(
    r"\b(?:reliability|performance|interfaces|protocol|design|peers|scale-out|real-agents)"
    r" (?:§ ?)?\d+(?:\.\d+)*\b|\breliability [FG]\d|\bthe issue on |(?<![\w/])shared/\w+\.md"
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def citing_files() -> list[Path]:
    """Return every file of code that may cite something, but for the ones that test citations."""
    paths = [path for folder in CITING for path in (ROOT / folder).rglob("*") if path.is_file()]
    own = {"references.py", "test_references.py", "export.py", "schema.py"}
    return sorted(path for path in paths if _is_text(path) and path.name not in own)


def _is_text(path: Path) -> bool:
    return path.suffix in (".py", ".sh", "", ".toml") and "__pycache__" not in path.parts


def broken_citations(text: str) -> list[str]:
    """Return what a file of code cites and the repository does not have."""
    return [
        *_broken_faults(text),
        *_broken_anchors(text),
        *_broken_sections(text),
        *_PAPER.findall(text),
    ]


def broken_links(page: Path) -> list[str]:
    """Return the links and the test ids of a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    tests = [match[0] for match in _TEST.finditer(text) if not _has_test(match[0])]
    return tests + [link for link in _LINK.findall(_FENCE.sub("", text)) if not _leads(page, link)]


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a Markdown page: those of its headings, and marks `<a id>`."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(map(_slug, heads)) | frozenset(re.findall(r'<a id="([^"]+)">', text))


def _slug(head: str) -> str:
    return re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")


def _broken_faults(text: str) -> Iterator[str]:
    known = anchors(ROOT / "docs/dev/faults.md")
    yield from (code for code in _FAULT.findall(text) if code.lower() not in known)


def _broken_anchors(text: str) -> Iterator[str]:
    flat = " ".join(text.split())
    yield from (page for page in _PAGE.findall(flat) if not (ROOT / page).is_file())
    for page, marks in _ANCHOR.findall(flat):
        known = anchors(ROOT / page) if (ROOT / page).is_file() else frozenset()
        for mark in re.findall(r"#([\w-]+)", marks):
            if mark not in known:
                yield f"{page}#{mark}"


def _broken_sections(text: str) -> Iterator[str]:
    flat = " ".join(text.split())
    yield from (n for n in _DOCUMENT.findall(flat) if f"document-{n}" not in anchors(_SOURCES))
    for number, quoted in _SECTION.findall(flat):
        part = _document(number)
        for name in re.findall(r'"([^"]+)"', quoted):
            if "{" not in name and f'"{name}"' not in part and f"`{name}`" not in part:
                yield f'document {number} ("{name}")'


_SOURCES = ROOT / "docs/dev/sources.md"


@functools.cache
def _document(number: str) -> str:
    text = " ".join(_SOURCES.read_text(encoding="utf-8").split())
    return text.partition(f"## Document {number}")[2].partition(" ## ")[0]


def _has_test(test: str) -> bool:
    name, _, function = test.partition("::")
    path = ROOT / name
    return path.is_file() and f"def {function}(" in path.read_text(encoding="utf-8")


def _leads(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    name, _, mark = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not mark or mark in anchors(target))
