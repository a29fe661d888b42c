"""Whatever we write lands where it is meant to: through no link, in no git directory by any spelling, and where only
this user can have put the folder. See docs/dev/faults.md#f45 and #f50.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import random
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import artifact, mixed
from tests.e2e.repo import Repo
from tests.security.asking import Question, Said, ask
from tests.security.things import put_object
from tests.security.verbs import READERS, of_hosts, questions
from tests.support.sample import sample_of
from yolo_fs.core.ids import spells_git
from yolo_fs.core.reasons import YoloError
from yolo_fs.git.objects import KEEP_NOTE
from yolo_fs.git.packs import PackMerger
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.hooks import HOST_BY_NAME, HOSTS
from yolo_fs.system import file_locks, heartbeats, in_place, store, typed_path
from yolo_fs.system.database import open_disposable
from yolo_fs.workspace.own_files import OwnFile, own_files

ALL = bool(os.environ.get("YOLO_SECURITY"))
PACKAGE = Path(store.__file__).parents[1]


# --- names that some file system takes for .git ----------------------------------------------------------------------

IGNORED = [chr(one) for one in (0x200C, 0x200F, 0x202A, 0x202E, 0x206A, 0x206F, 0xFEFF)]
ALIKE = (
    ".git",
    ".gitignore",
    ".gitx",
    "git",
    "git~1",
    "git~2",
    ".gi",
    "x.git",
    ".git-",
    "..git",
    "a.git.b",
    "gıt~1",
)
BEHIND = (
    "",
    ".",
    " ",
    ". .",
    ":",
    "::$INDEX_ALLOCATION",
    ":x y",
    "x",
    "-",
    " x",
    "\\hooks",
    "\\",
    "/",
)


def spelled(rng: random.Random) -> str:
    """Return something like `.git`, or not quite."""
    name = "".join(rng.choice((one, one.upper())) for one in rng.choice(ALIKE)) + rng.choice(
        BEHIND
    ).replace("/", "")
    for _ in range(rng.choice((0, 0, 1, 3))):
        at = rng.randrange(len(name) + 1)
        name = name[:at] + rng.choice(IGNORED) + name[at:]
    return rng.choice(("", "", "", "a\\")) + name


def test_what_git_takes_for_its_own_folder_on_any_system_we_take_for_it_too(
    repo: Repo, rng: random.Random
) -> None:
    """git itself is asked: it refuses such a path in its index."""
    names = {spelled(rng) for _ in range(600 if ALL else 150)}
    blob = repo.git("hash-object", "-w", "--stdin", given="x").strip()
    protected = (
        "-c",
        "core.protectHFS=true",
        "-c",
        "core.protectNTFS=true",
        "update-index",
        "--add",
        "--cacheinfo",
    )
    seen = set()
    for name in sorted(names):
        done = subprocess.run(
            ["git", *protected, f"100644,{blob},d/{name}/x"], cwd=repo.root, env=repo.env, capture_output=True, check=False,
        )  # fmt: skip
        seen.add(done.returncode == 0)
        is_plain = not any(
            one in name for one in IGNORED
        )  # else two systems might each be half right
        assert spells_git(name) or done.returncode == 0, ascii(name)
        assert not spells_git(name) or done.returncode != 0 or not is_plain, ascii(name)
    assert seen == {True, False}


# --- every function that writes --------------------------------------------------------------------------------------

WRITERS: dict[str, Callable[[str, str], object]] = {
    "appending": lambda path, root: in_place.appending(path, root=root).__enter__().add(b"{}"),
    "link_atomic": lambda path, root: store.link_atomic(path, b"x", root=root),
    "locked": lambda path, root: file_locks.locked(path, 0.1, root=root).__enter__(),
    "make_folders": lambda path, root: store.make_folders(path, root=root),
    "move": lambda path, root: store.move(path, path, root=root),
    "open_regular": lambda path, root: os.close(store.open_regular(path, os.O_WRONLY | os.O_CREAT, 0o644, root)),
    "opened": lambda path, root: store.opened(path, root, make=True).__enter__(),
    "remove": lambda path, root: store.remove(path, root=root),
    "rename_over": lambda path, root: store.rename_over(path, b"x", root=root, durable=False, mode=0o644),
    "sync_name": lambda path, root: store.sync_name(path, root),
    "update": lambda path, root: file_locks.update(path, f"{path}.lock", lambda _: {}, root=root),
    "write_atomic": lambda path, root: store.write_atomic(path, b"x", root=root),
    "write_json": lambda path, root: store.write_json(path, {}, root=root),
    "write_text": lambda path, root: store.write_text(path, "x", root=root),
    "place_file": lambda path, root: store.place_file(root, path.removeprefix(f"{root}/"), b"x", None),
    "sync_file": lambda path, root: store.sync_file(root, path.removeprefix(f"{root}/")),
}  # fmt: skip
ASKS = {"resolve_typed_path"}
"""Takes a root, and writes nothing."""


def test_each_function_that_writes_below_a_root_is_tried_here() -> None:
    found = {
        name
        for module in (store, file_locks, in_place, typed_path)
        for name, each in inspect.getmembers(module, inspect.isfunction)
        if "root" in inspect.signature(each).parameters and not name.startswith("_") and each.__module__ == module.__name__
    }  # fmt: skip
    assert found - ASKS == set(WRITERS)


DEPTHS = range(3)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("is_whole", [True, False], ids=["root", "own"])
def test_no_writer_follows_a_link_at_any_depth(
    tmp_path: Path, name: str, depth: int, is_whole: bool
) -> None:
    """`own`: the folder is ours, and the last one alone may be a link; its parents are git's."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "a/b").mkdir(parents=True)
    (outside / "a/b/file").write_text("{}")
    root.mkdir()
    parts = ["a", "b", "file"]
    path = root.joinpath(*parts)
    link = root.joinpath(*parts[: depth + 1])
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside.joinpath(*parts[: depth + 1]))
    before = contents(outside)
    if is_whole:
        attempt(partial(WRITERS[name], str(path), str(root)))
    elif depth == 1 and name in (
        "write_atomic",
        "open_regular",
        "locked",
        "remove",
        "write_json",
        "update",
        "appending",
    ):
        attempt(partial(WRITERS[name], str(path), None))  # type: ignore[arg-type]
    assert contents(outside) == before


@pytest.mark.parametrize("name", WRITERS)
def test_no_writer_takes_a_path_with_a_part_of_git_or_out_of_its_root(
    tmp_path: Path, rng: random.Random, name: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    before = contents(tmp_path)
    parts = [
        *filter(spells_git, {spelled(rng) for _ in range(40)}),
        "..",
        ".",
        "a/..",
        "a/../..",
    ]
    for part in parts:
        for path in (f"{root}/{part}/file", f"{root}/a/{part}/b", f"{root}/a/{part}"):
            attempt(partial(WRITERS[name], path, str(root)))
            assert contents(tmp_path) == before, ascii(path)
    for path in (
        f"{tmp_path}/root-beside",
        f"{root}//file",
        f"{root}/a//file",
        str(root),
        "/tmp/../root",
    ):
        attempt(partial(WRITERS[name], path, str(root)))
    assert contents(tmp_path) == before


def attempt(deed: Callable[[], object]) -> None:
    try:
        deed()
    except (YoloError, OSError, store.RefusedError):
        return


def contents(root: Path) -> dict[str, str]:
    """Return everything below a folder, links and modes too."""
    return {str(path.relative_to(root)): _of(path) for path in sorted(root.rglob("*"))}


def _of(path: Path) -> str:
    kind = path.lstat().st_mode
    if stat.S_ISLNK(kind):
        return os.readlink(path)
    return f"{kind:o} {path.read_text(errors='replace') if stat.S_ISREG(kind) else ''}"


DOORS = ("system", "git", "demo")
"""Rooms that write by themselves: the floor of the disk, and the demo in a folder that it has made."""
BY_PATH = {
    "daemon/recovery.py: rename": "from git's objects, into an open folder of ours",
    "hooks/githooks.py: rmdir": "an empty folder that we have made",
    "hooks/hostsettings.py: rmdir": "the empty folder of a file that was just removed without a link",
    "install/background.py: makedirs": "the user's own folder of services",
    "install/background.py: unlink": "the user's own folder of services",
    "contexts/store.py: utime": "follows no link",
    "team/membership.py: makedirs": "the user's own folder of settings",
    "web/opening.py: open": "a folder for temporary files that was just made",
}
CALLS = {
    "replace", "rename", "renames", "mkdir", "makedirs", "unlink", "remove", "rmdir", "chmod", "link", "symlink", "utime",
    "truncate", "mkfifo", "mknod", "removedirs", "chown", "copyfile", "copy", "copy2", "copytree", "move", "rmtree",
}  # fmt: skip
METHODS = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"}


def test_nobody_but_the_writer_writes_by_a_path() -> None:
    found = {
        f"{file.relative_to(PACKAGE)}: {call}"
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).parts[0] not in DOORS
        for call in written_by_path(ast.parse(file.read_text()))
    }
    assert found - set(BY_PATH) == set()


def written_by_path(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        words = {keyword.arg for keyword in node.keywords}
        match node.func:
            case ast.Attribute(value=ast.Name(id="os" | "shutil"), attr=name) if name in CALLS:
                if not words & {"dir_fd"} and not {"src_dir_fd", "dst_dir_fd"} <= words:
                    yield name
            case ast.Attribute(attr=name) if name in METHODS:
                yield name
            case ast.Attribute(value=ast.Name(id="os"), attr="open") if "O_CREAT" in ast.unparse(
                node
            ):
                yield "open"
            case ast.Name(id="open") if opens_a_path_to_write(node):
                yield "open"


def opens_a_path_to_write(node: ast.Call) -> bool:
    modes = [one.value for one in node.args[1:2] if isinstance(one, ast.Constant)]
    is_descriptor = "descriptor" in ast.unparse(node.args[0]) or "memfd" in ast.unparse(
        node.args[0]
    )
    is_nothing = "devnull" in ast.unparse(node.args[0])
    return (
        any(set(str(mode)) & set("wax+") for mode in modes) and not is_descriptor and not is_nothing
    )


# --- .git/yolo-fs ----------------------------------------------------------------------------------------------------

MORE = (
    "run --once", "doctor --fix", "hooks install", "setup claude", "setup claude --mcp", "setup claude --remove",
    "team leave", "task claim 01-01/T1", "handoff check --override because", "escalate tick", "kept prune",
    "workflow skip documentation --phase 1 --reason x", "dept update backend --phase 1 --status running", "phase new x",
    "restart", "stop", "service install", "hooks uninstall", "agent list", "context build dev", "init",
)  # fmt: skip
NAMES = (
    "compacted-e3b0c44298fc1c14",
    "hinted",
    "index-draft",
    "index-draft.lock",
    "index-draft.before",
    "observer.sock",
)
"""Further names in our folder, beside those that `own_files` names."""


def own_names() -> list[str]:
    hosts = tuple(HOST_BY_NAME)
    nowhere: Any = None
    files: Iterator[OwnFile] = own_files(nowhere, hosts)
    return [*(one.name for one in files), *NAMES]


def asked_of_all(root: str) -> list[Question]:
    hosts = [
        Question(("hook", event), json.dumps({
            "cwd": root, "session_id": "s", "agent_id": "a", "agent_type": "yolo-dev", "tool_name": "Bash",
            "tool_input": {"command": "git reset --hard; cat .yolo-planning/x"},
        }))
        for event in (*{name for host in HOSTS for name in host.events},)
    ]  # fmt: skip
    return [*questions((*READERS, *MORE)), *hosts, *of_hosts(root, "x")]


@pytest.mark.timeout(300)  # more than a hundred commands
def test_where_our_folder_is_a_link_nothing_behind_it_is_touched(
    repo: Repo, rng: random.Random
) -> None:
    """Also a folder that is as private as ours, with files that are named as ours are."""
    repo.write(*mixed(2))
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore: planning")
    other = repo.root.parent / "other"
    other.mkdir(mode=0o700)
    for name in own_names():
        (other / name).write_text("MY OWN DATA")
    (repo.git_dir / "yolo-fs").symlink_to(other)
    before = contents(other)
    for question in sample_of(asked_of_all(str(repo.root)), 6, rng):
        ask(repo, [question])
        assert contents(other) == before, question


def test_our_folder_is_made_private_again_and_its_files_are(repo: Repo) -> None:
    """A git directory that was copied, or unpacked, has the modes that the umask gave it."""
    own = repo.git_dir / "yolo-fs"
    own.mkdir()
    own.chmod(0o777)
    message = repo.root.parent / "message"
    message.write_text("any words\n")
    said = ask(
        repo,
        [*of_hosts(str(repo.root), "x"), *questions(("status", f"git-hook commit-msg {message}"))],
    )
    assert b"tip, once a day" in said[-1].err
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in own.rglob("*")}
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert "hinted" in modes and set(modes.values()) == {0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_nothing_is_written_into_a_folder_of_another_user(repo: Repo, tmp_path: Path) -> None:
    own = repo.git_dir / "yolo-fs"
    own.mkdir(mode=0o700)
    os.chown(own, 4242, 4242)
    with pytest.raises(YoloError, match="belongs to user 4242"):
        store.write_atomic(f"{own}/health.json", b"x")
    assert not heartbeats.append_heartbeat(str(own), "stop", "yolo-dev", "a", "s")
    heartbeats.mark_compacted(str(own), "s")
    assert open_disposable(f"{own}/index.db", "create table a(b)") is None
    assert os.listdir(own) == []


def test_where_folders_in_ours_are_links_nothing_behind_them_is_touched(repo: Repo) -> None:
    """The daemon keeps merged packs there for a minute, and removes them then."""
    (repo.git_dir / "yolo-fs").mkdir(mode=0o700)
    outside = repo.root.parent / "outside"
    for name in ("merged", "packing", "quarantine"):
        (outside / name).mkdir(parents=True)
        (outside / name / "pack-1.pack").write_text("MY OWN DATA")
        (repo.git_dir / "yolo-fs" / name).symlink_to(outside / name)
    before = contents(outside)
    for one in mixed(4):
        repo.write(one)
        ask(repo, questions(("run --once",)))
    (repo.git_dir / "yolo-fs/claims.json").write_text("[")
    ask(repo, questions(("doctor --fix",)))
    with Repository(str(repo.root)) as repository:
        merger = PackMerger(repository)
        assert not merger.keeps_any_aside
        for pack in (repo.git_dir / "objects/pack").glob(
            "*.pack"
        ):  # as those of a run that goes on
            pack.with_suffix(".keep").write_bytes(KEEP_NOTE)
        assert len(list((repo.git_dir / "objects/pack").glob("*.keep"))) >= 2
        merger.merge_now(most=1)
    assert contents(outside) == before


# --- setup, merge ----------------------------------------------------------------------------------------------------


def places_of_hosts() -> Iterator[tuple[str, str]]:
    """Yield each command that writes the settings of a host, and the file that it writes."""
    for host in HOSTS:
        parts = {"": host.settings, " --local": host.local_settings, " --mcp": host.servers}
        if host.name == "codex":
            parts[" --roles"] = host.servers
        yield from ((f"setup {host.name}{word}", file) for word, file in parts.items() if file)


@pytest.mark.parametrize("depth", [0, 1])
def test_the_settings_of_a_host_and_attributes_are_written_through_no_link(
    repo: Repo, depth: int
) -> None:
    places = [
        *places_of_hosts(),
        ("merge install", ".gitattributes"),
        ("merge uninstall", ".gitattributes"),
    ]
    assert len(places) >= 9
    outside = repo.root.parent / "outside"
    secret = "# yolo-fs merge: begin\nTOP-SECRET\n# yolo-fs merge: end\n"
    tried = [(command, file) for command, file in places if file.count("/") >= depth]
    for _, file in tried:
        step = "/".join(file.split("/")[: depth + 1])
        target = outside / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(secret if file == ".gitattributes" else "{}")
        link = repo.root / step
        link.parent.mkdir(exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(outside / step)
    before = contents(repo.root.parent)
    for said in ask(repo, questions(tuple(command for command, _ in tried))):
        assert said.code not in (0, 70) and b"not_regular" in said.err, said
    assert changed_beside(contents(repo.root.parent), before) == set()


# --- places that a person names --------------------------------------------------------------------------------------


def outputs(place: str) -> list[str]:
    """Return the commands that write where they are told to."""
    return [
        f"report -o {place}", f"adopt --report {place}", f"kept restore 1 --to {place}", f"schema export {place}",
        f"setup claude --plugin {place}", f"merge-driver base {place} theirs .yolo-planning/phases/01-phase-1/gaps.jsonl",
    ]  # fmt: skip


def ready(repo: Repo) -> None:
    """Let there be a phase, and something that was kept."""
    repo.write(*mixed(1), artifact("critique", 2)._replace(data=b"{}\n"))
    assert ask(repo, questions(("run --once", "kept")))[1].out.strip() != b"nothing is kept"
    for name in ("base", "theirs"):
        repo.file(name, "")


def split(line: str) -> Question:
    return Question(tuple(line.split(" ")))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("inside", [
    ".git/hooks/post-checkout.html", ".GIT/x.html", ".git/yolo-fs/x.html", ".git\u200c/x.html", "git~1/x.html",
    ".git./x.html", "sub/.git/x.html", "link/x.html", "sub/link/x.html", "parts/hooks/x.html", "../parts/hooks/x.html",
    "../bare/hooks/x.html", ".git::$INDEX_ALLOCATION/x.html", "link/../.git/x.html", "./sub/../.git/x.html",
])  # fmt: skip
def test_what_a_person_names_is_written_neither_into_git_nor_through_a_link_of_the_repository(
    repo: Repo, inside: str
) -> None:
    ready(repo)
    outside = repo.root.parent / "outside"
    outside.mkdir()
    (repo.root / "sub").mkdir()
    for link in ("link", "sub/link"):
        (repo.root / link).symlink_to(outside)
    for place in (repo.root / "parts", repo.root.parent / "parts", repo.root.parent / "bare"):
        repo.git("init", "-q", "--bare", str(place))
    for name in ("outside/x.html", "bare/hooks/x.html", "parts/hooks/x.html"):
        (repo.root.parent / name).write_text("x")
    before = contents(repo.root.parent)
    said = ask(repo, [split(line) for line in outputs(inside)])
    after = contents(repo.root.parent)
    assert changed_beside(after, before) == set(), inside
    assert not [one for one in said if one.code == 0], inside
    for one in said:
        reasons = (b"path_escapes", b"not_regular", b"unreadable", b"bad_config")
        assert any(reason in one.err for reason in reasons), one


def test_a_page_replaces_no_artifact_and_no_setting_of_the_repository(repo: Repo) -> None:
    ready(repo)
    names = (".yolo-planning/state.json", ".yolo-planning/config.json", ".env", "package.json")
    before = contents(repo.root)
    said = ask(repo, [split(line) for name in names for line in outputs(name)[:2]])
    assert {one.code for one in said} == {2} and all(b"bad_name" in one.err for one in said)
    after = contents(repo.root)
    assert {
        path
        for path in before | after
        if before.get(path) != after.get(path) and not path.startswith(".git/")
    } == set()


def test_elsewhere_a_person_writes_what_and_by_whatever_link_of_their_own_they_like(
    repo: Repo,
) -> None:
    ready(repo)
    outside = repo.root.parent / "outside"
    outside.mkdir()
    (repo.root.parent / "mine").symlink_to(outside)
    (repo.root / "docs").mkdir()
    lines = [
        "report -o ../mine/report.html", "report -o docs/report.html", f"report -o {outside}/report",
        "adopt --report ../mine/adopt.html", "kept restore 1 --to ../mine/kept", f"kept restore 1 --to {outside}/again",
        "schema export ../mine/deep/schemas", "setup claude --plugin ../mine/plugin",
    ]  # fmt: skip
    said: list[Said] = ask(repo, [split(line) for line in lines])
    assert [one.code for one in said if one.question.words[0] != "adopt"] == [0] * 7, said
    for name in (
        "report.html",
        "report",
        "adopt.html",
        "kept",
        "again",
        "deep/schemas",
        "plugin/README.md",
    ):
        assert (outside / name).exists(), name
    assert (repo.root / "docs/report.html").exists()


# --- kept ------------------------------------------------------------------------------------------------------------

Entry = tuple[str, str, "str | Sequence[Entry]"]
"""Mode, name, and what is there: text, or the entries of a folder."""


def store_tree(repo: Repo, entries: Sequence[Any]) -> str:
    """Store a tree as it is given, which no git would make."""
    body = b""
    for mode, name, inner in entries:
        if isinstance(inner, str):
            oid = put_object(repo, "blob", inner.encode())
        else:
            oid = store_tree(repo, inner)
        body += f"{mode} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(oid)
    return put_object(repo, "tree", body)


def plant(repo: Repo, trees: Sequence[Sequence[Any]]) -> None:
    """Let each tree be an entry of what is kept, from number 1 on."""
    parent: list[str] = []
    for number, entries in enumerate(trees, 1):
        facts = {"number": number, "at": "2026-01-01T00:00:00Z", "paths": [f"{number}"], "files": 1, "size_bytes": 1,
                 "cause": {"reasons": ["missing_key"], "command": "x", "agent": ""}, "dropped": 0}  # fmt: skip
        made = repo.git(
            "commit-tree",
            store_tree(repo, entries),
            *parent,
            given=f"kept\n\n{json.dumps(facts)}\n",
        )
        parent = ["-p", made.strip()]
    repo.git("update-ref", "refs/yolo-fs/kept/main", parent[1])


FILE, RUNS, LINK, FOLDER = "100644", "100755", "120000", "40000"


def hostile_trees(outside: str, rng: random.Random) -> list[list[Any]]:
    """Return trees each of which has to be refused whole."""
    evil = "#!/bin/sh\n"
    names = sorted(
        {*filter(spells_git, (spelled(rng) for _ in range(12))), ".git", ".GIT", "git~1", "..", "."}
    )
    names = [name for name in names if "/" not in name]
    found: list[list[Any]] = [[(FILE, "aside", "x"), (RUNS, name, evil)] for name in names]
    found += [[(FILE, "aside", "x"), (FOLDER, name, [(RUNS, "hooks", evil)])] for name in names]
    found += [
        [(FILE, "aside", "x"), (FOLDER, "a", [(FOLDER, name, [(LINK, "b", outside)])])]
        for name in names
    ]
    found += [
        [(FILE, "aside", "x"), (FILE, name, "x")] for name in ("../UP", f"{outside}/ABSOLUTE", "a/b", "", "a/")
    ]  # fmt: skip
    found += [
        [(FILE, "aside", "x"), (LINK, "lnk", outside), (FOLDER, "lnk", [(FILE, "THROUGH", "x")])],
        [(FILE, "aside", "x"), (FOLDER, "lnk", [(FILE, "THROUGH", "x")]), (LINK, "lnk", outside)],
        [(FILE, "aside", "x"), (FILE, "aside", "y")],
        [(FILE, "aside", "x"), (FOLDER, "d", [(FILE, "x", "1")]), (FOLDER, "d", [(FILE, "y", "1")])],
        *([(FILE, "aside", "x"), (mode, "odd", "x")] for mode in ("100664", "100600", "104755", "160000", "120777", "20666", "1")),
    ]  # fmt: skip
    return found


def test_a_kept_tree_that_no_work_tree_could_have_had_is_refused_whole(
    repo: Repo, rng: random.Random
) -> None:
    outside = repo.root.parent / "outside"
    outside.mkdir()
    trees = hostile_trees(str(outside), rng)
    plant(repo, trees)
    ask(repo, questions(("status",)))  # makes our folders, and the key of this user
    before = contents(repo.root.parent)
    lines = [
        f"kept restore {number}{to}"
        for number in range(1, len(trees) + 1)
        for to in ("", " --to ../elsewhere")
    ]
    for said in ask(repo, [split(line) for line in sample_of(lines, 4, rng)]):
        number = int(said.question.words[2])
        assert said.code == 1, (trees[number - 1], said)
        assert said.err.split(b" ")[1] in (b"path_escapes:", b"state_conflict:", b"not_regular:"), (
            said
        )
    assert changed_beside(contents(repo.root.parent), before) == set()


def changed_beside(after: dict[str, str], before: dict[str, str]) -> set[str]:
    both = after.keys() | before.keys()
    return {
        path for path in both if after.get(path) != before.get(path) and "/.git/yolo-fs" not in path
    }


def test_a_tree_that_is_torn_or_endless_is_refused(repo: Repo) -> None:
    inner: list[Any] = [(FILE, "x", "x")]
    for _ in range(30):
        inner = (
            [(FOLDER, str(number), inner) for number in range(2)]
            if len(inner) < 2
            else [(FOLDER, "a", inner)]
        )
    torn = put_object(repo, "tree", b"100644 x\0short")
    odd = put_object(repo, "tree", b"\xff\xfe x\0" + b"0" * 20)
    deep: list[Any] = [(FILE, "x", "x")]
    for _ in range(200):
        deep = [(FOLDER, "d", deep)]
    folder = store_tree(repo, [(FILE, "x", "x")])
    for _ in range(40):  # as many paths as 2 to the power of 40
        folder = put_object(
            repo,
            "tree",
            b"".join(b"40000 %s\0" % name + bytes.fromhex(folder) for name in (b"a", b"b")),
        )
    plant(repo, [deep])
    tips = [repo.git("rev-parse", "refs/yolo-fs/kept/main").strip()]
    message = repo.git("log", "-1", "--format=%B", tips[0])
    for tree in (torn, odd, folder):
        tip = repo.git("commit-tree", tree, given=message).strip()
        repo.git("update-ref", "refs/yolo-fs/kept/main", tip)
        [said] = ask(repo, [split("kept restore 1")])
        assert said.code in (1, 5), said
    repo.git("update-ref", "refs/yolo-fs/kept/main", tips[0])
    assert ask(repo, [split("kept restore 1")])[0].code == 1
    assert not (repo.root / "d").exists() and not (repo.root / "a").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("hooks", ["folder/hooks", ".husky/_", "new/hooks"])
def test_no_hook_is_restored_wherever_git_looks_for_hooks(repo: Repo, hooks: str) -> None:
    repo.git("config", "core.hooksPath", hooks)
    if hooks.startswith("folder"):
        (repo.root / hooks).mkdir(parents=True)
    folder = hooks.removesuffix("/_")

    def below(mode: str, inner: str, case: Callable[[str], str] = str) -> list[Any]:
        tree: list[Any] = [(mode, "post-checkout", inner)]
        for part in reversed(folder.split("/")):
            tree = [(FOLDER, case(part), tree)]
        return tree

    plant(
        repo,
        [
            below(RUNS, "#!/bin/sh\n"),
            below(LINK, "../../evil"),
            below(RUNS, "#!/bin/sh\n", str.upper),
        ],
    )
    targets = ("1", "2", "3", f"1 --to {folder}/post-merge", f"2 --to {folder}/post-merge")
    for said in ask(repo, [split(f"kept restore {target}") for target in targets]):
        assert said.code == 1 and b"path_escapes" in said.err, said
    assert not [path for path in repo.root.rglob("post-*") if path.suffix != ".sample"]


def test_nothing_is_restored_into_a_git_directory_in_the_work_tree(
    new_repo: Callable[..., Repo],
) -> None:
    repo = new_repo("apart")
    (repo.root / ".git").rename(repo.root / "data")
    (repo.root / ".git").write_text("gitdir: data\n")
    plant(repo, [[(FOLDER, "data", [(FOLDER, "hooks", [(FILE, "post-checkout", "x")])])], [(FOLDER, "data", [(FILE, "config", "x")])]])  # fmt: skip
    before = (repo.root / "data/config").read_text()
    for said in ask(repo, [split("kept restore 1"), split("kept restore 2")]):
        assert said.code != 0 and b"path_escapes" in said.err, said
    assert (repo.root / "data/config").read_text() == before
    assert not (repo.root / "data/hooks/post-checkout").exists()


def test_a_sound_tree_comes_back_with_its_links_and_modes_and_links_come_last(repo: Repo) -> None:
    tree = [
        (LINK, "a-link", "b"),
        (FOLDER, "b", [(FILE, "x", "1"), (RUNS, "y.sh", "2")]),
        (LINK, "out", "/nowhere"),
    ]
    plant(repo, [tree])
    [said] = ask(repo, [split("kept restore 1")])
    assert said.code == 0, said
    assert os.readlink(repo.root / "a-link") == "b" and os.readlink(repo.root / "out") == "/nowhere"
    assert (repo.root / "b/x").read_text() == "1"
    assert os.access(repo.root / "b/y.sh", os.X_OK) and not os.access(repo.root / "b/x", os.X_OK)
