"""Writes compiled contexts beside their phase's artifacts and keeps them current; never commits
them.
"""

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
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE
from yolo_fs.protocol.departments import SHARED_NAMES
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.states.project import current
from yolo_fs.system.files import Content, is_plain_file, names_in, read, stamp_of
from yolo_fs.system.store import SHARED, reap_temporaries, write_text
from yolo_fs.system.toon import write_value
from yolo_fs.workspace.planning_tree import phase_folder, phases_in
from yolo_fs.workspace.settings import Settings, no_phase

_FILE = re.compile(r"\.ctx-(?P<agent>[a-z-]+)\.toon")
_PREFIX = ".ctx-"
_PLAN = re.compile(r"^plan: (?P<plan>[0-9]{2}-[0-9]{2})$", re.MULTILINE)
_HEAD_BYTES = 400
"""Maximum size of the header: a phase, a plan, a department."""
_LARGEST_BYTES = 1 << 20
"""A larger file is not one of our contexts."""


class StoredContext(NamedTuple):
    """One compiled context and its place."""

    path: str
    """POSIX path relative to the repository."""
    compiled: CompiledContext
    is_new: bool
    """Whether the file had other bytes or did not exist."""


class ContextAudit(NamedTuple):
    """The evidence for and against a context on disk."""

    path: str
    compiled: CompiledContext
    findings: tuple[Finding, ...]


class ContextStore:
    """The compiled contexts of one work tree."""

    def __init__(self, repository: Repository, settings: Settings, facts_reader: FactsReader):
        self._repository = repository
        self._settings = settings
        self._facts_reader = facts_reader
        self._gatherer = Gatherer(repository, settings, facts_reader)
        self._states: dict[PhaseId, object] = {}
        """Phase → state of its contexts' sources; the same object until it changes."""
        self._known: dict[str, tuple[object, object, str]] = {}
        """Path of a context → the state from which it was last compiled."""

    def compile(
        self, names: tuple[str, ...], phase: PhaseId | None = None, plan: PlanId | None = None
    ) -> list[StoredContext]:
        """Compile and write the contexts of some agents, by default for the active phase.

        Raises:
            YoloError: UNKNOWN_NAME for an agent without context, or a plan that the phase has not;
                NOT_INITIALISED without a planning tree.
        """
        commit = self._repository.head().tip
        wanted, look = phase or self.current_phase(commit), self._look(commit)
        _refuse_unknown(plan, wanted, look)
        made = [self._compiled(look, wanted, self._actor(name), plan) for name in names]
        return [
            StoredContext(
                path := self._path(wanted, compiled.agent), compiled, self._write(path, compiled)
            )
            for compiled in made
        ]

    def prove(self, names: tuple[str, ...], phase: PhaseId | None = None) -> list[ContextAudit]:
        """Recompile the contexts of some agents, prove each line, and compare them with the files.

        Raises:
            YoloError: as `compile`.
        """
        commit = self._repository.head().tip
        wanted, look = phase or self.current_phase(commit), self._look(commit)
        return [self._proof(look, wanted, self._actor(name)) for name in names]

    def keep(
        self, commit: str | None, verdicts: Mapping[str, Verdict], *, writes: bool = True
    ) -> tuple[str, ...]:
        """Recompile every existing context with changed sources; return the paths that are current.

        `verdicts`: path → verdict of each candidate of the work tree; committed ones may be left
        out. The modification time of a file is preserved: it shows when its agent requested it,
        which is a heartbeat.
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
        active = (None, *SHARED_NAMES, *WorkflowOptions(self._settings.config).departments)
        return tuple(
            name
            for name, row in AGENT_BY_NAME.items()
            if row.role in CONTEXT_BY_ROLE and row.department in active
        )

    def current_phase(self, commit: str | None) -> PhaseId:
        """Return the active phase.

        Raises:
            YoloError: UNKNOWN_NAME when there is none, NOT_INITIALISED without a planning tree.
        """
        phases = self._facts_reader.phases(commit)
        begun = {phase.id for phase in phases}
        empty = [phase for phase in phases_in(self._repository.root) if phase not in begun]
        if phases and (not current(phases).is_complete or not empty):
            return current(phases).id
        if not empty:
            raise no_phase(self._repository.root)
        return empty[0]

    def _look(self, commit: str | None) -> SourceSnapshot:
        """Check every candidate, and return all possible sources of contexts."""
        with Scanner(self._repository, self._settings.without_patience) as scanner:
            looks = scanner.scan(sorted(scanner.candidates().stamps)).seen
        verdicts = {path: look.seen.verdict for path, look in looks.items()}
        known_verdicts = {
            path: verdict for path, verdict in verdicts.items() if not isinstance(verdict, Ignored)
        }
        return self._gatherer.look(commit, known_verdicts)

    def _actor(self, name: str) -> Actor:
        actor = find_actor(name, None, mode_of(WorkflowOptions(self._settings.config)))
        agent_of(actor)
        return actor

    def _compiled(
        self, look: SourceSnapshot, phase: PhaseId, actor: Actor, plan: PlanId | None
    ) -> CompiledContext:
        return compile_context(self._gatherer.gather(look, phase, actor, plan), write_value)

    def _proof(self, look: SourceSnapshot, phase: PhaseId, actor: Actor) -> ContextAudit:
        path = self._path(phase, agent_of(actor))
        text = self._read_text(path)
        made = self._compiled(look, phase, actor, _plan_in(text or "", phase, look))
        findings = [
            replace(finding, path=path)
            for finding in unproved_lines(made, actor, self._gatherer.line_at)
        ]
        if text is None:
            hint = f"'yolo-fs context compile {made.agent}' writes it."
            findings.append(Finding(Reason.FILE_MISSING, path, hint=hint))
        else:
            findings += differences(made, text.removesuffix("\n").split("\n"), path)
        return ContextAudit(path, made, tuple(findings))

    def _path(self, phase: PhaseId, name: str) -> str:
        return f"{PLANNING_ROOT}/phases/{phase}/.ctx-{name}.toon"

    def _read_text(self, path: str) -> str | None:
        """Return the text of a context on disk; None if there is none, or if anything else is
        there, such as a link or a file that is too large.
        """
        content = read(self._repository.root, path, _LARGEST_BYTES)
        return content.data.decode("utf-8", "replace") if isinstance(content, Content) else None

    def _write(self, path: str, made: CompiledContext, *, quietly: bool = False) -> bool:
        """Write a context if its bytes changed; return whether they did.

        `quietly`: preserve its modification time.
        """
        if self._read_text(path) == made.text:
            return False
        full = os.path.join(self._repository.root, path)
        before = stamp_of(self._repository.root, path)
        # A link could redirect the write.
        if isinstance(before, Finding) and before.reason is not Reason.FILE_MISSING:
            raise before.as_error(path, Exit.NOT_HERE)
        reap_temporaries(os.path.dirname(full))
        root = self._repository.root
        write_text(full, made.text, root=root, durable=False, mode=SHARED)
        if quietly and not isinstance(before, Finding):
            os.utime(full, ns=(before.mtime_ns, before.mtime_ns), follow_symlinks=False)
        return True

    def _wanted(self, commit: str | None) -> Iterator[tuple[str, tuple[PhaseId, str]]]:
        wanted = self._settings.policy.contexts
        if wanted == "never" or not self._settings.config.context_compiler:
            return
        for phase in phases_in(self._repository.root):
            folder = phase_folder(self._repository.root, phase)
            files = names_in(folder, _PREFIX)
            for file in files if files and not os.path.islink(folder) else ():
                match = _FILE.fullmatch(file)
                if (
                    match
                    and match["agent"] in AGENT_BY_NAME
                    and is_plain_file(os.path.join(folder, file))
                ):
                    yield self._path(phase, match["agent"]), (phase, match["agent"])
        if wanted == "always" and phases_in(self._repository.root):
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
        text = self._read_text(path)
        made = self._compiled(look, phase, self._actor(name), _plan_in(text or "", phase, look))
        if not writes:
            return text == made.text
        self._write(path, made, quietly=True)
        self._known[path] = state
        return True


def _state(look: SourceSnapshot, phase: PhaseId) -> object:
    """Return a value that changes whenever the sources of a phase's contexts may have changed.

    It covers the files of the phase, those of no phase, and earlier summaries. None if one of them
    is so new that it may change without a change of its stamp.
    """
    own = f"{PLANNING_ROOT}/phases/{phase}/"
    near = {path: stamp for path, stamp in look.stamps.items() if _may_feed(path, own)}
    if look.is_racy(near.values()):
        return None
    return near, {source.path: source.commit for source in look.sources}, look.done.get(phase)


def _may_feed(path: str, own: str) -> bool:
    is_near = path.startswith(own) or "/phases/" not in path or path.endswith(".summary.jsonl")
    return is_near and "/.ctx-" not in path


def _refuse_unknown(plan: PlanId | None, phase: PhaseId, look: SourceSnapshot) -> None:
    known = _plans(phase, look)
    if plan and plan not in known:
        hint = f"Known plans: {', '.join(map(str, known)) or 'none'}."
        raise YoloError(Reason.UNKNOWN_NAME, f"phase {phase} has no plan {plan}", hint=hint)


def _plans(phase: PhaseId, look: SourceSnapshot) -> list[PlanId]:
    return sorted(
        {
            source.plan
            for source in look.sources
            if source.plan and source.place and source.place.phase == phase
        }
    )


def _plan_in(text: str, phase: PhaseId, look: SourceSnapshot) -> PlanId | None:
    """Return the plan that a context was compiled for, from its header; None if it is gone."""
    match = _PLAN.search(text[:_HEAD_BYTES])
    plan = PlanId.parse(match["plan"]) if match else None
    return plan if plan in _plans(phase, look) else None
