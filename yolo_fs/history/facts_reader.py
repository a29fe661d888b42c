"""Collects the facts of every phase and of its loops as of one commit, present or past."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, product, takewhile
from typing import Any, NamedTuple, TypeVar

from yolo_fs.artifacts.classify import (
    PLANNING_ROOT,
    classify,
    in_force,
    milestone_named,
    plans_named,
)
from yolo_fs.artifacts.examine import of_sections, understand
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.artifacts.verdicts import Place
from yolo_fs.core.ids import PhaseId, twice_numbered
from yolo_fs.core.reasons import YoloError, errors
from yolo_fs.evidence.facts import (
    NOWHERE,
    Filed,
    PhaseFacts,
    Plan,
    SourceCommit,
    Switches,
    Version,
    Withdrawn,
    Work,
    commit_of_task,
    key_of_task,
    paths_in,
    plans_in,
    plans_of,
    shares_number,
    texts,
    touches,
)
from yolo_fs.evidence.judged import JUDGED_BY, is_any_older
from yolo_fs.git.history import changes_in
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.contents import PHASE_HANDOFF, handoff_into
from yolo_fs.history.index import (
    NO_CHANGE,
    HistoryIndex,
    IndexedCommit,
    PathChange,
    plan_in,
)
from yolo_fs.loops.facts import ROUNDS_OF, WITH_ROUNDS, LoopFacts, LoopProgress, goes_on, of_former
from yolo_fs.loops.rounds import AFTER_REWORK, loops
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.withdrawn import MAY_SPEAK_AGAINST, said_against
from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME
from yolo_fs.schemas.config import Config
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.readers import READERS
from yolo_fs.system.store import code_stamp
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.own_files import BESIDE, LINES
from yolo_fs.workspace.planning_tree import ACTIVE, planning_home
from yolo_fs.workspace.settings import CONFIG, Settings, config_in

_ACTIVE_BYTES = 4096
"""Bytes that are read of the file that names the active milestone."""
_NONE = (None,)
_NO_PLANS: frozenset[str] = frozenset()
_NO_PATHS: frozenset[str] = frozenset()
_MADE_FEW = 50
"""Up to so many past contents are looked up one by one in the trees of their commits."""
_MADE_AT_ONCE = 2000
"""Commits in one request to git, which takes 0.1 s."""
_Derived = TypeVar("_Derived")
_Stamps = tuple[Stamp | None, ...]
_Question = tuple[str | None, Switches, str, tuple[str, ...], _Stamps]
"""Commit, settings, home of the current phases, the branches of other clones, and where contents
that are lacking would be."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The versions of an artifact that have been read."""

    mark: tuple[str, int, object]
    """Value of `HistoryIndex.mark_of`: the last change, how many there are, and the reading."""
    last: PathChange
    blob: str
    versions: tuple[Version, ...]
    unread: tuple[Version, ...] = ()
    """The versions whose contents a partial clone lacks, without a line."""
    lacking: str = ""
    """One of these contents."""
    stamps: _Stamps = ()
    """Where it would be, as of the read."""


class FactsReader:
    """Collects facts and folds them; caches what it reads, as blobs and commits never change."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._filed: dict[str, tuple[tuple[str, frozenset[str]], Filed]] = {}
        """Path → blob and relevant plans as of the last read, and the parsed artifact."""
        self._unkept: set[str] = set()
        """Paths whose rows for the next process are outdated."""
        self._blobs: Mapping[str, str] = {}
        """Path → blob of the commit that was asked for last."""
        self._configs: dict[str | None, Config | None] = {}
        """Blob → the configuration in it."""
        self._phases: tuple[_Question, tuple[Phase, ...]] | None = None
        """The last question, and its answer."""
        self._pasts: dict[str, _Past] = {}
        self._stamps: _Stamps = ()
        """Where contents that are lacking would be, as of the last question."""
        self._doubled: frozenset[str] = frozenset()
        """Numbers that two phases have, as of the commit that was asked for last."""
        self._works: dict[str, tuple[object, tuple[Work, ...]]] = {}
        """Plan → mark of its source commits, and these commits."""
        self._changes: _SourceChanges | None = None
        self._in_order: dict[PhaseId, object] = {}
        """Signed-off phase → of what it was found that no verdict in it came too early."""
        self._elsewhere: dict[object, bool] = {}
        """What `_is_elsewhere` has answered."""
        self._has_undone = False
        """Whether the branch has any revert."""
        self._made: dict[tuple[str, str], str | None] = {}
        """Commit and path → the resulting blob, where many were requested."""
        self._made_asked = 0
        self._givers: dict[str, tuple[object, PathChange]] = {}
        """Verdict → its last change and its content, and the commit that gave it that content."""
        self._derived: dict[str, tuple[object, Any]] = {}
        """Name → basis of a derived value, and the value."""
        self.history_index = HistoryIndex(repository)
        self._lines = HistoryIndex(repository)
        """Index of what the branches of the team's other clones have beyond the commit."""
        self._lines_read: tuple[object, tuple[str, ...]] = (None, ())
        for kept in _HELD:
            self._take_over(kept)

    def hold(self) -> None:
        """Let later readers of this process, and of its forks, start with the data of this one."""
        _HELD[:] = [self]

    def _take_over(self, kept: FactsReader) -> None:
        """Start with the data of another reader of the same work tree and settings."""
        theirs, ours = (
            (each._repository.root, each._repository.common_dir, each._settings)
            for each in (kept, self)
        )
        if theirs == ours and self.history_index.take_over(kept.history_index):
            # Each entry says what it is valid for, so both teams may share and extend the same
            # mappings.
            self._filed, self._blobs, self._pasts = kept._filed, kept._blobs, kept._pasts
            self._derived, self._phases, self._doubled = kept._derived, kept._phases, kept._doubled
            self._stamps = kept._stamps
            self._works, self._in_order = kept._works, kept._in_order
            self._givers, self._elsewhere = kept._givers, kept._elsewhere
            if self._lines.take_over(kept._lines):
                self._lines_read = kept._lines_read

    def keep(self) -> None:
        """Store the parsed artifacts for the next process."""
        rows = []
        for path in self._unkept:
            (blob, plans), filed = self._filed[path]
            lines = json.dumps(filed.lines, separators=(",", ":"))
            rows.append((os.fsencode(path), self._make_cache_key(blob, plans), filed.valid, lines))
        if rows and self.history_index.keep_artifacts(rows, map(os.fsencode, self._filed)):
            self._unkept = set()
        self.history_index.keep()

    def _recall(self, wanted: Mapping[str, tuple[str, frozenset[str]]]) -> None:
        """Load the parsed artifacts that an earlier process has stored for these contents."""
        for name, basis, valid, lines in self.history_index.kept_artifacts():
            path = os.fsdecode(name)
            place = classify(path)
            if place and path in wanted and basis == self._make_cache_key(*wanted[path]):
                filed = Filed(place, tuple(json.loads(lines)), valid=bool(valid))
                self._filed[path] = wanted[path], filed

    def _make_cache_key(self, blob: str, plans: frozenset[str]) -> str:
        """Return the cache key of an artifact: everything that changes how it is read."""
        mode, limits = self._settings.mode, self._settings.limits
        return f"{code_stamp()} {blob} {sorted(plans)} {mode.legacy} {limits}"

    def phases(self, commit: str | None, switches: Switches | None = None) -> tuple[Phase, ...]:
        """Return the phases as of a commit; unchanged facts are not folded again."""
        chosen = switches or Switches(self._settings.config)
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
        return self.derive_from((phase, mark), f"{phase.id} {name}", make)

    def derive_from(self, basis: object, name: str, make: Callable[[], _Derived]) -> _Derived:
        """Return `make()` for a basis, cached until the basis changes."""
        kept = self._derived.get(name)
        if kept is None or kept[0] != basis:
            kept = self._derived[name] = basis, make()
        derived: _Derived = kept[1]
        return derived

    def absent_at(self, commit: str | None, paths: Iterable[str]) -> tuple[str, ...]:
        """Return which of some paths have no file in a commit, each once."""
        named = dict.fromkeys(paths)
        return tuple(path for path in named if self._repository.blob_at(commit, path) is None)

    def facts(self, commit: str | None, switches: Switches | None = None) -> tuple[PhaseFacts, ...]:
        """Return the facts of each phase as of a commit."""
        return tuple(phase.facts for phase in self.phases(commit, switches))

    def _question_of(self, commit: str | None, switches: Switches) -> _Question:
        home, lines = self._home_at(commit), self._list_line_tips()
        return commit, switches, home, lines, self._stamp_lacking()

    def _stamp_lacking(self) -> _Stamps:
        """Return what changes once contents that this clone lacked have come."""
        lacking = [past.lacking for past in self._pasts.values() if past.lacking]
        loose = (f"{blob[:2]}/{blob[2:]}" for blob in lacking)
        folder = f"{self._repository.common_dir}/objects"
        return tuple(stamp_at(f"{folder}/{name}") for name in ("pack", *loose) if lacking)

    def _facts(self, question: _Question) -> tuple[PhaseFacts, ...]:
        commit, chosen, home, lines, self._stamps = question
        if commit is None:
            return ()
        self.history_index.read_up_to(commit)
        self._read_lines(commit, lines)
        self._has_undone = self.history_index.has_undone()
        # The index may know a history whose trees are lost, so the first read checks them.
        begins = self._phases is None
        files = self._repository.files_at(commit, PLANNING_ROOT, anew=begins)
        files = in_force(files, home)
        self._blobs = files
        self._forget_made()
        present = list(self._file(files))
        shared = [artifact for artifact in present if artifact.place.phase is None]
        of_phase: dict[PhaseId, list[Filed]] = {}
        for artifact in present:
            if artifact.place.phase:
                of_phase.setdefault(artifact.place.phase, list(shared)).append(artifact)
        self._doubled = frozenset(twice_numbered(of_phase))
        done = _read_plan_completion(present)
        handed = [artifact for artifact in present if artifact.place.artifact.kind == PHASE_HANDOFF]
        at_s = self.history_index.at_s(commit)
        return tuple(
            replace(
                self._phase(phase, of_phase[phase], chosen),
                handed_over=handoff_into(phase, handed),
                earlier_plans=done,
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
            if task.partition("-")[0] not in self._doubled and task.partition("/")[0] not in shared
        }

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject records that step.

        A number that two phases have is left out.
        """
        steps = self.history_index.steps_said().items()
        return {key: oid for key, oid in steps if key.partition(" ")[0] not in self._doubled}

    def _list_line_tips(self) -> tuple[str, ...]:
        known = self._repository.refs_below(LINES) | self._repository.refs_below(BESIDE)
        return tuple(sorted(set(known.values())))

    def _read_lines(self, commit: str, tips: tuple[str, ...]) -> None:
        wanted, before = (self.history_index.reading, tips), self._lines_read
        if wanted != before:
            self._lines.read_beyond(commit, tips, goes_on=wanted[0] is before[0])
            self._lines_read = wanted

    def _home_at(self, commit: str | None) -> str:
        """Return the home of the current phases.

        For the tip, the work tree decides, since nobody commits `ACTIVE` on purpose; for the past,
        what was committed.
        """
        if commit is None or commit == self._repository.head().tip:
            return planning_home(self._repository.root)
        blob = self._repository.blob_at(commit, ACTIVE)
        active = self._repository.objects.read(blob, _ACTIVE_BYTES) if blob else None
        named = milestone_named(active.body) if active else ""
        tree = self._repository.root_tree(commit)
        return named if named and self._repository.trees.find(tree, named) else PLANNING_ROOT

    def config_at(self, commit: str | None) -> Config | None:
        """Return the configuration of a commit: the past does not depend on today's departments."""
        blob = self._repository.blob_at(commit, CONFIG)
        objects, most_bytes = self._repository.objects, Limits().max_file_bytes
        git_object = objects.read(blob, most_bytes) if blob and blob not in self._configs else None
        if blob and git_object:
            self._configs[blob] = None
            with suppress(YoloError):
                self._configs[blob] = config_in(git_object.body, self._repository.root, "committed")
        return self._configs.get(blob)

    def past_of(self, path: str) -> Sequence[Version]:
        """Return the versions of an artifact with rounds, oldest first.

        They reach up to the commit that was requested last. A merge that only brings a version in
        from elsewhere makes none.
        """
        known = self._pasts.get(path)
        if known and known.lacking and known.stamps != self._stamps:
            known = None  # what was lacking may have come
        if known is None or known.mark != self.history_index.mark_of(path):
            known = self._pasts[path] = self._read_past(path, known)
        return known.versions

    def lines_at(self, path: str, blob: str) -> tuple[Mapping[str, Any], ...]:
        """Return the records of an artifact as a commit has it; none when it is not valid."""
        return self._lines_of(path, [blob])[blob]

    def _lines_of(
        self, path: str, blobs: Sequence[str]
    ) -> dict[str, tuple[Mapping[str, Any], ...]]:
        place = classify(path)
        if place is None:
            return dict.fromkeys(blobs, ())
        basis, now = self._filed.get(path, (None, None))
        plans = self._plans_beside(place)
        filed = {blob: now for blob in blobs if now and basis == (blob, plans)}
        unread = [blob for blob in dict.fromkeys(blobs) if blob not in filed]
        objects = self._repository.objects.read_many(unread, self._settings.limits.max_file_bytes)
        for blob, git_object in zip(unread, objects, strict=True):
            filed[blob] = self._understood(place, git_object, plans)
        return {blob: artifact.lines if artifact.valid else () for blob, artifact in filed.items()}

    def _phase(self, phase: PhaseId, filed: Sequence[Filed], switches: Switches) -> PhaseFacts:
        own = tuple(filed)
        going_on = {
            artifact.place.artifact.kind for artifact in own if artifact.valid and goes_on(artifact)
        }
        asking = {kind for asks in going_on for kind in ROUNDS_OF[asks]}
        is_only = phase.number not in self._doubled
        signed_off, signed_at = self._sign_off(phase, own) if is_only else ("", NOWHERE)
        done = dict(self._find_done_tasks(own))
        switches = self._keep_worked(switches.of_phase(own), plans_in(own), done)
        if not signed_off:
            asking |= JUDGED_BY.keys()
        unnamed, changes = ((), ()) if signed_off else self._changes_in(own)
        facts = PhaseFacts(
            phase=phase,
            filed=own,
            switches=switches,
            commits=self._find_named_commits(own),
            task_commits=done,
            undone=dict(self._tasks_undone(own, signed_at)) if self._has_undone else {},
            signed_off=signed_off,
            signed_off_at=signed_at,
            versions={**self._versions_of(own, asking), **self._versions_since(own, signed_at)},
            work=self.collect_work(own, unnamed) if asking else self._work_since(own, signed_at),
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
        unread = {path: self._pasts[path].unread for path in facts.versions}
        return replace(facts, unread=unread) if any(unread.values()) else facts

    def _find_unseen(self, facts: PhaseFacts) -> Iterator[tuple[int, frozenset[int]]]:
        """Yield the position of each artifact, and of the sign-off, that a merge brought, and those
        before it of what its branch did not have. Source that the merge did not take is not there:
        the files are as that branch had them.
        """
        history = self.history_index
        made = [(artifact.position, _NO_PATHS) for artifact in facts.filed]
        made += [(work.position, work.files) for work in (*facts.work, *facts.changes)]
        for position in {facts.signed_off_at, *(artifact.position for artifact in facts.filed)}:
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
        history, repository = self.history_index, self._repository
        commit, merge = history.commit_at(position), history.brought_by(position)
        if not files or commit is None or merge is None or history.lacks_trees:
            return True
        before, after = repository.root_tree(commit.oid), repository.root_tree(merge.oid)
        find = repository.trees.find
        return any(find(before, file) != find(after, file) for file in files)

    def _keep_worked(
        self, switches: Switches, plans: Sequence[Plan], done: Container[str]
    ) -> Switches:
        """Return the switches with each department begun that was left out and has source on the
        branch: a task that is done, or work on its plan, whatever task the subject names.
        """
        worked = set()
        for plan in plans:
            if plan.department in switches.departments:
                continue
            files = plan.files if self._is_ambiguous(plan, plans) else _NO_PATHS
            tasks = (key_of_task(plans, plan, str(task.get("id"))) for task in plan.tasks)
            if any(map(done.__contains__, tasks)) or self.history_index.is_worked_on(
                str(plan.id), files
            ):
                worked.add(plan.department)
        return switches._replace(begun=switches.begun | worked) if worked else switches

    def _is_ambiguous(self, plan: Plan, plans: Iterable[Plan]) -> bool:
        return shares_number(plans, plan) or plan.id.phase in self._doubled

    def _was_in_order(self, facts: PhaseFacts) -> bool:
        """Return whether no verdict of a signed-off phase is older than what it judges. Once is
        enough: what comes after the sign-off is not judged.
        """
        places = tuple(
            (artifact.place.path, artifact.position)
            for artifact in facts.filed
            if artifact.place.phase
        )
        basis = facts.signed_off, self.history_index.reading, facts.switches, places
        if self._in_order.get(facts.phase) == basis:
            return True
        if is_any_older(self._with_work(facts)):
            return False
        self._in_order[facts.phase] = basis
        return True

    def _with_work(self, facts: PhaseFacts) -> PhaseFacts:
        unnamed, changes = self._changes_in(facts.filed)
        facts = replace(facts, work=self.collect_work(facts.filed, unnamed), changes=changes)
        return replace(facts, unseen=dict(self._find_unseen(facts)))

    def _sign_off(self, phase: PhaseId, filed: Sequence[Filed]) -> tuple[str, int]:
        """Return the commit that signed a phase off, and its place: the one that says so, else the
        one that gave `state.json` that calls it complete, or since when that is at a later phase: a
        squash leaves either.
        """
        history, number = self.history_index, int(phase.number)
        if signed := history.sign_off_of(number):
            return signed, history.position_of(signed)
        state = next(
            (artifact for artifact in filed if artifact.place.artifact.kind == "state"), None
        )
        if state is None or not (
            _is_complete(state.lines, number) or _is_beyond(state.lines, number)
        ):
            return "", NOWHERE
        later = takewhile(
            lambda version: _is_beyond(version.lines, number),
            reversed(self.past_of(state.place.path)),
        )
        at = min((version.position for version in later), default=state.position)
        return state.commit or history.tip, at

    def _find_withdrawn(self, facts: PhaseFacts) -> Iterator[Withdrawn]:
        """Yield what spoke against the phase last, and was removed, reverted or dropped by a merge.
        Of the verdicts that a revert or a merge brings back, `judged` tells.
        """
        own = [artifact.place for artifact in facts.filed if artifact.place.phase]
        moved = (self.history_index.last_change(place.path).former for place in own)
        former = (path.rpartition("/")[0] for path in moved if path)
        folders = dict.fromkeys((*(place.folder for place in own[:1]), *former))
        rows = [row for row in ARTIFACTS if row.kind in MAY_SPEAK_AGAINST and folders]
        prefixes = [DEPARTMENT_BY_NAME[name].prefix for name in facts.switches.departments]
        for name in dict.fromkeys(row.named(prefix) for row, prefix in product(rows, prefixes)):
            first, *others = (f"{folder}/{name}" for folder in folders)
            place = classify(first)
            if place and not (first in self._blobs and place.artifact.kind in JUDGED_BY):
                paths = (first,) if first in self._blobs else (first, *others)
                lines = next(filter(None, map(self._read_taken_back, paths)), ())
                yield from said_against(facts, Filed(place, lines, valid=True)) if lines else ()

    def _read_taken_back(self, path: str) -> tuple[Mapping[str, Any], ...]:
        """Return what an artifact said last and says no more, though nobody has written it anew
        since; nothing where it still says it.
        """
        if not self.history_index.last_change(path).oid:
            return ()
        blob = self._blobs.get(path)
        basis = self.history_index.mark_of(path), blob
        blob_taken_back = self.derive_from(
            basis, f"{path} taken back", lambda: self._find_taken_back(path, blob)
        )
        return self._lines_of(path, [blob_taken_back])[blob_taken_back] if blob_taken_back else ()

    def _find_taken_back(self, path: str, blob: str | None) -> str:
        changes = self._list_changes(path)
        if blob and all(
            self._has_brought(change) and not change.is_restoring for change in changes
        ):
            return ""
        made = self._blobs_after(changes)
        giver = self._find_giver(path, blob, counts_reverts=False) if blob else None
        written = [
            change
            for change in self._without_copies(changes, made)
            if made[change.oid]
            and not change.is_restoring
            and change.position > (giver or NO_CHANGE).position
        ]
        latest = made[max(written, key=_position_of).oid] if written else None
        return latest if latest and latest != blob else ""

    def _versions_of(self, filed: Iterable[Filed], kinds: Set[str]) -> dict[str, Sequence[Version]]:
        paths = (artifact.place.path for artifact in filed if artifact.place.artifact.kind in kinds)
        return {path: self.past_of(path) for path in paths}

    def _versions_since(
        self, filed: Iterable[Filed], signed_at: int
    ) -> dict[str, Sequence[Version]]:
        """Return the versions of what came after a sign-off, which may have opened it again."""
        late = [
            artifact
            for artifact in filed
            if artifact.place.phase and self._is_after_sign_off(artifact.position, signed_at)
        ]
        return self._versions_of(late, {artifact.place.artifact.kind for artifact in late})

    def _read_past(self, path: str, known: _Past | None) -> _Past:
        history = self.history_index
        mark = history.mark_of(path)
        changes = history.past_of(path, known.last) if known else []
        changes.sort(key=_position_of)
        # Everything read comes before everything new, and is still there, at its place.
        if (
            known is None
            or known.mark[1] + len(changes) != mark[1]
            or known.mark[2] != mark[2]
            or not all(self._has_brought(change) and not change.former for change in changes)
        ):
            changes, known = self._list_changes(path), None
        blob, fresh = known.blob if known else "", []
        # If only one commit has changed it, its present content is what that commit made.
        is_only = [change.oid for change in changes] == [mark[0]] and path in self._blobs
        blobs = {mark[0]: self._blobs[path]} if is_only else self._blobs_after(changes)
        for change in self._without_copies(changes, blobs):
            made = blobs.get(change.oid)
            if made and made != blob:
                fresh.append((change, made))
            blob = made or blob
        place = classify(path)
        kind = place.artifact.kind if place else ""
        lines = self._lines_of(path, [made for _, made in fresh])
        versions = tuple(
            Version(
                of_former(kind, lines[made]),
                path_change.at_s,
                path_change.position,
                path_change.position,
            )
            for path_change, made in fresh
            if lines[made]
        )
        lacking = [
            (change, made) for change, made in fresh if not lines[made] and self._lacks(made)
        ]
        unread = [
            Version((), change.at_s, change.position, change.position) for change, _ in lacking
        ]
        return _Past(
            mark,
            history.last_change(path),
            blob,
            (*(known.versions if known else ()), *versions),
            (*(known.unread if known else ()), *unread),
            next((made for _, made in lacking), known.lacking if known else ""),
            self._stamps,
        )

    @cached_property
    def _is_partial(self) -> bool:
        """Whether contents may be missing; asked once, since git may have to be run for it."""
        return self._repository.is_partial

    def _lacks(self, blob: str) -> bool:
        return self._is_partial and self._repository.objects.read(blob) is None

    def _forget_made(self) -> None:
        self._made, self._made_asked = {}, 0

    def _list_changes(self, path: str, before: PathChange | None = None) -> list[PathChange]:
        """Return the commits that changed an artifact, oldest first, also at the paths that it had
        before. `before`: only earlier ones than this. A move with the same bytes changes nothing.
        """
        every = sorted(self.history_index.past_of(path), key=_position_of)
        changes = [
            change for change in every if before is None or change.position < before.position
        ]
        moves = [at for at, change in enumerate(changes) if change.former]
        if not moves:
            return changes
        at = moves[-1]
        moved = changes[at]
        parents = self._repository.parents(moved.oid)[:1]
        was = [self._repository.blob_at(parent, moved.former) for parent in parents]
        is_same = was == [self._repository.blob_at(moved.oid, path)]
        return [*self._list_changes(moved.former, moved), *changes[at + is_same :]]

    def _blobs_after(self, changes: Sequence[PathChange]) -> dict[str, str | None]:
        """Return the blob of an artifact after each of these commits.

        After a few, git is asked at once for all that are not read yet: reading trees costs more.
        """
        unread = [change for change in changes if (change.oid, change.path) not in self._made]
        self._made_asked += len(unread)
        if unread and self._made_asked > _MADE_FEW:
            self._read_made(unread)
        made: dict[str, str | None] = {}
        for change in changes:
            key = change.oid, change.path
            made[change.oid] = (
                self._made[key] if key in self._made else self._repository.blob_at(*key)
            )
        return made

    def _read_made(self, changes: Sequence[PathChange]) -> None:
        wanted: dict[str, list[PathChange]] = {}
        for change in changes:
            wanted.setdefault(change.path, []).append(change)
        for other in self._blobs:
            place = classify(other)
            if other not in wanted and place and place.artifact.kind in WITH_ROUNDS:
                known = self._pasts.get(other)
                after = known.last if known else NO_CHANGE
                later = self.history_index.past_of(other, after)
                wanted[other] = [
                    change for change in later if (change.oid, other) not in self._made
                ]
        oids = list(dict.fromkeys(change.oid for some in wanted.values() for change in some))
        for begin in range(0, len(oids), _MADE_AT_ONCE):
            some = oids[begin : begin + _MADE_AT_ONCE]
            for each in changes_in(self._repository, some, list(wanted)):
                self._made[each.commit, each.path] = each.blob

    def collect_work(
        self, filed: Sequence[Filed], unnamed: Iterable[Work] = ()
    ) -> tuple[Work, ...]:
        """Return the work on a phase's plans, also on those that are not there: they were removed,
        or nobody wrote them. `unnamed`: work of commits that name no plan.
        """
        there = [
            artifact.place.plan for artifact in filed if artifact.place.artifact.kind == "plan"
        ]
        plans = {str(plan) for plan in there}
        for number in {plan.phase for plan in there if plan}:
            plans.update(self.history_index.plans_worked_on(number))
        named = chain.from_iterable(map(self.work_of_plan, plans))
        work: Iterable[Work] = chain(named, unnamed)
        if doubled := [plan for plan in plans_in(filed) if plan.id.phase in self._doubled]:
            files = frozenset(chain.from_iterable(plan.files for plan in doubled))
            work = (commit for commit in work if touches(files, commit.files))
        return tuple(sorted(work, key=lambda commit: commit.position))

    def _work_since(self, filed: Sequence[Filed], signed_at: int) -> tuple[Work, ...]:
        """Return the work on the plans of a signed-off phase that came after its sign-off."""
        plans = [
            str(artifact.place.plan) for artifact in filed if artifact.place.artifact.kind == "plan"
        ]
        last = max(map(self.history_index.last_work, plans), default=NOWHERE)
        has_more = last > signed_at or self.history_index.unseen_by(signed_at)
        return tuple(
            work
            for work in (self.collect_work(filed) if has_more else ())
            if self._is_after_sign_off(work.position, signed_at)
        )

    def _is_after_sign_off(self, position: int, signed_at: int) -> bool:
        return signed_at != NOWHERE and self.history_index.is_later(position, signed_at)

    def work_of_plan(self, plan: str) -> tuple[Work, ...]:
        """Return the source commits of a plan; they are read again if there are new ones."""
        mark = self.history_index.mark_of_work(plan)
        known = self._works.get(plan)
        if known is None or known[0] != mark:
            commits = self.history_index.work_on(plan)
            work = (
                Work(plan, commit.at_s, commit.position, commit.own_paths, commit.oid)
                for commit in commits
                if self._is_new(commit)
            )
            known = self._works[plan] = mark, tuple(work)
        return known[1]

    def _is_new(self, commit: IndexedCommit) -> bool:
        """Return whether a commit changed the branch: an empty one is no work."""
        paths = commit.own_paths
        is_unknown = self.history_index.lacks_trees
        return is_unknown or bool(paths and self.history_index.has_brought(commit.position, paths))

    def _has_brought(self, change: PathChange) -> bool:
        """Return whether the branch changed in a path where a change of it came to it. A clone
        without trees does not know.
        """
        return self.history_index.lacks_trees or self.history_index.has_brought(
            change.position, {change.path}
        )

    def _changes_in(self, filed: Sequence[Filed]) -> tuple[tuple[Work, ...], tuple[Work, ...]]:
        """Return the commits of `_find_changes_by_others` that name no plan, and those that do."""
        changes = tuple(self._find_changes_by_others(filed))
        return (
            tuple(work for work, names_plan in changes if not names_plan),
            tuple(work for work, names_plan in changes if names_plan),
        )

    def _find_changes_by_others(self, filed: Sequence[Filed]) -> Iterator[tuple[Work, bool]]:
        """Yield the commits that are not work on a plan by their subject, and changed what a
        verdict on it had judged; and whether they name a plan all the same.

        What another plan of the department claims as its own file is judged with that plan.
        """
        judged = [
            artifact.position for artifact in filed if artifact.place.artifact.kind in JUDGED_BY
        ]
        plans = plans_in(filed) if judged and NOWHERE not in judged else ()
        files_of = [(plan, _judged_files(plan, filed)) for plan in plans]
        named = frozenset(chain.from_iterable(files for _, files in files_of))
        files_of = [
            (plan, files | self._find_dropped(plan, filed, named)) for plan, files in files_of
        ]
        every_file = frozenset(chain.from_iterable(files for _, files in files_of))
        # With the first verdict itself: it may have come in one commit with what it judges.
        unseen = chain.from_iterable(map(self.history_index.unseen_by, judged))
        since = min((*judged, *(first for first, _ in unseen)), default=0) - 1
        for change in self._changes_by_others(since, every_file) if plans else ():
            claimed = {
                (plan.department, file)
                for plan, files in files_of
                if change.is_work and str(plan.id) == change.plan
                for file in files
            }
            for plan, files in files_of:
                if any((plan.department, file) not in claimed for file in change.touched & files):
                    commit = change.commit
                    paths, oid = commit.own_paths, commit.oid
                    work = Work(str(plan.id), commit.at_s, commit.position, paths, oid)
                    yield work, bool(change.plan)

    def _find_dropped(self, plan: Plan, filed: Iterable[Filed], named: Set[str]) -> frozenset[str]:
        """Return the files that work on a plan changed, which the plan or its tests named once and
        no plan does now: what was judged of them is on the branch all the same.
        """
        made = {path for work in self.work_of_plan(str(plan.id)) for path in work.files}
        loose = [path for path in made if named.isdisjoint(_climb(path))]
        papers = (
            artifact.place.path
            for artifact in (filed if loose else ())
            if artifact.place.department == plan.department
            and (artifact.place.artifact.kind == "test-plan" or _is_file_of(plan, artifact))
        )
        former = frozenset(chain.from_iterable(self._files_once(path, plan) for path in papers))
        return frozenset(path for path in loose if not former.isdisjoint(_climb(path)))

    def _files_once(self, path: str, plan: Plan) -> frozenset[str]:
        """Return the files of a plan that any version of it, or of its test plan, has named."""

        def read() -> frozenset[str]:
            made = self._blobs_after(self._list_changes(path)).values()
            versions = self._lines_of(path, [blob for blob in made if blob]).values()
            return frozenset(chain.from_iterable(_files_in(lines, plan) for lines in versions))

        return self.derive_from(self.history_index.mark_of(path), f"{path} {plan.id} files", read)

    def _changes_by_others(self, after: int, files: Set[str]) -> list[_SourceChange]:
        """Return the commits beyond a position that changed one of these files, or what is below
        it, oldest first; only new ones are read.
        """
        history = self.history_index
        known, at = self._changes, history.position_of(history.tip)
        if known is None or known.reading is not history.reading or after < known.after:
            known = _SourceChanges(history.reading, after, after, {})
        if known.up_to < at:
            made = filter(self._is_new, history.made_by_others(known.up_to))
            for change in map(_with_folders, made):
                for path in change.touched:
                    known.by_path.setdefault(path, []).append(change)
            known = self._changes = known._replace(up_to=at)
        changes = {
            change.commit.oid: change
            for file in files
            for change in known.by_path.get(file, ())
            if after < change.commit.position <= at
        }
        return sorted(changes.values(), key=lambda each: each.commit.position)

    def _find_named_commits(self, filed: Sequence[Filed]) -> dict[str, SourceCommit]:
        lines = (line for artifact in filed for line in artifact.lines)
        names = {name for line in lines for name in texts(line.get("ch"))}
        known = {name: self.history_index.commit(name) for name in names}
        known |= {name: self._lines.commit(name) for name, commit in known.items() if not commit}
        known |= dict(
            self._find_rewritten(filed, {name for name, commit in known.items() if not commit})
        )
        if self._repository.cut_off():
            lost = [name for name, commit in known.items() if not commit]
            there = self._repository.commits_exist(lost)
            known |= {
                name: SourceCommit(name, "", _NO_PATHS, 0) for name in lost if not there[name]
            }
        return {name: commit for name, commit in known.items() if commit}

    def _find_work_of(self, task: str, files: Set[str]) -> str:
        """Return the last commit that names a task and touches a file; empty without one. A clone
        without trees does not know what a commit touches: there, the last that names the task.
        """
        touching = self.history_index.of_task_touching(task, files)
        if touching or not self.history_index.lacks_trees:
            return touching
        last = self.history_index.of_task(task)
        commit = self.history_index.commit(last) if last else None
        return last if commit and not commit.files else ""

    def _find_rewritten(
        self, filed: Sequence[Filed], gone: Set[str]
    ) -> Iterator[tuple[str, SourceCommit]]:
        """Yield what stands for the commits that a summary names and the branch does not have: a
        rebase, an amend or a cherry-pick gave them other names. Where each task of the plan has a
        commit that says so and touches the plan, these are what it means; else the squashed
        merge that brought the work with artifacts of the phase, the summary or earlier ones.
        """
        summaries = {
            (artifact.place.department, artifact.place.plan): artifact
            for artifact in filed
            if gone
            and artifact.valid
            and artifact.lines
            and artifact.place.artifact.kind == "summary"
        }
        for plan in plans_in(filed):
            summary = summaries.get((plan.department, plan.id))
            named = texts(summary.lines[0].get("ch")) if summary else ()
            lost = [name for name in named if name in gone]
            refs = [f"{plan.id}/{task.get('id')}" for task in plan.tasks] if lost else []
            made = [self._find_work_of(ref, plan.files) for ref in refs]
            if all(made):
                commits = [self.history_index.commit(oid) for oid in dict.fromkeys(made)]
                free = [commit for commit in commits if commit and not _is_named(commit, named)]
                yield from zip(lost, free, strict=False)
                continue
            if summary and lost and (squashed := self._find_squash_merge(summary, plan)):
                yield from ((name, squashed) for name in lost)

    def _find_squash_merge(self, summary: Filed, plan: Plan) -> SourceCommit | None:
        for commit in self.history_index.of_others_in(summary.place.folder):
            if commit.position <= summary.position and touches(plan.files, commit.paths):
                return self.history_index.commit(commit.oid)
        return None

    def _find_done_tasks(self, filed: Iterable[Filed]) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a subject names the task's id, or repeats its words."""
        plans = plans_in(filed)
        for plan in plans:
            for task in plan.tasks:
                name = f"{plan.id}/{task.get('id')}"
                key = key_of_task(plans, plan, str(task.get("id")))
                words = str(plan.id), str(task.get("a"))
                oid = (
                    self.history_index.of_task(name)
                    or self.history_index.of_words(*words)
                    or self._lines.of_words(*words)
                    or self._lines.of_task(name)
                    if key == name and plan.id.phase not in self._doubled
                    else self.history_index.of_task_touching(name, plan.files)
                )
                if oid and self._is_elsewhere(oid, plan, plans):
                    oid = self.history_index.of_task_touching(name, plan.files)
                if oid:
                    yield key, oid

    def _is_elsewhere(self, oid: str, plan: Plan, plans: Sequence[Plan]) -> bool:
        """Return whether a commit changes files of other plans of the phase, and none of this one:
        then its subject names the wrong task.
        """
        others = [each for each in plans if each.id != plan.id]
        basis = oid, plan.files, tuple(each.files for each in others)
        if others and basis not in self._elsewhere:
            commit = self.history_index.commit(oid)
            paths = commit.files if commit else frozenset()
            is_own = touches(plan.files, paths)
            self._elsewhere[basis] = not is_own and any(
                touches(each.files, paths) for each in others
            )
        return bool(others) and self._elsewhere[basis]

    def _tasks_undone(self, filed: Iterable[Filed], signed_at: int) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a revert took the task back, before the phase was signed off
        if it is.
        """
        plans = plans_in(filed)
        for plan in plans:
            for task in plan.tasks:
                name = str(task.get("id"))
                words = str(task.get("a"))
                by, position = self.history_index.undoing(str(plan.id), name, words)
                is_meant = by and key_of_task(plans, plan, name) == f"{plan.id}/{name}"
                if is_meant and not self._is_after_sign_off(position, signed_at):
                    yield f"{plan.id}/{name}", by

    def _file(self, files: Mapping[str, str]) -> Iterator[Filed]:
        """Yield each parsed artifact; `files`: path → blob. Only unknown contents are read."""
        places = {path: place for path in files if (place := classify(path))}
        wanted = {
            path: (files[path], self._plans_beside(known_place))
            for path, known_place in places.items()
        }
        if not self._filed:
            self._recall(wanted)
        unread = [
            path
            for path, new_basis in wanted.items()
            if self._filed.get(path, _NONE)[0] != new_basis
        ]
        self._unkept.update(unread)
        blobs = [files[path] for path in unread]
        objects = self._repository.objects.read_many(blobs, self._settings.limits.max_file_bytes)
        for path, git_object in zip(unread, objects, strict=True):
            plans = wanted[path][1]
            self._filed[path] = wanted[path], self._understood(places[path], git_object, plans)
        for path in places:
            basis, filed = self._filed[path]
            blob = files[path]
            last = self._given_by(filed.place, blob)
            if (last.oid, last.position) != (filed.commit, filed.position):
                filed = filed._replace(commit=last.oid, at_s=last.at_s, position=last.position)
                self._filed[path] = basis, filed
            yield filed

    def _given_by(self, place: Place, blob: str) -> PathChange:
        """Return the commit that gave a file its content. A verdict that comes back as it was, by a
        revert, a merge or a move, is as old as it was: nobody has judged again.
        """
        path, last = place.path, self.history_index.last_change(place.path)
        is_verdict = place.artifact.kind in JUDGED_BY
        if not is_verdict and not last.former and self._has_brought(last):
            return last
        basis = self.history_index.mark_of(path), blob
        known = self._givers.get(path)
        if known is None or known[0] != basis:
            giver = self._find_giver(path, blob, counts_reverts=not is_verdict)
            known = self._givers[path] = basis, giver or last
        return known[1]

    def _find_giver(self, path: str, blob: str, *, counts_reverts: bool) -> PathChange | None:
        """Return the latest commit that gave a path its content; a merge where no other commit did,
        and none of what a merge brings that the branch had before.
        """
        is_moved = bool(self.history_index.last_change(path).former)
        if self.history_index.mark_of(path)[1] < 2 and not is_moved:
            return None
        given = [
            change
            for change in self._list_changes(path)
            if (counts_reverts or not change.is_restoring) and self._has_brought(change)
        ]
        made = self._blobs_after(given)
        told = given if counts_reverts else self._without_repeats(given, made)
        same = [change for change in told if made[change.oid] == blob]
        written = [change for change in same if len(self._repository.parents(change.oid)) < 2]
        return max(written or same, key=_position_of, default=None)

    def _without_repeats(
        self, changes: Iterable[PathChange], blobs: Mapping[str, str | None]
    ) -> Iterator[PathChange]:
        """Yield the changes of a path, but for those by which it says again what it said last on
        their line: it was removed and put back, or only its mode changed.
        """
        said = NO_CHANGE
        for change in changes:
            blob = blobs[change.oid]
            is_said = blob is not None and blob == blobs.get(said.oid)
            if not (is_said and self._repository.is_ancestor(said.oid, change.oid)):
                said = change if blob else said
                yield change

    def _without_copies(
        self, changes: Iterable[PathChange], blobs: Mapping[str, str | None]
    ) -> Iterator[PathChange]:
        """Yield the changes of a path, but for those on the way of a merge to what the branch had
        before from elsewhere, such as by a squash. What was taken back on the way is not left out.
        """
        on_line = {change: self._has_brought(change) for change in changes}
        joined = self.history_index.joined_at
        last = {
            joined(change.position): change.oid for change, is_own in on_line.items() if not is_own
        }
        own = [change.oid for change, is_own in on_line.items() if is_own]
        copies = set()
        for position, oid in last.items():
            same = [each for each in own if blobs.get(each) == blobs.get(oid) is not None]
            if same and not any(self._repository.is_ancestor(each, oid) for each in same):
                copies.add(position)
        for change, is_own in on_line.items():
            if is_own or joined(change.position) not in copies:
                yield change

    def _plans_beside(self, place: Place) -> frozenset[str]:
        """Return the ids of the plans in the folder of an artifact whose form depends on them."""
        if not place.artifact.needs_plans:
            return _NO_PLANS
        folder = f"{place.folder}/"
        return plans_named(
            path.removeprefix(folder) for path in self._blobs if path.startswith(folder)
        )

    def _understood(
        self, place: Place, git_object: GitObject | None, plans: frozenset[str]
    ) -> Filed:
        if git_object is None:
            return Filed(place, (), valid=False)
        limits = self._settings.limits._replace(stops_at_errors=True)
        reading = READERS[place.artifact.format](git_object.body, place.path, limits)
        mode = self._settings.mode._replace(strict=False)  # what is committed was good enough then
        understood = understand(place, reading.records, mode, plans)
        findings = of_sections(place, reading.findings, reading.records)
        is_valid = not errors(findings) and understood.is_sound
        return Filed(place, tuple(record.value for record in understood.records), valid=is_valid)


class _SourceChange(NamedTuple):
    """A commit that no coordinator made."""

    commit: IndexedCommit
    plan: str
    """The plan that its subject names; empty for none."""
    is_work: bool
    """Whether it is work on that plan by its subject, and not an artifact of it."""
    touched: frozenset[str]
    """The paths that it changed, and the folders above them."""


class _SourceChanges(NamedTuple):
    """The commits of a part of history that changed more than the planning tree."""

    reading: object
    after: int
    up_to: int
    """They lie beyond the one position and not beyond the other."""
    by_path: dict[str, list[_SourceChange]]
    """Path of a file or folder → the commits that changed it or what is below it."""


def _climb(path: str) -> list[str]:
    """Return a path and the folders above it."""
    return [path, *(path[:at] for at, char in enumerate(path) if char == "/")]


def _with_folders(commit: IndexedCommit) -> _SourceChange:
    source = [path for path in commit.own_paths if classify(path) is None]
    touched = chain.from_iterable(map(_climb, source))
    return _SourceChange(commit, *plan_in(commit.subject), frozenset(touched))


def _judged_files(plan: Plan, filed: Iterable[Filed]) -> frozenset[str]:
    """Return the files of a plan, with those of its tests: the results rest on them."""
    tests = (
        _files_in(artifact.lines, plan)
        for artifact in filed
        if artifact.place.artifact.kind == "test-plan"
        and artifact.place.department == plan.department
    )
    return plan.files.union(*tests)


def _files_in(lines: Iterable[Mapping[str, Any]], plan: Plan) -> Iterator[str]:
    """Yield the files that a plan names, or a test plan names for it."""
    for line in lines:
        yield from (*paths_in(line.get("fm")), *paths_in(line.get("f")))
        if line.get("plan", str(plan.id)) == str(plan.id):
            yield from paths_in(line.get("tf"))


def _is_file_of(plan: Plan, filed: Filed) -> bool:
    return filed.place.artifact.kind == "plan" and filed.place.plan == plan.id


_HELD: list[FactsReader] = []
"""The team that a worker of the observer has read, for its next questions; at most one."""


def _position_of(change: PathChange) -> int:
    return change.position


def _is_named(commit: SourceCommit, names: Iterable[str]) -> bool:
    return any(commit.oid.startswith(name) for name in names)


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


def _read_plan_completion(filed: Iterable[Filed]) -> dict[str, bool]:
    """Return for each plan of any phase whether its summary says complete."""
    return {
        str(artifact.place.plan): artifact.valid and artifact.lines[0].get("s") == "complete"
        for artifact in filed
        if artifact.place.artifact.kind == "summary" and artifact.lines
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
        filed.place.path for filed in facts.filed if filed.place.artifact.kind in WITH_ROUNDS
    )
    versions = {path: facts_reader.past_of(path) for path in paths}
    plans = [str(plan.id) for plan in plans_of(facts)]
    work = (work for plan in plans for work in facts_reader.work_of_plan(plan))
    every = facts.work or tuple(sorted(work, key=lambda commit: commit.position))
    return LoopFacts(facts, now_s, versions, every)
