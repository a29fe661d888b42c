"""A repository with a real daemon, and a board that serves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import new_repo, repo, start
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.health.ground import Ground
from tests.web.served import served

__all__ = ["new_repo", "repo", "start"]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose name does not say which trouble is tried: each surface shows the path."""
    return tmp_path_factory.mktemp("ground")


@pytest.fixture
def ground(
    repo: Repo, start: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ground]:
    for name, value in repo.env.items():  # the board is served by this process
        monkeypatch.setenv(name, value)
    made = Ground(repo, start)
    made.begin()
    with made.ends, served(repo.root) as board:
        made.board = board
        yield made
