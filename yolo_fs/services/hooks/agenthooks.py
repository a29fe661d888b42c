"""Answers an agent's host: may this tool run, what is wrong with what it wrote, what must be done before it stops.

Source: interfaces 1.1 and 1.4; document 001 ("Receiver behavior"); document 002 ("Context Isolation"); protocol 7.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import TaskRef
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Border, Scope
from yolo_fs.protocol.triggers import DirectiveRole
from yolo_fs.reasons import Finding, Reason, YoloError, errors, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.repair import diff, mended
from yolo_fs.rules.brief import as_text, cut
from yolo_fs.rules.facts import Accepted, Held, Rejected, Waiting
from yolo_fs.rules.hooks.answers import Told
from yolo_fs.rules.hooks.guarded import Guarded, guarded, holds_guarded
from yolo_fs.rules.hooks.input import Said
from yolo_fs.rules.hooks.shell_touches import Touch
from yolo_fs.rules.permits.actors import Actor, Answer
from yolo_fs.rules.permits.targets import Target
from yolo_fs.rules.phase.evidence import PlanStanding, TaskProgress, plan_progress
from yolo_fs.rules.phase.facts import Switches, plans_of
from yolo_fs.rules.phase.scene import Asker
from yolo_fs.services.access import Access
from yolo_fs.services.background import running
from yolo_fs.services.context.keeping import Contexts
from yolo_fs.services.coordinator import PASSING
from yolo_fs.services.handoffs.taking import Handoffs
from yolo_fs.services.judgement import Judged
from yolo_fs.services.resume import resume
from yolo_fs.services.settings import load
from yolo_fs.services.states import RUNNING
from yolo_fs.services.status import Candidate, report
from yolo_fs.services.team import Team
from yolo_fs.services.validation import HANDOFF, Validator

BRIEF_TOKENS = 2000
"""Leaves room for what a role may see."""
MOST_CHARACTERS = 10_000
"""Hosts move what is longer out of the context. Source: interfaces 1.1."""
PATIENCE_S = 2.0
"""How long a stop waits for a daemon that is about to commit."""
_POLL_S = 0.1
_FEW = 20
_TASK = re.compile(r"\b([0-9]{2}-[0-9]{2})[\s/:)]+T([0-9]+)\b")


def answer(said: Said) -> Told:
    """Answer one question of a host.

    Raises:
        YoloError: the environment is wrong; the host goes on as if it had not asked.
    """
    if said.event in ("session-start", "user-prompt-submit"):
        return Told(context=_brief(said.cwd, Asker(said.agent.removeprefix("yolo-"))))
    with Repository(said.cwd) as repository:
        return _ANSWERS[said.event](_Hooks(repository, said))


class _Hooks:
    """One question, asked in one repository."""

    def __init__(self, repository: Repository, said: Said):
        self._repository = repository
        self._said = said
        self._settings = load(repository.root)
        self._access = Access(repository, self._settings, start=said.cwd)
        self._actor = self._find_actor()

    def _find_actor(self) -> Actor | None:
        """Return who asks, as the host says, else as the planning tree does; None for somebody whom we do not know."""
        name = self._said.agent.rpartition(":")[2] or _active_agent(self._repository.root)
        try:
            return self._access.actor(name) if name else None
        except YoloError:
            return None

    # --- before a tool runs ---

    def before_tool(self) -> Told:
        """Refuse what would be written or read against the rules, with the reason and what to do instead."""
        handed = self._handed()
        for touch in self._said.touches:
            path = self._relative(touch.path)
            if path is not None and (refusal := self._refused(touch, path) or (touch.writes and handed(path))):
                return Told(refusal=str(refusal))
        return Told()

    def _refused(self, touch: Touch, path: str) -> str:
        if touch.writes and (row := self._guarded(touch, path)):
            return f"{safe(path)} is {row.what} ({row.source}).\nInstead: {row.instead}."
        if self._actor is None or not _is_inside(path):
            return ""
        full = os.path.join(self._repository.root, path)
        if not touch.writes and not (path.startswith(f"{PLANNING_ROOT}/") or os.path.isfile(full)):
            return ""
        given = self._may_write(self._actor, full) if touch.writes else self._access.read(self._actor, full)
        return "" if given.allowed else _said_no(given)

    def _guarded(self, touch: Touch, path: str) -> Guarded | None:
        """Return the row of a file that only a command writes, or of the first that a removed folder holds."""
        row = guarded(path)
        if row is None and touch.removes and holds_guarded(path):
            full = os.path.join(self._repository.root, path)
            row = next((found for name in _names_below(full) if (found := guarded(f"{PLANNING_ROOT}/{name}"))), None)
        return None if row and row.is_state and not self._is_kept(path) else row

    def _is_kept(self, path: str) -> bool:
        """Tell whether the daemon keeps a state file; where it does not, the team begins it by writing it."""
        wanted, several = self._settings.policy.state_files, Switches(self._settings.config).several_departments
        if wanted == "never":
            return False
        exists = os.path.lexists(os.path.join(self._repository.root, path))
        return exists or ((wanted == "always" or several) and path != RUNNING)

    def _may_write(self, actor: Actor, full: str) -> Answer:
        """Ask for the department's active plan, then for each other one that is open: plans of a wave run at once."""
        first = self._access.write(actor, full)
        target = self._access.target(full)
        if first.allowed or target is None or target.is_planning:
            return first
        others = (self._access.write(actor, full, plan) for plan in self._open_plans_with(actor, target))
        return next((one for one in others if one.allowed), first)

    def _open_plans_with(self, actor: Actor, target: Target) -> Iterator[str]:
        for facts in self._access.facts:
            progress = {one.id: one for one in plan_progress(facts, actor.department)}
            for plan in plans_of(facts, actor.department):
                is_open = progress[plan.id].standing is not PlanStanding.COMPLETE and not progress[plan.id].blocked_by
                if is_open and any(f"{target.path}/".startswith(f"{one.rstrip('/')}/") for one in plan.files):
                    yield str(plan.id)

    def _handed(self) -> Callable[[str], str]:
        """Return what tells of a path why nothing may be edited now; the handoff is looked at once, if at all."""
        handoffs = Handoffs(self._repository, self._settings)
        agent = self._said.agent
        receiver = agent if agent in set(DirectiveRole) else ""

        def why(path: str) -> str:
            if not _is_inside(path):
                return ""
            given = handoffs.may_edit(datetime.now(UTC), receiver=receiver, editing=path)
            return "" if given.allowed else _not_handed_over(given.findings)

        return why

    def _relative(self, path: str) -> str | None:
        """Return where a path leads, relative to the repository; a planning tree elsewhere is one all the same."""
        root = os.path.realpath(self._repository.root)
        try:
            full = os.path.realpath(os.path.join(self._said.cwd, os.path.expanduser(path)))
        except (ValueError, OSError):  # a NUL in the name, or links in a circle: the tool itself will fail
            return None
        if full == root or full.startswith(root + os.sep):
            return os.path.relpath(full, root).replace(os.sep, "/")
        _, mark, below = full.rpartition(f"/{PLANNING_ROOT}/")
        return f"{PLANNING_ROOT}/{below}" if mark else f"../{full}"

    # --- after a write ---

    def after_tool(self) -> Told:
        """Judge the artifacts that were just written, and tell every fault with its repair."""
        paths = [path for touch in self._said.touches if touch.writes and (path := self._relative(touch.path))]
        ours = [path for path in paths if _is_judged(path) and os.path.isfile(os.path.join(self._root, path))]
        if not ours:
            return Told()
        validator = Validator(self._root)
        try:
            judged = [one for one in validator.paths(dict.fromkeys(ours)) if one.findings]
        finally:
            validator.close()
        wrong = [_faults(one) for one in judged if errors(one.findings)]
        if wrong:
            return Told(refusal="\n".join(wrong))
        return Told(context="\n".join(str(finding) for one in judged for finding in one.findings))

    @property
    def _root(self) -> str:
        return self._repository.root

    # --- a subagent starts ---

    def subagent_starts(self) -> Told:
        """Tell an agent of the company where its own work stands, and what it may see."""
        if self._actor is None:
            return Told()
        brief = _brief(self._said.cwd, Asker(self._actor.name, self._actor.department))
        told = "\n".join(part for part in (brief, *_scope_of(self._actor)) if part)
        return Told(context=f"{told}\n{self._given(self._actor, MOST_CHARACTERS - len(told))}".strip("\n"))

    def _given(self, actor: Actor, room: int) -> str:
        """Return the agent's compiled context where it fits the room that is left, else where it lies."""
        policy, config = self._settings.policy, self._settings.config
        if policy.contexts == "never" or not config.context_compiler:
            return ""
        try:
            (kept,) = Contexts(self._repository, self._settings, Team(self._repository, self._settings)).compile(
                (actor.name,)
            )
        except YoloError:  # there is no phase yet, or no context for such an agent: it begins without
            return ""
        whole = f"## Your context, {kept.path}\n{kept.compiled.text}"
        return whole if len(whole) < room else f"Read your context first: @{kept.path}"

    # --- before it stops ---

    def stops(self) -> Told:
        """Send an agent back once while something of its own is wrong, or valid and in no commit."""
        if self._said.is_repeated:
            return Told()
        lines = list(self._left())
        if not lines:
            return Told()
        return Told(refusal="\n".join(("Before you stop, this is not done yet:", *lines[:_FEW], *_more(lines))))

    def _left(self) -> Iterator[str]:
        uncommitted = []
        for one in self._settled():
            match one.verdict:
                case Rejected(findings):
                    yield from (f"- {finding}" for finding in errors(findings))
                case Held(reason, findings) if reason not in PASSING and reason is not Reason.AUTO_COMMIT_OFF:
                    yield from (f"- {finding}" for finding in findings or (Finding(reason, one.path),))
                case Accepted() | Waiting():
                    uncommitted.append(one.path)
        watched = running(self._repository) is not None
        how = "the daemon has not committed it yet: see 'yolo-fs status'" if watched else "run 'yolo-fs run --once'"
        yield from (f"- {safe(path)}: valid, but in no commit; {how}" for path in uncommitted)

    def _settled(self) -> list[Candidate]:
        """Return the agent's own candidates, after a daemon had its moment to commit them."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = self._own()
            is_pending = any(isinstance(one.verdict, Accepted | Waiting) for one in found)
            if not is_pending or running(self._repository) is None or time.monotonic() > until:
                return found
            time.sleep(_POLL_S)

    def _own(self) -> list[Candidate]:
        found = report(self._repository, self._settings.without_patience).candidates
        return [one for one in found if self._is_own(one.path)]

    def _is_own(self, path: str) -> bool:
        """Tell whether an agent answers for an artifact; the session itself answers for all of them."""
        actor, place = self._actor, classify(path)
        return actor is None or actor.agent is None or place is None or actor.answers_for(place)

    # --- a task is done ---

    def task_is_done(self) -> Told:
        """Refuse to call a task of a plan done that no commit names."""
        open_ = [task for task in self._tasks_said() if not task.commit]
        if not open_:
            return Told()
        refs = ", ".join(str(task.ref) for task in open_)
        how = f"Commit the work as `feat({open_[0].ref.plan}): T{open_[0].ref.number} …`, then complete the task."
        return Told(refusal=f"No commit names {refs}, so nothing proves that it is done. {how}")

    def _tasks_said(self) -> Iterator[TaskProgress]:
        named = (TaskRef.parse(f"{plan}/T{number}") for plan, number in _TASK.findall(self._said.task))
        wanted = {ref for ref in named if ref}
        if wanted:
            for facts in self._access.facts:
                yield from (task for plan in plan_progress(facts) for task in plan.tasks if task.ref in wanted)


_ANSWERS: Mapping[str, Callable[[_Hooks], Told]] = {
    "pre-tool-use": _Hooks.before_tool,
    "post-tool-use": _Hooks.after_tool,
    "subagent-start": _Hooks.subagent_starts,
    "stop": _Hooks.stops,
    "subagent-stop": _Hooks.stops,
    "task-completed": _Hooks.task_is_done,
}


def _brief(start: str, asker: Asker) -> str:
    return as_text(cut(resume(start, asker), BRIEF_TOKENS, as_text)).rstrip("\n")


def _scope_of(actor: Actor) -> Iterator[str]:
    """Yield what a role receives and never receives. Source: document 002 ("Context Isolation")."""
    rows: list[Scope | Border] = [row for row in SCOPES if row.role is actor.role]
    rows += [row for row in BORDERS if row.department is actor.department]
    received = [item.text for row in rows for item in row.receives]
    never = [item.text for row in rows for item in row.never]
    if received:
        yield f"{actor.name} receives: {'; '.join(dict.fromkeys(received))}"
    if never:
        yield f"{actor.name} never receives: {'; '.join(dict.fromkeys(never))}"


def _said_no(given: Answer) -> str:
    ask = f"\nInstead: ask {', then '.join(given.ask)}" if given.ask else "\nInstead: leave it to whom it belongs"
    bring = f", and bring {', '.join(given.bring)}" if given.bring else ""
    return f"{given.rule}{ask}{bring}."


def _not_handed_over(findings: tuple[Finding, ...]) -> str:
    why = "\n".join(f"- {finding}" for finding in findings)
    instead = (
        "mend what is named, or go to the branch that it names; 'yolo-fs handoff check' says whether it is accepted, "
        "and the operator may accept it with 'yolo-fs handoff check --override WHY'"
    )
    rule = 'Nothing may be edited before the handoff is accepted. document 001 ("Receiver behavior")'
    return f"{rule}\n{why}\nInstead: {instead}."


def _faults(judged: Judged) -> str:
    said = "\n".join(f"- {finding}" for finding in judged.findings)
    fresh = mended(judged.data, judged.kind) if judged.kind else None
    repair = f"\nThis much can be put right mechanically:\n{diff(judged.data, fresh, judged.path)}" if fresh else ""
    return f"{safe(judged.path)} is not valid and will not be committed:\n{said}{repair}"


def _more(lines: list[str]) -> tuple[str, ...]:
    return (f"- and {len(lines) - _FEW} more: see 'yolo-fs status'",) if len(lines) > _FEW else ()


def _is_judged(path: str) -> bool:
    return classify(path) is not None or path.rpartition("/")[2] == HANDOFF


def _is_inside(path: str) -> bool:
    return not path.startswith("../")


def _active_agent(root: str) -> str:
    path = os.path.join(root, PLANNING_ROOT, ".active-agent")
    if not os.path.isfile(path):  # to open a pipe would wait for its writer
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""


def _names_below(folder: str) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names
