"""The driver for merging by records in the user's own git: merge, rebase, cherry-pick and stash."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.table import MergeStrategy
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import NoTree
from yolo_fs.core.reasons import Exit, Finding, Reason, errors
from yolo_fs.git.repository import Repository, Setting
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, remove, write_atomic, write_text
from yolo_fs.team.reconcile import merge_texts
from yolo_fs.workspace.settings import Settings

DRIVER = "yolo-jsonl"
ATTRIBUTES = ".gitattributes"
_MOST_BYTES = 4 << 20
_BEGIN, _END = "# yolo-fs merge: begin", "# yolo-fs merge: end"
_LINES = (_BEGIN, f"/{PLANNING_ROOT}/**/*.jsonl merge={DRIVER}", _END)
_AS_GIT_WOULD = "{ ! grep -q '^<<<<<<< ' %A && git merge-file %A %O %B; }"
"""Fallback of git where our driver cannot run, or breaks. To git, a driver that fails without a
marker has left a conflict in which one side is the whole file: the other side would be lost
silently."""
_SAMPLE = f"{PLANNING_ROOT}/phases/01-sample/gaps.jsonl"
"""A path that the driver must be configured for."""


def merged(settings: Settings, path: str, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merge of two versions of an artifact; None on a conflict, and for other files.

    Records that fit together one by one may contradict each other: that is a conflict as well.
    """
    place = classify(path)
    if place is None or place.artifact.merge_strategy is MergeStrategy.WHOLE:
        return None
    result = merge_texts(place.artifact, base, ours, theirs)
    if result is None or result in (ours, theirs):
        return result
    checker = Checker(settings)
    before = [errors(checker.check(place, each, NoTree()).faults) for each in (ours, theirs)]
    after = errors(checker.check(place, result, NoTree()).faults)
    return None if after and not any(before) else result


def merge_as_text(repository: Repository, base: str, ours: str, theirs: str) -> int:
    """Merge three files by lines into `ours`, as git would; return how many conflicts there are."""
    answer = repository.git.run("merge-file", "--", ours, base, theirs, ok=tuple(range(128)))
    return answer.code


def install(repository: Repository) -> tuple[str, ...]:
    """Configure the driver, and the files that it is for, in this repository.

    Return what was changed; nothing when all of it was there.

    Raises:
        YoloError: NOT_REGULAR and whatever else `files.read` finds in place of the attributes.
    """
    changed, before = [], _lines(repository)
    wanted = {f"merge.{DRIVER}.name": "yolo-fs: by records", f"merge.{DRIVER}.driver": command()}
    for key, value in wanted.items():
        if repository.config(key) != value:
            repository.git.run("config", "--local", key, value)
            changed.append(key)
    if not _is_last(before):  # a later line of somebody's would count instead
        _write(repository, (*_without_section(before), *_LINES))
        changed.append(ATTRIBUTES)
    return tuple(changed)


def uninstall(repository: Repository) -> tuple[str, ...]:
    """Remove what `install` wrote, and nothing else; return what was changed.

    Raises as `install`.
    """
    changed, before = [], _lines(repository)
    for key in (f"merge.{DRIVER}.name", f"merge.{DRIVER}.driver"):
        if repository.config(key):
            repository.git.run("config", "--local", "--unset-all", key, ok=(0, 5))
            changed.append(key)
    if f"merge.{DRIVER}.driver" in changed:
        section = f"merge.{DRIVER}"
        repository.git.run("config", "--local", "--remove-section", section, ok=(0, 128))
    if _section(before):
        rest = _without_section(before)
        if rest:
            _write(repository, rest)
        else:
            remove(os.path.join(repository.root, ATTRIBUTES), root=repository.root)
        changed.append(ATTRIBUTES)
    return tuple(changed)


def is_installed(repository: Repository) -> bool:
    """Return whether anything is there that `install` wrote."""
    return bool(repository.config(f"merge.{DRIVER}.driver") or _section(_lines(repository)))


def examine(repository: Repository) -> Iterator[Finding]:
    """Yield why git would not merge artifacts by records here."""
    hint = "Run 'yolo-fs merge install'."
    driver = repository.config(f"merge.{DRIVER}.driver")
    if not driver:
        message = f"git has no merge driver {DRIVER}"
        yield Finding(Reason.HOOK_BROKEN, message=message, hint=hint)
    elif driver != command():
        message = f"the merge driver {DRIVER} runs another program than this one"
        yield Finding(Reason.HOOK_BROKEN, message=message, hint=hint)
    attribute = repository.git.text("check-attr", "merge", "--", _SAMPLE).rpartition(" ")[2]
    if attribute != DRIVER:
        used = "no merge driver" if attribute == "unspecified" else f"the driver {attribute!r}"
        message = f"git uses {used} for {PLANNING_ROOT}/**/*.jsonl"
        nearer = (
            f"Remove that from .git/info/attributes, or from {ATTRIBUTES} below {PLANNING_ROOT}."
        )
        is_there = _is_last(_lines(repository))
        yield Finding(
            Reason.HOOK_BROKEN,
            ATTRIBUTES,
            message=message,
            hint=nearer if is_there else hint,
            command=f"git check-attr merge -- {_SAMPLE}" if is_there else "",
        )


def command() -> str:
    """Return the command that git runs, with the placeholders that it fills in."""
    ours = f"{shlex.quote(sys.executable)} -P -m yolo_fs merge-driver %O %A %B %P"
    return f"{ours} || {_AS_GIT_WOULD}"


def driver_settings(attributes: str) -> tuple[Setting, ...]:
    """Return the settings of git for one merge by records, where it is not installed.

    `attributes`: path of a file that names what the driver is for; it is written.
    """
    write_text(attributes, _LINES[1] + "\n", durable=False)
    return (
        Setting("local", f"merge.{DRIVER}.driver", command()),
        Setting("local", "core.attributesFile", attributes),
    )


def _is_last(lines: Sequence[str]) -> bool:
    """Whether our section is there as it should be, below every line of somebody's."""
    return tuple(lines[-len(_LINES) :]) == _LINES


def _lines(repository: Repository) -> list[str]:
    outcome = read(repository.root, ATTRIBUTES, _MOST_BYTES)
    if isinstance(outcome, Content):
        return outcome.data.decode("utf-8", "surrogateescape").splitlines()
    if outcome.reason is Reason.FILE_MISSING:
        return []
    raise outcome.as_error(ATTRIBUTES, Exit.NOT_HERE)


def _write(repository: Repository, lines: Sequence[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    path = os.path.join(repository.root, ATTRIBUTES)
    write_atomic(path, data, root=repository.root, mode=SHARED)


def _section(lines: list[str]) -> tuple[str, ...]:
    if _BEGIN not in lines or _END not in lines:
        return ()
    return tuple(lines[lines.index(_BEGIN) : lines.index(_END) + 1])


def _without_section(lines: list[str]) -> list[str]:
    if not _section(lines):
        return lines
    return lines[: lines.index(_BEGIN)] + lines[lines.index(_END) + 1 :]
