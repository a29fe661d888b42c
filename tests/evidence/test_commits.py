"""What a commit was for: in every spelling that real histories hold."""

from __future__ import annotations

import pytest

from yolo_fs.artifacts.naming import alike, purpose_of
from yolo_fs.core.ids import PlanId
from yolo_fs.protocol.workflow import STEPS


@pytest.mark.parametrize(
    ("subject", "task"),
    [
        ("feat(01-02): T3 rotate the keys", "01-02/T3"),
        ("fix(01-auth-02): T3: rotate", "01-02/T3"),
        ("test(01-02): T12", "01-02/T12"),
        ("feat(phase-1): 01-02/T3 rotate", "01-02/T3"),
        ("feat(auth): 01-02/T3 rotate", "01-02/T3"),
        ("feat(01-auth): T3 which plan?", None),
        ("feat(01-02): Token refresh", None),
        ("feat(01-02): T0 counts from one", None),
        ("feat(01-02): T3x is a word", None),
    ],
)
def test_a_source_commit_names_its_task(subject: str, task: str | None) -> None:
    purpose = purpose_of(subject)
    assert purpose is not None
    assert (str(purpose.task) if purpose.task else None) == task


@pytest.mark.parametrize(
    "scope", ["01", "01-auth", "phase-1", "phase1", "1", "01-auth-02", "01-02"]
)
def test_a_step_is_recognised_under_every_spelling_of_its_phase(scope: str) -> None:
    purpose = purpose_of(f"docs({scope}): critique and gap analysis")
    assert purpose is not None
    assert (purpose.phase, purpose.step, purpose.task) == ("01", "critique", None)


@pytest.mark.parametrize(
    ("step", "subject"),
    [
        (step.key, subject)
        for step in STEPS
        for subject in step.commits
        if "{type}" not in subject.template and step.key != "signoff"
    ],
)
def test_what_a_template_renders_it_reads_again(step: str, subject: object) -> None:
    rendered = subject.render(phase="01", plan="01-02")  # type: ignore[attr-defined]
    purpose = purpose_of(rendered)
    assert purpose is not None and purpose.step == step
    if "01-02" in rendered:
        assert purpose.plan == PlanId("01", "02")


@pytest.mark.parametrize(
    "subject", ["", "Merge branch 'main'", "wip", "feat: no scope", "feat(): x", "FEAT(01): x"]
)
def test_other_subjects_are_for_nothing(subject: str) -> None:
    assert purpose_of(subject) is None


def test_words_are_compared_as_people_write_them() -> None:
    assert alike(" Load the  signing Keys.") == alike("load the signing keys")
