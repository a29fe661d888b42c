"""A careless team: what real agents write, in random order, torn, renamed, written over, while the
daemon is killed. Every content that stood still is on the branch or kept. See docs/kept.md.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import until
from tests.e2e.repo import Repo
from tests.e2e.test_kills import start_again
from tests.test_real import FILES, PLAN_BESIDE
from tests.torture.forked_daemons import ForkedDaemon
from tests.torture.surroundings import Ground
from yolo_fs.artifacts.table import by_kind

GOOD_SHARE = 0.57
"""By an independent oracle of keys, types and listed values, of 364 contents of real teams."""
FOLDERS = 150
KILL_EVERY = 50
KILL_EVERY_S = 20.0
"""Contents, or time, between two kills; what comes first."""
KEPT = "refs/yolo-fs/kept/main"
PATIENCE_S = 90.0
"""Bounds a hang: a killed daemon starts, and looks at everything."""

Content = tuple[str, str]
"""A path and the blob that stood there."""


class Written(NamedTuple):
    """One content that an agent wrote."""

    path: str
    data: bytes
    is_good: bool

    @property
    def content(self) -> Content:
        head = b"blob %d\0" % len(self.data)
        return self.path, hashlib.sha1(head + self.data).hexdigest()


def careless(ground: Ground, count: int) -> None:
    """Write that many contents in rounds; after each, wait until none of what stands is lost."""
    repo = ground.repo()
    folders = _folders(repo, min(FOLDERS, max(5, count // 5)))
    contents = _contents(ground, repo, folders)
    daemon = ground.daemon(repo)
    daemon.start()
    agents = _Agents(ground, repo, daemon)
    every: dict[Content, Written] = {}
    for first in range(0, count, len(folders)):
        batch = _at_distinct_paths(contents, min(len(folders), count - first))
        for written in batch:
            agents.write(written)
            every[written.content] = written
        lost = _missing_after_a_while(repo, {written.content for written in batch})
        ground.tally.lost += len(lost)
        ground.tally.notes += [f"lost: {path} {blob[:9]}" for path, blob in sorted(lost)[:5]]
    daemon.kill()
    ground.tally.count += len(every)
    _judge(ground, repo, every, agents.kills)


def _folders(repo: Repo, count: int) -> list[str]:
    """Make phases, each with the plans that what is written there speaks of."""
    folders = [f"{PLANNING}/milestones/m{number}/phases/01-auth" for number in range(count)]
    for folder in folders:
        repo.file(f"{folder}/01-01.plan.jsonl", PLAN_BESIDE + "\n")
        beside = PLAN_BESIDE.replace('"n": "01"', '"n": "02"')
        repo.file(f"{folder}/01-02.plan.jsonl", beside + "\n")
    return folders


def _contents(ground: Ground, repo: Repo, folders: Sequence[str]) -> Iterator[Written]:
    """Yield contents without end, good ones as often as in real teams; a log is written once."""
    commit = repo.look("rev-parse", "--short=7", "HEAD").strip().encode()
    good = [file for file in FILES if file.parts[-2] == "good"]
    bad = [file for file in FILES if file.parts[-2] != "good"]
    logs: set[str] = set()
    while True:
        file: Path = ground.rng.choice(good if ground.rng.random() < GOOD_SHARE else bad)
        artifact = by_kind(file.parts[-3])
        assert artifact
        path = f"{ground.rng.choice(folders)}/{artifact.file.format(dept='', plan='01-02')}"
        if artifact.append_only and path in logs:
            continue
        logs.add(path)
        data = file.read_bytes().replace(b"COMMIT1", commit)
        yield Written(path, data, file.parts[-2] == "good")


def _at_distinct_paths(contents: Iterator[Written], count: int) -> list[Written]:
    batch: dict[str, Written] = {}
    while len(batch) < count:
        written = next(contents)
        batch.setdefault(written.path, written)
    return list(batch.values())


class _Agents:
    """Writers without care, beside a daemon that is killed now and then."""

    def __init__(self, ground: Ground, repo: Repo, daemon: ForkedDaemon) -> None:
        self._ground = ground
        self._repo = repo
        self._daemon = daemon
        self._until_kill = ground.rng.randint(5, 15)
        self._next_kill = time.monotonic() + KILL_EVERY_S
        self.kills = 0

    def write(self, written: Written) -> None:
        """Write one content in one of the ways of agents; the daemon may be killed half-way."""
        ways: tuple[Callable[[Path, bytes], None], ...]
        ways = (self._at_once, self._at_once, self._torn, self._renamed, self._misnamed)
        self._ground.rng.choice(ways)(self._repo.root / written.path, written.data)

    def _at_once(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        self._meanwhile()

    def _torn(self, path: Path, data: bytes) -> None:
        cut = self._ground.rng.randrange(len(data))
        with path.open("wb") as file:
            file.write(data[:cut])
            file.flush()
            self._meanwhile()
            file.write(data[cut:])

    def _renamed(self, path: Path, data: bytes) -> None:
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_bytes(data)
        self._meanwhile()
        os.replace(draft, path)

    def _misnamed(self, path: Path, data: bytes) -> None:
        wrong = path.with_name(f"phase1-{path.name}")
        wrong.write_bytes(data)
        self._meanwhile()
        os.replace(wrong, path)

    def _meanwhile(self) -> None:
        threading.Event().wait(self._ground.rng.choice((0, 0, self._ground.rng.uniform(0, 0.03))))
        self._until_kill -= 1
        if self._until_kill > 0 and time.monotonic() < self._next_kill:
            return
        self._until_kill = KILL_EVERY
        with_helpers = self._ground.rng.random() < 0.5
        self._daemon.kill(with_helpers=with_helpers)
        start_again(self._daemon, with_helpers=with_helpers)
        self._next_kill = time.monotonic() + KILL_EVERY_S
        self.kills += 1


def _missing_after_a_while(repo: Repo, wanted: set[Content]) -> set[Content]:
    """Return what is neither on the branch nor kept after the daemon had time enough."""
    missing = set(wanted)

    def none_is_missing() -> bool:
        missing.difference_update(_contents_of(repo, KEPT), _contents_of(repo, "HEAD"))
        return not missing

    try:
        until(none_is_missing, "what stands is committed or kept", PATIENCE_S)
    except AssertionError:
        return missing
    return set()


def _contents_of(repo: Repo, revision: str) -> set[Content]:
    """Return every content that the history of a revision has had."""
    shown = repo.git(
        "log", "--root", "--no-renames", "--raw", "--no-abbrev", "-z", "--format=", revision, "--",
        ok=(0, 128), GIT_OPTIONAL_LOCKS="0",
    )  # fmt: skip
    parts = [part.strip("\n") for part in shown.split("\0") if part.strip("\n")]
    return {
        (path, facts.split()[3])
        for facts, path in itertools.pairwise(parts)
        if facts.startswith(":")
    }


def _judge(ground: Ground, repo: Repo, every: dict[Content, Written], kills: int) -> None:
    """Say what was accepted wrongly, what good was refused, and why the rest was."""
    committed = _contents_of(repo, "HEAD")
    wrong = [each for each, written in every.items() if not written.is_good and each in committed]
    refused = [each for each, written in every.items() if written.is_good and each not in committed]
    ground.tally.faults += [f"accepted wrongly: {path} {blob[:9]}" for path, blob in wrong[:5]]
    if broken := repo.git("fsck", "--strict", "--no-dangling", ok=(0, 1, 2, 4)).strip():
        ground.fault(f"fsck: {broken[:300]}")
    entries = json.loads(repo.yolo_fs("kept", "--json").stdout)["data"]["entries"]
    # A careless version may lack records that the branch has: it is held, however good its form is.
    losing = {
        (path, line.split()[2])
        for one in entries
        if "records_lost" in one["cause"]["reasons"]
        for line, path in (
            row.split("\t") for row in repo.git("ls-tree", "-r", one["tree"]).splitlines()
        )
    }
    refused = [each for each in refused if each not in losing]
    ground.tally.faults += [f"good, but refused: {path} {blob[:9]}" for path, blob in refused[:5]]
    causes = Counter(reason for entry in entries for reason in entry["cause"]["reasons"])
    common = ", ".join(f"{reason} {number}" for reason, number in causes.most_common(8))
    share = sum(each not in committed for each in every) / len(every)
    good = sum(written.is_good for written in every.values())
    ground.tally.notes.append(
        f"{len(every):,} contents, {good:,} of them good; {kills} kills; {share:.0%} refused, "
        f"good ones {len(refused)}; wrong ones accepted {len(wrong)}; kept {len(entries):,}: {common}"
    )
