"""A mark that a session was compacted, left for its next prompt: some hosts hear no hook of a compaction itself.

Hooks use it, so nothing but the standard library is imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import os


def mark(folder: str, session: str) -> None:
    """Note that a session was compacted; a disk that is full costs the reminder, never the session."""
    with contextlib.suppress(OSError):
        os.makedirs(folder, 0o700, exist_ok=True)
        os.close(
            os.open(
                _path(folder, session),
                os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
        )


def take(folder: str, session: str) -> bool:
    """Return whether the session was compacted since the last time, and take the mark away."""
    try:
        os.unlink(_path(folder, session))
    except OSError:
        return False
    return True


def _path(folder: str, session: str) -> str:
    """Return the mark of a session, whose name the host chose and nobody need trust."""
    return os.path.join(
        folder, f"compacted-{hashlib.sha256(session.encode(errors='replace')).hexdigest()[:16]}"
    )
