"""Real repositories, a user who works in them, and the engine beside that user.

Identity, dates and configuration are pinned, so that commit ids are stable and no setting of the machine takes part.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Reason
from yolo_fs.git.commit import CommitRequest, CommitResult, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.obstacles import Obstacles, PathRules
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER_NS = time.time_ns() + 3_600_000_000_000
"""A moment at which every file of the test is long at rest."""
PHASE = ".yolo-planning/phases/01-auth"
PLAN = f"{PHASE}/01-01.plan.jsonl"

PINNED = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@example.org",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


REFTABLE = os.environ.get("GIT_DEFAULT_REF_FORMAT") == "reftable"
"""Whether each new repository keeps its refs in tables, which git 2.45 and newer can."""
REF_LOCK = "reftable/tables.list.lock" if REFTABLE else "refs/heads/main.lock"
NEEDS_REF_FILES = pytest.mark.skipif(REFTABLE, reason="in a reftable no branch is a file")


@dataclass
class User:
    """Somebody who uses plain git in one work tree."""

    root: Path

    def git(
        self, *arguments: str, given: bytes = b"", ok: Sequence[int] = (0,), **more: str
    ) -> bytes:
        environment = {**os.environ, **PINNED, **more}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, input=given, capture_output=True
        )
        assert done.returncode in ok, (
            f"git {shlex.join(arguments)}: {done.returncode} {done.stderr.decode()}"
        )
        return done.stdout

    def text(self, *arguments: str, **more: str) -> str:
        return self.git(*arguments, **more).decode().strip()

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a git command and leave it running."""
        return subprocess.Popen(
            ["git", *arguments],
            cwd=self.root, env={**os.environ, **PINNED, **more},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def write(self, path: str, data: bytes | str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
        return place

    def add(self, path: str, data: bytes | str) -> None:
        self.write(path, data)
        self.git("add", "--force", "--", path)

    def add_half(self, path: str) -> None:
        """Change a tracked file in two places and stage only the first."""
        lines = [f"line {number}" for number in range(30)]
        self.write(path, "\n".join(lines) + "\n")
        self.git("add", "--", path)
        self.git("commit", "--quiet", "-m", f"base of {path}", "--", path)
        lines[2], lines[27] = "staged", "not staged"
        self.write(path, "\n".join(lines) + "\n")
        self.git("add", "--patch", "--", path, given=b"y\nn\n")

    def intend(self, path: str, data: bytes | str) -> None:
        self.write(path, data)
        self.git("add", "--intent-to-add", "--force", "--", path)

    def skip(self, path: str) -> None:
        self.git("update-index", "--skip-worktree", "--", path)

    def commit(self, message: str = "user", *arguments: str) -> str:
        self.git("commit", "--quiet", "--allow-empty", "-m", message, *arguments)
        return self.tip()

    def commit_file(self, path: str, data: bytes | str, message: str = "user") -> str:
        self.add(path, data)
        return self.commit(message, "--", path)

    def tip(self, name: str = "HEAD") -> str:
        return self.text("rev-parse", "--verify", name)

    def show(self, path: str, commit: str = "HEAD") -> bytes:
        return self.git("cat-file", "blob", f"{commit}:{path}")

    def staged(self, path: str) -> str:
        """Return the index entry of a path: flag, mode, blob, stage; empty when there is none."""
        return self.text("ls-files", "-s", "-v", "--", path).partition("\t")[0]

    def snapshot(self, *, beside: Sequence[str] = ()) -> dict[str, bytes]:
        """Return all that git says of the user's own work; `beside`: paths that are left out."""
        places = (
            ["--", ":/", *(f":(top,exclude,literal){path}" for path in beside)]
            if beside
            else ["--"]
        )
        looks = {
            "staged": ("diff", "--cached", *places),
            "unstaged": ("diff", *places),
            "status": ("status", "--porcelain=v2", "-z", "--untracked-files=all", *places),
            "index": ("ls-files", "-s", "-v", "-z", *places),
        }
        return {name: self.git(*look, GIT_OPTIONAL_LOCKS="0") for name, look in looks.items()}

    def fsck(self) -> None:
        self.git("fsck", "--strict", "--full", "--no-dangling")


@dataclass
class Engine:
    """Everything that commits in one work tree, as the coordinator puts it together."""

    repository: Repository
    branches: RefUpdater
    follower: IndexSync
    committer: Committer
    obstacles: Obstacles
    rules: PathRules

    def commit(self, *entries: CommitRequest) -> tuple[CommitResult, ...]:
        return self.committer.commit(entries, self.repository.head())

    def put(self, path: str, data: bytes | str, subject: str = "docs(01): plan") -> CommitResult:
        """Let an agent write a file, and commit it."""
        content = data if isinstance(data, bytes) else data.encode()
        place = Path(self.repository.root, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        made = self.commit(CommitRequest(path, content, subject, (("Yolo-Artifact", "plan"),)))[0]
        self.follower.read_ahead()
        return made

    def put_and_follow(self, path: str, data: bytes | str) -> CommitResult:
        made = self.put(path, data)
        assert self.follower.follow()
        return made

    def obstacle(self, now_ns: int = LATER_NS) -> Reason | None:
        return self.obstacles.find(self.repository.head(), now_ns)

    def close(self) -> None:
        self.rules.close()
        self.branches.close()
        self.repository.close()


@dataclass
class Engines:
    """Starts engines and ends them with the test."""

    started: list[Engine] = field(default_factory=list)

    def __call__(
        self,
        place: User | Path,
        *,
        durable: bool = True,
        protected: Sequence[str] = (),
        allow_detached: bool = False,
        commit_ignored: bool = False,
        folders: Sequence[str] = (),
    ) -> Engine:
        repository = Repository(
            str(place.root if isinstance(place, User) else place), durable=durable
        )
        os.makedirs(repository.own_dir, mode=0o700, exist_ok=True)
        branches = RefUpdater(repository, durable=durable)
        follower = IndexSync(repository)
        engine = Engine(
            repository,
            branches,
            follower,
            Committer(repository, branches, follower, lambda: NOW),
            Obstacles(
                repository, protected=protected, allow_detached=allow_detached, folders=folders
            ),
            PathRules(repository, commit_ignored=commit_ignored),
        )
        self.started.append(engine)
        return engine


@pytest.fixture(autouse=True)
def _own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test a home of its own and UTC; the engine drops every `GIT_*`, so only HOME can pin its configuration."""
    for name in [name for name in os.environ if name.startswith("GIT_") and "PYTHON" not in name]:
        monkeypatch.delenv(name)
    if REFTABLE:
        monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", "reftable")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def engine() -> Iterator[Engines]:
    engines = Engines()
    yield engines
    for one in engines.started:
        one.close()


Make = Callable[..., User]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a maker of repositories: `make("name", "--object-format=sha256", born=False)`."""

    def new(name: str = "work", *options: str, born: bool = True) -> User:
        root = tmp_path / name
        root.mkdir(parents=True)
        user = User(root)
        user.git("init", "--quiet", "--initial-branch=main", *options)
        user.git("config", "user.name", "Engine")
        user.git("config", "user.email", "engine@example.org")
        if born:
            user.commit_file("README.md", "hello\n", "first")
        return user

    return new


@pytest.fixture
def user(make: Make) -> User:
    """A normal clone with one commit."""
    return make()
