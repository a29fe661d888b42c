"""The share of what there is that an ordinary run tries; `YOLO_SECURITY=1` tries all."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

Tried = TypeVar("Tried")
ALL = bool(os.environ.get("YOLO_SECURITY"))


def sample_of(all_: Iterable[Tried], one_of: int, rng: random.Random) -> list[Tried]:
    """Return one of so many in their order, at least one; all of them in the larger tier."""
    things = list(all_)
    chosen = rng.sample(range(len(things)), -(-len(things) // one_of))
    return things if ALL else [things[at] for at in sorted(chosen)]
