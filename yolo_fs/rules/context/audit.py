"""Proves a compiled context: every line is borne out by the lines that it cites, and none of them
is forbidden. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from yolo_fs.ids import PLAN
from yolo_fs.reasons import Finding, Reason
from yolo_fs.rules.authz.access import may_read
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.authz.targets import Target
from yolo_fs.rules.context.compiler import CompiledContext
from yolo_fs.rules.context.extractors import Scalar, flat
from yolo_fs.rules.context.render import Line
from yolo_fs.rules.context.sources import Origin

Fetch = Callable[[Origin], str | None]
"""Returns the source line that an origin names, or the file's name where it names the whole; None
when it is gone.
"""


def unproved_lines(compiled: CompiledContext, actor: Actor, fetch: Fetch) -> Iterator[Finding]:
    """Yield what a context cannot prove, line by line."""
    for number, line in enumerate(compiled.lines, 1):
        if not (line.origins or line.rule):
            yield _doubt(number, "nothing says where it comes from")
        for origin in line.origins:
            answer = may_read(actor, Target(origin.path)) if origin.path else None
            if answer and not answer.allowed:
                yield Finding(
                    Reason.OUT_OF_LANE, line=number, message=f"from {origin}: {answer.rule}"
                )
        if line.origins and (lost := _unsaid(line, fetch)):
            where = ", ".join(map(str, line.origins))
            yield _doubt(number, f"{where} does not say {lost!r}")


def differences(compiled: CompiledContext, found: Sequence[str], path: str) -> Iterator[Finding]:
    """Yield where the file on disk is not what its sources give. `found`: its lines."""
    wanted = [line.text for line in compiled.lines]
    for number in range(max(len(wanted), len(found))):
        said = found[number] if number < len(found) else None
        due = wanted[number] if number < len(wanted) else None
        if said != due:
            message = (
                "no source gives this line"
                if said not in wanted
                else "the line stands elsewhere by now"
            )
            if said is None:
                message = "a line is missing"
            hint = f"'yolo-fs context compile {compiled.agent}' writes it anew."
            yield Finding(
                Reason.CONTEXT_STALE, path, number + 1, "", message, due or "no such line", hint
            )
            return


def _doubt(number: int, message: str) -> Finding:
    return Finding(Reason.CONTEXT_UNPROVED, line=number, message=message)


def _unsaid(line: Line, fetch: Fetch) -> Scalar | None:
    """Return the first value of a line that no origin of it says."""
    texts = [text for origin in line.origins if (text := fetch(origin)) is not None]
    if not texts:
        return str(line.origins[0])
    if line.rule:  # counted by a rule: what is cited is what was counted
        return None
    names = " ".join(origin.path for origin in line.origins)
    return next(
        (one for one in line.values if not any(_says(text, str(one), names) for text in texts)),
        None,
    )


def _says(text: str, value: str, names: str) -> bool:
    """Return whether a source line says a value: as one of the values of its JSON, else in its
    words or in its name.
    """
    nodes = set(_nodes(text))
    by_name = PLAN.fullmatch(value) is not None and value in names
    return value == "" or by_name or (value in nodes if nodes else value.removeprefix("@") in text)


def _nodes(text: str) -> Iterator[str]:
    """Yield every value of a JSON line as a row would write it."""
    try:
        value = json.loads(text.strip().rstrip(","))
    except ValueError:
        try:  # a line of a JSON document on many lines
            value = json.loads(f"{{{text.strip().rstrip(',')}}}")
        except ValueError:
            return
    pending: list[Any] = [value]
    while pending:
        one = pending.pop()
        yield str(flat(one))
        if isinstance(one, dict):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
