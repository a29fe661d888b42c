"""The clean-up goes by an allow-list, for each of its reasons, and never takes an artifact that no
commit has.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.teams import BACKEND, THREE, Team
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.compat.dept_files import dept_cleanup
from yolo_fs.progress.departments import REASONS, REMOVED, UNIQUE, WHEN_COMPLETE

PHASE = ".yolo-planning/phases/01-auth"
ORCHESTRATION = ".phase-orchestration.json"
COORDINATION = (".dept-status-uiux.json", ".handoff-ux-complete", ".dept-lock-uiux")
"""In the order in which they are removed: the lock goes last."""


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


class Said(NamedTuple):
    """What the script printed."""

    removed: list[str]
    left: dict[str, str]
    """Name → why it was left."""


def clean(team: Team, reason: str, capsys: pytest.CaptureFixture[str]) -> Said:
    capsys.readouterr()
    assert dept_cleanup(["--phase-dir", str(team.root / PHASE), "--reason", reason]) == 0
    out, err = capsys.readouterr()
    left = [line.split(": ", 3)[2:] for line in err.splitlines()]
    return Said(
        [line.split(": ")[1] for line in out.splitlines() if line.startswith("  removed")],
        dict(left),
    )


def names(team: Team) -> set[str]:
    return set(os.listdir(team.root / PHASE))


@pytest.mark.parametrize("reason", ["failure", "timeout"])
def test_who_gives_up_cleans_at_any_step(
    team: Team, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(team)

    assert clean(team, reason, capsys) == (list(COORDINATION), {})
    assert names(team) == before - set(COORDINATION)


@pytest.mark.proves("002:286e")
def test_a_complete_phase_is_cleaned_and_its_resolutions_too(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.artifact(".escalation-resolution-E1.json", "{}\n")
    before = names(team)

    said = clean(team, "complete", capsys)

    removed = {*COORDINATION, ".escalation-resolution-E1.json"}
    assert (set(said.removed), said.left) == (removed, {})
    assert names(team) == before - removed


def test_a_second_clean_up_finds_nothing_and_is_done(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    clean(team, "failure", capsys)

    assert clean(team, "failure", capsys) == ([], {})


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
    assert ORCHESTRATION in clean(orchestrated, "failure", capsys).removed
    assert ORCHESTRATION not in names(orchestrated)


@pytest.mark.parametrize("text", ["{}\n", "half a li"])
def test_an_orchestration_with_a_content_of_its_own_stays(
    orchestrated: Team, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrated.artifact(ORCHESTRATION, text)

    assert clean(orchestrated, "failure", capsys).left == {ORCHESTRATION: UNIQUE}
    assert (orchestrated.root / PHASE / ORCHESTRATION).read_text() == text


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

    said = clean(team, "failure", capsys)

    assert said.left == {".handoff-frontend-complete": "it is a directory"}


def test_a_lock_that_somebody_holds_stays_and_is_told(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    with _held(team.root / PHASE / ".dept-lock-uiux"):
        said = clean(team, "timeout", capsys)

    assert list(said.left) == [".dept-lock-uiux"]


@contextmanager
def _held(path: Path) -> Iterator[None]:
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_the_reasons_are_those_of_the_protocol() -> None:
    assert REASONS == ("complete", "failure", "timeout")
    assert (*REMOVED, *WHEN_COMPLETE) == (
        ".dept-status-*.json", ".handoff-*", ".dept-lock-*", ".phase-orchestration.json",
        ".escalation-resolution-*.json",
    )  # fmt: skip
