"""`workflow`: who is next, what a step lacks, what may be skipped, and where commands are routed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.protocol.workflow import STEPS

STATE = ".yolo-planning/phases/01-auth/.execution-state.json"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    found = Team(tmp_path / "work tree")
    found.begin()
    return found


@pytest.fixture
def ask(team: Team, capsys: pytest.CaptureFixture[str]) -> Any:
    def asked(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run(["workflow", *words, "--json", "-C", str(team.root)])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else None

    return asked


def standing(ask: Any, step: str) -> tuple[str, str]:
    _, answer = ask("show", "--phase", "1")
    found = next(one for one in answer["data"]["steps"] if one["step"] == step)
    return found["standing"], found["by"]


def test_next_names_agent_inputs_and_what_is_missing(ask: Any) -> None:
    code, answer = ask("next", "--phase", "1")
    turn = answer["data"]["next"]
    assert code == Exit.DONE
    assert (turn["agent"], turn["step"]) == ("architect", "architecture")
    assert turn["inputs"] == ["reqs", "codebase", "critique"]
    assert [gate["open"] for gate in turn["entry"]] == [True]
    assert [gate["missing"] for gate in turn["exit"]] == [["no valid architecture.toon"]]


def test_each_department_has_its_own_next(team: Team, ask: Any) -> None:
    team.config(THREE)
    turns = ask("next", "--phase", "01")[1]["data"]["departments"]
    assert {name: turn["agent"] for name, turn in turns.items()} == {
        "backend": "architect",
        "frontend": "fe-architect",
        "uiux": "ux-architect",
    }


def test_the_next_of_the_phase_lacks_what_it_lacks_in_its_department(team: Team, ask: Any) -> None:
    team.config(THREE)
    team.example("architecture/ok/frontend.toon", "ux-architecture.toon")
    team.once()
    answer = ask("next", "--phase", "1")[1]["data"]
    assert answer["next"]["agent"] == answer["departments"]["uiux"]["agent"] == "ux-lead"
    for gates in ("entry", "exit"):
        assert answer["next"][gates] == answer["departments"]["uiux"][gates]


def test_next_says_why_a_file_that_was_written_is_not_there(
    team: Team, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ".yolo-planning/phases/01-auth/architecture.toon"
    assert ask("next", "--phase", "1")[1]["data"]["refused"] == {}
    team.artifact("architecture.toon", "no toon at all\n")
    os.utime(team.root / path, (1e9, 1e9))  # at rest
    _, answer = ask("next", "--phase", "1")
    assert answer["data"]["refused"].keys() == {path}
    assert answer["data"]["refused"][path].startswith("rejected: ")
    run(["workflow", "next", "--phase", "1", "-C", str(team.root)])
    told = capsys.readouterr().out
    assert f"{path} is rejected: " in told and f"→ yolo-fs validate {path}\n" in told


def test_show_has_every_step_with_every_gate(ask: Any) -> None:
    steps = ask("show", "--phase", "1")[1]["data"]["steps"]
    assert [one["step"] for one in steps] == [step.key for step in STEPS]
    for one, step in zip(steps, STEPS, strict=True):
        assert [gate["gate"] for gate in one["entry"]] == [gate.value for gate in step.entry]
        assert [gate["gate"] for gate in one["exit"]] == [gate.value for gate in step.exit]


def test_show_tells_loops_and_who_left_his_lane(team: Team, ask: Any) -> None:
    decision = (
        '{"ts":"2026-02-19T08:00:00Z","agent":"dev","dec":"API design: REST","reason":"simple"}\n'
    )
    team.artifact("decisions.jsonl", decision)
    team.once()
    code, answer = ask("show", "--phase", "1")
    assert (code, [one["reason"] for one in answer["findings"]]) == (Exit.DONE, ["out_of_lane"])
    assert {one["loop"] for one in answer["data"]["loops"]} == {"critique"}


# --- complete ---


def test_complete_believes_evidence_alone(team: Team, ask: Any) -> None:
    assert ask("complete", "critique", "--phase", "1")[0] == Exit.DONE
    code, answer = ask("complete", "planning", "--phase", "1")
    assert code == Exit.FINDINGS
    assert answer["data"]["departments"][0]["missing"] == [
        "step architecture is neither complete nor skipped",
        "no plan",
    ]
    before = team.git("status", "--porcelain", "-uall")
    assert ask("complete", "4", "--phase", "1")[0] == Exit.FINDINGS
    assert team.git("status", "--porcelain", "-uall") == before


def test_complete_of_all_departments_needs_all_of_them(team: Team, ask: Any) -> None:
    team.example("architecture/ok/backend.toon", "architecture.toon")
    team.once()
    assert ask("complete", "architecture", "--phase", "1")[0] == Exit.DONE
    team.config(THREE)
    code, answer = ask("complete", "architecture", "--phase", "1")
    assert code == Exit.FINDINGS
    assert [one["standing"] for one in answer["data"]["departments"]] == [
        "complete",
        "waiting",
        "ready",
    ]


@pytest.mark.parametrize(
    "words", [["complete", "lunch", "--phase", "1"], ["complete", "qa", "--phase", "9"]]
)
def test_what_does_not_exist_is_a_wrong_question(ask: Any, words: list[str]) -> None:
    assert ask(*words)[0] == Exit.USAGE


# --- skip ---


def skip(ask: Any, step: str, reason: str = "nothing to design") -> tuple[int, Any]:
    found: tuple[int, Any] = ask("skip", step, "--phase", "1", "--reason", reason)
    return found


def test_a_declared_skip_counts_once_it_is_committed(team: Team, ask: Any) -> None:
    assert skip(ask, "architecture")[0] == Exit.DONE
    assert team.git("log", "-1", "--format=%s") == "chore(state): architecture skipped phase 1"
    assert standing(ask, "architecture") == ("skipped", "declared: nothing to design")
    assert ask("complete", "3", "--phase", "1")[1]["data"]["departments"][0]["missing"] == []
    assert ask("complete", "architecture", "--phase", "1")[0] == Exit.DONE
    state = json.loads((team.root / STATE).read_text())
    assert state["steps"]["architecture"]["status"] == "skipped"
    assert state["steps"]["critique"]["status"] == "complete"
    assert (
        "chore(state): architecture skipped phase 1"
        in team.git("log", "--format=%s", "--", STATE).splitlines()
    )


def test_a_second_skip_changes_nothing(team: Team, ask: Any) -> None:
    skip(ask, "architecture")
    before = (team.root / STATE).read_bytes()
    code, answer = skip(ask, "architecture")
    assert (code, answer["data"]["is_new"]) == (Exit.DONE, False)
    assert (team.root / STATE).read_bytes() == before


def test_a_skip_keeps_what_others_wrote(team: Team, ask: Any) -> None:
    skip(ask, "architecture")
    path = team.root / STATE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"correlation_id": "run-7"}))
    assert skip(ask, "documentation", "no users yet")[0] == Exit.DONE
    state = json.loads(path.read_text())
    assert state["correlation_id"] == "run-7"
    assert [state["steps"][key]["reason"] for key in ("architecture", "documentation")] == [
        "nothing to design",
        "no users yet",
    ]


@pytest.mark.parametrize("step", [step.key for step in STEPS if step.mandatory])
def test_a_mandatory_step_is_never_skipped(team: Team, ask: Any, step: str) -> None:
    before = (team.root / STATE).read_bytes()
    code, answer = skip(ask, step)
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "state_conflict")
    assert (team.root / STATE).read_bytes() == before


@pytest.mark.parametrize(
    ("step", "reason", "code", "because"),
    [
        ("critique", "why not", Exit.FINDINGS, "state_conflict"),
        ("qa", " ", Exit.USAGE, "empty_value"),
        ("qa", "rule: turbo", Exit.USAGE, "bad_format"),
        ("lunch", "hungry", Exit.USAGE, "unknown_name"),
    ],
)
def test_a_skip_without_ground_is_refused(
    team: Team, ask: Any, step: str, reason: str, code: int, because: str
) -> None:
    before = (team.root / STATE).read_bytes()
    got, answer = skip(ask, step, reason)
    assert (got, answer["findings"][0]["reason"]) == (code, because)
    assert (team.root / STATE).read_bytes() == before


@pytest.mark.parametrize("text", ["{", '{"phase": 1}', '{"phase": "one", "steps": {}}'])
def test_a_damaged_state_is_left_as_it_is(team: Team, ask: Any, text: str) -> None:
    team.file(STATE, text)
    assert skip(ask, "qa")[0] == Exit.UNREADABLE
    assert (team.root / STATE).read_text() == text


@pytest.mark.proves("002:101b")
def test_a_step_that_has_failed_is_not_skipped(team: Team, ask: Any) -> None:
    team.example("security-audit/ok/fail.jsonl", "security-audit.jsonl")
    team.once()
    code, answer = skip(ask, "security", "we are late")
    assert code == Exit.FINDINGS
    assert "security says FAIL" in answer["findings"][0]["message"]


def test_people_read_lines(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["next", "--phase", "1"],
        ["show", "--phase", "1"],
        ["complete", "qa", "--phase", "1"],
    ):
        run(["workflow", *words, "-C", str(team.root)])
    said = capsys.readouterr().out
    assert "backend    architect does architecture from reqs, codebase, critique" in said
    assert "lacks: no valid architecture.toon" in said
