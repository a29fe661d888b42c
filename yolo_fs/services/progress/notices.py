"""What the daemon tells those who wait at gates: which gates are open as of which commit.

One small file, replaced only when a gate opens or closes, and a bell beside it. Its time of change
moves whenever the daemon has judged the gates again and found them as they were, so that silence
and death can be told apart. Nothing is true because it stands here: it saves a waiter the look at
the branch, which it can take itself. See docs/faults.md#f58.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yolo_fs.edges.bell import Bell
from yolo_fs.edges.store import read_json, write_json
from yolo_fs.reasons import YoloError

OpenGates = Mapping[str, Sequence[str]]
"""Phase → names of its open gates."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What was told last."""

    id: str = ""
    """Differs from that of every earlier notice."""
    commit: str = ""
    """Commit that the gates were judged at."""
    open: OpenGates | None = None


def read_notice(path: str) -> Notice:
    """Return what the daemon told last; a blank notice when there is none, or none that may be believed.

    May be believed: the directory is ours and closed to others. Who can write there all the same can write the
    branch itself, and open the gate for good.
    """
    if not _is_private(os.path.dirname(path)):
        return Notice()
    match read_json(path):
        case {"id": str(id_), "commit": str(commit), "open": dict(open_)} if all(
            map(_is_list, open_.values())
        ):
            return Notice(id_, commit, open_)
    return Notice()


class Notices:
    """The daemon's hand that writes notices."""

    def __init__(self, path: str, bell: str) -> None:
        """Write to `path` and ring at `bell`; the bell hangs from now on."""
        self._path = path
        self._bell = Bell(bell)
        self._told: OpenGates | None = None

    def tell(self, open_: OpenGates, commit: str) -> None:
        """Tell which gates are open. Who hears nothing of it, because the disk is full, looks after a while."""
        try:
            if open_ == self._told:
                os.utime(self._path)
                return
            write_json(
                self._path,
                {"id": secrets.token_hex(8), "commit": commit, "open": dict(open_)},
                durable=False,
            )
            self._told = open_
            self._bell.ring()
        except (OSError, YoloError):
            self._told = None

    def are_awaited(self) -> bool:
        """Tell whether anybody listens."""
        return self._bell.is_heard()

    def close(self) -> None:
        """Wake all who listen: from now on they have to look themselves."""
        self._bell.close()


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_private(folder: str) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    )
