"""What is costly to make and only read afterwards, made by one of the workers that run the tests at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that `make` has filled, the first time that any worker of this run asks for it."""
    of_worker = factory.getbasetemp()
    base = of_worker.parent if "PYTEST_XDIST_WORKER" in os.environ else of_worker
    folder = base / "made once" / name
    folder.parent.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not Path(f"{folder}.made").exists():
            folder.mkdir()
            make(folder)
            Path(f"{folder}.made").touch()
    return folder
