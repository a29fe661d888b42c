"""The input of a command and its reply: data to stdout, messages to stderr, and one JSON envelope.

Input is read up to one byte beyond its limit, which shows that it is too long.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, safe, safe_lines

if TYPE_CHECKING:
    from rich.console import Console


class Invocation(NamedTuple):
    """Where a command runs, and how it answers."""

    start: str
    """Directory that the command works from."""
    as_json: bool
    quiet: bool
    verbose: bool


class Reply(NamedTuple):
    """The result of a command."""

    data: Any = None
    """Data for the envelope, as `to_json` writes it; a function is called only if it is needed."""
    findings: Sequence[Finding] = ()
    exit_code: Exit = Exit.DONE
    show: Callable[[Console], None] | None = None
    """Prints the data as text."""


def phase_option(otherwise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--phase`; `otherwise`: which one is meant without it."""
    text = f"Number, slug or directory name; default: {otherwise}."
    return click.option("--phase", default="", metavar="PHASE", help=text)


PHASE = phase_option("the phase at work")
AS_ENV = ("YOLO_FS_AGENT", "YOLO_FS_ROLE")
"""Variables that name the agent without `--as`."""


def as_agent(
    text: str, *also: str, required: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--as` with its help; `also`: other words for it."""
    else_nobody: dict[str, Any] = {} if required else {"default": ""}
    return click.option(
        "--as", *also, "agent", required=required, envvar=AS_ENV, help=text, **else_nobody
    )


_RUN_ENV = "YOLO_FS_RUN"
"""The variable that every agent of a run has, and no person."""


def refuse_agents(command: click.Command, name: str, options: Mapping[str, Any]) -> None:
    """Refuse what is for a person to an agent that the environment names, or that a run started.

    The hooks of a host refuse it as well; a program of the user's has none. `name`: as it is typed,
    such as `kept prune`.

    Raises:
        YoloError: OUT_OF_LANE; UNKNOWN_NAME for who is no agent.
    """
    variable = next(filter(os.environ.get, (*AS_ENV, _RUN_ENV)), "")
    if not variable:
        return
    from yolo_fs.authority.actors import check_agent, find_actor
    from yolo_fs.authority.own_verbs import refuse_verb
    from yolo_fs.protocol.handoffs import DirectiveRole
    from yolo_fs.protocol.roster import bare_name
    from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME, Whose

    row, own = OWN_VERB_BY_NAME.get(name), bare_name(os.environ[variable])
    given = {
        word
        for parameter in command.params
        if options.get(parameter.name or "") not in (None, False)
        for word in parameter.opts
    }
    if row is None or row.whose is not Whose.PERSON or row.is_started_by_hosts:
        return
    if not row.is_limited_with(lambda *words: not given.isdisjoint(words)):
        return
    actor = None
    if variable in AS_ENV:
        check_agent(own)
        actor = None if own in set(DirectiveRole) else find_actor(own)
    if no := refuse_verb(None if os.environ.get(_RUN_ENV) else actor, name, row):
        hint = no.instead
        raise YoloError(
            Reason.OUT_OF_LANE,
            f"{no.rule} This session runs as {safe(own, 80)} ({variable}).",
            hint=hint if os.environ.get(_RUN_ENV) else f"{hint} A person unsets {variable}.",
        )


def refuse_other_speakers(command: click.Command, name: str, options: Mapping[str, Any]) -> None:
    """Refuse a verb in the name of another agent than the one that the environment names.

    The hooks of a host refuse it as well. `name`: as it is typed, such as `decide accept`.

    Raises:
        YoloError: OUT_OF_LANE.
    """
    variable = next(filter(os.environ.get, AS_ENV), "")
    if not variable:
        return
    from yolo_fs.authority.actors import is_same_agent
    from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME

    own, row = os.environ[variable], OWN_VERB_BY_NAME.get(name)
    for parameter in command.params if row else ():
        named = options.get(parameter.name or "")
        is_speaker = row is not None and not set(row.speaks_by).isdisjoint(parameter.opts)
        if is_speaker and named and not is_same_agent(own, named, is_role=variable == AS_ENV[-1]):
            raise YoloError(
                Reason.OUT_OF_LANE,
                f"this session runs as {safe(own, 80)} ({variable}) and cannot act for "
                f"{safe(named, 80)}",
                hint=f"Use your own name, or none. A person unsets {variable}.",
            )


def verb(
    name: str, *, example: str, parent: click.Group | None = None
) -> Callable[[Callable[..., Reply]], click.Command]:
    """Make a function `(asked, **options) -> Reply` a command with the options common to all.

    `parent`: the group that it joins.
    """
    words = name if parent is None else f"{parent.name} {name}"

    def make(function: Callable[..., Reply]) -> click.Command:
        @functools.wraps(function)
        def answer(start: str, as_json: bool, quiet: bool, verbose: bool, **options: Any) -> int:
            invocation = Invocation(start, as_json, quiet, verbose)
            refuse_secrets(options)
            command = click.get_current_context().command
            refuse_agents(command, words, options)
            refuse_other_speakers(command, words, options)
            full_name = words.replace(" ", "-")
            return emit(full_name, function(invocation, **options), invocation)

        for option in _COMMON:
            option(answer)
        made = click.command(name, epilog=f"Example:  {example}")(answer)
        if parent is not None:
            parent.add_command(made)
        return made

    return make


def reply_of(command: click.Command, invocation: Invocation, **options: Any) -> Reply:
    """Return the reply of a command, for a caller that displays it differently.

    Raises:
        YoloError: what the command raises; BAD_NAME where it could not be typed like this.
    """
    refuse_secrets(options)
    function: Callable[..., Reply] = command.callback.__wrapped__  # type: ignore[union-attr]
    try:
        return function(invocation, **options)
    except click.UsageError as error:
        raise YoloError(Reason.BAD_NAME, error.format_message()) from error


def can_ask(invocation: Invocation) -> bool:
    """Return whether a person reads the output and can type an answer."""
    if invocation.as_json or invocation.quiet or sys.stdin is None:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def text_of(reply: Reply) -> str:
    """Return the text of a reply as people see it, without its findings."""
    text = io.StringIO()
    if reply.show is not None:
        reply.show(console_for(text))
    return text.getvalue().rstrip()


_COMMON = (
    click.option("-v", "--verbose", is_flag=True, help="Print more."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    click.option("-C", "start", default=".", metavar="DIR", help="Run as if started in DIR."),
)


def refuse_secrets(options: Mapping[str, Any]) -> None:
    """Refuse options that look like credentials: they may be stored, and shown to agents."""
    from yolo_fs.core.credentials import is_secret

    for name, value in options.items():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and len(text) >= _SHORTEST_SECRET and is_secret(text):
                raise YoloError(
                    Reason.SECRET,
                    f"{name} looks like it holds a credential",
                    hint="Name where the credential is kept instead of the credential.",
                )


_SHORTEST_SECRET = 12


def emit(command: str, reply: Reply, invocation: Invocation) -> int:
    """Print a reply and return its exit code, even if the reader has closed the pipe."""
    if invocation.as_json:
        with without_reader():
            print(envelope(command, reply.data, reply.findings, ok=reply.exit_code is Exit.DONE))
    elif not invocation.quiet:
        if reply.show is not None:
            with without_reader():
                reply.show(console_for(sys.stdout))
        with without_reader():
            for finding in reply.findings:
                print_finding(finding)
    return int(reply.exit_code)


@contextlib.contextmanager
def without_reader() -> Iterator[None]:
    """Ignore that the reader has closed the pipe, as `| head` does."""
    try:
        yield
    except (BrokenPipeError, SystemExit):  # rich exits
        drop_output()


def drop_output() -> None:
    """Redirect the remaining output to nowhere, so that Python's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def system_error_of(defect: Exception) -> YoloError | None:
    """Return the error for a failure of the operating system; None for a defect of ours."""
    number = defect.errno if isinstance(defect, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        drop_output()
        what = "the answer could not be written: no space left"
        return YoloError(Reason.NO_SPACE, what)
    if number in (errno.EMFILE, errno.ENFILE):
        hint, what = "Raise the limit (`ulimit -n`).", "no more files may be open at once"
        return YoloError(Reason.STORAGE_FAILED, what, hint=hint)
    if number == errno.ENOENT:
        try:
            os.getcwd()
        except FileNotFoundError:
            hint, what = "Change to a folder that exists.", "the current folder no longer exists"
            return YoloError(Reason.NOT_A_REPOSITORY, what, hint=hint)
    return None


def complain(error: YoloError, *, as_json: bool) -> None:
    """Print an error of the environment: what, and what to do next."""
    if as_json:
        print(envelope("error", None, [error.as_finding()], ok=False))
        return
    hint = f"\nHint: {safe(error.hint, 500)}" if error.hint else ""
    print(f"yolo-fs: {error.reason.value}: {safe(error.message, 500)}{hint}", file=sys.stderr)


def print_text(console: Console, text: str, exact: str) -> None:
    """Print an untrusted text of several lines without control characters, even into a pipe.

    The reader of the pipe may be an agent's host or a pager. `exact`: what to use to get the text
    unchanged.
    """
    shown = safe_lines(text)
    console.file.write(shown)
    if shown != text:
        console.file.flush()
        print(f"yolo-fs: characters that cannot be seen are escaped; {exact}", file=sys.stderr)


def print_finding(finding: Finding) -> None:
    """Print one finding for people."""
    mark = "warning: " if finding.level is Level.WARNING else ""
    print(f"{mark}{finding}", file=sys.stderr)


def console_for(stream: Any) -> Console:
    """Return a console that uses colour only on a terminal and interprets no markup."""
    drawn = stream.isatty() or any(map(os.environ.get, ("FORCE_COLOR", "TTY_COMPATIBLE")))
    return build_rich_console(stream) if drawn else cast("Console", _PlainConsole(stream))


def build_rich_console(stream: Any, **how: Any) -> Console:
    """Return a console that colours where it may. `how`: as rich takes it."""
    from rich.console import Console

    class WrappingConsole(Console):
        def print(self, *words: Any, soft_wrap: bool | None = None, **how: Any) -> None:
            is_text = all(isinstance(each, str) for each in words)
            if is_text and not (soft_wrap or self.soft_wrap or "no_wrap" in how):
                words, soft_wrap = (wrapped(" ".join(words), self.width),), True
            super().print(*words, soft_wrap=soft_wrap, **how)

    by_itself = {"soft_wrap": not (stream.isatty() or how)}
    return WrappingConsole(
        file=stream, highlight=False, markup=False, emoji=False, **{**by_itself, **how}
    )


_WHOLE = re.compile(r"\s*(?:→ .*|(?<!\w)'[^']*'(?!\w)\S*|\(?yolo-fs [a-z][^);]*[);]*|\S+)")
"""What is not broken: a command, a quotation, and a word, which may be a path."""


def wrapped(text: str, width: int) -> str:
    """Return a text whose lines end at a width, or after a command or path that is longer."""
    return "\n".join(each for line in text.split("\n") for each in _wrap(line, width))


def _wrap(line: str, width: int) -> Iterator[str]:
    from rich.cells import cell_len

    indent = line[: len(line) - len(line.lstrip())]
    begun = ""
    for part in _WHOLE.findall(line):
        if begun.strip() and cell_len(begun + part.rstrip()) > width:
            yield begun.rstrip()
            begun = indent + part.lstrip()
        else:
            begun += part
    yield begun.rstrip()


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and value.replace("\n", "").isprintable()


class _PlainConsole:
    """Prints plain lines where colour is not visible; anything else is left to rich, which is slow
    to import.
    """

    is_terminal = False

    def __init__(self, stream: Any):
        self.file = stream

    def print(self, *words: Any, style: Any = None, soft_wrap: bool = True, **how: Any) -> None:
        """Print as rich does."""
        if how or not (soft_wrap and all(map(_is_plain, words))):
            self._rich.print(*words, style=style, soft_wrap=soft_wrap, **how)
        else:
            print(*words, file=self.file, flush=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rich, name)

    @functools.cached_property
    def _rich(self) -> Console:
        return build_rich_console(self.file)


Cell = tuple[str, str]
"""A text and its style."""


def draw_columns(console: Console, rows: Sequence[Sequence[Cell]], align: str) -> None:
    """Draw cells in columns; without visible colour, as rich does but without importing it.

    `align`: of the columns but the first, as in a format.
    """
    sides = ("<" + align * len(rows[0]))[: len(rows[0])]
    widths = [max(len(text) for text, _ in column) for column in zip(*rows, strict=True)]
    has_room = "COLUMNS" not in os.environ and sum(widths) + 2 * len(widths) - 2 <= _WIDTH
    is_plain = all(text.isascii() and text.isprintable() for row in rows for text, _ in row)
    if console.is_terminal or not (has_room and is_plain):
        from rich.table import Table
        from rich.text import Text

        for columns in columns_that_fit(rows, console.width):
            table = Table(box=None, pad_edge=False, show_header=False)
            for column in columns:
                table.add_column(justify=_JUSTIFY[sides[column]])
            for row in rows:
                table.add_row(*(Text(*row[column]) for column in columns))
            console.print(table)
        return
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        console.print("  ".join(f"{text:{side}{width}}" for (text, _), side, width in cells))


def columns_that_fit(rows: Sequence[Sequence[Cell]], width: int) -> list[list[int]]:
    """Return which columns stand beside each other in a width; the first one is in each part."""
    from rich.cells import cell_len  # rich draws them

    widths = [max(cell_len(text) for text, _ in column) for column in zip(*rows, strict=True)]
    parts, used = [[0]], widths[0]
    for column, its_width in enumerate(widths[1:], 1):
        if used + 2 + its_width > width and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1].append(column)
        used += 2 + its_width
    return parts


_WIDTH = 80
"""Rich's default width without a terminal."""
_JUSTIFY: Mapping[str, Any] = {"<": "left", "^": "center", ">": "right"}


def require_libraries(*names: str) -> None:
    """Require optional libraries.

    Raises:
        YoloError: FILE_MISSING, with the command that installs them beside yolo_fs.
    """
    if all(map(find_spec, names)):
        return
    packages = " ".join(_PACKAGES.get(name, name) for name in names)
    raise YoloError(
        Reason.FILE_MISSING,
        f"not installed: {packages}",
        hint=f"Install it beside yolo-fs: {shlex.quote(sys.executable)} -m pip install {packages}",
        exit_code=Exit.NOT_HERE,
    )


_PACKAGES = {"nats": "nats-py"}
"""Module name → package name, where they differ."""

STDIN = "-"


def from_stdin(limit_bytes: int) -> bytes:
    """Return the content of stdin, up to one byte more than the limit."""
    return sys.stdin.buffer.read(limit_bytes + 1)


def bytes_given(start: str, path: str, limit_bytes: int) -> bytes:
    """Return the content of a file below `start`, or of stdin, up to one byte more than the limit.

    Raises:
        YoloError: UNREADABLE.
    """
    try:
        if path == STDIN:
            return from_stdin(limit_bytes)
        with open(os.path.join(start, path), "rb") as file:
            return file.read(limit_bytes + 1)
    except OSError as error:
        message = f"{safe(path)}: {error.strerror or error}"
        raise YoloError(Reason.UNREADABLE, message, exit_code=Exit.USAGE) from error
