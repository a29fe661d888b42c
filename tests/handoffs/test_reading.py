"""Reading a handoff: what counts as its text block, which line the log gets, and what many lines amount to."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.handoffs.reading import (
    CAUSES,
    OUTCOMES,
    Diagnosis,
    HandoffSource,
    Read,
    block_of,
    cause_of,
    compliance,
    fields_of,
    is_alike,
    parse_log,
)

NOW = datetime(2026, 2, 19, 8, 0, 0, tzinfo=UTC)
HEAD = "agent=planner phase=plan source=text_fallback"
OK, FAIL = Reason.TEXT_FALLBACK_OK, Reason.TEXT_FALLBACK_FAIL

# --- the text block ---


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("Done.\n---HANDOFF---\nSTATUS: done\n", "STATUS: done"),
        ("---HANDOFF---\r\nSTATUS: done\r\n---END---\r\nBye", "STATUS: done"),
        ("```\n---HANDOFF---\nSTATUS: done\n```\nBye", "STATUS: done"),
        ("**---HANDOFF---**\nSTATUS: done", "STATUS: done"),
        ("---HANDOFF---\nSTATUS: <word>\n\nNow mine:\n---HANDOFF---\nSTATUS: done", "STATUS: done"),
        ("## ---HANDOFF---\nSTATUS: done", "STATUS: done"),
        ("\ufeff---HANDOFF---\nSTATUS: done", "STATUS: done"),
        ("> ---HANDOFF---\n> STATUS: done\n> SUMMARY: a\n>   b", "STATUS: done\nSUMMARY: a\n  b"),
        ('---HANDOFF---\n```json\n{"next": 1}\n```\nBye', '{"next": 1}'),
        ('```\nls\n```\n---HANDOFF---\n\n```\n{"next": 1}\n```', '\n{"next": 1}'),
        ("```\n---HANDOFF---\n```\nSTATUS: done", ""),
        ("> ---HANDOFF---\n> SUMMARY: 3 > 2 holds", "SUMMARY: 3 > 2 holds"),
        ("---HANDOFF---\nSTATUS: done\n\n---HANDOFF---\nSTATUS: done | blocked", "STATUS: done\n"),
        ("---HANDOFF---", ""),
        ("Write ---HANDOFF--- below.", None),
        ("--HANDOFF--\nSTATUS: done", None),
        ("", None),
    ],
)
def test_the_block_is_what_follows_the_last_marker(text: str, block: str | None) -> None:
    assert block_of(text) == block


@pytest.mark.parametrize(
    "value", ["<agent>", "complete|needs_human", "[done | blocked | failed]", "...", "…"]
)
def test_a_value_of_the_form_is_none(value: str) -> None:
    _, (fault,) = fields_of(f"STATUS: {value}\nSUMMARY: It is done | in part.")
    assert (fault.reason, fault.at) == (Reason.EMPTY_VALUE, "/status")


@pytest.mark.parametrize(
    ("block", "key", "value"),
    [
        ("STATUS: complete", "status", "complete"),
        ("**Status:** complete", "status", "complete"),
        ("- status: `complete`", "status", "complete"),
        ("STATUS:", "status", ""),
        ("ARTIFACTS: a.md, b/c.json", "artifacts", ["a.md", "b/c.json"]),
        ('ARTIFACTS: ["a.md", "b.md"]', "artifacts", ["a.md", "b.md"]),
        ("ARTIFACTS:\n- a.md\n* `b.md`", "artifacts", ["a.md", "b.md"]),
        ("ARTIFACTS: none", "artifacts", []),
        ("NEXT: plan-reviewer", "next", "plan-reviewer"),
        ("NEXT: null", "next", None),
        ("SUMMARY: two steps\n  and a half", "summary", "two steps and a half"),
        ("SUMMARY: two: steps\nTOKENS: 12\nmore", "summary", "two: steps"),
    ],
)
def test_a_field_is_read_from_its_line(block: str, key: str, value: object) -> None:
    assert fields_of(block) == ({key: value}, ())


def test_a_field_that_stands_twice_is_a_fault() -> None:
    _, (fault,) = fields_of("STATUS: complete\nSTATUS: blocked")
    assert (fault.reason, fault.at) == (Reason.DUPLICATE_KEY, "/status")


@pytest.mark.proves("004:62b")
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("handoff.json", True),
        ("Handoff.JSON", True),
        ("hand-off.json", True),
        ("handoff.json.txt", True),
        ("handoff.jsonl", True),
        ("handoff_json.txt", True),
        ("HANDOFF.md", False),
        ("handoff.md", False),
        ("phase-handoff.jsonl", False),
        ("handoff.jsonx", False),
    ],
)
def test_a_slip_of_the_name_is_recognised(name: str, answer: bool) -> None:
    assert is_alike(name) is answer


# --- the decision ---


@pytest.mark.parametrize(
    ("diagnosis", "reasons", "stops", "stops_strictly"),
    [
        (Diagnosis(None), ("handoff_json",), False, False),
        (Diagnosis(Reason.FILE_MISSING), ("file_missing",), True, True),
        (
            Diagnosis(Reason.JSON_PARSE_ERROR, OK),
            ("json_parse_error", "text_fallback_ok"),
            False,
            True,
        ),
        (
            Diagnosis(Reason.SCHEMA_INVALID, FAIL),
            ("schema_invalid", "text_fallback_fail"),
            True,
            True,
        ),
    ],
)
def test_strict_mode_stops_on_any_reason_but_the_file(
    diagnosis: Diagnosis, reasons: tuple[str, ...], stops: bool, stops_strictly: bool
) -> None:
    assert diagnosis.reasons == reasons
    assert (diagnosis.fails(strict=False), diagnosis.fails(strict=True)) == (stops, stops_strictly)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        ([Reason.NOT_AN_OBJECT], Reason.SCHEMA_INVALID),
        ([Reason.NOT_AN_OBJECT, Reason.UNTERMINATED], Reason.SCHEMA_INVALID),
        ([Reason.JSON_PARSE_ERROR], Reason.JSON_PARSE_ERROR),
        ([Reason.DUPLICATE_KEY, Reason.NOT_FINITE], Reason.JSON_PARSE_ERROR),
        ([Reason.NOT_UTF8], Reason.JSON_PARSE_ERROR),
    ],
)
def test_json_of_another_kind_is_json_all_the_same(found: list[Reason], cause: Reason) -> None:
    assert cause_of([Finding(reason) for reason in found]) is cause


# --- the log ---


@pytest.mark.proves("004:70")
@pytest.mark.parametrize(
    ("diagnosis", "lines"),
    [
        (
            Diagnosis(None),
            "agent=planner phase=plan source=handoff_json reason=handoff_json timestamp=2026-02-19T08:00:00Z\n",
        ),
        (
            Diagnosis(Reason.FILE_MISSING),
            f"{HEAD} reason=file_missing timestamp=2026-02-19T08:00:00Z\n",
        ),
        (
            Diagnosis(Reason.SCHEMA_INVALID, OK),
            f"{HEAD} reason=schema_invalid timestamp=2026-02-19T08:00:00Z\n"
            f"{HEAD} reason=text_fallback_ok timestamp=2026-02-19T08:00:00Z\n",
        ),
    ],
)
def test_each_reason_is_one_line_in_the_form_of_the_document(
    diagnosis: Diagnosis, lines: str
) -> None:
    assert Read("planner", "plan", diagnosis, NOW).lines() == lines


@pytest.mark.parametrize(
    "word", ["", "a b", "a\nagent=b", "a=b", "a\r", "a\u2028b", "é", "x" * 65, "-a", "..", "a\x00"]
)
def test_a_name_that_could_forge_a_line_is_refused(word: str) -> None:
    for read in (
        Read(word, "plan", Diagnosis(None), NOW),
        Read("planner", word, Diagnosis(None), NOW),
    ):
        with pytest.raises(ValueError, match="not a name"):
            read.lines()


def test_what_was_written_is_what_is_read() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    reads = tuple(
        Read(
            rng.choice("abc"),
            rng.choice(["plan", "01-auth"]),
            rng.choice(EVERY_DIAGNOSIS),
            NOW.replace(minute=n),
        )
        for n in rng.choices(range(60), k=300)
    )
    log = parse_log("".join(read.lines() for read in reads))
    assert (log.reads, log.unreadable) == (reads, 0)


EVERY_DIAGNOSIS = [
    Diagnosis(None),
    *(Diagnosis(cause, outcome) for cause in CAUSES for outcome in (None, *OUTCOMES)),
]


def test_lines_in_another_form_are_counted_and_spoil_nothing() -> None:
    good = Read("planner", "plan", Diagnosis(None), NOW).lines()
    torn = good[:30] + "\n"
    old = "agent=planner phase=plan source=handoff_json timestamp=2026-02-19T08:00:00Z\n"
    impossible = good.replace("-19T", "-99T")
    contradiction = good.replace("source=handoff_json", "source=text_fallback")
    log = parse_log(good + torn + "\n" + old + impossible + contradiction + good)
    assert (len(log.reads), log.unreadable) == (2, 4)


@pytest.mark.parametrize(
    "between",
    [
        {"agent": "builder"},
        {"phase": "build"},
        {"at": NOW.replace(hour=9)},
    ],
)
def test_an_outcome_belongs_to_the_cause_right_above_it_only(between: dict[str, object]) -> None:
    cause = Read("planner", "plan", Diagnosis(Reason.FILE_MISSING), NOW)
    values = {"agent": "planner", "phase": "plan", "at": NOW} | between
    alone = Read(diagnosis=Diagnosis(Reason.FILE_MISSING, OK), **values)  # type: ignore[arg-type]
    outcome_line = alone.lines().splitlines(keepends=True)[1]
    assert len(parse_log(cause.lines() + outcome_line).reads) == 2


def test_a_second_outcome_is_a_read_of_its_own() -> None:
    lines = Read("planner", "plan", Diagnosis(Reason.FILE_MISSING, OK), NOW).lines()
    log = parse_log(lines + lines.splitlines(keepends=True)[1])
    assert [read.diagnosis for read in log.reads] == [
        Diagnosis(Reason.FILE_MISSING, OK),
        Diagnosis(OK, OK),
    ]


# --- compliance ---


def test_the_percentage_counts_reads_not_lines() -> None:
    reads = [
        Read("a", "p", one, NOW) for one in (Diagnosis(None), Diagnosis(Reason.FILE_MISSING, OK))
    ]
    total = compliance(reads).total
    assert (total.reads, total.compliant, total.percent) == (2, 1, 50.0)
    assert total.reasons == (("file_missing", 1), ("text_fallback_ok", 1))


def test_without_any_read_there_is_no_percentage() -> None:
    assert compliance([]).total.percent is None


def test_an_outcome_that_others_logged_alone_is_one_read_and_one_reason() -> None:
    line = f"{HEAD} reason={Reason.TEXT_FALLBACK_FAIL.value} timestamp=2026-02-19T08:00:00Z\n"
    total = compliance(parse_log(line).reads).total
    assert (total.reads, total.percent, total.reasons) == (1, 0.0, (("text_fallback_fail", 1),))


def test_source_words_are_those_of_the_document() -> None:
    assert [source.value for source in HandoffSource] == ["handoff_json", "text_fallback"]
