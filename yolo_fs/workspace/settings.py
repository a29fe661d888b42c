"""The settings in force.

The repository's configuration may tighten settings, and the user's may also loosen them.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.core.credentials import redact
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, pointer_to, safe
from yolo_fs.git.repository import Repository
from yolo_fs.schemas.config import Config, Policy, values_of
from yolo_fs.schemas.layout import Strictness
from yolo_fs.system.database import Database, DatabaseError, open_disposable
from yolo_fs.system.files import Stamp, stamp_at
from yolo_fs.system.readers import read_object
from yolo_fs.system.store import code_stamp
from yolo_fs.system.text_checks import Limits
from yolo_fs.system.warm_path import own_folder, user_folder
from yolo_fs.workspace.own_files import INDEX, INDEX_LAYOUT
from yolo_fs.workspace.user_config import VERIFY, faults_of_sections

CONFIG = f"{PLANNING_ROOT}/config.json"

LOOSENING: Mapping[str, object] = {
    "legacy": True,
    "commit_ignored": True,
    "allow_detached": True,
    "durability": "none",
    "safety_net": False,
    "product_handoffs": True,
    "autofix": "safe",
}
"""Policy values that a repository cannot set. They count only in the user's own configuration."""

_CAPPED = ("max_file_bytes", "max_line_bytes", "max_depth")
"""Limits that a repository may lower, not raise."""


class Settings(NamedTuple):
    """The settings of one repository."""

    config: Config
    policy: Policy
    verify_command: tuple[str, ...] = ()
    """Program and arguments by which the user checks the sources of this work tree; empty for none.
    """

    @property
    def mode(self) -> Strictness:
        """How strictly shapes are read."""
        return Strictness(strict=self.policy.strict, legacy=self.policy.legacy)

    @property
    def without_patience(self) -> Settings:
        """The same settings, but every file counts as long quiet: state does not depend on that."""
        return self._replace(policy=self.policy._replace(settle_ms=0, grace_s=0))

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
    return os.path.join(user_folder("XDG_CONFIG_HOME", ".config"), "yolo-fs", "config.json")


def stamps_of(root: str) -> tuple[Stamp | None, ...]:
    """Return the stamps of the two configuration files."""
    return tuple(stamp_at(path) for path in (os.path.join(root, CONFIG), user_config_path()))


_HOW_TO_BEGIN = "Run 'yolo-fs init' first, or check out a branch that has one."


def not_initialised(root: str, hint: str = _HOW_TO_BEGIN) -> YoloError:
    """Return the error of a work tree without a planning tree; it names one that lies deeper."""
    from glob import iglob

    for depth in ("*", "*/*"):
        for place in iglob(f"{depth}/{PLANNING_ROOT}/", root_dir=root):
            folder = os.path.dirname(place.rstrip("/"))
            above = (folder, folder.partition("/")[0])
            if any(os.path.lexists(os.path.join(root, each, ".git")) for each in above):
                continue  # it is that of a repository inside
            message = f"the root of the repository has no {PLANNING_ROOT}"
            hint = f"{safe(place)} is ignored: move it to the root ('git mv')."
            return YoloError(Reason.NOT_INITIALISED, message, hint=hint)
    return left_out(root) or YoloError(Reason.NOT_INITIALISED, hint=hint)


def no_phase(root: str, otherwise: YoloError | None = None) -> YoloError:
    """Return the error of a work tree without the phase that is asked about.

    Where nobody works by the protocol, that is said, and nothing of phases.
    `otherwise`: what is wrong where there is a planning tree; by itself that there is no phase.
    """
    if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
        return not_initialised(root)
    hint = "Create one: yolo-fs phase new SLUG"
    return otherwise or YoloError(Reason.UNKNOWN_NAME, "there is no phase yet", hint=hint)


def no_committed_phase(root: str, hint: str) -> YoloError:
    """Return the error of a work tree in which no phase has a committed artifact."""
    message = "no phase is committed yet"
    uncommitted = YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.FINDINGS)
    return no_phase(root, uncommitted)


def left_out(root: str) -> YoloError | None:
    """Return the error of a work tree without the planning tree that its commit has, or None.

    A new one would look like a change of every file of it.
    """
    if os.path.lexists(os.path.join(root, PLANNING_ROOT)):
        return None
    with suppress(YoloError), Repository(root) as repository:
        if repository.git.text("ls-tree", "HEAD", "--", PLANNING_ROOT):
            message = f"HEAD has {PLANNING_ROOT}, and the work tree does not"
            back = f"restore {PLANNING_ROOT}"
            if repository.config("core.sparseCheckout") == "true":
                back = f"sparse-checkout add {PLANNING_ROOT}"
            elif not repository.git.text("ls-files", "--", PLANNING_ROOT):
                # The index has no such path either, as in a clone without a checkout.
                back = f"restore --source=HEAD --staged --worktree {PLANNING_ROOT}"
            return YoloError(Reason.NOT_INITIALISED, message, hint=f"'git {back}' brings it back.")
    return None


def load(root: str) -> Settings:
    """Return the settings for the work tree `root`; files that are absent leave the defaults.

    Raises:
        YoloError: BAD_CONFIG, naming the file and its first fault.
    """
    return _apply_user_config(_config(root), root)


class ConfiguredKey(NamedTuple):
    """A key of the configuration, and where its value comes from."""

    key: str
    """As `config.json` nests it, such as `departments.frontend` or `yolo_fs.strict`."""
    value: Any
    default: Any
    """None for a key that has none."""
    origin: str
    """The file whose value counts; `default` where none has one."""
    refused: Any = None
    """Ignored value of the repository's configuration: only the user's own may set it."""


def configured(root: str) -> Iterator[ConfiguredKey]:
    """Yield every key in force.

    Raises:
        YoloError: as `load`.
    """
    settings, user_path = load(root), user_config_path()
    written = _written_in(root)
    config = _parse_object(written, CONFIG) if written is not None else {}
    user = _user_written(user_path)
    policies = {
        f"{user_path}, repositories": _section_here(user, root),
        f"{user_path}, policy": user.get("policy", {}),
        CONFIG: config.get("yolo_fs", {}),
    }
    defaults = dict(_flatten_settings(to_json(Config())))
    for key, value in _flatten_settings(to_json(settings.config)):
        if not key.startswith("yolo_fs."):
            origin = CONFIG if _is_said(config, key) else "default"
            yield ConfiguredKey(key, value, defaults.get(key), origin)
    own_words = bool(settings.verify_command)
    origin = f"{user_path}, repositories" if own_words else "default"
    yield ConfiguredKey(VERIFY, [*settings.verify_command], [], origin)
    own, wanted = to_json(Policy()), to_json(settings.config.yolo_fs)
    for name, value in to_json(settings.policy).items():
        origin = next((file for file, given in policies.items() if name in given), "default")
        refused = None
        if origin == CONFIG and wanted[name] != value:
            origin, refused = "default", wanted[name]
        yield ConfiguredKey(f"yolo_fs.{name}", value, own[name], origin, refused)
    yield from _of_the_user_alone(user, user_path, root)


def _of_the_user_alone(user: Mapping[str, Any], path: str, root: str) -> Iterator[ConfiguredKey]:
    """Yield the keys of the user's own file that the policy in force here does not show: the
    command that is run for them, other work trees, and what the section of this one overrides.
    """
    here = _section_here(user, root)
    over = {key: value for key, value in user.get("policy", {}).items() if key in here}
    others = {key: value for key, value in user.get("repositories", {}).items() if key != root}
    named = {"policy": over, "repositories": others}
    rest = {key: value for key, value in user.items() if key not in named}
    for key, value in _flatten_settings({**named, **rest}):
        if key not in named or value:
            yield ConfiguredKey(key, _without_credentials(value), None, path)


def _without_credentials(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_credentials(each) for each in value]
    return redact(value) if isinstance(value, str) else value


def _flatten_settings(value: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested objects, with their keys joined by dots."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flatten_settings(item, f"{at}{key}.")
        else:
            yield f"{at}{key}", item


def _is_said(section: Any, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(section, dict) or part not in section:
            return False
        section = section[part]
    return True


class InForce(NamedTuple):
    """The settings in force, also when a file is broken."""

    settings: Settings
    fault: YoloError | None = None
    """Error of the first broken file; None while all of them are good."""


def load_in_force(root: str) -> InForce:
    """Return the settings in force: of a broken file its last good content, else the defaults.

    A broken configuration never disables a guard.
    """
    fault: YoloError | None = None
    try:
        config = _config(root)
    except YoloError as error:
        fault, kept = error, _recall_last_good(root)
        config = values_of(Config, kept) if kept is not None else Config()
    try:
        return InForce(_apply_user_config(config, root), fault)
    except YoloError as error:
        return InForce(Settings(config, _tighten_policy(config.yolo_fs)), fault or error)


_LAST_GOOD = "in force"
"""Key in the index of the configuration that was last found valid."""


def _recall_last_good(root: str) -> Any:
    with _index_of(root) as index:
        return _recall_value(index, _LAST_GOOD, None) if index else None


@contextmanager
def _index_of(root: str) -> Iterator[Database | None]:
    folder = own_folder(root)
    index = open_disposable(os.path.join(folder, INDEX), INDEX_LAYOUT) if folder else None
    try:
        yield index
    finally:
        if index:
            index.close()


def _config(root: str) -> Config:
    written = _written_in(root)
    return config_in(written, root, _LAST_GOOD) if written is not None else Config()


def _apply_user_config(config: Config, root: str) -> Settings:
    policy, path = _tighten_policy(config.yolo_fs), user_config_path()
    user = _user_written(path)
    for fault in faults_of_sections(user, path, (root,)):
        raise _error_for_bad_config(fault)
    everywhere, here = user.get("policy", {}), _section_here(user, root)
    own = {**everywhere, **here}
    command = tuple(own.pop(VERIFY, ()))

    def place_of(at: str) -> str:
        is_here = at.split("/")[1] in here
        return (pointer_to("repositories", root) if is_here else "/policy") + at

    checked = _checked(Policy, to_json(policy) | own, path, place_of) if own else policy
    return Settings(config, checked, command)


def _user_written(path: str) -> Mapping[str, Any]:
    """Return the user's own configuration; empty where there is none."""
    written = _written(path, path)
    return _parse_object(written, path) if written is not None else {}


def _section_here(user: Mapping[str, Any], root: str) -> Mapping[str, Any]:
    section: Mapping[str, Any] = user.get("repositories", {}).get(root, {})
    return section


def config_in(written: bytes, root: str, kept: str) -> Config:
    """Return the configuration that a file holds.

    What was validated once is cached in the index for the next process, under the name `kept`.

    Raises:
        YoloError: BAD_CONFIG.
    """
    basis = f"{code_stamp()} {sha256(written).hexdigest()}"
    with _index_of(root) as index:
        checked = _recall_value(index, kept, basis) if index else None
        if checked is None:
            checked = to_json(_checked(Config, _parse_object(written, CONFIG), CONFIG))
            if index:
                _remember(index, kept, basis, checked)
    return values_of(Config, checked)


def _recall_value(index: Database, name: str, basis: str | None) -> Any:
    """Return the cached value of a name. `basis`: what it must be based on; None for anything."""
    with suppress(DatabaseError):
        query = "select told from checked where name = ?1 and basis = ifnull(?2, basis)"
        for (text,) in index.rows(query, name, basis):
            return json.loads(text)
    return None


def _remember(index: Database, name: str, basis: str, value: object) -> None:
    text = json.dumps(value, separators=(",", ":"))
    with suppress(DatabaseError), index.writing():
        index.rows("insert or replace into checked values (?, ?, ?)", name, basis, text)


def _tighten_policy(policy: Policy) -> Policy:
    """Return the repository's policy without the values that only the user may give."""
    defaults, values = Policy(), policy._asdict()
    given = {name for name, loose in LOOSENING.items() if values[name] == loose}
    given |= {name for name in _CAPPED if values[name] > getattr(defaults, name)}
    left = {name: getattr(defaults, name) for name in (*given, "secrets_allowed")}
    return policy._replace(**left)


def _checked(
    kind: Any, value: Mapping[str, Any], name: str, place_of: Callable[[str], str] = lambda at: at
) -> Any:
    """`place_of`: returns where in the file a place of the value is, as a JSON pointer."""
    from yolo_fs.schemas.check import check
    from yolo_fs.schemas.plain_values import shape_of

    shaped, faults = check(shape_of(kind), value)
    if shaped is None:
        finding = faults[0].as_finding(name, 1)
        raise _error_for_bad_config(replace(finding, at=place_of(finding.at)))
    return values_of(kind, shaped.model_dump())


def _written_in(root: str) -> bytes | None:
    """Return the content of a repository's configuration; None where there is none.

    Where a link leads may be another's, or change without anybody having written the file; the
    user's own configuration may be one.

    Raises:
        YoloError: BAD_CONFIG for a link and for anything else that is no file.
    """
    path = os.path.join(root, CONFIG)
    if os.path.islink(path):
        message = "a symbolic link is where a file must be"
        hint = "replace it with a plain file"
        raise _error_for_bad_config(Finding(Reason.NOT_REGULAR, CONFIG, 0, "", message, hint=hint))
    return _written(path, CONFIG)


def _written(path: str, name: str) -> bytes | None:
    """Return the content of a file; None where there is none.

    Raises:
        YoloError: BAD_CONFIG where one is and cannot be read: what it forbids must not be allowed.
    """
    # Opening a pipe would wait for its writer.
    if os.path.lexists(path) and not os.path.isfile(path):
        raise _error_for_bad_config(Finding(Reason.NOT_REGULAR, name, hint="put a file there"))
    try:
        with open(path, "rb") as file:
            return file.read(Limits().max_file_bytes + 1)
    except OSError as error:
        if not os.path.lexists(path):  # also in a home that this user may not enter
            return None
        raise _error_for_bad_config(
            Finding(Reason.UNREADABLE, name, message=error.strerror or str(error))
        ) from None


def _parse_object(data: bytes, name: str) -> dict[str, Any]:
    reading = read_object(data, name, Limits())
    if not reading.records:
        raise _error_for_bad_config(reading.findings[0])
    return reading.records[0].value


def _error_for_bad_config(finding: Finding) -> YoloError:
    look = f"'yolo-fs validate {shlex.quote(finding.path)}' shows all faults."
    message = str(replace(finding, hint="", command=""))
    return YoloError(Reason.BAD_CONFIG, message, hint=f"{finding.hint or 'Fix it.'} {look}")
