"""Repository location, current branch and object lookup; read-only.

See docs/dev/faults.md#f26, #f27, #f29, #f30 and #f37.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, Self
from weakref import WeakSet

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.commit_object import read_commit_object
from yolo_fs.git.discovery import (
    config_texts,
    discover,
    included_by,
    is_trusted_by_git,
    refuse_endless,
)
from yolo_fs.git.environment import given_identity
from yolo_fs.git.failures import GitOutput
from yolo_fs.git.object_format import ObjectFormat
from yolo_fs.git.objects import ObjectStore
from yolo_fs.git.runner import Git
from yolo_fs.git.trees import EXECUTABLE, Trees
from yolo_fs.system import IS_LINUX
from yolo_fs.system.files import MOST_BYTES, content_of, names_in, odd_names_in, stamp_at
from yolo_fs.system.store import private_directory
from yolo_fs.system.warm_path import trust_in

FALLBACK_IDENTITY = "yolo_fs <yolo_fs@localhost>"
_HASH = re.compile(r"[0-9a-f]{4,64}")
MAIN_LINES = ("main", "master")
"""Branches that others are likely to be merged into."""
_LONGEST_CHAIN = 5
"""Length of a chain of symbolic refs that git itself follows."""
_COMMITS_KEPT = 1_000
_BRANCHES = "refs/heads/"
_PROGRAM = re.compile(
    r"(?:filter|merge|diff|tar|trailer)\..*\."
    r"(?:clean|smudge|process|required|driver|command|cmd|textconv)"
    r"|diff\.external|interactive\.difffilter|gc\.recentobjectshook|core\.alternaterefscommand",
    re.DOTALL,
)
"""Settings that name a program which git may run when it compares, merges or stores contents."""
_OF_THE_USER = frozenset({"system", "global"})
"""The scopes of git's configuration that are the user's own, and no part of a repository."""
_SHARED_REF = re.compile(r"refs/(?!bisect/|worktree/|rewritten/)[\w./-]+")
"""Name of a ref, not a revision, that all work trees of a repository share."""
_LINK_BYTES = 4096
"""More than the path of a git directory has, in the file `.git` of a linked work tree."""
_READ_IN_WORK_TREE = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")
_READ_WHOLE = (
    *("HEAD", "config", "config.worktree", "commondir", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/sparse-checkout", "objects/info/alternates"),
)
"""Files that git reads whole, whatever their type and size."""
_READ_IN_GIT_DIR = ("", "/info", "/logs")
_READ_IN_OBJECTS = ("/info", "/info/commit-graphs", "/pack")
"""Folders of which git opens any file, whatever its type."""
_MOST_ALTERNATES = 64
_READ_BY_SETTING = ("core.attributesfile", "core.excludesfile")
"""Settings that name a file which git opens for each path it looks at."""
_SHALLOW_BYTES = 64 << 20


class Head(NamedTuple):
    """What HEAD points at."""

    ref: str | None
    """Full name of the branch, such as `refs/heads/main`; None when HEAD is detached."""
    tip: str | None
    """Commit id; None on an unborn branch."""

    @property
    def branch(self) -> str:
        """The branch's short name; empty when HEAD is detached."""
        return self.ref.removeprefix(_BRANCHES) if self.ref else ""

    @property
    def is_branch(self) -> bool:
        """Whether a commit there is on a branch: HEAD may name any ref, and other tools do that."""
        return bool(self.ref and self.ref.startswith(_BRANCHES))


class StagedEntry(NamedTuple):
    """One entry of the index."""

    path: str
    mode: str
    """File mode in octal, such as `100644`."""
    oid: str
    stage: str
    """`0`; `1` to `3` while a merge conflict is unresolved."""
    tag: str = "H"
    """Letter of `ls-files -v`: `S` for skip-worktree, a small one for assume-unchanged."""

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, not a link or a submodule."""
        return self.mode.startswith("100")

    @property
    def is_conflicted(self) -> bool:
        """Whether the entry is one side of an unresolved conflict."""
        return self.stage != "0"


class Setting(NamedTuple):
    """One line of git's configuration."""

    scope: str
    """`system`, `global`, `local` or `worktree`."""
    key: str
    """Section and name in lower case, the part between them as it is written."""
    value: str

    @property
    def is_of_repository(self) -> bool:
        """Whether the repository sets it, not the user's own configuration."""
        return self.scope not in _OF_THE_USER


class _Lineage(NamedTuple):
    """What a commit has, and what it comes from."""

    tree: str
    parents: tuple[str, ...]


class _Closing(Protocol):
    def close(self) -> None: ...


class Repository:
    """One work tree and the git directories behind it."""

    def __init__(self, start: str, *, keep_open: Sequence[int] = (), durable: bool = True):
        """Find the repository that `start` lies in.

        `keep_open`: descriptors that git children inherit. `durable`: objects survive power loss.

        Raises:
            YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY, UNSAFE_REPOSITORY, NOT_REGULAR.
        """
        paths = discover(start)
        self.root, self.git_dir, self.common_dir, self.hooks_dir = paths
        self.git = Git(self.root, self.git_dir, keep_open=keep_open)
        self.git.programs_off = self.programs_off
        self._refuse_endless()
        self._refuse_borrowed()
        self._refuse_other_owners()
        self._configured: tuple[Setting, ...] = ()
        self._configuration: Mapping[str, str] = {}
        self._configured_by: tuple[bytes, ...] = ()
        self.object_format = ObjectFormat(self._read_extension("objectFormat") or "sha1")
        """The hash that names this repository's objects."""
        self._is_durable = durable
        self._has_own_dir = False
        self._closing: WeakSet[_Closing] = WeakSet()
        self._made_commits: dict[str, _Lineage] = {}
        """Commits that were just made, which the store may not have yet."""
        self._read_commits: dict[str, _Lineage] = {}
        """Commits that the store has, the latest ones last."""

    @cached_property
    def objects(self) -> ObjectStore:
        """The object store of the repository."""
        return ObjectStore(
            self.git,
            f"{self.common_dir}/objects",
            self.object_format,
            durable=self._is_durable,
            shared=self._shared_bits,
        )

    @cached_property
    def trees(self) -> Trees:
        """The trees in the object store."""
        return Trees(self.objects)

    @property
    def own_dir(self) -> str:
        """Folder of our own files: `.git/yolo-fs`, never inside the work tree."""
        return f"{self.git_dir}/yolo-fs"

    def make_own_dir(self) -> None:
        """Create our folder, once: it only disappears together with the repository.

        Raises:
            YoloError: FOREIGN_OWNER, STORAGE_FAILED.
        """
        if not self._has_own_dir:
            private_directory(self.own_dir)
            self._has_own_dir = True

    @cached_property
    def has_plain_refs(self) -> bool:
        """Whether HEAD and branches are plain files that are read here.

        For a reftable, and for very many refs, git is asked (F37).
        """
        packed = stamp_at(f"{self.common_dir}/packed-refs")
        is_read_here = packed is None or packed.size <= MOST_BYTES
        return is_read_here and self._read_extension("refStorage") in ("", "files")

    def _read_extension(self, name: str) -> str:
        """Return a format extension of the repository's own configuration, which is what counts."""
        own = content_of(f"{self.common_dir}/config").lower()
        return self.config(f"extensions.{name}") if b"[extensions" in own else ""

    def head(self) -> Head:
        """Return the branch of HEAD and its tip; the compare-and-swap catches a stale answer."""
        ref = self._read_head_ref()
        return Head(ref, self.tip(ref or "HEAD"))

    def tip(self, ref: str) -> str | None:
        """Return the commit that a full ref name points at, or None when it does not exist."""
        if self.has_plain_refs and ref.startswith("refs/"):
            loose = _read_first_line(f"{self.common_dir}/{ref}")
            if self._is_oid(loose):
                return loose
            # Never asked of a long-running git: if packed-refs is replaced within the same second,
            # with the same size and inode, that git takes it for the file that it has read.
            if packed := self._read_packed_ref(ref):
                return packed
            if _SHARED_REF.fullmatch(ref) and not os.path.lexists(f"{self.common_dir}/{ref}"):
                return None
        named = ("--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        answer = self._run_quietly("rev-parse", *named)
        return answer.out.decode().strip() or None

    def is_branch_name(self, name: str) -> bool:
        """Return whether git lets a branch have this name, and takes it for nothing else."""
        answer = self._run_quietly("check-ref-format", "--branch", name)
        return answer.out == os.fsencode(name) + b"\n" and name != "@"

    def has_commits(self) -> bool:
        """Return whether any branch or tag, here or of a remote, has a commit."""
        folders = ("refs/heads", "refs/remotes", "refs/tags")
        return bool(self.git.text("for-each-ref", "--count=1", "--format=%(objectname)", *folders))

    def latest_tips(self, most: int) -> tuple[str, ...]:
        """Return ORIG_HEAD, FETCH_HEAD and the `most` latest tips of branches, tags and stash."""
        output = self.git.text(
            "for-each-ref", f"--count={most}", "--sort=-committerdate", "--format=%(objectname)",
            "refs/heads", "refs/remotes", "refs/tags", "refs/stash",
        )  # fmt: skip
        before = filter(None, map(self.tip, ("ORIG_HEAD", "FETCH_HEAD")))
        return tuple(dict.fromkeys((*before, *output.split())))

    def work_trees(self) -> tuple[str, ...]:
        """Return the roots of the existing work trees, ours first."""
        if not os.path.isdir(f"{self.common_dir}/worktrees"):
            return (self.root,)  # each hook of an agent that stops comes here: no git is asked
        roots = (os.path.realpath(facts["worktree"]) for facts in self.list_work_trees())
        ours = (self.root, self.common_dir)
        return (self.root, *(root for root in roots if root not in ours and os.path.isdir(root)))

    def list_work_trees(self) -> list[dict[str, str]]:
        """Return what git lists of each work tree: `worktree`, and `HEAD` and `branch` if any.

        git takes the places from files in the git directory, which may name any folder: one that is
        there and does not lead back to this repository is left out.
        """
        listed = self.git.text("worktree", "list", "--porcelain").split("\n\n")
        facts = (dict(line.partition(" ")[::2] for line in block.split("\n")) for block in listed)
        named = (each for each in facts if "worktree" in each)
        return [each for each in named if not self._is_foreign(each["worktree"])]

    def _is_foreign(self, root: str) -> bool:
        """Return whether a folder is there that is no work tree of this repository."""
        link = os.fsdecode(content_of(f"{root}/.git", _LINK_BYTES)).removeprefix("gitdir: ")
        link = link.strip().replace("\0", "")
        git_dir = os.path.realpath(os.path.join(root, link or ".git"))
        is_ours = os.path.dirname(git_dir) == f"{self.common_dir}/worktrees"
        is_main = self.common_dir in (git_dir, os.path.realpath(root))  # a bare one has no `.git`
        is_broken = bool(link) and not os.path.lexists(f"{git_dir}/HEAD")  # it may have been ours
        return os.path.isdir(root) and not (is_ours or is_main or is_broken)

    def refs_below(self, folder: str) -> dict[str, str]:
        """Return the refs directly below a folder such as `refs/x/`: name → object."""
        if not self.has_plain_refs:
            output = self.git.text("for-each-ref", "--format=%(refname) %(objectname)", folder)
            pairs = (line.split(" ") for line in output.split("\n") if line)
            return {name: oid for name, oid in pairs if "/" not in name.removeprefix(folder)}
        prefix = b" " + os.fsencode(folder)
        packed = content_of(f"{self.common_dir}/packed-refs").split(b"\n")
        names = [os.fsdecode(line[line.index(b" ") + 1 :]) for line in packed if prefix in line]
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names += [folder + name for name in os.listdir(f"{self.common_dir}/{folder}")]
        tips = {name: self.tip(name) for name in names if not name.endswith(".lock")}
        return {name: tip for name, tip in tips.items() if tip}

    def _read_packed_ref(self, ref: str) -> str:
        """Return the entry of a ref in the file of packed refs; empty if it has none."""
        line = b" %s\n" % os.fsencode(ref)
        before, separator, _ = content_of(f"{self.common_dir}/packed-refs").partition(line)
        oid = before[-2 * self.object_format.size :].decode("ascii", "replace")
        return oid if separator and self._is_oid(oid) else ""

    def root_tree(self, commit: str) -> str:
        """Return the tree of a commit.

        Raises:
            YoloError: OBJECT_MISSING, FILE_TOO_LARGE.
        """
        lineage = self._lineage(commit)
        if lineage is None or not lineage.tree:
            raise self.objects.unread(f"commit {commit}", commit)
        return lineage.tree

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return the parents of a commit; none where it cannot be read."""
        lineage = self._lineage(commit)
        return lineage.parents if lineage else ()

    def _lineage(self, commit: str) -> _Lineage | None:
        known = self._made_commits.get(commit) or self._read_commits.get(commit)
        if known is None:
            git_object = self.objects.read(commit)
            if git_object is None or git_object.kind != "commit":
                return None
            commit_object = read_commit_object(git_object.body)
            known = _Lineage(commit_object.tree, commit_object.parents)
            self._read_commits[commit] = known
            if len(self._read_commits) > 2 * _COMMITS_KEPT:
                self._evict_commits()
        return known

    def cache_commit(self, commit: str, tree: str, parent: str | None) -> None:
        """Cache a commit that was just made."""
        self._made_commits[commit] = _Lineage(tree, (parent,) if parent else ())

    def evict_caches(self) -> None:
        """Evict the oldest entries of the caches; called between two chains of commits."""
        self.trees.evict_caches()
        self._read_commits |= self._made_commits
        self._made_commits = {}
        self._evict_commits()

    def _evict_commits(self) -> None:
        for commit in list(self._read_commits)[:-_COMMITS_KEPT]:
            del self._read_commits[commit]

    def blob_at(self, commit: str | None, path: str) -> str | None:
        """Return the blob id that a commit has at a path, or None."""
        entry = self.trees.find(self.root_tree(commit), path) if commit else None
        return entry.oid if entry and entry.mode.startswith("100") else None

    def submodule_above(self, commit: str | None, path: str) -> str:
        """Return the submodule of a commit in which a path lies, or an empty string.

        One that is not checked out is an empty folder, in which git asks no rules.
        """
        return self.trees.submodule_above(self.root_tree(commit), path) if commit else ""

    def is_executable_at(self, commit: str | None, path: str) -> bool:
        """Return whether a commit has an executable file at a path."""
        entry = self.trees.find(self.root_tree(commit), path) if commit else None
        return entry is not None and entry.mode == EXECUTABLE

    def is_executable_here(self, path: str) -> bool | None:
        """Return whether `git add` would make a file executable; None if core.fileMode is off."""
        if self.config("core.fileMode").lower() in ("false", "no", "off", "0"):
            return None
        try:
            status = os.lstat(os.path.join(self.root, path))
        except OSError:
            return None
        return bool(status.st_mode & stat.S_IXUSR)

    def files_at(self, commit: str | None, folder: str, *, anew: bool = False) -> dict[str, str]:
        """Return the regular files that a commit has below a folder: path → blob id.

        `anew`: as `Trees.files_below` has it.
        """
        root = self.root_tree(commit) if commit else None
        return self.trees.files_below(root, folder, anew=anew) if root else {}

    def files_between(self, base: str | None, other: str | None, folder: str) -> Iterator[str]:
        """Yield the paths below a folder at which two commits do not have the same regular file."""
        before, after = (
            self.trees.folder_at(self.root_tree(commit), folder) if commit else None
            for commit in (base, other)
        )
        for _, path in self.trees.changes(before, after, f"{folder}/"):
            if self.blob_at(base, path) != self.blob_at(other, path):
                yield path

    def commits_exist(self, names: Sequence[str]) -> dict[str, bool]:
        """Return for each (abbreviated) hash whether it names a commit of this repository."""
        # Anything but a hash could make git answer more than one question.
        sound = filter(_HASH.fullmatch, names)
        objects = {name: self.objects.read(f"{name}^{{commit}}") for name in sound}
        commits = {name for name, each in objects.items() if each and each.kind == "commit"}
        return {name: name in commits for name in names}

    def commits_may_exist(self, names: Sequence[str]) -> dict[str, bool]:
        """Like `commits_exist`, but a commit that a shallow clone lacks counts as possible."""
        presence, is_cut = self.commits_exist(names), bool(self.cut_off())
        return {name: is_there or is_cut for name, is_there in presence.items()}

    def cut_off(self) -> frozenset[str]:
        """Return the commits at which a shallow clone ends; none for a full one."""
        return frozenset(content_of(f"{self.common_dir}/shallow", _SHALLOW_BYTES).decode().split())

    @property
    def is_partial(self) -> bool:
        """Whether this is a partial clone: contents are fetched from a remote on demand."""
        return any(each.key.endswith((".promisor", ".partialclone")) for each in self.settings())

    def identity(self, who: str = "COMMITTER") -> str:
        """Return `Name <mail>` of the user, or ours when they have configured none (F34).

        `who`: COMMITTER or AUTHOR; environment and configuration may define one for each. Bytes
        that are not UTF-8 become surrogates: git keeps whatever the user has configured.
        """
        given = given_identity()
        own = (f"{who.lower()}.name", f"{who.lower()}.email")
        role = who if given or any(map(self.config, own)) else "COMMITTER"
        answer = self.git.run("var", f"GIT_{role}_IDENT", ok=(0, 1, 128), more=given)
        if answer.code == 0:
            self.git.identity = given
            return answer.out.decode("utf-8", "surrogateescape").rsplit(" ", 2)[0]
        self.git.identity = {
            "GIT_COMMITTER_NAME": "yolo_fs",
            "GIT_COMMITTER_EMAIL": "yolo_fs@localhost",
        }
        return FALLBACK_IDENTITY

    def is_ancestor(self, older: str, younger: str) -> bool:
        """Return whether a commit is contained in another's history."""
        return self.git.run("merge-base", "--is-ancestor", older, younger, ok=(0, 1, 128)).code == 0

    def staged(self, *paths: str) -> Iterator[StagedEntry]:
        """Yield the entries of the index, only those at and below `paths` if any are given."""
        answer = self.git.run("ls-files", "--stage", "-v", "-z", "--", *paths)
        for line in filter(None, answer.out.split(b"\0")):
            facts, _, name = line.partition(b"\t")
            tag, mode, oid, stage = facts.decode().split(" ")
            yield StagedEntry(os.fsdecode(name), mode, oid, stage, tag)

    def has_conflicts(self) -> bool:
        """Return whether the index holds unmerged entries."""
        return bool(self.git.run("ls-files", "--unmerged", "-z").out)

    def _shared_bits(self) -> int:
        """Return the permissions that core.sharedRepository adds. See git-config(1)."""
        value = self.config("core.sharedRepository").lower()
        if value in ("group", "true", "1", "yes", "on"):
            return 0o2070
        if re.fullmatch(r"0[0-7]{3}", value):
            return 0o2000 | int(value, 8) & 0o077
        return 0o2075 if value in ("all", "world", "everybody", "2") else 0

    def config(self, key: str) -> str:
        """Return a value of git's configuration, or nothing.

        Raises:
            YoloError: GIT_FAILED when git cannot read its configuration, or not this repository.
        """
        section, _, rest = key.partition(".")
        part, dot, name = rest.rpartition(".")
        return self._settings().get(f"{section.lower()}.{part}{dot}{name.lower()}", "").strip()

    def programs_off(self, *, also_own_filters: bool = False) -> dict[str, str]:
        """Return the settings under which git runs no program that this repository names.

        Programs of the user's own configuration stay (F57), except their filters with
        `also_own_filters`.
        """
        own, named = dict[str, str](), set[str]()
        for each in self.settings():
            if each.is_of_repository or (also_own_filters and each.key.startswith("filter.")):
                named.add(each.key)
            else:
                own[each.key] = each.value
        return {
            key: own.get(key, _disabling_value_for(key))
            for key in sorted(filter(_PROGRAM.fullmatch, named))
        }

    def config_path(self, key: str) -> str:
        """Return a path of the git configuration with `~` resolved, or nothing."""
        if not self.config(key):
            return ""
        return os.fsdecode(self._run_quietly("config", "--path", "--get", key).out).strip()

    def settings(self) -> tuple[Setting, ...]:
        """Return git's configuration line by line, in order: of equal keys the last one counts.

        Raises:
            YoloError: GIT_FAILED when git cannot read its configuration, or not this repository;
                NOT_REGULAR when it names a pipe or a device that git would read for ever.
        """
        self._settings()
        return self._configured

    def _settings(self) -> Mapping[str, str]:
        """Return all of git's configuration, cached by the content of its files.

        A file that includes others does not show their content, so then git is asked each time.
        """
        texts = config_texts(self.git_dir, self.common_dir)
        if texts != self._configured_by or any(b"include" in text.lower() for text in texts):
            own = (f"{self.common_dir}/config", f"{self.git_dir}/config.worktree")
            refuse_endless(included_by(own))
            fields = self.git.run("config", "--null", "--list", "--show-scope").out.split(b"\0")
            scopes = fields[:-1:2]
            if not {b"local", b"worktree"} & set(scopes):
                # Its error tells what git does not understand.
                self.git.text("rev-parse", "--show-object-format")
            pairs = (
                (scope.decode(), *os.fsdecode(line).partition("\n")[::2])
                for scope, line in zip(scopes, fields[1::2], strict=True)
                if scope != b"command"  # ours
            )
            self._configured = tuple(Setting(*pair) for pair in pairs)
            self._configuration = {each.key: each.value for each in self._configured}
            refuse_endless(self._list_configured_files())
            self._configured_by = texts
        return self._configuration

    def _list_configured_files(self) -> Iterator[str]:
        for key in _READ_BY_SETTING:
            if path := self._configuration.get(key):
                yield os.path.join(self.root, os.path.expanduser(path))

    def _refuse_other_owners(self) -> None:
        """Refuse a repository of another user, unless git itself works there: `safe.directory` of
        the user's own configuration.

        Raises:
            YoloError: UNSAFE_REPOSITORY when a part of the repository belongs to anybody else.
        """
        trusted = {os.geteuid()}
        owners = {place: os.stat(place).st_uid for place in (self.root, self.git_dir)}
        if not trusted.issuperset(owners.values()) and is_trusted_by_git(self.root):
            trusted.update(owners.values())
        owners[self.common_dir] = os.stat(self.common_dir).st_uid  # git does not look at this one
        for place, owner in owners.items():
            if owner not in trusted:
                raise YoloError(
                    Reason.UNSAFE_REPOSITORY,
                    f"{safe(place)} belongs to user {owner}, and this is user {os.geteuid()}",
                    hint="Run as its owner. If you trust the owner, tell git: git config "
                    f"--global --add safe.directory {shlex.quote(safe(self.root))}",
                )
        for folder in (self.git_dir, self.common_dir) if len(trusted) > 1 else ():
            trust_in(folder, frozenset(trusted))

    def _refuse_endless(self) -> None:
        """Refuse a repository in which any git would read forever.

        Raises:
            YoloError: NOT_REGULAR.
        """
        refuse_endless(f"{self.root}/{name}" for name in _READ_IN_WORK_TREE)
        git_dirs = dict.fromkeys((self.git_dir, self.common_dir))
        refuse_endless(f"{git_dir}/{name}" for git_dir in git_dirs for name in _READ_WHOLE)
        folders = [f"{git_dir}{part}" for git_dir in git_dirs for part in _READ_IN_GIT_DIR]
        for objects in self._object_folders():
            folders += (f"{objects}{part}" for part in _READ_IN_OBJECTS)
        others = f"{self.common_dir}/worktrees"
        folders += (f"{others}/{name}" for name in names_in(others))
        for folder in folders:
            refuse_endless(odd_names_in(folder))
        branch = _read_first_line(f"{self.git_dir}/HEAD").removeprefix("ref: ").strip()
        refuse_endless((f"{self.common_dir}/logs/{branch}",))

    def lost_object_folders(self) -> list[str]:
        """Return the folders that objects are borrowed from and that are not there."""
        return [folder for folder in self._object_folders() if not os.path.isdir(folder)]

    def _object_folders(self) -> list[str]:
        """Return the folder of objects, and those that it names as alternates, which git reads."""
        folders = [f"{self.common_dir}/objects"]
        for folder in folders:
            for line in content_of(f"{folder}/info/alternates").split(b"\n"):
                if line.startswith((b"#", b'"')):  # a comment, or a quoted path: too rare to follow
                    continue
                place = os.path.normpath(os.path.join(folder, os.fsdecode(line)))
                if line and place not in folders and len(folders) < _MOST_ALTERNATES:
                    folders.append(place)
        return folders

    def _refuse_borrowed(self) -> None:
        """Refuse a repository that is another's by its own word: there its branches would move.

        Raises:
            YoloError: UNSAFE_REPOSITORY.
        """
        is_linked = os.path.dirname(self.git_dir) == f"{self.common_dir}/worktrees"
        if self.git_dir != self.common_dir and not is_linked:
            raise YoloError(
                Reason.UNSAFE_REPOSITORY,
                f"{safe(self.git_dir)}/commondir leads to {safe(self.common_dir)}, which has no "
                "such work tree",
                hint="Look at that file; 'git worktree add' makes a linked work tree.",
            )

    def refuse_unsafe(self, *more: str) -> None:
        """Refuse a repository that others own or may write to, or `more` folders.

        Raises:
            YoloError: UNSAFE_REPOSITORY.
        """
        self._refuse_other_owners()  # it may have been given away since it was opened
        for place in (self.root, self.git_dir, *more):
            if _is_open_to_others(place) and not self.config("core.sharedRepository"):
                why = f"others can write to {place}"
                hint = (
                    "Remove the write permission of group and others, or set core.sharedRepository."
                )
                raise YoloError(Reason.UNSAFE_REPOSITORY, why, hint=hint)

    def ends_with_it(self, other: _Closing) -> None:
        """Close another object, if it still exists, when this one is closed."""
        self._closing.add(other)

    def close(self) -> None:
        """End the helper processes, and what ends with them."""
        for other in list(self._closing):
            other.close()
        if "objects" in vars(self):
            self.objects.settle()
            self.objects.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_head_ref(self) -> str | None:
        """Return the branch at the end of HEAD's chain: a branch may be a symbolic ref."""
        if self.has_plain_refs and not os.path.islink(f"{self.git_dir}/HEAD"):
            line = _read_first_line(f"{self.git_dir}/HEAD")
            if self._is_oid(line):
                return None
            if line.startswith("ref: "):
                return self._end_of_chain(line[5:].strip())
        return self._run_quietly("symbolic-ref", "--quiet", "HEAD").out.decode().strip() or None

    def _end_of_chain(self, ref: str) -> str:
        for _ in range(_LONGEST_CHAIN):
            line = _read_first_line(f"{self.common_dir}/{ref}")
            if not line.startswith("ref: "):
                break
            ref = line[5:].strip()
        return ref

    def _is_oid(self, text: str) -> bool:
        return (
            len(text) == 2 * self.object_format.size
            and bool(_HASH.fullmatch(text))
            and text != self.object_format.zero
        )

    def _run_quietly(self, *arguments: str) -> GitOutput:
        return self.git.run(*arguments, ok=(0, 1, 128))


def _disabling_value_for(key: str) -> str:
    """Return the value that disables a setting which names a program."""
    # The driver `false` reports a failed merge; an empty one reports that nothing had to be merged.
    return "false" if key.endswith((".required", ".driver")) else ""


def _is_open_to_others(place: str) -> bool:
    """Return whether others may write: everyone, or a group that is not the user's own, or whom an
    access control list names, whose mask is what the mode shows as the rights of the group.
    """
    facts = os.stat(place)
    if not facts.st_mode & 0o020:
        return bool(facts.st_mode & 0o002)
    is_foreign = facts.st_gid != os.getegid()
    return is_foreign or bool(facts.st_mode & 0o002) or _lets_others_write(place)


def _lets_others_write(place: str) -> bool:
    """Return whether an access control list names other users or groups that may write.

    See acl(5): behind its version, each entry has a tag, rights and an id.
    """
    if not IS_LINUX:
        return False
    try:
        entries = struct.iter_unpack("<HHI", os.getxattr(place, "system.posix_acl_access")[4:])
    except OSError:  # it has none
        return False
    own = {_ACL_USER: os.geteuid(), _ACL_GROUP: os.getegid()}
    return any(rights & 2 and named != own.get(tag, named) for tag, rights, named in entries)


_ACL_USER, _ACL_GROUP = 0x02, 0x08
"""Tags of the entries that name a user or a group."""


def _read_first_line(path: str) -> str:
    """Return the first line of a small file, to its first NUL as git does; without a text layer,
    for it is read at every turn.
    """
    return os.fsdecode(content_of(path).partition(b"\n")[0].partition(b"\0")[0])
