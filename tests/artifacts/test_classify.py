"""Paths and the artifacts that they are."""

from __future__ import annotations

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.table import ARTIFACTS, RUNTIME

PHASE = ".yolo-planning/phases/01-auth"


@pytest.mark.proves("000:683", "000:719")
@pytest.mark.parametrize(
    ("path", "kind", "department"),
    [
        (f"{PHASE}/critique.jsonl", "critique", "backend"),
        (f"{PHASE}/fe-critique.jsonl", "critique", "frontend"),
        (f"{PHASE}/ux-architecture.toon", "architecture", "uiux"),
        (f"{PHASE}/01-02.plan.jsonl", "plan", "backend"),
        (f"{PHASE}/01-02.summary.jsonl", "summary", "backend"),
        (f"{PHASE}/fe-01-02.plan.jsonl", "plan", "frontend"),
        (f"{PHASE}/01-CONTEXT-frontend.md", "context", "frontend"),
        (f"{PHASE}/.execution-state.json", "execution-state", "backend"),
        (f"{PHASE}/HANDOFF.md", "handoff", "backend"),
        (".yolo-planning/state.json", "state", "backend"),
        (".yolo-planning/reqs.jsonl", "reqs", "backend"),
        (".yolo-planning/milestones/v2/phases/01-auth/critique.jsonl", "critique", "backend"),
    ],
)
def test_a_path_is_the_artifact_that_its_name_spells(path: str, kind: str, department: str) -> None:
    place = classify(path)
    assert place is not None
    assert (place.artifact.kind, place.department) == (kind, department)


@pytest.mark.parametrize(
    "path",
    [
        "critique.jsonl",
        "src/critique.jsonl",
        ".yolo-planning/critique.jsonl",
        f"{PHASE}/deeper/critique.jsonl",
        f"{PHASE}/critique.jsonl.tmp",
        f"{PHASE}/.critique.jsonl.swp",
        f"{PHASE}/critique.jsonl~",
        f"{PHASE}/4913",
        f"{PHASE}/-critique.jsonl",
        f"{PHASE}/be-critique.jsonl",
        f"{PHASE}/1-2.plan.jsonl",
        f"{PHASE}/critique.jsonl\n",
        f"{PHASE}/cri\u0442ique.jsonl",
        ".yolo-planning/phases/1-auth/critique.jsonl",
        ".yolo-planning/phases/01-Auth/critique.jsonl",
        ".yolo-planning/phases/01-../critique.jsonl",
        ".yolo-planning/phases/../critique.jsonl",
        ".yolo-planning-other/phases/01-auth/critique.jsonl",
        ".yolo-planning/config.json",
        f"{PHASE}/.dept-status-backend.json",
        f"{PHASE}/.ctx-dev.toon",
    ],
)
def test_what_no_row_names_is_no_artifact(path: str) -> None:
    assert classify(path) is None


def test_a_plan_knows_its_phase_and_its_number() -> None:
    place = classify(f"{PHASE}/01-02.plan.jsonl")
    assert place is not None
    assert (str(place.phase), str(place.plan), place.name) == (
        "01-auth",
        "01-02",
        "01-02.plan.jsonl",
    )


def test_every_kind_is_reached_by_one_name_only() -> None:
    samples = {
        row.kind: row.file.format(dept="", plan="01-01", NN="01", department="backend")
        for row in ARTIFACTS
    }
    homes = {"phase": f"{PHASE}/", "root": ".yolo-planning/", "anywhere": f"{PHASE}/"}
    for row in ARTIFACTS:
        place = classify(homes[row.home.value] + samples[row.kind])
        assert place is not None
        assert place.artifact.kind == row.kind


def test_nothing_that_lives_at_run_time_is_an_artifact() -> None:
    for pattern in RUNTIME:
        name = pattern.replace("*", "backend")
        assert classify(f"{PHASE}/{name}") is None, name
        assert classify(f".yolo-planning/{name}") is None, name
