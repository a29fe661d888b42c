"""What is ours is private, and what is shared has one mode, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.verbs import PHASE, questions

Start = Callable[..., Daemon]
ALL = bool(os.environ.get("YOLO_SECURITY"))


@pytest.fixture(params=["000", "022", "077"] if ALL else ["000"])
def umask(request: pytest.FixtureRequest, repo: Repo) -> Iterator[None]:
    """What the user's shell says, once the repository is there."""
    before = os.umask(int(request.param, 8))
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_our_own_files_are_private_and_projections_are_for_everybody(
    repo: Repo, start: Start
) -> None:
    repo.configure_repository()
    broken = artifact("critique", 2)
    daemon, artifacts = start(repo), mixed(2)
    repo.write(*artifacts, broken._replace(data=b"{}\n"))
    daemon.wait_committed(artifacts)
    daemon.wait_for("artifact.rejected", broken.path)
    ask(
        repo,
        questions(
            (
                "hooks install",
                "resume",
                "setup claude",
                "dept update backend --phase 1 --status running",
            )
        ),
    )
    assert daemon.stop() == 0
    repo.yolo_fs("start")
    repo.yolo_fs("stop")
    own = repo.git_dir / "yolo-fs"
    print(sorted(os.listdir(own)))
    assert set(os.listdir(own)) >= {
        "daemon.lock",
        "daemon.log",
        "health.json",
        "git-hook",
        "hooks.json",
    }
    assert {mode_of(own), *(mode_of(path) for path in own.rglob("*") if path.is_dir())} == {0o700}
    files = {path.name: mode_of(path) for path in own.rglob("*") if not path.is_dir()}
    assert {name for name, mode in files.items() if mode != 0o600} == {"git-hook"}
    assert files["git-hook"] == 0o700, "git runs it"
    assert mode_of(repo.root / PHASE / ".dept-status-backend.json") == 0o644
    assert {
        line.split(" ")[0] for line in repo.look("ls-tree", "-r", "HEAD", PLANNING).splitlines()
    } == {"100644"}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)
