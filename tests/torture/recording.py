"""What a program asked of the file system, in order, and the states that a power loss may leave of
it. See docs/dev/faults.md#f04.

Written, synced and named are three things. A file's bytes survive once the file is synced, its name once the folder is;
until then either may be there or not. Within a folder changes reach the disk in their order; between folders, in any.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

CALLS = "openat,write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,fsync,fdatasync,ftruncate,mkdir,mkdirat"
STRACE = ("strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "4194304", "-e", f"trace={CALLS}")

_LINE = re.compile(
    r"(?P<pid>\d+) +(?:<\.\.\. \w+ resumed>(?P<rest>.*)|(?P<begin>.*) <unfinished \.\.\.>|(?P<whole>.*))"
)
_CALL = re.compile(
    r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)(?:<(?P<place>[^>]*)>)?.*"
)
_PLACE = re.compile(r"(?:\d+|AT_FDCWD)<([^>]*)>")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Op(NamedTuple):
    """One thing that was asked for, and was done."""

    name: str
    path: str
    data: bytes = b""
    other: str = ""
    """The new name."""
    at: int = 0
    """Offset or size; -1 for the end of the file."""


def operations(trace: Path) -> Iterator[Op]:
    """Yield what strace saw, each call at the moment of its return."""
    begun: dict[str, str] = {}
    with open(trace, encoding="ascii") as file:
        for line in file:
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                continue
            if match["begin"] is not None:
                begun[match["pid"]] = match["begin"]
                continue
            text = (
                match["whole"]
                if match["rest"] is None
                else begun.pop(match["pid"], "") + match["rest"]
            )
            call = _CALL.fullmatch(text)
            if call and int(call["result"]) >= 0:
                yield from _ops(call)


def _plain(escaped: str) -> str:
    return bytes.fromhex(escaped.replace("\\x", "")).decode("utf-8", "surrogateescape")


def _ops(call: re.Match[str]) -> Iterator[Op]:
    name, arguments = call["name"], call["arguments"]
    strings = [bytes.fromhex(text.replace("\\x", "")) for text in _STRING.findall(arguments)]
    places = [_plain(place) for place in _PLACE.findall(arguments)]
    match name:
        case "openat" if "O_CREAT" in arguments or "O_TRUNC" in arguments:
            yield Op("truncate" if "O_TRUNC" in arguments else "open", _plain(call["place"] or ""))
        case "write":
            yield Op("write", places[0], strings[0] if strings else b"", at=-1)
        case "pwrite64":
            yield Op("write", places[0], strings[0], at=int(arguments.rpartition(", ")[2]))
        case "ftruncate":
            yield Op("resize", places[0], at=int(arguments.rpartition(", ")[2]))
        case "fsync" | "fdatasync":
            yield Op("sync", places[0])
        case "rename" | "renameat" | "renameat2" | "link" | "linkat":
            old, new = _joined(places, strings, 2)
            yield Op("link" if name.startswith("link") else "rename", old, other=new)
        case "unlink" | "unlinkat" | "mkdir" | "mkdirat":
            (path,) = _joined(places, strings, 1)
            yield Op(name.removesuffix("at"), path)


def _joined(places: list[str], strings: list[bytes], count: int) -> list[str]:
    """Return paths as names below the folders that they are relative to."""
    names = [string.decode("utf-8", "surrogateescape") for string in strings[:count]]
    folders = (places + [""] * count)[:count]
    return [str(Path(folder) / name) for folder, name in zip(folders, names, strict=True)]


# --- a file system that forgets --------------------------------------------------------------------------------------


@dataclass
class _File:
    kept: bytes | None
    """What is on the disk for sure; None for a file that never was."""
    now: bytes

    @property
    def is_kept(self) -> bool:
        return self.kept == self.now


@dataclass
class _Folder:
    kept: dict[str, _File | _Folder] = field(default_factory=dict)
    pending: list[Callable[[dict[str, _File | _Folder]], object]] = field(default_factory=list)

    @property
    def now(self) -> dict[str, _File | _Folder]:
        return self.after(len(self.pending))

    def after(self, count: int) -> dict[str, _File | _Folder]:
        """Return the names once that many of the pending changes have reached the disk."""
        names = dict(self.kept)
        for change in self.pending[:count]:
            change(names)
        return names


class Disk:
    """One folder on a disk whose power may fail."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._top = _loaded(root)

    def do(self, op: Op) -> None:
        """Carry out one operation; what does not concern the folder is left out."""
        inside = op.path == self._root or op.path.startswith(self._root + "/")
        if inside:
            getattr(self, f"_{op.name}")(op)

    def crashed(self, into: Path, rng: random.Random) -> None:
        """Make one state that the disk may be in after a power loss."""
        into.mkdir()
        _survive(self._top, into, rng)

    def _find(self, path: str) -> _File | _Folder | None:
        found: _File | _Folder | None = self._top
        for name in path[len(self._root) :].split("/")[1:]:
            found = found.now.get(name) if isinstance(found, _Folder) else None
        return found

    def _around(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        found = self._find(folder)
        assert isinstance(found, _Folder), path
        return found, name

    def _change(
        self, path: str, change: Callable[[dict[str, _File | _Folder], str], object]
    ) -> None:
        folder, name = self._around(path)
        folder.pending.append(lambda names: change(names, name))

    def _put(self, path: str, what: _File | _Folder) -> None:
        self._change(path, lambda names, name: names.__setitem__(name, what))

    def _open(self, op: Op) -> None:
        if self._find(op.path) is None:
            self._put(op.path, _File(None, b""))

    def _truncate(self, op: Op) -> None:
        self._open(op)
        self._resize(op)

    def _resize(self, op: Op) -> None:
        file = self._file(op.path)
        file.now = file.now[: op.at].ljust(op.at, b"\0")

    def _write(self, op: Op) -> None:
        file = self._file(op.path)
        at = len(file.now) if op.at < 0 else op.at
        file.now = file.now[:at].ljust(at, b"\0") + op.data + file.now[at + len(op.data) :]

    def _sync(self, op: Op) -> None:
        match self._find(op.path):
            case _File() as file:
                file.kept = file.now
            case _Folder() as folder:
                folder.kept, folder.pending = folder.now, []

    def _rename(self, op: Op) -> None:
        what = self._find(op.path)
        if what is None:  # a pipe, which holds nothing that could be lost
            return
        old, new = self._around(op.path), self._around(op.other)
        if old[0] is new[0]:  # one change of one folder: both names or neither

            def change(names: dict[str, _File | _Folder]) -> None:
                names.pop(old[1], None)
                names[new[1]] = what

            old[0].pending.append(change)
        else:
            self._put(op.other, what)
            self._unlink(op)

    def _link(self, op: Op) -> None:
        what = self._find(op.path)
        assert what is not None, op
        self._put(op.other, what)

    def _unlink(self, op: Op) -> None:
        self._change(op.path, lambda names, name: names.pop(name, None))

    def _mkdir(self, op: Op) -> None:
        self._put(op.path, _Folder())

    def _file(self, path: str) -> _File:
        found = self._find(path)
        assert isinstance(found, _File), path
        return found


def _loaded(root: Path) -> _Folder:
    """Return what lies there; it has been there long enough to be on the disk."""
    names: dict[str, _File | _Folder] = {}
    for path in root.iterdir():
        names[path.name] = (
            _loaded(path) if path.is_dir() else _File(path.read_bytes(), path.read_bytes())
        )
    return _Folder(names)


def _survive(folder: _Folder, into: Path, rng: random.Random) -> None:
    for name, what in folder.after(rng.randint(0, len(folder.pending))).items():
        if isinstance(what, _Folder):
            (into / name).mkdir()
            _survive(what, into / name, rng)
        else:
            (into / name).write_bytes(_some_of(what, rng))


def _some_of(file: _File, rng: random.Random) -> bytes:
    """Return the bytes of a file that may be left: all, none, the first part, or zeros where nothing was written."""
    if file.is_kept:
        return file.now
    kept = file.kept or b""
    same = len(kept) if file.now.startswith(kept) else 0
    half = (same + len(file.now)) // 2
    zeros = file.now[:same].ljust(len(file.now), b"\0")
    return rng.choice((file.now, kept, file.now[:same], file.now[:half], zeros))


def copied(source: Path, target: Path, left_out: Mapping[str, object] = {}) -> None:
    """Copy a work tree without what is left out."""
    shutil.copytree(
        source,
        target,
        symlinks=True,
        ignore=lambda _, names: [name for name in names if name in left_out],
    )
