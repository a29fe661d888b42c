"""The Claude Code plugin: all agents and commands of the company, hooks, MCP server and skill.

Its text is generated from the tables; to update the plugin, generate it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yolo_fs import __version__
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.definitions.definition import definitions
from yolo_fs.definitions.host_files import host_file
from yolo_fs.definitions.texts import rendered
from yolo_fs.hooks.hostsettings import PROGRAM, entries_of
from yolo_fs.hooks.registration import server_of
from yolo_fs.protocol.authority import ROUTES
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import AGENTS
from yolo_fs.protocol.workflow import SKIP_FLAGS
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, remove_folder, write_atomic
from yolo_fs.workspace.output_places import output_place

NAME = "yolo"
"""Prefix of its agents and commands: `yolo:yolo-critic`, `/yolo:go`."""
MANIFEST = ".claude-plugin/plugin.json"
_ICON = ".claude-plugin/icon.png"
_FORMER = PROGRAM
"""The plugin's name before it had agents."""
_ABOUT = (
    "A company of agents that takes an intent to the sign-off; every artifact is checked and "
    "committed."
)
_MOST_BYTES = 1 << 20
_HERE = os.path.dirname(__file__)


class Skill(NamedTuple):
    """One command of the plugin."""

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


GO = Skill(
    "go",
    "Take an intent from analysis to sign-off with the agents of the company, or go on.",
    "The company goes on",
)
SKILLS = (
    GO,
    Skill("debug", "Have an incident looked into: the Lead takes it on, the Debugger investigates.",
          "An incident", route="/yolo:debug", hint="what goes wrong", verb="debug"),
    Skill("fix", "Have something small fixed: the Lead plans it, it is carried out like any plan.",
          "A fix", route="/yolo:fix", hint="what is to be fixed", verb="fix-it"),
    Skill("research", "Have a question answered: the Lead asks it, the Scout answers.",
          "A question", route="/yolo:research", hint="the question", verb="research"),
    Skill("qa", "Have the work checked: the Lead says what, QA verifies it and looks at the code.",
          "A check", route="/yolo:qa", hint="what is to be checked", verb="qa"),
    Skill("status", "Show where the team stands: steps, plans, gates, and what is held, and why.",
          "Where the team stands", "yolo-fs status",
          "Tell the user what is done, what is next, and what waits for them. For anything held or"
          " refused, `yolo-fs explain REASON` says what helps."),
    Skill("resume", "Take up the work where it stopped, after a break, a crash or a compaction.",
          "Where the work goes on", "yolo-fs resume",
          "Go on with exactly this. If it is an agent's turn, `/yolo:go` has it start."),
    Skill("inbox", "Settle what waits for a person: questions, decisions, holds, oldest first.",
          "What waits for you", "yolo-fs inbox --json",
          "Ask the user about each item with the question tool of this host, with the options that"
          " it has; then run the command that the item names, word for word. Decide nothing in"
          " their place."),
)  # fmt: skip
"""The commands, in the order of the README."""


def prompt_of(skill: Skill, subject: str) -> str:
    """Return a command as a host without the plugin gives it to a model; `subject`: what it is
    about.
    """
    _, _, text = skill_file(skill, "yolo-").split("---\n", 2)
    text = text.replace("!`yolo-fs resume`", "First: `yolo-fs resume`.").strip()
    return text.replace("`/yolo:go`", "the prompt `go`").replace("$ARGUMENTS", subject)


def skill_file(skill: Skill, prefix: str = f"{NAME}:yolo-") -> str:
    """Return a command of the plugin as Claude Code reads it; `prefix`: of the names of agents."""
    quoted = json.dumps(skill.description)
    values = {**skill._asdict(), "prefix": prefix, "quoted": quoted}
    if skill is GO:
        yours = [row.file for row in ARTIFACTS if row.kind == "analysis"]
        return rendered("skill-go.md.j2", **values, yours=yours, skips=SKIP_FLAGS)
    if not skill.route:
        return rendered("skill-look.md.j2", **values)
    route = next(row for row in ROUTES if row.command == skill.route)
    kinds = {row.kind: row.file for row in ARTIFACTS}
    stages = [
        {"role": stage.role.value, "does": stage.does, "file": kinds[stage.kind]}
        for stage in CHAINS[skill.verb]
    ]
    return rendered(
        "skill-chain.md.j2",
        **values,
        chain=route.chain,
        escalation=route.escalation,
        stages=stages,
        goes_on=skill.verb in GOES_ON,
    )


def plugin_files() -> dict[str, bytes]:
    """Return the files of the plugin: path → content."""
    return {path: text if isinstance(text, bytes) else text.encode() for path, text in _files()}


def _files() -> Iterator[tuple[str, str | bytes]]:
    host = HOST_BY_NAME["claude"]
    hooks = {event: list(entries_of(host, event)) for event in host.events.values()}
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": _ABOUT,
        "author": {"name": "The yolo_fs authors"},
        "license": "MIT",
        "keywords": ["agents", "git", "handoff"],
    }
    yield MANIFEST, _json(manifest)
    yield "hooks/hooks.json", _json({"description": _ABOUT, "hooks": hooks})
    yield ".mcp.json", _json({"mcpServers": {PROGRAM: server_of()}})
    for definition in definitions():
        yield f"agents/{definition.agent.full_name}.md", host_file(definition, "claude")
    for skill in SKILLS:
        yield f"skills/{skill.name}/SKILL.md", skill_file(skill)
    yield f"skills/{PROGRAM}/SKILL.md", rendered("skill-yolo-fs.md.j2")
    yield "README.md", rendered("README.md.j2", agents=AGENTS, skills=SKILLS)
    yield "LICENSE", rendered("LICENSE.j2")
    with open(os.path.join(_HERE, "icon.png"), "rb") as file:
        yield _ICON, file.read()


def write_plugin(folder: str, start: str) -> bool:
    """Create or update the plugin in a folder; return whether it was already complete.

    `start`: directory that a relative `folder` is resolved against.

    Raises:
        YoloError: PATH_ESCAPES, NOT_REGULAR; BAD_CONFIG when the folder holds anything else;
            nothing is written then.
    """
    stale = {path: data for path, data in plugin_files().items() if _data(folder, path) != data}
    if not stale:
        return True
    if not _is_ours(folder) and os.path.isdir(folder) and os.listdir(folder):
        message = f"{safe(folder)} is not empty, and holds no plugin of ours"
        raise YoloError(
            Reason.BAD_CONFIG,
            message,
            hint="Give a folder that is new or empty.",
        )
    top, inner = output_place(os.path.join(folder, "_"), start)
    _write(stale, os.path.dirname(inner), top)
    return False


def write_own_plugin(folder: str, top: str) -> None:
    """Create or update the plugin in a folder of ours below `top`.

    A host obeys everything in a plugin, so a folder that holds any other file is rebuilt.
    """
    if os.path.lexists(folder) and not _paths_in(folder) <= plugin_files().keys():
        remove_folder(folder)
    stale = {path: data for path, data in plugin_files().items() if _data(folder, path) != data}
    _write(stale, folder, top)


def _paths_in(folder: str) -> set[str]:
    """Return the paths of the files and links in a folder; links are not followed."""
    if os.path.islink(folder):
        return {""}
    paths = set()
    for place, folders, names in os.walk(folder):
        links = (name for name in folders if os.path.islink(os.path.join(place, name)))
        paths |= {os.path.relpath(os.path.join(place, name), folder) for name in (*names, *links)}
    return paths


def _write(files: Mapping[str, bytes], folder: str, top: str) -> None:
    for path, data in files.items():
        full = os.path.join(folder, path)
        make_folders(os.path.dirname(full), root=top)
        write_atomic(full, data, root=top, mode=SHARED)


def is_plugin_complete(folder: str) -> bool:
    """Return whether a folder holds the plugin as it should be."""
    return all(_data(folder, path) == data for path, data in plugin_files().items())


def _is_ours(folder: str) -> bool:
    try:
        return parse(_data(folder, MANIFEST).decode(), _MOST_BYTES).get("name") in (NAME, _FORMER)
    except (ValueError, AttributeError):
        return False


def _data(folder: str, path: str) -> bytes:
    content = read(folder, path, _MOST_BYTES)
    return content.data if isinstance(content, Content) else b""


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
