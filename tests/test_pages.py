"""What a page names exists, and what it says was measured stands in a kept output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.__main__ import NAMES
from tests.torture.families import FAMILIES
from tools.pages import KEPT, PAGES, ROOT, figures, filled, unproved, unsourced

GUARANTEES = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")

# --- figures ---


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_is_in_the_output_that_its_page_names(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")

    assert unproved(text) == []
    assert unsourced(text) == []


def test_every_figure_of_the_readme_that_was_measured_names_its_output() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Measured\n\n")[2].partition("\n## ")[0]
    blocks = section.split("\n\n")

    for block, following in zip(blocks, [*blocks[1:], ""], strict=True):
        if figures(block) and not block.startswith(("|", "<!--")):
            assert following.startswith("<!-- from: "), block


def test_every_kept_output_says_which_command_printed_it_and_when() -> None:
    for path in KEPT.glob("*.txt"):
        command, moment, *_ = path.read_text(encoding="utf-8").splitlines()
        assert re.search(r"\b(scripts|tests|tools)/\w+", command), path
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", moment), path


# --- the check itself ---

OUTPUT = """\
scripts/bench commit
2026-11-20 20:48 UTC

### Commit, small repository

| one commit | p50 ms | harms |
|------------|--------|-------|
| engine     |   5.25 | lost 10 |
| git        |   9.99 | |

### Commit, large repository

| one commit | p50 ms | harms |
|------------|--------|-------|
| engine     |   7.00 | |

updates there | 80,000 of 80,000
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "commit.txt").write_text(OUTPUT)
    return tmp_path


def test_a_table_is_written_below_its_comment_and_replaced_by_the_next(kept: Path) -> None:
    order = '<!-- table: commit "Commit, small repository" -->\n'
    table = "| one commit | p50 ms | harms |\n|---|---|---|\n| engine | 5.25 | lost 10 |\n| git | 9.99 | |\n"

    page = filled(f"{order}\n| old |\n|---|\n\ntext\n", kept)

    assert page == f"{order}\n{table}\ntext\n"
    assert filled(page, kept) == page


def test_rows_and_columns_are_chosen_renamed_and_put_side_by_side(kept: Path) -> None:
    order = (
        '<!-- table: commit "Commit, small repository" "Commit, large repository"\n'
        'rows="engine = **ours**" cols="p50 ms" heads="p50 ms; small; large" -->\n'
    )

    table = filled(order, kept).removeprefix(order)

    assert table == "\n| p50 ms | small | large |\n|---|---|---|\n| **ours** | 5.25 | 7.00 |\n"


def test_a_table_that_no_output_has_is_an_error(kept: Path) -> None:
    with pytest.raises(LookupError):
        filled('<!-- table: commit "Commit, no repository" -->\n', kept)


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("It takes 5.3 ms of 80,000.", 0),
        ("It takes 5.2 ms.", 1),
        ("It takes `5.2` ms since 2026-11-20.", 0),
        ("It takes 64 of 65.", 1),
    ],
)
def test_a_figure_that_was_not_measured_is_found_out(kept: Path, block: str, wrong: int) -> None:
    assert len(unproved(f"{block}\n\n<!-- from: commit; given: 64 -->\n", kept)) == wrong


@pytest.mark.parametrize(
    "block", ["**Measured.** It takes 5 ms.\n", "| a | b |\n|---|---|\n| c | 5 |\n"]
)
def test_a_measured_figure_without_its_output_is_found_out(block: str) -> None:
    assert unsourced(block) == [block]
    assert unsourced("**Measured.** It takes 5 ms: not measured at full size yet.\n") == []


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


def test_every_promise_has_a_proof_of_the_size_that_is_told() -> None:
    page = (ROOT / "docs/dev/torture.md").read_text(encoding="utf-8")
    told = page.partition("## Every promise")[2].partition("\n## ")[0]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    rows = re.findall(
        r"^\| \[(G\d+)\].*?\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", told, re.MULTILINE
    )

    assert {row[0] for row in rows} == {f"G{number}" for number in range(1, 15)}
    for _, promise, proof, small, full in rows:
        assert promise in readme
        name, *places = _SPAN.findall(proof)
        source = "".join((ROOT / place).read_text(encoding="utf-8") for place in places)
        if family := FAMILIES.get(name):
            assert (small, full) == (f"{family.small:,}", f"{family.full:,}"), name
        elif places:
            assert f'"{name}", "{small.replace(",", "")}"' in source, name
        else:
            assert (ROOT / name).is_file()


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
