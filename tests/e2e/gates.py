"""A company of three departments in a repository, and what its agents write for its gates."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

from tests.e2e.artifacts import PLANNING, Artifact, lines
from tests.e2e.daemon import Daemon, descendants
from tests.e2e.repo import DEADLINE_S, Repo
from tests.support import forked

THREE = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
SPEC = {
    "name": "LoginForm", "desc": "signs a user in", "states": ["idle"], "props": ["onLogin"],
    "tokens": ["color-primary"], "a11y": {"role": "form"}, "status": "ready",
}  # fmt: skip
RECORDS: dict[str, dict[str, Any]] = {
    "design-handoff": {"component": "LoginForm", "status": "ready"},
    "component-specs": SPEC,
    "design-tokens": {
        "cat": "color",
        "name": "color-primary",
        "val": "#3B82F6",
        "sem": "main action",
    },
    "api-contracts": {"endpoint": "POST /auth/login", "status": "agreed"},
}
UX = ("design-handoff", "component-specs", "design-tokens")
"""What opens the gate ux-complete, the last one last."""


def evidence(kind: str, phase: str = "01-auth", **more: Any) -> Artifact:
    """Return what an agent writes for a gate."""
    return Artifact(f"{PLANNING}/phases/{phase}/{kind}.jsonl", lines(RECORDS[kind] | more), "")


def make_company(repo: Repo) -> None:
    """Let three departments work side by side from now on."""
    repo.file(f"{PLANNING}/config.json", json.dumps(THREE))
    repo.git("commit", "-q", "-m", "chore: three departments", "--", f"{PLANNING}/config.json")


def commit(daemon: Daemon, *artifacts: Artifact) -> None:
    """Write artifacts and wait until they are committed."""
    daemon.repo.write(*artifacts)
    daemon.wait_committed(artifacts)


class Waiter:
    """`yolo-fs gate wait` in a process of its own."""

    def __init__(
        self, repo: Repo, *names: str, phase: str = "01-auth", timeout_s: float = DEADLINE_S
    ):
        words = ["gate", "wait", *names, "--phase", phase, "--json", "--timeout", str(timeout_s)]
        self._place = Path(tempfile.mkdtemp(prefix="waiter", dir=repo.root.parent))
        with (
            open(os.devnull, "rb") as nothing,
            open(self._place / "out", "wb") as out,
            open(self._place / "err", "wb") as err,
        ):
            streams = [nothing.fileno(), out.fileno(), err.fileno()]
            self.process = forked.begin(words, repo.root, repo.env, streams, session=True)

    def is_asleep(self) -> bool:
        """Return whether it has looked and sleeps; while it looks, git is a child of it."""
        pid = self.process.pid
        assert self.process.poll() is None, self._output()
        place = Path(f"/proc/{pid}/wchan").read_text()
        return not descendants(pid) and ("poll" in place or "nanosleep" in place)

    def is_connected(self) -> bool:
        """Return whether an observer looks for it."""
        folder = Path(f"/proc/{self.process.pid}/fd")
        return any(os.readlink(file).startswith("socket:") for file in folder.iterdir())

    def answer(self) -> dict[str, Any]:
        """Return what it says at its end."""
        self.process.wait()
        out, err = self._output()
        assert err == b"", err
        said: dict[str, Any] = json.loads(out)
        return dict(said["data"])

    def _output(self) -> list[bytes]:
        return [(self._place / name).read_bytes() for name in ("out", "err")]

    def end(self) -> None:
        """Kill it, if it still waits."""
        self.process.send(signal.SIGKILL)
        self.process.wait()
