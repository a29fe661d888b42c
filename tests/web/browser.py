"""Chromium, where there is one: found in the PATH or playwright's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
HOW = "no Chromium: apt-get install chromium, or .venv/bin/playwright install chromium"


@contextmanager
def launched() -> Iterator[Any]:
    """Give a browser; skip the test, with the command that gets one, where none starts."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except sync_api.Error:
            pytest.skip(HOW)
        try:
            yield browser
        finally:
            browser.close()
