"""Answers the events of an agent's host, except for its tools: what a session or an agent starts
with, and whether it may stop or mark a task as done.
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
from yolo_fs.evidence.plan_status import TaskProgress, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.hooks.hosts import HookAnswer, HookInput
from yolo_fs.hooks.tool_use import HookRequest, paths_written
from yolo_fs.install.background import running
from yolo_fs.phase.report import Audience, as_text, cut
from yolo_fs.progress.workflow import phase_at_work
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Border, Scope, is_withheld
from yolo_fs.protocol.roster import bare_name
from yolo_fs.reports.resume import resume
from yolo_fs.reports.status import Candidate, report
from yolo_fs.workspace.settings import load_in_force

PATIENCE_S = 2.0
"""Seconds that a stop waits for a running daemon to commit."""
_POLL_S = 0.1
_FEW = 20


class Leave:
    """Judges what an agent would leave behind."""

    def __init__(self, request: HookRequest):
        self._request = request

    def answer(self) -> HookAnswer:
        """Send an agent back once while its own work is invalid, or valid but not committed."""
        if self._request.input.is_repeated or self._request.input.is_aborted:
            return HookAnswer()
        own = self._wait_until_settled()
        lines = list(self._left(own))
        if not lines:
            return HookAnswer()
        return HookAnswer(
            refusal="\n".join(
                (
                    "Before you stop, this is not done yet:",
                    *lines[:_FEW],
                    *_more(lines),
                    *self._suggest_fixes(own),
                )
            )
        )

    def _suggest_fixes(self, own: list[Candidate]) -> Iterator[str]:
        from yolo_fs.checking.fix import fixable_in

        rejected = [candidate.path for candidate in own if isinstance(candidate.verdict, Rejected)]
        if sentence := fixable_in(self._request.repository.root, rejected[:_FEW]).sentence:
            yield sentence

    def _left(self, own: list[Candidate]) -> Iterator[str]:
        uncommitted = []
        for candidate in own:
            match candidate.verdict:
                case Rejected(findings):
                    yield from (f"- {finding}" for finding in errors(findings))
                case Held(reason, findings) if (
                    reason not in PASSING and reason is not Reason.AUTO_COMMIT_OFF
                ):
                    yield from (
                        f"- {finding}" for finding in findings or (Finding(reason, candidate.path),)
                    )
                case Accepted() | Waiting():
                    uncommitted.append(candidate.path)
        watched = running(self._request.repository) is not None
        how = (
            "the daemon has not committed it yet: see 'yolo-fs status'"
            if watched
            else "run 'yolo-fs run --once'"
        )
        yield from (f"- {safe(path)}: valid, but in no commit; {how}" for path in uncommitted)

    def _wait_until_settled(self) -> list[Candidate]:
        """Return the agent's own candidates, after giving a running daemon time to commit them."""
        until = time.monotonic() + PATIENCE_S
        while True:
            candidates = self._own()
            is_pending = any(
                isinstance(candidate.verdict, Accepted | Waiting) for candidate in candidates
            )
            if (
                not is_pending
                or running(self._request.repository) is None
                or time.monotonic() > until
            ):
                return candidates
            time.sleep(_POLL_S)

    def _own(self) -> list[Candidate]:
        candidates = report(
            self._request.repository, self._request.settings.without_patience
        ).candidates
        written = paths_written(self._request) if candidates else frozenset()
        own = [
            candidate
            for candidate in candidates
            if candidate.path in written or self._answers_for(candidate.path)
        ]
        return own + list(self._candidates_in_other_trees())

    def _candidates_in_other_trees(self) -> Iterator[Candidate]:
        """Yield what the same session wrote in other work trees: a host may change between them."""
        for root in self._request.repository.work_trees()[1:]:
            with Repository(root) as other:
                written = paths_written(self._request, other.own_dir)
                settings = load_in_force(root).settings.without_patience
                candidates = report(other, settings).candidates if written else ()
            for candidate in candidates:
                if candidate.path in written:
                    yield _rewrite_paths(self._request.repository.root, root, candidate)

    def _answers_for(self, path: str) -> bool:
        """Return whether this agent is responsible for an artifact; a session is for none."""
        actor, place = self._request.actor, classify(path)
        return actor is not None and place is not None and actor.answers_for(place)


def _rewrite_paths(here: str, root: str, candidate: Candidate) -> Candidate:
    """Return a candidate of another work tree with paths that are valid from this one."""

    def spelled(path: str) -> str:
        return os.path.relpath(f"{root}/{path}", here)

    verdict = candidate.verdict
    if isinstance(verdict, Rejected | Held):
        findings = (replace(each, path=spelled(each.path)) for each in verdict.findings)
        verdict = replace(verdict, findings=tuple(findings))
    return candidate._replace(path=spelled(candidate.path), verdict=verdict)


def _more(lines: list[str]) -> tuple[str, ...]:
    return (f"- and {len(lines) - _FEW} more: see 'yolo-fs validate'",) if len(lines) > _FEW else ()


BRIEF_TOKENS = 2000
"""Token budget of the brief; leaves room for the scope of the role."""
MOST_CHARACTERS = 10_000
"""Hosts move longer text out of the context."""
_TASK = re.compile(r"\b([0-9]{2}-[0-9]{2})[\s/:)]+T([0-9]+)\b")


def answer(hook_input: HookInput) -> HookAnswer:
    """Answer one event of a host.

    Raises:
        YoloError: the environment is wrong; the host goes on as if it had not asked.
    """
    if hook_input.event in ("session-start", "user-prompt-submit"):
        return HookAnswer(context=_brief(hook_input.cwd, Audience(bare_name(hook_input.agent))))
    if hook_input.event not in _ANSWERS:  # it is only a heartbeat
        return HookAnswer()
    with Repository(hook_input.root or hook_input.cwd) as repository:
        return _ANSWERS[hook_input.event](HookRequest(repository, hook_input))


def _answer_subagent_start(request: HookRequest) -> HookAnswer:
    """Return the state of an agent's own work and the scope of its role."""
    actor = request.actor
    if actor is None:
        named = Audience(request.nobody)
        return HookAnswer(context=_brief(request.input.cwd, named) if request.nobody else "")
    brief = _brief(request.input.cwd, Audience(actor.name, actor.department))
    scope = "\n".join(_scope_of(actor))
    if _PHASE in scope and (phase := _at_work(request)):
        scope = scope.replace(_PHASE, phase.number)
    preamble = "\n".join(part for part in (brief, scope) if part)
    return HookAnswer(
        context=f"{preamble}\n{_given(request, actor, MOST_CHARACTERS - len(preamble))}".strip("\n")
    )


def _brief(start: str, asker: Audience) -> str:
    return as_text(cut(resume(start, asker), BRIEF_TOKENS, as_text)).rstrip("\n")


_PHASE = "{phase}"


def _at_work(request: HookRequest) -> PhaseId | None:
    phase = phase_at_work(FactsReader(request.repository, request.settings))
    return phase.id if phase else None


def _scope_of(actor: Actor) -> Iterator[str]:
    """Yield what a role receives and what it never receives."""
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


def _given(request: HookRequest, actor: Actor, room: int) -> str:
    """Return the agent's compiled context if it fits in `room`, else the path to it."""
    repository, settings = request.repository, request.settings
    if settings.policy.contexts == "never" or not settings.config.context_compiler:
        return ""
    try:
        (kept,) = ContextStore(repository, settings, FactsReader(repository, settings)).compile(
            (actor.name,)
        )
    except YoloError:  # there is no phase yet, or no context for such an agent: it begins without
        return ""
    whole = f"## Your context, {kept.path}\n{kept.compiled.text}"
    return whole if len(whole) < room else f"Read your context first: @{kept.path}"


def _answer_task_completed(request: HookRequest) -> HookAnswer:
    """Refuse to mark a plan's task as done while no commit names it."""
    open_ = [task for task in _find_named_tasks(request) if not task.commit]
    if not open_:
        return HookAnswer()
    refs = ", ".join(str(task.ref) for task in open_)
    how = (
        f"Commit the work as `feat({open_[0].ref.plan}): T{open_[0].ref.number} …`, then "
        "complete the task."
    )
    return HookAnswer(refusal=f"No commit names {refs}, so nothing proves that it is done. {how}")


def _find_named_tasks(request: HookRequest) -> Iterator[TaskProgress]:
    named = (
        TaskRef.parse(f"{plan}/T{number}") for plan, number in _TASK.findall(request.input.task)
    )
    wanted = {ref for ref in named if ref}
    if wanted:
        for facts in request.access.facts:
            tasks = (task for plan in plan_progress(facts) for task in plan.tasks)
            yield from (task for task in tasks if task.ref in wanted)


_ANSWERS: Mapping[str, Callable[[HookRequest], HookAnswer]] = {
    "subagent-start": _answer_subagent_start,
    "stop": lambda request: Leave(request).answer(),
    "subagent-stop": lambda request: Leave(request).answer(),
    "task-completed": _answer_task_completed,
}
