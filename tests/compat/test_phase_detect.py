"""phase-detect."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compat.shim import call, fill
from yolo_fs.compat.phase_detect import DEFAULTS
from yolo_fs.schemas.config import Config

CONFIG = (
    "effort", "autonomy", "auto_commit", "verification_tier", "agent_teams", "max_tasks_per_plan", "context_compiler",
    "security_audit", "approval_qa_fail", "approval_security_warn", "team_mode",
)  # fmt: skip
ORDER = [
    "jq_available", "planning_dir_exists", "project_exists", "active_milestone", "active_milestone_error", "phases_dir",
    "phase_count", "next_phase", "next_phase_slug", "next_phase_state", "next_phase_plans", "next_phase_summaries",
    *(f"config_{key}" for key in CONFIG),
    "config_complexity_routing", "config_trivial_threshold", "config_medium_threshold", "config_fallback_path",
    "has_codebase_map", "brownfield", "current_phase", "total_phases", "workflow_status", "workflow_step", "progress",
    "execution_state",
]  # fmt: skip
ONLY_WITH_A_TREE = {
    "active_milestone_error", "current_phase", "total_phases", "workflow_status", "workflow_step", "progress",
}  # fmt: skip


def detected(root: Path, files: Mapping[str, str] = {}) -> dict[str, str]:
    if files:
        fill(root / ".yolo-planning", files)
    done = call("phase-detect", cwd=root, env={"GIT_CEILING_DIRECTORIES": str(root.parent)})
    assert (done.code, done.err) == (0, "")
    return dict(line.split("=", 1) for line in done.out.splitlines())


def test_without_a_planning_tree_the_list_is_shorter(tmp_path: Path) -> None:
    said = detected(tmp_path)
    assert list(said) == [key for key in ORDER if key not in ONLY_WITH_A_TREE]
    assert (said["planning_dir_exists"], said["phases_dir"], said["config_team_mode"]) == (
        "false",
        "none",
        "auto",
    )


def test_with_a_planning_tree_every_key_stands_in_order(tmp_path: Path) -> None:
    said = detected(
        tmp_path,
        {"config.json": "{}", "state.json": '{"ph": 2, "tt": 3, "st": "executing", "pr": 40}'},
    )
    assert list(said) == ORDER
    assert [said[key] for key in ("current_phase", "total_phases", "workflow_status", "workflow_step", "progress")] == [
        "2", "3", "executing", "", "40",
    ]  # fmt: skip
    assert said["config_team_mode"] == "auto"


DONE = {"phases/01-auth/01-01.plan.jsonl": "", "phases/01-auth/01-01.summary.jsonl": ""}


@pytest.mark.parametrize(
    ("files", "state", "phase"),
    [
        ({"PROJECT.md": ""}, "no_phases", "none"),
        ({"phases/01-auth/critique.jsonl": ""}, "needs_plan_and_execute", "01"),
        ({**DONE, "phases/02-ui/02-01.plan.jsonl": ""}, "needs_execute", "02"),
        ({**DONE, "phases/02-ui/02-PLAN.md": ""}, "needs_execute", "02"),
        (
            {**DONE, "phases/02-ui/02-PLAN.md": "", "phases/02-ui/02-SUMMARY.md": ""},
            "all_done",
            "none",
        ),
        (DONE, "all_done", "none"),
    ],
)
def test_the_next_phase(tmp_path: Path, files: Mapping[str, str], state: str, phase: str) -> None:
    said = detected(tmp_path, files)
    assert (said["next_phase_state"], said["next_phase"]) == (state, phase)
    assert said["next_phase_slug"].startswith(phase)


def test_the_thresholds_are_those_of_the_configuration(tmp_path: Path) -> None:
    routing = {"trivial_confidence_threshold": 0.9, "medium": 0.6}
    said = detected(tmp_path, {"config.json": json.dumps({"complexity_routing": routing})})
    assert (said["config_trivial_threshold"], said["config_medium_threshold"]) == ("0.9", "0.6")


def test_the_defaults_are_those_of_the_configuration_but_for_what_the_reference_turns_off() -> None:
    config = Config()._asdict()
    differing = {key for key, value in DEFAULTS.items() if config[key] != value}
    assert differing <= {"agent_teams", "security_audit"}


def test_a_milestone_without_phases_is_an_error(tmp_path: Path) -> None:
    said = detected(tmp_path, {"ACTIVE": "v1", "milestones/v1/a": ""})
    assert (said["active_milestone"], said["active_milestone_error"]) == ("none", "true")


def test_the_state_is_that_of_the_milestone_and_then_of_the_project(tmp_path: Path) -> None:
    files = {
        "ACTIVE": "v1",
        "milestones/v1/phases/01-x/a": "",
        "milestones/v1/state.json": '{"ph": 3}',
        "state.json": '{"ph": 2, "tt": 4}',
    }
    said = detected(tmp_path, files)
    assert (said["current_phase"], said["total_phases"]) == ("3", "4")


def test_a_hidden_directory_is_not_a_phase(tmp_path: Path) -> None:
    assert detected(tmp_path, {"phases/.hid/a": "", "phases/01-a/a": ""})["phase_count"] == "1"


def test_what_is_turned_off_is_off(tmp_path: Path) -> None:
    off = {
        "auto_commit": False, "context_compiler": False, "complexity_routing": {"enabled": False},
        "approval_gates": {"qa_fail": False},
    }  # fmt: skip
    said = detected(tmp_path, {"config.json": json.dumps(off)})
    keys = (
        "config_auto_commit",
        "config_context_compiler",
        "config_complexity_routing",
        "config_approval_qa_fail",
    )
    assert {said[key] for key in keys} == {"false"}


@pytest.mark.parametrize(
    "text", ['{"torn', "[]", '{"effort": {}, "approval_gates": 7, "complexity_routing": []}']
)
def test_a_torn_configuration_gives_the_defaults(tmp_path: Path, text: str) -> None:
    said = detected(
        tmp_path, {"config.json": text, "state.json": text, ".execution-state.json": text}
    )
    assert (said["config_effort"], said["config_fallback_path"], said["execution_state"]) == (
        "balanced",
        "high",
        "none",
    )


def test_a_value_cannot_become_another_line(tmp_path: Path) -> None:
    said = detected(tmp_path, {"config.json": json.dumps({"effort": "fast\nphase_count=99"})})
    assert (said["config_effort"], said["phase_count"]) == ("fast\\x0aphase_count=99", "0")


@pytest.mark.parametrize(
    ("active", "milestone", "error"),
    [
        ("v1\n", "v1", "false"),
        ("gone", "none", "true"),
        ("../phases", "none", "true"),
        ("\n", "none", "false"),
    ],
)
def test_the_active_milestone(tmp_path: Path, active: str, milestone: str, error: str) -> None:
    said = detected(
        tmp_path, {"ACTIVE": active, "milestones/v1/phases/03-x/a": "", "phases/01-a/a": ""}
    )
    assert (said["active_milestone"], said["active_milestone_error"]) == (milestone, error)
    assert (said["phases_dir"], said["next_phase"]) == (
        (".yolo-planning/milestones/v1/phases", "03")
        if milestone == "v1"
        else (".yolo-planning/phases", "01")
    )


@pytest.mark.parametrize(
    ("text", "there"), [("# Shop", "true"), ("{project-description}", "false"), ("", "true")]
)
def test_a_project_is_one_when_it_is_described(tmp_path: Path, text: str, there: str) -> None:
    assert detected(tmp_path, {"PROJECT.md": text})["project_exists"] == there


def test_code_that_is_there_already_is_seen(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    fill(tmp_path, {"main.c": "", ".yolo-planning/codebase/META.md": "#"})
    before = detected(tmp_path)
    subprocess.run(["git", "-C", str(tmp_path), "add", "main.c"], check=True)
    after = detected(tmp_path, {".execution-state.json": '{"status": "running"}'})
    assert (before["brownfield"], after["brownfield"]) == ("false", "true")
    assert (after["has_codebase_map"], after["execution_state"]) == ("true", "running")
