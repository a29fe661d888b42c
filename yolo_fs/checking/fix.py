"""Repairs files where that needs no decision of their author, and asks for the rest; also examines
an existing planning tree as a whole.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from yolo_fs.artifacts.adoption import AdoptedFile, Readiness, TeamWord
from yolo_fs.artifacts.catalogue import artifact_of
from yolo_fs.artifacts.classify import (
    PLAN_SUFFIX,
    SUMMARY_SUFFIX,
    classify,
    in_tree,
    place_of_name,
    plans_named,
)
from yolo_fs.artifacts.corrections import Correction, words_of
from yolo_fs.artifacts.export import field_docs
from yolo_fs.artifacts.misnamed import misnamed, place_meant_by
from yolo_fs.artifacts.repair import MAX_BYTES, mended
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.validate import STDIN, CheckedFile, Validator
from yolo_fs.core.credentials import redact
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors, safe
from yolo_fs.handoffs.repair import mended_packet
from yolo_fs.schemas.layout import Format, is_skeleton
from yolo_fs.system.files import Content, names_in, read
from yolo_fs.system.readers import read_lines
from yolo_fs.system.store import write_atomic
from yolo_fs.workspace.output_places import output_place


class Fixed(NamedTuple):
    """One file, its repaired content, and what its author has to decide."""

    path: str
    before: bytes
    after: bytes
    questions: tuple[Finding, ...]
    """What is still wrong after the repair; each hint is a question to the author."""
    was_written: bool = False
    words: tuple[TeamWord, ...] = ()
    """Likely meanings of its team's own words; see `words_of`."""
    left: tuple[Finding, ...] = ()
    """All findings after the repair, including warnings."""

    @property
    def is_changed(self) -> bool:
        """Whether anything can be repaired."""
        return self.before != self.after


def fix(validator: Validator, file: CheckedFile, full: str, *, write: bool) -> Fixed:
    """Repair a file that was checked; `full`: its absolute path."""
    after = file.data
    if file.kind and file.data and not is_skeleton(file.data):
        before = validator.with_records(full, file.data)
        after = mended(before, file.kind, correction_of(full, validator.aliases)) or before
        if file.kind.format is Format.FRONT_MATTER:
            after = _with_mended_packet(validator, file.path, full, after)
    judged = validator.again(full, file.path, after) if after != file.data else file
    questions = _add_questions(judged)
    place = _place_of(full)
    words = tuple(words_of(place, judged.records, questions)) if place and questions else ()
    fixed = Fixed(file.path, file.data, after, questions, words=words, left=judged.findings)
    if write and fixed.is_changed:
        if written(validator, full, fixed):
            return fixed._replace(was_written=True)
        changed = Finding(
            Reason.BEING_WRITTEN,
            file.path,
            message="the file changed while it was repaired; nothing was written",
            hint="run the command again",
        )
        return fixed._replace(questions=(changed,))
    return fixed


def _with_mended_packet(validator: Validator, path: str, full: str, data: bytes) -> bytes:
    """Return the content of a HANDOFF.md with its packet repaired."""
    if len(data) > MAX_BYTES:
        return data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    records = validator.again(full, path, data).records
    texts = records[0].value["handoff"] if records else {}
    return mended_packet(text, texts, validator.root).encode()


class CorrectedLine(NamedTuple):
    """A line after its repair that needs no further decision."""

    path: str
    line: int
    text: str


class Fixable(NamedTuple):
    """How many of the findings on some files the repair resolves."""

    findings: int = 0
    fixable: int = 0
    paths: tuple[str, ...] = ()
    """The files that it changes, as the caller spells them."""
    lines: tuple[CorrectedLine, ...] = ()
    revealed: tuple[Finding, ...] = ()
    """Errors that only the repaired files show."""
    misnamed: tuple[Finding, ...] = ()
    """Wrong names of the files that it changes, which are renamed afterwards."""

    @property
    def command(self) -> str:
        """The repairing command; empty if it resolves nothing."""
        if not self.fixable:
            return ""
        named = [shlex.quote(safe(path, 4096)) for path in self.paths]
        return " ".join(("yolo-fs fix", *(named if len(named) == 1 else ()), "--write"))

    @property
    def sentence(self) -> str:
        """Both numbers and the command, and what its author does then; empty if it resolves
        nothing, and only the repaired text shows nothing else.
        """
        named = [(safe(each.path, 4096), safe(each.expected, 4096)) for each in self.misnamed]
        renames = [f"Then rename {path} to {name}" for path, name in named[:_MOST_LISTED]]
        if more := len(named) - len(renames):
            renames.append(f"and rename {more} more: 'yolo-fs validate' names each")
        what = f"{self.fixable} of {self.findings} fixable: {self.command}" if self.fixable else ""
        return "\n".join(filter(None, (what, *renames, self.by_hand)))

    @property
    def by_hand(self) -> str:
        """What its author mends after the repair; empty for nothing."""
        told = [str(finding) for finding in self.revealed[:_MOST_LISTED]]
        if more := len(self.revealed) - len(told):
            told.append(f"and {more} more")
        return "\n".join(("Then fix by hand:", *told)) if told else ""


_MOST_LISTED = 20
_OF_LINES = (Format.JSONL, Format.FRONT_MATTER)


def fixable_of(
    validator: Validator, files: Iterable[CheckedFile], *, of_tree: bool = True
) -> Fixable:
    """Return how many of the findings `fix` resolves; nothing is written.

    `of_tree`: the paths are relative to the repository, not to the caller.
    """
    count, mended_count = 0, 0
    paths: list[str] = []
    lines: list[CorrectedLine] = []
    revealed: list[Finding] = []
    misnamed_files: list[Finding] = []
    for file in files:
        count += len(file.findings)
        if not file.findings or not file.data:
            continue
        if file.path == STDIN:
            fresh = _repaired_text(validator, file)
            lines += _line_of_message(file, fresh)
            revealed += find_revealed(file, fresh.findings)
            continue
        fixed = fix(validator, file, validator.full_path(file, of_tree=of_tree), write=False)
        gone = Counter(map(_identify, file.findings)) - Counter(map(_identify, fixed.left))
        if fixed.is_changed and gone:
            mended_count += gone.total()
            paths.append(file.path)
            lines += corrected_lines(file, fixed)
            misnamed_files += (each for each in fixed.left if each.reason is Reason.UNKNOWN_NAME)
            revealed += find_revealed(file, fixed.left)
    told = (tuple(lines), tuple(revealed), tuple(misnamed_files))
    return Fixable(count, mended_count, tuple(paths), *told)


def find_revealed(file: CheckedFile, left: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the errors that only the repaired text shows. `left`: its findings."""
    known = set(map(_identify, file.findings))
    yield from (each for each in errors(left) if _identify(each) not in known)


def _repaired_text(validator: Validator, file: CheckedFile) -> CheckedFile:
    """Return a text without a file, checked again after its repair."""
    after = mended(file.data, file.kind) if file.kind else None
    return validator.text(after) if after else file


def _line_of_message(file: CheckedFile, fresh: CheckedFile) -> Iterator[CorrectedLine]:
    """Yield the one line that a message is repaired to, if that makes it valid."""
    is_message = file.kind is not None and file.kind.format is Format.JSON
    if is_message and errors(file.findings) and not errors(fresh.findings) and fresh.records:
        text = json.dumps(fresh.records[0].value, ensure_ascii=False)
        if redact(text) == text:
            yield CorrectedLine(STDIN, errors(file.findings)[-1].line, text)


def fixable_in(root: str, paths: Sequence[str]) -> Fixable:
    """Return how many of the findings on files of a work tree `fix` resolves."""
    if not paths:
        return Fixable()
    validator = Validator(root)
    try:
        return fixable_of(validator, list(validator.paths(paths)), of_tree=False)
    finally:
        validator.close()


def _identify(finding: Finding) -> tuple[Reason, str, str]:
    return finding.reason, finding.at, finding.message


def corrected_lines(file: CheckedFile, fixed: Fixed) -> Iterator[CorrectedLine]:
    """Yield the invalid lines that the repair makes valid, in a file of lines."""
    before, after = fixed.before.split(b"\n"), fixed.after.split(b"\n")
    is_of_lines = file.kind is not None and file.kind.format in _OF_LINES
    if len(before) != len(after) or not is_of_lines:
        return
    wrong = {question.line for question in fixed.questions}
    for number in sorted({finding.line for finding in errors(file.findings)} - wrong - {0}):
        line = after[number - 1]
        if line in (b"", before[number - 1]):  # only a repaired line is known to be a text
            continue
        if redact(text := line.decode()) == text:
            yield CorrectedLine(file.path, number, text)


def correction_of(
    full: str, aliases: Mapping[str, Mapping[str, str]] | None = None
) -> Correction | None:
    """Return the context of a correction, from the path of a file; None if it is no artifact.

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


def _plan_of(place: ArtifactPath, full: str) -> Sequence[Mapping[str, Any]]:
    """Return the lines of the plan that a summary is of."""
    folder, name = os.path.split(full)
    if place.plan is None or name.endswith(PLAN_SUFFIX):
        return ()
    plan = read(folder, name.removesuffix(SUMMARY_SUFFIX) + PLAN_SUFFIX, MAX_BYTES)
    if not isinstance(plan, Content):
        return ()
    reading = read_lines(plan.data, name)
    return [] if errors(reading.findings) else [record.value for record in reading.records]


def _place_of(full: str) -> ArtifactPath | None:
    location = in_tree(full)
    place = classify(location.path) if location else None
    wrong = misnamed(location.path) if location and place is None else None
    meant = place_meant_by(wrong) if wrong else None
    return place or meant or place_of_name(os.path.basename(full))


def _add_questions(file: CheckedFile) -> tuple[Finding, ...]:
    return tuple(
        replace(finding, hint=_question(file, finding))
        if finding.reason is not Reason.WAITS_FOR
        else finding
        for finding in errors(file.findings)
    )


def _question(file: CheckedFile, finding: Finding) -> str:
    """Return what the author has to do, or else the question that the author has to answer."""
    if finding.hint:
        return finding.hint
    key = finding.at.rpartition("/")[2]
    meaning = _meaning(file, finding.line, key)
    if finding.reason is Reason.MISSING_KEY:
        subject = meaning.partition(":")[0].strip(". ").lower()
        return f"add `{key}`: {subject}" if subject else f"add `{key}`"
    if finding.reason is Reason.UNKNOWN_VALUE:
        return f"which of the listed values of `{key}` is meant? {meaning}".strip()
    return f"what is `{key}`? {meaning}" if key and meaning else "how is this meant?"


def _meaning(file: CheckedFile, line: int, key: str) -> str:
    """Return what a key means in the shape that its line has, else in any of its artifact."""
    artifact = artifact_of(file.kind) if file.kind else None
    if artifact is None:
        return ""
    of_line = (shape for record, shape in artifact.shapes_of(file.records) if record.line == line)
    shapes = filter(None, (*of_line, *artifact.shapes))
    return next((meaning for shape in shapes if (meaning := field_docs(shape).get(key))), "")


def written(validator: Validator, full: str, fixed: Fixed) -> bool:
    """Replace a file whole, unless it is a link or no longer what the repair was computed from;
    return whether it was.
    """
    folder, name = os.path.split(full)

    def refuse_change() -> None:
        now = read(folder, name, validator.max_bytes)
        if not isinstance(now, Content) or now.being_written or now.data != fixed.before:
            raise YoloError(Reason.BEING_WRITTEN)

    try:
        refuse_change()
        mode = os.stat(full, follow_symlinks=False).st_mode & 0o777
        top, path = output_place(full, folder)
        # To write the draft takes milliseconds, in which its author may go on.
        write_atomic(path, fixed.after, root=top, mode=mode, last_check=refuse_change)
    except OSError:
        return False
    except YoloError as error:
        if error.reason is not Reason.BEING_WRITTEN:
            raise
        return False
    return True


def adopt_file(
    validator: Validator, file: CheckedFile, full: str, *, write: bool
) -> AdoptedFile | None:
    """Return the readiness of a checked file, repaired if `write`; None if it is no artifact.

    Only a file that would be rejected is changed, and only if nothing is left to be decided.
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
        questions = fixed.questions
        return AdoptedFile(file.path, artifact.kind, Readiness.AUTHOR, questions, fixed.words)
    if write:
        fixed = fix(validator, file, full, write=True)
    readiness = Readiness.AUTHOR if fixed.questions else Readiness.REPAIRABLE
    findings = fixed.questions or errors(file.findings)
    return AdoptedFile(file.path, artifact.kind, readiness, findings)
