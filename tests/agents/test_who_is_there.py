"""Whoever is refused is sent to somebody who works there, whatever departments are on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.teams import Team
from yolo_fs.agents.access import Access
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.authority.actors import AccessDecision, Actor
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.schemas.messages.catalogue import MESSAGES

PHASE = ".yolo-planning/phases/01-auth"
PATHS = (
    *(f"{PHASE}/{row.named(prefix)}" for row in ARTIFACTS for prefix in ("", "fe-", "ux-")),
    *(f"{PHASE}/.ctx-{agent}.toon" for agent in ("dev", "fe-lead")),
    ".yolo-planning/departments/uiux.toon",
    "frontend/a.ts",
    ".env",
)


@pytest.mark.parametrize("second", ["", "frontend", "uiux"])
def test_whoever_is_refused_is_sent_to_somebody_who_works_there(
    tmp_path: Path, second: str
) -> None:
    team = Team(tmp_path / "work")
    team.config({"departments": {second: True}} if second else {})
    team.user_commits("chore: begin", ".")
    with Repository(str(team.root)) as repository:
        access = Access(repository)
        there = [actor for actor in access.everybody() if second or actor.role is not Role.OWNER]
        asked = {name for answer in _answers(access, there) for name in answer.ask}
    assert asked & {*AGENT_BY_NAME} <= {actor.name for actor in there}


def _answers(access: Access, there: list[Actor]) -> Iterator[AccessDecision]:
    for actor, path in itertools.product((*there, None), dict.fromkeys(PATHS)):
        yield access.read(actor, path)
        yield access.write(actor, path)
    for actor, other in itertools.product(there, there):
        yield access.contact(actor, other.name)
        yield access.escalate(actor, other)
        yield from (access.send(actor, other, kind) for kind in MESSAGES)
