"""The facts of every phase and of its loops, gathered from one commit: of now, or of the past."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any, TypeVar

from yolo_fs.artifacts.classify import (
    PLANNING_ROOT,
    classify,
    in_force,
    milestone_named,
    plans_named,
)
from yolo_fs.artifacts.examine import of_sections, understand
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
    Work,
    key_of_task,
    plans_in,
    plans_of,
    texts,
    touches,
)
from yolo_fs.evidence.judged import JUDGED_BY, is_any_older
from yolo_fs.git.history import changes_in
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.contents import PHASE_HANDOFF, handoff_into
from yolo_fs.history.index import NO_CHANGE, HistoryIndex, PathChange
from yolo_fs.loops.facts import (
    ROUNDS_OF,
    WITH_ROUNDS,
    LoopFacts,
    LoopProgress,
    goes_on,
    of_former,
)
from yolo_fs.loops.rounds import loops
from yolo_fs.phase.phase import Phase
from yolo_fs.schemas.config import Config
from yolo_fs.system.readers import READERS
from yolo_fs.system.store import code_stamp
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace import (
    ACTIVE,
    BESIDE,
    CONFIG,
    LINES,
    Settings,
    config_in,
    planning_home,
)

_ACTIVE_BYTES = 4096
"""Of the file that names the milestone in force."""
_NONE = (None,)
_NO_PLANS: frozenset[str] = frozenset()
_NO_PATHS: frozenset[str] = frozenset()
_MADE_FEW = 50
"""Contents of the past that are looked for in the trees of their commits, one by one."""
_MADE_AT_ONCE = 2000
"""Commits that one git is asked for; it takes 0.1 s."""
_Derived = TypeVar("_Derived")
_Asked = tuple[str | None, Switches, str, tuple[str, ...]]
"""Commit, settings, where the phases in force live, and the branches of other clones."""


@dataclass(frozen=True, slots=True)
class _Past:
    """The versions of an artifact, as far as they were read."""

    mark: tuple[str, int]
    """What `HistoryIndex.mark_of` said: the last change, and how many there are."""
    last: PathChange
    blob: str
    versions: tuple[Version, ...]
    unread: tuple[int, ...] = ()
    """Places of the versions whose contents a partial clone lacks."""


class Team:
    """Gathers facts and folds them; keeps what it has read, for blobs and commits never change."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._filed: dict[str, tuple[tuple[str, frozenset[str]], Filed]] = {}
        """Path → what was read last, the blob and the plans that matter to it; and what it says."""
        self._unkept: set[str] = set()
        """Paths of which the next process finds something else."""
        self._blobs: Mapping[str, str] = {}
        """Path → blob of the commit that was asked for last."""
        self._configs: dict[str | None, Config | None] = {}
        """Blob → the configuration that it is."""
        self._phases: tuple[_Asked, tuple[Phase, ...]] | None = None
        """What was asked last, and the answer."""
        self._pasts: dict[str, _Past] = {}
        self._doubled: frozenset[str] = frozenset()
        """Numbers that two phases have, as of the commit that was asked for last."""
        self._works: dict[str, tuple[object, tuple[Work, ...]]] = {}
        """Plan → what tells whether it has other source commits by now, and those it had."""
        self._in_order: dict[PhaseId, object] = {}
        """Signed-off phase → of what it was found that no verdict in it came too early."""
        self._has_undone = False
        """Whether the branch has any revert."""
        self._made: dict[tuple[str, str], str | None] = {}
        """Commit and path → the blob that it made of it, where many were asked for."""
        self._made_asked = 0
        self._derived: dict[str, tuple[object, Any]] = {}
        """Name → what callers made of something, and of what."""
        self.history_index = HistoryIndex(repository)
        self._lines = HistoryIndex(repository)
        """What the branches of the team's other clones have beyond the commit."""
        self._lines_read: tuple[object, tuple[str, ...]] = (None, ())
        for kept in _HELD:
            self._take_over(kept)

    def hold(self) -> None:
        """Let later teams of this process, and of its forks, begin with what this one knows."""
        _HELD[:] = [self]

    def _take_over(self, kept: Team) -> None:
        """Begin with what another has read of the same work tree, by the same settings."""
        theirs, ours = (
            (each._repository.root, each._repository.common_dir, each._settings)
            for each in (kept, self)
        )
        if theirs == ours and self.history_index.take_over(kept.history_index):
            # Each entry tells what it holds for, so that both may use, and add to, the same.
            self._filed, self._blobs, self._pasts = kept._filed, kept._blobs, kept._pasts
            self._derived, self._phases = kept._derived, kept._phases
            self._works, self._in_order = kept._works, kept._in_order
            if self._lines.take_over(kept._lines):
                self._lines_read = kept._lines_read

    def keep(self) -> None:
        """Leave what artifacts say to the next process."""
        told = []
        for path in self._unkept:
            (blob, plans), filed = self._filed[path]
            lines = json.dumps(filed.lines, separators=(",", ":"))
            told.append((os.fsencode(path), self._basis(blob, plans), filed.valid, lines))
        if told and self.history_index.keep_artifacts(told, map(os.fsencode, self._filed)):
            self._unkept = set()
        self.history_index.keep()

    def _recall(self, wanted: Mapping[str, tuple[str, frozenset[str]]]) -> None:
        """Take what an earlier process has left of these contents."""
        for name, basis, valid, lines in self.history_index.kept_artifacts():
            path = os.fsdecode(name)
            place = classify(path)
            if place and path in wanted and basis == self._basis(*wanted[path]):
                filed = Filed(place, tuple(json.loads(lines)), valid=bool(valid))
                self._filed[path] = wanted[path], filed

    def _basis(self, blob: str, plans: frozenset[str]) -> str:
        """Return what the meaning of an artifact depends on."""
        mode, limits = self._settings.mode, self._settings.limits
        return f"{code_stamp()} {blob} {sorted(plans)} {mode.legacy} {limits}"

    def phases(self, commit: str | None, switches: Switches | None = None) -> tuple[Phase, ...]:
        """Return the phases as of a commit; the same facts are not folded again."""
        chosen = switches or Switches(self._settings.config)
        asked = self._asked(commit, chosen)
        before, known = self._phases or (None, ())
        if before != asked:
            # The same settings are the same object, so that comparing facts costs little.
            chosen = before[1] if before and before[1] == chosen else chosen
            by_id = {phase.id: phase for phase in known}
            asked = (commit, chosen, *asked[2:])
            found = self._facts(asked)
            known = tuple(_folded(facts, by_id.get(facts.phase)) for facts in found)
            self._phases = asked, known
        return known

    def derive(self, phase: Phase, name: str, make: Callable[[], _Derived]) -> _Derived:
        """Return what `make` says of a phase and its loops, anew once one may have changed."""
        mark = tuple(self.history_index.mark_of_work(str(plan.id)) for plan in phase.facts.plans)
        return self.derive_from((phase, mark), f"{phase.id} {name}", make)

    def derive_from(self, basis: object, name: str, make: Callable[[], _Derived]) -> _Derived:
        """Return what `make` says of a basis, anew once that is another."""
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
        return self._facts(self._asked(commit, switches or Switches(self._settings.config)))

    def _asked(self, commit: str | None, switches: Switches) -> _Asked:
        return commit, switches, self._home_at(commit), self._line_tips()

    def _facts(self, asked: _Asked) -> tuple[PhaseFacts, ...]:
        commit, chosen, home, lines = asked
        if commit is None:
            return ()
        self.history_index.read_up_to(commit)
        self._read_lines(commit, lines)
        self._has_undone = self.history_index.has_undone()
        # The index knows a history whose trees are lost: who begins looks at them.
        begins = self._phases is None
        files = self._repository.files_at(commit, PLANNING_ROOT, anew=begins)
        files = in_force(files, home)
        self._blobs = files
        self._forget_made()
        present = list(self._file(files))
        shared = [one for one in present if one.place.phase is None]
        of_phase: dict[PhaseId, list[Filed]] = {}
        for one in present:
            if one.place.phase:
                of_phase.setdefault(one.place.phase, list(shared)).append(one)
        self._doubled = frozenset(twice_numbered(of_phase))
        done = _plans_done(present)
        handed = [one for one in present if one.place.artifact.kind == PHASE_HANDOFF]
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
        """Return the tasks, `NN-MM/Tk`, that a commit names; none of a number that two phases have,
        where one commit may mean either.
        """
        self.facts(commit)
        done = self.history_index.tasks_done()
        return frozenset(task for task in done if task.partition("-")[0] not in self._doubled)

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject says that it records that step; nothing
        of a number that two phases have.
        """
        said = self.history_index.steps_said().items()
        return {key: oid for key, oid in said if key.partition(" ")[0] not in self._doubled}

    def _line_tips(self) -> tuple[str, ...]:
        known = self._repository.refs_below(LINES) | self._repository.refs_below(BESIDE)
        return tuple(sorted(set(known.values())))

    def _read_lines(self, commit: str, tips: tuple[str, ...]) -> None:
        wanted, before = (self.history_index.reading, tips), self._lines_read
        if wanted != before:
            self._lines.read_beyond(commit, tips, goes_on=wanted[0] is before[0])
            self._lines_read = wanted

    def _home_at(self, commit: str | None) -> str:
        """Return where the phases in force live. Of the tip the work tree tells, for nobody
        commits `ACTIVE` on purpose; of the past, what was committed.
        """
        if commit is None or commit == self._repository.head().tip:
            return planning_home(self._repository.root)
        blob = self._repository.blob_at(commit, ACTIVE)
        active = self._repository.objects.read(blob, _ACTIVE_BYTES) if blob else None
        named = milestone_named(active.body) if active else ""
        tree = self._repository.root_tree(commit)
        return named if named and self._repository.trees.find(tree, named) else PLANNING_ROOT

    def config_at(self, commit: str | None) -> Config | None:
        """Return the configuration of a commit: who worked then is no matter of who works now."""
        blob = self._repository.blob_at(commit, CONFIG)
        objects, most_bytes = self._repository.objects, Limits().max_file_bytes
        found = objects.read(blob, most_bytes) if blob and blob not in self._configs else None
        if blob and found:
            self._configs[blob] = None
            with suppress(YoloError):
                self._configs[blob] = config_in(found.body, self._repository.root, "committed")
        return self._configs.get(blob)

    def past_of(self, path: str) -> Sequence[Version]:
        """Return the versions that an artifact of a kind with rounds had up to the commit asked for
        last, oldest first.

        A merge that only brings a version in from elsewhere makes none.
        """
        known = self._pasts.get(path)
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
        asked, now = self._filed.get(path, (None, None))
        plans = self._plans_beside(place)
        filed = {blob: now for blob in blobs if now and asked == (blob, plans)}
        unread = [blob for blob in dict.fromkeys(blobs) if blob not in filed]
        objects = self._repository.objects.read_many(unread, self._settings.limits.max_file_bytes)
        for blob, found in zip(unread, objects, strict=True):
            filed[blob] = self._understood(place, found, plans)
        return {blob: one.lines if one.valid else () for blob, one in filed.items()}

    def _phase(self, phase: PhaseId, filed: Sequence[Filed], switches: Switches) -> PhaseFacts:
        own = tuple(filed)
        switches = switches.of_phase(own)
        going_on = (one.place.artifact.kind for one in own if one.valid and goes_on(one))
        asking = {kind for asks in going_on for kind in ROUNDS_OF[asks]}
        is_only = phase.number not in self._doubled
        signed_off, signed_at = self._sign_off(phase, own) if is_only else ("", NOWHERE)
        if not signed_off:
            asking |= JUDGED_BY.keys()
        facts = PhaseFacts(
            phase=phase,
            filed=own,
            switches=switches,
            commits=self._commits_named(own),
            task_commits=dict(self._tasks_done(own)),
            undone=dict(self._tasks_undone(own, signed_at)) if self._has_undone else {},
            signed_off=signed_off,
            signed_off_at=signed_at,
            versions=self._pasts_of(own, asking),
            work=self._work_on(own) if asking else (),
        )
        if signed_off and not self._was_in_order(facts):
            # Only the past tells which of what came after its verdict was mended.
            versions = self._pasts_of(own, asking | JUDGED_BY.keys())
            facts = replace(facts, versions=versions, work=self._work_on(own))
        unread = {path: self._pasts[path].unread for path in facts.versions}
        return replace(facts, unread=unread) if any(unread.values()) else facts

    def _was_in_order(self, facts: PhaseFacts) -> bool:
        """Return whether no verdict of a signed-off phase is older than what it judges. Once is
        enough: what comes after the sign-off is not judged.
        """
        places = tuple((one.place.path, one.position) for one in facts.filed if one.place.phase)
        basis = facts.signed_off, self.history_index.reading, facts.switches, places
        if self._in_order.get(facts.phase) == basis:
            return True
        if is_any_older(replace(facts, work=self._work_on(facts.filed))):
            return False
        self._in_order[facts.phase] = basis
        return True

    def _sign_off(self, phase: PhaseId, filed: Sequence[Filed]) -> tuple[str, int]:
        """Return the commit that signed a phase off, and its place: the one that says so, else the
        one since when `state.json` is at a later phase, which a squash leaves.
        """
        history, number = self.history_index, int(phase.number)
        if said := history.sign_off_of(number):
            return said, history.position_of(said)
        state = next((one for one in filed if one.place.artifact.kind == "state"), None)
        if state is None or not _is_beyond(state.lines, number):
            return "", NOWHERE
        later = takewhile(
            lambda one: _is_beyond(one.lines, number), reversed(self.past_of(state.place.path))
        )
        at = min((one.position for one in later), default=state.position)
        return state.commit or history.tip, at

    def _pasts_of(self, filed: Iterable[Filed], kinds: Set[str]) -> dict[str, Sequence[Version]]:
        paths = (one.place.path for one in filed if one.place.artifact.kind in kinds)
        return {path: self.past_of(path) for path in paths}

    def _read_past(self, path: str, known: _Past | None) -> _Past:
        history = self.history_index
        mark = history.mark_of(path)
        changes = history.past_of(path, known.last) if known else []
        # All that was read comes before all that is new, and is there still.
        if known is None or known.mark[1] + len(changes) != mark[1]:
            changes, known = history.past_of(path), None
        blob, fresh = known.blob if known else "", []
        # What only one commit has changed is what that commit made of it.
        is_only = mark[1] == 1 and path in self._blobs
        blobs = {mark[0]: self._blobs[path]} if is_only else self._made_by(changes, path)
        for change in changes:
            made = blobs.get(change.oid)
            if made and made != blob:
                fresh.append((change, made))
            blob = made or blob
        place = classify(path)
        kind = place.artifact.kind if place else ""
        said = self._lines_of(path, [made for _, made in fresh])
        versions = tuple(
            Version(of_former(kind, said[made]), one.at_s, one.height, one.position)
            for one, made in fresh
            if said[made]
        )
        last = changes[-1] if changes else (known.last if known else NO_CHANGE)
        unread = [one.position for one, made in fresh if not said[made] and self._lacks(made)]
        return _Past(
            mark,
            last,
            blob,
            (*(known.versions if known else ()), *versions),
            (*(known.unread if known else ()), *unread),
        )

    def _lacks(self, blob: str) -> bool:
        return self._repository.is_partial and self._repository.objects.read(blob) is None

    def _forget_made(self) -> None:
        self._made, self._made_asked = {}, 0

    def _made_by(self, changes: Sequence[PathChange], path: str) -> dict[str, str | None]:
        """Return the blob that each of these commits made of a path. After a few, git is asked at
        once for all that is not read yet: trees cost more.
        """
        unread = [one for one in changes if (one.oid, path) not in self._made]
        self._made_asked += len(unread)
        if unread and self._made_asked > _MADE_FEW:
            self._read_made(unread, path)
        made: dict[str, str | None] = {}
        for one in changes:
            is_read = (one.oid, path) in self._made
            at = self._made[one.oid, path] if is_read else self._repository.blob_at(one.oid, path)
            made[one.oid] = at
        return made

    def _read_made(self, changes: Sequence[PathChange], path: str) -> None:
        wanted: dict[str, Sequence[PathChange]] = {path: changes}
        for other in self._blobs:
            place = classify(other)
            if other != path and place and place.artifact.kind in WITH_ROUNDS:
                known = self._pasts.get(other)
                after = known.last if known else NO_CHANGE
                later = self.history_index.past_of(other, after)
                wanted[other] = [one for one in later if (one.oid, other) not in self._made]
        oids = list(dict.fromkeys(one.oid for some in wanted.values() for one in some))
        for begin in range(0, len(oids), _MADE_AT_ONCE):
            some = oids[begin : begin + _MADE_AT_ONCE]
            for each in changes_in(self._repository, some, list(wanted)):
                self._made[each.commit, each.path] = each.blob

    def _work_on(self, filed: Sequence[Filed]) -> tuple[Work, ...]:
        plans = {str(one.place.plan) for one in filed if one.place.artifact.kind == "plan"}
        work: Iterable[Work] = chain.from_iterable(map(self._work_of_plan, plans))
        if doubled := [one for one in plans_in(filed) if one.id.phase in self._doubled]:
            files = frozenset(chain.from_iterable(one.files for one in doubled))
            work = (one for one in work if touches(files, one.files))
        return tuple(sorted(work, key=lambda one: one.order))

    def _work_of_plan(self, plan: str) -> tuple[Work, ...]:
        """Return the source commits of a plan; they are read again where there are others."""
        mark = self.history_index.mark_of_work(plan)
        known = self._works.get(plan)
        if known is None or known[0] != mark:
            commits = self.history_index.work_on(plan)
            work = (
                Work(plan, one.at_s, one.height, one.position, one.paths, one.oid)
                for one in commits
            )
            known = self._works[plan] = mark, tuple(work)
        return known[1]

    def _commits_named(self, filed: Sequence[Filed]) -> dict[str, SourceCommit]:
        lines = (line for one in filed for line in one.lines)
        names = {name for line in lines for name in texts(line.get("ch"))}
        known = {name: self.history_index.commit(name) for name in names}
        known |= {name: self._lines.commit(name) for name, one in known.items() if not one}
        known |= dict(self._rewritten(filed, {name for name, one in known.items() if not one}))
        if self._repository.cut_off():
            lost = [name for name, one in known.items() if not one]
            there = self._repository.commits_exist(lost)
            known |= {
                name: SourceCommit(name, "", _NO_PATHS, 0) for name in lost if not there[name]
            }
        return {name: commit for name, commit in known.items() if commit}

    def _rewritten(
        self, filed: Sequence[Filed], gone: Set[str]
    ) -> Iterator[tuple[str, SourceCommit]]:
        """Yield what stands for the commits that a summary names and the branch does not have: a
        rebase, an amend or a cherry-pick gave them other names. Where each task of the plan has a
        commit that says so and touches the plan, these are what it means; else the squashed
        merge that brought the work with artifacts of the phase, the summary or earlier ones.
        """
        summaries = {
            (one.place.department, one.place.plan): one
            for one in filed
            if gone and one.valid and one.lines and one.place.artifact.kind == "summary"
        }
        for plan in plans_in(filed):
            summary = summaries.get((plan.department, plan.id))
            named = texts(summary.lines[0].get("ch")) if summary else ()
            lost = [name for name in named if name in gone]
            refs = [f"{plan.id}/{task.get('id')}" for task in plan.tasks] if lost else []
            made = [self.history_index.of_task_touching(ref, plan.files) for ref in refs]
            if all(made):
                commits = [self.history_index.commit(oid) for oid in dict.fromkeys(made)]
                free = [one for one in commits if one and not _is_named(one, named)]
                yield from zip(lost, free, strict=False)
                continue
            if summary and lost and (squashed := self._squashed_into(summary, plan)):
                yield from ((name, squashed) for name in lost)

    def _squashed_into(self, summary: Filed, plan: Plan) -> SourceCommit | None:
        for one in self.history_index.of_others_in(summary.place.folder):
            if one.position <= summary.position and touches(plan.files, one.paths):
                return self.history_index.commit(one.oid)
        return None

    def _tasks_done(self, filed: Iterable[Filed]) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a subject names the task's id, or says its very words."""
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
                if oid:
                    yield key, oid

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
                if is_meant and not (NOWHERE != signed_at < position):
                    yield f"{plan.id}/{name}", by

    def _file(self, files: Mapping[str, str]) -> Iterator[Filed]:
        """Yield what each artifact says; `files`: path → blob. Only what is not known is read."""
        places = {path: place for path in files if (place := classify(path))}
        wanted = {path: (files[path], self._plans_beside(one)) for path, one in places.items()}
        if not self._filed:
            self._recall(wanted)
        unread = [path for path, one in wanted.items() if self._filed.get(path, _NONE)[0] != one]
        self._unkept.update(unread)
        blobs = [files[path] for path in unread]
        objects = self._repository.objects.read_many(blobs, self._settings.limits.max_file_bytes)
        for path, found in zip(unread, objects, strict=True):
            plans = wanted[path][1]
            self._filed[path] = wanted[path], self._understood(places[path], found, plans)
        for path in places:
            basis, filed = self._filed[path]
            last = self.history_index.last_change(path)
            told = last.oid, last.at_s, last.position
            if told != (filed.commit, filed.at_s, filed.position):
                filed = filed._replace(commit=last.oid, at_s=last.at_s, position=last.position)
                self._filed[path] = basis, filed
            yield filed

    def _plans_beside(self, place: Place) -> frozenset[str]:
        """Return the ids of the plans in the folder of an artifact whose form depends on them."""
        if not place.artifact.needs_plans:
            return _NO_PLANS
        folder = f"{place.folder}/"
        return plans_named(
            path.removeprefix(folder) for path in self._blobs if path.startswith(folder)
        )

    def _understood(self, place: Place, found: GitObject | None, plans: frozenset[str]) -> Filed:
        if found is None:
            return Filed(place, (), valid=False)
        limits = self._settings.limits._replace(stops_at_errors=True)
        reading = READERS[place.artifact.format](found.body, place.path, limits)
        mode = self._settings.mode._replace(strict=False)  # what is committed was good enough then
        understood = understand(place, reading.records, mode, plans)
        findings = of_sections(place, reading.findings, reading.records)
        is_valid = not errors(findings) and understood.is_sound
        return Filed(place, tuple(record.value for record in understood.records), valid=is_valid)


_HELD: list[Team] = []
"""What a worker of the observer has read, for the questions that it answers; at most one."""


def _is_named(commit: SourceCommit, names: Iterable[str]) -> bool:
    return any(commit.oid.startswith(name) for name in names)


def _is_beyond(state: Sequence[Mapping[str, Any]], phase: int) -> bool:
    """Return whether a `state.json` is at a later phase: it is at the first that is open."""
    at = state[-1].get("ph") if state else None
    return isinstance(at, int) and at > phase


def _folded(facts: PhaseFacts, known: Phase | None) -> Phase:
    """Return the phase of these facts: the known one where nothing that rules ask differs."""
    if known is None:
        return Phase(facts)
    is_same = facts == known.facts or (
        not facts.asks_time and replace(facts, at_s=known.facts.at_s) == known.facts
    )
    return known if is_same else Phase(facts)


def _plans_done(filed: Iterable[Filed]) -> dict[str, bool]:
    """Return for each plan of any phase whether its summary says complete."""
    return {
        str(one.place.plan): one.valid and one.lines[0].get("s") == "complete"
        for one in filed
        if one.place.artifact.kind == "summary" and one.lines
    }


def loops_of(team: Team, facts: PhaseFacts, now_s: int) -> tuple[LoopProgress, ...]:
    """Return where the loops of a phase stand, whose facts `team` has gathered last."""
    return loops(loop_facts(team, facts, now_s))


def loop_facts(team: Team, facts: PhaseFacts, now_s: int) -> LoopFacts:
    """Return the facts of a phase's loops, as of the commit that `team` was asked for last."""
    paths = sorted(
        filed.place.path for filed in facts.filed if filed.place.artifact.kind in WITH_ROUNDS
    )
    versions = {path: team.past_of(path) for path in paths}
    plans = [str(plan.id) for plan in plans_of(facts)]
    work = (
        Work(plan, one.at_s, one.height)
        for plan in plans
        for one in team.history_index.work_on(plan)
    )
    return LoopFacts(facts, now_s, versions, tuple(sorted(work, key=lambda one: one.order)))
