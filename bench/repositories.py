"""Makes the repositories that are measured in: a small one, and one of 50,000 files and 20,000
commits.

Each is made once by a single fast-import stream and kept; a benchmark works on copies of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from bench.options import Options

ARTIFACTS = 100
BRANCH = "main"
_RECIPE = 2
"""Raised when repositories are made differently, so that kept ones of the past are not used."""
_FILES_IN_FOLDER = 250


@dataclass(frozen=True, slots=True)
class Size:
    """How much a repository holds, apart from its artifacts."""

    name: str
    files: int
    commits: int


def sizes(options: Options) -> tuple[Size, Size]:
    """Return the small and the large size."""
    return Size("small", 100, 1), options.pick(
        Size("large", 50_000, 20_000), Size("large", 300, 40)
    )


def artifact(number: int, text: str) -> tuple[str, bytes]:
    """Return path and content (about 500 bytes) of the artifact `number`, 0 to 9899; depth 4, as in
    real use.
    """
    phase, plan = f"{number // 100 + 1:02}", f"{number % 100:02}"
    value = {
        "p": phase, "n": plan, "t": "Token refresh", "s": "failed", "dt": "2026-02-19", "tc": 0, "tt": 3, "ch": [],
        "fm": ["src/auth/store.ts", "src/auth/refresh.ts", "src/routes/auth.ts"],
        "dv": ["Redis is not reachable from the test runner, so that nothing could be proved: " + text],
        "built": ["Refresh token store on Redis", "Rotation with reuse detection", ("POST "
                                                                                   "/auth/refresh")],
        "tst": "no_tests", "sg": ["Move the cookie options into src/config.ts", ("Give the runner "
                                                                                "a Redis "
                                                                                "of its own")],
    }  # fmt: skip
    path = f".yolo-planning/phases/{phase}-bench/{phase}-{plan}.summary.jsonl"
    return path, json.dumps(value, separators=(",", ":")).encode() + b"\n"


def git(root: str, *arguments: str, given: bytes | None = None) -> str:
    """Run the user's git, with the user's configuration left out, and return what it prints."""
    answer = subprocess.run(
        ["git", "-C", root, *arguments], input=given, capture_output=True, check=True
    )
    return os.fsdecode(answer.stdout).strip()


def git_that_may_fail(root: str, *arguments: str) -> str:
    """Run the user's git, and return what it prints, on both channels, however it ends."""
    answer = subprocess.run(
        ["git", "-C", root, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return os.fsdecode(answer.stdout)


def copy(size: Size, options: Options) -> str:
    """Return a fresh copy of the repository of this size, with a clean index."""
    base = _made(size, options.place)
    root = os.path.join(tempfile.mkdtemp(prefix=f"{size.name}-", dir=options.scratch), "work")
    subprocess.run(["cp", "-a", base, root], check=True)
    git(root, "update-index", "-q", "--refresh")
    return root


def put(root: str, path: str, data: bytes) -> None:
    """Write a file of the work tree as an agent does."""
    full = os.path.join(root, path)
    try:
        file = open(full, "wb")  # noqa: SIM115
    except FileNotFoundError:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        file = open(full, "wb")  # noqa: SIM115
    with file:
        file.write(data)


def loose_objects(root: str) -> int:
    """Return how many loose objects the repository has."""
    return int(git(root, "count-objects").split()[0])


def left_over(root: str) -> str:
    """Return what git finds changed or untracked, except for the files of the team's state, which a
    daemon writes when it comes to it.
    """
    others = ("--", ".", ":(exclude,glob).yolo-planning/**/.*")
    return git(root, "status", "--porcelain", *others)


def source_file(number: int) -> str:
    """Return the path of a source file."""
    return f"src/d{number // _FILES_IN_FOLDER:03}/f{number:05}.txt"


def _made(size: Size, place: str) -> str:
    """Return the kept repository of this size; make it when there is none."""
    final = os.path.join(place, f"base-{size.name}-{size.files}-{size.commits}-{_RECIPE}")
    if not os.path.isdir(final):
        os.makedirs(place, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix="making-", dir=place)
        try:
            _make(fresh, size)
            os.rename(fresh, final)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return final


def _make(root: str, size: Size) -> None:
    os.chmod(root, 0o755)
    git(root, "init", "-q", "-b", BRANCH)
    # Housekeeping of git in the midst of a measurement would be measured.
    for key, value in {
        "user.name": "Bench",
        "user.email": "bench@localhost",
        "gc.auto": "0",
    }.items():
        git(root, "config", key, value)
    process = subprocess.Popen(["git", "-C", root, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin as stream:
        for piece in _stream(size):
            stream.write(piece)
    if process.wait() != 0:
        raise RuntimeError("git fast-import failed")
    git(root, "reset", "--hard", "-q", BRANCH)
    for number in range(
        256
    ):  # a repository in use has them all; to make one is no part of a commit
        os.makedirs(f"{root}/.git/objects/{number:02x}", exist_ok=True)


def _stream(size: Size) -> Iterator[bytes]:
    yield commit_head(f"refs/heads/{BRANCH}", 0, "files")
    for number in range(size.files):
        yield file_change(source_file(number), b"file %d\n" % number)
    for number in range(ARTIFACTS):
        yield file_change(*artifact(number, "first"))
    for number in range(1, size.commits):
        yield commit_head(f"refs/heads/{BRANCH}", number, f"change {number}")
        yield file_change(
            source_file(number % size.files), b"file %d, changed in %d\n" % (number, number)
        )


def commit_head(ref: str, number: int, subject: str) -> bytes:
    """Return the head of one commit of a fast-import stream."""
    message = f"{subject}\n"
    moment = 1_700_000_000 + number
    return (
        f"commit {ref}\ncommitter Bench <bench@localhost> {moment} +0000\ndata "
        f"{len(message)}\n{message}\n"
    ).encode()


def file_change(path: str, data: bytes) -> bytes:
    """Return one file of a commit of a fast-import stream."""
    return b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)
