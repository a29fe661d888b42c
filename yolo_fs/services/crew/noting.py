"""Takes what agents say into the record, and sums up what they did."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.rules.crew.health import crew, instance_of
from yolo_fs.rules.crew.tally import DepartmentTally, tally
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.phase.phase import Phase
from yolo_fs.services.crew.observing import task_commits
from yolo_fs.services.crew.record import Record
from yolo_fs.services.history.team import Team
from yolo_fs.services.settings import Settings


def note_message(
    repository: Repository, settings: Settings, name: str, message: Mapping[str, Any]
) -> str:
    """Write a valid message down as said by an agent; return the instance that it is taken for.

    An `agent_health_event` is of the agent that it names, whoever notes it.

    Raises:
        YoloError: STORAGE_FAILED.
    """
    record = Record(repository.own_dir, settings.limits)
    whose = str(message.get("agent_id") or name)
    agents = crew(record.read(datetime.now(UTC)).seen)
    instance = instance_of(whose, agents)
    known = next((one.name for one in agents if one.id == instance), "")
    record.add(known or whose, instance, message)
    return instance


def tally_of(
    repository: Repository, settings: Settings, team: Team, facts: PhaseFacts
) -> tuple[DepartmentTally, ...]:
    """Return what each department of a phase comes to, what its Devs told included."""
    seen = Record(repository.own_dir, settings.limits).read(datetime.now(UTC)).seen
    return tally(Phase(facts), task_commits(facts, team.history_index), seen)
