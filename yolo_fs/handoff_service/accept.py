"""Accepts handoffs: finds the packet, collects its context, returns role or faults.

See docs/dev/faults.md#f50 and #f51.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.checking.checker import read_handoff_file
from yolo_fs.core.json_form import visible
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, errors
from yolo_fs.core.timestamps import iso
from yolo_fs.git.history import log
from yolo_fs.git.repository import MAIN_LINES, Repository
from yolo_fs.handoff_service.sessions import DirectiveSessions, PacketSource
from yolo_fs.handoffs.lifecycle import (
    ABSENT,
    HANDOFF,
    README,
    Around,
    DirectiveSession,
    LaterCommit,
    discretionary_work,
    faults_around,
    faults_of_branch,
)
from yolo_fs.handoffs.packets import FENCE, ParsedPacket, packet_of, read_chat
from yolo_fs.protocol.handoffs import DirectiveRole
from yolo_fs.system.database import is_proved, proof_of, prove, state_folder
from yolo_fs.system.files import FileEntry, read, walk
from yolo_fs.system.store import Damaged, remove, write_json
from yolo_fs.system.text_checks import FindingList, Limits, decode
from yolo_fs.system.warm_path import quick_stamp
from yolo_fs.workspace.own_files import ACCEPTED, OVERRIDES
from yolo_fs.workspace.settings import CONFIG, Settings, user_config_path

if TYPE_CHECKING:
    from yolo_fs.schemas.packet import Packet

MOST = 1_000
"""Overrides that are kept; the oldest are dropped first."""


class Override(NamedTuple):
    """One decision of the operator."""

    path: str
    """The packet's file, or `-`."""
    digest: str
    """SHA-256 of its bytes."""
    branch: str
    """Branch that was checked out."""
    faults: tuple[str, ...]
    """`reason at pointer` of each error that was overridden."""
    because: str
    """The operator's reason."""
    by: str
    """The operator's name and mail, as git knows them."""
    at: str
    """When, in UTC."""

    def covers(self, digest: str, branch: str, wrong: Sequence[Finding]) -> bool:
        """Return whether the operator has seen all of this: these bytes, this branch, these
        findings.
        """
        return (self.digest, self.branch) == (digest, branch) and set(_faults(wrong)) <= set(
            self.faults
        )


def find_override(
    repository: Repository, data: bytes, branch: str, wrong: Sequence[Finding]
) -> Override | None:
    """Return the latest override of exactly these bytes that covers all their faults."""
    kept = _kept(OVERRIDES.read(repository))
    digest = _digest(data)
    return next(
        (override for override in reversed(kept) if override.covers(digest, branch, wrong)), None
    )


def record_override(
    repository: Repository,
    path: str,
    data: bytes,
    branch: str,
    wrong: Sequence[Finding],
    because: str,
    now: datetime,
) -> Override:
    """Record the operator's decision and return it.

    Raises:
        YoloError: LOCK_TIMEOUT; NO_SPACE or STORAGE_FAILED, also where no key of this user can be
            kept that would prove whose decision it is.
    """
    if not proof_of(path):
        raise YoloError(Reason.STORAGE_FAILED, f"{state_folder()}: no key can be kept there")
    at = iso(now.timestamp())
    who = visible(repository.identity())
    made = Override(path, _digest(data), branch, _faults(wrong), because, who, at)
    OVERRIDES.update(repository, lambda before: _with(before, made))
    with contextlib.suppress(FileNotFoundError):
        remove(ACCEPTED.path(repository))  # what a hook was told before may hold no longer
    return made


def _with(before: dict[str, Any] | Damaged | None, made: Override) -> dict[str, Any]:
    overrides = (*_kept(before), made)[-MOST:]
    return {"overrides": [prove(override._asdict()) for override in overrides]}


def _kept(value: dict[str, Any] | Damaged | None) -> list[Override]:
    """Return the records that this user made; a damaged file overrides nothing."""
    kept = filter(is_proved, value["overrides"]) if isinstance(value, dict) else ()
    return [
        Override(
            **{name: each[name] for name in Override._fields} | {"faults": tuple(each["faults"])}
        )
        for each in kept
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _faults(wrong: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(f"{finding.reason.value} at {finding.at or '/'}" for finding in wrong)
    )


_SETTLED_S = 1.0
_COMMITS_LOOKED_AT = 500
"""Latest commits that are searched for a sender's later work."""


class ReceivedHandoff(NamedTuple):
    """A handoff and the result of its check."""

    source: PacketSource
    packet: Packet | None
    """None when there is no complete packet."""
    findings: tuple[Finding, ...]
    """Errors stop the receiver; those that the operator has overridden are warnings."""
    session: DirectiveSession | None = None
    override: Override | None = None
    over: str = ""
    """Why the handoff is closed; empty while it is open."""
    mender: str = ""
    """Role that has to mend what is wrong; empty when no packet says."""

    @property
    def is_accepted(self) -> bool:
        """Whether the receiver may go on without asking anybody."""
        return self.packet is not None and not errors(self.findings) and not self.over

    @property
    def role(self) -> str:
        """The receiver's role from now on; empty when it must stop."""
        return self.packet.to_role if self.packet and self.is_accepted else ""

    @property
    def session_file(self) -> str:
        """README of the session to continue; empty when there is none."""
        return f"{self.session.folder}/{README}" if self.session else ""

    @property
    def task_file(self) -> str:
        """Task to continue; empty when there is none."""
        return self.packet.task_file if self.packet and self.packet.task_file != ABSENT else ""


class Permission(NamedTuple):
    """Whether an agent may edit files now."""

    allowed: bool
    findings: tuple[Finding, ...] = ()
    """Why not."""
    may_override: bool = False
    """Whether there is a packet that the operator may accept in spite of them."""


def written_in(source: PacketSource, limits: Limits) -> ParsedPacket:
    """Return the packet of a text: front matter if its look or its name says so, else a chat."""
    starts_as_file = source.data.startswith(FENCE.encode() + b"\n")
    if starts_as_file or source.path.rpartition("/")[2] == HANDOFF:
        return read_handoff_file(source.data, source.path, limits)
    report = FindingList(source.path)
    text = decode(source.data, limits, report)
    written = read_chat(text.whole() if text else [], source.path)
    findings = report.findings()
    return replace(written, findings=findings if text is None else (*findings, *written.findings))


def _report_missing_handoff(path: str) -> Finding:
    return Finding(
        Reason.FILE_MISSING,
        path,
        message="the directive of this branch has no handoff",
        expected="the handoff of its sender; nobody may execute it without one",
        hint="write it with 'yolo-fs handoff emit'; a finished session has `status: archived` "
        "in its README",
    )


class DirectiveHandoffs:
    """The handoffs of one repository."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._root = repository.root
        self.sessions = DirectiveSessions(repository.root, settings)

    def latest(self) -> str:
        """Return the last written open HANDOFF.md; empty when there is none.

        For committed files, history tells which is later: a clone writes all files at one moment.
        """
        paths = self._list_youngest_first()
        return next((path for path in paths if not self._end_of(path)), next(iter(paths), ""))

    def _list_youngest_first(self) -> list[str]:
        entries = sorted(
            self._files(), key=lambda entry: (entry.stamp.mtime_ns, entry.path), reverse=True
        )
        paths, tip = [entry.path for entry in entries], self._repository.head().tip
        if len(paths) < 2 or tip is None:
            return paths
        committed = [path for path in paths if self._is_committed(path, tip)]
        output = self._repository.git.text(
            "log", "-z", "--format=", "--name-only", "--end-of-options", tip, "--", *committed
        )
        in_history = [path for path in dict.fromkeys(output.split("\0")) if path in committed]
        return [*(path for path in paths if path not in in_history), *in_history]

    def _is_committed(self, path: str, tip: str) -> bool:
        source = self.sessions.open(path)
        if isinstance(source, Finding):
            return False
        oid = self._repository.object_format.hash_object("blob", source.data).oid
        return self._repository.blob_at(tip, path) == oid

    def _end_of(self, path: str) -> str:
        """Return why the handoff in a file is closed; empty while it is open."""
        source = self.sessions.open(path)
        if isinstance(source, Finding):
            return ""
        packet, _ = packet_of(written_in(source, self._settings.limits), self._settings.mode)
        return self._end(source, packet)

    def _end(self, source: PacketSource, packet: Packet | None) -> str:
        """Return why a handoff is closed: session archived, or the branch's work was merged."""
        folder = source.path.rpartition("/")[0]
        session = self.sessions.find(packet.session_id) if packet else None
        if self.sessions.is_archived(folder) or (
            session and self.sessions.is_archived(session.folder)
        ):
            readme = f"{session.folder if session else folder}/{README}"
            return f"{readme} marks the session as archived"
        head = self._repository.head()
        if packet is None or head.tip is None or packet.directive_branch == head.branch:
            return ""
        if not self._is_committed(source.path, head.tip):
            return ""
        if not self._has_come_in(source.path, packet.directive_branch, head.branch, head.tip):
            return ""
        return f"{head.branch or 'HEAD'} has all of {packet.directive_branch}"

    def _has_come_in(self, path: str, directive: str, branch: str, tip: str) -> bool:
        """Return whether a branch contains what the directive's branch got after the handoff.

        It does not if the directive's branch does not exist yet, has no commits of its own, or is
        the base of this one: then the receiver is on the wrong branch.
        """
        handed_over = self._find_writing_commit(path, tip)
        if handed_over is None:
            return True
        there = self._repository.tip(f"refs/heads/{directive}")
        if there is None:
            return self._was_left(directive)
        since = f"^{handed_over}"
        if not self._repository.is_ancestor(there, tip) or not self._listed(there, since):
            return False
        if there not in self._listed(tip, since, "--first-parent"):
            return True  # merged
        # A fast-forward looks like a branch that was cut from the directive's, but on a main line.
        return branch in MAIN_LINES or any(
            self._repository.is_ancestor(there, f"refs/heads/{name}")
            for name in MAIN_LINES
            if self._repository.tip(f"refs/heads/{name}")
        )

    def _find_writing_commit(self, path: str, tip: str) -> str | None:
        """Return the commit of the branch that wrote a file; None when a merge brought it."""
        output = self._repository.git.text(
            "log", "-1", "--first-parent", "-m", "--format=%H %P", "--end-of-options", tip,
            "--", path,
        )  # fmt: skip
        oid, *parents = output.split()
        return oid if len(parents) < 2 else None

    def _was_left(self, branch: str) -> bool:
        """Return whether a branch that is gone was checked out here, and has no other name now."""
        output = self._repository.git.run("log", "-g", "--format=%gs", "HEAD", ok=(0, 128)).out
        for words in map(str.split, output.decode("utf-8", "replace").splitlines()):
            if words[:1] == ["checkout:"] and branch in words[3:6:2]:
                return True
            if words[:3] == ["Branch:", "renamed", f"refs/heads/{branch}"]:
                return False
        return False

    def _listed(self, tip: str, *more: str) -> list[str]:
        return self._repository.git.text("rev-list", *more, "--end-of-options", tip).split()

    def check(
        self, source: PacketSource | Finding, now: datetime, receiver: str = ""
    ) -> ReceivedHandoff:
        """Check a handoff; `receiver`: the role that asks, if it is known."""
        if isinstance(source, Finding):
            return ReceivedHandoff(PacketSource(source.path, b""), None, (source,))
        written = written_in(source, self._settings.limits)
        packet, findings = packet_of(written, self._settings.mode)
        if over := self._end(source, packet):
            return ReceivedHandoff(source, packet, (), over=over)
        if packet is None:
            return ReceivedHandoff(source, None, findings)
        session, session_findings = self.sessions.of_packet(packet, source.path)
        around = self.around(
            packet, session, receiver=receiver, branch=self._repository.head().branch
        )
        ahead_s = source.written_at_s - now.timestamp() if source.written_at_s is not None else 0
        is_known = self._is_branch_known(packet.directive_branch)
        around = replace(around, ahead_s=ahead_s, is_branch_known=is_known)
        of_receiver = map(written.place, faults_of_branch(packet, around))
        of_sender = tuple(map(written.place, faults_around(packet, around)))
        is_of_sender = errors((*findings, *session_findings, *of_sender))
        mender = packet.from_role if is_of_sender or not is_known else packet.to_role
        findings = (*findings, *session_findings, *of_receiver, *of_sender)
        handed = ReceivedHandoff(source, packet, findings, session, mender=mender)
        return self._apply_override(handed)

    def _is_branch_known(self, branch: str) -> bool:
        """Return whether a branch is there, in this clone or on a remote."""
        if self._repository.tip(f"refs/heads/{branch}") is not None:
            return True
        fetched = self._repository.git.text("for-each-ref", "--", f"refs/remotes/*/{branch}")
        return bool(fetched)

    def later_work(self, handed: ReceivedHandoff) -> tuple[Finding, ...]:
        """Return findings about what the sender wrote in that directive after the handoff."""
        if handed.packet is None or handed.source.written_at_s is None:
            return ()
        tip = self._repository.tip(f"refs/heads/{handed.packet.directive_branch}")
        later = self._commits_after(handed.source, handed.source.written_at_s, tip) if tip else ()
        return tuple(discretionary_work(handed.packet, later))

    def may_edit(self, now: datetime, *, receiver: str = "", editing: str = "") -> Permission:
        """Return whether files may be edited now: there is no open handoff, or it is accepted.

        `editing`: the file, relative to the repository; the HANDOFF.md itself, and the README of
        its session, may always be repaired.
        """
        missing = self._missing(receiver)
        path = missing or self.latest()
        if path in ("", editing) or editing == f"{path.rpartition('/')[0]}/{README}":
            return Permission(allowed=True)
        if missing:
            return Permission(allowed=False, findings=(_report_missing_handoff(missing),))
        handed = self.check(self.sessions.open(path), now, receiver)
        if editing and editing == handed.session_file:
            return Permission(allowed=True)
        allowed = handed.is_accepted or bool(handed.over)
        return Permission(allowed, errors(handed.findings), handed.packet is not None)

    def _missing(self, receiver: str) -> str:
        """Return the HANDOFF.md that the session of this branch lacks.

        Once it was committed, everybody needs it; before that, only the executor of the directive.
        """
        head = self._repository.head()
        for path in self._absent():
            folder = path.rpartition("/")[0]
            if not head.branch or not self._is_session_of(folder, head.branch):
                continue
            if self._repository.blob_at(head.tip, path):
                return path
            if receiver == DirectiveRole.EXECUTOR and not self._is_handed_over(head.branch):
                return path
        return ""

    def _is_session_of(self, folder: str, branch: str) -> bool:
        """Return whether a folder is that of an unarchived session of a branch."""
        if self.sessions.is_archived(folder):
            return False
        return self.sessions.branch_of(DirectiveSession(folder))[0] == branch

    def _is_handed_over(self, branch: str) -> bool:
        """Return whether one of the sessions of a branch has its HANDOFF.md."""
        return any(
            self._is_there(f"{folder}/{HANDOFF}") and self._is_session_of(folder, branch)
            for folder in self.sessions.folders()
        )

    def _absent(self) -> Iterator[str]:
        """Yield where a session has no HANDOFF.md."""
        for folder in self.sessions.folders():
            if not self._is_there(f"{folder}/{HANDOFF}"):
                yield f"{folder}/{HANDOFF}"

    def _is_there(self, path: str) -> bool:
        """Return whether anything is at a path that can be judged; a folder is no handoff."""
        full = os.path.join(self._root, path)
        return os.path.lexists(full) and (os.path.islink(full) or not os.path.isdir(full))

    def due(self) -> tuple[str, ...]:
        """Return the HANDOFF.md that ultra sessions lack: their trigger is met, and nobody has
        handed over.
        """
        paths = (f"{folder}/{HANDOFF}" for folder in self.sessions.ultra())
        return tuple(path for path in paths if not self._is_there(path))

    def note_accepted(self, now: datetime) -> None:
        """Record the stamps of files under which everybody may edit.

        Hooks check again only after a change. A file younger than a moment is not recorded, since
        it might change again without a new stamp.
        """
        latest, nothing = self.latest(), ReceivedHandoff(PacketSource("", b""), None, ())
        handed = self.check(self.sessions.open(latest), now) if latest else nothing
        seen = self._stamps(handed) if latest or any(self._absent()) else {}
        # Checked after the stamps are taken: a change in between leads to a new check.
        if not seen or not self.may_edit(now).allowed:
            return
        if any(
            stamp and stamp[1] > 1e9 * (now.timestamp() - _SETTLED_S) for stamp in seen.values()
        ):
            return
        roles = [role.value for role in DirectiveRole]
        self._repository.make_own_dir()
        note = {"stamps": seen, "roles": roles}
        write_json(ACCEPTED.path(self._repository), note, durable=False)

    def _stamps(self, handed: ReceivedHandoff) -> dict[str, list[int] | None]:
        """Return the stamps of what a verdict on a handoff depends on: size, time, inode."""
        session, packet = handed.session, handed.packet
        handoffs, absent = [entry.path for entry in self._files()], list(self._absent())
        readmes = [f"{path.rpartition('/')[0]}/{README}" for path in (*handoffs, *absent)]
        paths = [*handoffs, *absent, *readmes, CONFIG, *self.sessions.roots]
        paths += [f"{session.folder}/{README}"] if session else []
        for named in (packet.task_file, packet.required_reading) if packet else ():
            paths += [
                f"{folder}/{named}".lstrip("/")
                for folder in ("", session.folder if session else "")
            ]
        own = (f"{self._repository.git_dir}/HEAD", *self._list_ref_files(handoffs))
        full = [os.path.join(self._root, path) for path in paths]
        return {path: quick_stamp(path) for path in (*full, *own, user_config_path())}

    def _list_ref_files(self, handoffs: Sequence[str]) -> Iterator[str]:
        """Yield the files of refs that tell when a handoff is over, or was there; none if all that
        there may be are there and followed.
        """
        if not any(map(self._end_of, handoffs)) and not any(self._absent()):
            return
        common = self._repository.common_dir
        yield from (f"{common}/packed-refs", f"{common}/reftable/tables.list")
        branches = {self._repository.head().branch}
        for source in map(self.sessions.open, handoffs):
            written = (
                None if isinstance(source, Finding) else written_in(source, self._settings.limits)
            )
            packet = packet_of(written, self._settings.mode)[0] if written else None
            branches |= {packet.directive_branch} if packet else set()
        yield from (f"{common}/refs/heads/{branch}" for branch in sorted(branches))

    def override(self, handed: ReceivedHandoff, because: str, now: datetime) -> ReceivedHandoff:
        """Accept a complete packet despite its faults, as the operator decided, and record that.

        Raises:
            YoloError: STATE_CONFLICT when nothing is wrong, or no packet could be followed;
                EMPTY_VALUE.
        """
        wrong = errors(handed.findings)
        if not wrong:
            raise YoloError(Reason.STATE_CONFLICT, "nothing is wrong with the handoff")
        if handed.packet is None:
            message, hint = (
                "the packet cannot be read",
                "Ask the sender for a complete one.",
            )
            raise YoloError(Reason.STATE_CONFLICT, message, hint=hint)
        if not because.strip():
            raise YoloError(
                Reason.EMPTY_VALUE,
                "an override needs its reason",
                hint="Say why.",
                exit_code=Exit.USAGE,
            )
        source, branch = handed.source, self._repository.head().branch
        record_override(self._repository, source.path, source.data, branch, wrong, because, now)
        return self._apply_override(handed)

    def _apply_override(self, handed: ReceivedHandoff) -> ReceivedHandoff:
        wrong = errors(handed.findings)
        branch = self._repository.head().branch
        override = (
            find_override(self._repository, handed.source.data, branch, wrong) if wrong else None
        )
        if override is None:
            return handed
        findings = tuple(replace(finding, level=Level.WARNING) for finding in handed.findings)
        return handed._replace(findings=findings, override=override)

    def around(
        self,
        packet: Packet,
        session: DirectiveSession | None,
        *,
        receiver: str = "",
        branch: str | None = None,
    ) -> Around:
        """Return the context of a packet."""
        absent = {
            name: why
            for name, folders in (
                ("required_reading", ("",)),
                ("task_file", ("", session.folder if session else "")),
            )
            if getattr(packet, name) != ABSENT
            and (why := self._explain_absence(getattr(packet, name), folders))
        }
        is_ultra_open = packet.session_id != ABSENT or any(self.sessions.ultra())
        reading = self._settings.policy.required_reading
        return Around(reading, branch, receiver, session, absent, is_ultra_open)

    def _files(self) -> Iterator[FileEntry]:
        for root in (PLANNING_ROOT, *self.sessions.roots):
            entries = walk(self._root, root, is_handoff)
            # Folders that cannot be entered are listed, too, whatever is asked for.
            yield from (entry for entry in entries if is_handoff(entry.path))

    def _explain_absence(self, path: str, folders: Sequence[str]) -> str:
        """Return why no file is at a path, searched for in `folders`; empty when there is one."""
        places = [f"{folder}/{path}".lstrip("/") for folder in folders]
        contents = [read(self._root, place, 0) for place in places]
        if any(
            not isinstance(each, Finding) or each.reason is Reason.FILE_TOO_LARGE
            for each in contents
        ):
            return ""
        return "; ".join(
            dict.fromkeys(each.message for each in contents if isinstance(each, Finding))
        )

    def _commits_after(self, source: PacketSource, at_s: float, tip: str) -> Iterator[LaterCommit]:
        """Yield the commits after the file got its content, or else after it was written."""
        oid = self._repository.object_format.hash_object("blob", source.data).oid
        is_committed = self._repository.blob_at(tip, source.path) == oid
        since = (
            self._repository.git.text("log", "-1", "--format=%H", tip, "--", source.path)
            if is_committed
            else ""
        )
        revisions = f"{since}..{tip}" if since else tip
        authors = self._read_authors(revisions)
        for commit in log(self._repository, revisions, limit=_COMMITS_LOOKED_AT):
            if since or commit.at_s > at_s:
                paths = tuple(path for _, path in commit.changes)
                yield LaterCommit(commit.oid, authors.get(commit.oid, ""), commit.trailers, paths)

    def _read_authors(self, revisions: str) -> dict[str, str]:
        answer = self._repository.git.run(
            "log", "-z", f"--max-count={_COMMITS_LOOKED_AT}", "--no-mailmap", "--format=%H %an",
            "--end-of-options", revisions, "--",
        )  # fmt: skip
        pairs = (
            os.fsdecode(line).strip().partition(" ")
            for line in answer.out.split(b"\0")
            if line.strip()
        )
        return {oid: name for oid, _, name in pairs}


def is_handoff(path: str) -> bool:
    """Return whether a path is where a handoff packet lies."""
    return path.endswith(f"/{HANDOFF}")
