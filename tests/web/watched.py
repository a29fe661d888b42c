"""The demo's phase watched in a browser while the real daemon and the real board work: what the page showed, and how
soon after it had become so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.play.play import COMPANY, PlayScene
from tests.play.player import Pace, Player, SceneResult, Silence
from tests.play.stage import Stage, stage_for
from tests.web.served import Client
from yolo_fs.snapshots.reader import SnapshotReader
from yolo_fs.snapshots.timeline import event_ms
from yolo_fs.system.journal import PREFIX, Journal

Cells = dict[str, tuple[str, str]]
"""department/step → (standing, by)."""
LOOK_AT_BRANCH_S = 0.005

WATCHING = """() => {
  window.seen = {}; window.shown = []; window.late = [];
  const note = (name) => { window.seen[name] ??= Date.now(); };
  const look = (one) => {
    if (!one.dataset) return;
    const { seq, path, standing, gate, open, escalation, holder } = one.dataset;
    if (seq) note(`event ${seq}`);
    if (path && standing) note(`${standing} ${path}`);
    if (gate && open === 'true') note(`gate ${gate}`);
    if (escalation) note(`escalation ${escalation} ${holder}`);
  };
  const all = (root) => { if (root.querySelectorAll) { look(root); root.querySelectorAll('*').forEach(look); } };
  const shoot = () => {
    const commit = document.body.dataset.commit;
    if (!commit || window.shown.at(-1)?.commit === commit) return;
    const cells = [...document.querySelectorAll('[data-cell]')].map((one) => [one.dataset.cell, one.dataset.standing, one.dataset.by ?? '']);
    const gates = [...document.querySelectorAll('[data-gate]')].map((one) => [one.dataset.gate, one.dataset.open]);
    window.shown.push({ commit, at: Date.now(), cells, gates });
  };
  all(document.body);
  shoot();
  new MutationObserver((changes) => { for (const one of changes) { if (one.type === 'attributes') look(one.target); one.addedNodes.forEach(all); } shoot(); })
    .observe(document.body, { subtree: true, childList: true, attributes: true });
  new PerformanceObserver((list) => { for (const one of list.getEntries()) window.late.push([one.detail.seq, one.duration]); }).observe({ type: 'measure' });
}"""


@dataclass
class Shown:
    """What the page showed of one commit, and when it first did."""

    commit: str
    at_ms: int
    cells: Cells
    gates: dict[str, bool]


@dataclass
class Watched:
    """What came of it."""

    client: Client
    root: str
    stage: Stage
    moves: list[tuple[str, int]] = field(default_factory=list)
    """(tip, milliseconds since the epoch) of each move of the branch, as the disk dates it."""
    events: list[dict[str, Any]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    feed_ms: list[int] = field(default_factory=list)
    """From the moment of an event to its line on the page."""
    own_ms: dict[int, float] = field(default_factory=dict)
    """Number of an event → milliseconds until a board that knows of it was painted: the page's own measure."""
    change_ms: list[int] = field(default_factory=list)
    """From the move of the branch that changed a step or a gate, and from each refusal and escalation, to the page
    that shows it."""
    unseen: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    """Where the live page differed from the commit that it named."""
    findings: Sequence[object] = ()


class Calls(Silence):
    """Calls somebody after each scene, from the thread of the player."""

    def __init__(self, then: Callable[[PlayScene], None]):
        self._then = then

    def result(self, scene: PlayScene, result: SceneResult) -> None:
        self._then(scene)


@contextmanager
def board_process(root: str) -> Iterator[Client]:
    """Run `yolo-fs board` in a process of its own, as people do."""
    command = [sys.executable, "-m", "yolo_fs", "board", "--no-open", "-C", root]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    assert process.stdout is not None
    try:
        yield Client(process.stdout.readline().decode().strip())
    finally:
        process.terminate()
        process.communicate(timeout=30)


def watch(
    open_page: Callable[[Client], Any],
    then: Callable[[Watched, Any], None],
    *,
    speed: float = 1.0,
    during: Callable[[Watched, Any, PlayScene], None] = lambda *_: None,
) -> Watched:
    """Play with a page open from the first file to the last. `during`: called after scenes; `then`: at the end."""
    with stage_for(COMPANY, keep=False) as stage:
        stage.open()
        with board_process(stage.root) as client:
            found = Watched(client, stage.root, stage)
            page = open_page(client)
            page.evaluate(WATCHING)
            scenes: list[PlayScene] = []
            player = Player(stage, Pace.of(speed), Calls(scenes.append))
            thread = threading.Thread(
                target=lambda: setattr(found, "findings", player.play(COMPANY))
            )
            branch = threading.Thread(target=_follow_branch, args=(found, thread))
            thread.start()
            branch.start()
            while thread.is_alive():
                page.wait_for_timeout(50)
                while scenes:
                    during(found, page, scenes.pop(0))
            branch.join()
            page.wait_for_selector(f"body[data-commit='{found.moves[-1][0]}']")
            page.wait_for_timeout(1_000)
            _measure(found, page)
            then(found, page)
    return found


def _follow_branch(found: Watched, player: threading.Thread) -> None:
    """Note each move of the branch; the time is that of the file of the ref, not that of this look."""
    git = found.stage.git
    branch, known = git.text("symbolic-ref", "HEAD"), git.text("rev-parse", "HEAD")
    path = f"{found.root}/.git/{branch}"
    while player.is_alive():
        try:
            with open(path) as ref:
                at_ms, tip = os.fstat(ref.fileno()).st_mtime_ns // 1_000_000, ref.read().strip()
        except FileNotFoundError:
            tip = known
        if tip != known:
            found.moves.append((tip, at_ms))
            known = tip
        player.join(LOOK_AT_BRANCH_S)


def cells_of(board: Mapping[str, Any], phase: str) -> Cells:
    """Return what a page has to show of an answer of `status`."""
    for one in board["team"]["phases"]:
        if one["phase"] == phase:
            rows = [*one["departments"], {"department": "phase", "steps": one["steps"]}]
            return {
                f"{row['department']}/{step['step']}": (step["standing"], step["by"])
                for row in rows
                for step in row["steps"]
            }
    return {}


def gates_of(board: Mapping[str, Any], phase: str) -> dict[str, bool]:
    """Return the gates that a page has to show, and whether each is open."""
    phases = [one for one in board["team"]["phases"] if one["phase"] == phase]
    return {gate["gate"]: gate["open"] for one in phases for gate in one["gates"]}


def _measure(found: Watched, page: Any) -> None:
    journal = Journal(f"{found.root}/.git/yolo-fs", source="", now=lambda: datetime.now(UTC))
    found.events = list(journal.read())
    found.own_ms = dict(page.evaluate("() => window.late"))
    found.shown = [
        Shown(
            one["commit"],
            one["at"],
            {name: (standing, by) for name, standing, by in one["cells"]},
            {name: is_open == "true" for name, is_open in one["gates"]},
        )
        for one in page.evaluate("() => window.shown")
    ]
    _measure_events(found, page.evaluate("() => window.seen"))
    reader = SnapshotReader(found.root)
    try:
        _measure_moves(found, reader)
    finally:
        reader.close()


def _measure_events(found: Watched, seen: Mapping[str, int]) -> None:
    for event in found.events:
        kind, at_ms = event["type"].removeprefix(PREFIX), event_ms(event)
        line = seen.get(f"event {event['seq']}")
        if line is not None:
            found.feed_ms.append(line - at_ms)
        elif not kind.startswith("daemon."):
            found.unseen.append(json.dumps(event))
        refused = seen.get(f"rejected {event['subject']}")
        if kind == "artifact.rejected" and refused is not None and refused >= at_ms:
            found.change_ms.append(refused - at_ms)


def _measure_moves(found: Watched, reader: SnapshotReader) -> None:
    """Judge the page by what `status --at` says of each commit that it named."""
    phase = next(str(one.progress.phase) for one in reader.past("HEAD").team.phases)
    told = {tip: reader.past(tip).as_json() for tip, _ in found.moves}
    order = {tip: number for number, (tip, _) in enumerate(found.moves)}
    for one in found.shown:
        board = told.get(one.commit) or reader.past(one.commit).as_json()
        if (one.cells, one.gates) != (cells_of(board, phase), gates_of(board, phase)):
            found.untrue.append(one.commit)
    before: object = None
    for number, (tip, at_ms) in enumerate(found.moves):
        now = cells_of(told[tip], phase), gates_of(told[tip], phase)
        if now == before:
            continue
        before = now
        page = next((one for one in found.shown if order.get(one.commit, -1) >= number), None)
        if page is None:
            found.unseen.append(tip)
        else:
            found.change_ms.append(page.at_ms - at_ms)


def share(values: Sequence[float], part: float) -> int:
    """Return the value that `part` of all do not exceed."""
    return round(sorted(values)[min(len(values) - 1, int(len(values) * part))]) if values else -1
