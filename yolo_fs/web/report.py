"""Writes the record of a phase as one HTML file: no script, no network, and the same bytes from the
same history.

A text becomes markup in one place only (`tag`), which escapes it and hides credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any

from yolo_fs.core.credentials import redact
from yolo_fs.core.reasons import Finding, safe, shortened
from yolo_fs.escalations.log import as_json
from yolo_fs.moments.record import PhaseRecord, RecordedArtifact, RecordedVersion
from yolo_fs.moments.review import PhaseReview
from yolo_fs.phase.progress import StepStatus
from yolo_fs.progress.board import tasks_done
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.web.drawing import PLOTS, spell, spell_moment

WIDTH = 1_100
"""Width of the lanes, in px."""
TEXT_BYTES = 3_000_000
"""Of the texts of artifacts; what comes after that is named and folded away for good."""
_LONGEST_TEXT = 2_000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIGNS = {
    "complete": "✓",
    "running": "◐",
    "ready": "○",
    "waiting": "◌",
    "pending": "·",
    "skipped": "–",
}
_TITLES = {
    "lanes": "Lanes",
    "plans": "Plans complete",
    "steps": "Time per step",
    "refusals": "Refusals by cause",
    "latency": "Commit latency",
}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: str) -> Markup:
    """Return an element. Children that are no markup are escaped, their credentials hidden."""
    named = "".join(f' {key.rstrip("_")}="{_escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{named}>{''.join(map(_inner, children))}</{name}>")


def _inner(child: object) -> str:
    return child if isinstance(child, Markup) else _escaped(str(child))


def _escaped(text: str) -> str:
    return escape(safe(redact(text), _LONGEST_TEXT), quote=True)


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("".join(parts))


def write_markdown(review: PhaseReview) -> bytes:
    """Return the answers to a reviewer's questions as Markdown, for the text of a pull request.

    No text of the repository is markup there: what Markdown or HTML would read is escaped.
    """
    parts = [f"# {_plain(review.phase)}", _plain(review.state)]
    for section in review.sections:
        items = "\n".join(f"- {_plain(line)}" for line in section.lines)
        parts.append(f"## {section.title}\n\n{items}")
    return ("\n\n".join(parts) + "\n").encode()


_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~@:.&-])")
"""Characters with a meaning in Markdown. A backslash makes each of them literal."""


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", safe(redact(text), _LONGEST_TEXT))


def write_report(record: PhaseRecord, review: PhaseReview) -> bytes:
    """Return the report of a phase as HTML: first what a reviewer asks, then the process."""
    phase = record.phase
    title = f"{phase.id} as of {record.commit[:12]}"
    style = (files("yolo_fs") / "web" / "static" / "style.css").read_text(encoding="utf-8")
    top = tag("header", tag("h1", title), class_="top")
    view = tag("main", _joined(_sections(record, review)), class_="view report")
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light '
        f'dark">\n{tag("title", title)}\n<style>\n{style}</style>\n</head>\n'
    )
    return f"{head}{tag('body', top, view)}\n</html>\n".encode()


def _sections(record: PhaseRecord, review: PhaseReview) -> Iterator[Markup]:
    phase, progress = record.phase, record.phase.progress
    plans = progress.plans
    done = sum(plan.is_done for plan in plans)
    yield _build_card(
        "Summary",
        tag("p", tag("strong", review.state), f"; {done} of {len(plans)} plans complete."),
        tag("p", f"Commit {record.commit}, {len(record.timeline.moments)} commits of this phase."),
    )
    for section in review.sections:
        lines = (tag("li", line) for line in section.lines)
        yield _build_card(section.title, tag("ul", *lines))
    yield _plot(record, "lanes", WIDTH)
    narrow = [_plot(record, name, WIDTH // 2 - 40) for name in PLOTS if name != "lanes"]
    yield tag("div", *narrow, class_="plots")
    yield _build_card("Departments and steps", _steps(record))
    yield _build_card("Gates", _gates(record))
    yield _build_card("Plans", _plans(record))
    if phase.escalations:
        yield _build_card(
            "Escalations", *(_escalation(as_json(escalation)) for escalation in phase.escalations)
        )
    wrong = (*phase.false_claims, *phase.out_of_lane)
    if wrong:
        yield _build_card("Claims that the branch does not bear out", _findings(wrong))
    yield _build_card("What was refused, held or opened", _marks(record))
    yield _build_card("Artifacts", *_artifacts(record.artifacts))
    yield _build_card("Commits", _commits(record))


def _plot(record: PhaseRecord, name: str, width: int) -> Markup:
    drawn = Markup(PLOTS[name](record.timeline, width))
    return _build_card(_TITLES[name], tag("div", drawn, class_="plot"))


def _build_card(title: str, *inside: Markup) -> Markup:
    return tag("section", tag("h2", title), *inside, class_="card")


def _steps(record: PhaseRecord) -> Markup:
    progress = record.phase.progress
    rows = [(status.department.value, status.steps) for status in progress.departments]
    rows.append(("phase", progress.steps))
    heads = _joined(
        tag("th", tag("span", step.number, class_="no"),
            tag("span", spell(step.key), class_="name"), scope="col")
        for step in STEPS
    )  # fmt: skip
    body = _joined(
        tag("tr", tag("th", name, scope="row"), _joined(_cells(steps))) for name, steps in rows
    )
    table = tag("table", tag("tr", tag("td"), heads), body, class_="grid")
    legend = "  ".join(f"{sign} {name}" for name, sign in _SIGNS.items())
    return _joined([tag("div", table, class_="wide"), tag("p", legend, class_="legend")])


def _cells(steps: Iterable[StepStatus]) -> Iterator[Markup]:
    by_key = {status.step.key: status for status in steps}
    for step in STEPS:
        status = by_key.get(step.key)
        if status is None:
            yield tag("td")
            continue
        standing = status.standing.value
        tip = f"{standing} {status.by[:12]} {shortened(status.missing, 5, between='; ')}".strip()
        yield tag("td", tag("div", _SIGNS[standing], class_=f"cell {standing}", title=tip))


def _gates(record: PhaseRecord) -> Markup:
    return _joined(
        _folded(
            f"{gate.name}: {'open' if gate.is_open else f'closed, lacks {len(gate.missing)}'}",
            tag("ul", *(tag("li", str(lack)) for lack in gate.missing)),
            tag("ul", *(tag("li", path, " ", _commit(oid)) for path, oid in gate.evidence)),
        )
        for gate in record.phase.gates
    )


def _plans(record: PhaseRecord) -> Markup:
    return _joined(
        _folded(
            f"{plan.id} {plan.title}: {plan.standing}, {tasks_done(plan)} of "
            f"{len(plan.tasks)} tasks, wave {plan.wave}",
            tag("ul", *(tag("li", str(task.ref), " ", task.action, " ", _commit(task.commit))
                        for task in plan.tasks)),
            tag("ul", *(tag("li", lack) for lack in plan.missing)),
        )
        for status in record.phase.progress.departments
        for plan in status.plans
    )  # fmt: skip


def _escalation(escalation: Mapping[str, Any]) -> Markup:
    held = f"held by {escalation['holder']}, who owes: {escalation['owed']}"
    holder = held if escalation["holder"] else escalation["decision"]
    stations = (
        f"{each.get('dt')} {each.get('agent')} → {each.get('to')}: "
        f"{each.get('decision') or each.get('reason') or ''}"
        for each in escalation["history"]
    )
    head = f"{escalation['id']} {escalation['severity']}, {escalation['standing']}: {holder}"
    return _folded(head, tag("ul", *(tag("li", each) for each in stations)))


def _marks(record: PhaseRecord) -> Markup:
    marks = record.timeline.marks
    if not marks:
        return tag("p", "Nothing, as far as the journal goes.", class_="none")
    rows = (
        tag("tr", tag("td", spell_moment(mark.at_ms)), tag("td", mark.kind),
            tag("td", spell(mark.text)), tag("td", mark.path))
        for mark in marks
    )  # fmt: skip
    return _folded(f"{len(marks)} marks", tag("table", *rows))


def _artifacts(artifacts: Iterable[RecordedArtifact]) -> Iterator[Markup]:
    left = TEXT_BYTES
    for artifact in artifacts:
        parts: list[Markup] = []
        for number, version in enumerate(artifact.versions):
            head = (
                f"{version.commit.oid[:12]} {spell_moment(version.commit.at_s * 1_000)} "
                f"{version.verdict}: {version.commit.subject}"
            )
            size = sum(map(len, version.lines))
            shown = _text_of(version) if size < left else tag("p", f"{size} characters left out")
            left -= size if size < left else 0
            inside = _joined([_findings(version.findings), shown])
            is_open = number == 0 and bool(version.findings)
            parts.append(tag("li", _folded(head, inside, is_open=is_open)))
        verdict = artifact.versions[0].verdict
        count = f"{len(artifact.versions)} version{'s' if len(artifact.versions) > 1 else ''}"
        head = f"{artifact.place.name}: {artifact.place.artifact.kind}, {count}, {verdict}"
        yield _folded(head, tag("ul", *parts))


def _text_of(version: RecordedVersion) -> Markup:
    lines = "".join(f"<li><code>{escape(line)}</code></li>" for line in version.lines)
    return Markup(f'<ol class="lines">{lines}</ol>')


def _findings(findings: Iterable[Finding]) -> Markup:
    items = (tag("li", str(finding), class_=finding.level.value) for finding in findings)
    return tag("ul", *items, class_="findings")


def _commits(record: PhaseRecord) -> Markup:
    rows = (
        tag("tr", tag("td", _commit(moment.commit)), tag("td", spell_moment(moment.at_ms)),
            tag("td", moment.subject))
        for moment in record.timeline.moments
    )  # fmt: skip
    return _folded(f"{len(record.timeline.moments)} commits", tag("table", *rows))


def _folded(head: str, *inside: Markup, is_open: bool = False) -> Markup:
    attributes = {"open": ""} if is_open else {}
    return tag("details", tag("summary", head), *inside, **attributes)


def _commit(oid: str) -> Markup:
    return tag("code", oid[:12], class_="commit") if oid else Markup("")
