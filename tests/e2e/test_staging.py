"""The user's staging stays theirs, byte for byte. See docs/dev/faults.md#f21 and #f22."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.artifacts import artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]


def stage_something_of_every_kind(repo: Repo) -> None:
    repo.file("src/file1.py", "staged = True\n")
    repo.git("add", "src/file1.py")
    repo.file("src/file2.py", "staged = 1\n")
    repo.git("add", "src/file2.py")
    repo.file("src/file2.py", "staged = 1\nand_then_changed = 2\n")
    repo.file("src/file3.py", "only_changed = 3\n")
    repo.file("src/intended.py", "not_yet = 4\n")
    repo.git("add", "--intent-to-add", "src/intended.py")
    repo.file("secret.env", "untracked\n")
    repo.git("update-index", "--skip-worktree", "src/file4.py")
    repo.file("src/file4.py", "changed behind the index\n")
    repo.git("update-index", "--assume-unchanged", "src/file5.py")
    repo.git("rm", "-q", "--cached", "src/file6.py")


def test_two_hundred_artifacts_leave_the_users_staging_byte_for_byte(
    repo: Repo, start: Start
) -> None:
    stage_something_of_every_kind(repo)
    history, before = History(repo), repo.of_the_user()
    daemon = start(repo)
    artifacts = mixed(200)
    for at in range(0, 200, 20):
        repo.write(*artifacts[at : at + 20])
        daemon.wait_committed(artifacts[at : at + 20])
    assert daemon.stop() == 0
    assert repo.of_the_user() == before
    history.check(artifacts)


def test_what_the_user_staged_for_an_artifact_itself_stays_staged(repo: Repo, start: Start) -> None:
    staged, written = artifact("plan", 0, version=1), artifact("plan", 0, version=2)
    daemon = start(repo)
    repo.write(artifact("plan", 0))
    daemon.wait_committed([artifact("plan", 0)])
    until(lambda: repo.look("diff", "--cached") == "", "the index follows")
    blob = repo.git("hash-object", "-w", "--stdin", given=staged.data.decode()).strip()
    repo.git("update-index", "--cacheinfo", f"100644,{blob},{staged.path}")
    repo.write(written)
    daemon.wait_committed([written])
    assert daemon.stop() == 0
    assert repo.look("rev-parse", f":{staged.path}").strip() == blob
    assert repo.look("show", f"HEAD:{written.path}").encode() == written.data
