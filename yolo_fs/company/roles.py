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
from yolo_fs.protocol.departments import SHARED_NAMES, Role
from yolo_fs.protocol.roster import agent, plain_name, role_named_in
from yolo_fs.schemas.config import Config
from yolo_fs.workspace.settings import CONFIG

_PROGRAM = "yolo-fs"


def chosen_model(config: Config, name: str) -> str:
    """Return the model that the configuration has for an agent; empty where its host chooses.

    An agent of one department is more precise than its role.
    """
    row = agent(name)
    forced = config.complexity_routing.force_analyze_model
    if row.role is Role.ANALYZE and forced:
        return forced
    chosen = {plain_name(key): model for key, model in config.model_overrides.items()}
    return chosen.get(row.name) or chosen.get(row.role, "")


def check_models(config: Config) -> None:
    """Refuse a model for a role that does not exist, before anything is begun with another model.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    for key in config.model_overrides:
        role_named_in(f"model_overrides of {CONFIG}", key)


def model_of(config: Config, name: str) -> str:
    """Return the model of an agent: the configured one, else the class that the roster has."""
    return chosen_model(config, name) or agent(name).model.lower()


def gaps_of(repository: Repository, act: Act, command: str, config: Config) -> Mapping[str, str]:
    """Return the gaps of a command line with their values, without unused ones.

    `{python}`: the Python that has us, which is not that of a user's PATH where we are installed
    apart; `{plugin}`: the folder of our plugin; `{sandbox}` and `{definition}`: of the agent, the
    text quoted as TOML and JSON quote it.
    """
    gaps = {
        "agent": act.agent,
        "role": act.role,
        "department": str(act.department or SHARED_NAMES[0]),
        "model": model_of(config, act.agent),
        "plugin": plugin_folder(repository),
        "python": sys.executable,
    }
    if "{definition}" in command or "{sandbox}" in command:
        from yolo_fs.definitions.definition import Definition, text_of
        from yolo_fs.definitions.host_files import sandbox_of

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
