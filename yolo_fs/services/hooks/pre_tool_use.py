"""May this tool run: refuses what would be written or read against the rules, and says what to do
instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from yolo_fs.edges.git.repository import Repository
from yolo_fs.protocol.triggers import DirectiveRole
from yolo_fs.reasons import Finding, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.authz.actors import AccessDecision, Actor
from yolo_fs.rules.authz.targets import Target, sealed
from yolo_fs.rules.evidence.facts import Switches, plans_of
from yolo_fs.rules.evidence.plans import PlanStanding, plan_progress
from yolo_fs.rules.hooks.answers import Guarded, HookAnswer, guarded, holds_guarded
from yolo_fs.rules.hooks.touches import Effect, Touch
from yolo_fs.services.handoffs.accept import DirectiveHandoffs
from yolo_fs.services.hooks.githooks import is_installed
from yolo_fs.services.hooks.net import keep_first
from yolo_fs.services.hooks.request import HookRequest
from yolo_fs.services.progress.state_files import RUNNING


class Guard:
    """Judges each file that one use of a tool would touch."""

    def __init__(self, asked: HookRequest):
        self._asked = asked

    def answer(self) -> HookAnswer:
        """Refuse what would be written or read against the rules, with the reason and what to do
        instead.
        """
        if self._asked.said.unchecked and is_installed(self._asked.repository.root):
            return HookAnswer(refusal=_skipped(self._asked.said.unchecked[0]))
        handed = self._handed()
        for touch in self._asked.said.touches:
            for path in self._asked.paths(touch):
                refusal = self._refused(touch, path)
                if not refusal and touch.writes and not self._is_scratch(touch, path):
                    refusal = handed(path)
                if refusal:
                    return HookAnswer(refusal=refusal)
        kept = keep_first(self._asked) if self._asked.settings.policy.safety_net else ""
        handoffs = DirectiveHandoffs(self._asked.repository, self._asked.settings)
        handoffs.note_accepted(datetime.now(UTC))
        undecided = "; ".join(safe(what) for what in self._asked.said.undecided)
        if not undecided:
            return HookAnswer(context=kept)
        return HookAnswer(
            context=kept,
            note=f"yolo-fs hook: undecided from its text: {undecided}. "
            "The daemon and 'yolo-fs verify' check what it leaves behind.",
        )

    def _refused(self, touch: Touch, path: str) -> str:
        if touch.effect is Effect.REMOVE and self._is_whole(path):
            return (
                f"{safe(path)} holds the planning tree or the repository itself.\n"
                "Instead: name the files that are to be removed."
            )
        if touch.writes and (row := self._guarded(touch, path)):
            return f"{safe(path)} is {row.what}.\nInstead: {row.instead}."
        actor, full = self._asked.actor, self._asked.full(path)
        if actor is None or not _is_inside(path) or not touch.is_certain:
            return ""
        if touch.effect is Effect.READ:
            is_judged = path.startswith(f"{PLANNING_ROOT}/") or os.path.isfile(full)
            given = self._asked.access.read(actor, full) if is_judged else None
        elif touch.effect is Effect.ALTER or self._is_scratch(touch, path):
            given = None
        else:
            given = self._may_write(actor, full)
        return _said_no(given) if given and not given.allowed else ""

    def _is_whole(self, path: str) -> bool:
        """Return whether a path is the planning tree, the repository or a folder that holds it."""
        root = os.path.realpath(self._asked.repository.root)
        return path in (".", ".git", PLANNING_ROOT) or f"{root}/".startswith(
            f"{path.removeprefix('../').rstrip('/')}/"
        )

    def _is_scratch(self, touch: Touch, path: str) -> bool:
        """Return whether a file can get into no commit: git ignores it, and it is no credential."""
        if path.startswith((f"{PLANNING_ROOT}/", "../")) or path == PLANNING_ROOT:
            return False
        row = sealed(Target(path))
        is_removed = touch.effect is Effect.REMOVE and row is not None and not row.names
        return (row is None or is_removed) and _is_ignored(self._asked.repository, path)

    def _guarded(self, touch: Touch, path: str) -> Guarded | None:
        """Return the row of a file that only a command writes, or of the first that a removed
        folder holds.
        """
        row = guarded(path)
        if row is None and touch.effect is Effect.REMOVE and holds_guarded(path):
            for name in _names_below(self._asked.full(path)):
                row = row or guarded(f"{PLANNING_ROOT}/{name}")
        return None if row and row.is_state and not self._is_kept(path) else row

    def _is_kept(self, path: str) -> bool:
        """Return whether the daemon keeps a state file; where it does not, the team begins it by
        writing it.
        """
        settings = self._asked.settings
        wanted, several = settings.policy.state_files, Switches(settings.config).several_departments
        if wanted == "never":
            return False
        exists = os.path.lexists(os.path.join(self._asked.repository.root, path))
        return exists or ((wanted == "always" or several) and path != RUNNING)

    def _may_write(self, actor: Actor, full: str) -> AccessDecision:
        """Ask for the department's active plan, then for each other one that is open: plans of a
        wave run at once.
        """
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
        """Return what tells of a path why nothing may be edited now; the handoff is looked at once,
        if at all.
        """
        handoffs = DirectiveHandoffs(self._asked.repository, self._asked.settings)
        agent = self._asked.said.agent
        receiver = agent if agent in set(DirectiveRole) else ""

        def why(path: str) -> str:
            if not _is_inside(path):
                return ""
            given = handoffs.may_edit(datetime.now(UTC), receiver=receiver, editing=path)
            return "" if given.allowed else _not_handed_over(given.findings)

        return why


def _skipped(command: str) -> str:
    return (
        f"{safe(command)} skips the hooks that check each commit here; only a person may do that.\n"
        "Instead: run it without that option; where a hook is wrong, tell your user what it says."
    )


def _said_no(given: AccessDecision) -> str:
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
        "mend what is named, or go to the branch that it names; 'yolo-fs handoff check' "
        "says whether it is accepted, "
        "and the operator may accept it with 'yolo-fs handoff check --override WHY'"
    )
    rule = "Nothing may be edited before the handoff is accepted."
    return f"{rule}\n{why}\nInstead: {instead}."


def _is_ignored(repository: Repository, path: str) -> bool:
    # check-ignore refuses literal pathspecs, which the runner asks of git everywhere else.
    asked = repository.git.converse(
        "check-ignore", "--stdin", "-z", "-v", "-n", more={"GIT_LITERAL_PATHSPECS": "0"}
    )
    try:
        for name in (path, f"{path}/"):  # a folder that is not there yet has to be called one
            asked.ask(os.fsencode(name) + b"\0")
            _, _, pattern, _ = (asked.until(b"\0") for _ in range(4))
            if pattern and not pattern.startswith(b"!"):
                return True
    finally:
        asked.close()
    return False


def _is_inside(path: str) -> bool:
    return not path.startswith("../")


def _names_below(folder: str) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names
