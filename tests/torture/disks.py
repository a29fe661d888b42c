"""Real file systems that are full, and that turn read-only. See docs/dev/faults.md#f06 and #f07."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.artifacts import mixed
from tests.e2e.daemon import Daemon, descendants, until
from tests.e2e.repo import Repo
from tests.torture.surroundings import Ground, Writelog, settled, unmount

_SIZE_KIB = 2048


@contextmanager
def full(place: Path) -> Iterator[tuple[str, ...]]:
    """Fill the file system up to the last byte."""
    ballast = place / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    yield ("no_space", "storage_failed")
    ballast.unlink()


@contextmanager
def read_only(place: Path) -> Iterator[tuple[str, ...]]:
    """Let the file system turn read-only, as ext4 does when the disk fails."""
    # Laid over itself, because what is open for writing forbids a remount: whatever is opened from here on is refused.
    subprocess.run(["mount", "--bind", str(place), str(place)], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
    yield ("storage_failed", "git_failed", "no_space")
    # A git that is ending may still be in it.
    until(lambda: subprocess.run(["umount", str(place)], check=False).returncode == 0, "unmounted")


_CASES: tuple[tuple[Callable[..., object], int], ...] = tuple(
    itertools.product((full, read_only), (1, 3, 12))
)


def disks(ground: Ground, count: int) -> None:
    """Keep the git directory on a small file system, refuse it to the daemon for a while, then give it back."""
    for refusal, size in itertools.islice(itertools.cycle(_CASES), count):
        _refused(ground, refusal, size)


def _refused(ground: Ground, refusal: Callable[..., object], size: int) -> None:
    of = f"{refusal.__name__}, {size} artifacts"
    mount = ground.mount(_SIZE_KIB)
    repo = with_git_dir_on(mount, ground.repo(rescan_s=1))
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    first, *artifacts = mixed(size + 1)
    log.write(first)
    settled(daemon)
    # A file that the observer replaces in between frees a block, in which the next commit has room.
    daemon.wait_for("observer.started")
    until(lambda: _is_at_rest(daemon), "nobody writes into the git directory")
    with refusal(mount) as reasons:  # type: ignore[attr-defined]
        log.write(*artifacts)
        for one in artifacts:
            daemon.mailbox.wait(
                lambda events, one=one: any(  # type: ignore[misc]
                    event["path"] == one.path and event["data"].get("reason") in reasons
                    for event in events if event.get("event") == "artifact.held"
                )
            )  # fmt: skip
        if len(daemon.committed()) > 1:
            ground.fault(f"{of}: committed although nothing can be stored")
        ground.tally.count += 1
    settled(daemon)
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, of)
    unmount(mount)


def _is_at_rest(daemon: Daemon) -> bool:
    """Return whether the daemon and all that it has started sleep."""
    stats = [Path(f"/proc/{pid}/stat") for pid in (daemon.pid, *descendants(daemon.pid))]
    with suppress(FileNotFoundError):  # one has just ended
        return all(stat.read_text().rpartition(") ")[2].startswith("S") for stat in stats)
    return False


def with_git_dir_on(mount: Path, repo: Repo) -> Repo:
    shutil.move(repo.root / ".git", mount / "git")
    (repo.root / ".git").write_text(f"gitdir: {mount / 'git'}\n")
    until(lambda: os.path.isdir(mount / "git"), "it is there")
    return repo
