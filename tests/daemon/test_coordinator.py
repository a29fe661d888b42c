"""Why an artifact waits or is held, where no other test says so."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason
from yolo_fs.daemon import health as daemon_lock
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.repository import Repository
from yolo_fs.scanning.pipeline import Pipeline
from yolo_fs.system import IS_LINUX
from yolo_fs.system.files import Stamp
from yolo_fs.workspace.settings import load

LINE = '{"id":"C1","cat":"gap","sev":"major","q":"Who rotates keys?","ctx":"RS256","sug":"Name an owner","st":"open"}\n'
ARTIFACT = ".yolo-planning/phases/01-auth/critique.jsonl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    (tmp_path / ARTIFACT).parent.mkdir(parents=True)
    write_at_rest(tmp_path / ARTIFACT)
    return tmp_path


def write_at_rest(path: Path) -> None:
    """Write a file that is old enough for nobody to be writing it, also where only time tells."""
    path.write_text(LINE)
    os.utime(path, (0, 0))


def configure(root: Path, **values: Any) -> None:
    (root / ".yolo-planning/config.json").write_text(json.dumps(values))


def reasons(root: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert run(["status", "--json", "-C", str(root)]) == 0
    return [each["reason"] for each in json.loads(capsys.readouterr().out)["data"]["candidates"]]


def once(root: Path) -> None:
    assert run(["run", "--once", "-q", "-C", str(root)]) == 0


def test_a_valid_artifact_is_queued_until_somebody_commits_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reasons(root, capsys) == ["queued"]
    once(root)
    assert reasons(root, capsys) == ["unchanged"]


@pytest.mark.skipif(not IS_LINUX, reason="only a lease tells that a process has a file open")
def test_a_file_that_a_process_has_open_is_being_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (root / ARTIFACT).open("a"):
        assert reasons(root, capsys) == ["being_written"]
    assert reasons(root, capsys) == ["queued"]


def test_what_the_user_staged_beside_a_committed_artifact_is_said(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once(root)
    (root / ARTIFACT).write_text(LINE.replace("major", "minor"))
    subprocess.run(["git", "-C", str(root), "add", "--", ARTIFACT], check=True)
    (root / ARTIFACT).write_text(LINE)
    assert reasons(root, capsys) == ["index_diverged"]


def test_what_the_user_staged_is_told_where_others_are_committed_with_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ARTIFACT).write_text(LINE.replace("major", "minor"))
    subprocess.run(["git", "-C", str(root), "add", "--", ARTIFACT], check=True)
    (root / ARTIFACT).write_text(LINE)
    other = root / ARTIFACT.replace("01-auth", "02-keys")
    other.parent.mkdir()
    other.write_text(LINE)
    assert run(["run", "--once", "-C", str(root)]) == 0
    told = capsys.readouterr().err
    assert told.count("artifact.committed") == 2
    assert told.count("index.diverged") == 1


def test_without_auto_commit_nothing_is_committed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(root, auto_commit=False)
    once(root)
    assert reasons(root, capsys) == ["auto_commit_off"]


def test_a_budget_of_commits_is_kept(root: Path) -> None:
    configure(root, yolo_fs={"commits_per_minute": 1})
    write_at_rest((root / ARTIFACT).with_name("fe-critique.jsonl"))
    told: list[tuple[str, str]] = []
    with Repository(str(root)) as repository:
        Path(repository.own_dir).mkdir()
        coordinator = Coordinator(
            repository, load(str(root)), lambda event, path, _: told.append((event, path))
        )
        list(coordinator.scan())
        found = [
            getattr(glance.seen.verdict, "reason", None) for glance in coordinator.known.values()
        ]
        coordinator.close()
    assert sorted(found, key=str) == [Reason.COMMIT_BUDGET, Reason.UNCHANGED]
    assert [event for event, _ in told] == ["artifact.committed", "artifact.held"]


@pytest.mark.parametrize("is_valid", [True, False])
def test_a_large_file_is_judged_after_the_others_are_committed(
    root: Path, *, is_valid: bool
) -> None:
    large = root / ARTIFACT
    small = (root / ARTIFACT).with_name("fe-critique.jsonl")
    write_at_rest(small)
    lines = (LINE.replace("C1", f"C{number}") for number in range(1, 4_000))
    large.write_text("".join(lines) if is_valid else '{"id":"x","id":"y"}\n' * 20_000)
    os.utime(large, (0, 0))
    told: list[str] = []
    with Repository(str(root)) as repository:
        Path(repository.own_dir).mkdir()

        def hear(event: str, path: str, _: Any) -> None:
            told.append(f"{event} {path.rpartition('/')[2]}")

        coordinator = Coordinator(repository, load(str(root)), hear)
        list(coordinator.scan())
        coordinator.close()
    event = "committed" if is_valid else "rejected"
    expected = ["artifact.committed fe-critique.jsonl", f"artifact.{event} critique.jsonl"]
    assert [each for each in told if "critique" in each] == expected


def test_what_was_held_and_is_committed_by_now_takes_no_memory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.daemon.coordinator._KEPT_AFTER_S", 0.0)
    merging = root / ".git/MERGE_HEAD"
    with Repository(str(root)) as repository:
        Path(repository.own_dir).mkdir()
        coordinator = Coordinator(repository, load(str(root)), lambda *_: None)
        merging.write_text("0123456789" * 4 + "\n")
        assert not coordinator.process([ARTIFACT])
        assert [*coordinator._passing] == [*coordinator._kept] == [ARTIFACT]
        merging.unlink()
        assert len(coordinator.process([ARTIFACT])) == 1
        coordinator.close()

    assert not coordinator._passing and not coordinator._kept


def test_a_defect_of_ours_costs_one_path_and_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object) -> None:
        raise ZeroDivisionError

    told: list[str] = []
    monkeypatch.setattr(Pipeline, "look", break_down)
    with Repository(str(root)) as repository:
        coordinator = Coordinator(repository, load(str(root)), lambda event, *_: told.append(event))
        list(coordinator.scan())
        (verdict,) = coordinator.unsettled.values()
        coordinator.close()
    assert getattr(verdict, "reason", None) is Reason.INTERNAL_ERROR
    assert told == ["daemon.defect", "artifact.held"]


@pytest.fixture
def coordinator(root: Path) -> Iterator[Coordinator]:
    """Return what has committed the artifact, in a repository with a commit before it."""
    git(root, "commit", "-q", "--allow-empty", "-m", "chore: begin")
    with Repository(str(root)) as repository:
        made = Coordinator(repository, load(str(root)), lambda *_: None)
        while not made.known or made.unsettled:  # git has just written the index
            list(made.scan())
        assert made.sync_index()
        yield made
        made.close()


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True)


def undone(coordinator: Coordinator) -> list[str]:
    return [
        path
        for path, verdict in coordinator.unsettled.items()
        if getattr(verdict, "reason", None) is Reason.UNDONE_BY_USER
    ]


def test_what_the_user_takes_off_the_branch_alone_is_seen_however_old_the_file_is(
    root: Path, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stamp, "is_racy", lambda *_: False)  # as if it had been written long ago
    list(coordinator.scan())

    git(root, "reset", "-q", "--soft", "HEAD~1")
    assert coordinator.was_moved_by_others()
    list(coordinator.scan())

    assert undone(coordinator) == [ARTIFACT]
    assert not coordinator.was_moved_by_others()


def test_a_moved_branch_stays_moved_until_everything_was_looked_at(
    root: Path, coordinator: Coordinator
) -> None:
    other = ".yolo-planning/phases/01-auth/gaps.jsonl"
    git(root, "reset", "-q", "--soft", "HEAD~1")
    (root / other).write_text("no artifact yet")
    coordinator.process([other])  # sees the branch first, and no other path

    assert coordinator.was_moved_by_others()
    list(coordinator.scan())
    assert undone(coordinator) == [ARTIFACT]


@pytest.mark.parametrize("step", range(3))
def test_what_is_written_and_moved_while_everything_is_looked_at_is_not_passed_over(
    root: Path, coordinator: Coordinator, step: int
) -> None:
    others = [ARTIFACT.replace("critique", name) for name in ("fe-critique", "gaps")]
    write_at_rest(root / others[0])
    for number, _ in enumerate(coordinator.scan()):
        if number == step:
            (root / others[1]).write_text("no artifact yet")
            coordinator.process(others)  # one is committed, one is not
            assert not coordinator.was_moved_by_others()
            git(root, "commit", "-q", "--allow-empty", "-m", "chore: meanwhile")

    assert {*others, ARTIFACT} == coordinator.known.keys()
    assert [*coordinator.unsettled] == others[1:]
    assert coordinator.was_moved_by_others()  # some files may be those of the branch before


def test_a_commit_of_ours_is_no_move_by_others(root: Path, coordinator: Coordinator) -> None:
    write_at_rest((root / ARTIFACT).with_name("fe-critique.jsonl"))
    coordinator.process([".yolo-planning/phases/01-auth/fe-critique.jsonl"])

    assert not coordinator.unsettled
    assert not coordinator.was_moved_by_others()


def test_a_network_file_system_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(daemon_lock, "filesystem_type", lambda _: "nfs4")
    assert run(["run", "--once", "-C", str(root)]) == 3
    assert "network_filesystem" in capsys.readouterr().err
