"""From the records of an artifact to its findings: the shape of every line, then cross-references:
whether their targets exist, and in the right order. Also credentials in its content, which must be
found before the commit, because a commit makes a leak permanent. Pure.

Each member of `Check` that a row names is bound here to its predicate; a test asserts that none is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.table import ARCHITECTURE_SECTIONS, GRADES, Artifact, Check, required_keys
from yolo_fs.artifacts.verdicts import ArtifactPath, Located, PlanFacts, Surroundings
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.core.reasons import Fault, Finding, Grade, Level, Reason, shortened
from yolo_fs.core.timestamps import moment
from yolo_fs.schemas.contradictions import contradicted
from yolo_fs.schemas.layout import Record, Strictness, spelling_of

if TYPE_CHECKING:
    from yolo_fs.core.credentials import Hit
    from yolo_fs.schemas.base import Shape

MAX_FINDINGS = 100


class Understood(NamedTuple):
    """The content of an artifact in the documented form, and what is wrong with its lines."""

    records: tuple[Record, ...]
    faults: tuple[Located, ...]
    """In the order of the lines."""

    @property
    def is_sound(self) -> bool:
        """Whether no fault rejects the artifact."""
        return all(fault.level is not Level.ERROR for _, fault in self.faults)


def understand(
    place: ArtifactPath, records: Sequence[Record], mode: Strictness, plans: Collection[str] = ()
) -> Understood:
    """Return the content of each line by itself; `plans`: ids of those in the same folder."""
    from yolo_fs.artifacts.forms import normalise  # pydantic: see `load`

    normal, form_faults = normalise(place, records, plans)
    places = {(line, fault.at) for line, fault in form_faults}
    faults = (
        (line, fault)
        for line, fault in shape_faults(place.artifact, normal, mode)
        if not any((line, at) in places for at in _around(fault.at))
    )
    return Understood(normal, _grade_faults(_bounded(chain(form_faults, faults), mode), mode))


def of_sections(
    place: ArtifactPath, findings: Sequence[Finding], records: Sequence[Record]
) -> tuple[Finding, ...]:
    """Return the findings of parsing, with their final severity.

    In an architecture with all of its sections, TOON that cannot be parsed further is a `should`.
    """
    is_whole = Check.SECTIONS in place.artifact.checks and any(
        all(name in record.value for name in ARCHITECTURE_SECTIONS) for record in records
    )
    return tuple(
        replace(finding, level=Level.WARNING)
        if is_whole and finding.reason is Reason.TOON_INVALID
        else finding
        for finding in findings
    )


def _bounded(faults: Iterable[Located], mode: Strictness) -> Iterator[Located]:
    """Yield the first faults, then one for the rest, so that a large wrong file stays cheap."""
    warnings = errors = 0
    for line, fault in faults:
        is_error = fault.level is Level.ERROR and (fault.grade is not Grade.SHOULD or mode.strict)
        warnings, errors = warnings + (not is_error), errors + is_error
        count = errors if is_error else warnings
        if count <= MAX_FINDINGS:
            yield line, fault
        elif count == MAX_FINDINGS + 1:
            message = f"more than {MAX_FINDINGS} findings; the others are not listed"
            hint = "correct what is listed, then look again"
            yield line, fault._replace(at="", message=message, expected="", hint=hint)
        if errors > MAX_FINDINGS:
            return


def examine(
    place: ArtifactPath, records: Sequence[Record], around: Surroundings, mode: Strictness
) -> Understood:
    """Return an artifact's content with every fault, in line order, checked among its
    neighbours.
    """
    understood = understand(place, records, mode, around.present | around.plans.keys())
    references = tuple(run_checks(place, understood.records, around))
    return Understood(understood.records, _grade_faults([*understood.faults, *references], mode))


def _grade_faults(faults: Iterable[Located], mode: Strictness) -> tuple[Located, ...]:
    """Return the faults in the order of lines; a `should` only warns, unless strict."""
    graded = [
        (line, fault._replace(level=Level.WARNING))
        if fault.grade is Grade.SHOULD and not mode.strict
        else (line, fault)
        for line, fault in dict.fromkeys(faults)
    ]
    return tuple(sorted(graded, key=lambda located: located[0]))


def _around(at: str) -> Iterator[str]:
    """Yield a JSON pointer within a line, then its parents."""
    while at:
        yield at
        at = at.rpartition("/")[0]


def shape_faults(
    artifact: Artifact, records: Sequence[Record], mode: Strictness
) -> Iterator[Located]:
    """Yield what is wrong with the number of lines and the shape of each."""
    from yolo_fs.schemas.check import check

    yield from _count_faults(artifact, records)
    for record, shape in artifact.shapes_of(records):
        if artifact.is_one_line and record is not records[0]:
            continue
        if shape:
            faults = check(shape, record.value, mode)[1]
            sent = _find_message(shape, record.value, faults)
            yield from ((record.line, fault) for fault in ((sent,) if sent else faults))


def _find_message(
    shape: type[Shape], value: Mapping[str, Any], faults: Sequence[Fault]
) -> Fault | None:
    """Return the one fault of a message that stands in the place of a line, or None: what each of
    its keys lacks would not say so.
    """
    named = value.get("type")
    if not isinstance(named, str) or all(each.reason is not Reason.MISSING_KEY for each in faults):
        return None
    from yolo_fs.schemas.fields import fields_of
    from yolo_fs.schemas.messages.catalogue import MESSAGES

    if named not in MESSAGES or "type" in fields_of(shape):
        return None
    keys = f"a line with {', '.join(sorted(required_keys(shape)))}"
    hint = "Send it as a message, and write lines of this kind here."
    return Fault(Reason.RIVAL_SHAPE, "", f"this is the `{named}` message", keys, hint)


def _count_faults(artifact: Artifact, records: Sequence[Record]) -> Iterator[Located]:
    if artifact.is_one_line and len(records) > 1:
        # Real summaries often grow a line per task; the protocol calls that a warning (1.3, end).
        fault = Fault(Reason.WRONG_LINE_COUNT, "", f"{len(records)} lines", "exactly one line")
        yield records[1].line, fault._replace(level=Level.WARNING, grade=Grade.SHOULD)
    if artifact.needs_body and len(records) == 1:
        message, expected = "a header without any line below it", "at least one line more"
        yield records[0].line, Fault(Reason.WRONG_LINE_COUNT, "", message, expected)


def run_checks(
    place: ArtifactPath, records: Sequence[Record], around: Surroundings
) -> Iterator[Located]:
    """Yield what is wrong with the artifact's cross-references."""
    for row in place.artifact.checks:
        for line, fault in CHECKS[row](place, records, around):
            is_mild = GRADES[row] is Grade.SHOULD
            yield line, fault._replace(grade=Grade.SHOULD) if is_mild else fault
    yield from _check_contradictions(place, records)


def commits_mentioned(place: ArtifactPath, records: Sequence[Record]) -> tuple[str, ...]:
    """Return the commit hashes whose existence has to be looked up before the checks run."""
    if Check.COMMITS not in place.artifact.checks:
        return ()
    from yolo_fs.artifacts.forms import normalise

    normal = normalise(place, records).records
    return tuple(name for record in normal for name in _texts(record.value.get("ch")))


def plan_facts(header: Mapping[str, object]) -> PlanFacts | None:
    """Return what a plan's header tells others, or None when it tells nothing usable."""
    wave = header.get("w")
    if not isinstance(wave, int | float) or isinstance(wave, bool):
        return None
    return PlanFacts(wave, tuple(_texts(header.get("d"))))


def needs_of(place: ArtifactPath, records: Sequence[Record]) -> tuple[str, ...]:
    """Return the ids of the plans of its phase that a plan depends on."""
    if Check.WAVES not in place.artifact.checks or not records or place.plan is None:
        return ()
    names = _texts(records[0].value.get("d"))
    return tuple(name for name in names if name.startswith(f"{place.plan.phase}-"))


def _plan_name(
    place: ArtifactPath, records: Sequence[Record], _: Surroundings
) -> Iterator[Located]:
    if not records or place.plan is None:
        return
    line, header = records[0]
    spelled = f"{header.get('p')}-{header.get('n')}"
    of_phase = place.phase.number if place.phase else place.plan.phase
    meant = PlanId(of_phase, place.plan.number)
    if PlanId.parse(spelled) and spelled != str(meant):
        is_named = meant == place.plan  # else the file is renamed, as another finding says
        expected = f"plan {meant}, as the file is {'' if is_named else 'to be '}named"
        hint = f'Write "p":"{meant.phase}","n":"{meant.number}" here'
        hint += ", or rename the file." if is_named else "."
        message = f"the content is plan {spelled}"
        yield line, Fault(Reason.NAME_MISMATCH, "/n", message, expected, hint)
    yield from _check_phase_of_name(place)


def _check_phase_of_name(place: ArtifactPath) -> Iterator[Located]:
    if place.phase and place.plan and place.is_of_another_phase:
        folder, _, name = place.path.rpartition("/")
        own = name.replace(f"{place.plan.phase}-", f"{place.phase.number}-", 1)
        message = f"the file is named after phase {place.plan.phase}"
        hint = "Rename the file."
        yield 0, Fault(Reason.PHASE_MISMATCH, "", message, f"{folder}/{own}", hint)


_PHASE_KEYS = ("phase", "from_phase", "p", "ph")


def _phase(place: ArtifactPath, records: Sequence[Record], _: Surroundings) -> Iterator[Located]:
    if place.phase is None:
        return
    for line, value in records[:1]:
        for key in _PHASE_KEYS:
            phase_number = str(value.get(key, ""))
            if (
                phase_number.isascii()
                and phase_number.isdigit()
                and phase_number.lstrip("0") != place.phase.number.lstrip("0")
            ):
                expected = f"{place.phase.number}, as the directory is named"
                message = f"the content speaks of phase {phase_number[:80]}"
                yield line, Fault(Reason.PHASE_MISMATCH, f"/{key}", message, expected)


def _repeated(records: Sequence[Record]) -> Iterator[Located]:
    seen: dict[tuple[str, ...], int] = {}
    named = [
        (line, value, name) for line, value in records if isinstance(name := value.get("id"), str)
    ]
    highest: dict[str, int] = {}
    for _, _, name in named:
        stem, number = _numbered(name)
        highest[stem] = max(highest.get(stem, 1), number)
    for line, value, name in named:
        of = (str(value.get("plan", "")), str(value.get("rd", "")))
        first = seen.setdefault((name, *of), line)
        if first != line:
            message = f"{name!r} is already used on line {first}"
            stem, _ = _numbered(name)
            highest[stem] += 1
            free = f"{stem}{highest[stem]:0{len(name) - len(stem)}}"
            expected = f"an id of its own, such as {free}"
            yield line, Fault(Reason.DUPLICATE_ID, "/id", message, expected)


def _numbered(name: str) -> tuple[str, int]:
    """Return an id without its number, and the number: 0 for none that an author types by hand."""
    stem = name.rstrip("0123456789")
    digits = name.removeprefix(stem)
    return stem, int(digits) if 0 < len(digits) <= _MOST_DIGITS else 0


_MOST_DIGITS = 6
"""Converting a longer number takes longer than its text grows."""


def _check_task_graph(
    _: ArtifactPath, records: Sequence[Record], __: Surroundings
) -> Iterator[Located]:
    tasks = {
        name: record for record in records[1:] if isinstance(name := record.value.get("id"), str)
    }
    graph: dict[str, list[str]] = {}
    for name, (line, value) in tasks.items():
        graph[name] = []
        for position, needed in enumerate(_texts(value.get("td"))):
            at = f"/td/{position}"
            if needed == name:
                message, hint = f"{name} depends on itself", "Remove it from `td`."
                yield line, Fault(Reason.SELF_REFERENCE, at, message, "another task", hint)
            elif needed.rpartition("/")[0] in _texts(records[0].value.get("d")):
                seen = f"{needed} is of another plan, which comes first by `d`"
                yield line, Fault(Reason.UNTIDY_FORM, at, seen, _one_of(tasks), grade=Grade.SHOULD)
            elif needed not in tasks:
                seen, others = f"no task {needed!r} in this plan", tasks.keys() - {name}
                known, hint = _one_of(others), "Remove it from `td` if no task is meant."
                yield (
                    line,
                    Fault(Reason.UNKNOWN_REFERENCE, at, seen, known, hint, grade=Grade.SHOULD),
                )
            else:
                graph[name].append(needed)
    if circle := _circle(graph):
        path, (first, second) = " → ".join(circle), circle[:2]
        expected = "an order in which tasks can be done"
        hint = f"Remove {first} from `td` of {second} if {second} does not need it."
        yield tasks[first].line, Fault(Reason.DEPENDENCY_CYCLE, "/td", path, expected, hint)


def _waves(
    place: ArtifactPath, records: Sequence[Record], around: Surroundings
) -> Iterator[Located]:
    """Check that each plan in `d` is another one of this phase, and that there is no cycle."""
    if not records or place.plan is None or (own := plan_facts(records[0].value)) is None:
        return
    line, name = records[0].line, str(place.plan)
    for position, needed in enumerate(own.needs):
        if needed not in around.plans and needed not in around.present:
            yield line, _fault_for_missing_plan(needed, f"/d/{position}", place, around)
    graph = {
        **{other: list(facts.needs) for other, facts in around.plans.items()},
        name: list(own.needs),
    }
    if (circle := _circle(graph)) and name in circle:
        expected = "an order in which plans can be done"
        needed = circle[circle.index(name, 1) - 1]
        hint = f"Remove {needed} from `d` of this plan if the plan does not need it."
        fault = Fault(Reason.DEPENDENCY_CYCLE, "/d", " → ".join(circle), expected, hint)
        yield line, fault


def _check_wave_order(
    place: ArtifactPath, records: Sequence[Record], around: Surroundings
) -> Iterator[Located]:
    if not records or place.plan is None or (own := plan_facts(records[0].value)) is None:
        return
    for position, needed in enumerate(own.needs):
        facts = around.plans.get(needed)
        if facts and facts.wave >= own.wave and needed != str(place.plan):
            # Only a warning: readers that need the order take it from `d`.
            seen = f"plan {needed} is of wave {facts.wave}, this one of wave {own.wave}"
            fault = Fault(Reason.WAVE_ORDER, f"/d/{position}", seen, "a plan of an earlier wave")
            yield records[0].line, fault


def _fault_for_missing_plan(
    needed: str, at: str, place: ArtifactPath, around: Surroundings
) -> Fault:
    assert place.plan is not None
    if not needed.startswith(f"{place.plan.phase}-"):
        message, hint = f"no plan {needed!r} in this phase", "Name plans of other phases in `xd`."
        return Fault(Reason.UNKNOWN_REFERENCE, at, message, _one_of(around.plans, _PLANS), hint)
    message = f"waits for plan {needed}, which does not exist yet"
    hint = "The plan is committed once that one exists. If it is not needed, remove it from `d`."
    return Fault(Reason.WAITS_FOR, at, message, _one_of(around.plans, _PLANS), hint)


def _commits(_: ArtifactPath, records: Sequence[Record], around: Surroundings) -> Iterator[Located]:
    for line, value in records:
        for position, name in enumerate(_texts(value.get("ch"))):
            if not around.commits.get(name, False):
                at, expected = f"/ch/{position}", "the hash of a commit of this repository"
                hint = "'git log --oneline -9' lists the newest."
                yield line, Fault(Reason.UNKNOWN_COMMIT, at, f"{name!r}", expected, hint)


def _check_rising_time(
    _: ArtifactPath, records: Sequence[Record], __: Surroundings
) -> Iterator[Located]:
    latest: dict[str, datetime] = {}
    for line, value in records:
        name, written = str(value.get("id")), str(value.get("dt"))
        at = moment(written)  # what is none is a fault of its shape
        if at and name in latest and at <= latest[name]:
            message = f"{written} is not later than {latest[name].isoformat()}"
            # Lines are in the order of events; equal times prove nothing, so they are only a
            # warning.
            grade = Grade.SHOULD if at == latest[name] else Grade.MUST
            yield line, Fault(Reason.OUT_OF_RANGE, "/dt", message, "a later moment", grade=grade)
        if at:
            latest[name] = max(at, latest.get(name, at))


def _sections(_: ArtifactPath, records: Sequence[Record], __: Surroundings) -> Iterator[Located]:
    for line, value in records[:1]:
        if not _says_something(value):
            continue
        for section in ARCHITECTURE_SECTIONS:
            if section not in value:
                expected = f"the section; if it is empty: {section}[0]:"
                there = [key for key in value if spelling_of(key) == spelling_of(section)]
                message = f"no {section!r}, but {there[0]!r}" if there else f"no {section!r}"
                expected = "the section under the name of the protocol" if there else expected
                missing = Fault(Reason.SECTION_MISSING, f"/{section}", message, expected)
                yield line, missing._replace(level=Level.WARNING)


def _check_some_section(
    _: ArtifactPath, records: Sequence[Record], __: Surroundings
) -> Iterator[Located]:
    for line, value in records[:1]:
        if not _says_something(value):
            expected = f"the sections {', '.join(ARCHITECTURE_SECTIONS)}"
            yield line, Fault(Reason.SECTION_MISSING, "", "every section is empty", expected)


def _says_something(architecture: Mapping[str, object]) -> bool:
    return any(architecture.get(section) for section in ARCHITECTURE_SECTIONS)


def _check_contradictions(place: ArtifactPath, records: Sequence[Record]) -> Iterator[Located]:
    """Check that a verdict agrees with the evidence beside and below it, in every kind."""
    lines = [record.value for record in records]
    for contradiction in contradicted(place.artifact.kind, lines):
        expected = "a verdict that agrees with the evidence"
        yield (
            records[contradiction.position].line,
            Fault(
                Reason.STATE_CONFLICT,
                contradiction.at,
                contradiction.what,
                expected,
                grade=contradiction.grade,
            ),
        )


_OF_A_PLAN = ("id", "task")
"""Keys of a task within the plan that its record names."""


def references_in(value: Mapping[str, object]) -> Iterator[tuple[str, PlanId | TaskRef]]:
    """Yield each plan and task that a record names, with its key."""
    plan = str(value.get("plan"))
    for key in ("plan", *_OF_A_PLAN, "of"):
        name = str(value.get(key))
        of_plan = TaskRef.parse(f"{plan}/{name}") if key in _OF_A_PLAN else None
        whole = None if key == "id" else TaskRef.parse(name) or PlanId.parse(name)
        if named := of_plan or whole:
            yield key, named


def _check_references(
    place: ArtifactPath, records: Sequence[Record], around: Surroundings
) -> Iterator[Located]:
    if around.present and place.plan and str(place.plan) not in around.present:
        message, known = f"no plan {place.plan} in this phase", _one_of(around.present, _PLANS)
        yield 1, Fault(Reason.UNKNOWN_REFERENCE, "", message, known)
    for line, value in records if around.present else ():
        for key, named in references_in(value):
            plan = named.plan if isinstance(named, TaskRef) else named
            is_told = key in _OF_A_PLAN and value.get("plan") == str(plan)  # of `plan` itself
            if str(plan) not in around.present and not is_told:
                message, known = f"no plan {plan} in this phase", _one_of(around.present, _PLANS)
            elif str(plan) in around.present and named != plan and str(named) not in around.tasks:
                theirs = {task for task in around.tasks if task.startswith(f"{plan}/")}
                named_alone = {task.partition("/")[2] for task in theirs}
                is_alone = "/" not in str(value.get(key))
                message = f"plan {plan} has no task {value.get(key)}"
                known = _one_of(named_alone if is_alone else theirs)
                if not theirs:  # the plan cannot be read
                    continue
            else:
                continue
            yield line, Fault(Reason.UNKNOWN_REFERENCE, f"/{key}", message, known)


def _check_dispositions(
    _: ArtifactPath, records: Sequence[Record], around: Surroundings
) -> Iterator[Located]:
    for line, value in records if around.findings else ():
        rows = value.get("critique_disposition")
        for position, row in enumerate(rows if isinstance(rows, list) else ()):
            name = row.get("id") if isinstance(row, dict) else None
            if isinstance(name, str) and name not in around.findings:
                at = f"/critique_disposition/{position}/id"
                message = f"no critique of this phase has a finding {name[:80]!r}"
                yield line, Fault(Reason.UNKNOWN_REFERENCE, at, message, _one_of(around.findings))


def _check_payload(
    _: ArtifactPath, records: Sequence[Record], __: Surroundings
) -> Iterator[Located]:
    from yolo_fs.schemas.envelope.envelope import payload_faults

    for record in records:
        yield from ((record.line, fault) for fault in payload_faults(record.value))


CHECKS: Mapping[
    Check, Callable[[ArtifactPath, Sequence[Record], Surroundings], Iterator[Located]]
] = {
    Check.PLAN_NAME: _plan_name,
    Check.PHASE: _phase,
    Check.TASK_IDS: lambda _place, records, _around: _repeated(records[1:]),
    Check.TASK_GRAPH: _check_task_graph,
    Check.WAVES: _waves,
    Check.WAVE_ORDER: _check_wave_order,
    Check.COMMITS: _commits,
    Check.UNIQUE_IDS: lambda _place, records, _around: _repeated(records),
    Check.RISING_TIME: _check_rising_time,
    Check.SECTIONS: _sections,
    Check.SOME_SECTION: _check_some_section,
    Check.REFERENCES: _check_references,
    Check.DISPOSITIONS: _check_dispositions,
    Check.PAYLOAD: _check_payload,
}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


_PLANS = "'yolo-fs status -v'"


def _one_of(names: Iterable[str], shown_by: str = "") -> str:
    return shortened(sorted(names), shown_by=shown_by)


def _circle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def find_secrets(
    data: bytes, path: str, allowed: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Return a finding for each credential whose fingerprint is not allowed.

    The credential itself is never shown.
    """
    from yolo_fs.core.credentials import find_hits  # many commands examine no content

    refused = (pair for pair in find_hits(data) if pair[1].fingerprint not in allowed)
    hits = sorted(islice(refused, MAX_FINDINGS))
    return tuple(_finding(path, line, hit) for line, hit in hits)


def _finding(path: str, line: int, hit: Hit) -> Finding:
    return Finding(
        Reason.SECRET,
        path,
        line,
        message=f"rule {hit.rule}, fingerprint {hit.fingerprint}",
        expected="no credential in a file that is committed",
        hint="remove it and have it replaced by its provider; if it is harmless, allow the "
        "fingerprint",
    )
