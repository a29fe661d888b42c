"""Which commit subjects fit here and now: that of a staged artifact, and the right one nearest to a
wrong one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from glob import glob

from yolo_fs.edges.files import names_in
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.naming import subject_of, trailers_of
from yolo_fs.rules.artifacts.table import ARTIFACTS
from yolo_fs.rules.hooks.spelling import nearest
from yolo_fs.services.checking.checker import previous_records
from yolo_fs.services.checking.validate import Validator


def prescribed_for(path: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return subject and trailers of an artifact as it is staged; None when it is none, or not
    valid.
    """
    place = classify(path)
    if place is None:
        return None
    validator = Validator(".")
    try:
        valid = [file for file in validator.staged([path]) if not errors(file.findings)]
    finally:
        validator.close()
    if not valid or not valid[0].records:
        return None
    with Repository(".") as repository:
        blob = repository.blob_at(repository.head().tip, path)
        before = previous_records(repository, place, blob)
    trailers = trailers_of(place, len(valid[0].findings))
    return subject_of(place, valid[0].records, before), trailers


def subject_fault(subject: str, root: str = ".") -> Finding:
    """Return what is wrong with a subject, and what would be right in the work tree `root`."""
    right = nearest(subject, *_what_is_there(root))
    hint = f"Nearest right subject: {right}"
    return Finding(
        Reason.SUBJECT_MISMATCH,
        "",
        0,
        "",
        f"the subject is {subject!r}",
        "{type}({scope}): {text}",
        hint,
    )


def _what_is_there(root: str) -> tuple[list[str], str]:
    """Return the subjects that could be meant here, and the plan that is probably worked on; from
    names alone.
    """
    prescribed: list[str] = []
    names = sorted(glob(f"{root}/{PLANNING_ROOT}/phases/*/*.plan.jsonl"))
    places = [place for name in names if (place := classify(os.path.relpath(name, root)))]
    numbers = sorted(folder[:2] for folder in _phases(root))
    for artifact in ARTIFACTS:
        for subject in artifact.subjects:
            gaps = [
                {"plan": str(place.plan), "phase": place.plan.phase}
                for place in places
                if place.plan
            ]
            gaps += [{"phase": number} for number in numbers]
            prescribed += [text for gap in gaps if (text := _rendered(subject.template, gap))]
    scope = numbers[-1] if numbers else "repo"
    if places:
        scope = str(places[-1].plan)
    return list(dict.fromkeys(prescribed)), scope


def _phases(root: str) -> list[str]:
    return [name for name in names_in(f"{root}/{PLANNING_ROOT}/phases") if name[:2].isdigit()]


def _rendered(template: str, gaps: Mapping[str, str]) -> str:
    try:
        return template.format(**gaps)
    except KeyError:
        return ""
