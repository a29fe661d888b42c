"""Two to eight agents rewrite one file at once, each from the version that it has read: a record that the
branch has and the file lacks is held and named, a changed one is none of them, and no commit drops any.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.e2e.artifacts import PLANNING, lines
from tests.e2e.daemon import until
from tests.e2e.repo import Repo
from tests.torture.surroundings import Ground

Record = dict[str, Any]

FEWEST, MOST = 2, 8
"""Agents that rewrite one file at once."""
ROUNDS_OF_A_FILE = 8
PATIENCE_S = 60.0
"""Bounds a hang: what stands still is committed or held."""
AGENTS = ("architect", "lead", "senior", "dev", "qa", "security", "tester", "scout")


def _decision(agent: str, number: int, chance: Random) -> Record:
    day, second = 1 + number // 80_000, number % 60
    return {
        "ts": f"2026-02-{day:02d}T09:{number // 60 % 60:02d}:{second:02d}Z",
        "agent": agent,
        "dec": f"decision {number}",
        "reason": f"reason {chance.random()}",
    }


def _gap(agent: str, number: int, chance: Random) -> Record:
    return {
        "id": f"GAP-{number:04d}",
        "sev": "minor",
        "desc": f"seen by {agent}",
        "exp": "e",
        "act": f"a {chance.random()}",
        "st": "open",
    }


def _question(agent: str, number: int, chance: Random) -> Record:
    return {
        "q": f"Question {number} of {agent}?",
        "src": "web",
        "finding": f"f {chance.random()}",
        "conf": "high",
        "dt": "2026-02-18",
        "rel": "r",
    }


class Kind(NamedTuple):
    """A kind whose records stay, as the documents have it."""

    make: Callable[[str, int, Random], Record]
    key: str
    """The field that finds a record again; empty where it must not change at all."""
    changes: str = ""
    """A field that its author may change."""

    def key_of(self, record: Record) -> str:
        return str(record[self.key]) if self.key else json.dumps(record, sort_keys=True)


KINDS = {
    "decisions": Kind(_decision, ""),
    "gaps": Kind(_gap, "id", "act"),
    "research": Kind(_question, "q", "finding"),
}


def rewrites(ground: Ground, count: int) -> None:
    """Rewrite that many times, in rounds of agents who do not wait for one another."""
    repo = ground.repo()
    daemon = ground.daemon(repo)
    daemon.start()
    done = held = brought_back = 0
    for number in itertools.count(1):
        if done >= count:
            break
        kind = ground.rng.choice(list(KINDS))
        file = _File(ground, repo, kind, f"{PLANNING}/milestones/m{number}/phases/01-auth")
        for _ in range(ROUNDS_OF_A_FILE):
            if done >= count:
                break
            done += file.rewrite()
            if file.is_held():
                held += 1
                brought_back += file.mend()
        file.judge_history()
    daemon.stop()
    ground.tally.count += done
    if not held:
        ground.fault("nobody ever dropped a record, so nothing was tried")
    ground.tally.notes.append(
        f"{done:,} rewrites; {held:,} versions that lacked records were held, "
        f"{brought_back:,} records came back"
    )


class _File:
    """One file and those who write it."""

    def __init__(self, ground: Ground, repo: Repo, kind: str, folder: str) -> None:
        self._ground = ground
        self._repo = repo
        self._kind = KINDS[kind]
        self._name = f"{folder}/{kind}.jsonl"
        self._path = repo.root / self._name
        self._path.parent.mkdir(parents=True)
        self._agents = ground.rng.sample(AGENTS, ground.rng.randint(FEWEST, MOST))
        self._next = 0

    def rewrite(self) -> int:
        """Let all agents rewrite it at once, and return how many did.

        One of them may be slow: the others are committed before it writes what it made of an older
        version. In the first round it is, so that every file has lost a record once.
        """
        is_slow = self._next == 0 or self._ground.rng.random() < 0.5
        drafts = [
            partial(self._write, agent, self._next + at, Random(self._ground.rng.random()))
            for at, agent in enumerate(self._agents)
        ]
        self._next += len(drafts)
        slow = drafts.pop() if is_slow else None
        old, branch = _read(self._path), self._on_branch()
        writers = [threading.Thread(target=write) for write in drafts]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        if slow:
            until(
                lambda: self._on_branch() != branch, f"a new {self._name} is committed", PATIENCE_S
            )
            slow(old)
        return len(self._agents)

    def _write(self, agent: str, number: int, chance: Random, old: bytes | None = None) -> None:
        """Add a record or change one, as of an older version or the one that is read now, a moment later."""
        records = _records(_read(self._path) if old is None else old)
        if records and self._kind.changes and chance.random() < 0.3:
            chance.choice(records)[self._kind.changes] = f"changed by {agent}, {chance.random()}"
        else:
            records.append(self._kind.make(agent, number, chance))
        threading.Event().wait(chance.choice((0.0, 0.1, 0.5)) * chance.random())
        draft = self._path.with_name(f".{agent}.tmp")
        draft.write_bytes(lines(*records))
        os.replace(draft, self._path)

    def is_held(self) -> bool:
        """Wait until what stands is committed, or must not be; say so where it is not as it must be."""
        outcome = ""

        def is_settled() -> bool:
            nonlocal outcome
            now, branch = _read(self._path), self._on_branch()
            lost = self._lost(_records(branch), _records(now))
            if not lost:
                outcome = "" if now == branch else "not committed, although it lacks nothing"
                return now == branch
            told = [*self._told()]
            unnamed = [one for one in lost if not any(self._is_named(one, says) for says in told)]
            outcome = f"not named: {unnamed[:3]}, but {told[:3]}" if unnamed else ""
            return not unnamed and len(told) == len(lost)

        try:
            until(is_settled, f"{self._name} is committed or held", PATIENCE_S)
        except AssertionError:
            self._ground.fault(f"{self._name}: {outcome or 'more is named than was lost'}")
        return _read(self._path) != self._on_branch()

    def _told(self) -> Iterator[str]:
        """Yield what the status says of records that this file lacks."""
        for one in self._repo.status()["candidates"]:
            if one["path"] == self._name and one.get("reason") == "records_lost":
                yield from (finding["message"] for finding in one["findings"])

    def _is_named(self, lost: Record, message: str) -> bool:
        if self._kind.key:
            return message.startswith(f"{lost[self._kind.key]} ")
        numbers = [
            number for number, record in enumerate(_records(self._on_branch()), 1) if record == lost
        ]
        return message.startswith(f"line {numbers[0]} of {lost['agent']} ")

    def mend(self) -> int:
        """Bring back what is missing, by our command or as an agent would; return how many records."""
        branch, now = _records(self._on_branch()), _records(_read(self._path))
        lost = self._lost(branch, now)
        if self._ground.rng.random() < 0.5:
            self._repo.yolo_fs("fix", "--write", self._name)
        else:
            known = {self._kind.key_of(record) for record in now}
            old = [record for record in branch if self._kind.key_of(record) not in known]
            self._path.write_bytes(lines(*old, *now))
        if self.is_held():
            self._ground.fault(f"{self._name}: held although its records came back")
        back = {self._kind.key_of(record) for record in _records(self._on_branch())}
        wanted = {self._kind.key_of(record) for record in (*lost, *now)}
        self._ground.tally.lost += len(wanted - back)
        return len(lost)

    def _lost(self, before: Iterable[Record], now: Iterable[Record]) -> list[Record]:
        known = {self._kind.key_of(record) for record in now}
        return [record for record in before if self._kind.key_of(record) not in known]

    def judge_history(self) -> None:
        """No commit drops a record of the one before."""
        shown = self._repo.look("log", "--reverse", "--format=%H", "--", self._name)
        before: Sequence[Record] = ()
        for commit in shown.split():
            now = _records(self._repo.look("show", f"{commit}:{self._name}").encode())
            lost = self._lost(before, now)
            self._ground.tally.lost += len(lost)
            if lost:
                self._ground.tally.notes.append(f"{commit[:9]} drops {lost[:2]}")
            before = now

    def _on_branch(self) -> bytes:
        return self._repo.git(
            "show", f"HEAD:{self._name}", ok=(0, 128), GIT_OPTIONAL_LOCKS="0"
        ).encode()


def _records(data: bytes) -> list[Record]:
    return [json.loads(line) for line in data.splitlines()]


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
