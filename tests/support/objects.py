"""Objects as a test needs them on the disk."""

from __future__ import annotations

import subprocess
from pathlib import Path


def unpack(root: Path) -> None:
    """Have every object of a repository loose, as git itself writes them."""
    for pack in (root / ".git/objects/pack").glob("*.pack"):
        data = pack.read_bytes()
        for part in pack.parent.glob(f"{pack.stem}.*"):
            part.unlink()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=root, input=data, check=True)
