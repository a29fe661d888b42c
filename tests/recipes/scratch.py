"""A copy of the package with a few lines added to it, and a repository that it works in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Scratch:
    """A changed copy of the program and a repository to run it in."""

    package: Path
    repository: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the changed program in the repository."""
        environment = {**os.environ, "PYTHONPATH": str(self.package), "NO_COLOR": "1"}
        return subprocess.run(
            [sys.executable, "-m", "yolo_fs", *arguments],
            cwd=self.repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """Return what the program answers with `--json`."""
        done = self.run(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def git(self, *arguments: str) -> str:
        """Run git in the repository and return what it prints."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.repository, capture_output=True, text=True, check=True
        )
        return done.stdout

    def start(self, *options: str) -> None:
        """Make a planning tree with one phase, and commit it."""
        done = self.run("init", *options)
        assert done.returncode == 0, done.stderr
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "chore: planning tree")
        made = self.run("phase", "new", "login")
        assert made.returncode == 0, made.stderr

    def insert(self, file: str, before: str, text: str) -> None:
        """Put text before the first occurrence of `before` in a file of the package."""
        path = self.package / "yolo_fs" / file
        source = path.read_text()
        assert before in source, f"{file} has no {before!r}"
        path.write_text(source.replace(before, text + before, 1))

    def write(self, path: str, content: str) -> None:
        """Write a file of the repository."""
        full = self.repository / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(content)


def scratch(folder: Path) -> Scratch:
    """Return a copy of the package and an empty repository below a folder."""
    package, repository = folder / "package", folder / "repository"
    shutil.copytree(
        ROOT / "yolo_fs", package / "yolo_fs", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / ".yolo-planning-template", package / ".yolo-planning-template")
    repository.mkdir()
    made = Scratch(package, repository)
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.name", "A Tester")
    made.git("config", "user.email", "tester@example.org")
    made.git("commit", "-q", "--allow-empty", "-m", "start")
    return made
