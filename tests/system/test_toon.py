"""TOON documents are read strictly, and no input makes the reader raise."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Reason, errors
from yolo_fs.system.text_checks import Limits, Reading
from yolo_fs.system.toon import read_toon

FIXTURES = Path(__file__).parents[2] / "fixtures" / "toon"


def cases(folder: str) -> list[Path]:
    return sorted((FIXTURES / folder).iterdir())


@pytest.mark.parametrize("case", cases("ok"), ids=lambda case: case.name)
def test_a_good_document_is_one_record(case: Path) -> None:
    reading = read_toon(case.read_bytes(), case.name)

    assert reading.findings == ()
    assert [record.line for record in reading.records] == [1]


@pytest.mark.parametrize("case", cases("bad"), ids=lambda case: case.name)
def test_a_bad_document_is_refused_for_the_reason_in_its_name(case: Path) -> None:
    first = errors(read_toon(case.read_bytes(), case.name).findings)[0]

    assert (first.reason, first.path) == (case.name.partition("__")[0], case.name)


@pytest.mark.parametrize("case", cases("should"), ids=lambda case: case.name)
def test_another_indentation_is_read_with_a_warning(case: Path) -> None:
    reading = read_toon(case.read_bytes(), case.name)

    assert not errors(reading.findings)
    assert [one.reason for one in reading.findings] == [case.name.partition("__")[0]]


def test_a_handwritten_architecture_is_understood() -> None:
    (record,) = read_toon(
        (FIXTURES / "ok" / "architecture.toon").read_bytes(), "architecture.toon"
    ).records

    assert record.value["tech_decisions"][0] == {
        "id": "D1",
        "decision": "Use sessions",
        "rationale": "simple, known",
    }
    assert record.value["integration_points"] == []


def test_an_error_names_its_line() -> None:
    finding = read_toon(b"a: 1\nb[3]: 1,2\n", "x.toon").findings[0]

    assert (finding.reason, finding.line) == (Reason.TOON_INVALID, 2)
    assert finding.message == "Declared length 3 but found 2"


@pytest.mark.parametrize(
    "unit", ["[", "{", "- ", "a:b\n", "x[1]{", '"', "[1]: ", ",", "a: 1\n", "  ", "[1]{a{", "9"]
)
def test_a_mebibyte_of_anything_is_refused(unit: str) -> None:
    for ending in ("", "\n"):
        data = (unit * ((1 << 20) // len(unit)) + ending).encode()
        assert errors(
            read_toon(data, "x", Limits(max_line_bytes=1 << 22, max_lines=1 << 22)).findings
        )


def test_random_mutations_never_raise() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    valid = (FIXTURES / "ok" / "architecture.toon").read_bytes()
    for _ in range(3_000):
        data = bytearray(valid)
        for _ in range(chance.choice([1, 2, 5])):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 1, 3])] = bytes(
                [chance.choice(b'#:"\\[]{},|-\n\t 0129e.\xff\0')]
            )
        reading = read_toon(bytes(data), "x")
        assert isinstance(reading, Reading)
        assert bool(reading.records) or bool(errors(reading.findings))
