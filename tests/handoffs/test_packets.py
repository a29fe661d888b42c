"""The two texts of a packet: what is read is what was written, and every fault is told with its place."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Finding, Level, Reason, errors
from yolo_fs.handoff_service.accept import written_in
from yolo_fs.handoff_service.sessions import PacketSource
from yolo_fs.handoffs.packets import as_chat, as_file, packet_of, read_chat, texts_of
from yolo_fs.protocol.handoffs import PACKET_FIELDS, PACKET_HEADING, TRIGGERS
from yolo_fs.schemas.packet import DirectivePacket, Packet
from yolo_fs.system.text_checks import Limits

FIXTURES = Path(__file__).parents[2] / "fixtures"
FIELDS = [row.name for row in PACKET_FIELDS]
GOOD = {
    "from_role": "architect",
    "to_role": "executor",
    "trigger": "architect_ultra_detected",
    "session_id": "4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30",
    "task_file": "tasks/02-login-form.md",
    "directive_branch": "directive/login-form",
    "required_reading": "apps/web/docs/guides/component-paradigm.md",
    "objective": "Replace the inline styles by the shared component",
    "blocking_rule": "the architect must not edit files below apps/web/src",
}
TEMPLATE = """---
handoff:
  from_role: architect
  to_role: executor
  trigger: <short deterministic trigger id>
  session_id: <directive session guid>
  task_file: <task path>
  directive_branch: <non empty git branch name>
  required_reading: apps/web/docs/guides/component-paradigm.md
  objective: <one line objective>
  blocking_rule: <rule that prevents sender from continuing>
---
"""


def read(text: str | bytes, path: str = "-") -> tuple[Packet | None, tuple[Finding, ...]]:
    data = text if isinstance(text, bytes) else text.encode()
    return packet_of(written_in(PacketSource(path, data), Limits()))


def cases(folder: str) -> list[Path]:
    return sorted((FIXTURES / "packets" / folder).iterdir())


# --- examples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("ok"), ids=lambda case: case.stem)
def test_good_chat_is_read(case: Path) -> None:
    packet, findings = read(case.read_bytes())
    assert (findings, packet is not None) == ((), True)


@pytest.mark.proves("001:81")
@pytest.mark.parametrize("case", cases("bad"), ids=lambda case: case.stem)
def test_bad_chat_is_refused_for_the_reason_in_its_name(case: Path) -> None:
    first = errors(read(case.read_bytes(), case.name)[1])[0]
    assert (first.reason, first.path) == (Reason.of(case.name.partition("__")[0]), case.name)
    assert first.expected


def test_every_trigger_of_the_matrix_has_an_example() -> None:
    packets = [read(case.read_bytes())[0] for case in cases("ok")]
    assert {packet.trigger for packet in packets if packet} == {row.id for row in TRIGGERS}


@pytest.mark.proves("001:15")
def test_template_of_the_document_is_no_handoff() -> None:
    found = {
        (finding.reason, finding.line, finding.at) for finding in read(TEMPLATE, "HANDOFF.md")[1]
    }
    assert found == {
        (Reason.BAD_FORMAT, 5, "/handoff/trigger"),
        (Reason.BAD_FORMAT, 6, "/handoff/session_id"),
        (Reason.EMPTY_VALUE, 7, "/handoff/task_file"),
        (Reason.BAD_FORMAT, 8, "/handoff/directive_branch"),
        (Reason.EMPTY_VALUE, 10, "/handoff/objective"),
        (Reason.EMPTY_VALUE, 11, "/handoff/blocking_rule"),
    }


@pytest.mark.proves("001:73")
def test_last_packet_of_a_chat_counts() -> None:
    packet, _ = read((FIXTURES / "packets/ok/last_of_two.txt").read_bytes())
    assert packet is not None
    assert packet.from_role == "architect"


def test_further_field_is_a_warning() -> None:
    _, findings = read(chat(GOOD) + "mood: good\n")
    assert [(f.reason, f.level, f.line, f.at) for f in findings] == [
        (Reason.UNKNOWN_KEY, Level.WARNING, 11, "/mood"),
    ]


def test_line_is_known_for_quoted_keys() -> None:
    text = front_matter(GOOD | {"to_role": "reviewer"}).replace("  to_role:", '  "to_role" :')
    assert [(f.reason, f.line, f.at) for f in read(text)[1]] == [
        (Reason.UNKNOWN_VALUE, 4, "/handoff/to_role")
    ]


def test_long_line_of_signs_costs_nothing() -> None:
    lines = ["=" * 1_000_000, " " * 1_000_000, "= handoff" * 100_000]
    assert [finding.reason for finding in read_chat(lines).findings] == [Reason.SECTION_MISSING]


# --- every field, every way of being wrong ---------------------------------------------------------------------------

UNKNOWN = {
    "from_role": ("reviewer", Reason.UNKNOWN_VALUE),
    "to_role": ("reviewer", Reason.UNKNOWN_VALUE),
    "trigger": ("architect_tired", Reason.UNKNOWN_VALUE),
    "session_id": ("login-form", Reason.BAD_FORMAT),
    "task_file": ("../02.md", Reason.PATH_ESCAPES),
    "directive_branch": ("main..login", Reason.BAD_FORMAT),
    "required_reading": ("/etc/passwd", Reason.PATH_ESCAPES),
    "objective": ("<one line objective>", Reason.EMPTY_VALUE),
    "blocking_rule": ("n/a", Reason.BAD_FORMAT),
}
"""A value that the field does not know, and why it is refused."""


@pytest.mark.parametrize("name", ["task_file", "required_reading"])
@pytest.mark.parametrize("path", [".git/config", "part/.git/hooks/pre-commit", "GIT~1/config"])
def test_nothing_in_a_git_directory_is_a_file_of_a_packet(name: str, path: str) -> None:
    assert [(one.reason, one.line) for one in read(front_matter(GOOD | {name: path}))[1]] == [
        (Reason.PATH_ESCAPES, 7 if name == "task_file" else 9)
    ]


def chat(values: dict[str, str]) -> str:
    return "".join(
        f"{line}\n"
        for line in (PACKET_HEADING, *(f"{name}: {text}" for name, text in values.items()))
    )


def front_matter(values: dict[str, str]) -> str:
    return "".join(
        f"{line}\n"
        for line in (
            "---",
            "handoff:",
            *(f"  {name}: {text}" for name, text in values.items()),
            "---",
        )
    )


def without(name: str) -> dict[str, str]:
    return {key: text for key, text in GOOD.items() if key != name}


def as_a_list_in_chat(name: str) -> str:
    return chat(GOOD).replace(f"{name}: {GOOD[name]}", f"{name}:\n- {GOOD[name]}", 1)


Mutation = tuple[str, Callable[[str], str], Callable[[str], Reason]]
IN_CHAT: list[Mutation] = [
    ("removed", lambda name: chat(without(name)), lambda _: Reason.MISSING_KEY),
    ("empty", lambda name: chat(GOOD | {name: ""}), lambda _: Reason.EMPTY_VALUE),
    ("wrong type", as_a_list_in_chat, lambda _: Reason.EMPTY_VALUE),
    ("unknown", lambda name: chat(GOOD | {name: UNKNOWN[name][0]}), lambda name: UNKNOWN[name][1]),
]
IN_FILE: list[Mutation] = [
    ("removed", lambda name: front_matter(without(name)), lambda _: Reason.MISSING_KEY),
    ("empty", lambda name: front_matter(GOOD | {name: ""}), lambda _: Reason.EMPTY_VALUE),
    (
        "wrong type",
        lambda name: front_matter(GOOD | {name: f"[{GOOD[name]}]"}),
        lambda _: Reason.YAML_FEATURE,
    ),
    (
        "unknown",
        lambda name: front_matter(GOOD | {name: UNKNOWN[name][0]}),
        lambda name: UNKNOWN[name][1],
    ),
]
MUTATIONS = [
    (form, what, name, make, why)
    for form, mutations in (("chat", IN_CHAT), ("HANDOFF.md", IN_FILE))
    for what, make, why in mutations
    for name in FIELDS
]


@pytest.mark.proves("001:13", "001:16", "001:23")
@pytest.mark.parametrize(
    ("form", "what", "name", "make", "why"),
    MUTATIONS,
    ids=[f"{one[0]}-{one[2]}-{one[1]}" for one in MUTATIONS],
)
def test_spoiled_field_is_refused_with_reason_line_and_pointer(
    form: str, what: str, name: str, make: Callable[[str], str], why: Callable[[str], Reason]
) -> None:
    in_file = form == "HANDOFF.md"
    _, findings = read(make(name), form)
    place = (2 if in_file else 1) + FIELDS.index(name) + 1 if what != "removed" else 1
    pointer = f"{'/handoff' if in_file else ''}/{name}"
    found = [(finding.reason, finding.line, finding.at) for finding in errors(findings)]
    assert (why(name), place, pointer) in found
    extra = (
        {(Reason.BAD_FORMAT, place + 1, "")} if (form, what) == ("chat", "wrong type") else set()
    )
    assert set(found) == {(why(name), place, pointer)} | extra


def test_number_of_spoiled_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{len(MUTATIONS)} spoiled packets")
    assert len(MUTATIONS) == 9 * 4 * 2


# --- round trip ------------------------------------------------------------------------------------------------------

ALPHABET = "abcXYZ019 _-./@#:'\"&*!|>[]{}?%`,=+~<\\()$^;äßλЖ籠🧺\u00a0\u200d"
WORDS = [
    "no",
    "~",
    "null",
    "0123",
    "1e3",
    "2026-02-19",
    "- a",
    "a: b",
    "a #b",
    "---",
    "...",
    "? x",
    "<<",
    "=",
    "''",
]


def one_line(chance: random.Random) -> str:
    if chance.random() < 0.2:
        return chance.choice(WORDS)
    text = "".join(chance.choices(ALPHABET, k=chance.randint(1, 40)))
    # A line must say something, and the template's placeholder says nothing.
    return (
        text if text.strip() and "<" not in text and text != "n/a" else f"x{text.replace('<', '')}"
    )


def path(chance: random.Random) -> str:
    return "/".join(
        "".join(chance.choices("abc019_-. äß#'&*[", k=chance.randint(1, 8))) + "x" for _ in range(3)
    )


def packet(chance: random.Random) -> Packet:
    row = chance.choice(TRIGGERS)
    digits = f"{chance.getrandbits(128):032x}"
    guid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return DirectivePacket(
        from_role=chance.choice([role for role in row.senders if role != row.receiver]).value,
        to_role=row.receiver.value,
        trigger=row.id,
        session_id=guid.upper() if chance.random() < 0.1 else guid,
        task_file=path(chance),
        directive_branch=chance.choice(
            ["main", "größe", "#12", "{x}", "a}", "user@host", "no", "1e3", "-".join("ab")]
        ),
        required_reading=path(chance),
        objective=one_line(chance),
        blocking_rule=one_line(chance),
    )


def test_packets_come_back_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.randrange(2**32)
    with capsys.disabled():
        print(f"\nseed {seed}")
    chance = random.Random(seed)
    for _ in range(int(os.environ.get("YOLO_PACKETS", "2000"))):
        made = packet(chance)
        from_file, findings = read(as_file(made), "HANDOFF.md")
        assert (from_file, findings) == (made, ())
        from_chat, findings = read(as_chat(from_file))
        assert findings == ()
        assert texts_of(from_chat) == texts_of(made)


def test_plain_values_are_written_as_the_document_writes_them() -> None:
    made, _ = read(chat(GOOD))
    assert made is not None
    assert as_file(made) == front_matter(GOOD)
    assert as_chat(made) == chat(GOOD)
