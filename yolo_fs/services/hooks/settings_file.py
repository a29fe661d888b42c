"""One settings file of an agent's host that we add to, and how it was before.

What the file was is kept in `.git/yolo-fs`, so that removing restores it to the byte while nobody
else has changed it.
"""

from __future__ import annotations

import os
import re

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import private_directory, write_json, write_text
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.workspace.own_files import setup_file

_MAX_BYTES = 4 << 20


class SettingsFile:
    """A text file of the user, with our part in it."""

    def __init__(self, repository: Repository, name: str, kept_as: str):
        """Take the file `name`, relative to the work tree; `kept_as` tells ours apart from each
        other.
        """
        self._repository = repository
        self.name = name
        self.path = os.path.realpath(os.path.join(repository.root, name))
        """Absolute and resolved: a link is followed, never replaced."""
        self._original = setup_file(kept_as)
        self._kept = self._original.path(repository)

    def text(self) -> str | None:
        """Return the text of the file; None when there is none.

        Raises:
            YoloError: BAD_CONFIG.
        """
        try:
            with open(self.path, encoding="utf-8", newline="") as file:
                text = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self.bad(str(error)) from error
        if len(text) > _MAX_BYTES:
            raise self.bad(f"it is longer than {_MAX_BYTES} characters")
        return text

    def bad(self, why: str) -> YoloError:
        """Return the error about a file that we leave alone."""
        hint = "Mend it, or add our part by hand; nothing was changed."
        message = f"{self.name}: {safe(why, 300)}"
        return YoloError(Reason.BAD_CONFIG, message, hint=hint, exit_code=Exit.BAD_CONFIG)

    def change(self, before: str | None, after: str) -> None:
        """Write the file anew, and remember what it was before us."""
        kept = self._original.read(self._repository)
        is_known = isinstance(kept, dict) and kept.get("after") == before
        private_directory(self._repository.own_dir)
        original = kept["before"] if is_known and isinstance(kept, dict) else before
        write_json(self._kept, {"before": original, "after": after})
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.write(after)

    def restore(self, text: str) -> bool:
        """Put back what was before us; False when somebody else has changed the file since."""
        kept = self._original.read(self._repository)
        if not isinstance(kept, dict) or kept.get("after") != text:
            return False
        if kept.get("before") is None:
            os.unlink(self.path)
            folder = os.path.dirname(self.path)
            if folder != os.path.realpath(self._repository.root) and not os.listdir(folder):
                os.rmdir(folder)
        else:
            self.write(kept["before"])
        self.forget()
        return True

    def write(self, text: str) -> None:
        """Replace the content; the mode stays."""
        mode = os.stat(self.path).st_mode & 0o777 if os.path.exists(self.path) else 0o644
        write_text(self.path, text, mode=mode)

    def forget(self) -> None:
        """Forget what the file was before us."""
        if os.path.isfile(self._kept):
            os.unlink(self._kept)


def indented_like(before: str | None, text: str) -> str:
    """Return a text that is ended, and its lines broken, as the file was."""
    text = text if before and not before.endswith("\n") else f"{text}\n"
    return text.replace("\n", "\r\n") if "\r\n" in (before or "") else text


def indent_of(before: str | None) -> str | int:
    """Return what a JSON file was indented by."""
    found = re.search(r"\n([ \t]+)\"", before or "")
    return found[1] if found else 2
