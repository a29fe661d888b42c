"""`yolo-fs agent` and what `task` sums up: every verb with --json, each message as document 000 has it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.phases import complete, facts
from tests.support.teams import CLAIM, Team, planned_team
from yolo_fs.agents.totals import tally
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.departments import Dept
from yolo_fs.schemas.messages.catalogue import read_message
from yolo_fs.system import heartbeats

PROGRESS = {
    "type": "dev_progress",
    "task": "01-01/T1",
    "plan_id": "01-01",
    "commit": "",
    "status": "failed",
    "concerns": [],
}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return planned_team(tmp_path, monkeypatch)


def asked(
    team: Team, *words: str, code: int = 0, stdin: Any = None, monkeypatch: Any = None
) -> Any:
    """Return the envelope of a command."""
    out = io.StringIO()
    if stdin is not None:
        data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with contextlib.redirect_stdout(out):
        assert run([*words, "--json", "-C", str(team.root)]) == code, out.getvalue()
    found = json.loads(out.getvalue())
    assert found["schema"] == (
        f"yolo-fs/{'-'.join(words[:2])}/1"
        if found["ok"] or found["data"] is not None
        else "yolo-fs/error/1"
    )
    return found


def text(team: Team, *words: str, code: int = 0) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run([*words, "-C", str(team.root)]) == code
    return out.getvalue()


def sign(team: Team, event: str, agent: str, instance: str) -> None:
    with Repository(str(team.root)) as repository:
        assert heartbeats.append_heartbeat(repository.own_dir, event, agent, instance, "s1")


def test_nobody_is_there_before_anybody_gave_a_sign(team: Team) -> None:
    assert asked(team, "agent", "list")["data"] == asked(team, "agent", "answers")["data"] == []
    crew = asked(team, "status")["data"]["crew"]
    (circuit,) = crew["circuits"]
    assert crew["stalls"] == [] and (circuit["state"], circuit["failure_count"]) == ("closed", 0)


def test_agents_are_listed_with_their_health(team: Team) -> None:
    sign(team, "pre-tool-use", "yolo-dev", "a1")
    sign(team, "stop", "yolo-fe-senior", "a2")
    found = [
        (one["agent"], one["id"], one["department"], one["health"])
        for one in asked(team, "agent", "list")["data"]
    ]
    assert found == [
        ("yolo-dev", "a1", "backend", "working"),
        ("yolo-fe-senior", "a2", "frontend", "idle"),
    ]
    assert "yolo-dev a1 (backend): working since 20" in text(team, "agent", "list")


def test_noted_failures_open_the_circuit_and_the_board_shows_it(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(team, "pre-tool-use", "yolo-dev", "a1")
    for _ in range(2):
        given = asked(
            team, "agent", "note", "-", "--as", "dev-1", stdin=PROGRESS, monkeypatch=monkeypatch
        )
    assert given["data"] == {"noted": True, "type": "dev_progress", "id": "a1"}
    (circuit,) = asked(team, "status")["data"]["crew"]["circuits"]
    assert (circuit["state"], circuit["failure_count"]) == ("open", 2)
    assert read_message({key: value for key, value in circuit.items() if key != "why"})[1] == ()
    shown = text(team, "status")
    assert (
        "\ncircuit of the backend: open; 2 failures in a row: dev_progress of task 01-01/T1 says failed"
        in shown
    )
    assert "\nagent yolo-dev a1: working since " in shown
    assert "circuit" not in text(team, "status", "--at", "HEAD")


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        (b"not json", 1, "json_parse_error"),
        ({"type": "dev_progress"}, 1, "missing_key"),
        (PROGRESS | {"task": "01-07/T1", "plan_id": "01-07"}, 2, "unknown_name"),
        (PROGRESS | {"task": "01-01/T9"}, 2, "unknown_name"),
        (
            {
                "type": "api_contract",
                "direction": "frontend_to_backend",
                "endpoints": [{"method": "GET", "path": "/a", "request": {}, "response": {}}],
                "status": "agreed",
            },
            2,
            "unknown_type",
        ),
        (b"", 1, "empty_file"),
    ],
)
def test_what_is_no_such_message_is_not_written_down(
    team: Team, monkeypatch: pytest.MonkeyPatch, said: Any, code: int, reason: str
) -> None:
    given = asked(
        team, "agent", "note", "-", "--as", "dev-1", code=code, stdin=said, monkeypatch=monkeypatch
    )
    assert given["findings"][0]["reason"] == reason
    assert asked(team, "agent", "list")["data"] == []


@pytest.mark.proves("000:465")
def test_a_request_to_stop_names_the_message_and_whom_to_send_it(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(team, "subagent-start", "yolo-dev", "a1")
    sign(team, "subagent-start", "yolo-lead", "l1")
    given = asked(team, "agent", "shutdown", "--reason", "phase_complete", "--deadline", "60")[
        "data"
    ]
    assert read_message(given["message"])[1] == ()
    assert [one["id"] for one in given["asked"]] == ["a1"]
    answer = {
        "type": "shutdown_response",
        "status": "in_progress",
        "pending_work": ["T1"],
        "artifacts_committed": False,
    }
    asked(team, "agent", "note", "-", "--as", "dev", stdin=answer, monkeypatch=monkeypatch)
    (found,) = asked(team, "agent", "answers", code=1)["data"]
    assert [(one["answer"], one["pending_work"]) for one in found["asked"]] == [
        ("in_progress", ["T1"])
    ]
    assert "  yolo-dev a1: in_progress, pending: T1" in text(team, "agent", "answers", code=1)
    assert "shutdown by lead: the deadline has not passed" in text(team, "status")
    done = answer | {"status": "clean", "pending_work": [], "artifacts_committed": True}
    asked(team, "agent", "note", "-", "--as", "dev", stdin=done, monkeypatch=monkeypatch)
    assert asked(team, "agent", "answers")["data"][0]["asked"][0]["answer"] == "clean"
    assert "shutdown" not in text(team, "status")


def test_a_request_by_nobody_is_a_usage_error(team: Team) -> None:
    given = asked(team, "agent", "shutdown", "--reason", "error", "--as", "nobody", code=2)
    assert given["findings"][0]["reason"] == "unknown_name"


def test_text_of_agents_is_escaped(team: Team) -> None:
    sign(team, "pre-tool-use", "\x1b[2Jdev", "a\u202e1")
    for words in (("agent", "list"), ("status",)):
        assert not {"\x1b", "\u202e"} & set(text(team, *words))


# --- tasks ---


def done(team: Team) -> dict[str, Any]:
    team.file("src/auth/tokens.ts", "1\n")
    commit = team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")
    return {
        "type": "task_complete", "task_id": "T1", "plan_id": "01-01", "commit": commit[:10],
        "files_modified": ["src/auth/tokens.ts"], "status": "complete", "deviations": ["no cache"],
    }  # fmt: skip


@pytest.mark.proves("000:412", "000:431")
def test_a_completed_task_is_summed_up_for_the_lead(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = done(team)
    given = asked(
        team, "task", "complete", "-", "--as", "dev-1", stdin=message, monkeypatch=monkeypatch
    )["data"]
    assert read_message(given["plan"])[1] == ()
    assert {key: given["plan"][key] for key in ("tasks_completed", "tasks_total", "files_modified", "deviations", "status")} == {
        "tasks_completed": 1, "tasks_total": 2, "files_modified": ["src/auth/tokens.ts"], "deviations": ["no cache"],
        "status": "partial",
    }  # fmt: skip
    assert asked(team, "agent", "list")["data"][0]["health"] == "working"


@pytest.mark.proves("000:412")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"commit": "deadbeef"}, "unknown_commit"),
        ({"files_modified": []}, "totals_disagree"),
        ({"files_modified": ["src/auth/tokens.ts", "src/more.ts"]}, "totals_disagree"),
        ({"task_id": "T2"}, "subject_mismatch"),
        ({"task_id": "T9"}, "unknown_reference"),
    ],
)
def test_what_the_branch_does_not_bear_out_is_not_complete(
    team: Team, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], reason: str
) -> None:
    message = done(team) | change
    given = asked(
        team,
        "task",
        "complete",
        "-",
        "--as",
        "dev-1",
        code=1,
        stdin=message,
        monkeypatch=monkeypatch,
    )
    assert reason in [one["reason"] for one in given["findings"]]
    assert asked(team, "agent", "list")["data"] == []


def test_what_holds_a_department_up_is_a_blocker_of_its_progress() -> None:
    opened = {"id": "ESC-01-01-T1", "dt": "2026-02-19T11:00:00Z", "agent": "dev", "tgt": "senior"}
    content = complete() | {"escalation.jsonl": [opened | {"sev": "blocking", "st": "open"}]}
    phase = Phase(facts(content))
    (totals,) = tally(phase, {})
    assert totals.as_progress()["blockers"] == ["ESC-01-01-T1 is rising: senior has to act"]
    assert totals.as_progress()["blockers"] == list(phase.held_up(Dept.BACKEND))


@pytest.mark.proves("000:431", "000:451")
def test_plans_and_departments_are_summed_up_as_messages_of_document_000(team: Team) -> None:
    commit = done(team)["commit"]
    team.artifact(
        "01-01.summary.jsonl", json.dumps(CLAIM | {"ch": [commit], "dv": ["other hash"]}) + "\n"
    )
    team.once()
    (found,) = asked(team, "task", "summary", "--phase", "1")["data"]
    assert read_message(found["phase_progress"])[1] == ()
    assert (found["department_result"], found["lacks"]) == (
        None,
        ["no verification yet", "no security audit yet"],
    )
    (plan,) = found["plans"]
    assert (plan["deviations"], plan["tdd_coverage"]) == (["other hash"], "red_green")
    for kind in ("verification", "security-audit"):
        example = next((team.examples / kind / "ok").glob("*.jsonl"))
        team.artifact(f"{kind}.jsonl", example.read_text())
    team.once()
    (found,) = asked(team, "task", "summary")["data"]
    assert read_message(found["department_result"])[1] == ()
    assert found["department_result"]["security_result"] == "PASS"
    assert "plan 01-01 " in text(team, "task", "summary", "01-01")
    assert (
        asked(team, "task", "summary", "01-77", code=2)["findings"][0]["reason"] == "unknown_name"
    )


def test_plans_of_one_number_are_summed_up_by_department(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.config({"departments": {"frontend": True}})
    page = (team.root / ".yolo-planning/phases/01-auth/01-01.plan.jsonl").read_text()
    team.artifact("fe-01-01.plan.jsonl", page.replace("src/", "web/"))
    team.user_commits("docs(01): plan 01-01", ".yolo-planning")
    message = done(team)
    asked(team, "task", "complete", "-", "--as", "dev-1", stdin=message, monkeypatch=monkeypatch)
    found = asked(team, "task", "summary", "01-01")["data"]
    assert {one["department"]: one["deviations"] for one in found} == {
        "backend": ["no cache"],
        "frontend": [],
    }
    shown = text(team, "task", "summary", "01-01")
    assert "plan 01-01 backend partial: 1 of 2 tasks" in shown
    assert "plan 01-01 frontend partial: 0 of 2 tasks" in shown
