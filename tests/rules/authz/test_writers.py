"""Nobody approves their own work: each artifact has its writers, and each refusal leads to one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kinds import paths_of_kinds
from yolo_fs.protocol.departments import Mode, Role
from yolo_fs.protocol.isolation import PERSONAL
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.rules.artifacts.table import ARTIFACTS, shape_named
from yolo_fs.rules.authz.access import Target, may_read, may_write
from yolo_fs.rules.authz.actors import AccessDecision, Actor, find_actor
from yolo_fs.schemas.messages.message import Message

PHASE = ".yolo-planning/phases/01-auth"
PATHS = [
    *(path for _, path in paths_of_kinds(PHASE)),
    *(f".yolo-planning/{row.name}" for row in PERSONAL),
]
EVERYBODY = (*AGENT_BY_NAME, Role.GO, Role.USER)


def writers(name: str, mode: Mode = Mode.MULTI) -> set[str]:
    path = name if name.startswith(".yolo") else f"{PHASE}/{name}"
    actors = (find_actor(each, None, mode) for each in AGENT_BY_NAME)
    return {one.name for one in actors if may_write(one, Target(path)).allowed}


@pytest.mark.proves("002:116", "002:23", "002:264")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("code-review.jsonl", {"senior"}),
        ("fe-code-review.jsonl", {"fe-senior"}),
        ("verification.jsonl", {"lead"}),
        ("qa-code.jsonl", {"qa-code"}),
        ("security-audit.jsonl", {"security"}),
        ("fe-security-audit.jsonl", {"fe-security"}),
        ("ux-security-audit.jsonl", {"ux-lead"}),
        ("owner-signoff.jsonl", {"owner"}),
        ("owner-review.jsonl", {"owner"}),
        ("po-qa-verdict.jsonl", {"po"}),
        ("integration-gate-result.jsonl", {"owner"}),
        ("01-01.plan.jsonl", {"lead", "senior"}),
        ("ux-01-01.plan.jsonl", {"ux-lead", "ux-senior"}),
        ("architecture.toon", {"architect"}),
        ("test-plan.jsonl", {"tester"}),
        ("01-01.summary.jsonl", {"dev"}),
        ("design-handoff.jsonl", {"ux-lead"}),
        (".yolo-planning/config.json", set()),
        (".yolo-planning/.active-agent", set()),
    ],
)
def test_an_artifact_is_written_by_the_role_whose_word_it_is(name: str, expected: set[str]) -> None:
    assert writers(name) == expected


def test_with_one_department_its_lead_writes_for_the_integration_gate() -> None:
    assert "lead" in writers("integration-gate-result.jsonl", Mode.SINGLE)
    assert "dev" not in writers("integration-gate-result.jsonl", Mode.SINGLE)


@pytest.mark.parametrize("name", ["decisions.jsonl", "escalation.jsonl", "research.jsonl"])
def test_a_log_of_the_whole_team_stays_open_to_all_who_have_a_tool(name: str) -> None:
    assert {"dev", "senior", "lead", "architect", "tester", "fe-dev", "po"} <= writers(name)


def test_who_sends_a_message_writes_the_artifact_that_keeps_it() -> None:
    for artifact in ARTIFACTS:
        shapes = map(shape_named, filter(None, (artifact.header, *artifact.body)))
        for shape in shapes:
            if artifact.sent_by and issubclass(shape, Message):
                assert {str(role) for role in artifact.sent_by} == {*shape.sender}


def asked(actor: Actor, path: str, act: str) -> AccessDecision:
    return (may_write if act == "write" else may_read)(actor, Target(path))


def followed(name: str, path: str, act: str, mode: Mode) -> Iterator[tuple[str, AccessDecision]]:
    """Yield whom each refusal sends to, and what they are told, to the end."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        answer = asked(find_actor(name, None, mode), path, act)
        yield name, answer
        if answer.allowed or not answer.ask:
            return
        name = answer.ask[0]


@pytest.mark.parametrize("act", ["read", "write"])
@pytest.mark.parametrize("mode", Mode)
def test_whoever_a_refusal_names_in_the_end_may(mode: Mode, act: str) -> None:
    lost = []
    for path in PATHS:
        for name in EVERYBODY:
            if find_actor(name, None, mode).mode is not mode:
                continue
            way = list(followed(name, path, act, mode))
            if not way[-1][1].allowed:
                lost.append((path, [who for who, _ in way], way[-1][1].rule))
    assert lost == []
