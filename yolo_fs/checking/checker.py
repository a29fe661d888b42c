"""The only way from a file's bytes to its findings, for daemon, validate, verify and hooks
alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.artifacts.classify import place_of_name, plans_named
from yolo_fs.artifacts.examine import (
    Understood,
    commits_mentioned,
    examine,
    find_secrets,
    of_sections,
    plan_facts,
    references_in,
)
from yolo_fs.artifacts.naming import is_named_by_change
from yolo_fs.artifacts.table import Check, Home, required_keys
from yolo_fs.artifacts.verdicts import ArtifactPath, PlanFacts, Surroundings
from yolo_fs.checking.snapshots import AtCommit, NoTree, Snapshot
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.reasons import Finding, Level, Reason, errors
from yolo_fs.evidence.facts import WorkflowOptions, texts
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.lifecycle import (
    README,
    DirectiveSession,
    branch_lines,
    faults_of_place,
    faults_of_session,
    priority_said,
)
from yolo_fs.handoffs.packets import FENCE, ParsedPacket, from_front_matter, packet_of
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept
from yolo_fs.schemas.layout import Format, Record, is_skeleton
from yolo_fs.system.readers import READERS, read_lines
from yolo_fs.system.text_checks import FindingList, Limits, Reading, decode
from yolo_fs.workspace.settings import Settings

if TYPE_CHECKING:
    from yolo_fs.artifacts.catalogue import Kind
    from yolo_fs.schemas.packet import Packet


class Checked(NamedTuple):
    """The content of a file, and everything that is wrong with it."""

    records: tuple[Record, ...]
    faults: tuple[Finding, ...]
    """Violations of the protocol: errors and warnings."""
    secrets: tuple[Finding, ...] = ()
    """Credentials in it."""
    torn: bool = False
    """Its last line has no newline: it is still being written, or was cut."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What rejects it comes first: whoever names one finding as the cause names the first. A
        warning about a value that is refused is left out: the value has to be another one.
        """
        refused = [fault for fault in self.faults if fault.level is Level.ERROR]
        values = (fault for fault in refused if fault.at and fault.reason is not Reason.WAITS_FOR)
        places = {(fault.line, fault.at) for fault in values}
        warnings = (fault for fault in self.faults if fault.level is not Level.ERROR)
        warned = (fault for fault in warnings if (fault.line, fault.at) not in places)
        return (*refused, *warned, *self.secrets)


class Checker:
    """Checks files under one configuration."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._plans: dict[str, tuple[Hashable, PlanFacts | None]] = {}

    def check(self, place: ArtifactPath, data: bytes, snapshot: Snapshot) -> Checked:
        """Check the bytes of an artifact among its neighbours in a snapshot."""
        path, settings = place.path, self._settings
        limits = settings.limits._replace(stops_at_errors=True)
        reading = READERS[place.artifact.format](data, path, limits)
        records = reading.records
        if place.artifact.home is Home.DOCUMENTS:
            from yolo_fs.checking.envelopes import ProductHandoffs

            faults = ProductHandoffs(snapshot, settings).check_reading(path, reading)
        elif place.artifact.format is Format.FRONT_MATTER:
            faults = self._check_packet(data, path, reading, snapshot)
        else:
            understood = self._examined(place, reading.records, snapshot)
            records = understood.records
            located = tuple(fault.as_finding(path, line) for line, fault in understood.faults)
            faults = (*of_sections(place, reading.findings, records), *located)
            faults = tuple(_merge_missing_header(place, reading.records, faults))
            faults = (*faults, *self._out_of_lane(place, records))
            if settings.mode.strict:
                faults = tuple(map(_refused, faults))
        faults = tuple(
            _add_example_hint(finding, place.artifact.format, place.name)
            for finding in _merge_prose_faults(faults, data)
        )
        if not isinstance(snapshot, AtCommit):  # versions before this one committed skeletons
            faults = tuple(_refuse_skeleton(faults, path, data))
        return Checked(records, faults, self.find_secrets(path, data), reading.torn)

    def find_secrets(self, path: str, data: bytes) -> tuple[Finding, ...]:
        """Return a finding for each credential in the bytes of a file."""
        return find_secrets(data, path, frozenset(self._settings.policy.secrets_allowed))

    def _out_of_lane(self, place: ArtifactPath, records: Sequence[Record]) -> Iterator[Finding]:
        """Warn of files in a plan that its Devs may not write.

        Otherwise the first warning would come with their commit, when the whole chain is asked.
        """
        is_plan = place.artifact.kind == "plan" and place.department in DEPARTMENT_BY_NAME
        if not is_plan or not WorkflowOptions(self._settings.config).several_departments:
            return
        department = DEPARTMENT_BY_NAME[Dept(place.department)]
        for line, value in records[1:]:
            for number, path in enumerate(texts(value.get("f"))):
                areas = (area for area in department.off_limits if f"{path}/".startswith(area))
                if area := next(areas, ""):
                    yield Finding(
                        Reason.OUT_OF_LANE,
                        place.path,
                        line,
                        f"/f/{number}",
                        f"{department.name} may not write below {area}",
                        "files of the department",
                        "Give the task to the department that owns these files.",
                        Level.WARNING,
                    )

    def check_kind(self, kind: Kind, path: str, data: bytes) -> Checked:
        """Check the bytes of a file of a kind, without its surroundings."""
        from yolo_fs.artifacts.catalogue import ANY_ENVELOPE, ANY_MESSAGE, artifact_of

        if artifact := artifact_of(kind):
            return self.check(ArtifactPath(path, artifact), data, NoTree())
        reading = READERS[kind.format](data, path, self._settings.limits)
        if kind.format is Format.FRONT_MATTER:
            faults = self._check_packet(data, path, reading, NoTree())
        else:
            located = kind.faults(reading.records, self._settings.mode)
            faults = (*reading.findings, *(fault.as_finding(path, line) for line, fault in located))
        if kind not in (ANY_MESSAGE, ANY_ENVELOPE):  # of any message, none is the example
            faults = tuple(_add_example_hint(each, kind.format, kind.name) for each in faults)
        return Checked(reading.records, faults, torn=reading.torn)

    def plans_beside(self, place: ArtifactPath, snapshot: Snapshot) -> dict[str, PlanFacts]:
        """Return the facts of the other plans in the folder of a plan, by their ids."""
        plans: dict[str, PlanFacts] = {}
        for other in _places_beside(place, snapshot, "plan"):
            if other.name != place.name and (facts := self._plan_facts(other.path, snapshot)):
                plans[str(other.plan)] = facts
        return plans

    def _examined(
        self, place: ArtifactPath, records: Sequence[Record], snapshot: Snapshot
    ) -> Understood:
        if not records:
            return Understood((), ())
        mentioned = commits_mentioned(place, records)
        commits = snapshot.commits_exist(mentioned) if mentioned else {}
        asks_waves = Check.WAVES in place.artifact.checks and place.plan is not None
        refers = Check.REFERENCES in place.artifact.checks
        asks_names = asks_waves or refers or place.artifact.needs_plans
        plans = self.plans_beside(place, snapshot) if asks_waves else {}
        present = plans_named(snapshot.names(place.folder)) if asks_names else frozenset()
        tasks = self._tasks_named(place, records, snapshot) if refers else frozenset()
        disposes = Check.DISPOSITIONS in place.artifact.checks
        findings = self._findings_beside(place, snapshot) if disposes else frozenset()
        around = Surroundings(plans, commits, present, tasks, findings)
        return examine(place, records, around, self._settings.mode)

    def _tasks_named(
        self, place: ArtifactPath, records: Sequence[Record], snapshot: Snapshot
    ) -> frozenset[str]:
        """Return the tasks of those plans beside an artifact of which it names a task."""
        named = {
            name.plan
            for record in records
            for _, name in references_in(record.value)
            if isinstance(name, TaskRef)
        }
        plans = _places_beside(place, snapshot, "plan") if named else ()
        return frozenset(
            f"{other.plan}/{record.value.get('id')}"
            for other in plans
            if other.plan in named
            for record in self._records_of(other, snapshot)[1:]
        )

    def _findings_beside(self, place: ArtifactPath, snapshot: Snapshot) -> frozenset[str]:
        return frozenset(
            str(record.value.get("id"))
            for other in _places_beside(place, snapshot, "critique")
            for record in self._records_of(other, snapshot)
        )

    def _records_of(self, place: ArtifactPath, snapshot: Snapshot) -> Sequence[Record]:
        """Return the records of another artifact in the documented form; none if unreadable."""
        from yolo_fs.artifacts.forms import normalise

        data = snapshot.content(place.path)
        if not isinstance(data, bytes):
            return ()
        records = read_lines(data, place.path, self._settings.limits).records
        return normalise(place, records).records

    def _check_packet(
        self, data: bytes, path: str, reading: Reading, snapshot: Snapshot
    ) -> tuple[Finding, ...]:
        parsed = _parse_packet(data, path, reading, self._settings.limits)
        packet, findings = packet_of(parsed, self._settings.mode)
        return (*findings, *self._check_session(packet, parsed, snapshot)) if packet else findings

    def _check_session(
        self, packet: Packet, parsed: ParsedPacket, snapshot: Snapshot
    ) -> Iterator[Finding]:
        """Yield what keeps a packet from being that of its session, whose README says its branch.

        That is the session in whose folder a HANDOFF.md lies, or else the one that it names.
        """
        roots, folder = self._settings.policy.directive_roots, parsed.path.rpartition("/")[0]
        yield from map(parsed.place, faults_of_place(parsed.path, roots, packet.session_id))
        known = [folder] if any(folder.startswith(f"{root}/") for root in roots) else []
        known = known or [
            f"{root}/{name}"
            for root in roots
            for name in snapshot.names(root)
            if name.casefold() == packet.session_id.casefold()
        ]
        spelled = dict.fromkeys((packet.session_id, packet.session_id.lower()))
        places = known or [f"{root}/{name}" for root in roots for name in spelled]
        for readme in (f"{place}/{README}" for place in places):
            data = snapshot.content(readme)
            if isinstance(data, bytes):
                yield from self._check_readme(packet, parsed, readme, data)
                return
        absent = [snapshot.why_absent(f"{place}/{README}") for place in places]
        if known:
            yield from filter(None, absent[:1])
        elif places and all(absent):
            yield from map(parsed.place, faults_of_session(packet, None))

    def _check_readme(
        self, packet: Packet, parsed: ParsedPacket, readme: str, data: bytes
    ) -> Iterator[Finding]:
        limits = self._settings.limits
        branch, findings = read_branch(data, readme, limits)
        text = decode(data, limits, FindingList(readme))
        priority = priority_said(text.whole() if text else ())
        session = DirectiveSession(readme.rpartition("/")[0], branch, priority)
        yield from findings
        yield from map(parsed.place, faults_of_session(packet, session))

    def _plan_facts(self, path: str, snapshot: Snapshot) -> PlanFacts | None:
        key = snapshot.key(path)
        known = self._plans.get(path)
        if known and key is not None and known[0] == key:
            return known[1]
        from yolo_fs.artifacts.forms import normalise

        facts = None
        data = snapshot.content(path)
        if isinstance(data, bytes):
            first_line = data[: data.find(b"\n") + 1]
            records = read_lines(first_line, path, self._settings.limits).records
            place = place_of_name(path.rpartition("/")[2])
            if place and records:
                facts = plan_facts(normalise(place, records).records[0].value)
        if key is not None:
            self._plans[path] = key, facts
        return facts


def _places_beside(place: ArtifactPath, snapshot: Snapshot, kind: str) -> Iterator[ArtifactPath]:
    """Yield each artifact of a kind in the folder of another."""
    for name in snapshot.names(place.folder):
        other = place_of_name(name)
        if other and other.artifact.kind == kind:
            path = f"{place.folder}/{name}" if place.folder else name
            yield other._replace(path=path)


def _refuse_skeleton(findings: Iterable[Finding], path: str, data: bytes) -> Iterator[Finding]:
    """Yield the findings, and for a skeleton one about its last line, whatever its format."""
    last = data.count(b"\n") if is_skeleton(data) else 0
    if last:
        message = "the file is a skeleton that is not filled in yet"
        hint = "Fill in each value, then remove this line."
        yield Finding(Reason.EMPTY_VALUE, path, last, "", message, "its values alone", hint)
    yield from (finding for finding in findings if not last or finding.line != last)


def _merge_prose_faults(findings: Sequence[Finding], data: bytes) -> Sequence[Finding]:
    """Return one finding for a file without any JSON-like line, instead of one for each line."""
    wrong = errors(findings)
    if len(wrong) < 2 or not {finding.reason for finding in wrong} <= _OF_PROSE:
        return findings
    lines = data.split(b"\n")
    if not any(line.lstrip()[:1] in (b"{", b"[", b'"') for line in lines):
        message = "no line is JSON"
        if _TOON.match(data):
            message = "the text is TOON"
        elif all(_YAML.match(line) for line in lines if line.strip()):
            message = "the text is YAML"
        return (replace(wrong[0], message=message),)
    if _is_spread(data):
        message = "JSON values are spread over several lines"
        return (replace(wrong[0], reason=Reason.JSON_PARSE_ERROR, message=message),)
    return findings


def _is_spread(data: bytes) -> bool:
    """Return whether a text is nothing but whole JSON objects and lists, on any number of lines."""
    decoder, at = json.JSONDecoder(), 0
    try:
        text = data.decode().strip()
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            if not isinstance(value, dict | list):
                return False
            while text[at : at + 1].isspace():
                at += 1
    except (ValueError, RecursionError):
        return False
    return True


def _merge_missing_header(
    place: ArtifactPath, records: Sequence[Record], findings: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield the findings, but one for all keys where the first line is one of the body.

    Who is told each key that lacks would make a header of the first record.
    """
    artifact, findings = place.artifact, tuple(findings)
    line = records[0].line if records else 0
    is_first = not any(0 < wrong.line < line for wrong in errors(findings))
    if not (records and is_first and artifact.is_headless(records[0].value)):
        yield from findings
        return
    needed = sorted(required_keys(artifact.shapes[0]))
    there = next((each.line for each in records if artifact.looks_like_header(each.value)), 0)
    yield Finding(
        Reason.WRONG_LINE_COUNT,
        place.path,
        line,
        "",
        "this line is one of those below the header, which "
        + (f"is on line {there}" if there else "is missing"),
        f"a line with {', '.join(needed)} above it",
        f"{'Move' if there else 'Write'} the header to the first line.",
    )
    # Keys were read as if each line stood one higher: only what is no JSON is true of its line.
    yield from (finding for finding in findings if finding.line != line and not finding.at)


_OF_PROSE = frozenset((Reason.JSON_PARSE_ERROR, Reason.NOT_AN_OBJECT, Reason.UNTERMINATED))
_YAML = re.compile(rb"[ \t]*(?:- )*[\w-]+:(?: |$)|[ \t]*- |---|#")
"""A line of YAML, apart from texts of several lines."""
_TOON = re.compile(rb"[\w-]*\[#?[0-9]+[|\t]?\](?:\{[^}\n]*\})?:")
"""How a list or table in TOON begins."""


def _add_example_hint(finding: Finding, format_: Format, name: str) -> Finding:
    """Return a finding on a whole file or line with the command that shows a valid one."""
    is_whole = not finding.at and finding.level is Level.ERROR and finding.reason in _NEEDS_EXAMPLE
    if format_ is Format.FRONT_MATTER:
        shown = f"'yolo-fs schema example {name}' shows the whole form."
        is_whole = finding.reason in _NEEDS_EXAMPLE
    elif format_ in (Format.JSON, Format.JSONL, Format.TOON):
        shown = f"'yolo-fs schema example {name}' prints a valid one."
    else:
        return finding
    if not is_whole:
        return finding
    hint = f"{finding.hint} {shown}" if finding.hint else shown
    return replace(finding, hint=hint)


_NEEDS_EXAMPLE = frozenset({
    Reason.EMPTY_FILE, Reason.JSON_PARSE_ERROR, Reason.NOT_AN_OBJECT, Reason.SECTION_MISSING,
    Reason.RIVAL_SHAPE, Reason.TOON_INVALID, Reason.UNTERMINATED, Reason.WRONG_LINE_COUNT,
    Reason.FRONT_MATTER_MISSING, Reason.FRONT_MATTER_SHAPE, Reason.FRONT_MATTER_UNCLOSED,
})  # fmt: skip


def _refused(finding: Finding) -> Finding:
    """Return a finding as a repository sees it that tightens every `should` to a `must`."""
    is_known = finding.reason in (Reason.LEGACY_KEY, Reason.UNTERMINATED)
    return finding if is_known else replace(finding, level=Level.ERROR)


def read_handoff_file(data: bytes, path: str, limits: Limits) -> ParsedPacket:
    """Return the packet of a HANDOFF.md before its values are checked."""
    return _parse_packet(data, path, READERS[Format.FRONT_MATTER](data, path, limits), limits)


_BRANCH_AT = "/meta/directive_branch"


def read_branch(data: bytes, path: str, limits: Limits) -> tuple[str, tuple[Finding, ...]]:
    """Return `meta.directive_branch` of a session's README, or what is wrong with it."""
    hint, report = "correct the session's README", FindingList(path)
    text = decode(data, limits, report)
    lines = branch_lines(text.whole() if text else ())
    if not lines:
        expected = "`meta:` and below it `directive_branch: …`"
        lacking = Finding(Reason.MISSING_KEY, path, 1, _BRANCH_AT, "", expected, hint)
        return "", (*errors(report.findings()), lacking)
    # The rest of a README's front matter is free; this is parsed as strictly as HANDOFF.md.
    inner = (FENCE, "handoff:", *(f"  {line}" for _, line in lines), FENCE)
    reading = READERS[Format.FRONT_MATTER](
        "".join(f"{line}\n" for line in inner).encode(), path, limits
    )
    declared = (
        reading.records[0].value["handoff"].get("directive_branch") if reading.records else None
    )
    branch, wrong = declared.strip() if isinstance(declared, str) else "", errors(reading.findings)
    if not branch and not wrong:  # as a name it would be every branch's
        wrong = (Finding(Reason.EMPTY_VALUE, path, expected="the name of a branch", hint=hint),)
    return branch, tuple(
        replace(finding, path=path, line=lines[0][0], at=_BRANCH_AT) for finding in wrong
    )


def _parse_packet(data: bytes, path: str, reading: Reading, limits: Limits) -> ParsedPacket:
    text = decode(data, limits, FindingList(path))
    texts = reading.records[0].value["handoff"] if reading.records else {}
    return from_front_matter(texts, text.whole() if text else [], path, reading.findings)


def previous_records(
    repository: Repository, place: ArtifactPath, blob: str | None
) -> tuple[Record, ...]:
    """Return the records of the version before, if the commit's subject depends on the change.

    `blob`: the version before; None when there is none.
    """
    if not blob or not is_named_by_change(place):
        return ()
    git_object = repository.objects.read(blob, Limits().max_file_bytes)
    if git_object is None:
        return ()
    return READERS[place.artifact.format](git_object.body, place.path, Limits()).records
