"""Repairs files by what needs no decision of their author, and asks for what does; a planning tree
that is already there is looked at as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from yolo_fs.edges.files import Content, names_in, read
from yolo_fs.edges.readers import read_lines
from yolo_fs.edges.store import write_atomic
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.adoption import AdoptedFile, Readiness, TeamWord
from yolo_fs.rules.artifacts.catalogue import Kind, artifact_of
from yolo_fs.rules.artifacts.classify import (
    PLAN_SUFFIX,
    SUMMARY_SUFFIX,
    classify,
    in_tree,
    place_of_name,
    plans_named,
)
from yolo_fs.rules.artifacts.corrections import Correction, words_of
from yolo_fs.rules.artifacts.export import field_docs
from yolo_fs.rules.artifacts.repair import MAX_BYTES, mended
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.schemas.layout import Format
from yolo_fs.services.checking.validate import CheckedFile, Validator
from yolo_fs.services.workspace import output_place


class Fixed(NamedTuple):
    """One file, what it would be, and what its author has to decide."""

    path: str
    before: bytes
    after: bytes
    questions: tuple[Finding, ...]
    """What is wrong after the repair; each hint is the question to answer."""
    was_written: bool = False
    words: tuple[TeamWord, ...] = ()
    """What its team seems to mean; see `words_of`."""

    @property
    def is_changed(self) -> bool:
        """Whether anything can be repaired."""
        return self.before != self.after


def fix(validator: Validator, file: CheckedFile, full: str, *, write: bool) -> Fixed:
    """Repair a file that was checked; `full`: its absolute path."""
    after = file.data
    if file.kind and file.data and _is_repairable(file.kind):
        after = mended(file.data, file.kind, correction_of(full, validator.aliases)) or file.data
        after = validator.with_records(full, after)
    judged = validator.again(full, file.path, after) if after != file.data else file
    questions = _questions(judged)
    place = _place_of(full)
    words = tuple(words_of(place, judged.records, questions)) if place and questions else ()
    fixed = Fixed(file.path, file.data, after, questions, words=words)
    if write and fixed.is_changed:
        if _write(full, fixed, validator.max_bytes):
            return fixed._replace(was_written=True)
        changed = Finding(
            Reason.BEING_WRITTEN,
            file.path,
            message="the file changed while it was repaired; nothing was written",
            hint="run the command again",
        )
        return fixed._replace(questions=(changed,))
    return fixed


def correction_of(
    full: str, aliases: Mapping[str, Mapping[str, str]] | None = None
) -> Correction | None:
    """Return by what a file may be corrected, from its path; None where it is no artifact.

    `aliases`: of the policy.
    """
    location = in_tree(full)
    place = _place_of(full)
    if place is None:
        return None
    root = location.root if location else ""
    plans = plans_named(names_in(os.path.dirname(full)))
    own = (aliases or {}).get(place.artifact.kind, {})
    return Correction(place, root, plans, aliases=own, of_plan=_plan_of(place, full))


def _plan_of(place: Place, full: str) -> Sequence[Mapping[str, Any]]:
    """Return the lines of the plan that a summary is of."""
    folder, name = os.path.split(full)
    if place.plan is None or name.endswith(PLAN_SUFFIX):
        return ()
    plan = read(folder, name.removesuffix(SUMMARY_SUFFIX) + PLAN_SUFFIX, MAX_BYTES)
    if not isinstance(plan, Content):
        return ()
    reading = read_lines(plan.data, name)
    return [] if errors(reading.findings) else [record.value for record in reading.records]


def _place_of(full: str) -> Place | None:
    location = in_tree(full)
    place = classify(location.path) if location else None
    return place or place_of_name(os.path.basename(full))


def _is_repairable(kind: Kind) -> bool:
    return kind.format in (Format.JSON, Format.JSONL, Format.TEXT, Format.TOON)


def _questions(file: CheckedFile) -> tuple[Finding, ...]:
    return tuple(
        replace(finding, hint=_question(file, finding))
        if finding.reason is not Reason.WAITS_FOR
        else finding
        for finding in errors(file.findings)
    )


def _question(file: CheckedFile, finding: Finding) -> str:
    """Return what the author has to answer."""
    key = finding.at.rpartition("/")[2]
    meaning = _meaning(file, key)
    if finding.reason is Reason.MISSING_KEY:
        asked = meaning.partition(":")[0].strip(". ").lower()
        return f"`{key}` is absent: what is the {asked}?" if asked else f"what is `{key}`?"
    if finding.reason is Reason.UNKNOWN_VALUE:
        return f"which of the listed values of `{key}` is meant? {meaning}".strip()
    if finding.reason is Reason.UNKNOWN_COMMIT:
        return "which commit of this repository is meant?"
    if key and meaning:
        return f"what is `{key}`? {meaning}"
    return finding.hint or "how is this meant?"


def _meaning(file: CheckedFile, key: str) -> str:
    artifact = artifact_of(file.kind) if file.kind else None
    shapes: Sequence[type] = ()
    if artifact is not None:
        shapes = artifact.shapes
    return next((said for shape in shapes if (said := field_docs(shape).get(key))), "")


def _write(full: str, fixed: Fixed, limit_bytes: int) -> bool:
    """Replace a file whole, unless it is a link or no longer what the repair was computed from."""
    folder, name = os.path.split(full)
    now = read(folder, name, limit_bytes)
    if not isinstance(now, Content) or now.being_written or now.data != fixed.before:
        return False
    with suppress(OSError):
        mode = os.stat(full, follow_symlinks=False).st_mode & 0o777
        top, path = output_place(full, folder)
        write_atomic(path, fixed.after, root=top, mode=mode)
        return True
    return False


def adopt_file(
    validator: Validator, file: CheckedFile, full: str, *, write: bool
) -> AdoptedFile | None:
    """Return how a file that was checked stands, repaired when `write`; None when it is no
    artifact.

    Only a file that would be refused is changed, and only when nothing is left to be decided.
    """
    if any(finding.reason is Reason.UNKNOWN_NAME for finding in file.findings):
        return AdoptedFile(file.path, "", Readiness.MISNAMED, file.findings)
    artifact = artifact_of(file.kind) if file.kind else None
    if artifact is None:
        return None
    if not errors(file.findings):
        readiness = Readiness.UNTIDY if file.findings else Readiness.VALID
        return AdoptedFile(file.path, artifact.kind, readiness, file.findings)
    fixed = fix(validator, file, full, write=False)
    if fixed.questions:
        asked = fixed.questions
        return AdoptedFile(file.path, artifact.kind, Readiness.AUTHOR, asked, fixed.words)
    if write:
        fixed = fix(validator, file, full, write=True)
    readiness = Readiness.AUTHOR if fixed.questions else Readiness.REPAIRABLE
    findings = fixed.questions or errors(file.findings)
    return AdoptedFile(file.path, artifact.kind, readiness, findings)
