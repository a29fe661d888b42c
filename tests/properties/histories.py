"""Histories of a phase: what one to three departments commit in the order of the workflow, as events
that can be moved, left out, and given to another department, plan or author.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

from tests.support import phases
from tests.support.settings import config_from
from yolo_fs.evidence.facts import PhaseFacts, SourceCommit, Version, Work, WorkflowOptions
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept

DEPARTMENTS = (Dept.BACKEND, Dept.FRONTEND, Dept.UIUX)
DAY = "2026-02-19"
SHIP = ("state.json", "ROADMAP.md")


class Event(NamedTuple):
    """One commit: of an artifact, or of source."""

    name: str
    """File of the phase; `state.json` and `ROADMAP.md` of the planning tree; or a path of source."""
    lines: tuple[dict[str, Any], ...] = ()
    plan: str = ""
    """`NN-MM` of a source commit; empty for an artifact."""
    department: str = ""

    @property
    def path(self) -> str:
        return f"../../{self.name}" if self.name in SHIP else self.name


def prefix(department: Dept) -> str:
    return DEPARTMENT_BY_NAME[department].prefix


class Ground(NamedTuple):
    """Departments that work, and whether their plans have one number."""

    departments: tuple[Dept, ...]
    is_one_number: bool

    @property
    def options(self) -> WorkflowOptions:
        wanted = {str(each): each in self.departments for each in DEPARTMENTS}
        more = {"department_workflow": "parallel"} if len(self.departments) > 1 else {}
        return WorkflowOptions(config_from({"departments": wanted, "security_audit": True, **more}))

    def plan(self, department: Dept) -> str:
        place = 0 if self.is_one_number else self.departments.index(department)
        return f"01-{place + 1:02}"

    def source(self, department: Dept) -> str:
        return f"{department}/a.ts"

    def work(self, department: Dept) -> Event:
        return Event(self.source(department), (), self.plan(department), department)

    def disguised(self, department: Dept) -> Event:
        """Return work of a department by a commit that names a plan of another phase."""
        return self.work(department)._replace(plan="09-01")

    def is_disguised(self, event: Event) -> bool:
        return event.plan == "09-01" and event.department in self.departments

    def event(self, kind: str, department: Dept) -> Event:
        """Return a good artifact of a department."""
        plan, own = self.plan(department), prefix(department)
        task = {
            "id": "T1",
            "a": f"do {department}",
            "f": [self.source(department)],
            "spec": "s",
            "ts": "t",
        }
        done = {
            "s": "complete",
            "tc": 1,
            "tt": 1,
            "ch": [commit_of(department)],
            "tst": "red_green",
        }
        contents: dict[str, tuple[dict[str, Any], ...]] = {
            "architecture.toon": ({"tech_decisions": ["JWT"]},),
            "plan.jsonl": ({"p": "01", "n": plan[3:], "t": "x", "w": 1, "d": []}, task),
            "test-plan.jsonl": ({"id": "T1", "plan": plan, "red": True},),
            "summary.jsonl": (done,),
            "test-results.jsonl": ({"plan": plan, "phase": "green", "fl": 0, "dept": str(department)},),
            "code-review.jsonl": ({"plan": plan, "r": "approve", "dt": DAY},),
            "docs.jsonl": ({"type": "api"},),
            "verification.jsonl": ({"r": "PASS", "dt": DAY},),
            "qa-code.jsonl": ({"r": "PASS", "dt": DAY},),
            "security-audit.jsonl": ({"r": "PASS", "dt": DAY},),
        }  # fmt: skip
        name = f"{own}{plan}.{kind}" if kind in ("plan.jsonl", "summary.jsonl") else f"{own}{kind}"
        return Event(name, contents[kind], "", department)

    def of_department(self, department: Dept) -> Iterator[Event]:
        for kind in STEPS_OF_DEPARTMENT:
            yield self.work(department) if kind == "source" else self.event(kind, department)

    def whole(self, chance: Random) -> list[Event]:
        """Return a history that went as it should, its departments in turns by chance."""
        found = [
            Event("critique.jsonl", ({"id": "C1", "st": "addressed", "cf": 90, "rd": 1},)),
            Event("research.jsonl", ({"q": "rotation"},)),
        ]
        if Dept.UIUX in self.departments:
            found += [Event(name, tuple(lines)) for name, lines in HANDED.items()]
        queues = [list(self.of_department(each)) for each in self.departments]
        while any(queues):
            found.append(chance.choice([queue for queue in queues if queue]).pop(0))
        if len(self.departments) > 1:
            approved = [str(each) for each in self.departments]
            found.append(Event("integration-gate-result.jsonl", ({"r": "PASS", "dt": DAY},)))
            signoff = {
                "decision": "SHIP",
                "departments_approved": approved,
                "integration_qa": "PASS",
            }
            found.append(Event("owner-signoff.jsonl", (signoff,)))
        return [
            *found,
            Event("state.json", ({"st": "complete", "ph": 1},)),
            Event("ROADMAP.md", ({},)),
        ]


STEPS_OF_DEPARTMENT = (
    "architecture.toon", "plan.jsonl", "test-plan.jsonl", "source", "summary.jsonl", "test-results.jsonl", "code-review.jsonl",
    "docs.jsonl", "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl",
)  # fmt: skip
HANDED: dict[str, list[dict[str, Any]]] = {
    "design-handoff.jsonl": [{"component": "LoginForm", "status": "ready"}],
    "component-specs.jsonl": [{"name": "LoginForm", "status": "ready"}],
    "design-tokens.jsonl": [{"cat": "color", "name": "color-primary", "val": "#3B82F6"}],
    "api-contracts.jsonl": [{"endpoint": "POST /auth/login", "status": "agreed"}],
    "dept-handoff.jsonl": [{"from_dept": "uiux", "to_dept": "frontend", "blockers": []}],
}


def commit_of(department: str) -> str:
    return {"backend": "a", "frontend": "b", "uiux": "c"}[department] * 7


def known_of(ground: Ground, events: Iterable[Event]) -> PhaseFacts:
    """Return what is known of a phase whose commits came in this order."""
    versions: dict[str, list[Version]] = {}
    committed, work, changes = {}, [], []
    commits: dict[str, SourceCommit] = {}
    tasks: dict[str, str] = {}
    signed, signed_at = "", -1
    for position, event in enumerate(events):
        if ground.is_disguised(event):
            plan, touched = ground.plan(Dept(event.department)), frozenset([event.name])
            at = 10 * position, position
            changes.append(Work(plan, *at, touched, f"{position:040}"))
            continue
        if event.plan:
            named, oid = commit_of(event.department), f"{position:040}"
            work.append(Work(event.plan, 10 * position, position, frozenset([event.name]), oid))
            subject = f"feat({event.plan}): T1 do"
            commits[named] = SourceCommit(oid, subject, frozenset([event.name]), 10 * position)
            tasks.setdefault(f"{event.plan}/T1", oid)
            tasks[f"{event.department} {event.plan}/T1"] = oid
            continue
        one = phases.committed(event.path, list(event.lines))
        history = versions.setdefault(one.place.path, [])
        history.append(Version(one.lines, 10 * position, position, position))
        committed[event.path] = one._replace(
            position=position, at_s=10 * position, commit=f"{position:040}"
        )
        if event.name == "state.json":
            signed, signed_at = f"{position:040}", position
    present = tuple(committed.values())
    return PhaseFacts(
        phase=phases.PHASE, committed=present, options=ground.options.of_phase(present), commits=commits,
        task_commits=tasks, signed_off=signed, signed_off_at=signed_at, versions=versions,
        work=tuple(work), changes=tuple(changes), at_s=10 * len(committed),
    )  # fmt: skip
