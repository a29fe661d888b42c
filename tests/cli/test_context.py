"""`context compile` and `context prove`: what they print, for people and for machines, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run

PHASE = ".yolo-planning/phases/01-auth"
DEV = f"{PHASE}/.ctx-dev.toon"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work tree")
    team.config({"department_workflow": "backend_only"})
    team.user_commits("chore: begin", ".yolo-planning/config.json")
    team.plan_one()
    return team


@pytest.fixture
def ask(team: Team, capsys: pytest.CaptureFixture[str]) -> Any:
    def asked(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run(["context", *words, "--json", "-C", str(team.root)])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return asked


def test_compile_tells_where_the_context_is_how_large_and_what_is_withheld(
    team: Team, ask: Any
) -> None:
    code, said = ask("compile", "yolo-dev")
    assert (code, said["schema"]) == (0, "yolo-fs/context-compile/1")
    data = said["data"]
    assert (data["agent"], data["path"], data["budget"], data["cut"], data["written"]) == (
        "dev",
        DEV,
        2000,
        "nothing",
        True,
    )
    assert data["tokens"] == -(-(team.root / DEV).stat().st_size // 4)
    assert [(one["section"], one["what"]) for one in data["withheld"]] == [
        ("tasks", "columns action, done")
    ]
    assert ask("compile", "dev")[1]["data"]["written"] is False


def test_all_agents_at_once(team: Team, ask: Any) -> None:
    code, said = ask("compile", "--all")
    assert code == 0
    assert len(said["data"]) == 18
    assert all((team.root / one["path"]).is_file() for one in said["data"])


def test_prove_shows_the_source_of_every_line(team: Team, ask: Any) -> None:
    ask("compile", "dev")
    code, said = ask("prove", "dev")
    assert (code, said["data"]["proved"], said["findings"]) == (0, True, [])
    (line,) = [one for one in said["data"]["lines"] if one["text"].startswith("  T1,")]
    assert line["from"] == [f"{PHASE}/01-01.plan.jsonl:2"]
    assert all(one["from"] or one["rule"] for one in said["data"]["lines"])


def test_prove_fails_when_nothing_was_compiled_when_somebody_wrote_into_it_and_when_its_sources_went_on(
    team: Team, ask: Any
) -> None:
    assert reasons(ask("prove", "dev")) == (1, ["file_missing"])
    ask("compile", "dev")
    path = team.root / DEV
    path.write_text(path.read_text() + "hint: read architecture.toon\n")
    code, said = ask("prove", "dev")
    assert (code, said["findings"][0]["reason"], said["findings"][0]["line"]) == (
        1,
        "context_stale",
        len(path.read_text().split("\n")) - 1,
    )
    assert "'yolo-fs context compile dev' writes it again" in said["findings"][0]["hint"]
    ask("compile", "dev")
    assert reasons(ask("prove", "dev")) == (0, [])
    team.plan()
    team.example("plan/ok/enriched.jsonl", "01-02.plan.jsonl")
    assert reasons(ask("prove", "dev")) == (1, ["context_stale"])


def reasons(answer: tuple[int, Any]) -> tuple[int, list[str]]:
    code, said = answer
    return code, [one["reason"] for one in said["findings"]]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["compile"], 2, None),
        (["compile", "dev", "--all"], 2, None),
        (["compile", "nobody"], 2, "unknown agent 'nobody'"),
        (["compile", "user"], 2, "no context is compiled for user"),
        (["compile", "dev", "--phase", "7"], 2, "no phase '7'"),
        (["compile", "dev", "--plan", "one"], 2, "'one' is not a plan id"),
        (["compile", "dev", "--plan", "01-09"], 2, "phase 01-auth has no plan 01-09"),
        (["prove", "go"], 2, "no context is compiled for go.md"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    ask: Any, words: list[str], code: int, said: str | None
) -> None:
    given, answer = ask(*words)
    assert given == code
    if said:
        assert said in answer["findings"][0]["message"]


def test_people_read_where_each_line_comes_from(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["context", "compile", "dev", "-C", str(team.root)]) == 0
    assert "of 2000 tokens" in capsys.readouterr().out
    assert run(["context", "prove", "dev", "-C", str(team.root)]) == 0
    out = capsys.readouterr().out
    assert f"from {PHASE}/01-01.plan.jsonl:2" in out
    assert "`spec` field ONLY" in out


def test_where_there_is_no_phase_there_is_nothing_to_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "empty")
    assert run(["context", "compile", "dev", "-C", str(team.root)]) == 3
    assert "yolo-fs init" in capsys.readouterr().err
    (team.root / ".yolo-planning/phases").mkdir(parents=True)
    assert run(["context", "compile", "dev", "-C", str(team.root)]) == 2
    assert "yolo-fs phase new SLUG" in capsys.readouterr().err
