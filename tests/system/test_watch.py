"""The watcher tells of every change, or says that it cannot. See docs/dev/faults.md#f10 to #f13."""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watchdog.observers.api import EventQueue, ObservedWatch
from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
from watchdog.observers.inotify_c import WatchDescriptor
from watchdog.observers.inotify_move_event_grouper import (
    InotifyMoveEventGrouper,
    PathedInotifyEvent,
)
from watchdog.utils.delayed_queue import DelayedQueue

from yolo_fs.core.reasons import Reason
from yolo_fs.system import IS_LINUX, inotify, watch
from yolo_fs.system.watch import Hint, Watcher

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="about our reader of inotify")

DEADLINE_S = 20.0


class Seen:
    """What a watcher said, and a way to wait for it."""

    def __init__(self) -> None:
        self.hints: list[tuple[str, Hint]] = []
        self.doubts: list[str] = []
        self._news = threading.Condition()

    def on_path(self, path: str, hint: Hint) -> None:
        with self._news:
            self.hints.append((path, hint))
            self._news.notify_all()

    def on_doubt(self, why: str) -> None:
        with self._news:
            self.doubts.append(why)
            self._news.notify_all()

    def paths(self, *hints: Hint) -> set[str]:
        return {path for path, hint in self.hints if hint in (hints or tuple(Hint))}

    def until(self, is_so: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(is_so, DEADLINE_S), (
                f"{len(self.hints)} hints, doubts {self.doubts}"
            )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def watcher(root: Path, seen: Seen) -> Iterator[Watcher]:
    watcher = Watcher(str(root), seen.on_path, seen.on_doubt, retry_s=0)
    watcher.start()
    assert watcher.degraded is None
    yield watcher
    watcher.stop()


def check_until(watcher: Watcher, is_so: Callable[[], bool]) -> None:
    """Call `check` as the daemon does, until it found out; a thread's end takes a moment to be seen."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        watcher.check()
        os.sched_yield()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what a thread does that tells nobody of it."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        os.sched_yield()


# --- hints ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("watcher")
def test_a_closed_file_is_ready(root: Path, seen: Seen) -> None:
    (root / "plan.jsonl").write_text("{}\n")
    seen.until(lambda: ("plan.jsonl", Hint.CLOSED) in seen.hints)


@pytest.mark.usefixtures("watcher")
def test_a_file_still_open_is_only_created(root: Path, seen: Seen) -> None:
    with (root / "plan.jsonl").open("w"):
        seen.until(lambda: ("plan.jsonl", Hint.CREATED) in seen.hints)
        assert seen.paths(Hint.CLOSED) == set()
    seen.until(lambda: ("plan.jsonl", Hint.CLOSED) in seen.hints)


@pytest.mark.usefixtures("watcher")
def test_a_rename_inside_is_gone_and_ready(root: Path, seen: Seen) -> None:
    (root / "plan.tmp").write_text("{}\n")
    (root / "plan.tmp").rename(root / "plan.jsonl")
    seen.until(lambda: {("plan.tmp", Hint.GONE), ("plan.jsonl", Hint.CLOSED)} <= set(seen.hints))


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize("draft", [".plan.jsonl.yolo-tmp.7.ab12", "plan.jsonl.lock"])
def test_a_draft_of_ours_or_of_git_is_told_of_once_when_it_gets_its_name(
    root: Path, seen: Seen, draft: str
) -> None:
    (root / draft).write_text("{}\n")
    (root / draft).rename(root / "plan.jsonl")
    (root / "last").write_text("")
    seen.until(lambda: ("last", Hint.CLOSED) in seen.hints)
    assert [hint for hint in seen.hints if hint[0] != "last"] == [("plan.jsonl", Hint.CLOSED)]


@pytest.mark.usefixtures("watcher")
def test_a_file_that_is_renamed_to_a_draft_is_gone(root: Path, seen: Seen) -> None:
    (root / "plan.jsonl").write_text("{}\n")
    (root / "plan.jsonl").rename(root / "plan.jsonl.lock")
    seen.until(lambda: ("plan.jsonl", Hint.GONE) in seen.hints)


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize(
    "leave", [lambda file: file.unlink(), lambda file: file.rename(file.parent.parent / "away")]
)
def test_a_deleted_or_removed_file_is_gone(
    root: Path, seen: Seen, leave: Callable[[Path], None]
) -> None:
    (root / "plan.jsonl").write_text("{}\n")
    leave(root / "plan.jsonl")
    seen.until(lambda: ("plan.jsonl", Hint.GONE) in seen.hints)


@pytest.mark.usefixtures("watcher")
def test_a_file_moved_out_of_the_tree_holds_up_no_event_behind_it(
    root: Path, tmp_path: Path, seen: Seen
) -> None:
    """watchdog waits half a second for where it went, and all that was written meanwhile waits."""
    took = []
    for number in range(5):
        (root / "draft").write_text("x")
        seen.until(lambda: ("draft", Hint.CLOSED) in seen.hints)
        (root / "draft").rename(tmp_path / "elsewhere")
        name = f"{number}.jsonl"
        began = time.monotonic()
        (root / name).write_text("{}\n")
        seen.until(lambda name=name: (name, Hint.CLOSED) in seen.hints)  # type: ignore[misc]
        took.append(time.monotonic() - began)
        seen.hints.clear()
    assert min(took) < 0.4, took  # not a limit of speed: with its pause it is never less than 0.5


def test_a_rename_is_told_as_soon_as_its_second_half_comes(
    root: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the first may wait for it; watchdog waits all that time once it has begun to."""
    put = InotifyMoveEventGrouper.put_event
    late: list[PathedInotifyEvent] = []

    def put_late(group: InotifyMoveEventGrouper, event: PathedInotifyEvent) -> None:
        if event.ev.is_moved_to:
            late.append(event)
            time.sleep(0.05)  # the other half is waited for by now
        put(group, event)

    monkeypatch.setattr(InotifyMoveEventGrouper, "put_event", put_late)
    monkeypatch.setattr("yolo_fs.system.inotify.PAIRED_WITHIN_S", 10 * DEADLINE_S)
    watcher = Watcher(str(root), seen.on_path, seen.on_doubt)
    watcher.start()
    (root / "draft").write_text("x")
    (root / "draft").rename(root / "plan.jsonl")
    seen.until(lambda: "plan.jsonl" in seen.paths(Hint.CLOSED))
    assert late
    watcher.stop()


def test_a_watchdog_whose_queue_differs_inside_is_watched_with_as_it_ships(
    root: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(queue: DelayedQueue[Any], element: Any, delay: bool = False) -> None:
        queue._queue.append((element, delay))  # type: ignore[arg-type]

    monkeypatch.setattr(DelayedQueue, "put", put)
    watcher = Watcher(str(root), seen.on_path, seen.on_doubt)
    watcher.start()
    assert not isinstance(watcher._session, inotify.InotifySession)
    monkeypatch.undo()
    watcher.stop()


@pytest.mark.usefixtures("watcher")
def test_a_name_that_is_not_utf8_comes_back_as_the_same_bytes(root: Path, seen: Seen) -> None:
    with open(os.fsencode(root) + b"/\xff.jsonl", "wb") as file:
        file.write(b"{}\n")
    seen.until(lambda: b"\xff.jsonl" in {os.fsencode(path) for path in seen.paths(Hint.CLOSED)})


def test_unwanted_paths_are_not_told(root: Path, seen: Seen) -> None:
    watcher = Watcher(
        str(root), seen.on_path, seen.on_doubt, wants=lambda path: path.startswith("phases/")
    )
    watcher.start()
    (root / "noise").write_text("")
    (root / "phases").mkdir()
    (root / "phases" / "plan.jsonl").write_text("{}\n")
    seen.until(lambda: "phases/plan.jsonl" in seen.paths())
    watcher.stop()
    assert seen.paths() == {"phases/plan.jsonl"}


@pytest.mark.usefixtures("watcher")
def test_a_link_to_a_directory_is_told_and_not_followed(
    root: Path, tmp_path: Path, seen: Seen
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "last").write_text("")
    seen.until(lambda: "last" in seen.paths(Hint.CLOSED))
    assert "link" in seen.paths()
    assert "link/secret" not in seen.paths()


# --- races (F12), each made by another process ------------------------------------------------------------------------

RACES = {
    "mkdir_then_write": (
        500,
        """
        os.mkdir(f"{root}/{i}")
        write(f"{root}/{i}/f")
        """,
        "{i}/f",
    ),
    "nested_mkdir_then_write": (
        200,
        """
        os.makedirs(f"{root}/{i}/a/b/c")
        write(f"{root}/{i}/a/b/c/f")
        """,
        "{i}/a/b/c/f",
    ),
    "filled_directory_moved_in": (
        100,
        """
        os.makedirs(f"{root}/../outside/{i}/deep")
        write(f"{root}/../outside/{i}/deep/f")
        os.rename(f"{root}/../outside/{i}", f"{root}/{i}")
        """,
        "{i}/deep/f",
    ),
    "directory_renamed_inside": (
        100,
        """
        os.makedirs(f"{root}/before{i}/deep")
        write(f"{root}/before{i}/deep/f")
        os.rename(f"{root}/before{i}", f"{root}/{i}")
        """,
        "{i}/deep/f",
    ),
    "directory_deleted_and_made_again": (
        100,
        """
        os.makedirs(f"{root}/again/deep")
        os.rmdir(f"{root}/again/deep")
        os.rmdir(f"{root}/again")
        os.makedirs(f"{root}/again/deep")
        write(f"{root}/again/deep/f{i}")
        os.rename(f"{root}/again/deep/f{i}", f"{root}/f{i}")
        os.rmdir(f"{root}/again/deep")
        os.rmdir(f"{root}/again")
        """,
        "f{i}",
    ),
    "burst": (5_000, 'write(f"{root}/f{i}")', "f{i}"),
}

RACER = """
import os, sys
root = sys.argv[1]
def write(path):
    with open(path, "w") as file:
        file.write("{}\\n")
for i in range(int(sys.argv[2])):
"""


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize("race", RACES)
def test_no_file_is_missed_in_a_race(root: Path, seen: Seen, race: str) -> None:
    count, body, path = RACES[race]
    body = "\n".join("    " + line.strip() for line in body.strip().splitlines())
    subprocess.run([sys.executable, "-c", RACER + body, str(root), str(count)], check=True)
    expected = {path.format(i=i) for i in range(count)}
    seen.until(lambda: expected <= seen.paths(Hint.CLOSED, Hint.CREATED))
    assert seen.doubts == []


@pytest.mark.usefixtures("watcher")
def test_a_file_renamed_in_from_outside_is_ready(root: Path, tmp_path: Path, seen: Seen) -> None:
    for i in range(100):
        (tmp_path / f"f{i}").write_text("{}\n")
        (tmp_path / f"f{i}").rename(root / f"f{i}")
    seen.until(lambda: {f"f{i}" for i in range(100)} <= seen.paths(Hint.CLOSED))


# --- faults (F10, F11, F13) -------------------------------------------------------------------------------------------


def test_a_callback_that_raises_is_a_doubt_and_not_the_end(root: Path, seen: Seen) -> None:
    def on_path(path: str, hint: Hint) -> None:
        if path == "bad":
            raise RuntimeError("planted")
        seen.on_path(path, hint)

    watcher = Watcher(str(root), on_path, seen.on_doubt)
    watcher.start()
    (root / "bad").write_text("")
    (root / "good").write_text("")
    seen.until(lambda: "good" in seen.paths(Hint.CLOSED))
    watcher.stop()
    assert "callback_failed" in seen.doubts


def test_a_doubt_that_raises_is_not_the_end(root: Path, seen: Seen) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    watcher = Watcher(
        str(root), seen.on_path, fail, wants=lambda path: path != "bad" or fail() is None
    )
    watcher.start()
    (root / "bad").write_text("")
    (root / "good").write_text("")
    seen.until(lambda: "good" in seen.paths(Hint.CLOSED))
    watcher.stop()


def test_a_root_made_again_is_watched_again(root: Path, watcher: Watcher, seen: Seen) -> None:
    shutil.rmtree(root)
    root.mkdir()
    # Where the inode is used again and the emitter is slow to die, the count of watches tells.
    check_until(
        watcher, lambda: bool({"root_replaced", "emitter_died", "unwatched"} & set(seen.doubts))
    )
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))


def test_a_replaced_root_is_watched_again(root: Path, watcher: Watcher, seen: Seen) -> None:
    root.rename(root.parent / "old")
    root.mkdir()
    watcher.check()
    assert "root_replaced" in seen.doubts
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))


def test_a_missing_root_is_told_once_and_never_made(
    root: Path, watcher: Watcher, seen: Seen
) -> None:
    root.rename(root.parent / "old")
    watcher.check()
    watcher.check()
    assert seen.doubts == ["root_missing"]
    assert watcher.degraded is not None
    assert watcher.degraded.reason is Reason.NOT_INITIALISED
    assert not root.exists()
    (root.parent / "old").rename(root)
    watcher.check()
    assert (seen.doubts, watcher.degraded) == (["root_missing", "root_replaced"], None)


def test_a_dead_thread_is_noticed_and_replaced(root: Path, watcher: Watcher, seen: Seen) -> None:
    assert watcher._session is not None
    session: Any = watcher._session
    for emitter in session._observer.emitters.copy():
        emitter.stop()
        emitter.join()
    watcher.check()
    assert seen.doubts == ["emitter_died"]
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))


def test_an_error_inside_watchdog_is_a_doubt_and_repaired(
    root: Path, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("planted")

    with monkeypatch.context() as patch:
        patch.setattr("watchdog.observers.inotify.InotifyWatchGroup.on_event", fail)
        (root / "lost").write_text("")
        seen.until(lambda: "emitter_died" in seen.doubts)
    watcher.check()
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))


@pytest.mark.usefixtures("watcher")
def test_directories_reported_gone_out_of_order_are_no_loss(
    root: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This ends the thread of watchdog 7.1 for good. The older directory lives on while somebody has it open.
    forgotten: list[WatchDescriptor] = []
    errors: list[KeyError] = []
    forget = InotifyWatchGroup.on_watch_deleted

    def watched_forget(group: InotifyWatchGroup, descriptor: WatchDescriptor) -> None:
        try:
            forget(group, descriptor)
        except KeyError as error:
            errors.append(error)
            raise
        forgotten.append(descriptor)

    monkeypatch.setattr(InotifyWatchGroup, "on_watch_deleted", watched_forget)
    make_and_mark(root, seen, "first")
    kept_open = os.open(root / "again", os.O_RDONLY)
    (root / "again").rmdir()
    make_and_mark(root, seen, "second")
    (root / "again").rmdir()
    wait_until(lambda: bool(forgotten))  # the younger, when those who look into it let go of it
    os.close(kept_open)
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))
    wait_until(lambda: bool(errors))
    assert seen.doubts == []


def make_and_mark(root: Path, seen: Seen, mark: str) -> None:
    """Make a directory and wait until it is watched: its file is told as closed."""
    (root / "again").mkdir()
    while f"again/{mark}" not in seen.paths(Hint.CLOSED):
        told = len(seen.hints)
        (root / "again" / mark).write_text("")
        seen.until(lambda told=told: len(seen.hints) > told)
    (root / "again" / mark).unlink()


@pytest.mark.usefixtures("watcher")
def test_we_look_into_new_directories_ourselves(
    root: Path, tmp_path: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "watchdog.observers.inotify.generate_sub_created_events", lambda *_: iter(())
    )
    (tmp_path / "phase" / "deep").mkdir(parents=True)
    (tmp_path / "phase" / "deep" / "f").write_text("")
    (tmp_path / "phase").rename(root / "phase")
    seen.until(lambda: "phase/deep/f" in seen.paths(Hint.CREATED))


def test_a_renamed_directory_is_watched_as_deep_as_before(
    root: Path, watcher: Watcher, seen: Seen
) -> None:
    subprocess.run([sys.executable, "-c", RENAMER, str(root)], check=True)
    seen.until(lambda: watcher._lost is not None)
    check_until(watcher, lambda: watcher._lost is None)
    assert {"moved", "moved_out"}.intersection(seen.doubts)
    for i in range(100):
        (root / f"{i}" / "deep" / "f").write_text("")
    seen.until(lambda: {f"{i}/deep/f" for i in range(100)} <= seen.paths(Hint.CLOSED))


RENAMER = """
import os, sys
for i in range(100):
    os.makedirs(f"{sys.argv[1]}/before{i}/deep")
    os.rename(f"{sys.argv[1]}/before{i}", f"{sys.argv[1]}/{i}")
"""


def test_a_directory_renamed_while_watchdog_walks_it_is_no_blind_spot(
    root: Path, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("watchdog.observers.inotify.os.walk", lambda *_, **__: iter(()))
        (root / "before" / "deep").mkdir(parents=True)
        (root / "before").rename(root / "after")
        (root / "last").write_text("")
        seen.until(lambda: "last" in seen.paths(Hint.CLOSED))
    assert seen.paths() == {"last"}
    wait_until(lambda: watcher._lost is not None)
    watcher.check()
    assert "moved" in seen.doubts
    (root / "after" / "deep" / "f").write_text("")
    seen.until(lambda: "after/deep/f" in seen.paths(Hint.CLOSED))


def test_a_directory_moved_out_is_a_doubt_and_may_come_again(
    root: Path, watcher: Watcher, seen: Seen
) -> None:
    (root / "phase").mkdir()
    (root / "phase" / "f").write_text("")
    (root / "phase").rename(root.parent / "phase")
    seen.until(lambda: "moved_out" in seen.doubts)
    watcher.check()
    (root / "phase").mkdir()
    (root / "phase" / "g").write_text("")
    seen.until(lambda: "phase/g" in seen.paths())


def test_missing_watches_are_found_by_counting(
    root: Path, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify.InotifySession, "watched", lambda _: 0)
    told: list[tuple[int, bool]] = []
    for _ in range(4):
        watcher.check()
        told.append((len(seen.doubts), watcher.degraded is not None))
    assert told == [(0, False), (1, False), (1, False), (2, True)]
    assert set(seen.doubts) == {"unwatched"}
    monkeypatch.undo()
    watcher.check()
    assert watcher.degraded is None


def test_directories_are_counted_only_after_one_changed(
    root: Path, watcher: Watcher, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher.check()
    walks: list[str] = []
    monkeypatch.setattr(watch, "_directories", lambda root: walks.append(root) or iter(()))
    (root / "f").write_text("")
    seen.until(lambda: "f" in seen.paths(Hint.CLOSED))
    watcher.check()
    assert walks == []


def test_without_inotify_it_says_so_and_tries_again(
    root: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "inotify instance limit reached")

    watcher = Watcher(str(root), seen.on_path, seen.on_doubt, retry_s=0)
    with monkeypatch.context() as patch:
        patch.setattr(inotify, "_Reader", refuse)
        watcher.start()
    assert watcher.degraded is not None
    assert watcher.degraded.reason is Reason.WATCH_LIMIT
    watcher.check()
    assert (watcher.degraded, seen.doubts) == (None, ["retried"])
    watcher.stop()


def test_start_and_stop_may_be_repeated_and_leave_no_thread(root: Path, seen: Seen) -> None:
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    watcher = Watcher(str(root), seen.on_path, seen.on_doubt)
    for _ in range(3):
        watcher.start()
        watcher.start()
        watcher.stop()
        watcher.stop()
    watcher.check()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


# --- faults that need a process of their own --------------------------------------------------------------------------

CHILD = """
import json, sys, threading
from watchdog.observers.inotify_c import InotifyFD
from yolo_fs.system.watch import Watcher

lock, paths = threading.Lock(), set()
def say(**fact):
    with lock:
        print(json.dumps(fact), flush=True)

reads = InotifyFD.read_events
def read_events(self, **options):
    events = reads(self, **options)
    if any(event.is_queue_overflow for event in events):
        say(fault="overflow")
    return events
InotifyFD.read_events = read_events

watcher = Watcher(sys.argv[1], lambda path, hint: paths.add(path), lambda why: say(doubt=why), retry_s=0)
watcher.start()
say(degraded=watcher.degraded and watcher.degraded.reason)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "check":
        watcher.check()
        say(degraded=watcher.degraded and watcher.degraded.reason)
    elif word == "limit":
        with open("/proc/sys/user/max_inotify_watches", "w") as file:
            file.write(rest)
        say(limit=rest)
    elif word == "seen":
        say(seen=rest in paths)
"""


class Child:
    """A watcher in another process, which says JSON lines."""

    def __init__(self, root: Path, *before: str) -> None:
        command = [*before, sys.executable, "-c", CHILD, str(root)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)

    def hears(self, key: str) -> Any:
        """Return the value of the next line that has the key."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            fact = json.loads(self._lines.get(timeout=max(0.0, deadline - time.monotonic())))
            if key in fact:
                return fact[key]

    def ask(self, line: str, key: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hears(key)

    def until_seen(self, path: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not self.ask(f"seen {path}", "seen"):
            assert time.monotonic() < deadline, f"{path} was missed"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()


@pytest.fixture
def child(root: Path) -> Iterator[Child]:
    child = Child(root)
    assert child.hears("degraded") is None
    yield child
    child.end()


def stop_for_good(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def test_an_overflow_is_a_doubt_and_directories_lost_in_it_are_watched(
    root: Path, child: Child
) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 200_000:
        pytest.skip(f"a queue of {limit} events takes too long to fill")
    stop_for_good(child.process)
    for i in range(limit // 2 + 100):  # each file is two events: created, closed
        (root / f"f{i}").touch()
    (root / "late").mkdir()
    os.kill(child.process.pid, signal.SIGCONT)
    assert child.hears("fault") == "overflow"
    assert child.hears("doubt") == "overflow"
    child.ask("check", "degraded")
    (root / "late" / "fresh").touch()
    child.until_seen("late/fresh")


@pytest.fixture
def namespace() -> list[str]:
    """A user namespace of its own has limits of its own: no other process of this machine meets them."""
    command = ["unshare", "--user", "--map-root-user"]
    probe = subprocess.run(
        [*command, "test", "-w", "/proc/sys/user/max_inotify_watches"], capture_output=True
    )
    if probe.returncode:
        pytest.skip("no user namespaces here")
    return command


def limited(limit: int) -> list[str]:
    return ["sh", "-c", f'echo {limit} > /proc/sys/user/max_inotify_watches && exec "$@"', "sh"]


@pytest.mark.parametrize("limit", [0, 20])
def test_the_watch_limit_is_a_degraded_state_that_ends_with_the_limit(
    root: Path, namespace: list[str], limit: int
) -> None:
    for i in range(40):
        (root / f"d{i}").mkdir()
    child = Child(root, *namespace, *limited(limit))
    assert child.hears("degraded") == "watch_limit"
    child.ask("limit 1000", "limit")
    assert child.ask("check", "degraded") is None
    for i in range(40):
        (root / f"d{i}" / "f").touch()
        child.until_seen(f"d{i}/f")
    child.end()


def test_a_directory_refused_while_running_is_a_doubt(root: Path, namespace: list[str]) -> None:
    child = Child(root, *namespace, *limited(20))
    assert child.hears("degraded") is None
    for i in range(40):
        (root / f"d{i}").mkdir()
    assert child.hears("doubt") == "watch_limit"
    child.end()


@pytest.mark.parametrize("is_linux", [IS_LINUX, False])
def test_a_reader_of_the_library_that_is_stopped_while_it_reads_is_no_error_of_ours(
    is_linux: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logging.getLogger("watchdog.observers.inotify").removeFilter(watch._is_worth_telling)
    monkeypatch.setattr(watch, "IS_LINUX", is_linux)
    watcher = Watcher(str(tmp_path), lambda *_: None, lambda *_: None)
    watcher.start()
    watcher.stop()

    InotifyEmitter(EventQueue(), ObservedWatch(str(tmp_path), recursive=True)).queue_events(0)

    assert not caplog.records
