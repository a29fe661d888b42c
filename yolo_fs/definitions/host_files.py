"""Agent files per host: front matter or a table with the host's own fields, then the text.

The roster's model classes belong to one host; the other hosts choose their own models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from yolo_fs.definitions.definition import Definition, text_of
from yolo_fs.definitions.texts import rendered


def host_file(definition: Definition, host: str) -> str:
    """Return the definition of an agent as a host reads it."""
    return _FORMS[host](definition)


def sandbox_of(definition: Definition) -> str:
    """Return the Codex sandbox of an agent: read-only unless it may write or run."""
    is_reader = not (definition.can_write or definition.can_run)
    return "read-only" if is_reader else "workspace-write"


def _render_claude(definition: Definition) -> str:
    return rendered(
        "claude-agent.md.j2",
        agent=definition.agent,
        description=_described(definition),
        tools=definition.tools,
        denied_tools=definition.denied_tools,
        model=definition.agent.model.lower(),
        text=text_of(definition).strip(),
    )


def _render_codex(definition: Definition) -> str:
    return rendered(
        "codex-agent.toml.j2",
        agent=definition.agent,
        description=_described(definition),
        sandbox=sandbox_of(definition),
        text=text_of(definition).strip(),
    )


def _render_cursor(definition: Definition) -> str:
    is_reader = sandbox_of(definition) == "read-only"
    return rendered(
        "cursor-agent.md.j2",
        agent=definition.agent,
        description=_described(definition),
        readonly="true" if is_reader else "false",
        text=text_of(definition).strip(),
    )


_FORMS: Mapping[str, Callable[[Definition], str]] = {
    "claude": _render_claude,
    "codex": _render_codex,
    "cursor": _render_cursor,
}


def _described(definition: Definition) -> str:
    """Return when to use an agent, quoted as JSON, which YAML and TOML read as well."""
    agent = definition.agent
    writes = f" Writes {', '.join(agent.produces)}." if agent.produces else ""
    where = f" of the {definition.department} department" if definition.department else ""
    return json.dumps(
        f"{agent.title}{where}.{writes} Started with a brief of yolo-fs.", ensure_ascii=False
    )
