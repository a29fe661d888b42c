"""Whatever `GIT_*` says, our work lands in the repository that was meant, and in no other. See
docs/dev/faults.md#f48.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.e2e.artifacts import mixed
from tests.e2e.daemon import Daemon
from tests.e2e.history import History
from tests.e2e.repo import Repo
from tests.security.asking import ask
from tests.security.canaries import Cage
from tests.security.verbs import PHASE, READERS, of_hosts, questions
from tests.support import forked

Start = Callable[..., Daemon]
NewRepo = Callable[..., Repo]
ALL = bool(os.environ.get("YOLO_SECURITY"))
SOME = ("status", "verify", "validate --staged", "doctor", "compat phase-detect", "run --once")


def poison(decoy: Repo, cage: Cage) -> dict[str, str]:
    """Return every variable by which git can be led elsewhere, let something run, or let something be written."""
    git_dir = decoy.root / ".git"
    settings = decoy.root / "settings"
    leads = {
        "GIT_DIR": git_dir, "GIT_COMMON_DIR": git_dir, "GIT_WORK_TREE": decoy.root, "GIT_INDEX_FILE": git_dir / "index",
        "GIT_OBJECT_DIRECTORY": git_dir / "objects", "GIT_ALTERNATE_OBJECT_DIRECTORIES": git_dir / "objects",
        "GIT_QUARANTINE_PATH": git_dir / "objects", "GIT_NAMESPACE": "decoy", "GIT_PREFIX": "src/",
        "GIT_SHALLOW_FILE": git_dir / "shallow", "GIT_GRAFT_FILE": git_dir / "grafts", "GIT_REPLACE_REF_BASE": "refs/evil/",
        "GIT_CEILING_DIRECTORIES": decoy.root.parent, "GIT_DEFAULT_HASH": "sha256", "GIT_ATTR_SOURCE": "HEAD",
        "GIT_IMPLICIT_WORK_TREE": "0", "GIT_LITERAL_PATHSPECS": "0", "GIT_GLOB_PATHSPECS": "1", "GIT_ICASE_PATHSPECS": "1",
        "GIT_AUTHOR_DATE": "1 +0000", "GIT_COMMITTER_DATE": "1 +0000", "GIT_INTERNAL_SUPER_PREFIX": "x/",
    }  # fmt: skip
    runs = {
        "GIT_EXTERNAL_DIFF": "external", "GIT_SSH_COMMAND": "ssh", "GIT_SSH": "ssh", "GIT_ASKPASS": "askpass",
        "GIT_EDITOR": "editor", "GIT_SEQUENCE_EDITOR": "editor", "GIT_PAGER": "pager", "GIT_PROXY_COMMAND": "proxy",
    }  # fmt: skip
    monitor = cage.script("monitor")
    (cage.fired.parent / "exec-path").mkdir()
    for name in ("git", "git-cat-file", "git-update-ref", "git-rev-parse"):
        cage.write(cage.fired.parent / "exec-path" / name, "exec-path")
    settings.write_text(f"[core]\n\tfsmonitor = {monitor}\n\thooksPath = {cage.git_dir}/canaries\n")
    configures = {
        "GIT_CONFIG": settings, "GIT_CONFIG_GLOBAL": settings, "GIT_CONFIG_SYSTEM": settings, "GIT_CONFIG_NOSYSTEM": "0",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": monitor,
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{monitor}'", "GIT_EXEC_PATH": cage.fired.parent / "exec-path",
    }  # fmt: skip
    writes = dict.fromkeys(("GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE_PACKET", "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"), decoy.root / "trace")  # fmt: skip
    programs = {name: cage.script(f"{program}-of-environment") for name, program in runs.items()}
    return {name: str(value) for name, value in (leads | programs | configures | writes).items()}


@pytest.fixture
def decoy(new_repo: NewRepo) -> Repo:
    return new_repo("decoy")


@pytest.fixture
def cage(repo: Repo) -> Cage:
    return Cage(repo)


def test_no_variable_leads_us_elsewhere(repo: Repo, decoy: Repo, cage: Cage, start: Start) -> None:
    poisoned = poison(decoy, cage)
    before = content(decoy.root)
    history, artifacts = History(repo), mixed(20)
    daemon = start(repo, **poisoned)
    repo.write(*artifacts)
    daemon.wait_committed(artifacts)
    ask(
        repo,
        questions(READERS if ALL else SOME) + of_hosts(str(repo.root), f"{PHASE}/x"),
        more=poisoned,
    )
    # one that imports with all of it what runs git
    assert forked.start(("status",), repo.root, {**repo.env, **poisoned}).code == 0
    assert daemon.stop() == 0
    assert content(decoy.root) == before
    assert cage.heard() == {}
    if not ALL:  # some of all the commands write as well
        history.check(artifacts)


@pytest.mark.parametrize("path", [":{}", ".:{}", "tools:{}", "{}:.", ""])
def test_no_folder_of_the_repository_is_searched_for_programs(
    repo: Repo, cage: Cage, path: str
) -> None:
    for name in ("git", "claude", "sh", "python3", "lsof", "ps"):
        for folder in (repo.root, repo.root / "tools"):
            cage.write(folder / name, name)
    env = {**repo.env, "PATH": path.format("/usr/bin:/bin")}
    for words in (("status",), ("run", "--once"), ("doctor",), ("go", "a login")):
        command = [sys.executable, "-P", "-m", "yolo_fs", *words]
        done = subprocess.run(command, cwd=repo.root, env=env, capture_output=True, check=False)
        assert b"Traceback" not in done.stderr, done.stderr
    assert cage.heard() == {}


def test_stock_git_would_have_been_led_elsewhere(repo: Repo, decoy: Repo, cage: Cage) -> None:
    poisoned = poison(decoy, cage)
    before = content(decoy.root)
    repo.git(
        "status",
        ok=range(256),
        **{name: poisoned[name] for name in ("GIT_CONFIG_GLOBAL", "GIT_TRACE")},
    )
    repo.git(
        "update-index", "--force-remove", "README.md", GIT_INDEX_FILE=poisoned["GIT_INDEX_FILE"]
    )
    changed = {path for path, data in content(decoy.root).items() if before.get(path) != data}
    assert changed == {".git/index", "trace"}
    assert set(cage.heard()) == {"monitor"}


@pytest.mark.skipif(not ALL, reason="YOLO_SECURITY=1 tries each variable alone")
def test_no_variable_alone_leads_us_elsewhere(repo: Repo, decoy: Repo, cage: Cage) -> None:
    poisoned = poison(decoy, cage)
    before = content(decoy.root)
    history, artifacts = History(repo), mixed(len(poisoned))
    for one, (name, value) in zip(artifacts, poisoned.items(), strict=True):
        repo.write(one)
        ask(repo, questions(("run --once", "status", "compat phase-detect")), more={name: value})
        assert (content(decoy.root), cage.heard()) == (before, {}), name
        assert repo.subjects()[-1] == one.subject, name
    history.check(artifacts)


def content(root: Path) -> Mapping[str, str]:
    """Return every path below a folder with the digest of what it holds."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in sorted(root.rglob("*"))
    }
