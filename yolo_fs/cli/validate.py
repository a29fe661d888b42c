"""`yolo-fs validate`: check files against the protocol.

On a terminal, long work shows its progress; elsewhere, and where the work is soon over, nothing is
shown.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click

from yolo_fs import __version__
from yolo_fs.artifacts.misnamed import kind_called
from yolo_fs.checking.fix import Fixable, fixable_of
from yolo_fs.checking.validate import STDIN, CheckedFile, Validator
from yolo_fs.cli.reply import Invocation, Reply, from_stdin, verb
from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Exit, Finding, Level, counted, errors, safe

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(slots=True)
class _Result:
    """The result of a run."""

    checked: int = 0
    findings: list[Finding] = field(default_factory=list)
    files: list[CheckedFile] = field(default_factory=list)
    """The files with findings."""
    fixable: Fixable = field(default_factory=Fixable)

    @property
    def error_count(self) -> int:
        return len(errors(self.findings))

    @property
    def warning_count(self) -> int:
        return len(self.findings) - self.error_count

    @property
    def exit_code(self) -> Exit:
        return Exit.FINDINGS if self.error_count else Exit.DONE

    def data(self) -> dict[str, Any]:
        return {
            "checked": self.checked,
            "errors": self.error_count,
            "warnings": self.warning_count,
            "fixable": self.fixable.fixable,
            "fix": self.fixable.command,
            "corrected": [each._asdict() for each in self.fixable.lines],
            "revealed": [str(finding) for finding in self.fixable.revealed],
        }


@verb("validate", example="yolo-fs validate .yolo-planning/phases/01-auth/critique.jsonl")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--staged", is_flag=True, help="Check what the index would commit, not the work tree."
)
@click.option(
    "--type", "kind", metavar="KIND", help="What the files are; see 'yolo-fs schema list'."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    help="Output format.",
)
def validate(
    invocation: Invocation, *, paths: Sequence[str], staged: bool, kind: str | None, form: str
) -> Reply:
    """Check artifacts, messages, handoffs, state and configuration against the protocol.

    Without PATH: the whole planning tree. A PATH is a file, a folder, or - for a text on stdin (a
    message, or of the kind --type). Exit 1 when there is an error; warnings alone do not count.
    """
    if staged and STDIN in paths:
        raise click.UsageError("--staged reads the index, not stdin")
    with closing(Validator(invocation.start, kind_called(kind) if kind else None)) as validator:
        files = watched(_checked(validator, paths, staged=staged), "files", quiet=invocation.quiet)
        result = _collect_result(files)
        is_whole = staged or not paths
        result.fixable = fixable_of(validator, result.files, of_tree=is_whole)
    # Findings must not be printed twice where another format fills stdout, or people read it.
    goes_with = result.findings if invocation.as_json else ()
    show = _FORMS[form]
    return Reply(result.data(), goes_with, result.exit_code, lambda console: show(console, result))


def _checked(validator: Validator, paths: Sequence[str], *, staged: bool) -> Iterator[CheckedFile]:
    if staged:
        yield from validator.staged(paths)
    elif not paths:
        yield from validator.tree()
    for path in () if staged else paths:
        if path == STDIN:
            yield validator.text(from_stdin(validator.max_bytes))
        else:
            yield from validator.paths((path,))


def _collect_result(files: Iterable[CheckedFile]) -> _Result:
    result = _Result()
    for file in files:
        result.checked += 1
        result.findings += file.findings
        if file.findings:
            result.files.append(file)
    return result


def _show_findings(console: Console, result: _Result) -> None:
    corrected = {(each.path, each.line): each.text for each in result.fixable.lines}
    last = {(each.path, each.line): at for at, each in enumerate(result.findings)}
    for at, finding in enumerate(result.findings):
        mark = "warning: " if finding.level is Level.WARNING else ""
        console.print(f"{mark}{finding}", soft_wrap=True)
        key = finding.path, finding.line
        if last[key] == at and key in corrected:
            console.print(f"  corrected: {safe(corrected[key], _LONGEST)}", soft_wrap=True)
    console.print(_summary(result), soft_wrap=True)
    if sentence := result.fixable.sentence:
        console.print(sentence, soft_wrap=True)


def _summary(result: _Result) -> str:
    counts = (
        (result.checked, "file"),
        (result.error_count, "error"),
        (result.warning_count, "warning"),
    )
    files, wrong, warned = (counted(number, what) for number, what in counts)
    return f"{files} checked, {wrong}, {warned}"


def _show_envelope(console: Console, result: _Result) -> None:
    is_good = result.exit_code is Exit.DONE
    console.file.write(envelope("validate", result.data(), result.findings, ok=is_good) + "\n")


_FORMS: dict[str, Callable[[Console, _Result], None]] = {
    "text": _show_findings,
    "json": _show_envelope,
    "github": lambda console, result: print(as_github(result.findings), end="", file=console.file),
    "sarif": lambda console, result: print(as_sarif(result.findings), end="", file=console.file),
}


_SHOWN = 1_000
_LONGEST = 4_000
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
    """Return the text of a finding without its place, safe for a terminal."""
    at = f"at {finding.at}: " if finding.at else ""
    expected = f"; expected {finding.expected}" if finding.expected else ""
    hint = f". {finding.hint}" if finding.hint else ""
    return safe(f"{at}{finding.message or finding.reason.sentence}{expected}{hint}", _SHOWN)


PATIENCE_S = 0.5
"""Seconds of work before progress is shown."""
_EVERY_S = 0.1
_CELLS = 24
CLEARED = "\r\x1b[K"
"""Clears the current line of a terminal."""
_Item = TypeVar("_Item")


def watched(
    items: Iterable[_Item],
    what: str,
    total_of: Callable[[_Item], int] | None = None,
    *,
    quiet: bool = False,
) -> Iterator[_Item]:
    """Yield the items, and show progress on stderr.

    `total_of`: returns the total number from an item.
    """
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    due = time.monotonic() + PATIENCE_S
    shown = False
    try:
        for number, item in enumerate(items, 1):
            if time.monotonic() >= due:
                shown, due = True, time.monotonic() + _EVERY_S
                total = total_of(item) if total_of else 0
                print(f"{CLEARED}{bar(number, total)} {what}", end="", file=sys.stderr, flush=True)
            yield item
    finally:
        if shown:
            print(CLEARED, end="", file=sys.stderr, flush=True)


def bar(number: int, total: int) -> str:
    """Return the progress, as a bar if the total is known."""
    if total <= 0:
        return str(number)
    full = _CELLS * min(number, total) // total
    return f"[{'#' * full}{'.' * (_CELLS - full)}] {number} of {total}"
