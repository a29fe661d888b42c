"""Life of a handoff: delivered, accepted, read, acknowledged, acted upon, with times. Pure.

Each stage has a deadline. A packet is accepted by roles, trigger matrix, branch, session, reading
and time; without any error it needs no further confirmation. Nothing records the other stages;
files and commits show them. A handoff is delivered by its commit. It is read when the receiver's
context is compiled with it, or when the log of reads says that the receiver has ended a turn. It is
acknowledged when the receiver begins its part, or agrees. It is acted upon by the receiver's first
artifact, or by an implemented contract. A later stage proves the earlier ones. See
docs/dev/sources.md#document-000 and #document-001.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Fault, Finding, Level, Reason
from yolo_fs.core.timestamps import iso
from yolo_fs.protocol.handoffs import PACKET_FIELDS, TRIGGER_BY_ID, Trigger
from yolo_fs.protocol.workflow import STEP_BY_KEY

if TYPE_CHECKING:
    from yolo_fs.schemas.packet import Packet

HANDOFF = "HANDOFF.md"
README = "README.md"
ABSENT = "n/a"
EXECUTED_BY = "Executed-By"
"""Trailer with the role that made a commit."""
CLOCK_SLACK_S = 60
"""Difference between the clocks of two machines that does not count as the future, seconds."""

_BRANCH_OF_SESSION = re.compile(r"""(["']?)directive_branch\1\s*:""")
_PRIORITY = re.compile(r"""(["']?)session_priority\1\s*:\s*(["']?)(?P<said>[^"'#]*)\2""")
_ARCHIVED = re.compile(
    r"""(["']?)(?:status\1\s*:\s*(["']?)archived\2|archived\1\s*:\s*(["']?)true\3)\s*(?:\#.*)?$"""
)


class DirectiveSession(NamedTuple):
    """The directive session that a packet points at."""

    folder: str
    """Relative to the repository."""
    branch: str = ""
    """`meta.directive_branch` of its README; empty if unreadable, which is a finding of its own."""
    priority: str = ""
    """`meta.session_priority` of its README; empty when it says none."""

    @property
    def name(self) -> str:
        """The folder's name, which is the session's GUID."""
        return self.folder.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Around:
    """Context of a packet while it is checked."""

    required_reading: str
    """Required reading that every packet must name by configuration; empty: none."""
    branch: str | None = None
    """Branch that the receiver has checked out, empty when HEAD is detached.
    None without a receiver yet.
    """
    receiver: str = ""
    """Role that asks; empty to take the role that the packet gives."""
    session: DirectiveSession | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    """Field that names a path → why there is no such file."""
    is_ultra_open: bool = True
    """Whether a session that is not archived says that it is ultra."""
    ahead_s: float = 0
    """How far the packet's time lies in the future, seconds."""
    is_branch_known: bool = True
    """Whether the branch that the packet names is there, in this clone or on a remote."""


def faults_of(packet: Packet) -> tuple[Fault, ...]:
    """Return the faults of a packet that do not depend on the receiver."""
    return tuple(fault for check in _OF_ITSELF for fault in check(packet))


def faults_around(packet: Packet, around: Around) -> tuple[Fault, ...]:
    """Return further faults for which its receiver must stop here and now, and which are not its
    own to mend, as that of its branch is.
    """
    return tuple(fault for check in _AROUND for fault in check(packet, around))


def _values(packet: Packet) -> Iterator[Fault]:
    """Yield each `n/a` that the document does not allow; other fields exclude it by their shape."""
    for row in PACKET_FIELDS:
        if not row.may_be_absent and getattr(packet, row.name) == ABSENT:
            yield Fault(
                Reason.BAD_FORMAT, f"/{row.name}", f"{ABSENT!r} is not allowed here", row.packet
            )


def _roles(packet: Packet) -> Iterator[Fault]:
    if packet.from_role == packet.to_role:
        message = f"{packet.from_role} hands over to itself"
        yield Fault(Reason.SELF_REFERENCE, "/to_role", message, "another role")


def _check_trigger(packet: Packet) -> Iterator[Fault]:
    row = TRIGGER_BY_ID.get(packet.trigger)
    if row is None:
        message = f"the trigger matrix has no {packet.trigger!r}"
        yield Fault(
            Reason.UNKNOWN_VALUE,
            "/trigger",
            message,
            " or ".join(_triggers_for(packet) or TRIGGER_BY_ID),
        )
    elif packet.from_role != packet.to_role and not _leads(row, packet):
        senders = "any role" if len(row.senders) > 1 else row.senders[0]
        message = (
            f"{row.id} leads from {senders} to {row.receiver}, not from {packet.from_role} "
            f"to {packet.to_role}"
        )
        expected = " or ".join(_triggers_for(packet)) or "roles between which a trigger leads"
        yield Fault(Reason.STATE_CONFLICT, "/trigger", message, expected)


def _leads(row: Trigger, packet: Packet) -> bool:
    return packet.from_role in row.senders and packet.to_role == row.receiver


def _triggers_for(packet: Packet) -> list[str]:
    """Return the triggers that lead from the sender to the receiver."""
    return [name for name, row in TRIGGER_BY_ID.items() if _leads(row, packet)]


def _check_receiver(packet: Packet, around: Around) -> Iterator[Fault]:
    if around.receiver == packet.from_role:
        message = f"{packet.from_role} has handed over to {packet.to_role} and has stopped"
        yield Fault(
            Reason.DISCRETIONARY_WORK, "/from_role", message, f"work of {packet.to_role} alone"
        )
    elif around.receiver not in ("", packet.to_role):
        message = f"the packet is for {packet.to_role}, not for {around.receiver}"
        yield Fault(Reason.STATE_CONFLICT, "/to_role", message, around.receiver)


def faults_of_branch(packet: Packet, around: Around) -> Iterator[Fault]:
    """Yield that the receiver stands elsewhere, which nobody but the receiver mends, if there is
    such a branch.
    """
    if around.branch is None or around.branch == packet.directive_branch:
        return
    seen = f"the branch checked out is {around.branch!r}" if around.branch else "HEAD is detached"
    hint = f"Run 'git switch {packet.directive_branch}' before any edit."
    if not around.is_branch_known:
        hint = (
            f"No branch has that name: 'git fetch' may bring it, or {packet.from_role} hands over "
            "again with the name of today."
        )
    if around.session:
        readme = f"{around.session.folder}/{README}"
        hint += f" If its work is finished, a person sets 'status: archived' in meta of {readme}."
    yield Fault(Reason.BRANCH_MISMATCH, "/directive_branch", seen, packet.directive_branch, hint)


def _session(packet: Packet, around: Around) -> Iterator[Fault]:
    if packet.session_id == ABSENT:
        return
    session = around.session
    if session is None:
        message = f"no directive session is named {packet.session_id!r}"
        yield Fault(
            Reason.UNKNOWN_REFERENCE, "/session_id", message, "the GUID of a session's folder"
        )
        return
    if session.name.casefold() != packet.session_id.casefold():
        message = f"the packet is in the folder of session {session.name!r}"
        yield Fault(Reason.NAME_MISMATCH, "/session_id", message, session.name)
    if session.branch and session.branch != packet.directive_branch:
        message = f"{session.folder}/{README} says meta.directive_branch: {session.branch}"
        yield Fault(Reason.BRANCH_MISMATCH, "/directive_branch", message, session.branch)


def _paths(packet: Packet, around: Around) -> Iterator[Fault]:
    wanted = around.required_reading
    if wanted and packet.required_reading not in (wanted, ABSENT):
        message = f"got {packet.required_reading!r}"
        hint = "yolo_fs.required_reading of the configuration requires it."
        yield Fault(Reason.UNKNOWN_VALUE, "/required_reading", message, wanted, hint)
    for name, why in around.absent.items():
        message = f"{getattr(packet, name)!r}: {why}"
        yield Fault(Reason.FILE_MISSING, f"/{name}", message, "a file of this repository")


ULTRA = "ultra"
_DETECTED, _TASK_OPEN = "architect_ultra_detected", "auditor_ultra_open"
"""Triggers whose condition a session's README states; only people can judge the others."""


def _check_condition(packet: Packet, around: Around) -> Iterator[Fault]:
    """Yield a trigger whose condition the READMEs contradict.

    The first is about sessions; the second is about a task, of which a README may say nothing.
    """
    session, statement = around.session, ""
    if packet.trigger == _DETECTED and packet.session_id == ABSENT and not around.is_ultra_open:
        statement = f"no open session has session_priority: {ULTRA}"
    elif packet.trigger in (_DETECTED, _TASK_OPEN) and session and session.branch:
        readme = f"{session.folder}/{README}"
        if session.priority not in ("", ULTRA):
            statement = f"{readme} has session_priority: {session.priority}"
        elif not session.priority and packet.trigger == _DETECTED:
            statement = f"{readme} has no session_priority"
    if statement:
        expected = f"a session with meta.session_priority: {ULTRA}"
        yield Fault(
            Reason.STATE_CONFLICT, "/trigger", f"{packet.trigger} is not met: {statement}", expected
        )


def _time(_: Packet, around: Around) -> Iterator[Fault]:
    if around.ahead_s > CLOCK_SLACK_S:
        message = f"the packet was written {around.ahead_s:.0f} s from now"
        yield Fault(Reason.OUT_OF_RANGE, "", message, "a time that has passed", "Check the clocks.")


_OF_ITSELF: tuple[Callable[[Packet], Iterator[Fault]], ...] = (_values, _roles, _check_trigger)
_AROUND: tuple[Callable[[Packet, Around], Iterator[Fault]], ...] = (
    _check_receiver,
    _session,
    _paths,
    _check_condition,
    _time,
)


def branch_lines(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return number and text of the README lines with `meta.directive_branch`: one if all is well.

    The rest of a README's front matter is free. These lines, without their comments, are
    interpreted by the strict parser of HANDOFF.md.
    """
    return [
        (number, _COMMENT.sub("", line))
        for number, line in _find_meta_lines(lines, _BRANCH_OF_SESSION)
    ]


_COMMENT = re.compile(r"\s#.*")
"""A comment of YAML; no name of a branch has a space in it."""


def faults_of_session(packet: Packet, session: DirectiveSession | None) -> tuple[Fault, ...]:
    """Return the contradictions between a packet and its session's README, for any receiver.

    `session`: None if there is none.
    """
    around = Around(packet.required_reading, session=session)
    return tuple(fault for check in (_session, _check_condition) for fault in check(packet, around))


def faults_of_place(path: str, roots: Sequence[str], session_id: str) -> tuple[Fault, ...]:
    """Return what is wrong with the place of a HANDOFF.md beside the folders of the sessions.

    `roots`: the folders whose sub-folders are sessions.
    """
    folder = path.rpartition("/")[0]
    if folder not in roots:
        return ()
    place = f"{folder}/{session_id}/{HANDOFF}"
    message = "it is beside the folders of the sessions, not in one of them"
    return (Fault(Reason.NAME_MISMATCH, "/session_id", message, place, "Move it there."),)


def priority_said(lines: Sequence[str]) -> str:
    """Return a README's `meta.session_priority`; empty when it says none."""
    matches = [_PRIORITY.match(line) for _, line in _find_meta_lines(lines, _PRIORITY)]
    return next((match["said"].strip() for match in matches if match), "")


def is_archived(lines: Sequence[str]) -> bool:
    """Return whether a README says that its session is archived, in `meta` or beside it."""
    head = lines[1 : lines.index("---", 1)] if "---" in lines[1:] and lines[0] == "---" else ()
    return any(map(_ARCHIVED.match, head)) or bool(_find_meta_lines(lines, _ARCHIVED))


def _find_meta_lines(lines: Sequence[str], wanted: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return number and text of the lines of a README's `meta` that begin as wanted."""
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        return []
    members: list[tuple[int, str]] = []
    indent = 0  # of the members of `meta`; 0 outside of it
    for number, line in enumerate(lines[1 : lines.index("---", 1)], 2):
        column = len(line) - len(line.lstrip(" "))
        if line.strip() and not column:
            indent = -1 if line.rstrip() == "meta:" else 0
        elif line.strip() and indent < 0:
            indent = column
        if column and column == indent and wanted.match(line, column):
            members.append((number, line.strip()))
    return members


class LaterCommit(NamedTuple):
    """A commit that was made after a packet."""

    oid: str
    author: str
    """Name of its author."""
    trailers: tuple[tuple[str, str], ...]
    paths: tuple[str, ...]


def discretionary_work(packet: Packet, later: Iterable[LaterCommit]) -> Iterator[Finding]:
    """Yield the artifacts that the sender still wrote in that directive."""
    for commit in later:
        for path in commit.paths:
            if path.rpartition("/")[2] != HANDOFF and packet.from_role in _writers(commit, path):
                yield Finding(
                    Reason.DISCRETIONARY_WORK,
                    path,
                    message=f"{packet.from_role} handed over, then came {commit.oid[:SHORT]}",
                    expected=f"work of {packet.to_role} alone",
                    hint="Keep it or revert it: the receiving role decides.",
                    level=Level.WARNING,
                )


def _writers(commit: LaterCommit, path: str) -> set[str]:
    """Return the roles that wrote a path: by the commit's trailer, else by author and artifact."""
    roles = {_role(value) for key, value in commit.trailers if key == EXECUTED_BY}
    return roles or {_role(commit.author), *_roles_of(path)}


def _roles_of(path: str) -> Iterator[str]:
    place = classify(path)
    step = STEP_BY_KEY.get(place.artifact.step) if place else None
    return (role.value for role in step.agents) if step else iter(())


def _role(name: str) -> str:
    return name.strip().casefold().removeprefix("yolo-")


class HandoffStage(StrEnum):
    """Stage of a handoff."""

    DELIVERED = "delivered"
    READ = "read"
    ACKNOWLEDGED = "acknowledged"
    ACTED_UPON = "acted upon"


STAGES = tuple(HandoffStage)


class Moment(NamedTuple):
    """Time of an event; commits of the same second have an order."""

    at_s: int
    """Seconds since the epoch."""
    order: int = 1 << 62
    """Position in the history; anything but a commit comes after all commits of its second."""


class DeliveredHandoff(NamedTuple):
    """One handoff, as its commit delivered it."""

    path: str
    line: int
    """0 when the whole file is the handoff."""
    sender: str
    receiver: str
    """The receiver, such as `frontend`, or the directory of the next phase."""
    at: Moment
    by: str
    """The commit that delivered it."""
    needs_answer: bool = False
    """Only an answer to this very handoff acknowledges it, as for a proposed contract."""

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.path}:{self.line}" if self.line else self.path


class ReceiverSign(NamedTuple):
    """Evidence of a receiver's progress, from files or commits."""

    receiver: str
    stage: HandoffStage
    at: Moment
    by: str
    """Commit, or file, that shows it."""
    about: str = ""
    """Place of the handoff, if the sign answers that one alone."""


class StageTime(NamedTuple):
    """One stage of one handoff."""

    stage: HandoffStage
    at_s: int | None
    """The latest time at which it was reached; None when it has not been."""
    due_s: int | None
    """When it is due: a deadline after the stage before; None while that has not been reached."""
    by: str = ""
    """Commit or file that shows it."""

    def is_overdue(self, now_s: int) -> bool:
        """Return whether it is due and has not been reached."""
        return self.at_s is None and self.due_s is not None and now_s > self.due_s


class HandoffLifecycle(NamedTuple):
    """One handoff and its four stages."""

    delivery: DeliveredHandoff
    stations: tuple[StageTime, ...]

    @property
    def stage(self) -> HandoffStage:
        """The last stage that was reached."""
        return [station.stage for station in self.stations if station.at_s is not None][-1]

    def awaited(self, now_s: int) -> StageTime | None:
        """Return the overdue stage, or None."""
        return next((station for station in self.stations if station.is_overdue(now_s)), None)


@dataclass(frozen=True, slots=True)
class Overdue:
    """A handoff whose next stage is late."""

    delivery: DeliveredHandoff
    stage: HandoffStage
    """The stage that is missing."""
    due_s: int
    """When it was due, seconds since the epoch."""

    def __str__(self) -> str:
        delivery = self.delivery
        return (
            f"{delivery.sender} → {delivery.receiver}: not {self.stage.value}, which was due "
            f"{iso(self.due_s)} ({delivery.place})"
        )


def lifecycles(
    deliveries: Iterable[DeliveredHandoff], signs: Iterable[ReceiverSign], deadline_s: int
) -> tuple[HandoffLifecycle, ...]:
    """Return the life of each handoff, in the order of the deliveries.

    The order of the signs makes no difference.
    """
    known = tuple(signs)
    return tuple(_life(delivery, known, deadline_s) for delivery in deliveries)


def overdue(lives: Iterable[HandoffLifecycle], now_s: int) -> tuple[Overdue, ...]:
    """Return the handoffs whose next stage is late, the latest first."""
    late = (
        Overdue(life.delivery, station.stage, station.due_s)
        for life in lives
        if (station := life.awaited(now_s)) and station.due_s is not None
    )
    return tuple(sorted(late, key=lambda handoff: (handoff.due_s, handoff.delivery.place)))


def _life(
    delivery: DeliveredHandoff, signs: tuple[ReceiverSign, ...], deadline_s: int
) -> HandoffLifecycle:
    after = [sign for sign in signs if _concerns(sign, delivery)]
    stations = [StageTime(HandoffStage.DELIVERED, delivery.at.at_s, None, delivery.by)]
    for stage in STAGES[1:]:
        before = stations[-1].at_s
        due = before + deadline_s if before is not None else None
        # Acting implies reading: the earliest sign of this stage or of a later one counts.
        proving = (sign for sign in after if STAGES.index(sign.stage) >= STAGES.index(stage))
        proof = min(proving, key=lambda sign: sign.at, default=None)
        stations.append(
            StageTime(stage, proof.at.at_s, due, proof.by) if proof else StageTime(stage, None, due)
        )
    return HandoffLifecycle(delivery, tuple(stations))


def _concerns(sign: ReceiverSign, delivery: DeliveredHandoff) -> bool:
    if sign.about:  # an answer may come with the very commit: both sides sat together
        return sign.about == delivery.place and sign.at >= delivery.at
    reaches = sign.stage is HandoffStage.READ or not delivery.needs_answer
    return reaches and sign.receiver == delivery.receiver and sign.at > delivery.at
