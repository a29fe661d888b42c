"""Writes the record of a phase as one HTML file: no script, no network, and the same bytes from the
same history; and its review as Markdown.

The templates are in `templates/`. Each value that they print is escaped here, and its credentials
are hidden.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib.resources import files

from yolo_fs.core.credentials import redact
from yolo_fs.core.reasons import counted, safe, shortened
from yolo_fs.escalations.log import as_json
from yolo_fs.phase.progress import StepStatus
from yolo_fs.progress.board import tasks_done
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.snapshots.record import PhaseRecord, RecordedArtifact, RecordedVersion
from yolo_fs.snapshots.review import PhaseReview
from yolo_fs.system.templates import Markup, environment
from yolo_fs.web.drawing import PLOTS, spell, spell_moment

WIDTH = 1_100
"""Width of the lanes, in px."""
TEXT_BYTES = 3_000_000
"""Of the texts of artifacts; what comes after that is named and folded away for good."""
_LONGEST_TEXT = 2_000
_FOLDER = os.path.join(os.path.dirname(__file__), "templates")
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


def write_markdown(review: PhaseReview) -> bytes:
    """Return the answers to a reviewer's questions as Markdown, for the text of a pull request.

    No text of the repository is markup there: what Markdown or HTML would read is escaped.
    """
    template = environment(_FOLDER, _escape_for_markdown).get_template("report.md.j2")
    return template.render(review=review).encode()


_MARKS = re.compile(
    r"[\\`*\[\]<>#|~@&$]"
    r"|(?<!\w)_|_(?!\w)"  # within a word it is literal
    r"|^[-+=]|(?<=\d)[.)](?=\s)"  # a list, a rule
    r"|:(?=//|[\w+-]+:)|(?<=\bwww)\."  # links and pictures that hosts make by themselves
)
"""Characters where they have a meaning in Markdown. A backslash makes each of them literal."""
_READ_IN_TEXT = re.compile(r"\\[@#]")
"""Marks that hosts read in the finished text as well: whoever is named after one is notified, and
what has a number is linked. Something invisible after it keeps the two apart.
"""


def _escape_for_markdown(value: object) -> str:
    literal = _MARKS.sub(r"\\\g<0>", safe(redact(str(value)), _LONGEST_TEXT))
    return _READ_IN_TEXT.sub(r"\g<0>&ZeroWidthSpace;", literal)


def _escape_unless_markup(value: object) -> str:
    """Return markup as it is, any other value as text without credentials."""
    return value if isinstance(value, Markup) else safe(redact(str(value)), _LONGEST_TEXT)


def write_report(record: PhaseRecord, review: PhaseReview) -> bytes:
    """Return the report of a phase as HTML: first what a reviewer asks, then the process."""
    progress = record.phase.progress.as_shown()
    steps = [(status.department.value, status.steps) for status in progress.departments]
    template = environment(_FOLDER, _escape_unless_markup, is_html=True).get_template(
        "report.html.j2"
    )
    text = template.render(
        record=record,
        review=review,
        style=Markup((files("yolo_fs") / "web/static/style.css").read_text(encoding="utf-8")),
        width=WIDTH,
        plot_titles=_TITLES,
        draw=lambda name, width: Markup(PLOTS[name](record.timeline, width)),
        steps=STEPS,
        signs=_SIGNS,
        rows=[(name, _in_columns(each)) for name, each in (*steps, ("phase", progress.steps))],
        plans=progress.plans,
        escalations=[as_json(escalation) for escalation in record.phase.escalations],
        artifacts=list(_choose_texts(record.artifacts)),
        counted=counted,
        shortened=shortened,
        spell=spell,
        spell_moment=spell_moment,
        tasks_done=tasks_done,
    )
    return text.encode()


def _in_columns(steps: Iterable[StepStatus]) -> list[StepStatus | None]:
    by_key = {status.step.key: status for status in steps}
    return [by_key.get(step.key) for step in STEPS]


def _choose_texts(
    artifacts: Iterable[RecordedArtifact],
) -> Iterator[tuple[RecordedArtifact, list[tuple[RecordedVersion, int, bool]]]]:
    """Yield artifacts with their versions, the size of each in characters, and whether its text is
    shown.
    """
    left = TEXT_BYTES
    for artifact in artifacts:
        versions = []
        for version in artifact.versions:
            size = sum(map(len, version.lines))
            is_shown = size < left
            left -= size if is_shown else 0
            versions.append((version, size, is_shown))
        yield artifact, versions
