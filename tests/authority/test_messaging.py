"""Every cell of the escalation table, every type of message on every route, and what files show to have gone wrong."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from yolo_fs.authority.actors import (
    Actor,
    escalation_of,
    find_actor,
    may_contact,
    may_escalate,
    rule_broken,
)
from yolo_fs.protocol.departments import WORKING_NAMES, Dept, Mode, Role
from yolo_fs.protocol.escalation import ESCALATIONS, Rule

SPEC = Path(__file__).parents[2] / "fixtures/spec"
TABLE: list[dict[str, str]] = json.loads((SPEC / "escalations.json").read_text())["rows"]
ROLE = {role.label: role for role in Role}
CASES = list(itertools.product(TABLE, Role, (False, True)))


def expected(row: dict[str, str], receiver: Role, is_fail: bool) -> bool:
    """Tell from the cells alone whether the escalation may go there."""
    direct, _, fail = row["Escalates to"].partition(" (FAIL → ")
    if is_fail and fail:
        return receiver.label == fail.rstrip(")") or receiver in (Role.OWNER, Role.GO)
    by_proxy = direct == Role.USER.label and receiver is Role.GO
    return receiver.label == direct or by_proxy


@pytest.mark.proves("002:109", "002:113")
@pytest.mark.parametrize(("row", "receiver", "is_fail"), CASES, ids=lambda value: str(value)[:14])
def test_each_role_escalates_where_its_row_says_and_nowhere_else(
    row: dict[str, str], receiver: Role, is_fail: bool
) -> None:
    answer = may_escalate(Actor(ROLE[row["Agent"]]), Actor(receiver), is_fail=is_fail)
    assert answer.allowed is expected(row, receiver, is_fail)
    assert answer.allowed or answer.ask


def test_a_detour_breaks_the_rule_that_is_about_it() -> None:
    assert rule_broken(Role.DEV, Role.USER) is Rule.DEV_TO_SENIOR_ONLY
    assert rule_broken(Role.LEAD, Role.USER) is Rule.OWNER_TO_USER_ONLY
    assert rule_broken(Role.QA, Role.ARCHITECT) is Rule.QA_NOT_TO_ARCHITECT
    assert rule_broken(Role.QA, Role.OWNER) is Rule.DIRECT_REPORT


TRIGGERS = [
    (row["Agent"], row["Escalates to"], trigger)
    for row in TABLE
    for trigger in row["Trigger"].split(", ")
]


@pytest.mark.proves("002:94-100", "002:101a", "002:102-105")
@pytest.mark.parametrize(("role", "to", "trigger"), TRIGGERS)
def test_each_trigger_goes_to_the_report_to_with_its_evidence(
    role: str, to: str, trigger: str
) -> None:
    answer = escalation_of(Actor(ROLE[role]), trigger)
    is_fail = "FAIL" in trigger and "FAIL" in to
    assert answer.ask == (ROLE["User" if is_fail else to.split(" (")[0]].value,)
    assert answer.bring == ("issue", "evidence", "recommendation")
    assert "Full Escalation Table" in answer.rule


@pytest.mark.proves("002:111", "002:112")
@pytest.mark.parametrize(
    "row", [row for row in TABLE if "NEVER contacts" in row["Notes"] or "NOT" in row["Notes"]]
)
def test_each_never_of_the_notes_is_refused(row: dict[str, str]) -> None:
    never = [
        role for label, role in ROLE.items() if label in row["Notes"].replace("Via Senior, ", "")
    ]
    assert never
    for role in never:
        assert not may_contact(Actor(ROLE[row["Agent"]]), Actor(role)).allowed


def test_no_cell_of_the_escalation_table_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(
            f"\nescalation: {len(TABLE)} rows against {len(Role)} receivers: "
            f"{len(CASES)} questions, {len(TRIGGERS)} triggers exercised"
        )
    assert {ROLE[row["Agent"]] for row in TABLE} == {row.role for row in ESCALATIONS}
    assert len(TRIGGERS) == sum(len(row.triggers) for row in ESCALATIONS)


@pytest.mark.proves("002:114")
def test_a_security_fail_bypasses_the_chain_and_nothing_else_does() -> None:
    security = find_actor("fe-security")
    assert escalation_of(security, "FAIL").ask == ("user",)
    assert not may_escalate(security, Actor(Role.USER)).allowed
    assert escalation_of(find_actor("qa"), "FAIL result").ask == ("lead",)


@pytest.mark.proves("002:87", "002:290")
def test_several_departments_put_the_owner_between_architect_and_user() -> None:
    architect = find_actor("fe-architect")
    assert may_escalate(architect, find_actor("owner")).allowed
    assert may_escalate(architect, Actor(Role.USER)).ask == ("owner",)
    assert may_escalate(find_actor("owner"), Actor(Role.USER)).allowed
    assert may_escalate(Actor(Role.USER), Actor(Role.OWNER)).allowed is False


@pytest.mark.proves("002:319-323")
@pytest.mark.parametrize(
    ("sender", "receiver", "allowed", "ask"),
    [
        ("dev", "senior", True, ()),
        ("senior", "dev", True, ()),
        ("dev", "lead", False, ("senior",)),
        ("senior", "architect", False, ("lead",)),
        ("qa-code", "architect", False, ("lead",)),
        ("critic", "lead", True, ()),
        ("lead", "user", False, ("architect",)),
        ("architect", "user", False, ("go.md",)),
        ("architect", "go.md", True, ()),
        ("go.md", "user", True, ()),
        ("user", "owner", True, ()),
        ("user", "dev", False, ("go.md",)),
        ("go.md", "lead", True, ()),
        ("go.md", "debugger", False, ("lead",)),
        ("owner", "ux-lead", True, ()),
        ("owner", "ux-dev", False, ("ux-lead",)),
        ("lead", "dev", False, ("senior",)),
        ("architect", "senior", False, ("lead",)),
        ("architect", "qa", False, ("lead",)),
        ("fe-lead", "yolo-lead", True, ()),
        ("fe-lead", "ux-lead", True, ()),
        ("ux-lead", "yolo-lead", False, ("fe-lead",)),
        ("yolo-lead", "ux-lead", False, ("fe-lead",)),
        ("fe-dev", "yolo-dev", False, ("fe-senior",)),
        ("fe-lead", "ux-senior", False, ("ux-lead",)),
        ("fe-senior", "yolo-lead", False, ("fe-lead",)),
        ("po", "questionary", True, ()),
        ("dev", "dev", True, ()),
    ],
)
def test_who_may_write_to_whom(
    sender: str, receiver: str, allowed: bool, ask: tuple[str, ...]
) -> None:
    answer = may_contact(find_actor(sender), find_actor(receiver))
    assert (answer.allowed, answer.ask) == (allowed, ask)


@pytest.mark.proves("002:294")
def test_only_leads_speak_across_departments() -> None:
    roles = [Role.ARCHITECT, Role.LEAD, Role.SENIOR, Role.DEV, Role.TESTER, Role.QA, Role.SECURITY]
    for (one, ours), (other, theirs) in itertools.product(
        itertools.product(roles, WORKING_NAMES), repeat=2
    ):
        if ours is theirs:
            continue
        allowed = may_contact(
            Actor(one, ours, Mode.MULTI), Actor(other, theirs, Mode.MULTI)
        ).allowed
        assert allowed is (
            one is other is Role.LEAD and {ours, theirs} != {Dept.BACKEND, Dept.UIUX}
        )
