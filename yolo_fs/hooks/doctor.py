"""Checks that each git hook of ours runs, and that the hosts trust what `setup` wrote."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.git.as_user import run_as_user
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.githooks import (
    NAMES,
    SCRIPT,
    Deed,
    HookFileChange,
    HookFileKept,
    Layout,
    Refuse,
    broken,
    content_of,
    is_noexec,
    layout,
    plan_install,
    split_first,
)
from yolo_fs.hooks.hostsettings import PROGRAM, HostSettings
from yolo_fs.hooks.script import BEGIN, PROBED
from yolo_fs.protocol.hooks import HOST_BY_NAME, Host
from yolo_fs.system.files import content_of as bytes_of

_AGAIN = "Run 'yolo-fs hooks install'."
_NO_HOOKS = (
    "Mount it without noexec. Until then the daemon and 'yolo-fs verify' check what is committed."
)


def examine(repository: Repository, *, asks: bool = True) -> Iterator[Finding]:
    """Yield each hook that does not run in one of the work trees.

    `asks`: each hook that looks intact is also run, as git would.
    """
    wanted = {deed.path: deed for deed in plan_install(repository)}
    own = os.path.join(repository.common_dir, SCRIPT)
    is_ours = not isinstance(deed := wanted[own], HookFileChange)
    if isinstance(deed, HookFileChange):
        gone = (
            "the script that every section calls is gone"
            if deed.before is None
            else "the script belongs to another version"
        )
        yield broken(own, gone, _AGAIN)
        if deed.before is None:
            return
    for root in repository.work_trees():
        place = layout(root)
        if is_noexec(place.git_folder):
            message = f"{place.git_folder} is mounted with noexec, so git runs no hook there"
            yield broken(place.git_folder, message, _NO_HOOKS)
            continue
        for name in NAMES:
            wrong = _find_visible_defect(place, name, wanted.get(place.file(name)))
            has_section = BEGIN.encode() in (content_of(place.file(name)) or b"")
            if (
                asks and is_ours and has_section
            ):  # else the section would run a script of somebody else
                wrong = wrong or _probe_hook(root, name, place.file(name))
            if wrong:
                message = f"{name} does not run in {root}: {wrong.what}"
                yield broken(place.file(name), message, wrong.hint, wrong.command)


class _Defect(NamedTuple):
    """Why a hook does not run, and what to do; see `Finding`."""

    what: str
    hint: str = _AGAIN
    command: str = ""


def _find_visible_defect(place: Layout, name: str, deed: Deed | None) -> _Defect | None:
    """Return the visible defect of a hook, without running anybody's script."""
    if isinstance(deed, Refuse):
        return _Defect(deed.finding.message, deed.finding.hint, deed.finding.command)
    git_file = os.path.join(place.git_folder, name)
    if place.is_husky and not os.path.isfile(git_file):
        what = f"husky is not set up here: {git_file} is not there"
        return _Defect(what, "Set husky up, as 'npm install' does.", "npx husky")
    if not os.path.isfile(git_file):
        return _Defect("it is not installed")
    if not os.access(git_file, os.X_OK):
        return _Defect(f"{git_file} is not executable")
    content = content_of(place.file(name)) or b""
    if BEGIN.encode() not in content:
        what = "our section is not in it; a hook manager or a person wrote the hook again"
        return None if isinstance(deed, HookFileKept) else _Defect(what)
    if not split_first(content)[1].startswith(BEGIN.encode()):
        return _Defect("commands above our section may end the hook before it")
    return _Defect("our section in it was changed") if isinstance(deed, HookFileChange) else None


def _probe_hook(root: str, name: str, path: str) -> _Defect | None:
    """Run a hook through git to see if our section is reached; the user's part does not run."""
    os.environ["YOLO_FS_PROBE"] = "1"
    try:
        answer = run_as_user(root, ["hook", "run", name])
    finally:
        del os.environ["YOLO_FS_PROBE"]
    if answer.code == PROBED and f"answers {name}" in answer.err + answer.out.decode(
        "utf-8", "replace"
    ):
        return None
    if (
        "not a git command" in answer.err
    ):  # git before 2.36 cannot be asked; what can be seen must do
        return None
    heard = (answer.err or answer.out.decode("utf-8", "replace")).strip().partition("\n")[0]
    what = f"run by git, it does not reach our section{f'; it prints {heard!r}' if heard else ''}"
    if "No such file or directory" in heard:  # our section is whole, and nobody reads it
        hint = "Its first line names a program that is not there, or ends with a carriage return."
        return _Defect(what, hint, f"sed -n 1l {shlex.quote(path)}")
    return _Defect(what)


_MAX_BYTES = 16 << 20


def examine_hosts(
    repository: Repository, start: str, *, looks_for_us: bool = False
) -> Iterator[Finding]:
    """Yield what keeps a host whose settings have our hooks from running them in `start`.

    `looks_for_us`: also where a host would look for our program; for whoever runs in the
    environment of a person, as a daemon does not.
    """
    for host in HOST_BY_NAME.values():
        try:
            yield from _examine(repository, host, start)
            if looks_for_us and _has_hooks(repository, host):
                yield from _check_on_path(host)
        except YoloError as error:
            yield _make_warning(host, error.message, error.hint, f"cat {host.settings}")


def not_on_path() -> tuple[Finding, ...]:
    """Return that no host finds us: hooks in a file that a team shares name the program alone."""
    if shutil.which(PROGRAM):
        return ()
    message = f"{PROGRAM} is not on the PATH, so the host cannot run it"
    hint = "install it with pipx or uv, or add its folder to the PATH"
    return (Finding(Reason.FILE_MISSING, message=message, hint=hint, level=Level.WARNING),)


def _check_on_path(host: Host) -> Iterator[Finding]:
    yield from not_on_path()
    here = shutil.which(PROGRAM)
    if here and not shutil.which(PROGRAM, path=_DESKTOP):
        folder = safe(os.path.dirname(here))
        message = f"{PROGRAM} is in {folder}, where a host started from the desktop does not look"
        hint = f"Start the host from a terminal, or run: ln -s {shlex.quote(here)} /usr/local/bin/"
        yield replace(_make_warning(host, message, hint), reason=Reason.FILE_MISSING)


_DESKTOP = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
"""The PATH of a session that read no profile of a shell."""


def _has_hooks(repository: Repository, host: Host) -> bool:
    kinds = (False, True) if host.local_settings else (False,)
    return any(
        list(HostSettings(repository, host, is_local=is_local).positions()) for is_local in kinds
    )


def _examine(repository: Repository, host: Host, start: str) -> Iterator[Finding]:
    settings = HostSettings(repository, host)
    installed = settings.look()
    here = [settings] if list(settings.positions()) else []
    is_local = False
    if host.local_settings:
        local = HostSettings(repository, host, is_local=True)
        is_local = bool(list(local.positions()))
        installed = local.look() if is_local and not here else installed
    if not here and not is_local:
        return
    yield from switched_off(repository, host)
    if installed.missing:
        hint = f"Run 'yolo-fs setup {host.name}'; nothing of others is touched."
        yield _make_warning(
            host, f"no hook of ours, or an older one, for {_listed(installed.missing)}", hint
        )
    below = os.path.realpath(start) != os.path.realpath(repository.root)
    if below and host.local_settings and not is_local:
        message = "the host ignores this file when it is started in a subdirectory"
        hint = f"Start it at the root, or run 'yolo-fs setup {host.name} --local'."
        yield _make_warning(host, message, hint)
    if host.name == "codex":
        yield from _check_trust(repository, host, settings)


def switched_off(repository: Repository, host: Host) -> Iterator[Finding]:
    """Yield each settings file that turns off all hooks of a host, ours too."""
    if not host.off_switch:
        return
    own = os.path.join(os.environ.get(host.home[0]) or os.path.expanduser(host.home[1]), "")
    places = [f"{repository.root}/{host.settings}", f"{repository.root}/{host.local_settings}"]
    places += [own + os.path.basename(each) for each in (host.settings, host.local_settings)]
    for place in dict.fromkeys(places):
        if _settings(place).get(host.off_switch) is True:
            shown = os.path.relpath(place, repository.root)
            shown = place if shown.startswith(os.pardir) else shown
            hint = f"Remove {host.off_switch} from it, or set it to false."
            message = f"{host.off_switch} in {safe(shown)} turns off every hook, ours too"
            look = f"grep -n {host.off_switch} {shlex.quote(shown)}"
            yield _make_warning(host, message, hint, look)


def _settings(path: str) -> Mapping[str, Any]:
    try:
        content = parse(bytes_of(path, _MAX_BYTES), _MAX_BYTES)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _check_trust(repository: Repository, host: Host, settings: HostSettings) -> Iterator[Finding]:
    home = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    config = _read_toml(os.path.join(home, "config.toml"))
    if config is None:  # whoever works here does not use it
        return
    roots = {repository.root, os.path.realpath(repository.root), _main_root_of(repository)}
    projects = _table(config, "projects")
    if not any(_table(projects, root).get("trust_level") == "trusted" for root in roots):
        hint = (
            "Start an interactive session here and trust the folder, or use `codex exec --trust`."
        )
        message = "the project is not trusted, so the host does not read this file"
        yield _make_warning(host, message, hint, host.name)
    states = _table(_table(config, "hooks"), "state")
    unapproved = []
    for event, group, number, entry, handler in settings.positions():
        key = f"{_to_snake_case(event)}:{group}:{number}"
        keys = [f"{root}/{host.settings}:{key}" for root in roots]
        digest = approved_digest(event, entry.get("matcher"), handler)
        if not any(_table(states, each).get("trusted_hash") == digest for each in keys):
            unapproved.append(event)
    if unapproved:
        which = _listed(tuple(dict.fromkeys(unapproved)))
        message = f"not approved as it is now, and skipped silently: {which}"
        hint = "Start an interactive session here and review the hooks, or type /hooks in one."
        yield _make_warning(host, message, hint, host.name)


def approved_digest(event: str, matcher: object, handler: Mapping[str, Any]) -> str:
    """Return the digest that Codex stores for a hook that its user has approved."""
    identity: dict[str, Any] = {
        "event_name": _to_snake_case(event),
        "hooks": [
            {
                "async": handler.get("async", False),
                "command": handler.get("command"),
                "timeout": handler.get("timeout", 600),
                "type": "command",
            }
        ],
    }
    if isinstance(matcher, str):
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _to_snake_case(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def _main_root_of(repository: Repository) -> str:
    """Return the main work tree, whose trust holds for the linked ones too."""
    return os.path.dirname(os.path.realpath(repository.common_dir))


def _read_toml(path: str) -> dict[str, Any] | None:
    if not os.path.isfile(path):
        return None
    try:
        return tomllib.loads(bytes_of(path, _MAX_BYTES).decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = value.get(key)
    return table if isinstance(table, dict) else {}


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(safe(name) for name in names)


def _make_warning(host: Host, message: str, hint: str, command: str = "") -> Finding:
    return Finding(
        Reason.HOOK_BROKEN,
        host.settings,
        message=message,
        hint=hint,
        level=Level.WARNING,
        command=command,
    )
