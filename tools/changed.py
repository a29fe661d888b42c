"""Which tests are near to what was changed: the files that `scripts/test --changed` runs, nearest first.

A changed test is its own; a module is tested by the files that are named after it or its room, then by the tests that
import it or are named after a module that does, as those of a verb are, which start it as a program; then by those one
module further. Of the same distance, those that start daemons or go through every door come last. A change of anything
else is near to the tests whose text names it.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = ("tests/test_floors.py", "tests/test_references.py")


def main() -> None:
    """Print the paths of the tests, one in a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("since", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    changed = paths_changed(parser.parse_args().since)
    for path in tests_near(changed):
        print(path)


def paths_changed(since: str) -> list[str]:
    """Return the files that differ from a commit, and the ones that git does not know yet."""
    command = ("git", "-C", str(ROOT))
    differing = (*command, "diff", "--name-only", "--no-renames", since, "--")
    unknown = (*command, "ls-files", "--others", "--exclude-standard")
    runs = [subprocess.run(words, stdout=subprocess.PIPE, text=True) for words in (differing, unknown)]  # fmt: skip
    if any(run.returncode for run in runs):
        sys.exit(2)  # git has said why
    return sorted({path for run in runs for path in run.stdout.splitlines()})


def tests_near(changed: list[str]) -> list[str]:
    """Return the test files for changed paths, nearest first."""
    if not changed:
        return []
    imports = import_graph()
    tests = [path for path in imports if PurePosixPath(path).name.startswith("test_")]
    distances = distances_from(changed, imports)
    near = {path: distances[path] for path in tests if path in distances}
    own = {path for each in changed for path in tests_of_room(each, tests)}
    near |= dict.fromkeys(own, 0)
    named = {name_in_texts(path) for path in changed if not path.endswith(".py")}
    for path in tests:
        text = (ROOT / path).read_text() if named and path not in near else ""
        if any(name in text for name in named):
            near[path] = 1
    near |= {path: near.get(path, 1) for path in ALWAYS}
    return sorted(near, key=lambda path: (near[path], path.startswith(_DEAR), path))


_DEAR = ("tests/e2e/", "tests/security/")


@cache
def import_graph() -> dict[str, frozenset[str]]:
    """Return each module and test with the modules that it imports."""
    return {path: frozenset(imports_of(path)) for path in python_files()}


def distances_from(changed: list[str], imports: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Return each file that imports a changed one or is a test named after it, over at most one other, and over how
    many imports.
    """
    distances = {path: 0 for path in changed if path in imports}
    for distance in (0, 1, 2):
        modules = {module_of(path) for path, nearer in distances.items() if nearer < distance}
        for path, imported in imports.items():
            if imported & modules:
                distances.setdefault(path, distance)
        for module in [path for path, far in distances.items() if far == distance]:
            for path in tests_named_after(module, imports):
                distances.setdefault(path, distance)
    return distances


def python_files() -> Iterator[str]:
    """Return the modules and the tests."""
    for folder in ("yolo_fs", "tests", "tools", "bench"):
        yield from sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.py"))


def module_of(path: str) -> str:
    """Return the name by which a file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports_of(path: str) -> Iterator[str]:
    """Return the modules that a file names in imports, wherever they stand; a name in a module may be one itself."""
    for node in ast.walk(ast.parse((ROOT / path).read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name_in_texts(path: str) -> str:
    """Return how a text names a file that is no module: by its name, or by its path if that has no suffix."""
    pure = PurePosixPath(path)
    return pure.name if pure.suffix else path


def tests_named_after(path: str, files: Iterable[str]) -> Iterator[str]:
    """Yield the tests of a module of ours by their name, such as `tests/web/test_server.py`; those in the folder of
    another room are of a module of the same name there.
    """
    pure = PurePosixPath(path)
    if pure.parts[0] != "yolo_fs" or pure.suffix != ".py":
        return
    for each in map(PurePosixPath, files):
        folder = each.parts[1] if len(each.parts) > 2 else ""
        is_of_room = folder == pure.parts[1] or not (ROOT / "yolo_fs" / folder).is_dir()
        if (
            each.parts[0] == "tests"
            and each.name == f"test_{pure.name}"
            and (is_of_room or not folder)
        ):
            yield str(each)


def tests_of_room(path: str, tests: Iterable[str]) -> Iterator[str]:
    """Yield the tests that are named after the room of a module, such as `test_mcp.py`."""
    pure = PurePosixPath(path)
    if pure.parts[0] == "yolo_fs" and pure.suffix == ".py":
        name = f"test_{pure.parts[1].removesuffix('.py')}.py"
        yield from (each for each in tests if PurePosixPath(each).name == name)


if __name__ == "__main__":
    main()
