"""A command line for every verb that there is, made from what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from yolo_fs.cli.main import VERBS

NOT_ASKED = {
    "run": "goes on until it is stopped; '--once' is asked elsewhere",
    "start": "leaves a daemon behind",
    "restart": "leaves a daemon behind",
    "go": "starts programs; tests/e2e/test_go.py asks what they print",
    **dict.fromkeys(("debug", "fix-it", "research", "qa"), "start programs as go does"),
    "board": "goes on until it is stopped",
    "demo": "works in a folder of its own",
    "mcp": "answers on stdin alone",
}
"""Verbs that no list of readers can run, and why."""
MORE = {
    "service install": ("--systemd", "x"),
    "gate wait": ("--timeout", "0"),
    "setup": ("--check",),
}
"""Options without which a verb would wait, or change the system."""


def lines(hostile: str, path: str) -> list[tuple[str, ...]]:
    """Return the words of each verb; every argument is a hostile text, a hostile path, or what else may be typed."""
    return [line for row in VERBS for line in _lines(row.load(), (row.name,), hostile, path)]


def _lines(
    command: click.Command, names: tuple[str, ...], hostile: str, path: str
) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _lines(found, (*names, name), hostile, path)
        return
    if " ".join(names) in NOT_ASKED:
        return
    words = [*names, *MORE.get(" ".join(names), ())]
    for option in command.params:
        if isinstance(option, click.Option) and option.required and option.opts[0] not in words:
            words += [option.opts[0], _value(option, hostile, path)]
    wanted = [each for each in command.params if isinstance(each, click.Argument)]
    given = [_value(each, hostile, path) for each in wanted if each.nargs != 0]
    yield (*words, "--", *given) if given else tuple(words)
    if any("--json" in option.opts for option in command.params):
        yield (*words, "--json", "--", *given) if given else (*words, "--json")


def _value(wanted: click.Parameter, hostile: str, path: str) -> str:
    if isinstance(wanted.type, click.Choice):
        choices: Sequence[str] = wanted.type.choices
        return choices[0]
    if isinstance(wanted.type, click.types.IntParamType | click.types.FloatParamType):
        return "1"
    is_path = (wanted.metavar or wanted.name or "").lower().strip("[].") in (
        "path", "paths", "file", "folder", "dir", "draft",
    )  # fmt: skip
    return path if is_path else hostile
