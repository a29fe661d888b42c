"""Whatever the code, the tests and the pages refer to exists inside the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.references import ROOT, anchors, broken_citations, broken_links, citing_files

PAGES = (*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")))


def test_no_file_cites_what_is_not_here() -> None:
    broken = {
        str(path.relative_to(ROOT)): found
        for path in citing_files()
        if (found := broken_citations(path.read_text(encoding="utf-8")))
    }

    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_every_test_of_a_page_exists(page: Path) -> None:
    assert not broken_links(page)
    assert not broken_citations(page.read_text(encoding="utf-8"))


def test_every_fault_names_a_test_that_shows_it() -> None:
    page = (ROOT / "docs/dev/faults.md").read_text(encoding="utf-8")
    faults = re.split(r"^### ", page, flags=re.MULTILINE)[1:]

    assert len(faults) == 62
    for fault in faults:
        assert re.search(r"^- `tests/", fault, re.MULTILINE), fault.splitlines()[0]


@pytest.mark.parametrize(
    "text",
    [
        "(F38)",
        "See docs/dev/faults.md#f05 and #f99.",
        "See docs/nothing.md.",
        'document 002 ("No Such Section")',
        "document 005",
        "reliability 4.2",
        "protocol 10 #9",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    assert broken_citations(text)


@pytest.mark.parametrize(
    "text",
    [
        "(F05, F24)",
        "See docs/dev/faults.md#f05, #f21\nand #f24.",
        'document 002 ("Escalation Chain", "Rules")',
        'document 000 ("dev_blocker")',
        "(docs/dev/sources.md#c09)",
    ],
)
def test_a_citation_that_leads_somewhere_is_none(text: str) -> None:
    assert not broken_citations(text)


def test_anchors_are_those_of_headings_and_of_marks() -> None:
    assert {"f05", "crashes-and-storage"} <= anchors(ROOT / "docs/dev/faults.md")
    assert {"document-002", "c09", "reference-scripts"} <= anchors(ROOT / "docs/dev/sources.md")
