"""Looks at a planning tree that is already there, and repairs what needs no decision."""

from __future__ import annotations

from yolo_fs.reasons import Reason, errors
from yolo_fs.rules.adoption import AdoptedFile, Readiness
from yolo_fs.rules.artifacts.catalogue import artifact_of
from yolo_fs.services.checking.fix import fix
from yolo_fs.services.checking.validate import CheckedFile, Validator


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
