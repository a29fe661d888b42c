"""How long our hooks take as the real hosts themselves tell it: with the daemon and its observer, and without;
one session, and three in one repository at once.

Claude Code writes the time of each hook into its log. Codex says when a hook begins and when it has ended; the times
between are ours.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.rounds import Sample
from bench.table import Table, ms
from tests.e2e.daemon import until
from tests.hosts.install import Programs
from tests.hosts.model import Say, Shell, Step, Write
from tests.hosts.stage import PHASE, Session, Stage
from yolo_fs.system.ask import answers

HOSTS = ("claude", "codex")
AT_ONCE = 3
HEATS = ("warm", "cold")
"""With a daemon whose observer answers; with none, so that each hook imports what it needs."""
WRITES = 2
"""Commands, and artifacts, of each session."""


class Taken(NamedTuple):
    """One hook as its host tells of it."""

    event: str
    heat: str
    sessions: int
    seconds: float


def measure(programs: Programs, rounds: int) -> Iterator[Table]:
    """Play sessions in both hosts, one host after the other, and yield a table for each.

    Raises:
        AssertionError: a session did not end well, or a host told nothing of our hooks.
    """
    for host in HOSTS:
        with tempfile.TemporaryDirectory(prefix="hosts-", ignore_cleanup_errors=True) as place:
            stage = Stage(Path(place), programs, host)
            try:
                yield _table(host, list(_played(stage, rounds)))
            finally:
                stage.close()


def _played(stage: Stage, rounds: int) -> Iterator[Taken]:
    numbers = iter(range(2, 99))
    _sessions(stage, [next(numbers)])  # a host's own first start is no measure of ours
    for heat in HEATS:
        if heat == "cold":
            stage.ours("stop")
        else:
            until(lambda: answers(str(stage.root / ".git/yolo-fs")), "the observer answers")
        for _ in range(rounds):
            for count in (1, AT_ONCE):
                for session in _sessions(stage, [next(numbers) for _ in range(count)]):
                    for event, seconds in _named(session):
                        yield Taken(event, heat, count, seconds)


def _sessions(stage: Stage, numbers: Sequence[int]) -> list[Session]:
    """Play sessions at once, each with plans of its own."""
    with ThreadPoolExecutor(len(numbers)) as pool:
        ended = list(pool.map(lambda number: _session(stage, number), numbers))
    assert all(session.code == 0 for session in ended), ended
    return ended


def _session(stage: Stage, number: int) -> Session:
    steps = (*_steps(stage, number), Say(), Say())
    return stage.run(stage.script(f"measured{number}", *steps))


def _steps(stage: Stage, number: int) -> Iterator[Step]:
    example = (stage.team.examples / "plan/ok/first_wave.jsonl").read_text().splitlines()
    for turn in range(WRITES):
        yield Shell("echo x")
        head = json.loads(example[0]) | {"n": f"{number:02}"}
        head["obj"] += f", {turn}"
        name = f"{PHASE}/01-{number:02}.plan.jsonl"
        text = "\n".join((json.dumps(head), *example[1:], ""))
        # One host lets nobody write over what he has not read: the second time it is a command.
        yield Write(name, text) if turn == 0 else Shell(f"cat > {name} <<'E'\n{text}E")


def _named(session: Session) -> Iterator[tuple[str, float]]:
    """Yield each hook of a session with what it was about: before and after a tool, by turns."""
    seen: Counter[str] = Counter()
    for event, seconds in session.hooks:
        about = ""
        if event.endswith("ToolUse"):
            about = ", a planning file" if seen[event] % 2 else ", elsewhere"
        if event == "Stop":
            about = ", once sent back" if seen[event] else ""
        seen[event] += 1
        yield f"{event}{about}", seconds


def _table(host: str, taken: Sequence[Taken]) -> Table:
    events = dict.fromkeys(each.event for each in taken)
    assert events, "the host told nothing of our hooks"
    columns = [(heat, count) for heat in HEATS for count in (1, AT_ONCE)]
    rows = tuple(
        (event, *(cell for heat, count in columns for cell in _cells(taken, event, heat, count)))
        for event in events
    )
    names = (
        f"{heat}, {count}: {part}" for heat, count in columns for part in ("p50 ms", "p95 ms", "n")
    )
    how = "by its own log" if host == "claude" else "from its 'hook: …' to its 'hook: … Completed'"
    return Table(
        f"Hooks inside {host}",
        ("hook", *names),
        rows,
        (
            f"{how}; 1, {AT_ONCE}: sessions in one repository at once; n: how many",
            "warm: the daemon's observer answers; cold: no daemon runs",
        ),
    )


def _cells(taken: Sequence[Taken], event: str, heat: str, count: int) -> Iterator[str]:
    wanted = (event, heat, count)
    sample = Sample([each.seconds for each in taken if each[:3] == wanted])
    there = sample.times_s
    yield from (ms(sample.p50), ms(sample.quantile(0.95))) if there else ("", "")
    yield str(len(there))
