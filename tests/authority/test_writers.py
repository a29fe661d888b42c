"""Nobody approves their own work: each artifact has its writers, and each refusal leads to one of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise

import pytest

from tests.support.kinds import paths_of_kinds
from yolo_fs.artifacts.table import ARTIFACTS, shape_named
from yolo_fs.authority.access import Target, may_read, may_write
from yolo_fs.authority.actors import (
    AccessDecision,
    Actor,
    find_actor,
    may_contact,
    may_escalate,
)
from yolo_fs.authority.authority import may_decide, may_use
from yolo_fs.protocol.authority import AUTHORITY
from yolo_fs.protocol.departments import Mode, Role
from yolo_fs.protocol.isolation import PERSONAL
from yolo_fs.protocol.roster import AGENT_BY_NAME
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


TOOLS = sorted({tool for row in AGENT_BY_NAME.values() for tool in row.tools} - {"All"})
TOPICS = sorted(
    {topic for row in AUTHORITY for topic in (*row.decides, *(one.text for one in row.escalates))}
)
SOURCE = ("src/a.py", "frontend/a.ts", ".env", ".git/config", ".yolo-planning/REQUIREMENTS.md")
Ask = Callable[[Actor], AccessDecision]


def acts(mode: Mode) -> Iterator[tuple[str, str, Ask]]:
    """Yield every act that a door asks about: its name, what it is of, and the question."""
    for path in (*PATHS, *SOURCE):
        yield "read", path, partial(may_read, target=Target(path))
        yield "write", path, partial(may_write, target=Target(path))
    yield from (("use", tool, partial(may_use, tool=tool)) for tool in TOOLS)
    yield from (("decide", topic, partial(may_decide, topic=topic)) for topic in TOPICS)
    for other in people(mode):
        yield "contact", other.name, partial(may_contact, receiver=other)
        yield "escalate", other.name, partial(may_escalate, receiver=other)


def people(mode: Mode) -> list[Actor]:
    found = (find_actor(name, None, mode) for name in EVERYBODY)
    return [one for one in found if one.mode is mode]


def followed(actor: Actor, ask: Ask) -> Iterator[tuple[Actor, AccessDecision]]:
    """Yield whom each refusal sends to, and what they are told, to the end.

    `ask`: cached, since most refusals lead to the same few.
    """
    seen: set[str] = set()
    while actor.name not in seen:
        seen.add(actor.name)
        answer = ask(actor)
        yield actor, answer
        if answer.allowed or not answer.ask:
            return
        actor = find_actor(answer.ask[0], None, actor.mode)


@pytest.mark.parametrize("mode", Mode)
def test_each_refusal_leads_to_somebody_who_may_or_to_a_person(mode: Mode) -> None:
    lost = []
    everybody = people(mode)
    for act, what, question in acts(mode):
        ask = cache(question)
        for actor in everybody:
            way = list(followed(actor, ask))
            last, answer = way[-1]
            if not answer.allowed and last.role is not Role.USER:
                lost.append((act, what, [one.name for one, _ in way], answer.rule))
    assert lost == []


@pytest.mark.parametrize("mode", Mode)
def test_whoever_a_refusal_names_first_may_be_written_to(mode: Mode) -> None:
    closed = set()
    everybody = people(mode)
    for act, what, question in acts(mode):
        ask = cache(question)
        for actor in everybody:
            for one, other in pairwise(each for each, _ in followed(actor, ask)):
                both = Mode.MULTI if Mode.MULTI in (one.mode, other.mode) else Mode.SINGLE
                if not may_contact(one._replace(mode=both), other._replace(mode=both)).allowed:
                    closed.add((act, what, one.name, other.name))
    by_fail = {one for one in closed if one[:2] == ("decide", "FAIL = hard STOP")}
    assert closed - by_fail == set()
    assert by_fail, "a FAIL of security is the one that goes past the chain"


@pytest.mark.parametrize("mode", Mode)
def test_no_agent_is_sent_to_the_user_for_a_file_that_an_agent_may_write(mode: Mode) -> None:
    for path in PATHS:
        ask = partial(may_write, target=Target(path))
        everybody = people(mode)
        if any(ask(one).allowed for one in everybody if one.role is not Role.USER):
            agents = [one for one in everybody if one.role is not Role.USER]
            ends = {list(followed(one, ask))[-1][0].name for one in agents}
            assert Role.USER not in ends, path
