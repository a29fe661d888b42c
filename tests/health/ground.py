"""A team at work where all is in order, and what each surface says of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.artifacts import PLANNING, Artifact, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from tests.web.served import Client
from yolo_fs.cli.statusline_fast import line
from yolo_fs.system.ask import COLD

FOLDER = f"{PLANNING}/phases/01-phase-1"
Surface = Callable[[], str]


class Ground:
    """A repository with hooks, a host's settings, a plan, and a daemon that looks each second."""

    daemon: Daemon
    board: Client

    def __init__(self, repo: Repo, start: Callable[..., Daemon]) -> None:
        self.repo = repo
        self.root = repo.root
        self.git_dir = repo.root / ".git"
        self.own = self.git_dir / "yolo-fs"
        self.home = Path(repo.env["HOME"])
        self._start = start
        self.ends = ExitStack()
        """What has to be undone in the end."""
        del repo.env[COLD]  # answers come from the observer, as at home
        repo.env["PATH"] = f"{Path(sys.executable).parent}:{repo.env['PATH']}"
        repo.configure(rescan_s=1)
        for words in ("hooks install", "setup claude"):
            repo.yolo_fs(*words.split())
        repo.write(artifact("plan", 0))

    def begin(self) -> None:
        """Start a daemon, and return when what is there is committed."""
        self.daemon = self._start(self.repo)

    def writes(self, version: int = 1) -> Artifact:
        """Write another version of the plan, which is to be committed."""
        written = artifact("plan", 0, version)
        self.repo.write(written)
        return written

    def put(self, name: str, data: bytes | str) -> Path:
        """Write a file of the phase."""
        file = self.root / FOLDER / name
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file

    def wait_for_rescans(self, count: int) -> None:
        """Wait until the daemon has looked at everything so many times more."""
        report = self.own / "health.json"

        def looked_at() -> float:
            return float(json.loads(report.read_text())["last_scan_at"])

        for _ in range(count):
            last = looked_at()
            until(lambda last=last: looked_at() > last, "a rescan")  # type: ignore[misc]

    def told(self, *words: str, given: bytes = b"") -> str:
        """Return what a command prints, however it ends."""
        return self.repo.yolo_fs(*words, ok=range(256), given=given).stdout.decode()

    @property
    def surfaces(self) -> Mapping[str, Surface]:
        """What asks each place where a person or an agent looks."""
        event = {"hook_event_name": "SessionStart", "cwd": str(self.root), "session_id": "s"}
        given = json.dumps(event).encode()
        return {
            "status": lambda: self.told("status", "--json"),
            "doctor": lambda: self.told("doctor", "--json"),
            "resume": lambda: self.told("resume", "--no-write"),
            "inbox": lambda: self.told("inbox", "--json"),
            "status line": lambda: line(str(self.root)),
            "board": lambda: self.board.api("board").body.decode(),
            "start of a session": lambda: self.told("hook", "session-start", given=given),
        }
