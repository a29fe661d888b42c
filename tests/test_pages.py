"""What a page names exists, and what it says was measured stands in a kept output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import NAMES
from bench.figures import KEPT, PAGES, ROOT, figures, measured, mistakes_of, numbers_of, rewritten

GUARANTEES = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
NOT_KEPT = {"README.md": 0, "docs/guarantees.md": 0, "docs/performance.md": 0}
"""Figures whose output was not kept: may only become fewer, by measuring again with `scripts/bench --keep`."""
UNMEASURED = "not measured at full size yet"

# --- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_stands_in_the_output_that_its_page_names(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert mistakes_of(page, text) == []
    found, _ = figures(page, text)
    assert sum(one.source.endswith("not kept") for one in found) <= NOT_KEPT[page]


@pytest.mark.parametrize("page", PAGES)
def test_no_measured_block_shows_a_figure_without_its_source(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    with_source = {text.count("\n", 0, one.start) for one in figures(page, text)[0]}
    for line, block in _measured_blocks(page, text):
        lines = {line + block.count("\n", 0, at) for at, _ in numbers_of(block)}
        assert lines <= with_source, f"{page}:{line + 1}: {block[:80]}"


def _measured_blocks(page: str, text: str) -> list[tuple[int, str]]:
    """Return number of the first line and text of each block that says what was measured."""
    blocks = [
        (text.count("\n", 0, match.start()), match[0]) for match in re.finditer(r"(?:.+\n)+", text)
    ]
    if page == "README.md":
        begin, end = (
            text.count("\n", 0, text.index(head)) for head in ("## Measured", "## Adopt it")
        )
        return [
            (line, block)
            for line, block in blocks
            if begin < line < end and not block.startswith("<!--")
        ]
    return [
        (line, block) for line, block in blocks
        if block.startswith(("|", "**Measured.**")) and UNMEASURED not in " ".join(block.split())
    ]  # fmt: skip


def test_every_kept_output_says_which_command_printed_it_and_when() -> None:
    for path in KEPT.glob("*.txt"):
        command, moment, *_ = path.read_text(encoding="utf-8").splitlines()
        assert re.search(r"\b(scripts|tests)/\w+", command), path
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", moment), path


# --- the check itself ------------------------------------------------------------------------------------------------

OUTPUT = """\
scripts/bench commit
2026-11-20 20:48 UTC

### Commit, small repository

| one commit | p50 ms | harms |
|------------|--------|-------|
| engine     |   5.25 | intruded 3, lost 10 |

updates there | 80,000 of 80,000
"""
PAGE = """\
| p50 | small |
|---|---|
| engine of 2 | **5.3 ms** |

<!-- figures
5.3 = commit: Commit, small repository | engine | p50 ms
-->

Of `64` and 80,000 updates on 2026-11-20 lost 10.

<!-- figures
80,000 = commit: updates there {} of
10 = commit: Commit, small repository | engine | harms | lost
-->
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "commit.txt").write_text(OUTPUT)
    return tmp_path


def test_figures_are_those_of_the_output_as_they_are_rounded(kept: Path) -> None:
    assert mistakes_of("P", PAGE, kept) == []
    assert [one.shown for one in figures("P", PAGE)[0]] == ["5.3", "80,000", "10"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("**5.3 ms**", "**5.2 ms**"),
        ("5.3 = commit", "5.2 = commit"),
        ("and 80,000 updates", "and 80,001 updates"),
        ("10 = commit", "11 = commit"),
        ("| p50 ms\n", "| p99 ms\n"),
        ("small repository | engine | p50", "large repository | engine | p50"),
        ("80,000 = commit: ", "80,000 = gone: "),
        ("Of `64` and 80,000", "Of 64 and 80,000"),
    ],
)
def test_a_figure_that_was_not_measured_is_found_out(kept: Path, right: str, wrong: str) -> None:
    assert mistakes_of("P", PAGE.replace(right, wrong, 1), kept) != []


def test_what_is_measured_again_is_written_into_the_page(kept: Path) -> None:
    (kept / "commit.txt").write_text(
        OUTPUT.replace("5.25", "12.34").replace("80,000 of", "90,000 of")
    )
    page = PAGE.replace("10 = commit: Commit", "10 = given").replace(
        "| p50 ms\n", "| p50 ms; not kept\n"
    )
    page = page.replace("given, small repository | engine | harms | lost", "given")
    new = rewritten("P", page, kept)
    assert "**12.3 ms**" in new and "and 90,000 updates" in new and "not kept" not in new
    assert mistakes_of("P", new, kept) == []


def test_a_table_that_is_taken_over_whole_is_compared_word_by_word_and_written_anew(
    kept: Path,
) -> None:
    page = "| one commit | p50 ms | harms |\n|---|---|---|\n| `engine` | **5.25** | intruded 3, lost 10 |\n"
    comment = "\n<!-- figures\n= commit: Commit, small repository\n-->\n"
    assert mistakes_of("P", page + comment, kept) == []
    assert [one.shown for one in figures("P", page + comment)[0]] == ["5.25", "3", "10"]
    wrong = page.replace("intruded 3, lost 10", "none") + comment
    assert mistakes_of("P", wrong, kept) != []
    assert mistakes_of("P", rewritten("P", wrong, kept), kept) == []


def test_text_and_cells_are_found_whatever_their_spaces(kept: Path) -> None:
    assert measured("commit: there {} of", kept) == "80,000"
    assert measured("commit: there {} from", kept) is None
    assert measured("other: there {} of", kept) is None


# --- names -----------------------------------------------------------------------------------------------------------

_SPAN = re.compile(r"`([^`\n]+)`")
_TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")


def test_there_are_fourteen_guarantees_and_each_says_all_that_it_has_to() -> None:
    titles, parts = (
        re.findall(r"^## (G\d+) · ", GUARANTEES, re.MULTILINE),
        re.split(r"^## G\d+ · ", GUARANTEES, flags=re.MULTILINE)[1:],
    )
    assert titles == [f"G{number}" for number in range(1, 15)]
    for part in parts:
        words = (
            "**Promised.**",
            "**Not promised.**",
            "**Proved by**",
            "**Measured.**",
            "**Repeat.**",
        )
        assert [word for word in words if word in part] == list(words), part[:40]
        assert _TEST.search(part.partition("**Proved by**")[2]), part[:40]


def test_every_test_that_a_guarantee_names_exists() -> None:
    named = {match for span in _SPAN.findall(GUARANTEES) for match in _TEST.findall(span)}
    assert len(named) > 50
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"\ndef {name}(" in source, f"{path}::{name}"


def test_every_command_that_a_guarantee_names_exists() -> None:
    words = [span.split() for span in _SPAN.findall(GUARANTEES)]
    scripts = [span for span in words if span[0].startswith(("scripts/", "tools/"))]
    assert scripts
    for name, *arguments in scripts:
        assert (ROOT / name).is_file(), name
        if name == "scripts/bench":
            assert {one for one in arguments if not one.startswith("-")} <= set(NAMES)
    for name in {
        one for span in words for one in span if one.startswith("tests/") and ".py" not in one
    }:
        assert (ROOT / name).exists(), name


def test_every_switch_that_a_guarantee_names_is_read_by_a_test() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    for name in set(re.findall(r"YOLO_[A-Z]+", GUARANTEES)):
        assert re.search(rf"environ(\.get\(|\[)\"{name}\"", sources), name
