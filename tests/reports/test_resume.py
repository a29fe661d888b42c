"""Resuming in a real repository: from files and git alone, whatever state they are in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects import unpack
from tests.support.teams import EXAMPLES, THREE, Team
from yolo_fs.phase.report import Audience, as_data, as_text
from yolo_fs.reports.resume import resume

PHASE = ".yolo-planning/phases/01-auth"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def told(team: Team, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        json.dumps(as_data(resume(str(team.root), Audience(), **more)))
    )
    return found


def text(team: Team) -> str:
    return as_text(resume(str(team.root)))


# --- where there is nothing ---


def test_outside_of_a_repository_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert resume(str(tmp_path)) == ()
    assert resume(str(tmp_path / "nowhere")) == ()


def test_a_repository_without_a_planning_tree_is_nobody_s_business(team: Team) -> None:
    assert resume(str(team.root)) == ()
    assert os.listdir(team.root / ".git").count("yolo-fs") == 0


def test_a_bare_repository_has_no_session(team: Team, tmp_path: Path) -> None:
    team.git("clone", "-q", "--bare", str(team.root), str(tmp_path / "bare"))
    assert resume(str(tmp_path / "bare")) == ()


@pytest.mark.parametrize("below", [".", "src/deep"])
def test_a_planning_tree_without_git_is_told_what_it_lacks(tmp_path: Path, below: str) -> None:
    (tmp_path / ".yolo-planning").mkdir()
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    said = as_text(resume(str(tmp_path / below)))
    assert "stop: not_a_repository: no git repository at" in said


def test_a_branch_without_commits_asks_for_the_first_step_of_its_first_phase(team: Team) -> None:
    (team.root / PHASE).mkdir(parents=True)
    found = told(team)
    assert (found["now"]["phase"], found["now"]["commit"], found["next"]["agent"]) == (
        "01-auth",
        "",
        "critic",
    )


def test_a_phase_that_is_only_a_directory_comes_after_one_that_is_complete(team: Team) -> None:
    team.begin()
    (team.root / ".yolo-planning/phases/02-page").mkdir(parents=True)
    (team.root / ".yolo-planning/phases/no phase").mkdir(parents=True)
    assert [one["phase"] for one in told(team)["phases"]] == ["01-auth", "02-page"]


# --- what is there ---


def test_five_moments_of_a_team(team: Team) -> None:
    found = [told(team) for _ in team.moments()]
    assert [one["next"]["agent"] for one in found] == [
        "architect",
        "ux-architect",
        "ux-architect",
        "architect",
        "architect",
    ]
    assert [len(one.get("team", ())) for one in found] == [0, 3, 3, 3, 0]
    assert found[3]["in_progress"][0]["lacks"] == [
        "none of its commits touches a file of plan 01-01"
    ]


@pytest.mark.proves("002:301")
def test_a_task_is_done_by_a_commit_that_says_its_words(team: Team) -> None:
    team.begin()
    team.plan_one()
    plan = json.loads((team.root / PHASE / "01-01.plan.jsonl").read_text().splitlines()[1])
    team.file("src/auth/tokens.ts", "export {}\n")
    done = team.user_commits(f"feat(01-auth-01): {plan['a'].upper()}", "src/auth/tokens.ts")
    assert told(team)["in_progress"][0]["tasks"][0] == {"task": "01-01/T1", "commit": done[:12]}


@pytest.mark.proves("resume:2")
def test_rejected_held_and_uncommitted_are_told_at_once_and_for_good(team: Team) -> None:
    team.begin()
    team.artifact("qa-code.jsonl", '{"r": "PASS"')
    team.artifact(
        "decisions.jsonl", (team.examples / "decisions/ok/architect_and_dev.jsonl").read_text()
    )
    first = text(team)
    assert (
        f"- {PHASE}/qa-code.jsonl:1: unterminated" in first or f"- {PHASE}/qa-code.jsonl" in first
    )
    assert told(team)["uncommitted"] == [
        {"path": f"{PHASE}/decisions.jsonl", "standing": "pending"}
    ]
    assert told(team)["rejected"][0]["path"] == f"{PHASE}/qa-code.jsonl"
    os.utime(team.root / PHASE / "qa-code.jsonl", (0, 0))
    assert text(team) == first


def test_a_merge_in_progress_holds_everything_and_stops_nobody(team: Team) -> None:
    team.begin()
    (team.root / ".git/MERGE_HEAD").write_text(team.head() + "\n")
    team.artifact(
        "decisions.jsonl", (team.examples / "decisions/ok/architect_and_dev.jsonl").read_text()
    )
    found = told(team)
    assert (found["now"]["obstacle"], found["held"][0]["reason"]) == (
        "merge_in_progress",
        "merge_in_progress",
    )
    assert found["next"]["agent"] == "architect"


def test_what_was_handed_over_is_pending_until_somebody_acts(team: Team) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", ".yolo-planning/config.json")
    team.begin()
    line = {"type": "dept_handoff", "from_dept": "uiux", "to_dept": "frontend", "dt": "2026-02-19T09:00:00Z",
            "artifacts": [], "contracts": [], "blockers": [], "notes": ""}  # fmt: skip
    team.artifact("dept-handoff.jsonl", json.dumps(line) + "\n")
    team.once()
    (one,) = told(team)["handoffs"]
    assert (one["from"], one["to"]) == ("uiux", "frontend of 01-auth")
    assert one["stage"] in (
        "delivered",
        "acknowledged",
    )  # the department's status file says when it began


@pytest.mark.parametrize(
    "folder", [".yolo-planning", "apps/web/.local/directives", "apps/web/.local/directives/x"]
)
def test_a_packet_that_is_not_accepted_says_why(team: Team, folder: str) -> None:
    team.begin()
    team.file(f"{folder}/HANDOFF.md", "no front matter\n")
    (one,) = told(team)["handoffs"]
    assert one["role"] is None and "front_matter_missing" in one["wrong"][0]


def test_a_linked_planning_tree_stops_the_team_in_one_line(team: Team) -> None:
    team.begin()
    (team.root / ".yolo-planning").rename(team.root / "elsewhere")
    (team.root / ".yolo-planning").symlink_to("elsewhere")
    (line,) = [line for line in text(team).splitlines() if line.startswith("stop: ")]
    assert line.startswith("stop: .yolo-planning: not_regular: it is a symbolic link")


@pytest.mark.proves("resume:8")
def test_a_setting_that_is_not_committed_is_one_line_with_its_whole_name(team: Team) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", ".yolo-planning/config.json")
    team.begin()
    team.config({**THREE, "approval_gates": {"code_review": True}})
    lines = [line for line in text(team).splitlines() if "approval_gates" in line]
    assert lines == [
        "- .yolo-planning/config.json: approval_gates.code_review is declared True,"
        " the evidence says False"
    ]


@pytest.mark.proves("002:73a")
def test_a_test_file_of_the_test_plan_that_nobody_committed_is_named(team: Team) -> None:
    team.begin()
    team.example("test-plan/ok/one_plan.jsonl", "test-plan.jsonl")
    team.once()
    said = "test-plan.jsonl: {} is declared 'written', the evidence says 'not committed'"
    forgotten = said.format("tests/auth/store.test.ts")
    assert forgotten in text(team)
    team.file("tests/auth/store.test.ts", "it()\n")
    assert forgotten in text(team), "written is not committed"
    team.user_commits("test(01): RED phase tests", "tests/auth/store.test.ts")
    assert forgotten not in text(team)
    assert said.format("tests/auth/refresh.test.ts") in text(team)


# --- half-written state, missing commits, rewritten history ---


def lose_the_tree(team: Team) -> None:
    tree = team.git("rev-parse", "HEAD:.yolo-planning/phases")
    unpack(team.root)
    (team.root / ".git/objects" / tree[:2] / tree[2:]).unlink()


def lose_the_commit(team: Team) -> None:
    commit = team.head()
    unpack(team.root)
    (team.root / ".git/objects" / commit[:2] / commit[2:]).unlink()


def break_the_branch(team: Team) -> None:
    (team.root / ".git/refs/heads/main").write_text("x" * 40 + "\n")


def break_head(team: Team) -> None:
    (team.root / ".git/HEAD").write_text("")


def tear_the_configuration(team: Team) -> None:
    team.file(".yolo-planning/config.json", '{"departments": ')


def tear_the_states(team: Team) -> None:
    for name in (
        f"{PHASE}/.execution-state.json",
        ".yolo-planning/state.json",
        f"{PHASE}/.dept-status-backend.json",
    ):
        team.file(name, '{"phase": 1, ')


def links_everywhere(team: Team) -> None:
    shutil.rmtree(team.root / PHASE)
    (team.root / PHASE).symlink_to("/etc")
    (team.root / ".yolo-planning/state.json").unlink(missing_ok=True)
    (team.root / ".yolo-planning/state.json").symlink_to("/etc/passwd")


def a_folder_for_a_log(team: Team) -> None:
    (team.root / ".yolo-planning/context_health.log").mkdir()


def states_of_another_world(team: Team) -> None:
    team.file(
        ".yolo-planning/state.json", '{"ms":7,"ph":"x","tt":[],"st":{},"step":null,"pr":-1}\n'
    )
    team.file(
        f"{PHASE}/.execution-state.json", '{"phase":1,"steps":[],"plans":{},"escalations":7}\n'
    )
    team.user_commits("chore: odd", ".yolo-planning/state.json", f"{PHASE}/.execution-state.json")


@pytest.mark.parametrize("damage", [
    lose_the_tree, lose_the_commit, break_the_branch, break_head, tear_the_configuration, tear_the_states,
    links_everywhere, a_folder_for_a_log, states_of_another_world,
])  # fmt: skip
def test_whatever_is_damaged_there_is_an_answer(team: Team, damage: Callable[[Team], None]) -> None:
    team.begin()
    damage(team)
    first = text(team)
    assert first.startswith("# yolo-fs resume\n") or (damage is break_head and not first)
    assert text(team) == first


@pytest.mark.parametrize(
    ("damage", "reason"),
    [(lose_the_tree, "object_missing"), (tear_the_configuration, "bad_config")],
)
def test_what_could_not_be_looked_at_is_named(
    team: Team, damage: Callable[[Team], None], reason: str
) -> None:
    team.begin()
    damage(team)
    assert f"stop: {reason}: " in text(team)
    assert "next: nobody; first fix what stops" in text(team)


def test_a_torn_configuration_sends_nobody_astray_where_a_sound_one_is_committed(
    team: Team,
) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", ".yolo-planning/config.json")
    team.begin()
    tear_the_configuration(team)
    assert told(team)["next"]["agent"] == "ux-architect"


def test_a_task_whose_commit_was_rewritten_away_is_open_again(team: Team) -> None:
    team.begin()
    team.plan_one()
    team.file("src/auth/tokens.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")
    assert told(team)["in_progress"][0]["tasks"][0]["commit"]
    team.git("reset", "-q", "--hard", "HEAD~1")
    assert told(team)["in_progress"][0]["tasks"][0]["commit"] is None


def test_an_artifact_that_was_taken_out_of_history_is_missed(team: Team) -> None:
    team.begin()
    team.git("rm", "-q", f"{PHASE}/critique.jsonl")
    team.git("commit", "-q", "-m", "chore: oops")
    found = told(team)
    assert found["next"]["agent"] == "critic"
    assert "claims to record critique of phase 01-auth" in found["drift"][0]["what"]


# --- what it leaves ---


def test_resuming_changes_nothing_but_its_own_caches(team: Team) -> None:
    list(team.moments())
    before = contents(team.root)
    resume(str(team.root), keep=False)
    assert contents(team.root) == before
    resume(str(team.root))
    changed = set(contents(team.root).items()) ^ set(before.items())
    assert {os.path.basename(path) for path, _ in changed} == {"index.db", "index.db.seal"}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_place_that_cannot_be_written_is_only_slower(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.begin()
    shutil.rmtree(team.root / ".git/yolo-fs")
    (team.root / ".git/yolo-fs").write_text("in the way")
    first = text(team)
    assert "next: architect does architecture" in first
    assert text(team) == first


def test_who_answers_an_escalation_is_not_told_to_wait_for_it(team: Team) -> None:
    team.begin()
    architecture = min((EXAMPLES / "architecture/ok").iterdir())
    team.artifact("architecture.toon", architecture.read_text())
    team.plan()
    asked = {
        "id": "ESC-01-01-T1",
        "dt": "2026-02-19T08:00:00Z",
        "agent": "dev",
        "reason": "The route needs a CSRF decision",
        "sb": "beyond the authority of the asking role",
        "tgt": "senior",
        "sev": "blocking",
        "st": "open",
        "ev": ["tried x"],
        "rec": "use tokens",
        "att": 1,
    }
    team.artifact("escalation.jsonl", json.dumps(asked) + "\n")
    team.once()
    said = text(team)
    assert " answers ESC-01-01-T1" in said.split("because: ")[0]
    assert "but first" not in said
    assert "- 01-01/T1 waits for ESC-01-01-T1" in said, "the others are told"
