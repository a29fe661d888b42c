"""Calls a drop-in script as agents call it: scripts/NAME.sh, as a process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


class Done(NamedTuple):
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def advice(self) -> str:
        return str(self.json["hookSpecificOutput"]["additionalContext"]) if self.out else ""


def call(
    name: str,
    *arguments: object,
    cwd: Path,
    given: str = "",
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Done:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "error",
    }
    done = subprocess.run(
        [*prefix, str(SCRIPTS / f"{name}.sh"), *map(str, arguments)], input=given.encode(), cwd=cwd,
        env=environment | dict(env or {}), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def lines(*values: object) -> str:
    """Return JSONL."""
    return "".join(json.dumps(value) + "\n" for value in values)


def fill(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


HEADER = {
    "p": "01", "n": "01", "t": "Login", "w": 1, "d": [], "obj": "People log in",
    "mh": {"tr": ["a session exists"], "ar": [], "kl": []},
}  # fmt: skip
TASK = {
    "id": "T1", "tp": "auto", "a": "write it", "f": ["src/auth.ts"], "v": "npm test", "done": "tests pass",
    "spec": "export login()",
}  # fmt: skip
SUMMARY = {
    "p": "01", "n": "01", "t": "Login", "s": "complete", "dt": "2026-02-19", "tc": 1, "tt": 1, "ch": ["abc1234"],
    "fm": ["src/auth.ts"], "dv": [], "built": ["login"], "tst": "red_green",
}  # fmt: skip
