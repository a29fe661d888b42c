"""Finds the work on plans in the commits of the branch, and which commit did a task."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, repeat
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.naming import undone_by, without_ticket
from yolo_fs.evidence.facts import (
    NOWHERE,
    CommittedArtifact,
    Plan,
    SourceCommit,
    Work,
    WorkflowOptions,
    paths_in,
    plans_in,
    texts,
    touches,
)
from yolo_fs.evidence.judged import JUDGED_BY
from yolo_fs.evidence.plan_status import key_of_task, shares_number
from yolo_fs.git.repository import Repository
from yolo_fs.history.derived import DerivedValues
from yolo_fs.history.index import HistoryIndex, IndexedCommit, plan_in
from yolo_fs.history.version_reader import VersionReader

_NO_PATHS: frozenset[str] = frozenset()


class _SourceChange(NamedTuple):
    """A commit that no coordinator made."""

    commit: IndexedCommit
    subjects: tuple[str, ...]
    """As which it counts, newest first; several for a revert of a merge."""
    plans: frozenset[str]
    """The plans that they name."""
    worked: frozenset[str]
    """Those of them that it is work on, and not an artifact of."""
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


class WorkReader:
    """Reads the source commits of plans; a plan that no new commit names is not read again."""

    def __init__(
        self,
        repository: Repository,
        index: HistoryIndex,
        versions: VersionReader,
        derived: DerivedValues,
    ):
        self._repository = repository
        self._index = index
        self._versions = versions
        self._derived = derived
        self.doubled: frozenset[str] = frozenset()
        """Numbers that two phases have, as of the commit that was asked for last."""
        self._works: dict[str, tuple[tuple[object, int], tuple[Work, ...]]] = {}
        """Plan → mark of its source commits, and these commits."""
        self._changes: _SourceChanges | None = None
        self._elsewhere: dict[object, bool] = {}
        """What `_is_elsewhere` has answered."""
        self._left_out: dict[object, tuple[IndexedCommit, IndexedCommit] | None] = {}
        """Reading and commit → that commit, and the merge that took nothing of it."""
        self._lines = HistoryIndex(repository)
        """Index of what the branches of the team's other clones have beyond the commit."""
        self._lines_read: tuple[object, tuple[str, ...]] = (None, ())

    def take_over(self, kept: WorkReader) -> None:
        """Start with the data of another reader, and share it."""
        self.doubled, self._works, self._elsewhere = kept.doubled, kept._works, kept._elsewhere
        if self._lines.take_over(kept._lines):
            self._lines_read = kept._lines_read

    def read_lines(self, commit: str, tips: tuple[str, ...]) -> None:
        """Read what the branches of the team's other clones have beyond a commit."""
        wanted, before = (self._index.reading, tips), self._lines_read
        if wanted != before:
            self._lines.read_beyond(commit, tips, goes_on=wanted[0] is before[0])
            self._lines_read = wanted

    def collect_work(
        self, committed: Sequence[CommittedArtifact], unnamed: Iterable[Work] = ()
    ) -> tuple[Work, ...]:
        """Return the work on a phase's plans, also on those that are not there: they were removed,
        or nobody wrote them. `unnamed`: work of commits that name no plan.
        """
        there = [
            artifact.place.plan for artifact in committed if artifact.place.artifact.kind == "plan"
        ]
        plans = {str(plan) for plan in there}
        for number in {plan.phase for plan in there if plan}:
            plans.update(self._index.plans_worked_on(number))
        named = chain.from_iterable(map(self.work_of_plan, plans))
        work: Iterable[Work] = chain(named, unnamed)
        if doubled := [plan for plan in plans_in(committed) if plan.id.phase in self.doubled]:
            files = frozenset(chain.from_iterable(plan.files for plan in doubled))
            work = (commit for commit in work if touches(files, commit.files))
        return tuple(sorted(work, key=lambda commit: commit.position))

    def work_since(
        self, committed: Sequence[CommittedArtifact], signed_at: int
    ) -> tuple[Work, ...]:
        """Return the work on the plans of a signed-off phase that came after its sign-off."""
        plans = [
            str(artifact.place.plan)
            for artifact in committed
            if artifact.place.artifact.kind == "plan"
        ]
        last = max(map(self._index.last_work, plans), default=NOWHERE)
        has_more = last > signed_at or self._index.unseen_by(signed_at)
        return tuple(
            work
            for work in (self.collect_work(committed) if has_more else ())
            if self.is_after_sign_off(work.position, signed_at)
        )

    def is_after_sign_off(self, position: int, signed_at: int) -> bool:
        """Return whether a position comes after a sign-off, if there was one."""
        return signed_at != NOWHERE and self._index.is_later(position, signed_at)

    def work_of_plan(self, plan: str) -> tuple[Work, ...]:
        """Return the source commits of a plan; only new ones are read."""
        mark = self._index.mark_of_work(plan)
        known = self._works.get(plan)
        if known is None or known[0] != mark:
            begun = known if known and known[0][0] is mark[0] else None
            last, before = (begun[0][1], begun[1]) if begun else (NOWHERE, ())
            fresh = (
                Work(
                    plan,
                    commit.at_s,
                    commit.position,
                    commit.own_paths,
                    commit.oid,
                    commit.subject,
                )
                for commit in self._index.work_on(plan, after=last)
                if self._is_new(commit)
            )
            known = self._works[plan] = mark, (*before, *fresh)
        return known[1]

    def keep_worked(
        self, options: WorkflowOptions, plans: Sequence[Plan], done: Container[str]
    ) -> WorkflowOptions:
        """Return the switches with each department begun that was left out and has source on the
        branch: a task that is done, or work on its plan, whatever task the subject names.
        """
        worked = set()
        for plan in plans:
            if plan.department in options.departments:
                continue
            files = plan.files if self._is_ambiguous(plan, plans) else _NO_PATHS
            tasks = (key_of_task(plans, plan, str(task.get("id"))) for task in plan.tasks)
            if any(map(done.__contains__, tasks)) or self._index.is_worked_on(str(plan.id), files):
                worked.add(plan.department)
        return options._replace(begun=options.begun | worked) if worked else options

    def split_changes(
        self, committed: Sequence[CommittedArtifact]
    ) -> tuple[tuple[Work, ...], tuple[Work, ...]]:
        """Return the commits of `_find_changes_by_others` that name no plan, and those that do."""
        changes = tuple(self._find_changes_by_others(committed))
        return (
            tuple(work for work, names_plan in changes if not names_plan),
            tuple(work for work, names_plan in changes if names_plan),
        )

    def find_named_commits(self, committed: Sequence[CommittedArtifact]) -> dict[str, SourceCommit]:
        """Return for each commit that an artifact names what stands for it on the branch."""
        lines = (line for artifact in committed for line in artifact.lines)
        names = {name for line in lines for name in texts(line.get("ch"))}
        known = {name: self._index.commit(name) for name in names}
        known |= {name: self._lines.commit(name) for name, commit in known.items() if not commit}
        known |= dict(
            self._find_rewritten(committed, {name for name, commit in known.items() if not commit})
        )
        if self._repository.cut_off():
            lost = [name for name, commit in known.items() if not commit]
            there = self._repository.commits_exist(lost)
            known |= {
                name: SourceCommit(name, "", _NO_PATHS, 0) for name in lost if not there[name]
            }
        return {name: commit for name, commit in known.items() if commit}

    def find_done_tasks(self, committed: Iterable[CommittedArtifact]) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a subject names the task's id, or repeats its words."""
        plans = plans_in(committed)
        for plan in plans:
            for task in plan.tasks:
                name = f"{plan.id}/{task.get('id')}"
                key = key_of_task(plans, plan, str(task.get("id")))
                words = str(plan.id), str(task.get("a"))
                oid = (
                    self._index.of_task(name)
                    or self._index.of_words(*words)
                    or self._lines.of_words(*words)
                    or self._lines.of_task(name)
                    if key == name and plan.id.phase not in self.doubled
                    else self._index.of_task_touching(name, plan.files)
                )
                if oid and self._is_elsewhere(oid, plan, plans):
                    oid = self._index.of_task_touching(name, plan.files)
                if oid:
                    yield key, oid

    def dropped_by(self, oid: str) -> str:
        """Return the merge that brought a commit and took nothing of its files; empty where it took
        some, or where the branch changed them otherwise since they parted.
        """
        basis = self._index.reading, oid
        if basis not in self._left_out:
            self._left_out[basis] = self._find_left_out(oid)
        if not (pair := self._left_out[basis]):
            return ""
        commit, merge = pair
        parted = min((first for first, _ in self._index.unseen_by(commit.position)), default=0)
        return "" if self._changes_by_others(parted - 1, commit.own_paths) else merge.oid

    def _find_left_out(self, oid: str) -> tuple[IndexedCommit, IndexedCommit] | None:
        history, find = self._index, self._repository.trees.find
        commit = history.commit_at(history.position_of(oid))
        merge = history.brought_by(commit.position) if commit else None
        if commit is None or merge is None or history.lacks_trees or not commit.own_paths:
            return None
        if history.has_brought(commit.position, commit.own_paths):
            return None
        made = self._repository.root_tree(merge.oid)
        sides = map(self._repository.root_tree, self._repository.parents(merge.oid)[1:])
        is_taken = any(
            find(side, path) == find(made, path) for side in sides for path in commit.own_paths
        )
        return None if is_taken else (commit, merge)

    def find_undone_tasks(
        self, committed: Iterable[CommittedArtifact], signed_at: int
    ) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a revert took the task back, before the phase was signed off
        if it is.
        """
        plans = plans_in(committed)
        for plan in plans:
            for task in plan.tasks:
                name = str(task.get("id"))
                words = str(task.get("a"))
                by, position = self._index.undoing(str(plan.id), name, words)
                is_meant = by and key_of_task(plans, plan, name) == f"{plan.id}/{name}"
                if is_meant and not self.is_after_sign_off(position, signed_at):
                    yield f"{plan.id}/{name}", by

    def _is_ambiguous(self, plan: Plan, plans: Iterable[Plan]) -> bool:
        return shares_number(plans, plan) or plan.id.phase in self.doubled

    def _is_new(self, commit: IndexedCommit) -> bool:
        """Return whether a commit changed the branch: an empty one is no work."""
        paths = commit.own_paths
        is_unknown = self._index.lacks_trees
        return is_unknown or bool(paths and self._index.has_brought(commit.position, paths))

    def _find_changes_by_others(
        self, committed: Sequence[CommittedArtifact]
    ) -> Iterator[tuple[Work, bool]]:
        """Yield the commits that are not work on a plan by their subject, and changed what a
        verdict on it had judged; and whether they name a plan all the same.

        What another plan of the department claims as its own file is judged with that plan.
        """
        judged = [
            artifact.position for artifact in committed if artifact.place.artifact.kind in JUDGED_BY
        ]
        plans = plans_in(committed) if judged and NOWHERE not in judged else ()
        files_of = [(plan, _judged_files(plan, committed)) for plan in plans]
        named = frozenset(chain.from_iterable(files for _, files in files_of))
        files_of = [
            (plan, files | self._find_dropped(plan, committed, named)) for plan, files in files_of
        ]
        every_file = frozenset(chain.from_iterable(files for _, files in files_of))
        # With the first verdict itself: it may have come in one commit with what it judges.
        unseen = chain.from_iterable(map(self._index.unseen_by, judged))
        since = min((*judged, *(first for first, _ in unseen)), default=0) - 1
        unnamed: list[set[str]] = [set() for _ in plans]
        """For each plan the subjects of the commits that name none, and changed its files."""
        for change in self._changes_by_others(since, every_file) if plans else ():
            claimed = {
                (plan.department, file)
                for plan, files in files_of
                if str(plan.id) in change.worked
                for file in files
            }
            commit = change.commit
            for (plan, files), made in zip(files_of, unnamed, strict=True):
                work = Work(
                    str(plan.id), commit.at_s, commit.position, commit.own_paths, commit.oid
                )
                repeated = [
                    each
                    for each in map(without_ticket, change.subjects)
                    if undone_by(each)[0] in made - {each}
                ]
                yield from ((work._replace(subject=each), False) for each in repeated)
                touched = change.touched & files
                if not repeated and any((plan.department, file) not in claimed for file in touched):
                    if not change.plans:
                        made.add(without_ticket(commit.subject))
                    yield work._replace(subject=commit.subject), bool(change.plans)

    def _find_dropped(
        self, plan: Plan, committed: Iterable[CommittedArtifact], named: Set[str]
    ) -> frozenset[str]:
        """Return the files that work on a plan changed, which the plan or its tests named once and
        no plan does now: what was judged of them is on the branch all the same.
        """
        made = {path for work in self.work_of_plan(str(plan.id)) for path in work.files}
        loose = [path for path in made if named.isdisjoint(_climb(path))]
        papers = (
            artifact.place.path
            for artifact in (committed if loose else ())
            if artifact.place.department == plan.department
            and (artifact.place.artifact.kind == "test-plan" or _is_file_of(plan, artifact))
        )
        former = frozenset(chain.from_iterable(self._files_once(path, plan) for path in papers))
        return frozenset(path for path in loose if not former.isdisjoint(_climb(path)))

    def _files_once(self, path: str, plan: Plan) -> frozenset[str]:
        """Return the files of a plan that any version of it, or of its test plan, has named."""

        def read() -> frozenset[str]:
            versions = self._versions.lines_ever(path)
            return frozenset(chain.from_iterable(_files_in(lines, plan) for lines in versions))

        return self._derived.get(self._index.mark_of(path), f"{path} {plan.id} files", read)

    def _changes_by_others(self, after: int, files: Set[str]) -> list[_SourceChange]:
        """Return the commits beyond a position that changed one of these files, or what is below
        it, oldest first; only new ones are read.
        """
        history = self._index
        known, at = self._changes, history.position_of(history.tip)
        if known is None or known.reading is not history.reading or after < known.after:
            known = _SourceChanges(history.reading, after, after, {})
        if known.up_to < at:
            reverts = history.reverts_by(known.up_to)
            made = filter(self._is_new, history.made_by_others(known.up_to))
            for commit in made:
                change = _with_folders(commit, reverts.get(commit.oid, (commit.subject,)))
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

    def _find_work_of(self, task: str, files: Set[str]) -> str:
        """Return the last commit that names a task and touches a file; empty without one. A clone
        without trees does not know what a commit touches: there, the last that names the task.
        """
        touching = self._index.of_task_touching(task, files)
        if touching or not self._index.lacks_trees:
            return touching
        last = self._index.of_task(task)
        commit = self._index.commit(last) if last else None
        return last if commit and not commit.files else ""

    def _find_rewritten(
        self, committed: Sequence[CommittedArtifact], gone: Set[str]
    ) -> Iterator[tuple[str, SourceCommit]]:
        """Yield what stands for the commits that a summary names and the branch does not have: a
        rebase, an amend or a cherry-pick gave them other names. Where each task of the plan has a
        commit that says so and touches the plan, or one that changed its files between the plan
        and the summary, these are what it means; else the squashed merge that brought the work
        with artifacts of the phase, the summary or earlier ones.
        """
        papers = {
            (artifact.place.artifact.kind, artifact.place.department, artifact.place.plan): artifact
            for artifact in committed
            if gone
            and artifact.valid
            and artifact.lines
            and artifact.place.artifact.kind in ("plan", "summary")
        }
        for plan in plans_in(committed):
            summary = papers.get(("summary", plan.department, plan.id))
            named = texts(summary.lines[0].get("ch")) if summary else ()
            lost = [name for name in named if name in gone]
            if summary is None or not lost:
                continue
            began = self._versions.first_position(
                papers["plan", plan.department, plan.id].place.path
            )
            made = [
                self._find_work_of(f"{plan.id}/{task.get('id')}", plan.files)
                or self._find_change_of(task, plan, range(began, summary.position + 1))
                for task in plan.tasks
            ]
            if all(made):
                commits = [self._index.commit(oid) for oid in dict.fromkeys(made)]
                free = [commit for commit in commits if commit and not _is_named(commit, named)]
                standing_in = chain(free, repeat(free[-1])) if free else ()
                yield from zip(lost, standing_in, strict=False)
            elif squashed := self._find_squash_merge(summary, plan):
                yield from ((name, squashed) for name in lost)

    def _find_change_of(self, task: Mapping[str, Any], plan: Plan, within: range) -> str:
        """Return the last commit at some positions that changed a file of a task and names no other
        plan: its subject was changed, or several commits became one. Empty without one.
        """
        files = frozenset(paths_in(task.get("f")))
        changes = self._changes_by_others(within.start - 1, files)
        made = (
            change.commit.oid
            for change in reversed(changes)
            if change.commit.position in within and change.plans <= {str(plan.id)}
        )
        return next(made, "")

    def _find_squash_merge(self, summary: CommittedArtifact, plan: Plan) -> SourceCommit | None:
        for commit in self._index.of_others_in(summary.place.folder):
            if commit.position <= summary.position and touches(plan.files, commit.paths):
                return self._index.commit(commit.oid)
        return None

    def _is_elsewhere(self, oid: str, plan: Plan, plans: Sequence[Plan]) -> bool:
        """Return whether a commit changes files of other plans of the phase, and none of this one:
        then its subject names the wrong task.
        """
        others = [each for each in plans if each.id != plan.id]
        basis = oid, plan.files, tuple(each.files for each in others)
        if others and basis not in self._elsewhere:
            commit = self._index.commit(oid)
            paths = commit.files if commit else frozenset()
            is_own = touches(plan.files, paths)
            self._elsewhere[basis] = not is_own and any(
                touches(each.files, paths) for each in others
            )
        return bool(others) and self._elsewhere[basis]


def _climb(path: str) -> list[str]:
    """Return a path and the folders above it."""
    return [path, *(path[:at] for at, char in enumerate(path) if char == "/")]


def _with_folders(commit: IndexedCommit, subjects: Iterable[str]) -> _SourceChange:
    source = [path for path in commit.own_paths if classify(path) is None]
    touched = frozenset(chain.from_iterable(map(_climb, source)))
    named = {plan: is_work for plan, is_work in sorted(map(plan_in, subjects)) if plan}
    worked = frozenset(plan for plan, is_work in named.items() if is_work)
    return _SourceChange(commit, tuple(subjects), frozenset(named), worked, touched)


def _judged_files(plan: Plan, committed: Iterable[CommittedArtifact]) -> frozenset[str]:
    """Return the files of a plan, with those of its tests: the results rest on them."""
    tests = (
        _files_in(artifact.lines, plan)
        for artifact in committed
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


def _is_file_of(plan: Plan, artifact: CommittedArtifact) -> bool:
    return artifact.place.artifact.kind == "plan" and artifact.place.plan == plan.id


def _is_named(commit: SourceCommit, names: Iterable[str]) -> bool:
    return any(commit.oid.startswith(name) for name in names)
