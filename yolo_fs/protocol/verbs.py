"""Our own verbs, as one who watches over agents needs to know them: which a person alone runs,
which write to a path that they are given, and with which codes each may end. Tests hold the tables
against the verbs that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Exit
from yolo_fs.protocol.departments import Role


class Whose(StrEnum):
    """Who runs a verb."""

    ANYBODY = "anybody"
    DEPARTMENT = "department"
    """An agent for its own department alone; of those that have none, some roles for any."""
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
    """The agents whose act it is, or that speak for any department; empty where the row above says
    it all.
    """
    speaks_by: tuple[str, ...] = ()
    """Options that say which agent acts."""
    instead: str = "ask your user, and give the reason."
    """What an agent does that may not run it, as an order."""
    is_started_by_hosts: bool = False
    """A host starts it with the environment of its agent; an agent itself does not type it."""

    def is_limited_with(self, has: Callable[..., bool]) -> bool:
        """Return whether it is not everybody's with the options that are there.

        `has`: whether one of these options is.
        """
        if self.whose is Whose.ANYBODY or has(*self.never_with):
            return False
        return not self.only_with or has(*self.only_with)


ALWAYS = "always"
_OUTPUT = ("-o", "--output")


def _verb_for_person(name: str, **more: Any) -> OwnVerb:
    return OwnVerb(name, Whose.PERSON, **more)


_SHOWN = ("--dry-run", "--check")
_END = "and end: a person decides it."

OWN_VERBS = (
    _verb_for_person("init", never_with=_SHOWN),
    _verb_for_person("uninstall", never_with=_SHOWN),
    _verb_for_person("stop"),
    _verb_for_person("restart"),
    _verb_for_person("run", only_with=("--unsafe-fs",)),
    _verb_for_person("service install"),
    _verb_for_person("service uninstall"),
    _verb_for_person("adopt", only_with=("--write",), writes=("--report",), reads=("--from",)),
    _verb_for_person(
        "squash", only_with=("--write",),
        instead="leave --write out to see what it would make; a person makes it.",
    ),
    _verb_for_person("kept restore", writes=("--to",)),
    _verb_for_person("kept prune"),
    _verb_for_person("go", never_with=("--dry-run",)),
    _verb_for_person("debug", never_with=("--dry-run",)),
    _verb_for_person("fix-it", never_with=("--dry-run",)),
    _verb_for_person("research", never_with=("--dry-run",)),
    _verb_for_person("qa", never_with=("--dry-run",)),
    _verb_for_person(
        "answer", speaks_by=("--as",),
        instead="decide what you hold with 'yolo-fs escalate resolve', hand it up with "
        f"'yolo-fs escalate raise', or say what you need, {_END}",
    ),
    _verb_for_person(
        "workflow skip", speaks_by=("--as",), instead=f"report why it is not needed, {_END}",
    ),
    _verb_for_person("decide accept-risk", instead=f"report what was found, {_END}"),
    _verb_for_person("decide approve", instead=f"report what was found, {_END}"),
    _verb_for_person(
        "phase new", only_with=("--fix",),
        instead="leave --fix out: Analyze classifies the work.",
    ),
    _verb_for_person("team join"),
    _verb_for_person("team leave"),
    _verb_for_person("merge install"),
    _verb_for_person("merge uninstall"),
    _verb_for_person(
        "handoff check", only_with=("--override",),
        instead="stop until its sender has corrected it.",
    ),
    _verb_for_person("mcp", is_started_by_hosts=True),
    _verb_for_person("setup", never_with=_SHOWN, writes=("--plugin",)),
    _verb_for_person("hooks uninstall", never_with=_SHOWN),
    OwnVerb(
        "dept update", Whose.DEPARTMENT, roles=(Role.OWNER, Role.GO), speaks_by=("--as",),
    ),
    OwnVerb(
        "phase sign-off", Whose.ROLE, never_with=("--dry-run",), roles=(Role.LEAD,),
        speaks_by=("--as",),
    ),
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
    OwnVerb("commit", reads=("--paths",), speaks_by=("--as",)),
    OwnVerb("handoff emit", reads=("--task", "--reading")),
    OwnVerb("handoff read", reads=("--text",)),
    OwnVerb("escalate open", reads=("--message",), speaks_by=("--as", "--from")),
    OwnVerb("escalate raise", reads=("--message",), speaks_by=("--as", "--by")),
    OwnVerb("escalate resolve", reads=("--message",), speaks_by=("--as", "--by")),
    *map(OwnVerb, (
        "phase list", "start", "logs", "service print", "status", "inbox", "log",
        "config show", "resume", "validate",
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


# --- how a verb ends ---

OF_EVERY_VERB = frozenset((Exit.DONE, Exit.USAGE, Exit.DEFECT, Exit.TRY_AGAIN, Exit.INTERRUPTED))
"""Codes with which every verb may end; TRY_AGAIN where its answer cannot be written."""
OF_REPOSITORY = frozenset(
    (Exit.NOT_HERE, Exit.LOCK_TIMEOUT, Exit.GIT_FAILED, Exit.UNREADABLE, Exit.BAD_CONFIG)
)
"""Codes of every verb that looks into a repository."""

WITHOUT_REPOSITORY = frozenset((
    "completion", "demo", "mcp", "message check", "message route", "resume", "schema example",
    "schema export", "schema list", "schema show", "statusline",
))  # fmt: skip
"""Verbs that no repository and no configuration stops."""
MEANING_OF_1: Mapping[str, str] = {
    "init": "a file or a hook is in the way",
    "uninstall": "something of yolo-fs stays",
    "doctor": "something is wrong",
    "demo": "the demo did not finish",
    "setup": "not installed, or not all of it works",
    "hooks install": "a hook is in the way",
    "hooks uninstall": "a hook was left",
    "hooks doctor": "a hook does not run, or commits bypassed it",
    "phase sign-off": "evidence is missing",
    "phase new": "a phase is in the way",
    "run": "the work tree cannot be watched",
    "start": "the daemon ended at once",
    "restart": "the daemon ended at once",
    **dict.fromkeys(("go", "debug", "fix-it", "research", "qa"), "given up, with the reasons"),
    "inbox": "something waits for a person",
    "answer": "the answer is refused",
    "validate": "a file has errors",
    "fix": "an author has to decide",
    "adopt": "an author has to decide",
    "verify": "history breaks a rule",
    "kept restore": "it was not put back",
    "kept prune": "it was not removed",
    "squash": "the phase is not one commit",
    "commit": "the commit is refused",
    "report": "the file is not written",
    "dept update": "the status is refused",
    "dept cleanup": "the department is at work",
    "gate check": "the gate is closed",
    "gate why": "the gate is closed",
    "gate wait": "the time is over and a gate is closed",
    "workflow check": "the step is not complete",
    "workflow complete": "the step is not complete",
    "workflow skip": "the step may not be skipped",
    "team join": "nothing is agreed yet",
    "team leave": "something could not be deleted",
    "team status": "something is held",
    "team sync": "something is held",
    "team resolve": "nothing is in conflict there",
    "team lease take": "another clone has it",
    "team lease release": "another clone has it",
    "forecast": "branches will conflict",
    "merge install": "the merge driver does not run",
    "merge uninstall": "the merge driver stays",
    "merge doctor": "the merge driver does not run",
    "merge-driver": "the versions conflict",
    "task claim": "somebody else has it",
    "task complete": "the report is refused",
    "task release": "somebody else has it",
    "agent note": "the message is refused",
    "agent shutdown": "the stop is refused",
    "agent answers": "an agent owes an answer",
    "may": "no, with the rule and whom to ask",
    "context prove": "a line does not match its source",
    "context compile": "a file is in the way",
    "message check": "the message is refused",
    "message route": "the route is forbidden",
    "handoff check": "the handoff is not accepted",
    "handoff emit": "the packet is refused",
    "handoff parse": "no packet can be read",
    "handoff read": "no handoff can be read",
    **dict.fromkeys(("escalate open", "escalate raise", "escalate resolve"), "it is refused"),
    **dict.fromkeys(
        (
            "decide accept",
            "decide accept-risk",
            "decide approve",
            "decide assign",
            "decide supersede",
        ),
        "this agent may not decide it",
    ),
    "envelope new": "the envelope is refused",
    "envelope check": "the envelope is refused",
    "envelope choose": "there is nothing to choose",
    "new": "the file is there already",
    "explain": "the file is refused",
    "git-hook": "git goes no further",
    "compat": "as the script does",
    **dict.fromkeys(("stop", "service install", "service uninstall"), "an agent may not"),
}
"""What exit 1 means; a verb that is not here never ends with it."""
OTHER_MEANINGS: Mapping[str, Mapping[Exit, str]] = {
    **{
        name: {Exit.TRY_AGAIN: "waits for a person, or the budget is spent"}
        for name in ("go", "debug", "fix-it", "research", "qa")
    },
    "hook": {Exit.USAGE: "the host is to block what it asked about"},
    "schema export": {Exit.NOT_HERE: "the folder cannot be made"},
    "message check": {Exit.UNREADABLE: "there is no such file", Exit.BAD_CONFIG: ""},
    "mcp": {Exit.NOT_HERE: "its library is not installed"},
}
"""What another code means where a verb gives it a meaning of its own."""


def exits_of(name: str) -> Mapping[Exit, str]:
    """Return the codes with which a verb may end, each with what it means there.

    An empty meaning is that of the table of all codes.
    """
    codes = OF_EVERY_VERB if name in WITHOUT_REPOSITORY else OF_EVERY_VERB | OF_REPOSITORY
    of_1 = {Exit.FINDINGS: MEANING_OF_1[name]} if name in MEANING_OF_1 else {}
    meanings = {**dict.fromkeys(codes, ""), **of_1, **OTHER_MEANINGS.get(name, {})}
    return {code: meanings[code] for code in sorted(meanings)}
