"""The time of each regular expression and of each reader grows no faster than what it is given."""

from __future__ import annotations

import gc
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import pytest

from tests.security.patterns import Pattern, all_patterns, inputs_for
from tests.support.sample import ALL, sample_of
from yolo_fs.artifacts.catalogue import find_kind
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.misnamed import intended_path, misnamed
from yolo_fs.artifacts.naming import is_sound, nearest, purpose_of
from yolo_fs.artifacts.repair import mended
from yolo_fs.contexts.extractors import below
from yolo_fs.core.credentials import redact
from yolo_fs.core.ids import read_scope
from yolo_fs.core.reasons import safe, safe_lines
from yolo_fs.handoffs.envelopes import sentences_in
from yolo_fs.handoffs.packets import read_chat
from yolo_fs.handoffs.reading import block_of, fields_of, parse_log
from yolo_fs.hooks.touches import read_command
from yolo_fs.system.front_matter import read_front_matter
from yolo_fs.system.readers import read_lines, read_object
from yolo_fs.system.text_checks import Limits, read_text
from yolo_fs.system.toon import read_toon

CHARS = 64_000 if ALL else 8_000
"""What each pattern is given first; what takes long with it is looked at with sixteen times as much."""
NOTICED_S = 0.006 * CHARS / 8_000
"""Nothing that is quicker grows with the square of so many characters."""
FOREVER_S = 0.5 * CHARS / 8_000
COARSE_S = 0.04
"""Some kernels count the time of a processor in ticks of 4 ms."""
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
    gc.disable()  # a collection goes through all that other tests have left
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
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


def steadily(read: Callable[[str], object], text: str, most: float) -> float:
    """Return how much of a processor it takes, over so many times that a coarse clock can tell."""
    taken, times = 0.0, 0
    while taken < COARSE_S and times < 500:
        taken, times = taken + seconds_of(read, text, most), times + 1
    return taken / times


def grows_too_fast(
    read: Callable[[str], object], made: Callable[[int], str], chars: int, slower: int = 1
) -> bool:
    """Return whether much more takes far longer than that much longer, each time that it is tried.

    `slower`: how many times as slow as a pattern it may be.
    """
    noticed_s = NOTICED_S * slower
    if seconds_of(read, made(chars), FOREVER_S * slower) < noticed_s:
        return False
    while chars > FEWEST and seconds_of(read, made(chars), noticed_s) > noticed_s:
        chars //= 2
    for _ in range(4):
        once = steadily(read, made(chars), FOREVER_S * slower)
        most = WORST_RATIO * max(once, noticed_s / MORE)
        if once < FOREVER_S * slower and seconds_of(read, made(MORE * chars), most) < most:
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


def read_as(kind: str) -> Callable[[str], object]:
    known = find_kind(kind)
    assert known is not None
    return lambda text: mended(text.encode("utf-8", "replace"), known)


WIDE = Limits(max_line_bytes=8 << 20)
PLACE = ".yolo-planning/phases/01-auth/"
READERS: dict[str, Callable[[str], object]] = {
    "words of a shell": read_command,
    "lines": lambda text: read_lines(text.encode("utf-8", "replace"), "x", WIDE),
    "object": lambda text: read_object(text.encode("utf-8", "replace"), "x", WIDE),
    "front matter": lambda text: read_front_matter(text.encode("utf-8", "replace"), "x", WIDE),
    "a packet": lambda text: read_front_matter(
        f"---\nhandoff:\n  objective: {text}\n---\n".encode("utf-8", "replace"), "x", WIDE
    ),
    "toon": lambda text: read_toon(text.encode("utf-8", "replace"), "x", WIDE),
    "text": lambda text: read_text(text.encode("utf-8", "replace"), "x", WIDE),
    "repair of lines": read_as("critique"),
    "repair of an object": read_as("analysis"),
    "a chat": lambda text: read_chat(text.split("\n")),
    "a block of a handoff": lambda text: fields_of(block_of(text) or text),
    "a value of a handoff": lambda text: fields_of(
        block_of(f"---HANDOFF---\nSTATUS: {text}x") or ""
    ),
    "a subject": lambda text: (
        is_sound(text),
        purpose_of(text),
        nearest(text, ["chore(x): y"], "01-01"),
    ),
    "a scope": read_scope,
    "a path": lambda text: (
        classify(PLACE + text),
        misnamed(PLACE + text),
        intended_path(PLACE + text),
    ),
    "credentials": redact,
    "sentences": sentences_in,
    "a log of reads": parse_log,
    "a text that is shown": lambda text: (safe(text), safe_lines(text)),
    "headings": lambda text: list(below(text.split("\n"), "any")),
}
UNITS = (
    *"a0 \t\n-./\\'\"=:;,([{<>*#@~$&|`!\0\u202e\u00e9", "\r\n", "a ", " a", "a,", "a:", "a: ", "a\n", "- a\n", "# a\n",
    "{\n", "[1,", '{"a":', '"a",', '\\"', "\\'", "\\\\", "'a' ", "rm ", "git ", "cat a;", ">a ", "$a", "$(", "${", "$((", "((a) ",
    "<<E\n", "<<'E'\n", "a=x;", "a=$a$a;", "a+=x;", "cd a;", "{a,b}", "{a}", "if ", "env ", "sh -c 'a b' ", "eval 'a' ", "find -exec ",
    "python3 -c 'open(", "*** Add File: a\n", "*** Add File: \t", "---\n", "=== AUTO-HANDOFF ===\n", "---HANDOFF---\n", "STATUS:", "key: value\n", "  a: b\n", "&a ",
    "a[2]{b,c}: 1,2\n", "A: 1\n", "AB-", "00-a", "TODO. ", "/*", "//", "<!--", "feat(01-01): ", "eyJa.", "-----BEGIN ", "sk-a", "\\u0061",
    "password=", "READ a:",
)  # fmt: skip


@pytest.mark.timeout(900 if ALL else 120)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_takes_longer_than_its_text_grows(reader: str, rng: random.Random) -> None:
    read = READERS[reader]
    read("a: 1\n")  # what is imported and compiled once is none of it
    slow = [
        unit
        for unit in sample_of(UNITS, 16, rng)
        if grows_too_fast(read, Repeated(unit).of_length, CHARS, 12)
    ]
    assert slow == []


class Repeated(NamedTuple):
    """Something that is repeated."""

    unit: str

    def of_length(self, chars: int) -> str:
        return self.unit * (chars // len(self.unit))


PARTS = 4


@cache
def patterns() -> list[Pattern]:
    return all_patterns()


@pytest.mark.parametrize("part", range(PARTS))
def test_no_pattern_takes_longer_than_its_text_grows(part: int, rng: random.Random) -> None:
    slow = {}
    for pattern in sample_of(patterns()[part::PARTS], 16, rng):
        read = asking(pattern)
        for made in inputs_for(pattern):
            if grows_too_fast(read, made.of_length, CHARS):
                slow[pattern.place, pattern.method] = made
                break
    assert slow == {}


def test_the_patterns_of_code_tables_and_schemas_are_found() -> None:
    places = [pattern.place for pattern in patterns()]
    assert len(places) > 250
    for part in ("hook_fast.py", "naming.py", "_PARTS", "credentials", ".schema.json"):
        assert any(part in place for place in places), part


@pytest.mark.sampled(5)
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
