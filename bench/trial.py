"""One trial of a fault, and the judge of it, who reads git and nothing else."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from dataclasses import dataclass, field

from bench import repositories
from bench.committing import Contender, File
from bench.repositories import BRANCH, artifact

USERS = "user: "
"""Begins the subject of each commit that the user makes."""


@dataclass(slots=True)
class Trial:
    """One repository, one contender, one fault."""

    root: str
    contender: Contender
    rng: random.Random
    tip: str
    usual_s: float = 0.0
    """How long the contender takes for one artifact when nothing goes wrong."""
    hold_s: float = 5.0
    """How long a lock is held, a torn file lies about, a rebase is open."""
    written: list[File] = field(default_factory=list)
    harms: Counter[str] = field(default_factory=Counter)

    def file(self, number: int) -> File:
        """Return an artifact that is not there, in a folder that is."""
        return artifact(number, "fault")

    def submit(self, *files: File) -> float:
        """Write artifacts that have to be committed."""
        self.written += files
        return self.contender.submit(*files)

    def settle(self) -> None:
        """Wait until all that was written is committed, or there is no hope."""
        self.contender.settle(lambda: not self.lost())

    def git(self, *arguments: str) -> str:
        """Run git as the user, whatever comes of it."""
        return repositories.git_that_may_fail(self.root, *arguments)

    def lost(self) -> set[tuple[str, str]]:
        """Return the artifacts that are not on the branch with the bytes that were written."""
        return {(path, blob_of(data)) for path, data in self.written} - set(self.changes(BRANCH))

    def changes(self, *revisions: str) -> list[tuple[str, str]]:
        """Return path and blob of each change since the beginning that is not the user's."""
        return [change for commit in self.commits(*revisions) for change in commit]

    def commits(self, *revisions: str) -> list[list[tuple[str, str]]]:
        """Return the changes of each commit since the beginning that is not the user's."""
        shown = self.git("log", "--raw", "--no-abbrev", "--no-renames", "-m", "--format=%x1e%s", *revisions,
                         "--not", self.tip)  # fmt: skip
        records = [record.strip().splitlines() for record in shown.split("\x1e")[1:]]
        return [[_change(line) for line in lines if line.startswith(":")] for subject, *lines in records
                if not subject.startswith(USERS)]  # fmt: skip


def _change(line: str) -> tuple[str, str]:
    facts, _, path = line.partition("\t")
    return path, facts.split()[3]


def blob_of(data: bytes) -> str:
    """Return the name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data)).hexdigest()


def judge(trial: Trial) -> Counter[str]:
    """Return the harms of a trial, each counted once. Reads git and nothing else."""
    everywhere, branch = trial.commits("--all", "--reflog"), Counter(trial.changes(BRANCH))
    mine = {path for path, _ in trial.written}
    found = trial.harms + Counter(
        {
            "lost": bool(trial.lost()),
            "intruded": any(
                len(changes) != 1 or changes[0][0] not in mine for changes in everywhere
            ),
            "duplicated": any(count > 1 for count in branch.values()),
            "lock left": os.path.exists(f"{trial.root}/.git/index.lock"),
            "repository broken": bool(
                trial.git("fsck", "--full", "--no-dangling", "--no-progress")
            ),
        }
    )
    return Counter({harm: 1 for harm, count in found.items() if count})
