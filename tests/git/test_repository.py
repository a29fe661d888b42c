"""Where the repository is and which branch stands out, in every layout that git has. See
docs/dev/faults.md#f26 to #f31 and #f37.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from tests.git.conftest import NEEDS_REF_FILES, Engines, Make, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import discovery
from yolo_fs.git import repository as repositories
from yolo_fs.git.failures import TIMEOUT_S, GitError
from yolo_fs.git.repository import FALLBACK_IDENTITY, Head, Repository
from yolo_fs.system import IS_LINUX
from yolo_fs.system.lock import hold
from yolo_fs.system.warm_path import owners_of

IS_ROOT = os.geteuid() == 0


def head_of(engine: Engines, place: User | Path) -> Head:
    return engine(place).repository.head()


def test_the_head_of_a_normal_repository(user: User, engine: Engines) -> None:
    head = head_of(engine, user)
    assert head == Head("refs/heads/main", user.tip())
    assert head.branch == "main"


def test_an_unborn_branch_has_no_tip(make: Make, engine: Engines) -> None:
    assert head_of(engine, make("unborn", born=False)) == Head("refs/heads/main", None)


def test_a_detached_head_has_no_branch(user: User, engine: Engines) -> None:
    user.git("checkout", "--quiet", "--detach")
    assert head_of(engine, user) == Head(None, user.tip())


def test_a_branch_with_slashes_keeps_its_whole_name(user: User, engine: Engines) -> None:
    user.git("checkout", "--quiet", "-b", "feature/deep/name")
    assert head_of(engine, user).branch == "feature/deep/name"


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_packed_branch_is_read(make: Make, engine: Engines, algorithm: str) -> None:
    user = make("packed", f"--object-format={algorithm}")
    user.git("pack-refs", "--all")
    assert not (user.root / ".git/refs/heads/main").exists()
    assert head_of(engine, user) == Head("refs/heads/main", user.tip())


def test_a_branch_that_is_packed_twice_between_two_looks_is_not_read_as_it_was(
    user: User, engine: Engines
) -> None:
    repository = engine(user).repository
    tree = user.git("write-tree").decode().strip()
    for number in range(20):
        for side in ("left", "right"):  # the second file of packed refs may lie where the first lay
            subject = f"{number} {side}"
            tip = user.git("commit-tree", "-m", subject, "-p", user.tip(), tree).decode().strip()
            user.git("update-ref", "refs/heads/main", tip)
            user.git("pack-refs", "--all")
        assert not (user.root / ".git/refs/heads/main").exists()
        assert repository.head().tip == tip


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "name",
    [
        ".gitattributes", ".gitignore", ".mailmap", ".git/HEAD", ".git/config", ".git/index", ".git/packed-refs",
        ".git/info/exclude", ".git/objects/info/alternates", ".git/objects/info/commit-graph",
        ".git/objects/info/commit-graphs/commit-graph-chain", ".git/objects/pack/multi-pack-index",
        ".git/objects/pack/pack-x.idx", ".git/logs/HEAD", ".git/logs/refs/heads/main", ".git/worktrees/x/gitdir",
    ],
)  # fmt: skip
def test_a_pipe_at_which_git_would_wait_for_ever_is_refused_at_once(user: User, name: str) -> None:
    (user.root / name).unlink(missing_ok=True)
    (user.root / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(user.root / name)
    began = time.monotonic()
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.NOT_REGULAR and name in raised.value.message
    assert time.monotonic() - began < TIMEOUT_S  # no git was asked


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [".gitignore", ".git/config", ".git/packed-refs", ".git/info/exclude"])  # fmt: skip
def test_a_file_of_more_than_git_can_hold_is_refused(user: User, name: str) -> None:
    with open(user.root / name, "a") as file:
        file.truncate(40 << 30)  # without a block on the disk
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.NOT_REGULAR and name in raised.value.message


@pytest.mark.skipif(not IS_LINUX, reason="elsewhere nobody limits the memory of a process")
def test_a_git_that_would_take_all_memory_ends(user: User) -> None:
    (user.root / "below").mkdir()
    with open(user.root / "below/.gitignore", "w") as file:
        file.truncate(40 << 30)
    with Repository(str(user.root)) as repository, pytest.raises(GitError, match="memory"):
        repository.git.run("ls-files", "--others", "--exclude-standard")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", ["include.path", "includeIf.gitdir:/.path", "include.path through another"])  # fmt: skip
def test_a_pipe_that_the_configuration_includes_is_refused(user: User, key: str) -> None:
    os.mkfifo(user.root / ".git/pipe")
    (user.root / ".git/inner").write_text('[Include] path = "pi\\\npe"\n')
    key, _, is_nested = key.partition(" ")
    with (user.root / ".git/config").open("a") as file:
        section, _, part = key.removesuffix(".path").partition(".")
        shown = f'[{section} "{part}"]' if part else f"[{section}]"
        file.write(f"{shown}\n\tpath = {'inner' if is_nested else 'pipe'}\n")
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.NOT_REGULAR and "pipe" in raised.value.message


@pytest.mark.timeout(30)
def test_a_lock_of_a_branch_is_waited_for_as_git_does_by_default(user: User) -> None:
    user.git("config", "core.filesRefLockTimeout", "-1")
    (user.root / ".git/refs/heads/main.lock").touch()
    with Repository(str(user.root)) as repository, pytest.raises(GitError, match="lock"):
        repository.git.run("update-ref", "-d", "refs/heads/main")


@pytest.mark.timeout(30)
def test_a_pipe_among_the_objects_of_an_alternate_is_refused(user: User, make: Make) -> None:
    far, near = make("far").root / ".git/objects", make("near").root / ".git/objects"
    (near / "info/alternates").write_text(f"{far}\n")
    (user.root / ".git/objects/info/alternates").write_text(f"# none\n{near}\n{near}\n")
    with Repository(str(user.root)) as repository:
        assert repository.head().tip == user.tip()
    os.mkfifo(far / "pack/multi-pack-index")
    with pytest.raises(YoloError, match="multi-pack-index") as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.NOT_REGULAR


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [".git/config", ".git/packed-refs", ".git/info/attributes", ".git/info/exclude"])  # fmt: skip
def test_a_link_to_a_device_that_git_would_read_for_ever_is_refused(user: User, name: str) -> None:
    (user.root / name).unlink(missing_ok=True)
    (user.root / name).symlink_to("/dev/zero")
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.NOT_REGULAR and name in raised.value.message


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", ["core.attributesFile", "core.excludesFile"])
def test_a_pipe_that_the_configuration_lets_git_read_is_refused(user: User, key: str) -> None:
    os.mkfifo(user.root / "pipe")
    with (user.root / ".git/config").open("a") as file:
        file.write(f"[core]\n\t{key.partition('.')[2]} = pipe\n")
    with Repository(str(user.root)) as repository:
        for _ in range(2):  # also once the configuration is known
            with pytest.raises(YoloError) as raised:
                repository.git.run("status", "--porcelain")
            assert raised.value.reason is Reason.NOT_REGULAR and "pipe" in raised.value.message


def test_a_link_to_the_null_device_is_an_empty_file(user: User) -> None:
    for name in (".git/info/attributes", ".git/info/exclude"):
        (user.root / name).unlink(missing_ok=True)
        (user.root / name).symlink_to("/dev/null")
    with Repository(str(user.root)) as repository:
        assert repository.head().tip == user.tip()


@pytest.mark.parametrize("far", ["{}/.git", "{}/.git/../.git/."])
def test_a_repository_that_says_it_is_a_work_tree_of_another_is_refused(
    user: User, make: Make, far: str
) -> None:
    (user.root / ".git/commondir").write_text(far.format(make("another").root) + "\n")
    with pytest.raises(YoloError, match="commondir") as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.UNSAFE_REPOSITORY


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["HEAD", "commondir", "../../config"])
def test_a_pipe_in_the_git_directory_of_a_linked_work_tree_is_refused(
    user: User, name: str
) -> None:
    user.git("worktree", "add", "-q", "../linked")
    place = user.root / ".git/worktrees/linked" / name
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root.parent / "linked"))
    assert raised.value.reason is Reason.NOT_REGULAR


@NEEDS_REF_FILES
def test_of_very_many_packed_refs_git_is_asked(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.git("pack-refs", "--all")
    monkeypatch.setattr(repositories, "MOST_BYTES", 10)
    repository = engine(user).repository
    assert not repository.has_plain_refs
    assert repository.head() == Head("refs/heads/main", user.tip())


def test_the_head_is_read_anew_each_time(user: User, engine: Engines) -> None:
    repository = engine(user).repository
    first = repository.head()
    user.commit_file("x", "x\n")
    user.git("checkout", "--quiet", "-b", "other")
    assert repository.head() == Head("refs/heads/other", user.tip()) != first


def test_a_linked_worktree_has_its_own_head_and_own_directory(user: User, engine: Engines) -> None:
    user.git("worktree", "add", "--quiet", "../linked", "-b", "side")
    linked = User(user.root.parent / "linked")
    repository, main = engine(linked).repository, engine(user).repository
    assert repository.head() == Head("refs/heads/side", user.tip())
    assert repository.common_dir == main.common_dir == main.git_dir != repository.git_dir
    assert Path(repository.own_dir) == Path(repository.git_dir, "yolo-fs") != Path(main.own_dir)


def test_a_folder_that_the_git_directory_calls_a_work_tree_of_ours_and_that_leads_elsewhere_is_none(
    user: User, make: Make
) -> None:
    user.git("worktree", "add", "--quiet", "../linked")
    another, plain = make("another").root, user.root.parent / "plain"
    plain.mkdir()
    for name, root in (("other", another), ("plain", plain), ("gone", plain / "gone")):
        place = user.root / ".git/worktrees" / name
        place.mkdir()
        (place / "gitdir").write_text(f"{root}/.git\n")
        (place / "HEAD").write_text("ref: refs/heads/main\n")
        (place / "commondir").write_text("../..\n")
    linked = str(user.root.parent / "linked")
    for start in (str(user.root), linked):
        with Repository(start) as repository:
            listed = {facts["worktree"] for facts in repository.list_work_trees()}
            assert {*repository.work_trees()} == {str(user.root), linked}
        assert listed == {str(user.root), linked, str(plain / "gone")}, "git would make that one"


@pytest.mark.parametrize("how", ["--bare", "--separate-git-dir=../hub.git"])
def test_a_repository_in_any_place_has_its_own_work_trees(user: User, how: str) -> None:
    user.git("clone", "--quiet", how, ".", "../clone")
    User(user.root.parent / "clone").git("worktree", "add", "--quiet", "../tree", "-b", "side")
    with Repository(str(user.root.parent / "tree")) as repository:
        assert len(repository.list_work_trees()) == 2


def test_a_worktree_of_a_bare_repository_is_a_work_tree(user: User, engine: Engines) -> None:
    user.git("clone", "--quiet", "--bare", ".", "../hub.git")
    hub = User(user.root.parent / "hub.git")
    hub.git("worktree", "add", "--quiet", "../tree", "main")
    assert head_of(engine, user.root.parent / "tree") == Head("refs/heads/main", user.tip())


def test_a_separate_git_dir_is_found(make: Make, engine: Engines, tmp_path: Path) -> None:
    user = make("apart", f"--separate-git-dir={tmp_path}/elsewhere.git")
    assert head_of(engine, user) == Head("refs/heads/main", user.tip())


def test_a_folder_inside_leads_to_the_root(user: User, engine: Engines) -> None:
    (user.root / "a/b").mkdir(parents=True)
    assert Repository(str(user.root / "a/b")).root == os.path.realpath(user.root)


def test_a_submodule_is_a_repository_of_its_own(user: User, make: Make, engine: Engines) -> None:
    inner = make("inner")
    user.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "sub"
    )
    head = engine(user.root / "sub").repository
    assert head.root == os.path.realpath(user.root / "sub")
    assert head.git_dir == os.path.realpath(user.root / ".git/modules/sub")
    assert head.head().tip == inner.tip()


def _linked(user: User) -> None:
    user.git("worktree", "add", "--quiet", "../linked", "-b", "side")


def _with_a_link(user: User) -> None:
    (user.root / ".git").rename(user.root.parent / "away")
    (user.root / ".git").symlink_to("../away")


LAYOUTS: dict[str, tuple[Callable[[User], object], str, bool]] = {
    "plain": (lambda user: None, ".", True),
    "below": (lambda user: (user.root / "a/b").mkdir(parents=True), "a/b", True),
    "a file": (lambda user: user.write("a/b", ""), "a/b", True),
    "through a link": (lambda user: (user.root.parent / "to").symlink_to(user.root), "../to", True),
    "not bare": (lambda user: user.git("config", "core.bare", "FALSE"), ".", True),
    "below a HEAD": (lambda user: user.write("a/HEAD", ""), "a", False),
    "in git's folder": (lambda user: None, ".git/refs", False),
    "linked": (_linked, "../linked", False),
    "beside a linked one": (_linked, ".", True),
    "a folder that is a link": (_with_a_link, ".", False),
    "hooks elsewhere": (lambda user: user.git("config", "core.hooksPath", "own"), ".", False),
    "the user's hooks": (
        lambda _: (Path.home() / ".gitconfig").write_text("[Core]\n\tHooksPath = ~/own\n"), ".", False,
    ),
    "a work tree elsewhere": (lambda user: user.git("config", "core.worktree", ".."), ".", False),
    "included": (lambda user: user.git("config", "include.path", "more"), ".", False),
    "no HEAD": (lambda user: (user.root / ".git/HEAD").unlink(), ".", False),
    "no refs": (lambda user: (user.root / ".git/refs").rename(user.root / "refs"), ".", False),
    "nowhere": (lambda user: None, "none", False),
}  # fmt: skip
"""Name → what makes it, where one starts, and whether GitPython need not be asked."""


@NEEDS_REF_FILES
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_found_without_git_python_is_what_it_finds(
    user: User, layout: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    make_it, start, is_ordinary = LAYOUTS[layout]
    make_it(user)
    place = str(user.root / start)

    found = discovery._ordinary(place)

    assert (found is not None) == is_ordinary
    if is_ordinary:
        assert found == discovery._found_by_git_python(place)


@pytest.mark.parametrize(
    "make_it", [lambda place: None, lambda place: (place / ".git").write_text("gitdir: /nowhere\n")]
)
def test_a_place_without_repository_is_refused(tmp_path: Path, make_it) -> None:
    make_it(tmp_path)
    with pytest.raises(YoloError) as raised:
        Repository(str(tmp_path))
    assert raised.value.reason is Reason.NOT_A_REPOSITORY


def test_where_there_is_no_repository_the_whole_path_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(YoloError, match=f"no git repository at {tmp_path}$") as raised:
        Repository(".")
    assert "git init" in raised.value.hint


def test_a_bare_repository_is_refused(make: Make) -> None:
    bare = make("bare", "--bare", born=False).root
    with pytest.raises(YoloError, match=str(bare)) as raised:
        Repository(str(bare))
    assert raised.value.reason is Reason.BARE_REPOSITORY and "clone" in raised.value.hint


@NEEDS_REF_FILES
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\0" * 40, b"\0" * 41, b"not a commit\n", b"z" * 40 + b"\n", b"0123"],
    ids=["empty", "newline", "40 zeros bytes", "41 zero bytes", "words", "no hex", "short"],
)
def test_a_broken_branch_has_no_tip(user: User, engine: Engines, content: bytes) -> None:
    (user.root / ".git/refs/heads/main").write_bytes(content)
    assert head_of(engine, user) == Head("refs/heads/main", None)


def test_a_branch_that_stands_for_another_is_followed_whatever_its_length(
    user: User, engine: Engines
) -> None:
    """The file then holds `ref: …`, which with this name is exactly as long as a commit id."""
    target = "refs/heads/" + "t" * (40 - len("ref: refs/heads/"))
    user.git("update-ref", target, user.tip())
    user.git("symbolic-ref", "refs/heads/alias", target)
    user.git("symbolic-ref", "HEAD", "refs/heads/alias")
    assert head_of(engine, user).tip == user.tip()


def test_a_head_that_is_a_symbolic_link_is_attached(user: User, engine: Engines) -> None:
    (user.root / ".git/HEAD").unlink()
    (user.root / ".git/HEAD").symlink_to("refs/heads/main")
    assert user.text("symbolic-ref", "HEAD") == "refs/heads/main"
    assert head_of(engine, user) == Head("refs/heads/main", user.tip())


def test_a_torn_head_is_no_branch(user: User, engine: Engines) -> None:
    repository = engine(user).repository
    (user.root / ".git/HEAD").write_bytes(b"")
    assert repository.head() == Head(None, None)


@NEEDS_REF_FILES
@pytest.mark.parametrize("path", ["HEAD", "refs/heads/alias"])
def test_a_name_of_a_branch_ends_at_a_nul_as_it_does_for_git(
    user: User, engine: Engines, path: str
) -> None:
    user.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    user.git("symbolic-ref", "HEAD", "refs/heads/alias")
    (user.root / ".git" / path).write_bytes(b"ref: refs/heads/main\0delete refs/heads/main\0\n")
    assert head_of(engine, user) == Head("refs/heads/main", user.tip("refs/heads/main"))


def test_a_missing_commit_or_tree_is_said_and_not_fetched(user: User, engine: Engines) -> None:
    repository = engine(user).repository
    for call in (lambda: repository.root_tree("f" * 40), lambda: repository.trees.get("e" * 40)):
        with pytest.raises(YoloError) as raised:
            call()
        assert raised.value.reason is Reason.OBJECT_MISSING


def test_blob_and_files_of_a_commit(user: User, engine: Engines) -> None:
    user.commit_file("d/a", "a\n")
    tip, repository = user.commit_file("d/e/b", "b\n"), engine(user).repository
    assert repository.blob_at(tip, "d/a") == user.tip("HEAD:d/a")
    assert repository.blob_at(tip, "d/e") is None and repository.blob_at(None, "d/a") is None
    assert repository.files_at(tip, "d") == {
        "d/a": user.tip("HEAD:d/a"),
        "d/e/b": user.tip("HEAD:d/e/b"),
    }
    assert repository.files_at(None, "d") == {}


def test_the_files_between_two_commits_are_those_that_differ(user: User, engine: Engines) -> None:
    """As their lists of files say, whatever else lies beside or in place of them."""
    for path in ("d/same", "d/changed", "d/gone", "d/e/deep", "d/file", "d/folder/f", "beside"):
        user.add(path, path)
    one = user.commit()
    user.git("rm", "-q", "d/gone", "d/file", "d/folder/f")
    for path in ("d/changed", "d/e/deep", "d/file/f", "d/folder", "d/new", "beside"):
        user.add(path, f"other {path}")
    (user.root / "d/same").chmod(0o755)
    (user.root / "d/link").symlink_to("same")
    user.git("add", "d")
    other, repository = user.commit(), engine(user).repository

    for pair in ((one, other), (other, one), (one, None), (None, other), (one, one)):
        before, after = (repository.files_at(commit, "d") for commit in pair)
        differing = {path for path in before | after if before.get(path) != after.get(path)}
        assert sorted(repository.files_between(pair[0], pair[1], "d")) == sorted(differing)
    assert list(repository.files_between(one, other, "beside")) == []


def test_only_commits_count_as_commits(user: User, engine: Engines) -> None:
    user.git("tag", "-a", "v1", "-m", "tagged")
    tip, tree, tag = user.tip(), user.tip("HEAD^{tree}"), user.tip("v1")
    found = engine(user).repository.commits_exist([tip, tip[:10], tree, tag, "f" * 40, "0" * 7])
    assert found == {
        tip: True,
        tip[:10]: True,
        tree: False,
        tag: True,
        "f" * 40: False,
        "0" * 7: False,
    }


def test_replaced_objects_are_read_as_they_were(user: User, engine: Engines) -> None:
    tip = user.tip()
    user.git(
        "replace", tip, user.text("commit-tree", "-m", "other", user.text("mktree", given=b""))
    )
    repository = engine(user).repository
    assert repository.blob_at(tip, "README.md") is not None


def test_a_graft_gives_no_commit_other_parents(user: User, engine: Engines) -> None:
    first, last = user.tip(), user.commit("second")
    stranger = user.text("commit-tree", "-m", "nobody's", "HEAD^{tree}")
    user.write(".git/info/grafts", f"{last} {stranger}\n")
    assert user.text("rev-list", "--max-count=1", "--skip=1", "HEAD") == stranger
    repository = engine(user).repository
    assert repository.is_ancestor(first, last) and not repository.is_ancestor(stranger, last)
    done = repository.git.run("rev-list", "HEAD")
    assert (done.out.decode().split()[:2], done.err) == ([last, first], "")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("review/login", "é", "a.b", "x@y")),
        *((name, False) for name in (
            "", "-x", "HEAD", "@", "@{-1}", "a b", "x\ny", "../x", "x.lock", "a..b", "x/", "/x", ".x", "x~1", "\x1b[2J",
        )),
    ],
)  # fmt: skip
def test_a_name_that_git_would_take_for_something_else_is_no_name_of_a_branch(
    user: User, engine: Engines, name: str, is_one: bool
) -> None:
    user.git("checkout", "--quiet", "-b", "other")
    assert engine(user).repository.is_branch_name(name) is is_one


def test_the_user_is_the_author(user: User, engine: Engines) -> None:
    user.git("config", "user.name", "Žofie  X <y>")
    assert engine(user).repository.identity().startswith("Žofie  X")
    assert engine(user).repository.identity().endswith(" <engine@example.org>")


def test_without_identity_ours_is_used(user: User, engine: Engines) -> None:
    user.git("config", "--unset", "user.name")
    user.git("config", "--unset", "user.email")
    user.git("config", "user.useConfigOnly", "true")
    one = engine(user)
    assert one.repository.identity() == FALLBACK_IDENTITY
    one.put("a.jsonl", "{}\n")
    assert (
        user.text("log", "-1", "--format=%an <%ae> %cn <%ce>")
        == f"{FALLBACK_IDENTITY} {FALLBACK_IDENTITY}"
    )


@pytest.mark.parametrize("place", ["", ".git"])
def test_a_repository_open_to_others_is_refused_unless_it_is_shared(
    user: User, engine: Engines, place: str
) -> None:
    repository = engine(user).repository
    repository.refuse_unsafe()
    (user.root / place).chmod(0o777)
    with pytest.raises(YoloError) as raised:
        repository.refuse_unsafe()
    assert raised.value.reason is Reason.UNSAFE_REPOSITORY
    user.git("config", "core.sharedRepository", "group")
    repository.refuse_unsafe()


_USER, _GROUP = 0x02, 0x08


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Linux keeps access control lists so")
@pytest.mark.parametrize("place", ["", ".git"])
@pytest.mark.parametrize(
    ("tag", "rights", "named", "is_refused"),
    [
        (_USER, 0o7, os.geteuid() + 1001, True),
        (_GROUP, 0o7, os.getegid() + 1001, True),
        (_USER, 0o5, os.geteuid() + 1001, False),
        (_USER, 0o7, os.geteuid(), False),
    ],
)
def test_a_repository_that_an_access_control_list_opens_to_another_is_refused(
    user: User, engine: Engines, place: str, tag: int, rights: int, named: int, is_refused: bool
) -> None:
    repository = engine(user).repository
    nobody = 0xFFFFFFFF
    entries = [(0x01, 0o7, nobody), (0x04, 0o5, nobody), (0x10, 0o7, nobody), (0x20, 0o5, nobody)]
    entries = sorted([*entries, (tag, rights, named)])
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *each) for each in entries)
    try:
        os.setxattr(user.root / place, "system.posix_acl_access", packed)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    assert (user.root / place).stat().st_mode & 0o020  # as a group of one's own would have it
    with pytest.raises(YoloError) if is_refused else nullcontext():
        repository.refuse_unsafe()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("place", ["", ".git"])
def test_a_repository_of_somebody_else_is_not_opened_unless_the_user_calls_it_safe(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    tip = user.tip()
    user.git("config", "safe.directory", str(user.root))  # the repository's own word counts nothing
    os.chown(user.root / place, 65534, 65534)
    with pytest.raises(YoloError) as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.UNSAFE_REPOSITORY
    assert f"safe.directory {user.root}" in raised.value.hint
    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {user.root}\n")
    with Repository(str(user.root)) as repository:
        assert repository.tip("refs/heads/main") == tip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_whoever_git_trusts_in_a_repository_may_own_our_folder_there_and_nobody_else(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    own = user.root / ".git/yolo-fs"
    own.mkdir(mode=0o700)
    (own / "daemon.lock").touch()

    def fails(owner: int) -> Reason | None:
        for path in (own, own / "daemon.lock"):
            os.chown(path, owner, owner)
        try:
            with Repository(str(user.root)) as repository:
                repository.make_own_dir()
                held = hold(f"{repository.own_dir}/daemon.lock")
                assert held is not None
                held.release()
        except YoloError as error:
            return error.reason
        return None

    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {user.root}\n")
    assert fails(1234) is Reason.FOREIGN_OWNER  # the repository is this user's own
    for path in (user.root, user.root / ".git"):
        os.chown(path, 1234, 1234)
    assert fails(1234) is None
    assert fails(4321) is Reason.FOREIGN_OWNER
    assert owners_of(str(tmp_path / "elsewhere")) == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_work_tree_whose_common_directory_is_of_somebody_else_is_not_opened(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    linked = tmp_path / "linked"
    user.git("worktree", "add", "-q", str(linked), "-b", "linked")
    os.chown(user.root / ".git", 65534, 65534)
    with pytest.raises(YoloError) as raised:
        Repository(str(linked))
    assert raised.value.reason is Reason.UNSAFE_REPOSITORY


def test_a_setting_is_read_anew_once_its_file_has_changed(user: User, engine: Engines) -> None:
    repository = engine(user).repository
    user.git("config", "Core.ExcludesFile", "~/rules")
    assert repository.config("core.excludesFile") == "~/rules"
    assert repository.config_path("core.excludesfile") == os.path.expanduser("~/rules")
    user.git("config", "--unset", "core.excludesFile")
    assert (
        repository.config("core.excludesFile") == repository.config_path("core.excludesFile") == ""
    )


def test_a_setting_of_an_included_file_is_read_anew_each_time(
    user: User, engine: Engines, tmp_path: Path
) -> None:
    before = engine(user).repository.programs_off(
        also_own_filters=True
    )  # what the machine's own git has, such as LFS
    user.git("config", "include.path", str(tmp_path / "more"))
    repository = engine(user).repository
    for driver in ("cat", "tac"):
        (tmp_path / "more").write_text(f'[filter "A b.C"]\n\tclean = {driver}\n[x]\n\tvoid\n')
        assert repository.config("FILTER.A b.C.Clean") == driver
        assert repository.programs_off(also_own_filters=True) == {
            **before,
            "filter.A b.C.clean": "",
        }
        assert repository.config("x.void") == ""


def test_settings_of_ours_do_not_pass_for_the_users(user: User, engine: Engines) -> None:
    assert engine(user).repository.config("core.hooksPath") == ""


def test_a_repository_that_git_does_not_understand_is_refused_in_its_words(user: User) -> None:
    user.git("config", "core.repositoryFormatVersion", "1")
    user.git("config", "extensions.ofTheFuture", "true")
    with pytest.raises(YoloError, match="ofthefuture") as raised:
        Repository(str(user.root))
    assert raised.value.reason is Reason.GIT_FAILED


# --- the index and refs ---

STATES = {
    "plain": [],
    "executable": [["update-index", "--chmod=+x", "a/b"]],
    "conflict": [["switch", "-qc", "side", "HEAD~1"], ["rm", "-q", "a/b"], ["commit", "-qm", "x"], ["merge", "main"]],
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_the_entries_of_an_index_are_those_that_git_lists(
    user: User, engine: Engines, state: str
) -> None:
    for text in ("x\n", "y\n"):
        for name in ("a/b", "a-b", "ab", "a/long" + "x" * 90, "ü/ö"):
            user.add(name, text)
        user.commit()
    user.write("new", "x\n")
    for command in STATES[state]:
        user.git(*command, ok=(0, 1))
    repository = engine(user).repository
    for paths in ((), ("a",), ("a/b", "ü"), ("a-b",), ("none",)):
        told = user.git("ls-files", "--stage", "-z", "--", *paths).split(b"\0")[:-1]
        listed = [f"{e.mode} {e.oid} {e.stage}\t{e.path}" for e in repository.staged(*paths)]
        assert listed == [os.fsdecode(line) for line in told]
    assert repository.has_conflicts() is (state == "conflict")


@NEEDS_REF_FILES
def test_a_ref_that_is_not_there_needs_no_git_and_a_revision_does(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, tip = engine(user).repository, user.tip()
    user.git("update-ref", "refs/bisect/bad", tip)
    user.git("symbolic-ref", "refs/heads/other", "refs/heads/main")
    user.commit("on top")
    assert repository.tip("refs/heads/main^{commit}") == repository.tip("refs/heads/other")
    assert repository.tip("refs/heads/main~1") == repository.tip("refs/bisect/bad") == tip
    monkeypatch.setattr(repository, "git", None)
    assert repository.tip("refs/heads/none") is repository.tip("refs/x/y.z-1") is None


def test_a_work_tree_that_the_configuration_puts_elsewhere_is_refused_and_told(
    tmp_path: Path,
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    run = partial(subprocess.run, cwd=tmp_path / "here", check=True)
    run(["git", "init", "-q"])
    Repository(str(tmp_path / "here")).close()
    run(["git", "config", "core.worktree", ".."])
    Repository(str(tmp_path / "here")).close()
    run(["git", "config", "core.worktree", str(tmp_path / "there")])
    with pytest.raises(YoloError) as raised:
        Repository(str(tmp_path / "here"))
    assert raised.value.reason is Reason.BARE_REPOSITORY
    assert "core.worktree" in raised.value.message


def test_a_work_tree_whose_repository_has_moved_is_told_the_way_back(
    user: User, tmp_path: Path
) -> None:
    user.commit_file("x", "1\n")
    linked, moved = tmp_path / "linked", tmp_path / "moved"
    user.git("worktree", "add", "-q", str(linked))
    user.root.rename(moved)
    with pytest.raises(YoloError) as caught:
        Repository(str(linked))
    assert caught.value.reason is Reason.NOT_A_REPOSITORY
    command = caught.value.as_finding().command
    assert command == "git worktree repair"
    subprocess.run([*command.split(), linked], cwd=moved, check=True, capture_output=True)
    Repository(str(linked)).close()


@pytest.mark.skipif(
    not shutil.which("setpriv"), reason="without setpriv the modes do not bind root"
)
@pytest.mark.parametrize("path", [".git", ".git/HEAD", ".git/config", ".git/index"])
def test_what_its_user_may_not_read_is_not_called_damaged_or_absent(user: User, path: str) -> None:
    """Whoever moved the index away, wrote HEAD anew or ran `git init` as told would lose by it."""
    (user.root / ".yolo-planning/phases").mkdir(parents=True)
    bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if IS_ROOT else ()
    place = user.root / path
    mode = place.stat().st_mode
    place.chmod(0)
    try:
        asked = subprocess.run(
            [*bound, sys.executable, "-m", "yolo_fs", "status", "-C", user.root],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        place.chmod(mode)
    assert asked.returncode, asked.stdout
    assert "Give yourself permission to read" in asked.stderr
