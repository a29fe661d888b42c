"""The table of verbs, and the only place where errors are printed.

Each verb is in the module of its topic, which is imported on demand.
"""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from yolo_fs import __version__
from yolo_fs.cli.reply import complain, drop_output, system_error_of
from yolo_fs.core.json_form import envelope
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe


class Verb(NamedTuple):
    """One command of the command line."""

    name: str
    summary: str
    module: str = ""
    """Module below `yolo_fs.cli`, if not named like the verb; a dotted name is outside of it."""
    group: str = ""
    """Title in `GROUPS` for the first screen of help; empty: only in `help --all`."""

    def load(self) -> click.Command:
        """Import the verb's module and return its command."""
        name = self.module or self.name
        module = importlib.import_module(name if "." in name else f"yolo_fs.cli.{name}")
        command: click.Command = getattr(module, self.name.replace("-", "_"))
        command.short_help = self.summary  # where a shell completes its name
        return command


VERBS = (
    Verb("init", "make a repository ready for a team of agents", "install", group="Start"),
    Verb("phase", "make a new phase, or list those there are", group="Work"),
    Verb("run", "watch and commit, in the foreground", "background"),
    Verb("start", "start the daemon in the background", "background", group="Run"),
    Verb("stop", "stop the daemon", "background", group="Run"),
    Verb("restart", "stop the daemon and start it again", "background"),
    Verb("logs", "what the daemon wrote", "background"),
    Verb("service", "run the daemon as a service of the system", "background"),
    Verb("go", "run the company: from an intent to the sign-off, by agents", group="Run"),
    Verb("debug", "have an incident looked into", "go"),
    Verb("fix-it", "have something fixed", "go"),
    Verb("research", "have a question answered", "go"),
    Verb("qa", "have the work checked", "go"),
    Verb("company", "the agents: definitions, runs and output"),
    Verb("status", "the team on one screen", group="Look"),
    Verb("inbox", "what waits for a person, each with the command that settles it", group="Look"),
    Verb(
        "answer", "decide what an escalation asks; the decision goes down the chain", group="Look"
    ),
    Verb("board", "the team in the browser, live and back in time", "page", group="Look"),
    Verb("report", "a whole phase as one HTML file", "page", group="Look"),
    Verb("resume", "where the team stands, for a session that begins", group="Look"),
    Verb("validate", "check artifacts against the protocol", group="Check"),
    Verb("fix", "repair what needs no decision of the author", group="Check"),
    Verb("adopt", "a planning tree that is already there: report, repair, commit", "fix"),
    Verb("kept", "contents that were refused or would have been lost: list, show, restore"),
    Verb("verify", "check committed history against the protocol", group="Check"),
    Verb("events", "the journal: what happened, in order"),
    Verb("log", "the branch without the commits of the team, or those alone"),
    Verb("squash", "a phase as one commit on a new branch"),
    Verb("dept", "declare or show the status of a department"),
    Verb("gate", "gates between departments: open or closed, and why not", group="Work"),
    Verb("workflow", "the steps: who is next, what is missing, what may be skipped"),
    Verb("team", "several work trees, clones and machines as one team"),
    Verb("forecast", "in which files the branches of the work trees will conflict", "team"),
    Verb("merge", "let git merge artifacts record by record"),
    Verb("merge-driver", "called by git, not by people: merge two versions (see merge)", "merge"),
    Verb("task", "tasks: claimed files, the next task, the totals of a plan"),
    Verb("agent", "agents: which are present, which have to stop"),
    Verb("commit", "a source commit of a task, alone and in the prescribed form"),
    Verb("may", "whether a role may do something, and who may instead"),
    Verb("context", "what each agent is given: compiled within its budget, and proved"),
    Verb("message", "messages between agents: what they are, and where they may go"),
    Verb("handoff", "handoffs between roles and between agents"),
    Verb("escalate", "escalations: up the chain, and the decision down again"),
    Verb("decide", "decisions with fields: accept a plan, accept a risk, withdraw a record"),
    Verb("envelope", "handoffs between the agents of the product workflow"),
    Verb("new", "the skeleton of an artifact, in its place and under its name"),
    Verb("explain", "a name in a sentence, and what helps: a reason, gate, file, step, agent"),
    Verb("schema", "the shape of every message, line and file"),
    Verb("hook", "called by agent hosts, not by people: answer one hook event (see setup)"),
    Verb(
        "mcp",
        "called by agent hosts: tools and resources on stdio (see setup --mcp)",
        "yolo_fs.mcp.verb",
    ),
    Verb(
        "setup",
        "install or remove our hooks in an agent host: claude, codex, cursor",
        group="Start",
    ),
    Verb("hooks", "install, remove or check our hooks in git", "setup"),
    Verb("statusline", "one line for an agent's host: where the team stands", "status"),
    Verb("git-hook", "called by git, not by people: answer one git hook (see hooks)", "githook"),
    Verb("uninstall", "leave a repository: nothing of ours stays but its history", group="Start"),
    Verb("config", "the settings in force, and where each comes from"),
    Verb("doctor", "what is wrong, and how to fix it", "install", group="Start"),
    Verb("compat", "what the reference's shell scripts do", "shell"),
    Verb("completion", "the script that completes commands in bash, zsh or fish", "shell"),
    Verb("demo", "see it work: a phase played by scripted agents", group="Start"),
)


GROUPS = ("Start", "Run", "Look", "Check", "Work")
BEFORE = frozenset(("--json", "-q", "--quiet", "-v", "--verbose"))
"""Options of every verb that may also precede it, as `-C DIR` may."""


class _Verbs(click.Group):
    """Lists verbs from the table, so that help needs no import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name for verb in VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return next((verb.load() for verb in VERBS if verb.name == cmd_name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl([(row.name, row.summary) for row in VERBS if row.group == group])
        with formatter.section("More"):
            formatter.write_dl(
                [
                    ("help --all", "every command"),
                    ("help COMMAND", "one of them, with an example"),
                    ("explain NAME", "a reason, gate, file, step or agent, in a sentence"),
                ]
            )


def _show_all() -> int:
    """Print every command with its summary."""
    formatter = click.HelpFormatter(width=100)
    with formatter.section("Every command"):
        formatter.write_dl(sorted((row.name, row.summary) for row in VERBS))
    click.echo(formatter.getvalue().rstrip())
    return Exit.DONE


def typed(arguments: Sequence[str]) -> list[str]:
    """Return a command line in the form that the verbs take.

    Options before the verb move behind it; `help` and `version` become verbs.
    """
    front: list[str] = []
    rest = list(arguments)
    while rest and (rest[0] in BEFORE or rest[0].startswith("-C")):
        count = 2 if rest[0] == "-C" else 1
        front, rest = [*front, *rest[:count]], rest[count:]
    if rest and rest[0] in ("help", "version", "--version", "-V"):
        return ["--version"] if rest[0] != "help" else [*rest[1:], "--help"]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *front, *rest[end:]] if rest else front


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="yolo-fs")
def yolo_fs() -> None:
    """Coordinate a team of coding agents that share one git repository.

    Watches the artifacts that agents write, validates each against the protocol, commits it at once
    and alone, and tells anybody at any time where the team stands.

    \b
    Start here:
      yolo-fs demo              see it work
      yolo-fs init              make this repository ready
      yolo-fs start             watch and commit
      yolo-fs status            where the team stands
    """


def _nearest(error: click.ClickException) -> str:
    """Return the command that was probably meant, or that explains the name; empty if unclear."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    wrong = re.fullmatch(r"No such command '(.*)'\.", error.message)
    if context is None or wrong is None or not isinstance(context.command, _Verbs):
        return ""  # click tells it of the others
    from difflib import get_close_matches

    from yolo_fs.artifacts.meanings import meanings_of
    from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME

    below = [name for name in OWN_VERB_BY_NAME if name.partition(" ")[2] == wrong[1]]
    near = below or get_close_matches(wrong[1], context.command.list_commands(context), 1)
    meant = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    is_name = meanings_of(wrong[1])
    return f"{meant} 'yolo-fs explain {wrong[1]}' explains the name." if is_name else meant


def _show(error: click.ClickException) -> None:
    """Print a usage error; the input may be a name that a shell completed."""
    text = io.StringIO()
    error.show(text)
    message = text.getvalue().rstrip("\n") + _nearest(error)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None and context.command.epilog:
        message += f"\n{context.command.epilog}"
    print(
        *(safe(line.replace("\t", "  "), 500) for line in message.split("\n")),
        sep="\n",
        file=sys.stderr,
    )


def _as_error(error: click.ClickException) -> YoloError:
    """Return a usage error for programs: the same words, without the usage line."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "yolo-fs"
    return YoloError(
        Reason.BAD_USAGE,
        error.format_message() + _nearest(error),
        hint=f"'{command} --help' lists its arguments and options.",
    )


def _is_interrupt(defect: Exception) -> bool:
    """Return whether pydantic reports a Ctrl-C as its own error while it builds a shape."""
    return type(defect).__name__ == "SchemaError" and "KeyboardInterrupt" in str(defect)


def run(arguments: Sequence[str]) -> int:
    """Run one command, print any error once, and return the exit code."""
    if list(arguments) == ["help", "--all"]:
        return _show_all()
    as_json = "--json" in arguments
    arguments = typed(arguments)
    if arguments[:1] == ["--version"] and as_json:
        click.echo(envelope("version", {"version": __version__}, (), ok=True))
        return Exit.DONE
    code = int(Exit.DONE)
    try:
        code = int(yolo_fs.main(args=arguments, prog_name="yolo-fs", standalone_mode=False) or 0)
        sys.stdout.flush()  # what cannot be written is told here, not by the interpreter at its end
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        if as_json:
            complain(_as_error(error), as_json=True)
        else:
            _show(error)
        return Exit.USAGE
    except YoloError as error:
        complain(error, as_json=as_json)
        return error.exit_code
    except (BrokenPipeError, SystemExit):  # the reader closed the pipe, as `head` does; click exits
        drop_output()
        return code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as defect:
        if _is_interrupt(defect):
            return Exit.INTERRUPTED
        if system_error := system_error_of(defect):
            complain(system_error, as_json=as_json and system_error.reason is not Reason.NO_SPACE)
            return system_error.exit_code
        if "-v" in arguments or "--verbose" in arguments:
            raise
        hint = "This is a defect of yolo-fs. Run it again with -v and report what it prints."
        complain(
            YoloError(Reason.INTERNAL_ERROR, f"{type(defect).__name__}: {defect}", hint=hint),
            as_json=as_json,
        )
        return Exit.DEFECT
    return code
