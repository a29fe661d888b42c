"""Our own verbs, as one who watches over agents needs to know them: which a person alone runs, and
which write to a path that they are given. A test holds the table against the verbs that there are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.protocol.departments import Role


class Whose(StrEnum):
    """Who runs a verb."""

    ANYBODY = "anybody"
    DEPARTMENT = "department"
    """An agent for its own department alone."""
    ROLE = "role"
    """The agents of some roles."""
    PERSON = "person"
    """No agent: it decides for a person, or about what watches over agents."""


class OwnVerb(NamedTuple):
    """One command of ours."""

    name: str
    """As it is typed, such as `kept restore`."""
    whose: Whose = Whose.ANYBODY
    only_with: tuple[str, ...] = ()
    """Options by which it becomes so; empty when it always is."""
    never_with: tuple[str, ...] = ()
    """Options by which it only shows what it would do."""
    writes: tuple[str, ...] = ()
    """Options whose value is a path that is written."""
    reads: tuple[str, ...] = ()
    """Options whose value is a path that is read."""
    operands_written_with: tuple[str, ...] = ()
    """Options with which the paths that it names are written, not only read; `always` for none."""
    roles: tuple[Role, ...] = ()
    """The agents whose act it is; empty where the row above says it all."""
    speaks_by: tuple[str, ...] = ()
    """Options that say which agent acts."""


ALWAYS = "always"
_OUTPUT = ("-o", "--output")


def _verb_for_person(name: str, **more: Any) -> OwnVerb:
    return OwnVerb(name, Whose.PERSON, **more)


_SHOWN = ("--dry-run", "--check")

OWN_VERBS = (
    _verb_for_person("init", never_with=_SHOWN),
    _verb_for_person("uninstall", never_with=_SHOWN),
    _verb_for_person("stop"),
    _verb_for_person("restart"),
    _verb_for_person("run", only_with=("--unsafe-fs",)),
    _verb_for_person("service install"),
    _verb_for_person("service uninstall"),
    _verb_for_person("adopt", only_with=("--write",), writes=("--report",), reads=("--from",)),
    _verb_for_person("kept restore", writes=("--to",)),
    _verb_for_person("kept prune"),
    _verb_for_person("go", never_with=("--dry-run",)),
    _verb_for_person("debug", never_with=("--dry-run",)),
    _verb_for_person("fix-it", never_with=("--dry-run",)),
    _verb_for_person("research", never_with=("--dry-run",)),
    _verb_for_person("qa", never_with=("--dry-run",)),
    _verb_for_person("answer"),
    _verb_for_person("workflow skip"),
    _verb_for_person("decide accept-risk"),
    _verb_for_person("team join"),
    _verb_for_person("team leave"),
    _verb_for_person("merge install"),
    _verb_for_person("merge uninstall"),
    _verb_for_person("handoff check", only_with=("--override",)),
    _verb_for_person("mcp"),
    _verb_for_person("setup", never_with=_SHOWN, writes=("--plugin",)),
    _verb_for_person("hooks uninstall", never_with=_SHOWN),
    OwnVerb("dept update", Whose.DEPARTMENT),
    OwnVerb("phase sign-off", Whose.ROLE, never_with=("--dry-run",), roles=(Role.LEAD,)),
    *(OwnVerb(name, speaks_by=("--as",)) for name in (
        "task claim", "task complete", "task release", "agent note",
        "decide accept", "decide assign", "decide supersede",
    )),
    OwnVerb("report", writes=_OUTPUT),
    OwnVerb("board", reads=("--repo",)),
    OwnVerb("fix", operands_written_with=("--write",)),
    OwnVerb("team resolve", operands_written_with=(ALWAYS,)),
    OwnVerb("merge-driver", operands_written_with=(ALWAYS,)),
    OwnVerb("schema export", operands_written_with=(ALWAYS,)),
    OwnVerb("commit", reads=("--paths",)),
    OwnVerb("handoff emit", reads=("--task", "--reading")),
    OwnVerb("handoff read", reads=("--text",)),
    OwnVerb("escalate open", reads=("--message",), speaks_by=("--as", "--from")),
    OwnVerb("escalate raise", reads=("--message",), speaks_by=("--as", "--by")),
    OwnVerb("escalate resolve", reads=("--message",), speaks_by=("--as", "--by")),
    *map(OwnVerb, (
        "phase list", "phase new", "start", "logs", "service print", "status", "inbox", "log",
        "config show", "squash",
        "resume", "validate",
        "kept list", "kept show", "verify", "events", "dept cleanup", "dept show", "gate check",
        "gate list", "gate wait", "gate why", "explain", "new",
        "workflow check", "workflow complete", "workflow next",
        "workflow show", "team lease list", "team lease release",
        "team lease take", "team status", "team sync", "forecast", "merge doctor",
        "task claims", "task summary", "agent answers",
        "agent list", "agent shutdown", "may",
        "company log", "company runs", "company show",
        "context compile", "context prove",
        "message check", "message route",
        "handoff parse",
        "handoff report", "escalate list", "escalate tick", "envelope check", "envelope choose",
        "envelope new", "envelope show", "schema example", "schema list",
        "schema show", "hook", "hooks doctor",
        "hooks install", "statusline", "git-hook", "doctor", "compat", "completion", "demo",
    )),
)  # fmt: skip
"""Every verb, and whose it is."""

OWN_VERB_BY_NAME = {row.name: row for row in OWN_VERBS}
PROGRAM_NAMES = ("yolo-fs", "yolo_fs")
"""The program, and its module."""
