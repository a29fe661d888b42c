"""How a person's commit subject is judged, and which right one it was probably meant to be. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from yolo_fs.subject import GRAMMAR, TYPES

GITS_OWN = ("Merge ", 'Revert "', "Reapply ", "fixup! ", "squash! ", "amend! ")
"""Beginnings of subjects that git itself writes; they are nobody's to spell."""

_ALIKE = 0.75
"""From this likeness on a prescribed subject is what was meant."""
_OTHER_TYPES = {
    "feature": "feat", "add": "feat", "added": "feat", "adds": "feat", "implement": "feat",
    "implements": "feat", "implemented": "feat", "bugfix": "fix", "bug": "fix", "hotfix": "fix",
    "fixed": "fix", "fixes": "fix", "tests": "test", "tested": "test", "doc": "docs",
    "document": "docs", "documented": "docs", "documentation": "docs", "readme": "docs",
    "performance": "perf", "refactored": "refactor", "build": "chore", "ci": "chore",
}  # fmt: skip
_PARTS = re.compile(
    r"(?P<type>[A-Za-z]+)?\s*(?:[(\[{](?P<scope>[^()\[\]{}]*)[)\]}])?\s*!?\s*"
    r"(?::|-\s)\s*(?P<text>.*)"
)
_PLAN = re.compile(r"\b[0-9]{2}-[0-9]{2}\b")


def is_sound(subject: str) -> bool:
    """Return whether a subject follows the grammar, or is one that git writes itself."""
    return subject.startswith(GITS_OWN) or GRAMMAR.fullmatch(subject) is not None


def first_line(message: str, comment: str = "#") -> str:
    """Return the subject of a message as the user's editor leaves it: the first line that git would
    keep.
    """
    lines = (line.rstrip() for line in message.splitlines())
    return next((line for line in lines if line.strip() and not line.startswith(comment)), "")


def nearest(subject: str, prescribed: Sequence[str], plan: str) -> str:
    """Return the right subject nearest to a wrong one.

    `prescribed`: subjects of the artifacts at hand. `plan`: the scope of a source commit that names
    none.
    """
    # Only what is about to be refused is compared, and importing this costs as much as all the
    # rest.
    from difflib import get_close_matches

    if alike := get_close_matches(subject, prescribed, 1, _ALIKE):
        return alike[0]
    parts = _PARTS.match(subject)
    said_type = (parts["type"] if parts else "") or ""
    text = (parts["text"].strip() if parts else subject.strip()) or "say what was done"
    scope = (parts["scope"] if parts else "") or ""
    named = _PLAN.search(subject)
    return f"{_type_of(said_type, text)}({scope.strip() or (named[0] if named else plan)}): {text}"


def _type_of(said: str, text: str) -> str:
    from difflib import get_close_matches

    words = (said.lower(), text.partition(" ")[0].lower())
    for word in filter(None, words):
        if word in TYPES or word in _OTHER_TYPES:
            return _OTHER_TYPES.get(word, word)
    return next(iter(get_close_matches(words[0], TYPES, 1, 0.6)), "chore") if words[0] else "chore"
