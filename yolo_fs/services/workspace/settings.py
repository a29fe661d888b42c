"""The settings in force: the repository's configuration, which may tighten, and the user's, which
may loosen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from yolo_fs.edges.files import Stamp, stamp_at
from yolo_fs.edges.lines import Limits, read_object
from yolo_fs.reasons import Exit, Finding, Reason, YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.schemas.base import Wire, check
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.layout import Strictness

_Shape = TypeVar("_Shape", bound=Wire)

CONFIG = f"{PLANNING_ROOT}/config.json"

LOOSENING: Mapping[str, object] = {
    "legacy": True,
    "commit_ignored": True,
    "allow_detached": True,
    "durability": "none",
    "safety_net": False,
    "product_handoffs": True,
}
"""Policy values that a repository cannot give itself; they count from the user's own configuration
only."""

_CAPPED = ("max_file_bytes", "max_line_bytes", "max_depth")
"""Limits that a repository may lower, not raise."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one repository."""

    config: Config
    policy: Policy

    @property
    def mode(self) -> Strictness:
        """How strictly shapes are read."""
        return Strictness(strict=self.policy.strict, legacy=self.policy.legacy)

    @property
    def without_patience(self) -> Settings:
        """The same, but a file is judged as if it had been quiet for long: how long it was is no
        matter of state.
        """
        return replace(self, policy=self.policy.model_copy(update={"settle_ms": 0, "grace_s": 0}))

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that artifacts lie in."""
        products = (HANDOFF_FOLDER,) if self.policy.product_handoffs else ()
        return (PLANNING_ROOT, *products, *self.policy.directive_roots)

    @property
    def limits(self) -> Limits:
        """How large and deep files may be."""
        policy = self.policy
        return Limits(
            max_line_bytes=policy.max_line_bytes,
            max_file_bytes=policy.max_file_bytes,
            max_depth=policy.max_depth,
        )


def user_config_path() -> str:
    """Return where the user's own configuration is looked for."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "yolo-fs", "config.json")


def stamps_of(root: str) -> tuple[Stamp | None, ...]:
    """Return what changes when one of the two configuration files does."""
    return tuple(stamp_at(path) for path in (os.path.join(root, CONFIG), user_config_path()))


def load(root: str) -> Settings:
    """Return the settings for the work tree `root`; files that are absent leave the defaults.

    Raises:
        YoloError: BAD_CONFIG, naming the file and its first fault.
    """
    config = _read(os.path.join(root, CONFIG), CONFIG, Config)
    user = _read_object(user_config_path(), "the user's configuration")
    own = user.get("policy", {}), user.get("repositories", {}).get(root, {})
    policy = _tightened(config.yolo_fs) | own[0] | own[1]
    return Settings(config, _shaped(Policy, policy, "the user's configuration"))


def _tightened(policy: Policy) -> dict[str, Any]:
    """Return the repository's policy without the values that only the user may give."""
    values = policy.model_dump()
    defaults = Policy().model_dump()
    for name, loose in LOOSENING.items():
        if values[name] == loose:
            values[name] = defaults[name]
    return (
        values
        | {name: min(values[name], defaults[name]) for name in _CAPPED}
        | {"secrets_allowed": []}
    )


def _read(path: str, name: str, shape: type[Config]) -> Config:
    return _shaped(shape, _read_object(path, name), name)


def _shaped(shape: type[_Shape], value: Mapping[str, Any], name: str) -> _Shape:
    shaped, faults = check(shape, value)
    if not isinstance(shaped, shape):
        fault = faults[0]
        raise _bad(fault.as_finding(name, 1))
    return shaped


def _read_object(path: str, name: str) -> dict[str, Any]:
    if os.path.exists(path) and not os.path.isfile(
        path
    ):  # to open a pipe would wait for its writer
        raise _bad(Finding(Reason.NOT_REGULAR, name, hint="put a file there"))
    try:
        with open(path, "rb") as file:
            data = file.read(Limits().max_file_bytes + 1)
    except OSError:
        return {}
    reading = read_object(data, name, Limits())
    if not reading.records:
        raise _bad(reading.findings[0])
    return reading.records[0].value


def _bad(finding: Finding) -> YoloError:
    return YoloError(
        Reason.BAD_CONFIG,
        str(finding),
        hint="Mend it; 'yolo-fs validate' shows all faults.",
        exit_code=Exit.BAD_CONFIG,
    )
