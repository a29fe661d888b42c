"""The front matter of HANDOFF.md: one form is accepted, every other trick of YAML is refused by name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from yolo_fs.core.reasons import Reason, errors
from yolo_fs.system.front_matter import MAX_FRONT_MATTER_CHARS, read_front_matter
from yolo_fs.system.text_checks import Reading

FIXTURES = Path(__file__).parents[2] / "fixtures" / "front_matter"


def cases(folder: str) -> list[Path]:
    return sorted((FIXTURES / folder).iterdir())


def packet_of(data: bytes) -> dict[str, str]:
    reading = read_front_matter(data, "HANDOFF.md")
    assert reading.findings == ()
    (record,) = reading.records
    assert list(record.value) == ["handoff"]
    return dict(record.value["handoff"])


@pytest.mark.parametrize("case", cases("ok"), ids=lambda case: case.name)
def test_a_good_packet_is_read_as_text(case: Path) -> None:
    packet = packet_of(case.read_bytes())

    assert packet
    assert all(type(value) is str for value in packet.values())


@pytest.mark.parametrize("case", cases("bad"), ids=lambda case: case.name)
def test_a_trick_is_refused_for_the_reason_in_its_name(case: Path) -> None:
    reading = read_front_matter(case.read_bytes(), case.name)

    first = errors(reading.findings)[0]
    assert (first.reason, first.path) == (case.name.partition("__")[0], case.name)
    assert first.expected
    assert first.hint
    assert reading.torn == (first.reason is Reason.UNTERMINATED)


def test_at_least_sixty_tricks_are_known() -> None:
    assert len(cases("bad")) >= 60


def test_nothing_changes_its_type() -> None:
    packet = packet_of((FIXTURES / "ok" / "looks_like_other_types.md").read_bytes())

    assert packet == {
        "a": "no", "b": "0123", "c": "2026-02-19", "d": "~", "e": "null", "f": "1e3", "g": ".inf", "h": "12:30:45",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("inner", "message", "line", "at"),
    [
        ("  a: &x b\n", "an anchor `&x`", 3, ""),
        ("  a: b\n  c: *x\n", "an alias `*x`", 4, ""),
        ("  <<: b\n", "a merge key `<<`", 3, ""),
        ("  a: [b]\n", "a flow sequence `[…]`", 3, ""),
        ("  a: {b: c}\n", "a flow mapping `{…}`", 3, ""),
        ("  a: |\n    b\n", "a block scalar `|`", 3, ""),
        ("  a: !x b\n", "a tag `!x`", 3, ""),
        ("  a: close #12\n", "a comment `#12`", 3, ""),
        ("  a: b\n  a: c\n", "the key 'a' is used twice", 4, "/handoff/a"),
        ('  a: "\\e"\n', "U+001B in the value", 3, "/handoff/a"),
    ],
)
def test_a_finding_names_the_feature_and_its_place(
    inner: str, message: str, line: int, at: str
) -> None:
    finding = read_front_matter(f"---\nhandoff:\n{inner}---\n".encode(), "HANDOFF.md").findings[0]

    assert (finding.message, finding.line, finding.at) == (message, line, at)


def test_all_faults_are_reported() -> None:
    data = b"---\nhandoff:\n  a: &x b\n  c: [d]\n  e: f\n  e: g\n---\nbody \x07\n"

    reasons = {(f.reason, f.line) for f in read_front_matter(data, "x").findings}

    assert reasons == {
        (Reason.CONTROL_CHARACTER, 8),
        (Reason.YAML_FEATURE, 3),
        (Reason.YAML_FEATURE, 4),
        (Reason.DUPLICATE_KEY, 6),
    }


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "{",
        "[{",
        "- ",
        "? ",
        "&a ",
        "!a ",
        "*a ",
        "'",
        '"',
        "a: ",
        "a: &a ",
        ": ",
        "|",
        "#",
        "a\n",
    ],
)
def test_sixty_four_kibibytes_of_anything_are_refused(unit: str) -> None:
    inner = unit * (MAX_FRONT_MATTER_CHARS // len(unit) - 10)
    for form in (f"---\n{inner}\n---\n", f"---\nhandoff:\n  a: {inner}\n---\n"):
        assert errors(read_front_matter(form.encode(), "x").findings)


names = some.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
texts = some.text(some.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60)


@settings(max_examples=300, deadline=None)
@given(some.dictionaries(names, texts, min_size=1, max_size=9))
def test_quoted_text_comes_back_as_it_was_written(packet: dict[str, str]) -> None:
    lines = (f"  {key}: '{value.replace(chr(39), chr(39) * 2)}'\n" for key, value in packet.items())

    assert packet_of(f"---\nhandoff:\n{''.join(lines)}---\n".encode()) == packet


@settings(max_examples=500, deadline=None)
@given(texts)
def test_plain_text_is_read_as_it_stands_or_refused(value: str) -> None:
    reading = read_front_matter(f"---\nhandoff:\n  a: {value}\n---\n".encode(), "x")

    if reading.records:
        read = reading.records[0].value["handoff"]["a"]
        assert value.strip()[:1] in ("'", '"') or read == value.strip()
    else:
        assert errors(reading.findings)


def test_random_mutations_never_raise_and_never_change_the_form() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    valid = (FIXTURES / "ok" / "document_001.md").read_bytes()
    for _ in range(1_500):
        data = bytearray(valid)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 1, 3])] = chance.choice(
                b"#:'\"&*!|>[]{}?-\n\t \\%@`\0\r~<\xff."
            ).to_bytes(1)
        reading = read_front_matter(bytes(data), "x")
        assert isinstance(reading, Reading)
        for record in reading.records:
            assert all(
                isinstance(value, str) and "\n" not in value
                for value in record.value["handoff"].values()
            )
