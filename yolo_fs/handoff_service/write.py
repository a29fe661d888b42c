"""Writes handoffs: envelopes of document 003, choices after errors, packets of document 001.

Each is written complete and once, under a lock, or not at all. See docs/dev/faults.md#f45, #f47 and
#f50.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.examine import find_secrets
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER, slug_of
from yolo_fs.checking.envelopes import ProductHandoffs, StoredSession, choices_path, located
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, errors, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs, written_in
from yolo_fs.handoff_service.sessions import DirectiveSessions, PacketSource
from yolo_fs.handoffs import envelopes
from yolo_fs.handoffs.envelopes import Sent, percentage, right_name
from yolo_fs.handoffs.lifecycle import ABSENT, faults_around
from yolo_fs.handoffs.packets import TOP, ParsedPacket, as_chat, as_file, packet_of
from yolo_fs.handoffs.session_progress import choice_after, open_error, ways_after
from yolo_fs.handoffs.sessions import repeated_by
from yolo_fs.protocol.handoffs import USUAL_READING
from yolo_fs.schemas.envelope.envelope import Choice, Choices
from yolo_fs.schemas.packet import Packet
from yolo_fs.system.file_locks import update
from yolo_fs.system.files import is_plain_file, stamp_of
from yolo_fs.system.store import SHARED, json_text, make_folders, write_text
from yolo_fs.workspace.settings import Settings

_DRAFT = "-"
"""Placeholder for a handoff without a name yet."""


class WrittenEnvelope(NamedTuple):
    """Result of sending an envelope."""

    path: str
    """Its path; for a refused one, where it would be."""
    findings: tuple[Finding, ...] = ()
    attempt: int = 0
    """Number of this try of the route; 0 when it was refused."""
    is_new: bool = False
    """False when it was refused, or when the same handoff is there already."""


def send(
    handoffs: ProductHandoffs,
    draft: Mapping[str, Any],
    repository: Repository,
    *,
    again: bool = False,
) -> WrittenEnvelope:
    """Write an envelope into `documents/handoffs/`, complete or not at all.

    Missing values that follow from the rest are filled in: version, time, slug, percentage, and the
    session of a first handoff. The same handoff again writes nothing, unless `again` makes it a new
    attempt.

    Raises:
        YoloError: LOCK_TIMEOUT, STORAGE_FAILED, NO_SPACE, NOT_REGULAR.
    """
    value = _complete_draft(handoffs, draft, again=again)
    sent, faults = envelopes.read(value, _DRAFT, handoffs.now, handoffs.settings.mode)
    if sent is None:
        return WrittenEnvelope(_DRAFT, tuple(located(faults, _DRAFT)))
    named = sent._replace(path=right_name(sent))
    if secrets := handoffs.secrets_in(named.path, json_text(value)):
        return WrittenEnvelope(named.path, secrets)
    result: list[WrittenEnvelope] = []

    def decide() -> dict[str, Any] | None:
        result.append(_decided(handoffs, named, again=again))
        return value if result[0].is_new else None

    _change(handoffs, repository, named.path, decide)
    return result[0]


def choose(handoffs: ProductHandoffs, session_id: str, way: str, repository: Repository) -> Choice:
    """Record the orchestrator's choice among the four options after the session's last error.

    The same choice again changes nothing; another one replaces it until it has been acted upon.

    Raises:
        YoloError: UNKNOWN_NAME for a way; STATE_CONFLICT when there is no error to choose after, or
            the workflow was aborted; the reason of a damaged record; LOCK_TIMEOUT and what else the
            disk refuses.
    """
    made: list[Choice] = []
    path = choices_path(session_id)

    def decide() -> dict[str, Any] | None:
        stored = handoffs.session(session_id)
        _refuse_damaged(stored, path)
        made.append(_chosen(handoffs, stored, way))
        if made[0] in stored.session.choices:
            return None
        return Choices(
            session_id=session_id, choices=[*stored.session.choices, made[0]]
        ).model_dump()

    _change(handoffs, repository, path, decide)
    return made[0]


def _change(
    handoffs: ProductHandoffs,
    repository: Repository,
    path: str,
    decide: Callable[[], dict[str, Any] | None],
) -> None:
    """Write what `decide` returns under the one lock of all handoffs."""
    there = stamp_of(repository.root, path)
    if isinstance(there, Finding) and there.reason is not Reason.FILE_MISSING:
        raise there.as_error(path, Exit.NOT_HERE)
    root = repository.root
    make_folders(os.path.join(root, HANDOFF_FOLDER), root=root)
    repository.make_own_dir()
    lock = os.path.join(repository.own_dir, "handoffs.lock")
    update(os.path.join(root, path), lock, lambda _: decide(), root=root, mode=SHARED)


def _decided(handoffs: ProductHandoffs, sent: Sent, *, again: bool) -> WrittenEnvelope:
    stored = handoffs.session(sent.envelope.session_id)
    earlier = stored.session.sent
    occupant = next((envelope for envelope in earlier if envelope.path == sent.path), None)
    same = None
    if occupant is not None and occupant.value == sent.value:
        same = occupant
    elif not again:
        same = repeated_by(sent.value, sent.source, sent.target, earlier)
    if same is not None:
        warnings = (_not_again(sent),) if again else ()
        return WrittenEnvelope(same.path, warnings, stored.attempts[same.path].number)
    findings = (*_taken(handoffs, sent), *handoffs.examine_sent(sent, stored.session))
    if errors(findings):
        return WrittenEnvelope(sent.path, findings)
    route = (sent.source, sent.target)
    numbers = (
        stored.attempts[envelope.path].number
        for envelope in earlier
        if (envelope.source, envelope.target) == route
    )
    return WrittenEnvelope(sent.path, findings, max(numbers, default=0) + 1, is_new=True)


def _not_again(sent: Sent) -> Finding:
    message = "the handoff with this timestamp exists already: nothing is written"
    expected = "no timestamp in a draft that is to be another attempt"
    return Finding(
        Reason.STATE_CONFLICT, sent.path, 1, "/timestamp", message, expected, level=Level.WARNING
    )


def _taken(handoffs: ProductHandoffs, sent: Sent) -> tuple[Finding, ...]:
    there = handoffs.snapshot.content(sent.path)
    if isinstance(there, Finding) and there.reason is Reason.FILE_MISSING:
        return ()
    message = "something else has the name of this handoff already"
    return (Finding(Reason.STATE_CONFLICT, sent.path, 1, "/timestamp", message, "a later moment"),)


def _complete_draft(
    handoffs: ProductHandoffs, draft: Mapping[str, Any], *, again: bool
) -> dict[str, Any]:
    """Return the draft in the document's order, with missing values filled in where known."""
    name, state = draft.get("product_name"), draft.get("workflow_state")
    filled: dict[str, Any] = {
        "handoff_version": "1.0",
        "timestamp": handoffs.now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "product_name_slug": slug_of(name) if isinstance(name, str) else "",
    }
    whole: dict[str, Any] = {**filled, **draft}
    if isinstance(state, Mapping) and (counted := _counted(state)) is not None:
        whole["workflow_state"] = {"progress_percentage": counted, **state}
    if _begins(draft) and "session_id" not in draft:
        begun = "" if again else _session_begun_by(handoffs, whole)
        whole["session_id"] = begun or str(uuid.uuid4())
    return {**{key: whole[key] for key in _ORDER if key in whole}, **whole}


_ORDER = (
    "handoff_version", "timestamp", "session_id", "product_name", "product_name_slug",
    "source_agent", "target_agent", "artifacts", "payload", "workflow_state",
)  # fmt: skip


def _session_begun_by(handoffs: ProductHandoffs, first: Mapping[str, Any]) -> str:
    """Return the session that the same first handoff has begun and nobody has gone on with."""
    every = (handoffs.session(name).session.sent for name in handoffs.sessions())
    for begun in (sent[0] for sent in every if len(sent) == 1):
        session_id = begun.envelope.session_id
        value = {**first, "session_id": session_id}
        if repeated_by(value, begun.source, begun.target, (begun,)):
            return session_id
    return ""


def _begins(draft: Mapping[str, Any]) -> bool:
    source = draft.get("source_agent")
    return isinstance(source, Mapping) and source.get("agent_type") == "user"


def _counted(state: Mapping[str, Any]) -> float | None:
    completed, remaining = state.get("phases_completed"), state.get("phases_remaining")
    return (
        percentage(completed, remaining)
        if isinstance(completed, list) and isinstance(remaining, list)
        else None
    )


def _chosen(handoffs: ProductHandoffs, stored: StoredSession, way: str) -> Choice:
    error = open_error(stored.session)
    if error is None:
        hint = f"'yolo-fs envelope show {stored.session_id}' shows its progress."
        raise YoloError(
            Reason.STATE_CONFLICT, "the session's last handoff is not an error", hint=hint
        )
    ways = {str(open_way.name): open_way for open_way in ways_after(error, stored.session)}
    if way not in ways:
        hint = f"One of: {', '.join(ways)}."
        raise YoloError(Reason.UNKNOWN_NAME, f"no way {safe(way)!r}", hint=hint)
    before = choice_after(error, stored.session)
    if before and before.way == way:
        return before
    if before and before.way == "abort":
        raise YoloError(
            Reason.STATE_CONFLICT, f"aborted at {before.chosen_at}", hint="Begin another session."
        )
    moment = iso(handoffs.now.timestamp())
    return Choice(
        error=error.path, way=ways[way].name, chosen_at=moment, leads_to=ways[way].leads_to
    )


def _refuse_damaged(stored: StoredSession, path: str) -> None:
    for finding in errors(stored.findings):
        if finding.path == path:
            hint = "Fix it, or restore it from git; nothing was written."
            raise YoloError(finding.reason, str(finding), hint=hint, exit_code=Exit.UNREADABLE)


class EmittedHandoff(NamedTuple):
    """Result of emitting a packet."""

    packet: Packet | None = None
    """None when nothing was emitted."""
    text: str = ""
    """The packet for the chat."""
    path: str = ""
    """HANDOFF.md that holds it; empty outside a directive session."""
    is_new: bool = False
    """False when the file already had this content."""
    findings: tuple[Finding, ...] = ()
    """Why nothing was emitted."""


def emit(repository: Repository, settings: Settings, given: Mapping[str, str]) -> EmittedHandoff:
    """Write a complete packet or nothing.

    `given`: field → text; what is known from the context may be left out.

    Raises:
        YoloError: NO_SPACE or STORAGE_FAILED.
    """
    handoffs = DirectiveHandoffs(repository, settings)
    session_id = given.get("session_id", ABSENT)
    path = handoffs.sessions.handoff_of(session_id) if session_id != ABSENT else ""
    known = {
        "session_id": ABSENT,
        "task_file": ABSENT,
        "directive_branch": _branch(repository, handoffs.sessions, session_id),
        "required_reading": settings.policy.required_reading or _usual_reading_in(repository.root),
    }
    packet, findings = packet_of(
        ParsedPacket(path, {**known, **given}, top=TOP if path else ""), settings.mode
    )
    if packet is not None:
        findings = (
            *findings,
            *_faults_around(handoffs, packet, path),
            *_faults_of_text(settings, packet, path),
        )
    if packet is None or errors(findings):
        return EmittedHandoff(findings=findings)
    is_new = bool(path) and _replace_if_changed(handoffs, repository.root, path, as_file(packet))
    return EmittedHandoff(packet, as_chat(packet), path, is_new, findings)


def _usual_reading_in(root: str) -> str:
    """Return the path that document 001 names if the repository has that file, else `n/a`."""
    return USUAL_READING if is_plain_file(os.path.join(root, USUAL_READING)) else ABSENT


def _branch(repository: Repository, sessions: DirectiveSessions, session_id: str) -> str:
    """Return the branch of a session from its README, or else the one checked out."""
    session = sessions.find(session_id)
    return (sessions.branch_of(session)[0] if session else "") or repository.head().branch


def _faults_around(handoffs: DirectiveHandoffs, packet: Packet, path: str) -> tuple[Finding, ...]:
    """Return the faults that stop any receiver, whatever branch the sender is on."""
    session, findings = handoffs.sessions.of_packet(packet, path)
    written = ParsedPacket(path, top=TOP if path else "")
    faults = faults_around(packet, handoffs.around(packet, session))
    return (*findings, *(written.place(fault) for fault in faults))


def _faults_of_text(settings: Settings, packet: Packet, path: str) -> tuple[Finding, ...]:
    """Parse the text to be written: it must give the same packet, and hold no credential."""
    text = as_file(packet) if path else as_chat(packet)
    data = text.encode()
    written = written_in(PacketSource(path, data), settings.limits)
    wrong = errors(written.findings)
    if not wrong and packet_of(written, settings.mode)[0] != packet:
        wrong = (
            Finding(
                Reason.INTERNAL_ERROR, path, message="the packet would not be read as it was given"
            ),
        )
    return wrong + find_secrets(data, path, frozenset(settings.policy.secrets_allowed))


def _replace_if_changed(handoffs: DirectiveHandoffs, root: str, path: str, text: str) -> bool:
    """Write HANDOFF.md unless it already has this text."""
    before = handoffs.sessions.open(path)
    if isinstance(before, PacketSource) and before.data == text.encode():
        return False
    write_text(os.path.join(root, path), text, root=root)
    return True
