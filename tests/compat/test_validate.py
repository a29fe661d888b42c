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
        ({"id": MISSING}, "Task unknown: missing required key: id (line 2)"),
        ({"id": "one"}, "Task one: id must match ^T[0-9]+$ pattern"),
        ({"f": ["/etc/passwd"]}, "Task T1: absolute path in f: /etc/passwd"),
        ({"f": ["../outside"]}, "Task T1: absolute path in f: ../outside"),
        ({"ac": "old", "v": MISSING}, "Naming: Task T1: uses legacy key 'ac' instead of 'v'"),
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


@pytest.mark.parametrize("kind", ["plan", "config"])
def test_a_file_that_is_not_there_is_a_matter_of_usage(tmp_path: Path, kind: str) -> None:
    usage, error = call(f"validate-{kind}", "none", cwd=tmp_path).err.splitlines()
    assert usage.startswith(f"Usage: validate.sh --type {kind} ")
    assert error == "Error: File not found: none"


def test_after_a_torn_first_line_there_is_no_header(tmp_path: Path) -> None:
    errors = plan(tmp_path, "{torn\n" + lines(changed(TASK, {"v": MISSING}))).json["errors"]
    assert [error.partition(" (")[0] for error in errors] == [
        "Line 1: invalid JSON",
        "Task T1: missing required key: v",
        "Naming: Task T1: missing required key: v",
    ]


def test_crlf_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "01-01.plan.jsonl").write_bytes(lines(HEADER, TASK).replace("\n", "\r\n").encode())
    said = validate("plan", "01-01.plan.jsonl", cwd=tmp_path).json
    assert said["valid"]
    assert any("CRLF" in warning for warning in said["warnings"])


@pytest.mark.parametrize(
    ("needs", "wave", "said"),
    [
        (["01-01"], 2, ""),
        (["01-01"], 1, "Plan depends on same-or-higher wave plan: "),
        (["01-02"], 2, "Circular dependency: plan depends on itself"),
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


NAMES: list[tuple[str, Mapping[str, Any], str]] = [
    (
        "01-01.plan.jsonl",
        {"p": "01-01"},
        "Header p field is compound '01-01' -- must be phase-only",
    ),
    ("01-01.plan.jsonl", {"p": "1"}, "Header p field '1' is not valid -- must be zero-padded"),
    ("01-01.plan.jsonl", {"n": "Login"}, "Header n field 'Login' is not a plan number -- "),
    ("01-01.plan.jsonl", {"t": 3}, "Header t field is a number '3' -- must be title string"),
    ("01-01.plan.jsonl", {"t": "3"}, "Header t field is a number '3' -- must be title string"),
    (
        "01-02.plan.jsonl",
        {},
        "File name 01-02.plan.jsonl does not match header p='01' n='01'",
    ),
    ("01-01.summary.jsonl", {"p": "01-01"}, "Summary p field is compound '01-01' -- "),
    ("01-01.summary.jsonl", {"n": "one"}, "Summary n field 'one' is not a plan number -- "),
    (
        "01-01.summary.jsonl",
        {"ch": MISSING, "commits": []},
        "Summary uses legacy key 'commits' -- use 'ch' (",
    ),
    (
        "01-01.summary.jsonl",
        {"tc": MISSING, "tasks": 1},
        "Summary uses legacy key 'tasks' -- use 'tc' (",
    ),
    (
        "01-01.summary.jsonl",
        {"dv": MISSING, "dev": []},
        "Summary uses legacy key 'dev' -- use 'dv' (",
    ),
    ("01-01.summary.jsonl", {"built": MISSING, "sum": "x"}, "Summary uses legacy key 'sum' -- "),
    (
        "01-01.summary.jsonl",
        {"tst": MISSING},
        "Summary 01-01.summary.jsonl: missing required key: tst",
    ),
    (
        "01-01.summary.jsonl",
        {"tst": "green"},
        "Summary tst field 'green' not valid -- must be red_green|green_only|no_tests",
    ),
    ("01-01.summary.jsonl", {"s": "done"}, "Summary s field 'done' not valid -- must be complete|"),
    (
        "01-02.summary.jsonl",
        {},
        "Summary file name 01-02.summary.jsonl does not match header p='01' n='01'",
    ),
    ("reqs.jsonl", {"pri": MISSING, "p": "must"}, "Reqs REQ-1: uses legacy key 'p' -- use 'pri'"),
    ("reqs.jsonl", {"d": "x"}, "Reqs REQ-1: uses legacy key 'd' -- use 'ac'"),
    ("reqs.jsonl", {"pri": MISSING}, "Reqs REQ-1: missing required key: pri"),
    ("reqs.jsonl", {"id": MISSING}, "Reqs unknown: missing required key: id"),
    (
        "reqs.jsonl",
        {"pri": "p1"},
        "Reqs REQ-1: pri field 'p1' not valid -- must be must|should|nice",
    ),
    ("reqs.jsonl", {"st": "later"}, "Reqs REQ-1: st field 'later' not valid -- must be open|done"),
]
"""File, change to a valid one, and how the error begins; other programs' tests pin these phrases."""


@pytest.mark.parametrize(("name", "change", "said"), NAMES)
def test_names_are_those_of_the_protocol(
    tmp_path: Path, name: str, change: Mapping[str, Any], said: str
) -> None:
    if "plan" in name:
        text = lines(changed(HEADER, change), TASK)
    elif "summary" in name:
        text = lines(changed(SUMMARY, change))
    else:
        text = lines(changed({"id": "REQ-1", "t": "x", "pri": "must"}, change))
    errors = naming(fill(tmp_path, {name: text}) / name)["errors"]
    assert any(error.startswith(said) for error in errors), errors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": MISSING}, "Task T1: missing required key: a"),
        ({"a": MISSING, "n": "x"}, "Task T1: uses legacy key 'n' instead of 'a'"),
        ({"v": MISSING, "ac": "x"}, "Task T1: uses legacy key 'ac' instead of 'v'"),
        ({"f": ["/etc/passwd"]}, "Task T1: absolute path in f: /etc/passwd"),
    ],
)
def test_the_tasks_of_a_plan_have_their_keys(
    tmp_path: Path, change: Mapping[str, Any], said: str
) -> None:
    text = lines(HEADER, changed(TASK, change))
    assert said in naming(fill(tmp_path, {"x.plan.jsonl": text}) / "x.plan.jsonl")["errors"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("01-01.plan.jsonl", lines({"p": "01"}, TASK)),
        ("01-01.plan.jsonl", lines(HEADER, {**TASK, "n": "old", "ac": "old"})),
        ("fe-01-07.plan.jsonl", lines(HEADER, TASK)),
        ("01-01.summary.jsonl", lines({**SUMMARY, "dt": "2026-02-19T08:00:00Z"})),
    ],
)
def test_what_the_naming_rules_do_not_ask_is_no_error(tmp_path: Path, name: str, text: str) -> None:
    assert naming(fill(tmp_path, {name: text}) / name)["errors"] == []


@pytest.mark.parametrize("name", ["critique.jsonl", "decisions.jsonl", "code-review.jsonl"])
def test_other_artifacts_are_not_checked(tmp_path: Path, name: str) -> None:
    said = naming(fill(tmp_path, {name: "torn {"}) / name)
    assert said == {"valid": True, "errors": [], "warnings": [said["warnings"][0]]}
    assert said["warnings"][0].startswith("Unknown artifact type for ")


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
    ("arguments", "said"),
    [
        (("nowhere",), "Error: nowhere is not a file or directory"),
        ((), "Usage: validate.sh --type naming "),
        ((".", "--bogus"), "Usage: validate.sh --type naming "),
    ],
)
def test_naming_names_what_it_cannot_take(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = call("validate-naming", *arguments, cwd=tmp_path)
    assert (done.code, done.out, done.err.startswith(said)) == (1, "", True)


@pytest.mark.parametrize("argument", ["--scope=some", "--type=critique"])
def test_an_unknown_scope_is_active_and_an_unknown_type_a_warning(
    tmp_path: Path, argument: str
) -> None:
    done = call("validate-naming", ".", argument, cwd=tmp_path)
    warning = "Unknown artifact type for ."
    assert (done.code, done.json["warnings"]) == (0, [warning] if "type" in argument else [])


def test_the_milestones_of_the_project_are_looked_through_from_a_phase(tmp_path: Path) -> None:
    tree = fill(tmp_path / ".yolo-planning", TREE)
    said = naming(tree / "phases/01-auth", "--scope=all")
    assert len(said["errors"]) == 3
    assert [warning.partition(" ")[0] for warning in said["warnings"]] == ["Milestone:"]


# --- config ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"qa_gates": {"post_task": False, "timeout_seconds": 1, "failure_threshold": "minor"}},
        {"integration_gate": {"timeout_seconds": 60}, "delivery": {"mode": "manual"}},
        {"complexity_routing": {"force_analyze_model": "balanced"}},
        {"complexity_routing": {"trivial_confidence_threshold": 0.6, "max_trivial_files": 2.0}},
        {"qa_gates": {"timeout_seconds": 90.5}},
        {"effort": "no effort that is known"},
    ],
)
def test_a_configuration_that_the_contract_accepts(tmp_path: Path, value: object) -> None:
    fill(tmp_path, {"config.json": json.dumps(value)})
    assert validate("config", "config.json", cwd=tmp_path).json["errors"] == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"qa_gates": {"post_task": "yes"}}, "qa_gates.post_task must be boolean, got string"),
        (
            {"qa_gates": {"timeout_seconds": 0}},
            "qa_gates.timeout_seconds must be a positive number",
        ),
        (
            {"qa_gates": {"failure_threshold": "all"}},
            "qa_gates.failure_threshold must be one of: critical, major, minor",
        ),
        ({"qa_gates": []}, "qa_gates must be an object, got array"),
        (
            {"integration_gate": {"timeout_seconds": 3601}},
            "integration_gate.timeout_seconds must be a number between 60 and 3600",
        ),
        (
            {"integration_gate": {"checks": {"tests": 1, "mine": "yes"}}},
            "integration_gate.checks values must all be booleans",
        ),
        (
            {"po": {"default_rejection": "minor"}},
            "po.default_rejection must be one of: patch, major",
        ),
        ({"delivery": {"mode": "later"}}, "delivery.mode must be one of: auto, manual"),
        (
            {"complexity_routing": {"trivial_confidence_threshold": 1.5}},
            "complexity_routing.trivial_confidence_threshold must be a number between 0.0 and 1.0",
        ),
        (
            {
                "complexity_routing": {
                    "trivial_confidence_threshold": 0.5,
                    "medium_confidence_threshold": 0.5,
                }
            },
            "complexity_routing.trivial_confidence_threshold"
            " must be greater than medium_confidence_threshold",
        ),
        (
            {"complexity_routing": {"trivial": 0.5, "medium": 0.6}},
            "complexity_routing.trivial_confidence_threshold"
            " must be greater than medium_confidence_threshold",
        ),
        (
            {"complexity_routing": {"max_trivial_files": 1.5}},
            "complexity_routing.max_trivial_files must be a positive integer",
        ),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, value: object, said: str) -> None:
    fill(tmp_path, {"config.json": json.dumps(value)})
    assert validate("config", "config.json", cwd=tmp_path).json["errors"] == [said]


@pytest.mark.parametrize("text", ['{"torn', "[]", ""])
def test_a_torn_configuration_is_invalid(tmp_path: Path, text: str) -> None:
    fill(tmp_path, {"config.json": text})
    (error,) = call("validate-config", "config.json", cwd=tmp_path).json["errors"]
    assert error.startswith("Config file is not valid JSON: config.json")


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
            "a.plan.jsonl: tasks missing spec field (T1)",
        ),
        (
            "test_authoring",
            {"a.plan.jsonl": lines(HEADER) + "torn"},
            "a.plan.jsonl: tasks missing spec field (line 2",
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
            "code-review.jsonl: r must be 'approve' (got 'changes_requested')",
        ),
        ("qa", {"code-review.jsonl": '{"r": "appr'}, "code-review.jsonl: r must be"),
        ("security", {}, "verification.jsonl"),
        ("signoff", {"security-audit.jsonl": "{}"}, "code-review.jsonl"),
        ("signoff", APPROVED, "security-audit.jsonl"),
        (
            "post_task_qa",
            {".qa-gate-results.jsonl": lines({"gl": "post-plan"})},
            "post-task gate results in .qa-gate-results.jsonl",
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
        (
            phases(("01", ["09"])),
            "Phase '01' depends on '09' which does not exist in phases array",
        ),
        (
            phases(("02", ["01"]), ("01", ["02"]), ("03", [])),
            "Circular dependency detected involving phases: 02,01",
        ),
        (phases(("01", ["01"])), "Circular dependency detected involving phases: 01"),
        (phases(("01", []), ("01", [])), "Phase '01' is listed more than once"),
        ({"phases": []}, "Phases array is empty"),
        ({"phases": {}}, "Missing or invalid phases array"),
        ({}, "Missing or invalid phases array"),
        ("torn", "Roadmap file is not valid JSON: r.json"),
    ],
)
def test_a_roadmap_without_an_order_is_invalid(tmp_path: Path, value: object, said: str) -> None:
    fill(tmp_path, {"r.json": json.dumps(value) if value != "torn" else "{torn"})
    errors = validate("deps", "--roadmap-json", "r.json", cwd=tmp_path).json["errors"]
    assert any(error.startswith(said) for error in errors)


@pytest.mark.parametrize(
    ("value", "warnings"),
    [
        (phases(("01", [])), []),
        ({"phases": [{"id": "01"}, {"id": "02", "depends_on": ["01"]}]}, []),
        ({"phases": [{"id": "01", "depends_on": None}]}, []),
        (phases(("01", []), ("02", ["01"])), []),
        (
            phases(("01", []), ("02", ["01"]), ("03", [])),
            ["Phase '03' is orphaned (no dependencies and nothing depends on it)"],
        ),
        (phases(("01", []), ("02", ["01"]), ("03", ["02"]), critical=("01", "02")), []),
        (
            phases(("01", []), ("02", ["01"]), ("03", ["02"]), critical=("01", "03")),
            ["Critical phase '01' is not", "Critical phase '03' is not"],
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
    ] == warnings


# --- the door --------------------------------------------------------------------------------------------------------


def test_the_type_may_be_joined(tmp_path: Path) -> None:
    done = call("validate", "--type=gates", "--step", "critique", "--phase-dir", ".", cwd=tmp_path)
    assert (done.code, done.json["gate"]) == (0, "pass")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--type", "poem"), "Unknown validation type: poem\nValid types: plan, naming, config"),
        (("--type=",), "Unknown validation type: \nValid types: "),
        (
            ("--type",),
            "Usage: validate.sh --type plan|naming|config|gates|deps|summary|frontmatter",
        ),
        ((), "Usage: validate.sh --type plan|naming|config|gates|deps|summary|frontmatter"),
    ],
)
def test_an_unknown_type_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = call("validate", *arguments, cwd=tmp_path)
    assert (done.code, done.out, done.err.startswith(said)) == (1, "", True)
