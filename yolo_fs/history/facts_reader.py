"""Collects the facts of every phase and of its loops as of one commit, present or past."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from itertools import product, takewhile
from typing import Any, TypeVar

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify, in_force, milestone_named
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.core.ids import PhaseId, twice_numbered
from yolo_fs.core.reasons import YoloError
from yolo_fs.evidence.facts import (
    NOWHERE,
    CommittedArtifact,
    PhaseFacts,
    Version,
    Withdrawn,
    WorkflowOptions,
    drop_restored,
    plans_in,
    plans_of,
)
from yolo_fs.evidence.judged import JUDGED_BY, is_any_older
from yolo_fs.evidence.plan_status import commit_of_task, shares_number
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.contents import PHASE_HANDOFF, handoff_into
from yolo_fs.history.artifact_reader import ArtifactReader
from yolo_fs.history.derived import DerivedValues
from yolo_fs.history.index import HistoryIndex
from yolo_fs.history.version_reader import Stamps, VersionReader
from yolo_fs.history.work_reader import WorkReader
from yolo_fs.loops.facts import (
    ROUNDS_OF,
    WITH_ROUNDS,
    LoopFacts,
    LoopProgress,
    goes_on,
)
from yolo_fs.loops.rounds import AFTER_REWORK, loops
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.withdrawn import MAY_SPEAK_AGAINST, said_against
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, Dept
from yolo_fs.schemas.config import Config
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.own_files import BESIDE, LINES
from yolo_fs.workspace.planning_tree import ACTIVE, planning_home
from yolo_fs.workspace.settings import CONFIG, Settings, config_in

_ACTIVE_BYTES = 4096
"""Bytes that are read of the file that names the active milestone."""
_NO_PATHS: frozenset[str] = frozenset()
_Derived = TypeVar("_Derived")
_Question = tuple[str | None, WorkflowOptions, str, tuple[str, ...], Stamps]
"""Commit, settings, home of the current phases, the branches of other clones, and where contents
that are lacking would be."""


class FactsReader:
    """Collects facts and folds them; caches what it reads, as blobs and commits never change."""

    def __init__(self, repository: Repository, settings: Settings):
        self.repository = repository
        self.settings = settings
        self._configs: dict[str | None, Config | None] = {}
        """Blob → the configuration in it."""
        self._phases: tuple[_Question, tuple[Phase, ...]] | None = None
        """The last question, and its answer."""
        self._in_order: dict[PhaseId, object] = {}
        """Signed-off phase → of what it was found that no verdict in it came too early."""
        self._has_undone = False
        """Whether the branch has any revert."""
        self.history_index = index = HistoryIndex(repository)
        self._derived = DerivedValues()
        self._artifacts = ArtifactReader(repository, settings, index)
        self._versions = VersionReader(repository, index, self._artifacts, self._derived)
        self._work = WorkReader(repository, index, self._versions, self._derived)
        # What the parts answer, of the commit that was asked for last.
        self.lines_at = self._artifacts.lines_at
        self.versions_of = self._versions.versions_of
        self.collect_work = self._work.collect_work
        self.work_of_plan = self._work.work_of_plan
        self.derive_from = self._derived.get
        for kept in _HELD:
            self._take_over(kept)

    def hold(self) -> None:
        """Let later readers of this process, and of its forks, start with the data of this one."""
        _HELD[:] = [self]

    def _take_over(self, kept: FactsReader) -> None:
        """Start with the data of another reader of the same work tree and settings."""
        theirs, ours = (
            (each.repository.root, each.repository.common_dir, each.settings)
            for each in (kept, self)
        )
        if theirs == ours and self.history_index.take_over(kept.history_index):
            # Each entry says what it is valid for, so both readers may share and extend the same
            # mappings.
            self._artifacts.take_over(kept._artifacts)
            self._versions.take_over(kept._versions)
            self._work.take_over(kept._work)
            self._derived.take_over(kept._derived)
            self._phases, self._in_order = kept._phases, kept._in_order

    def keep(self) -> None:
        """Store the parsed artifacts for the next process."""
        self._artifacts.keep()
        self.history_index.keep()

    def phases(
        self, commit: str | None, options: WorkflowOptions | None = None
    ) -> tuple[Phase, ...]:
        """Return the phases as of a commit; unchanged facts are not folded again."""
        chosen = options or WorkflowOptions(self.settings.config)
        question = self._question_of(commit, chosen)
        before, known = self._phases or (None, ())
        if before != question:
            # Equal settings become the same object, so that comparing facts is cheap.
            chosen = before[1] if before and before[1] == chosen else chosen
            by_id = {phase.id: phase for phase in known}
            question = (commit, chosen, *question[2:])
            all_facts = self._facts(question)
            known = tuple(_folded(facts, by_id.get(facts.phase)) for facts in all_facts)
            self._phases = question, known
        return known

    def derive(self, phase: Phase, name: str, make: Callable[[], _Derived]) -> _Derived:
        """Return `make()` for a phase and its loops, cached until one of them may have changed."""
        mark = tuple(self.history_index.mark_of_work(str(plan.id)) for plan in phase.facts.plans)
        return self._derived.get((phase, mark), f"{phase.id} {name}", make)

    def absent_at(self, commit: str | None, paths: Iterable[str]) -> tuple[str, ...]:
        """Return which of some paths have no file in a commit, each once."""
        named = dict.fromkeys(paths)
        return tuple(path for path in named if self.repository.blob_at(commit, path) is None)

    def facts(self, commit: str | None) -> tuple[PhaseFacts, ...]:
        """Return the facts of each phase as of a commit."""
        return tuple(phase.facts for phase in self.phases(commit))

    def _question_of(self, commit: str | None, options: WorkflowOptions) -> _Question:
        home, lines = self._home_at(commit), self._list_line_tips()
        return commit, options, home, lines, self._versions.stamp_lacking()

    def _facts(self, question: _Question) -> tuple[PhaseFacts, ...]:
        commit, chosen, home, lines, stamps = question
        if commit is None:
            return ()
        self.history_index.read_up_to(commit)
        self._work.read_lines(commit, lines)
        self._has_undone = self.history_index.has_undone()
        # The index may know a history whose trees are lost, so the first read checks them.
        begins = self._phases is None
        files = self.repository.files_at(commit, PLANNING_ROOT, anew=begins)
        files = in_force(files, home)
        self._versions.begin(stamps)
        present = list(self._artifacts.read(files, self._versions.find_giver))
        shared = [artifact for artifact in present if artifact.place.phase is None]
        of_phase: dict[PhaseId, list[CommittedArtifact]] = {}
        for artifact in present:
            if artifact.place.phase:
                of_phase.setdefault(artifact.place.phase, list(shared)).append(artifact)
        self._work.doubled = frozenset(twice_numbered(of_phase))
        done, needs = _read_plan_completion(present), _read_plan_needs(present)
        handed = [artifact for artifact in present if artifact.place.artifact.kind == PHASE_HANDOFF]
        at_s = self.history_index.at_s(commit)
        return tuple(
            replace(
                self._phase_as_signed(phase, of_phase[phase], chosen),
                handed_over=handoff_into(phase, handed),
                plans_of_all=done,
                needs_of_all=needs,
                at_s=at_s,
                home=home,
            )
            for phase in sorted(of_phase)
        )

    def tasks_done(self, commit: str | None) -> frozenset[str]:
        """Return the tasks, `NN-MM/Tk`, that commits name, as of a commit.

        A task is left out if two phases have its number, since a commit may mean either. Where
        two departments have its plan, the department is put in front: `frontend 01-01/T1`.
        """
        plans = [
            (facts, plan)
            for facts in self.facts(commit)
            for plan in facts.plans
            if shares_number(facts.plans, plan)
        ]
        shared = {str(plan.id) for _, plan in plans}
        own = {
            f"{plan.department} {plan.id}/{task.get('id')}"
            for facts, plan in plans
            for task in plan.tasks
            if commit_of_task(facts, plan, task)
        }
        done = self.history_index.tasks_done()
        return frozenset(own) | {
            task
            for task in done
            if task.partition("-")[0] not in self._work.doubled
            and task.partition("/")[0] not in shared
        }

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject records that step.

        A number that two phases have is left out.
        """
        steps = self.history_index.steps_said().items()
        return {key: oid for key, oid in steps if key.partition(" ")[0] not in self._work.doubled}

    def _list_line_tips(self) -> tuple[str, ...]:
        known = self.repository.refs_below(LINES) | self.repository.refs_below(BESIDE)
        return tuple(sorted(set(known.values())))

    def _home_at(self, commit: str | None) -> str:
        """Return the home of the current phases.

        For the tip, the work tree decides, since nobody commits `ACTIVE` on purpose; for the past,
        what was committed.
        """
        if commit is None or commit == self.repository.head().tip:
            return planning_home(self.repository.root)
        blob = self.repository.blob_at(commit, ACTIVE)
        active = self.repository.objects.read(blob, _ACTIVE_BYTES) if blob else None
        named = milestone_named(active.body) if active else ""
        tree = self.repository.root_tree(commit)
        return named if named and self.repository.trees.find(tree, named) else PLANNING_ROOT

    def config_at(self, commit: str | None) -> Config | None:
        """Return the configuration of a commit: the past does not depend on today's departments."""
        blob = self.repository.blob_at(commit, CONFIG)
        objects, most_bytes = self.repository.objects, Limits().max_file_bytes
        git_object = objects.read(blob, most_bytes) if blob and blob not in self._configs else None
        if blob and git_object:
            self._configs[blob] = None
            with suppress(YoloError):
                self._configs[blob] = config_in(git_object.body, self.repository.root, "committed")
        return self._configs.get(blob)

    def _phase_as_signed(
        self, phase: PhaseId, committed: Sequence[CommittedArtifact], options: WorkflowOptions
    ) -> PhaseFacts:
        """Return the facts of a phase: by the configuration of its sign-off where it is complete by
        that one alone. What is switched on later asks nothing of what is signed.
        """
        facts = self._phase(phase, committed, options)
        is_known = bool(facts.signed_off) and not self.history_index.lacks_trees
        config = self.config_at(facts.signed_off) if is_known else None
        if config in (None, options.config):
            return facts

        def choose() -> PhaseFacts:
            if Phase(facts).is_complete:
                return facts
            as_signed = self._phase(phase, committed, options._replace(config=config))
            return as_signed if Phase(as_signed).is_complete else facts

        return self._derived.get((facts, config), f"{phase} as signed", choose)

    def _phase(
        self, phase: PhaseId, committed: Sequence[CommittedArtifact], options: WorkflowOptions
    ) -> PhaseFacts:
        own = tuple(committed)
        going_on = {
            artifact.place.artifact.kind for artifact in own if artifact.valid and goes_on(artifact)
        }
        asking = {kind for asks in going_on for kind in ROUNDS_OF[asks]}
        is_only = phase.number not in self._work.doubled
        signed_off, signed_at = self._sign_off(phase, own) if is_only else ("", NOWHERE)
        own = tuple(self._as_it_was(artifact, signed_at) for artifact in own)
        done = dict(self._work.find_done_tasks(own))
        merges = {task: self._work.dropped_by(oid) for task, oid in done.items()}
        dropped = {task: merge for task, merge in merges.items() if merge}
        done = {task: oid for task, oid in done.items() if task not in dropped}
        options = self._work.keep_worked(options.of_phase(own), plans_in(own), done)
        if not signed_off:
            asking |= JUDGED_BY.keys()
            if any(options.config.approval_gates):
                asking.add("decisions")
        undone = dict(self._work.find_undone_tasks(own, signed_at)) if self._has_undone else {}
        unnamed, changes = ((), ()) if signed_off else self._work.split_changes(own)
        facts = PhaseFacts(
            phase=phase,
            committed=own,
            options=options,
            commits=self._work.find_named_commits(own),
            task_commits=done,
            undone=dropped | undone,
            signed_off=signed_off,
            signed_off_at=signed_at,
            versions={**self._versions_of(own, asking), **self._versions_since(own, signed_at)},
            work=self._work.collect_work(own, unnamed)
            if asking
            else self._work.work_since(own, signed_at),
            changes=changes,
            is_doubled=not is_only,
        )
        facts = replace(facts, unseen=dict(self._find_unseen(facts)))
        if not signed_off and (withdrawn := tuple(self._find_withdrawn(facts))):
            facts = replace(facts, withdrawn=withdrawn)
        is_mended = "integration-gate-result" in going_on
        if signed_off and (is_mended or not self._was_in_order(facts)):
            # Only the past tells which of what came after its verdict was mended.
            versions = self._versions_of(own, asking | JUDGED_BY.keys())
            facts = self._with_work(replace(facts, versions={**facts.versions, **versions}))
        unread = {path: self._versions.unread_of(path) for path in facts.versions}
        return replace(facts, unread=unread) if any(unread.values()) else facts

    def _find_unseen(self, facts: PhaseFacts) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the position of each artifact, and of the sign-off, that a merge brought, and those
        before it of what its branch did not have. Source that the merge did not take is not there:
        the files are as that branch had them.
        """
        history = self.history_index
        made = [(each.position, frozenset({each.place.path})) for each in facts.committed]
        made += [(work.position, work.files) for work in (*facts.work, *facts.changes)]
        for position in {facts.signed_off_at, *(artifact.position for artifact in facts.committed)}:
            if history.unseen_by(position):
                unseen = frozenset(
                    at
                    for at, files in made
                    if history.is_beside(at, position) and self._did_merge_change(files, position)
                )
                yield position, unseen

    def _did_merge_change(self, files: Set[str], position: int) -> bool:
        """Return whether files are otherwise in a merge than in a commit that it brought; so it is
        taken where nobody knows.
        """
        history, repository = self.history_index, self.repository
        commit, merge = history.commit_at(position), history.brought_by(position)
        if not files or commit is None or merge is None or history.lacks_trees:
            return True
        before, after = repository.root_tree(commit.oid), repository.root_tree(merge.oid)
        find = repository.trees.find
        return any(find(before, file) != find(after, file) for file in files)

    def _was_in_order(self, facts: PhaseFacts) -> bool:
        """Return whether no verdict of a signed-off phase is older than what it judges. Once is
        enough: what comes after the sign-off is not judged.
        """
        places = tuple(
            (artifact.place.path, artifact.position)
            for artifact in facts.committed
            if artifact.place.phase
        )
        basis = facts.signed_off, self.history_index.reading, facts.options, places
        if self._in_order.get(facts.phase) == basis:
            return True
        if is_any_older(self._with_work(facts)):
            return False
        self._in_order[facts.phase] = basis
        return True

    def _with_work(self, facts: PhaseFacts) -> PhaseFacts:
        unnamed, changes = self._work.split_changes(facts.committed)
        facts = replace(
            facts, work=self._work.collect_work(facts.committed, unnamed), changes=changes
        )
        return replace(facts, unseen=dict(self._find_unseen(facts)))

    def _sign_off(self, phase: PhaseId, committed: Sequence[CommittedArtifact]) -> tuple[str, int]:
        """Return the commit that signed a phase off, and its place: the one that says so, else the
        one that gave `state.json` that calls it complete, or since when that is at a later phase: a
        squash leaves either. By the revert of a revert nobody signs: it is the sign-off before, and
        none if the phase is otherwise than before it was taken back.
        """
        history, number = self.history_index, int(phase.number)
        if signed := history.sign_off_of(number):
            before, revert = history.repeated_by(signed, number)
            if revert and not self._is_restored(committed, revert, signed):
                return "", NOWHERE
            return before or signed, history.position_of(before or signed)
        state = next(
            (artifact for artifact in committed if artifact.place.artifact.kind == "state"), None
        )
        if state is None or not (
            _is_complete(state.lines, number) or _is_beyond(state.lines, number)
        ):
            return "", NOWHERE
        versions = drop_restored(self._versions.versions_of(state.place.path))
        since = versions[-1].position if versions else state.position
        later = takewhile(lambda version: _is_beyond(version.lines, number), reversed(versions))
        at = min((version.position for version in later), default=since)
        return state.commit or history.tip, at

    def _as_it_was(self, artifact: CommittedArtifact, signed_at: int) -> CommittedArtifact:
        """Return an artifact, as old as it was where a revert after sign-off brought it back."""
        if not artifact.place.phase or not self._work.is_after_sign_off(
            artifact.position, signed_at
        ):
            return artifact
        path = artifact.place.path
        last = drop_restored(self._versions.versions_of(path))[-1:]
        if not last or last[0].content != self._artifacts.blobs.get(path):
            return artifact
        return artifact._replace(position=last[0].position)

    def _is_restored(self, committed: Sequence[CommittedArtifact], revert: str, again: str) -> bool:
        """Return whether a commit has the artifacts of a phase, and the files of its plans, as they
        were before a revert.
        """
        if self.history_index.lacks_trees:
            return False
        paths = {artifact.place.folder for artifact in committed if artifact.place.phase}
        paths.update(*(plan.files for plan in plans_in(committed)))
        find = self.repository.trees.find
        (parent, *_) = self.repository.parents(revert)
        before, after = self.repository.root_tree(parent), self.repository.root_tree(again)
        return all(find(before, path) == find(after, path) for path in paths)

    def _find_withdrawn(self, facts: PhaseFacts) -> Iterator[Withdrawn]:
        """Yield what spoke against the phase last, and was removed, reverted or dropped by a merge.
        Of the verdicts that a revert or a merge brings back, `judged` tells.
        """
        own = [artifact.place for artifact in facts.committed if artifact.place.phase]
        moved = (self.history_index.last_change(place.path).former for place in own)
        former = (path.rpartition("/")[0] for path in moved if path)
        folders = dict.fromkeys((*(place.folder for place in own[:1]), *former))
        rows = [row for row in ARTIFACTS if row.kind in MAY_SPEAK_AGAINST and folders]
        prefixes = [DEPARTMENT_BY_NAME[name].prefix for name in facts.options.departments]
        for name in dict.fromkeys(row.named(prefix) for row, prefix in product(rows, prefixes)):
            first, *others = (f"{folder}/{name}" for folder in folders)
            place = classify(first)
            if place and not (first in self._artifacts.blobs and place.artifact.kind in JUDGED_BY):
                paths = (first,) if first in self._artifacts.blobs else (first, *others)
                lines = next(filter(None, map(self._versions.read_taken_back, paths)), ())
                yield from (
                    said_against(facts, CommittedArtifact(place, lines, valid=True))
                    if lines
                    else ()
                )

    def _versions_of(
        self, committed: Iterable[CommittedArtifact], kinds: Set[str]
    ) -> dict[str, Sequence[Version]]:
        paths = (
            artifact.place.path for artifact in committed if artifact.place.artifact.kind in kinds
        )
        return {path: self._versions.versions_of(path) for path in paths}

    def _versions_since(
        self, committed: Iterable[CommittedArtifact], signed_at: int
    ) -> dict[str, Sequence[Version]]:
        """Return the versions of what came after a sign-off, which may have opened it again."""
        late = [
            artifact
            for artifact in committed
            if artifact.place.phase and self._work.is_after_sign_off(artifact.position, signed_at)
        ]
        return self._versions_of(late, {artifact.place.artifact.kind for artifact in late})


_HELD: list[FactsReader] = []
"""The reader that a worker of the observer has used, for its next questions; at most one."""


def _is_complete(state: Sequence[Mapping[str, Any]], phase: int) -> bool:
    """Return whether a `state.json` calls a phase complete."""
    last = state[-1] if state else {}
    return (last.get("ph"), last.get("st")) == (phase, "complete")


def _is_beyond(state: Sequence[Mapping[str, Any]], phase: int) -> bool:
    """Return whether a `state.json` is at a later phase: it is at the first that is open."""
    at = state[-1].get("ph") if state else None
    return isinstance(at, int) and at > phase


def _folded(facts: PhaseFacts, known: Phase | None) -> Phase:
    """Return the phase of these facts; the known one if nothing differs that rules ask for."""
    if known is None:
        return Phase(facts)
    is_same = facts == known.facts or (
        not facts.asks_time and replace(facts, at_s=known.facts.at_s) == known.facts
    )
    return known if is_same else Phase(facts)


def _read_plan_completion(committed: Iterable[CommittedArtifact]) -> dict[tuple[Dept, str], bool]:
    """Return for each plan of any phase whether its summary says complete."""
    completion: dict[tuple[Dept, str], bool] = {}
    for artifact in committed:
        place = artifact.place
        key = Dept(place.department), str(place.plan)
        if place.artifact.kind == "plan":
            completion.setdefault(key, False)
        elif place.artifact.kind == "summary" and artifact.lines:
            completion[key] = artifact.valid and artifact.lines[0].get("s") == "complete"
    return completion


def _read_plan_needs(
    committed: Iterable[CommittedArtifact],
) -> dict[tuple[Dept, str], tuple[str, ...]]:
    """Return for each plan of any phase the plans that it names, where it names any."""
    return {
        (plan.department, str(plan.id)): plan.names for plan in plans_in(committed) if plan.names
    }


def loops_of(facts_reader: FactsReader, phase: Phase, now_s: int) -> tuple[LoopProgress, ...]:
    """Return the progress of the loops of a phase whose facts `facts_reader` has gathered last.

    While the steps of the departments judge what was worked on again, their agent is next.
    """
    turn = phase.progress.next
    return tuple(
        replace(loop, next=turn.agent, what=f"does {turn.step}")
        if turn and loop.state in AFTER_REWORK and loop.next not in ("", turn.agent)
        else loop
        for loop in loops(loop_facts(facts_reader, phase.facts, now_s))
    )


def loop_facts(facts_reader: FactsReader, facts: PhaseFacts, now_s: int) -> LoopFacts:
    """Return the facts of a phase's loops, as of the commit that was asked for last."""
    paths = sorted(
        artifact.place.path
        for artifact in facts.committed
        if artifact.place.artifact.kind in WITH_ROUNDS
    )
    versions = {path: facts_reader.versions_of(path) for path in paths}
    plans = [str(plan.id) for plan in plans_of(facts)]
    work = (work for plan in plans for work in facts_reader.work_of_plan(plan))
    every = facts.work or tuple(sorted(work, key=lambda commit: commit.position))
    return LoopFacts(facts, now_s, versions, every)
