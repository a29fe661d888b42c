"""Links where a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def behind_link(folder: Path, aside: Path) -> Iterator[None]:
    """Let a link to `aside`, where its content is meanwhile, be in the place of a folder."""
    folder.rename(aside)
    folder.symlink_to(aside)
    yield
    folder.unlink()
    aside.rename(folder)
