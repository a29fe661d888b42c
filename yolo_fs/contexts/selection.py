"""The sources of a context, and which of them each section of it may use: the only place where
isolation is enforced. Pure.

No section ever sees a source that `may ROLE read PATH` denies, nor a key that the filters exclude.
See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, ClassifiedPath
from yolo_fs.authority.access import Target, may_read, means
from yolo_fs.authority.actors import Actor, rule_of
from yolo_fs.core.ids import SHORT, PhaseId, PlanId
from yolo_fs.phase.view import SHARED_KINDS
from yolo_fs.protocol.contexts import FILTERS, NAMES, Column, Feed, Only, Reach, Section
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.isolation import BORDERS, SCOPES
from yolo_fs.schemas.layout import Record


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from."""

    path: str
    """POSIX path relative to the repository; empty for a commit itself."""
    line: int = 0
    """From 1; 0 for the existence of the file itself."""
    commit: str = ""
    """The commit with that version, if the work tree differs; without a path, the commit meant."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        if not self.commit:
            return place
        return f"{place}@{self.commit[:SHORT]}" if place else f"commit {self.commit[:SHORT]}"


@dataclass(frozen=True)
class ContextSource(ClassifiedPath):
    """One file that may be a source of a context, valid in the work tree or on the branch."""

    records: tuple[Record, ...] = ()
    lines: tuple[str, ...] = ()
    """Its text, line by line."""
    commit: str = ""
    """The commit of this version; empty for the work tree's."""

    @property
    def plan(self) -> PlanId | None:
        """The plan in its name."""
        return self.place.plan if self.place else None

    def at(self, line: int = 0) -> Origin:
        """Return the origin of one of its lines."""
        return Origin(self.path, line, self.commit)


class ContextSources(NamedTuple):
    """All possible sources of one context, before isolation."""

    phase: PhaseId
    actor: Actor
    sources: tuple[ContextSource, ...] = ()
    there: frozenset[str] = frozenset()
    """Paths of the files that exist, for references."""
    done: frozenset[PlanId] = frozenset()
    """Plans of the phase that are done."""
    plan: PlanId | None = None
    """The only plan that it is for; None for all active ones."""
    commits: tuple[tuple[str, str], ...] = ()
    """The last commits, newest first: name and subject."""

    @property
    def folder(self) -> str:
        """The directory of the phase."""
        return f"{PLANNING_ROOT}/phases/{self.phase}"


class Withheld(NamedTuple):
    """A source, or a part of one, that a section must not use."""

    section: str
    what: str
    """A path, or the columns of a table."""
    rule: str
    """The rule that denies it, with its source."""


class Chosen(NamedTuple):
    """The sources that one section may use."""

    sources: tuple[ContextSource, ...]
    paths: tuple[str, ...]
    """Files that it may refer to."""
    columns: tuple[Column, ...]
    withheld: tuple[Withheld, ...]


def choose(section: Section, gathered: ContextSources) -> Chosen:
    """Return the sources that a section of the reader's context may use, and what is withheld by
    which rule.
    """
    withheld: list[Withheld] = []

    def permitted(path: str) -> bool:
        answer = may_read(gathered.actor, Target(path))
        if not answer.allowed:
            withheld.append(Withheld(section.key, path, answer.rule))
        return answer.allowed

    sources = tuple(source for source in _wanted(section, gathered) if permitted(source.path))
    paths = tuple(path for path in _paths(section, gathered) if permitted(path))
    columns, kept_back = _columns(section, gathered, sources)
    return Chosen(sources, paths, columns, (*withheld, *kept_back))


def records_of(
    section: Section, gathered: ContextSources, source: ContextSource
) -> Iterator[Record]:
    """Yield the records of a source that are relevant to a section."""
    current = {str(plan) for plan in current_plans(gathered)}
    for position, record in enumerate(source.records):
        other = source.plan is None and str(record.value.get("plan") or "") not in ("", *current)
        is_out_of_reach = (section.reach is Reach.CURRENT and other) or (
            section.reach is Reach.HANDED and record.value.get("to_phase") != gathered.phase.number
        )
        if _COUNTS[section.only](record, position) and not is_out_of_reach:
            yield record


def current_plans(gathered: ContextSources) -> tuple[PlanId, ...]:
    """Return the active plans: the one given, else those of the reader that are not done."""
    if gathered.plan:
        return (gathered.plan,)
    plans = {
        source.plan
        for source in gathered.sources
        if source.kind == "plan" and source.plan and _is_own(source, gathered)
    }
    return tuple(
        sorted(plan for plan in plans - gathered.done if plan.phase == gathered.phase.number)
    )


def _wanted(section: Section, gathered: ContextSources) -> Iterator[ContextSource]:
    if section.feed in (Feed.FILES, Feed.NAMES):
        return
    for name in section.of:
        path = _path(name, gathered)
        named = (
            source
            for source in gathered.sources
            if source.kind == name or fnmatchcase(source.path, path)
        )
        yield from (
            source
            for source in named
            if _is_own(source, gathered) and _REACHES[section.reach](source, gathered)
        )


def _is_own(source: ContextSource, gathered: ContextSources) -> bool:
    """Return whether a source is of the reader's department, of none, or stands in for its own."""
    own, theirs = gathered.actor.department, Target(source.path).department
    if own is None or theirs is None:
        shared = (
            theirs is None and source.kind in SHARED_KINDS and own not in (None, DEFAULT_DEPARTMENT)
        )
        return not (
            shared and any(_is_kind_of(other, source.kind, own) for other in gathered.sources)
        )
    return theirs is own or "{dep" not in (source.place.artifact.file if source.place else "")


def _is_kind_of(source: ContextSource, kind: str, department: Dept | None) -> bool:
    return source.kind == kind and Target(source.path).department is department


def _is_of_phase(source: ContextSource, gathered: ContextSources) -> bool:
    return source.place is None or source.place.phase in (None, gathered.phase)


def _is_current(source: ContextSource, gathered: ContextSources) -> bool:
    return _is_of_phase(source, gathered) and (
        source.plan is None or source.plan in current_plans(gathered)
    )


def _is_prior(source: ContextSource, gathered: ContextSources) -> bool:
    current = current_plans(gathered)
    return (
        _is_of_phase(source, gathered)
        and source.plan is not None
        and (not current or source.plan < current[0])
    )


def _is_earlier(source: ContextSource, gathered: ContextSources) -> bool:
    phase = source.place.phase if source.place else None
    return phase is not None and phase.number < gathered.phase.number


_REACHES: Mapping[Reach, Callable[[ContextSource, ContextSources], bool]] = {
    Reach.PHASE: _is_of_phase,
    Reach.CURRENT: _is_current,
    Reach.PRIOR: _is_prior,
    Reach.EARLIER: _is_earlier,
    Reach.HANDED: _is_earlier,
}

_COUNTS: Mapping[Only, Callable[[Record, int], bool]] = {
    Only.ALL: lambda *_: True,
    Only.HEADER: lambda _, position: position == 0,
    Only.TASKS: lambda _, position: position > 0,
    Only.SKETCHED: lambda record, position: position > 0 and not record.value.get("spec"),
    Only.ENRICHED: lambda record, position: position > 0 and bool(record.value.get("spec")),
    Only.TESTABLE: lambda record, position: position > 0 and bool(record.value.get("ts")),
    Only.OPEN: lambda record, _: record.value.get("st") == "open",
    Only.SEVERE: lambda record, _: record.value.get("sev") in ("critical", "major"),
    Only.ANSWERED: lambda record, _: bool(record.value.get("finding")),
}


def _paths(section: Section, gathered: ContextSources) -> Iterator[str]:
    if section.feed is Feed.FILES:
        yield from (
            path for name in section.of if (path := _path(name, gathered)) in gathered.there
        )
    elif section.feed is Feed.NAMES:
        patterns = [f"{gathered.folder}/{name}" for name in section.of]
        yield from sorted(
            path
            for path in gathered.there
            if any(fnmatchcase(path, pattern) for pattern in patterns)
        )


def _path(name: str, gathered: ContextSources) -> str:
    """Return the path of a row: relative to the planning tree or, with a slash, to the
    repository.
    """
    actor = gathered.actor
    gaps = {
        "{phase}": f"phases/{gathered.phase}",
        "{NN}": gathered.phase.number,
        "{department}": str(actor.department or DEFAULT_DEPARTMENT),
        "{role}": actor.role.value,
    }
    for gap, value in gaps.items():
        name = name.replace(gap, value)
    if name.startswith("*"):
        return f"{gathered.folder}/{name}"
    return name[1:] if name.startswith("/") else f"{PLANNING_ROOT}/{name}"


def _columns(
    section: Section, gathered: ContextSources, sources: Iterable[ContextSource]
) -> tuple[tuple[Column, ...], tuple[Withheld, ...]]:
    columns, withheld = section.columns, []
    for rule, keys in dict(_limits(section, gathered, sources)).items():
        kept = tuple(
            column
            for column in columns
            if any(key.partition(".")[0] in keys for key in column.keys)
        )
        if lost := [column.name for column in columns if column not in kept]:
            withheld.append(Withheld(section.key, f"columns {', '.join(lost)}", rule))
        columns = kept
    return columns, tuple(withheld)


def _limits(
    section: Section, gathered: ContextSources, sources: Iterable[ContextSource]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each rule that limits the keys that a role may see, with these keys."""
    actor = gathered.actor
    for kind in dict.fromkeys(chosen_source.kind for chosen_source in sources):
        for row in FILTERS:
            if (row.role, row.kind) == (actor.role, kind) and not (
                row.header and section.only is Only.HEADER
            ):
                yield (
                    f"{actor.name} is shown {', '.join(row.keys) or 'line 1'} of {kind}. "
                    f"{rule_of(row.source)}",
                    _with(row.keys),
                )
    scopes = (row for row in SCOPES if row.role is actor.role)
    borders = (row for row in BORDERS if row.department is actor.department)
    items = [(item, rule_of(row.source)) for row in scopes for item in row.receives]
    items += [(item, rule_of(row.source)) for row in borders for item in row.receives]
    for source in sources:
        for item, printed in items:
            if item.fields and means(item, Target(source.path), actor):
                yield f"{actor.name} receives {item.text}. {printed}", _with(item.fields)


def _with(keys: Iterable[str]) -> frozenset[str]:
    return frozenset((*keys, *NAMES))
