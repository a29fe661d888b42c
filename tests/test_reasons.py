"""The closed list of reasons: each is reached by a test or named by a fixture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Finding, Reason, YoloError, pointer_to

ROOT = Path(__file__).parent.parent

TESTS = "\n".join(
    path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
)
FIXTURES = {path.name.split("__")[0] for path in (ROOT / "fixtures").rglob("bad/*")}


@pytest.mark.parametrize("reason", sorted(Reason))
def test_every_reason_is_reached(reason: Reason) -> None:
    by_name = rf"\bReason\.{reason.name}\b|\b{reason.value}\b"
    assert reason.value in FIXTURES or re.search(by_name, TESTS)


def test_every_reason_says_what_it_means_in_a_sentence_of_its_own() -> None:
    sentences = [reason.sentence for reason in Reason]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence and not sentence.endswith(".") for sentence in sentences)


def test_a_fixture_is_named_after_a_reason_that_exists() -> None:
    assert {name for name in FIXTURES if "." not in name} <= {reason.value for reason in Reason}


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("", ""),
        ("retype the quotes", "Retype the quotes."),
        ("see 'yolo-fs doctor'", "See 'yolo-fs doctor'."),
        ("Did you mean dev? Known names: a, b.", "Did you mean dev? Known names: a, b."),
        ("compare them, then: yolo-fs team resolve x --ours", "Compare them, then: yolo-fs team resolve x --ours"),
        ("yolo_fs.required_reading says so.", "yolo_fs.required_reading says so."),
        ("src/a.ts is wrong", "src/a.ts is wrong."),
    ],
)  # fmt: skip
def test_what_to_do_is_told_as_a_sentence_wherever_it_comes_from(hint: str, told: str) -> None:
    assert Finding(Reason.SECRET, "a", hint=hint).hint == told
    assert YoloError(Reason.SECRET, hint=hint).hint == told


def test_a_pointer_tells_the_signs_of_a_key_from_its_own() -> None:
    assert pointer_to("a/b", "c~d", "~1", 0) == "/a~1b/c~0d/~01/0"
