"""The way of a phase through time: the same from the same history, and drawn without a letter of markup from outside."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET

import pytest

from tests.support.teams import Team
from tests.web.served import Client
from yolo_fs.core.timestamps import local
from yolo_fs.evidence.facts import SourceCommit
from yolo_fs.snapshots.reader import SnapshotReader
from yolo_fs.snapshots.timeline import (
    BegunPlan,
    LaneBar,
    LaneState,
    PlanBar,
    Timeline,
    TimelineMark,
    TimelinePoint,
    TimeUse,
    bars_of,
    concerns,
    plan_bars_of,
    refusals_of,
    spent,
    spread,
)
from yolo_fs.snapshots.timeline import TimelineSample as Sample
from yolo_fs.web.drawing import NARROWEST, PLOTS, WIDEST

HOSTILE = '"/><script>alert(1)</script><a href="javascript:alert(1)" onload=x>\u202e\x1b[2J'
SVG = "{http://www.w3.org/2000/svg}"


def event(kind: str, name: str, second: int, **data: object) -> dict[str, object]:
    time = f"2026-02-20T10:00:{second:02}.000Z"
    path = f".yolo-planning/phases/01-auth/{name}"
    return {"type": f"dev.yolo_fs.{kind}", "time": time, "subject": path, "data": data}


def test_a_timeline_of_a_phase_is_the_same_each_time(team: Team) -> None:
    events = [event("artifact.rejected", "gaps.jsonl", 3, reason="missing_key")]
    drawn = []
    for _ in range(2):
        reader = SnapshotReader(str(team.root))
        found = reader.timeline("01-auth", events)
        reader.close()
        assert found.left == 0
        drawn.append([draw(found, 900) for draw in PLOTS.values()])
    assert drawn[0] == drawn[1]
    commits = {moment.commit for moment in found.moments}
    touching = team.git("log", "--format=%H", "--", ".yolo-planning/phases/01-auth").split()
    assert commits >= set(touching)
    assert [moment.at_ms for moment in found.moments] == sorted(
        moment.at_ms for moment in found.moments
    )


def test_a_page_is_given_the_timeline_piece_by_piece_until_nothing_is_left(client: Client) -> None:
    for _ in range(100):
        answer = client.api("timeline", phase="01-auth", look="1").data
        if not answer["left"]:
            break
    assert answer["left"] == 0
    for name in PLOTS:
        drawn = client.api("plot", name=name, phase="01-auth", width="500")
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert ET.fromstring(drawn.body).get("width") == "500"
    for wrong in (
        {"name": "x"},
        {"name": "lanes", "width": "1e9"},
        {"name": "lanes", "width": "-1"},
    ):
        assert client.api("plot", phase="01-auth", **wrong).status == 404
    assert client.api("timeline", phase="../..").status == 404
    assert client.api("timeline", phase="99-none").data["moments"] is not None


def test_commits_of_one_second_stand_side_by_side() -> None:
    commits = [
        SourceCommit(name, "", frozenset(), at)
        for name, at in (("a", 5), ("b", 5), ("c", 4), ("d", 7))
    ]
    assert [one.at_ms for one in spread(commits)] == [5_000, 5_500, 5_500, 7_000]


@pytest.mark.parametrize(
    ("path", "subject", "is_so"),
    [
        (".yolo-planning/phases/01-auth/x.jsonl", "", True),
        (".yolo-planning/phases/02-page/x.jsonl", "", False),
        (".yolo-planning/state.json", "", True),
        ("src/a.ts", "feat(01-02): a form", True),
        ("src/a.ts", "feat(02-02): a form", False),
        ("src/a.ts", "whatever a person writes", False),
    ],
)
def test_a_commit_belongs_to_a_phase_by_its_paths_or_its_subject(
    path: str, subject: str, is_so: bool
) -> None:
    assert concerns(SourceCommit("a", subject, frozenset({path}), 0), "01-auth") is is_so


def test_time_is_split_by_what_it_was_used_for() -> None:
    moments = [TimelinePoint(name, at, "") for name, at in (("a", 0), ("b", 10_000), ("c", 30_000))]
    states = [
        LaneState("planning", "4", TimeUse.WORKING),
        LaneState("qa", "9", TimeUse.REVIEW),
        LaneState("", "", TimeUse.WAITING),
    ]
    seen = [
        (moment, Sample({"backend": state}, 0, 1, 0))
        for moment, state in zip(moments, states, strict=True)
    ]
    bars = list(bars_of(seen, [("backend", 4_000, 7_000), ("frontend", 0, 9_000)]))
    assert [(bar.state.use.value, bar.from_ms, bar.to_ms) for bar in bars] == [
        ("working", 0, 4_000), ("refused", 4_000, 7_000), ("working", 7_000, 10_000), ("review", 10_000, 30_000),
    ]  # fmt: skip
    assert {step: sum(uses.values()) for step, uses in spent(bars).items()} == {
        "planning": 10_000,
        "qa": 20_000,
    }


def test_a_plan_is_worked_on_from_its_first_task_to_its_last_evidence() -> None:
    moments = [
        TimelinePoint(name, at, "") for name, at in zip("abcd", (0, 10, 30, 40), strict=True)
    ]
    begun = [
        {},
        {"01-01": BegunPlan("backend", 1, False)},
        {"01-01": BegunPlan("backend", 1, True), "01-02": BegunPlan("backend", 2, False)},
        {"01-01": BegunPlan("backend", 1, True), "01-02": BegunPlan("backend", 2, False)},
    ]
    seen = [
        (moment, Sample({}, 0, 2, 0, plans)) for moment, plans in zip(moments, begun, strict=True)
    ]
    assert list(plan_bars_of(seen)) == [
        PlanBar("01-01", "backend", 1, 10, 30, True),
        PlanBar("01-02", "backend", 2, 30, 40, False),
    ]


def test_lanes_have_the_plans_of_their_department_wave_by_wave(team: Team) -> None:
    reader = SnapshotReader(str(team.root))
    found = reader.timeline("01-auth", ())
    status = reader.present().as_json()["team"]["phases"][0]
    reader.close()
    begun = {
        (plan["plan"], one["department"], plan["wave"])
        for one in status["departments"]
        for plan in one["plans"]
        if plan["standing"] != "pending"
    }
    assert begun
    assert {(one.plan, one.department, one.wave) for one in found.plan_bars} == begun
    drawn = PLOTS["lanes"](found, 1_400)
    assert all(f"plan {plan}, wave {wave:g}:" in drawn for plan, _, wave in begun)


def test_a_refusal_lasts_until_the_artifact_is_committed() -> None:
    events = [
        event("artifact.rejected", "gaps.jsonl", 1, reason="missing_key"),
        event("artifact.rejected", "gaps.jsonl", 2, reason="wrong_type"),
        event("artifact.committed", "critique.jsonl", 3),
        event("artifact.committed", "gaps.jsonl", 4),
    ]
    ((department, start, end),) = refusals_of(events, "01-auth")
    assert (department, end - start) == ("backend", 3_000)


@pytest.mark.parametrize("width", [NARROWEST, 900, WIDEST])
@pytest.mark.parametrize("name", PLOTS)
def test_what_is_drawn_holds_no_markup_from_outside(name: str, width: int) -> None:
    state = LaneState(HOSTILE, HOSTILE, TimeUse.WORKING, HOSTILE)
    timeline = Timeline(
        HOSTILE,
        (TimelinePoint("a", 0, HOSTILE), TimelinePoint("b", 90_000_000_000, HOSTILE)),
        (LaneBar(HOSTILE, state, 0, 90_000_000_000),),
        (TimelineMark("refused", 5, HOSTILE, HOSTILE, HOSTILE),),
        ((0, 1, 2), (5, 2, 1_000)),
        {"planning": dict.fromkeys(TimeUse, 5)},
        ((5, 1_234),),
        0,
        (
            PlanBar(HOSTILE, HOSTILE, 1, 0, 90_000_000_000, True),
            PlanBar(HOSTILE, HOSTILE, 2, 0, 5, False),
        ),
    )
    image = ET.fromstring(PLOTS[name](timeline, width))
    allowed = {
        f"{SVG}{tag}" for tag in ("svg", "g", "rect", "line", "path", "circle", "text", "title")
    }
    assert {one.tag for one in image.iter()} <= allowed
    assert not any(
        key.startswith("on") or "href" in key or key == "style"
        for one in image.iter()
        for key in one.attrib
    )
    for empty in (Timeline("", (), (), (), (), {}, (), 0),):
        ET.fromstring(PLOTS[name](empty, width))


@pytest.mark.parametrize("long_ms", [1, 900, 6_500, 61_000, 3_000_000, 100_000_000, 90_000_000_000])
@pytest.mark.parametrize("width", [NARROWEST, 900, WIDEST])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_a_time_axis_has_round_moments_each_once(
    long_ms: int, width: int, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    ends = (
        TimelinePoint("a", 1_000_000_007, ""),
        TimelinePoint("b", 1_000_000_007 + long_ms, ""),
    )
    image = ET.fromstring(PLOTS["plans"](Timeline("", ends, (), (), (), {}, (), 0), width))
    axis = [one.text or "" for one in image.iter(f"{SVG}text") if ":" in (one.text or "")]
    *ticks, begin = axis
    assert begin == f"from {local(1_000_000)}"
    assert len(set(ticks)) == len(ticks) <= 9
    assert long_ms < 2_000 or ticks
    assert long_ms < 1_000_000_000 or all(one.endswith(" 00:00") for one in ticks)
    monkeypatch.undo()
    time.tzset()
