"""Judges the bytes of one file, whatever it is: an artifact at its place, a message, an example, or nothing known.

See docs/faults.md#f53.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.lines import Limits, read_object
from yolo_fs.edges.readers import READERS
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.artifacts.catalogue import kind_named
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.recognise import (
    Example,
    InTree,
    example_of,
    kind_of_content,
    kind_of_name,
    place_of_kind,
    place_of_name,
)
from yolo_fs.rules.artifacts.secrets import find_secrets
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.schemas.catalogue import Kind
from yolo_fs.services.checking.snapshots import CommitsExist, Examiner, Snapshot
from yolo_fs.services.settings import Settings

_SMALL = Limits(max_line_bytes=4096, max_file_bytes=16384, max_lines=1000)
"""What the examples of the readers are read with, so that none of them has to be large."""


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file and what is wrong with it."""

    path: str
    """As the asker knows it."""
    findings: tuple[Finding, ...] = ()
    kind: Kind | None = None
    """None when nothing tells what the file is."""
    data: bytes = b""
    """What was read."""
    example: Example | None = None


class Judge:
    """Judges bytes under one configuration."""

    def __init__(self, repository: Repository | None, settings: Settings, kind: Kind | None):
        """`kind`: what every file is, whatever its name says."""
        self._repository = repository
        self._settings = settings
        self._kind = kind
        self._examiner = self._examiner_with(self._commits_exist())
        self._free_examiner = self._examiner_with(_take_commits_on_trust)

    def judge(
        self,
        shown: str,
        data: bytes | Finding,
        tree: InTree | None,
        snapshot: Snapshot,
        full: str = "",
    ) -> CheckedFile:
        """Judge a file as far as its place, else its name, else its content tells what it is.

        `shown`: its path as the asker knows it. `full`: its absolute path, where it lies on disk.
        """
        example = example_of(full)
        if isinstance(data, Finding):
            refused = CheckedFile(shown, (replace(data, path=shown),))
            return _by_its_name(refused, example) if example else refused
        if self._kind:
            return self.judge_as(self._kind, shown, data)
        if tree and (place := classify(tree.path)):
            return self._judged_at(place, shown, data, snapshot, is_own=self._is_own(tree.root))
        if example:
            limits = _SMALL if example.is_small else None
            return _by_its_name(self.judge_as(example.kind, shown, data, limits), example)
        name = os.path.basename(full or shown)
        if place := place_of_name(name):
            return self._judged_at(replace(place, path=shown), shown, data, snapshot, is_own=False)
        if kind := kind_of_name(name):
            return self.judge_as(kind, shown, data)
        if name.endswith(".json"):
            return self._judged_by_content(shown, data)
        return CheckedFile(shown, (_unrecognised(shown),))

    def _judged_at(
        self, place: Place, shown: str, data: bytes, snapshot: Snapshot, *, is_own: bool
    ) -> CheckedFile:
        examiner = self._examiner if is_own else self._free_examiner
        findings = examiner.examine(place, data, snapshot).findings
        if not errors(findings):
            findings += find_secrets(data, shown, frozenset(self._settings.policy.secrets_allowed))
        kind = kind_named(f"artifact/{place.artifact.kind}")
        return CheckedFile(
            shown, tuple(replace(finding, path=shown) for finding in findings), kind, data
        )

    def _judged_by_content(self, shown: str, data: bytes) -> CheckedFile:
        if kind := self.kind_said(data, shown):
            return self.judge_as(kind, shown, data)
        findings = errors(read_object(data, shown, self._settings.limits).findings)
        return CheckedFile(shown, findings or (_unrecognised(shown),))

    def judge_as(
        self, kind: Kind, shown: str, data: bytes, limits: Limits | None = None
    ) -> CheckedFile:
        """Judge bytes that stand alone: nothing around them is known."""
        if place := place_of_kind(kind, shown):
            return CheckedFile(
                shown, self._free_examiner.examine(place, data, _NOTHING).findings, kind, data
            )
        reading = READERS[kind.format](data, shown, limits or self._settings.limits)
        found = tuple(
            fault.as_finding(shown, line)
            for line, fault in kind.faults(reading.records, self._settings.mode)
        )
        return CheckedFile(shown, reading.findings + found, kind, data)

    def kind_said(self, data: bytes, path: str) -> Kind | None:
        """Return the kind that a JSON object names itself, or None."""
        records = read_object(data, path, self._settings.limits).records
        return kind_of_content(records[0].value) if records else None

    def limits_of(self, full: str) -> Limits:
        """Return the limits that a file is read with."""
        example = example_of(full)
        return _SMALL if example and example.is_small else self._settings.limits

    def _examiner_with(self, commits_exist: CommitsExist) -> Examiner:
        return Examiner(self._settings.limits, self._settings.mode, commits_exist)

    def _commits_exist(self) -> CommitsExist:
        return self._repository.commits_exist if self._repository else _take_commits_on_trust

    def _is_own(self, root: str) -> bool:
        """Tell whether a planning tree is that of our repository: only then are its commits known."""
        return self._repository is not None and os.path.realpath(root) == self._repository.root


class _Nothing:
    """A tree without any file."""

    def names(self, folder: str) -> Iterable[str]:
        return ()

    def content(self, path: str) -> Finding:
        return Finding(Reason.FILE_MISSING, path)

    def key(self, path: str) -> None:
        return None


_NOTHING = _Nothing()


def _by_its_name(judged: CheckedFile, example: Example) -> CheckedFile:
    """Judge an example by its name: a good one has no error, a bad one has exactly its reason first."""
    if example.expected is None:
        return replace(judged, example=example)
    first = next(iter(errors(judged.findings)), None)
    if first and first.reason is example.expected:
        return replace(judged, findings=(), example=example)
    message = (
        f"the first error is {first.reason.value}: {first.message}"
        if first
        else "there is no error"
    )
    expected = f"{example.expected.value} first, as the file is named"
    wrong = Finding(
        Reason.NAME_MISMATCH, judged.path, first.line if first else 0, "", message, expected
    )
    return replace(judged, findings=(wrong,), example=example)


def _take_commits_on_trust(names: Sequence[str]) -> Mapping[str, bool]:
    """Outside its repository a file's commits can be neither found nor missed."""
    return dict.fromkeys(names, True)


def _unrecognised(shown: str) -> Finding:
    return Finding(
        Reason.UNKNOWN_NAME,
        shown,
        message="nothing tells what this file is",
        expected="a name of the protocol, such as critique.jsonl or 01-02.plan.jsonl, or a message with its `type`",
        hint="say it with --type KIND; 'yolo-fs schema list' shows the kinds",
    )
