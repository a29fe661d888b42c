"""Fixtures of the end-to-end tests: repositories, daemons that are always stopped, and the seed.

Longer runs: `YOLO_TORTURE=50` kills that often, `YOLO_BURST=50000` sets how much is written in bursts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo, make_repo


@pytest.fixture
def new_repo(tmp_path: Path) -> Callable[..., Repo]:
    """Make further repositories."""

    def make(name: str = "repo", *form: str) -> Repo:
        return make_repo(tmp_path / name, tmp_path / "home", form=form)

    return make


@pytest.fixture
def repo(new_repo: Callable[..., Repo]) -> Repo:
    return new_repo()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start daemons; each is stopped at the end, and none may have met a defect."""
    started: list[Daemon] = []

    def start_in(repo: Repo, under: Sequence[str] = (), prepare: str = "", **more: str) -> Daemon:
        log = tmp_path / f"daemon{len(started)}.log"
        daemon = Daemon(repo, log, under=under, prepare=prepare, more=more)
        started.append(daemon)
        return daemon.start()

    yield start_in
    codes = [daemon.stop() for daemon in started]
    for daemon in started:
        assert daemon.complaints() == ""
    assert all(code in (0, -9) for code in codes), codes


@pytest.fixture
def rng() -> random.Random:
    """Random numbers that can be had again: the seed is printed, and taken from `YOLO_SEED`."""
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    return random.Random(seed)
