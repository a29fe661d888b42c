"""A phase is signed off by one command: `state.json` and `ROADMAP.md` in one commit, if the evidence allows it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.company import (
    BACKEND,
    CONFIG,
    FRONTEND,
    UIUX,
    Department,
    Write,
    _design,
    _integrated,
)
from tests.progress.conftest import Ask
from tests.support.teams import Team
from yolo_fs.cli import statusline_fast
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.tools import Tools
from yolo_fs.phase.report import Audience, as_text
from yolo_fs.reports.resume import resume
from yolo_fs.system import failpoint

PLANNING = ".yolo-planning"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    for name in ("YOLO_FS_AGENT", "YOLO_FS_ROLE"):
        monkeypatch.delenv(name, raising=False)
    found = Team(tmp_path / "work")
    found.config({"effort": "turbo", "documenter": "never", "security_audit": True})
    found.file(f"{PLANNING}/.gitignore", ".dept-*\n.handoff-*\n")
    found.user_commits("chore: begin", f"{PLANNING}/config.json", f"{PLANNING}/.gitignore")
    return found


def _write(team: Team, one: Write) -> None:
    team.file(one.path, one.text)
    if one.subject:
        team.user_commits(one.subject, one.path)


def work(team: Team, one: Department = BACKEND) -> None:
    """Do every step of a department but the sign-off."""
    for _, writes in (one.designs(), *one.plans()):
        for each in writes:
            _write(team, each)
        team.once()
    commits = []
    for task in (1, 2):
        _write(team, one.source(task))
        commits.append(team.head())
    _write(team, one.summary(commits))
    team.once()
    for _, writes in one.reviews():
        for each in writes:
            _write(team, each)
        team.once()


def changed(team: Team, commit: str = "HEAD") -> list[str]:
    return team.git("diff-tree", "--no-commit-id", "-r", "--name-only", commit).split()


def state(team: Team) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((team.root / PLANNING / "state.json").read_text())
    return found


# --- the act ---


@pytest.mark.proves("002:79a", "002:265")
def test_both_files_come_in_one_commit_under_the_prescribed_subject(team: Team, ask: Ask) -> None:
    work(team)
    before = team.head()
    code, answer = ask("phase", "sign-off", "1")
    assert code == Exit.DONE, answer
    assert team.git("log", "--format=%s", f"{before}..HEAD") == "chore(state): phase 1 complete"
    assert changed(team) == [f"{PLANNING}/ROADMAP.md", f"{PLANNING}/state.json"]
    assert answer["data"]["commit"] == team.head()
    assert (state(team)["ph"], state(team)["st"]) == (1, "complete")
    assert "- [x] Phase 1: auth" in (team.root / PLANNING / "ROADMAP.md").read_text()
    assert ask("verify")[0] == Exit.DONE
    assert ask("workflow", "complete", "signoff", "--phase", "1")[0] == Exit.DONE
    assert team.git("status", "--porcelain") == ""


def test_a_phase_that_is_signed_off_says_so_and_is_left_alone(team: Team, ask: Ask) -> None:
    work(team)
    _, first = ask("phase", "sign-off", "1")
    head = team.head()
    code, answer = ask("phase", "sign-off", "01-auth")
    assert (code, answer["data"]["state"]) == (Exit.DONE, "already")
    assert answer["data"]["commit"] == first["data"]["commit"] == head == team.head()
    team.once()
    assert team.git("log", "--format=%s", f"{head}..HEAD", "--", f"{PLANNING}/state.json") == ""


def test_what_follows_the_sign_off_changes_no_state_that_it_has_written(
    team: Team, ask: Ask
) -> None:
    """The sign-off says which step follows, so that no commit of the state alone comes after it."""
    config = f"{PLANNING}/config.json"
    gate = {"integration_gate": {"enabled": True}}
    team.config(json.loads((team.root / config).read_text()) | gate)
    team.user_commits("chore: with the gate", config)
    work(team)
    assert ask("phase", "sign-off", "1")[1]["data"]["state"] == "signed_off"
    signed, head = state(team), team.head()
    assert (signed["st"], signed["step"]) == ("complete", "integration_gate")
    team.once()
    assert (state(team), team.head()) == (signed, head)
    _write(team, _integrated())
    team.once()
    assert team.git("log", "--format=%s", f"{head}..HEAD") == "docs(01): integration gate"
    assert state(team) == signed
    assert team.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    "switched_on",
    [
        {"departments": {"frontend": True}, "department_workflow": "parallel"},
        {"effort": "thorough"},
        {"po": {"enabled": True}},
    ],
)
def test_what_is_switched_on_after_the_sign_off_asks_nothing_of_what_was_signed(
    team: Team, ask: Ask, switched_on: dict[str, Any]
) -> None:
    config = f"{PLANNING}/config.json"
    before = json.loads((team.root / config).read_text()) | {"security_audit": False}
    team.config(before)
    team.user_commits("chore: no audit", config)
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    team.config(before | {"security_audit": True} | switched_on)
    team.user_commits("chore: more", config)
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert (phase["complete"], phase["next"]) == (True, None)
    plan = team.root / f"{PLANNING}/phases/01-auth/01-01.plan.jsonl"
    plan.write_text(plan.read_text().replace("Green", "Red"))
    team.once()
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert not phase["complete"]


def test_source_that_comes_after_the_sign_off_is_named_and_opens_nothing(
    team: Team, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is signed stays so; but whoever reads its verdicts is told what nobody has judged."""
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert phase["complete"] and phase["changed_after_sign_off"] == []
    one = BACKEND.source(1)
    team.file(one.path, "eval(input())\n")
    team.user_commits("fix(01-01): T1 a hurry", one.path)
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert phase["complete"]
    assert phase["changed_after_sign_off"] == [f"01-01 ({team.head()[:12]})"]
    capsys.readouterr()
    for words in (["status"], ["report", "--format", "markdown", "--phase", "1"]):
        assert run([*words, "-C", str(team.root)]) in (Exit.DONE, Exit.FINDINGS)
        assert f"not reviewed: source of 01-01 ({team.head()[:12]})" in capsys.readouterr().out


def test_what_departments_hand_over_after_the_sign_off_is_named_until_the_gate_has_judged_it(
    team: Team, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    contract = (team.examples / "api-contracts/ok/proposed_then_agreed.jsonl").read_text()
    team.file(f"{PLANNING}/phases/01-auth/api-contracts.jsonl", contract)
    late = team.user_commits("docs(01): API contract agreed", PLANNING)
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert phase["complete"]
    assert phase["changed_after_sign_off"] == [f"api-contracts.jsonl ({late[:12]})"]
    capsys.readouterr()
    for words in (["status"], ["report", "--format", "markdown", "--phase", "1"]):
        assert run([*words, "-C", str(team.root)]) in (Exit.DONE, Exit.FINDINGS)
        assert f"not reviewed: api-contracts.jsonl ({late[:12]})" in capsys.readouterr().out
    result = (team.examples / "integration-gate-result/ok/pass.jsonl").read_text()
    team.file(f"{PLANNING}/phases/01-auth/integration-gate-result.jsonl", result)
    team.user_commits("docs(01): integration gate", PLANNING)
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert phase["complete"] and phase["changed_after_sign_off"] == []


def test_verdicts_in_one_commit_with_what_they_judge_are_named(
    team: Team, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    base = team.head()
    work(team)
    (phase,) = ask("status")[1]["data"]["team"]["phases"]
    assert phase["came_together"] == []
    team.git("reset", "-q", "--soft", base)
    team.git("commit", "-qm", "feat(auth): login (#12)")
    for is_signed in (False, True):
        if is_signed:
            assert ask("phase", "sign-off", "1")[0] == Exit.DONE
        (phase,) = ask("status")[1]["data"]["team"]["phases"]
        squashed = team.git("rev-parse", "HEAD~1" if is_signed else "HEAD")[:12]
        assert phase["came_together"] == [squashed]
        capsys.readouterr()
        told = f"verdicts in one commit with what they judge, in an unknown order: {squashed}"
        for words in (["status"], ["resume"], ["report", "--format", "markdown", "--phase", "1"]):
            assert run([*words, "-C", str(team.root)]) in (Exit.DONE, Exit.FINDINGS)
            assert capsys.readouterr().out.count(told) == 1, words


def test_a_phase_that_was_opened_is_signed_off_again_though_neither_file_would_change(
    team: Team, ask: Ask
) -> None:
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    audit = team.root / PLANNING / "phases/01-auth/security-audit.jsonl"
    audit.write_text(audit.read_text().replace("2026", "2027"))
    team.git("commit", "-qm", "docs(01): audit", "--", str(audit))
    code, answer = ask("workflow", "next", "--phase", "1")
    assert "security-audit.jsonl" in json.dumps(answer["data"]["next"])
    signed = team.head()
    for outcome in ("signed_off", "already"):
        code, answer = ask("phase", "sign-off", "1")
        assert (code, answer["data"]["state"]) == (Exit.DONE, outcome)
    assert changed(team) == [f"{PLANNING}/state.json"]
    assert state(team)["signs"] == signed[:12]
    assert ask("validate")[0] == ask("verify")[0] == Exit.DONE


def test_without_a_number_it_is_the_phase_that_is_worked_on(team: Team, ask: Ask) -> None:
    work(team)
    assert ask("phase", "sign-off")[1]["data"]["phase"] == "01-auth"
    assert changed(team) == [f"{PLANNING}/ROADMAP.md", f"{PLANNING}/state.json"]


def test_a_dry_run_says_what_would_be_committed_and_changes_nothing(team: Team, ask: Ask) -> None:
    work(team)
    head, files = team.head(), team.git("status", "--porcelain", "--ignored")
    _, answer = ask("phase", "sign-off", "1", "--dry-run")
    assert answer["data"]["state"] == "would_sign_off"
    assert answer["data"]["subject"] == "chore(state): phase 1 complete"
    assert (team.head(), team.git("status", "--porcelain", "--ignored")) == (head, files)


def test_nothing_waits_for_a_daemon_until_there_is_a_file_to_commit(team: Team, ask: Ask) -> None:
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    code, answer = ask("inbox")
    assert (code, answer["data"]) == (Exit.DONE, [])
    assert "and none has to" in as_text(resume(str(team.root), Audience()))
    own = team.root / ".git/yolo-fs/health.json"
    own.write_text(json.dumps({"pid": 2**22 + 1, "running": False, "headline": "01-auth complete"}))
    assert (
        statusline_fast.line(str(team.root))
        == "yolo-fs: 01-auth complete, and no daemon has to run"
    )
    critique = team.root / PLANNING / "phases/02-next/critique.jsonl"
    assert ask("phase", "new", "next")[0] == Exit.DONE
    for is_written in (False, True):
        if is_written:
            critique.write_text("{}\n")
        kinds = [one["kind"] for one in ask("inbox")[1]["data"]]
        assert kinds == ["daemon"] * is_written
        assert "nothing is committed until" in as_text(resume(str(team.root), Audience()))
        assert statusline_fast.line(str(team.root)) == "yolo-fs: no daemon (yolo-fs start)"


# --- what it asks for ---


def test_what_is_missing_is_named_with_the_command_that_helps(team: Team, ask: Ask) -> None:
    for _, writes in (BACKEND.designs(), *BACKEND.plans()):
        for each in writes:
            _write(team, each)
        team.once()
    head = team.head()
    code, answer = ask("phase", "sign-off", "1")
    assert (code, answer["ok"], team.head()) == (Exit.FINDINGS, False, head)
    assert [one["message"] for one in answer["findings"]] == [
        "backend implementation: plan 01-01 is pending"
    ]
    assert "yolo-fs workflow next --phase 01" in answer["findings"][0]["hint"]
    assert not (team.root / PLANNING / "ROADMAP.md").exists()


def test_evidence_that_says_fail_is_signed_off_by_nobody(team: Team, ask: Ask) -> None:
    work(team)
    audit = {"r": "FAIL", "findings": 1, "critical": 1, "dt": "2026-02-20"}
    team.artifact("security-audit.jsonl", json.dumps(audit) + "\n")
    team.once()
    code, answer = ask("phase", "sign-off", "1")
    assert code == Exit.FINDINGS
    assert any("security says FAIL" in one["message"] for one in answer["findings"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("security-audit.jsonl", '{"r": "FAIL", "findings": 1\n'),
        ("verification.jsonl", '{"r": "FAIL"}\n'),
        ("qa-code.jsonl", '{"r": "FAIL", "key": "AKIAIOSFODNN7EXAMPLE"}\n'),
    ],
)
def test_a_verdict_that_the_branch_does_not_have_holds_the_sign_off_whatever_it_says(
    team: Team, ask: Ask, name: str, text: str
) -> None:
    work(team)
    path = f"{PLANNING}/phases/01-auth/{name}"
    was = (team.root / path).read_text() if (team.root / path).exists() else ""
    team.file(path, text)
    os.utime(team.root / path, (1e9, 1e9))  # nobody is still writing it
    head = team.head()
    for dry in ((), ("--dry-run",)):
        code, answer = ask("phase", "sign-off", "1", *dry)
        (message,) = [each["message"] for each in answer["findings"]]
        assert (code, answer["data"]["state"]) == (Exit.FINDINGS, "lacking")
        assert message.startswith(f"{path} is not on the branch, whatever it says (")
        assert f"{path}' shows why" in message
    assert team.head() == head
    assert path in ask("workflow", "next", "--phase", "1")[1]["data"]["refused"]
    (team.root / path).write_text(was) if was else (team.root / path).unlink()
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE


def _work_in_three_departments(team: Team) -> None:
    team.config(CONFIG | {"effort": "turbo", "documenter": "never"})
    team.user_commits("chore: three departments", f"{PLANNING}/config.json")
    for one in (UIUX, BACKEND, FRONTEND):
        work(team, one)
        for each in one.tests()[1]:
            _write(team, each)


def test_a_phase_is_not_signed_off_behind_a_closed_gate_and_whoever_owes_it_is_next(
    team: Team, ask: Ask
) -> None:
    _work_in_three_departments(team)
    head = team.head()
    code, answer = ask("phase", "sign-off", "1")
    messages = [one["message"] for one in answer["findings"]]
    assert (code, answer["data"]["state"]) == (Exit.FINDINGS, "lacking")
    assert [text.partition(":")[0] for text in messages] == ["gate ux-complete is closed"]
    assert team.head() == head
    _, told = ask("workflow", "next", "--phase", "1")
    assert told["data"]["next"]["agent"] == "ux-lead"
    assert ask("gate", "list")[1]["data"]["sign_off"]["decision"] == "HOLD"
    for path, text, _ in _design()[:3]:
        team.file(path, text)
    team.once()
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE


def test_what_departments_still_owe_each_other_holds_the_sign_off_as_the_next_turn_says(
    team: Team, ask: Ask
) -> None:
    _work_in_three_departments(team)
    for path, text, _ in _design()[:3]:
        team.file(path, text)
    owed = {
        "type": "dept_handoff", "from_dept": "uiux", "to_dept": "frontend",
        "dt": "2026-02-19T09:00:00Z", "artifacts": ["design-tokens.jsonl"], "contracts": [],
        "blockers": ["the colours are not decided"], "notes": "",
    }  # fmt: skip
    team.artifact("dept-handoff.jsonl", json.dumps(owed) + "\n")
    team.once()
    code, answer = ask("phase", "sign-off", "1")
    (message,) = [one["message"] for one in answer["findings"]]
    assert code == Exit.FINDINGS
    assert "the colours are not decided" in message
    assert message == ask("workflow", "next", "--phase", "1")[1]["data"]["next"]["why"]


@pytest.mark.parametrize(
    "by", ["dev", "yolo-dev", "senior", "qa", "architect", "fe-security", "fe-lead", "yolo-ux-lead"]
)
def test_an_agent_whose_step_it_is_not_is_refused(team: Team, ask: Ask, by: str) -> None:
    work(team)
    head = team.head()
    code, answer = ask("phase", "sign-off", "1", "--as", by)
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "out_of_lane")
    assert "--as lead" in answer["findings"][0]["hint"]
    assert team.head() == head


def test_the_lead_of_each_department_at_work_may_sign_and_one_of_them_is_named(
    team: Team, ask: Ask
) -> None:
    team.config({"departments": {"backend": False, "frontend": True}})
    team.file(f"{PLANNING}/phases/01-auth/fe-critique.jsonl", "")
    code, answer = ask("phase", "sign-off", "1", "--as", "lead")
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "out_of_lane")
    assert answer["findings"][0]["message"].endswith("backend does not work on it")
    assert answer["findings"][0]["hint"].endswith("--as fe-lead")
    code, answer = ask("phase", "sign-off", "1", "--as", "fe-lead")
    assert answer["data"]["state"] == "lacking"


@pytest.mark.parametrize("variable", ["YOLO_FS_ROLE", "YOLO_FS_AGENT"])
def test_the_environment_says_who_asks(
    team: Team, ask: Ask, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    work(team)
    monkeypatch.setenv(variable, "dev-1")
    assert ask("phase", "sign-off", "1")[1]["findings"][0]["reason"] == "out_of_lane"
    monkeypatch.setenv(variable, "yolo-lead")
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE


@pytest.mark.parametrize("file", ["MERGE_HEAD", "index.lock"])
def test_nothing_is_written_in_the_middle_of_what_the_user_does(
    team: Team, ask: Ask, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    work(team)
    monkeypatch.setattr("yolo_fs.progress.placing.TRY_EVERY_S", 0.0)
    (team.root / ".git" / file).write_text(team.head())
    head = team.head()
    assert ask("phase", "sign-off", "1")[0] == Exit.TRY_AGAIN
    assert team.head() == head and not (team.root / PLANNING / "ROADMAP.md").exists()


# --- where it is offered ---


@pytest.mark.parametrize("words", [("workflow", "next", "--phase", "1"), ("status",), ("resume",)])
def test_it_is_offered_where_it_is_next_and_nowhere_before(
    team: Team, ask: Ask, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    command = "yolo-fs phase sign-off 1"
    for each in BACKEND.designs()[1]:
        _write(team, each)
    team.once()
    assert command not in json.dumps(ask(*words)[1])
    work(team)
    assert command in json.dumps(ask(*words)[1]["data"])
    assert run([*words, "-C", str(team.root)]) == Exit.DONE
    assert command in capsys.readouterr().out
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    assert command not in json.dumps(ask(*words)[1])


def test_it_is_offered_by_the_name_that_works_where_two_phases_have_one_number(
    team: Team, ask: Ask
) -> None:
    work(team)
    auth, pay = (team.root / PLANNING / f"phases/01-{slug}" for slug in ("auth", "pay"))
    pay.mkdir()
    (pay / "test-plan.jsonl").write_text((auth / "test-plan.jsonl").read_text())
    team.git("add", str(pay / "test-plan.jsonl"))
    team.git("commit", "-qm", "test(01): RED phase tests", "--", str(pay / "test-plan.jsonl"))
    command = ask("workflow", "next", "--phase", "01-auth")[1]["data"]["next"]["command"]
    assert command == "yolo-fs phase sign-off 01-auth"
    assert ask("phase", "sign-off", "1")[0] != Exit.DONE
    assert ask(*command.split()[1:])[0] == Exit.DONE


@pytest.mark.parametrize("by", ["yolo-lead", "yolo-dev", ""])
def test_a_hook_that_refuses_the_state_names_the_command_and_lets_the_lead_alone_run_it(
    team: Team, by: str
) -> None:
    work(team)
    team.config({"yolo_fs": {"state_files": "always"}})
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "agent_type": by}
    write = {"tool_name": "Write", "tool_input": {"file_path": f"{PLANNING}/state.json"}}
    assert "yolo-fs phase sign-off N" in hooked(team, told | write)
    use = {"tool_name": "Bash", "tool_input": {"command": "yolo-fs phase sign-off 1"}}
    refused = hooked(team, told | use)
    assert ("ask lead" in refused) is (by == "yolo-dev"), refused


def hooked(team: Team, told: dict[str, Any]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "hook", "pre-tool-use", "-C", str(team.root)],
        input=json.dumps(told), capture_output=True, text=True, check=False, cwd=team.root,
    )  # fmt: skip
    return done.stdout


def test_a_tool_of_an_agents_host_does_it_for_the_lead_alone(team: Team) -> None:
    work(team)
    answer = Tools(str(team.root)).whose_turn("1")
    assert "run: `task` action=sign-off phase=1" in answer.text
    with pytest.raises(ToolRefusedError, match="the Lead's step"):
        Tools(str(team.root)).task("sign-off", phase="1", agent="dev-1")
    with pytest.raises(ToolRefusedError, match="say who you are"):
        Tools(str(team.root)).task("sign-off", phase="1")
    head = team.head()
    answer = Tools(str(team.root), "yolo-lead").task("sign-off")
    assert answer.is_yes and answer.data["commit"] == team.head() != head
    assert changed(team) == [f"{PLANNING}/ROADMAP.md", f"{PLANNING}/state.json"]


# --- the roadmap ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# R\n\n- [ ] Phase 1: login\n- [ ] Phase 10: more\n", "# R\n\n- [x] Phase 1: login\n- [ ] Phase 10: more\n"),
        ("- [ ] **Phase 01** login\n", "- [x] **Phase 01** login\n"),
        ("| Phase | Status |\n|---|---|\n| 1 - Login | running |\n| 2 | open |\n",
         "| Phase | Status |\n|---|---|\n| 1 - Login | complete |\n| 2 | open |\n"),
        ("| Phase | Status |\n|---|---|\n| 1 | complete |\n", "| Phase | Status |\n|---|---|\n| 1 | complete |\n"),
        ("# R\n", "# R\n- [x] Phase 1: auth\n"),
    ],
    ids=["list", "bold", "table", "marked", "absent"],
)  # fmt: skip
def test_the_roadmap_marks_the_phase_and_keeps_the_rest(
    team: Team, ask: Ask, before: str, after: str
) -> None:
    team.file(f"{PLANNING}/ROADMAP.md", before)
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    assert (team.root / PLANNING / "ROADMAP.md").read_text() == after
    assert (state(team)["ph"], state(team)["st"]) == (1, "complete")


def test_what_is_wrong_with_the_roadmap_is_told_and_nothing_is_written(
    team: Team, ask: Ask
) -> None:
    work(team)
    text = "<<<<<<< ours\n# Roadmap\n=======\n# Plan\n>>>>>>> theirs\n"
    team.file(f"{PLANNING}/ROADMAP.md", text)
    head = team.head()
    code, answer = ask("phase", "sign-off", "1")
    assert (code, answer["findings"][0]["reason"]) == (Exit.UNREADABLE, "conflict_marker")
    assert (team.root / PLANNING / "ROADMAP.md").read_text() == text and team.head() == head


# --- beside others ---


@pytest.mark.parametrize("moment", ["index.placed", "refs.durable"])
def test_what_dies_in_the_middle_leaves_one_commit_or_none(
    team: Team, ask: Ask, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    work(team)
    head = team.head()

    def fail(stage: str) -> None:
        if stage == moment:
            raise YoloError(Reason.STORAGE_FAILED, "the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(failpoint, "reach", fail)
        ask("phase", "sign-off", "1")
    subjects = team.git("log", "--format=%s", f"{head}..HEAD").splitlines()
    assert subjects in ([], ["chore(state): phase 1 complete"])
    if not subjects:
        assert not (team.root / PLANNING / "ROADMAP.md").exists()
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE
    assert team.git("log", "--format=%s", f"{head}..HEAD") == "chore(state): phase 1 complete"


@pytest.fixture
def daemon(team: Team) -> Iterator[subprocess.Popen[str]]:
    work(team)
    process = subprocess.Popen(
        [sys.executable, "-m", "yolo_fs", "run", "--json", "-C", str(team.root)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"YOLO_FS_COLD": "1"},
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if '"daemon.started"' in line or "daemon.started" in line:
            break
    yield process
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


def test_a_daemon_makes_no_commit_of_its_own_of_either_file(
    team: Team, daemon: subprocess.Popen[str], ask: Ask
) -> None:
    head = team.head()
    assert ask("phase", "sign-off", "1", "--as", "lead")[0] == Exit.DONE
    team.artifact("decisions.jsonl", DECISION)
    until = time.monotonic() + 60
    while "docs(01): decisions" not in team.git("log", "--format=%s", f"{head}..HEAD"):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert daemon.poll() is None
    files = f"{PLANNING}/state.json", f"{PLANNING}/ROADMAP.md"
    listed = team.git("log", "--format=%s", f"{head}..HEAD", "--", *files).splitlines()
    assert listed == ["chore(state): phase 1 complete"]


DECISION = (
    '{"ts":"2026-02-20T10:00:00Z","agent":"lead","task":"01-01/T1","dec":"keep RS256",'
    '"reason":"as planned","alts":[]}\n'
)
