"""What waits for a person stands in the status line."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.artifacts import Artifact, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from yolo_fs.cli.statusline_fast import line

Start = Callable[..., Daemon]
TOKEN = "ghp_" + "a1B2" * 9


def dirty(kind: str) -> Artifact:
    """Return an artifact in which a credential stands."""
    clean = artifact(kind, 0)
    return clean._replace(data=clean.data.replace(b"Opaque tokens", TOKEN.encode()))


def test_the_status_line_says_what_waits_before_what_is_next(repo: Repo, start: Start) -> None:
    start(repo)
    assert "for you" not in line(str(repo.root))
    leak, plan = dirty("decisions"), artifact("plan", 1)
    repo.write(leak, plan)
    until(lambda: "for you" in line(str(repo.root)), "it says that something waits")
    said = line(str(repo.root))
    assert said.startswith(f"yolo-fs: 1 waits for you: {leak.path}")
    until(lambda: "next" in line(str(repo.root)), "it says who is next")
    assert line(str(repo.root)).index("for you") < line(str(repo.root)).index("next")
    repo.write(artifact("decisions", 0))
    until(lambda: "for you" not in line(str(repo.root)), "nothing waits any more")
