"""Settings files of an agent's host: adds our hooks beside those of others, and removes them.

The original is stored in `.git/yolo-fs`, so that removal restores it byte for byte if nobody else
has changed the file; otherwise only our own entries are removed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from yolo_fs.core.json_form import readable_json
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME, MCP_MATCHER, Host
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, remove, write_json, write_text
from yolo_fs.workspace.own_files import setup_file

_MAX_BYTES = 4 << 20


class SettingsFile:
    """A text file of the user, with our part in it."""

    def __init__(self, repository: Repository, name: str, kept_as: str):
        """Open `name`, relative to the work tree; `kept_as`: name of the stored original."""
        self._repository = repository
        self.name = name
        self.path = os.path.join(repository.root, name)
        """Absolute. No link may lead there: other places do not belong to this repository."""
        self._original = setup_file(kept_as)
        self._kept = self._original.path(repository)

    def text(self) -> str | None:
        """Return the text of the file; None when there is none.

        Raises:
            YoloError: BAD_CONFIG, NOT_REGULAR and whatever else `files.read` finds in its place.
        """
        outcome = read(self._repository.root, self.name, _MAX_BYTES)
        if isinstance(outcome, Content):
            try:
                return outcome.data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.bad(str(error)) from error
        if outcome.reason is Reason.FILE_MISSING:
            return None
        raise YoloError(
            outcome.reason,
            f"{self.name}: {outcome.message}",
            hint=f"{outcome.hint} Nothing was changed.".strip(),
            exit_code=Exit.BAD_CONFIG,
        )

    def bad(self, why: str) -> YoloError:
        """Return the error about a file that we leave alone."""
        hint = "Fix it, or add our part by hand; nothing was changed."
        message = f"{self.name}: {safe(why, 300)}"
        return YoloError(Reason.BAD_CONFIG, message, hint=hint)

    def change(self, before: str | None, after: str) -> None:
        """Write the new text, and store what the file was before us."""
        kept = self._original.read(self._repository)
        is_known = isinstance(kept, dict) and kept.get("after") == before
        self._repository.make_own_dir()
        original = kept["before"] if is_known and isinstance(kept, dict) else before
        write_json(self._kept, {"before": original, "after": after})
        make_folders(os.path.dirname(self.path), root=self._repository.root)
        self.write(after)

    def restore(self, text: str) -> bool:
        """Restore the original; return False when somebody else has changed the file since."""
        kept = self._original.read(self._repository)
        if not isinstance(kept, dict) or kept.get("after") != text:
            return False
        if kept.get("before") is None:
            remove(self.path, root=self._repository.root)
            folder = os.path.dirname(self.path)
            if folder != self._repository.root and not os.listdir(folder):
                os.rmdir(folder)
        else:
            self.write(kept["before"])
        self.forget()
        return True

    def take_out(self, without: Callable[[str], str | None]) -> bool:
        """Undo what we changed; return whether there was anything.

        `without`: returns the text without our part, None where it has none; for a file that
        somebody else has changed since.
        """
        text = self.text()
        if text is None or self.restore(text):
            return text is not None
        rest = without(text)
        if rest is None:
            return False
        self.write(rest)
        self.forget()
        return True

    def json_of(self, text: str | None) -> dict[str, Any]:
        """Return the JSON object in a text; an empty one for none.

        Raises:
            YoloError: BAD_CONFIG.
        """
        try:
            value = json.loads(text) if text and text.strip() else {}
        except (ValueError, RecursionError) as error:
            raise self.bad(f"it is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise self.bad("it is not a JSON object")
        return value

    def write(self, text: str) -> None:
        """Replace the content; the mode stays."""
        mode = os.stat(self.path).st_mode & 0o777 if os.path.exists(self.path) else SHARED
        write_text(self.path, text, root=self._repository.root, mode=mode)

    def forget(self) -> None:
        """Delete the stored original."""
        if os.path.isfile(self._kept):
            remove(self._kept)


def json_like(before: str | None, value: dict[str, Any]) -> str:
    """Return JSON with the indentation, the line breaks and the end that the file had."""
    indent = re.search(r"\n([ \t]+)\"", before or "")
    text = readable_json(value, indent=indent[1] if indent else 2)
    text = text if before and not before.endswith("\n") else f"{text}\n"
    return text.replace("\n", "\r\n") if "\r\n" in (before or "") else text


PROGRAM = "yolo-fs"
_OURS = re.compile(rf"(?:\S*/)?{PROGRAM} hook(?: |\Z)")


class Installed(NamedTuple):
    """The settings of a host, current and required."""

    before: str | None
    """Text of the file; None when there is none."""
    missing: tuple[str, ...]
    """Events that lack our hook, exactly as it should be."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is to be done."""
        return not self.missing


def entries_of(host: Host, event: str) -> tuple[dict[str, Any], ...]:
    """Return our hooks for an event, in the form of the host.

    One host's users approve each entry by its text and place: a change of either disables the guard
    for everybody at the next upgrade.
    """
    row = next(AGENT_HOOK_BY_NAME[name] for name, own in host.events.items() if own == event)
    command = f"{PROGRAM} hook {row.name} --host {host.name}"
    if not host.has_groups:
        return ({"command": command, "timeout": row.timeout_s},)
    is_guard = row.name == "pre-tool-use"
    more = (host.teller, "" if host.keeps_approved else MCP_MATCHER) if is_guard else ()
    matchers = ["|".join(filter(None, (row.matcher, *more)))]
    if is_guard and host.keeps_approved:
        matchers.append(MCP_MATCHER)
    handler = {"type": "command", "command": command, "timeout": row.timeout_s}
    return tuple(
        {**({"matcher": matcher} if matcher else {}), "hooks": [handler]} for matcher in matchers
    )


class HostSettings:
    """The hooks of one host in one repository."""

    def __init__(self, repository: Repository, host: Host, *, is_local: bool = False):
        """Use the host's settings file; `is_local`: the one that it also reads below the root."""
        self._host = host
        name = host.local_settings if is_local else host.settings
        self.file = SettingsFile(repository, name, f"{host.name}-local" if is_local else host.name)

    def look(self) -> Installed:
        """Return the state of our hooks.

        Raises:
            YoloError: BAD_CONFIG when the file is not a JSON object of the host's shape.
        """
        text = self.file.text()
        value = self._value(text)
        missing = (
            event
            for event in self._host.events.values()
            if any(
                entry not in self._listed(value, event) for entry in entries_of(self._host, event)
            )
        )
        return Installed(text, tuple(missing))

    def install(self) -> Installed:
        """Install our hooks and return the state before; a second call changes nothing."""
        installed = self.look()
        if installed.is_complete:
            return installed
        value = self._value(installed.before)
        if not self._host.has_groups:
            value.setdefault("version", 1)
        hooks = value.setdefault("hooks", {})
        ours = {event: entries_of(self._host, event) for event in self._host.events.values()}
        for event in dict.fromkeys((*hooks, *ours)):
            entries = list(_with(self._listed(value, event), ours.get(event, ())))
            if entries or not hooks.get(event, [0]):
                hooks[event] = entries
            else:
                hooks.pop(event, None)
        self.file.change(installed.before, json_like(installed.before, value))
        return installed

    def remove(self) -> bool:
        """Remove our hooks; return whether there were any."""
        return self.file.take_out(self._text_without_ours)

    def _text_without_ours(self, text: str) -> str | None:
        value = self._value(text)
        return json_like(text, self._without_ours(value)) if any(self._ours(value)) else None

    def positions(self) -> Iterator[tuple[str, int, int, dict[str, Any], dict[str, Any]]]:
        """Yield event, number of the group, number within it, group and handler of each hook."""
        value = self._value(self.file.text())
        for event in value.get("hooks", {}):
            for group, entry in enumerate(self._listed(value, event)):
                for number, handler in enumerate(_handlers_in(entry)):
                    if _is_ours(handler) and isinstance(handler, dict):
                        yield event, group, number, entry, handler

    def _listed(self, value: dict[str, Any], event: str) -> list[Any]:
        entries = value.get("hooks", {}).get(event, [])
        if not isinstance(entries, list):
            raise self.file.bad(f"`hooks.{safe(event)}` is not a list")
        return entries

    def _ours(self, value: dict[str, Any]) -> Iterator[object]:
        for event in value.get("hooks", {}):
            for entry in self._listed(value, event):
                yield from filter(_is_ours, _handlers_in(entry))

    def _without_ours(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the settings without our hooks, and without what only existed for them."""
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

    def _value(self, text: str | None) -> dict[str, Any]:
        value = self.file.json_of(text)
        if not isinstance(value.get("hooks", {}), dict):
            raise self.file.bad("its `hooks` is not an object")
        return value


def _handlers_in(entry: object) -> list[object]:
    """Return the hooks of an entry: those of a group, else itself."""
    if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
        return list(entry["hooks"])
    return [entry]


def _is_ours(handler: object) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and _OURS.match(command) is not None


def _without(entry: Any) -> Any:
    """Return an entry without our hooks; None when nothing of it is left."""
    left = [handler for handler in _handlers_in(entry) if not _is_ours(handler)]
    if len(left) == len(_handlers_in(entry)):
        return entry
    return {**entry, "hooks": left} if left else None


def _with(entries: list[Any], ours: Sequence[Any]) -> Iterator[Any]:
    """Yield entries with our hooks in their old places, new ones after those of others."""
    missing = list(ours)
    for entry in entries:
        left = _without(entry)
        if left is not None:
            yield left
        elif missing:
            yield missing.pop(0)
    yield from missing
