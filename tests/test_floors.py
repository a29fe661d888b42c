"""The floors of the house: imports only go down, and each library has one door."""

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

FLOORS = {
    "reasons": 0,
    "ids": 0,
    "credentials": 0,
    "json_form": 0,
    "foreign_json": 0,
    "protocol": 1,
    "schemas": 2,
    "rules": 3,
    "edges": 4,
    "services": 5,
    "demo": 6,
    "compat": 6,
    "cli": 6,
    "observer": 6,
    "mcp": 6,
    "web": 6,
    "__main__": 7,
}

DOORS = {
    "pydantic": "yolo_fs/schemas/base.py",
    "pydantic_core": "yolo_fs/schemas/base.py",
    "git": "yolo_fs/edges/git/runner.py",
    "filelock": "yolo_fs/edges/store.py",
    "sqlite3": "yolo_fs/edges/database.py",
    "watchdog": ("yolo_fs/edges/watch.py", "yolo_fs/edges/inotify.py"),
    "yaml": "yolo_fs/edges/front_matter.py",
    "toon_format": "yolo_fs/edges/toon.py",
    "jsonlines": ("yolo_fs/edges/readers.py", "yolo_fs/edges/in_place.py"),
    "click": ("yolo_fs/cli/", "yolo_fs/mcp/verb.py"),
    "rich": "yolo_fs/cli/",
    "jinja2": "yolo_fs/services/definitions/texts.py",
    "mcp": "yolo_fs/mcp/server.py",
    "nats": "yolo_fs/edges/bell.py",
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


def floor_of(dotted: str) -> int | None:
    parts = dotted.split(".")
    return FLOORS.get(parts[1]) if parts[0] == "yolo_fs" and len(parts) > 1 else None


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_only_go_down(path: Path) -> None:
    own = floor_of(name_of(path))
    if own is None:
        return
    upward = {
        name for name in imports(path) if (floor := floor_of(name)) is not None and floor > own
    }
    assert not upward, f"{name_of(path)} (floor {own}) imports {sorted(upward)}"


ROOMS = {
    "rules": (
        "timestamps", "report", "claims", "kept", "adoption", "artifacts", "team", "evidence", "judged", "escalations",
        "loops",
        "handoffs",
        "authz", "phase", "states", "agents", "context", "hooks", "decide", "resume_report",
    ),
    "services": (
        "workspace", "kept", "history", "checking", "unwritten", "surveyor", "team", "escalations", "tasks", "decisions", "context", "handoffs", "agents",
        "progress", "daemon", "hooks", "install", "reports", "agent_events", "definitions", "moments", "company", "leaving",
    ),
}  # fmt: skip
"""The rooms of a floor, lowest first: a module imports from its own room and from lower ones."""


def room_of(dotted: str, floor: str) -> str | None:
    """Return the room of a module: a package of the floor, or a module that lies on the floor itself."""
    parts = dotted.split(".")
    return parts[2] if parts[:2] == ["yolo_fs", floor] and len(parts) > 2 else None


ROOMED = [(floor, path) for floor in ROOMS for path in MODULES if room_of(name_of(path), floor)]


@pytest.mark.parametrize(("floor", "path"), ROOMED, ids=[name_of(path) for _, path in ROOMED])
def test_imports_between_rooms_only_go_down(floor: str, path: Path) -> None:
    order = {room: number for number, room in enumerate(ROOMS[floor])}
    own = room_of(name_of(path), floor)
    if own == "__init__":
        return
    assert own in order, f"{name_of(path)}: add the room {own!r} to ROOMS"
    upward = sorted(
        name
        for name in imports(path)
        if (room := room_of(name, floor)) and order.get(room, len(order)) > order[own]
    )
    assert not upward, f"{name_of(path)} imports {upward} from a room above {own!r}"


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


def test_every_module_stands_on_a_floor() -> None:
    homeless = {path.name for path in MODULES if len(path.relative_to(PACKAGE).parts) == 1} - {
        "__init__.py"
    }
    assert {name.removesuffix(".py") for name in homeless} <= FLOORS.keys()


@pytest.mark.parametrize("library", DOORS)
def test_each_library_has_one_door(library: str) -> None:
    importers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if any(n.split(".")[0] == library for n in imports(path))
    }
    assert importers
    assert not {path for path in importers if not path.startswith(DOORS[library])}


def test_edges_know_no_rules() -> None:
    for path in (PACKAGE / "edges").rglob("*.py"):
        assert not {name for name in imports(path) if floor_of(name) == FLOORS["rules"]}, path


@pytest.mark.parametrize("path", sorted((PACKAGE / "rules").rglob("*.py")), ids=name_of)
def test_rules_touch_neither_clock_nor_disk(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & PURE


def test_git_is_run_in_one_place_only() -> None:
    runners = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if "subprocess" in imports(path)
        and '"git"' in path.read_text()
        and "demo" not in path.parts
    }
    assert runners <= {"yolo_fs/edges/git/runner.py"}


def test_the_map_names_only_rooms_that_exist() -> None:
    named = set(
        re.findall(
            r"(?<!tests/)\b(?:protocol|schemas|rules|edges|services|cli)/[a-z_/]*",
            (ROOT / "docs/dev/architecture.md").read_text(),
        )
    )
    assert len(named) > 30
    assert [
        room
        for room in sorted(named)
        if not (PACKAGE / room).is_dir() and not (PACKAGE / f"{room}.py").is_file()
    ] == []
