"""The parts of a host's command line that depend on the agent, so that it starts in its role."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping

from yolo_fs.company.runs import FOLDER
from yolo_fs.git.repository import Repository
from yolo_fs.phase.acts import Act
from yolo_fs.protocol.departments import SHARED_NAMES

_PROGRAM = "yolo-fs"


def gaps_of(repository: Repository, act: Act, command: str) -> Mapping[str, str]:
    """Return the gaps of a command line with their values, without unused ones.

    `{python}`: the Python that has us, which is not that of a user's PATH where we are installed
    apart; `{plugin}`: the folder of our plugin; `{sandbox}` and `{definition}`: of the agent, the
    text quoted as TOML and JSON quote it.
    """
    gaps = {
        "agent": act.agent,
        "role": act.role,
        "department": str(act.department or SHARED_NAMES[0]),
        "plugin": plugin_folder(repository),
        "python": sys.executable,
    }
    if "{definition}" in command or "{sandbox}" in command:
        from yolo_fs.definitions.definition import Definition, text_of
        from yolo_fs.definitions.host_files import sandbox_of
        from yolo_fs.protocol.roster import agent

        own = Definition(agent(act.agent))
        gaps["definition"] = json.dumps(text_of(own), ensure_ascii=False)
        gaps["sandbox"] = sandbox_of(own)
    return gaps


def plugin_folder(repository: Repository) -> str:
    """Return the folder of our plugin for the hosts that the runner starts."""
    return os.path.join(repository.own_dir, FOLDER, "plugin")


def make_plugin(repository: Repository, command: str) -> None:
    """Create the plugin if a command line names it."""
    if "{plugin}" in command:
        from yolo_fs.definitions.plugin import write_own_plugin

        write_own_plugin(plugin_folder(repository), repository.own_dir)


def path_with_us() -> Mapping[str, str]:
    """Return the PATH for an agent that would not find `yolo-fs`, which it and its hooks run. Empty
    if it finds it, or if there is no such program beside our interpreter.
    """
    folder = os.path.dirname(sys.executable)
    if shutil.which(_PROGRAM) or not os.access(os.path.join(folder, _PROGRAM), os.X_OK):
        return {}
    return {"PATH": os.pathsep.join(filter(None, (os.environ.get("PATH", ""), folder)))}
