"""What is remembered of runs names folders and processes: what another has put there leads to none."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repo import Repo, make_repo
from yolo_fs.company.branch import Branch
from yolo_fs.company.runs import new_run, save
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.workspace import own_files
from yolo_fs.workspace.own_files import COMPANY_RUNS
from yolo_fs.workspace.settings import load

SECRET = "the secret of the user"
ACT = {
    "number": 1, "agent": "dev", "department": "backend", "step": "planning", "task": "", "attempt": 1,
    "started": 1700000000.5, "ended": None, "outcome": "", "tokens": 0, "cost_usd": 0.0, "tool": "",
    "key": ["dev"], "before": "-",
}  # fmt: skip
RUN = {
    "id": "R20260101000000ab12", "phase": "01-auth", "intent": "x", "host": "command", "started": 1700000000.5,
    "ended": None, "outcome": "",
}  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = make_repo(tmp_path / "repo", tmp_path)
    made.yolo_fs("init")
    made.yolo_fs("phase", "new", "auth")
    made.yolo_fs("task", "claims")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "stream.log").write_text(SECRET)
    return made


def remember(repo: Repo, run: dict[str, Any], act: dict[str, Any]) -> None:
    """Put a run into the database of a work tree, as whoever made its folder may."""
    own = repo.git_dir / "yolo-fs"
    own.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(own / "state.db")) as state, state:
        state.execute("create table if not exists notes(name text primary key, value text)")
        told = json.dumps({"runs": [{**RUN, **run, "acts": [{**ACT, **act}]}]})
        state.execute("insert or replace into notes values ('company-runs', ?)", (told,))
    (own / "state.db").chmod(0o600)


def test_a_run_that_was_not_ended_is_shown_with_what_was_printed(repo: Repo) -> None:
    remember(repo, {}, {})
    folder = repo.git_dir / "yolo-fs/company/R20260101000000ab12-001-dev"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "stream.log").write_text("hello\n")
    assert b"dev" in repo.yolo_fs("company", "runs").stdout
    assert repo.yolo_fs("company", "log", "dev").stdout == b"hello\n"
    (folder / "stream.log").write_text("")
    assert b"dev printed nothing" in repo.yolo_fs("company", "log", "dev").stdout


@pytest.mark.parametrize(
    ("run", "act"),
    [
        ({"id": "x/../../../../outside/"}, {}),
        ({"id": "R20260101000000ab12/.."}, {}),
        ({}, {"agent": "x/../../../../../outside"}),
        ({}, {"agent": "dev\n"}),
        ({}, {"agent": ["dev"]}),
        ({}, {"number": "1/../../../../../outside/"}),
        ({}, {"number": -1}),
        ({}, {"started": 10**19}),
        ({}, {"started": "now"}),
        ({"started": -(10**19)}, {}),
        ({}, {"ended": "now"}),
        ({}, {"cost_usd": -1}),
        ({}, {"tokens": 1.5}),
        ({}, {"key": "dev"}),
        ({"phase": "../.."}, {}),
        ({"intent": 1}, {}),
        ({"host": None}, {}),
    ],
)
def test_a_run_of_another_form_than_ours_is_refused_by_name(
    repo: Repo, run: dict[str, Any], act: dict[str, Any]
) -> None:
    remember(repo, run, act)
    named = str(act.get("agent", "dev"))
    for words in (("runs",), ("runs", "--json"), ("log", named), ("log", named, "--json")):
        done = repo.yolo_fs("company", *words, ok=(Exit.NOT_HERE,))
        assert b"state.db" in done.stdout + done.stderr
        assert SECRET.encode() not in done.stdout + done.stderr


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["stream.log", "errors.log"])
def test_what_an_agent_printed_is_read_through_no_link(repo: Repo, name: str) -> None:
    remember(repo, {}, {})
    folder = repo.git_dir / "yolo-fs/company/R20260101000000ab12-001-dev"
    folder.mkdir(parents=True, mode=0o700)
    (folder / name).symlink_to(repo.root.parent / "outside/stream.log")
    done = repo.yolo_fs("company", "log", "dev")
    assert SECRET.encode() not in done.stdout


def test_what_is_kept_of_other_runs_stays_word_for_word(repo: Repo) -> None:
    remember(repo, {"of_a_later_version": 1}, {})
    with Repository(str(repo.root)) as repository:
        save(repository, new_run("01-auth", "y", "command"))
        (first, _) = COMPANY_RUNS.read(repository)["runs"]  # type: ignore[index]
    assert first == {**RUN, "of_a_later_version": 1, "acts": [ACT]}


def test_what_this_process_wrote_is_not_checked_again_and_what_another_wrote_is(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []
    with Repository(str(repo.root)) as repository:
        run = new_run("01-auth", "x", "command")
        save(repository, run)
        really = own_files.fits
        monkeypatch.setattr(own_files, "fits", lambda *each: checked.append(each) or really(*each))
        save(repository, run)
        assert not checked, "else each act costs more with each act that was"
        remember(repo, {"acts": 7, "id": "R"}, {"agent": "/"})
        with pytest.raises(YoloError):
            save(repository, run)
    assert checked


def test_settings_that_change_during_a_run_count_from_the_next_commit(repo: Repo) -> None:
    repo.file("a.txt", "a")
    repo.git("add", "a.txt")
    repo.git("commit", "-q", "-m", "chore: begin")
    config = repo.root / ".yolo-planning/config.json"
    with Repository(str(repo.root)) as repository:
        phase = PhaseId("01", "auth")
        branch = Branch(repository, load(str(repo.root)), phase)
        branch.look()
        wanted = json.loads(config.read_text()) | {"company": {"silent_s": 77}}
        config.write_text(json.dumps(wanted) + "\n")
        repo.git("commit", "-q", "--allow-empty", "-m", "chore: go on")
        branch.look()
        assert branch.settings.config.company.silent_s == 77
        assert branch.phase.facts.options.config == branch.settings.config
