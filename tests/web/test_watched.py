"""The demo's three-department phase, watched from the first file to SHIP. YOLO_BROWSER=1 runs it: a minute or two."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from tests.web.test_browser import Open, browser, cells, cells_of, open_page
from tests.web.watched import Watched, share, watch

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
            shown = cells(page)
            assert not status["team"]["phases"] or shown == cells_of(dict(status), "01-auth")

    found = watch("company", open_page, scrub)
    print(
        f"{len(found.feed_ms)} events in {share(found.feed_ms, 0.5)} ms, p95 {share(found.feed_ms, 0.95)} ms"
    )
    print(
        f"{len(found.board_ms)} cells and gates in {share(found.board_ms, 0.5)} ms, p95 {share(found.board_ms, 0.95)} ms"
    )
    assert found.unseen == []
    assert len(found.board_ms) > 20
    assert share(found.feed_ms, 0.95) <= LIMIT_MS
    assert share(found.board_ms, 0.95) <= LIMIT_MS
