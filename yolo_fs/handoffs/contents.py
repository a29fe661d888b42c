"""Checks what a handoff says of files, contracts, components and counts against the facts.

A schema cannot check any of it. See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify, phase_folder_of
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Fault, Finding, Level, Reason, shortened
from yolo_fs.core.timestamps import moment
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, texts
from yolo_fs.evidence.plan_status import plan_progress
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT

_Line = Mapping[str, Any]
_ENTRIES = re.compile(
    r"(?P<file>\S+\.jsonl) entr(?:y|ies) (?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?"
)
"""A reference into the research archive, as the document spells it."""
_UNDECIDED = frozenset({"draft", "proposed", "disputed"})
_NAMES = ("id", "name", "component", "endpoint")
"""Keys whose values can name an entry of a file."""


def faults_of_handoffs(facts: PhaseFacts) -> tuple[Finding, ...]:
    """Return every statement in a phase's handoffs that the branch does not support."""
    findings: list[Finding] = []
    for kind, check in _CHECKS.items():
        for artifact in facts.of_kind(kind):
            for number, line in enumerate(artifact.lines, 1):
                faults = check(facts, artifact, line)
                findings += [fault.as_finding(artifact.place.path, number) for fault in faults]
    return tuple(findings)


PHASE_HANDOFF = "phase-handoff"
"""Kind of the artifact that leads from one phase into the next."""


def handoff_into(phase: PhaseId, committed: Iterable[CommittedArtifact]) -> str:
    """Return the path of the handoff into a phase, an input of its Critic and its Architect.

    `committed`: artifacts of all phases. Empty when the previous phase left none.
    """
    leading = [
        artifact
        for artifact in committed
        if artifact.valid
        and artifact.place.artifact.kind == PHASE_HANDOFF
        and artifact.place.phase != phase
        and any(line.get("to_phase") == phase.number for line in artifact.lines)
    ]
    return max((artifact.place.path for artifact in leading), default="")


def _check_phase_handoff(
    facts: PhaseFacts, artifact: CommittedArtifact, line: _Line
) -> Iterator[Fault]:
    yield from _named_files(facts, artifact, line)
    yield from _research(facts, artifact, line)
    yield from _counts(facts, line)
    yield from _unfinished(facts)


def _research(facts: PhaseFacts, artifact: CommittedArtifact, line: _Line) -> Iterator[Fault]:
    for position, reference in enumerate(texts(line.get("research_refs"))):
        spelled = _ENTRIES.match(reference)
        if spelled is None:
            continue
        at = f"/research_refs/{position}"
        archive = _find(facts, artifact, spelled["file"])
        last = int(spelled["last"] or spelled["first"])
        if archive is None:
            yield _absent(at, spelled["file"])
        elif last > len(archive.lines):
            message = f"{spelled['file']} has {len(archive.lines)} entries"
            yield Fault(
                Reason.UNKNOWN_REFERENCE, at, message, f"entries up to {len(archive.lines)}"
            )


def _counts(facts: PhaseFacts, line: _Line) -> Iterator[Fault]:
    """Compare the counts with the log as of the handoff; later stations do not count."""
    written = moment(line.get("dt"))
    latest: dict[Any, Any] = {}
    for station in facts.lines_of("escalation"):
        at = moment(station.get("dt"))
        if written is None or at is None or at <= written:
            latest[station.get("id")] = station.get("st")
    resolved = sum(state == "resolved" for state in latest.values())
    counted = {"escalations_resolved": resolved, "escalations_pending": len(latest) - resolved}
    for key, count in counted.items():
        if line.get(key) != count:
            message = f"the handoff counts {line.get(key)}, escalation.jsonl {count}"
            yield Fault(Reason.TOTALS_DISAGREE, f"/{key}", message, str(count))


def _unfinished(facts: PhaseFacts) -> Iterator[Fault]:
    behind = [plan for plan in plan_progress(facts) if not plan.is_done]
    if behind:
        plans = (f"plan {plan.id} is {plan.standing.value}" for plan in behind)
        listing = shortened(plans, 5, shown_by="'yolo-fs status -v'")
        yield Fault(
            Reason.STATE_CONFLICT,
            "/from_phase",
            f"handed over while {listing}",
            "all plans complete",
        )


def _check_dept_handoff(
    facts: PhaseFacts, artifact: CommittedArtifact, line: _Line
) -> Iterator[Fault]:
    yield from _named_files(facts, artifact, line)
    yield from _check_contracts(facts, artifact, line)
    yield from _departments(facts, line)


def _check_contracts(
    facts: PhaseFacts, artifact: CommittedArtifact, line: _Line
) -> Iterator[Fault]:
    for position, contract in enumerate(line.get("contracts") or ()):
        spec = contract.get("spec") if isinstance(contract, dict) else None
        if isinstance(spec, str):
            yield from _check_spec(facts, artifact, spec, f"/contracts/{position}/spec")


def _check_spec(
    facts: PhaseFacts, artifact: CommittedArtifact, spec: str, at: str
) -> Iterator[Fault]:
    name, _, entry = spec.partition("#")
    target = _find(facts, artifact, name)
    if target is None or not target.valid:
        yield _absent(at, name) if target is None else _report_invalid(at, target)
        return
    named = [line for line in target.lines if entry in names_of(line)]
    if entry and not named:
        entries = {known for line in target.lines for known in names_of(line)}
        known = shortened(sorted(entries), shown_by=name)
        yield Fault(
            Reason.UNKNOWN_REFERENCE,
            at,
            f"{name} has no entry {entry!r}",
            known or "an entry with an id",
        )
    elif named and named[-1].get("status") in _UNDECIDED:
        message = f"{entry!r} is {named[-1]['status']} in {name}"
        yield Fault(Reason.STATE_CONFLICT, at, message, "a contract whose specification is settled")


def _departments(facts: PhaseFacts, line: _Line) -> Iterator[Fault]:
    for key in ("from_dept", "to_dept"):
        if line.get(key) not in facts.options.departments:
            message = f"department {line.get(key)} takes no part in this phase"
            active = ", ".join(facts.options.departments)
            yield Fault(Reason.STATE_CONFLICT, f"/{key}", message, active, level=Level.WARNING)


def _check_design_handoff(
    facts: PhaseFacts, artifact: CommittedArtifact, line: _Line
) -> Iterator[Fault]:
    specs = facts.ask(_map_specs)
    if component := line.get("component"):
        yield from _component(str(component), "/component", specs)
        return
    for key, path in (line.get("artifacts") or {}).items():
        if isinstance(path, str):
            yield from _check_file(facts, artifact, path, f"/artifacts/{key}")
    for position, name in enumerate(texts(line.get("ready_components"))):
        yield from _component(name, f"/ready_components/{position}", specs)
    for position, name in enumerate(texts(line.get("deferred"))):
        if specs.get(name, {}).get("status") == "ready":
            yield Fault(
                Reason.STATE_CONFLICT,
                f"/deferred/{position}",
                f"component-specs says {name} is ready",
            )


def _map_specs(facts: PhaseFacts) -> Mapping[str, _Line]:
    return {name: spec for spec in facts.lines_of("component-specs") for name in names_of(spec)}


def _component(name: str, at: str, specs: Mapping[str, _Line]) -> Iterator[Fault]:
    if name not in specs:
        known = shortened(sorted(specs), shown_by="component-specs.jsonl")
        yield Fault(
            Reason.UNKNOWN_REFERENCE,
            at,
            f"component-specs has no {name!r}",
            known or "a committed component",
        )
    elif specs[name].get("status") != "ready":
        message = f"{name} is {specs[name].get('status')} in component-specs"
        yield Fault(Reason.STATE_CONFLICT, at, message, "a component that is ready")


def _check_api_contracts(
    facts: PhaseFacts, _committed: CommittedArtifact, line: _Line
) -> Iterator[Fault]:
    """A contract is implemented once built: at least one plan of the backend is proved done."""
    if line.get("status") == "implemented" and not any(
        plan.is_done for plan in plan_progress(facts, DEFAULT_DEPARTMENT)
    ):
        message = "implemented, but no plan of the backend is complete"
        yield Fault(Reason.STATE_CONFLICT, "/status", message, "agreed, until a summary proves it")


_CHECKS: Mapping[str, Callable[[PhaseFacts, CommittedArtifact, _Line], Iterator[Fault]]] = {
    PHASE_HANDOFF: _check_phase_handoff,
    "dept-handoff": _check_dept_handoff,
    "design-handoff": _check_design_handoff,
    "api-contracts": _check_api_contracts,
}


def _named_files(facts: PhaseFacts, artifact: CommittedArtifact, line: _Line) -> Iterator[Fault]:
    for position, name in enumerate(texts(line.get("artifacts"))):
        yield from _check_file(facts, artifact, name, f"/artifacts/{position}")


def _check_file(
    facts: PhaseFacts, committed: CommittedArtifact, name: str, at: str
) -> Iterator[Fault]:
    artifact = _find(facts, committed, name)
    if artifact is not None:
        if not artifact.valid:
            yield _report_invalid(at, artifact)
    elif any(classify(path) for path in _list_candidates(committed, name)):
        yield _absent(at, name)
    elif not any(
        path in commit.files
        for commit in facts.commits.values()
        for path in _list_candidates(committed, name)
    ):
        # Only what the protocol names is known for sure; another file may have come with a commit
        # that no summary mentions.
        message = f"{name} is not an artifact, and no commit that a summary names has it"
        yield Fault(Reason.UNKNOWN_REFERENCE, at, message, "a committed file", level=Level.WARNING)


def _find(facts: PhaseFacts, committed: CommittedArtifact, name: str) -> CommittedArtifact | None:
    """Return the committed artifact of a name: in the phase, or else below the root."""
    by_path = {artifact.place.path: artifact for artifact in facts.committed}
    return next(
        (by_path[path] for path in _list_candidates(committed, name) if path in by_path), None
    )


def _list_candidates(artifact: CommittedArtifact, name: str) -> Sequence[str]:
    """Return the possible paths of a name, nearest first. The phase may have been renamed since."""
    paths = (f"{artifact.place.folder}/{name}", f"{PLANNING_ROOT}/{name}", name)
    named, phase = next(filter(None, map(phase_folder_of, paths[1:])), ""), artifact.place.phase
    if phase is None or not named.startswith(f"{phase.number}-"):
        return paths
    return (*paths, f"{artifact.place.folder}/{name.partition(f'{named}/')[2]}")


def _absent(at: str, name: str) -> Fault:
    hint = "Write it, or remove it from the handoff."
    return Fault(
        Reason.UNKNOWN_REFERENCE, at, f"no {name} is committed", "a committed artifact", hint
    )


def _report_invalid(at: str, artifact: CommittedArtifact) -> Fault:
    message = f"{artifact.place.name} is committed, but does not pass the protocol"
    return Fault(
        Reason.STATE_CONFLICT,
        at,
        message,
        "a valid artifact",
        f"yolo-fs validate {artifact.place.path}",
    )


def names_of(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the possible names of an entry: its id, its name, or its contract's subject."""
    own = (line[key] for key in _NAMES if isinstance(line.get(key), str))
    endpoints = (item for item in line.get("endpoints") or () if isinstance(item, dict))
    return (*filter(None, own), *(f"{item.get('method')} {item.get('path')}" for item in endpoints))
