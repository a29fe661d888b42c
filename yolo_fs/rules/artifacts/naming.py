"""How a commit is called: the prescribed subject, from path and content, and our trailers.

Source: document 002 ("11-Step Workflow", column Commit; "Commit-Every-Artifact Protocol"), protocol 5.2;
reliability F55: every token comes from an allow-list, never from free text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from yolo_fs.ids import PLAN
from yolo_fs.rules.artifacts.table import Naming
from yolo_fs.rules.facts import Place
from yolo_fs.rules.handoffs.storage_names import commit_subject
from yolo_fs.schemas.base import Record
from yolo_fs.subject import Subject

_DEPARTMENT_ORDER = ("backend", "frontend", "uiux")


def subject_of(place: Place, records: Sequence[Record]) -> str:
    """Return the subject under which this content of the artifact is committed."""
    return _RULES[place.artifact.naming](place, [record.value for record in records])


def trailers_of(place: Place) -> tuple[tuple[str, str], ...]:
    """Return the trailers that let machines find the commit again."""
    trailers = [("Yolo-Artifact", place.artifact.kind)]
    if place.phase:
        trailers.append(("Yolo-Phase", str(place.phase)))
    if place.plan:
        trailers.append(("Yolo-Plan", str(place.plan)))
    return (*trailers, ("Yolo-Dept", place.department), ("Yolo-Schema", f"artifact/{place.artifact.kind}/1"))


def _by_place(place: Place, _: Sequence[Mapping[str, Any]]) -> str:
    return _render(place.artifact.subjects[0], place)


def _by_enrichment(place: Place, lines: Sequence[Mapping[str, Any]]) -> str:
    planned, enriched = place.artifact.subjects
    tasks = lines[1:]
    every_task_has_spec = bool(tasks) and all(task.get("spec") for task in tasks)
    return _render(enriched if every_task_has_spec else planned, place)


def _by_one_plan(place: Place, lines: Sequence[Mapping[str, Any]]) -> str:
    one, several = place.artifact.subjects
    plans = set(_plans_in(lines))
    return _render(one, place, plan=plans.pop()) if len(plans) == 1 else _render(several, place)


def _by_department(place: Place, _: Sequence[Mapping[str, Any]]) -> str:
    return _render(place.artifact.subjects[_DEPARTMENT_ORDER.index(place.department)], place)


def _by_transition(place: Place, lines: Sequence[Mapping[str, Any]]) -> str:
    """State files: what the state says was reached last. Source: protocol 2.1 ("State commit")."""
    state = lines[0]
    *_, otherwise = place.artifact.subjects
    number = _whole(state.get("ph", state.get("phase"))) or (str(int(place.phase.number)) if place.phase else "0")
    step = str(state.get("step") or "planning")
    gaps = {"N": number, "step": step if re.fullmatch(r"[a-z][a-z_]*", step) else "planning"}
    if len(place.artifact.subjects) == 2:
        chosen = place.artifact.subjects[0] if state.get("st") == "complete" else otherwise
        return _render(chosen, place, **gaps)
    complete, skipped, _ = place.artifact.subjects
    steps = state.get("steps")
    reached = steps.get(step, {}) if isinstance(steps, dict) else {}
    by_status = {"complete": complete, "skipped": skipped}
    return _render(by_status.get(str(reached.get("status")), otherwise), place, **gaps)


def _by_route(place: Place, _: Sequence[Mapping[str, Any]]) -> str:
    subject = commit_subject(place.path)
    assert subject is not None, place.path
    return subject


_RULES: Mapping[Naming, Callable[[Place, Sequence[Mapping[str, Any]]], str]] = {
    Naming.PLACE: _by_place,
    Naming.ENRICHMENT: _by_enrichment,
    Naming.ONE_PLAN: _by_one_plan,
    Naming.DEPARTMENT: _by_department,
    Naming.TRANSITION: _by_transition,
    Naming.ROUTE: _by_route,
}


def _render(subject: Subject, place: Place, **gaps: str) -> str:
    known = {"phase": place.phase.number if place.phase else "state", "artifact": _stem(place.name), **gaps}
    if place.phase:
        known.setdefault("N", str(int(place.phase.number)))
    if place.plan:
        known.setdefault("plan", str(place.plan))
    return subject.render(**known)


def _stem(name: str) -> str:
    """Return the file name as a subject may say it: without its last ending and without a leading dot."""
    return name.lstrip(".").rsplit(".", 1)[0]


def _plans_in(lines: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for line in lines:
        several = line.get("plans")
        named = [line.get("plan"), *(several if isinstance(several, list) else [])]
        yield from (plan for plan in named if isinstance(plan, str) and PLAN.fullmatch(plan))


def _whole(value: object) -> str:
    """Return a phase number as the subjects write it, unpadded; nothing when it is none."""
    text = str(value)
    return str(int(text)) if re.fullmatch(r"[0-9]{1,2}", text) else ""
