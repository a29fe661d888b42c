"""Sentinels that the daemon itself wrote once are told from those that somebody made."""

from __future__ import annotations

import pytest

from yolo_fs.core.ids import PhaseId
from yolo_fs.phase.gates import was_proved

FOLDER = ".yolo-planning/phases/01-auth"


@pytest.mark.parametrize(
    ("pair", "was_true"),
    [
        (["01-01", "a" * 40], True),
        (["01-01", "b" * 40], False),
        (["01-02", "a" * 40], False),
        ([f"{FOLDER}/01-01.plan.jsonl", "a" * 40], False),
        ("01-01", False),
    ],
)
def test_a_departments_sentinel_was_true_only_with_commits_that_made_its_plans(
    pair: object, was_true: bool
) -> None:
    made = {"a" * 40: {f"{FOLDER}/01-01.plan.jsonl"}, "b" * 40: {f"{FOLDER}/critique.jsonl"}}
    name = ".handoff-backend-complete"
    bound = {"sentinel": name, "phase": "01-auth", "evidence": [pair]}

    def changed_by(commit: str) -> set[str]:
        return made.get(commit, set())

    assert was_proved(name, PhaseId("01", "auth"), bound, changed_by) is was_true
    assert not was_proved(name, PhaseId("02", "page"), bound, changed_by)
    assert not was_proved(name, PhaseId("01", "auth"), bound | {"note": "mine"}, changed_by)
