"""Every closed list of names that code binds to functions is bound whole: nothing fails at run time for want of a row."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import yolo_fs
from yolo_fs.core.reasons import Reason
from yolo_fs.protocol.gates import INTEGRATION_CHECKS

PARTIAL = {
    "_COLOUR": "what has no colour is printed plain",
    "SETTLED_BY": "the other escalations and obstacles end by what happens, not by a command",
    "_SHOWN_BY": "git status shows the other reasons",
    "_RULES_THAT_HOLD": "the rules of git hold for no other reason",
    "_HINTS": "the writer gives hints for the reasons for which it refuses",
    "_ADVICE": "each reader gives advice for the reasons that it finds",
    "_REASONS_OF_EXIT": "no reason ends a command with 0 or 130, and every other one with 1",
    "_EXIT_OF_REASON": "every other reason ends a command with 1",
    "BEYOND_JSON_SCHEMA": "the reasons that JSON Schema cannot find",
    "AUTHORITY_BY_ROLE": "the document gives no row to the integration gate, and none to people",
    "CONTEXT_BY_ROLE": "no context is compiled for people",
    "_BUDGET_BY_ROLE": "roles whose budget the roster does not say",
    "ESCALATES_BY_ROLE": "the document's table; the chains say the rest",
    "_OUTSIDE_CHAIN": "roles outside the chains",
    "_HOMES": "documents outside the planning tree have patterns of their own",
    "_HEADS": "a one-line section has no head",
    "_BODIES": "a one-line section has no body",
    "_SHORT_NAMES": "a context's header does not name the default department",
    "FAMILIES": "people are told nothing",
    "_KINDS_MEANT": "what is read that is no artifact",
    "_PLACES_MEANT": "what is read that is an artifact, or no file",
    "_LEAVES": "the tables name the product of every other role",
    "_STATUS": "any other reason is a service that is unavailable",
}
"""Bindings that are partial on purpose, with the reason."""
OF_THE_REFERENCE = ("FILES_MEET",)
"""Bindings of what the reference scripts know; what is new here is not in them."""


def mappings() -> Iterator[tuple[str, str, Mapping[Any, Any]]]:
    """Yield module, name and value of each mapping that a module of the package defines."""
    for module in pkgutil.walk_packages(yolo_fs.__path__, "yolo_fs."):
        if "__main__" in module.name or ".demo." in module.name:
            continue
        loaded = importlib.import_module(module.name)
        source = Path(loaded.__file__ or "").read_text()
        own = set(re.findall(r"^(\w+)(?::| =)", source, re.MULTILINE))
        for name, value in vars(loaded).items():
            if name in own and isinstance(value, Mapping):
                yield module.name, name, value


def keyed_by(value: Mapping[Any, Any]) -> type[Enum] | None:
    kinds = {type(key) for key in value}
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if kind and issubclass(kind, Enum) else None


ALL = [one for one in mappings() if keyed_by(one[2])]


@pytest.mark.parametrize(("module", "name", "value"), ALL, ids=[f"{m}.{n}" for m, n, _ in ALL])
def test_every_member_is_bound(module: str, name: str, value: Mapping[Any, Any]) -> None:
    kind = keyed_by(value)
    assert kind
    missing = [member.name for member in kind if member not in value]

    if name in OF_THE_REFERENCE:
        return
    if kind is Reason or name in PARTIAL:
        assert name in PARTIAL
    else:
        assert not missing, f"{module}.{name} has no entry for {kind.__name__} {missing}"


def test_what_is_listed_as_partial_is_partial() -> None:
    partial = {
        name
        for _, name, value in ALL
        if name not in OF_THE_REFERENCE
        and any(member not in value for member in keyed_by(value) or ())
    }

    assert PARTIAL.keys() >= partial
    assert PARTIAL.keys() - partial == set()


def test_every_integration_check_is_bound() -> None:
    keys = {row.key for row in INTEGRATION_CHECKS}
    bound = [value.keys() for module, _, value in mappings() if ".phase" in module]
    bound = [names for names in bound if keys & names]

    assert bound
    assert all(names == keys for names in bound)
