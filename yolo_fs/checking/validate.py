"""Validates files anywhere: the planning tree, any path, the index, a text on stdin.

Nothing is changed and nothing waits: the verdict is on the bytes as they are now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from yolo_fs.artifacts.catalogue import ANY_ENVELOPE, ANY_MESSAGE, Kind, find_kind
from yolo_fs.artifacts.classify import (
    ENVELOPE,
    PLANNING_ROOT,
    InTree,
    classify,
    has_own_name,
    in_tree,
    kind_of_content,
    kind_of_name,
    name_of_kind,
    place_of_name,
)
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.artifacts.misnamed import (
    finding_on_document,
    is_beside_its_artifact,
    is_document,
    kind_called,
    misnamed,
    misplaced,
    name_meant_by,
    nested,
    place_meant_by,
    with_phase,
)
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.lost_records import lost_from, restored
from yolo_fs.checking.snapshots import (
    BlobReader,
    NoTree,
    Snapshot,
    Staged,
    WorkTree,
    assume_commits_exist,
)
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.lifecycle import HANDOFF
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.layout import Format, Record
from yolo_fs.system.files import FileEntry, names_in, walk
from yolo_fs.system.readers import read_object
from yolo_fs.workspace.planning_tree import (
    doubled_phases,
    folders_written_to,
    found_from,
    phases_in,
    trees_above,
)
from yolo_fs.workspace.settings import Settings, load_in_force, not_initialised, user_config_path
from yolo_fs.workspace.user_config import examine

STDIN = "-"
_PACKET = re.compile(rb"\s*---\s*\r?\nhandoff:")
"""How a HANDOFF.md begins."""


class CheckedFile(NamedTuple):
    """One file and what is wrong with it."""

    path: str
    """As the caller spells it."""
    findings: tuple[Finding, ...] = ()
    kind: Kind | None = None
    """None when the type of the file cannot be determined."""
    data: bytes = b""
    """What was read."""
    records: tuple[Record, ...] = ()


class Validator:
    """Checks files under the settings of the repository that contains the start directory, if
    any.
    """

    def __init__(self, start: str, kind: Kind | None = None):
        """`start`: the directory to work from; `kind`: of every file, whatever its name says."""
        self._start = os.path.abspath(start)
        self._kind = kind
        # The pre-commit hook of `git commit PATH` runs with a temporary index.
        self._index = os.environ.get("GIT_INDEX_FILE")
        self._repository = _repository(start)
        self._settings = _settings(self._repository)
        self._checker = Checker(self._settings)

    @property
    def max_bytes(self) -> int:
        """Maximum size of a file that is read, in bytes."""
        return self._settings.policy.max_file_bytes

    @property
    def root(self) -> str:
        """Absolute path of the repository; empty outside of one."""
        return self._repository.root if self._repository else ""

    @property
    def aliases(self) -> Mapping[str, Mapping[str, str]]:
        """The meaning of this team's own words; see `Policy.aliases`."""
        return self._settings.policy.aliases

    def close(self) -> None:
        """End the helper processes."""
        if self._repository:
            self._repository.close()

    def tree(self) -> Iterator[CheckedFile]:
        """Check every candidate of the repository, and the HANDOFF.md of each directive session,
        also under nearly that name.

        Raises:
            YoloError: NOT_A_REPOSITORY; NOT_INITIALISED when there is no planning tree.

        """
        root = self._open_repository().root
        if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
            raise not_initialised(root, "'yolo-fs init' makes one; or name the files to check.")
        for folder in (PLANNING_ROOT, HANDOFF_FOLDER):
            yield from self._folder(root, folder, "")
        for folder in trees_above(self._start, root):
            yield from self._folder(root, folder, "")
        for sessions in self._settings.policy.directive_roots:
            for entry in walk(root, sessions):
                if entry.path.endswith(f"/{HANDOFF}") or misnamed(entry.path):
                    yield self._file(root, entry.path, entry.path)
        for folder in folders_written_to(root):
            yield from self._folders_like_files(root, os.path.relpath(folder, root))
        for finding in doubled_phases(root):
            yield CheckedFile(finding.path, (finding,))

    def paths(self, paths: Iterable[str]) -> Iterator[CheckedFile]:
        """Check files, and the recognised files in folders."""
        for path in paths:
            full = self._find(path)
            if self._kind is None and _is_user_config(full):
                yield self._check_user_config(path)
            elif _is_folder(full) and not _is_like_file(full):
                shown = "" if path in (".", "./") else f"{path.rstrip('/')}/"
                yield from self._folder(full, "", shown)
            else:
                checked = self._file(os.path.dirname(full), os.path.basename(full), path)
                yield self._add_misplacement(checked, full)

    def _check_user_config(self, shown: str) -> CheckedFile:
        """Check the user's own configuration, which may be a link."""
        folder, name = os.path.split(os.path.realpath(user_config_path()))
        data = WorkTree(folder, self.max_bytes).content(name)
        if isinstance(data, Finding):
            return CheckedFile(shown, (replace(data, path=shown),))
        return CheckedFile(shown, examine(data, shown), data=data)

    def staged(
        self, paths: Sequence[str] = (), *, with_records: bool = False
    ) -> Iterator[CheckedFile]:
        """Check what the index would commit; only `paths`, if given.

        `with_records`: also whether it lacks records of the branch, which a person may remove.
        """
        repository = self._open_repository()
        entries = self._list_staged_entries(repository)
        wanted = [
            os.path.relpath(os.path.join(self._start, path), repository.root) for path in paths
        ]
        blobs = BlobReader(repository, self.max_bytes)
        snapshot = Staged(blobs, entries, repository.root)
        tip = repository.head().tip
        for path, oid in entries.items():
            if wanted and not any(_is_below(path, folder) for folder in wanted):
                continue
            if self._is_ours(path) and repository.blob_at(tip, path) != oid:
                location = InTree(repository.root, path)
                checked = self._check(path, blobs.read(oid, path), location, snapshot)
                is_whole = with_records and classify(path) is not None
                yield self._add_lost_records(checked, location) if is_whole else checked

    def text(self, data: bytes) -> CheckedFile:
        """Check one text: what it says that it is, by default a message."""
        kind = self._kind or self._kind_of_text(data)
        # A message is no file, of which the rest may be still to come.
        whole = data if kind.format is not Format.JSON or data.endswith(b"\n") else data + b"\n"
        return self._check_kind(kind, STDIN, whole)

    def _kind_of_text(self, data: bytes) -> Kind:
        """Return the kind that a text says that it is, by default any message."""
        if _PACKET.match(data):
            return kind_called(HANDOFF)
        return self._kind_of_content(data, STDIN) or ANY_MESSAGE

    def _folder(self, root: str, below: str, shown: str) -> Iterator[CheckedFile]:
        for entry in walk(root, below):
            if entry.path == below or self._is_candidate(root, entry):
                yield self._file(root, entry.path, shown + entry.path)

    def _folders_like_files(self, root: str, below: str) -> Iterator[CheckedFile]:
        """Yield what is wrong with each folder that has the name of an artifact: no file can."""
        full = os.path.join(root, below)
        for name in sorted(os.listdir(full)) if _is_folder(full) else ():
            if _is_folder(os.path.join(full, name)) and _is_like_file(os.path.join(full, name)):
                yield self._file(root, f"{below}/{name}", f"{below}/{name}")

    def _is_candidate(self, root: str, entry: FileEntry) -> bool:
        """Return whether a file that was found, not named by the caller, is to be checked."""
        full, name = os.path.join(root, entry.path), os.path.basename(entry.path)
        if "/.git/" in f"/{entry.path}":
            return False
        if self._kind:
            return True
        location = in_tree(full)
        if location and (self._is_ours(location.path) or self._is_misnamed(location)):
            return True
        if location and location.path.startswith(f"{PLANNING_ROOT}/"):
            # A refused folder may hide artifacts.
            hides_files = entry.refused is Reason.UNREADABLE or os.path.isdir(full)
            return entry.refused is not None and hides_files
        if has_own_name(name) and (place_of_name(name) or kind_of_name(name)):
            return True
        if entry.refused or not name.endswith(".json"):
            return False
        data = WorkTree(root, self.max_bytes).content(entry.path)
        return isinstance(data, bytes) and self._kind_of_content(data, entry.path) is not None

    def _is_misnamed(self, location: InTree) -> bool:
        """Return whether nobody reads a file for its name. A document that is committed, or lies
        beside its artifact, is its author's own.
        """
        wrong = misnamed(location.path)
        if wrong is None or not is_document(location.path):
            return wrong is not None
        folder = os.path.dirname(location.path)
        names = names_in(os.path.join(location.root, folder))
        if is_beside_its_artifact(location.path, {f"{folder}/{name}" for name in names}):
            return False
        repository = self._repository if self._is_own(location) else None
        tip = repository.head().tip if repository else None
        return not (repository and repository.blob_at(tip, location.path))

    def _misnamed(self, location: InTree) -> Finding | None:
        """Return the finding on a name that is nearly an artifact's, with the phase that is meant
        if only one may be.
        """
        wrong = misnamed(location.path)
        return with_phase(wrong, phases_in(location.root)) if wrong else None

    def _is_ours(self, path: str) -> bool:
        """Return whether a path relative to the repository is one that is checked."""
        name = os.path.basename(path)
        if path.startswith(f"{PLANNING_ROOT}/") and name_of_kind(name) is not None:
            return True
        return classify(path) is not None or name == HANDOFF

    def _file(self, root: str, below: str, shown: str) -> CheckedFile:
        """Check a file; it is read from `root` without following a link below it."""
        data = WorkTree(root, self.max_bytes).content(below)
        location = self._locate(os.path.join(root, below))
        return self._check(shown, data, location, self._look_from(location, root))

    def _look_from(self, location: InTree | None, root: str) -> WorkTree:
        """Return what lies beside a file; `root`: where it is in no planning tree."""
        tree_root = location.root if location else root
        commits_exist = assume_commits_exist
        if self._repository and os.path.realpath(tree_root) == self._repository.root:
            commits_exist = self._repository.commits_may_exist
        return WorkTree(tree_root, self.max_bytes, commits_exist)

    def _locate(self, full: str) -> InTree | None:
        """Return the place of a file in its planning tree; for a HANDOFF.md, or one of nearly that
        name, anywhere.
        """
        location = in_tree(full)
        if location or self._repository is None:
            return location
        root, (folder, name) = self._repository.root, os.path.split(full)
        below = os.path.relpath(os.path.join(os.path.realpath(folder), name), root)
        is_handoff = name == HANDOFF or misnamed(below) is not None
        return InTree(root, below) if is_handoff and not below.startswith("../") else None

    def _check_nested_tree(self, location: InTree) -> Finding | None:
        """Return a finding on a planning tree below the root of the repository.

        Only the one at the root is watched.
        """
        if self._repository is None or not location.path.startswith(f"{PLANNING_ROOT}/"):
            return None
        top, folder = self._repository.root, os.path.realpath(location.root)
        if not folder.startswith(f"{top}/") or os.path.lexists(f"{folder}/.git"):
            return None
        return nested(f"{os.path.relpath(folder, top)}/{location.path}")

    def again(self, full: str, shown: str, data: bytes) -> CheckedFile:
        """Check a file as if it had this content."""
        location = self._locate(full)
        beside = self._look_from(location, os.path.dirname(full))
        return self._check(shown, data, location, beside)

    def with_records(self, full: str, data: bytes) -> bytes:
        """Return a content of a file with its lost records of the branch restored."""
        location = self._locate(full)
        place = classify(location.path) if location else None
        if location is None or place is None or not self._is_own(location):
            return data
        return restored(self._open_repository(), place, data)

    def _add_lost_records(self, file: CheckedFile, location: InTree) -> CheckedFile:
        """Add a finding for each record of the branch that an otherwise valid file lacks."""
        place = classify(location.path)
        if place is None or not self._is_own(location) or errors(file.findings):
            return file
        repository = self._open_repository()
        tip = repository.head().tip
        blob = repository.blob_at(tip, place.path)
        lost = lost_from(repository, place, file.data, blob, tip)
        named = tuple(replace(finding, path=file.path) for finding in lost)
        return file._replace(findings=file.findings + named)

    def _add_misplacement(self, file: CheckedFile, full: str) -> CheckedFile:
        """Add a finding to a misplaced file that the caller named, with the place where it
        belongs.
        """
        root = self._repository.root if self._repository and not self._kind else ""
        if not root or not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
            return file
        path = os.path.relpath(full, root)
        is_told = any(each.reason is Reason.NOT_AN_ARTIFACT for each in file.findings)
        wrong = None if is_told or path.startswith("../") else misplaced(path)
        added = (replace(wrong, path=file.path),) if wrong else ()
        return file._replace(findings=file.findings + added)

    def _is_own(self, location: InTree) -> bool:
        """Return whether a place is in the current repository."""
        root = self._repository.root if self._repository else None
        return os.path.realpath(location.root) == root

    def full_path(self, file: CheckedFile, *, of_tree: bool) -> str:
        """Return the absolute path of a checked file.

        `of_tree`: its path is relative to the repository, not to the caller.
        """
        if of_tree:
            return os.path.normpath(os.path.join(self._open_repository().root, file.path))
        return self._find(file.path)

    def _find(self, path: str) -> str:
        """Return the absolute path of a file that the caller named."""
        return found_from(self._start, self._repository.root if self._repository else "", path)

    def _check(
        self, shown: str, data: bytes | Finding, location: InTree | None, snapshot: Snapshot
    ) -> CheckedFile:
        """Check a file by its place, else by its name, else by its content."""
        if isinstance(data, Finding):
            is_absent = data.reason is Reason.FILE_MISSING
            is_by_name = not is_absent and not self._kind
            named = self._misnamed(location) if location and is_by_name else None
            fault = _tell_example(data, shown) if is_absent and place_of_name(shown) else data
            faults = (named, fault) if named else (fault,)
            return CheckedFile(shown, tuple(replace(each, path=shown) for each in faults))
        if self._kind:
            return self._check_kind(self._kind, shown, data)
        if location and (outside := self._check_nested_tree(location)):
            return CheckedFile(shown, (replace(outside, path=shown),))
        if location and (place := classify(location.path)):
            checked = self._check_place(place, shown, data, snapshot)
            is_staged = isinstance(snapshot, Staged)  # `staged` asks for it
            return checked if is_staged else self._add_lost_records(checked, location)
        wrong = self._misnamed(location) if location else None
        if wrong and not _is_below(wrong.path, HANDOFF_FOLDER):
            named = replace(wrong, path=shown)
            meant = place_meant_by(wrong)
            if meant is None:  # there is no data in a document
                return CheckedFile(shown, (named, *self._checker.find_secrets(shown, data)))
            is_known = classify(wrong.expected) is not None
            around = snapshot if is_known else NoTree()  # which phase is meant is not known
            under_it = self._check_place(meant, shown, data, around)
            return under_it._replace(findings=(named, *under_it.findings))
        name = os.path.basename(shown)
        if place := place_of_name(name):
            if location and name == HANDOFF:  # its session's README lies beside it
                return self._check_place(place._replace(path=location.path), shown, data, snapshot)
            return self._check_place(place, shown, data, NoTree())
        if kind := kind_of_name(name):
            return self._check_kind(kind, shown, data)
        if name.endswith(".json"):
            if kind := self._kind_of_content(data, shown):
                if kind is ANY_ENVELOPE and location and _is_below(location.path, HANDOFF_FOLDER):
                    place = ArtifactPath(location.path, ENVELOPE)
                    return self._check_place(place, shown, data, snapshot)
                return self._check_kind(kind, shown, data)
            findings = errors(read_object(data, shown, self._settings.limits).findings)
            return CheckedFile(shown, findings or (_finding_for_unknown_type(shown),))
        return CheckedFile(shown, (_finding_for_unknown_type(shown),))

    def _check_place(
        self, place: ArtifactPath, shown: str, data: bytes, snapshot: Snapshot
    ) -> CheckedFile:
        checked = self._checker.check(place, data, snapshot)
        name = place.artifact.kind
        kind = find_kind(f"artifact/{name}") or find_kind(name)
        findings = tuple(  # one in another file, such as a session's README, keeps its own place
            replace(finding, path=shown) if finding.path == place.path else finding
            for finding in checked.findings
        )
        return CheckedFile(shown, findings, kind, data, checked.records)

    def _check_kind(self, kind: Kind, shown: str, data: bytes) -> CheckedFile:
        checked = self._checker.check_kind(kind, shown, data)
        return CheckedFile(shown, checked.findings, kind, data, checked.records)

    def _kind_of_content(self, data: bytes, path: str) -> Kind | None:
        """Return the kind that a JSON object names, or None."""
        records = read_object(data, path, self._settings.limits).records
        return kind_of_content(records[0].value) if records else None

    def _open_repository(self) -> Repository:
        return self._repository or Repository(self._start)

    def _list_staged_entries(self, repository: Repository) -> dict[str, str]:
        """Return path → blob id of every entry of the index, without unmerged paths."""
        with _index_of(self._index):
            return {
                entry.path: entry.oid
                for entry in repository.staged()
                if entry.is_file and not entry.is_conflicted
            }


def _is_folder(full: str) -> bool:
    return os.path.isdir(full) and not os.path.islink(full)


def _is_user_config(full: str) -> bool:
    own = user_config_path()
    return os.path.lexists(own) and os.path.realpath(full) == os.path.realpath(own)


def _is_like_file(full: str) -> bool:
    location = in_tree(full)
    path = location.path if location else ""
    return classify(path) is not None or misnamed(path) is not None


def _is_below(path: str, folder: str) -> bool:
    return folder in (".", path) or path.startswith(f"{folder}/")


def _tell_example(absent: Finding, shown: str) -> Finding:
    """Return the finding on an artifact that is not there, with the command that shows one."""
    name = os.path.basename(shown)
    hint = f"Write it, or correct the path. 'yolo-fs schema example {name}' prints a valid one."
    return replace(absent, hint=hint, command="")


def _finding_for_unknown_type(shown: str) -> Finding:
    if is_document(shown) and (meant := name_meant_by(shown)):
        return finding_on_document(shown, meant)
    return Finding(
        Reason.UNKNOWN_NAME,
        shown,
        message="cannot determine the file's type",
        expected="a name of the protocol, such as critique.jsonl or 01-02.plan.jsonl, or a "
        "message with its `type`",
        hint="pass --type KIND; 'yolo-fs schema list' shows the kinds",
    )


def _repository(start: str) -> Repository | None:
    try:
        return Repository(start)
    except YoloError as error:
        if error.reason in (Reason.NOT_A_REPOSITORY, Reason.BARE_REPOSITORY):
            return None
        raise


def _settings(repository: Repository | None) -> Settings:
    """Return the settings in force, even if the configuration itself is invalid."""
    if repository is None:
        return Settings(Config(), Policy())
    return load_in_force(repository.root).settings


@contextmanager
def _index_of(path: str | None) -> Iterator[None]:
    """Make git use another index than the repository's own."""
    if path is None:
        yield
        return
    os.environ["GIT_INDEX_FILE"] = path
    try:
        yield
    finally:
        os.environ.pop("GIT_INDEX_FILE", None)
