"""Draws `status` to fit the terminal: first what needs a person, then what an agent mends and what
stands in the way, then the state of the team.

Symbols and words carry all information; colour only repeats it. What does not fit is counted, and
`-v` shows everything.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.artifacts.verdicts import CandidateState, Held, Rejected
from yolo_fs.cli.board import LEGEND, MANY, beginning, draw_steps, height_of_steps, not_begun
from yolo_fs.cli.inbox import lines_of
from yolo_fs.cli.reply import Reply, build_rich_console, console_for
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import safe
from yolo_fs.core.timestamps import local
from yolo_fs.escalations.log import act_of, waiting_for
from yolo_fs.git.repository import Repository
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.progress.board import PhaseBoard
from yolo_fs.progress.drift import FORGED, WorkTreeNotes
from yolo_fs.protocol.departments import Role
from yolo_fs.snapshots.inbox import COMMAND_LENGTH, TOLD_ELSEWHERE
from yolo_fs.snapshots.snapshot import PastSnapshot, PresentSnapshot, stamp
from yolo_fs.team.reconcile import headline, obstructions

if TYPE_CHECKING:
    from rich.console import Console


LEAST_ROWS = 12
"""A smaller terminal scrolls."""
_WANTED = 8
"""Maximum number of lines for all that comes before the phase, without headings."""
_LEAST = 2
"""Lines that each part of it keeps, however long an earlier one is."""
_GATE_LACKS = 1


class ScreenLine(NamedTuple):
    """One line, or one drawing of several rows."""

    text: str = ""
    style: str = ""
    draw: Callable[[Console], None] | None = None
    rows: int = 1
    is_command: bool = False
    """It is copied: drawn whole, over as many rows as it takes."""


class WantedPart(NamedTuple):
    """What one reader has to see before anything else."""

    heading: ScreenLine
    lines: list[ScreenLine]
    is_listed_below: bool = False


def draw_screen(
    console: Console, seen: PresentSnapshot | PastSnapshot, rows: int, at_work: Sequence[str] = ()
) -> None:
    """Draw a state within `rows` rows of the terminal; the last row stays free for the prompt.

    `at_work`: what is said of the runs that go on.
    """
    blocks = [
        [_with_rows(line, console.width) for line in block]
        for block in _blocks(seen, console.width, at_work)
    ]
    left = max(LEAST_ROWS, rows) - 1
    for block in blocks:
        for line in _fitting(block, left):
            left -= line.rows
            if line.draw:
                line.draw(console)
            elif line.is_command:
                console.print(safe(line.text, COMMAND_LENGTH), style=line.style, soft_wrap=True)
            else:
                text = safe(line.text, console.width)
                console.print(text, style=line.style, no_wrap=True, overflow="ellipsis", crop=True)


def _with_rows(line: ScreenLine, width: int) -> ScreenLine:
    return line._replace(rows=-(-len(line.text) // width)) if line.is_command else line


def draw_wanted(console: Console, seen: PresentSnapshot, *, verbose: bool) -> None:
    """Print all that needs somebody, for the reader of a pipe: agents read the first lines.

    `verbose`: without a limit. What is refused is listed once more below, with all its faults.
    """
    for part in _wanted(seen, sys.maxsize if verbose else MANY):
        console.print(part.heading.text, style=part.heading.style)
        lines, more = part.lines, len(part.lines) - MANY
        if part.is_listed_below and more > 0 and not verbose:
            lines = [*lines[:MANY], ScreenLine(f"  … {more} more, which are counted below", "dim")]
        for line in lines:
            length = COMMAND_LENGTH if line.is_command else 600
            console.print(safe(line.text, length), style=line.style, soft_wrap=True)
        console.print()


def _fitting(block: Sequence[ScreenLine], left: int) -> Iterator[ScreenLine]:
    """Yield the lines of a block that fit; the last one counts those that do not."""
    for at, line in enumerate(block):
        others = sum(later_line.rows for later_line in block[at:])
        if line.rows > left or (line.rows == left and others > left):
            if left > 0:
                yield ScreenLine(f"… {len(block) - at} more lines (-v shows them)", "dim")
            return
        left -= line.rows
        yield line


def _blocks(
    seen: PresentSnapshot | PastSnapshot, width: int, at_work: Sequence[str]
) -> Iterator[Iterable[ScreenLine]]:
    """Yield what is to be shown, the most important first."""
    if isinstance(seen, PresentSnapshot):
        yield from _shortened(_wanted(seen, MANY))
    more = _more(len(at_work[_WANTED:]))
    yield [*(ScreenLine(line, "cyan") for line in at_work[:_WANTED]), *more]
    phases = seen.team.phases if seen.team else ()
    open_ = [phase for phase in phases if not phase.is_complete]
    for phase in open_[:1] or phases[-1:]:
        yield _phase(phase, width)
    yield _others(phases, open_)
    if isinstance(seen, PresentSnapshot) and (waits := not_begun(seen.report.root, seen.team)):
        yield [ScreenLine(waits)]
    if not phases and isinstance(seen, PresentSnapshot):
        yield [ScreenLine(beginning(seen.report.root))]
    yield _draw_foot(seen)


def _shortened(parts: Sequence[WantedPart]) -> Iterator[Iterable[ScreenLine]]:
    """Yield the parts with as many lines as there is room for, and the number of the others."""
    left = _WANTED
    for at, (heading, lines, _) in enumerate(parts):
        kept = sum(min(len(later.lines), _LEAST) for later in parts[at + 1 :])
        shown = lines[: max(left - kept, _LEAST)]
        left -= len(shown)
        yield [heading, *shown, *_more(len(lines) - len(shown))]


def _more(count: int) -> Iterator[ScreenLine]:
    if count:
        yield ScreenLine(f"  … {count} more (-v shows them)", "dim")


def _wanted(seen: PresentSnapshot, most_drifts: int) -> tuple[WantedPart, ...]:
    """Return each part that has lines. Nothing needs a person but what `inbox` lists."""
    item_ids = {item.id for item in seen.inbox}
    parts = (
        WantedPart(ScreenLine("Needs a person", "bold yellow"), [*_questions(seen)]),
        WantedPart(
            ScreenLine("In the way", "bold yellow"),
            [*_in_the_way(seen, item_ids, most_drifts)],
        ),
        WantedPart(
            ScreenLine("Rejected: an agent has to fix these", "bold red"),
            [
                _refusal(candidate.path, candidate.verdict)
                for candidate in seen.report.with_standing(CandidateState.REJECTED)
            ],
            is_listed_below=True,
        ),
    )
    return tuple(part for part in parts if part.lines)


def _questions(seen: PresentSnapshot) -> Iterator[ScreenLine]:
    for item in seen.inbox:
        if item.kind not in TOLD_ELSEWHERE:
            style = "red" if item.kind == "credential" else "yellow"
            for question, command in lines_of((item,)):
                yield ScreenLine(f"  ! {question}", style)
                yield ScreenLine(f"    {command}", is_command=True)


def _in_the_way(
    seen: PresentSnapshot, item_ids: set[str], most_drifts: int
) -> Iterator[ScreenLine]:
    for phase in seen.team.phases if seen.team else ():
        for escalation in phase.escalations:
            if escalation.is_open and escalation.holder is not Role.USER:
                does, command = act_of(escalation)
                yield ScreenLine(f"  ! {waiting_for(escalation.agent, does)}", "yellow")
                if command:
                    yield ScreenLine(f"    {command}", is_command=True)
    yield from _wanted_beside(seen.beside, most_drifts)
    for stall in seen.crew.stalls if seen.crew else ():
        yield ScreenLine(f"  ! stalled: {stall}", "red")
    for sentence in obstructions(seen.machines, local) if seen.machines else ():
        yield ScreenLine(f"  ! {sentence}", "yellow")
    if seen.report.verification and not seen.report.verification.passed:
        yield ScreenLine(f"  ! {seen.report.verification.sentence}", "red")
    if seen.report.obstacle and seen.report.obstacle.value not in item_ids:
        yield ScreenLine(f"  ! no commits: {seen.report.obstacle.sentence}", "yellow")
    for candidate in seen.report.with_standing(CandidateState.HELD):
        if candidate.path not in item_ids:
            yield _refusal(candidate.path, candidate.verdict)


def _wanted_beside(all_notes: Iterable[WorkTreeNotes], most_drifts: int) -> Iterator[ScreenLine]:
    """Yield what the work tree says and history does not."""
    drifts = list[tuple[str, str]]()
    for notes in all_notes:
        place = f"{notes.phase}: " if notes.phase else ""
        drifts += [(f"  ! drift: {place}{drift}", drift.command) for drift in notes.drifts]
        for name in notes.forged:
            yield ScreenLine(f"  ! forged: {place}{name} {FORGED}", "red")
        for department, sentence in notes.blockers:
            yield ScreenLine(f"  ! blocker: {place}{department} reports {sentence}", "yellow")
        for late in notes.handoffs:
            yield ScreenLine(f"  ! overdue: {place}{late}", "yellow")
    for text, _ in drifts[:most_drifts]:
        yield ScreenLine(text, "yellow")
    for command in dict.fromkeys(command for _, command in drifts[:most_drifts]):
        yield ScreenLine(f"    {command}", is_command=True)
    if more := len(drifts[most_drifts:]):
        yield ScreenLine(f"  … {more} more drifts: -v shows them", "dim")


def _refusal(path: str, verdict: object) -> ScreenLine:
    name = path.rpartition("/")[2]
    if isinstance(verdict, Rejected):
        first = verdict.findings[0]
        place = f" {first.place_in_file}".rstrip()
        more = len(verdict.findings) - 1
        others = f"(+{more}: yolo-fs validate) " if more else ""
        why = f"{first.reason.value}: {others}{first.fault}"
        return ScreenLine(f"  x {name}{place}: {why}", "red")
    reason = verdict.reason.sentence if isinstance(verdict, Held) else ""
    return ScreenLine(f"  = {name} held: {reason}", "yellow")


def _phase(phase: PhaseBoard, width: int) -> Iterator[ScreenLine]:
    progress = phase.progress
    yield ScreenLine(progress.headline, "green" if progress.is_complete else "bold")
    shown = progress.as_shown()
    height = height_of_steps(shown, width)
    yield ScreenLine(draw=lambda console: draw_steps(console, shown), rows=height)
    yield ScreenLine(f"  {LEGEND}", "dim")
    for department in progress.departments:
        if not department.is_complete:
            yield ScreenLine(f"  {_turn(department)}")
    open_ = [gate.name for gate in phase.gates if gate.is_open]
    if open_:
        yield ScreenLine(f"  gates open: {', '.join(open_)}", "green")
    for gate in phase.gates:
        if not gate.is_open:
            yield ScreenLine(f"  gate {gate.name} closed: {_lacks(gate, phase)}", "yellow")
    yield ScreenLine(f"  {phase.sign_off.sentence}")
    if left := phase.pace.sentence:
        yield ScreenLine(f"  {left}", "dim")
    if progress.next and progress.next.command:
        runs = f"  {progress.next.agent} runs: {progress.next.command}"
        yield ScreenLine(runs, is_command=True)


def _turn(status: DepartmentStatus) -> str:
    name = status.department.value
    if status.blockers:
        return f"{name} waits: {status.blockers[0]}"
    if status.next is None:
        return f"{name} waits"
    why = f": {status.next.why}" if status.next.why else ""
    return f"{name}: {status.next.sentence}{why}"


def _lacks(gate: GateStatus, phase: PhaseBoard) -> str:
    first = "; ".join(map(str, gate.missing[:_GATE_LACKS]))
    more = len(gate.missing) - _GATE_LACKS
    why = f"yolo-fs gate why {gate.name} --phase {phase.facts.spelled}"
    return f"{first} (+{more}: {why})" if more > 0 else first


def _others(phases: Sequence[PhaseBoard], open_: Sequence[PhaseBoard]) -> Iterator[ScreenLine]:
    for phase in open_[1:]:
        yield ScreenLine(phase.progress.headline)
    done = len(phases) - len(open_)
    if open_ and done:
        yield ScreenLine(f"{done} phases complete", "green")


def _draw_foot(seen: PresentSnapshot | PastSnapshot) -> Iterator[ScreenLine]:
    if isinstance(seen, PresentSnapshot):
        counts = seen.report.counts
        summary = ", ".join(
            f"{counts[state]} {state.value}" for state in CandidateState if counts[state]
        )
        if deleted := len(seen.report.deleted):
            summary += f", {deleted} deleted from the work tree"
        pid = seen.report.health.pid
        daemon = f"daemon {pid}" if pid else "no daemon: yolo-fs start"
        branch = seen.report.head.branch or "detached HEAD"
        yield ScreenLine(f"{summary or 'no artifacts yet'} · {branch} · {daemon}", "dim")
        last = seen.report.last
        if seen.machines:
            yield ScreenLine(headline(seen.machines), "dim")
    else:
        last = seen.last
    for commit in last[:3]:
        yield ScreenLine(f"  {commit.oid[:SHORT]}  {commit.subject}", "dim")


LOOK_EVERY_S = 0.5
"""Interval at which HEAD, the listing of the planning tree and the daemon's lock are compared."""


def follow(repository: Repository, look: Callable[[], tuple[str, bool]]) -> None:
    """Show the text of `look`, and again whenever it changes, until interrupted or `q` is typed.

    `look`: returns a text, and whether time alone will change it; otherwise it is called again when
    HEAD, the planning tree, the daemon or the window changed.
    """
    import shutil  # brings four compressors along, and only a page has a width

    before: object = None
    shown, moves = "", True
    with _page() as put, _keys() as heard:
        while True:
            now = stamp(repository), shutil.get_terminal_size()
            if moves or now != before:
                before = now
                text, moves = look()
                if text != shown:
                    shown = text
                    put(text)
            if _is_told_to_quit(heard, LOOK_EVERY_S):
                return


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """Yield a descriptor that delivers single keys; None without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield None
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _is_told_to_quit(heard: int | None, within_s: float) -> bool:
    """Wait, and return whether `q` was typed or the terminal was closed."""
    if heard is None:
        time.sleep(within_s)
        return False
    if not select.select([heard], [], [], within_s)[0]:
        return False
    typed = os.read(heard, 64)
    return not typed or b"q" in typed.lower()


@contextlib.contextmanager
def _page() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text in place of the last one, or below it without a
    terminal.
    """
    console = console_for(sys.stdout)
    if not console.is_terminal or console.is_dumb_terminal:  # which has no place to go back to
        yield _put_below
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)


def _put_below(text: str) -> None:
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def drawn(reply: Reply) -> str:
    """Return the text of a reply, with the terminal's colours and width if there is one."""
    text = io.StringIO()
    terminal = console_for(sys.stdout)
    console = console_for(text)
    if terminal.is_terminal:
        width, height = terminal.width, terminal.height
        console = build_rich_console(text, force_terminal=True, width=width, height=height)
    if reply.show:
        reply.show(console)
    for finding in reply.findings:
        console.print(str(finding))
    return text.getvalue()
