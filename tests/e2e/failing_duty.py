"""Lets one duty of the daemon always fail: the one that the environment names."""

from __future__ import annotations

import dataclasses
import os

from yolo_fs.services.daemon import daemon

NAME = "FAILING_DUTY"


def prepare() -> None:
    assert os.environ[NAME] in [duty.name for duty in daemon.DUTIES]
    daemon.DUTIES = tuple(
        dataclasses.replace(duty, run=fail) if duty.name == os.environ[NAME] else duty
        for duty in daemon.DUTIES
    )


def fail(_daemon: daemon.Daemon) -> float:
    raise ZeroDivisionError(os.environ[NAME])
