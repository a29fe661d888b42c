"""State files are written by the daemon and by the agents of a team, and nobody's work is lost."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.state_files import States
from yolo_fs.system import failpoint
from yolo_fs.workspace.settings import load


@pytest.mark.parametrize("moment", ["states.begun", "store.begun", "store.written"])
def test_what_somebody_writes_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    settings_of_user = tmp_path / "config/yolo-fs/config.json"
    settings_of_user.parent.mkdir(parents=True)
    settings_of_user.write_text('{"policy": {"state_files": "always"}}')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    team = Team(tmp_path / "work")
    team.config(THREE)
    *_, _ = team.moments()
    team.config(THREE)
    with Repository(str(team.root)) as repository:
        settings, tip = load(repository.root), repository.head().tip
        gathered = FactsReader(repository, settings)
        first = States(repository, settings, gathered).write_next(tip, ())
        assert first
        file = team.root / first
        wanted = file.read_bytes()
        team.git("checkout", "--", first)
        passed = []

        def write(stage: str) -> None:
            if stage == moment and not passed:
                passed.append(stage)
                file.write_text('{"by": "an agent"}\n')

        monkeypatch.setattr(failpoint, "reach", write)
        states = States(repository, settings, gathered)
        assert states.write_next(tip, ()) != first
        assert passed
        assert file.read_text() == '{"by": "an agent"}\n'

        team.git("checkout", "--", first)
        assert states.write_next(tip, ()) == first
        assert file.read_bytes() == wanted
    assert not list(team.root.rglob("*.yolo-tmp.*"))


def test_a_phase_that_somebody_moved_away_gets_no_state_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.plan_one()
    phases = team.root / ".yolo-planning/phases"
    (phases / "01-auth").rename(phases / "01-login")
    with Repository(str(team.root)) as repository:
        settings = load(repository.root)
        states = States(repository, settings, FactsReader(repository, settings))
        with contextlib.closing(states):
            states.write_next(repository.head().tip, [".yolo-planning/state.json"])
    assert not (phases / "01-auth").exists()
