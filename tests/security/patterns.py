"""Every regular expression of the package, found in its code, its tables and its schemas, and inputs made from each."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import yolo_fs

PACKAGE = Path(yolo_fs.__file__).parent
SCHEMAS = PACKAGE.parent / "schemas"
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_FLAGS_AT = {"sub": 4, "subn": 4, "split": 3}
"""Where a function of `re` takes its flags, if not third."""


class Pattern(NamedTuple):
    """One regular expression, and how the package asks it."""

    place: str
    text: str | bytes
    flags: int
    method: str
    """`fullmatch`, `match`, or `search` for all that look for it anywhere."""


def all_patterns() -> list[Pattern]:
    """Return each regular expression once for each way in which it is asked."""
    found = [*_of_code(), *_of_tables(), *_of_schemas()]
    return list({one[1:]: one for one in found}.values())


def _way(method: str) -> str:
    return method if method in ("match", "fullmatch") else "search"


# --- patterns in code ---


class _Word(str):
    """Stands for a value that only a run would tell: some word, whose parts are words."""

    def __getattr__(self, _name: str) -> _Word:
        return self

    def __call__(self, *_arguments: object, **_named: object) -> _Word:
        return self


def _of_code() -> Iterator[Pattern]:
    nodes_of = {
        path: list(ast.walk(ast.parse(path.read_text()))) for path in sorted(PACKAGE.rglob("*.py"))
    }
    asked = _ways_of_names(nodes_of)
    for path, nodes in nodes_of.items():
        names = {
            call: target.id
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
            for call in ast.walk(node.value)
        }
        for call in nodes:
            if not isinstance(call, ast.Call) or not _is_of_re(call.func) or not call.args:
                continue
            place = f"{path.relative_to(PACKAGE)}:{call.lineno}"
            method = call.func.attr  # type: ignore[attr-defined]
            text, flags = _values_of(path, call, method)
            name = names.get(call, "")
            ways = asked.get((path, name)) or {"match", "fullmatch", "search"}
            for way in ways if method == "compile" else {_way(method)}:
                yield Pattern(f"{place} {name}".strip(), text, flags, way)


def _is_of_re(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id == "re"
        and called.attr in ("compile", *METHODS)
    )


def _ways_of_names(nodes_of: Mapping[Path, Sequence[ast.AST]]) -> dict[tuple[Path, str], set[str]]:
    """Return by which methods the patterns of a file are asked, by their names, in whatever file."""
    ways: dict[tuple[Path, str], set[str]] = {}
    for path, nodes in nodes_of.items():
        homes = dict(_imported(nodes))
        each_of = dict(_walked_through(nodes))
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                name = each_of.get(name, name)
                key = (homes.get(name, path), name)
                ways.setdefault(key, set()).add(_way(node.attr))
    return ways


def _imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, Path]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("yolo_fs"):
            home = PACKAGE.parent / f"{str(node.module).replace('.', '/')}.py"
            yield from ((alias.name, home) for alias in node.names)


def _walked_through(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the variable of each loop over a table, and the table."""
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension):
            variable, table = node.target, node.iter
            if isinstance(variable, ast.Name) and isinstance(table, ast.Name):
                yield variable.id, table.id


def _values_of(path: Path, call: ast.Call, method: str) -> tuple[str | bytes, int]:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(parts[: -1 if parts[-1] == "__init__" else None]))
    named = next((each.value for each in call.keywords if each.arg == "flags"), None)
    at = 1 if method == "compile" else _FLAGS_AT.get(method, 2)
    flags = named or (call.args[at] if len(call.args) > at else None)

    def value(node: ast.expr) -> Any:
        used = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        local = {name: _Word("word") for name in used if not hasattr(builtins, name)}
        try:
            return eval(
                compile(ast.Expression(node), str(path), "eval"),
                {**local, "re": re, **vars(module)},
            )
        except (KeyError, TypeError):  # a row of a table that is asked for at run time
            return None

    text = value(call.args[0])
    text = getattr(text, "pattern", text)
    return text if isinstance(text, bytes) else str(text), int(value(flags) if flags else 0)


# --- patterns in tables and in schemas ---


def _of_tables() -> Iterator[Pattern]:
    """Yield the patterns that module globals hold, at any depth, and fields that are called one."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[-1] in ("__main__", "__init__"):
            continue
        module = importlib.import_module(".".join(parts))
        for name, value in vars(module).items():
            yield from _within(value, f"{'.'.join(parts)}.{name}", set())


def _within(value: object, place: str, seen: set[int]) -> Iterator[Pattern]:
    if id(value) in seen or len(seen) > 20_000:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        if not isinstance(getattr(value, "flags", None), int):
            return
        # Named ones are found in the code, with the ways in which they are asked.
        if len(seen) > 1:
            yield Pattern(place, value.pattern, value.flags & ~re.UNICODE, "match")
            yield Pattern(place, value.pattern, value.flags & ~re.UNICODE, "fullmatch")
        return
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif dataclasses.is_dataclass(kind := type(value)):
        value = {each.name: getattr(value, each.name, None) for each in dataclasses.fields(kind)}
    if isinstance(value, Mapping):
        for key, each in list(value.items()):
            if key in ("pattern", "patterns") and isinstance(each, str | bytes):
                yield Pattern(place, each, 0, "match")
            yield from _within(each, f"{place}.{key}", seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _within(each, place, seen)


def _of_schemas() -> Iterator[Pattern]:
    def walk(value: Any, place: str) -> Iterator[Pattern]:
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                yield Pattern(place, value["pattern"], 0, "search")
            for each in value.values():
                yield from walk(each, place)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each, place)

    for path in sorted(SCHEMAS.rglob("*.json")):
        yield from walk(json.loads(path.read_text()), path.name)


# --- inputs made from a pattern ---

_ANYWHERE = (*'a0 \t\n-./"=', '\\"', "\\'")
_TAIL = "\0"
"""What few patterns take: whatever came before, it was in vain."""
_MOST_INPUTS = 400
_MANY = 64
"""A repetition of no more is as quick as one."""
_ONE_CHARACTER = (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY)
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


class Made(NamedTuple):
    """An input that grows: a beginning, and something that is repeated."""

    head: str
    unit: str

    def of_length(self, chars: int) -> str:
        """Return it with about so many characters."""
        return f"{self.head}{self.unit * (chars // len(self.unit))}{_TAIL}"


def inputs_for(pattern: Pattern) -> list[Made]:
    """Return inputs by which a pattern may take long: its parts, and beginnings of it, repeated.

    None for a pattern that repeats nothing, or that begins at one place and repeats one thing.
    """
    text = pattern.text if isinstance(pattern.text, str) else pattern.text.decode("latin1")
    tree = list(_parser.parse(text, pattern.flags))
    if _repeats_in(tree) < (1 if pattern.method == "search" else 2):
        return []
    sampler = _Sampler()
    sampler.visit(tree, "")
    units = list(dict.fromkeys([*sampler.units, *_ANYWHERE]))
    heads = list(dict.fromkeys(head for head, _ in sampler.repeats))
    own = (Made(head, unit) for head, units_of in sampler.repeats for unit in units_of)
    alone = (Made("", unit) for unit in units)
    behind = (Made(head, unit) for unit in units for head in heads)
    made = dict.fromkeys(one for one in (*own, *alone, *behind) if one.unit)
    return list(islice(made, _MOST_INPUTS))


def _repeats_in(items: Sequence[Any]) -> int:
    """Return how often a sequence repeats something without a narrow limit; twice where that is
    more than a character, which may be repeated in several ways.
    """
    count = 0
    for name, value in items:
        if name in _REPEATS:
            inner = list(value[2])
            ways = 1 if len(inner) == 1 and inner[0][0] in _ONE_CHARACTER else 2
            count += ways * (value[1] > _MANY) + _repeats_in(inner)
        elif name is sre.SUBPATTERN:
            count += _repeats_in(list(value[3]))
        elif name is sre.ATOMIC_GROUP:
            count += _repeats_in(list(value))
        elif name is sre.BRANCH:
            count += sum(_repeats_in(list(branch)) for branch in value[1])
        elif name in (sre.ASSERT, sre.ASSERT_NOT):
            count += _repeats_in(list(value[1]))
    return count


class _Sampler:
    """Walks through a parsed pattern, and keeps what may be repeated, and behind what."""

    def __init__(self) -> None:
        self.units: dict[str, None] = {}
        self.repeats: list[tuple[str, list[str]]] = []

    def visit(self, items: Sequence[Any], before: str) -> None:
        """Note each part of a sequence that stands behind some text."""
        head = ""
        for name, value in items:
            if name in _REPEATS:
                own = list(dict.fromkeys(_samples(list(value[2]))))
                self.repeats.append((before + head, own))
                self.units.update(dict.fromkeys(own))
                self.visit(list(value[2]), before + head)
            elif name is sre.SUBPATTERN:
                self.visit(list(value[3]), before + head)
            elif name is sre.ATOMIC_GROUP:
                self.visit(list(value), before + head)
            elif name is sre.BRANCH:
                for branch in value[1]:
                    self.visit(list(branch), before + head)
            elif name in (sre.ASSERT, sre.ASSERT_NOT):
                self.visit(list(value[1]), before + head)
            ends = _samples([(name, value)])
            self.units.update((f"{head}{end}", None) for end in ends)
            head += ends[0]


def _samples(items: Sequence[Any]) -> list[str]:
    """Return texts that match a sequence, the shortest first."""
    wholes = [""]
    for name, value in items:
        ends = _samples_of(name, value)
        wholes = [f"{whole}{end}" for whole in wholes for end in ends][:24]
    return wholes


def _samples_of(name: Any, value: Any) -> list[str]:
    if name is sre.LITERAL:
        return [chr(value)]
    if name is sre.NOT_LITERAL:
        return ["a" if value != ord("a") else "b"]
    if name is sre.ANY:
        return ["a", " "]
    if name is sre.IN:
        return _of_class(value)
    if name is sre.SUBPATTERN:
        return _samples(list(value[3]))
    if name is sre.ATOMIC_GROUP:
        return _samples(list(value))
    if name is sre.BRANCH:
        return [_samples(list(branch))[0] for branch in value[1]]
    if name in _REPEATS:
        inner = _samples(list(value[2]))
        return [each * max(int(value[0]), 1) for each in inner] if inner else [""]
    return [""]


def _of_class(members: Sequence[Any]) -> list[str]:
    """Return a few characters of a class."""
    wanted = [name for name, _ in members if name is not sre.NEGATE]
    found = []
    for name, value in members:
        if name is sre.LITERAL:
            found.append(chr(value))
        elif name is sre.RANGE:
            found.append(chr(value[0]))
        elif name is sre.CATEGORY:
            found += {"DIGIT": ["0"], "SPACE": [" ", "\t", "\n"], "WORD": ["a", "0", "_"]}.get(
                str(value).removeprefix("CATEGORY_"), []
            )
    if len(wanted) < len(members):  # all others
        avoided = set(found)
        if any(name is sre.RANGE for name, _ in members):
            avoided |= set(map(chr, range(32, 127))) & {
                chr(code)
                for name, span in members
                if name is sre.RANGE
                for code in range(span[0], span[1] + 1)
            }
        return [char for char in "a0 \t-./\"'(=:\n" if char not in avoided][:6] or ["é"]
    return found[:8] or ["-", " "]
