"""Values that are derived from others, kept until what they rest on changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


class DerivedValues:
    """Keeps each value with its basis, under a name."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, Any]] = {}

    def take_over(self, kept: DerivedValues) -> None:
        """Start with the values of another, and share them."""
        self._kept = kept._kept

    def get(self, basis: object, name: str, make: Callable[[], _Value]) -> _Value:
        """Return `make()` for a basis, kept until the basis changes."""
        kept = self._kept.get(name)
        if kept is None or kept[0] != basis:
            kept = self._kept[name] = basis, make()
        value: _Value = kept[1]
        return value
