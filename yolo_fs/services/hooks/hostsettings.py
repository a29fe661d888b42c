"""Writes our hooks into the settings of an agent's host, beside those of others, and takes them out again.

What a file was before is kept in `.git/yolo-fs`, so that removing restores it to the byte while
nobody else has changed it; otherwise our own entries alone are taken out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import private_directory, write_json, write_text
from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME
from yolo_fs.protocol.hosts import Host
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.workspace.own_files import setup_file

PROGRAM = "yolo-fs"
_OURS = re.compile(rf"(?:\S*/)?{PROGRAM} hook(?: |\Z)")
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Installed:
    """The settings of a host, as they are and as they should be."""

    path: str
    """The file, absolute and resolved: a link is followed, never replaced."""
    before: str | None
    """Its text; None when there is no file."""
    present: tuple[str, ...]
    """Events that have our hook, exactly as it should be."""
    missing: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be done."""
        return not self.missing


class HostSettings:
    """The settings of one host in one repository."""

    def __init__(self, repository: Repository, host: Host):
        self._repository = repository
        self._host = host
        self._path = os.path.realpath(os.path.join(repository.root, host.settings))
        self._original = setup_file(host.name)
        self._kept = self._original.path(repository)

    def look(self) -> Installed:
        """Return how far our hooks are in place.

        Raises:
            YoloError: BAD_CONFIG when the file is not a JSON object of the host's shape.
        """
        text = self._text()
        value = self._value(text)
        has = {
            event
            for event in self._host.events.values()
            if self._entry(event) in self._listed(value, event)
        }
        events = tuple(self._host.events.values())
        return Installed(
            self._path,
            text,
            tuple(event for event in events if event in has),
            tuple(event for event in events if event not in has),
        )

    def install(self) -> Installed:
        """Put our hooks in place and return how it was before; a second time changes nothing."""
        found = self.look()
        if found.is_complete:
            return found
        value = self._without_ours(self._value(found.before))
        if not self._host.has_groups:
            value.setdefault("version", 1)
        hooks = value.setdefault("hooks", {})
        for event in self._host.events.values():
            hooks.setdefault(event, []).append(self._entry(event))
        after = _written_like(found.before, value)
        self._keep(found.before, after)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._write(after)
        return found

    def remove(self) -> bool:
        """Take our hooks out, and tell whether there were any."""
        text = self._text()
        if text is None:
            return False
        kept = self._original.read(self._repository)
        if isinstance(kept, dict) and kept.get("after") == text:
            self._restore(kept.get("before"))
            return True
        value = self._value(text)
        if not any(self._ours(value)):
            return False
        self._write(_written_like(text, self._without_ours(value)))
        self._forget()
        return True

    # --- entries ---

    def _entry(self, event: str) -> dict[str, Any]:
        """Return our hook for an event, in the form of the host."""
        row = next(
            AGENT_HOOK_BY_NAME[name] for name, own in self._host.events.items() if own == event
        )
        command = f"{PROGRAM} hook {row.name} --host {self._host.name}"
        if not self._host.has_groups:
            return {"command": command, "timeout": row.timeout_s}
        handler = {"type": "command", "command": command, "timeout": row.timeout_s}
        return {**({"matcher": row.matcher} if row.matcher else {}), "hooks": [handler]}

    def _listed(self, value: dict[str, Any], event: str) -> list[Any]:
        found = value.get("hooks", {}).get(event, [])
        if not isinstance(found, list):
            raise self._bad(f"`hooks.{safe(event)}` is not a list")
        return found

    def _ours(self, value: dict[str, Any]) -> Iterator[object]:
        for event in value.get("hooks", {}):
            yield from (
                one
                for entry in self._listed(value, event)
                for one in _handlers(entry)
                if _is_ours(one)
            )

    def _without_ours(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the settings without our hooks, and without what was only there for them."""
        kept = {
            event: list(map(_without, self._listed(value, event)))
            for event in value.get("hooks", {})
        }
        hooks = {
            event: [entry for entry in entries if entry is not None]
            for event, entries in kept.items()
            if any(entry is not None for entry in entries) or not entries
        }
        rest = {key: each for key, each in value.items() if key != "hooks"}
        return {
            key: hooks if key == "hooks" else rest[key] for key in value if hooks or key != "hooks"
        }

    # --- the file ---

    def _text(self) -> str | None:
        try:
            with open(self._path, encoding="utf-8", newline="") as file:
                text = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._bad(str(error)) from error
        if len(text) > _MAX_BYTES:
            raise self._bad(f"it is longer than {_MAX_BYTES} characters")
        return text

    def _value(self, text: str | None) -> dict[str, Any]:
        if text is None or not text.strip():
            return {}
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._bad(f"it is not JSON: {error}") from error
        if not isinstance(value, dict) or not isinstance(value.get("hooks", {}), dict):
            raise self._bad("it is not a JSON object, or its `hooks` is none")
        return value

    def _bad(self, why: str) -> YoloError:
        hint = "Mend it, or add the hooks by hand; nothing was changed."
        message = f"{self._host.settings}: {safe(why, 300)}"
        return YoloError(Reason.BAD_CONFIG, message, hint=hint, exit_code=Exit.BAD_CONFIG)

    def _write(self, text: str) -> None:
        mode = os.stat(self._path).st_mode & 0o777 if os.path.exists(self._path) else 0o644
        write_text(self._path, text, mode=mode)

    def _keep(self, before: str | None, after: str) -> None:
        """Remember what the file was, the first time; what we wrote over our own work was no original."""
        kept = self._original.read(self._repository)
        is_known = isinstance(kept, dict) and kept.get("after") == before
        private_directory(self._repository.own_dir)
        write_json(
            self._kept,
            {
                "before": kept["before"] if is_known and isinstance(kept, dict) else before,
                "after": after,
            },
        )

    def _restore(self, before: str | None) -> None:
        if before is None:
            os.unlink(self._path)
            folder = os.path.dirname(self._path)
            if not os.listdir(folder):
                os.rmdir(folder)
        else:
            self._write(before)
        self._forget()

    def _forget(self) -> None:
        if os.path.isfile(self._kept):
            os.unlink(self._kept)


def _handlers(entry: object) -> list[object]:
    """Return the hooks of an entry: those of a group, else itself."""
    if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
        return list(entry["hooks"])
    return [entry]


def _is_ours(handler: object) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and _OURS.match(command) is not None


def _without(entry: Any) -> Any:
    """Return an entry without our hooks; None when nothing of it is left."""
    left = [one for one in _handlers(entry) if not _is_ours(one)]
    if len(left) == len(_handlers(entry)):
        return entry
    return {**entry, "hooks": left} if left else None


def _written_like(before: str | None, value: dict[str, Any]) -> str:
    """Return settings as text, indented and ended as the file was."""
    found = re.search(r"\n([ \t]+)\"", before or "")
    text = json.dumps(value, indent=found[1] if found else 2, ensure_ascii=False)
    text = text if before and not before.endswith("\n") else f"{text}\n"
    return text.replace("\n", "\r\n") if "\r\n" in (before or "") else text
