"""A branch in memory, and a team that works on it: each agent does what it is asked for and knows nothing else.

What it writes has the shapes of the protocol. Chance makes it fail a review, ask for research, block a task or write
out of turn, as often as its `slips` allow.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Any

from tests.properties.random_phases import OF_GATES
from tests.support.phases import FOLDER, PHASE
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.decisions import approve
from yolo_fs.escalations.fold import as_committed
from yolo_fs.escalations.lines import EscalationRequest, opened, raised, resolved
from yolo_fs.escalations.log import EscalationProgress, EscalationStage, logged
from yolo_fs.evidence.facts import (
    CommittedArtifact,
    PhaseFacts,
    SourceCommit,
    Version,
    Work,
    WorkflowOptions,
)
from yolo_fs.loops.facts import loop_facts
from yolo_fs.loops.rounds import exhausted
from yolo_fs.phase.progress import Next
from yolo_fs.progress.board import PhaseBoard
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.roster import department_said, role_of
from yolo_fs.schemas.config import ApprovalGates, Config

Line = dict[str, Any]
DAY = "2026-02-19"
PREFIX = {Dept.BACKEND: "", Dept.FRONTEND: "fe-", Dept.UIUX: "ux-"}
NUMBERS = {Dept.BACKEND: ("01", "02"), Dept.FRONTEND: ("03",), Dept.UIUX: ("04",)}
"""Numbers of the plans of each department."""
PEOPLE = frozenset({"user", "go.md"})


@dataclass
class Branch:
    """What is committed: each file with its versions, and the commits of source."""

    config: Config
    files: dict[str, list[Version]] = field(default_factory=dict)
    commits: dict[str, SourceCommit] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    work: list[Work] = field(default_factory=list)
    order: int = 0

    def write(self, name: str, lines: list[Line]) -> None:
        """Commit an artifact of the phase; one without lines is deleted."""
        self.order += 1
        if not lines:
            self.files.pop(name, None)
            return
        version = Version(tuple(lines), self.at_s, self.order, self.order)
        self.files.setdefault(name, []).append(version)

    def lines(self, name: str) -> list[Line]:
        """Return the records of an artifact as they are now."""
        return [dict(line) for line in self.files[name][-1].lines] if name in self.files else []

    def commit_source(self, plan: str, task: str, path: str) -> str:
        """Commit source of a task, and return the commit's name."""
        self.order += 1
        oid = f"{self.order:07x}" * 5 + "00000"
        subject = f"feat({plan}): {task} work {self.order}"
        self.commits[oid[:7]] = SourceCommit(oid, subject, frozenset({path}), self.at_s)
        self.tasks[f"{plan}/{task}"] = oid
        self.work.append(Work(plan, self.at_s, self.order))
        return oid[:7]

    @property
    def at_s(self) -> int:
        return 1_771_500_000 + 10 * self.order

    @property
    def day(self) -> str:
        """A day that no verdict had before."""
        return (date(2026, 1, 1) + timedelta(days=self.order)).isoformat()

    @property
    def phase(self) -> PhaseBoard:
        """What the protocol makes of it."""
        committed, versions = [], {}
        for name, known in self.files.items():
            path = f".yolo-planning/{name[6:]}" if name.startswith("../../") else f"{FOLDER}/{name}"
            place = classify(path)
            assert place is not None, path
            last = known[-1]
            committed.append(
                CommittedArtifact(place, last.lines, True, "c", last.at_s, last.position)
            )
            versions[path] = tuple(known)
        return PhaseBoard(
            PhaseFacts(
                PHASE,
                tuple(committed),
                WorkflowOptions(self.config),
                self.commits,
                self.tasks,
                versions=versions,
                work=tuple(self.work),
                at_s=self.at_s,
            )
        )


def random_config(chance: Random) -> Config:
    """Return a configuration as a team may have it."""
    several = chance.choice([{}, {"frontend": True}, {"frontend": True, "uiux": True}])
    return config_from(
        {
            "departments": several,
            "department_workflow": chance.choice(["parallel", "sequential"])
            if several
            else "backend_only",
            "security_audit": chance.random() < 0.7,
            "documenter": chance.choice(["on_request", "always", "never"]),
            "po": {"enabled": chance.random() < 0.4},
            "integration_gate": {"enabled": chance.random() < 0.5},
            "approval_gates": {name: chance.random() < 0.2 for name in ApprovalGates._fields},
        }
    )


_IN_ORDER = (
    "_architecture_by_architect", "_planning_by_lead", "_design_review_by_senior", "_test_authoring_by_tester",
    "_implements_all", "_summarises_all", "_code_review_by_senior", "_code_review_by_dev",
    "_documentation_by_documenter", "_qa_by_qa", "_qa_by_qa_code", "_security_by_security",
)  # fmt: skip
"""What each department does, step by step."""


@dataclass
class Agents:
    """Whoever is asked does it, at times badly: so often as `slips` says."""

    branch: Branch
    chance: Random
    slips: int = 0

    def act(self, asked: Next) -> bool:
        """Do what is asked for; False when a person is asked who does not answer here."""
        if asked.why.startswith("approval_gates.") or asked.sentence.startswith(
            "user tests by hand"
        ):
            self._answer_gate(shlex.split(asked.command))
            return True
        if asked.agent in PEOPLE:
            return False
        held = [one for one in self._open_escalations() if one.agent == asked.agent]
        if held and asked.why.startswith("escalation"):
            self._answer(held[0])
            return True
        if asked.why.startswith("gate ") and self._supplies(asked.inputs[0]):
            return True
        department = department_said(asked.agent) or Dept.BACKEND
        role = role_of(asked.agent)
        assert role is not None, asked
        deed = getattr(self, f"_{asked.step}_by_{role.value.replace('-', '_')}", None)
        assert deed is not None, f"nobody knows what {asked.agent} does at {asked.step}: {asked}"
        if deed(department, asked) is False:
            return False
        self._escalate_what_is_used_up()
        return True

    def _answer_gate(self, words: Sequence[str]) -> None:
        """Do what a person is asked at an approval gate, by the command that is named."""
        if words[1] == "decide":
            fields = approve(self.branch.phase.facts, words[3], words[4], "user")
            before = self.branch.lines("decisions.jsonl")
            self.branch.write("decisions.jsonl", [*before, fields | {"reason": self.branch.day}])
        else:
            result = "FAIL" if self.slip() else "PASS"
            self.branch.write(
                words[2].rpartition("/")[2], [{"r": result, "tests": [], "dt": self.branch.day}]
            )

    def _escalate_what_is_used_up(self) -> None:
        """The coordinator opens the escalations of loops that are used up."""
        for said in exhausted(loop_facts(self.branch.phase.facts)):
            self._open(said.task, said.agent)

    def slip(self, odds: float = 0.3) -> bool:
        """Return whether something goes wrong now."""
        if self.slips and self.chance.random() < odds:
            self.slips -= 1
            return True
        return False

    def _supplies(self, name: str) -> bool:
        """Write what a closed gate lacks, where that is a file of its own."""
        if name.endswith("test-results.jsonl"):
            self._test(
                next(
                    dept for dept, prefix in PREFIX.items() if name == f"{prefix}test-results.jsonl"
                )
            )
        elif name == "dept-handoff.jsonl":
            self.branch.write(name, [line | {"blockers": []} for line in self.branch.lines(name)])
        elif name in OF_GATES:
            self.branch.write(name, OF_GATES[name])
        else:
            return False
        return True

    # --- planning ---

    def _po_by_po(self, *_: Any) -> None:
        scope = {"status": "PO-APPROVED"}
        self.branch.write("scope-document.json", [scope])

    def _po_by_questionary(self, *_: Any) -> None:
        sure = 0.5 if self.slip() else 0.9
        number = len(self.branch.files.get("discovery.json", ())) + 1
        self.branch.write("discovery.json", [{"scope_confidence": sure, "round": number}])

    def _po_by_analyze(self, *_: Any) -> None:
        self.branch.write("analysis.json", [{"confidence": 0.9}])

    def _po_by_roadmap(self, *_: Any) -> None:
        self.branch.write("roadmap-plan.json", [{"phases": []}])

    def _critique_by_critic(self, *_: Any) -> None:
        before = self.branch.lines("critique.jsonl")
        number = max((line.get("rd", 0) for line in before), default=0) + 1
        unsure, is_open = self.slip(), self.slip(0.2)
        entry = {"id": f"C{len(before) + 1}", "cat": "gap", "sev": "major", "q": "?", "ctx": "x", "sug": "y",
                 "st": "open" if is_open else "addressed", "cf": 50 if unsure else 90, "rd": min(number, 3)}  # fmt: skip
        self.branch.write("critique.jsonl", [*before, entry])

    _research_by_critic = _critique_by_critic

    def _research_by_scout(self, *_: Any) -> None:
        before = self.branch.lines("research.jsonl")
        answered = {line["q"] for line in before if line["src"] != "pending"}
        asked = [
            line["q"] for line in before if line["src"] == "pending" and line["q"] not in answered
        ]
        found = [
            {"q": q, "src": "web", "finding": "so", "conf": "high", "dt": DAY, "rel": "x"}
            for q in asked or ["rotation"]
        ]
        self.branch.write("research.jsonl", [*before, *found])
        for prefix in ("fe-", "ux-"):
            own = self.branch.lines(f"{prefix}research.jsonl")
            known = {line["q"] for line in own if line["src"] != "pending"}
            new = [
                {"q": line["q"], "src": "web", "finding": "so", "conf": "high", "dt": DAY}
                for line in own
                if line["src"] == "pending" and line["q"] not in known
            ]
            if new:
                self.branch.write(f"{prefix}research.jsonl", [*own, *new])

    def _architecture_by_architect(self, department: Dept, asked: Next) -> None:
        gate = "Kill" if self.slip(0.05) else "Go"
        name = f"{PREFIX[department]}architecture.toon"
        self.branch.write(name, [{"tech_decisions": ["JWT"], "stage_gate": gate, "n": asked.why}])
        for critique in ("critique.jsonl", f"{PREFIX[department]}critique.jsonl"):
            if lines := self.branch.lines(critique):
                self.branch.write(critique, [line | {"st": "addressed"} for line in lines])

    def _planning_by_lead(self, department: Dept, asked: Next) -> None:
        for number in NUMBERS[department]:
            self._write_plan(department, number, enriched=False)

    def _write_plan(self, department: Dept, number: str, *, enriched: bool) -> None:
        name = f"{PREFIX[department]}01-{number}.plan.jsonl"
        before = self.branch.lines(name)
        needs = ["01-01"] if number != "01" and self.chance.random() < 0.3 else []
        header = before[0] if before else {
            "p": "01", "n": number, "t": f"Plan {number}", "w": 1, "d": needs, "xd": [], "obj": "x",
            "mh": {"tr": ["works"], "ar": [], "kl": []}}  # fmt: skip
        tasks = before[1:] or [self._task(number, count) for count in (1, 2)]
        if enriched:
            spec = {"spec": f"as designed {self.branch.order}", "ts": "answers"}
            tasks = [task | spec for task in tasks]
        self.branch.write(name, [header, *tasks])

    @staticmethod
    def _task(number: str, count: int) -> Line:
        return {"id": f"T{count}", "tp": "auto", "a": f"part {count} of {number}", "f": [f"src/{number}/{count}.ts"],
                "v": "npm test", "done": "green"}  # fmt: skip

    def _design_review_by_senior(self, department: Dept, asked: Next) -> None:
        for number in self._plans(department):
            self._write_plan(department, number, enriched=True)

    def _plans(self, department: Dept) -> Iterator[str]:
        for number in NUMBERS[department]:
            if f"{PREFIX[department]}01-{number}.plan.jsonl" in self.branch.files:
                yield number

    def _first_plan(self, department: Dept) -> str:
        """Return the first plan of a department that is there; others may have been lost."""
        return f"01-{next(self._plans(department), NUMBERS[department][0])}"

    def _test_authoring_by_tester(self, department: Dept, asked: Next) -> None:
        lines = [
            {"id": f"T{n}", "plan": f"01-{number}", "tf": [f"tests/{number}-{n}.ts"], "tc": 2, "red": True, "desc": "x"}
            for number in self._plans(department)
            for n in (1, 2)
        ]  # fmt: skip
        self.branch.write(f"{PREFIX[department]}test-plan.jsonl", lines)

    # --- implementation ---

    def _implementation_by_dev(self, department: Dept, asked: Next) -> None:
        if "test-results" in asked.why:
            self._test(department)
        elif asked.task.endswith(" summary"):
            self._summarise(department, asked.task[:5])
        elif asked.task:
            ref = TaskRef.parse(asked.task)
            assert ref is not None
            self._commit(str(ref.plan), f"T{ref.number}")
        else:
            assert "gate" in asked.why, f"no task: {asked}"
            self._gate_again(asked)

    def _implementation_by_senior(self, department: Dept, asked: Next) -> None:
        assert asked.why, asked
        self._gate_again(asked)

    def _implementation_by_lead(self, department: Dept, asked: Next) -> None:
        """A plan waits for something that nobody supplies, or in a circle: the Lead takes that out of it."""
        for number in self._plans(department):
            name = f"{PREFIX[department]}01-{number}.plan.jsonl"
            header, *tasks = self.branch.lines(name)
            self.branch.write(name, [header | {"d": [], "xd": []}, *tasks])

    def _gate_again(self, asked: Next) -> None:
        name = next(
            word.rstrip(":") for word in asked.why.split() if PlanId.parse(word[:5].rstrip(":"))
        )
        plan, _, task = name.partition("/")
        level = "post-task" if task else "post-plan"
        self._commit(plan, task or "T1")
        self._gate_result(level, plan, task, is_good=not self.slip())

    def _gate_result(self, level: str, plan: str, task: str, *, is_good: bool) -> None:
        line = {"gl": level, "r": "PASS" if is_good else "FAIL", "plan": plan, "task": task}
        self.branch.write(
            ".qa-gate-results.jsonl", [*self.branch.lines(".qa-gate-results.jsonl"), line]
        )

    def _commit(self, plan: str, task: str) -> str:
        return self.branch.commit_source(plan, task, f"src/{plan[3:]}/{task[1:]}.ts")

    def _summarise(self, department: Dept, plan: str) -> None:
        standing = (
            self.chance.choice(["partial", "failed", "false"]) if self.slip(0.15) else "complete"
        )
        commits = [
            self.branch.tasks[f"{plan}/T{n}"][:7]
            for n in (1, 2)
            if f"{plan}/T{n}" in self.branch.tasks
        ]
        line = {"p": "01", "n": plan[3:], "t": "x", "s": "complete" if standing == "false" else standing, "dt": DAY,
                "tc": len(commits), "tt": 2, "ch": ["fffffff"] if standing == "false" else commits, "fm": [], "dv": [],
                "built": [], "tst": "red_green"}  # fmt: skip
        self.branch.write(f"{PREFIX[department]}{plan}.summary.jsonl", [line])

    def _test(self, department: Dept) -> None:
        failed = 1 if self.slip() else 0
        lines = [
            {"plan": f"01-{number}", "dept": department.value, "phase": "green", "tc": 4, "ps": 4 - failed,
             "fl": failed, "dt": DAY, "tasks": []}
            for number in self._plans(department)
        ]  # fmt: skip
        self.branch.write(f"{PREFIX[department]}test-results.jsonl", lines)

    # --- review ---

    def _code_review_by_senior(self, department: Dept, asked: Next) -> None:
        name = f"{PREFIX[department]}code-review.jsonl"
        before = self.branch.lines(name)
        for number in self._plans(department):
            plan = f"01-{number}"
            own = [line for line in before if line.get("plan") == plan and "r" in line]
            if own and own[-1]["r"] == "approve" and plan not in asked.why:
                continue
            cycle = min(3, len(own) + 1)
            if self.slip():
                before += [
                    {"plan": plan, "r": "changes_requested", "cycle": cycle, "dt": self.branch.day},
                    {"f": "src/a.ts", "ln": 1, "sev": self.chance.choice(["minor", "major"]), "issue": f"i{len(before)}",
                     "sug": "y", "plan": plan},
                ]  # fmt: skip
            else:
                before.append({"plan": plan, "r": "approve", "cycle": cycle, "dt": self.branch.day})
        self.branch.write(name, before)

    def _code_review_by_dev(self, department: Dept, asked: Next) -> None:
        for number in self._plans(department):
            if f"01-{number}" in asked.why:
                self._commit(f"01-{number}", "T1")

    def _code_review_by_lead(self, department: Dept, asked: Next) -> None:
        plan = next(
            f"01-{number}" for number in self._plans(department) if f"01-{number}" in asked.why
        )
        if self.chance.random() < 0.5:
            line = {"agent": f"{PREFIX[department]}lead", "task": plan, "dec": f"accept {plan} with known issues",
                    "reason": "x", "dt": self.branch.day}  # fmt: skip
            self.branch.write("decisions.jsonl", [*self.branch.lines("decisions.jsonl"), line])
        else:
            self._open(f"{plan}/T1", f"{PREFIX[department]}lead")

    def _code_review_by_architect(self, department: Dept, asked: Next) -> None:
        self._architecture_by_architect(department, asked)

    def _documentation_by_documenter(self, department: Dept, asked: Next) -> None:
        self.branch.write(
            f"{PREFIX[department]}docs.jsonl",
            [{"type": "api", "path": "a", "content": "b", "section": "c"}],
        )

    # --- quality ---

    def _qa_by_qa(self, department: Dept, asked: Next) -> None:
        self._verify("verification", department)

    def _qa_by_qa_code(self, department: Dept, asked: Next) -> None:
        self._verify("qa-code", department)

    def _verify(self, kind: str, department: Dept) -> None:
        result = "FAIL" if self.slip(0.4) else "PASS"
        line = {"r": result, "dt": self.branch.day, "n": self.branch.order}
        self.branch.write(f"{PREFIX[department]}{kind}.jsonl", [line])

    def _qa_by_lead(self, department: Dept, asked: Next) -> None:
        if "Lead escalates" in asked.why:
            self._open(f"{self._first_plan(department)}/T1", f"{PREFIX[department]}lead")
            return
        for number in self._plans(department):
            self._write_plan(department, number, enriched=True)

    _qa_by_senior = _qa_by_lead

    def _qa_by_architect(self, department: Dept, asked: Next) -> None:
        self._architecture_by_architect(department, asked)

    def _qa_by_dev(self, department: Dept, asked: Next) -> None:
        self._commit(self._first_plan(department), "T1")

    def _security_by_security(self, department: Dept, asked: Next) -> None:
        result = self.chance.choice(["FAIL", "WARN"]) if self.slip(0.2) else "PASS"
        self.branch.write(
            f"{PREFIX[department]}security-audit.jsonl",
            [{"r": result, "findings": 0, "critical": 0, "dt": self.branch.day}],
        )

    # --- the end ---

    def _signoff_by_lead(self, department: Dept, asked: Next) -> None:
        self.branch.write("../../state.json", [{"st": "complete", "ph": 1, "step": "signoff"}])
        self.branch.write("../../ROADMAP.md", [{}])

    def _integration_gate_by_integration_gate(self, department: Dept, asked: Next) -> None:
        before = self.branch.lines("integration-gate-result.jsonl")
        result = "FAIL" if self.slip(0.2) else "PASS"
        self.branch.write(
            "integration-gate-result.jsonl", [*before, {"r": result, "dt": self.branch.day}]
        )

    def _integration_gate_by_owner(self, department: Dept, asked: Next) -> None:
        """What did not fit together is mended in source; the gate looks again."""
        self._commit(self._first_plan(department), "T1")

    _integration_gate_by_lead = _integration_gate_by_owner

    def _delivery_by_po(self, department: Dept, asked: Next) -> None:
        before = self.branch.lines("po-qa-verdict.jsonl")
        line: Line = {"verdict": "approve", "n": len(before)}
        if self.slip(0.5):
            line["verdict"] = self.chance.choice(["patch", "major"])
            line |= {"target_dept": "backend", "re_scope_items": ["SSO"]}
        self.branch.write("po-qa-verdict.jsonl", [*before, line])

    def _delivery_by_senior(self, department: Dept, asked: Next) -> None:
        if not any(self._plans(department)):
            self._planning_by_lead(department, asked)
        name = f"{PREFIX[department]}{self._first_plan(department)}.plan.jsonl"
        header, *tasks = self.branch.lines(name)
        again = int(header.get("again", 0)) + 1
        self.branch.write(name, [header | {"again": again}, *tasks])

    def _delivery_by_dev(self, department: Dept, asked: Next) -> None:
        self._commit(self._first_plan(department), "T1")

    def _delivery_by_integration_gate(self, department: Dept, asked: Next) -> None:
        self._integration_gate_by_integration_gate(department, asked)

    def _delivery_by_questionary(self, *_: Any) -> None:
        self._po_by_questionary()

    def _delivery_by_lead(self, department: Dept, asked: Next) -> None:
        if not any(self._plans(department)):
            self._planning_by_lead(department, asked)
        self._design_review_by_senior(department, asked)

    def _delivery_by_owner(self, *_: Any) -> bool:
        """The Owner asks the user."""
        return False

    # --- escalations ---

    def _open_escalations(self) -> list[EscalationProgress]:
        return [one for one in as_committed(self.branch.phase.facts) if one.is_open]

    def _open(self, task: str, agent: str) -> None:
        said = EscalationRequest(task=task, agent=agent, reason="cannot go on", evidence=("tried",),
                                 recommendation="ask", severity="blocking")  # fmt: skip
        ref = TaskRef.parse(task)
        assert ref is not None
        known = logged(self.branch.phase.facts)
        name = known.name_for(ref, agent)
        now = [one for one in as_committed(self.branch.phase.facts) if one.id == name]
        self._log(str(name), opened(said, "", name, next(iter(now), None), known))

    def _answer(self, one: EscalationProgress) -> None:
        said = EscalationRequest(task=str(one.id.task), agent=one.agent, reason="as asked", evidence=("seen",),
                                 recommendation="do so", options=("a", "b"), severity="blocking")  # fmt: skip
        if one.standing is EscalationStage.RISING and one.above(one.holder) and self.slip(0.5):
            self._log(str(one.id), raised(said, "", one))
            return
        shown = ""
        if one.holder is one.origin:
            shown = self._commit(str(one.id.task.plan), f"T{one.id.task.number}")
        decided = EscalationRequest(task=said.task, agent=said.agent, decision="do it", shown_by=shown,
                                    severity="blocking")  # fmt: skip
        self._log(str(one.id), resolved(decided, "", one))

    def _log(self, name: str, line: Line) -> None:
        before = self.branch.lines("escalation.jsonl")
        dt = f"2026-02-19T{8 + len(before) // 60:02}:{len(before) % 60:02}:00Z"
        self.branch.write("escalation.jsonl", [*before, {"id": name, "dt": dt, **line}])

    # --- without being asked ---

    def work_ahead(self, deeds: int) -> None:
        """Do the first deeds of the workflow, now and then not all of them, and not always in peace."""
        order = (
            self._po_by_questionary,
            self._po_by_po,
            self._critique_by_critic,
            self._research_by_scout,
            *(self._once_for(name) for name in _IN_ORDER),
            lambda *_: self.branch.write("design-handoff.jsonl", OF_GATES["design-handoff.jsonl"]),
            self._signoff_by_lead,
            self._integration_gate_by_integration_gate,
            self._delivery_by_po,
        )
        for deed in order[:deeds]:
            if self.chance.random() < 0.95:
                deed(Dept.BACKEND, Next("", "", ()))
            if self.chance.random() < 0.1:
                self.disturb()

    def _once_for(self, name: str) -> Callable[[Dept, Next], None]:
        def done(_: Dept, asked: Next) -> None:
            for department in WorkflowOptions(self.branch.config).departments:
                getattr(self, name)(department, asked)

        return done

    def _implements_all(self, department: Dept, asked: Next) -> None:
        for number in self._plans(department):
            for task in ("T1", "T2"):
                self._commit(f"01-{number}", task)

    def _summarises_all(self, department: Dept, asked: Next) -> None:
        for number in self._plans(department):
            self._summarise(department, f"01-{number}")

    def disturb(self) -> None:
        """Something happens that nobody was asked for."""
        mischief = (
            self._block_a_task,
            self._ask_for_research,
            self._reopen_critique,
            self._fail_a_gate,
            self._lose_a_file,
            self._write_out_of_turn,
            self._hand_over_with_blockers,
            self._wait_for_nothing,
            self._fail_tests,
        )
        self.chance.choice(mischief)()

    def _active(self) -> Dept:
        return self.chance.choice(WorkflowOptions(self.branch.config).departments)

    def _block_a_task(self) -> None:
        department = self._active()
        numbers = list(self._plans(department))
        if numbers:
            task = f"01-{self.chance.choice(numbers)}/T{self.chance.choice([1, 2])}"
            blocked = {(one.department, str(one.id.task)) for one in self._open_escalations()}
            if (department, task) not in blocked:
                self._open(task, f"{PREFIX[department]}dev")

    def _ask_for_research(self) -> None:
        department = self._active()
        kind = self.chance.choice(["blocking", "informational"])
        name = f"{PREFIX[department]}research.jsonl"
        line = {
            "q": f"which {self.branch.order}?",
            "src": "pending",
            "rt": kind,
            "ra": "dev",
            "conf": "low",
        }
        self.branch.write(name, [*self.branch.lines(name), line])

    def _reopen_critique(self) -> None:
        lines = self.branch.lines("critique.jsonl")
        self.branch.write("critique.jsonl", [line | {"st": "open"} for line in lines])

    def _fail_a_gate(self) -> None:
        department = self._active()
        for number in self._plans(department):
            level = self.chance.choice(["post-task", "post-plan"])
            self._gate_result(
                level, f"01-{number}", "T1" if level == "post-task" else "", is_good=False
            )

    def _lose_a_file(self) -> None:
        if self.branch.files:
            self.branch.write(self.chance.choice(sorted(self.branch.files)), [])

    def _write_out_of_turn(self) -> None:
        department = self._active()
        deeds = (
            self._architecture_by_architect,
            self._planning_by_lead,
            self._design_review_by_senior,
            self._test_authoring_by_tester,
            self._code_review_by_senior,
            self._documentation_by_documenter,
            self._qa_by_qa,
            self._qa_by_qa_code,
            self._security_by_security,
            self._signoff_by_lead,
            self._integration_gate_by_integration_gate,
            self._delivery_by_po,
        )
        self.chance.choice(deeds)(department, Next("", "", ()))

    def _hand_over_with_blockers(self) -> None:
        line = {"from_dept": "frontend", "to_dept": "backend", "blockers": ["no login page"]}
        self.branch.write("dept-handoff.jsonl", [line])

    def _wait_for_nothing(self) -> None:
        department = self._active()
        for number in self._plans(department):
            name = f"{PREFIX[department]}01-{number}.plan.jsonl"
            header, *tasks = self.branch.lines(name)
            self.branch.write(
                name, [header | {"d": [self.chance.choice(["01-09", "01-02", "01-01"])]}, *tasks]
            )

    def _fail_tests(self) -> None:
        self.slips += 1
        self._test(self._active())
