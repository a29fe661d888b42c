"""Run the daemon with one duty that always fails. Usage: failing_duty.py NAME [IGNORED…]"""

from __future__ import annotations

import dataclasses
import sys

from yolo_fs.cli.main import run
from yolo_fs.services.daemon import daemon


def fail(_daemon: daemon.Daemon) -> float:
    raise ZeroDivisionError(sys.argv[1])


if __name__ == "__main__":
    assert sys.argv[1] in [duty.name for duty in daemon.DUTIES]
    daemon.DUTIES = tuple(
        dataclasses.replace(duty, run=fail) if duty.name == sys.argv[1] else duty
        for duty in daemon.DUTIES
    )
    sys.exit(run(["run", "--json"]))
