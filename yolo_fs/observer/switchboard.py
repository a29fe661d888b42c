"""Passes requests from clients to workers, and answers back.

It does no work itself, so that it always responds. A worker that hangs or ends is replaced, and the
client that waits for it is sent away. The request of a command that pauses is passed on again when
the pause is over.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from yolo_fs.observer.answers import REFUSAL
from yolo_fs.system import ask
from yolo_fs.system.ask import FRAME_BYTES, HELLO, LONGEST_BYTES, SOCKET, frame, package_folder
from yolo_fs.system.pausing import POLL_S, Pause
from yolo_fs.system.system import end_with_parent, is_stopped, package_stamp
from yolo_fs.system.warm_path import is_private

WORKERS = 2
"""Two, so that a slow request does not hold up a quick one."""
BACKLOG = 128
LIMIT_S = 10.0
"""Most time of a worker for one request."""
READING_LIMIT_S = 300.0
"""Most time of a worker to read the branch and its files, for which nobody waits: it grows with
them, and a worker that is replaced begins again."""
PATIENCE_S = 0.25
"""How long a request waits while no worker ends another."""
QUEUED_S = 1.5
"""How long it waits at most: several answers cost less than one command that runs by itself."""
REQUEST_S = 2.0
"""Time for a client to send its request, and to take the answer."""
TICK_S = 0.1
"""Polling interval while a client or a worker is busy."""
LOOK_EVERY_S = 0.5
"""Interval of checks for processes of ours that were stopped."""
WAIT_ON_S = 0.5
"""Interval of keep-alive messages to a client whose request is in progress."""
QUIET_S = 1.0
"""Idle time before workers read new commits: a request meanwhile would find a worker busy."""
READ_ON_S = 300.0
"""Idle time after which workers read new commits again, so that a request after a busy hour does
not wait for all of them."""
STAMP_EVERY_S = 1.0
"""Interval of checks of the whole installed package. Its folder is checked at each request."""
RECEIVED = 1 << 18
FOLLOW = b""
"""Request that has a worker read new commits."""
AGAIN = b"again"
"""Its answer where files are so new that they have to be read once more, a moment later."""

NOT_PAUSED = Pause(None, {}, 0.0)
"""Of a command that has just been asked for."""

Serve = Callable[[socket.socket], NoReturn]
"""Main function of a worker; it gets its end of the socket."""


def write_task(question: bytes, pause: Pause) -> bytes:
    """Return the request of a client with the last pause of its command, for a worker."""
    text = pause.to_bytes()
    return len(text).to_bytes(4, "big") + text + question


def parse_task(task: bytes) -> tuple[bytes, Pause]:
    """Return what `write_task` has put together."""
    end = 4 + int.from_bytes(task[:4], "big")
    return task[end:], Pause.parse(task[4:end])


class Connection:
    """One end of a connection, with its unsent and its received data."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self.heard = bytearray()
        self.unsent = bytearray()
        self.is_closed = False
        connection.setblocking(False)

    def receive(self) -> None:
        try:
            part = self.connection.recv(RECEIVED)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            part = b""
        self.is_closed |= not part
        self.heard += part

    def send(self, data: bytes = b"") -> None:
        """Send more, or what is still unsent. What does not fit is sent later."""
        self.unsent += data
        try:
            while self.unsent:
                del self.unsent[: self.connection.send(self.unsent)]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.is_closed = True
            self.unsent.clear()


class Client(Connection):
    """A client with one request."""

    def __init__(self, connection: socket.socket):
        super().__init__(connection)
        self.since_s = time.monotonic()
        """When it connected, completed its request, or last received something."""
        self.question: bytes | None = None
        self.pause = NOT_PAUSED
        """The last pause of its command."""
        self.is_answered = False

    @property
    def has_paused(self) -> bool:
        """Whether its command has begun to wait: it is not sent away because others are busy."""
        return self.pause is not NOT_PAUSED

    def read(self) -> bool:
        """Return whether the whole request has arrived.

        Raises:
            ValueError: it is longer than any.
        """
        if len(self.heard) < 8:
            return False
        length = 8 + sum(int.from_bytes(self.heard[at : at + 4], "big") for at in (0, 4))
        if length > LONGEST_BYTES:
            raise ValueError
        if len(self.heard) < length:
            return False
        self.question = bytes(self.heard[:length])
        return True


class ObserverWorker(Connection):
    """A process that answers one request after another."""

    def __init__(self, pid: int, connection: socket.socket):
        super().__init__(connection)
        self.pid = pid
        self.client: Client | None = None
        self.began_s: float | None = None
        """When its current request began; None while it is free."""
        self.limit_s = LIMIT_S
        """Most time for it."""

    def give(self, question: bytes, client: Client | None) -> None:
        self.client, self.began_s = client, time.monotonic()
        self.limit_s = READING_LIMIT_S if client is None else LIMIT_S
        task = question if client is None else write_task(question, client.pause)
        self.send(len(task).to_bytes(4, "big") + task)

    def taken(self) -> bytes | None:
        """Return the complete answer and become free; None while it is incomplete."""
        length = 4 + int.from_bytes(self.heard[:4], "big")
        if len(self.heard) < max(4, length):
            return None
        answer = bytes(self.heard[4:length])
        del self.heard[:length]
        self.client, self.began_s = None, None
        return answer


class Switchboard:
    """Serves below one folder until the follower ends or the installed package changes."""

    def __init__(self, folder: str, follower: int, serve: Serve):
        """`follower`: the process beside this one that ends with the daemon."""
        self._folder = folder
        self._follower = follower
        self._lifeline = os.pidfd_open(follower)
        self._serve = serve
        self._stamp, self._seen = _stamp(), _read_quick_stamp()
        self._stamped_s = time.monotonic()
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._clients: dict[int, Client] = {}
        self._waiting: deque[Client] = deque()
        self._paused: list[Client] = []
        self._workers: list[ObserverWorker] = []
        self._looked_s = 0.0
        self._stopped: set[int] = set()
        self._has_read = False
        """Whether a worker has read the branch."""
        self._asked_s = time.monotonic()
        self._answered_s = 0.0
        self._follows: list[ObserverWorker] = []
        """Workers that still have to read new commits."""
        self._reread: set[ObserverWorker] = set()
        """Those that were told to read them a second time since the last request: in a work tree
        that changes all the time, a third would find no more.
        """

    def run(self) -> None:
        """Serve until there is nobody left to serve for."""
        for _ in range(WORKERS):
            self._start_worker()
        self._selector.register(self._lifeline, selectors.EVENT_READ)
        while self._turn():
            continue

    def _turn(self) -> bool:
        """Do one iteration, and return whether to go on."""
        for key, _ in self._selector.select(self._sleep_s()):
            if key.fileobj == self._lifeline:
                return False
            if self._listener is not None and key.fileobj is self._listener:
                self._accept_client(self._listener)
            elif isinstance(key.data, ObserverWorker):
                self._hear_worker(key.data)
            else:
                self._hear_client(key.data)
        self._look_at_the_clock()
        self._resume_paused()
        while self._waiting and (worker := self._free()) is not None:
            client = self._waiting.popleft()
            worker.give(client.question or b"", client)
            client.since_s = time.monotonic()
        self._watch_for_room()
        return self._is_current()

    def _sleep_s(self) -> float:
        if self._paused:
            return POLL_S
        is_busy = self._clients or any(worker.began_s is not None for worker in self._workers)
        return TICK_S if is_busy else LOOK_EVERY_S

    def _free(self) -> ObserverWorker | None:
        return next((worker for worker in self._workers if worker.began_s is None), None)

    def _accept_client(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            if not _may_ask(connection):
                connection.close()
                return
            client = Client(connection)
            self._clients[connection.fileno()] = client
            self._selector.register(connection, selectors.EVENT_READ, client)
            client.send(HELLO)

    def _hear_client(self, client: Client) -> None:
        client.send()
        client.receive()
        try:
            if client.question is None and client.read():
                self._asked_s = client.since_s = time.monotonic()
                self._waiting.append(client)
        except ValueError:
            client.is_closed = True
        if client.is_closed or (client.is_answered and not client.unsent):
            self._part(client)

    def _answer(self, client: Client, answer: bytes) -> None:
        client.is_answered, client.since_s = True, time.monotonic()
        client.send(answer)
        if not client.unsent:
            self._part(client)

    def _answer_or_pause(self, client: Client, answer: bytes) -> None:
        if answer[:1] == b"P":
            client.pause = Pause.parse(answer[FRAME_BYTES:])
            self._paused.append(client)
        else:
            self._answer(client, answer)

    def _resume_paused(self) -> None:
        for client in [client for client in self._paused if client.pause.is_over]:
            self._paused.remove(client)
            client.since_s = time.monotonic()
            self._waiting.append(client)

    def _part(self, client: Client) -> None:
        """Forget a client. A worker that is busy with it finishes first."""
        if self._clients.pop(client.connection.fileno(), None) is None:
            return
        self._selector.unregister(client.connection)
        client.connection.close()
        for queue in (self._waiting, self._paused):
            if client in queue:
                queue.remove(client)
        for worker in self._workers:
            if worker.client is client:
                worker.client = None

    def _hear_worker(self, worker: ObserverWorker) -> None:
        worker.send()
        worker.receive()
        client = worker.client
        answer = worker.taken() if worker.began_s is not None else None
        if answer is not None:
            self._has_read = True
            if client is not None:
                self._asked_s = self._answered_s = time.monotonic()
                self._let_all_follow()
                self._answer_or_pause(client, answer)
            elif answer == AGAIN and worker not in self._reread:
                self._asked_s = time.monotonic()
                self._reread.add(worker)
                self._follows.append(worker)
        elif worker.is_closed:
            self._replace(worker)

    def _let_all_follow(self) -> None:
        self._follows = list(self._workers)
        self._reread.clear()

    def _replace(self, worker: ObserverWorker) -> None:
        """Replace a worker that has ended or hangs."""
        self._stop_worker(worker)
        if worker.client is not None:
            self._answer(worker.client, REFUSAL)
        self._start_worker()

    def _stop_worker(self, worker: ObserverWorker) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker.connection)
        worker.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
        os.waitpid(worker.pid, 0)

    def _start_worker(self) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._become(theirs)
        theirs.close()
        worker = ObserverWorker(pid, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        worker.give(FOLLOW, None)

    def _become(self, connection: socket.socket) -> NoReturn:
        try:
            end_with_parent()
            keep = connection.fileno()
            os.closerange(3, keep)
            os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX") if keep > 1_000 else 1_024)
            connection.setblocking(True)
            self._serve(connection)
        finally:
            os._exit(1)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if self._has_read and self._listener is None:
            self._listener = self._listen()
        self._look_for_stopped(now)
        for worker in list(self._workers):
            if worker.began_s is not None and now - worker.began_s > worker.limit_s:
                self._replace(worker)
        for client in list(self._waiting):
            stalled_s = now - max(client.since_s, self._answered_s)
            is_late = stalled_s > PATIENCE_S or now - client.since_s > QUEUED_S
            if is_late and not client.has_paused:
                self._answer(client, REFUSAL)
        working = [any_worker.client for any_worker in self._workers]
        for client in list(self._clients.values()):
            silent_s = now - client.since_s
            if client in working or (client.has_paused and not client.is_answered):
                if silent_s > WAIT_ON_S:
                    client.since_s = now
                    client.send(frame("W", 0))
            elif silent_s > REQUEST_S:
                self._part(client)
        self._read_on(now)

    def _look_for_stopped(self, now: float) -> None:
        """End processes of ours that somebody has stopped, once a second check confirms it."""
        if now - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now
        pids = (self._follower, *(worker.pid for worker in self._workers))
        stopped = set(filter(is_stopped, pids))
        for pid in stopped & self._stopped:
            os.kill(pid, signal.SIGKILL)
        self._stopped = stopped

    def _read_on(self, now: float) -> None:
        """Let one worker after another read new commits while there are no requests."""
        quiet_s = now - self._asked_s
        if quiet_s > READ_ON_S:
            self._asked_s = now - QUIET_S
            self._let_all_follow()
        is_idle = all(any_worker.began_s is None for any_worker in self._workers)
        if self._follows and is_idle and quiet_s > QUIET_S:
            worker = self._follows.pop()
            if worker in self._workers:
                worker.give(FOLLOW, None)

    def _watch_for_room(self) -> None:
        """Wake up when a connection with unsent data becomes writable."""
        for line in (*self._clients.values(), *self._workers):
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.unsent else 0)
            if self._selector.get_key(line.connection).events != wanted:
                self._selector.modify(line.connection, wanted, line)

    def _is_current(self) -> bool:
        """Return whether the installed code is still the code that runs here.

        If not, clients are sent away, and another process takes over.
        """
        now = time.monotonic()
        is_current = _read_quick_stamp() == self._seen
        is_asked = len(self._clients) > len(self._paused)
        if is_current and now - self._stamped_s > STAMP_EVERY_S and is_asked:
            self._stamped_s, is_current = now, _stamp() == self._stamp
        if not is_current:
            for client in list(self._clients.values()):
                self._answer(client, REFUSAL)
        return is_current

    def close(self) -> None:
        """Send the clients away, and end the workers and the follower."""
        for client in list(self._clients.values()):
            self._part(client)
        for worker in list(self._workers):
            self._stop_worker(worker)
        if self._listener is not None:
            self._listener.close()
        self._selector.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._follower, signal.SIGKILL)
        os.waitpid(self._follower, 0)

    def _listen(self) -> socket.socket | None:
        """Create the socket under its known name atomically, replacing that of a killed process.

        None where it cannot be stored, as on a full disk: commands run without it meanwhile.
        """
        place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not is_private(os.fstat(place)):
            raise SystemExit(f"{self._folder} is open to others")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._name(listener, place)
        except OSError:
            listener.close()
            return None
        finally:
            os.close(place)
        self._selector.register(listener, selectors.EVENT_READ)
        return listener

    @staticmethod
    def _name(listener: socket.socket, place: int) -> None:
        fresh = f"{SOCKET}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place)
        before = os.umask(0o177)
        try:
            listener.bind(f"/proc/self/fd/{place}/{fresh}")
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        listener.setblocking(False)
        os.replace(fresh, SOCKET, src_dir_fd=place, dst_dir_fd=place)


def _may_ask(connection: socket.socket) -> bool:
    """Return whether a client is the same user and sees the same file system."""
    pid, user = ask.peer_of(connection)
    if user != os.geteuid():
        return False
    try:
        return _file_view_of(str(pid)) == _file_view_of("self")
    except OSError:
        return False


def _file_view_of(process: str) -> tuple[str, str]:
    return os.readlink(f"/proc/{process}/ns/mnt"), os.readlink(f"/proc/{process}/root")


_stamp = partial(package_stamp, sys.path)


def _read_quick_stamp() -> tuple[int, ...]:
    """Return a stamp that changes when the package is reinstalled."""
    stamp: tuple[int, ...] = ()
    with contextlib.suppress(OSError):
        for path in (package_folder(), f"{package_folder()}/__init__.py"):
            status = os.stat(path)
            stamp += (status.st_mtime_ns, status.st_ino)
    return stamp
