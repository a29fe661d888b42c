"""A company of three departments in a repository, and what its agents write for its gates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.artifacts import PLANNING, Artifact, lines
from tests.e2e.daemon import Daemon, descendants, until
from tests.e2e.repo import DEADLINE_S, Repo

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
    """Write artifacts and wait until they are committed and the daemon has judged the gates by them."""
    before = _judged(daemon.repo)
    daemon.repo.write(*artifacts)
    daemon.wait_committed(artifacts)
    until(lambda: _judged(daemon.repo) != before, "the gates are judged")


def _judged(repo: Repo) -> tuple[int, int]:
    """Return what changes whenever the daemon has judged the gates."""
    found = (repo.git_dir / "yolo-fs/gates.json").stat()
    return found.st_ino, found.st_mtime_ns


class Waiter:
    """`yolo-fs gate wait` in a process of its own."""

    def __init__(
        self, repo: Repo, *names: str, phase: str = "01-auth", timeout_s: float = DEADLINE_S
    ):
        command = [
            sys.executable,
            "-m",
            "yolo_fs",
            "gate",
            "wait",
            *names,
            "--phase",
            phase,
            "--json",
        ]
        self.process = subprocess.Popen(
            [*command, "--timeout", str(timeout_s)], cwd=repo.root, env=repo.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def is_asleep(self) -> bool:
        """Return whether it has looked and sleeps; its look is a child of it."""
        pid = self.process.pid
        assert self.process.poll() is None, self.process.communicate()
        place = Path(f"/proc/{pid}/wchan").read_text()
        return not descendants(pid) and ("poll" in place or "nanosleep" in place)

    def answer(self) -> dict[str, Any]:
        """Return what it says at its end."""
        out, err = self.process.communicate(timeout=DEADLINE_S)
        assert err == b"", err
        said: dict[str, Any] = json.loads(out)
        return dict(said["data"])

    def end(self) -> None:
        """Kill it, if it still waits."""
        self.process.kill()
        self.process.communicate()
