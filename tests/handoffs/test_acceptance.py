"""What stops a receiver: the matrix, the branch, the session, the paths, the clock; and who went on after handing over."""

from __future__ import annotations

from itertools import product

import pytest

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.handoffs.lifecycle import (
    Around,
    DirectiveSession,
    LaterCommit,
    branch_lines,
    discretionary_work,
    faults_around,
    faults_of,
    faults_of_branch,
)
from yolo_fs.protocol.handoffs import TRIGGERS, DirectiveRole
from yolo_fs.schemas.packet import Packet

GUID = "4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"
READING = "apps/web/docs/guides/component-paradigm.md"
PHASE = ".yolo-planning/phases/01-auth"
ROLES = [role.value for role in DirectiveRole]
LEGAL = {
    ("architect", "executor", "architect_ultra_detected"),
    ("auditor", "executor", "auditor_ultra_open"),
    ("executor", "architect", "executor_scope_or_contract_block"),
    ("pair", "architect", "pair_out_of_scope"),
    ("executor", "architect", "role_policy_conflict"),
    ("pair", "architect", "role_policy_conflict"),
    ("auditor", "architect", "role_policy_conflict"),
}
"""Sender, receiver and trigger, as printed in document 001; nobody hands over to itself."""


def packet(**changes: str) -> Packet:
    values = {
        "from_role": "architect", "to_role": "executor", "trigger": "architect_ultra_detected", "session_id": GUID,
        "task_file": "tasks/02.md", "directive_branch": "directive/login", "required_reading": READING,
        "objective": "Build the form", "blocking_rule": "architects write no code",
    }  # fmt: skip
    return Packet(**values | changes)


def around(**changes: object) -> Around:
    session = DirectiveSession(f"apps/web/.local/directives/{GUID}", "directive/login", "ultra")
    values = {"required_reading": READING, "branch": "directive/login", "session": session}
    return Around(**values | changes)


def told(made: Packet, given: Around) -> list[tuple[Reason, str]]:
    faults = (*faults_around(made, given), *faults_of_branch(made, given))
    return [(fault.reason, fault.at) for fault in faults]


# --- by itself -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:18", "001:91")
@pytest.mark.parametrize(
    ("sender", "receiver", "trigger"),
    list(product(ROLES, ROLES, [row.id for row in TRIGGERS])),
)
def test_trigger_fits_exactly_where_the_matrix_says_so(
    sender: str, receiver: str, trigger: str
) -> None:
    faults = faults_of(packet(from_role=sender, to_role=receiver, trigger=trigger))
    assert (not faults) is ((sender, receiver, trigger) in LEGAL)
    if sender == receiver:
        assert (Reason.SELF_REFERENCE, "/to_role") in [(fault.reason, fault.at) for fault in faults]
    elif faults:
        assert [(fault.reason, fault.at) for fault in faults] == [
            (Reason.STATE_CONFLICT, "/trigger")
        ]


def test_trigger_outside_the_matrix_is_told_with_the_one_that_fits() -> None:
    (fault,) = faults_of(packet(trigger="architect_tired"))
    assert (fault.reason, fault.expected) == (Reason.UNKNOWN_VALUE, "architect_ultra_detected")


@pytest.mark.parametrize("name", ["objective", "blocking_rule"])
def test_not_applicable_is_refused_where_the_document_does_not_allow_it(name: str) -> None:
    assert [(fault.reason, fault.at) for fault in faults_of(packet(**{name: "n/a"}))] == [
        (Reason.BAD_FORMAT, f"/{name}")
    ]


def test_session_task_and_reading_may_be_absent() -> None:
    absent = packet(session_id="n/a", task_file="n/a", required_reading="n/a")
    assert faults_of(absent) == ()


# --- around it -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:30")
@pytest.mark.parametrize(
    ("made", "given", "expected"),
    [
        (packet(), around(), []),
        (packet(), around(receiver="executor"), []),
        (packet(), around(receiver="pair"), [(Reason.STATE_CONFLICT, "/to_role")]),
        (packet(), around(receiver="architect"), [(Reason.DISCRETIONARY_WORK, "/from_role")]),
        (packet(), around(branch="main"), [(Reason.BRANCH_MISMATCH, "/directive_branch")]),
        (
            packet(),
            around(branch="Directive/login"),
            [(Reason.BRANCH_MISMATCH, "/directive_branch")],
        ),
        (packet(), around(branch=""), [(Reason.BRANCH_MISMATCH, "/directive_branch")]),
        (packet(), around(branch=None), []),
        (packet(), around(session=None), [(Reason.UNKNOWN_REFERENCE, "/session_id")]),
        (
            packet(),
            around(session=DirectiveSession("d/other", "directive/login", "ultra")),
            [(Reason.NAME_MISMATCH, "/session_id")],
        ),
        (
            packet(),
            around(session=DirectiveSession(f"d/{GUID}", "main", "ultra")),
            [(Reason.BRANCH_MISMATCH, "/directive_branch")],
        ),
        (packet(), around(session=DirectiveSession(f"d/{GUID.upper()}")), []),
        (packet(session_id="n/a"), around(session=None), []),
        (
            packet(required_reading="README.md"),
            around(),
            [(Reason.UNKNOWN_VALUE, "/required_reading")],
        ),
        (packet(), around(absent={"task_file": "gone"}), [(Reason.FILE_MISSING, "/task_file")]),
        (packet(), around(ahead_s=61), [(Reason.OUT_OF_RANGE, "")]),
        (packet(), around(ahead_s=59), []),
    ],
)
def test_surroundings_must_agree(
    made: Packet, given: Around, expected: list[tuple[Reason, str]]
) -> None:
    assert told(made, given) == expected


def test_all_reasons_are_told_at_once() -> None:
    given = around(
        branch="main",
        session=None,
        absent={"required_reading": "gone", "task_file": "gone"},
        ahead_s=1e6,
    )
    assert len(told(packet(), given)) == 5


# --- the session's README --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nmeta:\n  directive_branch: a\n---\n", [(3, "directive_branch: a")]),
        (
            "---\ntitle: x\nmeta:\n\n  tags:\n    - x\n  directive_branch: a\n---\n",
            [(7, "directive_branch: a")],
        ),
        ('---\nmeta:\n    "directive_branch" : a\n---\n', [(3, '"directive_branch" : a')]),
        (
            "---\nmeta:\n  note: |\n    directive_branch: b\n  directive_branch: a\n---\n",
            [(5, "directive_branch: a")],
        ),
        (
            "---\nmeta:\n  directive_branch: a\nother: x\nmeta:\n  directive_branch: b\n---\n",
            [(3, "directive_branch: a"), (6, "directive_branch: b")],
        ),
        ("---\nother:\n  directive_branch: a\n---\n", []),
        ("---\ndirective_branch: a\n---\n", []),
        ("---\nmeta:\nother:\n  directive_branch: a\n---\n", []),
        ("---\nmeta:\n  directive_branches: a\n---\n", []),
        ("---\nmeta: {directive_branch: a}\n---\n", []),
        ("---\nmeta:\n  directive_branch: a\n", []),
        ("meta:\n  directive_branch: a\n", []),
        ("---\ntitle: x\n---\nmeta:\n  directive_branch: a\n", []),
        ("", []),
    ],
)
def test_branch_of_a_readme_is_found_below_meta_alone(
    text: str, expected: list[tuple[int, str]]
) -> None:
    assert branch_lines(text.split("\n")) == expected


# --- afterwards ------------------------------------------------------------------------------------------------------


def later(author: str, *paths: str, by: str = "") -> LaterCommit:
    return LaterCommit("a" * 40, author, (("Executed-By", by),) if by else (), paths)


@pytest.mark.proves("001:67")
@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        (later("architect", "src/a.ts", "src/b.ts"), ["src/a.ts", "src/b.ts"]),
        (later("yolo-architect", "src/a.ts"), ["src/a.ts"]),
        (later("Ada", "src/a.ts", by="architect"), ["src/a.ts"]),
        (later("Ada", f"{PHASE}/architecture.toon"), [f"{PHASE}/architecture.toon"]),
        (later("Ada", f"{PHASE}/architecture.toon", by="executor"), []),
        (later("architect", "src/a.ts", by="executor"), []),
        (later("Ada", "src/a.ts", f"{PHASE}/critique.jsonl"), []),
        (later("executor", "src/a.ts"), []),
        (later("architect", "d/HANDOFF.md"), []),
    ],
)
def test_work_of_a_sender_that_has_stopped_is_told(
    commit: LaterCommit, expected: list[str]
) -> None:
    found = list(discretionary_work(packet(), [commit]))
    assert [finding.path for finding in found] == expected
    assert {(finding.reason, finding.level) for finding in found} <= {
        (Reason.DISCRETIONARY_WORK, Level.WARNING)
    }
