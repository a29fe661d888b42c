"""The formats of texts and numbers that the fields of shapes have: ids, days, moments, paths."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from yolo_fs.core.ids import DEPARTMENT_MARKER, spells_git, stays_inside
from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.schemas.base import SHOULD, fault


def _require_pattern(pattern: str, example: str, meaning: str, grade: Any = None) -> Any:
    return Field(pattern=pattern, examples=[example], description=meaning, json_schema_extra=grade)


def _require_real_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a valid date"
        raise fault(Reason.BAD_FORMAT, message, expected="2026-02-19", grade=Grade.SHOULD) from None
    return text


def real_instant(text: str) -> str:
    """Return the text of a moment that exists."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise fault(
            Reason.BAD_FORMAT, f"{text!r} is not a timestamp", expected="2026-02-19T08:00:00Z"
        ) from None
    return text


def _require_inside_path(text: str, *, grade: Grade = Grade.MUST) -> str:
    if not stays_inside(text):
        posix = text.replace("\\", "/")
        if posix != text and stays_inside(posix):
            message = f"{text!r} is not written with '/'"
            raise fault(Reason.PATH_ESCAPES, message, expected=posix, grade=grade)
        is_git = any(map(spells_git, text.split("/")))
        raise fault(
            Reason.PATH_ESCAPES,
            f"{text!r} is in a git directory" if is_git else f"{text!r} leaves the repository",
            expected="a relative POSIX path such as src/auth.ts",
            grade=grade,
        )
    return text


def _advise_inside_path(text: str) -> str:
    return _require_inside_path(text, grade=Grade.SHOULD)


def _advise_no_pattern(text: str) -> str:
    if "*" in text:
        folder = text.partition("*")[0].rpartition("/")[0]
        message = f"{text!r} is a pattern"
        expected = f"the files, or their folder{f' {folder}' if folder else ''}"
        raise fault(Reason.BAD_FORMAT, message, expected=expected, grade=Grade.SHOULD)
    return text


def _advise_no_more_than_path(text: str) -> str:
    path = text.strip(" `'\"")
    path = path.rpartition(" (")[0] if path.endswith(")") and " (" in path else path
    if path and path != text:
        message = f"{text!r} is more than a path"
        raise fault(Reason.BAD_FORMAT, message, expected=path, grade=Grade.SHOULD)
    if ", " in text:
        message, expected = f"{text!r} is more than one path", "each path as a separate member"
        raise fault(Reason.BAD_FORMAT, message, expected=expected, grade=Grade.SHOULD)
    return text


Text = Annotated[str, Field(min_length=1, examples=["a sentence"], json_schema_extra=SHOULD)]
"""A text that is not blank."""
Statement = Annotated[
    str, _require_pattern(r"\S", "Login has no rate limit", "a text that is not blank")
]
"""The text without which a record says nothing: what was found, asked or decided."""
Name = Annotated[str, _require_pattern(r"\S", "login-form", "a name")]
"""What its record is about."""
OneLine = Annotated[
    str,
    _require_pattern(
        r"^[^\r\n]*\S[^\r\n]*$", "one line of text", "one line that is not blank", SHOULD
    ),
]
Summary500 = Annotated[
    str, Field(min_length=1, max_length=499, examples=["two or three sentences"])
]
"""Fewer than 500 characters."""
ModelName = Annotated[
    str,
    _require_pattern(r"^[A-Za-z0-9][\w.:/@+\[\]-]{0,199}$", "claude-opus-4", "the name of a model"),
]
"""One word that no program takes for an option."""
Number = float
"""A whole number is a number too."""
Count = Annotated[int, Field(ge=0, examples=[3])]
Positive = Annotated[int, Field(ge=1, examples=[1])]
LineNumber = Annotated[int, Field(ge=0, examples=[12], json_schema_extra=SHOULD)]
"""Line of a file from 1; 0 for the whole file."""
Percent = Annotated[float, Field(ge=0, le=100, examples=[50])]
Fraction = Annotated[float, Field(ge=0, le=1, examples=[0.92])]
PhaseNumber = Annotated[str, _require_pattern(r"^[0-9]{2}$", "01", "phase number, two digits")]
PlanName = Annotated[str, _require_pattern(r"^[0-9]{2}-[0-9]{2}$", "01-02", "plan id NN-MM")]
TaskName = Annotated[
    str, _require_pattern(r"^T[1-9][0-9]*$", "T1", "task id within its plan", SHOULD)
]
TaskPath = Annotated[
    str,
    _require_pattern(r"^[0-9]{2}-[0-9]{2}/T[1-9][0-9]*$", "01-02/T3", "task reference NN-MM/Tk"),
]
FindingName = Annotated[str, _require_pattern(r"^C[1-9][0-9]*$", "C1", "finding id", SHOULD)]
EscalationName = Annotated[
    str,
    _require_pattern(
        rf"^ESC-{DEPARTMENT_MARKER}[0-9]{{2}}-[0-9]{{2}}-T[1-9][0-9]*$",
        "ESC-01-02-T3",
        "escalation id ESC-NN-MM-Tk",
    ),
]
Commit = Annotated[
    str, _require_pattern(r"^[0-9a-f]{7,64}$", "abc1234", "commit hash, 7 digits or more")
]
IsoDate = Annotated[
    str,
    _require_pattern(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "2026-02-19", "a day", SHOULD),
    AfterValidator(_require_real_date),
]
_INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
IsoInstant = Annotated[
    str,
    _require_pattern(_INSTANT, "2026-02-19T08:00:00Z", "a timestamp with its time zone"),
    AfterValidator(real_instant),
]
"""A moment that is compared with others."""
NotedInstant = Annotated[
    str,
    _require_pattern(_INSTANT, "2026-02-19T08:00:00Z", "a timestamp with its time zone", SHOULD),
]
"""A moment that is only shown."""
_PATH: Any = Field(
    min_length=1, examples=["src/auth.ts"], description="relative path", json_schema_extra=SHOULD
)
RelativePath = Annotated[str, _PATH, AfterValidator(_require_inside_path)]
"""A path that is opened."""
OptionalPath = Annotated[
    str,
    Field(examples=["src/auth.ts"], description="relative path, or nothing"),
    AfterValidator(_require_inside_path),
]
NotedPath = Annotated[str, _PATH, AfterValidator(_advise_inside_path)]
"""A path that is shown, and compared with those that commits have."""
WorkPath = Annotated[
    NotedPath, AfterValidator(_advise_no_pattern), AfterValidator(_advise_no_more_than_path)
]
"""A file or folder that somebody works on: what commits change is compared with it."""
