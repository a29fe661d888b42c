"""What each name of the protocol means: reasons, gates, kinds of files and messages, steps, agents,
departments and states of files.

One name may have several meanings: `critique` is a step and a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from yolo_fs.artifacts.catalogue import all_kinds
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.misnamed import artifact_called
from yolo_fs.artifacts.table import Artifact, Home, by_kind
from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.core.reasons import Reason
from yolo_fs.protocol.departments import DEPARTMENTS
from yolo_fs.protocol.gates import GATES
from yolo_fs.protocol.roster import AGENT_BY_NAME, plain_name
from yolo_fs.protocol.workflow import STEPS


class Meaning(NamedTuple):
    """One meaning of a name."""

    what: str
    """Sort of thing: reason, gate, file, message, step, agent, department or state."""
    name: str
    says: str
    command: str
    """A command that shows more."""


def meanings_of(name: str) -> tuple[Meaning, ...]:
    """Return all meanings of a name; none for a name that the protocol does not have.

    Capitals count as small letters, and `-`, `_` and a space as the same.
    """
    return tuple(meaning for sort in _SORTS for meaning in sort(name))


def alike(name: str) -> list[str]:
    """Return the names of the protocol that are spelled like this one, the most similar first."""
    names = {_folded(known): known for known in _names()}
    return [names[each] for each in get_close_matches(_folded(name), sorted(names), 3, 0.7)]


def _names() -> Iterator[str]:
    yield from (reason.value for reason in Reason)
    yield from (gate.name for gate in GATES)
    yield from (kind.own_name for kind in all_kinds())
    yield from (step.key for step in STEPS)
    yield from AGENT_BY_NAME
    yield from (row.name for row in DEPARTMENTS)
    yield from CandidateState


def _folded(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _reasons(name: str) -> Iterator[Meaning]:
    if reason := Reason.known(_folded(name)):
        yield Meaning("reason", reason.value, reason.sentence, "yolo-fs status")


def _gates(name: str) -> Iterator[Meaning]:
    for gate in GATES:
        if _folded(gate.name) == _folded(name):
            says = f"open when {'; '.join(gate.needs)}"
            yield Meaning("gate", gate.name, says, f"yolo-fs gate why {gate.name}")


def _files(name: str) -> Iterator[Meaning]:
    if artifact := _artifact_called(name):
        kind = next(kind for kind in all_kinds() if kind.name == f"artifact/{artifact.kind}")
        step = next((step for step in STEPS if step.key == artifact.step), None)
        made = f"made in step {step.key} by {' and '.join(step.agents)}" if step else "of any step"
        read = "; ".join(filter(None, (kind.format.value, kind.how)))
        file = artifact.named("[fe-|ux-]", "NN-MM", phase="NN", department="DEPARTMENT")
        says = f"{_FOLDER[artifact.home]}{file}, {made}. {read}"
        yield Meaning("file", artifact.kind, says, f"yolo-fs schema example {artifact.kind}")


_FOLDER = {
    Home.PHASE: f"{PLANNING_ROOT}/phases/NN-SLUG/",
    Home.ROOT: f"{PLANNING_ROOT}/",
    Home.ANYWHERE: f"{PLANNING_ROOT}/**/",
    Home.DOCUMENTS: "documents/handoffs/",
}


def _artifact_called(name: str) -> Artifact | None:
    if artifact := by_kind(_folded(name).replace("_", "-").removeprefix("artifact/")):
        return artifact
    return artifact_called(name)


def _messages(name: str) -> Iterator[Meaning]:
    for kind in all_kinds():
        family = kind.name.partition("/")[0]
        if family != "artifact" and name in (kind.name, kind.own_name):
            says = f"{kind.format.value}; {kind.source}"
            yield Meaning(family, kind.name, says, f"yolo-fs schema show {kind.name}")


def _steps(name: str) -> Iterator[Meaning]:
    for step in STEPS:
        if name.strip() == step.number or _folded(name) == step.key:
            skips = f"; skipped by {', '.join(rule.sentence for rule in step.skips)}"
            says = (
                f"step {step.number}: {' and '.join(step.agents)} makes {', '.join(step.outputs)} "
                f"from {', '.join(step.inputs)}. Begins with: {'; '.join(step.entry)}. "
                f"Complete with: {'; '.join(step.exit)}{skips if step.skips else ''}"
            )
            yield Meaning("step", step.key, says, f"yolo-fs workflow check {step.key}")


def _agents(name: str) -> Iterator[Meaning]:
    if row := AGENT_BY_NAME.get(plain_name(name).replace("_", "-")):
        steps = [step.key for step in STEPS if row.role in step.agents]
        of = f" of {row.department}" if row.department else ""
        works = f"; works on {', '.join(steps)}" if steps and row.department else ""
        makes = f"; writes {', '.join(row.produces)}" if row.produces else ""
        says = f"{row.title}{of}{works}{makes}; may use {', '.join(row.tools)}"
        yield Meaning("agent", row.full_name, says, f"yolo-fs company show {row.name}")


def _departments(name: str) -> Iterator[Meaning]:
    for row in DEPARTMENTS:
        if _folded(name) in (row.name, *row.nicknames):
            prefix = f"; its files and agents begin with {row.prefix}" if row.prefix else ""
            says = f"{row.label}: {', '.join(row.agents)}{prefix}"
            yield Meaning("department", row.name, says, "yolo-fs dept show")


def _states(name: str) -> Iterator[Meaning]:
    for state in CandidateState:
        if _folded(name) == state:
            yield Meaning("state", state.value, state.label, "yolo-fs status")


_SORTS = (_reasons, _gates, _files, _messages, _steps, _agents, _departments, _states)
