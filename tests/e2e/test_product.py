"""The handoffs of the product workflow, watched and committed where the user wants it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from yolo_fs.handoffs.envelopes import mentioned_files, read, right_name

RUN = Path(__file__).parents[2] / "fixtures/product"
STEPS = [json.loads(path.read_text()) for path in sorted(RUN.glob("[0-9]*.json"))]

Start = Callable[..., Daemon]


@pytest.fixture
def watched(repo: Repo, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user who lets the handoffs of this project be committed."""
    folder = tmp_path / "own/yolo-fs"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"policy": {"product_handoffs": True}}))
    return {"XDG_CONFIG_HOME": str(folder.parent)}


def hand_over(repo: Repo, value: dict[str, Any], name: str = "") -> str:
    """Write the files that an envelope names, and then the envelope, as an agent does; return its path."""
    sent, faults = read(value, "-", datetime.now(UTC))
    assert sent is not None, faults
    for path in mentioned_files(sent).values():
        write(repo, path, "content\n")
    path = f"documents/handoffs/{name}" if name else right_name(sent)
    write(repo, path, json.dumps(value) + "\n")
    return path


def write(repo: Repo, path: str, text: str) -> None:
    file = repo.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.proves("003:379a")
def test_each_handoff_of_a_product_is_a_commit_named_after_its_route(
    repo: Repo, start: Start, watched: dict[str, str]
) -> None:
    (repo.root / "documents/handoffs").mkdir(parents=True)
    daemon = start(repo, **watched)
    paths = []
    for value in STEPS:
        paths.append(hand_over(repo, value))
        daemon.wait_for("artifact.committed", paths[-1])
    assert daemon.stop() == 0
    subjects = repo.look("log", "--reverse", "--format=%s", f"-{len(STEPS)}").splitlines()
    assert subjects == [
        f"docs(handoffs): {one.stem.split('_', 1)[1]}" for one in sorted(RUN.glob("[0-9]*.json"))
    ]
    assert repo.look("diff", "--name-only", f"HEAD~{len(STEPS)}", "HEAD").splitlines() == sorted(
        paths
    )


def test_handoffs_that_are_seen_together_are_committed_as_they_were_sent(
    repo: Repo, watched: dict[str, str]
) -> None:
    for value in STEPS:
        hand_over(repo, value)
    Repo(repo.root, repo.env | watched).yolo_fs("run", "--once")
    subjects = repo.look("log", "--reverse", "--format=%s", f"-{len(STEPS)}").splitlines()
    assert subjects == [
        f"docs(handoffs): {one.stem.split('_', 1)[1]}" for one in sorted(RUN.glob("[0-9]*.json"))
    ]


def test_a_handoff_that_contradicts_an_earlier_one_is_refused_with_both_places(
    repo: Repo, start: Start, watched: dict[str, str]
) -> None:
    (repo.root / "documents/handoffs").mkdir(parents=True)
    daemon = start(repo, **watched)
    first = hand_over(repo, STEPS[0])
    daemon.wait_for("artifact.committed", first)
    wrong = json.loads(json.dumps(STEPS[1]).replace("Orchard Scout", "Quite Another Thing"))
    second = hand_over(repo, wrong)
    refused = daemon.wait_for("artifact.rejected", second)
    said = [
        finding for finding in refused["data"]["findings"] if finding["reason"] == "state_conflict"
    ]
    assert any(first in finding["message"] + finding["expected"] for finding in said), refused


@pytest.mark.proves("003:379a")
def test_a_handoff_that_was_sent_is_not_committed_with_another_content(
    repo: Repo, start: Start, watched: dict[str, str]
) -> None:
    (repo.root / "documents/handoffs").mkdir(parents=True)
    daemon = start(repo, **watched)
    sent = hand_over(repo, STEPS[0])
    daemon.wait_for("artifact.committed", sent)
    tip = repo.look("rev-parse", "HEAD")
    hand_over(
        repo,
        json.loads(json.dumps(STEPS[0]).replace("every night", "each night")),
        Path(sent).name,
    )
    daemon.wait_for("artifact.rejected", sent)
    assert repo.look("rev-parse", "HEAD") == tip
    for judge in ("envelope", "check", sent), ("validate", sent):
        asked = Repo(repo.root, repo.env | watched).yolo_fs(*judge, ok=(1,))
        assert "sent with another content" in f"{asked.stdout!r}{asked.stderr!r}"
    write(repo, sent, json.dumps(STEPS[0]) + "\n")
    later = hand_over(repo, STEPS[1])
    daemon.wait_for("artifact.committed", later)
    assert repo.look("diff", "--name-only", tip.strip(), "HEAD").split() == [later]


def test_a_folder_that_is_made_later_is_found_and_watched(
    repo: Repo, start: Start, watched: dict[str, str]
) -> None:
    write(repo, ".yolo-planning/config.json", json.dumps({"yolo_fs": {"rescan_s": 1}}))
    daemon = start(repo, **watched)
    for value in STEPS[:2]:
        daemon.wait_for("artifact.committed", hand_over(repo, value))
    assert daemon.stop() == 0


def test_without_the_users_word_no_file_outside_the_planning_tree_is_touched(
    repo: Repo, start: Start
) -> None:
    write(
        repo,
        ".yolo-planning/config.json",
        json.dumps({"yolo_fs": {"product_handoffs": True, "rescan_s": 1}}),
    )
    daemon = start(repo)
    tip = repo.look("rev-parse", "HEAD")
    hand_over(repo, STEPS[0])
    assert daemon.stop() == 0
    again = start(repo)  # looks at everything before it is ready
    assert again.stop() == 0
    assert repo.look("rev-parse", "HEAD") == tip
    assert daemon.committed() == again.committed() == []
