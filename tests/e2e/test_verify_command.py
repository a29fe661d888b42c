"""`verify_command`: the user's own check of the sources, run once for all that has the same sources, and recorded."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from yolo_fs.system.system import is_running

Start = Callable[..., Daemon]
CHECK = ["sh", "-c", "echo version $(cat version); echo ran >> $MARKS; test $(cat version) = good"]


def say_as_user(repo: Repo, value: object) -> None:
    path = Path(repo.env["XDG_CONFIG_HOME"], "yolo-fs/config.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def ended(daemon: Daemon) -> list[tuple[str, bool]]:
    return [
        (event["data"]["commit"], event["data"]["passed"])
        for event in daemon.mailbox.events
        if event.get("event") == "verify_command.ended"
    ]


def why(repo: Repo, *more: str) -> str:
    return repo.yolo_fs("gate", "why", "all-depts", "--phase", "1", *more, ok=(1,)).stdout.decode()


def test_each_state_of_the_sources_is_checked_once_and_told_wherever_evidence_is(
    repo: Repo, start: Start, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    say_as_user(repo, {"repositories": {str(repo.root): {"verify_command": CHECK}}})
    repo.commit_file("version", "bad\n")
    unsaved = repo.file("src/unsaved.py", "x = 1\n")
    daemon = start(repo, MARKS=str(marks))
    bad = repo.look("rev-parse", "HEAD").strip()
    until(lambda: ended(daemon) == [(bad, False)], "the first sources failed")
    made = artifact("critique", 0)
    repo.write(made)
    daemon.wait_committed([made])
    assert f"failed (exit code 1) at {bad[:12]}" in why(repo)
    assert "version bad" in why(repo)
    assert "changes that are in no commit" in why(repo)
    unsaved.unlink()
    assert f"failed (exit code 1) at {bad[:12]}" in repo.yolo_fs("status").stdout.decode()
    repo.commit_file("version", "good\n")
    good = repo.look("rev-parse", "HEAD").strip()
    until(lambda: ended(daemon)[1:] == [(good, True)], "the next ones passed")
    verification: dict[str, Any] = json.loads(why(repo, "--json"))["data"]["verification"]
    assert (verification["commit"], verification["command"]) == (good, CHECK)
    assert verification["is_clean"]
    another = {"XDG_STATE_HOME": str(tmp_path / "of another")}
    assert "verify_command" not in repo.yolo_fs("status", more=another).stdout.decode(), (
        "what came with a folder counts for nobody"
    )
    told = repo.yolo_fs("report", "--phase", "1", "--format", "markdown").stdout.decode()
    assert f"passed at {good[:12]}" in told
    os.chmod(repo.root, 0o777)  # anybody may put code there now
    repo.commit_file("version", "worse\n")
    until(lambda: len(ended(daemon)) == 3, "it is refused")
    os.chmod(repo.root, 0o755)
    refused = json.loads(why(repo, "--json"))["data"]["verification"]
    assert (refused["how"], refused["passed"]) == ("not started", False)
    assert "unsafe_repository" in refused["output"] or "others can write to" in refused["output"]
    assert daemon.stop() == 0
    assert marks.read_text() == "ran\n" * 2


def test_a_run_ends_with_the_observer_that_began_it_and_the_next_one_runs_it_anew(
    repo: Repo, start: Start, tmp_path: Path
) -> None:
    """Killed, it cannot end what it has started; what two runs at once say would be nothing."""
    marks, go = tmp_path / "marks", tmp_path / "go"
    wait = "echo $$ >> $MARKS; until [ -e $GO ]; do sleep 0.02; done; echo ended >> $MARKS"
    check = ["sh", "-c", f"({wait}); test $(cat version) = good"]  # the run has a child
    say_as_user(repo, {"repositories": {str(repo.root): {"verify_command": check}}})
    repo.commit_file("version", "good\n")
    daemon = start(repo, MARKS=str(marks), GO=str(go))

    def began() -> list[int]:
        return [int(pid) for pid in marks.read_text().split()] if marks.exists() else []

    try:
        until(lambda: len(began()) == 1, "a run has begun")
        os.kill(daemon.wait_for("observer.started")["data"]["pid"], signal.SIGKILL)
        until(lambda: len(began()) == 2, "the next observer has begun one")
        until(lambda: not is_running(began()[0]), "the first one has ended")
        assert ended(daemon) == [], "and counts as nothing"
    finally:
        go.touch()
    good = repo.look("rev-parse", "HEAD").strip()
    until(lambda: ended(daemon) == [(good, True)], "the second one has passed")
    assert marks.read_text().split()[2:] == ["ended"]
    assert daemon.stop() == 0


def test_what_another_command_found_says_nothing_about_the_one_in_force(
    repo: Repo, start: Start
) -> None:
    """A user who begins with `true` would else be told that the test suite passed."""
    root = str(repo.root)
    say_as_user(repo, {"repositories": {root: {"verify_command": ["true"]}}})
    repo.commit_file("version", "bad\n")
    daemon = start(repo)
    bad = repo.look("rev-parse", "HEAD").strip()
    until(lambda: ended(daemon) == [(bad, True)], "the first command passed")
    say_as_user(repo, {"repositories": {root: {"verify_command": ["test", "-e", "src/main.py"]}}})
    assert "verify_command passed" not in repo.yolo_fs("status").stdout.decode()
    repo.write(artifact("critique", 0))
    until(lambda: len(ended(daemon)) == 2, "the same sources are checked by the next command")
    (_, (tip, passed)) = ended(daemon)
    assert not passed
    assert f"failed (exit code 1) at {tip[:12]}" in repo.yolo_fs("status").stdout.decode()
    assert daemon.stop() == 0


def test_no_repository_and_no_section_for_all_of_them_gives_a_command(repo: Repo) -> None:
    repo.file(
        f"{PLANNING}/config.json",
        json.dumps({"verify_command": CHECK, "yolo_fs": {"verify_command": CHECK}}),
    )
    shown = json.loads(repo.yolo_fs("config", "show", "--json", ok=(0, 78)).stdout)
    values = [one["value"] for one in shown["data"] or () if one["key"] == "verify_command"]
    assert values in ([], [[]])
    repo.git("checkout", "-q", "--", f"{PLANNING}/config.json")
    for said in ({"policy": {"verify_command": CHECK}}, {"policy": []}, {"repositories": {str(repo.root): 1}},
                 {"repositories": {str(repo.root): {"verify_command": "make test"}}}):  # fmt: skip
        say_as_user(repo, said)
        refused = repo.yolo_fs("config", "show", ok=(78,)).stderr.decode()
        assert "bad_config" in refused
        assert "/policy" in refused or "/repositories" in refused
