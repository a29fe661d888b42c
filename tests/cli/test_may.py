"""`may`, `message`, `task`: answers, exit codes, and where to go instead."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

MESSAGES = Path(__file__).parents[2] / "fixtures/examples/messages"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work tree")


@pytest.fixture
def ask(team: Team, capsys: pytest.CaptureFixture[str]) -> Any:
    def asked(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run([*words, "--json", "-C", str(team.root)])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return asked


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# --- may ---


@pytest.mark.parametrize(
    ("words", "allowed", "instead"),
    [
        (["dev", "read", ".yolo-planning/ROADMAP.md"], False, ["senior"]),
        (["senior", "read", "ROADMAP.md", "--mode", "Design Review"], True, []),
        (["senior", "read", "ROADMAP.md", "--mode", "Code Review"], False, ["lead"]),
        (["dev", "write", "src/a.ts"], True, []),
        (["dev", "write", "frontend/a.ts"], False, ["senior"]),
        (["dev", "write", "frontend/a.ts", "--dept", "frontend"], True, []),
        (["lead", "decide", "technology", "choices"], False, ["architect"]),
        (["lead", "decide", "task ordering"], True, []),
        (["critic", "use", "Write"], False, ["lead"]),
        (["fe-dev", "contact", "senior"], True, []),
        (["fe-dev", "contact", "yolo-senior"], False, ["fe-senior"]),
        (["fe-lead", "contact", "owner"], True, []),
        (["dev", "escalate", "lead"], False, ["senior"]),
        (["dev", "escalate", "2 task failures"], True, ["senior"]),
        (["security", "escalate", "FAIL"], True, ["user"]),
        (["security", "escalate", "user"], False, ["lead"]),
    ],
)
def test_a_question_is_answered_with_rule_and_exit_code(
    ask: Any, words: list[str], allowed: bool, instead: list[str]
) -> None:
    code, answer = ask("may", *words)
    assert (code, answer["ok"], answer["data"]["allowed"]) == (
        Exit.DONE if allowed else Exit.FINDINGS,
        allowed,
        allowed,
    )
    assert answer["data"]["ask"] == instead
    assert answer["data"]["rule"]


@pytest.mark.parametrize(
    "words",
    [
        ["intern", "read", "a"],
        ["dev", "sniff", "a"],
        ["dev", "read"],
        ["dev", "read", "a", "--dept", "hr"],
    ],
)
def test_whom_nobody_knows_is_a_wrong_question(ask: Any, words: list[str]) -> None:
    assert ask("may", *words)[0] == Exit.USAGE


def test_people_read_the_rule_and_whom_to_ask(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["may", "dev", "decide", "API design", "-C", str(team.root)]) == Exit.FINDINGS
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("no: Dev must escalate: API design.")
    assert lines[1:] == [
        "ask: senior",
        "bring: the question or blocker, the relevant context of your work, your recommendation",
    ]


def test_no_path_writes_to_the_terminal_as_it_is(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["may", "dev", "read", "../\x1b[2Jx", "-C", str(team.root)])
    assert "\x1b" not in capsys.readouterr().out


def test_rules_without_paths_need_no_repository(tmp_path: Path) -> None:
    assert run(["may", "dev", "contact", "senior", "-q", "-C", str(tmp_path)]) == Exit.DONE
    assert run(["may", "dev", "read", "a", "-q", "-C", str(tmp_path)]) == Exit.NOT_HERE


# --- message ---


@pytest.mark.proves("000:3")
@pytest.mark.parametrize(
    "path", sorted(MESSAGES.glob("*/ok/*.json")), ids=lambda path: path.parent.parent.name
)
def test_each_good_example_is_heard_as_its_message(ask: Any, path: Path) -> None:
    code, answer = ask("message", "check", str(path))
    said = answer["data"]
    assert (code, said["read_as"], said["type"], said["reasons"]) == (
        0,
        "message",
        path.parent.parent.name,
        [],
    )


@pytest.mark.proves("000:3")
@pytest.mark.parametrize(
    ("data", "reasons", "first"),
    [
        (b"Task T3 is done", ["json_parse_error", "text_fallback_ok"], "json_parse_error"),
        (b"```json\n{}\n```", ["json_parse_error", "text_fallback_ok"], "fenced_json"),
        (b"[1]", ["schema_invalid", "text_fallback_ok"], "not_an_object"),
        (b'{"type": "greeting"}', ["schema_invalid", "text_fallback_ok"], "unknown_type"),
        (b'{"type": "dev_blocker"}', ["schema_invalid", "text_fallback_ok"], "missing_key"),
        (b"", ["json_parse_error", "text_fallback_fail"], "empty_file"),
        (b"\xff\xfe", ["json_parse_error", "text_fallback_fail"], "not_utf8"),
    ],
)
def test_what_is_no_message_is_plain_text_with_the_reason(
    ask: Any, monkeypatch: pytest.MonkeyPatch, data: bytes, reasons: list[str], first: str
) -> None:
    give(monkeypatch, data)
    code, answer = ask("message", "check", "-")
    assert (code, answer["data"]["read_as"], answer["data"]["reasons"]) == (
        Exit.FINDINGS,
        "text",
        reasons,
    )
    assert answer["findings"][0]["reason"] == first


def test_an_escalation_that_skips_a_level_is_a_finding_with_its_way(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = json.loads((MESSAGES / "escalation/ok/document.json").read_text())
    give(monkeypatch, json.dumps(said | {"from": "dev", "to": "architect"}).encode())
    code, answer = ask("message", "check", "-")
    (finding,) = answer["findings"]
    assert (code, finding["reason"], finding["at"], finding["hint"]) == (
        1,
        "out_of_lane",
        "/to",
        "Send it to senior.",
    )


def test_a_message_that_is_not_there_is_an_error(ask: Any) -> None:
    assert ask("message", "check", "nowhere.json")[0] == Exit.UNREADABLE


@pytest.mark.parametrize(
    ("words", "code", "instead"),
    [
        ("--from dev --to senior --type dev_progress", 0, []),
        ("--from dev --to lead --type dev_progress", 1, ["senior"]),
        (
            "--from dev --dept frontend --to senior --to-dept uiux --type dev_progress",
            1,
            ["fe-senior"],
        ),
        ("--from ux-lead --to lead --type design_handoff", 0, []),
        ("--from lead --to lead --dept backend --to-dept uiux --type dept_handoff", 1, ["fe-lead"]),
        ("--from po --to senior --type patch_request", 1, ["go.md"]),
    ],
)
def test_a_route_is_allowed_or_the_right_one_is_told(
    team: Team, ask: Any, words: str, code: int, instead: list[str]
) -> None:
    team.config(THREE)
    got, answer = ask("message", "route", *words.split())
    assert (got, answer["data"]["ask"]) == (code, instead)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("may lead write .yolo-planning/phases/01-auth/ux-01-01.plan.jsonl", "architect"),
        ("may critic write .yolo-planning/phases/01-auth/fe-critique.jsonl", "lead"),
        ("message route --from lead --to lead --type api_contract", "architect"),
        ("message route --from lead --to architect --type department_result", "architect"),
    ],
)
def test_nobody_is_sent_to_an_agent_that_does_not_work_here(
    ask: Any, words: str, instead: str
) -> None:
    code, answer = ask(*words.split())
    assert (code, answer["data"]["ask"]) == (1, [instead])


def test_an_unknown_type_has_no_route(ask: Any) -> None:
    assert (
        ask("message", "route", "--from", "dev", "--to", "lead", "--type", "greeting")[0]
        == Exit.USAGE
    )


# --- task ---


def test_the_second_of_two_devs_waits_for_its_turn(team: Team, ask: Any) -> None:
    team.begin()
    team.plan_one()
    assert ask("task", "claim", "01-01/T1", "--as", "dev-1")[0] == Exit.DONE
    second = ("task", "claim", "01-01/T2", "--as", "dev-2", "--file", "src/auth/keys.ts")
    code, answer = ask(*second)
    said = answer["data"]
    assert (code, said["granted"], said["holder"], said["file"]) == (
        1,
        False,
        "dev-1",
        "src/auth/keys.ts",
    )
    assert [one["granted"] for one in ask("task", "claims")[1]["data"]] == [True, False]
    team.file("src/auth/keys.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/keys.ts")
    assert ask(*second)[0] == Exit.DONE
    assert ask("task", "claim", "01-01/T1", "--as", "dev-3")[0] == Exit.FINDINGS
    assert ask("task", "release", "--as", "dev-2")[1]["data"] == []


def test_a_task_that_no_plan_has_is_a_wrong_question(team: Team, ask: Any) -> None:
    team.begin()
    assert ask("task", "claim", "01-09/T1", "--as", "dev-1")[0] == Exit.USAGE
    assert ask("task", "claim", "first", "--as", "dev-1")[0] == Exit.USAGE


def test_the_role_may_be_said_as_every_other_verb_takes_it(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ask("may", "critic", "write", "critique.jsonl")
    assert named[1]["data"]["allowed"] is False
    assert ask("may", "write", "critique.jsonl", "--as", "critic") == named
    monkeypatch.setenv("YOLO_FS_ROLE", "critic")
    assert ask("may", "write", "critique.jsonl") == named
    assert ask("may", "lead", "write", "critique.jsonl")[1]["data"]["allowed"] is True


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["write", "a.ts"], "Missing role: 'yolo-fs may ROLE write …', or --as ROLE."),
        (["dev", "wrte", "a.ts"], "'wrte' is not an action. Did you mean write?"),
        (["dev"], "'' is not an action. Known names: read, write,"),
        (["dev", "read"], "Missing subject: what may dev read?"),
    ],
)
def test_a_question_that_is_not_whole_is_told_what_is_missing(
    capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert run(["may", *words]) == Exit.USAGE
    assert told in capsys.readouterr().err
