"""Histories that nobody wishes for: the evidence of a phase is what it is, wherever it stands.

The clocks of all these commits run back and forth. `YOLO_EXAMPLES=1` makes the long one long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.properties.histories import Event, Ground
from tests.properties.rewritten import (
    FOLDER,
    PLANNING,
    Real,
    committed,
    git,
    path_of,
    standing_of,
    subject_of,
    turn_of,
)
from tests.properties.rewritten import text_of as content_of
from tests.properties.tales import EXAMPLES
from yolo_fs.protocol.departments import Dept, Role, name_in

GROUND = Ground((Dept.BACKEND,), is_one_number=False)
BEFORE_SIGN_OFF = GROUND.whole(Random(0))[:-2]
MANY = 20_000 if EXAMPLES else 200
VERDICTS = ("verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")
JUDGED = ("architecture.toon", "01-01.plan.jsonl", "test-plan.jsonl", "01-01.summary.jsonl",
          "../../../backend/a.ts")  # fmt: skip
SIGNS_OFF = ("lead", "signoff")
REVIEWS = ("senior", "code_review")


def real(tmp_path: Path, events: Sequence[Event]) -> Real:
    return committed(tmp_path / "work", GROUND, events, Random(7))


def text_of(one: Real, name: str, branch: str = "main") -> str:
    return git(one.root, "show", f"{branch}:{normpath(f'{FOLDER}/{name}')}") + "\n"


def puts(one: Real, files: Mapping[str, str], subject: str = "docs(01): by hand") -> None:
    """Commit artifacts of the phase, all at once."""
    for name, text in files.items():
        file = one.root / normpath(f"{FOLDER}/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", subject)


def without(*names: str) -> list[Event]:
    return [event for event in BEFORE_SIGN_OFF if event.name not in names]


def test_twenty_thousand_commits_between_the_work_and_its_verdicts_change_nothing(
    tmp_path: Path,
) -> None:
    others = [Event("other/a.ts", (), "09-01", "other")] * MANY
    at = next(at for at, event in enumerate(BEFORE_SIGN_OFF) if event.name == "code-review.jsonl")
    phase = real(tmp_path, [*BEFORE_SIGN_OFF[:at], *others, *BEFORE_SIGN_OFF[at:]]).phase()
    assert turn_of(phase) == SIGNS_OFF


@pytest.mark.parametrize("department", [Dept.BACKEND, Dept.FRONTEND, Dept.UIUX])
def test_a_phase_of_one_department_is_signed_off_by_its_own_lead(
    tmp_path: Path, department: Dept
) -> None:
    ground = Ground((department,), is_one_number=False)
    one = committed(tmp_path / "work", ground, ground.whole(Random(0))[:-2], Random(7))
    assert turn_of(one.phase()) == (name_in(Role.LEAD, department), "signoff")


def test_a_verdict_that_goes_back_to_a_former_content_and_forward_again_is_the_one_in_force(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = text_of(one, "qa-code.jsonl")
    failed = json.dumps(json.loads(passed) | {"r": "FAIL"}) + "\n"
    for said, turn in ((failed, ("lead", "qa")), (passed, SIGNS_OFF)) * 2:
        puts(one, {"qa-code.jsonl": said})
        assert turn_of(one.phase()) == turn


@pytest.mark.parametrize("way", ["moved", "removed", "mode"])
def test_a_verdict_that_comes_back_as_it_was_has_judged_nothing_since(
    tmp_path: Path, way: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    path, aside = f"{FOLDER}/qa-code.jsonl", f"{FOLDER}/qa-code.before.txt"
    said = text_of(one, "qa-code.jsonl")
    if way == "moved":
        git(one.root, "mv", path, aside)
    elif way == "removed":
        git(one.root, "rm", "-q", path)
    if way != "mode":
        git(one.root, "commit", "-q", "-m", "chore: away")
        assert turn_of(one.phase()) == ("qa-code", "qa")
    puts(one, {"../../../backend/a.ts": "later\n"}, "fix(01-01): T1 do backend")
    others = ("code-review.jsonl", "verification.jsonl", "security-audit.jsonl")
    puts(one, {name: re.sub("202[6-9]", "2030", text_of(one, name)) for name in others})
    if way == "moved":
        git(one.root, "mv", aside, path)
    elif way == "removed":
        git(one.root, "checkout", "-q", one.commits[-1], "--", path)
    else:
        git(one.root, "update-index", "--chmod=+x", path)
    git(one.root, "commit", "-q", "-m", "chore: back")
    assert text_of(one, "qa-code.jsonl") == said
    phase = one.phase()
    assert turn_of(phase) == ("qa-code", "qa")
    (step,) = (each for each in phase.progress.departments[0].steps if each.step.key == "qa")
    assert "qa-code.jsonl is older than source of 01-01" in str(step.missing)
    puts(one, {"qa-code.jsonl": re.sub("202[6-9]", "2030", said)})
    assert turn_of(one.phase()) == SIGNS_OFF


def test_a_plan_that_goes_back_to_a_former_content_and_forward_again_is_verified_again(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    now = text_of(one, "01-01.plan.jsonl")
    for text in (now.replace("Login", "Log in"), now):
        puts(one, {"01-01.plan.jsonl": text})
        phase = one.phase()
        assert turn_of(phase) == ("qa", "qa")
        assert "is older than plan 01-01" in str(phase.progress.departments[0].steps)


def test_a_commit_that_names_no_plan_opens_the_verdicts_on_what_it_changed(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (plan, *_) = one.phase().facts.plans
    (one.root / "other.txt").write_text("nobody's\n")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "Fix typo")
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / min(plan.files)).write_text("by hand\n")
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "Fix typo")
    phase = one.phase()
    assert turn_of(phase) == ("senior", "code_review")
    assert f"older than source of {plan.id}" in str(phase.progress.departments[0].steps)


@pytest.mark.parametrize(
    "spelled", ["./{}", "{}/", " {}", "{folder}//{name}", "{folder}/*.ts", "{folder}/**"]
)
def test_a_plan_may_spell_its_files_as_agents_do(tmp_path: Path, spelled: str) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (plan, *_) = one.phase().facts.plans
    file = min(plan.files)
    folder, name = file.split("/")
    lines = [json.loads(line) for line in text_of(one, "01-01.plan.jsonl").splitlines()]
    lines[1]["f"] = [spelled.format(file, folder=folder, name=name)]
    verdicts = {
        each: text_of(one, each).replace("2026-01", "2026-04").replace("2026-02", "2026-04")
        for each in VERDICTS
    }
    puts(one, {"01-01.plan.jsonl": _lines(*lines)} | verdicts)
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / file).write_text("by hand\n")
    git(one.root, "commit", "-q", "-a", "-m", "Fix typo")
    assert turn_of(one.phase()) == ("senior", "code_review")


def test_a_commit_without_a_change_is_no_work(tmp_path: Path) -> None:
    """It opens no verdict, and mends nothing that a review has found."""
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (plan, *_) = one.phase().facts.plans
    git(one.root, "commit", "-q", "--allow-empty", "-m", f"fix({plan.id}): T1 do backend")
    assert turn_of(one.phase()) == SIGNS_OFF
    review = json.loads(text_of(one, "code-review.jsonl"))
    found = {"f": min(plan.files), "ln": 1, "sev": "minor", "issue": "a name", "sug": "another"}
    puts(one, {"code-review.jsonl": _lines(review | {"r": "changes_requested"}, found)})
    asked = turn_of(one.phase())
    assert asked == ("dev", "code_review")
    git(one.root, "commit", "-q", "--allow-empty", "-m", f"fix({plan.id}): T1 do backend")
    assert turn_of(one.phase()) == asked
    (one.root / min(plan.files)).write_text("mended\n")
    git(one.root, "commit", "-q", "-a", "-m", f"fix({plan.id}): T1 do backend")
    assert turn_of(one.phase()) != asked


def test_what_departments_hand_each_other_is_integrated_again_once_it_has_changed(
    tmp_path: Path,
) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND, Dept.UIUX), is_one_number=False)
    events = ground.whole(Random(0))
    one = committed(tmp_path / "work", ground, events, Random(7))
    assert one.phase().is_complete
    begun = len(events) - 1 - [event.name for event in events][::-1].index("state.json")
    one = committed(tmp_path / "open", ground, events[:begun], Random(7))
    contracts = text_of(one, "api-contracts.jsonl")
    puts(one, {"api-contracts.jsonl": contracts.replace("/auth/login", "/auth/sign-in")})
    (step,) = (each for each in one.phase().folded.steps if each.step.key == "integration_gate")
    assert "integration-gate-result.jsonl is older than api-contracts.jsonl" in str(step.missing)


def test_a_department_is_dropped_with_its_source_or_not_at_all(tmp_path: Path) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    whole = ground.whole(Random(0))
    worked = max(at for at, one in enumerate(whole) if one.name == ground.source(Dept.FRONTEND))
    needs_backend = {
        "type": "owner_review", "phase": "01", "departments_needed": ["backend"],
        "dispatch_order": ["backend"], "priorities": ["tokens"], "risks": [],
    }  # fmt: skip
    one = committed(tmp_path / "work", ground, whole[: worked + 1], Random(7))
    puts(one, {"owner-review.jsonl": json.dumps(needs_backend) + "\n"})

    def departments() -> list[Dept]:
        return [status.department for status in one.phase().progress.departments]

    assert departments() == [Dept.BACKEND, Dept.FRONTEND], "its source would ship unverified"
    git(one.root, "revert", "--no-edit", one.commits[worked])
    assert departments() == [Dept.BACKEND]


def test_a_department_whose_commits_name_no_task_is_not_dropped_either(tmp_path: Path) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    own = ("fe-architecture.toon", "fe-01-02.plan.jsonl", "fe-test-plan.jsonl")
    whole = ground.whole(Random(0))[:-2]
    events = [each for each in whole if each.department != Dept.FRONTEND or each.name in own]
    one = committed(tmp_path / "work", ground, events, Random(7))
    needs_backend = {
        "type": "owner_review", "phase": "01", "departments_needed": ["backend"],
        "dispatch_order": ["backend"], "priorities": ["tokens"], "risks": [],
    }  # fmt: skip
    puts(one, {"owner-review.jsonl": json.dumps(needs_backend) + "\n"})
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / "frontend").mkdir()
    puts(one, {"../../../frontend/a.ts": "form\n"}, "feat(01-02): the form")
    assert turn_of(one.phase()) == ("fe-dev", "implementation")
    git(one.root, "revert", "--no-edit", "HEAD")
    assert [each.department for each in one.phase().progress.departments] == [Dept.BACKEND]


@pytest.mark.parametrize("department", [Dept.BACKEND, Dept.FRONTEND])
def test_what_is_changed_after_a_fail_of_the_integration_gate_is_reviewed_verified_and_audited(
    tmp_path: Path, department: Dept
) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    whole = ground.whole(Random(0))
    passed = next(at for at, one in enumerate(whole) if one.name == "integration-gate-result.jsonl")
    found = {"check": "api", "detail": "wrong path", "file": ground.source(Dept.BACKEND)}
    gate = whole[passed]
    failed = gate._replace(lines=({**gate.lines[0], "r": "FAIL", "failures": [found]},))
    changed = [failed, ground.work(department)]
    events = [*whole[:passed], *changed, *whole[passed : passed + 2]]
    one = committed(tmp_path / "work", ground, events, Random(7))
    standing = standing_of(one.phase())
    assert {standing[f"{department} {step}"] for step in ("code_review", "qa", "security")} == {
        "running", "pending",
    }  # fmt: skip
    prefix = "fe-" if department is Dept.FRONTEND else ""
    agent, step = turn_of(one.phase()) or ("", "")
    assert (agent, step) == (f"{prefix}senior", "code_review")
    judged = [ground.event(kind, department) for kind in ("code-review.jsonl", *VERDICTS)]
    again = [*events[:-2], *judged]
    one = committed(tmp_path / "judged", ground, again, Random(7))
    assert turn_of(one.phase()) == ("integration-gate", "integration_gate")
    again = [*again, *events[-2:]]
    one = committed(tmp_path / "again", ground, again, Random(7))
    assert turn_of(one.phase()) == SIGNS_OFF


def test_a_repair_of_the_integration_that_is_reverted_is_asked_for_again(tmp_path: Path) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    whole = ground.whole(Random(0))
    passed = next(at for at, one in enumerate(whole) if one.name == "integration-gate-result.jsonl")
    found = {"check": "api", "detail": "wrong path", "file": ground.source(Dept.BACKEND)}
    gate = whole[passed]
    failed = gate._replace(lines=({**gate.lines[0], "r": "FAIL", "failures": [found]},))
    one = committed(tmp_path / "work", ground, [*whole[:passed], failed], Random(7))
    assert turn_of(one.phase()) == ("lead", "integration_gate")
    puts(one, {f"../../../{ground.source(Dept.BACKEND)}": "mended\n"}, "fix(01-01): T1 do backend")
    git(one.root, "revert", "--no-edit", "HEAD")
    names = ("code-review.jsonl", *VERDICTS)
    puts(one, {name: re.sub("202[6-9]", "2030", text_of(one, name)) for name in names})
    assert turn_of(one.phase()) == ("lead", "integration_gate")
    git(one.root, "revert", "--no-edit", "HEAD~1")
    puts(one, {name: re.sub("203[0-9]", "2031", text_of(one, name)) for name in names})
    assert turn_of(one.phase()) == ("integration-gate", "integration_gate")


@pytest.mark.parametrize("subject", ["fix(01-01): T1 do backend", "Fix typo"])
def test_source_that_mends_the_gate_after_the_sign_off_is_judged_before_the_next_one(
    tmp_path: Path, subject: str
) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    one = committed(tmp_path / "work", ground, ground.whole(Random(0)), Random(7))
    assert one.phase().is_complete
    gate = text_of(one, "integration-gate-result.jsonl")
    passed = json.loads(gate.splitlines()[-1])
    found = {"check": "api", "detail": "wrong path", "file": ground.source(Dept.BACKEND)}
    puts(one, {"integration-gate-result.jsonl": _lines(passed | FAILING | {"failures": [found]})})
    assert not one.phase().is_complete
    puts(one, {f"../../../{ground.source(Dept.BACKEND)}": "mended\n"}, subject)
    assert turn_of(one.phase()) == ("senior", "code_review")
    puts(one, {"integration-gate-result.jsonl": _lines(passed | {"dt": "2026-05-01"})})
    phase = one.phase()
    assert turn_of(phase) == ("senior", "code_review")


FAILING = {
    "r": "FAIL",
    "checks": {"api": "fail", "design": "pass", "handoffs": "pass", "tests": "pass"},
}


def test_a_gate_that_fails_after_the_sign_off_and_passes_as_it_is_opens_nothing(
    tmp_path: Path,
) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND), is_one_number=False)
    one = committed(tmp_path / "work", ground, ground.whole(Random(0)), Random(7))
    gate = text_of(one, "integration-gate-result.jsonl")
    passed = json.loads(gate.splitlines()[-1])
    found = {"check": "api", "detail": "wrong path", "file": ground.source(Dept.BACKEND)}
    puts(one, {"integration-gate-result.jsonl": _lines(passed | FAILING | {"failures": [found]})})
    puts(one, {"integration-gate-result.jsonl": _lines(passed | {"dt": "2026-05-01"})})
    assert one.phase().is_complete
    puts(one, {f"../../../{ground.source(Dept.FRONTEND)}": "later\n"}, "Fix typo")
    assert one.phase().is_complete


def test_a_commit_that_names_no_plan_opens_no_phase_that_was_squashed_when_it_was_done(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    (plan, *_) = one.phase().facts.plans
    root = git(one.root, "rev-list", "--max-parents=0", "main").strip()
    whole = git(one.root, "commit-tree", "main^{tree}", "-p", root, "-m", "Phase 1 (#1)").strip()
    git(one.root, "reset", "-q", "--hard", whole)
    assert one.phase().is_complete
    (one.root / min(plan.files)).write_text("by hand\n")
    git(one.root, "commit", "-q", "-a", "-m", "Fix typo")
    assert one.phase().is_complete


def test_a_verdict_on_a_branch_that_is_not_merged_judges_nothing_until_it_is(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    verdict = text_of(one, "qa-code.jsonl")
    git(one.root, "checkout", "-q", "-b", "base", "main")
    git(one.root, "rm", "-q", f"{FOLDER}/qa-code.jsonl")
    git(one.root, "commit", "-q", "-m", "chore: without a verdict")
    git(one.root, "checkout", "-q", "-b", "side")
    puts(one, {"qa-code.jsonl": verdict})
    assert turn_of(one.phase("base")) == ("qa-code", "qa")
    assert turn_of(one.phase("side")) == SIGNS_OFF
    git(one.root, "checkout", "-q", "base")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert turn_of(one.phase("base")) == SIGNS_OFF


def judges_again(one: Real, year: str) -> None:
    """Give each verdict of `main` anew, in a year that none was given in."""
    judged = {name: text_of(one, name) for name in ("code-review.jsonl", *VERDICTS)}
    puts(one, {name: re.sub("202[6-9]", year, text) for name, text in judged.items()})


def leaves_to_branch(one: Real) -> None:
    """Leave the whole history to a branch `work`; `main` begins."""
    git(one.root, "branch", "work")
    git(one.root, "reset", "-q", "--hard", "begin")


def merges(one: Real, branch: str, *how: str) -> None:
    """Merge `branch` into `main` as a pull request does, which has gone on meanwhile."""
    git(one.root, "checkout", "-q", "main")
    puts(one, {"../../../README.md": "of main\n"}, "chore: elsewhere")
    git(one.root, "merge", "-q", "--no-ff", "-m", f"Merge {branch}", *how, branch)


@pytest.mark.parametrize("what", ["../../../backend/a.ts", "01-01.plan.jsonl"])
def test_a_pull_request_hides_nothing_that_came_after_its_verdicts(
    tmp_path: Path, what: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    leaves_to_branch(one)
    git(one.root, "checkout", "-q", "work")
    subject = "fix(01-01): T1 a hurry" if what.endswith(".ts") else "docs(01): plan 01-01"
    puts(one, {what: text_of(one, what, "work").replace("Green", "Red") + "\n"}, subject)
    turn = turn_of(one.phase("work"))
    assert turn in (REVIEWS, ("qa", "qa"))
    merges(one, "work")
    assert turn_of(one.phase()) == turn
    judges_again(one, "2027")
    assert turn_of(one.phase()) == SIGNS_OFF


def fixes(one: Real) -> None:
    """Change the source that was judged, as a later repair does."""
    puts(one, {"../../../backend/a.ts": "in a hurry\n"}, "fix(01-01): T1 a hurry")


@pytest.mark.parametrize("into", ["of the source", "of the verdicts"])
def test_verdicts_of_a_branch_have_not_judged_what_it_did_not_have(
    tmp_path: Path, into: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    git(one.root, "branch", "work")
    if into == "of the source":
        git(one.root, "checkout", "-q", "work")
    judges_again(one, "2027")
    git(one.root, "checkout", "-q", "main" if into == "of the source" else "work")
    fixes(one)
    git(one.root, "checkout", "-q", "main")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge work", "work")
    assert turn_of(one.phase()) == REVIEWS
    judges_again(one, "2028")
    assert turn_of(one.phase()) == SIGNS_OFF


@pytest.mark.parametrize("into", ["main", "work"])
@pytest.mark.parametrize("name", JUDGED)
def test_verdicts_stand_beside_a_change_as_if_it_had_come_after_them(
    tmp_path: Path, name: str, into: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    lines = text_of(one, name).splitlines()
    changed = "".join(f"{re.sub('^{', '{ ', line)}\n" for line in lines) + "\n" * (name[-1] != "l")
    git(one.root, "checkout", "-q", "-b", "work")
    judges_again(one, "2027")
    git(one.root, "checkout", "-q", "-b", "line")
    for branch in ("line", "main"):
        git(one.root, "checkout", "-q", branch)
        puts(one, {name: changed}, "fix(01-01): T1 a hurry")
    git(one.root, "checkout", "-q", into)
    other = "work" if into == "main" else "main"
    git(one.root, "merge", "-q", "--no-ff", "-m", f"Merge {other}", other)
    assert turn_of(one.phase("line")) != SIGNS_OFF
    assert standing_of(one.phase(into)) == standing_of(one.phase("line"))


def test_verdicts_of_a_branch_that_took_the_source_in_have_judged_it(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    git(one.root, "branch", "work")
    fixes(one)
    git(one.root, "checkout", "-q", "work")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge main", "main")
    judges_again(one, "2027")
    merges(one, "work")
    assert turn_of(one.phase()) == SIGNS_OFF


def test_verdicts_of_a_branch_of_a_branch_have_not_judged_what_that_did_not_have(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    git(one.root, "checkout", "-q", "-b", "work")
    git(one.root, "branch", "qa")
    fixes(one)
    git(one.root, "checkout", "-q", "qa")
    judges_again(one, "2027")
    git(one.root, "checkout", "-q", "work")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge qa", "qa")
    merges(one, "work")
    assert turn_of(one.phase()) == REVIEWS


def test_a_task_that_a_merge_brings_after_its_revert_is_done(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    done = git(one.root, "log", "-1", "--format=%s", "--grep=01-01.: T1", "main").strip()
    git(one.root, "checkout", "-q", "-b", "again")
    fixes(one)
    git(one.root, "checkout", "-q", "main")
    for at in range(3):
        puts(one, {"../../../README.md": f"{at}\n"}, "chore: elsewhere")
    puts(one, {"../../../README.md": "reverted\n"}, f'Revert "{done}"')
    assert one.phase().facts.undone
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge again", "again")
    assert not one.phase().facts.undone


def test_a_sign_off_on_a_branch_signs_nothing_that_the_branch_did_not_have(tmp_path: Path) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    leaves_to_branch(one)
    git(one.root, "reset", "-q", "--hard", "work~2")
    fixes(one)
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge work", "work")
    phase = one.phase()
    assert phase.is_complete
    assert [each.what for each in phase.changed_after_sign_off] == ["01-01"]


@pytest.mark.parametrize("subject", ["Merge work", "feat(01-01): T1 do backend", "chore: merge"])
def test_a_pull_request_opens_nothing_whatever_it_is_called(tmp_path: Path, subject: str) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    leaves_to_branch(one)
    merges(one, "work")
    git(one.root, "commit", "-q", "--amend", "-m", subject)
    assert turn_of(one.phase()) == SIGNS_OFF
    assert standing_of(one.phase()) == standing_of(one.phase("work"))


def test_what_a_merge_makes_itself_is_judged_again(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    leaves_to_branch(one)
    merges(one, "work", "--no-commit")
    (one.root / "backend/a.ts").write_text("neither side had this\n")
    git(one.root, "commit", "-q", "-a", "-m", "Merge work")
    assert turn_of(one.phase()) == REVIEWS


def test_a_merge_that_takes_an_older_content_of_a_file_is_judged_again(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    older = text_of(one, "../../../backend/a.ts")
    git(one.root, "branch", "work")
    puts(one, {"../../../backend/a.ts": "mended\n"}, "fix(01-01): T1 mend it")
    judges_again(one, "2027")
    assert turn_of(one.phase()) == SIGNS_OFF
    git(one.root, "checkout", "-q", "work")
    puts(one, {"../../../docs.md": "of work\n"}, "chore: docs")
    merges(one, "work", "--no-commit")
    (one.root / "backend/a.ts").write_text(older)
    git(one.root, "commit", "-q", "-a", "-m", "Merge work")
    assert turn_of(one.phase()) == REVIEWS


@pytest.mark.parametrize("is_merged", [False, True])
def test_a_fix_is_one_whether_it_was_begun_before_the_fail_or_not(
    tmp_path: Path, is_merged: bool
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    git(one.root, "branch", "side", "main~5")
    failed = text_of(one, "qa-code.jsonl").replace('"PASS"', '"FAIL"')
    puts(one, {"qa-code.jsonl": failed})
    assert turn_of(one.phase()) == ("lead", "qa")
    if is_merged:
        git(one.root, "checkout", "-q", "side")
    puts(one, {"../../../backend/a.ts": "mended\n"}, "fix(01-01): T1 mend it")
    if is_merged:
        merges(one, "side")
    assert turn_of(one.phase()) == ("qa-code", "qa")


def test_a_branch_that_takes_the_main_line_in_before_it_is_merged_is_as_it_was(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    leaves_to_branch(one)
    puts(one, {"../../../shop.ts": "of main\n"}, "feat: another team")
    git(one.root, "checkout", "-q", "work")
    git(one.root, "merge", "-q", "-m", "Merge main into work", "main")
    assert turn_of(one.phase("work")) == SIGNS_OFF
    puts(one, {"../../../backend/a.ts": "later\n"}, "fix(01-01): T1 later")
    git(one.root, "merge", "-q", "-m", "Merge main again", "--no-ff", "main")
    assert turn_of(one.phase("work")) == REVIEWS
    merges(one, "work")
    assert turn_of(one.phase()) == REVIEWS


@pytest.mark.parametrize("name", ["api-contracts", "design-handoff", "component-specs"])
def test_what_departments_hand_each_other_and_nobody_can_read_is_asked_for_itself(
    tmp_path: Path, name: str
) -> None:
    ground = Ground((Dept.BACKEND, Dept.FRONTEND, Dept.UIUX), is_one_number=False)
    one = committed(tmp_path / "work", ground, ground.whole(Random(0))[:-2], Random(7))
    assert turn_of(one.phase()) == SIGNS_OFF
    puts(one, {f"{name}.jsonl": "{}\n"})
    phase = one.phase()
    gate = next(each for each in phase.gates if each.name == "integration")
    assert gate.missing[0].file == f"{name}.jsonl"
    assert gate.missing[0].what == f"{name}.jsonl is on the branch and cannot be read"
    asked = phase.progress.next
    assert asked is not None and asked.inputs == (f"{name}.jsonl",)


def merge_what_was_squashed(one: Real) -> None:
    """Squash the phase to `base`, and merge its branch for real."""
    git(one.root, "checkout", "-q", "-b", "base", "begin")
    git(one.root, "merge", "-q", "--squash", "main")
    git(one.root, "commit", "-q", "-m", "Login (#1)")
    git(one.root, "merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge main", "main")


@pytest.mark.parametrize("failed_before", [(), ("qa-code.jsonl",)])
def test_a_branch_that_is_merged_after_its_squash_opens_nothing(
    tmp_path: Path, failed_before: Sequence[str]
) -> None:
    verdicts = [event for event in BEFORE_SIGN_OFF if event.name in failed_before]
    failed = [event._replace(lines=({**event.lines[0], "r": "FAIL"},)) for event in verdicts]
    one = real(tmp_path, [*failed, *BEFORE_SIGN_OFF])
    assert turn_of(one.phase()) == SIGNS_OFF
    merge_what_was_squashed(one)
    assert turn_of(one.phase("base")) == SIGNS_OFF


def test_a_branch_whose_first_half_was_squashed_is_merged_with_its_second_and_opens_nothing(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    summary = next(oid for oid, event in one.made if event.name.endswith("summary.jsonl"))
    git(one.root, "checkout", "-q", "-b", "base", "begin")
    git(one.root, "merge", "-q", "--squash", summary)
    git(one.root, "commit", "-q", "-m", "Login, first half (#1)")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge pull request #2", "main")
    assert turn_of(one.phase("base")) == SIGNS_OFF


@pytest.mark.parametrize("how", ["merged", "squashed"])
def test_a_signed_off_phase_is_so_again_once_the_revert_of_its_pull_request_is_reverted(
    tmp_path: Path, how: str
) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    leaves_to_branch(one)
    merges(one, "work")
    if how == "squashed":
        tree, first = git(one.root, "rev-parse", "main^{tree}", "main^1").split()
        squash = git(one.root, "commit-tree", tree, "-p", first, "-m", "Login (#1)")
        git(one.root, "reset", "-q", "--hard", squash)
    assert one.phase().is_complete
    git(one.root, "revert", "--no-edit", *(("-m", "1") if how == "merged" else ()), "HEAD")
    git(one.root, "revert", "--no-edit", "HEAD")
    assert one.phase().is_complete
    puts(one, {"01-01.plan.jsonl": text_of(one, "01-01.plan.jsonl").replace("Green", "Red")})
    assert not one.phase().is_complete


def test_a_sign_off_that_stands_again_signs_what_was_changed_in_between_for_nobody(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    git(one.root, "revert", "--no-edit", "HEAD~1")
    revert = git(one.root, "rev-parse", "HEAD").strip()
    puts(one, {"../../../backend/a.ts": "other\n"}, "fix(01-01): T1 do backend")
    git(one.root, "revert", "--no-edit", revert)
    assert turn_of(one.phase()) == ("senior", "code_review")


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_that_was_given_after_a_sign_off_is_not_unsaid_by_what_was_signed(
    tmp_path: Path, name: str
) -> None:
    one = real(tmp_path, GROUND.whole(Random(0)))
    signed = text_of(one, name)
    puts(one, {name: signed.replace('"PASS"', '"FAIL"').replace('"pass"', '"fail"')})
    assert not one.phase().is_complete
    puts(one, {name: signed})
    assert not one.phase().is_complete


def test_a_partial_clone_that_has_all_trees_knows_what_a_merge_changed(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    merge_what_was_squashed(one)
    git(one.root, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    told = ("--branch=base", "--filter=blob:none", f"file://{one.root}", str(clone))
    git(one.root, "clone", "-q", *told)
    assert turn_of(one.phase("HEAD", clone)) == SIGNS_OFF


def test_a_merge_of_verdicts_that_the_branch_had_judges_nothing_since(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    texts = {name: text_of(one, name) for name in VERDICTS}
    git(one.root, "checkout", "-q", "-b", "qa", "main")
    git(one.root, "rm", "-q", *(f"{FOLDER}/{name}" for name in VERDICTS))
    git(one.root, "commit", "-q", "-m", "chore: without verdicts")
    git(one.root, "branch", "base")
    puts(one, texts)
    git(one.root, "checkout", "-q", "base")
    git(one.root, "merge", "-q", "--squash", "qa")
    git(one.root, "commit", "-q", "-m", "QA (#2)")
    assert turn_of(one.phase("base")) == SIGNS_OFF
    plan = text_of(one, "01-01.plan.jsonl")
    puts(one, {"01-01.plan.jsonl": plan.replace("Green", "All green")})
    assert turn_of(one.phase("base")) == ("qa", "qa")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge qa", "qa")
    assert turn_of(one.phase("base")) == ("qa", "qa")


def test_a_fail_that_was_taken_back_on_the_way_to_a_merge_was_given(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    git(one.root, "checkout", "-q", "-b", "side", "main")
    puts(one, {"qa-code.jsonl": text_of(one, "qa-code.jsonl").replace('"PASS"', '"FAIL"')})
    git(one.root, "revert", "--no-edit", "HEAD")
    git(one.root, "checkout", "-q", "main")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert turn_of(one.phase()) != SIGNS_OFF


def renames_the_phase(one: Real, slug: str = "login", folder: str = FOLDER) -> str:
    """Move the folder of the phase, in one commit; return the new one."""
    new = f"{folder.rpartition('-')[0]}-{slug}"
    git(one.root, "mv", folder, new)
    git(one.root, "commit", "-q", "-m", "chore: a better name")
    return new


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("many", [0, 60])
def test_a_phase_that_is_renamed_is_where_it_was(
    tmp_path: Path, many: int, is_merged: bool
) -> None:
    events = GROUND.whole(Random(0))
    audit = next(one for one in events if one.name == "security-audit.jsonl")
    for till, name in ((len(events), "whole"), (-2, "open"), (-3, "audit"), (-6, "review")):
        one = committed(tmp_path / name, GROUND, [*[audit] * many, *events[:till]], Random(7))
        before = one.phase()
        if is_merged:
            git(one.root, "checkout", "-q", "-b", "side")
            renames_the_phase(one)
            git(one.root, "checkout", "-q", "main")
            git(one.root, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
        else:
            renames_the_phase(one)
        after = one.phase()
        assert str(after.id) == "01-login"
        assert (turn_of(after), standing_of(after)) == (turn_of(before), standing_of(before))
        renames_the_phase(one, "auth", f"{PLANNING}/phases/01-login")
        again = one.phase()
        assert (turn_of(again), standing_of(again)) == (turn_of(before), standing_of(before))


def test_what_is_changed_as_it_is_moved_is_judged_again_and_no_fail_is_forgotten(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    plan, audit = (text_of(one, name) for name in ("01-01.plan.jsonl", "security-audit.jsonl"))
    git(one.root, "mv", FOLDER, f"{PLANNING}/phases/01-login")
    changed = one.root / f"{PLANNING}/phases/01-login/01-01.plan.jsonl"
    changed.write_text(plan.replace("Green", "All green"))
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "chore: a better name")
    assert turn_of(one.phase()) == ("qa", "qa")
    one = committed(tmp_path / "failed", GROUND, BEFORE_SIGN_OFF, Random(7))
    puts(one, {"security-audit.jsonl": audit.replace('"PASS"', '"FAIL"')})
    git(one.root, "mv", FOLDER, f"{PLANNING}/phases/01-login")
    (one.root / f"{PLANNING}/phases/01-login/security-audit.jsonl").write_text(audit)
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "chore: a better name")
    assert turn_of(one.phase()) == ("user", "security")


@pytest.mark.parametrize("is_one_commit", [False, True])
def test_a_fail_that_is_removed_is_not_unsaid_by_renaming_the_phase(
    tmp_path: Path, is_one_commit: bool
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    puts(one, {"test-results.jsonl": failing(text_of(one, "test-results.jsonl"))})
    git(one.root, "rm", "-q", f"{FOLDER}/test-results.jsonl")
    if not is_one_commit:
        git(one.root, "commit", "-q", "-m", "chore: tidy")
    renames_the_phase(one)
    phase = one.phase()
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any("tests of plan 01-01 fail and was withdrawn" in lack for lack in lacks), lacks


def test_verdicts_of_one_commit_each_judge_what_came_before_it(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    texts = {name: text_of(one, name) for name in VERDICTS}
    (one.root / "backend/a.ts").write_text("export const later = 1\n")
    git(one.root, "commit", "-qam", "fix(01-01): later")
    reviewed = text_of(one, "code-review.jsonl")
    said = reviewed.replace("approve", "changes_requested") + reviewed.replace(
        '"cycle": 2', '"cycle": 3'
    )
    later = {name: text.replace("2026-01", "2026-03") for name, text in texts.items()}
    puts(one, {"code-review.jsonl": said} | later)
    assert turn_of(one.phase()) == SIGNS_OFF


@pytest.mark.parametrize(
    "decision",
    [
        {"agent": "lead", "kind": "accept", "of": "01-99"},
        {"agent": "lead", "kind": "assign", "of": "01-99/T1", "task": "01-99/T1"},
        {"agent": "wizard", "kind": "accept", "of": "01-01"},
        {"agent": "fe-lead", "kind": "accept", "of": "01-01"},
    ],
    ids=str,
)
def test_a_decision_about_no_plan_or_of_no_role_decides_nothing(
    tmp_path: Path, decision: dict[str, Any]
) -> None:
    one = real(tmp_path, without("docs.jsonl", *VERDICTS))
    review = json.loads(text_of(one, "code-review.jsonl"))
    found = {"f": "backend/a.ts", "ln": 1, "sev": "major", "issue": "lost", "sug": "throw"}
    puts(one, {"code-review.jsonl": _lines(review | {"r": "changes_requested", "cycle": 1}, found)})
    before = one.phase()
    said = {"ts": "2026-02-20T10:00:00Z", "dec": "as it is", "reason": "rare"}
    puts(one, {"decisions.jsonl": _lines(said | decision)})
    after = one.phase()
    assert (standing_of(after), turn_of(after)) == (standing_of(before), turn_of(before))
    assert turn_of(after) == ("lead", "code_review")
    accepted = {"agent": "lead", "kind": "accept", "of": "01-01"}
    puts(one, {"decisions.jsonl": _lines(said | accepted)})
    assert turn_of(one.phase()) == ("qa", "qa")


def test_a_decision_of_no_kind_cannot_be_read_so_it_holds_and_is_told(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    said = {"ts": "2026-02-20T10:00:00Z", "dec": "as it is", "reason": "rare"}
    puts(
        one, {"decisions.jsonl": _lines(said | {"agent": "lead", "kind": "banish", "of": "01-01"})}
    )
    phase = one.phase()
    assert turn_of(phase) != SIGNS_OFF
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any("decisions.jsonl is on the branch and cannot be read" in lack for lack in lacks), (
        lacks
    )


def failing(text: str) -> str:
    """Return test results in which every test of the last plan fails."""
    *rest, last = (json.loads(line) for line in text.splitlines())
    tasks = [{**task, "ps": 0, "fl": task["ps"] + task["fl"]} for task in last["tasks"]]
    return _lines(*rest, {**last, "ps": 0, "fl": last["ps"] + last["fl"], "tasks": tasks})


EXAMPLES_OF = Path(__file__).parents[2] / "fixtures/examples/artifacts"


def example(name: str) -> str:
    return (EXAMPLES_OF / name).read_text()


AGAINST = {
    "escalation.jsonl": (
        lambda _: example("escalation/ok/two_tasks.jsonl"),
        "is open and was withdrawn",
        ("user", "implementation"),
    ),
    "test-results.jsonl": (
        failing,
        "tests of plan 01-01 fail and was withdrawn",
        ("dev", "implementation"),
    ),
    ".qa-gate-results.jsonl": (
        lambda _: _lines(
            {
                **json.loads(example("qa-gate-results/ok/three_levels.jsonl").splitlines()[-1]),
                "r": "FAIL",
            }
        ),
        ".qa-gate-results.jsonl said FAIL and was withdrawn",
        ("lead", "qa"),
    ),
    "owner-signoff.jsonl": (
        lambda _: example("owner-signoff/ok/hold_then_ship.jsonl").splitlines()[0] + "\n",
        "owner-signoff.jsonl said HOLD and was withdrawn",
        ("owner", "signoff"),
    ),
}


@pytest.mark.parametrize("name", AGAINST)
def test_what_spoke_against_a_phase_is_not_unsaid_by_removing_it(tmp_path: Path, name: str) -> None:
    said, told, turn = AGAINST[name]
    one = real(tmp_path, BEFORE_SIGN_OFF)
    known = git(one.root, "show", f"main:{FOLDER}/{name}", check=False)
    puts(one, {name: said(known)})
    held = one.phase()
    assert turn_of(held) != SIGNS_OFF
    assert [artifact.place.name for artifact in held.facts.committed if not artifact.valid] == []
    git(one.root, "rm", "-q", f"{FOLDER}/{name}")
    git(one.root, "commit", "-q", "-m", "chore: tidy")
    phase = one.phase()
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any(told in lack for lack in lacks), lacks
    assert turn_of(phase) == turn
    git(one.root, "revert", "--no-edit", "HEAD")
    assert (turn_of(one.phase()), standing_of(one.phase())) == (turn_of(held), standing_of(held))


FORMER = {
    "escalation.jsonl": example("escalation/ok/whole_round_trip.jsonl"),
    ".qa-gate-results.jsonl": example("qa-gate-results/ok/three_levels.jsonl").splitlines()[-1],
    "owner-signoff.jsonl": example("owner-signoff/ok/hold_then_ship.jsonl").splitlines()[-1],
}


@pytest.mark.parametrize("name", AGAINST)
def test_what_spoke_against_a_phase_is_not_unsaid_by_a_revert_to_what_was_said_before(
    tmp_path: Path, name: str
) -> None:
    said, told, turn = AGAINST[name]
    one = real(tmp_path, BEFORE_SIGN_OFF)
    if name in FORMER:
        puts(one, {name: f"{FORMER[name].rstrip()}\n"})
    assert turn_of(one.phase()) == SIGNS_OFF
    puts(one, {name: said(git(one.root, "show", f"main:{FOLDER}/{name}"))})
    held = one.phase()
    git(one.root, "revert", "--no-edit", "HEAD")
    phase = one.phase()
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any(told in lack for lack in lacks), lacks
    assert turn_of(phase) == turn
    git(one.root, "revert", "--no-edit", "HEAD")
    assert (turn_of(one.phase()), standing_of(one.phase())) == (turn_of(held), standing_of(held))


@pytest.mark.parametrize("strategy", [("-s", "ours"), ("-X", "ours")])
@pytest.mark.parametrize("name", AGAINST)
def test_what_spoke_against_a_phase_is_not_unsaid_by_a_merge_that_drops_it(
    tmp_path: Path, name: str, strategy: Sequence[str]
) -> None:
    said, told, turn = AGAINST[name]
    one = real(tmp_path, BEFORE_SIGN_OFF)
    if name in FORMER:
        puts(one, {name: f"{FORMER[name].rstrip()}\n"})
    known = text_of(one, name)
    git(one.root, "checkout", "-q", "-b", "side")
    puts(one, {name: said(known.rstrip())})
    git(one.root, "checkout", "-q", "main")
    if "-X" in strategy:
        for text in (known.rstrip() + " \n", known.rstrip() + "\t\n"):
            puts(one, {name: text})
    assert turn_of(one.phase()) == SIGNS_OFF
    git(one.root, "merge", "-q", "--no-ff", *strategy, "-m", "Merge side", "side")
    phase = one.phase()
    lacks = [lack for step in phase.progress.every_step for lack in step.missing]
    assert any(told in lack for lack in lacks), lacks
    assert turn_of(phase) == turn
    puts(one, {name: known.rstrip() + "  \n"})
    assert turn_of(one.phase()) == SIGNS_OFF


def test_a_hold_that_was_answered_after_its_squash_is_not_raised_by_the_merge_of_its_branch(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    hold, ship = example("owner-signoff/ok/hold_then_ship.jsonl").splitlines()
    git(one.root, "checkout", "-q", "-b", "side")
    puts(one, {"owner-signoff.jsonl": f"{hold}\n"})
    git(one.root, "checkout", "-q", "main")
    git(one.root, "merge", "-q", "--squash", "side")
    git(one.root, "commit", "-q", "-m", "Hold (#3)")
    puts(one, {"owner-signoff.jsonl": f"{hold}\n{ship}\n"})
    assert turn_of(one.phase()) == SIGNS_OFF
    git(one.root, "merge", "-q", "--no-ff", "-X", "ours", "-m", "Merge side", "side")
    assert turn_of(one.phase()) == SIGNS_OFF


def test_what_was_answered_before_it_was_removed_holds_nothing(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    puts(one, {"escalation.jsonl": example("escalation/ok/whole_round_trip.jsonl")})
    assert turn_of(one.phase()) == SIGNS_OFF
    git(one.root, "rm", "-q", f"{FOLDER}/escalation.jsonl")
    git(one.root, "commit", "-q", "-m", "chore: tidy")
    assert turn_of(one.phase()) == SIGNS_OFF


@pytest.mark.parametrize(
    "subject", ["Fix typo", "feat(09-01): T1 elsewhere", "docs(01): code review 01-01"]
)
def test_a_sign_off_by_hand_covers_no_change_that_nobody_judged(
    tmp_path: Path, subject: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (plan, *_) = one.phase().facts.plans
    (one.root / min(plan.files)).write_text("by hand\n")
    git(one.root, "commit", "-q", "-a", "-m", subject)
    for event in GROUND.whole(Random(0))[-2:]:
        path = one.root / path_of(event)
        path.write_text(content_of(event, 99, {}))
        git(one.root, "add", "-A")
        git(one.root, "commit", "-q", "-m", subject_of(event))
    phase = one.phase()
    assert not phase.is_complete
    assert turn_of(phase) == ("senior", "code_review")


@pytest.mark.parametrize("is_amended", [False, True])
@pytest.mark.parametrize("subject", ["docs(01): docs", "fix(01-01): T1 do backend", "Fix typo"])
def test_source_in_a_commit_with_our_trailers_is_source(
    tmp_path: Path, subject: str, is_amended: bool
) -> None:
    """An amend of an artifact's commit keeps its message, and may add anything."""
    one = real(tmp_path, BEFORE_SIGN_OFF)
    message = f"{subject}\n\nYolo-Artifact: docs"
    puts(one, {"docs.jsonl": text_of(one, "docs.jsonl") * 2}, message)
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / "backend/a.ts").write_text("export const unseen = 1\n")
    how = ("--amend", "--no-edit") if is_amended else ("-m", message)
    git(one.root, "commit", "-q", "-a", *how)
    assert turn_of(one.phase()) == ("senior", "code_review")


def test_a_state_that_says_complete_covers_no_change_that_nobody_judged_before_it(
    tmp_path: Path,
) -> None:
    """A squash leaves such a state without the subject of a sign-off."""
    one = real(tmp_path, BEFORE_SIGN_OFF)
    (one.root / "backend/a.ts").write_text("by hand\n")
    git(one.root, "commit", "-q", "-a", "-m", "Fix typo")
    for event in GROUND.whole(Random(0))[-2:]:
        (one.root / path_of(event)).write_text(content_of(event, 99, {}))
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "docs: update")
    assert turn_of(one.phase()) == ("senior", "code_review")


def with_files(one: Real, *files: str) -> None:
    """Let the plan name these files, too, and judge it again."""
    header, task = (json.loads(line) for line in text_of(one, "01-01.plan.jsonl").splitlines())
    task["f"] = [*task["f"], *files]
    verdicts = {
        each: text_of(one, each).replace("2026-01", "2026-04").replace("2026-02", "2026-04")
        for each in VERDICTS
    }
    puts(one, {"01-01.plan.jsonl": _lines(header, task)} | verdicts)


@pytest.mark.parametrize("is_dropped_first", [False, True])
def test_what_a_plan_once_named_and_its_work_made_stays_judged(
    tmp_path: Path, is_dropped_first: bool
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    with_files(one, "backend/b.ts", "docs/c.md")
    puts(one, {"../../../backend/b.ts": "b\n"}, "feat(01-01): T1 do backend")
    judges_again(one, "2027")
    assert turn_of(one.phase()) == SIGNS_OFF

    def drops() -> None:
        header, task = map(json.loads, text_of(one, "01-01.plan.jsonl").splitlines())
        plan = {"01-01.plan.jsonl": _lines(header, {**task, "f": ["backend/a.ts"]})}
        puts(one, plan | {name: text_of(one, name).replace("2027", "2028") for name in VERDICTS})
        assert turn_of(one.phase()) == (SIGNS_OFF if is_dropped_first else REVIEWS)

    if is_dropped_first:
        drops()
    puts(one, {"../../../backend/b.ts": "by hand\n"}, "Fix typo")
    if not is_dropped_first:
        drops()
    assert turn_of(one.phase()) == REVIEWS
    judges_again(one, "2029")
    puts(one, {"../../../docs/c.md": "nobody's\n"}, "Fix typo")
    assert turn_of(one.phase()) == SIGNS_OFF


def test_tests_that_the_test_plan_names_no_more_stay_judged_and_so_does_the_test_plan(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    tests = json.loads(text_of(one, "test-plan.jsonl"))
    (file,) = tests["tf"]
    (one.root / file).parent.mkdir(parents=True)
    puts(one, {f"../../../{file}": "test\n"}, "test(01-01): red")
    judges_again(one, "2027")
    assert turn_of(one.phase()) == SIGNS_OFF
    puts(one, {"test-plan.jsonl": _lines({**tests, "tf": ["tests/other.test.ts"]})})
    assert turn_of(one.phase()) == ("qa", "qa")
    puts(one, {f"../../../{file}": "weaker\n"}, "Fix typo")
    assert turn_of(one.phase()) == REVIEWS


@pytest.mark.parametrize("is_planned", [False, True])
def test_source_of_a_plan_that_is_not_there_is_verified_and_audited(
    tmp_path: Path, is_planned: bool
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    header, task = map(json.loads, text_of(one, "01-01.plan.jsonl").splitlines())
    plan = _lines({**header, "n": "02"}, {**task, "f": ["backend/b.ts"]})
    if is_planned:
        puts(one, {"01-02.plan.jsonl": plan})
    puts(one, {"../../../backend/b.ts": "b\n"}, "feat(01-02): T1 do more")
    if is_planned:
        git(one.root, "rm", "-q", f"{FOLDER}/01-02.plan.jsonl")
        git(one.root, "commit", "-q", "-m", "chore: tidy")
    phase = one.phase()
    assert turn_of(phase) == ("qa", "qa")
    assert "older than source of 01-02" in str(phase.progress.departments[0].steps)
    puts(one, {name: text_of(one, name).replace("2026", "2027") for name in VERDICTS})
    assert turn_of(one.phase()) == SIGNS_OFF


def test_a_submodule_that_status_ignores_is_source(tmp_path: Path) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    with_files(one, "vendor/lib")
    ignored = '[submodule "lib"]\n\tpath = vendor/lib\n\turl = ../lib\n\tignore = all\n'
    (one.root / ".gitmodules").write_text(ignored)
    git(one.root, "branch", "side")
    git(one.root, "add", ".gitmodules")
    entry = f"160000,{one.commits[0]},vendor/lib"
    git(one.root, "update-index", "--add", "--cacheinfo", entry)
    git(one.root, "commit", "-q", "-m", "Bump lib")
    git(one.root, "checkout", "-q", "side")
    git(one.root, "commit", "-q", "--allow-empty", "-m", "chore: nothing")
    git(one.root, "checkout", "-q", "main")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    assert turn_of(one.phase()) == ("senior", "code_review")


def test_a_file_of_a_plan_below_the_planning_root_that_is_no_artifact_is_source(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    with_files(one, f"{PLANNING}/mock/form.html")
    assert turn_of(one.phase()) == SIGNS_OFF
    (one.root / PLANNING / "mock").mkdir()
    puts(one, {"../../mock/form.html": "<form>\n"}, "Fix typo")
    assert turn_of(one.phase()) == ("senior", "code_review")


def test_a_state_of_a_later_phase_signs_off_what_a_squash_brought_with_it(tmp_path: Path) -> None:
    """Of two squashes, one has the phase complete, and the other what was signed off again."""
    one = real(tmp_path, BEFORE_SIGN_OFF)
    state, roadmap = GROUND.whole(Random(0))[-2:]
    for event in (state, roadmap):
        (one.root / path_of(event)).write_text(content_of(event, 99, {}))
    git(one.root, "add", "-A")
    git(one.root, "commit", "-q", "-m", "feat(app): login (#12)")
    assert one.phase().is_complete
    path = one.root / path_of(state)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ph": 2, "st": "planning"}) + "\n")
    again = text_of(one, "code-review.jsonl").replace("99", "98") + "\n"
    puts(one, {"code-review.jsonl": again}, "feat(app): login (#13)")
    assert one.phase().is_complete, turn_of(one.phase())


def _lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


FINDING = {"f": "backend/a.ts", "ln": 1, "sev": "minor", "issue": "a name", "sug": "another"}
REFUSED: Mapping[str, Sequence[Mapping[str, object]]] = {
    "code-review.jsonl": ({"r": "changes_requested", "cycle": 2}, FINDING),
    "qa-code.jsonl": ({"r": "FAIL"},),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_repair_that_is_reverted_repairs_nothing_until_its_revert_is_reverted(
    tmp_path: Path, name: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = json.loads(text_of(one, name).splitlines()[0])
    changed, *findings = REFUSED[name]
    puts(one, {name: _lines(passed | changed, *findings)})
    refused = turn_of(one.phase())
    puts(one, {"../../../backend/a.ts": "mended\n"}, "fix(01-01): T1 do backend")
    repaired = turn_of(one.phase())
    assert refused != repaired
    for turn in (refused, repaired, refused):
        git(one.root, "revert", "--no-edit", "HEAD")
        assert turn_of(one.phase()) == turn


@pytest.mark.parametrize("subject", ["fix(01-01): T1 do backend", "chore: mend it"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_repair_that_came_by_a_merge_repairs_nothing_once_the_merge_is_reverted(
    tmp_path: Path, name: str, subject: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = json.loads(text_of(one, name).splitlines()[0])
    changed, *findings = REFUSED[name]
    puts(one, {name: _lines(passed | changed, *findings)})
    refused = turn_of(one.phase())
    git(one.root, "checkout", "-q", "-b", "side")
    puts(one, {"../../../backend/a.ts": "mended\n"}, subject)
    git(one.root, "checkout", "-q", "main")
    puts(one, {"../../../README.md": "more\n"}, "docs: more")
    git(one.root, "merge", "-q", "--no-ff", "-m", "Merge branch 'side'", "side")
    repaired = turn_of(one.phase())
    assert refused != repaired
    for turn, how in ((refused, ("-m", "1")), (repaired, ()), (refused, ())):
        git(one.root, "revert", "--no-edit", *how, "HEAD")
        assert turn_of(one.phase()) == turn


def test_a_fail_that_stands_again_because_its_pass_was_reverted_is_the_same_fail(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = json.loads(text_of(one, "qa-code.jsonl"))
    puts(one, {"qa-code.jsonl": _lines(passed | {"r": "FAIL"})})
    puts(one, {"../../../backend/a.ts": "mended\n"}, "fix(01-01): T1 do backend")
    mended = turn_of(one.phase())
    puts(one, {"qa-code.jsonl": _lines(passed | {"dt": "2030-05-01"})})
    git(one.root, "revert", "--no-edit", "HEAD")
    assert turn_of(one.phase()) == mended == ("qa-code", "qa")


def test_a_state_that_a_revert_brings_back_signs_nothing_off(tmp_path: Path) -> None:
    one = real(
        tmp_path, [*BEFORE_SIGN_OFF[:6], *GROUND.whole(Random(0))[-2:], *BEFORE_SIGN_OFF[6:]]
    )
    before = turn_of(one.phase())
    state = text_of(one, "../../state.json")
    puts(one, {"../../state.json": state.replace("complete", "executing")}, "chore: open again")
    git(one.root, "revert", "--no-edit", "HEAD")
    assert turn_of(one.phase()) == before == SIGNS_OFF


@pytest.mark.parametrize("name", REFUSED)
def test_a_repair_that_names_no_plan_repairs_nothing_once_it_is_reverted(
    tmp_path: Path, name: str
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = json.loads(text_of(one, name).splitlines()[0])
    changed, *findings = REFUSED[name]
    puts(one, {name: _lines(passed | changed, *findings)})
    refused = turn_of(one.phase())
    puts(one, {"../../../backend/a.ts": "mended\n"}, "chore: mend it")
    repaired = turn_of(one.phase())
    for turn in (refused, repaired, refused):
        git(one.root, "revert", "--no-edit", "HEAD")
        assert turn_of(one.phase()) == turn


def test_an_audit_that_passes_what_was_reverted_to_its_fail_is_a_matter_for_the_user(
    tmp_path: Path,
) -> None:
    one = real(tmp_path, BEFORE_SIGN_OFF)
    passed = json.loads(text_of(one, "security-audit.jsonl"))
    failed = passed | {"r": "FAIL", "findings": 1, "critical": 1}
    puts(one, {"security-audit.jsonl": _lines(failed)})
    puts(one, {"../../../backend/a.ts": "mended\n"}, "fix(01-01): T1 do backend")
    git(one.root, "revert", "--no-edit", "HEAD")
    names = ("code-review.jsonl", *VERDICTS[:2])
    puts(one, {name: re.sub("202[6-9]", "2030", text_of(one, name)) for name in names})
    puts(one, {"security-audit.jsonl": _lines(passed | {"dt": "2030-05-01"})})
    assert turn_of(one.phase()) == ("user", "security")
