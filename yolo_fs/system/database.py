"""The only module that uses SQLite: opens the databases below `.git/yolo-fs`.

A *disposable* database holds what can be rebuilt from git and files. It is opened only while its
seal matches: a keyed hash of the file's metadata (number, size, times), with a key from the user's
own state folder. Whoever supplies a git directory does not know this key, and no copy, archive or
change by another program preserves the metadata. Whatever does not match is rebuilt. The seal file
carries the lock as well: shared by all processes that have the database open, exclusive for the one
that rebuilds it. See docs/threats.md and docs/dev/faults.md#f42.

A *durable* database holds what exists nowhere else. It is created once, and never removed or
emptied here. What cannot be read is reported.

Nothing here opens a database file directly while SQLite may have it open: closing such a descriptor
would release the locks of this process.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import re
import sqlite3
import stat
import time
import weakref
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from yolo_fs import __version__
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import (
    RefusedError,
    environment,
    open_regular,
    opened,
    private_directory,
    remove,
    temporary_name,
    write_atomic,
)
from yolo_fs.system.system import try_lock
from yolo_fs.system.warm_path import owners_of, user_folder

DatabaseError = sqlite3.Error
"""What a statement raises."""
ENDINGS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database."""
SEAL = ".seal"

_MOMENT_S = 0.01
"""How long one look at the seal holds for a snapshot."""
_PATIENCE_S = 0.5
"""How long to wait for a lock before a command does without the index."""
_LONG_PATIENCE_S = 10.0
"""The same for a durable database."""
_POLL_S = 0.005
_SEAL_BYTES = 32
_KEY_BYTES = 32
VALUE_BYTES = 8 * 1024 * 1024
"""Maximum size of one value in a durable database."""
_DURABLE_BYTES = 256 * 1024 * 1024
"""Maximum size of a durable database, and of its write-ahead log: whatever is larger came with the
folder, and SQLite would read all of it.
"""
_WAL_BYTES = 4 * 1024 * 1024
"""Size of the write-ahead log above which it is written into the database."""
_NO_DAMAGE = frozenset(
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
     sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
)  # fmt: skip
_INHERITED: list[sqlite3.Connection] = []
"""Connections of the process that forked this one. SQLite forbids even closing them here."""


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error is about the content, and not about the place or the moment."""
    return _code_of(error) not in _NO_DAMAGE


class Database:
    """An open database. Text that may hold anything goes in and comes out as bytes."""

    def __init__(self, connection: sqlite3.Connection, path: str = "", lock: int = -1):
        self._connection = connection
        self._path = path
        self._lock = lock
        self._pid = os.getpid()
        self._looked_s = -_MOMENT_S
        self._end = weakref.finalize(self, _close, connection, path, lock, self._pid)

    @property
    def is_current(self) -> bool:
        """Whether the file is the one that was opened, and nobody else has written to it."""
        if not self._is_usable:
            return False
        is_current = self._lock < 0 or _is_sealed(self._path, self._lock)
        self._looked_s = time.monotonic() if is_current else -_MOMENT_S
        return is_current

    @property
    def was_just_current(self) -> bool:
        """Whether queries read from one snapshot, and it was current a moment ago.

        A command asks thousands of questions, and looking costs as much as each of them.
        """
        is_known = time.monotonic() < self._looked_s + _MOMENT_S
        return is_known and self._is_usable and self.is_reading

    @property
    def _is_usable(self) -> bool:
        """Whether it is open, and not inherited by a fork."""
        return os.getpid() == self._pid and self._end.alive

    @property
    def is_reading(self) -> bool:
        """Whether queries read from one snapshot."""
        return self._connection.in_transaction

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return what a query finds. Raises sqlite3.Error."""
        return self._connection.execute(query, values).fetchall()

    def many(self, query: str, values: Iterator[Any] | list[Any]) -> None:
        """Run a statement for each tuple of values. Raises sqlite3.Error."""
        self._connection.executemany(query, values)

    def begin(self) -> None:
        """Read from one snapshot until `end`, whatever others write. Raises sqlite3.Error."""
        if not self.is_reading:
            self._connection.execute("begin")

    def end(self) -> None:
        """End the snapshot: later queries see what others have written."""
        if self.is_reading:
            self._connection.execute("rollback")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Write in one transaction, as the only writer. Raises sqlite3.Error."""
        self.end()
        self._connection.execute("begin immediate")
        try:
            yield
            self._connection.execute("commit")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.end()
            raise
        if self._lock >= 0 and _size(f"{self._path}-wal") > _WAL_BYTES:
            self.tidy()

    def tidy(self) -> None:
        """Write the write-ahead log into the database file, for a long-lived process."""
        if self._lock < 0 or not self.is_current or not _size(f"{self._path}-wal"):
            return
        self.end()
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("pragma wal_checkpoint(truncate)")
            _put_seal(self._path, self._lock)

    def copy(self, layout: str) -> Database:
        """Return a copy of the content in memory. Raises sqlite3.Error."""
        copied = in_memory(layout)
        self.end()
        self._connection.backup(copied._connection)
        return copied

    def close(self) -> None:
        """Close the database. Later queries fail."""
        self._end()

    def discard(self) -> None:
        """Close the database, and have the next opener rebuild it."""
        if os.getpid() == self._pid and self._path and self._end.alive:
            with contextlib.suppress(OSError):
                os.pwrite(self._lock, bytes(_SEAL_BYTES), 0)
        self.close()


def in_memory(layout: str) -> Database:
    """Return an empty database that ends with this process."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript(layout)
    return Database(connection)


def open_disposable(path: str, layout: str) -> Database | None:
    """Return the disposable database at a path in a folder of ours; None where it is unusable now.

    It is rebuilt where it is not what this code made on this machine. Without it, a database in
    memory has to do. `layout`: the statements that create its tables.
    """
    if _key() is None:
        return None
    with contextlib.suppress(OSError, RefusedError, YoloError, sqlite3.Error):
        lock = open_regular(f"{path}{SEAL}", os.O_RDWR | os.O_CREAT)
        try:
            return _opened(path, lock, layout)
        except BaseException:
            os.close(lock)
            raise
    return None


def open_durable(path: str, layout: str, *, make: bool, is_synced: bool = True) -> Database | None:
    """Return the durable database at a path in a folder of ours; None without one, unless `make`.

    `is_synced`: writes survive a power loss.

    Raises:
        RefusedError: NOT_REGULAR, or UNREADABLE: it is no database, damaged, or of another layout.
        YoloError: LOCK_TIMEOUT, NO_SPACE, STORAGE_FAILED.
    """
    if not os.path.lexists(path):
        if not make:
            return None
        with storing(path), environment(path):
            _make_once(path, layout)
    if is_foreign(path):
        raise RefusedError(Reason.NOT_REGULAR, "it, or a file of SQLite beside it, is not ours")
    if max(_size(path), _size(f"{path}-wal")) > _DURABLE_BYTES:
        raise RefusedError(Reason.UNREADABLE, f"it is larger than {_DURABLE_BYTES:,} bytes")
    with storing(path):
        try:
            connection = _opened_durable(path, layout, is_synced=is_synced)
        except sqlite3.OperationalError as error:
            if make or _code_of(error) not in _NO_PLACE or _size(f"{path}-wal"):
                raise
            connection = _opened_durable(path, layout, mode="ro&immutable=1")
    return Database(connection, path)


_NO_PLACE = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
)
"""SQLite makes a file beside a database even to read it. Where none can be made, on a full disk or
a read-only mount, nobody writes either: the file alone is read.
"""


def _opened_durable(
    path: str, layout: str, *, is_synced: bool = True, mode: str = "rw"
) -> sqlite3.Connection:
    connection = _connect(path, _LONG_PATIENCE_S, mode)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    try:
        _refuse_other_tables(connection, layout)
        connection.execute(f"pragma synchronous = {'full' if is_synced else 'normal'}")
    except BaseException:
        connection.close()
        raise
    return connection


def _code_of(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


@contextlib.contextmanager
def storing(path: str) -> Iterator[None]:
    """Turn SQLite's errors into those that `open_durable` raises."""
    try:
        yield
    except sqlite3.Error as error:
        code = _code_of(error)
        message = f"{safe(path)}: {error}"
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            hint = "end or resume the process that has it open, then try again"
            raise YoloError(Reason.LOCK_TIMEOUT, message, hint=hint) from error
        if is_damage(error) and code != sqlite3.SQLITE_IOERR:
            raise RefusedError(Reason.UNREADABLE, str(error)) from error
        reason = Reason.NO_SPACE if code == sqlite3.SQLITE_FULL else Reason.STORAGE_FAILED
        hint = "free space or check permissions"
        raise YoloError(reason, message, hint=hint, exit_code=Exit.TRY_AGAIN) from error


def is_foreign(path: str) -> bool:
    """Return whether a database, or a file that SQLite would read beside it, cannot be ours."""
    for ending in ("", *ENDINGS):
        try:
            status = os.lstat(f"{path}{ending}")
        except FileNotFoundError:  # SQLite takes it away when the last process closes the database
            continue
        except OSError:
            return True
        if status.st_nlink == 0:  # it goes while it is looked at
            continue
        if ending == "-journal" or not _is_own_file(path, status):
            return True
    return False


def _make_once(path: str, layout: str) -> None:
    """Create a database, unless another process was faster.

    It comes by its only name: one with a second name, as a link would give it, is not ours.
    """
    with opened(path) as (folder, name):
        draft = temporary_name(name)
        place = os.path.join(os.path.dirname(path), draft)
        _wait(folder, shared=False)
        if os.path.lexists(path):
            return
        try:
            _make(place, layout)
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
        os.fsync(folder)


def _refuse_other_tables(connection: sqlite3.Connection, layout: str) -> None:
    tables = connection.execute("select sql from sqlite_schema where sql notnull").fetchall()
    if sorted(tables) != sorted(_schema_of(layout)):
        raise RefusedError(Reason.UNREADABLE, "it has other tables than yolo-fs makes")


def _schema_of(layout: str) -> list[tuple[str]]:
    """Return the statements as SQLite keeps them."""
    return [
        (re.sub("^create (table|index)", lambda kept: kept[0].upper(), each.strip()),)
        for each in layout.split(";")
        if each.strip()
    ]


def _opened(path: str, lock: int, layout: str) -> Database:
    _wait(lock)
    if not _is_sealed(path, lock):
        if not try_lock(lock):
            raise BlockingIOError(f"{path} is open elsewhere, and has to be rebuilt")
        _make(path, layout)
        _put_seal(path, lock)
        if not _is_sealed(path, lock):
            raise BlockingIOError(f"{path} cannot be sealed")
        try_lock(lock, shared=True)
    connection = _connect(path)
    try:
        _refuse_other_tables(connection, layout)
    except (RefusedError, sqlite3.Error) as error:
        connection.close()
        if isinstance(error, RefusedError) or is_damage(error):
            os.pwrite(lock, bytes(_SEAL_BYTES), 0)
        raise
    return Database(connection, path, lock)


def _wait(lock: int, *, shared: bool = True) -> None:
    deadline = time.monotonic() + (_PATIENCE_S if shared else _LONG_PATIENCE_S)
    while not try_lock(lock, shared=shared):
        if time.monotonic() > deadline:
            raise BlockingIOError("it is being rebuilt")
        time.sleep(_POLL_S)


def _connect(path: str, patience_s: float = _PATIENCE_S, mode: str = "rw") -> sqlite3.Connection:
    # As a URI: only then SQLite creates no file of its own. Our folder is private, its name
    # arbitrary.
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{name}?mode={mode}",
        uri=True,
        timeout=patience_s,
        isolation_level=None,
        check_same_thread=False,
    )
    # Without SQLite's own checkpoints, the file changes only where the seal does.
    for pragma in ("trusted_schema = off", "wal_autocheckpoint = 0", "synchronous = normal"):
        connection.execute(f"pragma {pragma}")
    return connection


def _make(path: str, layout: str) -> None:
    for ending in ("", *ENDINGS):
        if os.path.lexists(f"{path}{ending}"):
            if _facts(f"{path}{ending}") is None:
                raise FileExistsError(f"{path}{ending} is no file of ours")
            remove(f"{path}{ending}")
    os.close(open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    connection = _connect(path)
    try:
        connection.executescript(f"pragma synchronous = off; begin; {layout}; commit")
        connection.execute("pragma journal_mode = wal")
    finally:
        connection.close()


def _close(connection: sqlite3.Connection, path: str, lock: int, pid: int) -> None:
    """Close a database. The last one to do so writes the write-ahead log into it, and seals it."""
    if os.getpid() != pid:
        _INHERITED.append(connection)
        return
    try:
        is_last = lock >= 0 and _size(f"{path}-wal") and _is_sealed(path, lock) and try_lock(lock)
        with contextlib.suppress(sqlite3.Error):
            connection.close()
        if is_last:
            _put_seal(path, lock)
    finally:
        if lock >= 0:
            os.close(lock)


def _put_seal(path: str, lock: int) -> None:
    with contextlib.suppress(OSError):
        os.pwrite(lock, _seal_of(path) or bytes(_SEAL_BYTES), 0)


def _is_sealed(path: str, lock: int) -> bool:
    expected = _seal_of(path)
    try:
        return expected is not None and os.pread(lock, _SEAL_BYTES + 1, 0) == expected
    except OSError:
        return False


def _seal_of(path: str) -> bytes | None:
    """Return the expected seal; None where the files are not as we leave them."""
    facts, key = _facts(path), _key()
    # A rollback journal would be replayed, and may name further files to delete.
    if facts is None or key is None or is_foreign(path):
        return None
    return blake2b(f"{__version__} {facts}".encode(), key=key, digest_size=_SEAL_BYTES).digest()


def _facts(path: str) -> tuple[int, ...] | None:
    """Return metadata that identifies a file and changes when it is written to.

    None unless it is a regular file of one of its `owners_of` with one name.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if not _is_own_file(path, status):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_own_file(path: str, status: os.stat_result) -> bool:
    is_ours = status.st_uid in owners_of(path) and status.st_nlink == 1
    return is_ours and stat.S_ISREG(status.st_mode)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def proof_of(text: str) -> str:
    """Return a keyed digest of a text, which needs this user's key; empty where none can be
    kept.
    """
    key = _key()
    return blake2b(text.encode(), key=key, digest_size=_SEAL_BYTES).hexdigest() if key else ""


def is_proof(proof: object, text: str) -> bool:
    """Return whether something is the keyed digest of a text, by this user's key."""
    expected = proof_of(text).encode()
    return bool(expected) and hmac.compare_digest(expected, str(proof).encode())


_PROOF = "proof"


def prove(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of JSON values with a proof that this user made it."""
    return {**record, _PROOF: proof_of(_proved_text(record))}


def is_proved(record: Mapping[str, Any]) -> bool:
    """Return whether this user made a record: the folder it lies in may come from anybody."""
    return is_proof(record.get(_PROOF), _proved_text(record))


def _proved_text(record: Mapping[str, Any]) -> str:
    return json.dumps(
        {name: value for name, value in record.items() if name != _PROOF}, sort_keys=True
    )


_KEYS: dict[str, bytes] = {}
"""State folder → its key, once it was read."""


def state_folder() -> str:
    """Return the folder of this user for what is neither configuration nor of one repository."""
    return os.path.join(user_folder("XDG_STATE_HOME", ".local/state"), "yolo-fs")


def make_state_folder() -> str:
    """Make that folder, for this user alone, and return its path.

    Raises:
        YoloError: NOT_REGULAR, FOREIGN_OWNER, STORAGE_FAILED.
    """
    folder = state_folder()
    with environment(folder):
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        private_directory(folder)
    return folder


def _key() -> bytes | None:
    """Return the key of this user, made at the first call; None where none can be kept."""
    folder = state_folder()
    if folder not in _KEYS:
        key = _read_key(folder)
        if key is None:
            with contextlib.suppress(YoloError), environment(folder):
                write_atomic(f"{make_state_folder()}/key", os.urandom(_KEY_BYTES))
            key = _read_key(folder)
        if key is None:
            return None
        _KEYS[folder] = key
    return _KEYS[folder]


def _read_key(folder: str) -> bytes | None:
    content = read(folder, "key", _KEY_BYTES)
    is_whole = isinstance(content, Content) and len(content.data) == _KEY_BYTES
    return content.data if is_whole and isinstance(content, Content) else None
