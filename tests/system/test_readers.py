"""The strict reader: every fixture, a differential fuzz against a second recogniser, and hostile sizes."""

from __future__ import annotations

import json
import random
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import jsonlines
import pytest

from tests.system.recogniser import accepts
from yolo_fs.core.reasons import Level, Reason, errors
from yolo_fs.system import readers, text_checks
from yolo_fs.system.readers import read_lines, read_object
from yolo_fs.system.text_checks import MAX_FINDINGS, Limits, Reading, read_text

FIXTURES = Path(__file__).parents[2] / "fixtures" / "reader"
SMALL = Limits(max_line_bytes=4096, max_file_bytes=16384, max_lines=1000)
"""The limits that the fixtures are read with, so that none has to be large."""

READERS: dict[str, Callable[[bytes, str, Limits], Reading]] = {
    ".jsonl": read_lines,
    ".json": read_object,
    ".md": read_text,
}
READER_REASONS = {
    Reason.EMPTY_FILE, Reason.FILE_TOO_LARGE, Reason.BYTE_ORDER_MARK, Reason.NUL_BYTE, Reason.NOT_UTF8,
    Reason.CARRIAGE_RETURN, Reason.CONTROL_CHARACTER, Reason.LINE_TOO_LONG, Reason.CONFLICT_MARKER, Reason.FENCED_JSON,
    Reason.NESTING_TOO_DEEP, Reason.JSON_PARSE_ERROR, Reason.DUPLICATE_KEY, Reason.NOT_FINITE, Reason.NUMBER_TOO_LARGE,
    Reason.LONE_SURROGATE, Reason.NOT_AN_OBJECT, Reason.UNTERMINATED,
}  # fmt: skip


def cases(folder: str) -> list[Path]:
    return sorted((FIXTURES / folder).iterdir())


def read_case(case: Path) -> Reading:
    return READERS[case.suffix](case.read_bytes(), case.name, SMALL)


@pytest.mark.parametrize("case", cases("ok"), ids=lambda case: case.name)
def test_a_good_file_has_no_error(case: Path) -> None:
    reading = read_case(case)

    assert errors(reading.findings) == ()
    assert not reading.torn
    assert case.suffix == ".md" or reading.records


@pytest.mark.parametrize("case", cases("bad"), ids=lambda case: case.name)
def test_a_bad_file_is_refused_for_the_reason_in_its_name(case: Path) -> None:
    first = errors(read_case(case).findings)[0]

    assert first.reason == case.name.partition("__")[0]
    assert first.path == case.name
    assert first.expected
    assert first.hint


def test_every_reason_of_the_reader_has_a_fixture() -> None:
    assert {case.name.partition("__")[0] for case in cases("bad")} == {
        reason.value for reason in READER_REASONS
    }


def test_records_carry_their_line_numbers() -> None:
    reading = read_lines(b'{"a":1}\n\n{"b":2}\n', "x.jsonl")

    assert [(record.line, record.value) for record in reading.records] == [
        (1, {"a": 1}),
        (3, {"b": 2}),
    ]
    assert [(f.reason, f.line, f.level) for f in reading.findings] == [
        (Reason.BLANK_LINE, 2, Level.WARNING)
    ]


def test_all_faults_of_all_lines_are_reported() -> None:
    data = b'{"a":1,"a":2,"b":{"c":NaN,"d":"\\ud800"}}\n{"ok":1}\n[]\n\xff\n{"n":123456789012345678901}\n{'

    reading = read_lines(data, "x.jsonl")

    assert [(f.reason, f.line, f.at) for f in reading.findings] == [
        (Reason.NOT_UTF8, 4, ""),
        (Reason.DUPLICATE_KEY, 1, "/a"),
        (Reason.NOT_FINITE, 1, "/b/c"),
        (Reason.LONE_SURROGATE, 1, "/b/d"),
        (Reason.NOT_AN_OBJECT, 3, ""),
        (Reason.NUMBER_TOO_LARGE, 5, "/n"),
        (Reason.UNTERMINATED, 6, ""),
    ]
    assert [record.line for record in reading.records] == [2]


def test_complete_lines_of_a_torn_file_are_read() -> None:
    reading = read_lines(b'{"a":1}\n{"b":2}\n{"c":', "x.jsonl")

    assert reading.torn
    assert [record.line for record in reading.records] == [1, 2]


@pytest.mark.parametrize(
    "data", [b'```json\n{"a":1}\n```', b'[\n{"a":1}\n]', b'{"a":1}\nDone:\n{"b"']
)
def test_a_whole_line_that_cannot_be_read_is_wrong_before_the_last_line_has_ended(
    data: bytes,
) -> None:
    assert not read_lines(data, "x.jsonl").torn


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,}\n', "Expecting property name enclosed in double quotes at column 8: '}'"),
        (b'{"a":1}{"b":2}\n', """another value follows the first at column 8: '{"b":2}'"""),
        (
            b'{"a":1} ' + b"word " * 9 + b"\n",
            f"another value follows the first at column 9: {'word ' * 6 + 'wo'!r}…",
        ),
        (b'{"a":"\xe9"}\n', "0xe9 at byte 7 of the line (offset 6): invalid continuation byte"),
        (b'{"a":"\x07"}\n', "U+0007 at column 7"),
        (b'{"x":1}\n{"a":' + b"[" * 64 + b"\n", "deeper than 64 at column 69"),
    ],
)
def test_the_message_names_the_place(data: bytes, message: str) -> None:
    assert errors(read_lines(data, "x.jsonl").findings)[0].message == message


@pytest.mark.parametrize("data", [b'{\n  "a": 1\n}\n', b'[\n{"a":1},\n{"b":2}\n]\n'])
def test_a_value_on_many_lines_is_one_finding(data: bytes) -> None:
    reading = read_lines(data, "x.jsonl")

    assert [f.reason for f in reading.findings] == [Reason.JSON_PARSE_ERROR]
    assert "spread over" in reading.findings[0].message


def test_a_syntax_error_of_an_object_names_its_line() -> None:
    finding = read_object(b'{\n  "a": 1,\n  "b": 2,\n}\n', "x.json").findings[0]

    assert (finding.reason, finding.line) == (Reason.JSON_PARSE_ERROR, 4)


def test_a_complete_object_without_newline_is_not_torn() -> None:
    reading = read_object(b'{"a":1}', "x.json")

    assert (reading.torn, reading.records[0].line) == (False, 1)
    assert [(f.reason, f.level) for f in reading.findings] == [(Reason.UNTERMINATED, Level.WARNING)]


def test_faults_that_lines_share_are_one_finding() -> None:
    reading = read_lines(b'{"a":1}\r\n' * 40, "x.jsonl")

    assert len(reading.findings) == 1
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 30 more" in reading.findings[0].message


def test_more_than_a_hundred_findings_are_cut_with_a_word() -> None:
    findings = read_lines(b"x\n" * 5000, "x.jsonl").findings

    assert len(findings) == text_checks.MAX_FINDINGS + 1
    assert "more than 100 findings" in findings[-1].message


def test_unlisted_errors_are_not_hidden_by_warnings() -> None:
    report = text_checks.FindingList("x")
    for _ in range(text_checks.MAX_FINDINGS + 1):
        report.add(Reason.BLANK_LINE, level=Level.WARNING)
    report.add(Reason.NUL_BYTE)

    assert [f.reason for f in errors(report.findings())] == [Reason.NUL_BYTE]


def test_jsonlines_reads_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "Reader", lambda *_, **__: pytest.fail("jsonlines was asked"))

    with pytest.raises(pytest.fail.Exception):
        read_lines(b'{"a":1}\n', "x.jsonl")


def test_a_smaller_digit_limit_holds() -> None:
    assert errors(read_lines(b'{"n":12345}\n', "x", Limits(max_digits=5)).findings) == ()
    assert (
        read_lines(b'{"n":123456}\n', "x", Limits(max_digits=5)).findings[0].reason
        is Reason.NUMBER_TOO_LARGE
    )


# --- hostile sizes ---------------------------------------------------------------------------------------------------

FOUR_MIB = 4 << 20
HOSTILE = [
    b"[",
    b"{",
    b'{"a":',
    b'"',
    b'\\"',
    b"9",
    b"[]",
    b"[[],",
    b"1e9,",
    b'{"a":1}',
    b"\\ud800",
    b"\xff",
    b"\0",
    b"-",
    b"`",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
@pytest.mark.parametrize("ending", [b"", b"\n"], ids=["torn", "ended"])
def test_four_mebibytes_of_anything_are_refused(unit: bytes, ending: bytes) -> None:
    data = unit * (FOUR_MIB // len(unit)) + ending

    for read in (read_lines, read_object, read_text):
        reading = read(data, "x", Limits(max_line_bytes=FOUR_MIB * 2))
        assert read is read_text or errors(reading.findings)
        assert len(reading.findings) <= text_checks.MAX_FINDINGS + 1
        assert errors(read(data, "x", Limits()).findings)[0].reason is not None


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_the_work_grows_with_the_size_and_no_faster(unit: bytes) -> None:
    small, large = (steps_of(unit * size + b"\n") for size in (4000, 16000))

    assert large <= small * 4.5 + 200


def steps_of(data: bytes) -> int:
    """Return how many Python lines and calls one reading takes."""
    steps = 0

    def count(*_: object) -> object:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)  # type: ignore[arg-type]
    try:
        read_lines(data, "x")
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize(
    "line",
    [b"{}\n", b"\n", b"1\n", b'{"a":[' + b"[]," * 1000 + b"0]}\n"],
    ids=lambda line: repr(line[:8]),
)
def test_memory_stays_within_a_multiple_of_the_file(line: bytes) -> None:
    data = line * ((FOUR_MIB >> 3) // len(line))
    tracemalloc.start()
    try:
        read_lines(data, "x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 64 * len(data)


def test_too_many_brackets_are_refused_before_they_cost_memory() -> None:
    data = b'{"a":[' + b"[]," * 600_000 + b"0]}\n"

    for read in (read_lines, read_object):
        (finding,) = read(data, "x", Limits(max_line_bytes=FOUR_MIB)).findings
        assert finding.reason is Reason.FILE_TOO_LARGE


def test_a_recursion_error_becomes_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}\n"

    reading = read_lines(deep, "x", Limits(max_depth=1_000_000))

    assert [f.reason for f in reading.findings] == [Reason.NESTING_TOO_DEEP]


# --- differential fuzz -----------------------------------------------------------------------------------------------

PIECES = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"0", b"1e999", b"-", b".", b"NaN", b"Infinity", b"null", b"true",
    b"\\u", b"\\ud83d", b"\\ude00", b"\\\\u", b"\\ud800", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\0", b"\r", b"\t",
    b" ", b"\xef\xbb\xbf", b"\x1e", b"\xe2\x80\xa8", b"\xc2\xa0", b"```", b"=======", b"<<<<<<< ",
    b"123456789012345678901",
    b"[" * 70, b"'", b"/*", b'"a":1,', b'"id":"C1",', b"e", b"+", b"01", b"\x7f", b"\xf0\x9f\x98\x80", b"\x0c",
]  # fmt: skip


def random_value(chance: random.Random, depth: int = 0) -> object:
    kind = chance.randrange(8 if depth < 4 else 6)
    if kind == 6:
        return [random_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 7:
        return {
            chance.choice("abcdé"): random_value(chance, depth + 1)
            for _ in range(chance.randrange(4))
        }
    leaves = [
        None,
        True,
        chance.randrange(-(10**20), 10**20),
        chance.uniform(-1e9, 1e300),
        'a"\\\u2028😀',
        "text \n",
    ]
    return leaves[kind]


def random_line(chance: random.Random) -> bytes:
    value = {"id": "C1", "v": random_value(chance)}
    line = bytearray(json.dumps(value, ensure_ascii=chance.random() < 0.5).encode())
    for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
        at = chance.randrange(len(line) + 1)
        until = min(len(line), at + chance.choice([0, 0, 1, 1, 2, 8]))
        line[at:until] = (
            chance.choice(PIECES) if chance.random() < 0.7 else bytes([chance.randrange(256)])
        )
    return bytes(line).replace(b"\n", b"")


def random_garbage(chance: random.Random) -> bytes:
    return b"".join(chance.choice(PIECES) for _ in range(chance.randrange(1, 20)))


def test_twenty_thousand_random_lines_are_accepted_exactly_as_a_second_recogniser_does() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    accepted = 0
    for _ in range(20_000):
        line = (random_line if chance.random() < 0.8 else random_garbage)(chance)
        found = bool(read_lines(b"{}\n" + line + b"\n", "x").records[1:])
        assert found == accepts(line.removesuffix(b"\r")), (seed, line)
        accepted += found
    assert 2_000 < accepted < 18_000


def test_many_random_lines_in_one_file_are_accepted_as_each_alone() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    lines = [random_line(chance) for _ in range(3_000)]

    reading = read_lines(b"{}\n" + b"\n".join(lines) + b"\n", "x")

    assert [r.line for r in reading.records[1:]] == [
        number for number, line in enumerate(lines, 2) if accepts(line.removesuffix(b"\r"))
    ]


def test_random_bytes_never_raise() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(2_000):
        data = b"\n".join(random_garbage(chance) for _ in range(chance.randrange(1, 6)))
        for read in (read_lines, read_object, read_text):
            assert isinstance(read(data, "x", SMALL), Reading)


def test_lines_share_their_keys_and_no_more_keys_than_there_may_be() -> None:
    line = b'{"plan":"01-01","tests":["a"]}\n'
    (one,), (other,) = (read_lines(line, "a.jsonl").records for _ in range(2))
    for key, again in zip(one.value, other.value, strict=True):
        assert key is again
    for number in range(20):
        keys = {f"key {number} {at}": at for at in range(200)}
        read = read_lines(json.dumps(keys).encode() + b"\n", "a.jsonl").records
        assert read[0].value == keys
    assert len(readers._KEYS) <= readers._KEYS_MOST


# --- a file that is only judged ---


@pytest.mark.parametrize(
    "line", ['{"id":"x","id":"y"}', '{"a":1e99999999}', "{", '"\\ud800"', "{}x"]
)
def test_of_a_hundred_thousand_faulty_lines_a_hundred_are_looked_at(line: str) -> None:
    judged = Limits(stops_at_errors=True)

    def took(count: int, limits: Limits) -> float:
        data = f"{line}\n".encode() * count
        began = time.process_time()
        reading = read_lines(data, "x.jsonl", limits)
        assert (
            len(reading.findings) == MAX_FINDINGS + 1
            and "more than" in reading.findings[-1].message
        )
        assert errors(reading.findings) and not reading.records
        return time.process_time() - began

    assert took(100_000, judged) < took(5_000, Limits())


def test_a_verdict_does_not_change_by_where_reading_ends() -> None:
    """Warnings alone end nothing: an error may follow them."""
    judged = Limits(stops_at_errors=True)
    warned = '{"a":1}\n\n' * 300
    for tail, is_wrong in (("", False), ("{\n", True)):
        data = (warned + tail).encode()
        one, other = (read_lines(data, "x.jsonl", limits) for limits in (judged, Limits()))
        assert bool(errors(one.findings)) == bool(errors(other.findings)) == is_wrong
        assert is_wrong or one == other
