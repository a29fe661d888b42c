"""Random phases: a complete one, with files missing, lines changed, verdicts turned, and files that are not valid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as some

from tests.support.phases import Content, committed, complete, facts
from tests.support.settings import config_from
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts

THREE = config_from(
    {
        "departments": {"frontend": True, "uiux": True},
        "department_workflow": "parallel",
        "security_audit": True,
    }
)
"""A company of three departments."""

TURNS: dict[str, list[Any]] = {
    "st": ["open", "addressed", "complete", "partial"], "s": ["complete", "partial", "failed"], "r": ["PASS", "FAIL", "WARN", "PARTIAL", "approve", "changes_requested"],
    "fl": [0, 3], "red": [True, False], "cf": [10, 90], "tc": [0, 1], "d": [[], ["01-01"], ["01-02"]], "ch": [[], ["aaaaaaa"], ["fffffff"]],
    "status": ["proposed", "agreed", "ready", "complete", "deferred", "blocked"],
}  # fmt: skip
"""What may be said otherwise under a key."""

OF_GATES: Content = {
    "design-handoff.jsonl": [{"component": "LoginForm", "status": "ready"}],
    "component-specs.jsonl": [{"name": "LoginForm", "status": "ready"}],
    "design-tokens.jsonl": [{"cat": "color", "name": "color-primary", "val": "#3B82F6"}],
    "api-contracts.jsonl": [{"endpoint": "POST /auth/login", "status": "agreed"}],
    "dept-handoff.jsonl": [{"from_dept": "uiux", "to_dept": "frontend", "blockers": []}],
    "fe-01-03.plan.jsonl": [{"p": "01", "n": "03", "t": "Form", "w": 1, "d": []}],
    "ux-01-04.plan.jsonl": [{"p": "01", "n": "04", "t": "Design", "w": 1, "d": []}],
}


def whole(*, company: bool) -> Content:
    """Return a phase in which nothing lacks."""
    return complete() | (OF_GATES if company else {})


@some.composite
def contents(draw: some.DrawFn, *, company: bool = False) -> Content:
    """Return the files of a phase as they may stand at any moment."""
    full = whole(company=company)
    names = draw(some.lists(some.sampled_from(sorted(full)), unique=True, max_size=len(full)))
    absent = draw(some.sampled_from(["few", "most"]))
    kept = [name for name in full if (name in names) == (absent == "most")]
    return {name: [_turned(draw, line) for line in full[name]] for name in kept}


def _turned(draw: some.DrawFn, line: dict[str, Any]) -> dict[str, Any]:
    """Return a line, in one of four cases with one of its values turned."""
    keys = sorted(line.keys() & TURNS.keys())
    if not keys or draw(some.integers(0, 3)):
        return line
    key = draw(some.sampled_from(keys))
    return {**line, key: draw(some.sampled_from(TURNS[key]))}


@some.composite
def phases(draw: some.DrawFn, *, company: bool = False) -> PhaseFacts:
    """Return the facts of such a phase."""
    found = facts(draw(contents(company=company)), **({"config": THREE} if company else {}))
    spoilt = draw(some.sets(some.integers(0, 40), max_size=3))
    return replace(
        found,
        committed=tuple(
            _spoilt(one) if at in spoilt else one for at, one in enumerate(found.committed)
        ),
    )


def _spoilt(one: CommittedArtifact) -> CommittedArtifact:
    return one._replace(valid=False)


def with_file(
    found: PhaseFacts, name: str, lines: list[dict[str, Any]], *, valid: bool = True
) -> PhaseFacts:
    """Return the facts with one file more, or with that file said anew."""
    fresh = committed(name, lines)._replace(valid=valid)
    return replace(
        found,
        committed=(*(one for one in found.committed if one.place.path != fresh.place.path), fresh),
    )
