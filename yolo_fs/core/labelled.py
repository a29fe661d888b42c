"""Names that programs read, each with the words that people read."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Labelled(StrEnum):
    """A closed list of names; each member is written as `NAME = value, label`."""

    label: str

    def __new__(cls, value: str, label: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member
