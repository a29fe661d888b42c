"""Errors and kills inside git itself: a system call that fails, or is the last. See
docs/dev/faults.md#f02, #f03, #f07, #f08 and #f24.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from pathlib import Path

from tests.e2e.artifacts import mixed
from tests.e2e.test_kills import start_again
from tests.torture.kills import settles
from tests.torture.surroundings import Ground, SkipError, Writelog

COMMANDS = ("update-ref", "update-index", "cat-file", "ls-files")
"""The git commands that a commit runs."""
CALLS = {
    "cat-file": ("read", "mmap"),
    "ls-files": ("openat", "read"),
    "update-ref": ("openat", "write", "fsync", "rename"),
    "update-index": ("openat", "write", "fsync", "rename"),
}
"""Command → system calls of it that are broken; each is what the command changes the disk by, or reads it with."""
DEEDS = ("signal=SIGKILL", "error=ENOSPC", "error=EIO", "error=EROFS")
_BROKEN_S = 0.7
"""How long the command stays broken; whoever tries again meets the same fault."""
_FIRST = 12
"""Each call is broken at its first to its twelfth pass; later ones are like these."""

_SHIM = """#!/bin/sh
# Runs git under strace when it is the command to be broken and was not broken yet.
for word; do
    case $word in
        {command}) [ -e {fired} ] || exec {strace} -f -o {trace} -e trace={calls} -e inject={calls}:{deed}:when={when} {git} "$@" ;;
    esac
done
exec {git} "$@"
"""


def inside_git(ground: Ground, count: int) -> None:
    """Break a system call of a git command; what is left is the user's to remove only where it cannot be proved ours."""
    if shutil.which("strace") is None:
        raise SkipError("needs strace")
    cases = [
        (command, calls, deed, when)
        for command in COMMANDS for calls in CALLS[command] for deed in DEEDS for when in range(1, _FIRST + 1)
    ]  # fmt: skip
    ground.rng.shuffle(cases)
    tried = itertools.cycle(cases)
    misses = 0
    while ground.tally.count < count:
        misses = 0 if _broken(ground, *next(tried)) else misses + 1
        if misses > len(cases):
            ground.fault("no fault fires any more")
            return


def _broken(ground: Ground, command: str, calls: str, deed: str, when: int) -> bool:
    """Break one call; False when the command never comes to it that often, which is no case then."""
    of = f"{deed} at {calls} {when} of {command}"
    repo = ground.repo(rescan_s=1)
    log = Writelog(repo)
    place = ground.place / f"{repo.root.name}.shim"
    trace = _shim(place, command, calls, deed, when)
    daemon = ground.daemon(repo, PATH=f"{place}:{os.environ['PATH']}")
    log.write(*mixed(10))
    with log.untouched():
        daemon.begin()
        threading.Event().wait(_BROKEN_S)
        (place / "fired").touch()
        daemon.kill(with_helpers=True)
        log.acknowledged(daemon.mailbox.events)
        start_again(daemon, with_helpers=True)
        settles(ground, daemon, of)
        daemon.kill(with_helpers=True)
        log.acknowledged(daemon.mailbox.events)
    fired = trace.exists() and (
        "INJECTED" in (said := trace.read_text()) or "killed by SIGKILL" in said
    )
    if fired:
        ground.tally.count += 1
        ground.judge(repo, log, of)
    ground.forget(repo)
    return fired


def _shim(place: Path, command: str, calls: str, deed: str, when: int) -> Path:
    """Put a `git` of ours first in a PATH, and return where strace says what it did."""
    place.mkdir()
    trace = place / "trace"
    text = _SHIM.format(
        command=command, fired=place / "fired", strace=shutil.which("strace"), trace=trace, calls=calls, deed=deed,
        when=when, git=shutil.which("git"),
    )  # fmt: skip
    (place / "git").write_text(text)
    (place / "git").chmod(0o755)
    return trace
