"""`phase-detect`: where the project stands, as `key=value` lines. Always 0."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.compat.script_io import Folder
from yolo_fs.core.ids import NAME
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.evidence.facts import section

ROOT = ".yolo-planning"
_PLACEHOLDER = b"{project-description}"
_PLANS, _SUMMARIES = (".plan.jsonl", "-PLAN.md"), (".summary.jsonl", "-SUMMARY.md")
DEFAULTS: Mapping[str, object] = {
    "effort": "balanced",
    "autonomy": "standard",
    "auto_commit": True,
    "verification_tier": "standard",
    "agent_teams": False,
    "max_tasks_per_plan": 5,
    "context_compiler": True,
    "security_audit": False,
}
"""The reference's defaults. `schemas.config.Config` differs in a few, and its import costs 80 ms.
"""
_APPROVALS = ("qa_fail", "security_warn")
_ROUTING: Mapping[str, tuple[str, str, object]] = {
    "config_complexity_routing": ("enabled", "enabled", True),
    "config_trivial_threshold": ("trivial_confidence_threshold", "trivial", 0.85),
    "config_medium_threshold": ("medium_confidence_threshold", "medium", 0.7),
    "config_fallback_path": ("fallback_path", "fallback_path", "high"),
}
"""Line → its key, the key's name in earlier versions of yolo_fs, and its default."""
_STATE = {
    "current_phase": ("ph", ""),
    "total_phases": ("tt", ""),
    "workflow_status": ("st", ""),
    "workflow_step": ("step", ""),
    "progress": ("pr", "0"),
}


def run(_: Sequence[str]) -> int:
    for key, value in _lines():
        print(f"{key}={_word(value)}")
    return 0


def _word(value: object) -> str:
    """Return a value on one line, so that the content of a file cannot add a line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return safe(str(value))


def _lines() -> Iterator[tuple[str, object]]:
    there = os.path.isdir(ROOT)
    root = Folder(ROOT)
    milestone, is_wrong = _read_milestone(root) if there else ("none", False)
    home = ROOT if milestone == "none" else f"{ROOT}/milestones/{milestone}"
    yield "jq_available", shutil.which("jq") is not None
    yield "planning_dir_exists", there
    yield "project_exists", there and _has_project(root)
    yield "active_milestone", milestone
    if there:
        yield "active_milestone_error", is_wrong
    yield "phases_dir", f"{home}/phases" if there else "none"
    yield from _describe_next_phase(_phases(f"{home}/phases"))
    yield from _config(root, there=there)
    yield "has_codebase_map", os.path.isfile(f"{ROOT}/codebase/META.md")
    yield "brownfield", _has_tracked_files()
    if there:
        yield from _state({**root.object("state.json"), **Folder(home).object("state.json")})
    execution = root.object(".execution-state.json")
    execution = {**execution, **Folder(home).object(".execution-state.json")}
    yield "execution_state", execution.get("status") or "none"


def _has_project(root: Folder) -> bool:
    project = root.content("PROJECT.md")
    return isinstance(project, bytes) and _PLACEHOLDER not in project


def _describe_next_phase(phases: Sequence[_Phase]) -> Iterator[tuple[str, object]]:
    following = next((phase for phase in phases if not phase.is_done), None)
    yield "phase_count", len(phases)
    if following is None:
        yield "next_phase", "none"
        yield "next_phase_slug", "none"
        yield "next_phase_state", "all_done" if phases else "no_phases"
        yield "next_phase_plans", 0
        yield "next_phase_summaries", 0
        return
    yield "next_phase", following.number
    yield "next_phase_slug", following.name
    yield "next_phase_state", following.state
    yield "next_phase_plans", following.plans
    yield "next_phase_summaries", following.summaries


class _Phase(NamedTuple):
    name: str
    plans: int
    summaries: int

    @property
    def number(self) -> str:
        return self.name.partition("-")[0]

    @property
    def is_done(self) -> bool:
        return 0 < self.plans <= self.summaries

    @property
    def state(self) -> str:
        return "needs_execute" if self.plans else "needs_plan_and_execute"


def _phases(folder: str) -> Sequence[_Phase]:
    if not os.path.isdir(folder):
        return ()
    names = sorted(
        name
        for name in os.listdir(folder)
        if not name.startswith(".") and os.path.isdir(f"{folder}/{name}")
    )
    return [
        _Phase(name, _count(f"{folder}/{name}", _PLANS), _count(f"{folder}/{name}", _SUMMARIES))
        for name in names
    ]


def _count(folder: str, endings: Sequence[str]) -> int:
    return sum(len(Folder(folder).names("", ending)) for ending in endings)


def _read_milestone(root: Folder) -> tuple[str, bool]:
    """Return the active milestone, and whether ACTIVE names a missing one."""
    data = root.content("ACTIVE")
    name = (
        data.decode("utf-8", "replace").partition("\n")[0].strip()
        if isinstance(data, bytes)
        else ""
    )
    if not name:
        return "none", False
    if NAME.fullmatch(name) and os.path.isdir(f"{ROOT}/milestones/{name}/phases"):
        return name, False
    return "none", True


def _config(root: Folder, *, there: bool) -> Iterator[tuple[str, object]]:
    has_file = there and root.has("config.json")
    config = root.object("config.json") if has_file else {}
    gates, routing = (section(config, key) for key in ("approval_gates", "complexity_routing"))
    for key, default in DEFAULTS.items():
        yield f"config_{key}", _plain(config.get(key), default)
    for key in _APPROVALS:
        yield f"config_approval_{key}", _plain(gates.get(key), False)
    team_mode = "task" if there and not has_file else "auto"
    yield "config_team_mode", _plain(config.get("team_mode"), team_mode)
    for key, (name, earlier_name, default) in _ROUTING.items():
        yield key, _plain(routing.get(name, routing.get(earlier_name)), default)


def _plain(value: object, default: object) -> object:
    """Return the value, or the default where it is absent or no plain value; `false` is a value."""
    return value if isinstance(value, str | int | float) else default


def _state(state: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key, (name, default) in _STATE.items():
        yield key, _plain(state.get(name), default)


def _has_tracked_files() -> bool:
    try:
        from yolo_fs.git.runner import Git

        return bool(Git(".").text("ls-files", "-z"))
    except YoloError:
        return False
