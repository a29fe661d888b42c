"""Two work trees give two phases the same number: that is said before and after they meet, and a commit of the one
never counts for the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

PHASES = ".yolo-planning/phases"
BILLING, SEARCH = f"{PHASES}/02-billing", f"{PHASES}/02-search"


def typed(root: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([*words, "--json", "-C", str(root)])
    return code, json.loads(capsys.readouterr().out)


def plan(file: str) -> str:
    header = {
        "p": "02", "n": "01", "t": "Work", "w": 1, "d": [], "obj": "o",
        "mh": {"tr": ["x"], "ar": [{"p": file, "pv": "s", "c": ""}], "kl": []},
    }  # fmt: skip
    task = {"id": "T1", "tp": "auto", "a": "do it", "f": [file], "v": "true", "done": "ok"}
    return f"{json.dumps(header)}\n{json.dumps(task)}\n"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path / "work")
    made.file(f"{PHASES}/01-login/.gitkeep", "")
    made.user_commits("chore(repo): begin", ".")
    made.git("branch", "two")
    return made


@pytest.fixture
def merged(team: Team, tmp_path: Path) -> Team:
    """Both phases on one branch, each with a plan 02-01; a commit of Billing's task."""
    other = tmp_path / "other"
    team.git("worktree", "add", "-q", str(other), "two")
    team.file(f"{BILLING}/02-01.plan.jsonl", plan("src/billing.ts"))
    team.once()
    (other / SEARCH).mkdir(parents=True)
    (other / SEARCH / "02-01.plan.jsonl").write_text(plan("src/search.ts"))
    assert run(["run", "--once", "-q", "-C", str(other)]) == Exit.DONE
    team.git("merge", "-q", "-m", "Merge branch 'two'", "two")
    team.file("src/billing.ts", "1\n")
    team.user_commits("feat(02-01): T1 bill", "src/billing.ts")
    return team


@pytest.mark.parametrize("where", ["committed on a branch", "only in another work tree"])
def test_a_number_that_is_given_elsewhere_is_warned_of_when_it_is_given(
    team: Team, tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    team.git("worktree", "add", "-q", str(other), "two")
    typed(other, "phase", "new", "billing", capsys=capsys)
    if where.startswith("committed"):
        (other / BILLING / ".gitkeep").write_text("")
        for words in (("add", "-f", "."), ("commit", "-qm", "chore: begin phase 2")):
            team.git("-C", str(other), *words)
        team.git("worktree", "remove", "--force", str(other))
    code, told = typed(team.root, "phase", "new", "search", capsys=capsys)
    assert (code, told["data"]["path"]) == (Exit.DONE, SEARCH)
    (finding,) = told["findings"]
    assert finding["level"] == "warning" and "02-billing" in finding["message"]


def test_a_phase_of_another_work_tree_keeps_its_number_here(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    team.git("worktree", "add", "-q", str(other), "two")
    for slug in ("billing", "search"):
        typed(other, "phase", "new", slug, capsys=capsys)
    code, told = typed(team.root, "phase", "new", "search", capsys=capsys)
    assert (code, told["data"]["path"]) == (Exit.DONE, f"{PHASES}/03-search")
    assert told["findings"] == []


def test_a_commit_counts_for_the_phase_whose_files_it_changes(
    merged: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    run(["status", "-C", str(merged.root)])
    told = capsys.readouterr().out
    assert told.count("1 of 1 tasks: Work") == told.count("0 of 1 tasks: Work") == 1, told
    assert told.index("1 of 1 tasks") < told.index("phase 02-search") < told.index("0 of 1 tasks")
    code, _ = typed(
        merged.root, "task", "claim", "02-01/T1", "--as", "dev-9", "--file", "src/search.ts",
        capsys=capsys,
    )  # fmt: skip
    assert code == Exit.DONE


@pytest.mark.parametrize("verb", ["validate", "status", "doctor"])
def test_it_is_named_wherever_one_looks(
    merged: Team, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    run([verb, "-C", str(merged.root)])
    told = "".join(capsys.readouterr())
    assert "02-search" in told and "02-billing has number 02 as well" in told


def test_the_number_alone_names_neither(merged: Team, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = typed(merged.root, "workflow", "next", "--phase", "2", capsys=capsys)
    assert code == Exit.USAGE and told["findings"][0]["reason"] == "duplicate_id"
    assert typed(merged.root, "workflow", "next", "--phase", "02-search", capsys=capsys)[0] != (
        Exit.USAGE
    )
