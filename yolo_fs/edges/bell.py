"""A bell that any number of processes hear at once: a named pipe, rung by closing its writing end.

Not inotify: a user has 128 of its instances for everything (`fs.inotify.max_user_instances`), so
that the 129th waiter would hear nothing. A pipe costs one descriptor, needs no thread, and rings by
itself when the ringer dies. It carries no news, it only says "look now"; who hears nothing looks
later.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
from typing import Self

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Bell:
    """The ringer's end. What the system refuses costs the sound, never the work."""

    def __init__(self, path: str) -> None:
        """Hang the bell at `path`, so that it can be listened to from now on."""
        self._path = path
        self._descriptor = -1
        self.ring()

    def ring(self) -> None:
        """Wake all who listen. Whoever listens from now on finds a fresh bell: a pipe rings only once."""
        old, self._descriptor = self._descriptor, -1
        with contextlib.suppress(OSError):
            self._descriptor = self._hang()
        if old >= 0:
            os.close(old)

    def is_heard(self) -> bool:
        """Tell whether anybody listens."""
        if self._descriptor < 0:
            return False
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return not poll.poll(0)  # POLLERR: nobody has the other end

    def close(self) -> None:
        """Ring for the last time and take the bell away, unless another hangs there by now."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(self._path)):
                os.unlink(self._path)
        os.close(descriptor)

    def _hang(self) -> int:
        fresh = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        os.mkfifo(fresh, 0o600)
        reader = os.open(fresh, _READ)  # without a reader the other end would not open
        try:
            writer = os.open(fresh, _WRITE)
        finally:
            os.close(reader)
        os.rename(fresh, self._path)
        return writer


class Ear:
    """A listener's end."""

    def __init__(self, path: str) -> None:
        """Be ready to listen to the bell at `path`, which need not hang there yet."""
        self._path = path
        self._descriptor = -1

    def listen(self) -> bool:
        """Hear from now on whatever rings; False when no bell hangs there. Look afterwards, or a ring is missed."""
        if self._descriptor < 0:
            with contextlib.suppress(OSError):
                self._descriptor = _open_pipe(self._path)
        return self._descriptor >= 0

    def wait(self, timeout_s: float) -> bool:
        """Sleep until it rings, and tell whether it did; then it is time to listen anew."""
        poll = select.poll()
        poll.register(self._descriptor, 0)  # only the hanging up is of interest; nobody writes
        rang = bool(poll.poll(max(0.0, timeout_s * 1000)))
        if rang:
            self.close()
        return rang

    def close(self) -> None:
        """Stop listening."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_pipe(path: str) -> int:
    descriptor = os.open(path, _READ)
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"{path} is no pipe")
