"""A phase as one commit: the work tree, the branch and the evidence are what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.workspace.settings import load

PLAN = (
    {"p": "01", "n": "01", "t": "Login", "w": 1, "d": [], "obj": "Log in",
     "mh": {"tr": ["x"], "ar": [], "kl": []}},
    {"id": "T1", "tp": "auto", "a": "do it", "f": ["src/a.py"], "v": "true", "done": "ok"},
)  # fmt: skip
SUMMARY = {
    "p": "01", "n": "01", "t": "Login", "s": "complete", "dt": "2026-02-19", "tc": 1, "tt": 1,
    "fm": ["src/a.py"], "dv": [], "built": ["login"], "tst": "red_green",
}  # fmt: skip


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """A phase with a plan that is done, above a commit of before."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.file("README.md", "shop\n")
    team.user_commits("docs(repo): begin", "README.md")
    team.begin()
    team.artifact("01-01.plan.jsonl", "".join(json.dumps(line) + "\n" for line in PLAN))
    team.once()
    team.file("src/a.py", "a = 1\n")
    done = team.user_commits("feat(01-01): T1 do it", "src/a.py")
    team.artifact("01-01.summary.jsonl", json.dumps(SUMMARY | {"ch": [done[:12]]}) + "\n")
    team.once()
    return team


def asked(
    team: Team, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*words, "--json", "-C", str(team.root)]) == code, capsys.readouterr()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return dict(found["data"] or {})


def plan_of(team: Team) -> PlanStatus:
    with Repository(str(team.root)) as repository:
        history = FactsReader(repository, load(repository.root))
        (facts,) = history.facts(repository.head().tip)
        (plan,) = plan_progress(facts)
    return plan


def test_without_write_nothing_is_changed(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    before = team.git("for-each-ref"), team.git("status", "--porcelain")
    told = asked(team, capsys, "squash", "auth")
    assert (told["commit"], told["branch"]) == ("", "squashed/01-auth")
    assert told["base"] == team.git("rev-list", "--reverse", "HEAD").split()[0]
    assert len(told["squashed"]["source"]) == 1 and told["squashed"]["team"] >= 4
    assert before == (team.git("for-each-ref"), team.git("status", "--porcelain"))


def test_one_commit_has_the_same_tree_is_verified_and_bears_out_the_same_plan(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    tip, status = team.head(), team.git("status", "--porcelain")
    made = asked(team, capsys, "squash", "1", "--write")
    commit = made["commit"]
    assert team.git("rev-parse", "squashed/01-auth") == commit
    assert team.git("rev-list", "--count", f"{made['base']}..{commit}") == "1"
    assert team.git("diff", tip, commit) == ""
    assert (team.head(), team.git("status", "--porcelain")) == (tip, status)
    assert "* feat(01-01): T1 do it" in team.git("log", "-1", "--format=%B", commit)
    assert asked(team, capsys, "verify", commit)["faults"] == []
    assert plan_of(team).standing is PlanStanding.COMPLETE
    team.git("checkout", "-q", "squashed/01-auth")
    team.git("branch", "-D", "main")
    team.git("reflog", "expire", "--expire=now", "--all")
    team.git("gc", "-q", "--prune=now")
    plan = plan_of(team)
    assert (plan.standing, plan.missing) == (PlanStanding.COMPLETE, ())
    team.once()
    assert asked(team, capsys, "verify")["faults"] == []


def test_a_name_that_is_no_branch_is_refused_before_anything_is_made(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    before = team.git("for-each-ref"), team.git("count-objects", "-v")
    for name in ("-x", "HEAD", f"x {team.head()}\nupdate refs/heads/y"):
        for more in ((), ("--write",)):
            asked(team, capsys, "squash", "--branch", name, *more, code=Exit.USAGE)
    assert (team.git("for-each-ref"), team.git("count-objects", "-v")) == before


def test_a_clone_that_ends_within_the_phase_is_told_and_gets_no_branch_without_a_past(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phase_began = int(team.git("rev-list", "--count", "HEAD")) - 1
    for depth in (1, phase_began):
        clone = tmp_path / f"depth {depth}"
        team.git("clone", "-q", f"--depth={depth}", f"file://{team.root}", str(clone))
        assert run(["squash", "1", "--write", "-C", str(clone)]) == Exit.NOT_HERE
        assert "object_missing" in (told := capsys.readouterr().err) and "--unshallow" in told
        assert "squashed" not in team.git("-C", str(clone), "for-each-ref")


def test_a_graft_does_not_make_a_part_of_the_phase_pass_for_the_whole(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    without = asked(team, capsys, "squash", "1")
    (team.root / ".git/info/grafts").write_text(f"{team.head()}\n")
    assert asked(team, capsys, "squash", "1") == without


def test_what_is_not_of_the_phase_is_named_and_a_branch_is_never_replaced(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("notes.md", "mine\n")
    mine = team.user_commits("docs(repo): notes", "notes.md")
    told = asked(team, capsys, "squash", "--write")
    assert told["squashed"]["others"] == [mine]
    asked(team, capsys, "squash", "--write", code=Exit.FINDINGS)
    assert team.git("rev-parse", "squashed/01-auth") == told["commit"]
    asked(team, capsys, "squash", "--branch", "review", "-m", "Login", "--write", code=Exit.USAGE)
    asked(team, capsys, "squash", "--branch", "review", "-m", "feat(01): log in", "--write")
    assert team.git("log", "-1", "--format=%s", "review") == "feat(01): log in"
