"""How often a property is tried: a few times in every run, more with `YOLO_EXAMPLES=1000 .venv/bin/pytest tests/properties`.

A counterexample is printed with the line that repeats it (`@reproduce_failure`); nothing is kept on the disk. With
`YOLO_SHRINK=0` the first one found is shown, which is enough to know that there is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings


def profile(examples: int, **more: Any) -> settings:
    """Return settings for a property that is tried so often by default."""
    wanted = max(examples, int(os.environ.get("YOLO_EXAMPLES", "0")))
    dear = (Phase.shrink, Phase.explain) if os.environ.get("YOLO_SHRINK") == "0" else ()
    phases = [phase for phase in Phase if phase not in dear]
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=wanted,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=quiet,
        phases=phases,
        **more,
    )


def tried(examples: int) -> Callable[[Any], Any]:
    """Decorate a property with its profile."""
    return profile(examples)
