"""Work trees of one repository that are in a team, looked after in this process instead of by daemons."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_servers import SERVERS
from tests.support.shared import made_once
from yolo_fs.core.reasons import Reason
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.team.membership import join, membership_of
from yolo_fs.team.remote_sync import RemoteSync
from yolo_fs.team.synchronizer import SyncStatus, TeamSynchronizer
from yolo_fs.workspace.settings import load

PHASE = ".yolo-planning/phases/01-auth"
GAPS = f"{PHASE}/gaps.jsonl"
PLAN = f"{PHASE}/01-01.plan.jsonl"
SUMMARY = f"{PHASE}/01-01.summary.jsonl"
TEAM_REF = "refs/yolo/team/main"


def gap(number: int, state: str = "open", text: str = "Rate limits are missing") -> str:
    return json.dumps(
        {"id": f"G-{number}", "sev": "minor", "desc": text, "exp": "429", "act": "200", "st": state}
    )


def plan(title: str) -> str:
    header = {
        "p": "01", "n": "01", "t": title, "w": 1, "d": [], "xd": [],
        "mh": {"tr": ["A token works once"], "ar": [], "kl": []}, "obj": "Sessions outlive the token",
    }  # fmt: skip
    task = {
        "id": "T1", "tp": "auto", "a": "Store tokens", "f": ["src/a.ts"], "v": "npm test", "done": "Stored",
    }  # fmt: skip
    return f"{json.dumps(header)}\n{json.dumps(task)}"


def summary(commit: str) -> str:
    return json.dumps(
        {
            "p": "01", "n": "01", "t": "Tokens", "s": "complete", "dt": "2026-02-20", "tc": 1, "tt": 1,
            "ch": [commit[:10]], "fm": ["src/a.ts"], "dv": [], "built": ["Tokens"], "tst": "green_only",
        }
    )  # fmt: skip


class TeamTree:
    """One work tree: what its agents and its user do, and what its daemon would."""

    def __init__(self, root: Path):
        self.root = root
        self.events: list[tuple[str, str]] = []
        self._data: list[tuple[str, Any]] = []
        self._counts: list[tuple[str, Any]] = []
        self.open()

    def open(self) -> None:
        self.repository = Repository(str(self.root), durable=False)
        self.coordinator = Coordinator(self.repository, load(str(self.root)), self.hear)

    def hear(self, event: str, path: str, data: Any) -> None:
        self.events.append((event, path))
        self._data.append((path, data.get("reason")))
        self._counts.append((event, data.get("commits")))

    def count_of(self, event: str) -> list[Any]:
        """Return of how many commits each event of a kind told."""
        return [count for each, count in self._counts if each == event]

    def told(self, path: str) -> list[Any]:
        """Return the reasons of all events about a path."""
        return [reason for about, reason in self._data if about == path]

    def restart(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.coordinator.close()
        self.repository.close()

    def join(self, team: str = "main") -> TeamTree:
        join(self.repository, team)
        return self

    @property
    def synchronizer(self) -> TeamSynchronizer:
        membership = membership_of(self.repository)
        assert membership is not None
        return TeamSynchronizer(
            self.repository,
            load(str(self.root)),
            membership,
            self.coordinator.committer,
            self.coordinator.obstacles,
            self.hear,
        )

    def look(self) -> SyncStatus:
        """Look as its daemon would: again, where the user's git may still be writing its index."""
        deadline, done = time.monotonic() + 10, 0
        while True:
            standing = self.synchronizer.look()
            self.coordinator.sync_index()
            done += standing.done
            is_fresh = any(held.reason is Reason.INDEX_LOCKED for held in standing.held)
            if not is_fresh or time.monotonic() > deadline:
                return standing._replace(done=done)
            time.sleep(0.02)

    def write(self, path: str, *lines: str) -> None:
        """Write an artifact and have it committed, as its daemon would."""
        self.place(path, "".join(f"{line}\n" for line in lines))
        deadline = time.monotonic() + 10
        list(self.coordinator.scan())
        while self.coordinator.unfinished() and time.monotonic() < deadline:
            time.sleep(0.02)  # held while the user's git may be at work: its index is fresh
            self.coordinator.process(self.coordinator.unfinished())
        self.coordinator.sync_index()

    def place(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def git(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode in ok, f"git {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def committed(self, path: str, revision: str = "HEAD") -> str:
        return self.git("show", f"{revision}:{path}")

    def planning(self, revision: str = "HEAD") -> str:
        return self.git("ls-tree", "-r", revision, "--", ".yolo-planning/phases")

    def subjects(self, revision: str = "HEAD") -> list[str]:
        return self.git("log", "--reverse", "--format=%s", revision, "--", PHASE).splitlines()


def commits_named(clone: TeamTree) -> set[str]:
    """Return the source commits that count as evidence in a work tree."""
    facts_reader = FactsReader(clone.repository, load(str(clone.root)))
    facts = facts_reader.facts(clone.repository.head().tip)
    return {commit.oid for phase in facts for commit in phase.commits.values()}


def _begin(folder: Path) -> None:
    """Make a repository, and a bare one and a clone of it, that tests take copies of."""
    seed, bare = folder / "seed", folder / "remote.git"
    (seed / ".yolo-planning").mkdir(parents=True)
    (seed / ".yolo-planning/.gitkeep").touch()
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for command in (
        ("init", "-q", "--template=", "-b", "main", "."),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "chore: begin"),
        ("clone", "-q", "--template=", "--bare", ".", str(bare)),
        ("clone", "-q", "--template=", f"file://{bare}", str(folder / "clone")),
    ):
        subprocess.run(["git", *command], cwd=seed, check=True)
    (bare / "hooks").mkdir()
    (folder / "clone/.git/hooks").mkdir()


@pytest.fixture
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what `_begin` makes, once for all tests."""
    return made_once(tmp_path_factory, "team", _begin)


@pytest.fixture
def new_tree(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], TeamTree]]:
    """Make work trees of one repository; the first is its main one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    settings = {"policy": {"settle_ms": 0, "durability": "none"}}
    (tmp_path / ".config/yolo-fs").mkdir(parents=True)
    (tmp_path / ".config/yolo-fs/config.json").write_text(json.dumps(settings))
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    made: list[TeamTree] = []

    def make(name: str) -> TeamTree:
        root = tmp_path / name
        if made:
            made[0].git("worktree", "add", "-q", "-b", name, str(root))
        else:
            shutil.copytree(begun / "seed", root)
        made.append(TeamTree(root))
        return made[-1]

    yield make
    for tree in made:
        tree.close()


class CloneTree(TeamTree):
    """A clone whose team meets at a remote; it synchronizes in this process."""

    def join_remote(self, remote: str = "origin", *, with_source: bool = False) -> CloneTree:
        join(self.repository, "main", remote, with_source=with_source)
        return self

    def move_remote(self, address: str) -> CloneTree:
        """Give the remote another address, and agree to it."""
        self.git("remote", "set-url", "origin", address)
        return self.join_remote()

    @property
    def remote_sync(self) -> RemoteSync:
        membership = membership_of(self.repository)
        assert membership is not None
        return RemoteSync(self.repository, load(str(self.root)), membership, self.hear)

    def meet(self) -> bool:
        """Exchange with the remote and look; return whether anything moved."""
        moved = self.remote_sync.exchange().moved
        done = self.look().done
        return self.remote_sync.exchange().moved or moved or bool(done)


Clones = tuple[CloneTree, CloneTree]


@pytest.fixture
def new_clone(
    begun: Path, new_tree: Callable[[str], TeamTree], tmp_path: Path
) -> Iterator[Callable[[str], CloneTree]]:
    """Make clones of one bare repository, `remote.git`."""
    bare = tmp_path / "remote.git"
    shutil.copytree(begun / "remote.git", bare)
    made: list[CloneTree] = []
    with SERVERS[os.environ.get("YOLO_TEAM_SERVER", "file")](bare) as address:

        def make(name: str) -> CloneTree:
            root = tmp_path / name
            shutil.copytree(begun / "clone", root)
            config = root / ".git/config"
            config.write_text(config.read_text().replace(f"file://{begun}/remote.git", address))
            made.append(CloneTree(root))
            return made[-1]

        yield make
        for tree in made:
            tree.close()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The bare repository at which the clones meet."""
    return tmp_path / "remote.git"


@pytest.fixture
def clones(new_clone: Callable[[str], CloneTree]) -> Clones:
    """Two clones that have joined."""
    return new_clone("a").join_remote(), new_clone("b").join_remote()
