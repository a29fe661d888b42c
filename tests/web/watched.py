"""The demo's phase watched in a browser while the real daemon works: what the page showed, and how soon."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.web.served import Client, served
from yolo_fs.cli.demo import Silence
from yolo_fs.demo.play import PLAYS, PlayScene
from yolo_fs.demo.player import Pace, Player, SceneResult
from yolo_fs.demo.stage import Stage, stage_for
from yolo_fs.edges.journal import Journal
from yolo_fs.services.moments.timeline import event_ms

WATCHING = """() => {
  window.seen = {};
  const note = (name) => { window.seen[name] ??= Date.now(); };
  const look = (one) => {
    if (!one.dataset) return;
    const { seq, by, open, gate, escalation, holder } = one.dataset;
    if (seq) note(`event ${seq}`);
    if (by) note(`commit ${by}`);
    if (gate && open === 'true') note(`gate ${gate}`);
    if (escalation) note(`escalation ${escalation} ${holder}`);
  };
  const all = (root) => { if (root.querySelectorAll) { look(root); root.querySelectorAll('*').forEach(look); } };
  all(document.body);
  new MutationObserver((changes) => { for (const one of changes) { if (one.type === 'attributes') look(one.target); one.addedNodes.forEach(all); } })
    .observe(document.body, { subtree: true, childList: true, attributes: true });
}"""


@dataclass
class Watched:
    """What came of it."""

    client: Client
    root: str
    stage: Stage
    events: list[dict[str, Any]] = field(default_factory=list)
    feed_ms: list[int] = field(default_factory=list)
    """From the moment of an event to its line on the page."""
    board_ms: list[int] = field(default_factory=list)
    """From the moment of an event to the cell or gate that it changes."""
    unseen: list[str] = field(default_factory=list)
    findings: Sequence[object] = ()


class Calls(Silence):
    """Calls somebody after each scene, from the thread of the player."""

    def __init__(self, then: Callable[[PlayScene], None]):
        self._then = then

    def result(self, scene: PlayScene, result: SceneResult) -> None:
        self._then(scene)


def watch(
    name: str,
    open_page: Callable[[Client], Any],
    then: Callable[[Watched, Any], None],
    *,
    speed: float = 5.0,
    during: Callable[[Watched, Any, PlayScene], None] = lambda *_: None,
) -> Watched:
    """Play with a page open from the first file to the last. `during`: called after scenes; `then`: at the end."""
    play = next(one for one in PLAYS if one.name == name)
    with stage_for(play, keep=False) as stage:
        stage.open()
        with served(Path(stage.root)) as client:
            found = Watched(client, stage.root, stage)
            page = open_page(client)
            page.evaluate(WATCHING)
            scenes: list[PlayScene] = []
            player = Player(stage, Pace.of(speed), Calls(scenes.append))
            thread = threading.Thread(target=lambda: setattr(found, "findings", player.play(play)))
            thread.start()
            while thread.is_alive():
                page.wait_for_timeout(50)
                while scenes:
                    during(found, page, scenes.pop(0))
            page.wait_for_timeout(1_000)
            journal = Journal(
                f"{stage.root}/.git/yolo-fs", source="", now=lambda: datetime.now(UTC)
            )
            found.events = list(journal.read())
            _measure(found, page.evaluate("() => window.seen"))
            then(found, page)
    return found


def _measure(found: Watched, seen: dict[str, int]) -> None:
    for event in found.events:
        kind, data, at_ms = (
            event["type"].removeprefix("dev.yolo_fs."),
            event["data"],
            event_ms(event),
        )
        line = seen.get(f"event {event['seq']}")
        if line is not None:
            found.feed_ms.append(line - at_ms)
        elif not kind.startswith("daemon."):
            found.unseen.append(json.dumps(event))
        name = {"gate.opened": f"gate {data.get('gate')}"}.get(kind, f"commit {data.get('commit')}")
        if name in seen:
            found.board_ms.append(seen[name] - at_ms)


def share(values: Sequence[int], part: float) -> int:
    """Return the value that `part` of all do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else -1
