"""Lets one duty of the daemon, or of its observer, always fail: the one that the environment names."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from yolo_fs.daemon import daemon, follower
from yolo_fs.daemon.duties import Duty

NAME = "FAILING_DUTY"
_ALL: tuple[Duty[Any], ...] = (*daemon.DUTIES, *follower.FOLLOWING)
DUTIES = tuple(duty.name for duty in _ALL)
"""The names of the duties of the daemon and of its observer."""


def prepare() -> None:
    from yolo_fs.observer import following

    assert os.environ[NAME] in DUTIES
    daemon.DUTIES = with_a_fault(daemon.DUTIES)
    following.FOLLOWING = with_a_fault(follower.FOLLOWING)  # type: ignore[attr-defined]


def with_a_fault(duties: tuple[Duty[Any], ...]) -> tuple[Duty[Any], ...]:
    return tuple(
        dataclasses.replace(duty, run=fail) if duty.name == os.environ[NAME] else duty
        for duty in duties
    )


def fail(_owner: object) -> float:
    raise ZeroDivisionError(os.environ[NAME])
