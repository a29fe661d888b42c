"""A note to the next run of the program: written often, read after a crash, and done without where
it is damaged.

It is written over in place. To replace a file by renaming makes ext4 write it out at once, which
costs more than the objects of a commit; here a checksum tells a whole note from a torn one.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from typing import Any

from yolo_fs.edges.store import RefusedError, open_regular


class ScratchRecord:
    """One value of JSON in a file of ours."""

    def __init__(self, path: str):
        self._path = path

    def write(self, value: object) -> None:
        """Keep a value for the next start after a crash. Disk errors are ignored."""
        text = json.dumps(value, separators=(",", ":")).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        with contextlib.suppress(OSError, RefusedError):
            descriptor = open_regular(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                if os.fstat(descriptor).st_nlink == 1:  # a hard link: the file is not ours alone
                    os.pwrite(descriptor, line, 0)
            finally:
                os.close(descriptor)

    def read(self) -> Any:
        """Return the value that was written last; None when there is none, or not all of it."""
        with contextlib.suppress(OSError, RefusedError, ValueError):
            with os.fdopen(open_regular(self._path, os.O_RDONLY), "rb") as file:
                checksum, _, text = file.readline().rstrip(b"\n").partition(b" ")
            if int(checksum, 16) == zlib.crc32(text):
                return json.loads(text)
        return None
