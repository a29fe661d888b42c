"""The record of the crew, line by line: which agent gave which sign of life when, and what it said. Pure.

Whatever is written is read: a line that cannot be timed is a finding and still a sign, timed by the
line before it. See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from yolo_fs.protocol.crew import SIGN_BY_EVENT, Health
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.departments import department as department_row
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.protocol.roster import department_said
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.escalations.log import role_of
from yolo_fs.rules.timestamps import moment, untimely
from yolo_fs.schemas.base import Record

RECORD = ".git/yolo-fs/agents.jsonl"
REQUEST = "shutdown_request"
RESPONSE = "shutdown_response"
_KEYS = ("event", "id")
"""What a line must say to be a sign of anybody."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One line of the record, taken apart."""

    number: int
    at: datetime
    """When it was written, as it says; it may lie, and even in the future."""
    event: str
    """A hook as in `yolo-fs hook EVENT`, or the type of a message."""
    name: str
    """What the agent is called, such as `yolo-fe-dev` or `dev-1`; empty for a session that nobody named."""
    id: str
    """The instance: an agent of a host, a session, or a name such as `dev-1`."""
    session: str = ""
    """The session that it belongs to."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """The message; empty for an event of a host."""

    @property
    def health(self) -> Health:
        """How an agent is that gives this sign."""
        value = self.said.get("status") or self.said.get("state")
        row = SIGN_BY_EVENT.get(f"{self.event}:{value}") or SIGN_BY_EVENT.get(self.event)
        return row.health if row else Health.WORKING


def place_of(name: str) -> tuple[Role | None, Dept | None]:
    """Return what `fe-dev`, `yolo-fe-dev` or `fe-dev-1` does and where: no role for whoever is none of the company.

    Those who belong to no single department have none.
    """
    role, backend = role_of(name), department_row(DEFAULT_DEPARTMENT)
    return role, department_said(name) or (
        DEFAULT_DEPARTMENT if backend and role in backend.roles else None
    )


def seen_in(
    records: Iterable[Record], now: datetime, written_at: datetime
) -> tuple[tuple[Seen, ...], tuple[Finding, ...]]:
    """Return the signs of a record in the order of their lines, and what is wrong with it.

    A line that has no moment of its own was written when the one before it was, and the first one at `written_at`.
    """
    seen: list[Seen] = []
    findings: list[Finding] = []
    for record in records:
        line = record.value
        if missing := next(
            (key for key in _KEYS if not isinstance(line.get(key), str) or not line[key]), ""
        ):
            message = f"a sign without {missing!r}: nobody knows whose it is"
            findings.append(
                Finding(Reason.MISSING_KEY, RECORD, record.line, f"/{missing}", message)
            )
            continue
        said = str(line.get("at"))
        findings += untimely(str(line["id"]), said, now, RECORD, record.line, "/at")
        seen.append(_seen(record.line, line, moment(said) or (seen[-1].at if seen else written_at)))
    return tuple(seen), tuple(findings)


def _seen(number: int, line: Mapping[str, Any], at: datetime) -> Seen:
    said = line.get("said")
    return Seen(
        number=number,
        at=at,
        event=str(line["event"]),
        name=str(line.get("agent") or ""),
        id=str(line["id"]),
        session=str(line.get("session") or ""),
        said=said if isinstance(said, dict) else {},
    )
