"""Reads the agent journal, and appends messages to it: a request, an answer, a report.

See docs/dev/faults.md#f19 and #f53.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from yolo_fs.agents.health import RECORD, AgentSign, agents_in, instance_of, seen_in
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.system import heartbeats
from yolo_fs.system.files import Content, read, stamp_of
from yolo_fs.system.readers import read_lines
from yolo_fs.system.text_checks import Limits
from yolo_fs.tasks.claims import ClaimStatus
from yolo_fs.tasks.service import Claims, planned
from yolo_fs.workspace.settings import Settings


@dataclass(frozen=True, slots=True)
class Recorded:
    """The content of a journal."""

    seen: tuple[AgentSign, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __add__(self, other: Recorded) -> Recorded:
        return Recorded((*self.seen, *other.seen), (*self.findings, *other.findings))


class _Part(NamedTuple):
    """One file of the journal, as far as it has been read."""

    identity: tuple[int, int] = (0, 0)
    size_bytes: int = 0
    """Offset of the end of the last complete line."""
    lines: int = 0
    recorded: Recorded = Recorded()


class AgentJournal:
    """The agent journal of one work tree; a file that only grows is read incrementally."""

    def __init__(self, own_dir: str, limits: Limits = Limits()) -> None:
        self._own_dir = own_dir
        self._limits = limits
        self._parts = {name: _Part() for name in (heartbeats.OLDER, heartbeats.FILE)}
        self._torn: dict[str, tuple[Finding, ...]] = {}
        self._recorded = Recorded()

    def stamp(self) -> object:
        """Return a value that changes with every new sign."""
        return stamp_of(self._own_dir, heartbeats.FILE)

    def read(self, now: datetime) -> Recorded:
        """Return every sign in the order of writing, and what is wrong with the journal."""
        before = (*self._parts.values(), *self._torn.values())
        for name, part in self._parts.items():
            self._parts[name] = self._read_part(name, part, now)
        if before != (*self._parts.values(), *self._torn.values()):
            torn = tuple(finding for findings in self._torn.values() for finding in findings)
            self._recorded = sum(
                (part.recorded for part in self._parts.values()), Recorded()
            ) + Recorded((), torn)
        return self._recorded

    def add(self, name: str, instance: str, message: Mapping[str, Any]) -> None:
        """Append a message to the journal.

        Raises:
            YoloError: STORAGE_FAILED.
        """
        line = {
            "event": message["type"],
            "agent": name,
            "id": instance,
            "session": "",
            "said": dict(message),
        }
        if not heartbeats.append(self._own_dir, line):
            hint = "Free disk space or correct the owner of the directory, then report again."
            raise YoloError(Reason.STORAGE_FAILED, f"cannot write to {RECORD}", hint=hint)

    def _read_part(self, name: str, before: _Part, now: datetime) -> _Part:
        content = read(self._own_dir, name, self._limits.max_file_bytes)
        if not isinstance(content, Content):
            self._torn[name] = (
                () if content.reason is Reason.FILE_MISSING else (replace(content, path=RECORD),)
            )
            return _Part()
        identity = (content.stamp.dev, content.stamp.ino)
        if identity != before.identity or len(content.data) < before.size_bytes:
            before = _Part(identity)
        return self._read_new_lines(name, before, content, now)

    def _read_new_lines(self, name: str, before: _Part, content: Content, now: datetime) -> _Part:
        end = content.data.rfind(b"\n") + 1
        fresh, rest = content.data[before.size_bytes : end], content.data[end:]
        number = before.lines + fresh.count(b"\n") + 1
        self._torn[name] = (Finding(Reason.UNTERMINATED, RECORD, number),) if rest else ()
        if not fresh:
            return before
        reading = read_lines(fresh, RECORD, self._limits)
        records = [record._replace(line=record.line + before.lines) for record in reading.records]
        wrong = (
            replace(finding, line=finding.line + before.lines)
            for finding in errors(reading.findings)
        )
        written_at = datetime.fromtimestamp(content.stamp.mtime_ns / 1e9, UTC)
        seen, findings = seen_in(
            records, now, before.recorded.seen[-1].at if before.recorded.seen else written_at
        )
        recorded = before.recorded + Recorded(seen, (*wrong, *findings))
        return _Part(before.identity, end, number - 1, recorded)


def claim_task(
    repository: Repository, settings: Settings, agent: str, task: TaskRef, files: Sequence[str]
) -> ClaimStatus:
    """Claim a task for an agent, which counts as a teammate from then on; return the claim's state.

    `files`: relative to the repository; empty for those of the task's plan.

    Raises:
        YoloError: as `Claims.claim`; UNKNOWN_NAME when no committed plan of the phase has the task.
    """
    facts_reader, tip, now_s = FactsReader(repository, settings), repository.head().tip, time.time()
    require_planned(facts_reader.facts(tip), task)
    taken = tuple(files or planned(facts_reader.facts(tip), task, agent)[0].files)
    standing = Claims(repository, facts_reader.tasks_done(tip)).claim(agent, task, taken, now_s)
    message = {
        "type": "task_claim",
        "task_id": f"T{task.number}",
        "plan_id": str(task.plan),
        "files": list(taken),
        "claimed_at": iso(now_s),
    }
    note_message(repository, settings, agent, message)
    return standing


def require_planned(facts: Iterable[PhaseFacts], task: TaskRef) -> None:
    """Refuse a task beside the plans of its phase; while none is committed, it may be any.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    number = task.plan.phase
    of_phase = tuple(phase_facts for phase_facts in facts if phase_facts.phase.number == number)
    if any(phase_facts.plans for phase_facts in of_phase):
        planned(of_phase, task)


def note_message(
    repository: Repository, settings: Settings, name: str, message: Mapping[str, Any]
) -> str:
    """Record a valid message of an agent; return the instance that it is attributed to.

    An `agent_health_event` is attributed to the agent that it names, whoever records it.

    Raises:
        YoloError: STORAGE_FAILED.
    """
    record = AgentJournal(repository.own_dir, settings.limits)
    whose = str(message.get("agent_id") or name)
    agents = agents_in(record.read(datetime.now(UTC)).seen)
    instance = instance_of(whose, agents)
    known = next((agent.name for agent in agents if agent.id == instance), "")
    record.add(known or whose, instance, message)
    return instance
