"""The history of a branch, read once and then only continued: which commit gave a path its content, which did a task.

What one process has read the next one finds in `.git/yolo-fs/chronicle`: it is only extended, and
only while its tip is an ancestor of the branch; after a rebase, an amend or a switch of branches
the log is read anew. Every answer is a function of the history alone, however it was read.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import TypeVar

from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import private_directory, write_atomic
from yolo_fs.protocol.workflow import PHASE_COMPLETE
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.evidence.commits import Purpose, alike, purpose_of
from yolo_fs.rules.evidence.facts import SourceCommit
from yolo_fs.rules.loops.facts import WITH_ROUNDS
from yolo_fs.services.history.cache import Archive, Chronicled, pack, unpack

_Key = TypeVar("_Key")

FILE = "chronicle"
"""Name of the cache below `.git/yolo-fs/`."""

_LARGEST_BYTES = 256 * 1024 * 1024
_SHARE = 256
"""The cache is written anew once the history has grown by such a part, so that writing costs less than reading."""


class Chronicle:
    """What the commits up to one tip say."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._readings = 0
        self._forget()

    def _forget(self) -> None:
        self._readings += 1
        self._tip = ""
        self._archive = Archive()
        self._fresh: dict[str, Chronicled] = {}
        """Commits that the archive does not have."""
        self._unpacked: dict[str, Chronicled | None] = {}
        """Commits of the archive that somebody asked for: the same ones are asked for again and again."""
        self._fresh_oids: list[str] = []
        self._ours: tuple[Chronicled, ...] | None = None
        """None until somebody asks."""
        self.by_path: dict[str, str] = {}
        """Path below the planning root → the last commit that changed it."""
        self.by_task: dict[str, str] = {}
        """`NN-MM/Tk` → the last commit whose subject names it."""
        self.by_step: dict[str, str] = {}
        """`NN step` → the last commit whose subject says that it records that step."""
        self.by_plan: dict[str, str] = {}
        """`NN-MM` → the last source commit whose subject names that plan."""
        self._by_words: dict[str, str] = {}
        """`NN-MM words` → the last source commit that says so of a plan."""
        self._past: dict[str, list[str]] = {}
        """Path of an artifact whose past tells of rounds → the commits that changed it, in the order of reading."""
        self._work: dict[str, list[str]] = {}
        """`NN-MM` → the commits whose scope names that plan, in the order of reading."""
        self.signed_off: dict[int, str] = {}
        """Number of a phase → the commit that recorded its sign-off."""

    def read_up_to(self, tip: str) -> None:
        """Take in what is new up to `tip`; start over when history was rewritten."""
        if tip == self._tip:
            return
        if not self._tip:
            self._remember()
        if tip == self._tip:
            return
        if self._tip and self._repository.is_ancestor(self._tip, tip):
            fresh = log(self._repository, f"{self._tip}..{tip}")
        else:
            self._forget()
            fresh = log(self._repository, tip)
        for commit in _parents_first(list(fresh)):
            self._take(commit)
        self._tip, self._ours, self._fresh_oids = tip, None, sorted(self._fresh)

    def commit(self, name: str) -> SourceCommit | None:
        """Return the commit of this history that an abbreviated hash names, or None when it names none or several."""
        at = bisect_left(self._fresh_oids, name)
        found = [self._fresh[oid] for oid in self._fresh_oids[at : at + 2] if oid.startswith(name)]
        found += [self._archive.at_position(position) for position in self._archive.named(name)]
        if len(found) != 1:
            return None
        one = found[0]
        return SourceCommit(
            one.oid, one.subject, frozenset(path for _, path in one.changes), one.at_s
        )

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for one that is not in it."""
        found = self._find(oid)
        return found.at_s if found else 0

    def height(self, oid: str) -> int:
        """Return how far from a root a commit of this history is: what came after it is higher; 0 for none."""
        found = self._find(oid)
        return found.height if found else 0

    def of_words(self, plan: str, words: str) -> str:
        """Return the last source commit of a plan that says nothing but these words; nothing when there is none."""
        return self._by_words.get(f"{plan} {alike(words)}", "")

    def past_of(self, path: str) -> tuple[Chronicled, ...]:
        """Return the commits that changed an artifact of a kind that has rounds, oldest first."""
        return self._in_order(self._past.get(path, ()))

    def mark_of(self, path: str) -> object:
        """Return what is another value whenever `past_of` may say something else."""
        return self._readings, len(self._past.get(path, ()))

    def work_on(self, plan: str) -> tuple[Chronicled, ...]:
        """Return the commits whose scope names a plan, oldest first."""
        return self._in_order(self._work.get(plan, ()))

    def _in_order(self, oids: Iterable[str]) -> tuple[Chronicled, ...]:
        return tuple(
            sorted((one for oid in oids if (one := self._find(oid))), key=lambda one: one.rank)
        )

    @property
    def ours(self) -> tuple[Chronicled, ...]:
        """Coordination commits, oldest first."""
        if self._ours is None:
            fresh = (one for one in self._fresh.values() if one.is_ours)
            self._ours = tuple(sorted(chain(self._archive.own(), fresh), key=lambda one: one.rank))
        return self._ours

    # --- taking in ---

    def _take(self, logged: LoggedCommit) -> None:
        height = 1 + max((self.height(parent) for parent in logged.parents), default=0)
        one = Chronicled(
            logged.oid, logged.at_s, height, logged.is_ours, logged.subject, logged.changes
        )
        self._fresh[one.oid] = one
        for _, path in one.changes:
            if path.startswith(PLANNING_ROOT + "/"):
                self._put(self.by_path, path, one)
                if _has_rounds(path):
                    self._past.setdefault(path, []).append(one.oid)
        if purpose := purpose_of(one.subject):
            self._note(purpose, one)
        gaps = PHASE_COMPLETE.match(one.subject)
        if gaps and any(path == f"{PLANNING_ROOT}/state.json" for _, path in one.changes):
            self._put(self.signed_off, int(gaps["N"]), one)

    def _note(self, purpose: Purpose, one: Chronicled) -> None:
        if purpose.plan and not purpose.step and not one.is_ours:
            self._put(self.by_plan, str(purpose.plan), one)
            self._work.setdefault(str(purpose.plan), []).append(one.oid)
        if purpose.task:
            self._put(self.by_task, str(purpose.task), one)
        elif purpose.step:
            self._put(self.by_step, f"{purpose.phase} {purpose.step}", one)
        elif purpose.plan:
            self._put(self._by_words, f"{purpose.plan} {purpose.words}", one)

    def _put(self, index: dict[_Key, str], key: _Key, one: Chronicled) -> None:
        """Enter a commit unless a later one stands there: parallel lines of history come in any order."""
        before = self._find(index[key]) if key in index else None
        if before is None or before.rank < one.rank:
            index[key] = one.oid

    def _find(self, oid: str) -> Chronicled | None:
        if oid in self._fresh:
            return self._fresh[oid]
        if oid not in self._unpacked:
            positions = self._archive.named(oid) if oid else ()
            self._unpacked[oid] = self._archive.at_position(positions[0]) if positions else None
        return self._unpacked[oid]

    # --- from one process to the next ---

    def keep(self) -> None:
        """Leave what was read to the next process; where that cannot be done, the next one only needs longer."""
        if not self._tip or len(self._fresh) * _SHARE <= len(self._archive):
            return
        names = {
            "path": self.by_path,
            "task": self.by_task,
            "step": self.by_step,
            "plan": self.by_plan,
            "words": self._by_words,
            "signed_off": {str(number): oid for number, oid in self.signed_off.items()},
            "past": _numbered(self._past),
            "work": _numbered(self._work),
        }
        data = pack(
            self._tip, self._cut_off(), chain(self._archive.all(), self._fresh.values()), names
        )
        with contextlib.suppress(YoloError):
            private_directory(self._repository.own_dir)
            write_atomic(f"{self._repository.own_dir}/{FILE}", data, durable=False)

    def _remember(self) -> None:
        found = read(self._repository.own_dir, FILE, _LARGEST_BYTES)
        archive = unpack(found.data) if isinstance(found, Content) else None
        if archive is None or archive.cut_off != self._cut_off():
            return
        self._archive, self._tip = archive, archive.tip
        self.by_path, self.by_task = dict(archive.names["path"]), dict(archive.names["task"])
        self.by_step, self.by_plan = dict(archive.names["step"]), dict(archive.names["plan"])
        self._by_words = dict(archive.names["words"])
        self.signed_off = {int(number): oid for number, oid in archive.names["signed_off"].items()}
        self._past, self._work = _gathered(archive.names["past"]), _gathered(archive.names["work"])

    def _cut_off(self) -> str:
        """Return where a shallow clone ends: a deeper one has commits that come before those that were read."""
        found = read(self._repository.common_dir, "shallow", _LARGEST_BYTES)
        return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


@lru_cache(maxsize=10_000)
def _has_rounds(path: str) -> bool:
    place = classify(path)
    return place is not None and place.artifact.kind in WITH_ROUNDS


def _numbered(lists: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return lists of commits in the form of an index: one key for each."""
    return {
        f"{key}\0{number}": oid for key, oids in lists.items() for number, oid in enumerate(oids)
    }


def _gathered(index: Mapping[str, str]) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for key, oid in index.items():
        lists.setdefault(key.rpartition("\0")[0], []).append(oid)
    return lists


def _parents_first(commits: Iterable[LoggedCommit]) -> Iterator[LoggedCommit]:
    """Yield the commits of a log, newest first, so that each comes after its parents, whatever the clocks said."""
    waiting = {one.oid: one for one in commits}
    for commit in reversed(list(waiting.values())):
        path = [commit] if commit.oid in waiting else []
        while path:
            before = next((waiting[oid] for oid in path[-1].parents if oid in waiting), None)
            if before is None:
                yield waiting.pop(path.pop().oid)
            else:
                path.append(before)
