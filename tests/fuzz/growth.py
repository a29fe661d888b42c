"""How time and memory grow with the size of hostile input: a line fitted through measurements, nothing asserted."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from yolo_fs.system.front_matter import MAX_FRONT_MATTER_CHARS, read_front_matter
from yolo_fs.system.readers import read_lines
from yolo_fs.system.text_checks import Limits

KIB = 1 << 10
_ROUNDS = 5


class Growth(NamedTuple):
    """What happens to one kind of input as it grows."""

    reader: str
    unit: str
    time_slope: float
    """Exponent of the size in the time: 1 is linear, 2 is quadratic."""
    memory_slope: float
    ms_per_mib: float
    """At the largest size."""
    bytes_per_byte: float
    """Peak of memory at the largest size, in sizes of the input."""


_LONG = (b'"', b'\\"', b"9", b"1e9,", b"\\ud800", b"\xff", b"\0", b"a ")
_MANY = (
    b'{"a":1}\n',
    b"{}\n",
    b"  \n",
    b"[",
    b"[[],",
    b'{"a":',
    b'{"a":"\\ud800"}\n',
    b"[]\n",
    b"\xff\n",
)
"""Limited in number as well, so that less of them is read."""
_PACKETS = (
    b"  k%d: v\n",
    b"a",
    b"'",
    b'"',
    b"[",
    b"- ",
    b"&a ",
    b": ",
    b"#",
    b"? ",
    b"  a: b\n",
    b"\\",
)


def measured() -> Iterator[Growth]:
    """Yield the growth of each kind of input, of JSONL up to 4 MiB and of front matter up to its limit."""
    wide = Limits(max_line_bytes=8 << 20)
    for unit in (*_LONG, *_MANY):
        sizes = (
            (256 * KIB, 1024 * KIB, 4096 * KIB)
            if unit in _LONG
            else (16 * KIB, 64 * KIB, 256 * KIB)
        )
        yield _growth("lines", unit, sizes, lambda data: read_lines(data, "x", wide), _repeat)
    largest = MAX_FRONT_MATTER_CHARS - KIB
    for unit in _PACKETS:
        sizes = (largest // 16, largest // 4, largest)
        yield _growth(
            "front matter", unit, sizes, lambda data: read_front_matter(data, "x"), _packet
        )


def _repeat(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit)) + b"\n"


def _packet(unit: bytes, size: int) -> bytes:
    if b"%d" in unit:
        inner = b"".join(unit % number for number in range(size // 12))
    elif unit.endswith(b"\n"):
        inner = unit * (size // len(unit))
    else:
        inner = b"  a: " + unit * (size // len(unit)) + b"\n"
    return b"---\nhandoff:\n" + inner + b"---\n"


def _growth(
    reader: str,
    unit: bytes,
    sizes: Sequence[int],
    read: Callable[[bytes], Any],
    make: Callable[[bytes, int], bytes],
) -> Growth:
    data = [make(unit, size) for size in sizes]
    times = [min(_seconds(read, one) for _ in range(_ROUNDS)) for one in data]
    peaks = [_peak(read, one) for one in data]
    lengths = [len(one) for one in data]
    mib = lengths[-1] / KIB / KIB
    return Growth(
        reader, repr(unit)[1:], slope(lengths, times), slope(lengths, peaks),
        times[-1] * 1000 / mib, peaks[-1] / lengths[-1],
    )  # fmt: skip


def _seconds(read: Callable[[bytes], Any], data: bytes) -> float:
    began = time.perf_counter()
    read(data)
    return time.perf_counter() - began


def _peak(read: Callable[[bytes], Any], data: bytes) -> float:
    tracemalloc.start()
    try:
        read(data)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the line of least squares through the logarithms."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(value, 1e-9)) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)
