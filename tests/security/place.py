"""A place in which something hostile is planted: a repository, its remote, a home and what lies around them.

It is made once, kept beside, and put back after whatever has changed it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tests.e2e.repo import Repo, make_repo
from tests.security.doors import FILE, PHASE, PLAN, PRODUCT, TASK
from tests.support import forked
from tests.support.teams import EXAMPLES

Snapshot = dict[str, tuple[object, ...]]

OURS = (
    "repo/.yolo-planning/*", "repo/.git/yolo-fs", "repo/.git/yolo-fs/*", "repo/.git/objects*", "repo/.git/index", "repo/.git/sharedindex.*",
    "repo/.git/refs/heads/main", "repo/.git/logs/HEAD", "repo/.git/logs/refs/heads/main", "repo/.git/packed-refs",
    "repo/.git/refs/yolo*", "repo/.git/refs", "repo/.git/worktrees/beside/yolo-fs*", "repo/documents*",
    "beside/.yolo-planning/*", "home/.local", "home/.local/state", "home/.local/state/yolo-fs", "home/.local/state/yolo-fs/key",
)  # fmt: skip
"""What a door may always change: our own, and what of git's a commit of ours moves."""
_NOT_LOOKED_AT = ("fired", "canaries")


class ArtifactPath:
    """Where everything lies; the same paths each time that it is put back."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root, self.home, self.outside = base / "repo", base / "home", base / "outside"
        self.fired, self.canaries = base / "fired", base / "canaries"
        self.repo = Repo(self.root, {})
        self.own = self.root / ".git/yolo-fs"
        self.before: Snapshot = {}

    # --- making it, and putting it back ---

    def make(self) -> None:
        """Make the place anew: a team at work, with something of every kind that a verb may ask for."""
        self.base.mkdir()
        for folder in (self.outside, self.fired, self.canaries):
            folder.mkdir()
        self.repo = make_repo(self.root, self.home)
        self.repo.env["YOLO_TEST_FIRED"] = str(self.fired)
        _fill(self)

    def keep(self, name: str) -> None:
        """Keep the place as it is now, under a name."""
        shutil.rmtree(self._kept(name), ignore_errors=True)
        _copy(self.base, self._kept(name))
        self.before = self.snapshot()

    def put_back(self, name: str) -> None:
        """Let the place be what was kept under a name; only what differs is copied."""
        wanted, found = _everything(str(self._kept(name))), _everything(str(self.base))
        for path in sorted(found.keys() | wanted.keys()):
            if found.get(path) != wanted.get(path):
                _replace(f"{self.base}/{path}", f"{self._kept(name)}/{path}", path in wanted)
        self.before = self.snapshot()

    def _kept(self, name: str) -> Path:
        return self.base.with_name(f"{self.base.name}-{name}")

    # --- looking at it ---

    def snapshot(self) -> Snapshot:
        """Return what lies where: kind, mode, size, time and target of everything."""
        found: Snapshot = {}
        for name in sorted(os.listdir(self.base)):
            if name not in _NOT_LOOKED_AT:
                _look(str(self.base / name), name, found)
        return found

    def changed(self, writes: tuple[str, ...] = ()) -> list[str]:
        """Return what was changed that is not ours, and not what a door is for."""
        now = self.snapshot()
        paths = sorted(
            path
            for path in now.keys() | self.before.keys()
            if now.get(path) != self.before.get(path)
        )
        allowed = (*OURS, *writes)
        return [path for path in paths if not any(fnmatchcase(path, each) for each in allowed)]

    def sang(self) -> list[str]:
        return sorted(os.listdir(self.fired))

    def silence(self) -> None:
        """Forget who sang."""
        for name in self.sang():
            (self.fired / name).unlink()

    def leftovers(self) -> list[int]:
        """Return the processes that were started here and live on."""
        mark = f"HOME={self.home}\0".encode()
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and mark in Path(f"/proc/{name}/environ").read_bytes() + b"\0":
                    found.append(int(name))
        return [pid for pid in found if pid != os.getpid()]

    def end_leftovers(self) -> None:
        """End them, kindly and then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in (left := self.leftovers()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            until = time.monotonic() + 5
            while left and self.leftovers() and time.monotonic() < until:
                time.sleep(0.01)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", "--", str(source), str(target)], check=True)


def _replace(path: str, kept: str, is_wanted: bool) -> None:
    """Let a path be what is kept, or nothing."""
    is_folder = is_wanted and stat.S_ISDIR(os.lstat(kept).st_mode)
    if os.path.isdir(path) and not os.path.islink(path):
        while not is_folder and os.path.lexists(path):
            with contextlib.suppress(
                FileNotFoundError
            ):  # a git that lost its caller tidies up, too
                shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    if is_folder:
        os.makedirs(path, exist_ok=True)
        shutil.copystat(kept, path)
    elif is_wanted:
        subprocess.run(["cp", "-a", "--", kept, path], check=True) if stat.S_ISFIFO(
            os.lstat(kept).st_mode
        ) else shutil.copy2(kept, path, follow_symlinks=False)


def _everything(root: str) -> Snapshot:
    found: Snapshot = {}
    for name in os.listdir(root):
        _look(f"{root}/{name}", name, found, with_objects=True)
    return found


def _look(path: str, name: str, found: Snapshot, *, with_objects: bool = False) -> None:
    try:
        facts = os.lstat(path)
    except FileNotFoundError:  # a process that ends takes its file along
        return
    if stat.S_ISDIR(facts.st_mode):
        found[name] = (facts.st_mode,)
        if with_objects or not name.endswith(".git/objects"):
            with os.scandir(path) as entries:
                for entry in entries:
                    _look(entry.path, f"{name}/{entry.name}", found, with_objects=with_objects)
    elif not stat.S_ISSOCK(facts.st_mode):
        target = os.readlink(path) if stat.S_ISLNK(facts.st_mode) else ""
        found[name] = (facts.st_mode, facts.st_size, facts.st_mtime_ns, target)


# --- what is there before anything hostile is ---


def asked(place: ArtifactPath, *words: str, given: str = "") -> forked.Ended:
    """Run one verb in the place."""
    return forked.call(words, place.root, place.repo.env, given.encode())


def examples() -> Iterator[tuple[str, str]]:
    for kind, name in (
        ("research/ok/findings.jsonl", "research.jsonl"),
        ("plan/ok/first_wave.jsonl", "01-01.plan.jsonl"),
        ("plan/ok/planned.jsonl", "01-02.plan.jsonl"),
    ):
        yield f"{PHASE}/{name}", (EXAMPLES / kind).read_text()
    yield f"{PHASE}/critique.jsonl", min((EXAMPLES / "critique/ok").iterdir()).read_text()


def _fill(place: ArtifactPath) -> None:
    repo, base = place.repo, place.base
    for name in ("secret", "victim"):
        (place.outside / name).write_text(f"the {name} of somebody\n")
    for name in (".bashrc", ".ssh/config", ".claude/settings.json", ".config/git/ignore"):
        path = place.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n" if name.endswith("json") else "# precious\n")
    repo.file(".env", "PASSWORD=decoy\n")
    repo.file(".yolo-planning/config.json", json.dumps({"departments": {"frontend": True}, "department_workflow": "parallel"}))  # fmt: skip
    for path, text in examples():
        repo.file(path, text)
    files = (FILE, "inputs/trap_counts_2025.csv", "apps/web/docs/guides/component-paradigm.md")
    for path in files:
        repo.file(path, "content\n")
    more = EXAMPLES.parent / "handoffs"
    repo.file(f"{PHASE}/HANDOFF.md", min((more / "handoff-file/ok").iterdir()).read_text())
    repo.file("handoff.json", min((more / "handoff-json/ok").iterdir()).read_text())
    repo.git("add", "-f", ".yolo-planning/config.json", *files)
    repo.git("commit", "-q", "-m", "chore: two departments")
    assert asked(place, "run", "--once").code == 0
    repo.git("init", "-q", "--bare", str(base / "remote.git"))
    repo.git("remote", "add", "origin", str(base / "remote.git"))
    repo.git("push", "-q", "origin", "main")
    _branch_beside(place)
    for words in (
        ("team", "join", "origin", "--yes"), ("team", "lease", "take", "backend", "--ttl", "9"), ("team", "sync"),
        ("escalate", "open", "--task", TASK, "--reason", "x", "--evidence", "y", "--recommendation", "z"),
        ("task", "claim", TASK, "--as", "dev-1"), ("dept", "update", "backend", "--phase", "1", "--status", "running"),
    ):  # fmt: skip
        done = asked(place, *words)
        assert done.code == 0, (words, done)
    assert asked(place, "envelope", "new", "-", given=PRODUCT).code == 0
    _keep_something(place)
    _switch_on(place)
    (place.root / ".git/MESSAGE").write_text("feat(01-01): T1 x\n")
    repo.file(f"{PHASE}/gaps.jsonl", '{"id":"G1"}\n')  # is refused
    repo.file(f"{PHASE}/design-handoff.jsonl", (EXAMPLES / "design-handoff/ok/component_by_component.jsonl").read_text())  # fmt: skip
    repo.file("src/staged.py", "x = 1\n")
    repo.git("add", "src/staged.py")
    repo.file(FILE, "changed = True\n")
    os.utime(place.root / "README.md", (2_000_000_000, 2_000_000_000))


def _switch_on(place: ArtifactPath) -> None:
    """Let the user want what the daemon does only where they want it."""
    path = place.home / ".config/yolo-fs/config.json"
    config = json.loads(path.read_text())
    here = config.setdefault("repositories", {}).setdefault(str(place.root), {})
    here |= {"autofix": "safe", "verify_command": ["true"]}
    path.write_text(json.dumps(config))


def _branch_beside(place: ArtifactPath) -> None:
    """Let a second work tree change what this one changes, so that a merge of both has to be thought of."""
    repo, beside = place.repo, str(place.base / "beside")
    repo.git("worktree", "add", "-q", beside, "-b", "other")
    for number in (2, 4):
        (place.base / f"beside/src/file{number}.py").write_text("there = 1\n")
        repo.file(f"src/file{number}.py", "here = 1\n")
    with open(place.base / "beside" / PLAN, "a") as plan:
        plan.write("\n")
    repo.git("-C", beside, "commit", "-q", "-a", "-m", "chore: there")
    repo.git("commit", "-q", "-m", "chore: here", "src/file2.py", "src/file4.py")


def _keep_something(place: ArtifactPath) -> None:
    """Let an agent be about to destroy what no commit has, so that it is kept."""
    place.repo.file(FILE, "precious = True\n")
    given = {
        "cwd": str(place.root), "hook_event_name": "PreToolUse", "tool_name": "Bash", "agent_type": "yolo-dev",
        "tool_input": {"command": "git reset --hard"},
    }  # fmt: skip
    asked(place, "hook", "pre-tool-use", given=json.dumps(given))
    assert b"1 " in asked(place, "kept").out
