"""The commit engine of yolo_fs without its daemon, put together for one work tree."""

from __future__ import annotations

from datetime import UTC, datetime

from yolo_fs.git.commit import CommitRequest, CommitResult, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository


class Engine:
    """Commits artifacts on the branch of one work tree."""

    def __init__(self, root: str, *, durable: bool):
        self.repository = Repository(root, durable=durable)
        self.repository.make_own_dir()
        self.follower = IndexSync(self.repository, lives_long=True)
        self.branches = RefUpdater(self.repository, durable=durable)
        self.committer = Committer(
            self.repository, self.branches, self.follower, lambda: datetime.now(UTC)
        )

    def commit(self, *files: tuple[str, bytes]) -> tuple[CommitResult, ...]:
        """Commit each file on its own, in one chain."""
        entries = [
            CommitRequest(path, data, "docs(01): summary 01-01", _TRAILERS) for path, data in files
        ]
        made = self.committer.commit(entries, self.repository.head())
        self.follower.read_ahead()
        return made

    def close(self) -> None:
        """End the helper processes."""
        self.follower.close()
        self.branches.close()
        self.repository.close()


_TRAILERS = (("Yolo-Artifact", "summary"), ("Yolo-Phase", "01-bench"), ("Yolo-Dept", "backend"))
