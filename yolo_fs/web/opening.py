"""Opens the user's browser at an address that nobody else may read.

All users of the machine see the arguments of every command, so the browser gets the path of a file
that redirects.
"""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from pathlib import Path
from signal import SIG_DFL, SIGHUP, SIGTERM, getsignal, signal
from tempfile import TemporaryDirectory

PATIENCE_S = 120.0
"""How long to wait for a browser. Then the address is invalid, and its file is removed."""


def leading_to(address: str) -> str:
    """Return a page that redirects to an address at once."""
    to = escape(address, quote=True)
    return (
        '<!DOCTYPE html>\n<meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={to}"><title>yolo-fs board</title>'
        f'<a href="{to}">The board</a>\n'
    )


@contextmanager
def told_to_end() -> Iterator[None]:
    """Let a signal that would end the process end the context first, with all its cleanup.

    An ignored signal, as under `nohup`, stays ignored.
    """

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    numbers = [candidate for candidate in (SIGTERM, SIGHUP) if getsignal(candidate) == SIG_DFL]
    for number in numbers:
        signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal(number, SIG_DFL)


@contextmanager
def browser_opened(address: str, is_spent: threading.Event) -> Iterator[None]:
    """Open the browser by a file that this user alone can read.

    The file is removed once `is_spent` is set, after a timeout, and at the end; `is_spent` is set
    then.
    """
    try:
        folder = TemporaryDirectory(prefix="yolo-fs-board-", ignore_cleanup_errors=True)
        path = os.path.join(folder.name, "open.html")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(leading_to(address))
    except OSError as error:
        print(f"no browser was opened: {error.strerror}; open the address", file=sys.stderr)
        yield
        return

    def close(patience_s: float) -> None:
        is_spent.wait(patience_s)
        is_spent.set()
        folder.cleanup()

    # Some browsers block until they end, and the board has to answer them meanwhile.
    opening = partial(webbrowser.open, Path(path).as_uri())
    threading.Thread(target=opening, daemon=True).start()
    threading.Thread(target=close, args=(PATIENCE_S,), daemon=True).start()
    try:
        yield
    finally:
        close(0)
