"""Shows on a terminal how far long work is; elsewhere, and where it is soon over, nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

PATIENCE_S = 0.5
"""How long work may take before anything is shown."""
_EVERY_S = 0.1
_CELLS = 24
CLEARED = "\r\x1b[K"
"""Takes away what stands on the line of a terminal."""
_Item = TypeVar("_Item")


def watched(
    items: Iterable[_Item],
    what: str,
    total_of: Callable[[_Item], int] | None = None,
    *,
    quiet: bool = False,
) -> Iterator[_Item]:
    """Yield the items, and show on stderr how many there were. `total_of`: how many there are in
    all, by any of them.
    """
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    due = time.monotonic() + PATIENCE_S
    shown = False
    try:
        for number, item in enumerate(items, 1):
            if time.monotonic() >= due:
                shown, due = True, time.monotonic() + _EVERY_S
                total = total_of(item) if total_of else 0
                print(f"{CLEARED}{bar(number, total)} {what}", end="", file=sys.stderr, flush=True)
            yield item
    finally:
        if shown:
            print(CLEARED, end="", file=sys.stderr, flush=True)


def bar(number: int, total: int) -> str:
    """Return how far it is, as a bar where the total is known."""
    if total <= 0:
        return str(number)
    full = _CELLS * min(number, total) // total
    return f"[{'#' * full}{'.' * (_CELLS - full)}] {number} of {total}"
