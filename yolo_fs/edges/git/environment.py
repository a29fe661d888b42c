"""The `GIT_*` variables of this process: they name somebody else's repository. See
docs/faults.md#f48.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def forget_inherited_environment() -> dict[str, str]:
    """Drop every `GIT_*` variable of this process and return what was dropped.

    Called once at the boundary of each command: a hook that started us names *its* repository.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("GIT_") and "PYTHON" not in name
    }
    for name in inherited:
        del os.environ[name]
    return inherited


@contextmanager
def inherited_environment_set_aside() -> Iterator[None]:
    """Do something without the variables that were inherited, and have them again afterwards."""
    inherited = forget_inherited_environment()
    try:
        yield
    finally:
        os.environ.update(inherited)
