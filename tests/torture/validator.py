"""The judge of a run, a program of its own: reads only git and what the test wrote down while it wrote.

    python validator.py REPOSITORY LOG

It imports nothing of yolo_fs, knows none of its files and asks no daemon. LOG is JSONL, in the order of events:

    {"branch": "main", "since": OID}                       a branch to judge, from a commit on
    {"write": PATH, "sha256": HEX}                          the test wrote this content, valid and settled
    {"write": PATH, "sha256": HEX, "passing": true}         … and wrote other content over it before it had to be seen
    {"acknowledged": PATH, "sha256": HEX, "commit": OID}    the program said that this content is committed
    {"subject": TEXT}                                       a commit with this subject is the user's own
    {"user": {NAME: TEXT}}                                  what is the user's, before the run and after it

It prints one JSON object, each key with what is wrong, and ends with 1 when anything is:

    lost          the last content of a path, or one that was acknowledged, is in no judged branch
    duplicated    a branch has a content in more commits than it was written
    out_of_order  a branch has the contents of a path in another order than they were written in
    foreign a commit that is not the user's has more than one path, or content that nobody wrote
    fsck          what `git fsck` says
    user          what was the user's and is not what it was
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MARK = "\x1e"
_MISSING = "git lacks blob "
_CLEAN = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent", "LANG": "C.UTF-8",
          "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1"}  # fmt: skip


class Content(NamedTuple):
    """One content of one path."""

    path: str
    sha256: str


class Commit(NamedTuple):
    """One commit, with the content that it gives to each path it changes."""

    oid: str
    subject: str
    contents: tuple[Content, ...]


@dataclass
class Log:
    """What the test wrote down."""

    branches: dict[str, str] = field(default_factory=dict)
    writes: list[Content] = field(default_factory=list)
    passing: set[int] = field(default_factory=set)
    """Numbers of the writes that need not have been seen."""
    acknowledged: list[tuple[Content, str]] = field(default_factory=list)
    subjects: set[str] = field(default_factory=set)
    users: list[Mapping[str, str]] = field(default_factory=list)


def read_log(path: str) -> Log:
    log = Log()
    with open(path, encoding="utf-8") as file:
        for line in file:
            _take(log, json.loads(line))
    return log


def _take(log: Log, line: Mapping[str, Any]) -> None:
    match line:
        case {"branch": branch, "since": since}:
            log.branches[branch] = since
        case {"write": path, "sha256": sha256}:
            if line.get("passing"):
                log.passing.add(len(log.writes))
            log.writes.append(Content(path, sha256))
        case {"acknowledged": path, "sha256": sha256, "commit": commit}:
            log.acknowledged.append((Content(path, sha256), commit))
        case {"subject": subject}:
            log.subjects.add(subject)
        case {"user": state}:
            log.users.append(state)
        case _:
            raise ValueError(f"not a line of a log: {line}")


class Repository:
    """A repository, through git alone."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, str] = {}

    def commits(self, branch: str, since: str) -> list[Commit]:
        """Return the commits of a branch, oldest first."""
        shown = self._git(
            "log", "--reverse", "--topo-order", "--raw", "--no-abbrev", "--no-renames", "--no-mailmap", "-z",
            f"--format={_MARK}%H%n%s%n", f"{since}..{branch}" if since else branch, "--",
        )  # fmt: skip
        found = [_changed(record) for record in shown.split(_MARK)[1:]]
        self._learn({blob for _, _, changes in found for _, blob in changes})
        return [
            Commit(
                oid,
                subject,
                tuple(Content(path, self._known.get(blob, blob)) for path, blob in changes),
            )
            for oid, subject, changes in found
        ]

    def has(self, branch: str, commit: str) -> bool:
        return self._run("merge-base", "--is-ancestor", commit, branch).returncode == 0

    def faults(self) -> list[str]:
        done = self._run("fsck", "--full", "--strict", "--no-dangling", "--no-progress")
        said = [
            line
            for line in (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
            if line
        ]
        return said or ([f"exit code {done.returncode}"] if done.returncode else [])

    def _learn(self, blobs: set[str]) -> None:
        """Hash what the blobs hold: the names that git gave them are not believed."""
        wanted = sorted(blobs - self._known.keys())
        out = self._run("cat-file", "--batch", given="\n".join([*wanted, ""]).encode()).stdout
        at = 0
        for blob in wanted:
            end = out.index(b"\n", at)
            header = out[at:end].split(b" ")
            size = int(header[2]) if len(header) == 3 else -1
            self._known[blob] = (
                hashlib.sha256(out[end + 1 : end + 1 + size]).hexdigest()
                if size >= 0
                else f"{_MISSING}{blob[:12]}"
            )
            at = end + 1 + (size + 1 if size >= 0 else 0)

    def _git(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise RuntimeError(f"git {arguments}: {done.stderr.decode('utf-8', 'replace')}")
        return os.fsdecode(done.stdout)

    def _run(
        self, *arguments: str, given: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        command = [
            "git",
            "-c",
            "safe.directory=*",
            "-c",
            "core.quotePath=false",
            "-C",
            self._root,
            *arguments,
        ]
        return subprocess.run(
            command, env=_CLEAN, input=given or b"", capture_output=True, check=False
        )


def _changed(record: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Return commit, subject and (path, blob) of each change; a deletion is the blob of nothing but zeros."""
    oid, subject, rest = record.split("\n", 2)
    fields = rest.strip("\n\0").split("\0") if ":" in rest else []
    raw = [piece.strip("\n") for piece in fields if piece.strip("\n")]
    return (
        oid,
        subject,
        [(path, facts.split(" ")[3]) for facts, path in zip(raw[::2], raw[1::2], strict=True)],
    )


def judge(repository: Repository, log: Log) -> dict[str, Any]:
    """Return what is wrong, by kind."""
    histories = {
        branch: repository.commits(branch, since) for branch, since in log.branches.items()
    }
    ours = {
        branch: [commit for commit in commits if commit.subject not in log.subjects]
        for branch, commits in histories.items()
    }
    return {
        "commits": sum(map(len, ours.values())),
        "lost": list(_lost(repository, log, histories)),
        "duplicated": [text for branch in ours for text in _duplicated(branch, ours[branch], log)],
        "out_of_order": [
            text for branch in ours for text in _out_of_order(branch, ours[branch], log)
        ],
        "foreign": [text for branch in ours for text in _foreign(branch, ours[branch], log)],
        "fsck": repository.faults(),
        "user": list(_different(log.users)),
    }


def _lost(
    repository: Repository, log: Log, histories: Mapping[str, Sequence[Commit]]
) -> Iterator[str]:
    found = {
        content
        for commits in histories.values()
        for commit in commits
        for content in commit.contents
    }
    last = {content.path: content for at, content in enumerate(log.writes) if at not in log.passing}
    for content in last.values():
        if content not in found:
            yield f"{content.path}: {content.sha256[:12]} was written and is in no branch"
    oids = {commit.oid for commits in histories.values() for commit in commits}
    for content, commit in log.acknowledged:
        if content not in found:
            yield f"{content.path}: {content.sha256[:12]} was acknowledged and is in no branch"
        elif not log.subjects and commit not in oids:  # a user who rebases gives commits new names
            yield f"{content.path}: the acknowledged commit {commit[:12]} is in no branch"


def _duplicated(branch: str, commits: Sequence[Commit], log: Log) -> Iterator[str]:
    written = Counter(log.writes)
    found = Counter(content for commit in commits for content in commit.contents)
    for content, count in found.items():
        if count > written[content] > 0:
            yield f"{branch}: {content.path}: {content.sha256[:12]} in {count} commits, written {written[content]} times"


def _out_of_order(branch: str, commits: Sequence[Commit], log: Log) -> Iterator[str]:
    written: dict[str, list[str]] = defaultdict(list)
    for content in log.writes:
        written[content.path].append(content.sha256)
    for path, wanted in written.items():
        found = [
            content.sha256
            for commit in commits
            for content in commit.contents
            if content.path == path
        ]
        rest = iter(wanted)
        if not all(sha256 in rest for sha256 in found if sha256 in wanted):
            yield f"{branch}: {path}: {[one[:8] for one in found]}, written {[one[:8] for one in wanted]}"


def _foreign(branch: str, commits: Sequence[Commit], log: Log) -> Iterator[str]:
    written = set(log.writes)
    for commit in commits:
        if len(commit.contents) != 1:
            yield f"{branch}: {commit.oid[:12]} {commit.subject!r} changes {len(commit.contents)} paths"
        for content in commit.contents:
            if content not in written:
                is_missing = content.sha256.startswith(_MISSING)
                wrong = f"{content.sha256} of" if is_missing else "nobody wrote this"
                yield f"{branch}: {commit.oid[:12]} {commit.subject!r}: {wrong} {content.path}"


def _different(users: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for before, after in zip(users[::2], users[1::2], strict=True):
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield f"{name}: {before.get(name)!r} became {after.get(name)!r}"


def main() -> int:
    root, log = sys.argv[1:]
    found = judge(Repository(root), read_log(log))
    print(json.dumps(found))
    return int(any(what for kind, what in found.items() if kind != "commits"))


if __name__ == "__main__":
    sys.exit(main())
