"""Where the predicates of the gates look: in committed evidence, or in the files of a phase
directory. Pure.

Our own gates ask the commits, and ask all that the documents ask. The drop-in scripts have to
answer as the reference scripts do, which read files and ask less. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from yolo_fs.protocol.departments import DEPARTMENT_BY_NAME, PREFIXES, Dept
from yolo_fs.protocol.gates import GATES, SENTINELS, Need
from yolo_fs.reasons import errors

if TYPE_CHECKING:
    from yolo_fs.rules.phase.phase import Phase

Row = Mapping[str, Any] | None
"""The object on one line; None where the line is not a JSON object."""

STATUS = ".dept-status-"
SUMMARY = ".summary.jsonl"
RESULTS = "test-results.jsonl"
SHOW = "yolo-fs status"
VALIDATE = "yolo-fs validate {}"


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """One piece of evidence that a gate lacks."""

    what: str
    file: str
    """File that would carry it, in the phase directory."""
    line: int = 0
    """Line that says otherwise; 0 when there is none yet."""
    command: str = ""
    """What to type to see or to supply it."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.what} ({place})"


class GateSource(Protocol):
    """What a predicate may ask."""

    is_strict: ClassVar[bool]
    """Whether everything that the documents ask is asked, and not only what the reference scripts
    check."""

    @property
    def departments(self) -> Sequence[Dept]:
        """The active departments."""

    def has(self, kind: str) -> bool:
        """Whether there is an artifact of this kind."""

    def is_readable(self, kind: str) -> bool:
        """Whether there is one, and all of it can be read."""

    def rows(self, kind: str) -> Sequence[Row]:
        """Return the lines of the artifacts of this kind."""

    def lacks_design_handover(self) -> Iterator[MissingEvidence]:
        """Yield why UI/UX has not handed over."""

    def lacks_status(self) -> Iterator[MissingEvidence]:
        """Yield why no department has said how far it is."""

    def lacks_completion(self) -> Iterator[MissingEvidence]:
        """Yield the departments whose part is not done."""

    def lacks_summary(self) -> Iterator[MissingEvidence]:
        """Yield the departments without a summary."""

    def lacks_handoff(self) -> Iterator[MissingEvidence]:
        """Yield what keeps one department from taking over from another."""

    def lacks_passing_tests(self) -> Iterator[MissingEvidence] | None:
        """Return the tests that fail or were not run; None when nothing tells of tests."""

    def false_claims(self, kind: str) -> Iterator[MissingEvidence]:
        """Yield what a handoff of this kind claims and history does not have."""


@dataclass(frozen=True, slots=True)
class CommittedEvidence:
    """The commits of the branch. No file of the work tree opens a gate here."""

    phase: Phase
    is_strict: ClassVar[bool] = True

    @property
    def departments(self) -> Sequence[Dept]:
        return self.phase.facts.switches.departments

    def has(self, kind: str) -> bool:
        return bool(self.phase.facts.of_kind(kind))

    def is_readable(self, kind: str) -> bool:
        return self.has(kind)

    def rows(self, kind: str) -> Sequence[Row]:
        return self.phase.facts.lines_of(kind)

    def lacks_design_handover(self) -> Iterator[MissingEvidence]:
        """Every handed-over component is ready, and the handoff says so."""
        for number, line in enumerate(self.phase.facts.lines_of("design-handoff"), 1):
            if line.get("status") not in READY:
                name = line.get("component", "the design handoff")
                what = f"{name} is {line.get('status')}"
                yield MissingEvidence(what, "design-handoff.jsonl", number, SHOW)

    def lacks_status(self) -> Iterator[MissingEvidence]:
        """Status files are projections of what `lacks_completion` looks at directly."""
        yield from ()

    def lacks_completion(self) -> Iterator[MissingEvidence]:
        for department in self.phase.behind:
            current = department.current
            assert current is not None
            why = "; ".join(current.missing[:3]) or "nothing of it is there"
            what = f"{department.department} is at {current.step.key}: {why}"
            yield MissingEvidence(what, ", ".join(current.step.outputs), 0, SHOW)

    def lacks_summary(self) -> Iterator[MissingEvidence]:
        for department in self.departments:
            if not self.phase.facts.of_kind("summary", department):
                name = f"{DEPARTMENT_BY_NAME[department].prefix}NN-MM.summary.jsonl"
                yield MissingEvidence(f"{department} has no summary", name, 0, SHOW)

    def lacks_handoff(self) -> Iterator[MissingEvidence]:
        in_force = {
            (line.get("from_dept"), line.get("to_dept")): (number, line)
            for number, line in enumerate(self.phase.facts.lines_of("dept-handoff"), 1)
        }
        for (giver, taker), (number, line) in in_force.items():
            for blocker in line.get("blockers") or ():
                what = f"{giver} → {taker}: {blocker}"
                yield MissingEvidence(what, "dept-handoff.jsonl", number, SHOW)
        yield from self.false_claims("dept-handoff")

    def lacks_passing_tests(self) -> Iterator[MissingEvidence] | None:
        missing = tuple(self._lacks_tests())
        return iter(missing) if missing or self.has("test-results") else None

    def _lacks_tests(self) -> Iterator[MissingEvidence]:
        # The drop-in scripts, which read files only, must not pay for all that is behind it.
        from yolo_fs.rules.evidence import failing_tests

        for one in failing_tests(self.phase.facts):
            yield MissingEvidence(one.what, one.file, one.line, SHOW)
        if self.phase.facts.switches.several_departments:
            yield from self._lacks_results()

    def _lacks_results(self) -> Iterator[MissingEvidence]:
        """Where several departments work, each that wrote tests says how they ended."""
        from yolo_fs.rules.phase.progress import StepStanding

        for one in self.phase.folded.departments:
            wrote_tests = any(
                step.step.key == "test_authoring" and step.standing is StepStanding.COMPLETE
                for step in one.steps
            )
            if wrote_tests and not self.phase.facts.of_kind("test-results", one.department):
                name = f"{DEPARTMENT_BY_NAME[one.department].prefix}test-results.jsonl"
                what = f"{one.department} has no test results"
                yield MissingEvidence(what, name, 0, VALIDATE.format(name))

    def false_claims(self, kind: str) -> Iterator[MissingEvidence]:
        for finding in errors(self.phase.false_claims):
            name = finding.path.rpartition("/")[2]
            if name == f"{kind}.jsonl":
                command = VALIDATE.format(finding.path)
                yield MissingEvidence(finding.message, name, finding.line, command)


READY = frozenset({"complete", "ready", "delivered", "deferred"})
"""What a design handoff, or one of its components, says when nobody has to wait for it."""


class PhaseFolder(Protocol):
    """What may be asked of a phase directory: a port, for rules touch no disk.

    "Exists" means a regular file with content; a sentinel is an empty file and only has to be
    there.
    """

    def stands(self, name: str) -> bool:
        """Return whether a regular file has this name."""

    def has(self, name: str) -> bool:
        """Return whether a regular file has this name and content."""

    def is_json(self, name: str) -> bool:
        """Return whether the file is there and all of it parses, on as many lines as it likes."""

    def names(self, beginning: str, ending: str) -> Sequence[str]:
        """Return the names of files that begin and end so, sorted."""

    def rows(self, name: str) -> Sequence[Row]:
        """Return the lines of a file; none if it is absent, a single None if it cannot be read."""

    def object(self, name: str) -> Mapping[str, Any]:
        """Return the one JSON object of a file; empty when there is none."""


@dataclass(frozen=True, slots=True)
class FolderEvidence:
    """The files of a phase directory, whether committed or not."""

    folder: PhaseFolder
    departments: Sequence[Dept] = ()
    is_strict: ClassVar[bool] = False

    def has(self, kind: str) -> bool:
        return any(map(self.folder.has, self._files(kind)))

    def is_readable(self, kind: str) -> bool:
        files = [name for name in self._files(kind) if self.folder.has(name)]
        return bool(files) and all(map(self.folder.is_json, files))

    def rows(self, kind: str) -> Sequence[Row]:
        return [row for name in self._files(kind) for row in self.folder.rows(name)]

    def _files(self, kind: str) -> list[str]:
        return [f"{prefix}{kind}.jsonl" for prefix in PREFIXES]

    def lacks_design_handover(self) -> Iterator[MissingEvidence]:
        rows = [gate for gate in GATES if Need.UX_SENTINEL in gate.needs]
        files = [file for gate in rows for file in gate.sentinels]
        if not any(map(self.folder.stands, files)):
            yield MissingEvidence("no sentinel", files[0])

    def lacks_status(self) -> Iterator[MissingEvidence]:
        if not self.folder.names(STATUS, ".json"):
            yield MissingEvidence("no status file", f"{STATUS}*.json")

    def lacks_completion(self) -> Iterator[MissingEvidence]:
        for name in self.folder.names(STATUS, ".json"):
            if self.folder.object(name).get("status") != "complete":
                yield MissingEvidence("not complete", name)

    def lacks_summary(self) -> Iterator[MissingEvidence]:
        if not self.folder.names("", SUMMARY):
            yield MissingEvidence("no summary", f"*{SUMMARY}")

    def lacks_handoff(self) -> Iterator[MissingEvidence]:
        for department in self.departments:
            if not has_handed_over(self.folder, department):
                yield MissingEvidence("no sentinel", f".handoff-{department}-complete")

    def lacks_passing_tests(self) -> Iterator[MissingEvidence] | None:
        return self._failing_tests() if self.folder.has(RESULTS) else None

    def _failing_tests(self) -> Iterator[MissingEvidence]:
        """The reference script knows one file of results, and no department's own."""
        for number, row in enumerate(self.folder.rows(RESULTS), 1):
            failed = row.get("fl") if row is not None else None
            if row is None or (isinstance(failed, int | float) and failed > 0):
                yield MissingEvidence("tests fail", RESULTS, number)

    def false_claims(self, kind: str) -> Iterator[MissingEvidence]:
        """Without commits there is nothing to compare a claim with."""
        yield from ()


def has_handed_over(folder: PhaseFolder, department: Dept) -> bool:
    """Return whether the department's sentinel is there; of two spellings one is enough."""
    return any(folder.stands(row.file) for row in SENTINELS if row.department is department)


def first(rows: Sequence[Row]) -> Mapping[str, Any]:
    """Return the first line; empty when there is none, or when it is not a JSON object."""
    return (rows[0] if rows else None) or {}


def says(row: Row, key: str, *values: object) -> bool:
    """Return whether a line has one of the values under a key."""
    return row is not None and row.get(key) in values
