"""What our libraries do in a run of the demo's three departments, and what is done by hand instead, with the reason.

Each process of the run counts its calls (`bench/counted/sitecustomize.py`), so it takes about three times as long.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from bench.options import Options
from bench.table import Table

_COUNTED = Path(__file__).parent / "counted"
_DEMO = (sys.executable, "-P", "-m", "yolo_fs", "demo", "--speed", "20")
_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class _Part:
    """One way in which a job is done: the functions that are counted for it."""

    name: str
    functions: tuple[str, ...]
    reason: str = ""
    """Why by hand."""


@dataclass(frozen=True, slots=True)
class _Job:
    """What has to be done, by a library and by hand."""

    name: str
    by_library: _Part
    by_hand: tuple[_Part, ...]


_LOCKS = _Job(
    "locks taken, or tried",
    _Part("filelock", ("filelock._unix:lock_fd_nonblocking>flock",)),
    (
        _Part(
            "`system/lock.py`: is a daemon alive, and whose",
            ("yolo_fs.system.lock:holder>flock", "yolo_fs.system.lock:hold>flock"),
            "held for a process's life, on a descriptor that is written to, compared and handed to git; "
            "filelock drops it in a forked child",
        ),
        _Part(
            "`system/database.py`: an index is open, or is made anew",
            (
                "yolo_fs.system.database:_wait>flock",
                "yolo_fs.system.database:_opened>flock",
                "yolo_fs.system.database:_close>flock",
            ),
            "many readers at once: filelock has no shared lock on a file",
        ),
        _Part(
            "`system/journal.py`, `git/objects.py`, `git/packs.py`: a folder",
            (
                "yolo_fs.system.journal:Journal._alone>flock",
                "yolo_fs.git.objects:ObjectStore.hold_packs_back>flock",
                "yolo_fs.git.packs:_try_flock>flock",
            ),
            "the folder itself is locked, so nothing is left behind; filelock opens a file for writing",
        ),
        _Part(
            "`system/in_place.py`, `system/heartbeats.py`: the log that is written",
            (
                "yolo_fs.system.in_place:appending>flock",
                "yolo_fs.system.heartbeats:_put_aside>flock",
            ),
            "the log is its own lock, below a folder of the user's, where no file of ours may be left",
        ),
        _Part(
            "`progress/`: whether a lock of the scripts is held",
            ("yolo_fs.progress.departments:_is_held>flock",),
            "asked, not taken",
        ),
    ),
)

_LINES_READ = _Job(
    "lines of JSONL read",
    _Part("jsonlines", ("jsonlines:Reader.read",)),
    (
        _Part(
            "`system/journal.py`: sources of events",
            ("yolo_fs.system.journal:_In.events",),
            "read from a number on and backwards, in bytes, past a torn end",
        ),
        _Part(
            "`daemon/observing.py`: messages between our two processes",
            ("yolo_fs.daemon.observing:Channel.receive",),
            "a pipe that gives half lines and must not block",
        ),
    ),
)

_LINES_WRITTEN = _Job(
    "lines of JSONL written",
    _Part("jsonlines", ("jsonlines:Writer.write",)),
    (
        _Part(
            "`system/journal.py`: events",
            ("yolo_fs.system.journal:Journal._put",),
            "one write of ASCII, so that a kill leaves at most one torn line (F56)",
        ),
        _Part(
            "`daemon/observing.py`: messages between our two processes",
            (
                "yolo_fs.daemon.observing:Channel.send",
                "yolo_fs.daemon.observing:ObserverKeeper._send",
            ),
            "a pipe that takes half lines and must not block",
        ),
    ),
)

_REPOSITORIES = _Job(
    "repositories found, with their configuration",
    _Part("GitPython", ("git.repo.base:Repo.__init__",)),
    (
        _Part(
            "`git/discovery.py`: ordinary ones",
            ("yolo_fs.git.discovery:_ordinary",),
            "the import costs more than most commands; any other layout goes to GitPython",
        ),
    ),
)

_PROCESSES = _Job(
    "git processes started",
    _Part("GitPython", ("git.cmd:Git.execute",)),
    (
        _Part(
            "`git/as_user.py`: `yolo-fs commit`, as the user typed it",
            ("yolo_fs.git.as_user:run_as_user",),
            "it belongs to the terminal: no pipe, no time limit",
        ),
    ),
)

_OBJECTS = _Job(
    "objects: questions to git, packs written",
    _Part("git's `cat-file` through GitPython", ("yolo_fs.git.objects:ObjectStore._ask",)),
    (
        _Part(
            "`git/objects.py`: written",
            ("yolo_fs.git.objects:ObjectStore.begin_to_write",),
            "with a `.keep` before it is seen: a loose object falls to `git prune` before a branch names it (F04)",
        ),
    ),
)

_REFS = _Job(
    "refs: moved, read",
    _Part("git's `update-ref` through GitPython", ("yolo_fs.git.refs:RefUpdater._transact",)),
    (
        _Part(
            "`git/repository.py`: a tip read",
            ("yolo_fs.git.repository:Repository.tip",),
            "one small file; a git that lives long takes an exchanged packed-refs for the old one. "
            "Reftables and odd refs go to git",
        ),
    ),
)

_INDEX = _Job(
    "index: read and written by git, placed by hand",
    _Part(
        "git's `update-index` and `ls-files` through GitPython",
        ("yolo_fs.git.index:IndexSync._put", "yolo_fs.git.repository:Repository.staged"),
    ),
    (
        _Part(
            "`git/index.py`: a draft that git wrote is put in place",
            ("yolo_fs.git.index:IndexDraft.in_place",),
            "between the index and the branch: GitPython would write all entries anew, without extensions (F05, F22)",
        ),
    ),
)

JOBS = (_LOCKS, _LINES_READ, _LINES_WRITTEN, _REPOSITORIES, _PROCESSES, _OBJECTS, _REFS, _INDEX)


def run(options: Options) -> Iterator[Table]:
    """Run the demo once and yield what its processes called."""
    refuse_stale_names()
    folder = Path(options.scratch) / "counts"
    folder.mkdir()
    environment = os.environ | {"YOLO_BENCH_COUNTS": str(folder), "PYTHONPATH": str(_COUNTED)}
    subprocess.run(
        _DEMO, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=_TIMEOUT_S
    )
    calls = _read(folder)
    processes = len(list(folder.iterdir()))
    yield Table(
        f"Libraries in a run of three departments: {processes} processes",
        ("job", "by", "calls", "why by hand"),
        tuple(_rows(calls)),
    )


def refuse_stale_names() -> None:
    """Raise for a function that is not there any more: 0 calls would be shown for it."""
    for job in JOBS:
        for part in (job.by_library, *job.by_hand):
            for function in part.functions:
                module, name = function.removesuffix(">flock").split(":")
                attrgetter(name)(importlib.import_module(module))


def _read(folder: Path) -> Counter[str]:
    calls: Counter[str] = Counter()
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            count, name = line.split(" ", 1)
            calls[name] += int(count)
    return calls


def _rows(calls: Counter[str]) -> Iterator[tuple[str, str, str, str]]:
    for job in JOBS:
        for part in (job.by_library, *job.by_hand):
            total = sum(calls[function] for function in part.functions)
            name = job.name if part is job.by_library else ""
            yield name, part.name, str(total), part.reason
