"""Counts calls in each process of a run: Python imports this at its start when the folder is on PYTHONPATH.

`YOLO_BENCH_COUNTS` names the folder that gets one file for each process: lines `CALLS NAME`. A NAME is
`MODULE:FUNCTION`; `MODULE:FUNCTION>flock` counts the locks that a function takes, by flock(2) itself or through one of the
helpers in `_LOCKING`.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import Counter
from types import CodeType, FrameType
from typing import Any

_FOLDER = os.environ.get("YOLO_BENCH_COUNTS", "")
_PACKAGES = ("yolo_fs", "filelock", "jsonlines", "git")
_LOCKING = frozenset({"try_lock", "open_locked", "wait_lock"})
"""Of `yolo_fs/system/system.py`: who calls them takes the lock."""

_calls: Counter[CodeType] = Counter()
_locks: Counter[CodeType] = Counter()
_os_exit = os._exit


def _count(frame: FrameType, event: str, argument: Any) -> None:
    if event == "call":
        _calls[frame.f_code] += 1
    elif event == "c_call" and argument.__name__ == "flock":
        _locks[_taker(frame)] += 1


def _taker(frame: FrameType) -> CodeType:
    while frame.f_code.co_name in _LOCKING and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code


def _name(code: CodeType) -> str:
    parts = code.co_filename.removesuffix(".py").split("/")
    first = next((part for part in _PACKAGES if part in parts), "")
    if not first:
        return ""
    last = len(parts) - 1 - parts[::-1].index(first)
    return f"{'.'.join(parts[last:])}:{code.co_qualname}"


def _write() -> None:
    sys.setprofile(None)
    lines = [f"{calls} {_name(code)}\n" for code, calls in _calls.items() if _name(code)]
    lines += [f"{calls} {_name(code)}>flock\n" for code, calls in _locks.items()]
    _calls.clear()
    _locks.clear()
    with open(f"{_FOLDER}/{os.getpid()}", "a", encoding="utf-8") as file:
        file.writelines(lines)


def _write_and_exit(code: int) -> None:
    _write()
    _os_exit(code)


if _FOLDER:
    atexit.register(_write)
    os._exit = _write_and_exit  # type: ignore[assignment]
    threading.setprofile(_count)
    sys.setprofile(_count)
