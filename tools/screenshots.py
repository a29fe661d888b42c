"""Takes the pictures of the README from the demo: the board at three sizes in both themes, and the
demo in a terminal.
"""

from __future__ import annotations

import argparse
import html
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.play.play import PlayScene
from tests.web.browser import launched
from tests.web.served import Client
from tests.web.watched import Watched, share, watch

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"wide": (1_440, 900), "tablet": (820, 1_100), "phone": (360, 740)}
VIEWS = {
    "team": "",
    "time": "",
    "artifacts": "?path=.yolo-planning/phases/01-auth/fe-01-02.plan.jsonl",
}
TERMINAL = """<!doctype html><meta charset="utf-8"><body style="margin:0;background:#14171c;color:#d9dee6">
<pre style="font:13px/1.45 ui-monospace,'DejaVu Sans Mono',monospace;padding:22px;margin:0;width:max-content;background:inherit">%s</pre>"""


def main() -> int:
    """Write `docs/images`, or the folder that is given."""
    parser = argparse.ArgumentParser(prog="tools/screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with launched() as browser:

        def open_page(client: Client) -> Any:
            page = browser.new_page(viewport={"width": 1_440, "height": 900})
            page.goto(client.url)
            page.wait_for_selector(".view")
            return page

        taken: list[str] = []

        def at_a_gate(_found: Watched, page: Any, scene: PlayScene) -> None:
            if "gate api-contract" in scene.does:
                page.wait_for_timeout(800)
                page.screenshot(path=str(folder / "board-live.png"))
                taken.append(scene.does)

        def at_the_end(found: Watched, _page: Any) -> None:
            for size, (width, height) in SIZES.items():
                for scheme in ("light", "dark"):
                    _take(
                        browser,
                        found.client,
                        folder,
                        size,
                        scheme,
                        {"width": width, "height": height},
                    )

        found = watch(open_page, at_the_end, during=at_a_gate)
        print(
            f"{len(found.feed_ms)} events on the page in {share(found.feed_ms, 0.5)} ms, "
            f"p95 {share(found.feed_ms, 0.95)} ms"
        )
        page = browser.new_page(viewport={"width": 1_440, "height": 900})
        page.set_content(TERMINAL % html.escape(_demo()))
        page.locator("pre").screenshot(path=str(folder / "demo.png"))
    return 0


def _take(
    browser: Any, client: Client, folder: Path, size: str, scheme: str, screen: dict[str, int]
) -> None:
    context = browser.new_context(viewport=screen, color_scheme=scheme)
    page = context.new_page()
    page.goto(client.url)
    for view, chosen in VIEWS.items():
        page.evaluate("to => { location.hash = to }", f"#/{view}{chosen}")
        if view == "time":
            page.wait_for_selector("[data-plot=lanes] svg", timeout=60_000)
            page.wait_for_selector(
                "[data-key=lanes] [role=status]", state="detached", timeout=60_000
            )
        page.wait_for_timeout(1_200)
        page.screenshot(path=str(folder / f"board-{view}-{size}-{scheme}.png"))
    context.close()


def _demo() -> str:
    command = [sys.executable, "-m", "yolo_fs", "demo", "--speed", "20"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    return "\n".join(done.stdout.decode().splitlines()[:44])


if __name__ == "__main__":
    sys.exit(main())
