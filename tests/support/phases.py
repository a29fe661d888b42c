"""Builds the facts of a phase: a complete one, from which a test takes away or changes what it is about."""

from __future__ import annotations

from typing import Any

from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.core.ids import PhaseId
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, SourceCommit, WorkflowOptions
from yolo_fs.schemas.config import Config

PHASE = PhaseId("01", "auth")
FOLDER = f".yolo-planning/phases/{PHASE}"

CONFIG = config_from({"security_audit": True})

Content = dict[str, list[dict[str, Any]]]


def complete() -> Content:
    """Return the artifacts of a phase in which every step is done."""
    task = {
        "id": "T1",
        "a": "sign tokens",
        "f": ["src/auth.ts"],
        "spec": "use RS256",
        "ts": "rejects HS256",
    }
    return {
        "critique.jsonl": [{"id": "C1", "st": "addressed", "cf": 90, "rd": 1}],
        "research.jsonl": [{"q": "rotation"}],
        "architecture.toon": [{"tech_decisions": ["JWT"]}],
        "01-01.plan.jsonl": [{"p": "01", "n": "01", "t": "Tokens", "w": 1, "d": []}, task],
        "01-02.plan.jsonl": [
            {"p": "01", "n": "02", "t": "Login", "w": 2, "d": ["01-01"]},
            task | {"f": ["src/login.ts"]},
        ],
        "test-plan.jsonl": [{"id": "T1", "plan": p, "red": True} for p in ("01-01", "01-02")],
        "01-01.summary.jsonl": [
            {"s": "complete", "tc": 1, "tt": 1, "ch": ["aaaaaaa"], "tst": "red_green"}
        ],
        "01-02.summary.jsonl": [
            {"s": "complete", "tc": 1, "tt": 1, "ch": ["bbbbbbb"], "tst": "red_green"}
        ],
        "test-results.jsonl": [
            {"plan": "01-01", "phase": "green", "fl": 0},
            {"plan": "01-02", "phase": "green", "fl": 0},
        ],
        "code-review.jsonl": [{"plan": "01-01", "r": "approve"}, {"plan": "01-02", "r": "approve"}],
        "docs.jsonl": [{"type": "api"}],
        "verification.jsonl": [{"r": "PASS"}],
        "qa-code.jsonl": [{"r": "PASS"}],
        "security-audit.jsonl": [{"r": "PASS"}],
        "../../state.json": [{"st": "complete", "ph": 1}],
        "../../ROADMAP.md": [{}],
    }


COMMITS = {
    "aaaaaaa": SourceCommit("a" * 40, "feat(01-01): T1 sign", frozenset({"src/auth.ts"}), 1),
    "bbbbbbb": SourceCommit("b" * 40, "feat(01-02): T1 log in", frozenset({"src/login.ts"}), 2),
}


def facts(
    content: Content,
    *,
    config: Config = CONFIG,
    commits: dict[str, SourceCommit] | None = None,
    **more: Any,
) -> PhaseFacts:
    """Return the facts of a phase that has these artifacts."""
    options = {
        key: more.pop(key) for key in ("skip_qa", "skip_security", "complexity") if key in more
    }
    present = tuple(committed(name, lines) for name, lines in content.items())
    return PhaseFacts(
        phase=PHASE,
        committed=present,
        options=WorkflowOptions(config, **options).of_phase(present),
        commits=COMMITS if commits is None else commits,
        **more,
    )


def committed(name: str, lines: list[dict[str, Any]]) -> CommittedArtifact:
    """Return one committed artifact."""
    path = f".yolo-planning/{name[6:]}" if name.startswith("../../") else f"{FOLDER}/{name}"
    place = classify(path)
    assert place is not None, path
    return CommittedArtifact(place, tuple(lines), valid=True, commit=f"commit of {name}")
