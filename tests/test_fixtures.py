"""Every example in `fixtures/` is what its name says: valid, or wrong for exactly that reason first."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.examples import (
    FAMILIES,
    FIXTURES,
    READER_FORMATS,
    Example,
    examples,
    expected_reason,
    kind_of_example,
)
from yolo_fs.artifacts.catalogue import all_kinds, artifact_of
from yolo_fs.artifacts.classify import classify
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import NoTree
from yolo_fs.core.reasons import Finding, Reason, errors
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.system.readers import READERS
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.settings import Settings

SMALL = Limits(max_line_bytes=4096, max_file_bytes=16384, max_lines=1000)
"""What the examples of the readers are read with, so that none of them has to be large."""

FOR_READERS = sorted(
    path
    for folder in ("reader", "front_matter", "toon")
    for path in (FIXTURES / folder).rglob("*")
    if path.is_file() and path.parent.name != "should"
)


def first_error(findings: Iterable[Finding]) -> object:
    wrong = errors(findings)
    return wrong[0].reason if wrong else None


@pytest.mark.parametrize("example", tuple(examples()), ids=lambda example: example.name)
def test_checker_agrees_with_every_example(example: Example) -> None:
    checker = Checker(Settings(Config(), Policy()))
    data = example.path.read_bytes()
    if example.is_untidy:
        artifact = artifact_of(example.kind)
        assert artifact
        name = artifact.file.format(dept="", plan="01-02")
        place = classify(f".yolo-planning/phases/01-auth/{name}") or classify(
            f".yolo-planning/{name}"
        )
        assert place
        findings = checker.check(place, data, NoTree()).findings
        told = [one for one in findings if one.reason is not Reason.WAITS_FOR]  # no plan beside it
        assert told[0].reason is example.expected
        assert not errors(told)
    else:
        checked = checker.check_kind(example.kind, example.path.name, data)
        assert first_error(checked.findings) is example.expected
        assert not [one.hint for one in checked.findings if ".;" in one.hint or ".." in one.hint]


@pytest.mark.parametrize("path", FOR_READERS, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_reader_agrees_with_every_example(path: Path) -> None:
    format_ = READER_FORMATS[path.parts[-3], path.suffix[1:]]
    limits = SMALL if path.parts[-3] == "reader" else Limits()
    reading = READERS[format_](path.read_bytes(), path.name, limits)
    assert first_error(reading.findings) is expected_reason(path)


def test_every_kind_has_a_folder_of_examples() -> None:
    folders = [
        folder for family in FAMILIES for folder in (FIXTURES / "examples" / family).iterdir()
    ]
    shown = {kind_of_example(folder / "ok" / "any").name for folder in folders}
    assert {kind.name for kind in all_kinds()} == shown
