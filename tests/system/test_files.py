"""The safe door to files: nothing but plain files of this tree, and nothing half-written."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.system import IS_LINUX, files
from yolo_fs.system.files import (
    Content,
    FileEntry,
    FolderReader,
    ScanCache,
    Stamp,
    Wanted,
    Writer,
    always,
    content_of,
    is_endless,
    read,
    stamp_of,
    walk,
)
from yolo_fs.system.store import temporary_name

LIMIT = 1 << 20
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make device nodes and give files away"
)
needs_leases = pytest.mark.skipif(not IS_LINUX, reason="only Linux has leases")


def reason(found: Content | Finding) -> Reason | None:
    return found.reason if isinstance(found, Finding) else None


def test_a_plain_file_is_read_with_its_stamp(tmp_path: Path) -> None:
    (tmp_path / "phases/01-auth").mkdir(parents=True)
    file = tmp_path / "phases/01-auth/critique.jsonl"
    file.write_bytes(b'{"id":"C1"}\n')

    found = read(str(tmp_path), "phases/01-auth/critique.jsonl", LIMIT)

    assert isinstance(found, Content)
    assert (found.data, found.stamp) == (b'{"id":"C1"}\n', Stamp.of(file.stat()))
    assert not found.being_written


def test_the_root_may_be_a_descriptor_and_stays_open(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1\n")
    root = os.open(tmp_path, os.O_RDONLY)

    assert [reason(read(root, b"x", LIMIT)) for _ in range(3)] == [None] * 3
    os.close(root)


def test_reading_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1\n")
    os.symlink("x", tmp_path / "link")
    before = os.listdir("/proc/self/fd")

    for name in ("x", "link", "absent", "x/y", "../x"):
        read(str(tmp_path), name, LIMIT)
    list(walk(str(tmp_path)))

    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("absent", Reason.FILE_MISSING),
        ("absent/absent", Reason.FILE_MISSING),
        ("../etc/passwd", Reason.PATH_ESCAPES),
        ("a/../x", Reason.PATH_ESCAPES),
        ("/etc/passwd", Reason.PATH_ESCAPES),
        ("", Reason.PATH_ESCAPES),
        ("./x", Reason.PATH_ESCAPES),
        ("x//y", Reason.PATH_ESCAPES),
        ("x\0y", Reason.BAD_NAME),
        (b"x\0y", Reason.BAD_NAME),
        ("\ud800", Reason.BAD_NAME),
        ("x" * 300, Reason.UNREADABLE),
        ("x/y", Reason.NOT_REGULAR),
    ],
)
def test_a_path_that_leads_to_no_file_is_refused(
    tmp_path: Path, relative: str | bytes, expected: Reason
) -> None:
    (tmp_path / "x").write_bytes(b"1\n")

    assert reason(read(str(tmp_path), relative, LIMIT)) is expected


def test_a_vanished_root_is_a_missing_file(tmp_path: Path) -> None:
    assert reason(read(str(tmp_path / "gone"), "x", LIMIT)) is Reason.FILE_MISSING


def make_pipe(place: Path) -> None:
    os.mkfifo(place)


def make_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))


def make_link_to_shadow(place: Path) -> None:
    os.symlink("/etc/shadow", place)


def make_link_to_sibling(place: Path) -> None:
    (place.parent / "real.jsonl").write_bytes(b"{}\n")
    os.symlink("real.jsonl", place)


def make_dangling_link(place: Path) -> None:
    os.symlink("nowhere", place)


def make_folder(place: Path) -> None:
    place.mkdir()


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "make",
    [
        make_pipe,
        make_socket,
        make_link_to_shadow,
        make_link_to_sibling,
        make_dangling_link,
        make_folder,
    ],
    ids=lambda make: make.__name__,
)
def test_what_is_no_regular_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x.jsonl")

    assert reason(read(str(tmp_path), "x.jsonl", LIMIT)) is Reason.NOT_REGULAR


@needs_root
@pytest.mark.timeout(10)
def test_a_device_is_refused(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "x.jsonl", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this sandbox does not let root make device nodes")

    assert reason(read(str(tmp_path), "x.jsonl", LIMIT)) is Reason.NOT_REGULAR


def test_what_is_refused_is_not_even_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "x")
    opened: list[object] = []
    real_open = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda name, *rest, **more: opened.append(name) or real_open(name, *rest, **more),
    )

    read(str(tmp_path), "x", LIMIT)

    assert opened == [str(tmp_path)]


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "make", [make_link_to_shadow, make_pipe, make_folder], ids=lambda make: make.__name__
)
def test_a_file_replaced_between_the_look_and_the_opening_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    real_open = os.open

    def replace_and_open(name: str, flags: int, dir_fd: int | None = None) -> int:
        if name == "x":
            (tmp_path / "x").unlink()
            make(tmp_path / "x")
        return real_open(name, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", replace_and_open)

    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.NOT_REGULAR


@pytest.mark.timeout(10)
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_file_replaced_as_it_is_opened_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    (tmp_path / "x").write_bytes(b"old\n")
    (tmp_path / "new").write_bytes(b"new\n")
    real_open = os.open

    def open_and_replace(name: str, flags: int, dir_fd: int | None = None) -> int:
        opened = real_open(name, flags, dir_fd=dir_fd)
        if name == "x" and is_removed:
            (tmp_path / "x").unlink()
        elif name == "x" and (tmp_path / "new").exists():
            (tmp_path / "new").replace(tmp_path / "x")
        return opened

    monkeypatch.setattr(os, "open", open_and_replace)

    found = read(str(tmp_path), "x", LIMIT)
    if is_removed:
        assert reason(found) is Reason.FILE_MISSING
    else:
        assert isinstance(found, Content) and found.data == b"new\n"


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    os.link(tmp_path / "x", tmp_path / "y")

    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.HARD_LINKED


def test_a_file_that_is_just_placed_is_read_although_its_draft_is_still_there(
    tmp_path: Path,
) -> None:
    """The daemon once refused its own roadmap: a new file is placed by a link to its draft."""
    file = tmp_path / "x"
    file.write_bytes(b"a\n")
    os.link(file, tmp_path / temporary_name("x"))
    assert reason(read(str(tmp_path), "x", LIMIT)) is None
    os.link(file, tmp_path / "elsewhere")
    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.HARD_LINKED


@needs_root
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    os.chown(tmp_path / "x", 12345, 12345)

    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.FOREIGN_OWNER


@needs_root
def test_a_file_of_roots_is_read_by_whoever_owns_the_tree(tmp_path: Path) -> None:
    for name, owner in (("x", 0), ("y", 12345), ("z", 12346)):
        (tmp_path / name).write_bytes(b"{}\n")
        os.chown(tmp_path / name, owner, owner)
    os.chown(tmp_path, 12345, 12345)
    folder = os.open(tmp_path, os.O_RDONLY)
    os.seteuid(12345)
    try:
        found = {name: read(folder, name, LIMIT) for name in "xyz"}
    finally:
        os.seteuid(0)
        os.close(folder)
    assert isinstance(found["x"], Content) and isinstance(found["y"], Content)
    assert reason(found["z"]) is Reason.FOREIGN_OWNER


@needs_root
def test_a_file_of_the_owner_of_the_work_tree_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    os.chown(tmp_path, 12345, 12345)
    os.chown(tmp_path / "x", 12345, 12345)

    assert reason(read(str(tmp_path), "x", LIMIT)) is None


@needs_root
def test_a_file_without_permission_is_unreadable(tmp_path: Path) -> None:
    program = """
import os, sys
sys.path.insert(0, sys.argv[2])
import yolo_fs.core.credentials  # imported by the first finding, when nobody may read Python's own files
from yolo_fs.system.files import read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(read(sys.argv[1], "x", 100).reason)
"""
    (tmp_path / "x").write_bytes(b"{}\n")
    os.chmod(tmp_path / "x", 0)
    os.chown(tmp_path, 65534, 65534)
    os.chown(tmp_path / "x", 65534, 65534)
    root = os.open(tmp_path, os.O_RDONLY)
    project = Path(__file__).parents[2]

    run = subprocess.run(
        [sys.executable, "-c", program.replace("sys.argv[1]", f"{root}"), "-", project],
        capture_output=True, text=True, check=True, pass_fds=[root],
    )  # fmt: skip
    os.close(root)

    assert run.stdout.strip() == Reason.UNREADABLE


def test_a_sparse_file_of_ten_gigabytes_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", 10 << 30)

    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.FILE_TOO_LARGE


@pytest.mark.parametrize(
    ("size", "expected"), [(99, None), (100, None), (101, Reason.FILE_TOO_LARGE)]
)
def test_the_limit_is_exact(tmp_path: Path, size: int, expected: Reason | None) -> None:
    (tmp_path / "x").write_bytes(b"x" * size)

    assert reason(read(str(tmp_path), "x", 100)) is expected


def test_a_file_that_grows_during_the_read_stays_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_bytes(b"x" * 100)
    real_read = os.read

    def read_and_grow(fd: int, size: int) -> bytes:
        with open(tmp_path / "x", "ab") as file:
            file.write(b"y" * 5000)
        return real_read(fd, size)

    monkeypatch.setattr(os, "read", read_and_grow)

    assert reason(read(str(tmp_path), "x", 9000)) is Reason.FILE_TOO_LARGE


def test_a_change_during_the_read_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"old\n")
    real_read = os.read

    def read_then_change(fd: int, size: int) -> bytes:
        data = real_read(fd, size)
        if data:
            (tmp_path / "x").write_bytes(b"new and longer\n")
        return data

    monkeypatch.setattr(os, "read", read_then_change)
    found = read(str(tmp_path), "x", LIMIT)

    assert isinstance(found, Content)
    assert found.being_written


def test_a_read_that_fails_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    true_read = os.read

    def fail(descriptor: int, size: int) -> bytes:
        if threading.current_thread() is not threading.main_thread():
            return true_read(descriptor, size)  # a thread that another test has left
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)

    assert reason(read(str(tmp_path), "x", LIMIT)) is Reason.UNREADABLE


def test_a_name_with_a_newline_is_read(tmp_path: Path) -> None:
    (tmp_path / "a\nb.jsonl").write_bytes(b"{}\n")

    assert reason(read(str(tmp_path), "a\nb.jsonl", LIMIT)) is None


# --- links on the way ------------------------------------------------------------------------------------------------


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret\n")
    root = tmp_path / "root"
    root.mkdir()
    os.symlink(outside, root / "phase")

    assert reason(read(str(root), "phase/x", LIMIT)) is Reason.NOT_REGULAR


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A root whose folder `phase` is by turns a real folder and a link to one outside, as fast as can be."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, content in ((root / "phase", b"inside\n"), (outside, b"outside\n")):
        folder.mkdir(parents=True)
        (folder / "x").write_bytes(content)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(root / "phase", root / "aside")
            os.symlink(outside, root / "phase")
            os.unlink(root / "phase")
            os.rename(root / "aside", root / "phase")
            stop.wait(0.0001)  # a loaded machine would show the reader nothing but the link

    swapper = threading.Thread(target=swap)
    swapper.start()
    yield root
    stop.set()
    swapper.join()


def test_a_folder_swapped_for_a_link_never_leads_outside(swapped: Path) -> None:
    seen: set[object] = set()
    turns, deadline = 0, time.monotonic() + 60
    while turns < 500 or (
        not seen >= {b"inside\n", Reason.NOT_REGULAR} and time.monotonic() < deadline
    ):
        found = read(str(swapped), "phase/x", LIMIT)
        seen.add(found.data if isinstance(found, Content) else found.reason)
        turns += 1

    assert (
        {b"inside\n", Reason.NOT_REGULAR}
        <= seen
        <= {b"inside\n", Reason.NOT_REGULAR, Reason.FILE_MISSING}
    )


def test_a_walk_past_a_swapped_folder_never_leads_outside(swapped: Path) -> None:
    outside = (swapped.parent / "outside/x").stat().st_ino
    for _ in range(500):
        assert outside not in {entry.stamp.ino for entry in walk(str(swapped))}


# --- writers ---------------------------------------------------------------------------------------------------------


@needs_leases
def test_a_file_that_nobody_writes_is_proven_complete(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")

    found = read(str(tmp_path), "x", LIMIT)

    assert isinstance(found, Content)
    assert (found.being_written, found.writer) == (False, Writer.NONE)


@needs_leases
def test_an_open_writer_is_noticed_although_it_writes_nothing(tmp_path: Path) -> None:
    with open(tmp_path / "x", "wb") as file:
        file.write(b"{}\n")
        file.flush()
        found = read(str(tmp_path), "x", LIMIT)

    assert isinstance(found, Content)
    assert (found.being_written, found.writer) == (True, Writer.SOME)


def test_without_leases_nothing_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    monkeypatch.delattr(fcntl, "F_SETLEASE", raising=False)

    found = read(str(tmp_path), "x", LIMIT)

    assert isinstance(found, Content)
    assert (found.being_written, found.writer) == (False, Writer.UNKNOWN)


def test_a_refused_lease_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")

    def refuse(*_: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    found = read(str(tmp_path), "x", LIMIT)

    assert isinstance(found, Content)
    assert found.writer is Writer.UNKNOWN


@needs_leases
def test_a_writer_that_arrives_at_the_lease_does_not_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"{}\n")
    project = Path(__file__).parents[2]
    program = """
import sys
sys.path.insert(0, sys.argv[2])
from yolo_fs.system.files import read
for _ in range(20000):
    read(sys.argv[1], "x", 100)
print("alive")
"""
    reader = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path, project], stdout=subprocess.PIPE, text=True
    )
    opened = 0
    while reader.poll() is None:
        os.close(os.open(tmp_path / "x", os.O_WRONLY))
        opened += 1
    out, _ = reader.communicate()

    assert (out, reader.returncode) == ("alive\n", 0)
    assert opened > 100


@pytest.mark.timeout(10)
def test_of_what_git_and_the_user_have_only_files_within_the_limit_are_read(tmp_path: Path) -> None:
    file, link, pipe = tmp_path / "file", tmp_path / "link", tmp_path / "pipe"
    file.write_bytes(b"abc")
    link.symlink_to(file)
    os.mkfifo(pipe)
    with open(tmp_path / "sparse", "wb") as sparse:
        sparse.truncate(1 << 40)
    for path in (file, link):
        assert (content_of(str(path), 3), content_of(str(path), 2)) == (b"abc", b"")
    for odd in (pipe, tmp_path / "sparse", tmp_path, tmp_path / "none", Path("/dev/zero")):
        assert content_of(str(odd)) == b""
    assert content_of("a\0b") == b""
    assert content_of("/proc/self/cmdline") != b""  # the kernel tells no size


def test_a_small_file_costs_no_memory_of_the_largest_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    tracemalloc.start()
    try:
        assert content_of(str(file)) == b"abc"
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1 << 20


def test_what_is_read_for_ever_is_a_pipe_or_a_device_behind_links_too(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    places = {"pipe": True, "/dev/zero": True, "/dev/null": False, "file": False, "none": False, "a\0b": False, "..": False}  # fmt: skip
    assert {each: is_endless(str(tmp_path / each)) for each in places} == places
    for number, (target, expected) in enumerate(places.items()):
        if "\0" not in target:
            (tmp_path / f"link{number}").symlink_to(tmp_path / target)
            assert is_endless(str(tmp_path / f"link{number}")) is expected, target
    (tmp_path / "loop").symlink_to("loop")
    assert not is_endless(str(tmp_path / "loop"))


def test_lease_breaks_can_be_ignored_altogether() -> None:
    before = signal.getsignal(signal.SIGIO)
    try:
        files.ignore_lease_breaks()
        os.kill(os.getpid(), signal.SIGIO)
    finally:
        signal.signal(signal.SIGIO, before)


# --- stamps and walks ------------------------------------------------------------------------------------------------


def test_a_stamp_changes_when_the_content_does_and_the_times_are_put_back(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"one\n")
    before, status = stamp_of(str(tmp_path), "x"), file.stat()

    file.write_bytes(b"two\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert stamp_of(str(tmp_path), "x") != before


def test_the_stamp_of_nothing_is_a_finding(tmp_path: Path) -> None:
    for relative in ("absent", "../x", "x\0"):
        assert isinstance(stamp_of(str(tmp_path), relative), Finding)


def test_a_walk_yields_every_file_in_order_and_flags_the_rest(tmp_path: Path) -> None:
    (tmp_path / "b/deep").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    for name in ("z", "b/y", "b/deep/x"):
        (tmp_path / name).write_bytes(b"{}\n")
    os.symlink("b", tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")

    assert [(entry.path, entry.refused) for entry in walk(str(tmp_path))] == [
        ("link", Reason.NOT_REGULAR),
        ("pipe", Reason.NOT_REGULAR),
        ("z", None),
        ("b/y", None),
        ("b/deep/x", None),
    ]


def test_a_walk_for_some_files_yields_these_and_every_folder_that_cannot_be_entered(
    tmp_path: Path,
) -> None:
    for name in ("a/HANDOFF.md", "a/other", "a/b/HANDOFF.md", "c/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}\n")
    os.symlink("a", tmp_path / "HANDOFF.md")
    deep = "/".join(["d"] * (files.MAX_FOLDERS + 1))
    (tmp_path / deep).mkdir(parents=True)

    def is_handoff(path: str) -> bool:
        return path.endswith("HANDOFF.md")

    found = [(entry.path, entry.refused) for entry in walk(str(tmp_path), "", is_handoff)]
    assert found == [
        ("HANDOFF.md", Reason.NOT_REGULAR),
        ("a/HANDOFF.md", None),
        ("a/b/HANDOFF.md", None),
        (deep, Reason.UNREADABLE),
    ]


def test_a_reader_of_folders_leaves_nothing_open_wherever_it_stops(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    before = os.listdir("/proc/self/fd")

    with FolderReader(str(tmp_path)) as reader:
        for folder in ("a/b/c", "a/d", "a/b", "absent/x", "", "e", "a/absent", "a/b/c"):
            reader.read(folder)

    assert os.listdir("/proc/self/fd") == before


def test_a_walk_below_a_folder_keeps_paths_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x").write_bytes(b"{}\n")

    assert list(walk(str(tmp_path), "a")) == [
        FileEntry("a/b/x", Stamp.of((tmp_path / "a/b/x").stat()))
    ]


def test_a_walk_does_not_enter_a_linked_start(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_bytes(b"{}\n")
    os.symlink("real", tmp_path / "start")

    assert [(entry.path, entry.refused) for entry in walk(str(tmp_path), "start")] == [
        ("start", Reason.NOT_REGULAR)
    ]


@pytest.mark.parametrize("relative", ["absent", "../..", "/etc"])
def test_a_walk_of_nothing_yields_nothing(tmp_path: Path, relative: str) -> None:
    assert list(walk(str(tmp_path), relative)) == []


def test_a_folder_that_vanishes_during_the_walk_is_left_out(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"{}\n")
    found = walk(str(tmp_path))

    assert next(found).path == "a/x"
    (tmp_path / "b/x").unlink()
    (tmp_path / "b").rmdir()
    assert list(found) == []


def test_names_that_are_not_utf8_survive_the_way_back(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.jsonl", "wb") as file:
        file.write(b"{}\n")

    (entry,) = walk(str(tmp_path))

    assert os.fsencode(entry.path) == b"caf\xe9.jsonl"
    assert reason(read(str(tmp_path), entry.path, LIMIT)) is None
    assert reason(read(str(tmp_path), os.fsencode(entry.path), LIMIT)) is None


def test_folders_beyond_the_depth_limit_are_shown_and_not_entered(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (files.MAX_FOLDERS + 1))
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"{}\n")

    (entry,) = walk(str(tmp_path))

    assert (entry.path.count("/"), entry.refused) == (files.MAX_FOLDERS, Reason.UNREADABLE)


# --- a tree that is walked again shows what a first walk would show ---


def ticked(place: Path) -> None:
    """Wait until the clock of the file system shows another time."""
    probe = place / "probe"
    probe.touch()
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == before:
        probe.touch()
    probe.unlink()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which whatever is older than a tick of the clock counts as old."""
    monkeypatch.setattr(files, "RACY_NS", 0)
    root = tmp_path / "root"
    (root / "phases").mkdir(parents=True)
    return root


def change(root: Path, rng: random.Random) -> None:
    """Do one thing that somebody may do in a tree."""
    places = [
        root / "phases",
        *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink()),
    ]
    place, name = rng.choice(places), rng.choice("abc")
    target = place / name
    match rng.choice(("folder", "file", "write", "remove", "move", "link", "swap")):
        case "folder" if not os.path.lexists(target):
            target.mkdir()
        case "file" | "write" if not target.is_dir() and not target.is_symlink():
            target.write_text(str(rng.random()))
        case "remove" if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        case "remove":
            target.unlink(missing_ok=True)
        case "move" if os.path.lexists(target) and not os.path.lexists(root / "phases/moved"):
            target.rename(root / "phases/moved")
        case "link" if not os.path.lexists(target):
            target.symlink_to(rng.choice(places))
        case "swap" if (
            target.is_dir()
            and not target.is_symlink()
            and not os.path.lexists(root.parent / "aside")
        ):
            target.rename(root.parent / "aside")
            target.symlink_to(root.parent / "aside")


def test_a_tree_that_is_walked_again_shows_what_a_first_walk_shows(root: Path) -> None:
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    rng, again = random.Random(seed), ScanCache(str(root))
    for _ in range(300):
        for _ in range(rng.randint(0, 3)):
            change(root, rng)
        ticked(root.parent)
        assert list(again.walk("phases")) == list(walk(str(root), "phases"))


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that are read from now on."""
    folders: list[str] = []

    class NotedReader(FolderReader):
        def read(self, folder: str, wanted: Wanted = always) -> tuple[list[FileEntry], list[str]]:
            folders.append(folder)
            return super().read(folder, wanted)

    monkeypatch.setattr(files, "FolderReader", NotedReader)
    return folders


def test_only_folders_that_changed_or_hold_files_are_read_again(
    root: Path, read_again: list[str]
) -> None:
    for name in ("empty/one", "empty/two", "full", "changing"):
        (root / "phases" / name).mkdir(parents=True)
    (root / "phases/full/x").write_text("one")
    ticked(root.parent)
    again = ScanCache(str(root))
    list(again.walk("phases"))
    (root / "phases/full/x").write_text("another")
    (root / "phases/changing/y").write_text("new")
    read_again.clear()
    assert [entry.path for entry in again.walk("phases")] == ["phases/changing/y", "phases/full/x"]
    assert read_again == ["phases/changing", "phases/full"]


def test_a_folder_that_changed_just_now_is_read_again(
    tmp_path: Path, read_again: list[str]
) -> None:
    """Its stamp may stay the same for as long as the clock of the file system stands."""
    (tmp_path / "phases").mkdir()
    again = ScanCache(str(tmp_path))
    list(again.walk("phases"))
    list(again.walk("phases"))
    assert read_again == ["phases", "phases"]
