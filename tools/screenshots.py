"""Takes the pictures that README.md and docs/board.md show, from the demo. With --situations, the
board's home in six situations, at four widths, in both themes, to be looked at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.play.play import PlayScene
from tests.web.browser import launched
from tests.web.served import Client, served
from tests.web.situations import SITUATIONS, shipped, team_in
from tests.web.watched import Watched, share, watch

ROOT = Path(__file__).resolve().parent.parent
WIDTHS = (390, 1_024, 1_440, 2_560)
SHIPPED = "shipped"
SCREEN = {"width": 1_440, "height": 900}


def main() -> int:
    """Write `docs/images`, or the folder that is given."""
    parser = argparse.ArgumentParser(prog="tools/screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument(
        "--situations", nargs="*", metavar="NAME", choices=(*SITUATIONS, SHIPPED), default=None
    )
    given = parser.parse_args()
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    if given.situations is not None:
        _take_situations(folder, given.situations or (*SITUATIONS, SHIPPED))
        return 0
    with launched() as browser:

        def open_page(client: Client) -> Any:
            page = browser.new_page(viewport=SCREEN)
            page.goto(client.url)
            page.wait_for_selector(".view")
            return page

        def at_a_gate(_found: Watched, page: Any, scene: PlayScene) -> None:
            if "gate api-contract" in scene.does:
                page.wait_for_timeout(800)
                page.screenshot(path=str(folder / "board-live.png"))

        def at_the_end(found: Watched, _page: Any) -> None:
            _take_plots(browser, found.client, folder / "board-time-wide-dark.png")

        found = watch(open_page, at_the_end, during=at_a_gate)
        print(
            f"{len(found.feed_ms)} events on the page in {share(found.feed_ms, 0.5)} ms, "
            f"p95 {share(found.feed_ms, 0.95)} ms"
        )
    return 0


def _take_situations(folder: Path, names: Iterable[str]) -> None:
    with launched() as browser, TemporaryDirectory() as place:
        os.environ["XDG_CONFIG_HOME"] = place
        for name in names:
            root = shipped() if name == SHIPPED else team_in(name, Path(place, name)).root
            with served(root) as client:
                for scheme in ("light", "dark"):
                    context = browser.new_context(color_scheme=scheme)
                    page = context.new_page()
                    for width in WIDTHS:
                        page.set_viewport_size({"width": width, "height": 900})
                        page.goto(client.url)
                        page.wait_for_selector(".view")
                        page.wait_for_timeout(400)
                        # The bar of time sticks to the foot of the window: it must hide nothing.
                        height = page.evaluate("document.documentElement.scrollHeight")
                        page.set_viewport_size({"width": width, "height": height})
                        path = folder / f"{name}-{width}-{scheme}.png"
                        page.screenshot(path=str(path), full_page=True)
                    context.close()
            if name == SHIPPED:
                shutil.rmtree(root)


def _take_plots(browser: Any, client: Client, path: Path) -> None:
    context = browser.new_context(viewport=SCREEN, color_scheme="dark")
    page = context.new_page()
    page.goto(client.url)
    page.evaluate("location.hash = '#/time'")
    page.wait_for_selector("[data-plot=lanes] svg", timeout=60_000)
    page.wait_for_selector("[data-key=lanes] [role=status]", state="detached", timeout=60_000)
    page.wait_for_timeout(1_200)
    page.screenshot(path=str(path))
    context.close()


if __name__ == "__main__":
    sys.exit(main())
