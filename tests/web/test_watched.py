"""The demo's three-department phase, watched from the first file to SHIP. YOLO_BROWSER=1 runs it: a minute or two."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from tests.web.test_browser import Open, browser, cells, open_page
from tests.web.watched import Watched, cells_of, share, watch

__all__ = ["browser", "open_page"]

LIMIT_MS = float(os.environ.get("YOLO_BROWSER_LIMIT_MS", "200"))

pytestmark = [
    pytest.mark.skipif(not os.environ.get("YOLO_BROWSER"), reason="YOLO_BROWSER=1 runs it"),
    pytest.mark.timeout(900),
]


def test_every_event_appears_at_once_and_every_moment_can_be_seen_again(open_page: Open) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")

    def scrub(found: Watched, page: Any) -> None:
        assert not found.findings
        assert page.inner_text(".summary").count("SHIP")
        commits = found.stage.git.text("rev-list", "HEAD").split()[:-3]
        for commit in random.Random(seed).sample(commits, 20):
            page.evaluate(
                "commit => { location.hash = `#/team?phase=01-auth&at=${commit}` }", commit
            )
            page.wait_for_selector(f"body[data-commit='{commit}']")
            _, status = found.stage.ask("status", "--at", commit)
            assert cells(page) == cells_of(dict(status), "01-auth")

    found = watch(open_page, scrub)
    for name, taken in (
        ("events to their lines", found.feed_ms),
        ("events to the board, as the page measures it", list(found.own_ms.values())),
        ("steps, gates, refusals and escalations", found.change_ms),
    ):
        print(f"{len(taken)} {name}: {share(taken, 0.5)} ms, p95 {share(taken, 0.95)} ms")
    assert found.unseen == []
    assert found.untrue == []
    assert len(found.change_ms) > 15
    assert {event["seq"] for event in found.events[5:]} <= found.own_ms.keys()
    assert share(found.feed_ms, 0.95) <= LIMIT_MS
    assert share(list(found.own_ms.values()), 0.95) <= LIMIT_MS
    assert share(found.change_ms, 0.95) <= LIMIT_MS
