"""Finds credentials in content before it is committed, because a commit makes a leak permanent."""

from __future__ import annotations

from itertools import islice

from yolo_fs.credentials import Hit, find_hits
from yolo_fs.reasons import Finding, Reason

MAX_FINDINGS = 100


def find_secrets(
    data: bytes, path: str, allowed: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Return a finding for each credential whose fingerprint is not allowed.

    The credential itself is never shown.
    """
    refused = (pair for pair in find_hits(data) if pair[1].fingerprint not in allowed)
    hits = sorted(islice(refused, MAX_FINDINGS))
    return tuple(_finding(path, line, hit) for line, hit in hits)


def _finding(path: str, line: int, hit: Hit) -> Finding:
    return Finding(
        Reason.SECRET,
        path,
        line,
        message=f"rule {hit.rule}, fingerprint {hit.fingerprint}",
        expected="no credential in a file that is committed",
        hint="remove it and have it replaced by its provider; if it is harmless, allow the "
        "fingerprint",
    )
