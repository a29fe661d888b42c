"""What is told of a file that stays uncommitted names a command that shows why, or ends it."""

from __future__ import annotations

import pytest

from yolo_fs.artifacts.uncommitted import lasting_findings
from yolo_fs.artifacts.verdicts import Held, Verdict, Waiting
from yolo_fs.core.reasons import Reason

PATH = ".yolo-planning/phases/01-a b/critique.jsonl"
SHOWN_BY_GIT_STATUS = {
    Reason.MERGE_IN_PROGRESS, Reason.REBASE_IN_PROGRESS, Reason.CHERRY_PICK_IN_PROGRESS,
    Reason.REVERT_IN_PROGRESS, Reason.BISECT_IN_PROGRESS, Reason.UNMERGED_INDEX,
    Reason.UNBORN_BRANCH,
}  # fmt: skip
"""What git itself says of the work tree."""
ENDED_BY_OTHERS = {
    Reason.USER_COMMITTING: "ps -fC git",
    Reason.PULL_IN_PROGRESS: "ps -fC git",
    Reason.INDEX_LOCKED: "ps -fC git",
    Reason.REF_LOCKED: "ps -fC git",
    Reason.COMMIT_BUDGET: "yolo-fs config show --origin",
    Reason.PROTECTED_BRANCH: "yolo-fs config show --origin",
    Reason.DETACHED_HEAD: "git switch BRANCH",
    Reason.GIT_FAILED: "yolo-fs doctor",
}


def command_of(verdict: Verdict) -> str:
    [finding] = lasting_findings({PATH: verdict})
    return finding.command


@pytest.mark.parametrize("reason", sorted(SHOWN_BY_GIT_STATUS))
def test_what_git_is_in_the_middle_of_is_shown_by_git(reason: Reason) -> None:
    assert command_of(Held(reason)) == "git status"


@pytest.mark.parametrize(("reason", "command"), ENDED_BY_OTHERS.items())
def test_what_git_status_does_not_show_has_a_command_of_its_own(
    reason: Reason, command: str
) -> None:
    assert command_of(Held(reason)) == command


@pytest.mark.parametrize("reason", [Reason.BEING_WRITTEN, Reason.SETTLING])
def test_who_has_a_file_open_is_shown_by_lsof(reason: Reason) -> None:
    assert command_of(Waiting(reason)) == f"lsof -- '{PATH}'"


def test_a_file_that_is_cut_off_is_looked_at_by_validate() -> None:
    assert command_of(Waiting(Reason.UNTERMINATED)) == f"yolo-fs validate '{PATH}'"
