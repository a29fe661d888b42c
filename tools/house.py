"""`tools/house`: a report on the code in `yolo_fs/`. With --list it names what counts towards each number."""

from __future__ import annotations

import argparse
import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.references import ROOT, broken_citations

WIDTH = 100
CLAUSES = 2
"""`for` and `if` clauses that one comprehension may have."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """Return its dotted name."""
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")

    @cached_property
    def tree(self) -> ast.Module:
        """Return its syntax tree."""
        return ast.parse(self.text)

    @property
    def lines(self) -> list[str]:
        """Return its lines."""
        return self.text.splitlines()

    def at(self, line: int) -> str:
        """Return a place in it as editors understand it."""
        return f"{self.path.relative_to(ROOT)}:{line}"


@dataclass(frozen=True)
class Measure:
    """One number, and what counts towards it."""

    title: str
    value: float
    places: tuple[str, ...] = ()


def modules() -> list[Module]:
    """Return every module of the package."""
    paths = sorted((ROOT / "yolo_fs").rglob("*.py"))
    return [Module(path, path.read_text(encoding="utf-8")) for path in paths]


def measures(package: list[Module]) -> list[Measure]:
    """Return every number of the house."""
    density = round(statistics.median(_nodes_per_line(package)), 1)
    return [
        Measure("modules", len(package)),
        Measure("lines", sum(len(module.lines) for module in package)),
        _counted("public class names used twice", _duplicate_classes(package)),
        _counted("modules with one importer", _single_importers(package)),
        Measure("syntax nodes per line, median of functions", density),
        _counted("nested conditional expressions", _nested_conditionals(package)),
        _counted(f"comprehensions of more than {CLAUSES} clauses", _long_comprehensions(package)),
        _counted("citations that do not resolve", _citations(package)),
        _counted(f"lines of more than {WIDTH} characters", _wide_lines(package)),
    ]


def _counted(title: str, places: Iterator[str]) -> Measure:
    found = tuple(places)
    return Measure(title, len(found), found)


def _duplicate_classes(package: list[Module]) -> Iterator[str]:
    homes: dict[str, list[str]] = defaultdict(list)
    for module in package:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.at(node.lineno))
    for name, places in sorted(homes.items()):
        if len(places) > 1:
            yield f"{name}: {', '.join(places)}"


def _single_importers(package: list[Module]) -> Iterator[str]:
    by_name = {module.name: module for module in package}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in package:
        for name in _imports(module):
            if name in by_name and name != module.name:
                importers[name].add(module.name)
    for name, importing in sorted(importers.items()):
        if len(importing) == 1 and by_name[name].path.name != "__init__.py":
            yield f"{name} is imported by {importing.pop()} alone"


def _imports(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _nodes_per_line(package: list[Module]) -> Iterator[float]:
    """Yield the density of each function, its docstring left out."""
    for module in package:
        for node in ast.walk(module.tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield _size(body) / (_length(node) - _docstring_length(node))


def _size(body: list[ast.stmt]) -> int:
    return sum(1 for statement in body for _ in ast.walk(statement))


def _length(node: Function | ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_length(node: Function) -> int:
    return _length(node.body[0]) if ast.get_docstring(node) is not None else 0


def _nested_conditionals(package: list[Module]) -> Iterator[str]:
    for module in package:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.IfExp) and any(
                isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node
            ):
                yield module.at(node.lineno)


def _long_comprehensions(package: list[Module]) -> Iterator[str]:
    for module in package:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                ifs = sum(len(clause.ifs) for clause in node.generators)
                if len(node.generators) + ifs > CLAUSES:
                    yield module.at(node.lineno)


def _citations(package: list[Module]) -> Iterator[str]:
    for module in package:
        yield from (f"{module.at(1)}: {cited}" for cited in broken_citations(module.text))


def _wide_lines(package: list[Module]) -> Iterator[str]:
    for module in package:
        for number, line in enumerate(module.lines, 1):
            if len(line) > WIDTH:
                yield module.at(number)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser("tools/house", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what counts towards each number")
    asked = parser.parse_args()
    for measure in measures(modules()):
        print(f"{measure.value:>8,}  {measure.title}")
        for place in measure.places if asked.list else ():
            print(f"          {place}")


if __name__ == "__main__":
    main()
