"""Prints every benchmark the same way: Markdown tables, the machine above them."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from yolo_fs.system.system import filesystem_type


@dataclass(frozen=True, slots=True)
class Goal:
    """What was aimed at, and what came out."""

    name: str
    measured: float
    target: float
    at_least: bool = False
    """The target is a lower bound; otherwise an upper bound."""
    spread: str = ""
    """The middle half of what was measured: how noisy the machine was."""
    beside: str = ""
    """The floor or the peer that it was measured beside, in this run."""

    @property
    def is_met(self) -> bool:
        """Whether the measured value is on the right side of the target."""
        return self.measured >= self.target if self.at_least else self.measured <= self.target


@dataclass(frozen=True, slots=True)
class Table:
    """One table of results."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()
    """What the rows are, where they are goals."""
    absent: tuple[str, ...] = ()
    """Peers that were not there, each with what it would take."""


GOAL_COLUMNS = ("goal", "target", "measured", "middle half", "beside", "")


def goal_table(title: str, goals: Sequence[Goal]) -> Table:
    """Return goals as a table."""
    return Table(title, GOAL_COLUMNS, tuple(goal_row(goal) for goal in goals), goals=tuple(goals))


def goal_row(goal: Goal) -> tuple[str, ...]:
    """Return the cells of a goal."""
    return (
        goal.name,
        f"{'≥' if goal.at_least else '≤'} {goal.target:g}",
        times(goal.measured),
        goal.spread,
        goal.beside,
        "met" if goal.is_met else "MISSED",
    )


def render(table: Table) -> str:
    """Return a table as Markdown with aligned columns."""
    cells = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    lines = [_line(row, widths) for row in cells]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    notes = [f"* {note}" for note in table.notes]
    return "\n".join(
        [f"### {table.title}", "", lines[0], rule, *lines[1:], *([""] if notes else []), *notes, ""]
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return (
        "| "
        + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
        + " |"
    )


def ms(seconds: float) -> str:
    """Return a time in milliseconds, three digits."""
    return _short(seconds * 1000)


def times(ratio: float) -> str:
    """Return a ratio, two or three digits."""
    return _short(ratio)


def rate(per_second: float) -> str:
    """Return a rate as a whole number."""
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.1f}"


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def machine(place: str) -> str:
    """Return one paragraph on what this is measured with."""
    git = subprocess.run(
        ["git", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return (
        f"{_cpu()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}, "
        f"{filesystem_type(place) or 'unknown file system'}, Python "
        f"{platform.python_version()}, {git}, load {load()}"
    )


def load() -> str:
    """Return the load of the last 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")),
                "",
            )
    except OSError:
        return platform.processor()
