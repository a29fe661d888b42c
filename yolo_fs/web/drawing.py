"""Draws a timeline as SVG: lanes and plots, for the page and for the report.

Colours come from a stylesheet. Every text is escaped here, and no clock is read, so the same
timeline gives the same bytes in the same time zone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from itertools import accumulate
from typing import NamedTuple

from yolo_fs.core.reasons import safe
from yolo_fs.core.timestamps import local
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.snapshots.timeline import LaneBar, PlanBar, Timeline, TimeUse

LEFT, RIGHT = 84, 16
"""Widths beside the plot, in px."""
LANE = 34
PLAN_ROW = 16
NARROWEST, WIDEST = 280, 3_840
_LETTER = 6.4
"""Width of a letter in small print, in px."""
_DAY_S = 86_400
_TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 10_800, 21_600, 43_200)
"""Round lengths of time, for what is shorter than days."""


@dataclass(slots=True)
class SvgSheet:
    """An SVG image under construction."""

    title: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)
    more: str = ""
    """Further attributes of the image."""

    def add(
        self, tag: str, text: str | None = None, /, *, tip: str = "", **attributes: object
    ) -> None:
        """Add an element. `tip`: its tooltip; `_` in an attribute's name stands for a dash."""
        inner = f"<title>{_text(tip)}</title>" if tip else ""
        inner += _text(text) if text is not None else ""
        self.parts.append(f"<{tag}{_attributes(attributes)}>{inner}</{tag}>")

    def __str__(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_text(self.title)}" '
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}"{self.more}>'
        )
        return f"{head}{''.join(self.parts)}</svg>"


class TimeScale(NamedTuple):
    """Maps moments to x positions."""

    from_ms: int
    to_ms: int
    left: int
    right: int

    def x(self, at_ms: int) -> float:
        """Return the x position of a moment, in px."""
        share = (at_ms - self.from_ms) / max(1, self.to_ms - self.from_ms)
        return round(self.left + min(1.0, max(0.0, share)) * (self.right - self.left), 1)


def lanes(timeline: Timeline, width: int) -> str:
    """Return the departments' lanes: steps as bars, waits as gaps, refusals as marks."""
    names = list(dict.fromkeys(bar.department for bar in timeline.bars))
    rows = {
        name: list(
            _rows(plan_bar for plan_bar in timeline.plan_bars if plan_bar.department == name)
        )
        for name in names
    }
    tall = {name: LANE + PLAN_ROW * len(rows[name]) for name in names}
    sheet, scale = _make_sheet(
        "What each department did, over time", timeline, width, 58 + sum(tall.values())
    )
    top = 12
    tops = dict(zip(names, accumulate(tall.values(), initial=top), strict=False))
    for name, y in tops.items():
        sheet.add("text", name, x=LEFT - 10, y=y + 16, text_anchor="end", class_="lane")
        end = y + tall[name] - 4
        sheet.add("line", x1=LEFT, x2=width - RIGHT, y1=end, y2=end, class_="rule")
        for bar in (lane_bar for lane_bar in timeline.bars if lane_bar.department == name):
            _draw_bar(sheet, scale, bar, y)
        for number, row in enumerate(rows[name]):
            for plan in row:
                _draw_plan(sheet, scale, plan, y + LANE - 4 + number * PLAN_ROW)
    for mark in timeline.marks:
        own = tops.get(mark.department) if mark.kind != "gate" else None
        y = own + 25 if own is not None else top - 6
        tip = f"{mark.kind} {spell_moment(mark.at_ms)} {mark.text} {mark.path}"
        x, kind = scale.x(mark.at_ms), f"mark {mark.kind}"
        sheet.add("circle", tip=tip, cx=x, cy=y, r=3.5, class_=kind)
    _draw_time_axis(sheet, scale, top + sum(tall.values()) + 6)
    return str(sheet)


def _rows(plans: Iterable[PlanBar]) -> Iterator[list[PlanBar]]:
    """Yield plans in as few rows as possible without overlap, wave by wave."""
    left = sorted(plans, key=lambda plan: (plan.wave, plan.from_ms, plan.plan))
    while left:
        row: list[PlanBar] = []
        for plan in left:
            if not row or plan.from_ms >= row[-1].to_ms:
                row.append(plan)
        left = [plan for plan in left if plan not in row]
        yield row


def _draw_plan(sheet: SvgSheet, scale: TimeScale, plan: PlanBar, y: int) -> None:
    start = scale.x(plan.from_ms)
    wide = max(3.0, round(scale.x(plan.to_ms) - start, 1))
    ended = _span(plan.to_ms - plan.from_ms) if plan.is_done else "still open"
    tip = f"plan {plan.plan}, wave {plan.wave:g}: {ended}"
    kind = "plan" if plan.is_done else "plan open"
    sheet.add("rect", tip=tip, x=start, y=y, width=wide, height=PLAN_ROW - 3, rx=2, class_=kind)
    words = f"{plan.plan} · wave {plan.wave:g}"
    words = words if wide > len(words) * _LETTER + 6 else plan.plan
    if wide > len(words) * _LETTER + 6:
        sheet.add("text", words, x=round(start + 4, 1), y=y + 10, class_="onbar")


def _draw_bar(sheet: SvgSheet, scale: TimeScale, bar: LaneBar, y: int) -> None:
    start, end = scale.x(bar.from_ms), scale.x(bar.to_ms)
    state, wide = bar.state, max(1.5, round(end - start, 1))
    waits = state.use is TimeUse.WAITING
    what = f"{'waits before ' if waits else ''}{spell(state.step)}"
    tip = f"{bar.department} {what}, {_span(bar.to_ms - bar.from_ms)} {state.cause}"
    sheet.add(
        "rect", tip=tip, x=start, y=y + 8 if waits else y, width=wide, height=6 if waits else 22,
        rx=3, class_=f"bar {state.use.value}",
    )  # fmt: skip
    words = spell(state.step) if wide > len(spell(state.step)) * _LETTER + 8 else state.number
    if not waits and wide > len(words) * _LETTER + 6:
        sheet.add("text", words, x=round(start + 4, 1), y=y + 15, class_="onbar")


def plans_over_time(timeline: Timeline, width: int) -> str:
    """Return how many plans were complete, over time."""
    height, most = 190, max((total for _, _, total in timeline.plans), default=0)
    sheet, scale = _make_sheet("Plans complete over time", timeline, width, height)
    y = _counts(sheet, width, height, most, "plans")
    for which, name in ((2, "all"), (1, "done")):
        ways = "".join(f"H{scale.x(row[0])}V{y(row[which])}" for row in timeline.plans)
        way = f"M{scale.left} {y(0)}{ways}H{scale.right}"
        sheet.add("path", d=way, class_=f"step {name}")
    _draw_line_legend(sheet, {"done": "complete", "all": "planned"})
    _draw_time_axis(sheet, scale, height - 34)
    return str(sheet)


def time_per_step(timeline: Timeline, width: int) -> str:
    """Return what the time of each step was used for."""
    order = [key for key in STEP_BY_KEY if key in timeline.spent_ms]
    height = 40 + 24 * len(order)
    sheet = SvgSheet("Time per step: working, in review, waiting, refused", width, height)
    left = LEFT + 36
    longest = max((sum(timeline.spent_ms[key].values()) for key in order), default=0)
    unit = (width - left - 74) / max(1, longest)
    for number, key in enumerate(order):
        y, x = 8 + number * 24, float(left)
        sheet.add("text", spell(key), x=left - 10, y=y + 12, text_anchor="end", class_="lane")
        for use in TimeUse:
            took = timeline.spent_ms[key][use]
            if took:
                wide = max(1.0, round(took * unit, 1))
                tip = f"{spell(key)}: {use.value} {_span(took)}"
                kind = f"bar {use.value}"
                sheet.add("rect", tip=tip, x=round(x, 1), y=y, width=wide, height=16, class_=kind)
                x += wide
        total = _span(sum(timeline.spent_ms[key].values()))
        sheet.add("text", total, x=round(x + 6, 1), y=y + 12, class_="axis")
    _draw_legend(sheet, height - 10, [use.value for use in TimeUse], left)
    return str(sheet)


def refusals_over_time(timeline: Timeline, width: int) -> str:
    """Return refusals by cause, over time: one row for each cause."""
    refused = [mark for mark in timeline.marks if mark.kind == "refused"]
    causes = [cause for cause, _ in Counter(mark.text for mark in refused).most_common(8)]
    height = 46 + 24 * len(causes) if causes else 30
    sheet, scale = _make_sheet("Refusals by cause, over time", timeline, width, height, LEFT + 56)
    if not refused:
        sheet.add("text", "nothing was refused", x=0, y=20, class_="axis")
        return str(sheet)
    for number, cause in enumerate(causes):
        y, own = 18 + number * 24, [mark for mark in refused if mark.text == cause]
        label = f"{spell(cause)} · {len(own)}"
        sheet.add("text", label, x=scale.left - 10, y=y + 4, text_anchor="end", class_="lane")
        sheet.add("line", x1=scale.left, x2=scale.right, y1=y, y2=y, class_="rule")
        for mark in own:
            tip = f"{spell_moment(mark.at_ms)} {mark.path}: {cause}"
            sheet.add("circle", tip=tip, cx=scale.x(mark.at_ms), cy=y, r=4.5, class_="mark refused")
    _draw_time_axis(sheet, scale, height - 34)
    return str(sheet)


def latency_over_time(timeline: Timeline, width: int) -> str:
    """Return the time from the last write of a file to its commit, over time."""
    height = 190
    slowest = max((took for _, took in timeline.latencies), default=0)
    sheet, scale = _make_sheet("Commit latency", timeline, width, height)
    if not timeline.latencies:
        sheet.add("text", "no event records a write", x=scale.left + 8, y=40, class_="axis")
    y = _counts(sheet, width, height, slowest, "ms")
    for at_ms, took in timeline.latencies:
        tip = f"{spell_moment(at_ms)}: {took} ms"
        sheet.add("circle", tip=tip, cx=scale.x(at_ms), cy=y(took), r=3, class_="mark latency")
    _draw_time_axis(sheet, scale, height - 34)
    return str(sheet)


PLOTS: Mapping[str, Callable[[Timeline, int], str]] = {
    "lanes": lanes,
    "plans": plans_over_time,
    "steps": time_per_step,
    "refusals": refusals_over_time,
    "latency": latency_over_time,
}
"""Name → function that draws it, given a timeline and a width in px."""


def _make_sheet(
    title: str, timeline: Timeline, width: int, height: int, left: int = LEFT
) -> tuple[SvgSheet, TimeScale]:
    scale = TimeScale(timeline.from_ms, timeline.to_ms, left, width - RIGHT)
    places = (
        f' data-from="{scale.from_ms}" data-to="{scale.to_ms}" data-left="{left}" '
        f'data-right="{scale.right}"'
    )
    return SvgSheet(title, width, height, more=places), scale


def _draw_time_axis(sheet: SvgSheet, scale: TimeScale, y: int) -> None:
    sheet.add("line", x1=scale.left, x2=scale.right, y1=y, y2=y, class_="axisline")
    wide = max(1, scale.right - scale.left)
    fit, long_s = max(2, min(8, wide // 90)), (scale.to_ms - scale.from_ms) / 1_000
    form = "%m-%d %H:%M" if long_s > _DAY_S else "%H:%M:%S"
    days_s = _choose_round_step(long_s / _DAY_S / fit) * _DAY_S
    step_ms = next((step for step in _TICKS_S if step * fit >= long_s), days_s) * 1_000
    offset = datetime.fromtimestamp(scale.from_ms / 1_000).astimezone().utcoffset() or timedelta()
    ahead_ms = int(offset / timedelta(milliseconds=1))  # a day begins where it is read
    first_ms = -(-(scale.from_ms + ahead_ms) // step_ms) * step_ms - ahead_ms
    for at_ms in range(first_ms, scale.to_ms + 1, step_ms):
        x, label = scale.x(at_ms), local(at_ms / 1_000, form)
        anchor = "end" if x > scale.right - RIGHT else "middle"
        sheet.add("line", x1=x, x2=x, y1=y, y2=y + 4, class_="axisline")
        sheet.add("text", label, x=x, y=y + 17, text_anchor=anchor, class_="axis")
    begin = f"from {spell_moment(scale.from_ms)}"
    sheet.add("text", begin, x=scale.left, y=y + 30, class_="axis")


def _counts(
    sheet: SvgSheet, width: int, height: int, most: int, unit: str
) -> Callable[[int], float]:
    """Draw an axis from 0 to a round number, and return the function that places a number on it."""
    top, bottom = 20, height - 40
    step = _choose_round_step(most / 4)
    highest = step * max(1, math.ceil(most / step))

    def y(value: int) -> float:
        return round(bottom - (bottom - top) * value / highest, 1)

    for value in range(0, highest + 1, step):
        sheet.add("line", x1=LEFT, x2=width - RIGHT, y1=y(value), y2=y(value), class_="rule")
        sheet.add("text", str(value), x=LEFT - 8, y=y(value) + 4, text_anchor="end", class_="axis")
    sheet.add("text", unit, x=LEFT - 8, y=11, text_anchor="end", class_="axis")
    return y


def _choose_round_step(least: float) -> int:
    """Return 1, 2 or 5 times a power of ten that is not below `least`."""
    power = 10 ** max(0, math.floor(math.log10(least))) if least >= 1 else 1
    return next(int(power * factor) for factor in (1, 2, 5, 10) if power * factor >= least)


def _draw_legend(sheet: SvgSheet, y: int, names: Sequence[str], left: int) -> None:
    x = float(left)
    for name in names:
        sheet.add("rect", x=round(x, 1), y=y - 9, width=10, height=10, rx=2, class_=f"bar {name}")
        sheet.add("text", name, x=round(x + 14, 1), y=y, class_="axis")
        x += 30 + len(name) * _LETTER


def _draw_line_legend(sheet: SvgSheet, names: Mapping[str, str]) -> None:
    """Draw above the plot what its lines mean; `names`: class of a line → its meaning."""
    x = float(LEFT)
    for kind, name in names.items():
        sheet.add("line", x1=round(x, 1), x2=round(x + 20, 1), y1=7, y2=7, class_=f"step {kind}")
        sheet.add("text", name, x=round(x + 26, 1), y=11, class_="axis")
        x += 44 + len(name) * _LETTER


def spell(name: str) -> str:
    """Return a name of the protocol as words."""
    return name.replace("_", " ")


def spell_moment(at_ms: int) -> str:
    """Return milliseconds since the epoch as people read a time."""
    return local(at_ms / 1_000)


def _span(took_ms: int) -> str:
    """Return a length of time in its two largest units."""
    if took_ms < 10_000:
        return f"{took_ms / 1_000:.1f} s"
    parts = _parts(took_ms // 1_000)
    return " ".join(f"{number} {unit}" for number, unit in parts)


def _parts(took_s: int) -> Iterator[tuple[int, str]]:
    units = [(_DAY_S, "d"), (3_600, "h"), (60, "min"), (1, "s")]
    fitting = [pair for pair in units if took_s >= pair[0]][:2] or units[-1:]
    for size, unit in fitting:
        if took_s // size:
            yield took_s // size, unit
        took_s %= size


def _text(text: str) -> str:
    return escape(safe(text, 300), quote=True)


def _attributes(attributes: Mapping[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(str(value))}"'
        for name, value in attributes.items()
    )
