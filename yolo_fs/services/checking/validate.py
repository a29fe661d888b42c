"""Validates files wherever they are: the planning tree, any path, what is staged, one text; and the examples.

Nothing is changed and nothing waits: whoever asks wants the verdict on the bytes as they are now.
See docs/faults.md#f50 and #f53.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from yolo_fs.edges.files import FileEntry, walk
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, Finding, Reason, YoloError, errors
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.recognise import (
    InTree,
    example_of,
    in_tree,
    kind_of_name,
    place_of_name,
    tells_itself,
)
from yolo_fs.schemas.catalogue import ANY_MESSAGE, Kind
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.services.checking.checker import CheckedFile, Judge
from yolo_fs.services.checking.snapshots import Blobs, Staged, WorkTree
from yolo_fs.services.settings import Settings, load

HANDOFF = "HANDOFF.md"
STDIN = "-"


@dataclass(slots=True)
class Tally:
    """How many files were looked at, and how they fared."""

    checked: int = 0
    errors: int = 0
    warnings: int = 0
    examples: Counter[str] = field(default_factory=Counter)
    """`ok` and `bad` examples, and how many of them `disagree` with their names."""

    def add(self, judged: CheckedFile) -> None:
        """Count one file."""
        self.checked += 1
        wrong = errors(judged.findings)
        self.errors += len(wrong)
        self.warnings += len(judged.findings) - len(wrong)
        if judged.example:
            self.examples["bad" if judged.example.expected else "ok"] += 1
            self.examples["disagree"] += bool(wrong)


class Validator:
    """Judges files under the settings of the repository that it is started in, if there is one."""

    def __init__(self, start: str, kind: Kind | None = None):
        """Work from the directory `start`; `kind`: what every file is, whatever its name says."""
        self._start = os.path.abspath(start)
        self._kind = kind
        self._index = os.environ.get(
            "GIT_INDEX_FILE"
        )  # a hook of `git commit PATH` names an index of its own
        self._repository = _repository(start)
        self._settings = _settings(self._repository)
        self._judge = Judge(self._repository, self._settings, kind)

    @property
    def max_bytes(self) -> int:
        """The size of the largest file that is read."""
        return self._settings.policy.max_file_bytes

    def close(self) -> None:
        """End the helper processes."""
        if self._repository:
            self._repository.close()

    # --- what is asked for ---

    def tree(self) -> Iterator[CheckedFile]:
        """Judge every candidate of the repository's planning tree, and its other handoff files.

        Raises:
            YoloError: NOT_A_REPOSITORY; NOT_INITIALISED when there is no planning tree.

        """
        root = self._own_repository().root
        if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
            hint = "'yolo-fs init' makes one; or name the files to check."
            message = f"{root} has no {PLANNING_ROOT}"
            raise YoloError(Reason.NOT_INITIALISED, message, hint=hint, exit_code=Exit.NOT_HERE)
        yield from self._folder(root, PLANNING_ROOT, "")
        for sessions in self._settings.policy.directive_roots:
            for entry in walk(root, sessions):
                if entry.path.endswith(f"/{HANDOFF}"):
                    yield self._file(root, entry.path, entry.path)

    def paths(self, paths: Iterable[str]) -> Iterator[CheckedFile]:
        """Judge files, and what can be recognised in folders."""
        for path in paths:
            full = os.path.normpath(os.path.join(self._start, path))
            if os.path.isdir(full) and not os.path.islink(full):
                yield from self._folder(
                    full, "", "" if path in (".", "./") else f"{path.rstrip('/')}/"
                )
            else:
                yield self._file(os.path.dirname(full), os.path.basename(full), path)

    def staged(self, paths: Sequence[str] = ()) -> Iterator[CheckedFile]:
        """Judge what the index would commit, `paths` alone if there are any."""
        repository = self._own_repository()
        entries = self._staged_entries(repository)
        wanted = {
            os.path.relpath(os.path.join(self._start, path), repository.root) for path in paths
        }
        blobs = Blobs(repository, self.max_bytes)
        snapshot = Staged(blobs, entries)
        tip = repository.head().tip
        try:
            for path, oid in entries.items():
                is_wanted = not wanted or any(
                    path == one or path.startswith(f"{one}/") for one in wanted
                )
                if is_wanted and self._matters(path) and repository.blob_at(tip, path) != oid:
                    yield self._judge.judge(
                        path, blobs.read(oid, path), InTree(repository.root, path), snapshot
                    )
        finally:
            blobs.close()

    def text(self, data: bytes) -> CheckedFile:
        """Judge one text, by itself a message."""
        return self._judge.judge_as(self._kind or ANY_MESSAGE, STDIN, data)

    # --- files ---

    def _folder(self, root: str, below: str, shown: str) -> Iterator[CheckedFile]:
        for entry in walk(root, below):
            if entry.path == below or self._is_candidate(root, entry):
                yield self._file(root, entry.path, shown + entry.path)

    def _is_candidate(self, root: str, entry: FileEntry) -> bool:
        """Tell whether a file that was found, not named, is one of ours."""
        full, name = os.path.join(root, entry.path), os.path.basename(entry.path)
        if "/.git/" in f"/{entry.path}":
            return False
        if self._kind or example_of(full):
            return True
        if tree := in_tree(full):
            hides_files = entry.refused is not None and (
                entry.refused is Reason.UNREADABLE or os.path.isdir(full)
            )
            return hides_files or self._matters(tree.path)
        if tells_itself(name) and (place_of_name(name) or kind_of_name(name)):
            return True
        return (
            name.endswith(".json")
            and not entry.refused
            and self._kind_within(root, entry.path) is not None
        )

    def _matters(self, path: str) -> bool:
        """Tell whether a path relative to the repository is one that we have something to say about."""
        name = os.path.basename(path)
        is_ours = path.startswith(f"{PLANNING_ROOT}/") and kind_of_name(name) is not None
        return classify(path) is not None or is_ours or name == HANDOFF

    def _kind_within(self, root: str, path: str) -> Kind | None:
        data = WorkTree(root, self.max_bytes).content(path)
        return None if isinstance(data, Finding) else self._judge.kind_said(data, path)

    def _file(self, root: str, below: str, shown: str) -> CheckedFile:
        """Judge a file; it is read from `root` without following a link below it."""
        full = os.path.join(root, below)
        data = WorkTree(root, self._judge.limits_of(full).max_file_bytes).content(below)
        tree = in_tree(full)
        snapshot = WorkTree(tree.root if tree else root, self.max_bytes)
        return self._judge.judge(shown, data, tree, snapshot, full)

    def _own_repository(self) -> Repository:
        return self._repository or Repository(self._start)

    def _staged_entries(self, repository: Repository) -> dict[str, str]:
        """Return path → blob id of everything that the index has; unmerged paths are left to git."""
        with _index_of(self._index):
            return {
                entry.path: entry.oid
                for entry in repository.staged()
                if entry.is_file and not entry.is_conflicted
            }


def _repository(start: str) -> Repository | None:
    try:
        return Repository(start)
    except YoloError as error:
        if error.reason in (Reason.NOT_A_REPOSITORY, Reason.BARE_REPOSITORY):
            return None
        raise


def _settings(repository: Repository | None) -> Settings:
    """Return the settings in force; the defaults where the configuration itself is what is wrong."""
    if repository is not None:
        try:
            return load(repository.root)
        except YoloError as error:
            if error.reason is not Reason.BAD_CONFIG:
                raise
    return Settings(Config(), Policy())


@contextmanager
def _index_of(path: str | None) -> Iterator[None]:
    """Let git read another index than the repository's own."""
    if path is None:
        yield
        return
    os.environ["GIT_INDEX_FILE"] = path
    try:
        yield
    finally:
        os.environ.pop("GIT_INDEX_FILE", None)
