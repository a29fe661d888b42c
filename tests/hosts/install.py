"""The real hosts, as the lock beside this file pins them: installed from npm into a cache, once."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_CLAUDE, _CODEX = "@anthropic-ai/claude-code", "@openai/codex"


@dataclass(frozen=True)
class Programs:
    """The hosts' own binaries."""

    claude: str
    codex: str


def cache() -> Path:
    """Return the folder for exactly these versions, outside of every work tree."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return Path(base) / "yolo-fs/hosts" / digest


def versions() -> dict[str, str]:
    """Return the pinned version of each host."""
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    return {"claude": wanted[_CLAUDE], "codex": wanted[_CODEX]}


def find() -> Programs | None:
    """Return the hosts where they are installed."""
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    kind = f"{platform.system().lower()}-{machine}"
    modules = cache() / "node_modules"
    claude = modules / f"{_CLAUDE}-{kind}/claude"
    codex = next(modules.glob(f"{_CODEX}-{kind}/vendor/*/bin/codex"), None)
    if codex is None or not claude.is_file():
        return None
    return Programs(str(claude), str(codex))


def install() -> Programs:
    """Install the hosts unless they are there; no script of a package runs.

    Raises:
        SystemExit: npm is missing, cannot install them, or has no binary for this machine.
    """
    if there := find():
        return there
    npm = shutil.which("npm")
    if not npm:
        raise SystemExit("hosts: npm was not found; it comes with Node.js")
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    print(f"hosts: installing {versions()} into {folder}, once (about 800 MB)", flush=True)
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    done = subprocess.run([npm, "ci", *quiet], cwd=folder, check=False)
    there = find()
    if done.returncode or there is None:
        raise SystemExit(f"hosts: npm ended with {done.returncode}, and no program is there")
    return there
