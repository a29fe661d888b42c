"""How many processes a command starts: each costs what a tenth of a warm command may take."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.edges import PROC
from yolo_fs.edges.git.repository import Repository
from yolo_fs.services.history import index
from yolo_fs.services.moments.moment import StatusObserver

BUDGETS = {
    "validate .yolo-planning": 1,
    "may dev decide architecture": 0,
    "gate why all-depts --phase 1": 0,
    "resume": 0,
    "status": 0,
}
"""Command → the most processes that it may start where nothing waits for a commit, and what was
read of the history is kept. A number may only be lowered.
"""

_started: list[list[str]] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _started is not None:
        words = [str(word) for word in arguments[1]]
        if os.path.isdir(PROC) or words[0] not in ("ps", "lsof"):  # nobody else knows there
            _started.append(words)


sys.addaudithook(_note)


@contextlib.contextmanager
def processes() -> Iterator[list[list[str]]]:
    """Gather the processes that are started meanwhile."""
    global _started
    _started = []
    try:
        yield _started
    finally:
        _started = None


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    team = Team(tmp_path_factory.mktemp("budgets") / "work")
    *_, _last = team.moments()
    asked(team, "resume")  # leaves what it has read
    return team


def asked(team: Team, line: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run([*line.split(), "-C", str(team.root)])
    return out.getvalue()


@pytest.mark.proves("resume:9")
@pytest.mark.parametrize("line", BUDGETS)
def test_a_command_starts_no_more_processes_than_its_budget(team: Team, line: str) -> None:
    with processes() as started:
        assert asked(team, line)
    least = min(1, BUDGETS[line])  # one that is counted shows that they are
    assert least <= len(started) <= BUDGETS[line], "\n".join(" ".join(one[-6:]) for one in started)


@pytest.mark.parametrize("line", [line for line, most in BUDGETS.items() if not most])
def test_what_was_read_of_a_young_history_need_not_be_kept(team: Team, line: str) -> None:
    (team.root / ".git" / "yolo-fs" / index.FILE).unlink(missing_ok=True)
    with processes() as started:
        assert asked(team, line)
    assert started == []


def test_the_number_of_processes_does_not_grow_with_the_artifacts(team: Team) -> None:
    with processes() as few:
        before = committed(team)
    for number in range(10, 40):
        team.example("research/ok/findings.jsonl", "research.jsonl", f"{number}-later")
    with processes() as waiting:
        asked(team, "resume")
    team.once()
    asked(team, "resume")
    with processes() as many:
        assert committed(team) == before + 30
    assert len(many) == len(few)
    for helper in ("check-attr", "check-ignore"):
        assert len([one for one in waiting if helper in one]) == 1


def test_a_board_that_looks_again_starts_no_process_however_the_branch_went_on(team: Team) -> None:
    with Repository(str(team.root)) as repository:
        observer = StatusObserver(repository)
        observer.look()
        before = repository.head().tip
        team.example("research/ok/findings.jsonl", "research.jsonl", "50-looked")
        team.once()
        team.file("README.md", "more\n")
        team.user_commits("docs(readme): more", "README.md")
        with processes() as started:
            assert observer.look().found.head.tip == repository.head().tip != before
        observer.close()
    assert started == []


def committed(team: Team) -> int:
    count = json.loads(asked(team, "status --json"))["data"]["counts"]["committed"]
    assert isinstance(count, int)
    return count
