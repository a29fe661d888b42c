"""A git directory with a repository's objects and refs, and none of its configuration.

Used for network commands and merges: there a repository could name too many programs, proxies and
paths to switch each of them off. What remains is the user's own configuration and the few values
below, none of which names a program. See docs/dev/faults.md#f57.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator

from yolo_fs.git.repository import Repository, Setting
from yolo_fs.git.runner import Git
from yolo_fs.system.store import environment, write_text

_PREFIX = "isolated-"
_SHARED = ("objects", "refs", "packed-refs", "reftable", "shallow")
"""What the git directory shares with that of its repository."""
_WRITTEN = ("HEAD", "config")
_LEFT_S = 3_600.0
"""No command of ours takes this long: an older directory was left by a killed process."""
_DATA = re.compile(
    r"core\.sharedrepository"
    r"|extensions\.(?:objectformat|refstorage|partialclone)"
    r"|(?:fetch|transfer)\.fsckobjects"
    r"|merge\.(?:renames|renamelimit|directoryrenames)"
    r"|diff\.(?:renames|renamelimit|algorithm)"
    r"|remote\..+\.(?:url|pushurl|promisor|partialclonefilter)",
    re.DOTALL,
)
"""Keys that a repository's own configuration may still set."""


@contextlib.contextmanager
def isolated_git(repository: Repository, more: Iterable[Setting] = ()) -> Iterator[Git]:
    """Yield a git for the same work tree, objects and refs.

    `more`: settings besides those that are data.

    Raises:
        YoloError: FOREIGN_OWNER, STORAGE_FAILED.
    """
    repository.make_own_dir()
    _remove_left(repository.own_dir)
    with environment(repository.own_dir):
        # Beside our files and not in a temporary folder: what the user's configuration includes may
        # depend on the location of the git directory. The name is always new, since nothing that we
        # did not put there may be in it.
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=repository.own_dir)
    try:
        for name in _SHARED:
            os.symlink(f"{repository.common_dir}/{name}", f"{folder}/{name}")
        kept = [each for each in repository.settings() if _is_data(each)]
        write_text(f"{folder}/HEAD", "ref: refs/heads/none\n", durable=False)
        write_text(f"{folder}/config", _text([*kept, *more]), durable=False)
        isolated = Git(repository.root, folder)
        isolated.identity = repository.git.identity
        yield isolated
    finally:
        _remove(folder)


def ignored_settings(repository: Repository) -> tuple[str, ...]:
    """Return the keys of the repository's own configuration that would affect remote commands."""
    networked = re.compile(
        r"(?:core\.(?:sshcommand|gitproxy|askpass)|ssh|credential|http|url|remote)\b.*"
    )
    keys = (
        each.key
        for each in repository.settings()
        if each.is_of_repository and networked.fullmatch(each.key) and not _is_data(each)
    )
    return tuple(key for key in dict.fromkeys(keys) if not key.endswith(".fetch"))


def _is_data(setting: Setting) -> bool:
    return setting.is_of_repository and _DATA.fullmatch(setting.key) is not None


def _text(settings: Iterable[Setting]) -> str:
    lines = ["[core]", "repositoryFormatVersion = 1", "logAllRefUpdates = false"]
    for each in settings:
        section, _, rest = each.key.partition(".")
        part, dot, name = rest.rpartition(".")
        lines.append(f"[{section} {_quoted(part)}]" if dot else f"[{section}]")
        lines.append(f"{name} = {_quoted(each.value)}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _remove_left(own_dir: str) -> None:
    with contextlib.suppress(OSError), os.scandir(own_dir) as entries:
        named = (entry for entry in entries if entry.name.startswith(_PREFIX))
        left = [entry for entry in named if entry.is_dir(follow_symlinks=False)]
        for entry in left:  # a link would lead to files of others
            if time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_S:
                _remove(entry.path)


def _remove(folder: str) -> None:
    """Remove our own files, and the folder if nothing else is in it."""
    for name in (*_SHARED, *_WRITTEN):
        with contextlib.suppress(OSError):
            os.unlink(f"{folder}/{name}")
    with contextlib.suppress(OSError):
        os.rmdir(folder)
