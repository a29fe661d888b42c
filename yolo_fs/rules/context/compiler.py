"""Compiles the context of one agent from what was gathered: the same sources give the same bytes. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE, FOR_ALL, GOAL, Cut, Section, budget_of
from yolo_fs.protocol.departments import DEPARTMENTS
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.authz.access import may_read
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.authz.targets import Target
from yolo_fs.rules.context.budget import Fitted, LeftOut, fit
from yolo_fs.rules.context.extractors import ROADMAP, Row, rows_of
from yolo_fs.rules.context.render import Block, Line, Write, text_of
from yolo_fs.rules.context.selection import choose
from yolo_fs.rules.context.sources import ContextSources, Withheld
from yolo_fs.rules.report import tokens

_HEADER = "the reference scripts"
_SHORT_NAMES = {
    row.name: row.prefix.rstrip("-") or row.name.value for row in DEPARTMENTS if not row.is_default
}
"""What the header calls the departments; it does not name the default one."""


@dataclass(frozen=True, slots=True)
class CompiledContext:
    """A compiled context."""

    agent: str
    """Short name, such as `fe-lead`."""
    lines: tuple[Line, ...]
    budget: int
    """Tokens."""
    cut: Cut
    left_out: tuple[LeftOut, ...] = ()
    withheld: tuple[Withheld, ...] = ()

    @property
    def text(self) -> str:
        """The file."""
        return text_of(self.lines)

    @property
    def tokens(self) -> int:
        """Its size."""
        return tokens(self.text)


def compile_context(
    gathered: ContextSources, write: Write, budget: int | None = None
) -> CompiledContext:
    """Return the context of the agent that was gathered for. `budget`: tokens; None for the agent's own.

    Raises:
        YoloError: UNKNOWN_NAME for somebody whom no context is compiled for.
    """
    name = agent_of(gathered.actor)
    sections, withheld = _blocks(gathered)
    most = budget_of(name) if budget is None else budget
    found: Fitted = fit(tuple(_head(gathered, write)), sections, most, write)
    return CompiledContext(
        name, found.lines, most, found.cut, found.left_out, tuple(dict.fromkeys(withheld))
    )


def agent_of(actor: Actor) -> str:
    """Return the short name that an actor's context is filed under.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    if actor.role not in CONTEXT_BY_ROLE or actor.agent is None:
        hint = f"There are {', '.join(name for name, row in AGENT_BY_NAME.items() if row.role in CONTEXT_BY_ROLE)}."
        message = f"no context is compiled for {safe(actor.name)}"
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.USAGE)
    return actor.name


def _head(gathered: ContextSources, write: Write) -> Iterator[Line]:
    yield Line(f"phase: {write(str(gathered.phase))}", rule=_HEADER)
    if gathered.plan:
        yield Line(f"plan: {write(str(gathered.plan))}", rule=_HEADER)
    agent = AGENT_BY_NAME[gathered.actor.name]
    if agent.department in _SHORT_NAMES:
        yield Line(f"department: {_SHORT_NAMES[agent.department]}", rule=_HEADER)


def _blocks(gathered: ContextSources) -> tuple[list[Block], list[Withheld]]:
    blocks: list[Block] = []
    withheld: list[Withheld] = []
    own = gathered.actor.department
    for section in (GOAL, *CONTEXT_BY_ROLE[gathered.actor.role].sections, *FOR_ALL):
        if section.departments and own not in section.departments:
            continue
        block, kept_back = _block(section, gathered)
        withheld += kept_back
        blocks += [block] if block.rows else []
    return blocks, withheld


def _block(section: Section, gathered: ContextSources) -> tuple[Block, tuple[Withheld, ...]]:
    chosen = choose(section, gathered)
    rows = rows_of(section, gathered, chosen)
    if section is GOAL and not rows and may_read(gathered.actor, Target(ROADMAP)).allowed:
        rows = (Row(("Not available",), rule=_HEADER),)
    return Block(section, chosen.columns, rows), chosen.withheld
