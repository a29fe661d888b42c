"""`autofix: safe`: a refused artifact is repaired by the daemon, where nothing is left to decide.

What its author wrote has been kept before, so that `yolo-fs kept` has it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.verdicts import Committed, Verdict
from yolo_fs.core.reasons import errors
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.system.files import Stamp
from yolo_fs.workspace.own_files import AUTOFIXED

if TYPE_CHECKING:
    from yolo_fs.checking.validate import Validator

MOST_NOTED = 50
"""Repaired files that are remembered, the latest."""


class AutofixedFile(NamedTuple):
    """A file that the daemon repaired."""

    path: str
    blob: str
    """Object id of what it holds since."""
    mended: int
    """How many errors the repair mended."""
    at: str
    """Moment, UTC, ISO 8601."""


class Autofix:
    """Repairs the refused artifacts of one work tree, each content once."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._tried: dict[str, Stamp] = {}

    def mend(
        self, refused: Mapping[str, Stamp], is_kept: Callable[[str, bytes], bool], quiet_s: float
    ) -> tuple[tuple[AutofixedFile, ...], float | None]:
        """Repair files, and return those that were, and in how many seconds to look again.

        `is_kept`: whether a content of a path can be had back; what cannot stays as it is.
        `quiet_s`: how long nobody may have written to a file.

        Raises:
            YoloError: as `fix` and `OwnNote.update`.
        """
        self._tried = {path: self._tried[path] for path in refused.keys() & self._tried.keys()}
        fresh = {path: stamp for path, stamp in refused.items() if self._tried.get(path) != stamp}
        now = time.time()
        ages = {path: now - stamp.mtime_ns / 1e9 for path, stamp in fresh.items()}
        quiet = [path for path, age in ages.items() if not 0 <= age < quiet_s]
        late = [quiet_s - age for path, age in ages.items() if path not in quiet]
        mended: list[AutofixedFile] = []
        if quiet:
            from yolo_fs.checking.validate import Validator

            validator = Validator(self._repository.root)
            try:
                for path in quiet:
                    self._tried[path] = fresh[path]
                    mended += self._mended(validator, path, is_kept)
            finally:
                validator.close()
        if mended:
            self._note(mended)
        return tuple(mended), max(0.01, min(late)) if late else None

    def _mended(
        self, validator: Validator, path: str, is_kept: Callable[[str, bytes], bool]
    ) -> Iterable[AutofixedFile]:
        from yolo_fs.checking.fix import fix, written

        full = os.path.join(self._repository.root, path)
        for file in validator.paths([full]):
            wrong = errors(file.findings)
            if not wrong or not is_kept(path, file.data):
                continue
            fixed = fix(validator, file, full, write=False)
            if fixed.questions or not fixed.is_changed or not written(validator, full, fixed):
                continue
            now = time.time()
            blob = self._repository.object_format.hash_object("blob", fixed.after).oid
            yield AutofixedFile(path, blob, len(wrong), iso(now))

    def _note(self, mended: Iterable[AutofixedFile]) -> None:
        def with_these(content: Any) -> dict[str, Any]:
            fresh = {file.path: file._asdict() for file in mended}
            older = [file for file in _files(content) if file.path not in fresh]
            files = [*(file._asdict() for file in older), *fresh.values()]
            return {"files": files[-MOST_NOTED:]}

        AUTOFIXED.update(self._repository, with_these, durable=False)


def _files(content: Any) -> tuple[AutofixedFile, ...]:
    if not isinstance(content, dict):
        return ()
    return tuple(AutofixedFile(**file) for file in content["files"])


def autofixed(repository: Repository, verdicts: Mapping[str, Verdict]) -> tuple[AutofixedFile, ...]:
    """Return the files that still are as the daemon repaired them.

    `verdicts`: path → how each candidate stands now.
    """
    return tuple(
        file
        for file in _files(AUTOFIXED.read(repository))
        if isinstance(verdict := verdicts.get(file.path), Committed) and verdict.blob == file.blob
    )
