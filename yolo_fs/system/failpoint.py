"""Named places at which a test kills, delays or fails the running program.

They do nothing unless `YOLO_FP` is set.

`YOLO_FP=STAGE:ACTION[:NTH][,…]`. Actions: `kill` (SIGKILL of this process), `sleep=MS`,
`raise=NAME` (the operating system's error of that name, such as ENOSPC). `NTH` counts the passes
from 1; without it the action happens at every pass. Whoever can set the environment of a process
can end it anyway, so this adds no power.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe

VARIABLE = "YOLO_FP"

STAGES: Mapping[str, str] = {
    # One artifact, from its bytes to its verdict.
    "files.read": "a file's bytes are read; whether it changed meanwhile is not yet checked",
    "intake.judged": "an artifact is found valid; nothing is decided",
    # One commit, up to where it exists.
    "commit.built": "a chain of commits is built in memory",
    "index.noting": "what the index has to follow is about to be noted",
    "index.noted": "what the index has to follow is noted; no object is stored",
    "objects.begun": "nothing of a chain is on the disk",
    "objects.written": "a pack and its index are written under temporary names, and not synced",
    "objects.synced": "a pack and its index are synced, and have no names",
    "objects.named": "a pack has its name and its note, and its folder is not synced",
    "objects.durable": "every object of a chain survives power loss; no branch has it",
    # Packs of ours that are merged.
    "packs.merged": "packs are merged in a store of its own",
    "packs.placed": "the merged pack has its name and its note; those that it replaces are there",
    "packs.removing": "a part of a pack that was merged is put aside",
    # One move of the branch.
    "refs.begun": "the branch is about to be locked",
    "refs.prepared": "the branch is locked, and nothing says by whom",
    "refs.noted": "the branch is locked and the lock is noted as ours; it has not moved",
    "index.locked": "index.lock is held; the index is as it was",
    "index.placed": "the index has what the branch is about to have; index.lock is held",
    "refs.moved": "the branch has moved, and its folder is not synced",
    "refs.durable": "the branch has moved durably; no event is emitted yet",
    # What follows a commit.
    "apply.told": "the commit was told; the daemon has not noted it",
    # The team's ref.
    "team.placed": "what the team has is in the work tree, and not committed",
    "team.publishing": "what the team lacks is about to be committed on its ref",
    "team.published": "it is there, and nobody was told",
    "journal.begun": "an event is about to be written",
    "journal.written": "an event is written",
    "index.begun": "the index is about to follow",
    "index.followed": "the index has followed, and the note says that it has not",
    "index.cleared": "the index has followed, and nothing is noted any more",
    # What is computed from commits.
    "states.begun": "a state file is about to be written",
    "states.written": "a state file is written, and not committed",
    "states.keeping": "a state file beside the branch is about to be written",
    "states.kept": "a state file beside the branch is written",
    "projections.begun": "a department's status is about to be written",
    "projections.locked": "the lock of a department's status is held",
    "projections.written": "a department's status is written",
    "sentinels.written": "a sentinel of a gate is written",
    # Every small file that is replaced.
    "store.begun": "a small file is about to be replaced",
    "store.written": "its successor is written under a temporary name",
    "store.named": "its successor has its name; the folder is not synced",
    # Every log that several processes append to.
    "append.begun": "a line is about to be appended under the lock",
    "append.written": "a line is appended, and not synced",
    # A start after a crash.
    "recovery.begun": "nothing is repaired",
    "recovery.unlocked": "locks that are provably ours are removed",
    "recovery.aside": "an empty object is set aside, and what it was is not stored again",
    "recovery.restored": "a lost blob is stored again",
    "recovery.expected": "what the index may not have followed is taken from the log",
    "recovery.followed": "the index has followed what a killed run left",
    "recovery.booted": "it is noted that this boot was recovered from",
    "daemon.scanned": "the first scan is done; nothing is computed from it",
}
"""Stage → state of the program when it passes. Each stage is passed at exactly one place."""


class Injection(NamedTuple):
    """What happens at a stage."""

    stage: str
    action: Callable[[], object]
    """Kills, delays or fails the program."""
    nth: int
    """The pass at which it happens; 0 for every pass."""


def _nothing(_stage: str) -> None:
    """Do nothing: what `reach` is unless `YOLO_FP` says otherwise."""


def armed(text: str) -> Callable[[str], None]:
    """Return the function to call at each stage that the program reaches.

    Raises:
        YoloError: BAD_CONFIG, saying which part of the text is wrong and what may stand there.
    """
    faults = defaultdict(list)
    for part in filter(None, text.split(",")):
        fault = _fault(part)
        faults[fault.stage].append((fault, itertools.count(1)))
    if not faults:
        return _nothing

    def reach(stage: str) -> None:
        for fault, passes in faults.get(stage, ()):
            if next(passes) == fault.nth or not fault.nth:
                _say(stage)
                fault.action()

    return reach


def _fault(part: str) -> Injection:
    stage, _, rest = part.partition(":")
    action, colon, nth = rest.partition(":")
    name, _, value = action.partition("=")
    if stage not in STAGES:
        raise _refusal(
            part,
            f"no stage is called {safe(stage)!r}",
            "one of docs/dev/torture.md, such as objects.synced",
        )
    if name not in _ACTIONS:
        raise _refusal(part, f"no action is called {safe(name)!r}", f"one of {', '.join(_ACTIONS)}")
    if colon and not (nth.isascii() and nth.isdecimal() and int(nth)):
        raise _refusal(
            part,
            f"{safe(nth)!r} counts no pass",
            "a whole number from 1, or nothing for every pass",
        )
    return Injection(stage, _ACTIONS[name](part, value, stage), int(nth or 0))


def _build_kill(part: str, value: str, _stage: str) -> Callable[[], object]:
    if value:
        raise _refusal(part, "kill takes no value", "kill")
    return lambda: os.kill(os.getpid(), signal.SIGKILL)


def _build_sleep(part: str, value: str, _stage: str) -> Callable[[], object]:
    if not (value.isascii() and value.isdecimal()):
        raise _refusal(part, f"{safe(value)!r} is not a time", "milliseconds, such as sleep=250")
    return lambda: time.sleep(int(value) / 1000)


def _build_raise(part: str, value: str, stage: str) -> Callable[[], object]:
    number = getattr(errno, value, None) if value.startswith("E") else None
    if not isinstance(number, int):
        raise _refusal(
            part,
            f"the operating system has no error {safe(value)!r}",
            "a name such as raise=ENOSPC",
        )

    def refuse() -> None:
        raise OSError(number, os.strerror(number), stage)

    return refuse


_ACTIONS: Mapping[str, Callable[[str, str, str], Callable[[], object]]] = {
    "kill": _build_kill,
    "sleep": _build_sleep,
    "raise": _build_raise,
}


def _say(stage: str) -> None:
    """Report that a fault fires, so that a test can detect one that never does."""
    os.write(2, f"yolo-fs: failpoint {stage}\n".encode())


def _refusal(part: str, message: str, expected: str) -> YoloError:
    hint = (
        f"Expected {expected}. Form: {VARIABLE}=STAGE:ACTION[:NTH][,…]; unset it outside of tests."
    )
    return YoloError(
        Reason.BAD_CONFIG, f"{VARIABLE}, {safe(part)!r}: {message}", hint=hint, exit_code=Exit.USAGE
    )


reach = armed(os.environ.get(VARIABLE, ""))
"""Passes a stage. Bound once, so that without `YOLO_FP` it is the empty function."""
