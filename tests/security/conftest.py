"""Fixtures of the security tests: the repositories and daemons of the end-to-end tests.

The larger tiers run with `YOLO_SECURITY=1`, see tests/support/sample.py.
"""

from __future__ import annotations

from tests.e2e.conftest import new_repo, repo, rng, start

__all__ = ["new_repo", "repo", "rng", "start"]
