"""Merges our own packs, so that other git processes neither scan hundreds nor trigger gc.

Only packs with our note beside them are touched, and one is removed once its objects are in
another. A multi-pack index that was begun before may name it, so it is kept aside for a while.

The note protects a pack from every `git gc`, even objects that a user has removed on purpose. So a
pack loses it after a while, and when the daemon ends: from then on it is an ordinary pack of the
user's.
"""

from __future__ import annotations

import contextlib
import glob
import math
import os
import re
import shutil
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from yolo_fs.core.reasons import YoloError
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.objects import KEEP_NOTE, discard
from yolo_fs.git.repository import Repository
from yolo_fs.system import failpoint
from yolo_fs.system.files import MOST_BYTES, Stamp, content_of, open_plain, stamp_at
from yolo_fs.system.in_place import ScratchRecord
from yolo_fs.system.store import private_directory, reap_temporaries, sync_directory
from yolo_fs.system.system import try_lock
from yolo_fs.system.warm_path import open_own

MERGE_FROM = 32
"""Number of our packs from which they are merged in passing."""
REST_MOST = 8
"""Number of our packs that may stay while nothing is written."""
_PACK_NAME = re.compile(r"pack-[0-9a-f]{40,64}")
_ANSWER_BYTES = 4096
_ENDINGS = ("idx", "rev", "pack", "keep")
LINGER_S = 3.0
"""How long merged packs stay, for a git that has just listed them, such as a `git fsck`."""
ASIDE_S = 60.0
"""How long they are kept aside then, for a git that writes a multi-pack index of what it listed."""
HANDED_OVER_BYTES = 32 << 20
"""Size from which a merged pack loses its note at once, bytes."""
HANDED_OVER_AFTER_S = 1800.0
"""Age of its oldest content at which a pack loses its note, seconds."""
_END_PATIENCE_S = 1.0
"""How long an ending daemon waits for another one that is writing, seconds."""
_AT_ONCE = 8
"""Packs removed in one step: an artifact may be waiting."""
_POLL_S = 0.01
_GROWTH = 2
"""A pack that stays is so many times as large as all smaller ones: few objects move often."""


class OwnPack(NamedTuple):
    """A pack with our note."""

    size: int
    name: str
    """Without folder and extension."""


class _Merged(NamedTuple):
    """A pack whose objects are in another one."""

    into: str
    goes_at: float
    """Monotonic time at which it is removed."""
    collection: Stamp | None
    """The `git gc` that may take the new pack for garbage until it ends.
    See `ObjectStore.restore`.
    """


class PackMerger:
    """Merges our packs in a child process; `step` does what is due."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._folder = repository.objects.pack_folder
        self._scratch = f"{repository.own_dir}/packing"
        self._aside = f"{repository.own_dir}/merged"
        self._git: Conversation | None = None
        self._sources: Sequence[str] = ()
        self._lock = -1
        self._merged: dict[str, _Merged] = {}
        self._kept_aside: dict[str, float] = {}
        """Removed pack → monotonic time of its removal."""
        self._indexes: Mapping[str, Stamp | None] = {}
        """The multi-pack indexes that were read last, and their stamps."""
        self._seen = 0
        """Packs written by this process when the last merge began."""
        self.merges = 0
        self._left = ScratchRecord(f"{repository.own_dir}/packs-left")
        """Names of the packs that were handed over last; at a start, those of the run before."""
        with contextlib.suppress(OSError):
            place = open_own(self._aside)  # behind a link lie the packs of somebody else
            names = (os.path.splitext(name)[0] for name in os.listdir(place))
            self._kept_aside = dict.fromkeys(names, time.monotonic())
            os.close(place)

    @property
    def fresh(self) -> int:
        """How many packs this process has written since the last merge began."""
        return self._repository.objects.packs_written - self._seen

    def begin(self, *, most: int) -> None:
        """Start a merge if we have more packs than `most`, unless another daemon merges."""
        self._seen = self._repository.objects.packs_written
        packs = [pack for pack in self._own() if pack.name not in self._merged]
        if self._git or len(packs) <= most or not (sources := packs_to_merge(packs)):
            return
        self._lock = _try_flock(os.path.dirname(self._folder))
        if self._lock < 0:
            return
        self._sources = [pack.name for pack in sources]
        try:
            self._prepare_scratch()
        except (OSError, YoloError):
            self._end()
            return
        # Into a separate store beside ours: there no prune removes what is half written.
        self._git = self._repository.git.converse(
            "pack-objects", "--stdin-packs", "--quiet", "--delta-base-offset", "--threads=1",
            "--index-version=2", "--max-pack-size=0", f"{self._scratch}/pack/pack",
            more={"GIT_OBJECT_DIRECTORY": self._scratch},
        )  # fmt: skip
        self._git.ask("".join(f"{name}.pack\n" for name in self._sources).encode())
        self._git.end_questions()

    @property
    def is_merging(self) -> bool:
        """Whether a merge is under way."""
        return self._git is not None

    @property
    def keeps_any_aside(self) -> bool:
        """Whether a merged pack may have to be put back; `step` checks that."""
        return bool(self._kept_aside)

    def merge_now(self, *, most: int) -> None:
        """Merge if we have more packs than `most`, and wait for the end of it."""
        self.begin(most=most)
        while self.is_merging:
            self.step()
            time.sleep(_POLL_S)

    def step(self) -> bool:
        """Do what is due and would not block; return whether more is to come."""
        if self._git is not None and self._git.has_ended():
            # A pack may have been removed meanwhile, or the disk may be full: then nothing changes.
            with contextlib.suppress(YoloError, OSError):
                self._finish(self._git.rest(_ANSWER_BYTES))
            self._end()
        if due := [name for name, merged in self._merged.items() if self._is_due(merged)]:
            self._remove(due[:_AT_ONCE])
        self._put_back()
        is_in_doubt = self._repository.objects.restore()
        return bool(self._git or self._merged or is_in_doubt)

    def close(self) -> None:
        """Stop what is under way, and remove merged packs unless a `git gc` is running.

        What is kept aside is left to the next run.
        """
        if self._git is not None:
            self.abandon()
        self._remove([name for name, each in self._merged.items() if each.collection is None])

    def hand_over(self, *, older_than_s: float = HANDED_OVER_AFTER_S) -> bool:
        """Remove the notes of that age, so that git may collect unreferenced objects.

        A note is needed until the branch names what is in the pack, so it stays while anything is
        written. It also stays while a `git gc` runs, which may have listed the packs before.
        Returns whether it was done.
        """
        objects = self._repository.objects
        with _hold_flock(self._folder) as nobody_is_writing:
            if not nobody_is_writing or objects.collection() or objects.restore():
                return False
            latest = time.time() - older_than_s
            left = []
            for name in self._notes():
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(f"{self._folder}/{name}.keep").st_mtime <= latest:
                        discard(f"{self._folder}/{name}.keep")
                        left.append(name)
            self._left.write(left)
        return True

    def take_back(self) -> None:
        """Reclaim the packs that the last run handed over.

        Otherwise each start would leave packs of its own, and git starts its gc at fifty.
        """
        left = self._left.read()
        with _hold_flock(self._folder) as nobody_is_writing:
            if not nobody_is_writing or not isinstance(left, list):
                return
            for name in filter(_PACK_NAME.fullmatch, map(str, left)):
                place = f"{self._folder}/{name}"
                is_whole = all(os.path.exists(f"{place}.{ending}") for ending in ("pack", "idx"))
                if is_whole and not os.path.lexists(f"{place}.keep"):
                    self._repository.objects.keep(name)

    def end(self) -> None:
        """Leave the store as git would: no pack of ours is withheld from the user's `git gc`.

        Packs kept aside are removed as well where no multi-pack index is used, since none can name
        them.
        """
        self.close()
        until = time.monotonic() + _END_PATIENCE_S
        while not self.hand_over(older_than_s=-math.inf) and time.monotonic() < until:
            time.sleep(_POLL_S)
        if not any(self._stamps().values()) and self._repository.objects.collection() is None:
            for name in self._kept_aside:
                for ending in _ENDINGS:
                    discard(f"{self._aside}/{name}.{ending}")
            self._kept_aside.clear()

    def abandon(self) -> None:
        """Abort the running merge; nothing has changed then."""
        assert self._git is not None
        self._git.kill()
        self._end()

    def repair(self) -> None:
        """Repair what a killed run left: remove drafts, and index packs whose index is missing."""
        with _hold_flock(self._folder) as is_locked:
            if not is_locked:
                return  # another daemon is writing
            reap_temporaries(self._folder)
            for name in self._notes():
                place = f"{self._folder}/{name}"
                if os.path.exists(f"{place}.idx"):
                    continue
                if os.path.exists(f"{place}.pack"):
                    with contextlib.suppress(YoloError):
                        self._repository.git.run("index-pack", f"{place}.pack")
                else:
                    discard(f"{place}.keep")

    def _own(self) -> list[OwnPack]:
        """Return our packs, the smallest first, without those that a multi-pack index refers to."""
        indexed = self._pack_names_in(self._stamps())
        packs = []
        for name in self._notes():
            with contextlib.suppress(FileNotFoundError):
                os.stat(f"{self._folder}/{name}.idx")
                if name.encode() not in indexed:
                    packs.append(OwnPack(os.stat(f"{self._folder}/{name}.pack").st_size, name))
        return sorted(packs)

    def _notes(self) -> list[str]:
        return [
            name.removesuffix(".keep")
            for name in os.listdir(self._folder)
            if name.endswith(".keep") and content_of(f"{self._folder}/{name}") == KEEP_NOTE
        ]

    def _prepare_scratch(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        private_directory(self._scratch)
        for folder in ("pack", "info"):
            os.mkdir(f"{self._scratch}/{folder}", 0o700)
        with open(f"{self._scratch}/info/alternates", "wb") as file:
            file.write(os.fsencode(os.path.dirname(self._folder)) + b"\n")

    def _finish(self, answer: bytes | None) -> None:
        """Put the merged pack beside its sources, which are then due for removal.

        git has refused if it could not read every object of every source.
        """
        name = f"pack-{(answer or b'').decode().strip()}"
        if not _PACK_NAME.fullmatch(name):
            return
        failpoint.reach("packs.merged")
        objects = self._repository.objects
        collection = objects.collection()
        with _hold_flock(self._folder) as nobody_is_writing:
            if not nobody_is_writing:
                return
            self._place(name)
            failpoint.reach("packs.placed")
            if os.path.getsize(f"{self._folder}/{name}.pack") >= HANDED_OVER_BYTES:
                discard(f"{self._folder}/{name}.keep")
        goes_at = time.monotonic() + LINGER_S
        into = _Merged(name, goes_at, collection or objects.collection())
        self._merged |= dict.fromkeys(set(self._sources) - {name}, into)
        self.merges += 1

    def _place(self, name: str) -> None:
        with open(f"{self._scratch}/note", "wb") as file:
            file.write(KEEP_NOTE)
        sources = [os.stat(f"{self._folder}/{each}.pack") for each in self._sources]
        mode = sources[0].st_mode & 0o777
        # A multi-pack index that is being written now takes each object from the newest pack.
        newest = max(int(source.st_mtime) for source in sources) + 1
        # The age of a note is that of the oldest content, however often that is merged.
        oldest = min(os.stat(f"{self._folder}/{each}.keep").st_mtime for each in self._sources)
        drafts = {"keep": "note", "pack": f"pack/{name}.pack", "idx": f"pack/{name}.idx"}
        for ending, draft in drafts.items():
            os.chmod(f"{self._scratch}/{draft}", mode)
            at = oldest if ending == "keep" else newest
            os.utime(f"{self._scratch}/{draft}", (at, at))
            if self._repository.objects.is_durable:
                _sync(f"{self._scratch}/{draft}")
            os.rename(f"{self._scratch}/{draft}", f"{self._folder}/{name}.{ending}")
        if self._repository.objects.is_durable:
            sync_directory(self._folder)

    def _remove(self, names: Sequence[str]) -> None:
        """Move merged packs aside: the index first, so that no git finds an incomplete pack.

        Packs that a multi-pack index names by now stay.
        """
        with _hold_flock(self._folder) as nobody_is_writing:
            if not nobody_is_writing:
                return
            if not self._has_room_aside():
                for name in names:
                    del self._merged[name]
                return
            indexed = self._pack_names_in(self._stamps())
            for name in names:
                merged = self._merged.pop(name)
                into = f"{self._folder}/{merged.into}"
                is_there = os.path.exists(f"{into}.idx") and os.path.exists(f"{into}.pack")
                if not is_there:
                    continue
                if name.encode() in indexed:
                    continue
                self._repository.objects.release(name)
                for ending in _ENDINGS:
                    _move(f"{name}.{ending}", self._folder, self._aside)
                    failpoint.reach("packs.removing")
                self._kept_aside[name] = time.monotonic()

    def _has_room_aside(self) -> bool:
        try:
            private_directory(self._aside)
        except YoloError:
            return False
        return True

    def _put_back(self) -> None:
        """Put back packs named by a late multi-pack index, and remove the others when they are due.

        git takes its lock long after it has listed the packs, so nothing shows that it is at work.
        """
        if not self._kept_aside:
            return
        if (stamps := self._stamps()) != self._indexes:
            self._indexes, indexed = stamps, self._pack_names_in(stamps)
            for name in [each for each in self._kept_aside if each.encode() in indexed]:
                del self._kept_aside[name]
                for ending in reversed(_ENDINGS):
                    _move(f"{name}.{ending}", self._aside, self._folder)
        oldest = list(islice(self._kept_aside.items(), _AT_ONCE))
        for name in [each for each, since in oldest if time.monotonic() - since > ASIDE_S]:
            del self._kept_aside[name]
            for ending in _ENDINGS:
                discard(f"{self._aside}/{name}.{ending}")

    def _stamps(self) -> Mapping[str, Stamp | None]:
        """Return the multi-pack indexes, including those of a chain, each with its stamp."""
        chain = glob.glob(f"{glob.escape(self._folder)}/multi-pack-index.d/*.midx")
        return {path: stamp_at(path) for path in (f"{self._folder}/multi-pack-index", *chain)}

    @staticmethod
    def _pack_names_in(indexes: Iterable[str]) -> bytes:
        """Return the names of the packs that multi-pack indexes refer to."""
        return b"\n".join(map(names_of_packs, indexes))

    def _is_due(self, merged: _Merged) -> bool:
        if time.monotonic() < merged.goes_at:
            return False
        objects = self._repository.objects
        return objects.has_ended(merged.collection, merged.goes_at)

    def _end(self) -> None:
        if self._git is not None:
            self._git.close()
            self._git = None
        os.close(self._lock)
        shutil.rmtree(self._scratch, ignore_errors=True)


def names_of_packs(path: str) -> bytes:
    """Return the part of a multi-pack index that names packs, each followed by a zero byte.

    Return all of a broken one, and nothing if there is none. See gitformat-pack(5).
    """
    with contextlib.suppress(OSError, struct.error), FileIO(open_plain(path)) as file:
        _, count = struct.unpack(">6sB5x", file.read(12))
        chunks = list(struct.iter_unpack(">4sQ", file.read(12 * (count + 1))))
        for (kind, start), (_, end) in pairwise(chunks):
            if kind == b"PNAM":
                file.seek(start)
                return file.read(min(max(end - start, 0), MOST_BYTES))
    return content_of(path)


def packs_to_merge(packs: Sequence[OwnPack]) -> Sequence[OwnPack]:
    """Return the packs to merge from all, smallest first: those that stay grow geometrically."""
    smaller = [0, *accumulate(pack.size for pack in packs)]
    crowded = [at for at, pack in enumerate(packs) if at and pack.size < _GROWTH * smaller[at]]
    return packs[: crowded[-1] + 1] if crowded else ()


def _move(name: str, source: str, target: str) -> None:
    """Move a file of ours; if that fails, it does no harm where it is."""
    with contextlib.suppress(OSError):
        os.rename(f"{source}/{name}", f"{target}/{name}")


def _sync(path: str) -> None:
    """Sync a file: git syncs the packs that it writes, but not their indexes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _try_flock(folder: str) -> int:
    """Lock a folder and return its descriptor; -1 if another process has the lock or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # the repository was moved or removed
        return -1
    try:
        is_ours = try_lock(descriptor)
    except OSError:  # a file system without locks
        is_ours = False
    if is_ours:
        return descriptor
    os.close(descriptor)
    return -1


@contextlib.contextmanager
def _hold_flock(folder: str) -> Iterator[bool]:
    descriptor = _try_flock(folder)
    try:
        yield descriptor >= 0
    finally:
        if descriptor >= 0:
            os.close(descriptor)
