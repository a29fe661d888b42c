"""Who stores the objects of each commit while git collects garbage: we, or a command of git.

Each writer makes the same commits in a repository of its own, and moves the branch by the same
compare-and-swap. A try that fails is repeated, as a daemon would. An object is missing if `git fsck` does not
find it, between two rounds of the collector or at the end, for two seconds.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import repositories
from bench.options import Options
from bench.rounds import Sample
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.cli.validate import watched
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.object_format import GitObject, pack_of
from yolo_fs.git.objects import ObjectStore, discard
from yolo_fs.git.packs import MERGE_FROM, REST_MOST, PackMerger
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.system.store import sync_directory

OURS = "yolo-fs: a pack with a note"
_COLLECTORS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "git prune": ("prune", "--expire=now"),
    "git gc": ("gc", "-q", "--prune=now"),
    "git repack": ("repack", "-adfq"),
    "git maintenance": ("maintenance", "run", "--quiet", "--task=loose-objects", "--task=incremental-repack", "--task=gc"),
}  # fmt: skip
_BRANCH = f"refs/heads/{repositories.BRANCH}"
_IMPORTED = "refs/yolo-fs/imported"
"""fast-import makes no commit without a ref of its own."""
_PACKS = 250
"""Packs that are there before, of which git lists the files in more than one piece."""
_TRIES = 20
_LOOK_EVERY_S = 2.0
_PATIENCE_S = 2.0
_PAUSE_S = 0.01


class _FailedError(Exception):
    """The objects were not stored."""


class _Ours:
    """Stores a pack with a note, and merges its packs in passing, as a daemon does."""

    name = OURS

    def __init__(self, root: str):
        self.root = root
        self.repository = Repository(root)
        self.repository.make_own_dir()
        self.refs = RefUpdater(self.repository)
        self.prepare()
        follower = IndexSync(self.repository)
        self._committer = Committer(self.repository, self.refs, follower, lambda: datetime.now(UTC))
        self._packs = PackMerger(self.repository)

    def prepare(self) -> None:
        """Put the way of storing in place."""

    def commit(self, request: CommitRequest) -> None:
        """Commit an artifact. Raises _FailedError, YoloError(BRANCH_MOVED)."""
        self._committer.extend([request], _BRANCH, self.repository.tip(_BRANCH))

    def tidy(self) -> None:
        """Do what is due between two commits."""
        if self._packs.fresh >= MERGE_FROM and not self._packs.is_merging:
            self._packs.begin(most=REST_MOST)
        self._packs.step()

    def close(self) -> None:
        """End."""
        self._packs.end()
        self.refs.close()
        self.repository.close()


class _UnnotedStore(ObjectStore):
    """Takes the note off a pack before a branch names what is in it."""

    def write(self, objects: Sequence[GitObject]) -> None:
        super().write(objects)
        for note in Path(self.pack_folder).glob("*.keep"):
            if note.stat().st_size:
                discard(str(note))


class _IndexingStore(ObjectStore):
    """Hands our packs to `git index-pack`."""

    command: Sequence[str] = ("index-pack", "--stdin", "--keep=yolo-fs")

    def write(self, objects: Sequence[GitObject]) -> None:
        unique = {each.oid: each for each in objects}.values()
        given = pack_of(unique, self.object_format).data
        git_dir = os.path.dirname(os.path.dirname(self.pack_folder))
        # git is told to sync all that it writes; names it never syncs
        done = subprocess.run(
            ["git", "--git-dir", git_dir, "-c", "core.fsync=all", *self.command],
            input=given, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise _FailedError(done.stderr.decode("utf-8", "replace"))
        sync_directory(self.pack_folder)
        self.packs_written += 1


class _UnpackingStore(_IndexingStore):
    """Hands our packs to `git unpack-objects`."""

    command = ("unpack-objects", "-q")


class _OtherStore(_Ours):
    store: type[ObjectStore]

    def prepare(self) -> None:
        plain = self.repository.objects
        folder = os.path.dirname(plain.pack_folder)
        vars(self.repository)["objects"] = self.store(
            self.repository.git, folder, plain.object_format
        )


class _Unnoted(_OtherStore):
    name = "yolo-fs without the note"
    store = _UnnotedStore


class _IndexPack(_OtherStore):
    name = "git index-pack --keep, with our pack"
    store = _IndexingStore


class _Loose(_OtherStore):
    name = "git unpack-objects: loose objects"
    store = _UnpackingStore


class _FastImport(_Ours):
    """One `git fast-import` that stays, with a checkpoint after each commit."""

    name = "git fast-import that stays"
    _process: subprocess.Popen[bytes] | None = None
    _ends_each = False

    def commit(self, request: CommitRequest) -> None:
        tip = self.repository.tip(_BRANCH)
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        end = b"done\n" if self._ends_each else b"checkpoint\n\nprogress done\n"
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(_stream(request, str(tip)) + b"get-mark :1\n" + end)
            process.stdin.flush()
        made, last = process.stdout.readline().decode().strip(), process.stdout.readline()
        if self._ends_each or not last:
            self._end()
            if process.returncode:
                raise _FailedError(self._said)
        sync_directory(self.repository.objects.pack_folder)
        self.repository.evict_caches()
        self.refs.move(_BRANCH, made, tip)

    def tidy(self) -> None:
        """Nobody else may merge its packs while it has them open."""

    def close(self) -> None:
        if self._process is not None:
            self._end()
        super().close()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["git", "-C", self.root, "-c", "core.fsync=all", "-c", "core.hooksPath=/dev/null",
             "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--force", "--done"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _end(self) -> None:
        assert self._process
        with contextlib.suppress(BrokenPipeError):
            _, complaints = self._process.communicate(timeout=60)
            self._said = complaints.decode("utf-8", "replace")
        self._process = None

    _said = ""


class _FastImportOnce(_FastImport):
    name = "git fast-import for each commit"
    _ends_each = True


_WRITERS: Sequence[type[_Ours]] = (
    _Ours, _Unnoted, _FastImport, _FastImportOnce, _IndexPack, _Loose
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Run:
    """What one writer did beside one collector."""

    times: Sample
    made: int
    failed: int
    missing: int
    notes: int
    """Packs with a note, ours or of fast-import, before the writer ends."""
    rounds: int


def run(options: Options) -> Iterator[Table]:
    """Let every writer make the same commits beside nothing, and beside each collector in a loop."""
    count = options.pick(400, 3, 2_000)
    ours: list[_Run] = []
    for beside in watched(tuple(_COLLECTORS), "collectors", lambda _: len(_COLLECTORS)):
        runs = {writer.name: _written(options, writer, beside, count) for writer in _WRITERS}
        ours.append(runs[OURS])
        yield Table(
            f"Who stores the objects of a commit, beside {beside}",
            ("writer", "commits made", "failed tries", "missing objects", "p50 ms", "p95 ms",
             "packs with a note", "rounds of the collector"),
            tuple((name, *_cells(one)) for name, one in runs.items()),
            (
                f"seed {options.seed}; a commit is one artifact, synced, with at most {_TRIES} tries; the branch moves by "
                "`git update-ref`; none counts as made where the branch cannot be read",
            ),
        )  # fmt: skip
    yield goal_table(
        "Goals: writers",
        [
            Goal("objects that are missing beside every collector", sum(one.missing for one in ours), 0),
            Goal("tries of ours that failed", sum(one.failed for one in ours), 0),
        ],
    )  # fmt: skip


def _cells(one: _Run) -> tuple[str, ...]:
    return (
        f"{one.made} of {len(one.times.times_s)}", str(one.failed), str(one.missing),
        ms(one.times.p50), ms(one.times.quantile(0.95)), str(one.notes), str(one.rounds),
    )  # fmt: skip


def _written(options: Options, kind: type[_Ours], beside: str, count: int) -> _Run:
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    _fill(root)
    writer = kind(root)
    chance = random.Random(options.seed)
    limit_s = options.pick(12.0, 2.0, 45.0)
    times, failed, missing = Sample(), 0, set[str]()
    with contextlib.closing(_Loop(root, _COLLECTORS[beside])) as loop:
        began_at = looked_at = time.monotonic()
        for number in range(count):
            path, data = repositories.artifact(number % 9_900, f"{chance.random()}")
            request = CommitRequest(path, data, f"docs(01): summary {number}")
            before = time.perf_counter()
            failed += _tried(writer, request)
            times.times_s.append(time.perf_counter() - before)
            writer.tidy()
            time.sleep(chance.random() * _PAUSE_S)
            if time.monotonic() - looked_at > _LOOK_EVERY_S:
                with loop.between:
                    missing |= _missing(root)
                looked_at = time.monotonic()
            if time.monotonic() - began_at > limit_s:
                break
    folder = Path(root, ".git/objects/pack")
    notes = sum(bool(note.stat().st_size) for note in folder.glob("*.keep"))
    writer.close()
    missing |= _missing(root)
    subjects = repositories.git_that_may_fail(root, "log", "--format=%s", _BRANCH).splitlines()
    made = sum(one.startswith("docs(01): summary ") for one in subjects)
    return _Run(times, made, failed, len(missing), notes, loop.rounds)


def _tried(writer: _Ours, request: CommitRequest) -> int:
    """Commit; return how often storing failed. After `_TRIES` tries the artifact is given up."""
    failed = 0
    for _ in range(_TRIES):
        try:
            writer.commit(request)
            break
        except _FailedError:
            failed += 1
        except YoloError as error:
            # every writer meets the `pack-refs` of a gc at the branch
            failed += error.reason not in (Reason.BRANCH_MOVED, Reason.REF_LOCKED)
    return failed


def _fill(root: str) -> None:
    """Fill the folder of packs, so that git lists it in pieces."""
    repositories.git(root, "repack", "-adq")
    (pack,) = Path(root, ".git/objects/pack").glob("*.pack")
    for number in range(_PACKS):
        copy = pack.with_name(f"pack-{number:040x}.pack")
        copy.with_suffix(".keep").touch()
        for ending in (".pack", ".idx"):
            copy.with_suffix(ending).hardlink_to(pack.with_suffix(ending))


def _missing(root: str) -> set[str]:
    """Return what `git fsck` does not find, however often it is asked while we are patient."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        said = repositories.git_that_may_fail(
            root, "fsck", "--connectivity-only", "--no-dangling", "--no-progress"
        )
        # of the object that a branch points at, git names the branch
        missing = {
            line for line in said.splitlines() if line.startswith(("missing ", "error: refs/"))
        }
        if not missing or time.monotonic() > until:
            return missing


class _Loop:
    """A command of git again and again, which can be stopped between two rounds."""

    def __init__(self, root: str, command: Sequence[str]):
        self.rounds = 0
        self.between = threading.Lock()
        self._root = root
        self._command = command
        self._is_ended = not command
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended:
            with self.between:
                repositories.git_that_may_fail(self._root, *self._command)
            self.rounds += 1
            time.sleep(0.001)  # or whoever waits for the lock would not get it

    def close(self) -> None:
        """Wait for the last round."""
        self._is_ended = True
        self._thread.join()


def _stream(request: CommitRequest, tip: str) -> bytes:
    """Return a commit with the mark 1 as fast-import reads it."""
    ident = f"Bench <bench@localhost> {int(time.time())} +0000"
    message = request.message.encode()
    head = f"commit {_IMPORTED}\nmark :1\nauthor {ident}\ncommitter {ident}\ndata {len(message)}\n"
    return (
        head.encode() + message + f"from {tip}\n".encode()
        + repositories.file_change(request.path, request.data) + b"\n"
    )  # fmt: skip
