"""Verdicts that contradict the evidence beside them: one table for artifacts and messages.

Such a verdict opens nothing, whoever committed it. Most are refused when they are written; those
that real teams write, though the documents read them as another verdict, only warn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Grade


class Contradiction(NamedTuple):
    """A verdict, and what may not be said beside it."""

    of: str
    """Kind of artifact, or type of message."""
    key: str
    """Key of the verdict."""
    verdict: str
    against: str
    """Place of what contradicts it: keys of the same object, or of the lines below it."""
    values: tuple[object, ...] = ()
    """What contradicts it there; empty: anything but zero or nothing."""
    is_below: bool = False
    """It is looked for in the lines below the verdict."""
    grade: Grade = Grade.MUST
    """SHOULD: it is committed, and counts for what the evidence says."""


_FAILED = ("FAIL",)
_CRITICAL = ("critical",)
_MAJOR = ("major",)

CONTRADICTIONS = (
    Contradiction("code-review", "r", "approve", "sev", _CRITICAL, is_below=True),
    Contradiction("code-review", "r", "approve", "sev", _MAJOR, is_below=True, grade=Grade.SHOULD),
    Contradiction("code-review", "r", "approve", "tdd", ("fail",)),
    Contradiction("verification", "r", "PASS", "fl"),
    Contradiction("verification", "r", "PASS", "r", ("fail",), is_below=True),
    Contradiction("qa-code", "r", "PASS", "tests/fl"),
    Contradiction("qa-code", "r", "PASS", "lint/err"),
    Contradiction("qa-code", "r", "PASS", "sev", _CRITICAL + _MAJOR, is_below=True),
    Contradiction("manual-qa", "r", "PASS", "tests/r", ("fail",)),
    Contradiction("qa-gate-results", "r", "PASS", "tst/fl"),
    Contradiction("qa-gate-results", "r", "PASS", "mh/fl"),
    Contradiction("qa-gate-results", "r", "PASS", "gates/fl"),
    Contradiction("security-audit", "r", "PASS", "critical"),
    Contradiction("security-audit", "r", "WARN", "critical"),
    Contradiction("security-audit", "r", "PASS", "sev", _CRITICAL, is_below=True),
    Contradiction("security-audit", "r", "WARN", "sev", _CRITICAL, is_below=True),
    Contradiction("integration-gate-result", "r", "PASS", "failures"),
    *(
        Contradiction("integration-gate-result", "r", "PASS", f"checks/{check}", ("fail",))
        for check in ("api", "design", "handoffs", "tests")
    ),
    Contradiction("owner-signoff", "decision", "SHIP", "integration_qa", _FAILED),
    Contradiction("code_review_result", "result", "approve", "critical"),
    Contradiction("qa_result", "result", "PASS", "checks/failed"),
    Contradiction("qa_code_result", "result", "PASS", "tests/failed"),
    Contradiction("qa_code_result", "result", "PASS", "lint/errors"),
    Contradiction("qa_code_result", "result", "PASS", "critical"),
    Contradiction("security_audit", "result", "PASS", "critical"),
    Contradiction("security_audit", "result", "WARN", "critical"),
    Contradiction("department_result", "result", "PASS", "qa_result", _FAILED),
    Contradiction("department_result", "result", "PASS", "security_result", _FAILED),
    Contradiction("owner_signoff", "decision", "SHIP", "integration_qa", _FAILED),
    Contradiction("po_qa_verdict", "verdict", "approve", "findings"),
    Contradiction("shutdown_response", "status", "clean", "pending_work"),
    Contradiction("shutdown_response", "status", "clean", "artifacts_committed", (False,)),
)


class Contradicted(NamedTuple):
    """A verdict that something contradicts."""

    position: int
    """Position of the line that contradicts it."""
    at: str
    """JSON pointer on that line."""
    what: str
    """Both, such as `PASS contradicts fl 3`."""
    grade: Grade


def contradicted(of: str, lines: Sequence[Mapping[str, Any]]) -> Iterator[Contradicted]:
    """Yield each contradiction in an artifact or a message, which is one line."""
    for row in CONTRADICTIONS:
        if row.of == of:
            yield from _below(row, lines) if row.is_below else _contradictions_beside(row, lines)


def _contradictions_beside(
    row: Contradiction, lines: Sequence[Mapping[str, Any]]
) -> Iterator[Contradicted]:
    for index, line in enumerate(lines):
        if line.get(row.key) == row.verdict:
            for value in _values(line, row.against):
                if _contradicts(row, value):
                    yield _contradict(row, index, value)


def _below(row: Contradiction, lines: Sequence[Mapping[str, Any]]) -> Iterator[Contradicted]:
    """A line with the verdict's key begins a new verdict, unless it is the findings' key too."""
    verdict: Mapping[str, Any] = {}
    for index, line in enumerate(lines):
        if row.key in line and (index == 0 or row.key != row.against):
            verdict = line
            continue
        is_of_it = line.get("plan") in (None, verdict.get("plan"))
        value = line.get(row.against)
        if is_of_it and verdict.get(row.key) == row.verdict and _contradicts(row, value):
            yield _contradict(row, index, value)


def _values(line: Mapping[str, Any], path: str) -> Iterator[Any]:
    """Yield what is at a place; of a list on the way, each of its objects is looked at."""
    key, _, rest = path.partition("/")
    value = line.get(key)
    if not rest:
        yield value
        return
    for item in value if isinstance(value, list) else (value,):
        if isinstance(item, Mapping):
            yield from _values(item, rest)


def _contradicts(row: Contradiction, value: Any) -> bool:
    return value in row.values if row.values else bool(value)


def _contradict(row: Contradiction, index: int, value: Any) -> Contradicted:
    shown = f"{len(value)} entries" if isinstance(value, list) else str(value)
    what = f"{row.verdict} contradicts {row.against.replace('/', '.')} {shown[:40]}"
    return Contradicted(index, f"/{row.against}", what, row.grade)
