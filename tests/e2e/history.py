"""The judge: reads only `git log`, `git fsck`, `git ls-files` and what the test itself wrote, never
the daemon's state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.artifacts import PLANNING, Artifact
from tests.e2e.repo import Repo

_MARK = "\x1e"


class Commit(NamedTuple):
    """One commit as git shows it."""

    oid: str
    parents: tuple[str, ...]
    subject: str
    body: str
    changes: tuple[tuple[str, str, str], ...]
    """(mode, blob, path) of each changed path."""


class History:
    """What became of a branch since the moment this was made."""

    def __init__(self, repo: Repo, branch: str = "HEAD") -> None:
        self._repo = repo
        self._branch = branch
        self._base = repo.look("rev-parse", "--verify", branch).strip()
        self._algorithm = repo.look("rev-parse", "--show-object-format").strip()

    def commits(self) -> list[Commit]:
        """Return the commits since, oldest first."""
        shown = self._repo.look(
            "log", "--reverse", "--first-parent", "--raw", "--no-abbrev", "--no-renames", "--no-mailmap",
            f"--format={_MARK}%H%n%P%n%s%n%b%x00", f"{self._base}..{self._branch}",
        )  # fmt: skip
        return [_commit(record) for record in shown.split(_MARK)[1:]]

    def subjects(self) -> list[str]:
        return [commit.subject for commit in self.commits()]

    def check(self, written: Sequence[Artifact]) -> None:
        """Assert that each written content is one commit of its own, in order per path, and that all else is sound."""
        commits = self.commits()
        self._check_chain(commits)
        wanted = Counter((one.path, one.blob(self._algorithm)) for one in written)
        found = Counter((path, blob) for commit in commits for _, blob, path in commit.changes)
        assert found == wanted, f"missing {wanted - found}, too many {found - wanted}"
        subjects = {(one.path, one.blob(self._algorithm)): one.subject for one in written}
        for commit in commits:
            (mode, blob, path) = commit.changes[0]
            assert commit.subject == subjects[path, blob], path
            assert mode == "100644"
        self.check_sound()

    def check_order(self, written: Sequence[Artifact]) -> None:
        """Assert that the contents of each path were committed in the order in which they were written."""
        for path in {one.path for one in written}:
            wanted = [one.blob(self._algorithm) for one in written if one.path == path]
            found = [
                blob
                for commit in self.commits()
                for _, blob, name in commit.changes
                if name == path
            ]
            assert found == wanted, path

    def check_sound(self) -> None:
        """Assert that nothing is broken and nothing is left behind."""
        faults = self._repo.git(
            "fsck", "--full", "--strict", "--no-dangling", "--no-progress", ok=range(256)
        )
        assert faults == ""
        assert locks(self._repo) == []
        left = self._repo.look("status", "--porcelain", "-uall", "--", PLANNING)
        assert left == "", left

    def _check_chain(self, commits: Sequence[Commit]) -> None:
        tip = self._base
        for commit in commits:
            assert commit.parents == (tip,), "one line of commits"
            assert len(commit.changes) == 1, f"{commit.subject}: {commit.changes}"
            tip = commit.oid
        assert tip == self._repo.look("rev-parse", self._branch).strip()


def _commit(record: str) -> Commit:
    head, _, raw = record.partition("\0")
    oid, parents, subject, body = head.split("\n", 3)
    changes = []
    for line in raw.splitlines():
        if line.startswith(":"):
            facts, _, path = line.partition("\t")
            _, mode, _, blob, _ = facts.split(" ")
            changes.append((mode, blob, path))
    return Commit(oid, tuple(parents.split()), subject, body.strip(), tuple(changes))


def locks(repo: Repo) -> list[str]:
    """Return every lock file that lies about in the git directory."""
    common = Path(repo.look("rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    return sorted(
        str(path.relative_to(common))
        for path in common.rglob("*.lock")
        if path.name != "daemon.lock"
    )


def loose_objects(repo: Repo) -> int:
    """Return how many loose objects the repository has."""
    return int(repo.look("count-objects").split()[0])
