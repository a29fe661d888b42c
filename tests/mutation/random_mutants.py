"""Bugs that nobody chose: small random changes of the product, drawn by a seed, so many for each room."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.mutation.mutants import ROOT

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True, slots=True)
class RandomMutant:
    """One changed place of one file."""

    room: str
    file: str
    """Relative to the root of the tree."""
    line: int
    start: int
    end: int
    """The place in the bytes of the file."""
    new: str
    kind: str

    @property
    def name(self) -> str:
        """Where it is: `yolo_fs/git/refs.py:40`."""
        return f"{self.file}:{self.line}"

    @property
    def why(self) -> str:
        """What was changed into what, in one line."""
        old = (ROOT / self.file).read_bytes()[self.start : self.end].decode()
        return f"{self.kind}: {_shortened(old)} → {_shortened(self.new)}"

    def texts(self, root: Path) -> dict[Path, str]:
        """Return the file of a tree that the bug changes, with the bug in it."""
        data = (root / self.file).read_bytes()
        changed = data[: self.start] + self.new.encode() + data[self.end :]
        return {root / self.file: changed.decode()}


def draw(rooms: list[str], for_each: int, seed: int) -> tuple[RandomMutant, ...]:
    """Return so many mutants for each room, the same for the same seed and tree."""
    chosen: list[RandomMutant] = []
    for room in rooms:
        rng = random.Random(f"{seed} {room}")
        there = [mutant for path in files_of(room) for mutant in mutants_of(room, path)]
        chosen += rng.sample(there, min(for_each, len(there)))
    return tuple(chosen)


def rooms_there_are() -> list[str]:
    """Return the folders of the package, and the modules beside them."""
    package = ROOT / "yolo_fs"
    folders = [path.parent.name for path in package.glob("*/__init__.py")]
    modules = [path.stem for path in package.glob("*.py") if not path.stem.startswith("__")]
    return sorted(folders + modules)


def files_of(room: str) -> list[str]:
    """Return the modules of a room, relative to the root of the tree."""
    place = ROOT / "yolo_fs" / room
    paths = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [str(PurePosixPath(path.relative_to(ROOT))) for path in paths]


def mutants_of(room: str, file: str) -> Iterator[RandomMutant]:
    """Return each mutant that a file can have. What stands outside of functions stays as it is."""
    source = _Source((ROOT / file).read_bytes())
    for node in source.nodes_in_functions():
        for changed, kind, new in _changes_of(node, source.text):
            start, end = source.place(changed)
            if source.text(changed) != new:
                yield RandomMutant(room, file, changed.lineno, start, end, new, kind)


_Node = ast.expr | ast.stmt


class _Source:
    """A module's text and syntax tree."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = [0]
        for line in data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def place(self, node: _Node) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: _Node) -> str:
        """Return the text of a node."""
        start, end = self.place(node)
        return self._data[start:end].decode()

    def nodes_in_functions(self) -> Iterator[ast.AST]:
        """Return each node of each function's body once, but for types and the parts of f-strings."""
        waiting: list[tuple[ast.AST, bool]] = [(ast.parse(self._data), False)]
        while waiting:
            node, is_inside = waiting.pop()
            if isinstance(node, ast.JoinedStr):
                continue  # before Python 3.12 the places of its parts are not to be relied on
            if is_inside:
                yield node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting += [(statement, True) for statement in node.body]
            elif isinstance(node, ast.AnnAssign):
                waiting += [(node.value, is_inside)] if node.value else []
            else:
                waiting += [(child, is_inside) for child in ast.iter_child_nodes(node)]


def _changes_of(node: ast.AST, text: Callable[[_Node], str]) -> Iterator[tuple[_Node, str, str]]:
    """Return what can be changed of a node: which part, the kind of change, and the new text."""
    match node:
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            new = _COMPARISONS[type(comparison)]
            yield node, "comparison", f"({text(left)} {new} {text(right)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "not", f"({text(operand)})"
        case ast.BoolOp(op=operator, values=values):
            new = " or " if isinstance(operator, ast.And) else " and "
            yield node, "and, or", f"({new.join(f'({text(value)})' for value in values)})"
        case ast.BinOp(op=ast.Add() | ast.Sub() as sign, left=left, right=right):
            new = "-" if isinstance(sign, ast.Add) else "+"
            yield node, "arithmetic", f"({text(left)} {new} {text(right)})"
        case ast.Constant(value=bool() as truth):
            yield node, "constant", str(not truth)
        case ast.Constant(value=int() as number):
            yield node, "constant", str(number + 1)
        case ast.If(test=test) | ast.While(test=test):
            yield test, "condition", "False"
            if isinstance(node, ast.If):
                yield test, "condition", "True"
        case ast.Raise():
            yield node, "raise", "pass"
        case ast.Expr(value=ast.Call()):
            yield node, "call", "pass"
        case ast.Return(value=ast.expr()):
            yield node, "return", "return None"
        case ast.Call(func=func, args=[first, second], keywords=[]):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield node, "arguments", f"{text(func)}({text(second)}, {text(first)})"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
