"""A daemon with the settings as shipped goes on through every change of its configuration and of the branch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]
EDITS = 50
EFFORTS = ("thorough", "balanced")


def test_fifty_edits_of_the_configuration_cost_no_artifact(repo: Repo, start: Start) -> None:
    history, daemon = History(repo), start(repo)
    artifacts = mixed(EDITS)
    for edit, made in enumerate(artifacts):
        config = {"effort": EFFORTS[edit % 2]}
        repo.file(f"{PLANNING}/config.json", json.dumps(config))
        until(lambda loads=edit + 1: loaded(daemon) >= loads, "the configuration is loaded")
        repo.write(made)
        daemon.wait_committed([made])
    assert daemon.stop() == 0
    repo.git("checkout", "--", f"{PLANNING}/config.json")
    history.check(artifacts)


def loaded(daemon: Daemon) -> int:
    return sum(event.get("event") == "config.loaded" for event in daemon.mailbox.events)


def test_keys_of_the_user_that_nobody_reads_any_more_are_named_and_stop_nothing(
    repo: Repo, start: Start
) -> None:
    folder = Path(repo.env["XDG_CONFIG_HOME"], "yolo-fs")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"sinks": {"webhook": "https://example.org"}}')
    daemon = start(repo)
    made = artifact("plan", 0)
    repo.write(made)
    daemon.wait_committed([made])
    rejected = [one for one in daemon.mailbox.events if one.get("event") == "config.rejected"]
    assert [one["data"]["at"] for one in rejected] == ["/sinks/webhook"]
    assert "sinks.webhook has no effect" in repo.yolo_fs("doctor", ok=(0, 1)).stderr.decode()
    assert daemon.stop() == 0


def test_a_switch_to_a_branch_without_planning_tree_and_back(repo: Repo, start: Start) -> None:
    repo.git("switch", "-q", "--orphan", "bare")
    repo.commit_file("notes.md", "No planning tree here.\n")
    repo.git("switch", "-q", "main")
    daemon = start(repo)
    for turn, made in enumerate(mixed(5)):
        repo.git("switch", "-q", "bare")
        until(lambda: not (repo.root / PLANNING / "config.json").exists(), "the tree is gone")
        until(lambda loads=2 * turn + 1: loaded(daemon) >= loads, "the change is noticed")
        repo.git("switch", "-q", "main")
        until(lambda loads=2 * turn + 2: loaded(daemon) >= loads, "the change is noticed")
        repo.write(made)
        daemon.wait_committed([made])
        until(lambda path=made.path: path in repo.look("ls-files"), "the index has followed")
    assert daemon.stop() == 0


@pytest.mark.parametrize(
    "leave", [("reset", "-q", "--hard", "bare"), ("switch", "-q", "--orphan", "fresh")]
)
def test_a_branch_is_moved_to_where_no_planning_tree_is(
    repo: Repo, start: Start, leave: tuple[str, ...]
) -> None:
    repo.git("switch", "-q", "--orphan", "bare")
    repo.commit_file("notes.md", "No planning tree here.\n")
    repo.git("switch", "-q", "main")
    daemon = start(repo)
    before, after, last = (artifact("plan", n) for n in range(3))
    repo.write(before)
    daemon.wait_committed([before])
    until(lambda: before.path in repo.look("ls-files"), "the index has followed")
    tip = repo.look("rev-parse", "main").strip()
    repo.git(*leave)
    until(lambda: loaded(daemon) > 0, "the change is noticed")
    if "--orphan" in leave:  # its first commit is a person's
        repo.git("commit", "-q", "--allow-empty", "-m", "chore: a new beginning")
    repo.write(after)
    daemon.wait_committed([after])
    until(lambda: after.path in repo.look("ls-files"), "the index has followed")
    repo.git("switch", "-q", "-C", "main", tip)
    repo.write(last)
    daemon.wait_committed([last])
    assert daemon.stop() == 0
