"""May this tool run: refuses what would be written or read against the rules, and says what to do
instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from yolo_fs.protocol.triggers import DirectiveRole
from yolo_fs.reasons import Finding, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.evidence.facts import Switches, plans_of
from yolo_fs.rules.evidence.plans import PlanStanding, plan_progress
from yolo_fs.rules.hooks.answers import Told
from yolo_fs.rules.hooks.guarded import Guarded, guarded, holds_guarded
from yolo_fs.rules.hooks.shell_touches import Touch
from yolo_fs.rules.permits.actors import Actor, Answer
from yolo_fs.rules.permits.targets import Target
from yolo_fs.services.handoffs.accept import DirectiveHandoffs
from yolo_fs.services.hooks.asked import Asked
from yolo_fs.services.progress.state_files import RUNNING


class Guard:
    """Judges each file that one use of a tool would touch."""

    def __init__(self, asked: Asked):
        self._asked = asked

    def answer(self) -> Told:
        """Refuse what would be written or read against the rules, with the reason and what to do instead."""
        handed = self._handed()
        for touch in self._asked.said.touches:
            path = self._asked.relative(touch.path)
            if path is not None and (
                refusal := self._refused(touch, path) or (touch.writes and handed(path))
            ):
                return Told(refusal=str(refusal))
        return Told()

    def _refused(self, touch: Touch, path: str) -> str:
        if touch.writes and (row := self._guarded(touch, path)):
            return f"{safe(path)} is {row.what}.\nInstead: {row.instead}."
        actor, full = self._asked.actor, os.path.join(self._asked.repository.root, path)
        if actor is None or not _is_inside(path):
            return ""
        if not touch.writes and not (path.startswith(f"{PLANNING_ROOT}/") or os.path.isfile(full)):
            return ""
        given = (
            self._may_write(actor, full) if touch.writes else self._asked.access.read(actor, full)
        )
        return "" if given.allowed else _said_no(given)

    def _guarded(self, touch: Touch, path: str) -> Guarded | None:
        """Return the row of a file that only a command writes, or of the first that a removed folder holds."""
        row = guarded(path)
        if row is None and touch.removes and holds_guarded(path):
            full = os.path.join(self._asked.repository.root, path)
            row = next(
                (
                    found
                    for name in _names_below(full)
                    if (found := guarded(f"{PLANNING_ROOT}/{name}"))
                ),
                None,
            )
        return None if row and row.is_state and not self._is_kept(path) else row

    def _is_kept(self, path: str) -> bool:
        """Tell whether the daemon keeps a state file; where it does not, the team begins it by writing it."""
        settings = self._asked.settings
        wanted, several = settings.policy.state_files, Switches(settings.config).several_departments
        if wanted == "never":
            return False
        exists = os.path.lexists(os.path.join(self._asked.repository.root, path))
        return exists or ((wanted == "always" or several) and path != RUNNING)

    def _may_write(self, actor: Actor, full: str) -> Answer:
        """Ask for the department's active plan, then for each other one that is open: plans of a wave run at once."""
        access = self._asked.access
        first, target = access.write(actor, full), access.target(full)
        if first.allowed or target is None or target.is_planning:
            return first
        others = (access.write(actor, full, plan) for plan in self._open_plans_with(actor, target))
        return next((one for one in others if one.allowed), first)

    def _open_plans_with(self, actor: Actor, target: Target) -> Iterator[str]:
        for facts in self._asked.access.facts:
            progress = {one.id: one for one in plan_progress(facts, actor.department)}
            for plan in plans_of(facts, actor.department):
                is_open = (
                    progress[plan.id].standing is not PlanStanding.COMPLETE
                    and not progress[plan.id].blocked_by
                )
                if is_open and any(
                    f"{target.path}/".startswith(f"{one.rstrip('/')}/") for one in plan.files
                ):
                    yield str(plan.id)

    def _handed(self) -> Callable[[str], str]:
        """Return what tells of a path why nothing may be edited now; the handoff is looked at once, if at all."""
        handoffs = DirectiveHandoffs(self._asked.repository, self._asked.settings)
        agent = self._asked.said.agent
        receiver = agent if agent in set(DirectiveRole) else ""

        def why(path: str) -> str:
            if not _is_inside(path):
                return ""
            given = handoffs.may_edit(datetime.now(UTC), receiver=receiver, editing=path)
            return "" if given.allowed else _not_handed_over(given.findings)

        return why


def _said_no(given: Answer) -> str:
    ask = (
        f"\nInstead: ask {', then '.join(given.ask)}"
        if given.ask
        else "\nInstead: leave it to whom it belongs"
    )
    bring = f", and bring {', '.join(given.bring)}" if given.bring else ""
    return f"{given.rule}{ask}{bring}."


def _not_handed_over(findings: tuple[Finding, ...]) -> str:
    why = "\n".join(f"- {finding}" for finding in findings)
    instead = (
        "mend what is named, or go to the branch that it names; 'yolo-fs handoff check' says whether it is accepted, "
        "and the operator may accept it with 'yolo-fs handoff check --override WHY'"
    )
    rule = "Nothing may be edited before the handoff is accepted."
    return f"{rule}\n{why}\nInstead: {instead}."


def _is_inside(path: str) -> bool:
    return not path.startswith("../")


def _names_below(folder: str) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names
