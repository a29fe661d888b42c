"""The messages agree with document 000 as transcribed, and every example agrees with its name."""

from __future__ import annotations

import ast
import json
import typing
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.protocol.departments import WORKING_NAMES
from yolo_fs.schemas import messages
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.messages.catalogue import MESSAGES, Direction, Message, read_message

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXAMPLES = FIXTURES / "examples" / "messages"
GOOD = sorted(EXAMPLES.glob("*/ok/*.json"))
BAD = sorted(EXAMPLES.glob("*/bad/*.json"))
SPEC = json.loads((FIXTURES / "spec" / "messages.json").read_text(encoding="utf-8"))
FAMILIES = sorted(Path(messages.__file__).parent.glob("*.py"))


def _name(path: Path) -> str:
    return f"{path.parts[-3]}-{path.stem}" if path.suffix == ".json" else path.stem


def _load(path: Path) -> dict[str, typing.Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _errors(value: dict[str, typing.Any], mode: Strictness = Strictness()) -> list[Reason]:
    return [fault.reason for fault in read_message(value, mode)[1] if fault.level is Level.ERROR]


def _document(kind: str) -> dict[str, typing.Any]:
    return _load(EXAMPLES / kind / "ok" / "document.json")


def _required(shape: type[Shape]) -> list[str]:
    return [
        field.alias or name for name, field in shape.model_fields.items() if field.is_required()
    ]


# --- document 000 ----------------------------------------------------------------------------------------------------


def test_there_are_37_types_in_the_order_of_the_document():
    assert len(MESSAGES) == 37
    assert list(MESSAGES) == [row["type"] for row in SPEC]


@pytest.mark.parametrize("row", SPEC, ids=lambda row: row["type"])
def test_keys_are_those_of_the_document(row):
    assert sorted(_required(MESSAGES[row["type"]])) == sorted(row["keys"])


@pytest.mark.proves("000:5")
@pytest.mark.parametrize("row", SPEC, ids=lambda row: row["type"])
def test_route_is_that_of_the_heading(row):
    shape = MESSAGES[row["type"]]
    departments = [*WORKING_NAMES]
    assert [shape.sender, shape.via, shape.receiver] == [
        tuple(row["sender"]), tuple(row.get("via", ())), tuple(row["receiver"])
    ]  # fmt: skip
    assert list(shape.sender_departments) == row.get("sender_departments", departments)
    assert list(shape.receiver_departments) == row.get("receiver_departments", departments)


@pytest.mark.proves("000:351")
@pytest.mark.parametrize("row", SPEC, ids=lambda row: row["type"])
def test_internal_and_teammate_messages_are_those_whose_heading_says_so(row):
    shape = MESSAGES[row["type"]]
    assert (shape.direction is Direction.INTERNAL) == ("internal" in row["heading"])
    assert (shape.team_mode == "teammate") == ("team_mode=teammate" in row["heading"])


@pytest.mark.proves(
    "000:10",
    "000:30",
    "000:47",
    "000:66",
    "000:80",
    "000:95",
    "000:110",
    "000:128",
    "000:145",
    "000:168",
    "000:185",
    "000:201",
    "000:217",
    "000:247",
    "000:273",
    "000:289",
    "000:305",
    "000:331",
    "000:354",
    "000:370",
    "000:385",
    "000:401",
    "000:419",
    "000:438",
    "000:458",
    "000:472",
    "000:493",
    "000:514",
    "000:534",
    "000:552",
    "000:567",
    "000:582",
    "000:610",
    "000:636",
    "000:660",
    "000:688",
    "000:724",
)
@pytest.mark.parametrize("kind", MESSAGES)
def test_document_example_has_exactly_the_keys_of_the_document(kind):
    row = next(row for row in SPEC if row["type"] == kind)
    assert list(_document(kind)) == row["keys"]


@pytest.mark.proves("002:294")
def test_only_leads_speak_across_departments():
    across = {kind for kind, shape in MESSAGES.items() if shape.direction is Direction.ACROSS}
    assert across == {"design_handoff", "api_contract", "dept_handoff"}
    assert {
        role for kind in across for role in (*MESSAGES[kind].sender, *MESSAGES[kind].receiver)
    } == {"lead"}


@pytest.mark.parametrize("kind", MESSAGES)
def test_direction_follows_the_chain_of_command(kind):
    chain = ["dev", "senior", "lead", "architect", "owner"]
    (sender, *_), (receiver, *_) = MESSAGES[kind].sender, MESSAGES[kind].receiver
    if sender == receiver or not {sender, receiver} <= set(chain):
        return
    upward = chain.index(sender) < chain.index(receiver)
    assert MESSAGES[kind].direction is (Direction.UP if upward else Direction.DOWN)


# --- examples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GOOD, ids=_name)
def test_good_example_is_read_without_any_fault(path):
    message, faults = read_message(_load(path), Strictness(strict=True))
    assert faults == ()
    assert isinstance(message, MESSAGES[path.parts[-3]])


@pytest.mark.proves(
    "000:323",
    "000:343",
    "000:747a",
    "000:95",
    "000:385",
    "000:419",
    "000:438",
    "000:514",
    "000:534",
    "000:582",
    "002:115",
)
@pytest.mark.parametrize("path", BAD, ids=_name)
def test_bad_example_fails_for_the_reason_in_its_name(path):
    assert _errors(_load(path))[:1] == [Reason.of(path.stem.partition("__")[0])]


@pytest.mark.parametrize("path", BAD, ids=_name)
def test_every_fault_tells_place_and_expectation(path):
    message, faults = read_message(_load(path))
    assert message is None
    assert all(
        fault.at and fault.message and fault.expected
        for fault in faults
        if fault.level is Level.ERROR
    )


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_type_has_enough_examples(kind):
    assert len(list((EXAMPLES / kind / "ok").iterdir())) >= 2
    assert len({path.stem.partition("__")[0] for path in (EXAMPLES / kind / "bad").iterdir()}) >= 3


def test_examples_are_of_known_types():
    assert {path.name for path in EXAMPLES.iterdir()} == set(MESSAGES)


@pytest.mark.proves(
    "000:10",
    "000:30",
    "000:47",
    "000:66",
    "000:80",
    "000:95",
    "000:110",
    "000:128",
    "000:145",
    "000:168",
    "000:185",
    "000:201",
    "000:217",
    "000:247",
    "000:273",
    "000:289",
    "000:305",
    "000:331",
    "000:354",
    "000:370",
    "000:385",
    "000:401",
    "000:419",
    "000:438",
    "000:458",
    "000:472",
    "000:493",
    "000:514",
    "000:534",
    "000:552",
    "000:567",
    "000:582",
    "000:610",
    "000:636",
    "000:660",
    "000:688",
    "000:724",
)
@pytest.mark.parametrize("path", GOOD, ids=_name)
def test_a_good_example_without_one_of_its_required_keys_is_rejected(path):
    value = _load(path)
    for key in set(_required(MESSAGES[value["type"]])) - {"type"}:
        rest = {name: item for name, item in value.items() if name != key}
        assert _errors(rest) == [Reason.MISSING_KEY], key


@pytest.mark.parametrize("path", GOOD, ids=_name)
def test_a_message_survives_the_way_out_and_in(path):
    message, _ = read_message(_load(path))
    again, faults = read_message(
        json.loads(message.model_dump_json(by_alias=True, exclude_defaults=True))
    )
    assert (again, faults) == (message, ())


# --- the reader ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason", "expected"),
    [
        ({"type": "critique_results"}, Reason.UNKNOWN_TYPE, "critique_result"),
        (
            {"type": "shipped", "decision": "SHIP", "integration_qa": "PASS"},
            Reason.UNKNOWN_TYPE,
            "owner_signoff",
        ),
        ({"blocker": "no queue", "needs": "a queue"}, Reason.MISSING_KEY, "dev_blocker"),
        ({"type": None, "lint": {}, "tests": {}}, Reason.WRONG_TYPE, "qa_code_result"),
        ({"type": ["escalation"], "to": "lead"}, Reason.WRONG_TYPE, "escalation"),
    ],
)
def test_without_a_known_type_the_nearest_one_is_named(value, reason, expected):
    message, (fault,) = read_message(value)
    assert message is None
    assert (fault.reason, fault.at, fault.expected) == (reason, "/type", expected)


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ({"type": "DevBlocker"}, Reason.UNKNOWN_TYPE),
        ({"type": "DEV_BLOCKER"}, Reason.UNKNOWN_TYPE),
        ({"type": "dev-blocker"}, Reason.UNKNOWN_TYPE),
        ({"Type": "dev_blocker"}, Reason.MISSING_KEY),
        ({"message_type": "dev blocker"}, Reason.MISSING_KEY),
    ],
)
def test_a_type_in_another_spelling_is_named_and_all_else_is_told_with_it(spelled, reason):
    whole = {key: item for key, item in _document("dev_blocker").items() if key != "type"}
    _, (fault,) = read_message({**whole, **spelled})
    assert (fault.reason, fault.at, fault.expected) == (reason, "/type", "dev_blocker")
    del whole["needs"]
    _, faults = read_message({**whole, **spelled})
    assert [each.at for each in faults] == ["/type", "/needs"]


def test_an_empty_object_is_told_all_types():
    _, (fault,) = read_message({})
    assert fault.reason is Reason.MISSING_KEY
    assert all(kind in fault.expected for kind in MESSAGES)


def test_unknown_key_warns_and_rejects_only_in_strict_mode():
    value = {**_document("dev_blocker"), "mood": "calm"}
    message, (fault,) = read_message(value)
    assert message is not None
    assert (fault.reason, fault.level) == (Reason.UNKNOWN_KEY, Level.WARNING)
    assert _errors(value, Strictness(strict=True)) == [Reason.UNKNOWN_KEY]


def test_all_faults_of_a_message_are_told_at_once():
    value = {**_document("qa_result"), "tier": "full", "committed": "yes", "failures": [{}]}
    assert {fault.at for fault in read_message(value)[1]} == {
        "/tier", "/committed", "/failures/0/check", "/failures/0/expected", "/failures/0/actual", "/failures/0/evidence"
    }  # fmt: skip


def test_from_is_read_under_its_wire_name():
    message, _ = read_message(_document("escalation"))
    assert message.from_ == "dev"
    assert "from_" not in message.model_dump(by_alias=True)


@pytest.mark.parametrize(
    ("value", "mapping"),
    [
        ({"r": "accept", "phase": "01", "findings": []}, "accept -> approve"),
        ({"r": "patch", "scope_match": "partial"}, "scope_match -> scope_confidence"),
        ({"type": "po_qa_verdict", "r": ["?"], "action": "ship"}, "major -> major"),
        ({"r": "PASS", "scope_alignment": 0.9}, "PASS -> approve"),
        ({"r": "FAIL", "missing": ["SSO"], "extra": []}, "FAIL -> major"),
    ],
)
def test_rival_verdict_is_rejected_with_the_mapping(value, mapping):
    _, (fault,) = read_message(value)
    assert fault.reason is Reason.RIVAL_SHAPE
    assert mapping in fault.expected


def test_another_verdict_without_type_is_not_taken_for_a_rival():
    assert _errors({"r": "PASS", "tests": {"ps": 1, "fl": 0, "sk": 0}}) == [Reason.MISSING_KEY]
    assert _errors({**_document("po_qa_verdict"), "r": "accept"}) == []


# --- the classes -----------------------------------------------------------------------------------------------------


def test_a_second_message_of_one_name_is_refused():
    with pytest.raises(TypeError, match="two messages are called 'dev_blocker'"):

        class Twin(Message):
            type: typing.Literal["dev_blocker"]

    assert MESSAGES["dev_blocker"].__name__ == "DevBlocker"


@pytest.mark.parametrize("path", FAMILIES, ids=_name)
def test_every_field_is_documented(path):
    for shape in (
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ):
        assert ast.get_docstring(shape), shape.name
        for field, following in zip(shape.body, [*shape.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and field.target.id not in _SELF_EXPLAINING:
                assert _is_text(following), f"{shape.name}.{field.target.id}"


_SELF_EXPLAINING = {
    "type",
    "accepts",
    "direction",
    "sender_departments",
    "receiver_departments",
    "team_mode",
}


def _is_text(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
