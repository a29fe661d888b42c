"""`yolo-fs validate`: check files against the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.annotations import as_github, as_sarif
from yolo_fs.cli.given import from_stdin
from yolo_fs.cli.reply import Invocation, Reply, envelope, verb
from yolo_fs.reasons import Exit, Finding, Level, safe
from yolo_fs.rules.artifacts.catalogue import kind_named
from yolo_fs.rules.artifacts.repair import diff, mended
from yolo_fs.services.checking.checker import CheckedFile
from yolo_fs.services.checking.validate import STDIN, Tally, Validator

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(slots=True)
class _Result:
    """What a run found."""

    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    suggestions: list[tuple[str, str]] = field(default_factory=list)
    """(path, unified diff)."""

    @property
    def exit_code(self) -> Exit:
        return Exit.FINDINGS if self.tally.errors else Exit.DONE

    def data(self) -> dict[str, Any]:
        tally = self.tally
        examples = {name: tally.examples[name] for name in ("ok", "bad", "disagree")}
        counts = {
            "checked": tally.checked,
            "errors": tally.errors,
            "warnings": tally.warnings,
            "examples": examples,
        }
        return counts | {
            "suggestions": [{"path": path, "diff": text} for path, text in self.suggestions]
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
    help="How to answer.",
)
@click.option(
    "--suggest",
    is_flag=True,
    help="Print a diff of what can be put right mechanically; write nothing.",
)
def validate(
    asked: Invocation,
    *,
    paths: Sequence[str],
    staged: bool,
    kind: str | None,
    form: str,
    suggest: bool,
) -> Reply:
    """Check artifacts, messages, handoffs, state and configuration against the protocol.

    Without PATH: the whole planning tree. A PATH is a file, a folder, or - for a text on stdin (a message,
    or what --type says). Files in folders called ok and bad are examples and must be what their names say.
    Ends with 1 when there is an error; warnings alone do not count.
    """
    if staged and STDIN in paths:
        raise click.UsageError("--staged reads the index, not stdin")
    validator = Validator(asked.start, kind_named(kind) if kind else None)
    try:
        result = _collected(_judged(validator, paths, staged=staged), suggest=suggest)
    finally:
        validator.close()
    # Where a diff or another program's words fill stdout, or people read it, findings are not printed twice.
    goes_with = result.findings if asked.as_json or (suggest and form == "text") else ()
    show = _show_suggestions if suggest and form == "text" else _FORMS[form]
    return Reply(result.data(), goes_with, result.exit_code, lambda console: show(console, result))


def _judged(validator: Validator, paths: Sequence[str], *, staged: bool) -> Iterator[CheckedFile]:
    if staged:
        yield from validator.staged(paths)
    elif not paths:
        yield from validator.tree()
    for path in () if staged else paths:
        if path == STDIN:
            yield validator.text(from_stdin(validator.max_bytes))
        else:
            yield from validator.paths((path,))


def _collected(judged: Iterable[CheckedFile], *, suggest: bool) -> _Result:
    result = _Result()
    for one in judged:
        result.tally.add(one)
        result.findings += one.findings
        fresh = mended(one.data, one.kind) if suggest and one.kind and one.findings else None
        if fresh is not None:
            result.suggestions.append((one.path, diff(one.data, fresh, safe(one.path, 4096))))
    return result


def _show_findings(console: Console, result: _Result) -> None:
    for finding in result.findings:
        mark = "warning: " if finding.level is Level.WARNING else ""
        console.print(f"{mark}{finding}", soft_wrap=True)
    console.print(_summary(result.tally), soft_wrap=True)


def _show_suggestions(console: Console, result: _Result) -> None:
    for _, text in result.suggestions:
        # A pipe gets the bytes that `git apply` needs; a terminal must not obey what a file says.
        shown = (
            "\n".join(safe(line, 4096) for line in text.split("\n"))
            if console.is_terminal
            else text
        )
        console.file.write(shown)


def _summary(tally: Tally) -> str:
    files = f"{tally.checked} file{'' if tally.checked == 1 else 's'} checked"
    said = [files, f"{tally.errors} errors", f"{tally.warnings} warnings"]
    if good_or_bad := tally.examples["ok"] + tally.examples["bad"]:
        agree = good_or_bad - tally.examples["disagree"]
        said.append(f"{agree} of {good_or_bad} examples agree with their names")
    return ", ".join(said)


def _show_envelope(console: Console, result: _Result) -> None:
    is_good = result.exit_code is Exit.DONE
    console.file.write(envelope("validate", result.data(), result.findings, ok=is_good) + "\n")


def _show_github(console: Console, result: _Result) -> None:
    console.file.write(as_github(result.findings))


def _show_sarif(console: Console, result: _Result) -> None:
    console.file.write(as_sarif(result.findings))


_FORMS: dict[str, Callable[[Console, _Result], None]] = {
    "text": _show_findings,
    "json": _show_envelope,
    "github": _show_github,
    "sarif": _show_sarif,
}
