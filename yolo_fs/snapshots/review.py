"""What a reviewer asks of a finished phase.

It tells what the phase was for, what was built, decided, left out, tested and audited, and who
signed it. The HTML and Markdown reports both render these values.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.checking.verify_command import VerifyRun
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import counted
from yolo_fs.evidence.facts import Work, texts
from yolo_fs.git.failures import GitError
from yolo_fs.git.repository import Repository
from yolo_fs.progress.board import PhaseBoard
from yolo_fs.snapshots.record import PhaseRecord

MOST_COMMITS = 200
"""Source commits that are listed."""


class ChangeSize(NamedTuple):
    """How much a commit changed."""

    files: int
    added: int
    """Added lines; binary files count none."""
    removed: int

    def __str__(self) -> str:
        return f"{counted(self.files, 'file')}, +{self.added} −{self.removed}"


class SourceChange(NamedTuple):
    """One source commit of the phase."""

    commit: str
    subject: str
    size: ChangeSize | None
    """None where this clone lacks what it changed."""


class ReviewSection(NamedTuple):
    """One question with its answers; no answers where the phase records none."""

    title: str
    lines: tuple[str, ...]


class PhaseReview(NamedTuple):
    """A phase as its reviewer reads it."""

    phase: str
    state: str
    """In one line: how far it is, and what the Owner decided."""
    sections: tuple[ReviewSection, ...]


def review_of(
    repository: Repository,
    record: PhaseRecord,
    costs: Iterable[str],
    verification: VerifyRun | None = None,
) -> PhaseReview:
    """Return the review of a phase. `costs`: what its runs cost, as `company/overview` tells;
    `verification`: how the user's own check of these sources ended.
    """
    phase = record.phase
    pace = phase.pace
    state = "complete" if phase.is_complete else f"at {phase.progress.step}"
    state_line = f"{state}, {pace.steps_done} of {pace.steps} steps; {phase.sign_off.sentence}"
    parts: dict[str, Iterator[str]] = {
        "Goal": _goal(phase),
        "What was built": _built(repository, record),
        "Decisions": _decisions(phase),
        "Deviations": _list_deviations(phase),
        "Tests": _tests(phase, verification),
        "Security": _security(phase),
        "Signed": _signed(repository, phase),
        "Cost": iter(costs),
    }
    sections = (ReviewSection(title, tuple(lines)) for title, lines in parts.items())
    return PhaseReview(
        str(phase.id), state_line, tuple(section for section in sections if section.lines)
    )


def source_changes(repository: Repository, work: Iterable[Work]) -> tuple[SourceChange, ...]:
    """Return the source commits of a phase in their order, each with how much it changed."""
    commits = list(dict.fromkeys(each.commit for each in work if each.commit))[:MOST_COMMITS]
    if not commits:
        return ()
    said = _log_entries(repository, commits, "--no-patch")
    ends = repository.cut_off()  # git takes all files of these for added
    sizes = _sizes_of(repository, [commit for commit in commits if commit not in ends])
    return tuple(
        SourceChange(commit, subject, sizes.get(commit)) for commit, (subject, _) in said.items()
    )


def _sizes_of(repository: Repository, commits: Sequence[str]) -> dict[str, ChangeSize]:
    """Return how much commits changed; a partial clone lacks the content of some."""
    if not commits:
        return {}
    try:
        said = _log_entries(repository, commits, "--numstat", "--no-renames")
    except GitError:
        if not repository.is_partial:
            raise
        middle = len(commits) // 2
        halves = (commits[:middle], commits[middle:]) if middle else ()
        return {
            commit: size for half in halves for commit, size in _sizes_of(repository, half).items()
        }
    return {commit: _size(rows) for commit, (_, rows) in said.items()}


def _log_entries(
    repository: Repository, commits: Sequence[str], *how: str
) -> dict[str, tuple[str, list[str]]]:
    """Return the subject of each commit, and what git prints below it."""
    output = repository.git.text(
        "log", "--no-walk=unsorted", "--format=%x00%H%x09%s", *how, *commits
    )
    entries = {}
    for entry in filter(str.strip, output.split("\0")):
        head, *rows = entry.strip("\n").split("\n")
        commit, _, subject = head.partition("\t")
        entries[commit] = subject, rows
    return entries


def _size(rows: Iterable[str]) -> ChangeSize:
    counts = [row.split("\t") for row in rows if row.count("\t") >= 2]
    added, removed = (
        sum(int(fields[at]) for fields in counts if fields[at].isdigit()) for at in (0, 1)
    )
    return ChangeSize(len(counts), added, removed)


def _goal(phase: PhaseBoard) -> Iterator[str]:
    for header in phase.facts.lines_of("plan"):
        if header.get("obj") or header.get("t"):
            number = f"{header.get('p', '')}-{header.get('n', '')}"
            yield f"{number} {header.get('t', '')}: {header.get('obj', '')}".rstrip(": ")


def _built(repository: Repository, record: PhaseRecord) -> Iterator[str]:
    for line in record.phase.facts.lines_of("summary"):
        yield from texts(line.get("built"))
    for change in source_changes(repository, record.work):
        size = change.size or "this clone lacks what it changed"
        yield f"{change.commit[:SHORT]} {change.subject} ({size})"


def _decisions(phase: PhaseBoard) -> Iterator[str]:
    for line in phase.facts.lines_of("decisions"):
        yield _sentence(line, "agent", "dec", "reason")
    for escalation in phase.escalations:
        if escalation.decision:
            yield f"{escalation.id}: {escalation.question} → {escalation.decision}"


def _list_deviations(phase: PhaseBoard) -> Iterator[str]:
    for line in phase.facts.lines_of("summary"):
        for deviation in texts(line.get("dv")):
            yield f"{line.get('p', '')}-{line.get('n', '')}: {deviation}"
    yield from (str(finding) for finding in (*phase.false_claims, *phase.out_of_lane))
    yield from (
        f"changed after the sign-off, and not reviewed: {each.in_words}"
        for each in phase.changed_after_sign_off
    )
    if phase.unknown_order:
        yield phase.unknown_order


def _tests(phase: PhaseBoard, verification: VerifyRun | None) -> Iterator[str]:
    if verification:
        yield f"{verification.sentence}: {shlex.join(verification.command)}"
    for line in sorted(
        phase.facts.lines_of("test-results"), key=lambda line: str(line.get("plan"))
    ):
        failed = f", {line['fl']} failed" if line.get("fl") else ""
        yield f"{line.get('plan')}: {line.get('ps')} of {line.get('tc')} passed{failed}"


def _security(phase: PhaseBoard) -> Iterator[str]:
    for audit in phase.facts.of_kind("security-audit"):
        for line in audit.lines:
            if "r" in line:
                count = counted(line.get("findings", 0), "finding")
                yield f"{audit.place.department}: {line['r']}, {count}"
            else:
                yield _sentence(line, "sev", "f", "issue")


def _signed(repository: Repository, phase: PhaseBoard) -> Iterator[str]:
    if commit := phase.facts.signed_off:
        log = repository.git.text("log", "--no-walk", "--format=%an, %aI: %s", commit)
        yield f"{commit[:SHORT]} {log.strip()}"
    for line in phase.facts.lines_of("owner-signoff"):
        approved = ", ".join(texts(line.get("departments_approved"))) or "no department"
        notes = f": {line['notes']}" if line.get("notes") else ""
        yield f"owner: {line.get('decision')}, {approved}{notes}"


def _sentence(line: Mapping[str, Any], *keys: str) -> str:
    return ": ".join(str(line[key]) for key in keys if line.get(key))
