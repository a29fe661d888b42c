"""By default state files are kept beside the branch: true on the disk, and in no commit but that of what moved them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.daemon import until
from tests.progress.conftest import Ask
from tests.progress.test_signoff import changed, state, work
from tests.support.teams import EXAMPLES, THREE, Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

PLANNING = ".yolo-planning"
PHASE = f"{PLANNING}/phases/01-auth"
STATUS = f"{PHASE}/.dept-status-backend.json"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Return a team that nobody has configured, and whose repository ignores nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    for name in ("YOLO_FS_AGENT", "YOLO_FS_ROLE"):
        monkeypatch.delenv(name, raising=False)
    found = Team(tmp_path / "work")
    found.file("README.md", "# work\n")
    found.user_commits("chore: begin", "README.md")
    return found


def said(team: Team, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((team.root / path).read_text())
    return found


def subjects(team: Team, since: str = "") -> list[str]:
    return team.git(
        "log", "--reverse", "--format=%s", *([f"{since}..HEAD"] if since else [])
    ).splitlines()


def is_clean(team: Team) -> bool:
    return team.git("status", "--porcelain") == ""


# --- what is kept ---


def test_one_department_has_its_status_without_any_configuration(team: Team, ask: Ask) -> None:
    team.begin()
    assert (said(team, STATUS)["dept"], said(team, STATUS)["step"]) == ("backend", "architecture")
    ask("dept", "update", "backend", "--phase", "1", "--blocker", "no key", "--eta", "noon")
    team.artifact("01-01.plan.jsonl", "{}\n")
    team.once()
    status = said(team, STATUS)
    assert (status["blockers"], status["eta"]) == (["no key"], "noon")
    assert "01-01.plan.jsonl" in status["error"]
    (team.root / PHASE / "01-01.plan.jsonl").unlink()
    team.example("architecture/ok/backend.toon", "architecture.toon")
    team.once()
    status = said(team, STATUS)
    assert (status["step"], status["error"], status["blockers"]) == ("planning", "", ["no key"])


def test_nothing_that_is_kept_is_committed_or_shown_by_git(team: Team) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", f"{PLANNING}/config.json")
    team.begin()
    team.plan()
    kept = {path.name for path in (team.root / PHASE).iterdir() if path.name.startswith(".")}
    assert {".execution-state.json", ".phase-orchestration.json", ".dept-status-uiux.json"} <= kept
    assert is_clean(team)
    assert not [one for one in subjects(team) if one.startswith("chore(state)")]
    for commit in team.git("rev-list", "HEAD~2..HEAD").split():
        assert len(changed(team, commit)) == 1


def test_the_state_on_the_disk_is_that_of_the_branch_at_each_moment(team: Team) -> None:
    for kind, name, step in (
        ("research/ok/findings.jsonl", "research.jsonl", "critique"),
        ("critique/ok/rated.jsonl", "critique.jsonl", "architecture"),
        ("architecture/ok/backend.toon", "architecture.toon", "planning"),
    ):
        example = EXAMPLES / kind
        text = (example if example.exists() else min(example.parent.iterdir())).read_text()
        team.artifact(name, text)
        team.once()
        assert (state(team)["ph"], state(team)["step"]) == (1, step)
        assert said(team, f"{PHASE}/.execution-state.json")["phase"] == 1
        assert is_clean(team)


def test_a_clone_knows_where_the_team_stands_from_git_alone(
    team: Team, ask: Ask, tmp_path: Path
) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", f"{PLANNING}/config.json")
    team.begin()
    team.plan()
    team.git("clone", "-q", str(team.root), str(tmp_path / "clone"))
    here, there = (ask("status", root=root)[1]["data"] for root in (team.root, tmp_path / "clone"))
    assert here["team"] == there["team"]
    clone = Team(tmp_path / "clone")
    clone.once()
    assert {**state(clone), "started": ""} == {**state(team), "started": ""}
    assert is_clean(clone)


def test_what_was_deleted_or_damaged_is_made_again(team: Team) -> None:
    team.begin()
    before = state(team)
    for spoil in (lambda file: file.unlink(), lambda file: file.write_text("")):
        spoil(team.root / PLANNING / "state.json")
        (team.root / STATUS).unlink()
        team.once()
        if (team.root / PLANNING / "state.json").read_text():
            assert state(team) == before
        else:  # somebody is about to write it, or has emptied it: it is theirs, and shown
            (team.root / PLANNING / "state.json").unlink()
        assert said(team, STATUS)["step"] == "architecture"


@pytest.mark.parametrize("said_there", ["[]", "1e308", "[[{}]]", '"x"', "null", "{", ""])
@pytest.mark.parametrize(
    "name", ["state.json", f"{PHASE.rpartition('/')[2]}/.execution-state.json"]
)
def test_a_state_file_that_says_nothing_of_a_state_stops_no_artifact_and_is_left(
    team: Team, name: str, said_there: str
) -> None:
    team.begin()
    folder = team.root / (PLANNING if "/" not in name else f"{PLANNING}/phases")
    (folder / name).write_text(said_there)
    team.example("architecture/ok/backend.toon", "architecture.toon")
    head = team.head()
    team.once()
    assert f"{PHASE}/architecture.toon" in team.git("ls-files", PHASE).split()
    assert head != team.head()
    assert (folder / name).read_text() == said_there


# --- the sign-off, and what comes after it ---


def sign_off(team: Team, ask: Ask) -> None:
    """Do everything of the first phase, and sign it off."""
    team.config({"effort": "turbo", "documenter": "never"})
    team.user_commits("chore: configured", f"{PLANNING}/config.json")
    work(team)
    assert ask("phase", "sign-off", "1")[0] == Exit.DONE


def test_after_the_sign_off_the_state_comes_with_what_moves_it(team: Team, ask: Ask) -> None:
    sign_off(team, ask)
    head = team.head()
    for name, kind in (("critique.jsonl", "critique"), ("architecture.toon", "architecture")):
        text = min((EXAMPLES / kind / "ok").iterdir()).read_text()
        team.artifact(name, text, phase="02-page")
        team.once()
        assert changed(team)[0] == f"{PLANNING}/phases/02-page/{name}", changed(team)
        assert is_clean(team)
    assert (state(team)["ph"], state(team)["step"]) == (2, "planning")
    committed = json.loads(team.git("show", f"HEAD:{PLANNING}/state.json"))
    assert committed == state(team)
    assert not [one for one in subjects(team, head) if one.startswith("chore(state)")]
    assert f"{PLANNING}/state.json" in changed(team)
    code, answer = ask("verify")
    assert code == Exit.DONE, answer


def test_beside_a_daemon_its_observer_is_asked_and_where_it_is_busy_the_state_follows(
    team: Team, ask: Ask
) -> None:
    sign_off(team, ask)
    head = team.head()
    command = [sys.executable, "-P", "-m", "yolo_fs", "run", "--json", "-C", str(team.root)]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    events = (json.loads(line) for line in daemon.stdout)
    try:
        next(event for event in events if event["event"] == "observer.started")
        for name, kind in (("critique.jsonl", "critique"), ("architecture.toon", "architecture")):
            text = min((EXAMPLES / kind / "ok").iterdir()).read_text()
            team.artifact(name, text, phase="02-page")
            path = f"{PLANNING}/phases/02-page/{name}"
            next(event for event in events if event.get("path") == path)
            until(lambda: is_clean(team) and state(team)["ph"] == 2, "the state is that of the branch")  # fmt: skip
        until(lambda: state(team)["step"] == "planning", "the state goes on")
    finally:
        daemon.terminate()
        daemon.communicate(timeout=60)
    assert is_clean(team)
    assert json.loads(team.git("show", f"HEAD:{PLANNING}/state.json")) == state(team)
    rode = [one for one in subjects(team, head) if not one.startswith("chore(state)")]
    assert len(rode) == 2
    assert ask("verify")[0] == Exit.DONE


def test_an_artifact_that_moves_nothing_is_alone_in_its_commit(team: Team, ask: Ask) -> None:
    sign_off(team, ask)
    team.artifact("decisions.jsonl", min((EXAMPLES / "decisions/ok").iterdir()).read_text())
    team.once()
    assert changed(team) == [f"{PHASE}/decisions.jsonl"]


# --- who has decided otherwise ---


def test_a_state_file_that_the_branch_has_goes_on_being_committed(team: Team) -> None:
    team.config({"yolo_fs": {"state_files": "always"}})
    team.begin()
    path = f"{PHASE}/.execution-state.json"
    assert team.git("ls-files", path) == path
    team.config({})
    team.example("architecture/ok/backend.toon", "architecture.toon")
    head = team.head()
    team.once()
    assert "chore(state): architecture complete phase 1" in subjects(team, head)
    assert "state.json" not in team.git("status", "--porcelain")


@pytest.mark.parametrize("several", [True, False])
def test_who_commits_all_transitions_goes_on_doing_so(team: Team, several: bool) -> None:
    assert run(["init", "-q", "--no-hooks", "-C", str(team.root)]) == Exit.DONE
    team.config({"yolo_fs": {"state_files": "always"}, **(THREE if several else {})})
    team.begin()
    assert "chore(state): critique complete phase 1" in subjects(team)
    assert team.git("ls-files", f"{PLANNING}/state.json")


def test_who_keeps_none_has_none(team: Team) -> None:
    team.config({"yolo_fs": {"state_files": "never"}})
    team.begin()
    assert [path.name for path in (team.root / PHASE).iterdir() if path.name[0] == "."] == []
    assert not (team.root / PLANNING / "state.json").exists()


def test_what_somebody_else_writes_is_their_work_and_is_committed(team: Team) -> None:
    text = (EXAMPLES / "execution-state/ok").iterdir()
    team.artifact(".execution-state.json", min(text).read_text())
    team.once()
    path = f"{PHASE}/.execution-state.json"
    assert team.git("ls-files", path) == path


def test_where_git_ignores_a_state_file_it_is_joined_and_held_by_nobody(
    team: Team, ask: Ask
) -> None:
    assert run(["init", "-q", "--no-hooks", "-C", str(team.root)]) == Exit.DONE
    assert ".execution-state.json" in (team.root / PLANNING / ".gitignore").read_text()
    team.begin()
    path = team.root / PHASE / ".execution-state.json"
    path.write_text(json.dumps(said(team, f"{PHASE}/.execution-state.json") | {"note": "mine"}))
    team.once()
    kept = said(team, f"{PHASE}/.execution-state.json")
    assert kept["note"] == "mine" and "projected" in kept
    assert not team.git("ls-files", str(path))
    assert ".execution-state.json" not in json.dumps(ask("status")[1]["data"]["candidates"])


def test_lines_of_the_users_exclude_file_stay_and_ours_come_once(team: Team) -> None:
    exclude = team.root / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.swp")
    team.begin()
    team.plan()
    lines = exclude.read_text().splitlines()
    assert lines[0] == "*.swp" and len(lines) == len(set(lines)) > 5


def test_a_cleanup_takes_what_follows_from_the_branch_and_it_stays_away(
    team: Team, ask: Ask
) -> None:
    sign_off(team, ask)
    team.once()
    code, answer = ask("dept", "cleanup", "--phase", "1", "--reason", "complete")
    assert (code, answer["data"]["left"]) == (Exit.DONE, [])
    team.once()
    assert not (team.root / STATUS).exists()


def test_a_skip_that_somebody_declares_counts_once_it_is_committed(team: Team, ask: Ask) -> None:
    assert run(["init", "-q", "--no-hooks", "-C", str(team.root)]) == Exit.DONE
    critique = min((EXAMPLES / "critique/ok").iterdir())
    team.artifact("critique.jsonl", critique.read_text())
    team.once()
    words = ("workflow", "skip", "research", "--phase", "1", "--reason", "nothing is unknown")
    assert ask(*words)[0] == Exit.DONE
    team.once()
    shown = ask("workflow", "show", "--phase", "1")[1]["data"]["steps"]
    research = next(one for one in shown if one["step"] == "research")
    assert (research["standing"], research["by"]) == ("skipped", "declared: nothing is unknown")
    assert is_clean(team) or "execution-state" not in team.git("status", "--porcelain")
