"""Writes compiled contexts beside their phase's artifacts, keeps them true; never commits them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.verdicts import Ignored, Verdict
from yolo_fs.authority.actors import Actor, find_actor, mode_of
from yolo_fs.contexts.compiler import (
    CompiledContext,
    agent_of,
    compile_context,
    differences,
    unproved_lines,
)
from yolo_fs.contexts.gather import Gatherer, SourceSnapshot
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError
from yolo_fs.evidence.facts import Switches
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE
from yolo_fs.protocol.departments import SHARED_NAMES
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.states.project import current
from yolo_fs.survey.surveyor import Surveyor
from yolo_fs.system.files import Content, is_plain_file, names_in, read, stamp_of
from yolo_fs.system.store import SHARED, reap_temporaries, write_text
from yolo_fs.system.toon import write_value
from yolo_fs.workspace import Settings, phase_folder, phases_in

_FILE = re.compile(r"\.ctx-(?P<agent>[a-z-]+)\.toon")
_PREFIX = ".ctx-"
_PLAN = re.compile(r"^plan: (?P<plan>[0-9]{2}-[0-9]{2})$", re.MULTILINE)
_HEAD_BYTES = 400
"""Where the header ends at the latest: a phase, a plan, a department."""
_LARGEST_BYTES = 1 << 20
"""No context of ours is as large."""


class StoredContext(NamedTuple):
    """One compiled context and where it stands."""

    path: str
    """POSIX path relative to the repository."""
    compiled: CompiledContext
    is_new: bool
    """Whether the file had other bytes, or was not there."""


class ContextAudit(NamedTuple):
    """What speaks for a context that stands on disk, and against it."""

    path: str
    compiled: CompiledContext
    findings: tuple[Finding, ...]


class ContextStore:
    """The compiled contexts of one work tree."""

    def __init__(self, repository: Repository, settings: Settings, team: Team):
        self._repository = repository
        self._settings = settings
        self._team = team
        self._gatherer = Gatherer(repository, settings, team)
        self._states: dict[PhaseId, object] = {}
        """Phase → the state of its contexts' sources; the same object while it is the same."""
        self._known: dict[str, tuple[object, object, str]] = {}
        """Path of a context → the state that it was last compiled from."""

    def compile(
        self, names: tuple[str, ...], phase: PhaseId | None = None, plan: PlanId | None = None
    ) -> list[StoredContext]:
        """Compile and write the contexts of some agents; of the phase that is worked on unless one
        is named.

        Raises:
            YoloError: UNKNOWN_NAME for an agent without context, or a plan that the phase has not;
                NOT_INITIALISED when there is no phase.
        """
        commit = self._repository.head().tip
        wanted, look = phase or self.current_phase(commit), self._look(commit)
        _refuse_unknown(plan, wanted, look)
        made = [self._compiled(look, wanted, self._actor(name), plan) for name in names]
        return [
            StoredContext(path := self._path(wanted, one.agent), one, self._write(path, one))
            for one in made
        ]

    def prove(self, names: tuple[str, ...], phase: PhaseId | None = None) -> list[ContextAudit]:
        """Compile the contexts of some agents anew, prove each line, and compare the files with
        them.

        Raises:
            YoloError: as `compile`.
        """
        commit = self._repository.head().tip
        wanted, look = phase or self.current_phase(commit), self._look(commit)
        return [self._proof(look, wanted, self._actor(name)) for name in names]

    def keep(
        self, commit: str | None, verdicts: Mapping[str, Verdict], *, writes: bool = True
    ) -> tuple[str, ...]:
        """Compile every context that exists anew where something of it changed; return the paths
        that are true.

        `verdicts`: path → verdict of each candidate of the work tree; committed ones may be left
        out. The time of a file stays what it was: it tells when its agent asked for it, and that is
        a sign of life.
        """
        wanted = dict(self._wanted(commit))
        if not wanted:
            return ()
        look = self._gatherer.look(commit, verdicts)
        for phase in {phase for phase, _ in wanted.values()}:
            state = _state(look, phase)
            if state is None or self._states.get(phase) != state:
                self._states[phase] = state
        return tuple(
            path
            for path, (phase, name) in wanted.items()
            if self._is_true(look, path, phase, name, writes)
        )

    def agents(self) -> tuple[str, ...]:
        """Return the agents of active departments, the shared group and the layer before them."""
        active = (None, *SHARED_NAMES, *Switches(self._settings.config).departments)
        return tuple(
            name
            for name, row in AGENT_BY_NAME.items()
            if row.role in CONTEXT_BY_ROLE and row.department in active
        )

    def current_phase(self, commit: str | None) -> PhaseId:
        """Return the phase that is worked on.

        Raises:
            YoloError: NOT_INITIALISED when there is none.
        """
        phases = self._team.phases(commit)
        begun = {phase.id for phase in phases}
        empty = [phase for phase in self._phases() if phase not in begun]
        if phases and (not current(phases).is_complete or not empty):
            return current(phases).id
        if not empty:
            hint = "'yolo-fs phase new SLUG' makes one."
            raise YoloError(
                Reason.NOT_INITIALISED, "there is no phase yet", hint=hint, exit_code=Exit.NOT_HERE
            )
        return empty[0]

    def _look(self, commit: str | None) -> SourceSnapshot:
        """Judge every candidate, and look at all that may feed a context."""
        with Surveyor(self._repository, self._settings.without_patience) as surveyor:
            looks = surveyor.survey(sorted(surveyor.candidates().stamps)).seen
        verdicts = {path: look.seen.verdict for path, look in looks.items()}
        found = {path: one for path, one in verdicts.items() if not isinstance(one, Ignored)}
        return self._gatherer.look(commit, found)

    def _actor(self, name: str) -> Actor:
        actor = find_actor(name, None, mode_of(Switches(self._settings.config)))
        agent_of(actor)
        return actor

    def _compiled(
        self, look: SourceSnapshot, phase: PhaseId, actor: Actor, plan: PlanId | None
    ) -> CompiledContext:
        return compile_context(self._gatherer.gather(look, phase, actor, plan), write_value)

    def _proof(self, look: SourceSnapshot, phase: PhaseId, actor: Actor) -> ContextAudit:
        path = self._path(phase, agent_of(actor))
        said = self._said(path)
        made = self._compiled(look, phase, actor, _plan_in(said or "", phase, look))
        found = [
            replace(one, path=path) for one in unproved_lines(made, actor, self._gatherer.line_at)
        ]
        if said is None:
            hint = f"'yolo-fs context compile {made.agent}' writes it."
            found.append(Finding(Reason.FILE_MISSING, path, hint=hint))
        else:
            found += differences(made, said.removesuffix("\n").split("\n"), path)
        return ContextAudit(path, made, tuple(found))

    def _path(self, phase: PhaseId, name: str) -> str:
        return f"{PLANNING_ROOT}/phases/{phase}/.ctx-{name}.toon"

    def _said(self, path: str) -> str | None:
        """Return what a context says on disk; None without one, or with something else there."""
        content = read(self._repository.root, path, _LARGEST_BYTES)
        return content.data.decode("utf-8", "replace") if isinstance(content, Content) else None

    def _write(self, path: str, made: CompiledContext, *, quietly: bool = False) -> bool:
        """Write a context whose bytes changed; return whether they did.

        `quietly`: its time stays what it was.
        """
        if self._said(path) == made.text:
            return False
        full = os.path.join(self._repository.root, path)
        before = stamp_of(self._repository.root, path)
        # A link would lead elsewhere.
        if isinstance(before, Finding) and before.reason is not Reason.FILE_MISSING:
            raise YoloError(
                before.reason,
                f"{path}: {before.message}",
                hint=before.hint,
                exit_code=Exit.NOT_HERE,
            )
        reap_temporaries(os.path.dirname(full), 0)
        root = self._repository.root
        write_text(full, made.text, root=root, durable=False, mode=SHARED)
        if quietly and not isinstance(before, Finding):
            os.utime(full, ns=(before.mtime_ns, before.mtime_ns), follow_symlinks=False)
        return True

    def _wanted(self, commit: str | None) -> Iterator[tuple[str, tuple[PhaseId, str]]]:
        wanted = self._settings.policy.contexts
        if wanted == "never" or not self._settings.config.context_compiler:
            return
        for phase in self._phases():
            folder = phase_folder(self._repository.root, phase)
            files = names_in(folder, _PREFIX)
            for file in files if files and not os.path.islink(folder) else ():
                found = _FILE.fullmatch(file)
                if (
                    found
                    and found["agent"] in AGENT_BY_NAME
                    and is_plain_file(os.path.join(folder, file))
                ):
                    yield self._path(phase, found["agent"]), (phase, found["agent"])
        if wanted == "always" and self._phases():
            phase = self.current_phase(commit)
            yield from ((self._path(phase, name), (phase, name)) for name in self.agents())

    def _is_true(
        self, look: SourceSnapshot, path: str, phase: PhaseId, name: str, writes: bool
    ) -> bool:
        state = (
            self._states[phase],
            look.stamps.get(path),
            look.commit if name == "debugger" else "",
        )
        if state[0] is not None and self._known.get(path) == state:
            return True
        said = self._said(path)
        made = self._compiled(look, phase, self._actor(name), _plan_in(said or "", phase, look))
        if not writes:
            return said == made.text
        self._write(path, made, quietly=True)
        self._known[path] = state
        return True

    def _phases(self) -> list[PhaseId]:
        return phases_in(self._repository.root)


def _state(look: SourceSnapshot, phase: PhaseId) -> object:
    """Return what changes whenever a context of the phase may: its files, those of no phase, and
    earlier summaries.

    None when one of them is so young that it may change without its stamp showing it.
    """
    own = f"{PLANNING_ROOT}/phases/{phase}/"
    near = {path: stamp for path, stamp in look.stamps.items() if _may_feed(path, own)}
    if look.is_racy(near.values()):
        return None
    return near, {one.path: one.commit for one in look.sources}, look.done.get(phase)


def _may_feed(path: str, own: str) -> bool:
    is_near = path.startswith(own) or "/phases/" not in path or path.endswith(".summary.jsonl")
    return is_near and "/.ctx-" not in path


def _refuse_unknown(plan: PlanId | None, phase: PhaseId, look: SourceSnapshot) -> None:
    known = _plans(phase, look)
    if plan and plan not in known:
        hint = f"There are {', '.join(map(str, known)) or 'none'}."
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"phase {phase} has no plan {plan}",
            hint=hint,
            exit_code=Exit.USAGE,
        )


def _plans(phase: PhaseId, look: SourceSnapshot) -> list[PlanId]:
    return sorted(
        {one.plan for one in look.sources if one.plan and one.place and one.place.phase == phase}
    )


def _plan_in(said: str, phase: PhaseId, look: SourceSnapshot) -> PlanId | None:
    """Return the plan that a context was compiled for, by its header; None if it is gone."""
    found = _PLAN.search(said[:_HEAD_BYTES])
    plan = PlanId.parse(found["plan"]) if found else None
    return plan if plan in _plans(phase, look) else None
