"""The order of the rooms: imports only go down, and each library has one door."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "yolo_fs"

ROOMS = (
    "core", "demo", "protocol", "schemas", "system", "git",
    "artifacts", "evidence", "authority", "escalations", "handoffs", "loops", "phase", "states",
    "kept", "workspace", "checking", "team", "history", "decisions", "escalation_service",
    "handoff_service", "scanning", "tasks", "agents", "contexts", "progress", "compat", "daemon",
    "hooks", "install", "reports", "agent_events", "snapshots", "definitions", "leaving", "company",
    "web", "cli", "mcp", "observer", "__main__",
)  # fmt: skip
"""One room per subject, lowest first: a module imports from its own room and from lower ones."""

PURE_ROOMS = (
    "protocol", "artifacts", "evidence", "authority", "escalations", "handoffs", "loops", "phase",
    "states",
)  # fmt: skip
PURE_MODULES = (
    "agents/circuit", "agents/health", "agents/stalls", "agents/totals", "contexts/compiler",
    "contexts/extractors", "contexts/selection", "hooks/changes", "hooks/code_touches", "hooks/effects", "hooks/git_touches",
    "hooks/hosts", "hooks/mcp_calls", "hooks/outputs", "hooks/program", "hooks/program_touches", "hooks/shell",
    "hooks/touches", "kept/selection", "reports/resume_report", "tasks/claims", "team/reconcile",
)  # fmt: skip
"""Those of a room that stand beside what touches disk, git or the clock."""

DOORS = {
    "pydantic": "yolo_fs/schemas/",
    "pydantic_core": "yolo_fs/schemas/",
    "git": "yolo_fs/git/runner.py",
    "filelock": "yolo_fs/system/file_locks.py",
    "sqlite3": "yolo_fs/system/database.py",
    "watchdog": ("yolo_fs/system/watch.py", "yolo_fs/system/inotify.py"),
    "yaml": "yolo_fs/system/front_matter.py",
    "toon_format": "yolo_fs/system/toon.py",
    "jsonlines": ("yolo_fs/system/readers.py", "yolo_fs/system/in_place.py"),
    "click": ("yolo_fs/cli/", "yolo_fs/mcp/verb.py"),
    "rich": "yolo_fs/cli/",
    "jinja2": "yolo_fs/system/templates.py",
    "mcp": "yolo_fs/mcp/server.py",
    "nats": "yolo_fs/system/notifier.py",
    "starlette": "yolo_fs/web/",
    "uvicorn": "yolo_fs/web/",
}

PURE = {"subprocess", "os", "time", "socket", "threading", "random"}

MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports(path: Path) -> set[str]:
    """Return the dotted names that a module imports at run time, wherever in it."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(node) for block in ast.walk(tree) if is_type_checking(block) for node in ast.walk(block)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def is_type_checking(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


def room_of(dotted: str) -> str | None:
    """Return the room of a module: a package, or a module that lies in the package itself."""
    parts = dotted.split(".")
    return parts[1] if parts[0] == "yolo_fs" and len(parts) > 1 else None


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_between_rooms_only_go_down(path: Path) -> None:
    order = {room: number for number, room in enumerate(ROOMS)}
    own = room_of(name_of(path))
    if own in (None, "__init__"):
        return
    assert own in order, f"{name_of(path)}: add the room {own!r} to ROOMS"
    upward = sorted(
        name
        for name in imports(path)
        if (room := room_of(name)) and order.get(room, len(order)) > order[own]
    )
    assert not upward, f"{name_of(path)} imports {upward} from a room above {own!r}"


def test_each_room_has_something_in_it() -> None:
    assert {room_of(name_of(path)) for path in MODULES} - {None, "__init__"} == set(ROOMS)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also where an import stands in a function, or serves a type alone."""
    names = {name_of(path).removesuffix(".__init__"): path for path in MODULES}
    graph = {name: _imported(path, names) - {name} for name, path in names.items()}
    assert list(TopologicalSorter(graph).static_order())


def _imported(path: Path, names: Mapping[str, Path]) -> set[str]:
    """Return the modules of ours that one names anywhere, each as deep as it goes."""
    named = [
        [f"{node.module}.{alias.name}", node.module]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    return {next(name for name in each if name in names) for each in named if each[1] in names}


@pytest.mark.parametrize("library", DOORS)
def test_each_library_has_one_door(library: str) -> None:
    importers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if any(n.split(".")[0] == library for n in imports(path))
    }
    assert importers
    assert not {path for path in importers if not path.startswith(DOORS[library])}


@pytest.mark.parametrize("room", ["system", "git"])
def test_the_rooms_of_the_world_know_no_artifact(room: str) -> None:
    for path in (PACKAGE / room).rglob("*.py"):
        rooms = {room_of(name) for name in imports(path)} - {None}
        assert rooms <= {"core", "protocol", "schemas", "system", "git"}, path


def is_pure(path: Path) -> bool:
    place = path.relative_to(PACKAGE).with_suffix("")
    return place.parts[0] in PURE_ROOMS or str(place) in PURE_MODULES


def test_each_module_that_is_named_as_pure_is_there() -> None:
    assert not [name for name in PURE_MODULES if not (PACKAGE / f"{name}.py").is_file()]


@pytest.mark.parametrize("path", [path for path in MODULES if is_pure(path)], ids=name_of)
def test_rules_touch_neither_clock_nor_disk(path: Path) -> None:
    loaded = imports(path)
    assert not {name.split(".")[0] for name in loaded} & PURE
    assert not {room_of(name) for name in loaded} & {"system", "git"}


def test_git_is_run_in_one_place_only() -> None:
    runners = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if "subprocess" in imports(path)
        and '"git"' in path.read_text()
        and "demo" not in path.parts
    }
    assert runners <= {"yolo_fs/git/runner.py"}


def test_the_map_names_every_room_and_no_other() -> None:
    text = (ROOT / "docs/dev/architecture.md").read_text()
    table = text.partition("## Rooms")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)/?` \|", table, re.MULTILINE)
    assert named == [room for room in ROOMS if room != "__main__"]
