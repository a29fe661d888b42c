"""Fixtures of the security tests: the repositories and daemons of the end-to-end tests.

The larger tiers run with `YOLO_SECURITY=1`, see tests/support/sample.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import new_repo, repo, rng, start
from tests.security.place import ArtifactPath

__all__ = ["new_repo", "place", "repo", "rng", "start"]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtifactPath]:
    """A place that is at peace whenever it was put back."""
    made = ArtifactPath(tmp_path_factory.mktemp("security") / "place")
    made.make()
    made.keep("peace")
    yield made
    made.end_leftovers()
