"""Nothing of ours starts by itself: a daemon runs because somebody typed `start`, `restart` or `run`, or enabled a service.

So there is no consent to be kept, and no repository that could give it to itself.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.canaries import Cage
from tests.security.verbs import PHASE, of_hosts, questions
from yolo_fs.schemas.config import Policy
from yolo_fs.system.lock import holder
from yolo_fs.workspace.settings import LOOSENING, load

PROJECT = Path(__file__).parents[2]
STARTS = ("start", "restart")
"""The verbs of cli/background.py that launch."""


def test_no_verb_no_hook_and_no_host_starts_a_daemon(repo: Repo) -> None:
    cage = Cage(repo)
    wants_to_run(repo, cage)
    repo.write(artifact("plan", 0))
    said = ask(repo, questions((
        "validate", "init", "hooks install", "setup claude", "service install --systemd", "resume --format claude-hook",
        "run --once", "phase new next", "dept update backend --phase 1 --status running",
    )) + of_hosts(str(repo.root), f"{PHASE}/01-01.plan.jsonl"))  # fmt: skip
    assert b"unknown_key" in said[0].out + said[0].err
    repo.git("commit", "-q", "--allow-empty", "-m", "chore(01-01): with our hooks in place")
    repo.git("checkout", "-q", "-b", "elsewhere")
    assert holder(str(repo.git_dir / "yolo-fs/daemon.lock")) is None
    assert processes_in(repo.root) == []
    assert enabled_services(repo) == []
    assert cage.heard() == {}


def wants_to_run(repo: Repo, cage: Cage) -> None:
    """Let every file of the repository ask for it."""
    program = [cage.script("sink")]
    said = {
        "autostart": True,
        "daemon": {"autostart": True},
        "sinks": {"command": program, "every_s": 0},
    }
    repo.file(
        f"{PLANNING}/config.json",
        json.dumps({**said, "yolo_fs": {"autostart": True, "sinks": said["sinks"]}}),
    )
    repo.git("config", "yolo-fs.autostart", "true")
    own = repo.git_dir / "yolo-fs"
    own.mkdir(mode=0o700, exist_ok=True)
    (own / "config.json").write_text(json.dumps({**said, "policy": {"durability": "none"}}))


def test_only_what_somebody_types_launches_a_daemon() -> None:
    callers = [
        str(path.relative_to(PROJECT)) for path in (PROJECT / "yolo_fs").rglob("*.py")
        if re.search(r"import .*\b(launch|watch)\b", path.read_text()) and path.name != "background.py"
    ]  # fmt: skip
    assert callers == ["yolo_fs/cli/go.py"]  # which a person types too
    text = (PROJECT / "yolo_fs/cli/background.py").read_text()
    verbs = re.findall(r'^@verb\("([a-z]+)".*?(?=^@verb|\Z)', text, re.MULTILINE | re.DOTALL)
    assert set(STARTS) <= set(verbs)


def test_no_key_of_a_repository_names_a_program_or_starts_one() -> None:
    names = set(Policy._fields)
    assert not {
        name
        for name in names
        if re.search("command|program|hook|run|start|filter|webhook|exec", name)
        and name != "hooks_hold_people"  # says whom the installed hooks hold, and names no program
    }
    assert set(LOOSENING) < names


def processes_in(root: Path) -> list[str]:
    """Return the command lines of processes that work in a folder."""
    found = []
    for one in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{one}/cwd").startswith(str(root)):
                found.append(Path(f"/proc/{one}/cmdline").read_text())
        except OSError:
            continue
    return found


def enabled_services(repo: Repo) -> list[str]:
    """Return what systemd would start at the login: links in folders called NAME.wants."""
    return [str(path) for path in Path(repo.env["XDG_CONFIG_HOME"]).rglob("*.wants/*")]


def test_what_loosens_counts_from_the_users_own_configuration_alone(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", repo.env["XDG_CONFIG_HOME"])
    loose = {
        **LOOSENING,
        "max_file_bytes": 1 << 40,
        "max_depth": 10_000,
        "secrets_allowed": ("0123456789abcdef",),
    }
    repo.configure_repository(**loose)
    repo.configure(durability="fsync")
    policy, default = load(str(repo.root)).policy, Policy()
    assert {name: getattr(policy, name) for name in loose} == {
        name: getattr(default, name) for name in loose
    }
    repo.configure(**loose)
    policy = load(str(repo.root)).policy
    assert {name: getattr(policy, name) for name in loose} == loose
