"""What a command is given to read: a file, or stdin where it says `-`.

Nothing is read to its end that is longer than allowed: one byte more than the limit tells that
there is more.
"""

from __future__ import annotations

import sys

from yolo_fs.reasons import Exit, Reason, YoloError, safe

STDIN = "-"


def from_stdin(limit_bytes: int) -> bytes:
    """Return what stands on stdin, up to one byte more than the limit."""
    return sys.stdin.buffer.read(limit_bytes + 1)


def bytes_given(path: str, limit_bytes: int) -> bytes:
    """Return the content of a file, or of stdin, up to one byte more than the limit.

    Raises:
        YoloError: UNREADABLE.
    """
    try:
        if path == STDIN:
            return from_stdin(limit_bytes)
        with open(path, "rb") as file:
            return file.read(limit_bytes + 1)
    except OSError as error:
        message = f"{safe(path)}: {error.strerror or error}"
        raise YoloError(Reason.UNREADABLE, message, exit_code=Exit.USAGE) from error
