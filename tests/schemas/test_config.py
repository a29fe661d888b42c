"""The configuration: its examples, its defaults and its ranges."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import yolo_fs
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Level, Reason
from yolo_fs.protocol.gates import APPROVAL_GATE_BY_KEY, INTEGRATION_CHECKS
from yolo_fs.schemas.check import check
from yolo_fs.schemas.config import Config, Policy, values_of
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.plain_values import shape_of

SHAPE = shape_of(Config)
EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples" / "configs" / "config"
KEYS = {
    "effort", "autonomy", "auto_commit", "verification_tier", "context_compiler", "max_tasks_per_plan", "agent_teams",
    "team_mode", "model_profile", "model_overrides", "security_audit", "approval_gates", "departments",
    "department_workflow", "cross_team_handoff", "qa_gates", "escalation", "review_loop", "research_requests", "po",
    "critique", "integration_gate", "documenter", "delivery", "complexity_routing", "yolo_fs", "company",
}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("ok/*.json")), ids=lambda path: path.stem)
def test_good_configuration_has_no_fault(path: Path) -> None:
    shaped, faults = check(SHAPE, load(path), Strictness(strict=True))
    assert shaped is not None
    assert faults == ()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("bad/*.json")), ids=lambda path: path.stem)
def test_bad_configuration_fails_for_the_reason_in_its_name(path: Path) -> None:
    shaped, faults = check(SHAPE, load(path))
    assert shaped is None
    assert [f.reason for f in faults if f.level is Level.ERROR] == [
        Reason.of(path.stem.partition("__")[0])
    ]


def test_configuration_has_its_examples() -> None:
    assert len(list(EXAMPLES.glob("ok/*.json"))) >= 2
    assert len(list(EXAMPLES.glob("bad/*.json"))) >= 3


def test_configuration_knows_every_key_of_the_protocol() -> None:
    assert set(SHAPE.model_fields) == set(Config._fields) == KEYS


def test_every_default_is_valid_itself() -> None:
    written = json.loads(json.dumps(to_json(Config())))
    shaped, faults = check(SHAPE, written)
    assert faults == ()
    assert shaped is not None
    assert values_of(Config, shaped.model_dump()) == values_of(Config, written) == Config()


@pytest.mark.proves("000:328")
def test_documented_numbers_are_the_defaults() -> None:
    config = Config()
    assert (
        config.max_tasks_per_plan,
        config.escalation.timeout_seconds,
        config.escalation.max_round_trips,
    ) == (
        5,
        300,
        2,
    )
    assert (
        config.review_loop.max_cycles,
        config.critique.max_rounds,
        config.critique.confidence_threshold,
    ) == (
        2,
        3,
        85,
    )
    assert (config.integration_gate.timeout_seconds, config.po.confidence_threshold) == (600, 0.85)
    routing = config.complexity_routing
    assert (routing.trivial_confidence_threshold, routing.medium_confidence_threshold) == (
        0.85,
        0.7,
    )


def test_policy_is_inert_by_default() -> None:
    policy = Config().yolo_fs
    assert not any((policy.strict, policy.legacy, policy.commit_ignored, policy.allow_detached))
    assert (policy.protected, policy.secrets_allowed, policy.commits_per_minute) == ((), (), 0)
    assert (policy.durability, policy.directive_roots) == ("fsync", ("apps/web/.local/directives",))
    assert policy.required_reading == ""


SECTIONS = [type(each) for each in Config() if hasattr(each, "_fields")]


@pytest.mark.parametrize("kind", [Config, *SECTIONS])
def test_every_key_is_optional(kind: type) -> None:
    assert not [name for name, field in shape_of(kind).model_fields.items() if field.is_required()]


def test_two_shapes_share_no_default() -> None:
    shape: Any = shape_of(Policy)
    assert shape().protected is not shape().protected


def find_read_names() -> set[str]:
    """Return what the code reads, outside of the shapes, and each switch that a table names."""
    root, read = Path(yolo_fs.__file__).parent, set[str]()
    for path in root.rglob("*.py"):
        if path.parent.name in ("schemas", "compat"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(attr=name):
                    read.add(name)
                case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(str(name)), *_]):
                    read.add(name)
    return read | {*APPROVAL_GATE_BY_KEY} | {row.config for row in INTEGRATION_CHECKS}


def find_keys(schema: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each key of the configuration that has no keys below it, and what its description says."""
    for name, below in part["properties"].items():
        inner = schema["$defs"].get(below.get("$ref", "").rpartition("/")[2], {})
        if "properties" in inner:
            yield from find_keys(schema, inner)
        else:
            yield name, " ".join(below.get("description", "").split())


def test_a_key_by_which_nothing_is_done_here_says_so() -> None:
    """Whoever switches something on believes that it holds."""
    schema = json.loads((EXAMPLES.parents[3] / "schemas" / "config.schema.json").read_text())
    read, keys = find_read_names(), dict(find_keys(schema, schema))
    assert keys.keys() >= {"manual_qa", "effort", "silent_s"}
    silent = {
        name
        for name, says in keys.items()
        if name not in read and "only passes it on" not in says and "; in yolo_fs " not in says
    }
    assert silent == set()


def test_an_object_that_may_be_empty_is_asked_for_in_a_whole_sentence() -> None:
    _, (fault,) = check(SHAPE, {"yolo_fs": []})
    assert (fault.reason, fault.expected) == (Reason.WRONG_TYPE, "an object, such as {}")
