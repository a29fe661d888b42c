"""Our folder in the git directory of a work tree, for code that may import little.

Only built-in modules are imported here: hooks of agents begin with it.
"""

from __future__ import annotations

import os

OWN_FOLDER = "yolo-fs"
"""Name of the folder that holds our own files, in the git directory of each work tree."""
HOOK_IN_FULL = "hook-in-full"
"""Request of a hook to the observer, once it is clear that something of ours is touched."""
ASKED_BY_GIT = "asked-by-git"
"""Request of the script in git's hooks to the observer."""


def own_folder(root: str) -> str:
    """Return `.git/yolo-fs` of the work tree at `root`, also of a linked one; empty outside any."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):  # to open a pipe would wait for its writer
        try:
            with open(git, "rb") as file:
                text = file.read(4096).decode("utf-8", "surrogateescape")
        except OSError:
            return ""
        name, _, place = text.strip().partition(": ")
        git = os.path.join(root, place) if name == "gitdir" else ""
    return os.path.join(git, OWN_FOLDER) if git and os.path.isdir(git) else ""


def find_storage_fault(folder: str) -> str:
    """Return the reason why the file system of a folder can store nothing at all; empty for none.

    See docs/dev/faults.md#f06 and #f07.
    """
    facts = os.statvfs(folder)
    if facts.f_flag & os.ST_RDONLY:
        return "storage_failed"
    free = facts.f_bfree if os.geteuid() == 0 else facts.f_bavail
    return "no_space" if facts.f_blocks and not free else ""


def find_write_fault(folder: str) -> str:
    """Return the reason why nothing can be written in a folder; empty for none."""
    is_writable = os.access(folder, os.W_OK | os.X_OK)
    return find_storage_fault(folder) or ("" if is_writable else "storage_failed")


def user_folder(variable: str, below_home: str) -> str:
    """Return the folder that a variable of XDG names, else the one below the user's home.

    What is relative does not count, as XDG has it: it would lie in a repository, which would then
    decide what only its user may. Where nothing is absolute, a folder that does not exist.
    """
    named = os.environ.get(variable, "")
    if os.path.isabs(named):
        return named
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd  # few have no home

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a container whose user has no name
            home = _NO_HOME
    return os.path.join(home if os.path.isabs(home) else _NO_HOME, below_home)


_NO_HOME = "/nonexistent"


def quick_stamp(path: str) -> list[int] | None:
    """Return a stamp of a file that JSON can hold; None where there is no file."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


_TRUSTED: dict[str, frozenset[int]] = {}
"""Git directory → the users that git trusts in its repository."""


def trust_in(git_dir: str, users: frozenset[int]) -> None:
    """Accept as owners in a git directory the users whom git trusts there."""
    _TRUSTED[git_dir] = users


def owners_of(path: str) -> frozenset[int]:
    """Return the users who may own something of ours at a path.

    They are this user, and whoever git trusts in the path's repository, once that was opened.
    """
    known = (users for place, users in _TRUSTED.items() if path.startswith(f"{place}/"))
    return frozenset((os.geteuid(),)).union(*known)


class ForeignFolderError(OSError):
    """A folder that should be ours belongs to another user."""


def open_own(folder: str) -> int:
    """Open a folder of ours, and close it to other users.

    It must not be a link, and must belong to one of its `owners_of`.

    Raises:
        ForeignFolderError: it belongs to another user.
        OSError: there is none, or a link or a file in its place.
    """
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(place)
    if status.st_uid not in owners_of(folder):
        os.close(place)
        raise ForeignFolderError(f"it belongs to user {status.st_uid}")
    if status.st_mode & 0o077:
        try:
            os.fchmod(place, 0o700)
        except OSError:
            os.close(place)
            raise
    return place


def make_folder(path: str, mode: int, *, parent: int | None = None) -> None:
    """Make a folder; one that root makes belongs to whom the folder above belongs.

    So do the files that root makes in it: whoever owns a repository in which root once ran us goes
    on there. `parent`: an open folder that the path is relative to.

    Raises:
        FileExistsError: something is there already; nobody is given that.
        OSError: it cannot be made.
    """
    os.mkdir(path, mode, dir_fd=parent)
    if os.geteuid() == 0:
        above = os.stat(os.path.dirname(path) or ".", dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(path, flags, dir_fd=parent)
        try:
            _give_to(above, made)
        finally:
            os.close(made)


def open_or_create(folder: int, name: str, flags: int, mode: int) -> int:
    """Open a file; one that root creates belongs to whom the folder belongs, as SQLite has it.

    A daemon may be root in a container, beside agents that the owner of the repository starts
    outside. Nobody is given a file that was there before.
    """
    if os.geteuid() or not flags & os.O_CREAT:
        return os.open(name, flags, mode, dir_fd=folder)
    try:
        descriptor = os.open(name, flags | os.O_EXCL, mode, dir_fd=folder)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(name, flags, mode, dir_fd=folder)
    _give_to(os.fstat(folder), descriptor)
    return descriptor


def _give_to(owner: os.stat_result, created: int) -> None:
    """Give what root has just created to the owner of the folder above."""
    if owner.st_uid != os.geteuid():
        os.fchown(created, owner.st_uid, owner.st_gid)


def is_private(status: os.stat_result) -> bool:
    """Return whether a folder is this user's, and nobody else may write in it or pass it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
