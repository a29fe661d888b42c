"""What SQLite keeps beside a database comes and goes with the processes that have it open: whoever looks meanwhile takes it
for nothing odd."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from yolo_fs.system.database import is_foreign


def test_a_log_that_goes_while_it_is_looked_at_makes_nobody_a_stranger(tmp_path: Path) -> None:
    place = str(tmp_path / "state.db")
    Path(place).touch()
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            for ending in ("-wal", "-shm"):
                os.close(os.open(f"{place}{ending}", os.O_CREAT | os.O_WRONLY))
            for ending in ("-wal", "-shm"):
                os.unlink(f"{place}{ending}")

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        assert not any(is_foreign(place) for _ in range(20_000))
    finally:
        is_over.set()
        other.join()


def test_a_link_beside_it_is_no_work_of_ours(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    place.touch()
    (tmp_path / "state.db-wal").symlink_to("elsewhere")
    assert is_foreign(str(place))
