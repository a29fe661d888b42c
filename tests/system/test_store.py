"""No update is lost, no reader sees half a file, one holder at a time. See docs/dev/faults.md#f40 to
#f47.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.system import IS_LINUX, file_locks, heartbeats, store
from yolo_fs.system import lock as locks
from yolo_fs.system.store import Damaged
from yolo_fs.system.system import package_stamp
from yolo_fs.system.warm_path import trust_in


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir(mode=0o700)
    return tmp_path / "own"


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    """Children of a test, ended whatever happens."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def spawn(processes: list[subprocess.Popen[str]], *command: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    processes.append(process)
    return process


def python(
    processes: list[subprocess.Popen[str]], code: str, *arguments: str
) -> subprocess.Popen[str]:
    return spawn(
        processes,
        sys.executable,
        "-c",
        "import os, sys\nfrom yolo_fs.system import file_locks, lock as locks, store\n" + code,
        *arguments,
    )


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def stopped(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def is_running(process: subprocess.Popen[str]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.002)
    return process.returncode is None


# --- reading ---------------------------------------------------------------------------------------------------------

DAMAGED = {
    "empty": (b"", Reason.EMPTY_FILE),
    "blank": (b" \n", Reason.EMPTY_FILE),
    "torn": (b'{"a": 1', Reason.JSON_PARSE_ERROR),
    "two values": (b"{} {}", Reason.JSON_PARSE_ERROR),
    "zeroed by a power loss": (b"\0" * 4096, Reason.JSON_PARSE_ERROR),
    "duplicate": (b'{"a": 1, "b": {"c": 1, "c": 2}}', Reason.DUPLICATE_KEY),
    "not an object": (b"[1]", Reason.NOT_AN_OBJECT),
    "not utf-8": (b'{"a": "\xff"}', Reason.NOT_UTF8),
    "not a number": (b'{"a": NaN}', Reason.NOT_FINITE),
    "overflow": (b'{"a": 1e999}', Reason.NOT_FINITE),
    "huge number": (b'{"a": ' + b"9" * 5000 + b"}", Reason.NUMBER_TOO_LARGE),
    "half a pair": (b'{"a": "\\ud800"}', Reason.LONE_SURROGATE),
    "too deep": (b"[" * 100_000, Reason.NESTING_TOO_DEEP),
    "byte order mark": (b"\xef\xbb\xbf{}", Reason.BYTE_ORDER_MARK),
    "too large": (b" " * (8 * 1024 * 1024 + 1), Reason.FILE_TOO_LARGE),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_file_is_a_value(directory: Path, case: str) -> None:
    data, reason = DAMAGED[case]
    (directory / "state.json").write_bytes(data)
    found = store.read_json(str(directory / "state.json"))
    assert isinstance(found, Damaged)
    assert found.reason is reason


def test_a_missing_file_is_none(directory: Path) -> None:
    assert store.read_json(str(directory / "state.json")) is None
    assert store.read_json(str(directory / "nowhere" / "state.json")) is None


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)]
)
def test_what_is_no_file_is_not_read(directory: Path, make: object) -> None:
    path = str(directory / "state.json")
    make(path)  # type: ignore[operator]
    assert store.read_json(path) == Damaged(Reason.NOT_REGULAR, store.read_json(path).detail)  # type: ignore[union-attr]


# --- writing ---------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again(directory: Path) -> None:
    value = {
        "phase": "01",
        "text": "grüße\u2028",
        "list": [1, 2.5, None, True],
        "sub": {"a": {}},
        '"': "",
    }
    store.write_json(str(directory / "state.json"), value)
    assert store.read_json(str(directory / "state.json")) == value
    assert (directory / "state.json").read_bytes().endswith(b"}\n")
    assert os.listdir(directory) == ["state.json"]


def test_a_process_that_is_older_than_the_code_on_the_disk_shares_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stamp = store.code_stamp.__wrapped__
    assert stamp() == stamp()
    monkeypatch.setattr(store, "_BEGAN_NS", 0)
    assert stamp() != stamp()


def test_a_package_that_is_put_into_a_folder_beside_ours_is_seen(directory: Path) -> None:
    before = package_stamp([str(directory)])
    assert package_stamp([str(directory)]) == before
    (directory / "other.py").touch()
    assert package_stamp([str(directory)]) != before


@pytest.mark.parametrize("mode", [store.OWN, store.SHARED])
def test_the_mode_is_exact_whatever_the_umask(directory: Path, mode: int) -> None:
    before = os.umask(0o077 if mode == store.SHARED else 0)
    try:
        store.write_json(str(directory / "state.json"), {}, mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((directory / "state.json").stat().st_mode) == mode


def test_a_link_is_replaced_and_its_target_left_alone(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (directory / "state.json").symlink_to(tmp_path / "victim")
    store.write_json(str(directory / "state.json"), {"a": 1})
    assert (tmp_path / "victim").read_text() == "mine"
    assert store.read_json(str(directory / "state.json")) == {"a": 1}


@pytest.mark.parametrize(("durable", "expected"), [(True, ["file", "directory"]), (False, [])])
def test_durable_means_file_then_directory_are_synced(
    directory: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, expected: list[str]
) -> None:
    synced: list[str] = []
    kind = {True: "directory", False: "file"}
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(kind[stat.S_ISDIR(os.fstat(fd).st_mode)])
    )
    store.write_json(str(directory / "state.json"), {}, durable=durable)
    assert synced == expected


@pytest.mark.parametrize(("number", "reason"), [(28, Reason.NO_SPACE), (5, Reason.STORAGE_FAILED)])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_refused_write_leaves_the_old_file_and_no_temporary(
    directory: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, reason: Reason
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    store.write_json(str(directory / "state.json"), {"a": 1})
    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(YoloError) as raised:
        store.write_json(str(directory / "state.json"), {"a": 2})
    assert raised.value.reason is reason
    assert store.read_json(str(directory / "state.json")) == {"a": 1}
    assert os.listdir(directory) == ["state.json"]


def test_a_directory_becomes_private_and_its_parent_is_never_made(directory: Path) -> None:
    (directory / "yolo-fs").mkdir(mode=0o755)
    store.private_directory(str(directory / "yolo-fs"))
    assert stat.S_IMODE((directory / "yolo-fs").stat().st_mode) == 0o700
    with pytest.raises(YoloError):
        store.private_directory(str(directory / "gone" / "yolo-fs"))
    assert not (directory / "gone").exists()


# --- temporaries -----------------------------------------------------------------------------------------------------

KILLED = """
path, call = sys.argv[1], sys.argv[2]
store.write_json(path, {"n": 1})
setattr(os, call, lambda *_, **__: os.kill(os.getpid(), 9))
store.write_json(path, {"n": 2})
"""


@pytest.mark.parametrize("call", ["fchmod", "fsync", "replace"])
def test_a_writer_killed_at_any_step_leaves_the_old_file_and_what_reaping_removes(
    directory: Path, processes: list[subprocess.Popen[str]], call: str
) -> None:
    path = str(directory / "state.json")
    assert python(processes, KILLED, path, call).wait() == -signal.SIGKILL
    assert store.read_json(path) == {"n": 1}
    assert len(os.listdir(directory)) == 2, "the fault did not fire"
    assert store.reap_temporaries(str(directory)) == 1
    assert os.listdir(directory) == ["state.json"]


WRITER = """
n = 0
while True:
    n += 1
    store.write_json(sys.argv[1], {"n": n, "pad": "x" * 200_000}, durable=False)
    if n == 1:
        print("started", flush=True)
"""


def test_a_file_whose_writers_are_killed_at_random_is_always_whole(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    path = str(directory / "state.json")
    for _ in range(20):
        writer = python(processes, WRITER, path)
        assert said(writer) == "started"
        writer.kill()
        writer.communicate()
        assert isinstance(store.read_json(path), dict)
    store.reap_temporaries(str(directory))
    assert os.listdir(directory) == ["state.json"]


def test_reaping_spares_what_is_not_a_dead_writers(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    dead = spawn(processes, "true")
    dead.communicate()
    spared = [
        f".a.json.yolo-tmp.{os.getpid()}.0f",
        ".a.json.tmp",
        "a.json.yolo-tmp.1.0f",
        ".yolo-tmp.x",
        "plan.jsonl",
    ]
    for name in [*spared, f".a.json.yolo-tmp.{dead.pid}.0f"]:
        (directory / name).touch()
    (directory / f".b.json.yolo-tmp.{dead.pid}.0f").mkdir()
    assert store.reap_temporaries(str(directory)) == 1
    assert {*spared, f".b.json.yolo-tmp.{dead.pid}.0f"} == set(os.listdir(directory))
    assert store.reap_temporaries(str(directory / "nowhere")) == 0


# --- a lock for one change -------------------------------------------------------------------------------------------

COUNTER = """
path, lock, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("started", flush=True)
sys.stdin.readline()
for _ in range(times):
    file_locks.update(path, lock, lambda old: {"n": (old or {"n": 0})["n"] + 1}, 60, durable=False)
"""


@pytest.mark.timeout(1_800)
def test_no_update_of_eight_processes_is_lost(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    each = int(os.environ.get("YOLO_UPDATES", "4000")) // 8
    writers = [python(processes, COUNTER, path, lock, str(each)) for _ in range(8)]
    assert {said(writer) for writer in writers} == {"started"}
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    reads, before = 0, 0
    while any(is_running(writer) for writer in writers):
        value = store.read_json(path)
        assert not isinstance(value, Damaged)
        now = value["n"] if value else 0
        assert now >= before, "it went backwards"
        reads, before = reads + 1, now
    assert store.read_json(path) == {"n": 8 * each}
    assert [writer.returncode for writer in writers] == [0] * 8
    print(
        f"updates there | {8 * each:,} of {8 * each:,}\nreads, none torn, none backwards | {reads:,}"
    )


def test_the_change_sees_what_was_there(directory: Path) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    olds: list[object] = []
    assert file_locks.update(path, lock, lambda old: olds.append(old) or {"a": 1}) == {"a": 1}
    (directory / "state.json").write_text("torn {")
    file_locks.update(path, lock, lambda old: olds.append(old) or {"a": 2})
    assert olds[0] is None
    assert isinstance(olds[1], Damaged)
    assert store.read_json(path) == {"a": 2}


def test_an_update_is_durable_before_it_returns_and_its_name_is_synced_when_the_lock_is_free(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    synced: list[tuple[str, bool]] = []

    def sync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        synced.append(
            (
                kind,
                subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode == 0,
            )
        )

    monkeypatch.setattr(os, "fsync", sync)
    file_locks.update(path, lock, lambda _: {"a": 1})
    assert synced == [("file", False), ("directory", True)]


def test_a_lock_file_that_was_replaced_protects_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    genuine, inside = fcntl.flock, []

    def replaced_before(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", genuine)
        os.unlink(lock)
        genuine(descriptor, how)

    def change(_: object) -> dict[str, object]:
        inside.append(subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode)
        return {}

    monkeypatch.setattr(fcntl, "flock", replaced_before)
    file_locks.update(path, lock, change)
    assert inside == [1], "the shell got the lock as well"


def test_none_changes_nothing(directory: Path) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    store.write_json(path, {"a": 1})
    before = os.stat(path)
    assert file_locks.update(path, lock, lambda _: None) is None
    assert (os.stat(path).st_ino, os.stat(path).st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_lock_file_stays_and_is_free_after_a_failed_change(directory: Path) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    file_locks.update(path, lock, lambda _: {})
    inode = os.stat(lock).st_ino
    with pytest.raises(ZeroDivisionError):
        file_locks.update(path, lock, lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    assert file_locks.update(path, lock, lambda _: {"a": 1}, timeout_s=0) == {"a": 1}
    assert os.stat(lock).st_ino == inode


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink(path + ".victim", path)]
)
def test_a_lock_that_is_no_file_is_refused(directory: Path, make: object) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    make(lock)  # type: ignore[operator]
    for lock_it in (lambda: file_locks.update(path, lock, lambda _: {}), lambda: locks.hold(lock)):
        with pytest.raises(YoloError) as raised:
            lock_it()
        assert raised.value.reason is Reason.NOT_REGULAR
    assert os.listdir(directory) == ["lock"]


def test_a_missing_directory_is_not_made_for_a_lock(directory: Path) -> None:
    gone = directory / "gone"
    with pytest.raises(YoloError):
        file_locks.update(str(gone / "state.json"), str(gone / "lock"), lambda _: {})
    with pytest.raises(YoloError):
        locks.hold(str(gone / "lock"))
    assert not gone.exists()


NEEDS_PROC = pytest.mark.skipif(not IS_LINUX, reason="about what /proc tells of processes")
HOLDER = ["flock", "--no-fork", "{lock}", "sh", "-c", "echo held; read line"]


def test_a_lock_held_by_the_shell_is_waited_for_and_its_holder_named(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")
    holder = spawn(processes, *(part.format(lock=lock) for part in HOLDER))
    assert said(holder) == "held"
    bystander = spawn(processes, *(part.format(lock=lock + ".other") for part in HOLDER))
    assert said(bystander) == "held"
    stopped(holder)  # a stopped holder holds on (F42)
    with pytest.raises(YoloError) as raised:
        file_locks.update(path, lock, lambda _: {}, timeout_s=0.2)
    assert (raised.value.reason, raised.value.exit_code) == (Reason.LOCK_TIMEOUT, Exit.LOCK_TIMEOUT)
    assert (f"process {holder.pid} " in raised.value.message) == IS_LINUX  # /proc/locks names it
    assert f"process {bystander.pid} " not in raised.value.message
    holder.kill()
    holder.communicate()
    assert file_locks.update(path, lock, lambda _: {"a": 1}, timeout_s=10) == {"a": 1}


def test_the_shell_waits_for_our_locks(directory: Path) -> None:
    path, lock = str(directory / "state.json"), str(directory / "lock")

    def shell_gets_it() -> bool:
        return subprocess.run(["flock", "--nonblock", lock, "true"], check=False).returncode == 0

    inside: list[bool] = []
    file_locks.update(path, lock, lambda _: inside.append(shell_gets_it()))
    with locks.hold(lock) or pytest.fail("not free"):
        inside.append(shell_gets_it())
    assert inside == [False, False]
    assert shell_gets_it()


# --- a lock for life -------------------------------------------------------------------------------------------------

LIFER = """
held = locks.hold(sys.argv[1])
print("held" if held else "refused", flush=True)
sys.stdin.readline()
"""


def test_the_second_is_refused_and_told_who_holds(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    assert locks.holder(lock) is None
    first = python(processes, LIFER, lock)
    assert said(first) == "held"
    assert locks.hold(lock) is None
    found = locks.holder(lock)
    assert found is not None
    assert (found.pid, found.is_alive()) == (first.pid, True)
    assert stat.S_IMODE(os.stat(lock).st_mode) == 0o600


def test_a_killed_holder_frees_the_lock_and_its_name_means_nothing(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    first = python(processes, LIFER, lock)
    assert said(first) == "held"
    first.kill()
    first.communicate()
    assert json.loads(Path(lock).read_text())["pid"] == first.pid
    assert locks.holder(lock) is None
    with locks.hold(lock) or pytest.fail("not free") as held:
        assert held.still_mine()
        assert locks.holder(lock).pid == os.getpid()  # type: ignore[union-attr]


def test_of_many_at_once_exactly_one_holds(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    starters = [python(processes, "sys.stdin.readline()" + LIFER, lock) for _ in range(12)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    assert sorted(said(starter) for starter in starters) == ["held"] + ["refused"] * 11


def test_looking_at_a_free_lock_refuses_nobody(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    locks.hold(lock).release()  # type: ignore[union-attr]
    looker = python(
        processes, "print('looking', flush=True)\nwhile True: locks.holder(sys.argv[1])", lock
    )
    assert said(looker) == "looking"
    for _ in range(300):
        with locks.hold(lock) or pytest.fail("refused by a mere look"):
            pass


@pytest.mark.parametrize("lose", [os.unlink, lambda path: os.replace(path + ".other", path)])
def test_a_lost_lock_file_is_noticed(directory: Path, lose: object) -> None:
    lock = str(directory / "daemon.lock")
    Path(lock + ".other").touch()
    with locks.hold(lock) or pytest.fail("not free") as held:
        assert held.still_mine()
        lose(lock)  # type: ignore[operator]
        assert not held.still_mine()


def test_a_released_lock_is_nobodys(directory: Path) -> None:
    lock = str(directory / "daemon.lock")
    held = locks.hold(lock)
    assert held is not None
    held.release()
    held.release()
    assert not held.still_mine()
    assert locks.holder(lock) is None
    assert Path(lock).exists()


def test_a_child_given_the_descriptor_keeps_the_lock_when_its_parent_dies(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    code = """
import subprocess
held = locks.hold(sys.argv[1])
subprocess.Popen(["sh", "-c", "echo ready; read line"], pass_fds=[held.fd])
sys.stdin.readline()
"""
    parent = python(processes, code, lock)
    assert said(parent) == "ready"
    parent.kill()
    parent.wait()
    found = locks.holder(lock)
    assert found is not None
    assert (found.pid, found.is_alive()) == (parent.pid, False)
    assert locks.hold(lock) is None
    parent.communicate()
    until_free(lock)


def test_a_child_given_the_descriptor_keeps_the_lock_when_we_release_it(directory: Path) -> None:
    lock = str(directory / "daemon.lock")
    held = locks.hold(lock)
    assert held is not None
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held.fd])
    held.release()
    assert locks.holder(lock) is not None
    child.communicate()
    assert locks.holder(lock) is None


def test_a_child_not_given_the_descriptor_keeps_nothing(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    with locks.hold(lock) or pytest.fail("not free"):
        child = spawn(processes, "sh", "-c", "echo ready; read line")
        assert said(child) == "ready"
    assert locks.holder(lock) is None


def until_free(lock: str) -> None:
    deadline = time.monotonic() + 10
    while locks.holder(lock) is not None:
        assert time.monotonic() < deadline


@NEEDS_PROC
def test_a_reused_pid_is_not_taken_for_the_holder(directory: Path) -> None:
    lock = directory / "daemon.lock"
    with locks.hold(str(lock)) or pytest.fail("not free"):
        lock.write_text(json.dumps({**json.loads(lock.read_text()), "pid": 1}))
        found = locks.holder(str(lock))
    assert found is not None
    assert (found.pid, found.is_alive()) == (1, False)


@NEEDS_PROC
def test_a_holder_that_says_nothing_is_found_in_the_kernels_list(
    directory: Path, processes: list[subprocess.Popen[str]]
) -> None:
    lock = str(directory / "daemon.lock")
    holder = spawn(processes, *(part.format(lock=lock) for part in HOLDER))
    assert said(holder) == "held"
    found = locks.holder(lock)
    assert found is not None
    assert found.pid == holder.pid


def test_a_full_disk_costs_the_name_and_not_the_lock(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "pwrite", refuse)
    with locks.hold(str(directory / "daemon.lock")) or pytest.fail("not free") as held:
        assert held.still_mine()
        assert locks.holder(held.path) is not None


def test_a_file_with_a_second_name_is_not_written_over(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    os.link(tmp_path / "victim", directory / "daemon.lock")
    with pytest.raises(YoloError) as raised:
        locks.hold(str(directory / "daemon.lock"))
    assert raised.value.reason is Reason.HARD_LINKED
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.usefixtures("no_second_names")
def test_without_hard_links_a_new_file_is_written_and_one_that_is_there_is_not(
    tmp_path: Path,
) -> None:
    assert store.place_file(str(tmp_path), "a/x", b"new", None) is None
    assert store.place_file(str(tmp_path), "a/x", b"other", None) is Reason.BEING_WRITTEN
    assert (tmp_path / "a/x").read_bytes() == b"new" and os.listdir(tmp_path / "a") == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_root_creates_belongs_to_whom_the_folder_belongs_and_nothing_else_changes_hands(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "yolo-fs"
    directory.mkdir(mode=0o700)
    before = directory / "before"
    before.write_text("{}")
    os.chown(directory, 5001, 5002)
    trust_in(str(tmp_path), frozenset((0, 5001)))
    store.write_json(str(directory / "file"), {})
    for name in ("log", "before"):
        os.close(store.open_regular(str(directory / name), os.O_RDWR | os.O_CREAT))
    owners = {name: (directory / name).stat() for name in ("file", "log", "before")}
    assert [(each.st_uid, each.st_gid) for each in owners.values()] == [
        (5001, 5002), (5001, 5002), (0, 0),
    ]  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_folder_that_root_makes_belongs_to_whom_the_folder_above_belongs(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    (root / "there").mkdir(parents=True)
    os.chown(root, 5001, 5002)
    trust_in(str(tmp_path), frozenset((0, 5001)))
    store.private_directory(str(root / "own"))
    store.private_directory(str(root / "own/merged"))
    store.write_json(str(root / "own/merged/note"), {})
    assert store.place_file(str(root), "phases/01-login/note", b"x", None) is None
    assert heartbeats.append_heartbeat(str(root / "yolo-fs"), "stop", "yolo-dev", "a", "s")
    made = {path for path in root.rglob("*") if path.name != "there"}
    assert len(made) == 8 and {(path.stat().st_uid, path.stat().st_gid) for path in made} == {
        (5001, 5002)
    }
    assert (root / "there").stat().st_uid == 0
