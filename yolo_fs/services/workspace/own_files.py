"""Our own files in `.git/yolo-fs`: what each of them must look like, and what is wrong with one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeAlias

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import Damaged, RefusedError, open_regular, private_directory, read_json
from yolo_fs.ids import TaskRef
from yolo_fs.reasons import Exit, Finding, Reason, YoloError, safe

Shape: TypeAlias = type | UnionType | list[Any] | dict[str, Any] | Callable[[Any], bool]
"""A type, `[shape of each]`, `{key: shape}` (further keys are allowed), or a test."""

FURTHEST_S = 6e10
"""How far from the start of the machine a turn may have begun; no date of ours is further off."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """One file of ours."""

    name: str
    shape: Shape | None = None
    """Of its JSON; None when it holds something else."""
    loss: str = "nothing: it is made again"
    """What is lost without it."""

    def path(self, repository: Repository) -> str:
        """Return where it lies; only what hooks share between work trees lies in the common
        directory.
        """
        shared = self.name == HOOKS.name
        folder = os.path.join(repository.common_dir, "yolo-fs") if shared else repository.own_dir
        return os.path.join(folder, self.name)

    def read(self, repository: Repository) -> dict[str, Any] | Damaged | None:
        """Return its JSON, None when it is absent, `Damaged` when it is not what we wrote."""
        return self.checked(read_json(self.path(repository)))

    def checked(self, content: dict[str, Any] | Damaged | None) -> dict[str, Any] | Damaged | None:
        """Return the content that `read_json` found, or `Damaged` when it has another shape than
        ours.
        """
        if isinstance(content, dict) and self.shape is not None and not fits(content, self.shape):
            return Damaged(Reason.WRONG_TYPE, "it has another shape than what yolo-fs writes")
        return content

    def damage(self, repository: Repository) -> Finding | None:
        """Return what is wrong with it, or None."""
        content = self.read(repository) if self.shape else _odd_kind(self.path(repository))
        return self.finding(repository, content) if isinstance(content, Damaged) else None

    def finding(self, repository: Repository, damaged: Damaged) -> Finding:
        """Return the finding about its damage."""
        hint = f"'yolo-fs doctor --fix' puts it aside; what is lost is {self.loss}."
        path = self.path(repository)
        return Finding(damaged.reason, path, message=damaged.detail, hint=hint)

    def refusal(self, repository: Repository, damaged: Damaged) -> YoloError:
        """Return the error of a command that cannot do without what it holds."""
        finding = self.finding(repository, damaged)
        message = f"{safe(finding.path)}: {finding.message}"
        return YoloError(finding.reason, message, hint=finding.hint, exit_code=Exit.NOT_HERE)

    def put_aside(self, repository: Repository) -> None:
        """Move it out of the way, where a person may still look at it."""
        folder = os.path.join(repository.own_dir, "quarantine")
        private_directory(folder)
        number = 1
        while os.path.lexists(aside := os.path.join(folder, f"{self.name}.{number}")):
            number += 1
        with suppress(FileNotFoundError):
            os.rename(self.path(repository), aside)


def _odd_kind(path: str) -> Damaged | None:
    try:
        os.close(open_regular(path, os.O_RDONLY))
    except RefusedError as refusal:
        return Damaged(refusal.reason, refusal.detail)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Damaged(Reason.UNREADABLE, error.strerror or str(error))
    return None


def fits(value: object, shape: Shape) -> bool:
    """Return whether a value of JSON has a shape; a Boolean is not a number."""
    match shape:
        case [part]:
            return isinstance(value, list) and all(fits(each, part) for each in value)
        case dict():
            return isinstance(value, Mapping) and all(
                fits(value.get(key), part) for key, part in shape.items()
            )
        case type() | UnionType():
            is_number = shape in (int, float, int | float)
            return isinstance(value, shape) and not (is_number and isinstance(value, bool))
    return callable(shape) and shape(value)


def _are_ages(value: object) -> bool:
    return isinstance(value, dict) and all(
        fits(each, int | float) and abs(each) <= FURTHEST_S for each in value.values()
    )


def _is_task(value: object) -> bool:
    return isinstance(value, str) and TaskRef.parse(value) is not None


_CLOCK = {"boot": str, "since_s": _are_ages}
_SETUP = {"before": str | None, "after": str}
_OVERRIDE = {
    "path": str, "digest": str, "branch": str, "faults": [str], "because": str, "by": str, "at": str
}  # fmt: skip

BOOT = OwnFile("boot.json", {"boot": str})
CLAIMS = OwnFile(
    "claims.json",
    {"claims": [{"agent": str, "task": _is_task, "files": [str], "claimed_at": str}]},
    "who claimed which task: let everybody claim again",
)
CREW_CLOCK = OwnFile("crew-clock.json", _CLOCK)
CREW_TOLD = OwnFile(
    "crew-told.json", {"told": [str]}, "what was reported already: it is reported again"
)
ESCALATION_CLOCK = OwnFile("escalation-clock.json", _CLOCK)
GATES = OwnFile("gates.json", {"id": str, "commit": str, "open": dict})
HEALTH = OwnFile("health.json", {"pid": int, "running": bool})
HOOKS = OwnFile(
    "hooks.json",
    {"since": str, "folders": [str]},
    "since when the hooks are installed: run 'yolo-fs hooks install' again",
)
TEAM = OwnFile(
    "team.json",
    {"team": str, "clone": str, "remote": str, "place": str},
    "which team this work tree has joined: run 'yolo-fs team join' again",
)
TEAM_LANE = OwnFile(
    "team-lane.json", {"reason": str, "what": str, "at": str, "round_trip_s": int | float}
)
OVERRIDES = OwnFile(
    "handoff-overrides.json", {"overrides": [_OVERRIDE]}, "which handoffs you accepted with errors"
)
ACCEPTED = OwnFile("handoff-accepted.json", {"stamps": dict, "roles": [str]})
WARM = OwnFile("warm.json", {"at": str, "why": str})
_OTHERS = (
    OwnFile("agents.jsonl", loss="the agents' signs of life so far"),
    OwnFile("agents.1.jsonl", loss="the agents' older signs of life"),
    OwnFile("events.jsonl", loss="the latest events of the journal"),
    OwnFile("daemon.log", loss="what the daemon wrote"),
    *map(
        OwnFile,
        ("claims.lock", "phases.lock", "handoffs.lock", "execution-state.lock",
         "handoff-overrides.json.lock", "daemon.lock", "gates.waiters", "index-pending",
         "ref-locks", "history.json", "kept.turn", "kept-ref-lock"),
    ),
)  # fmt: skip


SETUP_PARTS = ("", "-local", "-mcp", "-roles")
"""What each kept file is about: hooks, those of one machine, our MCP server, roles."""


def setup_file(host: str) -> OwnFile:
    """Return the file that keeps the settings of a host as they were before us."""
    return OwnFile(f"setup-{host}.json", _SETUP, "how your settings were before our hooks")


def own_files(repository: Repository, hosts: tuple[str, ...]) -> Iterator[OwnFile]:
    """Yield the files that a work tree may have of us."""
    yield from (
        BOOT,
        CLAIMS,
        CREW_CLOCK,
        CREW_TOLD,
        ESCALATION_CLOCK,
        GATES,
        TEAM_LANE,
        HEALTH,
        HOOKS,
        OVERRIDES,
        TEAM,
        ACCEPTED,
        WARM,
    )
    yield from (setup_file(f"{host}{part}") for host in hosts for part in SETUP_PARTS)
    yield from _OTHERS
