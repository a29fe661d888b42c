"""Answers an agent's host: the event of each hook, and what is said to it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import TaskRef
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Border, Scope
from yolo_fs.reasons import YoloError, errors, safe
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.misnamed import misnamed
from yolo_fs.rules.artifacts.repair import diff, mended
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.evidence.plans import TaskProgress, plan_progress
from yolo_fs.rules.hooks.answers import HookAnswer
from yolo_fs.rules.hooks.input import HookInput
from yolo_fs.rules.phase.report import Asker
from yolo_fs.rules.report import as_text, cut
from yolo_fs.services.checking.fix import correction_of
from yolo_fs.services.checking.validate import HANDOFF, CheckedFile, Validator
from yolo_fs.services.context.store import ContextStore
from yolo_fs.services.history.team import Team
from yolo_fs.services.hooks.pre_tool_use import Guard
from yolo_fs.services.hooks.request import HookRequest, note_written
from yolo_fs.services.hooks.stop_hook import Leave
from yolo_fs.services.reports.resume import resume

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
        return HookAnswer(context=_brief(said.cwd, Asker(said.agent.removeprefix("yolo-"))))
    with Repository(said.cwd) as repository:
        return _ANSWERS[said.event](HookRequest(repository, said))


# --- a tool ran ---


def _after_tool(asked: HookRequest) -> HookAnswer:
    """Judge the artifacts that were just written, and tell every fault with its repair."""
    root = asked.repository.root
    paths = [
        path
        for touch in asked.said.touches
        if touch.writes and touch.is_certain
        for path in asked.paths(touch)
    ]
    ours = [path for path in paths if _is_judged(path) and os.path.isfile(os.path.join(root, path))]
    if not ours:
        return HookAnswer()
    note_written(asked, ours)
    validator = Validator(root)
    try:
        judged = [one for one in validator.paths(dict.fromkeys(ours)) if one.findings]
    finally:
        validator.close()
    wrong = [_faults(root, one) for one in judged if errors(one.findings)]
    if wrong:
        return HookAnswer(refusal="\n".join(wrong))
    return HookAnswer(context="\n".join(str(finding) for one in judged for finding in one.findings))


def _after_failure(asked: HookRequest) -> HookAnswer:
    """Tell the same of a command that failed after it had written; here a host is told, not
    refused.
    """
    told = _after_tool(asked)
    return HookAnswer(context=told.refusal or told.context)


def _is_judged(path: str) -> bool:
    is_named = classify(path) is not None or path.rpartition("/")[2] == HANDOFF
    return is_named or misnamed(path) is not None


def _faults(root: str, judged: CheckedFile) -> str:
    said = "\n".join(f"- {finding}" for finding in judged.findings)
    correction = correction_of(os.path.join(root, judged.path))
    fresh = mended(judged.data, judged.kind, correction) if judged.kind else None
    repair = ""
    if fresh:
        command = f"yolo-fs fix {shlex.quote(safe(judged.path))} --write"
        shown = diff(judged.data, fresh, judged.path)
        repair = f"\nThis much can be put right mechanically, by `{command}`:\n{shown}"
    return f"{safe(judged.path)} is not valid and will not be committed:\n{said}{repair}"


# --- a subagent starts ---


def _subagent_starts(asked: HookRequest) -> HookAnswer:
    """Tell an agent of the company where its own work stands, and what it may see."""
    actor = asked.actor
    if actor is None:
        return HookAnswer()
    brief = _brief(asked.said.cwd, Asker(actor.name, actor.department))
    told = "\n".join(part for part in (brief, *_scope_of(actor)) if part)
    return HookAnswer(
        context=f"{told}\n{_given(asked, actor, MOST_CHARACTERS - len(told))}".strip("\n")
    )


def _brief(start: str, asker: Asker) -> str:
    return as_text(cut(resume(start, asker), BRIEF_TOKENS, as_text)).rstrip("\n")


def _scope_of(actor: Actor) -> Iterator[str]:
    """Yield what a role receives and never receives."""
    rows: list[Scope | Border] = [row for row in SCOPES if row.role is actor.role]
    rows += [row for row in BORDERS if row.department is actor.department]
    received = [item.text for row in rows for item in row.receives]
    never = [item.text for row in rows for item in row.never]
    if received:
        yield f"{actor.name} receives: {'; '.join(dict.fromkeys(received))}"
    if never:
        yield f"{actor.name} never receives: {'; '.join(dict.fromkeys(never))}"


def _given(asked: HookRequest, actor: Actor, room: int) -> str:
    """Return the agent's compiled context where it fits the room that is left, else where it
    lies.
    """
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


# --- a task is done ---


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
            yield from (
                task for plan in plan_progress(facts) for task in plan.tasks if task.ref in wanted
            )


_ANSWERS: Mapping[str, Callable[[HookRequest], HookAnswer]] = {
    "pre-tool-use": lambda asked: Guard(asked).answer(),
    "post-tool-use": _after_tool,
    "post-tool-use-failure": _after_failure,
    "subagent-start": _subagent_starts,
    "stop": lambda asked: Leave(asked).answer(),
    "subagent-stop": lambda asked: Leave(asked).answer(),
    "task-completed": _task_is_done,
}
