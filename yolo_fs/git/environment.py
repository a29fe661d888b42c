"""The settings and variables that each git of ours has, and those that it never inherits.

Nothing that the repository contains or names (hooks, filters, drivers, fsmonitor, aliases, replace
refs) takes part, and no inherited `GIT_*` variable reaches a child.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

_IDENTITY = frozenset(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)
_KEPT = "YOLO_FS_"
"""Prefix of the names of the git variables that we honour."""


def forget_inherited_environment() -> dict[str, str]:
    """Drop every `GIT_*` variable of this process and return what was dropped.

    Called once at the start of each command: a hook that started us names *its* repository. The
    user's identity is kept for `given_identity` and for child processes. In a hook it is not, since
    there it is the identity of whoever made the current commit.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("GIT_") and "PYTHON" not in name
    }
    for name in inherited:
        del os.environ[name]
    if not inherited.keys() & {"GIT_DIR", "GIT_INDEX_FILE"}:
        for name in inherited.keys() & _IDENTITY:
            os.environ[f"{_KEPT}{name}"] = inherited[name]
    return inherited


def given_identity() -> dict[str, str]:
    """Return the user's identity from the environment, under git's variable names."""
    kept = {name: os.environ.get(f"{_KEPT}{name}") for name in sorted(_IDENTITY)}
    return {name: value for name, value in kept.items() if value is not None}


@contextlib.contextmanager
def set_aside_inherited_environment() -> Iterator[None]:
    """Remove the inherited variables temporarily, and restore them afterwards."""
    inherited = forget_inherited_environment()
    try:
        yield
    finally:
        os.environ.update(inherited)


ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # beats every protocol.NAME.allow of the repository, which protocol.allow does not
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # no file can be there, so git has no grafts, and says nothing of them
    "GIT_GRAFT_FILE": "/dev/null/none",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
}

_NO_HOOKS = "core.hooksPath=/dev/null"
OWN_MARK = _NO_HOOKS.encode()
"""A word of the command line of each git of ours, and hardly of anybody else's."""
_SETTINGS = (
    _NO_HOOKS,
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.pager=cat",
    # an index that replaces the user's unsynced may be empty after power loss
    "core.fsync=committed,reference,index",
    "core.fsyncMethod=fsync",
    "core.quotePath=false",
    "core.filesRefLockTimeout=100",  # a negative one waits for ever; milliseconds
    "core.packedRefsTimeout=1000",
    "core.warnAmbiguousRefs=false",  # a hash is looked for as a name in a dozen places else
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "credential.helper=",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "log.showSignature=false",
    "log.mailmap=false",  # a file of the work tree, and names are told as they were written
    "i18n.logOutputEncoding=UTF-8",
)


NETWORK = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_SSH_VARIANT": "ssh",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
}
"""Environment of the commands that reach the user's remote: their credentials, never a prompt."""
_NETWORK_SETTINGS = (
    *(each for each in _SETTINGS if not each.startswith(("credential.helper", "protocol.allow"))),
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=20",
    "push.gpgSign=false",
    "push.followTags=false",
    "core.bigFileThreshold=8m",  # what is larger arrives in pieces, and stands in no memory whole
)
OPTIONS, NETWORK_OPTIONS = (
    [part for setting in settings for part in ("-c", setting)]
    for settings in (_SETTINGS, _NETWORK_SETTINGS)
)


def settings_as_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as variables: unlike with `-c`, a key may contain `=`."""
    pairs = {
        f"GIT_CONFIG_{part}_{at}": text
        for at, pair in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs} if settings else {}
