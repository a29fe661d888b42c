"""The pictures of a timeline show what it holds: where, how long, beside what; and nothing leaves the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from yolo_fs.snapshots.timeline import (
    LaneBar,
    LaneState,
    PlanBar,
    Timeline,
    TimelineMark,
    TimelinePoint,
    TimeUse,
)
from yolo_fs.web.drawing import PLOTS

SVG = "{http://www.w3.org/2000/svg}"
WIDTH = 1_000
SECOND = 1_000
BEGAN = 1_760_000_000_000
"""In milliseconds, as all moments of a timeline."""


def at(seconds: int) -> int:
    return BEGAN + seconds * SECOND


def bar(department: str, step: str, number: str, use: TimeUse, begin: int, end: int) -> LaneBar:
    return LaneBar(department, LaneState(step, number, use), at(begin), at(end))


TIMELINE = Timeline(
    phase="01-auth",
    moments=(TimelinePoint("a" * 40, at(0), "begin"), TimelinePoint("b" * 40, at(1_000), "end")),
    bars=(
        bar("backend", "planning", "3", TimeUse.WORKING, 0, 500),
        bar("backend", "code_review", "7", TimeUse.REVIEW, 500, 1_000),
        bar("frontend", "planning", "3", TimeUse.WAITING, 0, 1_000),
    ),
    marks=(
        TimelineMark("refused", at(250), "a.plan.jsonl", "missing_key", "backend"),
        TimelineMark("refused", at(750), "b.plan.jsonl", "missing_key", "frontend"),
        TimelineMark("refused", at(750), "c.plan.jsonl", "torn_line", "frontend"),
        TimelineMark("gate", at(500), "", "all-depts", "backend"),
    ),
    plans=((at(0), 0, 2), (at(500), 1, 4), (at(1_000), 4, 4)),
    spent_ms={
        "planning": dict.fromkeys(TimeUse, 0)
        | {TimeUse.WORKING: 300_000, TimeUse.WAITING: 100_000},
        "code_review": dict.fromkeys(TimeUse, 0) | {TimeUse.REVIEW: 200_000},
    },
    latencies=((at(100), 10), (at(200), 400)),
    left=0,
    plan_bars=(
        PlanBar("01-01", "backend", 1, at(0), at(400), True),
        PlanBar("01-02", "backend", 1, at(200), at(600), True),
        PlanBar("01-03", "backend", 2, at(600), at(1_000), False),
    ),
)


def drawn(name: str) -> ET.Element:
    return ET.fromstring(PLOTS[name](TIMELINE, WIDTH))


def shapes(sheet: ET.Element, kind: str) -> dict[str, ET.Element]:
    """Return the rectangles or circles of a class, by their tooltips."""
    found = [each for each in sheet.iter() if (each.get("class") or "").split()[:1] == [kind]]
    return {each.findtext(f"{SVG}title", ""): each for each in found}


def number(element: ET.Element, name: str) -> float:
    return float(element.attrib[name])


def span(element: ET.Element) -> tuple[float, float]:
    return number(element, "x"), number(element, "x") + number(element, "width")


@pytest.mark.parametrize("name", PLOTS)
def test_everything_lies_within_the_picture(name: str) -> None:
    sheet = drawn(name)
    width, height = number(sheet, "width"), number(sheet, "height")
    for element in sheet.iter():
        for x in ("x", "x1", "x2", "cx"):
            assert 0 <= float(element.get(x, 0)) <= width, ET.tostring(element)
        for y in ("y", "y1", "y2", "cy"):
            assert 0 <= float(element.get(y, 0)) <= height, ET.tostring(element)
        assert float(element.get("x", 0)) + float(element.get("width", 0)) <= width


def test_a_bar_is_as_wide_as_its_step_was_long() -> None:
    bars = shapes(drawn("lanes"), "bar")
    assert list(bars) == [
        "backend planning, 8 min 20 s ",
        "backend code review, 8 min 20 s ",
        "frontend waits before planning, 16 min 40 s ",
    ]
    planning, review, waiting = map(span, bars.values())
    assert planning[0] == waiting[0] and review[1] == waiting[1]
    assert planning[1] == review[0] == pytest.approx(sum(waiting) / 2, abs=0.2)
    backend, _, frontend = bars.values()
    assert number(frontend, "y") > number(backend, "y") + number(backend, "height")


def test_plans_lie_below_the_steps_of_their_department_and_never_upon_each_other() -> None:
    sheet = drawn("lanes")
    plans, bars = shapes(sheet, "plan"), shapes(sheet, "bar")
    assert list(plans) == [
        "plan 01-01, wave 1: 6 min 40 s",
        "plan 01-03, wave 2: still open",
        "plan 01-02, wave 1: 6 min 40 s",
    ]
    first, third, second = plans.values()
    assert first.get("y") == third.get("y") != second.get("y")
    assert span(first)[1] <= span(third)[0]
    above, _, below = bars.values()
    for plan in plans.values():
        assert number(plan, "y") >= number(above, "y") + number(above, "height")
        assert number(plan, "y") + number(plan, "height") <= number(below, "y")


def labels(timeline: Timeline) -> list[str]:
    """Return what stands on the bars of the lanes."""
    sheet = ET.fromstring(PLOTS["lanes"](timeline, WIDTH))
    return [each.text or "" for each in sheet.iter() if each.get("class") == "onbar"]


def test_a_bar_says_as_much_as_there_is_room_for() -> None:
    ends = {"01-01": 400, "01-04": 70, "01-05": 20}
    plans = tuple(PlanBar(name, "backend", 1, at(0), at(end), True) for name, end in ends.items())
    steps = (
        bar("backend", "planning", "3", TimeUse.WORKING, 0, 500),
        bar("backend", "code_review", "7", TimeUse.REVIEW, 500, 530),
        bar("backend", "qa", "9", TimeUse.REVIEW, 530, 535),
    )
    assert labels(replace(TIMELINE, bars=steps, plan_bars=plans)) == [
        "planning", "7", "01-01 · wave 1", "01-04",
    ]  # fmt: skip


def test_a_refusal_is_marked_in_the_lane_of_its_department_and_a_gate_above_all() -> None:
    sheet = drawn("lanes")
    backend, _, frontend = shapes(sheet, "bar").values()
    heights = {
        tip.split()[0] + tip.split()[-1]: number(mark, "cy")
        for tip, mark in shapes(sheet, "mark").items()
    }
    assert number(backend, "y") < heights["refuseda.plan.jsonl"] < number(frontend, "y")
    assert heights["refusedb.plan.jsonl"] > number(frontend, "y") - 8
    assert heights["gateall-depts"] < number(backend, "y")


def test_plans_that_are_complete_rise_to_all_plans() -> None:
    done, everything = (
        [float(y) for y in re.findall(r"V([\d.]+)", path.attrib["d"])]
        for path in sorted(
            drawn("plans").iter(f"{SVG}path"), key=lambda each: each.attrib["class"], reverse=True
        )
    )
    assert done == sorted(done, reverse=True), "up is less y"
    assert done[-1] == everything[-1]
    assert all(lower >= upper for lower, upper in zip(done, everything, strict=True))
    assert done[0] - done[1] == pytest.approx((done[0] - done[2]) / 4, abs=0.2)


def test_the_time_of_a_step_is_told_in_parts_and_in_all() -> None:
    sheet = drawn("steps")
    parts = shapes(sheet, "bar")
    working, waiting, review = (
        parts[tip]
        for tip in (
            "planning: working 5 min",
            "planning: waiting 1 min 40 s",
            "code review: review 3 min 20 s",
        )
    )
    unit = number(waiting, "width")
    assert number(working, "width") == pytest.approx(3 * unit, abs=0.3)
    assert number(review, "width") == pytest.approx(2 * unit, abs=0.3)
    assert span(working)[1] == pytest.approx(span(waiting)[0], abs=0.2)
    texts = [text.text for text in sheet.iter(f"{SVG}text")]
    assert {"6 min 40 s", "3 min 20 s"} <= set(texts)


def test_refusals_are_counted_by_cause() -> None:
    sheet = drawn("refusals")
    texts = [text.text or "" for text in sheet.iter(f"{SVG}text")]
    assert {"missing key · 2", "torn line · 1"} <= set(texts)
    assert len(shapes(sheet, "mark")) == 3


def test_a_slow_commit_stands_higher_than_a_quick_one() -> None:
    quick, slow = shapes(drawn("latency"), "mark").values()
    assert number(slow, "cy") < number(quick, "cy")
    assert number(slow, "cx") > number(quick, "cx")


def test_where_nothing_was_refused_or_written_the_picture_says_so() -> None:
    bare = replace(TIMELINE, marks=(), latencies=())
    said = {name: "".join(ET.fromstring(PLOTS[name](bare, WIDTH)).itertext()) for name in PLOTS}
    assert "nothing was refused" in said["refusals"]
    assert "no event records a write" in said["latency"]
    full = {name: "".join(drawn(name).itertext()) for name in PLOTS}
    assert "nothing was refused" not in full["refusals"]
    assert "no event records" not in full["latency"]


def test_each_line_over_time_is_named_above_the_plot() -> None:
    sheet = drawn("plans")
    ways = {path.attrib["class"] for path in sheet.iter(f"{SVG}path")}
    named = {
        line.attrib["class"] for line in sheet.iter(f"{SVG}line") if "step" in line.attrib["class"]
    }
    assert ways == named
    assert {"complete", "planned"} <= {text.text for text in sheet.iter(f"{SVG}text")}
