"""Many writers, and every manner of writing. See docs/dev/faults.md#f14 to #f18."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import Artifact, artifact, mixed, team
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo
from yolo_fs.system import IS_LINUX

Start = Callable[..., Daemon]

_WRITER = """
import os, sys
path, data = sys.argv[1], sys.argv[2].encode()
print("ready", flush=True)
sys.stdin.readline()
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "wb") as file:
    file.write(data)
"""


def test_twenty_processes_write_twenty_artifacts_at_once(repo: Repo, start: Start) -> None:
    history, daemon, artifacts = History(repo), start(repo), team()
    writers = [_writer(repo, one) for one in artifacts]
    began = time.monotonic()
    for writer in writers:
        _let_go(writer)
    daemon.wait_committed(artifacts)
    print(
        f"twenty artifacts of twenty processes: {time.monotonic() - began:.3f} s until the last commit"
    )
    assert [writer.wait() for writer in writers] == [0] * 20
    assert daemon.stop() == 0
    history.check(artifacts)


def _writer(repo: Repo, one: Artifact) -> subprocess.Popen[bytes]:
    """Start a process that is ready to write an artifact as soon as it is let go."""
    writer = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WRITER, str(repo.root / one.path), one.data.decode()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
    writer.stdout.close()
    return writer


def _let_go(writer: subprocess.Popen[bytes]) -> None:
    assert writer.stdin is not None
    writer.stdin.write(b"go\n")
    writer.stdin.close()


# --- manners of writing ----------------------------------------------------------------------------------------------


def plain(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def atomic_rename(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.tmp.4711")
    new.write_bytes(data)
    os.replace(new, path)


def moved_in_from_outside(path: Path, data: bytes) -> None:
    new = path.parents[3] / "scratch.jsonl"
    new.write_bytes(data)
    os.replace(new, path)


def append_line_by_line(path: Path, data: bytes) -> None:
    header, *tasks = data.splitlines(keepends=True)
    with open(path, "ab", buffering=0) as file:
        file.write(header + tasks[0])
        for line in tasks[1:]:
            _pause(
                0.5
            )  # longer than a file has to be quiet: only the open descriptor tells that more is to come
            file.write(line)


def truncate_and_write(path: Path, data: bytes) -> None:
    path.write_bytes(b"")
    path.write_bytes(data[: len(data) // 2])
    path.write_bytes(data)


def one_byte_at_a_time(path: Path, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        for byte in data:
            file.write(bytes([byte]))
            _pause(0.001)


def slowly_with_the_file_closed_between(path: Path, data: bytes) -> None:
    path.write_bytes(b"")
    for at in range(0, len(data), 60):
        with open(path, "ab") as file:
            file.write(data[at : at + 60])
        _pause(0.05)


def by_vim(path: Path, data: bytes) -> None:
    (path.parent / "4913").write_bytes(b"")
    (path.parent / "4913").unlink()
    (path.parent / f".{path.name}.swp").write_bytes(b"b0VIM 9.0")
    if path.exists():
        os.rename(path, f"{path}~")
    path.write_bytes(data)


def by_emacs(path: Path, data: bytes) -> None:
    os.symlink("ada@host.4711:1700000000", path.parent / f".#{path.name}")
    (path.parent / f"#{path.name}#").write_bytes(data[:40])
    path.write_bytes(data)
    (path.parent / f".#{path.name}").unlink()


MANNERS = (
    plain, atomic_rename, moved_in_from_outside, append_line_by_line, truncate_and_write, one_byte_at_a_time,
    slowly_with_the_file_closed_between, by_vim, by_emacs,
)  # fmt: skip


@pytest.mark.parametrize("write", MANNERS)
def test_each_manner_of_writing_is_one_commit_of_the_full_file(
    repo: Repo, start: Start, write: Callable[[Path, bytes], None]
) -> None:
    if write is append_line_by_line and not IS_LINUX:
        pytest.skip("only a lease tells of a writer that pauses for longer than a file settles")
    one = artifact("plan", 42)  # three lines
    path = repo.root / one.path
    path.parent.mkdir(parents=True)
    history, daemon = History(repo), start(repo)
    write(path, one.data)
    daemon.wait_committed([one])
    for left in ("*~", ".*.sw?", "#*#"):
        _remove(path.parent, left)
    assert daemon.stop() == 0
    history.check([one])


def test_swap_and_backup_names_of_editors_are_no_artifacts(repo: Repo, start: Start) -> None:
    last, data = artifact("summary", 1), artifact("summary", 0).data
    name = Path(artifact("summary", 0).path).name
    strange = (f".{name}.swp", f"{name}~", f"#{name}#", f".#{name}", f"{name}.tmp", f".{name}.tmp.1", f"{name}.orig",
               f"{name}.bak", "4913", f".goutputstream-{name}", f"{name}___jb_tmp___")  # fmt: skip
    folder = (repo.root / artifact("summary", 0).path).parent
    folder.mkdir(parents=True)
    history, daemon = History(repo), start(repo)
    for each in strange:
        (folder / each).write_bytes(data)
    repo.write(last)
    daemon.wait_committed([last])
    assert [one["path"] for one in repo.status()["candidates"]] == [last.path]
    assert daemon.stop() == 0
    assert history.subjects() == [last.subject]


@pytest.mark.proves("002:251")
def test_thirty_artifacts_one_after_the_other_are_thirty_commits(repo: Repo, start: Start) -> None:
    history, daemon, artifacts = History(repo), start(repo), mixed(30)
    for one in artifacts:
        repo.write(one)
        daemon.wait_committed([one])  # two that are seen at once go in the order of the workflow
    assert daemon.committed() == [one.path for one in artifacts]
    assert daemon.stop() == 0
    history.check(artifacts)


def test_ten_versions_of_one_artifact_are_ten_commits_in_their_order(
    repo: Repo, start: Start
) -> None:
    history, daemon = History(repo), start(repo)
    versions = [artifact("plan", 3, version) for version in range(10)]
    for one in versions:
        repo.write(one)
        daemon.wait_committed([one])
    assert daemon.stop() == 0
    history.check(versions)
    history.check_order(versions)


def test_lines_appended_by_one_process_each_end_as_the_full_file(repo: Repo, start: Start) -> None:
    whole = artifact("plan", 42)
    history, daemon = History(repo), start(repo)
    pieces = whole.data.splitlines(keepends=True)
    (repo.root / whole.path).parent.mkdir(parents=True)
    for piece in pieces:
        with open(repo.root / whole.path, "ab") as file:
            file.write(piece)
    daemon.wait_committed([whole])
    assert daemon.stop() == 0
    valid = {
        whole._replace(data=b"".join(pieces[:count])).blob() for count in range(2, len(pieces) + 1)
    }
    blobs = [blob for commit in history.commits() for _, blob, _ in commit.changes]
    assert set(blobs) <= valid and blobs[-1] == whole.blob() and len(blobs) <= len(valid)


def test_the_same_bytes_again_are_no_commit(repo: Repo, start: Start) -> None:
    one, last = artifact("summary", 0), artifact("summary", 1)
    history, daemon = History(repo), start(repo)
    for write in (plain, atomic_rename, truncate_and_write, plain):
        (repo.root / one.path).parent.mkdir(parents=True, exist_ok=True)
        write(repo.root / one.path, one.data)
        daemon.wait_committed([one])
    repo.write(last)
    daemon.wait_committed([last])
    assert daemon.stop() == 0
    history.check([one, last])


def test_a_change_that_keeps_size_and_mtime_is_noticed_by_the_rescan(
    repo: Repo, start: Start
) -> None:
    repo.configure(rescan_s=1)
    before, after = artifact("summary", 0, version=1), artifact("summary", 0, version=2)
    history, daemon = History(repo), start(repo)
    repo.write(before)
    daemon.wait_committed([before])
    path = repo.root / before.path
    was = path.stat()
    change_without_event(path, after.data)
    assert path.stat().st_size == was.st_size and path.stat().st_mtime_ns == was.st_mtime_ns
    daemon.wait_committed([after])
    assert daemon.stop() == 0
    history.check([before, after])


def change_without_event(path: Path, data: bytes) -> None:
    """Rewrite a file through another name, outside of every watched folder, and put its times back."""
    was, other = path.stat(), path.parents[3] / "other-name"
    os.link(path, other)
    with open(other, "r+b") as file:
        file.write(data)
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.unlink()


def test_a_stream_of_other_artifacts_does_not_starve_one(repo: Repo, start: Start) -> None:
    history, daemon, one = History(repo), start(repo), artifact("critique", 0)
    ended, stream = threading.Event(), mixed(1000)
    written: list[Artifact] = []
    writer = threading.Thread(target=_keep_writing, args=(repo, stream, written, ended))
    writer.start()
    try:
        until(lambda: len(daemon.committed()) > 3, "the stream flows")
        repo.write(one)
        daemon.wait_committed([one])
    finally:
        ended.set()
        writer.join()
    daemon.wait_committed(written)
    assert daemon.stop() == 0
    history.check([*written, one])


def _keep_writing(
    repo: Repo, stream: list[Artifact], written: list[Artifact], ended: threading.Event
) -> None:
    for one in stream:
        repo.write(one)
        written.append(one)
        if ended.wait(0.05):
            return


def _remove(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.unlink()


def _pause(seconds: float) -> None:
    """Wait as the writer under test would: its slowness is the case."""
    threading.Event().wait(seconds)
