"""Reading what an agent left: every way in which the file or the text can be wrong, as real files, with the log line."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.schemas.test_packet import JQ_FILTER
from yolo_fs.core.reasons import Level, Reason, YoloError
from yolo_fs.handoff_service.reading import LOG, HandoffAnswer, Reader, ReadRequest
from yolo_fs.handoffs.reading import Compliance, compliance
from yolo_fs.system.text_checks import Limits

NOW = datetime(2026, 2, 19, 8, 0, 0, tzinfo=UTC)
STAMP = "timestamp=2026-02-19T08:00:00Z"
FOLDER = ".quest/auth/phase_01_plan"
FILE = f"{FOLDER}/handoff.json"
GOOD: dict[str, Any] = {
    "status": "complete",
    "artifacts": ["plan.md"],
    "next": "reviewer",
    "summary": "Four steps",
}
TEXT = b"Done.\n---HANDOFF---\nSTATUS: complete\nARTIFACTS: plan.md\nNEXT: reviewer\nSUMMARY: Four steps\n"
FIELDS = ("status", "artifacts", "next", "summary")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".yolo-planning").mkdir()
    (tmp_path / FOLDER).mkdir(parents=True)
    return tmp_path.resolve()


def reader(root: Path, emit: Callable[..., object] = lambda *_: None, **limits: int) -> Reader:
    return Reader(str(root), str(root), Limits(**limits), emit)


def read(
    root: Path,
    text: bytes | None = None,
    path: str = FILE,
    agent: str = "planner",
    phase: str = "plan",
) -> HandoffAnswer:
    return reader(root).read(ReadRequest(path, agent, phase, text), NOW)


def put(root: Path, value: object, path: str = FILE) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return file


def log_lines(root: Path) -> list[str]:
    return (root / LOG).read_text().splitlines()


def line(source: str, reason: str) -> str:
    return f"agent=planner phase=plan source={source} reason={reason} {STAMP}"


# --- the five reasons ------------------------------------------------------------------------------------------------


def test_a_good_file_is_used_and_said_to_be(root: Path) -> None:
    put(root, GOOD)
    answer = read(root, TEXT)
    assert answer.handoff is not None
    assert (answer.handoff.next, answer.findings) == ("reviewer", ())
    assert log_lines(root) == [line("handoff_json", "handoff_json")]


NOTHING = "absent"
SITUATIONS = [
    pytest.param(NOTHING, None, ["file_missing"], id="file_missing"),
    pytest.param(b'{"status": "compl', None, ["json_parse_error"], id="json_parse_error"),
    pytest.param({"status": "complete"}, None, ["schema_invalid"], id="schema_invalid"),
    pytest.param(NOTHING, TEXT, ["file_missing", "text_fallback_ok"], id="text_fallback_ok"),
    pytest.param(
        NOTHING, b"I am done.", ["file_missing", "text_fallback_fail"], id="text_fallback_fail"
    ),
    pytest.param(b"", TEXT, ["json_parse_error", "text_fallback_ok"], id="empty file, good text"),
    pytest.param([GOOD], b"", ["schema_invalid", "text_fallback_fail"], id="list, empty text"),
    pytest.param(
        {},
        b"---HANDOFF---\nSTATUS: complete\n",
        ["schema_invalid", "text_fallback_fail"],
        id="half a text",
    ),
    pytest.param(
        {},
        b"---HANDOFF---\n" + json.dumps(GOOD).encode(),
        ["schema_invalid", "text_fallback_ok"],
        id="json",
    ),
    pytest.param(
        {},
        TEXT + b"STATUS: blocked\n",
        ["schema_invalid", "text_fallback_fail"],
        id="two words in the text",
    ),
    pytest.param(
        {}, b"---HANDOFF---\n{", ["schema_invalid", "text_fallback_fail"], id="json that is none"
    ),
]


@pytest.mark.proves("004:45", "004:62a")
@pytest.mark.parametrize(("content", "text", "reasons"), SITUATIONS)
def test_every_fallback_leaves_its_reason_in_the_log(
    root: Path, content: object, text: bytes | None, reasons: list[str]
) -> None:
    if content != NOTHING:
        put(root, content)
    answer = read(root, text)
    assert [*answer.read.diagnosis.reasons] == reasons
    assert log_lines(root) == [line("text_fallback", reason) for reason in reasons]
    assert (
        (answer.handoff is not None)
        == reasons[-1].endswith("_ok")
        == answer.read.diagnosis.is_usable
    )


@pytest.mark.proves("004:62a")
def test_the_five_reasons_are_all_among_the_situations() -> None:
    wanted = {Reason.FILE_MISSING, Reason.JSON_PARSE_ERROR, Reason.SCHEMA_INVALID, Reason.TEXT_FALLBACK_OK,
              Reason.TEXT_FALLBACK_FAIL}  # fmt: skip
    assert {reason for case in SITUATIONS for reason in case.values[2]} == {
        reason.value for reason in wanted
    }


_BODY = json.dumps(GOOD, indent=1).encode()
_DEEP = b"[" * 200 + b"]" * 200


@pytest.mark.proves("004:37")
@pytest.mark.parametrize(
    "body",
    [
        _BODY.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + _BODY,
        _BODY.replace(b"{", b'{"status": "blocked", ', 1),
        _BODY.replace(b"{", b'{"more": ' + _DEEP + b", ", 1),
        b"\n\t" + _BODY + b"\n\n",
    ],
    ids=["windows lines", "byte order mark", "a key twice: the last counts", "deep", "blanks"],
)
def test_a_file_that_the_filter_of_the_document_passes_is_used(root: Path, body: bytes) -> None:
    put(root, body)
    answer = read(root, TEXT)
    assert answer.read.diagnosis.cause is None, answer.findings
    assert answer.handoff is not None
    assert {key: getattr(answer.handoff, key) for key in FIELDS} == GOOD
    if shutil.which("jq"):
        subprocess.run(["jq", "-e", JQ_FILTER, FILE], cwd=root, check=True)


FORM = b"---HANDOFF---\nSTATUS: <complete|needs_human>\nARTIFACTS: <paths>\nNEXT: <agent>\nSUMMARY: <one line>\n"


def test_a_form_that_nobody_filled_in_is_no_handoff(root: Path) -> None:
    answer = read(root, FORM)
    assert answer.read.diagnosis.outcome is Reason.TEXT_FALLBACK_FAIL
    assert [one.at for one in answer.findings[1:]] == [f"/{field}" for field in FIELDS]
    half = read(root, TEXT.replace(b"NEXT: reviewer", b"NEXT: <agent>"))
    assert [(one.reason, one.at) for one in half.findings[1:]] == [(Reason.EMPTY_VALUE, "/next")]


@pytest.mark.parametrize("text", [TEXT + FORM, FORM + TEXT])
def test_a_form_beside_the_handoff_is_a_quotation(root: Path, text: bytes) -> None:
    answer = read(root, text)
    assert answer.handoff is not None
    assert answer.handoff.next == "reviewer"


def test_what_an_agent_says_after_its_summary_is_not_in_it(root: Path) -> None:
    answer = read(root, TEXT + b"in two files\n\nBye!\n")
    assert answer.handoff is not None
    assert answer.handoff.summary == "Four steps in two files"


def test_the_text_says_the_same_as_the_file(root: Path) -> None:
    from_text = read(root, TEXT).handoff
    put(root, GOOD)
    assert from_text == read(root).handoff


# --- what may stand at the path --------------------------------------------------------------------------------------


def link(path: Path) -> None:
    path.with_name("real.json").write_text(json.dumps(GOOD))
    path.symlink_to("real.json")


def second_name(path: Path) -> None:
    path.with_name("real.json").write_text(json.dumps(GOOD))
    os.link(path.with_name("real.json"), path)


def sparse_giant(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def bound_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has a short limit
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("make", "finding"),
    [
        (link, Reason.NOT_REGULAR),
        (second_name, Reason.HARD_LINKED),
        (os.mkfifo, Reason.NOT_REGULAR),
        (Path.mkdir, Reason.NOT_REGULAR),
        (bound_socket, Reason.NOT_REGULAR),
        (sparse_giant, Reason.FILE_TOO_LARGE),
        (lambda path: path.write_bytes(json.dumps(GOOD).encode()[:-1]), Reason.JSON_PARSE_ERROR),
        (lambda path: path.write_bytes(b"\xff" * 50), Reason.NOT_UTF8),
        (lambda path: path.write_bytes(b"\0" * 4096), Reason.NUL_BYTE),
        (lambda path: path.write_bytes(b"[" * 100_000), Reason.NESTING_TOO_DEEP),
        (
            lambda path: path.write_text("```json\n" + json.dumps(GOOD) + "\n```\n"),
            Reason.FENCED_JSON,
        ),
        (lambda path: path.write_text(json.dumps(GOOD) * 2), Reason.JSON_PARSE_ERROR),
        (
            lambda path: path.write_text(json.dumps(GOOD | {"next": float("nan")})),
            Reason.NOT_FINITE,
        ),
    ],
)
def test_whatever_stands_there_is_no_json_and_holds_nobody_up(
    root: Path, make: Callable[[Path], object], finding: Reason
) -> None:
    make(root / FILE)
    answer = read(root)  # a pipe that is waited for ends at the limit of the test
    assert answer.read.diagnosis.cause is Reason.JSON_PARSE_ERROR
    assert finding in {one.reason for one in answer.findings}


def test_a_link_on_the_way_is_not_followed(root: Path) -> None:
    put(root, GOOD, ".quest/other/handoff.json")
    (root / ".quest/auth/linked").symlink_to("../other")
    answer = read(root, path=".quest/auth/linked/handoff.json")
    assert (answer.handoff, answer.findings[0].reason) == (None, Reason.NOT_REGULAR)


def test_a_path_outside_of_the_work_tree_is_read_as_well(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = put(tmp_path_factory.mktemp("scratch"), GOOD, "handoff.json")
    assert read(root, path=str(file)).handoff is not None


# --- every field, every way ------------------------------------------------------------------------------------------


def mutations() -> list[tuple[str, str, dict[str, Any], Reason | None]]:
    """Return (field, what is done to it, value, reason that must come); None where the document's filter lets it pass.

    The filter: text, array, present, text. It knows no list of words, so no word and no empty value is refused.
    """
    others: dict[str, list[Any]] = {
        "status": [None, 0, 1.5, True, [], {}, ["complete"]],
        "artifacts": [None, 0, 1.5, True, "", "plan.md", {}, {"0": "plan.md"}],
        "summary": [None, 0, 1.5, False, [], {}, ["Four steps"]],
    }
    empty: dict[str, Any] = {"status": "", "artifacts": [], "next": "", "summary": ""}
    made: list[tuple[str, str, dict[str, Any], Reason | None]] = []
    for field in FIELDS:
        made.append(
            (field, "removed", {key: GOOD[key] for key in GOOD if key != field}, Reason.MISSING_KEY)
        )
        made.append((field, "emptied", GOOD | {field: empty[field]}, None))
        made.append((field, "misspelled", {key.replace(field, f"{field}s"): GOOD[key] for key in GOOD},
                     Reason.MISSING_KEY))  # fmt: skip
        made.append((field, "in capitals", {key.replace(field, field.upper()): GOOD[key] for key in GOOD},
                     Reason.MISSING_KEY))  # fmt: skip
        made += [
            (field, f"is {other!r}", GOOD | {field: other}, Reason.WRONG_TYPE)
            for other in others.get(field, [])
        ]
    made += [
        ("next", f"is {free!r}", GOOD | {"next": free}, None)
        for free in (None, 0, True, [], {}, ["a"], {"a": 1})
    ]
    made += [("status", "unknown word", GOOD | {"status": "gone-fishing"}, None)]
    made += [("", "further key", GOOD | {"tokens": 12}, None)]
    return made


def test_every_mutation_of_every_field_is_told_with_its_place(root: Path) -> None:
    wrong = []
    for field, what, value, reason in mutations():
        put(root, value)
        answer = read(root)
        told = [(one.reason, one.at) for one in answer.findings]
        cause = Reason.SCHEMA_INVALID if reason else None
        if (answer.read.diagnosis.cause, told) != (
            cause,
            [(reason, f"/{field}")] if reason else [],
        ):
            wrong.append((field, what, told))
    print(
        f"{len(mutations())} mutations, {sum(bool(reason) for *_, reason in mutations())} of them refused"
    )
    assert wrong == []
    assert len(log_lines(root)) == len(mutations()) == 47


# --- the wrong place -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "handoff.json",
        ".quest/handoff.json",
        ".quest/auth/handoff.json",
        f"{FOLDER}/out/handoff.json",
        ".quest/auth/phase_02_build/handoff.json",
        f"{FOLDER}/Handoff.json",
        f"{FOLDER}/handoff.json.txt",
        f"{FOLDER}/handoff.jsonl",
    ],
)
def test_a_file_at_a_neighbouring_place_is_named(root: Path, place: str) -> None:
    put(root, GOOD, place)
    answer = read(root)
    assert answer.read.diagnosis.cause is Reason.FILE_MISSING
    assert answer.elsewhere == (place,)
    assert place in answer.findings[0].message


def test_the_latest_of_several_is_named_first(root: Path) -> None:
    for age, name in enumerate(["a", "b", "c", "d", "e", "f", "g"]):
        os.utime(put(root, GOOD, f".quest/auth/{name}/handoff.json"), (1000 - age, 1000 - age))
    assert read(root).elsewhere == tuple(f".quest/auth/{name}/handoff.json" for name in "abcde")


def test_nothing_is_looked_for_when_the_file_is_there(root: Path) -> None:
    put(root, {})
    put(root, GOOD, "handoff.json")
    assert read(root).elsewhere == ()


def test_other_handoffs_and_git_itself_are_no_wrong_places(root: Path) -> None:
    for place in (
        "HANDOFF.md",
        "phase-handoff.jsonl",
        ".git/handoff.json",
        "plan/deep/er/handoff.json",
    ):
        put(root, GOOD, place)
    assert read(root, path="plan/handoff.json").elsewhere == ()


# --- the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word", ["a\nagent=b", "a b", "", "a=b", "\x1b[31m", "a" * 65, "../x", "a\u2028b"]
)
def test_a_name_that_could_forge_a_line_is_refused_and_nothing_written(
    root: Path, word: str
) -> None:
    for names in ({"agent": word}, {"phase": word}):
        with pytest.raises(YoloError) as refused:
            read(root, **names)
        assert refused.value.reason is Reason.BAD_NAME
    assert not (root / LOG).exists()


def test_a_torn_last_line_spoils_no_other(root: Path) -> None:
    (root / LOG).write_text("agent=planner phase=plan sou")
    read(root)
    assert log_lines(root) == [
        "agent=planner phase=plan sou",
        line("text_fallback", "file_missing"),
    ]
    assert (len(reader(root).log().reads), reader(root).log().unreadable) == (1, 1)


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "linked tree"])
def test_the_log_is_never_written_through_a_link_or_into_a_pipe(root: Path, kind: str) -> None:
    victim = root / "victim"
    victim.write_text("mine\n")
    log = root / LOG
    if kind == "link":
        log.symlink_to(victim)
    elif kind == "hard link":
        os.link(victim, log)
    elif kind == "pipe":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    else:
        log.parent.rename(root / "other")
        log.parent.symlink_to("other")
    put(root, GOOD)
    answer = read(root)
    assert answer.handoff is not None  # a refused log costs the line, not the handoff
    assert [(one.reason, one.level) for one in answer.findings] == [
        (Reason.STORAGE_FAILED, Level.WARNING)
    ]
    assert victim.read_text() == "mine\n"
    assert not (root / "other" / "context_health.log").exists()


def test_the_lines_of_many_writers_do_not_mix(root: Path) -> None:
    def work(number: int) -> None:
        for _ in range(25):
            read(root, TEXT, agent=f"agent-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = reader(root).log()
    assert (len(log.reads), log.unreadable) == (200, 0)
    assert {one.diagnosis.reasons for one in log.reads} == {("file_missing", "text_fallback_ok")}


def test_the_journal_is_told_what_the_log_says(root: Path) -> None:
    told: list[tuple[Any, ...]] = []
    put(root, GOOD, "handoff.json")
    reader(root, lambda *event: told.append(event)).read(
        ReadRequest(FILE, "planner", "plan", TEXT), NOW
    )
    ((event, path, data),) = told
    assert (event, path) == ("handoff.read", FILE)
    assert data == {"agent": "planner", "phase": "plan", "source": "text_fallback", "reason": "file_missing",
                    "outcome": "text_fallback_ok", "elsewhere": ["handoff.json"]}  # fmt: skip


def test_without_a_planning_tree_there_is_no_place_for_the_log(tmp_path: Path) -> None:
    with pytest.raises(YoloError) as refused:
        reader(tmp_path)
    assert refused.value.reason is Reason.NOT_INITIALISED


def test_a_log_that_cannot_be_read_is_said_to_be(root: Path) -> None:
    (root / LOG).symlink_to("/etc/hostname")
    with pytest.raises(YoloError) as refused:
        reader(root).log()
    assert refused.value.reason is Reason.NOT_REGULAR


# --- the report ------------------------------------------------------------------------------------------------------

MISSING, PARSE, SCHEMA = "absent", b"{", {"status": "complete"}
MIXED: list[tuple[str, str, object, bytes | None, int]] = [
    # agent, phase, what lies at the path, the agent's text, how often: 200 in all
    ("planner", "plan", GOOD, None, 50),
    ("planner", "plan", MISSING, TEXT, 7),
    ("planner", "plan", PARSE, TEXT, 3),
    ("reviewer", "plan", GOOD, TEXT, 21),
    ("reviewer", "plan", SCHEMA, TEXT, 4),
    ("reviewer", "plan", SCHEMA, b"no block", 5),
    ("builder", "build", GOOD, None, 40),
    ("builder", "build", MISSING, b"no block", 9),
    ("builder", "build", MISSING, None, 11),
    ("builder", "build", PARSE, b"no block", 2),
    ("reviewer", "build", GOOD, None, 33),
    ("reviewer", "build", SCHEMA, TEXT, 6),
    ("reviewer", "build", PARSE, None, 1),
    ("fixer", "build", MISSING, TEXT, 8),
]
"""Counted by hand: 50 + 21 + 40 + 33 = 144 of 200 came as the file."""


def test_the_numbers_of_200_mixed_handoffs_are_those_counted_by_hand(root: Path) -> None:
    for agent, phase, content, text, times in MIXED:
        for number in range(times):
            path = f".quest/{phase}/{number}/handoff.json"
            (root / path).unlink(missing_ok=True)
            if content != MISSING:
                put(root, content, path)
            read(root, text, path, agent, phase)
    found = compliance(reader(root).log().reads)
    assert row(found.total) == (200, 144, 72.0, {"file_missing": 35, "json_parse_error": 6, "schema_invalid": 15,
                                                 "text_fallback_ok": 28, "text_fallback_fail": 16})  # fmt: skip
    assert {one.agent: row(one)[:3] for one in found.by_agent} == {
        "builder": (62, 40, 64.5),
        "fixer": (8, 0, 0.0),
        "planner": (60, 50, 83.3),
        "reviewer": (70, 54, 77.1),
    }
    assert {one.phase: row(one) for one in found.by_phase} == {
        "build": (110, 73, 66.4, {"file_missing": 28, "json_parse_error": 3, "schema_invalid": 6,
                                  "text_fallback_ok": 14, "text_fallback_fail": 11}),
        "plan": (90, 71, 78.9, {"file_missing": 7, "json_parse_error": 3, "schema_invalid": 9,
                                "text_fallback_ok": 14, "text_fallback_fail": 5}),
    }  # fmt: skip
    assert {(one.agent, one.phase): row(one) for one in found.by_both} == {
        ("builder", "build"): (
            62,
            40,
            64.5,
            {"file_missing": 20, "json_parse_error": 2, "text_fallback_fail": 11},
        ),
        ("fixer", "build"): (8, 0, 0.0, {"file_missing": 8, "text_fallback_ok": 8}),
        ("planner", "plan"): (
            60,
            50,
            83.3,
            {"file_missing": 7, "json_parse_error": 3, "text_fallback_ok": 10},
        ),
        ("reviewer", "build"): (
            40,
            33,
            82.5,
            {"json_parse_error": 1, "schema_invalid": 6, "text_fallback_ok": 6},
        ),
        ("reviewer", "plan"): (
            30,
            21,
            70.0,
            {"schema_invalid": 9, "text_fallback_ok": 4, "text_fallback_fail": 5},
        ),
    }


def row(one: Compliance) -> tuple[int, int, float | None, dict[str, int]]:
    return (one.reads, one.compliant, one.percent, dict(one.reasons))
