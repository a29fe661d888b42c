"""A file that nobody reads, for its name only nearly is an artifact's, or for it lies elsewhere, is
told wherever agents look.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

import pytest

from tests.e2e.daemon import Daemon, Event
from tests.e2e.repo import Repo

FOLDER = ".yolo-planning/phases/01-auth"
WRONG, RIGHT = f"{FOLDER}/critiques.jsonl", f"{FOLDER}/critique.jsonl"
LINE = '{"id":"C1","cat":"gap","sev":"major","q":"Why?","ctx":"x","sug":"y","st":"open"}\n'


@pytest.mark.parametrize("is_there_first", [True, False])
def test_the_daemon_tells_of_it_once_and_goes_on_when_it_is_renamed(
    repo: Repo, start: Callable[[Repo], Daemon], is_there_first: bool
) -> None:
    (repo.root / FOLDER).mkdir(parents=True)
    if is_there_first:
        repo.file(WRONG, LINE)
    daemon = start(repo)
    if not is_there_first:
        repo.file(WRONG, LINE)
    daemon.mailbox.wait(lambda events: bool(of(events, WRONG)))
    (repo.root / WRONG).rename(repo.root / RIGHT)
    daemon.mailbox.wait(
        lambda events: any(each["event"] == "artifact.committed" for each in of(events, RIGHT))
    )
    [refused] = of(daemon.mailbox.events, WRONG)
    [finding] = refused["data"]["findings"]
    assert refused["event"] == "artifact.rejected"
    assert (finding["reason"], finding["expected"]) == ("unknown_name", RIGHT)
    assert repo.status()["counts"]["rejected"] == 0


def of(events: Sequence[Event], path: str) -> list[Event]:
    return [each for each in events if each.get("path") == path]


@pytest.mark.parametrize("words", [("status",), ("resume",), ("doctor",), ("explain", WRONG)])
def test_each_look_names_it_once_with_the_name_that_was_meant(
    repo: Repo, words: tuple[str, ...]
) -> None:
    repo.file(WRONG, LINE)
    done = repo.yolo_fs(*words, ok=(0, 1))
    said = (done.stdout + done.stderr).decode()
    assert f"expected {RIGHT}" in said
    assert said.count("Rename the file. If that one exists already, add the content") == 1


def test_what_a_person_has_committed_under_such_a_name_is_no_refused_artifact(repo: Repo) -> None:
    repo.commit_file(WRONG, LINE)
    assert repo.status()["counts"]["rejected"] == 0


def test_an_artifact_outside_the_planning_tree_is_told_where_it_belongs(repo: Repo) -> None:
    (repo.root / FOLDER).mkdir(parents=True)
    for path in ("critique.jsonl", "docs/01-02.plan.jsonl"):
        repo.file(path, LINE)
        said = repo.yolo_fs("validate", path, ok=(0, 1)).stdout.decode()
        name = path.rpartition("/")[2]
        assert f"expected .yolo-planning/phases/NN-SLUG/{name}. Move the file" in said
    repo.file("data/customers.jsonl", LINE)
    assert "Move the file" not in repo.yolo_fs("validate", "data", ok=(0, 1)).stdout.decode()


@pytest.mark.parametrize("holds", ["nothing", "a folder", "a file"])
def test_a_folder_in_the_place_of_an_artifact_is_told_until_it_is_gone(
    repo: Repo, start: Callable[[Repo], Daemon], holds: str
) -> None:
    folder = repo.root / RIGHT
    below = {"nothing": folder, "a folder": folder / "x", "a file": folder}[holds]
    below.mkdir(parents=True)
    if holds == "a file":
        (folder / "x.txt").write_text("x")
    daemon = start(repo)
    daemon.mailbox.wait(lambda events: bool(of(events, RIGHT)))
    for words in (["status"], ["resume"], ["validate", RIGHT]):
        done = repo.yolo_fs(*words, ok=(0, 1))
        assert "a folder is where a file must be" in (done.stdout + done.stderr).decode(), words
    shutil.rmtree(folder)
    repo.file(RIGHT, LINE)
    daemon.mailbox.wait(
        lambda events: any(each["event"] == "artifact.committed" for each in of(events, RIGHT))
    )
    assert repo.status()["counts"]["rejected"] == 0
