"""`validate-config F [DEFAULTS]`: the five sections that the reference checks; faults elsewhere are warnings.

Any model may be named in `force_analyze_model`: the reference's list rejects its own defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json
from yolo_fs.compat.shapes import in_words
from yolo_fs.reasons import Level, YoloError, safe
from yolo_fs.schemas.base import Fault, check
from yolo_fs.schemas.config import Config

SECTIONS = (
    "/qa_gates",
    "/integration_gate",
    "/po/default_rejection",
    "/delivery",
    "/complexity_routing",
)


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, most=2)
    if not given.rest:
        raise UsageError("it takes one configuration: validate-config FILE [DEFAULTS]")
    path, *defaults = given.rest
    try:
        value = {**_object(defaults[0] if defaults else ""), **_object(path)}
    except YoloError as error:
        return _answer([safe(error.message, 500)], [])
    faults = check(Config, value)[1]
    asked = [fault for fault in faults if _is_asked(fault)]
    return _answer(
        [_said(fault) for fault in asked], [_said(fault) for fault in faults if fault not in asked]
    )


def _object(path: str) -> dict[str, Any]:
    if not path:
        return {}
    found = read_object(path)
    if found is None:
        raise UsageError(f"File not found: {path}")
    return found


def _is_asked(fault: Fault) -> bool:
    return fault.level is Level.ERROR and any(
        f"{fault.at}/".startswith(f"{section}/") for section in SECTIONS
    )


def _said(fault: Fault) -> str:
    return f"{safe(fault.at.removeprefix('/').replace('/', '.'))}: {in_words(fault)}"


def _answer(errors: Sequence[str], warnings: Sequence[str]) -> int:
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0
