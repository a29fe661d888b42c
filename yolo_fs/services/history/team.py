"""The facts of every phase and of its loops, gathered from one commit: of now, or of the past."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from yolo_fs.edges.git.history import changes_in
from yolo_fs.edges.git.object_format import GitObject
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.readers import READERS
from yolo_fs.edges.store import recall, remember
from yolo_fs.edges.text_checks import Limits
from yolo_fs.ids import PhaseId
from yolo_fs.reasons import YoloError, errors
from yolo_fs.rules.artifacts.classify import (
    PLANNING_ROOT,
    classify,
    in_force,
    milestone_named,
    plans_named,
)
from yolo_fs.rules.artifacts.examine import of_sections, understand
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.rules.evidence import (
    Filed,
    PhaseFacts,
    SourceCommit,
    Switches,
    Version,
    Work,
    plans_of,
    texts,
)
from yolo_fs.rules.handoffs.contents import PHASE_HANDOFF, handoff_into
from yolo_fs.rules.loops.facts import (
    ROUNDS_OF,
    WITH_ROUNDS,
    LoopFacts,
    LoopProgress,
    goes_on,
    of_former,
)
from yolo_fs.rules.loops.rounds import loops
from yolo_fs.rules.phase.phase import Phase
from yolo_fs.schemas.config import Config
from yolo_fs.services.history.index import CommitTable, HistoryIndex
from yolo_fs.services.workspace import (
    ACTIVE,
    BESIDE,
    CONFIG,
    LINES,
    Settings,
    config_in,
    planning_home,
)

_FILE = "artifacts.json"
"""Holds, below `.git/yolo-fs`, what the artifacts of a branch say."""
_ACTIVE_BYTES = 4096
"""Of the file that names the milestone in force."""
_NONE = (None,)
_NO_PLANS: frozenset[str] = frozenset()
_MADE_FEW = 50
"""Contents of the past that are looked for in the trees of their commits, one by one."""
_MADE_AT_ONCE = 2000
"""Commits that one git is asked for; it takes 0.1 s."""
_Derived = TypeVar("_Derived")
_Item = TypeVar("_Item")
_Contents = list[tuple[Mapping[str, Any], ...]]
_CONTENTS_NEAR = 4
"""Contents that a new one is compared with: most say what one of the last has said."""
_Asked = tuple[str | None, Switches, str, tuple[str, ...]]
"""Commit, settings, where the phases in force live, and the branches of other clones."""


class Versions(Sequence[Version]):
    """Versions of an artifact: those in a row that say the same take no room of their own."""

    __slots__ = ("_begins", "_commits", "_contents", "_count", "_rows")

    def __init__(
        self, commits: CommitTable, rows: array[int], begins: array[int], contents: _Contents
    ):
        self._commits = commits
        self._rows = rows
        """Of the commits that made a version; they only grow, and may be shared with others."""
        self._begins = begins
        """Content → the first version of those in a row that say it."""
        self._contents = contents
        self._count = len(rows)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Version]:
        commits = self._commits
        edges = (*self._begins, self._count)
        for number, lines in enumerate(self._contents):
            for row in map(self._rows.__getitem__, range(edges[number], edges[number + 1])):
                yield Version(lines, commits.at_s[row], commits.height(row))

    def __getitem__(self, at: Any) -> Any:
        numbers = range(self._count)[at]
        return self._at(numbers) if isinstance(numbers, int) else tuple(map(self._at, numbers))

    def _at(self, number: int) -> Version:
        row, lines = self._rows[number], self._contents[bisect_right(self._begins, number) - 1]
        return Version(lines, self._commits.at_s[row], self._commits.height(row))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(other) != self._count:
            return False
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self._rows[: self._count]))

    def and_then(
        self,
        commits: CommitTable,
        fresh: Iterable[tuple[int, tuple[Mapping[str, Any], ...]]],
        changes: array[int],
    ) -> Versions:
        """Return these versions and later ones: rows of `commits`, and what they say. `changes`:
        the rows of all commits that changed the artifact.
        """
        rows, begins, contents = self._rows[: self._count], self._begins[:], [*self._contents]
        for row, lines in fresh:
            if contents[-1:] != [lines]:
                near = contents[-_CONTENTS_NEAR:]
                contents.append(next((one for one in near if one == lines), lines))
                begins.append(len(rows))
            rows.append(row)
        return Versions(commits, changes if rows == changes else rows, begins, contents)


@dataclass(frozen=True, slots=True)
class _Past:
    """The versions of an artifact, as far as they were read."""

    mark: tuple[object, int]
    """What `HistoryIndex.mark_of` said: it has as many commits as that."""
    last: int
    """Row of the last of them."""
    blob: str
    versions: Versions


class Team:
    """Gathers facts and folds them; keeps what it has read, for blobs and commits never change."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        pause: Callable[[], object] = lambda: None,
    ):
        """`pause`: called for each thing that is read, for what cannot wait."""
        self._repository = repository
        self._settings = settings
        self._pause = pause
        self._filed: dict[str, tuple[tuple[str, frozenset[str]], object, Filed]] = {}
        """Path → what was read last, the blob and the plans that matter to it; what tells its last
        commit; and what it says.
        """
        self._is_kept = True
        """Whether the next process finds it as well."""
        self._blobs: Mapping[str, str] = {}
        """Path → blob of the commit that was asked for last."""
        self._configs: dict[str | None, Config | None] = {}
        """Blob → the configuration that it is."""
        self._phases: tuple[_Asked, tuple[Phase, ...]] | None = None
        """What was asked last, and the answer."""
        self._pasts: dict[str, _Past] = {}
        self._made: dict[tuple[str, str], str | None] = {}
        """Commit and path → the blob that it made of it, where many were asked for."""
        self._made_from = 0
        """The first row of those that are there."""
        self._made_asked = 0
        self._derived: dict[str, tuple[object, Any]] = {}
        """Name → what callers made of something, and of what."""
        self.history_index = HistoryIndex(repository, self.paused)
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
            if self._lines.take_over(kept._lines):
                self._lines_read = kept._lines_read

    def keep(self) -> None:
        """Leave what artifacts say to the next process, unless it can ask a warm one."""
        if self._is_kept or _HELD:
            return
        said = {
            path: (blob, sorted(plans), one.lines, one.valid)
            for path, ((blob, plans), _, one) in self._filed.items()
        }
        remember(f"{self._repository.own_dir}/{_FILE}", self._read_by, said)
        self._is_kept = True

    def _recall(self, places: Mapping[str, Place]) -> None:
        kept = recall(f"{self._repository.own_dir}/{_FILE}", self._read_by) or {}
        for path, (blob, plans, lines, valid) in kept.items():
            if path in places:
                filed = Filed(places[path], tuple(lines), valid=valid)
                self._filed[path] = (blob, frozenset(plans)), None, filed

    @property
    def _read_by(self) -> str:
        """What the meaning of an artifact depends on, beside itself and the plans beside it."""
        return repr((self._settings.mode.legacy, self._settings.limits))

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
            known = tuple(_folded(facts, by_id.get(facts.phase)) for facts in self.paused(found))
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

    def paused(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the same, with a pause after each."""
        for one in items:
            yield one
            self._pause()

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
        self._forget_made()
        files = in_force(self._repository.files_at(commit, PLANNING_ROOT), home)
        self._blobs = files
        present = list(self.paused(self._file(files)))
        shared = [one for one in present if one.place.phase is None]
        of_phase: dict[PhaseId, list[Filed]] = {}
        for one in present:
            if one.place.phase:
                of_phase.setdefault(one.place.phase, list(shared)).append(one)
        done = _plans_done(present)
        handed = [one for one in present if one.place.artifact.kind == PHASE_HANDOFF]
        at_s = self.history_index.at_s(commit)
        found = tuple(
            replace(
                self._phase(phase, of_phase[phase], chosen),
                handed_over=handoff_into(phase, handed),
                earlier_plans=done,
                at_s=at_s,
                home=home,
            )
            for phase in self.paused(sorted(of_phase))
        )
        self._forget_made()
        return found

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
                kept = "config-committed.json"
                self._configs[blob] = config_in(found.body, self._repository.root, kept)
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
        asked, _, now = self._filed.get(path, (None, None, None))
        plans = self._plans_beside(place)
        filed = {blob: now for blob in blobs if now and asked == (blob, plans)}
        unread = [blob for blob in dict.fromkeys(blobs) if blob not in filed]
        objects = self._repository.objects.read_many(unread, self._settings.limits.max_file_bytes)
        for blob, found in self.paused(zip(unread, objects, strict=True)):
            filed[blob] = self._understood(place, found, plans)
        return {blob: one.lines if one.valid else () for blob, one in filed.items()}

    def _phase(self, phase: PhaseId, filed: Sequence[Filed], switches: Switches) -> PhaseFacts:
        own = tuple(filed)
        going_on = (one.place.artifact.kind for one in own if one.valid and goes_on(one))
        asking = {kind for asks in going_on for kind in ROUNDS_OF[asks]}
        return PhaseFacts(
            phase=phase,
            filed=own,
            switches=switches,
            commits=self._commits_named(own),
            task_commits=dict(self._tasks_done(own)),
            signed_off=self.history_index.sign_off_of(int(phase.number)),
            versions={
                one.place.path: self.past_of(one.place.path)
                for one in own
                if one.place.artifact.kind in asking
            },
            work=self._work_on(own) if asking else (),
        )

    def _read_past(self, path: str, known: _Past | None) -> _Past:
        history, rows = self.history_index, self.history_index.past_of(path)
        reading, count = known.mark if known else (None, 0)
        last = rows[count - 1 : count].tolist()
        if known is None or reading is not history.reading or last != [known.last]:
            none = Versions(history.commits, array("I"), array("I"), [])
            count, known = 0, _Past((None, 0), -1, "", none)
        place, blob, fresh = classify(path), known.blob, []
        kind = place.artifact.kind if place else ""
        is_first = len(rows) == 1 and path in self._blobs
        for row in rows[count:]:
            # What only one commit has changed is what that commit made of it.
            made = self._blobs[path] if is_first else self._made_by(row, path)
            if made and made != blob:
                fresh.append((row, made))
            blob = made or blob
        said = self._lines_of(path, [made for _, made in fresh])
        versions = [(row, of_former(kind, said[made])) for row, made in fresh if said[made]]
        found = known.versions.and_then(history.commits, versions, rows)
        return _Past(history.mark_of(path), rows[-1] if rows else -1, blob, found)

    def _forget_made(self) -> None:
        self._made, self._made_from, self._made_asked = {}, len(self.history_index.commits), 0

    def _made_by(self, row: int, path: str) -> str | None:
        """Return the blob that a commit made of a path. After a few, it is asked for with those of
        all later commits at once: trees cost more.
        """
        self._made_asked += 1
        if row < self._made_from and self._made_asked > _MADE_FEW:
            self._read_made(row)
        commit = self.history_index.commits.oid(row)
        if (commit, path) in self._made:
            return self._made[commit, path]
        return self._repository.blob_at(commit, path)

    def _read_made(self, row: int) -> None:
        index = self.history_index
        # At least as many again as are there, so that git is not asked for each row.
        first = max(0, min(row, 2 * self._made_from - len(index.commits)))
        for begin in range(first, self._made_from, _MADE_AT_ONCE):
            rows = range(begin, self._made_from)[:_MADE_AT_ONCE]
            logged = changes_in(self._repository, map(index.commits.oid, rows), list(index.past))
            for each in self.paused(logged):
                self._made[each.commit, each.path] = each.blob
        self._made_from = first

    def _work_on(self, filed: Iterable[Filed]) -> tuple[Work, ...]:
        plans = {str(one.place.plan) for one in filed if one.place.artifact.kind == "plan"}
        work = (
            Work(plan, one.at_s, one.height)
            for plan in plans
            for one in self.history_index.work_on(plan)
        )
        return tuple(sorted(work, key=lambda one: one.order))

    def _commits_named(self, filed: Iterable[Filed]) -> dict[str, SourceCommit]:
        lines = (line for one in filed for line in one.lines)
        names = {name for line in lines for name in texts(line.get("ch"))}
        known = {name: self.history_index.commit(name) for name in names}
        known |= {name: self._lines.commit(name) for name, one in known.items() if not one}
        return {name: commit for name, commit in known.items() if commit}

    def _tasks_done(self, filed: Iterable[Filed]) -> Iterator[tuple[str, str]]:
        """Yield task and commit where a subject names the task's id, or says its very words."""
        for one in filed:
            plan = one.place.plan if one.valid and one.place.artifact.kind == "plan" else None
            for task in one.lines[1:] if plan else ():
                name = f"{plan}/{task.get('id')}"
                words = str(plan), str(task.get("a"))
                oid = (
                    self.history_index.of_task(name)
                    or self.history_index.of_words(*words)
                    or self._lines.of_words(*words)
                    or self._lines.of_task(name)
                )
                if oid:
                    yield name, oid

    def _file(self, files: Mapping[str, str]) -> Iterator[Filed]:
        """Yield what each artifact says; `files`: path → blob. Only what is not known is read."""
        places = {path: place for path in self.paused(files) if (place := classify(path))}
        wanted = {
            path: (files[path], self._plans_beside(one))
            for path, one in self.paused(places.items())
        }
        if not self._filed:
            self._recall(places)
        unread = [path for path, one in wanted.items() if self._filed.get(path, _NONE)[0] != one]
        self._is_kept = self._is_kept and not unread
        blobs = [files[path] for path in unread]
        objects = self._repository.objects.read_many(blobs, self._settings.limits.max_file_bytes)
        for path, found in self.paused(zip(unread, objects, strict=True)):
            plans = wanted[path][1]
            self._filed[path] = wanted[path], None, self._understood(places[path], found, plans)
        for path in places:
            read, made, filed = self._filed[path]
            now = self.history_index.reading, self.history_index.row_of_change(path)
            if made != now:
                commit = self.history_index.last_change(path)
                at_s = self.history_index.at_s(commit)
                filed = filed._replace(commit=commit, at_s=at_s)
                self._filed[path] = read, now, filed
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
"""What the warm process has read, for the commands that it forks; at most one."""


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
