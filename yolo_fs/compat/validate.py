"""`validate --type T …`: one door to the seven validators."""

from __future__ import annotations

from collections.abc import Sequence

from yolo_fs.compat.arguments import UsageError
from yolo_fs.compat.scripts import SCRIPTS, Script, load

TYPES = ("plan", "naming", "config", "gates", "deps", "summary", "frontmatter")
_FLAG = "--type"


def run(arguments: Sequence[str]) -> int:
    name, rest = _type(list(arguments))
    if name not in TYPES:
        raise UsageError(f"{_FLAG}: unknown type: {name}", hint=f"it is one of {', '.join(TYPES)}")
    return _validator(name).run(rest)


def _type(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the first `--type` and what is left; a further one belongs to the validator."""
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{_FLAG}="):
            return argument.partition("=")[2], arguments[:position] + arguments[position + 1 :]
        if argument == _FLAG and position + 1 < len(arguments):
            return arguments[position + 1], arguments[:position] + arguments[position + 2 :]
    raise UsageError(
        f"{_FLAG} is required, with its value", hint=f"it is one of {', '.join(TYPES)}"
    )


def _validator(name: str) -> Script:
    if name == "deps":  # the only one that never had a script of its own
        from yolo_fs.compat import validate_deps

        return validate_deps
    script = f"validate-{name}"
    assert script in SCRIPTS
    return load(script)
