from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.teams import Team
from tests.web.served import Client, served


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team that has worked through five moments, with one artifact refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("no config")))
        worked = Team(tmp_path_factory.mktemp("work") / "repo")
        for _ in worked.moments():
            pass
        worked.artifact("gaps.jsonl", '{"id":"G1"}\n')
        os.utime(worked.root / ".yolo-planning/phases/01-auth/gaps.jsonl", (1e9, 1e9))  # settled
        yield worked


@pytest.fixture(scope="session")
def client(team: Team) -> Iterator[Client]:
    with served(team.root) as client:
        yield client
