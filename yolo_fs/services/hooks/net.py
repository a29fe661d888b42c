"""Keeps what a command of an agent is about to destroy: agents that share a checkout lose each
other's edits to it.

The command is never stopped. What cannot be kept in time is told instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Reason, YoloError, safe
from yolo_fs.rules.artifacts.secrets import find_secrets
from yolo_fs.rules.authz.targets import Target, sealed
from yolo_fs.rules.hooks.shell import UNKNOWN
from yolo_fs.rules.hooks.touches import Destruction
from yolo_fs.rules.kept import MOST_BYTES, KeptCause
from yolo_fs.services.hooks.request import HookRequest
from yolo_fs.services.kept.keeper import Keeper

ENDANGERED = "endangered"
"""Why it is kept, as 'kept' shows it."""
PATIENCE_S = 5.0
"""How long a hook waits for another process that keeps."""
_MOST_FILES = 20_000
_FEW = 5


@dataclass(slots=True)
class _Found:
    """What a line of commands may destroy."""

    seen: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    size_bytes: int = 0
    secret: list[str] = field(default_factory=list)
    """Paths that look like they hold a credential: they are named, not kept."""
    left: list[str] = field(default_factory=list)
    """Paths for which there is no room, or that cannot be read."""


def keep_first(asked: HookRequest) -> str:
    """Keep what the commands of a question may destroy, all as one entry; return what the agent is
    told of it.
    """
    destructions = asked.said.destructions
    if not destructions:
        return ""
    named = " and ".join(dict.fromkeys(safe(each.what, 80) for each in destructions))
    policy = asked.settings.policy
    found = _Found()
    try:
        for each in destructions:
            _find(asked, each, frozenset(policy.secrets_allowed), found)
        if not found.seen:
            return ""
        keeper = Keeper(
            asked.repository, secrets_allowed=policy.secrets_allowed, patience_s=PATIENCE_S
        )
        cause = KeptCause((ENDANGERED,), named, asked.said.agent or asked.said.host)
        entry = keeper.keep_files(found.files, cause) if found.files else None
    except (YoloError, OSError) as error:
        why = safe(str(error), 200)
        return f"What `{named}` destroys could not be kept ({why}); it is not stopped."
    lines = []
    if entry:
        count = f"{entry.files:,} uncommitted file{'s' if entry.files > 1 else ''}"
        lines.append(
            f"Kept before `{named}`: {count}. "
            f"'yolo-fs kept restore {entry.number}' brings them back as they were."
        )
    elif found.files:
        lines.append(f"What `{named}` destroys is kept already: 'yolo-fs kept' lists it.")
    if found.secret:
        lines.append(f"Not kept, since it looks like a credential: {_listed(found.secret)}.")
    if found.left:
        lines.append(f"Not kept, since it is too large or unreadable: {_listed(found.left)}.")
    return "\n".join(lines)


def _find(asked: HookRequest, command: Destruction, allowed: frozenset[str], found: _Found) -> None:
    """Add what a command may destroy."""
    repository = asked.repository
    places = list(_places(asked, command))
    if command.paths and not places:
        return
    for path in _uncommitted(repository, command, places):
        if path in found.seen:
            continue
        found.seen.add(path)
        row = sealed(Target(path))
        if row is not None and row.names:
            found.secret.append(path)
            continue
        content = read(repository.root, path, MOST_BYTES)
        if not isinstance(content, Content):
            if content.reason is not Reason.FILE_MISSING:
                found.left.append(path)
            continue
        if find_secrets(content.data, path, allowed):
            found.secret.append(path)
        elif found.size_bytes + len(content.data) > MOST_BYTES or len(found.files) == _MOST_FILES:
            found.left.append(path)
        else:
            found.files[path] = content.data
            found.size_bytes += len(content.data)


def _places(asked: HookRequest, command: Destruction) -> Iterator[str]:
    """Yield the paths that a command names, relative to the repository; the whole tree where it is
    unknown.
    """
    for path in command.paths:
        if UNKNOWN in path or path.startswith(":"):
            yield "."
            continue
        relative = asked.relative(path)
        while relative and any(char in relative for char in "*?["):
            relative = os.path.dirname(relative) or "."
        if relative is not None and not relative.startswith("../"):
            yield relative


def _uncommitted(
    repository: Repository, command: Destruction, places: Iterable[str]
) -> Iterator[str]:
    """Yield paths whose content no commit has."""
    within = ("--", *(place for place in places if place != ".")) if "." not in places else ()
    if command.tracked:
        tip = repository.head().tip
        asked = (
            ("diff-index", "--name-only", "--no-renames", "-z", tip) if tip else ("ls-files", "-z")
        )
        yield from _names(repository, *asked, *within)
    if command.untracked:
        yield from _names(repository, "ls-files", "-z", "--others", "--exclude-standard", *within)


def _names(repository: Repository, *arguments: str) -> Iterator[str]:
    out = repository.git.run(*arguments).out
    yield from (os.fsdecode(name) for name in out.split(b"\0") if name and not name.endswith(b"/"))


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _FEW} more" if len(paths) > _FEW else ""
    return f"{', '.join(safe(path) for path in paths[:_FEW])}{more}"
