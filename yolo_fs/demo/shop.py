"""The demo's repository, and the claims that must hold once the company has shipped.

The repository is temporary. It has a planning tree of three departments and a home directory of its
own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError

INTENT = "let people log in"
AGENT = f"'{sys.executable}' -P -m yolo_fs.demo.agent"
_CONFIG = {
    "departments": {"backend": True, "frontend": True, "uiux": True},
    "department_workflow": "parallel",
}
_README = "# Harbour\n\nBerths for small boats. This phase: people log in.\n"
_WHO = "[user]\n\tname = Demo\n\temail = demo@example.org\n"


class DemoProof(NamedTuple):
    """One claim, and whether it holds."""

    claim: str
    holds: bool
    evidence: str = ""
    """What shows that it does not hold."""


@contextmanager
def temporary_shop(*, keep: bool, pace_s: float) -> Iterator[str]:
    """Yield the root of a repository that no user's configuration affects.

    On exit everything is removed, except the repository if `keep` is set.
    """
    home = os.path.realpath(tempfile.mkdtemp(prefix="yolo-fs-demo-home-"))
    root = os.path.realpath(tempfile.mkdtemp(prefix="yolo-fs-demo-"))
    own = {
        "HOME": home,
        "XDG_CONFIG_HOME": os.path.join(home, ".config"),
        "XDG_STATE_HOME": os.path.join(home, ".local"),
        "YOLO_FS_DEMO_PACE_S": str(pace_s),
        "YOLO_FS_DEMO_IS_SHORT": "yes",
    }
    try:
        with open(os.path.join(home, ".gitconfig"), "w", encoding="utf-8") as file:
            file.write(_WHO)
        with _environment(own):
            _make(root)
            yield root
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _environment(own: Mapping[str, str]) -> Iterator[None]:
    taken = {name for name in os.environ if name.startswith("GIT_")}
    before = {name: os.environ.get(name) for name in (*own, *taken)}
    for name in taken:
        del os.environ[name]
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _make(root: str) -> None:
    files = {
        "README.md": _README,
        ".yolo-planning/config.json": json.dumps(_CONFIG, indent=2) + "\n",
        ".yolo-planning/.gitignore": ".dept-*\n.handoff-*\n.*-state.json\n.phase-*\n",
    }
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    os.makedirs(os.path.join(root, ".yolo-planning/phases"), exist_ok=True)
    for words in (
        ["init", "--quiet"],
        ["add", "--force", "."],
        ["commit", "--quiet", "--message=chore(app): first berth"],
    ):
        _git(root, *words)


def _git(root: str, *words: str) -> str:
    done = _tried(root, *words)
    if done.returncode:
        raise YoloError(Reason.GIT_FAILED, done.stderr.strip())
    return done.stdout


def _tried(root: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)


def history(root: str) -> list[str]:
    """Return the commits, latest first, one line each."""
    return _git(root, "log", "--oneline", "--no-decorate").splitlines()


def commits(root: str) -> Iterator[dict[str, str]]:
    """Yield id, path and subject of each commit of an artifact."""
    output = _git(root, "log", "--reverse", "--format=%x1e%H%n%s", "--name-only")
    for record in output.split("\x1e")[1:]:
        commit, subject, *paths = [line for line in record.splitlines() if line]
        yield from (
            {"commit": commit, "path": path, "subject": subject}
            for path in paths
            if path.startswith(".yolo-planning/phases/")
        )


def prove(root: str) -> Iterator[DemoProof]:
    """Yield every claim, checked by git and by `verify`, not by the daemon."""
    command = [sys.executable, "-P", "-m", "yolo_fs", "verify", "-C", root]
    verification = subprocess.run(command, capture_output=True, text=True, check=False)
    claim = "every commit follows the protocol, one artifact each (yolo-fs verify)"
    yield DemoProof(claim, verification.returncode == 0, verification.stderr.strip())
    left = _git(root, "status", "--porcelain").strip()
    yield DemoProof("the work tree holds no open change", not left, left)
    done = _tried(root, "fsck", "--full", "--strict", "--no-progress")
    yield DemoProof("git fsck is clean", done.returncode == 0, done.stderr.strip())
