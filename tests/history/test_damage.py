"""Whatever happens to the index while others write, answers are those without it, and nothing hangs or fails.

`YOLO_DAMAGES=200 .venv/bin/pytest tests/history/test_damage.py` is the long tier; a failure prints its seed.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.history.test_index import FOLDER, a_graph, answers
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex
from yolo_fs.system.database import open_disposable
from yolo_fs.workspace.own_files import INDEX_LAYOUT

DAMAGES = int(os.environ.get("YOLO_DAMAGES", "22"))
SEED = int(os.environ.get("YOLO_SEED", "20261127"))
COMMITS = 80
WRITER = """
import subprocess, sys
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex
with Repository(sys.argv[1]) as repository:
    index = HistoryIndex(repository)
    for number in range(100_000):
        head = repository.head().tip
        tree = repository.git.text("rev-parse", "HEAD^{tree}").strip()
        made = repository.git.text("commit-tree", tree, "-p", head, "-m", f"feat(01-01): T{number % 7} x").strip()
        repository.git.run("update-ref", "refs/heads/main", made, head)
        index.read_up_to(made)
        if number % 5 == 0:
            index.rest()
        print(made, flush=True)
"""

Damage = Callable[[Path, random.Random], object]
"""Takes the file."""


def at_random(path: Path, chance: random.Random) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for _ in range(chance.choice((1, 3, 50))):
            file.seek(chance.randrange(max(1, size)))
            file.write(chance.randbytes(chance.choice((1, 2, 64))))


def another_database(path: Path, _: random.Random) -> None:
    """As whoever knows our tables writes it, but not our key."""
    path.unlink()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("create table meta(key, value)")
        connection.execute("create table commits(row integer primary key, oid text unique, at_s, height, position,"
                           " ours, warnings, subject, changes)")  # fmt: skip
        connection.execute("insert into commits values (1, 'f00', 0, 1, 0, 1, 0, x'', x'')")
    connection.close()


def another_word(path: Path, _: random.Random) -> None:
    """A task that nobody did, entered by SQLite itself."""
    connection = sqlite3.connect(path, timeout=0.1)
    with contextlib.suppress(sqlite3.OperationalError, sqlite3.IntegrityError), connection:
        connection.execute(
            "insert into named select 'task', '01-09/T1', x'', 1, 1, max(row) from commits"
        )
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def instead(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path, _: random.Random) -> None:
        clear(path)
        make(path)

    return damage


def beside(ending: str, damage: Damage) -> Damage:
    """Return the damage of a file beside the database, where it is there."""

    def done(path: Path, chance: random.Random) -> None:
        other = path.with_name(path.name + ending)
        if other.is_file():
            damage(other, chance)

    return done


DAMAGED: dict[str, Damage] = {
    "truncated": lambda path, chance: os.truncate(path, chance.randrange(path.stat().st_size + 1)),
    "grown": lambda path, chance: path.write_bytes(path.read_bytes() + chance.randbytes(4096)),
    "random bytes": at_random,
    "nothing but random bytes": lambda path, chance: path.write_bytes(chance.randbytes(20_000)),
    "empty": lambda path, _: os.truncate(path, 0),
    "deleted": instead(bool),
    "another database": another_database,
    "another word": another_word,
    "read-only": lambda path, _: path.chmod(0o400),
    "a folder": instead(lambda path: (path / "x").mkdir(parents=True)),
    "a pipe": instead(os.mkfifo),
    "a link": instead(lambda path: path.symlink_to("/etc/hostname")),
    "a link to nothing": instead(lambda path: path.symlink_to("nowhere")),
    "a second name": lambda path, _: os.link(path, path.with_name("again")),
    "a journal": lambda path, chance: path.with_name(f"{path.name}-journal").write_bytes(chance.randbytes(600)),
    "no log": beside("-wal", instead(bool)),
    "a log of random bytes": beside("-wal", at_random),
    "a log that is a pipe": beside("-wal", instead(os.mkfifo)),
    "no seal": beside(".seal", instead(bool)),
    "another seal": beside(".seal", at_random),
    "a seal that is a pipe": beside(".seal", instead(os.mkfifo)),
    "a seal that is a folder": beside(".seal", instead(os.mkdir)),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    root = tmp_path / "tree"
    subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        subprocess.run(["git", "-C", root, "config", key, value], check=True)
    commits = a_graph(root, random.Random(SEED), COMMITS)
    subprocess.run(["git", "-C", root, "update-ref", "refs/heads/main", commits[-1]], check=True)
    subprocess.run(["git", "-C", root, "reset", "-q", "--hard"], check=True)
    yield root


def file_of(place: Path) -> Path:
    return place / ".git/yolo-fs/index.db"


def fill(place: Path) -> str:
    """Let a process leave an index, and return the tip."""
    with Repository(str(place)) as repository:
        tip = repository.head().tip or ""
        HistoryIndex(repository).read_up_to(tip)
        return tip


def mend(place: Path) -> None:
    """Take away what is no file: that is a person's to do."""
    for path in file_of(place).parent.glob("*"):
        if path.name == "again" or not path.is_file() or path.is_symlink():
            clear(path)


def compare(place: Path, tip: str, commits: list[str], why: str) -> None:
    with Repository(str(place)) as repository:
        found, fresh = HistoryIndex(repository), HistoryIndex(repository)
        fresh._file_again_s = float("inf")
        found.read_up_to(tip)
        fresh.read_up_to(tip)
        assert answers(found, commits) == answers(fresh, commits), why


def listed(place: Path) -> list[str]:
    told = subprocess.check_output(["git", "-C", place, "rev-list", "-n40", "--all"], text=True)
    return told.split()


def damages(seed: int, count: int) -> Iterator[tuple[str, random.Random]]:
    """Yield each sort of damage in turn, with a chance of its own."""
    for number in range(count):
        yield [*DAMAGED][number % len(DAMAGED)], random.Random(seed + number)


def shown(place: Path, *command: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        return run([*command, "-C", str(place)]), out.getvalue()


@pytest.mark.timeout(60 + 3 * DAMAGES)
def test_answers_are_right_whatever_became_of_the_index(place: Path) -> None:
    tip = fill(place)
    commits = listed(place)
    expected = shown(place, "resume")
    assert expected[0] == 0
    for number, (name, chance) in enumerate(damages(SEED, DAMAGES)):
        fill(place)
        assert file_of(place).stat().st_size > 20_000
        DAMAGED[name](file_of(place), chance)
        why = f"YOLO_SEED={SEED}: damage {number}, {name}"
        if number % 5 == 0:
            assert shown(place, "resume") == expected, why
        compare(place, tip, commits, why)
        mend(place)


@pytest.mark.timeout(60 + 3 * DAMAGES)
def test_answers_are_right_whatever_becomes_of_the_index_under_a_writer(place: Path) -> None:
    fill(place)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, place], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout
    try:
        with Repository(str(place)) as repository:
            reader = HistoryIndex(repository)
            for number, (name, chance) in enumerate(damages(SEED, DAMAGES // 2)):
                for _ in range(3):
                    assert writer.stdout.readline(), "the writer goes on"
                why = f"YOLO_SEED={SEED}: damage {number}, {name}"
                tip = repository.head().tip or ""
                reader.read_up_to(tip)
                with contextlib.suppress(FileNotFoundError):
                    DAMAGED[name](file_of(place), chance)
                later, fresh = (HistoryIndex(repository) for _ in range(2))
                fresh._file_again_s = float("inf")
                for index in (later, fresh):
                    index.read_up_to(tip)
                reader.read_up_to(tip)
                commits = listed(place)
                expected = answers(fresh, commits)
                assert answers(later, commits) == expected, why
                assert answers(reader, commits) == expected, why
                for index in (later, fresh):
                    index.close()
                mend(place)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
    made = subprocess.check_output(["git", "-C", place, "rev-list", "--count", "main"], text=True)
    assert int(made) > COMMITS // 2 + DAMAGES
    compare(place, fill(place), listed(place), "after all")


@pytest.mark.parametrize("how", ["locking_mode = exclusive", "a stopped writer", "a stopped maker"])
def test_whoever_holds_the_index_delays_a_command_and_changes_no_answer(
    place: Path, how: str
) -> None:
    tip = fill(place)
    program = f"""
import fcntl, os, sqlite3, sys
if {how!r} == "a stopped maker":
    fcntl.flock(os.open(sys.argv[1] + ".seal", os.O_RDWR), fcntl.LOCK_EX)
else:
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    if {how!r}.startswith("locking"):
        connection.execute("pragma locking_mode = exclusive")
    connection.execute("begin exclusive")
    connection.execute("insert into meta values ('x', 'y')")
print("held", flush=True)
sys.stdin.read()
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", program, file_of(place)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        parent = subprocess.check_output(
            ["git", "-C", place, "rev-parse", f"{tip}^"], text=True
        ).strip()
        for asked in (tip, parent):
            compare(place, asked, listed(place), how)
        new = subprocess.check_output(
            ["git", "-C", place, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "feat(01-01): T9 x"], text=True
        ).strip()  # fmt: skip
        subprocess.run(["git", "-C", place, "update-ref", "refs/heads/main", new], check=True)
        compare(place, new, listed(place), how)
    finally:
        holder.kill()
        holder.communicate()
    compare(place, fill(place), listed(place), how)


def test_a_disk_that_is_full_costs_the_index_and_no_answer(place: Path) -> None:
    program = """
import resource, signal, sys
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex
with Repository(sys.argv[1]) as repository:
    tip = repository.head().tip
    repository.objects.read(tip)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    index = HistoryIndex(repository)
    index.read_up_to(tip)
    print(index.position_of(tip), index.last_change(sys.argv[3]).oid)
"""
    asked = [sys.executable, "-c", program, place]
    path = f"{FOLDER}/decisions.jsonl"
    expected = subprocess.check_output([*asked, "1000000000", path], text=True)
    for most_bytes in (0, 4096, 33_000, 90_000):
        for left in file_of(place).parent.glob("index.db*"):
            left.unlink()
        said = subprocess.check_output([*asked, str(most_bytes), path], text=True)
        assert said == expected, most_bytes
        compare(place, fill(place), listed(place), str(most_bytes))


# --- whom it believes ------------------------------------------------------------------------------------------------


def forge(place: Path) -> None:
    """Enter, as whoever has the folder can, that a task is done."""
    connection = sqlite3.connect(file_of(place))
    with connection:
        connection.execute(
            "insert or replace into named select 'task', '01-09/T1', x'', row, 0, null, 0 from commits"
            " order by row desc limit 1"
        )
    connection.close()


@pytest.mark.parametrize("how", ["copied", "moved there and back", "written to", "with old times"])
def test_an_index_that_came_with_the_folder_is_not_believed(
    place: Path, tmp_path: Path, how: str
) -> None:
    tip = fill(place)
    before = file_of(place).stat()
    forge(place)
    if how == "copied":
        shutil.copytree(place, tmp_path / "other", symlinks=True)
        place = tmp_path / "other"
    elif how == "moved there and back":
        other = tmp_path / "archive.tar"
        subprocess.run(["tar", "-cpf", other, "-C", tmp_path, "tree"], check=True)
        shutil.rmtree(place)
        subprocess.run(["tar", "-xpf", other, "-C", tmp_path], check=True)
    elif how == "with old times":
        os.utime(file_of(place), ns=(before.st_atime_ns, before.st_mtime_ns))
    with Repository(str(place)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(tip)
        assert found.of_task("01-09/T1") == ""
        assert found._answering is found._file, "it is made anew"


def test_an_index_with_the_tables_of_other_code_is_made_anew(place: Path) -> None:
    tip = fill(place)
    for left in file_of(place).parent.glob("index.db*"):
        left.unlink()
    other = open_disposable(str(file_of(place)), f"{INDEX_LAYOUT}; create table more(key text)")
    assert other is not None
    other.close()
    for is_made_anew in (False, True):
        with Repository(str(place)) as repository:
            found = HistoryIndex(repository)
            found.read_up_to(tip)
            assert found.position_of(tip) >= 0
            assert (found._answering is found._file) is is_made_anew


def test_without_a_key_of_this_user_no_file_is_believed_or_left(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = fill(place)
    commits = listed(place)
    before = file_of(place).read_bytes()
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    compare(place, tip, commits, "no state folder")
    with Repository(str(place)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(tip)
        assert found._file is None and found._answering is found._memory
    assert file_of(place).read_bytes() == before
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another"))
    made_ns = file_of(place).stat().st_ctime_ns
    compare(place, tip, commits, "another key")
    assert file_of(place).stat().st_ctime_ns != made_ns


def test_an_index_is_believed_again_after_its_folder_has_moved(place: Path) -> None:
    tip, ino = fill(place), file_of(place).stat().st_ino
    other = place.with_name("another name")
    place.rename(other)
    assert fill(other) == tip
    assert file_of(other).stat().st_ino == ino


def test_our_files_are_this_users_alone_whatever_the_umask(place: Path) -> None:
    before = os.umask(0)
    try:
        fill(place)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in file_of(place).parent.glob("index.db*")} == {
        0o600
    }


def test_an_index_is_not_opened_again_by_a_fork_through_what_it_inherits(place: Path) -> None:
    with Repository(str(place)) as repository:
        tip = repository.head().tip or ""
        index = HistoryIndex(repository)
        index.read_up_to(tip)
        expected = answers(index, [tip])
        child = os.fork()
        if not child:
            is_right = answers(index, [tip]) == expected
            index.close()
            os._exit(0 if is_right else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert answers(index, [tip]) == expected
        assert index._file and index._file.is_current
    deadline = time.monotonic() + 5
    while file_of(place).with_name("index.db-wal").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    compare(place, fill(place), [tip], "after the fork")
