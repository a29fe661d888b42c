"""Planted bugs: each a small change of the product that at least one named test must notice.

A mutant is data, `mutants/NAME.toml`. It is applied to a copy of the tree, never to the checkout.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MUTANTS = Path(__file__).parent / "mutants"


class StaleError(Exception):
    """A mutant does not fit the tree any more."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file."""

    file: str
    """Relative to the root of the tree."""
    old: str
    """Stands in the file exactly once."""
    new: str

    def applied(self, text: str) -> str:
        """Return the file's text with the bug in it.

        Raises:
            StaleError: the old text is not there, or not once.

        """
        if (count := text.count(self.old)) != 1:
            raise StaleError(
                f"{self.file}: the old text stands there {count} times: {self.old.strip()[:80]!r}"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug."""

    name: str
    of: str
    """The guarantee, fault or section that it breaks."""
    why: str
    edits: tuple[Edit, ...]
    red: tuple[str, ...]
    """Tests, as pytest names them, of which one at least has to fail."""

    def texts(self, root: Path) -> dict[Path, str]:
        """Return the files of a tree that the bug changes, with the bug in them. Raises StaleError."""
        changed: dict[Path, str] = {}
        for edit in self.edits:
            path = root / edit.file
            try:
                changed[path] = edit.applied(changed.get(path) or path.read_text(encoding="utf-8"))
            except (OSError, StaleError) as error:
                raise StaleError(f"mutant {self.name}: {error}") from None
        return changed


def load() -> tuple[Mutant, ...]:
    """Return all mutants by name."""
    return tuple(_read(path) for path in sorted(MUTANTS.glob("*.toml")))


def _read(path: Path) -> Mutant:
    said = tomllib.loads(path.read_text(encoding="utf-8"))
    edits = tuple(Edit(edit["file"], edit["old"], edit["new"]) for edit in said["edits"])
    return Mutant(path.stem, said["of"], said["why"].strip(), edits, tuple(said["red"]))
