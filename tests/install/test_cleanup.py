"""The clean-up goes by an allow-list, for each of its reasons, and never takes an artifact that no
commit has.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import BACKEND, THREE, Team
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.cli.main import run
from yolo_fs.compat.dept_files import dept_cleanup as compat
from yolo_fs.progress.departments import REASONS, REMOVED, UNIQUE, WHEN_COMPLETE

PHASE = ".yolo-planning/phases/01-auth"
ORCHESTRATION = ".phase-orchestration.json"
COORDINATION = (".dept-status-uiux.json", ".handoff-ux-complete", ".dept-lock-uiux")
"""In the order in which they are removed: the lock goes last."""
SIGNED = {
    "ms": "v1",
    "ph": 1,
    "tt": 1,
    "st": "complete",
    "step": "signoff",
    "pr": 100,
    "started": "2026-02-18",
}


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A team with a phase under way, and the files that it coordinates by."""
    made = Team(tmp_path / "repo")
    made.config(
        BACKEND | {"effort": "turbo", "security_audit": False, "yolo_fs": {"state_files": "never"}}
    )
    made.artifact("notes.md", "not an artifact, and nobody else's either\n")
    for name in COORDINATION:
        made.artifact(name, "{}\n")
    made.plan_one()
    return made


def clean(
    team: Team, reason: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(
        ["dept", "cleanup", "--phase", "1", "--reason", reason, "-C", str(team.root), "--json"]
    )
    return code, json.loads(capsys.readouterr().out)


def names(team: Team) -> set[str]:
    return set(os.listdir(team.root / PHASE))


def complete(team: Team) -> None:
    """Bring the phase to its end."""
    team.example("architecture/ok/backend.toon", "architecture.toon")
    task = {
        "id": "T1",
        "a": "Do it",
        "f": ["src/a.ts"],
        "v": "look",
        "done": "it is",
        "spec": "Just do it",
    }
    header = {
        "p": "01",
        "n": "01",
        "t": "A plan",
        "w": 1,
        "d": [],
        "obj": "Something",
        "eff": "turbo",
    }
    team.artifact("01-01.plan.jsonl", "".join(json.dumps(one) + "\n" for one in (header, task)))
    team.file("src/a.ts", "export {}\n")
    done = team.user_commits("feat(01-01): T1 do it", "src/a.ts")
    summary = {
        "p": "01", "n": "01", "t": "A plan", "s": "complete", "dt": "2026-02-19", "tc": 1, "tt": 1, "ch": [done],
        "fm": ["src/a.ts"], "dv": [], "built": ["it"], "tst": "no_tests",
    }  # fmt: skip
    team.artifact("01-01.summary.jsonl", json.dumps(summary) + "\n")
    team.artifact(
        "code-review.jsonl",
        json.dumps({"plan": "01-01", "r": "approve", "cycle": 1, "dt": "2026-02-19"}) + "\n",
    )
    team.file(".yolo-planning/ROADMAP.md", "# Roadmap\n")
    team.file(".yolo-planning/state.json", json.dumps(SIGNED) + "\n")
    team.once()


def test_a_phase_that_is_not_complete_loses_nothing_and_says_where_it_is(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(team)

    code, said = clean(team, "complete", capsys)

    assert (code, said["ok"], said["data"]) == (1, False, {"removed": [], "left": []})
    assert "phase 01-auth is not complete: it is at step " in said["findings"][0]["message"]
    assert names(team) == before


@pytest.mark.parametrize("reason", ["failure", "timeout"])
def test_who_gives_up_cleans_at_any_step(
    team: Team, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(team)

    code, said = clean(team, reason, capsys)

    assert (code, said["data"]) == (0, {"removed": list(COORDINATION), "left": []})
    assert names(team) == before - set(COORDINATION)


@pytest.mark.proves("002:286e")
def test_a_complete_phase_is_cleaned_and_its_resolutions_too(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    complete(team)
    team.artifact(".escalation-resolution-E1.json", "{}\n")
    before = names(team)

    code, said = clean(team, "complete", capsys)

    removed = {*COORDINATION, ".escalation-resolution-E1.json"}
    assert (code, set(said["data"]["removed"]), said["findings"]) == (0, removed, [])
    assert names(team) == before - removed


def test_a_second_clean_up_finds_nothing_and_is_done(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    clean(team, "failure", capsys)

    assert clean(team, "failure", capsys)[1]["data"] == {"removed": [], "left": []}


# --- the one artifact on the list ------------------------------------------------------------------------------------


@pytest.fixture
def orchestrated(team: Team) -> Team:
    """The same team, whose daemon has committed an orchestration."""
    team.config(THREE | {"yolo_fs": {"state_files": "always"}})
    team.once()
    assert ORCHESTRATION in team.git("ls-files", PHASE)
    return team


def test_an_orchestration_that_the_branch_has_goes(
    orchestrated: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = clean(orchestrated, "failure", capsys)

    assert ORCHESTRATION in said["data"]["removed"]
    assert ORCHESTRATION not in names(orchestrated)


@pytest.mark.parametrize("text", ["{}\n", "half a li"])
def test_an_orchestration_with_a_content_of_its_own_stays(
    orchestrated: Team, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrated.artifact(ORCHESTRATION, text)

    code, said = clean(orchestrated, "failure", capsys)

    assert (code, said["data"]["left"]) == (0, [{"file": ORCHESTRATION, "why": UNIQUE}])
    assert (orchestrated.root / PHASE / ORCHESTRATION).read_text() == text


def test_the_door_of_the_reference_leaves_it_as_well(
    orchestrated: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrated.artifact(ORCHESTRATION, "{}\n")

    assert compat(["--phase-dir", str(orchestrated.root / PHASE), "--reason", "failure"]) == 0

    assert f"WARNING: not removed: {ORCHESTRATION}: {UNIQUE}" in capsys.readouterr().err
    assert ORCHESTRATION in names(orchestrated)


def test_a_daemon_that_comes_later_does_not_write_it_again(
    orchestrated: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    clean(orchestrated, "failure", capsys)
    head = orchestrated.head()

    orchestrated.once()

    assert (orchestrated.head(), ORCHESTRATION in names(orchestrated)) == (head, False)


# --- what may never go -----------------------------------------------------------------------------------------------


def test_no_other_artifact_is_on_the_list(
    tmp_path: Path, team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        row.file.format(dept="", plan="01-07", NN="01", department="backend") for row in ARTIFACTS
    }
    for name in files - {ORCHESTRATION}:
        team.artifact(name, "{}\n")

    for reason in ("failure", "timeout"):
        clean(team, reason, capsys)

    assert files - {ORCHESTRATION} <= names(team)


def test_what_is_neither_file_nor_lock_stays_and_is_told(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    (team.root / PHASE / ".handoff-frontend-complete").mkdir()

    _, said = clean(team, "failure", capsys)

    assert said["data"]["left"] == [
        {"file": ".handoff-frontend-complete", "why": "it is a directory"}
    ]


def test_a_lock_that_somebody_holds_stays_and_is_told(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    with _held(team.root / PHASE / ".dept-lock-uiux"):
        _, said = clean(team, "timeout", capsys)

    assert [one["file"] for one in said["data"]["left"]] == [".dept-lock-uiux"]


@contextmanager
def _held(path: Path) -> Iterator[None]:
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_people_read_what_went_and_what_stayed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert (
        run(["dept", "cleanup", "--phase", "01-auth", "--reason", "failure", "-C", str(team.root)])
        == 0
    )

    assert capsys.readouterr().out.splitlines() == [f"removed {name}" for name in COORDINATION]


def test_the_reasons_are_those_of_the_protocol() -> None:
    assert REASONS == ("complete", "failure", "timeout")
    assert (*REMOVED, *WHEN_COMPLETE) == (
        ".dept-status-*.json", ".handoff-*", ".dept-lock-*", ".phase-orchestration.json",
        ".escalation-resolution-*.json",
    )  # fmt: skip
