"""Evidence survives what teams do to history: a commit that got another name is the same work."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.evidence.failures import find_unreadable
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import tasks_done
from yolo_fs.workspace.settings import load

FOLDER = ".yolo-planning/phases/01-login"
PLAN = (
    {
        "p": "01", "n": "01", "t": "Login", "w": 1, "d": [], "obj": "o",
        "mh": {"tr": ["x"], "ar": [{"p": "src/a.py", "pv": "s", "c": ""}], "kl": []},
    },
    {"id": "T1", "tp": "auto", "a": "do it", "f": ["src/a.py"], "v": "true", "done": "ok"},
)  # fmt: skip
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"
WAYS = {
    "rebase": "git rebase -q aside",
    "rebase without the old commits": f"git rebase -q aside; {FORGET}",
    "amend before the summary was committed": "git checkout -q --detach HEAD~1;"
    "git commit -q --amend --no-edit --date=2020-01-01T00:00:00; git cherry-pick main >/dev/null",
    "cherry-pick": "git checkout -q aside; git cherry-pick plan..main >/dev/null",
    "another author in each commit": "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f"
    " --env-filter 'GIT_AUTHOR_NAME=Other' >/dev/null 2>&1",
    "a ticket before each subject": "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f"
    " --msg-filter 'sed \"1s/^/[JIRA-12] /\"' >/dev/null 2>&1",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    do(tmp_path, "git init -q -b main . && git config user.name T && git config user.email t@x")
    write(tmp_path, f"{FOLDER}/01-01.plan.jsonl", *PLAN)
    do(tmp_path, "git add -A; git commit -qm 'docs(01): plan 01-01'; git branch plan")
    do(tmp_path, "git checkout -qb aside; git commit -q --allow-empty -m 'chore: aside'")
    do(tmp_path, "git checkout -q main; mkdir src; echo 1 > src/a.py; git add -A")
    return tmp_path


def do(root: Path, command: str) -> str:
    done = subprocess.run(
        ["sh", "-c", command], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write(root: Path, path: str, *records: object) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("".join(json.dumps(each) + "\n" for each in records))


def summary_of(number: str, tasks: int, *commits: str) -> dict[str, Any]:
    """Return a summary that calls all tasks of a plan done by these commits."""
    return {
        "p": "01", "n": number, "t": "t", "s": "complete", "dt": "2026-02-19", "tc": tasks,
        "tt": tasks, "ch": list(commits), "fm": ["src/a.py"], "dv": [], "built": ["x"],
        "tst": "green_only", "sg": [],
    }  # fmt: skip


def finish(root: Path, subject: str) -> None:
    """Commit the source with a subject, and the summary that names it."""
    do(root, f"git commit -qm '{subject}'")
    made = do(root, "git rev-parse HEAD")
    write(root, f"{FOLDER}/01-01.summary.jsonl", summary_of("01", 1, made))
    do(root, "git add -A; git commit -qm 'docs(01): summary 01-01'")


def plan_of(root: Path) -> PlanStatus:
    with Repository(str(root)) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        (facts,) = facts_reader.facts(repository.head().tip)
        (plan,) = plan_progress(facts)
    return plan


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_stays_complete_when_its_commits_get_other_names(root: Path, way: str) -> None:
    finish(root, "feat(01-01): T1 load")
    assert plan_of(root).standing is PlanStanding.COMPLETE
    do(root, WAYS[way])
    plan = plan_of(root)
    assert (plan.standing, plan.missing) == (PlanStanding.COMPLETE, ())
    assert plan.tasks[0].commit == do(root, "git log -1 --format=%H -- src/a.py")


@pytest.mark.parametrize("after", [":", FORGET])
def test_a_squashed_merge_leaves_a_plan_complete(root: Path, after: str) -> None:
    finish(root, "feat(01-01): T1 load")
    do(root, "git checkout -qb trunk plan; git merge -q --squash main >/dev/null")
    do(root, f"git commit -qm 'feat(app): login (#12)'; git branch -D main; {after}")
    plan = plan_of(root)
    assert (plan.standing, plan.missing) == (PlanStanding.COMPLETE, ())


TWO_TASKS = (PLAN[0], PLAN[1], {**PLAN[1], "id": "T2", "f": ["src/b.py"]})
"""A plan of two tasks, each with a file of its own."""
BECAME = {
    "the second task went into the first": "git reset -q --soft HEAD~1; git commit -q --amend --no-edit",
    "no subject names a task": "git commit -q --amend -m 'Keys'; git rebase -q --exec \"git commit -q --amend -m 'Login'\" HEAD~2",
    "a pull request was squashed": "git reset -q --soft HEAD~2; git commit -qm 'Login (#12)'",
}


def finish_two(root: Path, became: str) -> None:
    """Do two tasks, change what the commits are called, and commit the summary of what they were."""
    write(root, f"{FOLDER}/01-01.plan.jsonl", *TWO_TASKS)
    do(
        root,
        "git commit -qm 'docs(01): plan 01-01' -- .yolo-planning; git commit -qm 'feat(01-01): T1 load'",
    )
    do(root, "echo 2 > src/b.py; git add -A; git commit -qm 'feat(01-01): T2 check'")
    named = do(root, "git rev-list --reverse HEAD~2..").split()
    do(root, became)
    write(root, f"{FOLDER}/01-01.summary.jsonl", summary_of("01", 2, *named))
    do(root, "git add -A; git commit -qm 'docs(01): summary 01-01'")


@pytest.mark.parametrize("how", BECAME)
def test_tasks_whose_commits_became_one_or_name_them_no_more_are_done(root: Path, how: str) -> None:
    finish_two(root, BECAME[how])
    plan = plan_of(root)
    assert (plan.standing, plan.missing, tasks_done(plan)) == (PlanStanding.COMPLETE, (), 2)


@pytest.mark.parametrize(
    "became",
    [
        "git reset -q --hard HEAD~1; git commit -q --amend -m 'Keys'",
        "git reset -q --soft HEAD~2; git commit -qm 'feat(01-02): T1 of another plan'",
        "git reset -q --hard HEAD~2; git commit -q --allow-empty -m 'feat(01-01): Login'",
    ],
)
def test_no_commit_stands_for_a_task_whose_files_it_did_not_change_or_for_another_plan(
    root: Path, became: str
) -> None:
    finish_two(root, became)
    plan = plan_of(root)
    assert plan.standing is PlanStanding.CLAIMED
    assert all("is not on this branch" in lack for lack in plan.missing)


def test_what_was_there_before_the_plan_stands_for_no_task(root: Path) -> None:
    do(root, f"git commit -qm 'chore: import'; git rm -q {FOLDER}/01-01.plan.jsonl")
    write(root, f"{FOLDER}/01-02.plan.jsonl", {**PLAN[0], "n": "02"}, PLAN[1])
    write(root, f"{FOLDER}/01-02.summary.jsonl", summary_of("02", 1, "f" * 40))
    do(root, "git add -A; git commit -qm 'docs(01): plan 01-02'")
    assert plan_of(root).standing is PlanStanding.CLAIMED


def test_a_summary_that_names_no_commit_of_its_plan_proves_nothing(root: Path) -> None:
    finish(root, "feat(01-02): T1 of another plan")
    do(root, WAYS["rebase"])
    plan = plan_of(root)
    assert plan.standing is PlanStanding.CLAIMED
    assert "is not on this branch" in plan.missing[0]


def test_a_commit_that_changes_nothing_proves_no_plan(root: Path) -> None:
    do(root, "git reset -q; rm -r src; git commit -q --allow-empty -m 'feat(01-01): T1 load'")
    made = do(root, "git rev-parse HEAD")
    write(root, f"{FOLDER}/01-01.summary.jsonl", summary_of("01", 1, made))
    do(root, "git add -A; git commit -qm 'docs(01): summary 01-01'")
    plan = plan_of(root)
    assert plan.standing is PlanStanding.CLAIMED
    assert plan.missing == (
        f"commit {made} has changed nothing",
        "none of its commits touches a file of plan 01-01",
    )
    assert [task.commit for task in plan.tasks] == [""]


def test_a_commit_that_changes_nothing_does_no_task_and_undoes_none(root: Path) -> None:
    do(root, "git commit -qm 'feat(01-01): T1 load'")
    made = do(root, "git rev-parse HEAD")
    do(root, "git commit -q --allow-empty -m 'Revert \"feat(01-01): T1 load\"'")
    do(root, "git commit -q --allow-empty -m 'feat(01-01): T1 again'")
    plan = plan_of(root)
    assert [task.commit for task in plan.tasks] == [made]
    empty = do(root, "git rev-parse HEAD")
    write(root, f"{FOLDER}/01-01.summary.jsonl", summary_of("01", 1, made, empty))
    do(root, "git add -A; git commit -qm 'docs(01): summary 01-01'")
    assert plan_of(root).missing == (f"commit {empty} has changed nothing",)
    write(root, f"{FOLDER}/01-01.summary.jsonl", summary_of("01", 1, made))
    do(root, "git add -A; git commit -qm 'docs(01): summary 01-01'")
    assert plan_of(root).standing is PlanStanding.COMPLETE


def test_a_phase_that_is_a_copy_of_another_has_no_plan_of_its_own_and_names_what_is_wrong(
    root: Path,
) -> None:
    finish(root, "feat(01-01): T1 load")
    do(root, f"cp -r {FOLDER} .yolo-planning/phases/02-page")
    do(root, "git add -A; git commit -qm 'docs(02): begin'")
    with Repository(str(root)) as repository:
        first, second = FactsReader(repository, load(repository.root)).facts(repository.head().tip)
    assert [str(plan.id) for plan in first.plans] == ["01-01"]
    assert second.plans == ()
    misnamed = [place.name for place in find_unreadable(second)]
    assert misnamed == ["01-01.plan.jsonl", "01-01.summary.jsonl"]


def test_a_commit_that_touches_nothing_of_the_plan_stands_for_none(root: Path) -> None:
    do(root, "git mv -f src/a.py other.py")
    finish(root, "feat(01-01): T1 load")
    do(root, WAYS["rebase"])
    assert plan_of(root).standing is PlanStanding.CLAIMED


@pytest.mark.parametrize("prefix", ["[JIRA-12] ", "JIRA-12 ", "JIRA-12: ", "#12 ", "[ops/auth] "])
def test_a_ticket_before_a_subject_hides_no_task(root: Path, prefix: str) -> None:
    do(root, f"git commit -qm '{prefix}feat(01-01): T1 load'")
    assert plan_of(root).tasks[0].commit == do(root, "git rev-parse HEAD")


REAPPLIED = {
    "a revert of the revert": "git revert --no-edit HEAD",
    "as newer gits call it": "git revert -n HEAD; git commit -qm 'Reapply \"feat(01-01): T1 load\"'",
    "done anew": "mkdir -p src; echo 2 > src/a.py; git add -A; git commit -qm 'feat(01-01): T1 load'",
}


@pytest.mark.parametrize("how", REAPPLIED)
@pytest.mark.parametrize("subject", ["feat(01-01): T1 load", "feat(01-01): do it"])
def test_a_reverted_task_is_open_again_by_name_until_it_is_done_anew(
    root: Path, subject: str, how: str
) -> None:
    finish(root, subject)
    do(root, "git revert --no-edit HEAD~1")
    plan, by = plan_of(root), do(root, "git rev-parse --short=12 HEAD")
    assert plan.standing is PlanStanding.CLAIMED
    assert (plan.missing, plan.tasks[0].commit) == ((f"task 01-01/T1 was reverted by {by}",), "")
    do(root, REAPPLIED[how])
    assert plan_of(root).standing is PlanStanding.COMPLETE


def part_from_side(root: Path) -> None:
    """Do the work on a branch `side`; `main` has the plan, and goes on."""
    finish(root, "feat(01-01): T1 load")
    do(root, "git branch -f side; git reset -q --hard plan")
    do(root, "git commit -q --allow-empty -m 'chore: elsewhere'")


LEAVES_OUT = "git merge -q -s ours -m Merge side"
TAKES_SUMMARY = f"git checkout -q side -- {FOLDER}; git commit -qm 'docs(01): summary 01-01'"


def test_a_task_whose_work_a_merge_did_not_take_is_open_by_name(root: Path) -> None:
    part_from_side(root)
    do(root, f"{LEAVES_OUT}; {TAKES_SUMMARY}")
    merge = do(root, "git log -1 --merges --format=%h --abbrev=12")
    assert plan_of(root).missing == (f"task 01-01/T1 was reverted by {merge}",)
    do(root, "git checkout -q side -- src; git commit -qm 'chore: take it after all'")
    assert plan_of(root).standing is PlanStanding.COMPLETE


def test_a_task_that_was_squashed_and_changed_before_its_branch_is_merged_is_done(
    root: Path,
) -> None:
    part_from_side(root)
    do(root, "git merge -q --squash side; git commit -qm 'Login (#1)'")
    do(root, "echo 3 > src/a.py; git commit -qam 'chore: later'")
    do(root, LEAVES_OUT)
    assert plan_of(root).standing is PlanStanding.COMPLETE


MERGES = "git merge -q --no-ff -m \"Merge branch 'side'\" side"
TAKES_BACK = {
    "in git's words": "git revert --no-edit -m 1 HEAD",
    "in other words": "git revert --no-edit -m 1 HEAD; git commit -q --amend -m 'Back out login'"
    ' -m "$(git log -1 --format=%b)"',
    "with a reference": "git -c revert.reference=true revert --no-edit -m 1 HEAD",
    "by a branch of its own": "git checkout -q -b back; git revert --no-edit -m 1 HEAD;"
    " git checkout -q main; git commit -q --allow-empty -m 'chore: more';"
    " git merge -q --no-ff -m 'Merge branch back' back",
}


@pytest.mark.parametrize("how", TAKES_BACK)
def test_a_revert_of_a_merge_takes_back_what_the_merge_brought(root: Path, how: str) -> None:
    part_from_side(root)
    do(root, MERGES)
    assert plan_of(root).standing is PlanStanding.COMPLETE
    do(root, TAKES_BACK[how])
    by = do(root, "git log -1 --grep='This reverts' --format=%h --abbrev=12")
    do(root, TAKES_SUMMARY)
    assert plan_of(root).missing == (f"task 01-01/T1 was reverted by {by}",)
    do(root, f"git revert --no-edit {by}")
    assert plan_of(root).standing is PlanStanding.COMPLETE


def test_a_revert_of_a_merge_takes_back_what_an_inner_merge_brought(root: Path) -> None:
    part_from_side(root)
    do(root, f"git branch outer; git checkout -q outer; {MERGES}; git checkout -q main")
    do(root, "git merge -q --no-ff -m 'Merge branch outer' outer; git revert --no-edit -m 1 HEAD^2")
    by = do(root, "git rev-parse --short=12 HEAD")
    do(root, TAKES_SUMMARY)
    assert plan_of(root).missing == (f"task 01-01/T1 was reverted by {by}",)


def test_a_revert_of_a_merge_leaves_what_was_there_before(root: Path) -> None:
    finish(root, "feat(01-01): T1 load")
    do(root, "git checkout -q -b side; echo 2 > src/a.py; git commit -qam 'fix(01-01): T1 faster'")
    do(root, "git checkout -q main; git commit -q --allow-empty -m 'chore: elsewhere'")
    do(root, f"{MERGES}; git revert --no-edit -m 1 HEAD")
    assert plan_of(root).standing is PlanStanding.COMPLETE
    assert plan_of(root).tasks[0].commit == do(root, "git rev-parse HEAD~4")


def test_a_revert_of_the_merge_of_a_revert_does_the_task_again(root: Path) -> None:
    finish(root, "feat(01-01): T1 load")
    do(root, "git checkout -q -b side; git revert --no-edit HEAD~1; git checkout -q main")
    do(root, f"git commit -q --allow-empty -m 'chore: elsewhere'; {MERGES}")
    assert plan_of(root).missing[0].startswith("task 01-01/T1 was reverted by ")
    do(root, "git revert --no-edit -m 1 HEAD")
    assert plan_of(root).standing is PlanStanding.COMPLETE


@pytest.mark.parametrize("subject", ["fix(01-01): T1 load faster", "fix(01-01): do it"])
def test_a_task_stays_done_when_only_a_later_repair_is_reverted(root: Path, subject: str) -> None:
    finish(root, "feat(01-01): T1 load")
    done = plan_of(root).tasks[0].commit
    do(root, f"echo 2 > src/a.py; git commit -qam '{subject}'; git revert --no-edit HEAD")
    plan = plan_of(root)
    assert (plan.standing, plan.missing) == (PlanStanding.COMPLETE, ())
    assert plan.tasks[0].commit == done


@pytest.mark.parametrize("subject", ["fix(01-01): T1 load faster", "feat(01-01): T1 load"])
def test_what_was_built_upon_a_reverted_commit_goes_with_it(root: Path, subject: str) -> None:
    finish(root, "feat(01-01): T1 load")
    do(root, f"echo 2 > src/b.py; git add -A; git commit -qm '{subject}'")
    do(root, "git revert --no-edit HEAD~2")
    assert plan_of(root).missing[0].startswith("task 01-01/T1 was reverted by ")


def test_a_sign_off_may_be_reverted(root: Path) -> None:
    finish(root, "feat(01-01): T1 load")
    write(root, ".yolo-planning/state.json", {"ph": 1, "st": "complete"})
    do(root, "git add -A; git commit -qm 'chore(state): phase 1 complete'")
    assert signed_off(root)
    do(root, "git revert --no-edit HEAD")
    assert not signed_off(root)


def signed_off(root: Path) -> str:
    with Repository(str(root)) as repository:
        (facts,) = FactsReader(repository, load(repository.root)).facts(repository.head().tip)
    return facts.signed_off
