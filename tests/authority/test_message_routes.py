"""Every type of message on every route of document 000, and what files show to have gone another way."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.phases import committed
from tests.support.settings import config_from
from yolo_fs.authority.actors import Actor, find_actor
from yolo_fs.authority.message_routes import may_send, message_findings, routes_broken
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason
from yolo_fs.evidence.facts import PhaseFacts, WorkflowOptions
from yolo_fs.protocol.departments import Dept, Mode, Role
from yolo_fs.schemas.messages.catalogue import MESSAGES

BACKEND = WorkflowOptions(config_from({}))
SPEC = Path(__file__).parents[2] / "fixtures/spec"

# --- with a message ---


def stations(row: dict[str, Any]) -> list[list[str]]:
    return [row["sender"], *([name] for name in row.get("via", ())), row["receiver"]]


def actors(name: str, departments: list[str]) -> list[Actor]:
    if name in ("any", "teammate"):
        return [find_actor("dev", Dept(one)) for one in departments]
    role = Role.GO if name == "orchestrator" else find_actor(name).role
    return (
        [Actor(role, Dept(one), Mode.MULTI) for one in departments]
        if name in SEATED
        else [Actor(role)]
    )


SEATED = ("lead", "senior", "dev", "tester", "architect", "qa", "qa-code", "security")
ROUTES = json.loads((SPEC / "messages.json").read_text())
RULED_APART = ("escalation", "escalation_resolution")


@pytest.mark.proves("000:5", "000:488", "000:509", "000:107", "002:47")
@pytest.mark.parametrize(
    "row", [row for row in ROUTES if row["type"] not in RULED_APART], ids=lambda row: row["type"]
)
def test_each_message_goes_the_way_of_its_heading(row: dict[str, Any]) -> None:
    kind = row["type"]
    names = stations(row)
    shape = MESSAGES[kind]
    is_internal = shape.direction.value == "internal"
    for low, high in itertools.pairwise(names):
        for sender, receiver in itertools.product(low, high):
            ours, theirs = (
                row.get("sender_departments", ["uiux"]),
                row.get("receiver_departments", ["uiux"]),
            )
            if kind == "dept_handoff":
                ours, theirs = ["uiux"], ["frontend", "backend"]
            for one, other in itertools.product(actors(sender, ours), actors(receiver, theirs)):
                if (
                    one.department is other.department is not None
                    and shape.direction.value == "across"
                ):
                    continue
                assert may_send(one, other, kind).allowed is not is_internal, (one, other)
    stranger = find_actor("roadmap")
    refused = may_send(stranger, find_actor("analyze"), kind)
    assert not refused.allowed and refused.rule


@pytest.mark.parametrize(
    ("kind", "sender", "receiver", "allowed", "ask"),
    [
        ("dev_progress", "dev", "lead", False, ("senior",)),
        ("dev_progress", "fe-dev", "yolo-senior", False, ("fe-senior",)),
        ("task_claim", "dev", "lead", True, ()),
        ("patch_request", "po", "senior", False, ("go.md",)),
        ("patch_request", "go.md", "ux-senior", True, ()),
        ("design_handoff", "ux-lead", "yolo-lead", True, ()),
        ("design_handoff", "fe-lead", "yolo-lead", False, ("ux-lead",)),
        ("design_handoff", "lead", "yolo-fe-lead", False, ("fe-lead",)),
        ("api_contract", "ux-lead", "fe-lead", False, ("fe-lead",)),
        ("api_contract", "fe-lead", "fe-lead", False, ("lead",)),
        ("dept_handoff", "yolo-lead", "ux-lead", False, ("fe-lead",)),
        ("dept_handoff", "ux-lead", "yolo-lead", True, ()),
        ("escalation", "dev", "architect", False, ("senior",)),
        ("escalation", "dev", "senior", True, ()),
        ("escalation", "ux-senior", "yolo-lead", False, ("ux-lead",)),
        ("escalation_resolution", "lead", "senior", True, ()),
        ("escalation_resolution", "lead", "dev", False, ("senior",)),
        ("escalation_resolution", "user", "architect", True, ()),
        ("escalation_resolution", "go.md", "architect", True, ()),
        ("escalation_resolution", "architect", "senior", False, ("lead",)),
        ("research_request", "tester", "go.md", True, ()),
        ("research_request", "tester", "scout", False, ("go.md",)),
        ("owner_review", "owner", "fe-lead", True, ()),
        ("owner_review", "owner", "fe-senior", False, ("fe-lead",)),
        ("feedback_response", "user", "po", False, ("go.md",)),
        ("summary_aggregation", "lead", "lead", False, ()),
    ],
)
def test_a_refused_message_is_told_its_way(
    kind: str, sender: str, receiver: str, allowed: bool, ask: tuple[str, ...]
) -> None:
    answer = may_send(find_actor(sender), find_actor(receiver), kind)
    assert (answer.allowed, answer.ask) == (allowed, ask), answer.rule


@pytest.mark.proves("000:394b")
def test_messages_of_teammates_are_refused_in_task_mode() -> None:
    dev, lead = find_actor("dev"), find_actor("lead")
    task, teammate = (
        WorkflowOptions(config_from({"team_mode": mode})) for mode in ("task", "teammate")
    )
    assert not may_send(dev, lead, "task_claim", task).allowed
    assert may_send(dev, lead, "task_claim", teammate).allowed


@pytest.mark.proves("000:451")
def test_progress_is_sent_by_the_lead_of_one_department_and_read_from_the_files_of_several() -> (
    None
):
    lead, go = find_actor("lead"), find_actor("go.md")
    assert may_send(lead, go, "phase_progress", WorkflowOptions(config_from({}))).allowed
    several = WorkflowOptions(config_from({"departments": {"frontend": True}}))
    answer = may_send(lead, go, "phase_progress", several)
    assert not answer.allowed and ".dept-status-{dept}.json" in answer.rule
    assert answer.ask == ("yolo-fs dept update",)


# --- what files show ---


def broken(
    name: str, *lines: dict[str, Any], mode: dict[str, Any] | None = None
) -> list[tuple[str, int, str, str]]:
    options = WorkflowOptions(config_from(mode or {}))
    facts = PhaseFacts(PhaseId("01", "auth"), (committed(name, list(lines)),), options)
    return [(one.reason, one.line, one.at, one.expected) for one in routes_broken(facts)]


def test_a_handoff_from_backend_to_uiux_is_a_finding() -> None:
    def handoff(giver: str, taker: str) -> dict[str, Any]:
        return {"type": "dept_handoff", "from_dept": giver, "to_dept": taker}

    lines = [handoff("uiux", "backend"), handoff("backend", "uiux"), handoff("frontend", "backend")]
    three = {"departments": {"frontend": True, "uiux": True}}
    assert broken("dept-handoff.jsonl", *lines, mode=three) == [
        (Reason.OUT_OF_LANE, 2, "/to_dept", "to fe-lead")
    ]
    assert broken("dept-handoff.jsonl", *lines, mode={"departments": {"uiux": True}}) == [
        (Reason.OUT_OF_LANE, 2, "/to_dept", "to architect")
    ]


@pytest.mark.parametrize(
    ("sender", "receiver", "way"),
    [
        ("tester", "lead", "senior"),
        ("tester", "senior", ""),
        ("dev", "user", "senior"),
        ("fe-senior", "lead", ""),
        ("security", "user", ""),
        ("intern", "user", ""),
    ],
)
def test_an_escalation_message_is_held_against_the_table(
    sender: str, receiver: str, way: str
) -> None:
    found = list(
        message_findings({"type": "escalation", "from": sender, "to": receiver}, "-", BACKEND)
    )
    assert [(one.reason, one.at, one.hint) for one in found] == (
        [(Reason.OUT_OF_LANE, "/to", f"Send it to {way}.")] if way else []
    )


def test_a_message_without_sender_and_receiver_is_not_judged() -> None:
    assert not list(message_findings({"type": "dev_progress"}, "-", BACKEND))
