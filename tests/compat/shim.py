"""Calls a drop-in script as agents call it, as a process; test_shims.py goes through scripts/NAME.sh itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import forked

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
    words = [*map(str, arguments)]
    environment |= env or {}
    if prefix or env:
        ended = through_the_shell(
            [*prefix, str(SCRIPTS / f"{name}.sh"), *words], cwd, environment, given
        )
    else:
        ended = forked.call(["compat", name, *words], cwd, environment, given.encode())
    assert b"Traceback" not in ended.err, ended.err.decode()
    return Done(ended.code, ended.out.decode(), ended.err.decode())


def through_the_shell(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], given: str
) -> forked.Ended:
    done = subprocess.run(
        command, input=given.encode(), cwd=cwd, env=env, capture_output=True, timeout=60, check=False
    )  # fmt: skip
    return forked.Ended(done.returncode, done.stdout, done.stderr)


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
