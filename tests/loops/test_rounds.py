"""Where the team's loops stand: each state and each limit, as the history of a phase leads to them.

`fixtures/loops/` holds one history per case, oldest event first, and what is expected of its loops.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support import phases
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.core.json_form import to_json
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, Version, Work, WorkflowOptions
from yolo_fs.loops.facts import Loop, LoopFacts, LoopProgress
from yolo_fs.loops.rounds import loops
from yolo_fs.protocol.gates import METRICS

CASES = Path(__file__).parents[2] / "fixtures/loops"
NAMES = sorted(path.stem for path in CASES.iterdir())


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())
    return found


def facts_of(case: dict[str, Any]) -> LoopFacts:
    """Replay a history: each event is a commit, of one file or of the source of a plan, ten seconds after the last."""
    versions: dict[str, list[Version]] = defaultdict(list)
    work = []
    for order, event in enumerate(case["history"], 1):
        at_s = event.get("at_s", 10 * order)
        if "works_on" in event:
            files = frozenset(event.get("files", ()))
            work.append(Work(event["works_on"], at_s, order, files, f"{order:07}"))
        else:
            version = Version(tuple(event["lines"]), at_s, order, order)
            versions[path_of(event["file"])].append(version)
    options = WorkflowOptions(config_from(case.get("config", {})))
    facts = PhaseFacts(
        phases.PHASE,
        tuple(latest(path, found[-1]) for path, found in versions.items()),
        options,
        versions=dict(versions),
        work=tuple(work),
    )
    return LoopFacts(
        facts,
        case.get("now_s", 1000),
        {path: tuple(found) for path, found in versions.items()},
        tuple(work),
    )


def path_of(name: str) -> str:
    return f".yolo-planning/{name[6:]}" if name.startswith("../../") else f"{phases.FOLDER}/{name}"


def latest(path: str, version: Version) -> CommittedArtifact:
    place = classify(path)
    assert place is not None, path
    return CommittedArtifact(
        place, version.lines, valid=True, commit="c", at_s=version.at_s, position=version.position
    )


@pytest.mark.proves("002:121-123", "002:129-133", "000:603a", "000:629", "000:677", "002:140")
@pytest.mark.parametrize("name", NAMES)
def test_each_loop_stands_where_its_history_leads(name: str) -> None:
    case = read(name)
    found = [to_json(one) for one in loops(facts_of(case))]
    expected = case["expected"]
    assert [
        {key: one[key] for key in want} for one, want in zip(found, expected, strict=True)
    ] == expected, case["about"]


@pytest.mark.parametrize("name", NAMES)
def test_rounds_never_fall_below_none_and_a_loop_that_is_over_asks_nobody(name: str) -> None:
    for one in loops(facts_of(read(name))):
        assert one.rounds_left >= 0
        assert one.is_over is (one.next == "")


def test_each_kind_of_loop_and_each_of_its_limits_is_reached() -> None:
    expected = [one for name in NAMES for one in read(name)["expected"]]
    assert {one["loop"] for one in expected} == set(Loop)
    used_up = {one["loop"] for one in expected if one.get("rounds_left") == 0}
    assert used_up == set(Loop)


@pytest.mark.proves("002:142")
def test_the_four_points_of_measurement_are_those_of_the_document() -> None:
    (one,) = loops(facts_of(read("review-cycle-2-fails")))
    assert one.metrics is not None
    assert list(to_json(one.metrics)) == [metric.name for metric in METRICS]


def test_a_file_without_any_past_counts_as_one_round() -> None:
    case = read("review-major")
    facts = facts_of(case)
    (one,) = loops(LoopFacts(facts.phase, 1000, {}, ()))
    assert (one.kind, one.round, one.rounds_left, one.next) == (Loop.CODE_REVIEW, 1, 1, "dev")
    assert isinstance(one, LoopProgress)
