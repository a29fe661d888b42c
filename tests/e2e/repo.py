"""A real repository of a user, and the user's own git in it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.artifacts import PLANNING, Artifact
from tests.support import forked
from tests.support.forked import DEADLINE_S
from yolo_fs.system import PORTABLE

OUTSIDE = ":!.yolo-planning"


def environment(home: Path) -> dict[str, str]:
    """Return an environment with a home of its own, so that nobody's configuration takes part."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "PYTHONWARNINGS": "error",
        "YOLO_FS_COLD": "1",  # an observer beside each daemon would cost the suite minutes; test_observer has them
        **{name: os.environ[name] for name in (PORTABLE,) if name in os.environ},
    }


PASSING = {
    ".lock': File exists": "another git had the lock",
    "cannot lock ref 'HEAD'": "a commit of ours came first",
}
"""What git says when another one was quicker, and nothing has changed → why."""


def is_passing(said: str) -> bool:
    """Return whether git refused for a moment."""
    return any(words in said for words in PASSING)


class Repo:
    """One work tree, with a planning tree and a first commit."""

    def __init__(self, root: Path, env: Mapping[str, str]) -> None:
        self.root = root
        self.env = dict(env)

    @property
    def git_dir(self) -> Path:
        return Path(self.git("rev-parse", "--absolute-git-dir").strip())

    def git(
        self, *arguments: str, ok: Sequence[int] = (0,), given: str | None = None, **more: str
    ) -> str:
        """Run the user's git and return what it prints; `more` is added to its environment."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env={**self.env, **more}, input=given,
            capture_output=True, text=True, errors="surrogateescape", timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode in ok, (
            f"git {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def look(self, *arguments: str) -> str:
        """Run a git command that only reads, and that must not even refresh the index."""
        return self.git(*arguments, GIT_OPTIONAL_LOCKS="0")

    def commit_file(
        self, name: str, text: str, message: str = "chore: something of the user"
    ) -> None:
        self.file(name, text)
        self.insist("add", "--", name)
        self.insist("commit", "-q", "-m", message, "--", name)

    def insist(self, *arguments: str) -> None:
        """Run the user's git as people do: who comes beside a commit of ours tries again."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                self.git(*arguments)
            except AssertionError as refused:
                if time.monotonic() > deadline or not is_passing(str(refused)):
                    raise
                time.sleep(0.01)
            else:
                return

    def index_is_quiet(self) -> bool:
        """Return whether the index is old enough for nobody to take its writer for still at work."""
        return time.time() - (self.git_dir / "index").stat().st_mtime > 1

    def file(self, name: str, text: str) -> Path:
        """Write a file of the user."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write(self, *artifacts: Artifact) -> None:
        """Write artifacts as most agents do: open, write, close."""
        for one in artifacts:
            path = self.root / one.path
            while not _is_written(path, one.data):
                path.parent.mkdir(parents=True, exist_ok=True)

    def configure(self, **policy: Any) -> None:
        """Write the user's own configuration; what is not given is as shipped."""
        path = Path(self.env["XDG_CONFIG_HOME"]) / "yolo-fs/config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"policy": policy}))

    def configure_repository(self, **policy: Any) -> None:
        """Write the repository's configuration, which may only tighten."""
        self.file(f"{PLANNING}/config.json", json.dumps({"yolo_fs": policy}))

    def yolo_fs(
        self,
        *arguments: str,
        ok: Sequence[int] = (0,),
        given: bytes = b"",
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command of yolo-fs to its end; `more` is added to its environment."""
        ended = forked.call(arguments, self.root, {**self.env, **(more or {})}, given)
        done = subprocess.CompletedProcess(arguments, *ended)
        assert done.returncode in ok, (
            f"{arguments}: {done.returncode}\n{done.stdout!r}\n{done.stderr!r}"
        )
        return done

    def status(self) -> dict[str, Any]:
        """Return the data of `status --json`."""
        said: dict[str, Any] = json.loads(self.yolo_fs("status", "--json").stdout)
        return dict(said["data"])

    def standing(self, path: str) -> tuple[str, str]:
        """Return the standing of a path and its reason, as `status --json` shows them; blank when it shows neither."""
        found = [one for one in self.status()["candidates"] if one["path"] == path]
        return (found[0]["standing"], found[0]["reason"]) if found else ("", "")

    def subjects(self, revision: str = "HEAD") -> list[str]:
        """Return the subjects of a branch, oldest first."""
        return self.look("log", "--reverse", "--format=%s", revision).splitlines()

    def of_the_user(self) -> dict[str, str]:
        """Return everything of the user that the coordinator must never change."""
        reports = {
            "staged": ("diff", "--cached", "--binary", "--", ".", OUTSIDE),
            "unstaged": ("diff", "--binary", "--", ".", OUTSIDE),
            "status": ("status", "--porcelain=v2", "-uall", "--ignored", "--", ".", OUTSIDE),
            "entries": ("ls-files", "-v", "--stage", "--", ".", OUTSIDE),
            "stash": ("stash", "list"),
            "config": ("config", "--list", "--show-origin"),
            "other refs": ("for-each-ref", "refs/tags", "refs/remotes", "refs/notes", "refs/stash"),
        }
        return {name: self.look(*arguments) for name, arguments in reports.items()}


def make_repo(root: Path, home: Path, *, form: Sequence[str] = ()) -> Repo:
    """Make a repository with a first commit and an empty planning tree; `form`: options of `git init`."""
    home.mkdir(exist_ok=True)
    root.mkdir(mode=0o755)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    repo = Repo(root, environment(home))
    repo.git("init", "-q", *form)
    repo.configure()
    for number in range(1, 7):
        repo.file(f"src/file{number}.py", "".join(f"line = {line}\n" for line in range(40)))
    repo.file("README.md", "A project.\n")
    repo.configure_repository()
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore: begin")
    (root / PLANNING / "phases").mkdir()
    return repo


RepoMaker = Callable[..., Repo]


def _is_written(path: Path, data: bytes) -> bool:
    """Write a file where its folder stands; git removes an emptied one even between our two steps."""
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        return False
    return True
