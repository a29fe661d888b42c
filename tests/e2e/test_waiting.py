"""Whatever newly waits for a person is told once to the user's own command, and stands in the status line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import Artifact, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from yolo_fs.cli.statusline_fast import line
from yolo_fs.company.runs import new_run, save
from yolo_fs.git.repository import Repository

Start = Callable[..., Daemon]
TELLS = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def told(repo: Repo, tmp_path: Path) -> Path:
    """The file into which the user's command puts each message."""
    out = tmp_path / "told"
    own = Path(repo.env["XDG_CONFIG_HOME"], "yolo-fs/config.json")
    own.parent.mkdir(parents=True, exist_ok=True)
    user = json.loads(own.read_text()) if own.exists() else {}
    command = [sys.executable, "-c", TELLS, str(out)]
    own.write_text(json.dumps({**user, "sinks": {"command": command}}))
    return out


def notes_in(told: Path) -> list[dict[str, Any]]:
    lines = told.read_text().splitlines() if told.exists() else []
    return [note for line in lines for note in json.loads(line)["notes"]]


def kinds_in(told: Path) -> list[str]:
    return [note.get("kind", "") for note in notes_in(told)]


def dirty(kind: str) -> Artifact:
    """Return an artifact in which a credential stands."""
    clean = artifact(kind, 0)
    return clean._replace(data=clean.data.replace(b"Opaque tokens", TOKEN.encode()))


def test_a_credential_is_told_once_however_often_the_daemon_starts(
    repo: Repo, start: Start, told: Path
) -> None:
    daemon, leak = start(repo), dirty("decisions")
    repo.write(leak)
    until(lambda: "credential" in kinds_in(told), "the user is told of the credential")
    (note,) = notes_in(told)
    assert leak.path in note["title"] and note["root"] == str(repo.root)
    assert note["answer_with"] == f"yolo-fs validate {leak.path}"
    assert TOKEN not in told.read_text()
    assert daemon.stop() == 0
    plan = artifact("plan", 1)
    (repo.git_dir / "info/exclude").write_text("02-phase-2/\n")
    start(repo)
    repo.write(plan)
    until(lambda: "held" in kinds_in(told), "the user is told of what is held for good")
    assert kinds_in(told) == ["credential", "held"]


def test_what_a_run_ended_at_is_told(repo: Repo, start: Start, told: Path) -> None:
    repo.yolo_fs("phase", "new", "auth")
    phase = next((repo.root / ".yolo-planning/phases").iterdir()).name
    run = new_run(phase, "login", "command")
    run.ended, run.outcome = run.started, "budget used up"
    run.given_up = ["yolo-dev gave up 01-01/T1: nothing was written"]
    run.asks = [
        ["the budget of 5.00 USD is used up: continue?", "yolo-fs go --budget 10"],
        ["approve the plan?", "yolo-fs go --approve ship"],
        ["the host refuses the login: 401", "yolo-fs go"],
    ]
    start(repo)
    with Repository(str(repo.root)) as repository:
        save(repository, run)
    until(lambda: len(notes_in(told)) >= 4, "the user is told of everything")
    titles = sorted(note["title"] for note in notes_in(told))
    assert titles == [
        "agent: given up: yolo-dev gave up 01-01/T1: nothing was written",
        "decision: question of the run: approve the plan?",
        "decision: question of the run: the budget of 5.00 USD is used up: continue?",
        "decision: question of the run: the host refuses the login: 401",
    ]


def test_the_status_line_says_what_waits_before_what_is_next(repo: Repo, start: Start) -> None:
    start(repo)
    assert "for you" not in line(str(repo.root))
    leak, plan = dirty("decisions"), artifact("plan", 1)
    repo.write(leak, plan)
    until(lambda: "for you" in line(str(repo.root)), "it says that something waits")
    until(lambda: "1 held" in line(str(repo.root)), "it says that something is held")
    said = line(str(repo.root))
    assert said.startswith(f"yolo-fs: 1 waits for you: {leak.path[:40]}")
    assert (
        "\u2026 (yolo-fs inbox) | 02-phase-2 critique 0/11 steps, next: critic does critique |"
        in said
    )
    repo.write(artifact("decisions", 0))
    until(lambda: "for you" not in line(str(repo.root)), "nothing waits any more")
