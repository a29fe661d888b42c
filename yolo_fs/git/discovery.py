"""Finds the repository of a folder, and refuses what no git could read to its end."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.environment import forget_inherited_environment
from yolo_fs.git.failures import NO_RIGHT, is_locked_away
from yolo_fs.git.runner import Git, load_git_python
from yolo_fs.system.files import content_of, is_endless

if TYPE_CHECKING:
    import git as git_python


class RepositoryPaths(NamedTuple):
    """Paths of a repository and its parts."""

    root: str
    """Top of the work tree."""
    git_dir: str
    common_dir: str
    """Differs from `git_dir` in a linked work tree."""
    hooks_dir: str
    """The user's hooks. We run none, and our own commands point the setting elsewhere."""


_ELSEWHERE = re.compile(rb"worktree|hookspath|include|bare(?!\s*=\s*false\b)", re.IGNORECASE)
"""Unless one of these words occurs, no configuration moves a part of a repository elsewhere."""


def open_repository(start: str) -> git_python.Repo:
    """Return the repository that `start` lies in, to be closed by the caller.

    Raises:
        YoloError: NOT_A_REPOSITORY, or BARE_REPOSITORY when it has no work tree; NOT_REGULAR.
    """
    forget_inherited_environment()
    place = os.path.realpath(start)  # as git: a link into a repository leads there
    named = list(_read_to_find(place))
    refuse_endless(named)
    refuse_endless(included_by(named))
    git = load_git_python()
    try:
        repository: git_python.Repo = git.Repo(
            place, search_parent_directories=True, expand_vars=False
        )
    except (git.exc.InvalidGitRepositoryError, git.exc.NoSuchPathError, ValueError, OSError):
        message = f"no git repository at {safe(os.path.abspath(start))}"
        hint = "Change to a repository, use -C DIR, or create one here with 'git init'."
        if os.path.isfile(os.path.join(start, ".git")):
            hint = (
                "Its repository was moved or deleted: in the repository, run 'git worktree repair' "
                "with this path."
            )
        locked = [place for place in named if is_locked_away(place)]
        if locked:
            hint = f"{safe(locked[0])} cannot be read. {NO_RIGHT}"
        raise YoloError(Reason.NOT_A_REPOSITORY, message, hint=hint) from None
    if repository.bare or repository.working_tree_dir is None:
        repository.close()
        message = f"{safe(os.path.abspath(start))} is in a repository without a work tree"
        hint = "Work in a clone of it, or in a work tree that 'git worktree add' makes."
        raise YoloError(Reason.BARE_REPOSITORY, message, hint=hint)
    return repository


_MOST_READ_BYTES = 1 << 30
_MOST_CONFIG_BYTES = 8 << 20
_MOST_INCLUDED = 64


def refuse_endless(places: Iterable[str]) -> None:
    """Refuse files that every git, and GitPython, would read forever, or nearly so.

    Raises:
        YoloError: NOT_REGULAR.
    """
    for place in places:
        is_config = os.path.basename(place).startswith("config")
        most_bytes = _MOST_CONFIG_BYTES if is_config else _MOST_READ_BYTES
        if not is_endless(place, most_bytes):
            continue
        raise YoloError(
            Reason.NOT_REGULAR,
            f"{safe(place)}: a pipe, a device or more than {most_bytes >> 20} MiB in the place of "
            "a file that git reads",
            hint="Check what it is, then replace it with a file.",
        )


def included_by(files: Iterable[str]) -> Iterator[str]:
    """Yield the files that files of configuration include, and what those include."""
    left = list(files)
    for file in left:
        if b"include" not in content_of(file).lower() or len(left) > _MOST_INCLUDED:
            continue
        # Not in the repository: there git itself would read what is included.
        answer = Git("/").run(
            *("config", "--file", file, "--no-includes", "--null", "--path"),
            *("--get-regexp", r"^include(if\..*)?\.path$"),
            ok=(0, 1, 128),
        )
        for pair in answer.out.split(b"\0")[:-1]:
            path = os.fsdecode(pair.partition(b"\n")[2])
            place = os.path.normpath(os.path.join(os.path.dirname(file), path))
            yield place
            if place not in left:
                left.append(place)


def _read_to_find(place: str) -> Iterator[str]:
    """Yield the files that are read to find the repository of a folder."""
    while not os.path.lexists(f"{place}/.git") and place != os.path.dirname(place):
        place = os.path.dirname(place)
    yield f"{place}/.git"
    link = os.fsdecode(content_of(f"{place}/.git", 4096)).removeprefix("gitdir: ").strip()
    git_dir = os.path.join(place, link or ".git")
    shared = ("../../HEAD", "../../config") if link else ()  # of a linked work tree
    for name in ("HEAD", "commondir", "config", *shared):
        yield f"{git_dir}/{name}"


def discover(start: str) -> RepositoryPaths:
    """Find the repository that `start` lies in.

    Raises as `open_repository`, and BARE_REPOSITORY when its configuration names a work tree
    elsewhere. GitPython is only used for unusual layouts: importing it costs more than most
    commands.
    """
    forget_inherited_environment()
    return _ordinary(start) or _found_by_git_python(start)


def _ordinary(start: str) -> RepositoryPaths | None:
    """Return the paths of a repository with git's default layout; None for any other."""
    place = os.path.realpath(start)
    while not os.path.lexists(f"{place}/.git"):
        if os.path.lexists(f"{place}/HEAD") or place == os.path.dirname(place):
            return None
        place = os.path.dirname(place)
    root = os.path.realpath(place)
    git_dir = f"{root}/.git"
    is_whole = all(os.path.isdir(f"{git_dir}{part}") for part in ("", "/objects", "/refs"))
    is_linked = os.path.islink(git_dir) or os.path.lexists(f"{git_dir}/commondir")
    if is_linked or not is_whole or not os.path.isfile(f"{git_dir}/HEAD"):
        return None
    if not os.path.exists(start) or any(map(_ELSEWHERE.search, config_texts(git_dir, git_dir))):
        return None
    return RepositoryPaths(root, git_dir, git_dir, f"{git_dir}/hooks")


def config_texts(git_dir: str, common_dir: str) -> tuple[bytes, ...]:
    """Return the contents of git's configuration files, the repository's own first.

    Reading them costs less than asking git.
    """
    home = os.path.expanduser("~")
    more = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    own = (f"{common_dir}/config", f"{git_dir}/config.worktree")
    places = (*own, "/etc/gitconfig", f"{home}/.gitconfig", f"{more}/git/config")
    return tuple(content_of(place) for place in places)


def _found_by_git_python(start: str) -> RepositoryPaths:
    with open_repository(start) as repository, repository.config_reader() as config:
        root, common_dir = (
            os.path.realpath(str(repository.working_tree_dir)),
            os.path.realpath(str(repository.common_dir)),
        )
        hooks = os.path.expanduser(str(config.get_value("core", "hooksPath", "")))
        git_dir = os.path.realpath(str(repository.git_dir))
        # GitPython, unlike git, does not look there for the files of the user.
        elsewhere = os.path.join(git_dir, str(config.get_value("core", "worktree", root)))
    if git_dir == common_dir and os.path.realpath(elsewhere) != root:
        message = f"core.worktree puts the work tree of {safe(root)} elsewhere"
        hint = "Use a linked work tree (`git worktree add`) instead."
        raise YoloError(Reason.BARE_REPOSITORY, message, hint=hint)
    return RepositoryPaths(
        root, git_dir, common_dir, os.path.join(root, hooks or f"{common_dir}/hooks")
    )


def is_trusted_by_git(place: str) -> bool:
    """Return whether git itself works at a place that belongs to another user.

    It does where the user's own configuration says so (`safe.directory`), and for root in a
    repository of whoever called sudo.
    """
    # Not in a `Git`: naming the git directory disables git's own check of the owner.
    return Git(place).run("rev-parse", "--git-dir", ok=(0, 128)).code == 0
