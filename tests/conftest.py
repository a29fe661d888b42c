"""What holds for every test."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from tests.support.sample import (
    draw_seed,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
)

__all__ = ["pytest_collection_modifyitems", "pytest_terminal_summary"]

# An observer beside each daemon would cost the suite minutes; `tests/e2e/test_observer.py` has them.
os.environ.setdefault("YOLO_FS_COLD", "1")

if "XDG_STATE_HOME" not in os.environ:  # the key that seals indexes is not made in the user's own
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="yolo-fs-state-")
    atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# Whoever starts the tests in the background of a shell has them ignore Ctrl-C, which many of them type.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # each full collection walks over all tests there are


def pytest_collection_finish() -> None:
    """Collect garbage again, but never walk over the tests themselves, which stay to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the program found by its name, as where a user has installed it."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")


@pytest.fixture
def no_second_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file system without hard links, such as exFAT."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Forget the identity that a command within this process has taken from a test's environment."""
    for name in [name for name in os.environ if name.startswith("YOLO_FS_GIT_")]:
        del os.environ[name]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--within", type=float, metavar="SECONDS", help="begin no test after that many"
    )


def pytest_configure(config: pytest.Config) -> None:
    draw_seed()
    seconds = config.getoption("within")
    if seconds is not None:
        config.pluginmanager.register(_Within(seconds))


class _Within:
    """Leaves out, as skipped, what would begin too late."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._why = f"not begun within {seconds:g} s"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if time.monotonic() > self._end:
            pytest.skip(self._why)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()
