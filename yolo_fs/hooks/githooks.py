"""Inserts our section into git's hooks beside existing content, and removes it without a trace.

It never sets `core.hooksPath`, and never overwrites anybody else's bytes. The section goes in after
the first line, so that nothing there can end the hook before it. A hook that is no shell script is
moved aside, and called by the script that replaces it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import yolo_fs
from yolo_fs import __version__
from yolo_fs.checking.verify import NOTE
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError
from yolo_fs.git.as_user import run_as_user
from yolo_fs.git.failures import failure
from yolo_fs.git.obstacles import COMMITTING
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.script import BEGIN, END, HINTED, MADE_BY_US, script, section
from yolo_fs.protocol.hooks import GIT_HOOKS
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import (
    NO_SECOND_NAMES,
    environment,
    opened,
    private_directory,
    write_atomic,
    write_json,
)
from yolo_fs.workspace.own_files import HOOKS
from yolo_fs.workspace.settings import load

NAMES = tuple(row.name for row in GIT_HOOKS if row.installed)
SCRIPT = "yolo-fs/git-hook"
"""The script that every section calls, relative to the common git directory."""

_SHELL = re.compile(rb"#!\s*(?:/usr/bin/env\s+)?(?:\S*/)?(?:ba|da|z|k|a)?sh\b")
_SECTION = re.compile(
    rb"%s\n(?:(?!%s).)*?%s\n" % tuple(re.escape(line.encode()) for line in (BEGIN, BEGIN, END)),
    re.DOTALL,
)
_SHEBANG = b"#!/bin/sh\n"
_LARGEST_BYTES = 1 << 20
_CHAINED = "yolo-fs-chained"
"""Folder beside the hooks for the user's hooks that are no shell scripts, under their names."""
_CHAIN = """\
# Calls your own hook: 'yolo-fs hooks install' moved it, 'yolo-fs hooks uninstall' moves it back.
if [ -x "${0%/*}/@FOLDER@/@NAME@" ]; then exec "${0%/*}/@FOLDER@/@NAME@" "$@"; fi
"""


@dataclass(frozen=True, slots=True)
class HookFileChange:
    """A file to write or to remove."""

    path: str
    """Absolute."""
    before: bytes | None
    """None where there is no file yet."""
    after: bytes | None
    """None if the file is removed."""
    mode: int
    """Permissions of a new file; those of an old one are kept."""

    @property
    def did(self) -> str:
        """The action in one word."""
        if self.after is None:
            return "removed"
        if self.before is None:
            return "created"
        return "extended" if BEGIN.encode() in self.after else "restored"


@dataclass(frozen=True, slots=True)
class HookFileKept:
    """A file that needs no change."""

    path: str

    did = "kept"


@dataclass(frozen=True, slots=True)
class Refuse:
    """A file that we do not touch."""

    path: str
    finding: Finding

    did = "refused"


@dataclass(frozen=True, slots=True)
class HookFileMove:
    """A user's hook that is moved aside to be called by ours, or moved back."""

    source: str
    path: str
    """Its new path, where nothing may exist."""

    did = "moved"


Deed = HookFileChange | HookFileKept | HookFileMove | Refuse


class Layout(NamedTuple):
    """Location of the hooks of one work tree."""

    root: str
    git_folder: str
    """The hooks directory that git looks into."""

    @property
    def is_husky(self) -> bool:
        """Whether git looks into a folder made by husky, whose scripts call those above it."""
        return (
            os.path.basename(self.git_folder) == "_"
            and os.path.basename(os.path.dirname(self.git_folder)) == ".husky"
        )

    @property
    def folder(self) -> str:
        """The directory of the scripts that people edit."""
        return os.path.dirname(self.git_folder) if self.is_husky else self.git_folder

    def file(self, name: str) -> str:
        """Return the script that our section of a hook goes into."""
        return os.path.join(self.folder, name)


def is_installed(repository: Repository) -> bool:
    """Return whether our section is in the hook by which git asks about each commit's message."""
    return _has_section(repository, "commit-msg")


def were_installed(repository: Repository) -> bool:
    """Return whether anything of our hooks is there; what was never installed is not broken."""
    own = os.path.join(repository.common_dir, SCRIPT)
    return os.path.lexists(own) or any(_has_section(repository, name) for name in NAMES)


def _has_section(repository: Repository, name: str) -> bool:
    return BEGIN.encode() in (content_of(os.path.join(repository.hooks_dir, name)) or b"")


def layout(root: str) -> Layout:
    """Return where git, as the user has configured it, looks for the hooks of a work tree.

    Raises:
        YoloError: GIT_FAILED when git cannot read its configuration; NOT_A_REPOSITORY.
    """
    output = run_as_user(root, ["rev-parse", "--path-format=absolute", "--git-path", "hooks"])
    if output.code:
        raise failure("rev-parse", output)
    return Layout(root, os.path.normpath(os.fsdecode(output.out).rstrip("\n")))


def plan_install(repository: Repository) -> tuple[Deed, ...]:
    """Return the changes that install our hooks for every work tree; does not carry them out."""
    settings = load(repository.root)
    module = os.path.join(os.path.dirname(yolo_fs.__file__), "cli", "githook.py")
    wanted = script(sys.executable, module, settings.policy.directive_roots)
    own = os.path.join(repository.common_dir, SCRIPT)
    before = content_of(own)
    ours = (
        HookFileKept(own)
        if before == wanted and _is_executable(own)
        else HookFileChange(own, before, wanted, 0o700)
    )
    return (
        ours,
        *(
            deed
            for place, name in product(_places(repository), NAMES)
            for deed in _plan_section(repository, place, name)
        ),
    )


def shared(repository: Repository, deeds: Sequence[Deed]) -> tuple[str, ...]:
    """Return the files of work trees that deeds change: a team shares them, as those of husky."""
    trees = [f"{tree}/" for tree in repository.work_trees()]
    own = (f"{repository.common_dir}/", f"{repository.git_dir}/")
    return tuple(
        deed.path
        for deed in deeds
        if isinstance(deed, HookFileChange | HookFileMove)
        and deed.path.startswith(tuple(trees))
        and not deed.path.startswith(own)
    )


def plan_uninstall(repository: Repository) -> tuple[Deed, ...]:
    """Return the changes that remove all that `plan_install` adds."""
    deeds: list[Deed] = []
    for place, name in product(_places(repository), NAMES):
        for path in (place.file(name), place.file(name) + _FORMER):
            deeds += _without_section(repository, path)
    own = [
        os.path.join(repository.common_dir, name)
        for name in (SCRIPT, NOTE, HINTED, f"yolo-fs/{COMMITTING}")
    ]
    deeds += [
        HookFileChange(path, data, None, 0)
        for path in own
        if (data := content_of(path)) is not None
    ]
    return tuple(deeds)


def _places(repository: Repository) -> tuple[Layout, ...]:
    """Return the distinct hook locations of all work trees."""
    layouts = {place.folder: place for place in map(layout, reversed(repository.work_trees()))}
    return tuple(layouts.values())


def _plan_section(repository: Repository, place: Layout, name: str) -> tuple[Deed, ...]:
    path = place.file(name)
    if _calls_us(content_of(path), name) and not _home_of(repository, path):
        return (HookFileKept(path),)
    if _runs_ours_first(path):
        return (HookFileKept(path),)
    if wrong := _explain_untouchable(repository, place, path):
        hint = f'Let it call: yolo-fs git-hook {name} "$@"'
        return (Refuse(path, broken(path, wrong, hint, _look_at(repository, path))),)
    before = content_of(path)
    mode = 0o644 if place.is_husky else 0o755
    if not place.is_husky and _is_foreign(path, before):
        chain = _SHEBANG + section(name, made_by_us=True) + _chain(name)
        return (HookFileMove(path, _aside(path)), HookFileChange(path, None, chain, mode))
    if before is None:
        start = b"" if place.is_husky else _SHEBANG
        return (HookFileChange(path, None, start + section(name, made_by_us=True), mode),)
    bare = _SECTION.sub(b"", before)
    made_by_us = MADE_BY_US.encode() in before
    first, rest = split_first(bare)
    after = first + section(name, made_by_us=made_by_us) + rest
    is_right = after == before and (place.is_husky or _is_executable(path))
    return (HookFileKept(path) if is_right else HookFileChange(path, before, after, mode),)


def _look_at(repository: Repository, path: str) -> str:
    """Return the command that shows why a hook is not ours to change."""
    if not _home_of(repository, path):
        return "git config --show-origin core.hooksPath"
    return f"ls -l {shlex.quote(path)}"


def _runs_ours_first(path: str) -> bool:
    """Whether a hook is one of pre-commit, which runs the hook that it found before its own."""
    return (
        _PRE_COMMIT in (content_of(path) or b"")
        and _is_executable(path + _FORMER)
        and BEGIN.encode() in (content_of(path + _FORMER) or b"")
    )


def _calls_us(content: bytes | None, name: str) -> bool:
    """Whether a hook that we may not change calls us by the line that we ask for."""
    call = rb"^[^#\n]*\byolo-fs git-hook %s\b" % re.escape(name.encode())
    return content is not None and re.search(call, content, re.MULTILINE) is not None


_PRE_COMMIT = b"# File generated by pre-commit: "
_FORMER = ".legacy"
"""Ending of the name under which pre-commit keeps the hook that it found."""


def _is_foreign(path: str, content: bytes | None) -> bool:
    """Whether a hook exists into which no shell line can be inserted."""
    if content is None:  # absent, or too large for a script
        return os.path.isfile(path)
    return b"\0" in content or (content.startswith(b"#!") and not _SHELL.match(content))


def _aside(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, _CHAINED, name)


def _chain(name: str) -> bytes:
    return _CHAIN.replace("@FOLDER@", _CHAINED).replace("@NAME@", name).encode()


def _explain_untouchable(repository: Repository, place: Layout, path: str) -> str:
    """Return why a file must not be touched; empty if it may be."""
    if not _home_of(repository, path):
        return "core.hooksPath leads out of the repository: other repositories use these hooks, too"
    try:
        facts = os.lstat(path)
    except OSError:
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "it is a link or a folder, not a file"
    if not place.is_husky and not facts.st_mode & 0o111 and not _is_ours_alone(content_of(path)):
        return "it is not executable, so git skips it; making it executable would turn it on"
    content = content_of(path)
    if _is_foreign(path, content):
        if place.is_husky:
            return "it is not a shell script"
        taken = os.path.lexists(_aside(path))
        return f"it is not a shell script, and {_aside(path)} exists already" if taken else ""
    content = content or b""
    if content.count(BEGIN.encode()) != len(_SECTION.findall(content)):
        return "our section in it has lost its end"
    return ""


def _is_ours_alone(content: bytes | None) -> bool:
    """Whether a hook has nothing but our section: a copy that lost its mode wakes nobody else."""
    if content is None or MADE_BY_US.encode() not in content:
        return False
    return _SECTION.sub(b"", content) in (b"", _SHEBANG)


def _home_of(repository: Repository, path: str) -> str:
    """Return the git directory or work tree of this repository that a hook lies in.

    Links are followed, as the user's git does; empty where it lies elsewhere.
    """
    folder = os.path.realpath(os.path.dirname(path))
    homes = (repository.common_dir, *repository.work_trees())
    return next((home for home in homes if folder.startswith(f"{home}/")), "")


def _without_section(repository: Repository, path: str) -> tuple[Deed, ...]:
    before = content_of(path) if _home_of(repository, path) else None
    if before is None or not _SECTION.search(before):
        return ()
    after = _SECTION.sub(b"", before)
    if after == _SHEBANG + _chain(os.path.basename(path)):
        back = (HookFileMove(_aside(path), path),) if os.path.lexists(_aside(path)) else ()
        return (HookFileChange(path, before, None, 0), *back)
    return (HookFileChange(path, before, None if _is_ours_alone(before) else after, 0),)


def split_first(data: bytes) -> tuple[bytes, bytes]:
    """Split off the first line if it names an interpreter."""
    if not data.startswith(b"#!"):
        return b"", data
    first, newline, rest = data.partition(b"\n")
    return first + newline, rest


def content_of(path: str) -> bytes | None:
    content = (
        read(os.path.dirname(path), os.path.basename(path), _LARGEST_BYTES)
        if os.path.isfile(path)
        else None
    )
    return content.data if isinstance(content, Content) else None


def unfit(deeds: Sequence[Deed]) -> tuple[Finding, ...]:
    """Return the refused changes as warnings: a caller that does more than hooks goes on."""
    return tuple(
        replace(deed.finding, level=Level.WARNING) for deed in deeds if isinstance(deed, Refuse)
    )


def advice(repository: Repository) -> Iterator[Finding]:
    """Yield how to keep our section when a hook manager rewrites hooks: a line in its own file."""
    for file, snippet in _SNIPPETS.items():
        text = content_of(os.path.join(repository.root, file))
        if text is not None and b"yolo-fs" not in text:
            message = (
                "this manager rewrites hooks when it is set up again, which removes our section"
            )
            yield Finding(
                Reason.HOOK_BROKEN, file, message=message, hint=snippet, level=Level.WARNING
            )


_LEFTHOOK = (
    "To be sure, add for each hook: commands: {yolo-fs: {run: yolo-fs git-hook commit-msg {1}}}"
)
_SNIPPETS = {
    ".pre-commit-config.yaml": "To be sure, add the hooks of .pre-commit-hooks.yaml, or run "
    "'yolo-fs hooks install' after 'pre-commit install'.",
    **{
        f"{dot}lefthook.{end}": _LEFTHOOK
        for dot in ("", ".")
        for end in ("yml", "yaml", "toml", "json")
    },
}


def is_noexec(folder: str) -> bool:
    """Return whether a folder is on a file system that runs no programs."""
    with contextlib.suppress(OSError):
        return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)
    return False


def _is_executable(path: str) -> bool:
    """Return whether a file may be run, as far as it is up to the file."""
    if os.access(path, os.X_OK):
        return True
    with contextlib.suppress(OSError):
        return is_noexec(path) and bool(os.stat(path).st_mode & 0o111)
    return False


def broken(path: str, message: str, hint: str, command: str = "") -> Finding:
    return Finding(
        Reason.HOOK_BROKEN,
        path,
        message=message,
        expected="a hook that calls yolo-fs",
        hint=hint,
        command=command,
    )


def carry_out(repository: Repository, deeds: Sequence[Deed]) -> None:
    """Carry out the planned changes.

    Raises:
        YoloError: STATE_CONFLICT when a file changed since; STORAGE_FAILED.
    """
    if not deeds:
        return
    private_directory(os.path.join(repository.common_dir, "yolo-fs"))
    note = os.path.join(repository.common_dir, NOTE)
    former = HOOKS.read(repository)
    made = list(former["folders"]) if isinstance(former, dict) else []
    is_leaving = any(isinstance(deed, HookFileChange) and deed.path == note for deed in deeds)
    for deed in deeds:
        if isinstance(deed, HookFileChange):
            made += _find_missing_folder(deed.path) if deed.after is not None else []
            _write(repository, deed)
        elif isinstance(deed, HookFileMove):
            made += _find_missing_folder(deed.path)
            _move(repository, deed)
    if is_leaving:
        _leave(repository, made)
    else:
        since = former["since"] if isinstance(former, dict) else repository.head().tip or ""
        write_json(note, {"since": since, "folders": made, "version": __version__})


def _find_missing_folder(path: str) -> list[str]:
    folder = os.path.dirname(path)
    return [] if os.path.isdir(folder) else [folder]


def _leave(repository: Repository, made: Sequence[str]) -> None:
    """Remove the folders that we made, and our own if it is empty."""
    own = os.path.join(repository.common_dir, "yolo-fs")
    for folder in (*(path for path in made if _home_of(repository, f"{path}/_")), own):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


@contextlib.contextmanager
def _opened(repository: Repository, path: str) -> Iterator[tuple[int, str]]:
    with environment(path), opened(*_placed(repository, path), make=True) as place:
        yield place


def _placed(repository: Repository, path: str) -> tuple[str, str | None]:
    """Return where a file lies, and the root that it must stay below; None for our own."""
    if os.path.dirname(path) == os.path.join(repository.common_dir, "yolo-fs"):
        return path, None
    folder, name = os.path.split(path)
    root = _home_of(repository, path) or repository.root
    return os.path.join(os.path.realpath(folder), name), root


def _move(repository: Repository, deed: HookFileMove) -> None:
    with _opened(repository, deed.source) as (source, old), _opened(repository, deed.path) as to:
        folder, name = to
        try:  # Unlike a rename, it never overwrites.
            os.link(old, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_SECOND_NAMES or name in os.listdir(folder):
                raise
            os.rename(old, name, src_dir_fd=source, dst_dir_fd=folder)
        else:
            os.unlink(old, dir_fd=source)


def _write(repository: Repository, deed: HookFileChange) -> None:
    with _opened(repository, deed.path) as (folder, name):
        content = read(folder, name, _LARGEST_BYTES)
        if (content.data if isinstance(content, Content) else None) != deed.before:
            raise YoloError(
                Reason.STATE_CONFLICT, f"{deed.path} changed meanwhile", hint="Run it again."
            )
        if deed.after is None:
            os.unlink(name, dir_fd=folder)
            return
        mode = deed.mode
        if deed.before is not None:
            now = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            mode = stat.S_IMODE(now) | (deed.mode & 0o100)
    path, root = _placed(repository, deed.path)
    write_atomic(path, deed.after, root=root, durable=False, mode=mode)
