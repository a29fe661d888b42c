"""Proves that each of our git hooks really runs, in every work tree: what can be seen first, then
by asking it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.git.runner import run_as_user
from yolo_fs.reasons import Finding
from yolo_fs.services.hooks.githooks import (
    NAMES,
    SCRIPT,
    Deed,
    HookFileChange,
    Layout,
    Refuse,
    broken,
    content_of,
    layout,
    plan_install,
    split_first,
    work_trees,
)
from yolo_fs.services.hooks.script import BEGIN, PROBED

_AGAIN = "Run 'yolo-fs hooks install'."


def examine(repository: Repository) -> Iterator[Finding]:
    """Yield each hook that does not run in one of the work trees.

    Each that seems to is asked, as git would.
    """
    wanted = {deed.path: deed for deed in plan_install(repository)}
    own = os.path.join(repository.common_dir, SCRIPT)
    is_ours = not isinstance(deed := wanted[own], HookFileChange)
    if isinstance(deed, HookFileChange):
        gone = (
            "the script that every section calls is gone"
            if deed.before is None
            else "it is not that of this version"
        )
        yield broken(own, gone, _AGAIN)
        if deed.before is None:
            return
    for root in work_trees(repository):
        place = layout(root)
        for name in NAMES:
            wrong = _looks_broken(place, name, wanted.get(place.file(name)))
            if is_ours:  # else the section would run a script of somebody else
                wrong = wrong or _stays_silent(root, name)
            if wrong:
                yield broken(place.file(name), f"{name} does not run in {root}: {wrong}", _AGAIN)


def _looks_broken(place: Layout, name: str, deed: Deed | None) -> str:
    """Return what can be seen to be wrong without running anybody's script."""
    if isinstance(deed, Refuse):
        return deed.finding.message
    git_file = os.path.join(place.git_folder, name)
    if place.is_husky and not os.path.isfile(git_file):
        return f"husky is not set up here: {git_file} is not there"
    if not os.access(git_file, os.X_OK):
        return (
            f"{git_file} is not executable" if os.path.isfile(git_file) else "it is not installed"
        )
    content = content_of(place.file(name)) or b""
    if BEGIN.encode() not in content:
        return "our section is not in it; a hook manager, or somebody, wrote it anew"
    if not split_first(content)[1].startswith(BEGIN.encode()):
        return "something stands above our section and may end the hook before it"
    return "our section in it was changed" if isinstance(deed, HookFileChange) else ""


def _stays_silent(root: str, name: str) -> str:
    """Ask a hook, through git, whether our section in it is reached; the user's part then does not
    run.
    """
    os.environ["YOLO_FS_PROBE"] = "1"
    try:
        said = run_as_user(root, ["hook", "run", name])
    finally:
        del os.environ["YOLO_FS_PROBE"]
    if said.code == PROBED and f"answers {name}" in said.err + said.out.decode("utf-8", "replace"):
        return ""
    if "not a git command" in said.err:  # git before 2.36 cannot be asked; what can be seen must do
        return ""
    heard = (said.err or said.out.decode("utf-8", "replace")).strip().partition("\n")[0]
    return f"asked by git, it says nothing of ours{f', but {heard!r}' if heard else ''}"
