"""Reads the arguments of the drop-in scripts: `--name value`, without abbreviations and without
`=`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from yolo_fs.reasons import Exit, Reason, YoloError


class UsageError(YoloError):
    """The arguments are not what the script takes."""

    def __init__(self, message: str, *, hint: str = ""):
        super().__init__(Reason.BAD_NAME, message, hint=hint, exit_code=Exit.USAGE)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of one call."""

    values: Mapping[str, str]
    """Flag → its value; the last one counts."""
    switches: frozenset[str]
    """Flags without a value."""
    rest: tuple[str, ...]
    """Arguments that are not flags, in order."""

    def need(self, flag: str) -> str:
        """Return the value of a flag that must say something.

        Raises:
            UsageError: it is absent or empty.
        """
        if value := self.values.get(flag, ""):
            return value
        raise UsageError(f"{flag} is required")

    def need_folder(self, flag: str) -> str:
        """Return the value of a flag that must name a directory.

        Raises:
            UsageError: it is absent, or there is no such directory.
        """
        path = self.need(flag)
        if os.path.isdir(path):
            return path
        raise UsageError(f"{flag}: directory not found: {path}")

    def choose(self, flag: str, choices: Collection[str]) -> str:
        """Return the value of a flag that must be one of a closed list.

        Raises:
            UsageError: it is absent, or none of them.
        """
        value = self.need(flag)
        if value in choices:
            return value
        raise UsageError(
            f"{flag}: unknown name: {value}", hint=f"it is one of {', '.join(choices)}"
        )


def parse(
    arguments: Sequence[str],
    *,
    valued: Collection[str] = (),
    switches: Collection[str] = (),
    joined: Collection[str] = (),
    most: int = 0,
) -> Given:
    """Return the arguments by their meaning.

    `joined`: those of `valued` that may be written `--name=value` as well. `most`: how many arguments that are no
    flags are taken.

    Raises:
        UsageError: an unknown flag, a flag without its value, too many other arguments.
    """
    values: dict[str, str] = {}
    found: set[str] = set()
    rest: list[str] = []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        if argument in switches:
            found.add(argument)
        elif equals and name in joined:
            values[name] = value
        elif argument in valued:
            if not left:
                raise UsageError(f"{argument}: its value is missing")
            values[argument] = left.pop(0)
        elif argument.startswith("-") and argument != "-":
            raise UsageError(f"unknown flag: {argument}", hint=_known(valued, switches))
        else:
            rest.append(argument)
    if len(rest) > most:
        raise UsageError(f"unexpected argument: {rest[most]}", hint=_known(valued, switches))
    return Given(values, frozenset(found), tuple(rest))


def _known(valued: Collection[str], switches: Collection[str]) -> str:
    names = [*(f"{name} VALUE" for name in valued), *switches]
    return f"it takes {', '.join(names)}" if names else ""
