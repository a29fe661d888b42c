"""What every family stands on: repositories, daemons, the log of what was written, and the judge."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.artifacts import PLANNING, Artifact, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo, make_repo
from tests.torture.forked_daemons import ForkedDaemon

VALIDATOR = Path(__file__).with_name("validator.py")
FIRED = "yolo-fs: failpoint "
FAST = {"durability": "none", "rescan_s": 5}
"""Policy of the families: a killed process loses nothing that it wrote, so no kill needs fsync; `power.py` sets it."""
COMPUTED = (".dept-", ".handoff-", ".yolo-tmp")


@dataclass
class Tally:
    """What became of one family."""

    family: str
    count: int = 0
    """Faults that fired, or states that were tried: what the target counts."""
    lost: int = 0
    duplicated: int = 0
    faults: list[str] = field(default_factory=list)
    """Whatever else is wrong, in words."""
    skipped: str = ""
    """Why nothing was tried."""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def found(self) -> int:
        """How much is wrong."""
        return self.lost + self.duplicated + len(self.faults)

    @property
    def is_clean(self) -> bool:
        return not self.found


class Ground:
    """A folder to work in, random numbers that can be had again, and a tally."""

    def __init__(self, family: str, place: Path, seed: int) -> None:
        self.place = place
        self.rng = random.Random(seed)
        self.tally = Tally(family)
        self._numbers = itertools.count(1)
        self._daemons: list[Daemon] = []
        self._template: Repo | None = None
        self._mounts: list[Path] = []
        self._found_before: dict[Path, int] = {}
        """Repository → how much was wrong when it was made."""

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            if daemon.is_running:
                daemon.kill(with_helpers=True)
        for mount in self._mounts:
            unmount(mount)

    # --- what is there -----------------------------------------------------------------------------------------------

    def repo(self, **policy: Any) -> Repo:
        """Return a fresh repository; `policy`: the user's own configuration, beside `FAST`."""
        home = self.place / f"home{next(self._numbers)}"
        if self._template is None:
            self._template = make_repo(self.place / "template", self.place / "home")
        shutil.copytree(self.place / "home", home)
        root = self.place / f"repo{next(self._numbers)}"
        shutil.copytree(self._template.root, root, symlinks=True)
        repo = Repo(
            root,
            {**self._template.env, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")},
        )
        repo.configure(**FAST | policy)
        self._found_before[root] = self.tally.found
        return repo

    def daemon(self, repo: Repo, faults: str = "", **more: str) -> ForkedDaemon:
        """Return a daemon that is not started yet."""
        log = self.place / f"daemon{next(self._numbers)}.log"
        daemon = ForkedDaemon(repo, log, {"YOLO_FP": faults, **more})
        self._daemons.append(daemon)
        return daemon

    def process(self, repo: Repo, *, under: Sequence[str] = (), **more: str) -> Daemon:
        """Return a daemon that is a process from its start on, not yet started."""
        daemon = Daemon(
            repo, self.place / f"daemon{next(self._numbers)}.log", under=under, more=more
        )
        self._daemons.append(daemon)
        return daemon

    def mount(self, size_kib: int) -> Path:
        """Mount a small file system of its own.

        Raises:
            Skip: this user may not.
        """
        place = self.room_to_mount()
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            f"size={size_kib}k,mode=755",
            "torture",
            str(place),
        ]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            raise SkipError("needs the right to mount a tmpfs")
        return place

    def room_to_mount(self) -> Path:
        """Return an empty folder; what is mounted there is unmounted in the end."""
        place = self.place / f"mount{next(self._numbers)}"
        place.mkdir()
        self._mounts.append(place)
        return place

    def forget(self, repo: Repo) -> None:
        """Remove a repository that was judged, unless anything is wrong since it was made."""
        if self.tally.found == self._found_before[repo.root]:
            shutil.rmtree(repo.root)

    # --- what is said of it ------------------------------------------------------------------------------------------

    def fault(self, text: str) -> None:
        self.tally.faults.append(text)

    def fired(self, daemon: Daemon, stage: str, of: str) -> None:
        """Count a failpoint that fired; a planned fault that did not is a fault of the run."""
        if f"{FIRED}{stage}\n" in daemon.complaints():
            self.tally.count += 1
        else:
            self.fault(f"{of}: {stage} did not fire")

    def judge(self, repo: Repo, log: Writelog, of: str) -> None:
        """Let the validator judge a repository, and count what it finds."""
        of = f"{repo.root.name}: {of}"
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(VALIDATOR), str(repo.root), str(log.path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1) or not done.stdout:
            self.fault(f"{of}: the validator failed: {done.stderr[-300:]}")
            return
        found = json.loads(done.stdout)
        self.tally.lost += len(found["lost"])
        self.tally.duplicated += len(found["duplicated"])
        for kind in ("lost", "duplicated"):
            self.tally.notes += [f"{of}: {kind}: {text}" for text in found[kind][:3]]
        for kind in ("out_of_order", "foreign", "fsck", "user"):
            self.tally.faults += [f"{of}: {kind}: {text[:300]}" for text in found[kind][:5]]


def unmount(place: Path) -> None:
    """Unmount whatever is mounted at a place, one layer after the other."""
    while os.path.ismount(place):
        subprocess.run(["umount", "--lazy", str(place)], check=True)


class SkipError(Exception):
    """This machine does not let us try it."""


class Writelog:
    """What the test writes, on the disk before anybody acts on it."""

    def __init__(
        self, repo: Repo, name: str = "writes", branches: Sequence[str] = ("main",)
    ) -> None:
        self.path = repo.root.parent / f"{repo.root.name}.{name}.jsonl"
        self._repo = repo
        self._known: dict[str, str] = {}
        """Blob → sha256 of what was written."""
        for branch in branches:
            self.branch(branch, repo.look("rev-parse", branch).strip())

    def branch(self, name: str, since: str) -> None:
        """Have a branch judged, from a commit on."""
        self._put({"branch": name, "since": since})

    def write(self, *artifacts: Artifact, passing: bool = False) -> None:
        """Write artifacts into the work tree; `passing`: they are written over before they have to be seen."""
        for one in artifacts:
            self.note(one, passing=passing)
            self._repo.write(one)

    def note(self, one: Artifact, *, passing: bool = False) -> None:
        """Note that an artifact is written."""
        sha256 = hashlib.sha256(one.data).hexdigest()
        self._known[one.blob()] = sha256
        self._put({"write": one.path, "sha256": sha256, **({"passing": True} if passing else {})})

    def acknowledged(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Note what a daemon said that it committed."""
        for event in events:
            if event.get("event") == "artifact.committed" and event["data"]["blob"] in self._known:
                sha256 = self._known[event["data"]["blob"]]
                self._put(
                    {
                        "acknowledged": event["path"],
                        "sha256": sha256,
                        "commit": event["data"]["commit"],
                    }
                )

    def subject(self, text: str) -> None:
        """Note a commit of the user's own."""
        self._put({"subject": text})

    @contextlib.contextmanager
    def untouched(self) -> Iterator[None]:
        """Note what is the user's, before and after."""
        self._put({"user": self._repo.of_the_user()})
        yield
        self._put({"user": self._repo.of_the_user()})

    def _put(self, line: Mapping[str, Any]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def many(count: int) -> list[Artifact]:
    """Return artifacts of distinct paths, plan and summary by turns: up to 3,960, since a plan has two digits."""
    return [artifact(kind, n) for n in range(count // 2 + 1) for kind in ("plan", "summary")][
        :count
    ]


def settled(daemon: Daemon, within_s: float = 20.0) -> None:
    """Wait until HEAD holds what the planning tree holds, and the index has followed."""
    until(
        lambda: not behind(daemon.repo),
        "everything is committed and the index has followed",
        within_s,
    )


def behind(repo: Repo) -> list[str]:
    """Return what is not settled: what is computed from commits is no artifact, and is never committed."""
    shown = repo.look("status", "--porcelain", "-uall", "--", PLANNING).splitlines()
    lines = [line for line in shown if not line.rpartition("/")[2].startswith(COMPUTED)]
    held = ["index.lock is there"] if os.path.exists(repo.root / ".git/index.lock") else []
    return held + lines
