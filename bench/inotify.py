"""inotify as the kernel gives it, through ctypes: the floor of every watcher, and a clock for
renames.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

CLOSE_WRITE = 0x00000008
MOVED_TO = 0x00000080

_HEAD = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class Inotify:
    """One queue and the folders that it watches."""

    def __init__(self, mask: int = CLOSE_WRITE | MOVED_TO):
        self._mask = mask
        self._folders: dict[int, str] = {}
        self.fd = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        """Readable as soon as something happened."""
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def add(self, folder: str) -> None:
        """Watch one folder, not what is below it."""
        watch = _libc.inotify_add_watch(self.fd, os.fsencode(folder), self._mask)
        if watch < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
        self._folders[watch] = folder

    def add_below(self, folder: str) -> None:
        """Watch a folder and all below it."""
        for parent, _, _ in os.walk(folder):
            self.add(parent)

    def read(self) -> Iterator[str]:
        """Yield the paths that events have come for since the last call, without waiting."""
        try:
            events = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return
        start = 0
        while start < len(events):
            watch, _mask, _cookie, length = _HEAD.unpack_from(events, start)
            name = events[start + _HEAD.size : start + _HEAD.size + length].rstrip(b"\0")
            start += _HEAD.size + length
            if name and watch in self._folders:
                yield f"{self._folders[watch]}/{os.fsdecode(name)}"

    def close(self) -> None:
        """End all watches."""
        os.close(self.fd)
