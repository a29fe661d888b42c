"""Every cell of the authority matrix is asked about, and answered as the document prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.phases import committed
from yolo_fs.authority.actors import BRING, find_actor, meant_by, reports_to, superiors
from yolo_fs.authority.authority import decisions_out_of_lane, may_decide, may_use
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Level, Reason, YoloError
from yolo_fs.evidence.facts import PhaseFacts, WorkflowOptions
from yolo_fs.protocol.authority import AUTHORITY_BY_ROLE
from yolo_fs.protocol.departments import Dept, Mode, Role
from yolo_fs.protocol.roster import ROSTER
from yolo_fs.schemas.config import Config

SPEC = Path(__file__).parents[2] / "fixtures/spec"


def rows(table: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((SPEC / f"{table}.json").read_text())["rows"]
    return found


def entries(cell: str) -> list[str]:
    """Return the entries of a cell: commas within parentheses part none."""
    return re.split(r", (?![^(]*\))|\. ", cell)


def questions() -> Iterator[tuple[str, str, bool, tuple[str, ...]]]:
    """Yield (role, topic, may it decide, whom the cell names)."""
    for row in rows("authority"):
        yield from ((row["Agent"], topic, True, ()) for topic in entries(row["CAN Decide"]))
        for entry in entries(row["MUST Escalate"]):
            topic, _, arrow = (
                re.sub(r" \((→[^)]*)\)", r"|\1", entry).replace(" — ", "|").partition("|")
            )
            topic, _, direct = topic.partition(" → ")
            yield row["Agent"], topic, False, named(arrow or direct)


def named(arrow: str) -> tuple[str, ...]:
    labels = sorted((role.label for role in Role), key=len, reverse=True)
    found = re.findall("|".join(rf"\b{re.escape(label)}\b" for label in labels), arrow)
    via = [role.value for label in found for role in Role if role.label == label]
    return tuple(reversed(via) if " via " in arrow else via)


ASKED = list(questions())


@pytest.mark.proves("002:192-208")
@pytest.mark.parametrize(
    ("role", "topic", "allowed", "ask"), ASKED, ids=lambda value: str(value)[:40]
)
def test_each_topic_is_answered_as_its_column_says(
    role: str, topic: str, allowed: bool, ask: tuple[str, ...]
) -> None:
    actor = find_actor(role)
    answer = may_decide(actor, topic)
    assert answer.allowed is allowed
    assert "Decision Authority Matrix" in answer.rule
    if not allowed:
        above = reports_to(actor)
        assert above is not None
        asked = ask or (above.value,)
        assert answer.ask[-len(asked) :] == asked
        assert set(answer.ask) - {*asked} <= {above.value, Role.GO}, "the next on the way"
        assert answer.bring == BRING


def test_no_cell_of_the_matrix_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    rows_of_code = sum(len(row.decides) + len(row.escalates) for row in AUTHORITY_BY_ROLE.values())
    with capsys.disabled():
        print(f"\nauthority: {len(ASKED)} topics in {2 * len(rows('authority'))} cells exercised")
    assert len(ASKED) == rows_of_code
    assert len({role for role, *_ in ASKED}) == len(rows("authority")) == len(AUTHORITY_BY_ROLE)


@pytest.mark.proves("002:210")
@pytest.mark.parametrize(
    ("role", "topic", "allowed", "ask"),
    [
        ("dev", "variable names", True, ()),
        ("dev", "the architecture of the service", False, ("senior",)),
        ("fe-dev", "API design", False, ("fe-senior",)),
        ("lead", "technology choice", False, ("architect",)),
        ("lead", "decisions", False, ("architect",)),
        ("architect", "decisions", False, ("go.md", "user")),
        ("dev", "library", False, ("senior",)),
        ("senior", "test naming", False, ("lead",)),
        ("integration-gate", "anything", False, ("lead",)),
        ("integration-gate", "", False, ("lead",)),
        ("dev", "", False, ("senior",)),
        ("go.md", "ship/hold decisions", True, ()),
        ("user", "budget", True, ()),
    ],
)
def test_a_question_that_no_column_fits_goes_up(
    role: str, topic: str, allowed: bool, ask: tuple[str, ...]
) -> None:
    answer = may_decide(find_actor(role), topic)
    assert (answer.allowed, answer.ask) == (allowed, ask)


def test_a_no_tells_whose_decision_it_is() -> None:
    assert "Tester may decide it." in may_decide(find_actor("senior"), "test naming").rule


# --- tools ---

TOOLS = sorted({tool for agent in ROSTER for tool in agent.tools if tool != "All"})


@pytest.mark.proves("002:9-29", "000:240b")
@pytest.mark.parametrize("agent", ROSTER, ids=lambda agent: agent.name)
def test_the_roster_decides_on_each_tool(agent: Any) -> None:
    actor = find_actor(agent.full_name)
    allowed = {tool for tool in TOOLS if may_use(actor, tool.lower()).allowed}
    assert allowed == (set(TOOLS) if agent.tools == ("All",) else set(agent.tools))


@pytest.mark.proves("000:23")
def test_the_critic_has_no_write_tool_and_returns_its_findings_to_the_lead() -> None:
    answer = may_use(find_actor("critic"), "Write")
    assert (answer.allowed, answer.ask) == (False, ("lead",))
    assert "no Write tool" in answer.rule
    assert may_use(find_actor("fe-qa"), "Write").ask == ("fe-lead",)
    assert may_use(find_actor("owner"), "Write").allowed  # the roster has no row for it


# --- who is who ---


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("Dev", "dev"),
        ("yolo-fe-dev", "fe-dev"),
        ("dev-2", "dev"),
        ("QA Lead", "qa"),
        ("orchestrator", "go.md"),
    ],
)
def test_a_name_is_found_in_each_of_its_spellings(spelled: str, name: str) -> None:
    assert find_actor(spelled).name == name


@pytest.mark.parametrize(
    ("speaker", "spelled", "name"),
    [
        ("fe-dev", "senior", "fe-senior"),
        ("fe-dev", "yolo-senior", "senior"),
        ("fe-dev", "ux-senior", "ux-senior"),
        ("fe-lead", "lead", "lead"),
        ("fe-senior", "owner", "owner"),
        ("critic", "lead", "lead"),
    ],
)
def test_a_role_is_meant_in_the_department_of_the_speaker(
    speaker: str, spelled: str, name: str
) -> None:
    assert meant_by(find_actor(speaker), spelled).name == name


def test_a_department_chooses_among_agents_and_never_contradicts_a_name() -> None:
    assert find_actor("senior", Dept.UIUX).name == "ux-senior"
    for name, department in (("intern", None), ("fe-dev", Dept.UIUX)):
        with pytest.raises(YoloError) as raised:
            find_actor(name, department)
        assert (raised.value.reason, raised.value.exit_code) == (Reason.UNKNOWN_NAME, 2)


@pytest.mark.proves("002:86", "002:87")
@pytest.mark.parametrize(
    ("mode", "chain"),
    [
        (Mode.SINGLE, ["senior", "lead", "architect", "user"]),
        (Mode.MULTI, ["senior", "lead", "architect", "owner", "user"]),
    ],
)
def test_the_way_up_is_the_primary_chain(mode: Mode, chain: list[str]) -> None:
    assert [one.role.value for one in superiors(find_actor("dev", mode=mode))] == chain


# --- decisions that were taken ---


def found(*lines: dict[str, Any]) -> list[tuple[str, int, str, Level]]:
    facts = PhaseFacts(
        PhaseId("01", "auth"),
        (committed("decisions.jsonl", list(lines)),),
        WorkflowOptions(Config()),
    )
    return [(one.reason, one.line, one.hint, one.level) for one in decisions_out_of_lane(facts)]


@pytest.mark.proves("002:116")
def test_decisions_outside_of_an_authority_are_findings() -> None:
    lines = [
        {"agent": "dev", "dec": "Name the variable token"},
        {"agent": "yolo-lead", "dec": "Technology choice: PostgreSQL, not MongoDB"},
        {"agent": "architect", "dec": "Technology choice: PostgreSQL"},
        {"agent": "fe-dev", "dec": "Use a queue", "topic": "architectural choices"},
        {"agent": "senior", "dec": "Approve", "topic": "code review decisions"},
        {"agent": "integration-gate", "dec": "Scope changes"},
    ]
    assert found(*lines) == [
        (Reason.OUT_OF_LANE, 2, "Ask architect.", Level.ERROR),
        (Reason.OUT_OF_LANE, 4, "Ask fe-senior.", Level.ERROR),
    ]


def test_a_decision_of_nobody_we_know_is_a_warning() -> None:
    assert found({"agent": "intern", "dec": "Ship"}) == [
        (Reason.UNKNOWN_NAME, 1, "", Level.WARNING)
    ]


@pytest.mark.parametrize(
    ("agent", "writer"), [("analyze", "go.md"), ("critic", "lead"), ("fe-qa", "fe-lead")]
)
def test_whoever_has_no_tool_to_write_is_told_who_writes_for_it(agent: str, writer: str) -> None:
    refused = may_use(find_actor(agent), "Write")
    assert f"hands its findings to {writer}, who writes the file" in refused.rule
    assert refused.ask == (writer,)
