"""What is written is read again as it was: TOON, the two texts of a packet, and commit subjects.

See docs/dev/faults.md#f55.
"""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from tests.fuzz.handoff import read_handoff
from tests.properties.profile import tried
from yolo_fs.artifacts.classify import DOCUMENTS
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.core.ids import GRAMMAR, TYPES, Subject
from yolo_fs.core.reasons import errors
from yolo_fs.handoffs.packets import as_chat, as_file, from_front_matter, packet_of, read_chat
from yolo_fs.protocol.handoffs import PACKET_FIELDS
from yolo_fs.protocol.workflow import SOURCE_FORMAT
from yolo_fs.schemas.check import check
from yolo_fs.schemas.packet import DirectivePacket, Packet
from yolo_fs.system.front_matter import read_front_matter
from yolo_fs.system.toon import read_toon, write_toon

# --- TOON ---

CHARS = some.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # fmt: skip
"""What a TOON document may hold; the reader refuses the others wherever they stand."""
TEXTS = some.text(CHARS, max_size=20) | some.sampled_from(
    [
        "",
        " ",
        "null",
        "true",
        "0",
        "01",
        "-1",
        "1e5",
        "-",
        "- a",
        "a: b",
        "a,b",
        "[1]",
        "{a}",
        '"',
        "\\",
        "#",
        "a|b",
        "x\ty\n",
    ]
)
NUMBERS = some.integers(-(10**19), 10**19) | some.floats(-1e19, 1e19)
"""TOON writes a float of 1e20 as a whole number of 21 digits, and the reader takes no more than 20: a listed difference."""
VALUES: Any = some.recursive(
    some.none() | some.booleans() | NUMBERS | TEXTS,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@tried(25)
@given(some.dictionaries(TEXTS, VALUES, max_size=5))
def test_an_object_written_as_toon_is_read_as_it_was(value: dict[str, Any]) -> None:
    assume(value)
    reading = read_toon(write_toon(value).encode(), "x.toon")

    assert reading.findings == ()
    assert [record.value for record in reading.records] == [value]


# --- packets ---

LINES = some.text(
    some.characters(min_codepoint=0x20, max_codepoint=0x17F, exclude_categories=("Cc", "Cf")),
    min_size=1,
    max_size=40,
).filter(lambda text: text == text.strip() and not text.startswith("<"))
BRANCHES = some.from_regex(r"[a-z][a-z0-9]{0,8}(/[a-z0-9]{1,8}){0,2}", fullmatch=True)
PATHS = some.from_regex(r"[a-zA-Z0-9'#:,-]{1,12}(/[a-z0-9]{1,9}){0,3}\.md", fullmatch=True)
ROLES = some.sampled_from(["architect", "executor", "pair", "auditor"])
FIELDS = {
    "from_role": ROLES, "to_role": ROLES, "session_id": some.uuids().map(str), "task_file": PATHS,
    "trigger": some.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True), "directive_branch": BRANCHES,
    "required_reading": PATHS, "objective": LINES, "blocking_rule": LINES,
}  # fmt: skip
PACKETS = some.fixed_dictionaries(FIELDS).filter(
    lambda texts: check(DirectivePacket, texts)[0] is not None
)


def test_every_field_of_a_packet_is_generated() -> None:
    assert list(FIELDS) != [] and set(FIELDS) == {row.name for row in PACKET_FIELDS}


@tried(15)
@given(PACKETS)
def test_a_packet_in_a_file_is_read_as_it_was(texts: dict[str, str]) -> None:
    packet = DirectivePacket.model_validate(texts)
    data = as_file(packet)
    reading = read_front_matter(data.encode(), "HANDOFF.md")

    assert errors(reading.findings) == ()
    assert read_handoff(data.encode()) == texts
    written = from_front_matter(
        reading.records[0].value["handoff"], data.split("\n"), "HANDOFF.md", reading.findings
    )
    assert written.texts == texts
    assert packet_of(written)[0] == packet


@tried(25)
@given(PACKETS)
def test_a_packet_in_a_chat_is_read_as_it_was(texts: dict[str, str]) -> None:
    packet = Packet.model_validate(texts)
    written = read_chat(
        ["Some talk before.", *as_chat(packet).splitlines(), "", "and after."], "chat"
    )

    assert written.findings == ()
    assert packet_of(written)[0] == packet


# --- subjects ---

SUBJECTS = sorted(
    {subject.template for row in (*ARTIFACTS, *DOCUMENTS) for subject in row.subjects}
    | {SOURCE_FORMAT.template}
)
WORDS = some.from_regex(
    r"[A-Za-z0-9\u00c0-\u017f][A-Za-z0-9\u00c0-\u017f ._:(),'/-]{0,20}", fullmatch=True
)
NUMBERED = some.from_regex(r"[0-9]{1,2}", fullmatch=True)
TOKENS = {
    "phase": some.from_regex(r"[0-9]{2}", fullmatch=True) | some.from_regex(r"[0-9]{2}-[a-z]{1,8}", fullmatch=True),
    "plan": some.from_regex(r"[0-9]{2}-[0-9]{2}", fullmatch=True), "type": some.sampled_from(TYPES),
    "step": some.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True), "N": NUMBERED, "R": NUMBERED,
    "artifact": some.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,12}", fullmatch=True), "task": WORDS, "text": WORDS,
}  # fmt: skip


def gaps_of(template: str) -> list[str]:
    return [gap for _, gap, _, _ in string.Formatter().parse(template) if gap]


@pytest.mark.parametrize("template", SUBJECTS)
@tried(5)
@given(data=some.data())
def test_a_subject_that_we_write_is_recognised_with_the_same_gaps(
    template: str, data: some.DataObject
) -> None:
    gaps = {name: data.draw(TOKENS[name], name) for name in gaps_of(template)}
    subject = Subject(template)
    rendered = subject.render(**gaps)

    assert subject.match(rendered) == gaps
    assert GRAMMAR.fullmatch(rendered)


@pytest.mark.parametrize("template", SUBJECTS)
@tried(3)
@given(data=some.data())
def test_nothing_hidden_enters_a_subject(template: str, data: some.DataObject) -> None:
    names = gaps_of(template)
    assume(names)
    gaps = {name: data.draw(TOKENS[name], name) for name in names}
    spoilt = data.draw(some.sampled_from(names))
    hidden = data.draw(some.sampled_from("\n\r\x00\x1b\x85\u2028\u202e\u2066\x7f"))
    at = data.draw(some.integers(0, len(gaps[spoilt])))

    with pytest.raises(ValueError, match="does not fit"):
        Subject(template).render(**{**gaps, spoilt: gaps[spoilt][:at] + hidden + gaps[spoilt][at:]})


@tried(25)
@given(some.text(max_size=60))
def test_no_text_makes_the_recognition_of_subjects_raise(text: str) -> None:
    for template in SUBJECTS:
        assert Subject(template).match(text) is None or GRAMMAR.fullmatch(text)
