"""The team as of one commit: from history alone, whatever the work tree says by now."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import EXAMPLES, THREE, Team
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import Board, board
from yolo_fs.progress.drift import as_json, notes_of_work_tree
from yolo_fs.workspace.settings import load


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def as_of(team: Team, commit: str | None) -> Board:
    with Repository(str(team.root)) as repository:
        return board(FactsReader(repository, load(repository.root)), commit)


def beside(team: Team) -> dict[str, Any]:
    """Return what the work tree says beside the present."""
    with Repository(str(team.root)) as repository:
        gathered = FactsReader(repository, load(repository.root))
        found = board(gathered, repository.head().tip)
        return as_json(notes_of_work_tree(found, gathered))


def departments(found: Board) -> list[str]:
    return [one.department.value for one in found.phases[0].progress.departments]


def test_an_unborn_branch_has_no_phases(team: Team) -> None:
    assert as_of(team, None).as_json() == {"commit": None, "config": "default", "phases": []}


def test_the_past_does_not_look_at_the_work_tree(team: Team) -> None:
    *_, last = team.moments()
    before = as_of(team, last).as_json()
    shutil.rmtree(team.root / ".yolo-planning")
    assert as_of(team, last).as_json() == before


def test_what_comes_later_changes_no_moment(team: Team) -> None:
    seen = [(commit, as_of(team, commit).as_json()) for commit in team.moments()]
    assert len({json.dumps(one) for _, one in seen}) == 5
    assert [as_of(team, commit).as_json() for commit, _ in seen] == [one for _, one in seen]


def test_who_worked_then_is_no_matter_of_who_works_now(team: Team) -> None:
    moments = [as_of(team, commit) for commit in list(team.moments())]
    three = ["backend", "frontend", "uiux"]
    assert [departments(one) for one in moments] == [["backend"], three, three, three, ["backend"]]


def test_a_configuration_that_was_never_committed_stands_in_and_says_so(team: Team) -> None:
    team.config(THREE)
    team.begin()
    found = as_of(team, team.head())
    assert (len(departments(found)), found.as_json()["config"]) == (3, "in force")
    commit = team.user_commits("chore: configuration", ".yolo-planning/config.json")
    assert as_of(team, commit).as_json()["config"] == "committed"


@pytest.mark.parametrize("text", ["{", "[]", '{"departments": 7}', "\x00"])
def test_a_committed_configuration_that_cannot_be_read_stops_nothing(team: Team, text: str) -> None:
    team.begin()
    team.file(".yolo-planning/config.json", text)
    commit = team.user_commits("chore: spoilt", ".yolo-planning/config.json")
    team.config({})
    assert departments(as_of(team, commit)) == ["backend"]


def test_a_claim_says_what_it_lacks(team: Team) -> None:
    commits = list(team.moments())
    shown = as_of(team, commits[3]).as_json()["phases"][0]["departments"][0]
    claimed, waiting = shown["plans"]
    assert (claimed["standing"], claimed["tasks_done"], claimed["tasks_total"]) == ("claimed", 1, 2)
    assert claimed["missing"] == ["none of its commits touches a file of plan 01-01"]
    assert (waiting["blocked_by"], shown["percent"]) == (["01-01"], 0)
    assert (shown["next"]["agent"], shown["next"]["inputs"]) == (
        "architect",
        ["reqs", "codebase", "critique"],
    )


def test_each_step_has_its_proof_or_what_it_lacks(team: Team) -> None:
    team.begin()
    phase = as_of(team, team.head()).as_json()["phases"][0]
    steps = {one["step"]: one for one in (*phase["departments"][0]["steps"], *phase["steps"])}
    assert (steps["research"]["standing"], steps["research"]["by"]) == ("complete", team.head())
    assert (steps["po"]["standing"], steps["po"]["by"]) == ("skipped", "po.enabled=false")
    assert (steps["architecture"]["standing"], steps["planning"]["standing"]) == (
        "ready",
        "pending",
    )
    assert steps["planning"]["missing"] == ["step architecture is neither complete nor skipped"]


def test_closed_gates_name_each_missing_piece(team: Team) -> None:
    commits = list(team.moments())
    gates = {one["gate"]: one for one in as_of(team, commits[1]).as_json()["phases"][0]["gates"]}
    assert {name for name, one in gates.items() if not one["open"]} == set(gates)
    files = [one["file"] for one in gates["ux-complete"]["missing"]]
    assert files == ["design-handoff.jsonl", "design-tokens.jsonl", "component-specs.jsonl"]


# --- what the work tree says beside it ---


def test_a_work_tree_that_agrees_says_nothing(team: Team) -> None:
    for _ in team.moments():
        assert beside(team) == {"drift": [], "overdue": [], "forged": [], "declared_blockers": []}


def status(team: Team, text: str) -> Path:
    return team.file(".yolo-planning/phases/01-auth/.dept-status-backend.json", text)


def test_a_declaration_without_evidence_is_drift(team: Team) -> None:
    team.begin()
    status(
        team,
        '{"dept": "backend", "status": "complete", "step": "qa", "blockers": ["no test database"]}',
    )
    found = beside(team)
    assert [(one["key"], one["declared"], one["derived"]) for one in found["drift"]] == [
        ("status", "complete", "running"),
        ("step", "qa", "architecture"),
    ]
    assert {one["command"] for one in found["drift"]} == {"yolo-fs workflow next --phase 1"}
    assert found["declared_blockers"] == [
        {"phase": "01-auth", "department": "backend", "blocker": "no test database"}
    ]


STATE = ".yolo-planning/state.json"
TOO_MUCH = (
    '{"ms":"v1","ph":1,"tt":1,"st":"complete","step":"signoff","pr":100,"started":"2026-02-18"}'
)


def test_a_project_state_that_claims_too_much_is_told_the_command_that_takes_it_back(
    team: Team,
) -> None:
    team.begin()
    team.file(STATE, f"{TOO_MUCH}\n")
    team.user_commits("chore(state): phase 1 complete", STATE)
    [command] = {one["command"] for one in beside(team)["drift"]}
    assert command.startswith("git revert --no-edit ")
    team.git(*command.split()[1:])
    assert beside(team)["drift"] == []


@pytest.mark.parametrize("others", [(), ("src/a.py",)])
def test_a_state_whose_commit_changes_more_is_told_what_the_sign_off_lacks(
    team: Team, others: tuple[str, ...]
) -> None:
    """What is not committed yet, or came with other work, is not reverted by our advice."""
    team.begin()
    team.file(STATE, f"{TOO_MUCH}\n")
    for path in others:
        team.file(path, "x = 1\n")
    if others:
        team.user_commits("chore(state): phase 1 complete", STATE, *others)
    assert {one["command"] for one in beside(team)["drift"]} == {"yolo-fs phase sign-off 1"}


def test_a_forged_sentinel_is_named(team: Team) -> None:
    team.begin()
    team.file(".yolo-planning/phases/01-auth/.handoff-ux-complete", "")
    assert beside(team)["forged"] == [{"phase": "01-auth", "file": ".handoff-ux-complete"}]


def test_settings_in_force_that_history_does_not_have_are_drift(team: Team) -> None:
    team.begin()
    team.config({"effort": "fast"})
    team.user_commits("chore: configuration", ".yolo-planning/config.json")
    team.config({"effort": "turbo", "yolo_fs": {"settle_ms": 50}})
    found = beside(team)["drift"]
    assert [(one["where"], one["key"]) for one in found] == [
        (".yolo-planning/config.json", "effort"),
        (".yolo-planning/config.json", "yolo_fs.settle_ms"),
    ]
    assert (found[0]["declared"], found[0]["derived"]) == ("turbo", "fast")
    [command] = {one["command"] for one in found}
    run_in_shell(team, command)
    assert beside(team)["drift"] == []


def test_tests_that_are_written_are_told_the_command_that_commits_them(team: Team) -> None:
    """What is not written yet is the Tester's turn, which another command names."""
    team.begin()
    team.example("test-plan/ok/one_plan.jsonl", "test-plan.jsonl")
    team.once()
    team.file("tests/auth/store.test.ts", "it()\n")
    written, unwritten = beside(team)["drift"]
    assert unwritten["command"] == "yolo-fs workflow next --phase 1"
    run_in_shell(team, written["command"])
    assert beside(team)["drift"] == [unwritten]


def test_no_command_commits_a_credential_that_a_test_plan_calls_a_test(team: Team) -> None:
    team.begin()
    plan = (EXAMPLES / "test-plan/ok/one_plan.jsonl").read_text()
    team.artifact("test-plan.jsonl", plan.replace("tests/auth/store.test.ts", "tests/.env"))
    team.once()
    team.file("tests/.env", "TOKEN=1\n")
    drift = {one["key"]: one["command"] for one in beside(team)["drift"]}
    assert drift["tests/.env"] == "yolo-fs workflow next --phase 1"


def run_in_shell(team: Team, command: str) -> None:
    """Carry out what a message prints, word for word."""
    subprocess.run(command, shell=True, cwd=team.root, check=True, capture_output=True)


def test_the_daemon_s_own_sentinels_are_judged_by_the_configuration_that_it_works_by(
    team: Team,
) -> None:
    team.config({"departments": {"uiux": True}, "department_workflow": "backend_only"})
    team.user_commits("chore: configuration", ".yolo-planning/config.json")
    team.config(THREE)
    team.artifact("design-handoff.jsonl", '{"component":"LoginForm","status":"ready"}\n')
    team.example("design-tokens/ok/" + first("design-tokens"), "design-tokens.jsonl")
    specs = {"name": "LoginForm", "desc": "signs in", "states": ["idle"], "props": ["onLogin"], "tokens": ["color"],
             "a11y": {"role": "form"}, "status": "ready"}  # fmt: skip
    team.artifact("component-specs.jsonl", json.dumps(specs) + "\n")
    team.once()
    assert (team.root / ".yolo-planning/phases/01-auth/.handoff-ux-complete").exists()
    assert beside(team)["forged"] == []


def first(kind: str) -> str:
    return min(
        (Path(__file__).parents[2] / "fixtures/examples/artifacts" / kind / "ok").iterdir()
    ).name


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"declared": "x"}', '{"declared": [1], "seq": {}}', '{"blockers": {"a": 1}}'],
)
def test_no_status_file_breaks_the_board(team: Team, text: str) -> None:
    team.begin()
    status(team, text)
    assert beside(team)["declared_blockers"] == []


# --- performance ---


def test_a_hundred_times_the_artifacts_need_no_more_processes(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = processes_of(team, monkeypatch, lambda: plans(team, 1, 5))
    many = processes_of(
        team, monkeypatch, lambda: [plans(team, phase, 84) for phase in range(2, 8)]
    )
    assert few > 0
    assert many <= few


def plans(team: Team, phase: int, count: int) -> None:
    header, task = (json.loads(line) for line in TURBO.read_text().splitlines()[:2])
    for number in range(1, count + 1):
        header |= {"p": f"{phase:02}", "n": f"{number:02}"}
        text = "".join(json.dumps(line) + "\n" for line in (header, task))
        team.artifact(f"{phase:02}-{number:02}.plan.jsonl", text, f"{phase:02}-phase")


TURBO = Path(__file__).parents[2] / "fixtures/examples/artifacts/plan/ok/turbo.jsonl"


def processes_of(team: Team, monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]) -> int:
    """Return how many processes one `status` starts after something was written and committed."""
    from yolo_fs.cli.main import run

    write()
    team.once()
    started: list[Any] = []
    begin = subprocess.Popen.__init__

    def count(self: Any, *given: Any, **named: Any) -> None:
        started.append(given)
        begin(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", count)
        assert run(["status", "--json", "-C", str(team.root)]) == 0
    return len(started)
