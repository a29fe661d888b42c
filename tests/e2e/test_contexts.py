"""A running daemon keeps a context true while its sources change, and never commits it."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo


def test_a_context_follows_its_sources_while_the_daemon_runs(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    one, two = (artifact("critique", 0, version) for version in (0, 1))
    repo.write(one)
    daemon = start(repo)
    daemon.wait_committed([one])
    repo.yolo_fs("context", "compile", "architect", "--phase", "1")
    context = repo.root / one.path.rpartition("/")[0] / ".ctx-architect.toon"
    assert "revision 0" in context.read_text()
    repo.write(two)
    until(
        lambda: "revision 1" in context.read_text(), "the context says what its source says by now"
    )
    assert repo.yolo_fs("context", "prove", "architect", "--phase", "1").returncode == 0
    assert "ctx" not in repo.look("log", "--all", "--name-only", "--format=")
