"""Looks at a process from outside, through /proc: memory, descriptors, threads, processor time.

Linux only.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class Look(NamedTuple):
    """One look at a process and all below it."""

    at_s: float
    memory_mib: float
    """Resident, of the process itself."""
    descriptors: int
    threads: int
    children: int
    below_mib: float
    """Resident, of the largest process below it: the observer, while it answers and follows."""


@dataclass(slots=True)
class Meter:
    """Looks at a process again and again."""

    looks: list[Look] = field(default_factory=list)

    def look(self, pid: int) -> None:
        """Look once; a process that is just being killed is not seen."""
        with contextlib.suppress(OSError, ValueError, StopIteration):
            status = dict(_lines(f"/proc/{pid}/status"))
            open_files = len(os.listdir(f"/proc/{pid}/fd"))
            below = descendants(pid)
            self.looks.append(
                Look(
                    time.monotonic(),
                    resident_mib(pid),
                    open_files,
                    int(status["Threads"]),
                    len(below),
                    max(map(resident_mib, below), default=0),
                )
            )

    def settled(self, warm_up: float) -> list[Look]:
        """Return the looks after the first part `warm_up` of the time, 0 to 1."""
        if not self.looks:
            return []
        begin, end = self.looks[0].at_s, self.looks[-1].at_s
        return [one for one in self.looks if one.at_s >= begin + warm_up * (end - begin)]


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process; 0 for one that has ended."""
    with contextlib.suppress(OSError, KeyError):
        return int(dict(_lines(f"/proc/{pid}/status"))["VmRSS"].split()[0]) / 1024
    return 0


def slope_per_hour(looks: Sequence[Look], of: Callable[[Look], float]) -> float:
    """Return by how much something grows in an hour: the straight line with the least squares."""
    if len(looks) < 2:
        return 0.0
    mean_t = sum(one.at_s for one in looks) / len(looks)
    mean_v = sum(of(one) for one in looks) / len(looks)
    spread = sum((one.at_s - mean_t) ** 2 for one in looks)
    return (
        3600 * sum((one.at_s - mean_t) * (of(one) - mean_v) for one in looks) / spread
        if spread
        else 0.0
    )


def processor_s(pid: int) -> float:
    """Return the processor time of a process and of all below it, also of those that have ended."""
    total = 0
    for each in (pid, *descendants(pid)):
        with contextlib.suppress(OSError, IndexError, ValueError):
            with open(f"/proc/{each}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))  # its own, and of its children that have ended
    return total / TICKS


def descendants(pid: int) -> list[int]:
    """Return the processes below one."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in map(int, file.read().split()):
                    found += [child, *descendants(child)]
    return found


def _lines(path: str) -> Iterator[tuple[str, str]]:
    with open(path) as file:
        for line in file:
            name, _, value = line.partition(":")
            yield name, value.strip()
