"""A durable database comes whole and by one name, however many processes want it first."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import subprocess
import sys
from pathlib import Path

from yolo_fs.system.database import open_durable

LAYOUT = "create table notes(name text primary key, body text)"
PROCESSES, DATABASES = 8, 60


def _write_first(
    folder: str,
    number: int,
    start: multiprocessing.synchronize.Barrier,
    failed: multiprocessing.Queue[str],
) -> None:
    for each in range(DATABASES):
        start.wait(60)
        try:
            database = open_durable(f"{folder}/{each}.db", LAYOUT, make=True, is_synced=False)
            assert database is not None
            with database.writing():
                database.rows("insert into notes values (?, ?)", str(number), "")
            database.close()
        except Exception as error:  # each is told by name
            failed.put(f"{each}: {error!r}")
    failed.put("")


def test_many_processes_that_make_one_database_at_once_all_write_to_it(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, failed = spawn.Barrier(PROCESSES), spawn.Queue()
    processes = [
        spawn.Process(target=_write_first, args=(str(tmp_path), n, start, failed))
        for n in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    faults, ended = [], 0
    while ended < PROCESSES:
        told = failed.get(timeout=120)
        ended += not told
        faults += [told] if told else []
    for process in processes:
        process.join(30)
    assert faults == []
    for each in range(DATABASES):
        database = open_durable(str(tmp_path / f"{each}.db"), LAYOUT, make=False)
        assert database is not None
        assert database.rows("select count(*) from notes") == [(PROCESSES,)]
        database.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{each}.db" for each in range(DATABASES)
    )


LOOKS = f"""
import sys
from yolo_fs.system.database import is_foreign, open_durable
path, seen = sys.argv[1], []
is_looking = False
def look(event, details):
    global is_looking
    if not is_looking:
        is_looking = True
        seen.append((event, is_foreign(path)))
        is_looking = False
sys.addaudithook(look)
open_durable(path, {LAYOUT!r}, make=True).close()
print(len(seen), [event for event, foreign in seen if foreign])
"""


def test_a_database_that_is_being_made_is_at_no_moment_taken_for_somebody_elses(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOKS, str(tmp_path / "new.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    moments, foreign = done.stdout.split(maxsplit=1)
    assert int(moments) > 3
    assert foreign.strip() == "[]"
