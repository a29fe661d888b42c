"""Findings in the words of other programs: workflow commands of GitHub, and SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from yolo_fs import __version__
from yolo_fs.reasons import Finding, safe

_SHOWN = 1_000
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def as_github(findings: Sequence[Finding]) -> str:
    """Return one workflow command per finding."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    line = {"line": str(finding.line)} if finding.line else {}
    properties = {"file": safe(finding.path, _SHOWN), **line, "title": finding.reason.value}
    written = ",".join(
        f"{key}={value.translate(_IN_PROPERTY)}" for key, value in properties.items()
    )
    return f"::{finding.level.value} {written}::{said(finding).translate(_IN_MESSAGE)}"


def as_sarif(findings: Sequence[Finding]) -> str:
    """Return a SARIF log of one run."""
    reasons = list(dict.fromkeys(finding.reason for finding in findings))
    rules = [
        {"id": reason.value, "shortDescription": {"text": reason.sentence}} for reason in reasons
    ]
    results = [_result(finding, reasons.index(finding.reason)) for finding in findings]
    driver = {"name": "yolo-fs", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2) + "\n"


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "artifactLocation": {"uri": quote(finding.path.encode("utf-8", "surrogateescape"))}
    }
    if finding.line:
        place["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.reason.value,
        "ruleIndex": rule,
        "level": finding.level.value,
        "message": {"text": said(finding)},
        "locations": [{"physicalLocation": place}],
    }


def said(finding: Finding) -> str:
    """Return what a finding says beside its place, fit for a terminal."""
    at = f"at {finding.at}: " if finding.at else ""
    expected = f"; expected {finding.expected}" if finding.expected else ""
    hint = f". {finding.hint}" if finding.hint else ""
    return safe(f"{at}{finding.message or finding.reason.sentence}{expected}{hint}", _SHOWN)
