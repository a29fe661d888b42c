"""The Owner's review says which departments a phase needs, and in which order they are dispatched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.phases import Content, facts
from tests.support.settings import config_from
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.waves import dispatched, waves
from yolo_fs.progress.drift import _under

ORDERED: Content = {
    "critique.jsonl": [{"id": "C1", "cf": 90, "rd": 1}],
    "research.jsonl": [{"q": "rotation"}],
}
ALL = ["backend", "frontend", "uiux"]


def phase(workflow: str, **review: Any) -> Phase:
    three = {"departments": dict.fromkeys(ALL, True), "department_workflow": workflow}
    said: Content = {"owner-review.jsonl": [review]} if review else {}
    return Phase(facts(ORDERED | said, config=config_from(three)))


def waves_in(found: Phase) -> list[list[str]]:
    return [list(map(str, wave.departments)) for wave in waves(dispatched(found.facts.options))]


@pytest.mark.parametrize(
    ("workflow", "order", "found"),
    [
        ("parallel", None, [["uiux"], ["frontend", "backend"]]),
        ("parallel", ["uiux", "frontend", "backend"], [["uiux"], ["frontend", "backend"]]),
        ("parallel", ["backend", "frontend", "uiux"], [["backend", "frontend"], ["uiux"]]),
        ("parallel", ["backend", "uiux", "frontend"], [["backend"], ["uiux"], ["frontend"]]),
        ("parallel", ["backend"], [["backend"], ["uiux"], ["frontend"]]),
        ("sequential", ["backend", "uiux", "frontend"], [["backend"], ["uiux"], ["frontend"]]),
    ],
)
def test_the_order_of_the_owner_moves_the_waves(
    workflow: str, order: list[str] | None, found: list[list[str]]
) -> None:
    made = phase(workflow, **({"dispatch_order": order} if order else {}))
    assert waves_in(made) == found
    assert {str(one) for one in made.free_departments} == set(found[0])


@pytest.mark.parametrize("workflow", ["parallel", "sequential"])
def test_a_department_that_is_not_needed_is_asked_for_nothing(workflow: str) -> None:
    found = phase(workflow, departments_needed=["backend"])
    assert [one.department for one in found.progress.departments] == ["backend"]
    assert not found.facts.options.several_departments
    assert {str(one) for one in found.free_departments} == {"backend"}
    assert not any("ux" in gate.name for gate in found.gates)
    two = phase(workflow, departments_needed=["backend", "frontend"])
    assert {one.department for one in two.progress.departments} == {"backend", "frontend"}
    first = {"parallel": {"backend", "frontend"}, "sequential": {"frontend"}}
    assert {str(one) for one in two.free_departments} == first[workflow]


def test_a_review_that_needs_nobody_that_works_here_changes_nothing() -> None:
    config = config_from({"departments": {"backend": True}, "department_workflow": "backend_only"})
    found = Phase(
        facts(ORDERED | {"owner-review.jsonl": [{"departments_needed": ["uiux"]}]}, config=config)
    )
    assert [one.department for one in found.progress.departments] == ["backend"]


def test_a_department_that_is_not_needed_stays_so_under_the_configuration_of_the_work_tree() -> (
    None
):
    found = phase("parallel", departments_needed=["backend"])
    three = {"departments": dict.fromkeys(ALL, True), "department_workflow": "parallel"}
    judged = _under(found, config_from(three | {"effort": "turbo"}))
    assert judged.facts.options.config.effort == "turbo"
    assert [one.department for one in judged.progress.departments] == ["backend"]


def test_a_wave_that_the_owner_has_ordered_is_explained_by_the_review() -> None:
    for order, file in ((None, "config.json"), (["backend", "frontend"], "owner-review.jsonl")):
        found = phase("parallel", **({"dispatch_order": order} if order else {}))
        behind = [wait for wait in found.waits if wait.why.endswith("begins after that gate")]
        assert behind and {wait.where for wait in behind} == {file}
