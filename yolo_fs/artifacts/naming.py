"""Commit subjects: the prescribed one, from path and content; what a subject says a commit was for;
and whether a person's is valid. Pure.

Every historical spelling of the scope is understood. A source commit names its task by id (`T3 …`)
or by the task's own words, which is what the document prescribes. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from yolo_fs.artifacts.handoff_names import read_name
from yolo_fs.artifacts.table import Naming
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import GRAMMAR, PLAN, TYPES, PlanId, Subject, TaskRef, read_scope
from yolo_fs.protocol.departments import WORKING_NAMES, Dept
from yolo_fs.protocol.workflow import STEPS, Trailer
from yolo_fs.schemas.layout import Record

Entry = Mapping[str, Any]
"""One escalation of an execution state."""


class EscalationChange(Enum):
    """What happened to an escalation."""

    RECEIVED = "received"
    """It is open now, and was absent or closed before."""
    RESOLVED = "resolved"


class Changed(NamedTuple):
    """One escalation that a version of the state adds or closes."""

    id: str
    change: EscalationChange


def entries_in(state: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the escalations of an execution state; entries that are not objects are skipped."""
    entries = state.get("escalations")
    return (
        tuple(entry for entry in entries if isinstance(entry, dict))
        if isinstance(entries, list)
        else ()
    )


def changes(before: Iterable[Entry], after: Iterable[Entry]) -> Iterator[Changed]:
    """Yield the escalations added or closed between two versions, in the order of the later one."""
    was_open = {str(entry.get("id")): _is_open(entry) for entry in before}
    for entry in after:
        name = str(entry.get("id"))
        if _is_open(entry) is not was_open.get(name):
            is_open = _is_open(entry)
            change = EscalationChange.RECEIVED if is_open else EscalationChange.RESOLVED
            yield Changed(name, change)


def without(
    after: Iterable[Entry], before: Iterable[Entry], late: Sequence[Changed]
) -> list[Entry]:
    """Return the later version without some of its changes."""
    known = {str(entry.get("id")): entry for entry in before}
    kept = {change.id: known.get(change.id) for change in late}
    entries = (kept.get(str(entry.get("id")), entry) for entry in after)
    return [entry for entry in entries if entry is not None]


def _is_open(entry: Entry) -> bool:
    return entry.get("status") != "resolved"


def subject_of(place: ArtifactPath, records: Sequence[Record], before: Sequence[Record]) -> str:
    """Return the subject for a commit of this content.

    `before`: the records of the version before, where `is_named_by_change`; empty if there is none.
    """
    if is_named_by_change(place) and (subject := _subject_of_escalation(place, records, before)):
        return _render(subject, place, N=_number(place, records[0].value))
    return _RULES[place.artifact.naming](place, [record.value for record in records])


def spellings_of(
    place: ArtifactPath, records: Sequence[Record], before: Sequence[Record]
) -> Iterator[str]:
    """Yield every subject that this content may have in history, the prescribed one first.

    Older history has no subjects for escalations: there, the subject of a state names only its
    step.
    """
    prescribed = subject_of(place, records, before)
    yield prescribed
    by_step = _RULES[place.artifact.naming](place, [record.value for record in records])
    if by_step != prescribed:
        yield by_step


def is_named_by_change(place: ArtifactPath) -> bool:
    """Return whether the subject depends on the version before."""
    return place.artifact.naming is Naming.TRANSITION


def _subject_of_escalation(
    place: ArtifactPath, records: Sequence[Record], before: Sequence[Record]
) -> Subject | None:
    """Return the subject for the first escalation that this content adds or closes, if any."""
    known, entries = (
        entries_in(version[0].value) if version else () for version in (before, records)
    )
    received, resolved = place.artifact.subjects[2:4]
    first = next(changes(known, entries), None)
    if first is None:
        return None
    return received if first.change is EscalationChange.RECEIVED else resolved


def trailers_of(place: ArtifactPath, warning_count: int = 0) -> tuple[tuple[str, str], ...]:
    """Return the trailers by which programs find the commit again."""
    warned = ((Trailer.WARNINGS.value, str(warning_count)),) if warning_count else ()
    trailers = [(Trailer.ARTIFACT.value, place.artifact.kind)]
    if place.phase:
        trailers.append((Trailer.PHASE.value, str(place.phase)))
    if place.plan:
        trailers.append((Trailer.PLAN.value, str(place.plan)))
    return (
        *trailers,
        (Trailer.DEPT.value, place.department),
        (Trailer.SCHEMA.value, f"artifact/{place.artifact.kind}/1"),
        *warned,
    )


def _subject_by_place(place: ArtifactPath, _: Sequence[Mapping[str, Any]]) -> str:
    return _render(place.artifact.subjects[0], place)


def _subject_by_enrichment(place: ArtifactPath, lines: Sequence[Mapping[str, Any]]) -> str:
    planned, enriched = place.artifact.subjects
    tasks = lines[1:]
    every_task_has_spec = bool(tasks) and all(task.get("spec") for task in tasks)
    return _render(enriched if every_task_has_spec else planned, place)


def _subject_by_plan_count(place: ArtifactPath, lines: Sequence[Mapping[str, Any]]) -> str:
    single, several = place.artifact.subjects
    plans = set(_plans_in(lines))
    return _render(single, place, plan=plans.pop()) if len(plans) == 1 else _render(several, place)


def _subject_by_department(place: ArtifactPath, _: Sequence[Mapping[str, Any]]) -> str:
    position = WORKING_NAMES.index(Dept(place.department))
    return _render(place.artifact.subjects[position], place)


def _subject_by_completion(place: ArtifactPath, lines: Sequence[Mapping[str, Any]]) -> str:
    complete, otherwise = place.artifact.subjects
    chosen = complete if lines[0].get("st") == "complete" else otherwise
    return _render(chosen, place, N=_number(place, lines[0]), step=_step(lines[0]))


def _subject_by_step(place: ArtifactPath, lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the subject for the step that the state is at."""
    complete, skipped, *_, otherwise = place.artifact.subjects
    steps = lines[0].get("steps")
    reached = steps.get(str(lines[0].get("step") or _FIRST), {}) if isinstance(steps, dict) else {}
    chosen = {"complete": complete, "skipped": skipped}.get(str(reached.get("status")), otherwise)
    return _render(chosen, place, N=_number(place, lines[0]), step=_step(lines[0]))


_FIRST = "planning"
"""Default for a state without a step."""


def _step(state: Mapping[str, Any]) -> str:
    step = str(state.get("step") or _FIRST)
    return step if re.fullmatch(r"[a-z][a-z_]*", step) else _FIRST


def _number(place: ArtifactPath, state: Mapping[str, Any]) -> str:
    return _whole(state.get("ph", state.get("phase"))) or (
        str(int(place.phase.number)) if place.phase else "0"
    )


def _subject_by_route(place: ArtifactPath, _: Sequence[Mapping[str, Any]]) -> str:
    """Return the subject of a handoff: agents of the table, never free text (F55)."""
    stored = read_name(place.path)
    route = f"{stored.gaps['source']}_to_{stored.gaps['target']}" if stored else "choices"
    return _render(place.artifact.subjects[0], place, artifact=route)


_RULES: Mapping[Naming, Callable[[ArtifactPath, Sequence[Mapping[str, Any]]], str]] = {
    Naming.PLACE: _subject_by_place,
    Naming.ENRICHMENT: _subject_by_enrichment,
    Naming.ONE_PLAN: _subject_by_plan_count,
    Naming.DEPARTMENT: _subject_by_department,
    Naming.COMPLETION: _subject_by_completion,
    Naming.TRANSITION: _subject_by_step,
    Naming.ROUTE: _subject_by_route,
}


def _render(subject: Subject, place: ArtifactPath, **gaps: str) -> str:
    known = {
        "phase": place.phase.number if place.phase else "state",
        "artifact": place.name.lstrip(".").rsplit(".", 1)[0],  # no leading dot, no last ending
        **gaps,
    }
    if place.phase:
        known.setdefault("N", str(int(place.phase.number)))
    if place.plan:
        known.setdefault("plan", str(place.plan))
    return subject.render(**known)


def _plans_in(lines: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for line in lines:
        several = line.get("plans")
        named = [line.get("plan"), *(several if isinstance(several, list) else [])]
        yield from (plan for plan in named if isinstance(plan, str) and PLAN.fullmatch(plan))


def _whole(value: object) -> str:
    """Return a phase number as the subjects write it, unpadded; empty if it is not one."""
    text = str(value)
    return str(int(text)) if re.fullmatch(r"[0-9]{1,2}", text) else ""


_TASK = re.compile(r"(?:(?P<plan>[0-9]{2}-[0-9]{2})/)?T(?P<number>[1-9][0-9]*)\b")
_TICKET = re.compile(r"(?:\[[A-Za-z0-9#_./-]{1,40}\]|[A-Z][A-Z0-9]*-[0-9]+|#[0-9]+):?\s+")
"""Prefix that other hooks add to a subject."""
_SPACE = re.compile(r"\s+")


class Purpose(NamedTuple):
    """What a commit was for, by its subject."""

    phase: str
    """Two digits; empty when the subject names no phase."""
    plan: PlanId | None = None
    task: TaskRef | None = None
    step: str = ""
    """Key of the step whose artifact it records; empty for source and anything else."""
    words: str = ""
    """The text after the scope if it names no task, to compare with the words of a task."""


def purpose_of(subject: str) -> Purpose | None:
    """Return what a commit was for by its subject, or None if that is not in the protocol's
    form.
    """
    subject = without_ticket(subject)
    match = GRAMMAR.fullmatch(subject)
    if match is None:
        return None
    scope = read_scope(match["scope"])
    for step, template in _BY_WORD.get(match["text"].partition(" ")[0], ()):
        if gaps := template.match(subject):
            return Purpose(
                scope.phase, PlanId.parse(gaps.get("plan", "")) or scope.plan, None, step
            )
    task = _TASK.match(match["text"])
    plan = PlanId.parse(task["plan"]) if task and task["plan"] else scope.plan
    ref = TaskRef(plan, int(task["number"])) if plan and task else None
    return Purpose(
        scope.phase or (plan.phase if plan else ""),
        plan,
        ref,
        "",
        "" if ref else alike(match["text"]),
    )


def without_ticket(subject: str) -> str:
    """Return a subject as it was before a hook of others put its ticket in front."""
    ticket = _TICKET.match(subject)
    return subject[ticket.end() :] if ticket else subject


_Item = TypeVar("_Item")
_REVERTED = re.compile(r'(Revert|Reapply) "(.*)"')


def undone_by(subject: str) -> tuple[str, bool]:
    """Return the subject that a revert of git is about, and whether it takes that back: a revert of
    a revert does it again. Any other subject is about itself.
    """
    is_undone = False
    while match := _REVERTED.fullmatch(without_ticket(subject)):
        is_undone ^= match[1] == "Revert"
        subject = match[2]
    return subject, is_undone


def drop_reverted(
    items: Iterable[_Item], subject_of: Callable[[_Item], str]
) -> list[tuple[_Item, str, bool]]:
    """Return the items of which no revert took anything back, each with what `undone_by` says. A
    revert of what was there before is an item itself. `items`: oldest first.
    """
    left: list[tuple[_Item, str, bool]] = []
    for item in items:
        subject = without_ticket(subject_of(item))
        about, is_undone = undone_by(subject)
        about = without_ticket(about)
        opposite = (
            at for at in reversed(range(len(left))) if left[at][1:] == (about, not is_undone)
        )
        if about != subject and (taken_back := next(opposite, None)) is not None:
            del left[taken_back]
        else:
            left.append((item, about, is_undone))
    return left


def alike(words: str) -> str:
    """Return words normalised for comparison: spaces, case and a final full stop do not count."""
    return _SPACE.sub(" ", words).strip().rstrip(".").casefold()


def _index_templates() -> Mapping[str, tuple[tuple[str, Subject], ...]]:
    """Return the templates of artifacts by the first word after the scope."""
    templates: dict[str, tuple[tuple[str, Subject], ...]] = {}
    for step in STEPS:
        for template in step.commits:
            word = template.template.partition("): ")[2].partition(" ")[0]
            if not word.startswith("{"):
                templates[word] = (*templates.get(word, ()), (step.key, template))
    return templates


_BY_WORD = _index_templates()


GITS_OWN = ("Merge ", 'Revert "', "Reapply ", "fixup! ", "squash! ", "amend! ")
"""Prefixes of subjects that git itself writes; they are not checked."""

_ALIKE = 0.75
"""Similarity from which on a prescribed subject is taken as the intended one."""
_OTHER_TYPES = {
    "feature": "feat", "add": "feat", "added": "feat", "adds": "feat", "implement": "feat",
    "implements": "feat", "implemented": "feat", "bugfix": "fix", "bug": "fix", "hotfix": "fix",
    "fixed": "fix", "fixes": "fix", "tests": "test", "tested": "test", "doc": "docs",
    "document": "docs", "documented": "docs", "documentation": "docs", "readme": "docs",
    "performance": "perf", "refactored": "refactor", "build": "chore", "ci": "chore",
}  # fmt: skip
_PARTS = re.compile(
    r"(?P<type>[A-Za-z]++)?+\s*+(?:[(\[{](?P<scope>[^()\[\]{}]*+)[)\]}]\s*+)?+(?:!\s*+)?+"
    r"(?::|-\s)\s*+(?P<text>.*)"
)
_PLAN = re.compile(r"\b[0-9]{2}-[0-9]{2}\b")


def is_sound(subject: str) -> bool:
    """Return whether a subject follows the grammar, or is one that git writes itself."""
    return subject.startswith(GITS_OWN) or GRAMMAR.fullmatch(subject) is not None


def names_task(subject: str) -> bool:
    """Return whether a subject names a plan or a task of one, `NN-MM`."""
    return _PLAN_NAMED.search(subject) is not None


_PLAN_NAMED = re.compile(r"(?<![\d-])[0-9]{2}-[0-9]{2}(?![\d-])")
"""A plan id that is not part of a date."""


def first_line(message: str, comment: str = "#") -> str:
    """Return the subject of an edited message: its first line that git keeps."""
    lines = (line.rstrip() for line in message.splitlines())
    return next((line for line in lines if line.strip() and not line.startswith(comment)), "")


def nearest(subject: str, prescribed: Sequence[str], plan: str) -> str:
    """Return the valid subject that is closest to an invalid one.

    `prescribed`: subjects of the artifacts at hand. `plan`: the scope for a source commit that
    names none.
    """
    # Only rejected subjects are compared, and this import costs as much as all others together.
    from difflib import get_close_matches

    if alike := get_close_matches(subject, prescribed, 1, _ALIKE):
        return alike[0]
    parts = _PARTS.match(subject)
    said_type = (parts["type"] if parts else "") or ""
    text = (parts["text"].strip() if parts else subject.strip()) or "say what was done"
    scope = (parts["scope"] if parts else "") or ""
    named = _PLAN.search(subject)
    return f"{_type_of(said_type, text)}({scope.strip() or (named[0] if named else plan)}): {text}"


def _type_of(type_name: str, text: str) -> str:
    from difflib import get_close_matches

    words = (type_name.lower(), text.partition(" ")[0].lower())
    for word in filter(None, words):
        if word in TYPES or word in _OTHER_TYPES:
            return _OTHER_TYPES.get(word, word)
    return next(iter(get_close_matches(words[0], TYPES, 1, 0.6)), "chore") if words[0] else "chore"
