"""What the board costs and how soon it is there: first paint and sizes with many phases, and the daemon's writes
beside open pages. Drives Chromium, where there is one.
"""

from __future__ import annotations

import gzip
import itertools
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from bench import daemon, growth, repositories
from bench.options import Options
from bench.repositories import artifact, put
from bench.rounds import Sample, middle_half, ratios, time_goal
from bench.table import Goal, Table, goal_table, ms, times
from tests.web.browser import launched
from tests.web.watched import board_process

PAGES = 5
WRITES = 10
"""In each stretch with or without pages."""
PAUSE_S = (0.25, 0.35)
SETTLE_S = 1.5
"""For what opening and closing pages causes to be over."""
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_BARE = "data:text/html,<p>word"
_PHASE = "01-part"


def run(options: Options) -> Iterator[Table]:
    """Measure in a real browser, where one starts; the sizes without it."""
    phases = options.pick(95, 3)
    root = growth.make(options, phases, more_plans=options.pick(25, 1))
    count = len(repositories.git(root, "ls-files", ".yolo-planning").splitlines())
    title = f"{phases} phases, {count:,} artifacts"
    with board_process(root) as client:
        answers, report_bytes = _answers(client, root, options)
        yield Table(f"Board: answers, {title}", ("", "bytes", "compressed", "p50 ms"), answers)
        goals = [Goal("report, MB", report_bytes / 1e6, 5)]
        with _browser() as browser:
            if browser is None:
                yield goal_table("Goals: board", goals)
                return
            painted = _first_paints(client, browser, options.pick(8, 2))
    yield Table(
        f"Board: a page is opened, {title}",
        ("", "p50 ms", "p95 ms"),
        tuple((name, ms(one.p50), ms(one.quantile(0.95))) for name, one in painted.items()),
        ("from the beginning of the navigation; the board has looked before, and is at rest",),
    )
    floor, first, whole = painted.values()
    goals.append(time_goal("board: first paint", first, 500, floor))
    goals.append(time_goal("board: the team is on the screen", whole, 1000, floor))
    with _browser() as browser:
        alone, beside = _writes(browser, options)
    yield _writes_table(alone, beside)
    goals.append(
        Goal(
            f"write to commit, {PAGES} pages of the board / none",
            beside.p50 / alone.p50,
            1.1,
            spread=middle_half(ratios(beside.times_s, alone.times_s)),
            beside=f"{ms(alone.p50)} ms",
        )
    )
    yield goal_table("Goals: board", goals)


@contextmanager
def _browser() -> Iterator[Any]:
    """Lend a browser; None where there is none."""
    import pytest

    try:
        lent = launched()
        browser = lent.__enter__()
    except pytest.skip.Exception as none:
        print(none, file=sys.stderr)
        yield None
        return
    try:
        yield browser
    finally:
        lent.__exit__(None, None, None)


# --- sizes ---


def _answers(client: Any, root: str, options: Options) -> tuple[tuple[tuple[str, ...], ...], int]:
    page = b"".join(each.read_bytes() for each in (files("yolo_fs") / "web/static").iterdir())
    asks: dict[str, Callable[[], bytes]] = {
        "board, one phase whole": lambda: client.api("board", phase=_PHASE).body,
        "board, the last look": lambda: client.api("board", phase=_PHASE, soon="1").body,
        "board, everything": lambda: client.api("board").body,
        "board, a moment of the past": lambda: client.api("board", phase=_PHASE, at="HEAD~3").body,
        "artifacts": lambda: client.api("artifacts", at="HEAD").body,
        "timeline": lambda: client.api("timeline", phase=_PHASE).body,
    }
    rows = [("page, style and scripts", f"{len(page):,}", f"{len(gzip.compress(page, 3)):,}", "")]
    for name, ask in asks.items():
        body, taken = ask(), []
        for _ in range(options.pick(3, 1)):
            began = time.perf_counter()
            ask()
            taken.append(time.perf_counter() - began)
        size = f"{len(gzip.compress(body, 3)):,}"
        rows.append((name, f"{len(body):,}", size, ms(statistics.median(taken))))
    path = os.path.join(options.scratch, "report.html")
    command = [sys.executable, "-m", "yolo_fs", "report", "-q", "-C", root, "-o", path]
    began = time.perf_counter()
    subprocess.run([*command, "--phase", "1"], check=True)
    took = time.perf_counter() - began
    with open(path, "rb") as file:
        report = file.read()
    size = f"{len(gzip.compress(report, 3)):,}"
    rows.append(("report of a phase", f"{len(report):,}", size, ms(took)))
    return tuple(rows), len(report)


# --- how soon ---


def _first_paints(client: Any, browser: Any, rounds: int) -> dict[str, Sample]:
    """Open pages one after the other, each with nothing kept of the ones before."""
    floor, first, whole = Sample(), Sample(), Sample()
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(_BARE)
        floor.times_s.append(_painted_s(page))
        context.close()
        client.api("board", phase=_PHASE)  # until what the page before asked for is over
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(client.url, wait_until="commit")
        page.wait_for_selector("[data-cell]", timeout=60_000)
        whole.times_s.append(page.evaluate("performance.now()") / 1e3)
        first.times_s.append(_painted_s(page))
        context.close()
    return {
        "floor: a page of one word": floor,
        "first paint": first,
        "the team is on the screen": whole,
    }


def _painted_s(page: Any) -> float:
    while not (painted_ms := page.evaluate(_PAINTED)):
        page.wait_for_timeout(10)
    return float(painted_ms) / 1e3


# --- what it costs the daemon ---


def _writes(browser: Any, options: Options) -> tuple[Sample, Sample]:
    """Return the seconds from a write to its commit without and with open pages, in turns within one run."""
    size, *_ = repositories.sizes(options)
    root = repositories.copy(size, options)
    rng, serial = random.Random(options.seed), itertools.count()
    alone, beside = Sample(), Sample()
    with daemon.running(root) as said, board_process(root) as client:
        context = browser.new_context(viewport={"width": 1280, "height": 860})
        pages = [context.new_page() for _ in range(PAGES)]
        _time_writes(root, said, rng, serial, 1)
        for number in range(options.pick(8, 2)):
            is_open = number % 2 == 1
            for page in pages:
                page.goto(client.url if is_open else "about:blank")
                if is_open:
                    page.wait_for_selector("#live[data-live=true]")
            time.sleep(SETTLE_S)
            sample = beside if is_open else alone
            sample.times_s += _time_writes(root, said, rng, serial, options.pick(WRITES, 1))
        context.close()
    return alone, beside


def _time_writes(
    root: str, said: daemon.Daemon, rng: random.Random, serial: Iterator[int], count: int
) -> list[float]:
    taken = []
    for _ in range(count):
        time.sleep(rng.uniform(*PAUSE_S))
        number = next(serial)
        path, data = artifact(number % repositories.ARTIFACTS, f"write {number}")
        put(root, path, data)
        began = time.perf_counter()
        while not any(_is_commit_of(path, event) for event in said.events()):
            pass
        taken.append(time.perf_counter() - began)
    return taken


def _is_commit_of(path: str, event: dict[str, Any]) -> bool:
    return event["event"] == "artifact.committed" and event["path"] == path


def _writes_table(alone: Sample, beside: Sample) -> Table:
    rows = tuple(
        (name, ms(one.quantile(0.25)), ms(one.p50), ms(one.p99), times(one.p50 / alone.p50))
        for name, one in (("no page", alone), (f"{PAGES} pages in Chromium", beside))
    )
    notes = (
        f"{len(alone.times_s)} writes each, in stretches of {WRITES}; from the return of close() to the event line",
    )
    return Table(
        "Write to commit beside the board",
        ("", "p25 ms", "p50 ms", "p99 ms", "x no page"),
        rows,
        notes,
    )
