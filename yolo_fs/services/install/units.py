"""The daemon as a service of the user's session: a systemd unit or a launchd job, as text and as a
file.

Never enables or starts anything: that is one command, which is told.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from yolo_fs.edges.store import write_text
from yolo_fs.reasons import Exit, Reason, YoloError, safe

MARK = "Written by `yolo-fs service install`; it is replaced by the next one."
_HASH_DIGITS = 8


class System(StrEnum):
    """Who supervises services."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"

    @classmethod
    def of_this_machine(cls) -> System:
        """Return the supervisor that this operating system comes with."""
        return cls.LAUNCHD if sys.platform == "darwin" else cls.SYSTEMD


@dataclass(frozen=True, slots=True)
class Unit:
    """A service file."""

    name: str
    """What the supervisor calls it."""
    path: str
    """Where the supervisor looks for it."""
    text: str
    enable: str
    """The command that starts it now and at each login."""
    disable: str
    """The command that ends it for good."""
    enabled_mark: str = ""
    """A file that exists while the supervisor has it enabled; empty where none tells."""

    JSON_KEYS: ClassVar = {key: key for key in ("name", "path", "enable", "disable")}


def unit_for(root: str, log: str, system: System) -> Unit:
    """Return the service that watches the work tree `root`; launchd, which keeps no journal, writes
    to `log`.

    Raises:
        YoloError: BAD_NAME, for a path that a service file cannot hold.

    """
    if any(ord(char) < 32 or 0xD800 <= ord(char) <= 0xDFFF for char in root):
        raise YoloError(
            Reason.BAD_NAME,
            f"{safe(root)} holds characters that no service file can hold",
            exit_code=Exit.NOT_HERE,
        )
    return _systemd(root) if system is System.SYSTEMD else _launchd(root, log)


def _name(root: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(root).lower()).strip("-") or "repository"
    return f"{slug[:40]}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:_HASH_DIGITS]}"


def _command(root: str) -> list[str]:
    return [sys.executable, "-P", "-m", "yolo_fs", "run", "-C", root]


# --- systemd ---

_SYSTEMD = """\
# {mark}
[Unit]
Description=yolo-fs in {description}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
ExecStart={command}
Restart=on-failure
RestartSec=5
# Not a repository (3) and a broken configuration (78) do not mend themselves.
RestartPreventExitStatus=2 3 78
TimeoutStartSec=300
TimeoutStopSec=60
# TERM is for the daemon alone: a git that it has started may finish.
KillMode=mixed

[Install]
WantedBy=default.target
"""


def _systemd(root: str) -> Unit:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    folder = os.path.join(home, "systemd", "user")
    name = f"yolo-fs-{_name(root)}.service"
    text = _SYSTEMD.format(
        mark=MARK,
        description=root.replace("%", "%%"),
        command=" ".join(_quoted(word) for word in _command(root)),
    )
    return Unit(
        name,
        os.path.join(folder, name),
        text,
        enable=f"systemctl --user daemon-reload && systemctl --user enable --now {name}",
        disable=f"systemctl --user disable --now {name}",
        enabled_mark=os.path.join(folder, "default.target.wants", name),
    )


def _quoted(word: str) -> str:
    """Return the word as `ExecStart=` reads it: specifiers, variables, quotes and backslashes are
    plain text.
    """
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(char, escaped)
    return f'"{word}"'


# --- launchd ---


def _launchd(root: str, log: str) -> Unit:
    name = f"dev.yolo-fs.{_name(root)}"
    path = os.path.join(os.path.expanduser("~/Library/LaunchAgents"), f"{name}.plist")
    job = {
        "Label": name,
        "ProgramArguments": _command(root),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "ThrottleInterval": 10,
        "StandardErrorPath": log,
    }
    text = plistlib.dumps(job, sort_keys=False).decode()
    return Unit(
        name,
        path,
        text.replace("<plist ", f"<!-- {MARK} -->\n<plist ", 1),
        enable=f'launchctl bootstrap gui/{os.getuid()} "{path}"',
        disable=f"launchctl bootout gui/{os.getuid()}/{name}",
    )


# --- the file ---


def install(unit: Unit) -> str:
    """Write the file; return `installed`, `updated` or `already_installed`.

    Raises:
        YoloError: STATE_CONFLICT, when the file is somebody else's; STORAGE_FAILED.

    """
    present = _present(unit)
    if present == unit.text:
        return "already_installed"
    try:
        os.makedirs(os.path.dirname(unit.path), exist_ok=True)
    except OSError as error:
        raise _failed(unit, error) from error
    write_text(unit.path, unit.text)
    return "installed" if present is None else "updated"


def uninstall(unit: Unit) -> str:
    """Remove the file; return `uninstalled` or `not_installed`.

    Raises:
        YoloError: STATE_CONFLICT, when it is still enabled or somebody else's; STORAGE_FAILED.

    """
    if _present(unit) is None:
        return "not_installed"
    if unit.enabled_mark and os.path.lexists(unit.enabled_mark):
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"{unit.name} is still enabled",
            hint=f"First run: {unit.disable}",
        )
    try:
        os.unlink(unit.path)
    except OSError as error:
        raise _failed(unit, error) from error
    return "uninstalled"


def _present(unit: Unit) -> str | None:
    try:
        with open(unit.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(unit, error) from error
    if MARK not in text:
        raise YoloError(
            Reason.STATE_CONFLICT, f"{unit.path} is not ours", hint="Move it away, then try again."
        )
    return text


def _failed(unit: Unit, error: OSError) -> YoloError:
    return YoloError(
        Reason.STORAGE_FAILED,
        f"{unit.path}: {error.strerror or error}",
        hint="Check its permissions; 'yolo-fs service print' shows the text.",
        exit_code=Exit.TRY_AGAIN,
    )
