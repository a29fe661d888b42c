"""The time of each regular expression and of each reader grows no faster than what it is given."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from tests.security.patterns import Pattern, all_patterns, inputs_for

ALL = bool(os.environ.get("YOLO_SECURITY"))
CHARS = 64_000 if ALL else 8_000
"""What each pattern is given first; what takes long with it is looked at with sixteen times as much."""
NOTICED_S = 0.006 * CHARS / 8_000
"""Nothing that is quicker grows with the square of so many characters."""
FOREVER_S = 0.5 * CHARS / 8_000
FEWEST = 50
MORE, WORST_RATIO = 16, 80.0
"""Between linear (16) and quadratic (256)."""


class TooLongError(Exception):
    """Raised in what takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    def end(_number: int, _frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(read: Callable[[str], object], text: str, most: float = FOREVER_S) -> float:
    """Return how much of a processor it takes, infinity when that is more than the most."""
    began = time.process_time()
    try:
        with limited(most):
            read(text)
    except TooLongError:
        return float("inf")
    return time.process_time() - began


def grows_too_fast(read: Callable[[str], object], made: Callable[[int], str], chars: int) -> bool:
    """Return whether much more takes far longer than that much longer, each time that it is tried."""
    if seconds_of(read, made(chars)) < NOTICED_S:
        return False
    while chars > FEWEST and seconds_of(read, made(chars), 4 * NOTICED_S) > 4 * NOTICED_S:
        chars //= 2
    for _ in range(3):
        once = min(seconds_of(read, made(chars)) for _ in range(3))
        most = WORST_RATIO * max(once, NOTICED_S / MORE)
        if once < FOREVER_S and seconds_of(read, made(MORE * chars), most) < most:
            return False
    return True


def asking(pattern: Pattern) -> Callable[[str], object]:
    """Return what asks a pattern of a text in its own way; every occurrence, where it is looked for anywhere."""
    compiled = re.compile(pattern.text, pattern.flags)
    ask: Callable[..., object] = {
        "match": compiled.match,
        "fullmatch": compiled.fullmatch,
        "search": lambda text: sum(1 for _ in compiled.finditer(text)),
    }[pattern.method]
    if isinstance(pattern.text, bytes):
        return lambda text: ask(text.encode("utf-8", "replace"))
    return ask


@cache
def found() -> dict[str, list[Pattern]]:
    rooms: dict[str, list[Pattern]] = {}
    for pattern in all_patterns():
        rooms.setdefault(re.split(r"[/.:]", pattern.place.removeprefix("yolo_fs."))[0], []).append(
            pattern
        )
    return rooms


@pytest.mark.parametrize("room", sorted(found()))
def test_no_pattern_takes_longer_than_its_text_grows(room: str) -> None:
    slow = {}
    for pattern in found()[room]:
        read = asking(pattern)
        for made in inputs_for(pattern):
            if grows_too_fast(read, made.of_length, CHARS):
                slow[pattern.place, pattern.method] = made
                break
    assert slow == {}


def test_the_patterns_of_code_tables_and_schemas_are_found() -> None:
    places = [pattern.place for patterns in found().values() for pattern in patterns]
    assert len(places) > 250
    for part in ("hook_fast.py", "naming.py", "_PARTS", "credentials", ".schema.json"):
        assert any(part in place for place in places), part


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (r"\s*\s*x", "match"), (r"\w+@\w+", "search"), (r"(?:a|b|ab)*c", "match"),
        (r"\bgit\b.*\bcommit\b", "search"), (r"open\([^)]*,\s*'w", "search"),
    ],
)  # fmt: skip
def test_the_measure_itself_sees_a_pattern_that_takes_long(text: str, method: str) -> None:
    pattern = Pattern("x", text, 0, method)
    assert any(
        grows_too_fast(asking(pattern), made.of_length, CHARS) for made in inputs_for(pattern)
    )
