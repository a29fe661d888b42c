"""Events are numbered without a gap or repetition, whatever happened to the file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from yolo_fs.core.foreign_json import parse
from yolo_fs.system import journal as journals
from yolo_fs.system.journal import Journal

NOW = datetime(2026, 2, 19, 9, 0, 0, 250_000, timezone(timedelta(hours=1)))
TYPE = "artifact.committed"


def journal_in(directory: Path, *, size_bytes: int = 1_000_000) -> Journal:
    return Journal(str(directory), source="/repo", now=lambda: NOW, size_bytes=size_bytes)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "yolo-fs"


@pytest.fixture
def journal(directory: Path) -> Iterator[Journal]:
    journal = journal_in(directory)
    yield journal
    journal.close()


def numbers(journal: Journal, since: int = 0) -> list[int]:
    return [event["seq"] for event in journal.read(since)]


def filled(directory: Path, count: int, *, size_bytes: int = 1_000_000) -> Journal:
    journal = journal_in(directory, size_bytes=size_bytes)
    for i in range(count):
        assert journal.append(TYPE, f"f{i}")
    return journal


def test_a_line_has_the_shape_of_a_cloud_event(journal: Journal, directory: Path) -> None:
    assert journal.append(TYPE, "phases/01/plan.jsonl", {"commit": "abc1234"})
    line = (directory / "events.jsonl").read_bytes()
    event = json.loads(line)
    assert line.endswith(b"\n")
    assert len(event.pop("id")) == 32
    assert event == {
        "specversion": "1.0",
        "source": "/repo",
        "type": "dev.yolo_fs.artifact.committed",
        "time": "2026-02-19T08:00:00.250Z",
        "subject": "phases/01/plan.jsonl",
        "seq": 1,
        "data": {"commit": "abc1234"},
    }


def test_directory_and_files_are_private(journal: Journal, directory: Path) -> None:
    before = os.umask(0)
    try:
        journal.append(TYPE, "f")
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "events.jsonl").stat().st_mode) == 0o600


def test_a_hostile_subject_stays_on_one_line_and_harmless(
    journal: Journal, directory: Path
) -> None:
    subject = os.fsdecode(b"a\n\x1b[31m\xff\xe2\x80\xae")
    journal.append(TYPE, subject)
    line = (directory / "events.jsonl").read_bytes()
    assert line.count(b"\n") == 1
    assert min(line[:-1]) >= 0x20
    assert max(line) < 0x7F
    assert next(journal.read())["subject"] == subject


def test_reading_an_absent_journal_makes_nothing(journal: Journal, directory: Path) -> None:
    assert list(journal.read()) == []
    assert not directory.exists()


def test_events_are_chosen_by_number_and_type(journal: Journal) -> None:
    for type_ in (TYPE, "artifact.rejected", TYPE):
        journal.append(type_, "f")
    assert numbers(journal, since=1) == [2, 3]
    assert [event["seq"] for event in journal.read(type_=TYPE)] == [1, 3]
    assert [event["seq"] for event in journal.read(type_="dev.yolo_fs.artifact.rejected")] == [2]


def test_numbers_go_on_after_a_restart(directory: Path) -> None:
    filled(directory, 3).close()
    journal = filled(directory, 2)
    assert numbers(journal) == [1, 2, 3, 4, 5]
    journal.close()


# --- torn lines ------------------------------------------------------------------------------------------------------

TORN = {
    "half a line": (lambda data: data[:-20], [1, 2, 3]),
    "no newline": (lambda data: data[:-1], [1, 2, 3, 4]),
    "one byte": (lambda data: data + b"{", [1, 2, 3, 4]),
    "zeroed block": (lambda data: data + b"\0" * 512, [1, 2, 3, 4]),
    "garbage line": (lambda data: data + b"\xff\xfe\n", [1, 2, 3, 4]),
    "deep line": (lambda data: data + b"[" * 100_000 + b"\n", [1, 2, 3, 4]),
    "line without number": (
        lambda data: data + b'{"seq": "9"}\n[9]\n{"seq": true}\n',
        [1, 2, 3, 4],
    ),
    "damaged first line": (lambda data: b"x" + data, [2, 3, 4]),
}


@pytest.mark.parametrize("case", TORN)
def test_a_torn_line_is_moved_past(directory: Path, case: str) -> None:
    damage, kept = TORN[case]
    filled(directory, 4).close()
    file = directory / "events.jsonl"
    file.write_bytes(damage(file.read_bytes()))
    journal = filled(directory, 2)
    assert numbers(journal) == [*kept, kept[-1] + 1, kept[-1] + 2]
    journal.close()


@pytest.mark.parametrize("line", [b"", b"{}", b'{"seq":9}', b"9" * 60])
def test_lines_that_are_too_short_for_an_event_are_parsed_by_nobody(
    directory: Path, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(directory, 4).close()
    file = directory / "events.jsonl"
    file.write_bytes((line + b"\n") * 100_000 + file.read_bytes())
    parsed: list[bytes] = []
    monkeypatch.setattr(journals, "parse", lambda *given: parsed.append(given[0]) or parse(*given))
    journal = filled(directory, 2)
    assert numbers(journal) == [1, 2, 3, 4, 5, 6]
    assert len(parsed) < 100
    journal.close()


def test_of_a_file_that_somebody_made_long_the_end_is_read(directory: Path) -> None:
    filled(directory, 4).close()
    file = directory / "events.jsonl"
    end = file.read_bytes()
    with open(file, "wb") as grown:
        grown.write(end.replace(b'"seq":', b'"seq":1000'))
        grown.seek(1 << 34)  # takes no room on the disk
        grown.write(b"\n" + end)
    journal = filled(directory, 1)
    assert numbers(journal) == [1, 2, 3, 4, 5]
    journal.close()


def test_numbers_go_on_when_the_newest_file_is_empty(directory: Path) -> None:
    filled(directory, 3).close()
    (directory / "events.jsonl").rename(directory / "events.1.jsonl")
    (directory / "events.jsonl").touch()
    journal = filled(directory, 1)
    assert numbers(journal) == [1, 2, 3, 4]
    journal.close()


def test_a_short_write_spoils_no_other_line(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    journal.append(TYPE, "f")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:30]))
        assert not journal.append(TYPE, "f")
    assert journal.append(TYPE, "f")
    assert numbers(journal) == [1, 3], "a number once begun is never given again"


def test_a_full_disk_is_told_and_not_raised(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    journal.append(TYPE, "f")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        assert not journal.append(TYPE, "f")
    assert journal.append(TYPE, "f")
    assert numbers(journal) == [1, 2]


def test_a_vanished_repository_is_told_and_not_made_again(tmp_path: Path) -> None:
    journal = journal_in(tmp_path / "gone" / "yolo-fs")
    assert not journal.append(TYPE, "f")
    assert not (tmp_path / "gone").exists()


def test_a_folder_that_went_while_it_was_written_is_not_made_again(
    journal: Journal, directory: Path
) -> None:
    assert journal.append(TYPE, "f")
    shutil.rmtree(directory)
    assert not any(journal.append(TYPE, "f") for _ in range(3))
    assert not directory.exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_neither_written_nor_read(
    directory: Path, make: Callable[[str], None]
) -> None:
    directory.mkdir()
    make(str(directory / "events.jsonl"))
    journal = journal_in(directory)
    assert not journal.append(TYPE, "f")
    assert list(journal.read()) == []


# --- rotation --------------------------------------------------------------------------------------------------------


def test_rotation_keeps_five_files_of_the_size_and_the_newest_events(directory: Path) -> None:
    journal = filled(directory, 200, size_bytes=2_000)
    assert sorted(os.listdir(directory)) == sorted(
        ["events.jsonl", *(f"events.{age}.jsonl" for age in range(1, 5))]
    )
    assert all(file.stat().st_size <= 2_000 for file in directory.iterdir())
    found = numbers(journal)
    assert found == list(range(found[0], 201))
    journal.close()


def test_numbers_go_on_after_a_rotation_and_a_restart(directory: Path) -> None:
    filled(directory, 20, size_bytes=1_000).close()
    journal = filled(directory, 1, size_bytes=1_000)
    assert numbers(journal)[-1] == 21
    journal.close()


def test_a_rotation_cut_short_loses_no_event(directory: Path) -> None:
    filled(directory, 3).close()
    (directory / "events.jsonl").rename(directory / "events.2.jsonl")
    journal = filled(directory, 30, size_bytes=2_000)
    assert numbers(journal)[-1] == 33
    assert numbers(journal) == sorted(set(numbers(journal)))
    journal.close()


def test_a_refused_rotation_makes_a_long_file(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(13, os.strerror(13))

    monkeypatch.setattr(os, "replace", refuse)
    journal = filled(directory, 20, size_bytes=1_000)
    assert numbers(journal) == list(range(1, 21))
    journal.close()


@pytest.mark.parametrize("remove", [os.unlink, lambda path: os.rename(path, path + ".old")])
def test_a_file_taken_away_is_begun_anew_with_the_next_number(
    directory: Path, remove: Callable[[str], None]
) -> None:
    journal = filled(directory, 3)
    remove(str(directory / "events.jsonl"))
    assert journal.append(TYPE, "f")
    assert numbers(journal) == [4]
    journal.close()


# --- readers beside the writer ---------------------------------------------------------------------------------------

WRITER = """
import sys
from datetime import UTC, datetime
from yolo_fs.system import journal as journals
from yolo_fs.system.journal import Journal
journals._TURN_S = 60.0  # no machine is so busy that an event is given up
journal = Journal(sys.argv[1], source="/repo", now=lambda: datetime.now(UTC), size_bytes=int(sys.argv[3]))
for i in range(int(sys.argv[2])):
    assert journal.append("artifact.committed", "f" * (i % 300))
"""


@pytest.fixture
def writer(directory: Path) -> Iterator[Callable[[int, int], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(count: int, size_bytes: int) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(directory), str(count), str(size_bytes)]
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_reader_beside_the_writer_sees_whole_lines_in_order(
    directory: Path, writer: Callable[[int, int], subprocess.Popen[bytes]]
) -> None:
    journal, process, looks = journal_in(directory), writer(5_000, 100_000), 0
    while process.poll() is None:
        found = numbers(journal)
        assert found == list(range(found[0], found[-1] + 1)) if found else True
        looks += bool(found)
    assert process.returncode == 0
    assert looks > 1, "the reader never ran beside the writer"
    assert numbers(journal)[-1] == 5_000


def test_a_follower_gets_every_event_once_across_rotations(
    directory: Path, writer: Callable[[int, int], subprocess.Popen[bytes]]
) -> None:
    stop, found = threading.Event(), []
    process = writer(2_000, 250_000)
    for event in journal_in(directory).follow(stop, poll_s=0.001):
        found.append(event["seq"])
        if event["seq"] == 2_000:
            stop.set()
    assert process.wait() == 0
    assert (directory / "events.1.jsonl").exists()
    assert found == list(range(1, 2_001))


def test_a_follower_ends_with_what_was_written_before_the_stop(directory: Path) -> None:
    journal, stop = filled(directory, 3), threading.Event()
    following = journal.follow(stop, since=1, type_=TYPE, poll_s=0.001)
    assert next(following)["seq"] == 2
    journal.append(TYPE, "f")
    stop.set()
    assert [event["seq"] for event in following] == [3, 4]
    journal.close()


def test_a_follower_of_an_absent_journal_waits_for_it(directory: Path) -> None:
    stop, found = threading.Event(), []
    ready = threading.Thread(target=lambda: filled(directory, 1).close())
    following = journal_in(directory).follow(stop, poll_s=0.001)
    ready.start()
    found.append(next(following)["seq"])
    stop.set()
    ready.join()
    assert (found, list(following)) == ([1], [])


def test_following_keeps_no_file_open_after_the_end(directory: Path) -> None:
    journal, before = filled(directory, 30, size_bytes=1_000), len(os.listdir("/proc/self/fd"))
    following = journal.follow(threading.Event())
    next(following)
    following.close()
    assert len(os.listdir("/proc/self/fd")) == before
    journal.close()


def test_following_across_rotations_keeps_a_bounded_number_of_files_open(directory: Path) -> None:
    journal, stop = filled(directory, 1, size_bytes=1_000), threading.Event()
    following, before = journal.follow(stop, poll_s=0), len(os.listdir("/proc/self/fd"))
    for _ in range(60):
        next(following)
        journal.append(TYPE, "f")
    assert len(os.listdir("/proc/self/fd")) <= before + 5
    following.close()
    journal.close()


def test_threads_of_one_process_share_a_journal(journal: Journal) -> None:
    threads = [
        threading.Thread(target=lambda: [journal.append(TYPE, "f") for _ in range(200)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert numbers(journal) == list(range(1, 1_601))


def test_the_clock_is_read_for_each_event(directory: Path) -> None:
    moments = iter([datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)])
    journal = Journal(str(directory), source="/repo", now=lambda: next(moments))
    journal.append(TYPE, "f")
    journal.append(TYPE, "f")
    assert [event["time"][:4] for event in journal.read()] == ["2026", "2027"]
    journal.close()


FELLOW_WRITER = """
import sys
from datetime import UTC, datetime
from yolo_fs.system import journal as journals
from yolo_fs.system.journal import Journal
journals._TURN_S = 60.0  # no machine is so busy that an event is given up
journal = Journal(sys.argv[1], source="/repo", now=lambda: datetime.now(UTC), size_bytes=20_000, files=50)
print(sum(journal.append("x.y", sys.argv[2], {"n": n}) for n in range(200)))
"""


def test_several_processes_take_no_number_twice_also_across_rotations(directory: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", FELLOW_WRITER, str(directory), str(name)], stdout=subprocess.PIPE
        )
        for name in range(4)
    ]
    written = sum(int(writer.communicate()[0]) for writer in writers)
    numbers = [
        event["seq"]
        for event in Journal(str(directory), source="/repo", now=lambda: NOW, files=50).read()
    ]
    assert numbers == list(range(1, 801))
    assert written == 800


def test_a_writer_that_is_stopped_in_its_turn_costs_an_event_and_no_more(directory: Path) -> None:
    writer = journal_in(directory)
    assert writer.append("a.b", "first")
    fellow = os.open(directory, os.O_RDONLY)
    fcntl.flock(fellow, fcntl.LOCK_EX)
    assert not writer.append("a.b", "lost")
    os.close(fellow)
    assert writer.append("a.b", "second")
    assert [event["subject"] for event in writer.read()] == ["first", "second"]
