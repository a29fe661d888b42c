"""The page in a real browser: live, back in time, by keyboard, narrow, dark, printed, calm, and deaf to hostile text."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from tests.web.browser import launched
from tests.web.served import PATIENCE_S, Client, served
from tests.web.situations import team_in
from tests.web.watched import cells_of
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.system.journal import Journal
from yolo_fs.team.membership import join

PHASE = ".yolo-planning/phases/01-auth"
VIEWS = ("team", "time", "artifacts", "handoffs", "machines")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
HOSTILE = (
    '<img src=x onerror="window.hacked=1">',
    "<script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "'-window.hacked=1-'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\u202egpj.exe\u202c",
    "\u2066\u200b\ufeff hidden",
    "\x1b]0;title\x07\x1b[2J",
    "</title></textarea></style><h1>owned</h1>",
    "<a href='//evil.example'>click</a>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    "&lt;img src=x onerror=window.hacked=1&gt;",
    "%3Cscript%3Ewindow.hacked=1%3C/script%3E",
    "\\u003cscript\\u003ewindow.hacked=1",
    "__proto__",
    "constructor",
    "x" * 1_000_000,
)
LONG = bool(os.environ.get("YOLO_BROWSER"))
"""Whether there is time for all of them."""
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for all tests here; while it runs, no test in this thread can have an event loop."""
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Open pages; in the end, none has said an error or asked another host."""
    contexts, wrong = [], []

    def open_(client: Client, at: str = "#/team", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE_S)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        here = f"http://127.0.0.1:{client.port}/"
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith((here, "data:")) else wrong.append(asked.url)
            ),
        )
        page.goto(client.url + at)
        page.wait_for_selector(".view")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [one for one in wrong if "net::ERR_" not in one] == []  # the server ends before the page


@contextmanager
def daemon(team: Team) -> Iterator[None]:
    """Run the daemon of a team in a process of its own."""
    command = [sys.executable, "-m", "yolo_fs", "run", "-C", str(team.root), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def wait_until(page: Any, is_so: str, argument: object = None) -> None:
    """Ask the page again and again; its policy forbids playwright's own waiting, which compiles text."""
    until = time.monotonic() + PATIENCE_S
    while not page.evaluate(is_so, argument):
        assert time.monotonic() < until, f"never true: {is_so}"
        page.wait_for_timeout(20)


def cells(page: Any) -> dict[str, tuple[str, str]]:
    """Return what the page shows: department/step → (standing, by)."""
    rows = page.eval_on_selector_all(
        "[data-cell]",
        "all => all.map(one => [one.dataset.cell, one.dataset.standing, one.dataset.by ?? ''])",
    )
    return {name: (standing, by) for name, standing, by in rows}


def test_the_page_is_what_status_says_at_random_moments(
    open_page: Open, client: Client, team: Team
) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    page = open_page(client)
    commits = team.git("log", "--format=%H", "--", PHASE).split()
    for commit in random.Random(seed).sample(commits, min(20 if LONG else 4, len(commits))):
        page.evaluate("commit => { location.hash = `#/team?phase=01-auth&at=${commit}` }", commit)
        page.wait_for_selector(f"body[data-commit='{commit}'] [data-cell]")
        assert cells(page) == cells_of(client.api("board", at=commit).data, "01-auth")


def test_a_file_that_is_written_appears_without_reload_in_every_open_page(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    team = Team(tmp_path / "repo")
    team.begin()
    with daemon(team), served(team.root) as client:
        pages = [open_page(client), open_page(client)]
        for page in pages:
            page.evaluate("window.notReloaded = true")
        team.example("architecture/ok/backend.toon", "architecture.toon")
        team.artifact("gaps.jsonl", '{"id":"G1"}\n')
        for page in pages:
            page.wait_for_selector("[data-cell='backend/architecture'][data-standing='complete']")
            page.wait_for_selector(
                "[data-path$='gaps.jsonl'][data-standing='rejected'] .findings li"
            )
            page.wait_for_selector("[data-seq] .path[title$='architecture.toon']")
            wait_until(page, "() => document.querySelector('#live').title.includes('shown within')")
            assert page.evaluate("window.notReloaded")
        plot = client.api("plot", name="latency", phase="01-auth").body.decode()
        assert plot.count("mark latency") == 1
        pages[0].context.set_offline(True)
        team.artifact("gaps.jsonl", '{"id":"G2"}\n')
        wait_until(
            pages[1],
            "document.querySelectorAll(\"[data-seq] .path[title$='gaps.jsonl']\").length > 1",
        )
        pages[0].context.set_offline(False)
        wait_until(
            pages[0],
            "document.querySelectorAll(\"[data-seq] .path[title$='gaps.jsonl']\").length > 1",
        )


def test_ten_thousand_events_leave_the_page_as_large_as_it_was(
    open_page: Open, tmp_path: Path
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    journal = Journal(str(team.root / ".git/yolo-fs"), source="x", now=lambda: datetime.now(UTC))
    with served(team.root) as client:
        page = open_page(client)
        measure = page.context.new_cdp_session(page)

        def tell(count: int) -> tuple[int, int]:
            for _ in range(count):
                journal.append("artifact.held", f"{PHASE}/gaps.jsonl", {"reason": "secret"})
            last = list(journal.read())[-1]["seq"]
            page.wait_for_selector(f"[data-seq='{last}']")
            wait_until(page, "() => document.querySelectorAll('[data-seq]').length <= 12")
            heaps = []
            for _ in range(5):  # what has just been shown is let go of within moments
                page.wait_for_timeout(50)
                measure.send("HeapProfiler.collectGarbage")
                heaps.append(page.evaluate("() => performance.memory.usedJSHeapSize"))
            return page.evaluate("() => document.getElementsByTagName('*').length"), min(heaps)

        count = 10_000 if LONG else 300
        tell(count)  # code is compiled once
        nodes, heap = tell(count)
        more_nodes, more_heap = tell(count)
        print(f"{nodes} elements, {heap:,} bytes; then {more_nodes}, {more_heap:,} bytes")
        assert more_nodes == nodes
        assert more_heap < heap + 2_000_000


def test_everything_can_be_done_by_keyboard(open_page: Open, client: Client) -> None:
    page = open_page(client)
    for number, view in enumerate(VIEWS, 1):
        page.keyboard.press(str(number))
        wait_until(page, "view => location.hash.startsWith(`#/${view}`)", view)
        assert page.get_attribute("nav a[aria-current]", "href").startswith(f"#/{view}")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    wait_until(page, "() => Number(document.querySelector('#when').max) > 2")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("body[data-past='true']")
    page.keyboard.press("End")
    page.wait_for_selector("body[data-past='false']")
    reached = set()
    for _ in range(70):
        page.keyboard.press("Tab")
        where = page.evaluate(
            """() => { const one = document.activeElement; const style = getComputedStyle(one);
            return [one.id || one.dataset.cell || one.tagName, style.outlineStyle !== 'none' || one.tagName === 'BODY']; }"""
        )
        assert where[1], f"{where[0]} does not show that it has the focus"
        reached.add(where[0])
    assert {"phase", "theme", "help"} <= reached
    page.focus("[data-cell='backend/critique']")
    page.keyboard.press("Enter")
    assert page.is_visible(".detail")


def test_the_machines_view_shows_who_is_how_far_and_what_waits_why(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "repo")
    team.begin()
    team.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    with Repository(str(team.root)) as first, Repository(str(tmp_path / "other")) as second:
        names = [join(repository, "main").clone for repository in (first, second)]
    with served(team.root) as client:
        page = open_page(client, "#/machines", viewport={"width": 360, "height": 740})
        wait_until(
            page, "() => document.querySelectorAll('[data-key=clones] tbody tr').length === 2"
        )
        text = page.inner_text("#view")
        wide = page.evaluate("document.documentElement.scrollWidth")

    assert all(name in text for name in names)
    assert "no daemon watches" in text or "not running" in text
    assert wide <= 360


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "dark"),
        (1280, "light"),
        *([(360, "light"), (1280, "dark"), (2560, "light")] if LONG else []),
    ],
)
def test_every_text_can_be_read_and_nothing_is_wider_than_the_screen(
    open_page: Open, client: Client, scheme: str, width: int
) -> None:
    page = open_page(
        client,
        viewport={"width": width, "height": 740},
        color_scheme=scheme,
        reduced_motion="reduce" if width == 360 else "no-preference",
    )
    page.evaluate(
        "document.querySelectorAll('.cell').forEach((one) => one.classList.add('running'))"
    )
    for view in VIEWS:
        page.evaluate("view => { location.hash = `#/${view}` }", view)
        wait_until(page, "view => document.title.toLowerCase().includes(view)", view)
        if view == "time":
            page.wait_for_selector("[data-plot=lanes] svg")
        assert page.evaluate(CONTRAST) == [], f"{view} in {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert page.evaluate("document.getAnimations().length") == 0
        assert (
            page.evaluate(
                """() => [...document.querySelectorAll('button, a, input, select, [role=region], svg[role=img]')].filter((one) =>
            !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length || one.title)).map((one) => one.outerHTML)"""
            )
            == []
        )


@pytest.mark.parametrize("width", [390, 1440])
def test_a_word_of_four_hundred_letters_makes_no_view_wider_than_the_screen(
    open_page: Open, tmp_path: Path, width: int
) -> None:
    word = "Wort" * 100
    team = team_in("question", tmp_path)
    plan = team.root / PHASE / "01-01.plan.jsonl"
    header, *tasks = plan.read_text().splitlines()
    plan.write_text(
        "\n".join([json.dumps({**json.loads(header), "t": word, "obj": word}), *tasks, ""])
    )
    log = team.root / PHASE / "escalation.jsonl"
    log.write_text(log.read_text().replace("Which brand colour?", word).replace("Blue", word))
    found = {
        "q": word,
        "src": "docs",
        "finding": word,
        "conf": "high",
        "dt": "2026-02-19",
        "rel": word,
    }
    team.artifact("research.jsonl", json.dumps(found) + "\n")
    team.artifact("gaps.jsonl", json.dumps({"id": word}) + "\n")
    team.once()
    with served(team.root) as client:
        page = open_page(client, viewport={"width": width, "height": 860})
        for view in VIEWS:
            page.evaluate("view => { location.hash = `#/${view}` }", view)
            wait_until(page, "view => document.title.toLowerCase().includes(view)", view)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_a_time_is_that_of_the_browser_with_its_offset(open_page: Open, client: Client) -> None:
    page = open_page(client, timezone_id="Asia/Kathmandu")
    told = client.api("timeline", phase="01-auth").data
    east = timezone(timedelta(hours=5, minutes=45))
    last = datetime.fromtimestamp(told["moments"][-1]["at_ms"] // 1_000, east)
    wait_until(
        page, "words => document.body.innerText.includes(words)", f"{last:%Y-%m-%d %H:%M:%S} +0545"
    )


def test_a_printed_page_has_no_controls(open_page: Open, client: Client) -> None:
    page = open_page(client)
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    assert not page.is_visible("footer")
    assert page.is_visible("[data-cell='backend/critique']")


def test_hostile_text_is_only_text(open_page: Open, tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    names = [f"{number:02}-{kind}" for number in range(1, 21) for kind in ("a", "b")]
    for number, text in enumerate(HOSTILE):
        plan, note = f"01-{number + 1:02}.plan.jsonl", f"01-{number + 1:02}.summary.jsonl"
        team.artifact(plan, '{"t": ' + repr(text).replace("'", '"') + "}\n" + text + "\n")
        team.artifact(note, text + "\n")
    assert len(names) == 2 * len(HOSTILE) == 40
    with served(team.root) as client:
        page = open_page(client)
        page.wait_for_selector(".refused .findings")
        page.evaluate("() => { location.hash = '#/artifacts' }")
        page.wait_for_selector(".list a")
        for number in range(0, len(HOSTILE), 1 if LONG else 5):
            path = f"{PHASE}/01-{number + 1:02}.summary.jsonl"
            page.evaluate(
                "path => { location.hash = `#/artifacts?path=${encodeURIComponent(path)}` }", path
            )
            page.wait_for_selector(f".text[aria-label='{path}'] .lines code")
        assert page.evaluate("window.hacked") is None
        assert (
            page.evaluate(
                "document.querySelectorAll('main script, main img, main iframe, main style, main meta').length"
            )
            == 0
        )
        shown = page.inner_text("main")
        assert not any(sign in shown for sign in "\u202e\u2066\u200b\x1b")


def test_a_report_opens_from_disk_without_network(browser: Any, team: Team) -> None:
    path = team.root.parent / "report.html"
    assert run(["report", "-q", "-C", str(team.root), "-o", str(path)]) == 0
    context = browser.new_context(offline=True, viewport={"width": 360, "height": 740})
    try:
        page, asked, wrong = context.new_page(), [], []
        page.on("request", lambda one: asked.append(one.url))
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        assert "01-auth" in page.inner_text("h1, h2 >> nth=0")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert asked == [path.as_uri()]
        assert wrong == []
    finally:
        context.close()


def test_a_link_opens_its_view_and_moment(open_page: Open, client: Client, team: Team) -> None:
    commit = team.git("log", "--format=%H", "--", PHASE).split()[1]
    page = open_page(client, f"#/team?phase=01-auth&at={commit}")
    page.wait_for_selector(f"body[data-commit='{commit}']")
    page.reload()
    page.wait_for_selector(f"body[data-commit='{commit}']")
