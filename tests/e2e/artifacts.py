"""Realistic artifacts for hundreds of distinct paths, each with the subject that the documents prescribe for it.

The subjects are written out here by hand and never taken from the program under test.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

PLANNING = ".yolo-planning"
PHASES = 20
_WORK = (
    "Token refresh",
    "Login page",
    "Audit log",
    "Search index",
    "Rate limits",
    "Export to CSV",
    "Dark mode",
)


class Artifact(NamedTuple):
    """One content of one artifact."""

    path: str
    data: bytes
    subject: str

    def blob(self, algorithm: str = "sha1") -> str:
        """Return the name that git gives to this content."""
        return hashlib.new(algorithm, b"blob %d\0%s" % (len(self.data), self.data)).hexdigest()


def artifact(kind: str, n: int, version: int = 0) -> Artifact:
    """Return the `n`-th artifact of a kind, over phases 01 to 20; another `version` is other content at its path."""
    number, turn = f"{n % PHASES + 1:02d}", n // PHASES
    name, data, subject = _MAKERS[kind](number, turn, version)
    return Artifact(f"{PLANNING}/phases/{number}-phase-{int(number)}/{name}", data, subject)


def mixed(count: int, first: int = 0, version: int = 0) -> list[Artifact]:
    """Return artifacts of distinct paths, summaries and plans by turns."""
    return [
        artifact("summary" if n % 2 else "plan", n, version) for n in range(first, first + count)
    ]


def team(first: int = 0) -> list[Artifact]:
    """Return what 20 agents write at one moment: twenty artifacts of five kinds."""
    kinds = ("plan", "summary", "critique", "decisions", "code-review")
    return [artifact(kinds[n % 5], first + n) for n in range(20)]


def lines(*records: Mapping[str, Any]) -> bytes:
    """Return records as JSONL."""
    return b"".join(
        json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records
    )


_Made = tuple[str, bytes, str]


def _plan(phase: str, turn: int, version: int) -> _Made:
    plan = f"{turn + 1:02d}"
    header = {
        "p": phase, "n": plan, "t": _title(turn), "w": 1, "d": [], "xd": [],
        "mh": {"tr": [f"A refresh token works once, revision {version}"], "ar": [], "kl": []},
        "obj": "Sessions outlive the 15 minute access token without a new login",
    }  # fmt: skip
    tasks = [
        {"id": f"T{k}", "tp": "auto", "a": f"Store refresh tokens, part {k}", "f": [f"src/auth/store{k}.ts"],
         "v": "npm test -- store", "done": "Tokens are stored hashed"}
        for k in range(1, 2 + turn % 3)
    ]  # fmt: skip
    return (
        f"{phase}-{plan}.plan.jsonl",
        lines(header, *tasks),
        f"docs({phase}): plan {phase}-{plan}",
    )


def _summary(phase: str, turn: int, version: int) -> _Made:
    plan = f"{turn + 1:02d}"
    line = {
        "p": phase, "n": plan, "t": _title(turn), "s": "partial", "dt": "2026-02-19", "tc": 2, "tt": 3, "ch": [],
        "fm": ["src/auth/store.ts"], "dv": [f"DEVN-{version:02d}: used a Lua script"],
        "built": ["Refresh token store on Redis", f"Phase {phase}"], "tst": "green_only",
    }  # fmt: skip
    return f"{phase}-{plan}.summary.jsonl", lines(line), f"docs({phase}): summary {phase}-{plan}"


def _critique(phase: str, turn: int, version: int) -> _Made:
    line = {
        "id": "C1", "cat": "gap", "sev": "critical", "q": "What happens when a signing key leaks?",
        "ctx": f"Keys live a year, revision {version}", "sug": "Publish a JWKS with kid", "st": "open", "cf": 72,
    }  # fmt: skip
    return (
        f"{_department(turn)}critique.jsonl",
        lines(line),
        f"docs({phase}): critique and gap analysis",
    )


def _decisions(phase: str, turn: int, version: int) -> _Made:
    line = {"ts": "2026-02-18T09:12:00Z", "agent": "architect", "dec": f"JWT with RS256, revision {version}",
            "reason": "Services verify with the public key alone", "task": "", "alts": ["Opaque tokens"]}  # fmt: skip
    assert turn == 0, "a phase has one decisions.jsonl"
    return "decisions.jsonl", lines(line), f"docs({phase}): decisions"


def _code_review(phase: str, turn: int, version: int) -> _Made:
    plan = f"{phase}-01"
    header = {
        "plan": plan,
        "r": "changes_requested",
        "cycle": 1 + version,
        "dt": "2026-02-19",
        "tdd": "pass",
    }
    finding = {
        "f": "src/auth/refresh.ts",
        "ln": 42,
        "sev": "major",
        "issue": "The session stays alive",
        "sug": "Drop",
    }
    return (
        f"{_department(turn)}code-review.jsonl",
        lines(header, finding),
        f"docs({phase}): code review {plan}",
    )


_MAKERS: Mapping[str, Callable[[str, int, int], _Made]] = {
    "plan": _plan,
    "summary": _summary,
    "critique": _critique,
    "decisions": _decisions,
    "code-review": _code_review,
}


def _title(turn: int) -> str:
    return _WORK[turn % len(_WORK)]


def _department(turn: int) -> str:
    return ("", "fe-", "ux-")[turn]
