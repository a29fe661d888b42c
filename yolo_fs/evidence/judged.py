"""What each verdict judges, and what came after it. Pure.

A verdict counts for the branch as it was when the verdict was given. A plan, source or summary that
comes later reopens its step, by name. A commit that repairs a failed step is judged by that step
again and by the steps after it, not by those before it. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from yolo_fs.artifacts.table import by_kind
from yolo_fs.core.ids import SHORT
from yolo_fs.evidence.facts import (
    NOWHERE,
    CommittedArtifact,
    PhaseFacts,
    Plan,
    Version,
    Work,
    is_work_of,
    left_by_reverts,
    plans_of,
)
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept
from yolo_fs.protocol.workflow import STEP_BY_KEY, STEPS

_REVIEW, _QA, _SECURITY, _INTEGRATION, _DELIVERY = range(5)
"""The judging steps, in order."""
JUDGED_BY: Mapping[str, int] = {
    "code-review": _REVIEW,
    "verification": _QA,
    "qa-code": _QA,
    "security-audit": _SECURITY,
    "integration-gate-result": _INTEGRATION,
    "po-qa-verdict": _DELIVERY,
}
"""Kind of a verdict → its step."""
_FAILS = frozenset({"FAIL", "changes_requested"})


def paths_of_verdicts(facts: PhaseFacts) -> tuple[str, ...]:
    """Return where verdicts on a phase are written, the Owner's decision among them, committed or
    not.
    """
    prefixes = [DEPARTMENT_BY_NAME[name].prefix for name in facts.options.departments]
    rows = filter(None, map(by_kind, (*JUDGED_BY, "owner-signoff")))
    names = (row.named(prefix) for row in rows for prefix in prefixes)
    return tuple(f"{facts.folder}/{name}" for name in dict.fromkeys(names))


_GATE = "integration-gate-result"


class JudgedFact(NamedTuple):
    """Something that verdicts judge, and its position on the branch."""

    what: str
    position: int
    judged_from: int
    """The first step that judges it."""
    plan: str


def came_later(facts: PhaseFacts, kind: str, department: Dept | None) -> Iterator[str]:
    """Yield what the verdicts of a kind must judge again, one sentence each.

    `department`: whose verdict and whose work, None for all.
    """
    for artifact in facts.of_kind(kind, department):
        if _is_restored(facts, artifact):
            name = artifact.place.name
            yield f"{name} is older than a verdict that a revert or a merge took back"
        things = list(later_than(facts, kind, artifact.position, department))
        for thing in things[:1]:
            others = f" and {len(things) - 1} more" if things[1:] else ""
            yield f"{artifact.place.name} is older than {thing.what}{others}"


def _is_restored(facts: PhaseFacts, artifact: CommittedArtifact) -> bool:
    """Return whether a verdict is in force only because a revert or a merge took a later one
    back.
    """
    path = artifact.place.path
    versions = chain(facts.versions.get(path, ()), facts.unread.get(path, ()))
    return artifact.position != NOWHERE and any(
        version.position > artifact.position and not version.is_restored for version in versions
    )


def is_any_older(facts: PhaseFacts) -> bool:
    """Return whether some verdict has to judge again: at most too often, where the past of the
    verdicts is not among the facts.
    """
    departments = facts.options.departments
    return any(
        True
        for kind, step in JUDGED_BY.items()
        for department in (departments if step < _INTEGRATION else (None,))
        for _ in came_later(facts, kind, department)
    )


def later_than(
    facts: PhaseFacts, kind: str, position: int, department: Dept | None, plan: str = ""
) -> Iterator[JudgedFact]:
    """Yield what came after a verdict of a kind and is judged by it.

    `plan`: only what belongs to this plan; empty for all.

    What is signed off stays so, whatever changes after the sign-off. But a sign-off replaces no
    verdict on what came before it. If the position of the verdict or of the sign-off in force is
    unknown, nothing counts as later; nor does work of unknown position.
    """
    signed_at = facts.ask(_find_sign_off_position)
    if NOWHERE in (position, signed_at):
        return
    departments = facts.options.departments if department is None else (department,)
    for each in departments:
        for thing in _made_after(facts, each, position):
            is_judged = thing.judged_from <= JUDGED_BY[kind] and plan in ("", thing.plan)
            is_beyond = signed_at is not None and facts.is_later(thing.position, signed_at)
            if is_judged and not is_beyond:
                yield thing


def _made_after(facts: PhaseFacts, department: Dept, position: int) -> Iterator[JudgedFact]:
    """Yield the work of a department that came after a position, or on another branch. A plan may
    have thousands of commits, and hardly one of them does.
    """
    made = facts.ask(_made).get(department, ())
    if facts.unseen.get(position):
        yield from (thing for thing in made if facts.is_later(thing.position, position))
        return
    places = facts.ask(_sort_made).get(department, ())
    later = places[bisect_left(places, (position + 1,)) :]
    yield from (made[at] for at in sorted(at for _, at in later))


def _sort_made(facts: PhaseFacts) -> Mapping[Dept, list[tuple[int, int]]]:
    """Return for each department the position of each of its work and its place in `_made`."""
    return {
        department: sorted((thing.position, at) for at, thing in enumerate(made))
        for department, made in facts.ask(_made).items()
    }


def _find_sign_off_position(facts: PhaseFacts) -> int | None:
    """Return the position of the sign-off in force; None while there is none."""
    at = facts.signed_off_at
    return at if facts.signed_off and not any(came_after_sign_off(facts, at)) else None


class LateChange(NamedTuple):
    """Something that changed after the sign-off of its phase, and that nobody has judged."""

    what: str
    """A plan, or the name of an artifact."""
    commit: str
    is_source: bool

    def __str__(self) -> str:
        return f"{self.what} ({self.commit[:SHORT]})"

    @property
    def in_words(self) -> str:
        """The same, in a list of both kinds."""
        return f"source of {self}" if self.is_source else str(self)


def changed_after_sign_off(facts: PhaseFacts) -> Iterator[LateChange]:
    """Yield the source commits of a phase that came after its sign-off, and what departments hand
    each other since then: what is signed stays so, but nobody has judged them. The integration gate
    judges what they hand over, also after the sign-off.
    """
    signed_at = facts.ask(_find_sign_off_position)
    if signed_at is None or signed_at == NOWHERE:
        return
    late = (
        work
        for work in facts.work
        if work.position != NOWHERE and facts.is_later(work.position, signed_at)
    )
    for work in left_by_reverts(late):
        yield LateChange(work.plan, work.commit, is_source=True)
    results = [artifact.position for artifact in facts.of_kind(_GATE)]
    for artifact in chain.from_iterable(map(facts.of_kind, INTEGRATED)):
        if artifact.position != NOWHERE and all(
            facts.is_later(artifact.position, judged_at) for judged_at in (signed_at, *results)
        ):
            yield LateChange(artifact.place.name, artifact.commit, is_source=False)


def came_together(facts: PhaseFacts) -> tuple[str, ...]:
    """Return the commits that brought a verdict in one with what is judged, or with the sign-off,
    as a squash does: nobody can tell from them which was first.
    """
    commits = {}
    signed = {facts.signed_off_at} if facts.signed_off else set()
    for department in facts.options.departments:
        made = {thing.position for thing in facts.ask(_made)[department]} | signed
        for kind, step in JUDGED_BY.items():
            for artifact in facts.of_kind(kind, department if step < _INTEGRATION else None):
                if artifact.position in made - {NOWHERE}:
                    commits[artifact.position] = artifact.commit[:SHORT]
    return tuple(commit for _, commit in sorted(commits.items()))


def _is_rework(facts: PhaseFacts, artifact: CommittedArtifact, since: int) -> bool:
    """Return whether each version of an artifact since a place of history patched what the Product
    Owner had found; so it is where there is none, as a revert of a revert brings back what was.
    """
    path, department = artifact.place.path, Dept(artifact.place.department)
    versions = *facts.versions.get(path, ()), *facts.unread.get(path, ())
    made = {each.position for each in versions} or {artifact.position}
    return all(
        _mended(facts, department, position) == _INTEGRATION
        for position in made
        if facts.is_later(position, since)
    )


_SIGNED = frozenset(
    name.partition(".")[0]
    for step in STEPS
    if step.blocking and float(step.number) < float(STEP_BY_KEY["signoff"].number)
    for name in step.outputs
)
"""Kinds that a sign-off covers: the results of the blocking steps before it."""


def came_after_sign_off(facts: PhaseFacts, position: int) -> Iterator[str]:
    """Yield the artifacts that a sign-off at a place of history cannot have signed.

    A patch that the Product Owner asks for is judged by the integration gate and by the next
    verdict.
    """
    for artifact in facts.committed if position != NOWHERE else ():
        is_signed = (
            artifact.valid and artifact.place.phase and artifact.place.artifact.kind in _SIGNED
        )
        is_late = is_signed and facts.is_later(artifact.position, position)
        if is_late and not _is_rework(facts, artifact, position):
            yield f"{artifact.place.name} ({artifact.commit[:SHORT]})"
    yield from _find_repairs_of_gate(facts, position)


def _find_repairs_of_gate(facts: PhaseFacts, signed_at: int) -> Iterator[str]:
    """Yield the source that was committed while a FAIL of the gate stood after a sign-off."""
    results = sorted(
        (version.position, version)
        for artifact in facts.of_kind(_GATE)
        for version in facts.versions.get(artifact.place.path, ())
        if version.position > signed_at != NOWHERE
    )
    positions = [position for position, _ in results]
    things = chain.from_iterable(facts.ask(_made).values()) if results else ()
    for thing in things:
        before = bisect_left(positions, thing.position) - 1
        is_failed = before >= 0 and _says_fail(results[before][1])
        if is_failed and thing.judged_from < _INTEGRATION:
            yield thing.what


def _says_fail(version: Version) -> bool:
    return any(line.get("r") in _FAILS for line in version.lines[-1:])


def _made(facts: PhaseFacts) -> Mapping[Dept, tuple[JudgedFact, ...]]:
    """Return the work of each department, each item with the first step that judges it."""
    return {
        department: tuple(
            chain(
                _sources(facts, department),
                _find_artifacts_made(facts, department),
                _find_papers(facts, department),
                _find_integrated(facts, department),
            )
        )
        for department in facts.options.departments
    }


def _sources(facts: PhaseFacts, department: Dept) -> Iterator[JudgedFact]:
    """Yield source. That of a plan which is not there is judged by every department with a plan;
    not, where the files of the commit say already whose it is.
    """
    named: dict[str, list[Plan]] = {}
    for plan in facts.plans:
        named.setdefault(str(plan.id), []).append(plan)
    changed = {work.commit for work in facts.changes}
    for work in (*facts.work, *facts.changes):
        if work.plan not in named and work.commit in changed:
            continue
        plans = named.get(work.plan, facts.plans)
        if work.position != NOWHERE and _is_judged_by(work, department, plans):
            commit = f" ({work.commit[:SHORT]})" if work.commit else ""
            first = _mended(facts, department, work.position)
            yield JudgedFact(f"source of {work.plan}{commit}", work.position, first, work.plan)


def _is_judged_by(work: Work, department: Dept, plans: Sequence[Plan]) -> bool:
    """Return whether a department judges a source commit: its own, or one that belongs to nobody,
    as it names a number that departments share and touches a file of none of them.
    """
    owners = {plan.department for plan in plans}
    if len(owners) == 1:
        return department in owners
    theirs = {each for each in owners if is_work_of(work, each, plans)}
    return department in (theirs or owners)


def _find_artifacts_made(facts: PhaseFacts, department: Dept) -> Iterator[JudgedFact]:
    """Yield the artifacts that are files of a plan, as those of UI/UX."""
    committed = {
        artifact.place.path: artifact
        for artifact in facts.committed
        if artifact.valid and artifact.position != NOWHERE
    }
    for plan in plans_of(facts, department):
        for path in sorted(plan.files & committed.keys()):
            made = committed[path]
            first = _mended(facts, department, made.position)
            what = f"{made.place.name} ({made.commit[:SHORT]})"
            yield JudgedFact(what, made.position, first, str(plan.id))


def _find_papers(facts: PhaseFacts, department: Dept) -> Iterator[JudgedFact]:
    """Yield designs, plans of work and tests, and summaries; no step before the verification
    judges them.
    """
    for kind in ("architecture", "plan", "test-plan", "summary"):
        for artifact in facts.of_kind(kind, department):
            plan = str(artifact.place.plan or "")
            first = max(_QA, _mended(facts, department, artifact.position))
            what = f"{kind} {plan}" if plan else artifact.place.name
            yield JudgedFact(f"{what} ({artifact.commit[:SHORT]})", artifact.position, first, plan)


INTEGRATED = ("api-contracts", "component-specs", "design-tokens", "user-flows",
              "design-handoff", "dept-handoff", "test-results", "summary")  # fmt: skip
"""Kinds that the integration gate compares."""


def _find_integrated(facts: PhaseFacts, department: Dept) -> Iterator[JudgedFact]:
    """Yield what departments hand each other; the first of them gets what belongs to none."""
    working = facts.options.departments
    for artifact in chain.from_iterable(map(facts.of_kind, INTEGRATED)):
        theirs = artifact.place.department
        if department == (theirs if theirs in working else working[0]):
            what = f"{artifact.place.name} ({artifact.commit[:SHORT]})"
            yield JudgedFact(what, artifact.position, _INTEGRATION, "")


def _mended(facts: PhaseFacts, department: Dept, position: int) -> int:
    """Return the failed step that was being repaired at a position; the first step if none."""
    positions, failed = facts.ask(_failures).get(department, ((), ()))
    before = bisect_left(positions, position) - 1
    return failed[before] if before >= 0 else _REVIEW


def _failures(facts: PhaseFacts) -> Mapping[Dept, tuple[Sequence[int], Sequence[int]]]:
    """Return for each department the places of the verdicts on its work, in order, and the step
    that is failed from each of them on; what cannot be read here may have failed.
    """
    return {each: _failures_of(facts, each) for each in Dept}


def _failures_of(facts: PhaseFacts, department: Dept) -> tuple[Sequence[int], Sequence[int]]:
    verdicts = []
    for kind, step in JUDGED_BY.items():
        for artifact in facts.of_kind(kind, None if step >= _INTEGRATION else department):
            path = artifact.place.path
            known = (version for version in facts.versions.get(path, ()) if version.lines)
            verdicts += [
                (version.position, _scope_of(kind, version), _fails(kind, version, department))
                for version in known
            ]
            failing = {_GATE: _REVIEW, "po-qa-verdict": _INTEGRATION}.get(kind, step)
            verdicts += [
                (version.position, kind, failing) for version in facts.unread.get(path, ())
            ]
    verdicts.sort()
    standing: dict[str, int] = {}
    failed = []
    for _, kind, step in verdicts:
        if kind == _ANEW:
            standing.clear()
        standing[kind] = step
        failed.append(max(standing.values()))
    return [position for position, _, _ in verdicts], failed


_ANEW = "everything"


def _scope_of(kind: str, version: Version) -> str:
    """Return whose failures a verdict replaces: those of its kind, or all where the work is scoped
    anew.
    """
    is_anew = kind == "po-qa-verdict" and version.lines[-1].get("verdict") == "major"
    return _ANEW if is_anew else kind


def _fails(kind: str, version: Version, department: Dept) -> int:
    """Return the step that a verdict fails in the work of a department; the first for one that
    passes. No judge has seen what mends a FAIL of the gate, so all steps judge it.
    """
    if kind == "po-qa-verdict":
        # What is scoped anew walks all steps again; a patch meets the gate, and the next verdict.
        last = version.lines[-1]
        is_asked = last.get("target_dept", department) == department
        return _INTEGRATION if is_asked and last.get("verdict") == "patch" else _REVIEW
    is_failed = any(line.get("r") in _FAILS for line in version.lines)
    return JUDGED_BY[kind] if is_failed and kind != _GATE else _REVIEW
