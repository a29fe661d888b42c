"""validate --type plan, naming, config, gates, deps, and the older names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compat.shim import HEADER, SUMMARY, TASK, Done, call, fill, lines

MISSING = None
"""A value that stands for a key that is left out."""


def changed(value: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in {**value, **change}.items() if item is not MISSING}


def validate(kind: str, *arguments: object, cwd: Path) -> Done:
    done = call("validate", "--type", kind, *arguments, cwd=cwd)
    assert done.code == (0 if done.json["valid"] else 1)
    assert done.json["valid"] is not bool(done.json["errors"])
    return done


def plan(folder: Path, text: str, name: str = "01-01.plan.jsonl") -> Done:
    return validate("plan", fill(folder, {name: text}) / name, cwd=folder)


# --- plan ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        lines(HEADER, TASK),
        lines(HEADER, TASK).rstrip("\n"),
        lines(HEADER) + "\n" + lines(TASK),
        lines(HEADER, changed(TASK, {"f": "src/auth.ts"})),
        lines(changed(HEADER, {"mh": {}}), TASK),
        lines(changed(HEADER, {"w": 1.5}), TASK),
        lines(changed(HEADER, {"eff": "turbo", "mh": MISSING}), changed(TASK, {"tp": MISSING})),
        lines(changed(HEADER, {"xd": [], "sk": [], "fm": ["a.ts"], "auto": False}), TASK),
        lines(HEADER, changed(TASK, {"id": "T01"})),
    ],
    ids=[
        "whole",
        "no_last_newline",
        "blank_line",
        "f_no_array",
        "mh_empty",
        "w_fraction",
        "turbo",
        "optional_keys",
        "padded_id",
    ],
)
def test_what_the_contract_accepts_is_valid(tmp_path: Path, text: str) -> None:
    assert plan(tmp_path, text).json["errors"] == []


def test_a_header_needs_its_keys(tmp_path: Path) -> None:
    errors = plan(tmp_path, lines({}, TASK)).json["errors"]
    keys = ["p", "n", "t", "w", "d", "obj", "mh"]
    assert {f"Header missing required key: {key}" for key in keys} <= set(errors)


def test_the_keys_of_a_header_have_their_types(tmp_path: Path) -> None:
    wrong = {
        "p": 1,
        "t": 7,
        "w": "1",
        "d": "01-02",
        "mh": [],
        "xd": {},
        "sk": "a",
        "fm": "a.ts",
        "auto": "yes",
    }
    errors = plan(tmp_path, lines({**HEADER, **wrong}, TASK)).json["errors"]
    types = ["string", "string", "number", "array", "object", "array", "array", "array", "boolean"]
    said = [f"Header key {key}: expected {type_}" for key, type_ in zip(wrong, types, strict=True)]
    assert sorted(error for error in errors if error.startswith("Header")) == sorted(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"v": MISSING}, "Task T1: missing required key: v"),
        ({"tp": MISSING}, "Task T1: missing required key: tp"),
        ({"id": MISSING}, "Task on line 2: missing required key: id"),
        ({"id": "one"}, "Task one: id does not match ^T[0-9]+$"),
        ({"f": ["/etc/passwd"]}, "Task T1: path is not relative"),
        ({"f": ["../outside"]}, "Task T1: path is not relative"),
        ({"ac": "old"}, "Naming: 01-01.plan.jsonl:2 at /ac: legacy_key"),
    ],
)
def test_a_wrong_task_is_named(tmp_path: Path, change: Mapping[str, Any], said: str) -> None:
    errors = plan(tmp_path, lines(HEADER, changed(TASK, change))).json["errors"]
    assert any(error.startswith(said) for error in errors), errors


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Empty plan file"),
        ("\n\n", "Empty plan file"),
        (lines(HEADER) + '{"id": "T1", "tp"', "Line 2: invalid JSON"),
        ("{torn\n" + lines(TASK), "Line 1: invalid JSON"),
        (lines(HEADER) + "[1]\n", "Line 2: invalid JSON"),
    ],
)
def test_what_is_no_plan_is_said_by_its_line(tmp_path: Path, text: str, said: str) -> None:
    errors = plan(tmp_path, text).json["errors"]
    assert any(error.startswith(said) for error in errors), errors


def test_a_plan_that_is_not_there_is_invalid(tmp_path: Path) -> None:
    assert validate("plan", "none.plan.jsonl", cwd=tmp_path).json["errors"] == [
        "File not found: none.plan.jsonl"
    ]


@pytest.mark.parametrize(
    ("needs", "wave", "said"),
    [
        (["01-01"], 2, ""),
        (["01-01"], 1, "Plan depends on same-or-higher wave plan: "),
        (["01-02"], 2, "Circular dependency: "),
        (["01-09"], 2, ""),
        (["../../etc/passwd"], 2, ""),
    ],
    ids=["earlier", "same_wave", "itself", "another_directory", "path"],
)
def test_waves_rise_along_dependencies(
    tmp_path: Path, needs: list[str], wave: int, said: str
) -> None:
    fill(tmp_path, {"01-01.plan.jsonl": lines(HEADER, TASK)})
    done = plan(
        tmp_path,
        lines(changed(HEADER, {"n": "02", "d": needs, "w": wave}), TASK),
        "01-02.plan.jsonl",
    )
    errors = done.json["errors"]
    assert bool(errors) is bool(said)
    assert all(error.startswith(said) for error in errors)


def test_what_only_the_coordinator_refuses_is_a_warning(tmp_path: Path) -> None:
    said = plan(tmp_path, lines(HEADER, TASK, {**TASK, "td": ["T9"]})).json
    assert said["errors"] == []
    assert any("duplicate_id" in warning for warning in said["warnings"])
    assert any("unknown_reference" in warning for warning in said["warnings"])


# --- naming ----------------------------------------------------------------------------------------------------------


def naming(target: Path, *more: object) -> Any:
    return validate("naming", target, *more, cwd=target.parent).json


@pytest.mark.parametrize(
    ("name", "value", "at"),
    [
        ("01-01.plan.jsonl", changed(HEADER, {"p": "01-01"}), "/p"),
        ("01-01.plan.jsonl", changed(HEADER, {"n": "Login"}), "/n"),
        ("01-01.plan.jsonl", changed(HEADER, {"t": 3}), "/t"),
        ("01-01.summary.jsonl", {**SUMMARY, "commits": []}, "/commits"),
        ("01-01.summary.jsonl", {**SUMMARY, "tasks": 1}, "/tasks"),
        ("01-01.summary.jsonl", {**SUMMARY, "dev": []}, "/dev"),
        ("01-01.summary.jsonl", {**SUMMARY, "sum": "x"}, "/sum"),
        ("01-01.summary.jsonl", changed(SUMMARY, {"tst": MISSING}), "/tst"),
        ("reqs.jsonl", {"id": "REQ-1", "t": "x", "p": "must"}, "/pri"),
        ("reqs.jsonl", {"id": "REQ-1", "t": "x", "pri": "must", "d": "x"}, "/d"),
    ],
)
def test_names_are_those_of_the_protocol(tmp_path: Path, name: str, value: object, at: str) -> None:
    text = lines(value, TASK) if "plan" in name else lines(value)
    errors = naming(fill(tmp_path, {name: text}) / name)["errors"]
    assert any(f" at {at}: " in error for error in errors), errors


@pytest.mark.parametrize("name", ["critique.jsonl", "decisions.jsonl", "code-review.jsonl"])
def test_other_artifacts_are_not_checked(tmp_path: Path, name: str) -> None:
    said = naming(fill(tmp_path, {name: "torn {"}) / name)
    assert said == {"valid": True, "errors": [], "warnings": [f"Unknown artifact type: {name}"]}


def test_a_summary_of_several_lines_is_a_warning(tmp_path: Path) -> None:
    said = naming(
        fill(tmp_path, {"01-01.summary.jsonl": lines(SUMMARY, {"id": "T1"})})
        / "01-01.summary.jsonl"
    )
    assert (said["errors"], len(said["warnings"])) == ([], 1)


@pytest.mark.parametrize(("more", "is_valid"), [((), False), (("--turbo",), True)])
def test_turbo_needs_fewer_keys(tmp_path: Path, more: tuple[str, ...], is_valid: bool) -> None:
    text = lines(changed(HEADER, {"mh": "anything"}), changed(TASK, {"tp": MISSING}))
    assert (
        naming(fill(tmp_path, {"01-01.plan.jsonl": text}) / "01-01.plan.jsonl", *more)["valid"]
        is is_valid
    )


TREE = {
    "phases/01-auth/01-01.plan.jsonl": "torn\n",
    "phases/01-auth/01-01.summary.jsonl": "torn\n",
    "phases/01-auth/deeper/01-02.plan.jsonl": "torn\n",
    "milestones/old/phases/01-auth/01-01.plan.jsonl": "torn\n",
}


@pytest.mark.parametrize(
    ("target", "more", "errors", "warnings"),
    [
        (".", (), 0, 0),
        ("phases", (), 2, 0),
        ("phases", ("--type=plan",), 1, 0),
        ("phases", ("--type", "reqs"), 0, 0),
        (".", ("--scope=all",), 0, 1),
        ("phases", ("--scope=all",), 2, 1),
    ],
)
def test_a_directory_is_looked_through(
    tmp_path: Path, target: str, more: tuple[str, ...], errors: int, warnings: int
) -> None:
    said = naming(fill(tmp_path / ".yolo-planning", TREE) / target, *more)
    assert (len(said["errors"]), len(said["warnings"])) == (errors, warnings)


@pytest.mark.parametrize(
    "arguments", [("nowhere",), (), (".", "--scope=some"), (".", "--type=critique")]
)
def test_naming_names_what_it_cannot_take(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = call("validate-naming", *arguments, cwd=tmp_path)
    assert (done.code, done.out, done.err.startswith("ERROR: ")) == (1, "", True)


# --- config ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"qa_gates": {"post_task": False, "timeout_seconds": 1, "failure_threshold": "minor"}},
        {"integration_gate": {"timeout_seconds": 60}, "delivery": {"mode": "manual"}},
        {"complexity_routing": {"force_analyze_model": "balanced"}},
        {"effort": "no effort that is known"},
    ],
)
def test_a_configuration_that_the_contract_accepts(tmp_path: Path, value: object) -> None:
    fill(tmp_path, {"config.json": json.dumps(value)})
    assert validate("config", "config.json", cwd=tmp_path).json["errors"] == []


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ({"qa_gates": {"post_task": "yes"}}, "qa_gates.post_task"),
        ({"qa_gates": {"timeout_seconds": 0}}, "qa_gates.timeout_seconds"),
        ({"qa_gates": []}, "qa_gates"),
        ({"integration_gate": {"timeout_seconds": 3601}}, "integration_gate.timeout_seconds"),
        ({"integration_gate": {"checks": {"tests": 1}}}, "integration_gate.checks.tests"),
        ({"po": {"default_rejection": "minor"}}, "po.default_rejection"),
        ({"delivery": {"mode": "later"}}, "delivery.mode"),
        ({"complexity_routing": {"trivial": 0.5}}, "complexity_routing.trivial"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, value: object, key: str) -> None:
    fill(tmp_path, {"config.json": json.dumps(value)})
    (error,) = validate("config", "config.json", cwd=tmp_path).json["errors"]
    assert error.startswith(f"{key}: ")


@pytest.mark.parametrize("text", ['{"torn', "[]", ""])
def test_a_torn_configuration_is_invalid(tmp_path: Path, text: str) -> None:
    fill(tmp_path, {"config.json": text})
    (error,) = call("validate-config", "config.json", cwd=tmp_path).json["errors"]
    assert "config.json" in error


def test_defaults_stand_behind_the_configuration(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "config.json": '{"delivery": {"mode": "auto"}}',
            "defaults.json": '{"delivery": {"mode": "x"}}',
        },
    )
    assert validate("config", "config.json", "defaults.json", cwd=tmp_path).json["valid"]
    assert not validate("config", "defaults.json", cwd=tmp_path).json["valid"]


# --- gates -----------------------------------------------------------------------------------------------------------


def state(**steps: str) -> str:
    return json.dumps({"steps": {step: {"status": status} for step, status in steps.items()}})


PLAN = {"01-01.plan.jsonl": lines(HEADER, TASK)}
APPROVED = {"code-review.jsonl": lines({"plan": "01-01", "r": "approve"}, {"f": "a"})}
STATE = ".execution-state.json"


@pytest.mark.parametrize(
    ("step", "files"),
    [
        ("critique", {}),
        ("research", {"research.jsonl": "{}"}),
        ("research", {STATE: state(research="skipped")}),
        ("architecture", {"critique.jsonl": "{}"}),
        ("planning", {"architecture.toon": "a: 1"}),
        ("design_review", PLAN),
        ("test_authoring", PLAN),
        ("implementation", PLAN),
        (
            "implementation",
            {**PLAN, STATE: state(test_authoring="complete"), "test-plan.jsonl": "{}"},
        ),
        ("code_review", {**PLAN, "01-01.summary.jsonl": "{}"}),
        ("qa", APPROVED),
        ("security", {STATE: state(qa="skipped")}),
        ("signoff", {**APPROVED, STATE: state(security="skipped")}),
        ("post_task_qa", {".qa-gate-results.jsonl": "torn {\n" + lines({"gl": "post-task"})}),
        ("post_plan_qa", {STATE: state(post_plan_qa="skipped")}),
    ],
)
def test_a_gate_passes(tmp_path: Path, step: str, files: Mapping[str, str]) -> None:
    done = call(
        "validate-gates",
        "--step",
        step,
        "--phase-dir",
        fill(tmp_path / "01-auth", files),
        cwd=tmp_path,
    )
    assert (done.code, done.json) == (0, {"gate": "pass", "step": step, "missing": []})


@pytest.mark.parametrize(
    ("step", "files", "missing"),
    [
        ("research", {}, "research.jsonl"),
        ("research", {"research.jsonl": ""}, "research.jsonl"),
        ("architecture", {STATE: '{"steps": {"critique": {"status": "ski'}, "critique.jsonl"),
        ("planning", {STATE: state(architecture="complete")}, "architecture.toon"),
        ("design_review", {}, "*.plan.jsonl"),
        (
            "test_authoring",
            {"a.plan.jsonl": lines(HEADER, {**TASK, "spec": ""})},
            "a.plan.jsonl: task T1 has no spec",
        ),
        (
            "test_authoring",
            {"a.plan.jsonl": lines(HEADER) + "torn"},
            "a.plan.jsonl: line 2 is no JSON object",
        ),
        ("implementation", {**PLAN, STATE: state(test_authoring="complete")}, "test-plan.jsonl"),
        ("code_review", PLAN, "01-01.summary.jsonl"),
        (
            "code_review",
            {"x.plan.jsonl": lines({**HEADER, "p": "../.."})},
            "x.plan.jsonl: its header names no plan",
        ),
        ("code_review", {}, "*.plan.jsonl"),
        (
            "qa",
            {"code-review.jsonl": lines({"r": "changes_requested"}, {"r": "approve"})},
            "code-review.jsonl with",
        ),
        ("qa", {"code-review.jsonl": '{"r": "appr'}, "code-review.jsonl with"),
        ("security", {}, "verification.jsonl"),
        ("signoff", {"security-audit.jsonl": "{}"}, "code-review.jsonl"),
        ("signoff", APPROVED, "security-audit.jsonl"),
        (
            "post_task_qa",
            {".qa-gate-results.jsonl": lines({"gl": "post-plan"})},
            ".qa-gate-results.jsonl with",
        ),
        ("post_plan_qa", {}, ".qa-gate-results.jsonl"),
    ],
)
def test_a_gate_fails_and_says_what_is_missing(
    tmp_path: Path, step: str, files: Mapping[str, str], missing: str
) -> None:
    phase = fill(tmp_path / "01 auth", files)
    done = call("validate", "--type", "gates", "--step", step, "--phase-dir", phase, cwd=tmp_path)
    (only,) = done.json["missing"]
    assert (done.code, done.json["gate"], only.startswith(missing)) == (1, "fail", True)


@pytest.mark.parametrize(
    "step", ["po", "documentation", "integration_gate", "delivery", "../qa", "QA"]
)
def test_a_step_without_a_gate_is_unknown(tmp_path: Path, step: str) -> None:
    done = call("validate-gates", "--step", step, "--phase-dir", tmp_path, cwd=tmp_path)
    assert (done.code, f"Unknown step: {step}" in done.err) == (1, True)


def test_a_phase_that_is_not_there_fails_every_gate(tmp_path: Path) -> None:
    done = call("validate-gates", "--step", "critique", "--phase-dir", "nowhere", cwd=tmp_path)
    assert (done.code, done.json["missing"]) == (1, ["phase directory nowhere"])


# --- deps ------------------------------------------------------------------------------------------------------------


def phases(*rows: tuple[str, list[str]], critical: tuple[str, ...] = ()) -> Any:
    return {
        "phases": [
            {"id": id_, "depends_on": needs, "critical": id_ in critical} for id_, needs in rows
        ]
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (phases(("01", ["09"])), "unknown_reference"),
        (phases(("01", ["02"]), ("02", ["01"])), "dependency_cycle"),
        (phases(("01", ["01"])), "dependency_cycle"),
        ({"phases": []}, "empty_value"),
        ({"phases": {}}, "wrong_type"),
        ({}, "missing_key"),
        ("torn", "r.json"),
    ],
)
def test_a_roadmap_without_an_order_is_invalid(tmp_path: Path, value: object, said: str) -> None:
    fill(tmp_path, {"r.json": json.dumps(value) if value != "torn" else "{torn"})
    errors = validate("deps", "--roadmap-json", "r.json", cwd=tmp_path).json["errors"]
    assert any(said in error for error in errors)


@pytest.mark.parametrize(
    ("value", "warnings"),
    [
        (phases(("01", [])), []),
        (phases(("01", []), ("02", ["01"])), []),
        (phases(("01", []), ("02", ["01"]), ("03", [])), ["Orphan phase: 03"]),
        (phases(("01", []), ("02", ["01"]), ("03", ["02"]), critical=("01", "02")), []),
        (
            phases(("01", []), ("02", ["01"]), ("03", ["02"]), critical=("01", "03")),
            ["Critical phase is not connected to another critical phase: 01"] * 2,
        ),
    ],
)
def test_what_is_odd_in_a_roadmap_is_a_warning(
    tmp_path: Path, value: object, warnings: list[str]
) -> None:
    fill(tmp_path, {"r.json": json.dumps(value)})
    said = validate("deps", "--roadmap-json", "r.json", cwd=tmp_path).json
    assert said["valid"]
    assert [
        warning[: len(start)] for warning, start in zip(said["warnings"], warnings, strict=True)
    ] == [
        start if index == 0 else start.replace(": 01", ": 03")
        for index, start in enumerate(warnings)
    ]


# --- the door --------------------------------------------------------------------------------------------------------


def test_the_type_may_be_joined(tmp_path: Path) -> None:
    done = call("validate", "--type=gates", "--step", "critique", "--phase-dir", ".", cwd=tmp_path)
    assert (done.code, done.json["gate"]) == (0, "pass")


@pytest.mark.parametrize(
    "arguments", [("--type", "poem"), ("--type",), (), ("--type=",), ("--type", "commit")]
)
def test_an_unknown_type_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = call("validate", *arguments, cwd=tmp_path)
    assert (done.code, done.out, "plan, naming, config" in done.err) == (1, "", True)
