"""Whom `go` has at work, and what the run costs so far, is told wherever somebody asks how things stand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.company_runs import note_run_of_two_hosts
from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.company.runs import RunAct, new_run, save
from yolo_fs.core.reasons import Exit
from yolo_fs.git.repository import Repository
from yolo_fs.mcp.tools import Tools
from yolo_fs.protocol.roster import AGENT_BY_NAME


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeper: subprocess.Popen[bytes]) -> Team:
    """A phase without a file, whose run has had a Critic and has an Architect at work."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Team(tmp_path / "work")
    (made.root / ".yolo-planning").mkdir()
    assert run(["phase", "new", "auth", "-C", str(made.root), "-q"]) == Exit.DONE
    note_run_of_two_hosts(made, sleeper.pid)
    return made


def printed(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    run(["status", "-C", str(team.root), *words])
    return capsys.readouterr().out


def test_status_names_whom_the_run_has_at_work_and_its_bill_so_far(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    told = printed(team, capsys)
    assert "1 agent of R" in told and "2100 tokens, 0.75 USD so far" in told
    line = next(line for line in told.splitlines() if line.startswith("  architect"))
    assert "architecture" in line and "1200 tokens, 0.50 USD, last tool Write" in line
    assert not any(line.startswith("  critic") for line in told.splitlines())


def test_a_program_is_told_the_same(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    data: dict[str, Any] = json.loads(printed(team, capsys, "--json"))["data"]["company"]
    assert [(act["agent"], act["step"], act["tool"]) for act in data["at_work"]] == [
        ("architect", "architecture", "Write")
    ]
    assert data["at_work"][0]["tokens"] == 1200 and data["at_work"][0]["cost_usd"] == 0.5
    (one,) = data["runs"]
    assert (one["phase"], one["tokens"], one["cost_usd"]) == ("01-auth", 2100, 0.75)
    assert one["by_role"]["critic"] == {
        "starts": 1, "tokens": 900, "cost_usd": 0.25, "budget": one["by_role"]["critic"]["budget"],
    }  # fmt: skip
    assert one["by_host"] == {
        "claude": {"starts": 1, "tokens": 900, "cost_usd": 0.25},
        "codex": {"starts": 1, "tokens": 1200, "cost_usd": 0.5},
    }


def test_the_bill_of_a_run_of_several_hosts_has_a_line_for_each(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["company", "runs", "-C", str(team.root)]) == Exit.DONE
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith("host ")] == [
        "host claude: 1 start, 900 tokens, 0.25 USD",
        "host codex: 1 start, 1200 tokens, 0.50 USD",
    ]


def test_an_agent_that_asks_how_things_stand_is_told_who_is_at_work(team: Team) -> None:
    answer = Tools(str(team.root)).team_status()
    assert "Agents of the run at work now\n- architect: architecture, since " in answer.text
    assert [each["agent"] for each in answer.data["at_work"]] == ["architect"]


def test_another_phase_has_nobody_at_work(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["phase", "new", "other", "-C", str(team.root), "-q"]) == Exit.DONE
    data = json.loads(printed(team, capsys, "--json", "--phase", "2"))["data"]["company"]
    assert data == {"runs": [], "at_work": []}


def test_a_run_whose_agents_have_ended_with_its_runner_does_not_go_on(
    team: Team, sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    sleeper.kill()
    sleeper.wait()
    data = json.loads(printed(team, capsys, "--json"))["data"]["company"]
    assert data == {"runs": [], "at_work": []}
    assert "at work" not in printed(team, capsys)


BILL = (
    "all runs: 3 starts, 2600 tokens, 1.05 USD",
    "role critic: 2 starts, 1400 tokens, 0.55 USD",
    "role architect: 1 start, 1200 tokens, 0.50 USD",
    "step critique: 2 starts, 1400 tokens, 0.55 USD",
    "step architecture: 1 start, 1200 tokens, 0.50 USD",
)


def test_the_runs_are_listed_with_the_bill_of_each_role_and_step_beside_the_budget(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["company", "runs", "-C", str(team.root)]) == Exit.DONE
    told = capsys.readouterr().out.splitlines()
    budget = AGENT_BY_NAME["critic"].token_budget
    assert f"  role critic: 1 start, 900 tokens, 0.25 USD (context budget {budget})" in told
    assert "  step critique: 1 start, 900 tokens, 0.25 USD" in told
    assert "  step architecture: 1 start, 1200 tokens, 0.50 USD" in told


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_the_report_has_the_bill_of_all_runs_of_the_phase(
    team: Team, tmp_path: Path, form: str
) -> None:
    """Of two runs of the phase, and not of one of another phase."""
    for phase, tokens, cost in (("01-auth", 500, 0.3), ("02-other", 7, 9.0)):
        more = new_run(phase, "login", "claude")
        more.acts = [
            RunAct(1, "critic", "shared", "critique", "", 1, 1.0, 2.0, "done", tokens, cost)
        ]
        more.ended = 3.0
        with Repository(str(team.root)) as repository:
            save(repository, more)
    team.begin()
    out = tmp_path / "report.html"
    words = ("--phase", "1", "--format", form, "-o", str(out), "-C", str(team.root))
    assert run(["report", *words]) == Exit.DONE
    told = out.read_text()
    assert [line for line in BILL if line not in told] == []
