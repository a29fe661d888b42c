"""Answers an agent's host but for its tools: what a session or an agent begins with, and whether it
may stop or call a task done.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.verdicts import Accepted, Held, Rejected, Waiting
from yolo_fs.authority.actors import Actor
from yolo_fs.contexts.store import ContextStore
from yolo_fs.core.ids import PhaseId, TaskRef
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors, safe
from yolo_fs.daemon.coordinator import PASSING
from yolo_fs.evidence.facts import TaskProgress, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.hooks.hosts import HookAnswer, HookInput
from yolo_fs.hooks.tool_use import HookRequest, paths_written
from yolo_fs.install.background import running
from yolo_fs.phase.report import Asker, as_text, cut
from yolo_fs.progress.workflow import phase_at_work
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Border, Scope, is_withheld
from yolo_fs.protocol.roster import bare_name
from yolo_fs.reports.resume import resume
from yolo_fs.reports.status import Candidate, report
from yolo_fs.workspace import load_in_force

PATIENCE_S = 2.0
"""How long a stop waits for a daemon that is about to commit."""
_POLL_S = 0.1
_FEW = 20


class Leave:
    """Judges what an agent would leave behind."""

    def __init__(self, asked: HookRequest):
        self._asked = asked

    def answer(self) -> HookAnswer:
        """Send an agent back once while something of its own is wrong, or valid and uncommitted."""
        if self._asked.said.is_repeated or self._asked.said.is_aborted:
            return HookAnswer()
        own = self._settled()
        lines = list(self._left(own))
        if not lines:
            return HookAnswer()
        return HookAnswer(
            refusal="\n".join(
                (
                    "Before you stop, this is not done yet:",
                    *lines[:_FEW],
                    *_more(lines),
                    *self._fixable(own),
                )
            )
        )

    def _fixable(self, own: list[Candidate]) -> Iterator[str]:
        from yolo_fs.checking.fix import fixable_in

        rejected = [one.path for one in own if isinstance(one.verdict, Rejected)]
        if sentence := fixable_in(self._asked.repository.root, rejected).sentence:
            yield sentence

    def _left(self, own: list[Candidate]) -> Iterator[str]:
        uncommitted = []
        for one in own:
            match one.verdict:
                case Rejected(findings):
                    yield from (f"- {finding}" for finding in errors(findings))
                case Held(reason, findings) if (
                    reason not in PASSING and reason is not Reason.AUTO_COMMIT_OFF
                ):
                    yield from (
                        f"- {finding}" for finding in findings or (Finding(reason, one.path),)
                    )
                case Accepted() | Waiting():
                    uncommitted.append(one.path)
        watched = running(self._asked.repository) is not None
        how = (
            "the daemon has not committed it yet: see 'yolo-fs status'"
            if watched
            else "run 'yolo-fs run --once'"
        )
        yield from (f"- {safe(path)}: valid, but in no commit; {how}" for path in uncommitted)

    def _settled(self) -> list[Candidate]:
        """Return the agent's own candidates, after a daemon had its moment to commit them."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = self._own()
            is_pending = any(isinstance(one.verdict, Accepted | Waiting) for one in found)
            if (
                not is_pending
                or running(self._asked.repository) is None
                or time.monotonic() > until
            ):
                return found
            time.sleep(_POLL_S)

    def _own(self) -> list[Candidate]:
        found = report(self._asked.repository, self._asked.settings.without_patience).candidates
        written = paths_written(self._asked) if found else frozenset()
        own = [one for one in found if one.path in written or self._answers_for(one.path)]
        return own + list(self._left_elsewhere())

    def _left_elsewhere(self) -> Iterator[Candidate]:
        """Yield what the same session wrote in other work trees: a host may change between them."""
        for root in self._asked.repository.work_trees()[1:]:
            with Repository(root) as other:
                written = paths_written(self._asked, other.own_dir)
                settings = load_in_force(root).settings.without_patience
                found = report(other, settings).candidates if written else ()
            for one in found:
                if one.path in written:
                    yield _seen_from(self._asked.repository.root, root, one)

    def _answers_for(self, path: str) -> bool:
        """Return whether an artifact is this agent's to write; a session answers for none."""
        actor, place = self._asked.actor, classify(path)
        return actor is not None and place is not None and actor.answers_for(place)


def _seen_from(here: str, root: str, one: Candidate) -> Candidate:
    """Return a candidate of another work tree with its paths as somebody here would spell them."""

    def spelled(path: str) -> str:
        return os.path.relpath(f"{root}/{path}", here)

    verdict = one.verdict
    if isinstance(verdict, Rejected | Held):
        findings = (replace(each, path=spelled(each.path)) for each in verdict.findings)
        verdict = replace(verdict, findings=tuple(findings))
    return one._replace(path=spelled(one.path), verdict=verdict)


def _more(lines: list[str]) -> tuple[str, ...]:
    return (f"- and {len(lines) - _FEW} more: see 'yolo-fs validate'",) if len(lines) > _FEW else ()


BRIEF_TOKENS = 2000
"""Leaves room for what a role may see."""
MOST_CHARACTERS = 10_000
"""Hosts move what is longer out of the context."""
_TASK = re.compile(r"\b([0-9]{2}-[0-9]{2})[\s/:)]+T([0-9]+)\b")


def answer(said: HookInput) -> HookAnswer:
    """Answer one question of a host.

    Raises:
        YoloError: the environment is wrong; the host goes on as if it had not asked.
    """
    if said.event in ("session-start", "user-prompt-submit"):
        return HookAnswer(context=_brief(said.cwd, Asker(bare_name(said.agent))))
    if said.event not in _ANSWERS:  # it is a sign of life, and asks nothing
        return HookAnswer()
    with Repository(said.root or said.cwd) as repository:
        return _ANSWERS[said.event](HookRequest(repository, said))


def _subagent_starts(asked: HookRequest) -> HookAnswer:
    """Tell an agent of the company where its own work stands, and what it may see."""
    actor = asked.actor
    if actor is None:
        return HookAnswer()
    brief = _brief(asked.said.cwd, Asker(actor.name, actor.department))
    scope = "\n".join(_scope_of(actor))
    if _PHASE in scope and (phase := _at_work(asked)):
        scope = scope.replace(_PHASE, phase.number)
    told = "\n".join(part for part in (brief, scope) if part)
    return HookAnswer(
        context=f"{told}\n{_given(asked, actor, MOST_CHARACTERS - len(told))}".strip("\n")
    )


def _brief(start: str, asker: Asker) -> str:
    return as_text(cut(resume(start, asker), BRIEF_TOKENS, as_text)).rstrip("\n")


_PHASE = "{phase}"


def _at_work(asked: HookRequest) -> PhaseId | None:
    team = Team(asked.repository, asked.settings)
    found = phase_at_work(asked.repository, asked.settings, team)
    return found.id if found else None


def _scope_of(actor: Actor) -> Iterator[str]:
    """Yield what a role receives and never receives."""
    rows: list[Scope | Border] = [row for row in SCOPES if row.role is actor.role]
    rows += [row for row in BORDERS if row.department is actor.department]
    received = [
        item.text
        for row in rows
        for item in row.receives
        if isinstance(row, Scope) or not is_withheld(actor.role, item)
    ]
    never = [item.text for row in rows for item in row.never]
    if received:
        yield f"{actor.name} receives: {'; '.join(dict.fromkeys(received))}"
    if never:
        yield f"{actor.name} never receives: {'; '.join(dict.fromkeys(never))}"


def _given(asked: HookRequest, actor: Actor, room: int) -> str:
    """Return the agent's compiled context where it fits, else where it lies."""
    repository, settings = asked.repository, asked.settings
    if settings.policy.contexts == "never" or not settings.config.context_compiler:
        return ""
    try:
        (kept,) = ContextStore(repository, settings, Team(repository, settings)).compile(
            (actor.name,)
        )
    except YoloError:  # there is no phase yet, or no context for such an agent: it begins without
        return ""
    whole = f"## Your context, {kept.path}\n{kept.compiled.text}"
    return whole if len(whole) < room else f"Read your context first: @{kept.path}"


def _task_is_done(asked: HookRequest) -> HookAnswer:
    """Refuse to call a task of a plan done that no commit names."""
    open_ = [task for task in _tasks_said(asked) if not task.commit]
    if not open_:
        return HookAnswer()
    refs = ", ".join(str(task.ref) for task in open_)
    how = (
        f"Commit the work as `feat({open_[0].ref.plan}): T{open_[0].ref.number} …`, then "
        "complete the task."
    )
    return HookAnswer(refusal=f"No commit names {refs}, so nothing proves that it is done. {how}")


def _tasks_said(asked: HookRequest) -> Iterator[TaskProgress]:
    named = (TaskRef.parse(f"{plan}/T{number}") for plan, number in _TASK.findall(asked.said.task))
    wanted = {ref for ref in named if ref}
    if wanted:
        for facts in asked.access.facts:
            tasks = (task for plan in plan_progress(facts) for task in plan.tasks)
            yield from (task for task in tasks if task.ref in wanted)


_ANSWERS: Mapping[str, Callable[[HookRequest], HookAnswer]] = {
    "subagent-start": _subagent_starts,
    "stop": lambda asked: Leave(asked).answer(),
    "subagent-stop": lambda asked: Leave(asked).answer(),
    "task-completed": _task_is_done,
}
