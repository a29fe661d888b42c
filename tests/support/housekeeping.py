"""What makes `git gc --auto` think that there is much to tidy up."""

from __future__ import annotations

import hashlib
import itertools


def counted_by_gc(algorithm: str) -> list[bytes]:
    """Return the contents of two blobs that git counts, which does so with names that begin with 17."""
    contents = (f"{number}".encode() for number in range(100_000))
    named = (
        (hashlib.new(algorithm, b"blob %d\0%s" % (len(each), each)).hexdigest(), each)
        for each in contents
    )
    return list(itertools.islice((each for name, each in named if name.startswith("17")), 2))


TIDIES_SOON = (("gc.auto", "1"), ("gc.autoDetach", "false"))
"""The user's settings with which a commit ends with it, where two such objects are there."""
