"""What a person is asked before a department's work goes on: `approval_gates` of the configuration.
Pure.
"""

from __future__ import annotations

from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.judged import later_than
from yolo_fs.loops.facts import loop_facts
from yolo_fs.protocol.decisions import APPROVE
from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.protocol.gates import APPROVAL_GATES, ApprovalGate

MANUAL_QA = "manual-qa"


def approved_thing(department: str, gate: ApprovalGate) -> str:
    """Return how a decision names what it approves."""
    return f"{department}:{gate.key}"


def owed_approval(facts: PhaseFacts, department: Dept, step: str) -> ApprovalGate | None:
    """Return the gate of a step at which a person has not approved the last verdicts; None for
    none.

    A verdict that has to be given again asks nobody. What is signed off stays so, whatever the
    configuration says later.
    """
    options = facts.options.config.approval_gates
    for gate in APPROVAL_GATES:
        if gate.step == step and getattr(options, gate.key) and _asks(facts, department, gate):
            return gate
    return None


def lack_of(gate: ApprovalGate) -> str:
    """Return what a step lacks while its gate is owed."""
    return f"a person {gate.asks} first (approval_gates.{gate.key})"


def _asks(facts: PhaseFacts, department: Dept, gate: ApprovalGate) -> bool:
    known = loop_facts(facts)
    verdicts = [
        (known.history(artifact)[-1], artifact.position)
        for kind in gate.kinds
        for artifact in facts.of_kind(kind, department)
        if not facts.is_signed(artifact.position)
        and not any(later_than(facts, kind, artifact.position, department))
    ]
    asking = [
        (verdict.order, position)
        for verdict, position in verdicts
        if not gate.results or any(line.get("r") in gate.results for line in verdict.lines)
    ]
    approvals = [
        each
        for each in known.decisions(APPROVE, approved_thing(department, gate))
        if each.agent == Role.USER
    ]
    return bool(asking) and not any(
        all(known.has_seen(each, order, position) for order, position in asking)
        for each in approvals
    )


def explain_manual_qa(facts: PhaseFacts, department: Dept) -> str:
    """Return what the test by hand lacks, where the configuration asks for one; empty for
    nothing.
    """
    if not facts.options.config.approval_gates.manual_qa:
        return ""
    committed = next(iter(facts.of_kind(MANUAL_QA, department)), None)
    if facts.signed_off and (committed is None or facts.is_signed(committed.position)):
        return ""
    if committed is None:
        return f"nobody has tested {department} by hand (approval_gates.manual_qa)"
    result = next((line.get("r") for line in committed.lines if "r" in line), "")
    if result != "PASS":
        return f"{committed.place.name} says {result}"
    later = next(later_than(facts, "verification", committed.position, department), None)
    return f"{committed.place.name} is older than {later.what}" if later else ""


def is_test_unheard(facts: PhaseFacts, department: Dept) -> bool:
    """Return whether a test by hand has found something after the verification: QA takes it up."""
    return any(
        facts.is_later(tested.position, verified.position)
        for tested in facts.of_kind(MANUAL_QA, department)
        if not any(line.get("r") == "PASS" for line in tested.lines)
        for verified in facts.of_kind("verification", department)
    )
