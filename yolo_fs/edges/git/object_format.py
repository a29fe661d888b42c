"""git objects, named by their content: with SHA-1, or with SHA-256 where the repository says so."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class GitObject(NamedTuple):
    """One object, named by its content."""

    oid: str
    kind: str
    """`blob`, `tree` or `commit`."""
    body: bytes
    base: str = ""
    """Id of the tree that this one replaces, where it does."""


class ObjectFormat(NamedTuple):
    """The hash that names the objects of a repository: `sha1` or `sha256`."""

    algorithm: str

    @property
    def size(self) -> int:
        """Length of a raw object id in bytes."""
        return 32 if self.algorithm == "sha256" else 20

    @property
    def zero(self) -> str:
        """The id of nothing, in hex."""
        return "0" * (2 * self.size)

    def hash_object(self, kind: str, body: bytes, base: str = "") -> GitObject:
        """Return the object that this body is."""
        digest = hashlib.new(
            self.algorithm, b"%s %d\0" % (kind.encode(), len(body)), usedforsecurity=False
        )
        digest.update(body)
        return GitObject(digest.hexdigest(), kind, body, base)
