"""The commands of the company as skills: for the plugin, for other hosts, and as prompts of MCP."""

from __future__ import annotations

import json
from typing import NamedTuple

from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.definitions.texts import rendered
from yolo_fs.protocol.authority import ROUTES
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.workflow import SKIP_FLAGS

NAME = "yolo"
"""Prefix of the plugin's agents and commands: `yolo:yolo-critic`, `/yolo:go`."""


class Skill(NamedTuple):
    """One command."""

    name: str
    description: str
    title: str
    command: str = ""
    """Command that runs before the model reads the skill; only for skills that just report."""
    advice: str = ""
    route: str = ""
    """Its row of the routing table, for skills that start agents."""
    hint: str = ""
    verb: str = ""
    """Our own command that does the same through the runner."""

    @property
    def starts_agents(self) -> bool:
        """Whether it does more than report."""
        return not self.command


GO = Skill(
    "go",
    "Take an intent from analysis to sign-off with the agents of the company, or continue.",
    "The company at work",
)
SKILLS = (
    GO,
    Skill("debug", "Have an incident looked into: the Lead takes it on, the Debugger investigates.",
          "An incident", route="/yolo:debug", hint="what goes wrong", verb="debug"),
    Skill("fix", "Have something small fixed: the Lead plans it, a Dev carries it out.",
          "A fix", route="/yolo:fix", hint="what is to be fixed", verb="fix-it"),
    Skill("research", "Have a question answered: the Lead asks it, the Scout answers.",
          "A question", route="/yolo:research", hint="the question", verb="research"),
    Skill("qa", "Have the work checked: the Lead says what, QA verifies it and looks at the code.",
          "A check", route="/yolo:qa", hint="what is to be checked", verb="qa"),
    Skill("status", "Show where the team stands: steps, plans, gates, and what is held, and why.",
          "Where the team stands", "yolo-fs status",
          "Tell the user what is done, what is next, and what waits for them. For anything held or"
          " refused, `yolo-fs explain REASON` explains the remedy."),
    Skill("resume", "Take up the work where it stopped, after a break, a crash or a compaction.",
          "Where the work continues", "yolo-fs resume",
          "Continue with exactly this. If it is an agent's turn, {go} starts the agent."),
    Skill("inbox", "Settle what waits for a person: questions, decisions, holds, oldest first.",
          "What waits for you", "yolo-fs inbox --json",
          "Ask the user about each item with the question tool of this host, with the options that"
          " it has; then run the command that the item names, word for word. Decide nothing in"
          " their place."),
)  # fmt: skip
"""The commands, in the order of the plugin's README."""


class Dialect(NamedTuple):
    """How a skill is spelled for its reader."""

    prefix: str
    """Of the names of agents."""
    go: str
    """The skill with which the company goes on."""
    host: str = "claude"
    """Row of the runner's hosts whose briefs are asked for."""
    subject: str = "what the user says with it"
    """What the skill is about."""
    asks: str = "your question tool"
    """Tool that asks the user."""
    runs_first: str = "First: `{}`."
    """How a command is written that runs before the model reads the skill."""
    is_of_plugin: bool = False
    bars_model: bool = False
    """Whether the skill itself says that only a person starts it."""


PLUGIN = Dialect(
    f"{NAME}:{NAME}-",
    f"`/{NAME}:go`",
    subject="$ARGUMENTS",
    asks="AskUserQuestion",
    runs_first="!`{}`",
    is_of_plugin=True,
    bars_model=True,
)
_OF_PROJECT = Dialect(f"{NAME}-", f"the skill `{NAME}-go`")
_BY_HOST = {
    "codex": _OF_PROJECT._replace(host="codex"),
    "cursor": _OF_PROJECT._replace(bars_model=True),
}


def prompt_of(skill: Skill, subject: str) -> str:
    """Return a command as MCP gives it to a model; `subject`: what it is about."""
    dialect = Dialect(f"{NAME}-", "the prompt `go`", subject=subject)
    return skill_file(skill, dialect).split("---\n", 2)[2].strip()


def project_skill(skill: Skill, host: str) -> str:
    """Return a command as a host has it that looks for skills in files of the project."""
    return skill_file(skill._replace(name=f"{NAME}-{skill.name}"), _BY_HOST[host])


def skill_file(skill: Skill, dialect: Dialect) -> str:
    """Return a command as its host reads it."""
    quoted = json.dumps(skill.description)
    values = {**skill._asdict(), **dialect._asdict(), "quoted": quoted}
    values["advice"] = skill.advice.format(go=dialect.go)
    resumes = dialect.runs_first.format("yolo-fs resume")
    if not skill.starts_agents:
        looks = dialect.runs_first.format(skill.command)
        return rendered("skill-look.md.j2", **values, looks=looks)
    if not skill.route:
        yours = [row.file for row in ARTIFACTS if row.kind == "analysis"]
        return rendered("skill-go.md.j2", **values, resumes=resumes, yours=yours, skips=SKIP_FLAGS)
    route = next(row for row in ROUTES if row.command == skill.route)
    kinds = {row.kind: row.file for row in ARTIFACTS}
    stages = [
        {"role": stage.role.value, "does": stage.does, "file": kinds[stage.kind]}
        for stage in CHAINS[skill.verb]
    ]
    return rendered(
        "skill-chain.md.j2",
        **values,
        resumes=resumes,
        chain=route.chain,
        escalation=route.escalation.replace(PLUGIN.go.strip("`"), dialect.go.replace("`", "")),
        stages=stages,
        goes_on=skill.verb in GOES_ON,
    )
