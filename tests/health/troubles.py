"""What keeps a file uncommitted, a hook unrun or a person unasked, and what only looks like it.

Each is a context: it is put in place, yields the words of which each surface must show one, divided by
`|`, and ends as people end it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e import test_held as held
from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import until
from tests.e2e.test_observer import observers_of
from tests.health.ground import FOLDER, Ground
from tests.support.links import behind_link
from tests.torture import disks

Trouble = Callable[[Ground], AbstractContextManager[str]]
IS_ROOT = os.geteuid() == 0


def gap(number: int, context: str = "Login") -> str:
    """Return one line of a critique."""
    record = {"id": f"C{number}", "cat": "gap", "sev": "major", "q": "Why?", "ctx": context}
    return json.dumps(record | {"sug": "Ask", "st": "open"}) + "\n"


def done_by_root(*command: str) -> None:
    """Run what only root may do, and that not in every container."""
    if not IS_ROOT or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"not here: {command[0]}")


CRITIQUE = "critique.jsonl"
GOOD = gap(1)


def users_turn(situation: Callable[..., AbstractContextManager[str]]) -> Trouble:
    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        with situation(ground.repo) as reason:
            ground.writes()
            yield reason

    return put


def file_is(reason: str, name: str, data: bytes | str, mended: str | None = None) -> Trouble:
    """A file of the phase that is not committed, until it is mended (None: removed)."""

    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        file = ground.put(name, data)
        yield reason
        if mended is None:
            file.unlink()
        else:
            file.write_text(mended)

    return put


def changed(
    path: str,
    change: Callable[[bytes], bytes | None],
    reason: str,
    *,
    age_s: float = 0,
    waits: bool = True,
) -> Trouble:
    """A file of the repository, the git directory or the home that says something else."""

    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        file = Path(
            path.format(root=ground.root, git=ground.git_dir, own=ground.own, home=ground.home)
        )
        before = file.read_bytes() if file.exists() else None
        facts = file.stat() if before is not None else None
        after = change(before or b"")
        file.parent.mkdir(parents=True, exist_ok=True)
        if after is None:
            file.unlink()
        else:
            file.write_bytes(after)
        if age_s:
            os.utime(file, (time.time() - age_s,) * 2)
        if waits:
            ground.writes()
        yield reason
        if before is None:
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(before)
            assert facts
            file.chmod(facts.st_mode)

    return put


def git_config(key: str, value: str, reason: str) -> Trouble:
    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        ground.repo.git("config", key, value)
        ground.writes()
        yield reason
        ground.repo.git("config", "--unset", key, GIT_CONFIG_PARAMETERS="")

    return put


def special(reason: str, name: str, make: Callable[[Path], object]) -> Trouble:
    """Something else than a file in the place of one."""

    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        place = ground.root / FOLDER / name
        make(place)
        yield reason
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    return put


@contextmanager
def rebase(ground: Ground) -> Iterator[str]:
    ground.repo.insist("checkout", "-q", "-b", "side")
    ground.repo.commit_file("x", "side")
    ground.repo.insist("checkout", "-q", "main")
    ground.repo.commit_file("x", "main")
    ground.repo.git("rebase", "side", ok=(1,))
    ground.writes()
    yield "rebase_in_progress"
    ground.repo.git("rebase", "--abort")


@contextmanager
def orphan(ground: Ground) -> Iterator[str]:
    ground.repo.git("symbolic-ref", "HEAD", "refs/heads/new")
    ground.writes()
    yield "unborn_branch"
    ground.repo.git("symbolic-ref", "HEAD", "refs/heads/main")


@contextmanager
def other_tools_branch(ground: Ground) -> Iterator[str]:
    ground.repo.insist("checkout", "-q", "-b", "gitbutler/workspace")
    ground.writes()
    yield "protected_branch"
    ground.repo.insist("checkout", "-q", "main")


@contextmanager
def object_lost(ground: Ground) -> Iterator[str]:
    ground.daemon.stop()
    for keep in (ground.git_dir / "objects/pack").glob("*.keep"):
        keep.unlink()
    packs = ground.git_dir / "objects/pack"
    aside = ground.git_dir / "aside"
    packs.rename(aside)
    packs.mkdir()
    for pack in aside.glob("*.pack"):
        with open(pack, "rb") as given:
            subprocess.run(
                ["git", "unpack-objects", "-q"], stdin=given, cwd=ground.root, check=True
            )
    tree = ground.repo.look("rev-parse", f"HEAD:{PLANNING}").strip()
    file = ground.git_dir / "objects" / tree[:2] / tree[2:]
    content = file.read_bytes()
    file.unlink()
    ground.begin()
    ground.writes()
    yield "object_missing"
    file.write_bytes(content)


@contextmanager
def foreign_owner(ground: Ground) -> Iterator[str]:
    file = ground.put(CRITIQUE, GOOD)
    done_by_root("chown", "65534:65534", str(file))
    yield "foreign_owner"
    os.chown(file, os.getuid(), os.getgid())


@contextmanager
def hard_linked(ground: Ground) -> Iterator[str]:
    file = ground.put(CRITIQUE, GOOD)
    other = ground.root.parent / "other"
    other.hardlink_to(file)
    ground.put(CRITIQUE, GOOD)
    yield "hard_linked"
    other.unlink()


@contextmanager
def daemon_dead(ground: Ground) -> Iterator[str]:
    ground.daemon.kill()
    yield "yolo-fs start"
    ground.begin()


@contextmanager
def report_is_folder(ground: Ground) -> Iterator[str]:
    report = ground.own / "health.json"
    report.unlink()
    report.mkdir()
    yield "not_regular"
    report.rmdir()


@contextmanager
def locked(ground: Ground) -> Iterator[str]:
    """Another program has the database of claims open, and writes to it."""
    with closing(sqlite3.connect(ground.own / "state.db", isolation_level=None)) as state:
        state.execute("begin exclusive")
        yield "lock_timeout"


@contextmanager
def daemon_halted(ground: Ground) -> Iterator[str]:
    health = ground.own / "health.json"
    pid = ground.daemon.pid
    os.kill(pid, signal.SIGSTOP)
    report = json.loads(health.read_text())
    health.write_text(json.dumps(report | {"awake_s": report["awake_s"] - 3600}))
    yield "has not scanned|has stalled"
    os.kill(pid, signal.SIGCONT)


@contextmanager
def nested_tree(ground: Ground) -> Iterator[str]:
    path = ground.root / "web" / FOLDER / CRITIQUE
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    yield "not_an_artifact"
    shutil.rmtree(ground.root / "web")


@contextmanager
def shared_number(ground: Ground) -> Iterator[str]:
    other = ground.root / PLANNING / "phases/01-other"
    other.mkdir()
    yield "duplicate_id"
    other.rmdir()


@contextmanager
def misplaced_plan(ground: Ground) -> Iterator[str]:
    path = ground.root / "lib/01-07.plan.jsonl"
    path.parent.mkdir()
    path.write_text(GOOD)
    yield "unknown_name"
    shutil.rmtree(path.parent)


def linked(path: str) -> Trouble:
    """A link in the place of a folder."""

    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        with behind_link(ground.root / path, ground.root.parent / "aside"):
            yield "not_regular"

    return put


@contextmanager
def tree_gone(ground: Ground) -> Iterator[str]:
    aside = ground.root.parent / "aside"
    (ground.root / PLANNING).rename(aside)
    yield "not_initialised"
    aside.rename(ground.root / PLANNING)


@contextmanager
def disk_full(ground: Ground) -> Iterator[str]:
    """The git directory is on a small file system, which is filled up to the last byte."""
    ground.daemon.stop()
    aside = ground.root.parent / "aside"
    shutil.copytree(ground.git_dir, aside, symlinks=True)
    done_by_root("mount", "-t", "tmpfs", "-o", "size=4096k", "tmpfs", str(ground.git_dir))
    ground.ends.callback(subprocess.run, ["umount", "-l", str(ground.git_dir)], check=True)
    shutil.copytree(aside, ground.git_dir, symlinks=True, dirs_exist_ok=True)
    ground.begin()
    with disks.full(ground.git_dir):
        ground.writes()
        yield "no_space"


def unwritable(place: str, reason: str) -> Trouble:
    """A file, or a folder, that nobody can write to, whoever they are."""

    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        path = str(ground.git_dir / place)
        done_by_root("chattr", "+i", path)
        unlock = ["chattr", "-i", path]
        ground.ends.callback(subprocess.run, unlock, check=True)
        ground.writes()
        yield reason
        subprocess.run(unlock, check=True)

    return put


@contextmanager
def foreign_repository(ground: Ground) -> Iterator[str]:
    done_by_root("chown", "65534:65534", str(ground.root), str(ground.git_dir))
    ground.writes()
    yield "unsafe_repository"
    os.chown(ground.root, 0, 0)
    os.chown(ground.git_dir, 0, 0)


@contextmanager
def older_version(ground: Ground) -> Iterator[str]:
    """The branch moves on and the file does not, as after a push into it."""
    newer = artifact("plan", 0, 5)
    blob = ground.repo.git("hash-object", "-w", "--stdin", given=newer.data.decode()).strip()
    index = str(ground.root.parent / "index")
    ground.repo.git("read-tree", "HEAD", GIT_INDEX_FILE=index)
    ground.repo.git(
        "update-index", "--cacheinfo", f"100644,{blob},{newer.path}", GIT_INDEX_FILE=index
    )
    tree = ground.repo.git("write-tree", GIT_INDEX_FILE=index).strip()
    made = ground.repo.git("commit-tree", tree, "-p", "HEAD", "-m", newer.subject).strip()
    ground.repo.git("update-ref", "refs/heads/main", made)
    yield "older_than_branch"
    ground.repo.insist("checkout", "-q", "HEAD", "--", newer.path)


@contextmanager
def no_auto_commit(ground: Ground) -> Iterator[str]:
    config = ground.root / PLANNING / "config.json"
    before = config.read_text()
    config.write_text(json.dumps({"auto_commit": False}))
    ground.writes()
    yield "auto_commit_off"
    config.write_text(before)


@contextmanager
def plan_waits(ground: Ground) -> Iterator[str]:
    other = artifact("plan", 0)
    data = other.data.replace(b'"n":"01"', b'"n":"02"').replace(b'"d":[]', b'"d":["01-07"]')
    file = ground.put("01-02.plan.jsonl", data)
    yield "waits_for"
    file.unlink()


@contextmanager
def records_lost(ground: Ground) -> Iterator[str]:
    file = ground.put(CRITIQUE, gap(1) + gap(2))
    until(lambda: CRITIQUE in ground.repo.look("ls-tree", "-r", "--name-only", "HEAD"), "a commit")
    file.write_text(gap(2))
    yield "records_lost"
    file.write_text(gap(1) + gap(2))


def settings(change: Callable[[str], str], reason: str = "hook_broken") -> Trouble:
    return changed(
        "{root}/.claude/settings.json",
        lambda data: change(data.decode()).encode(),
        reason,
        waits=False,
    )


@contextmanager
def question(ground: Ground) -> Iterator[str]:
    """Dev asks, and each level hands it up to the user."""
    words = ("--evidence", "seen", "--recommendation", "decide", "--reason", "Which colour?")
    ground.repo.yolo_fs("escalate", "open", "--task", "01-01/T1", *words)
    options = ("--option", "blue", "--option", "red")
    for _ in range(3):
        ground.repo.yolo_fs("escalate", "raise", "ESC-01-01-T1", *words, *options)
    yield "yolo-fs answer ESC-01-01-T1|yolo-fs inbox"
    ground.repo.yolo_fs("answer", "ESC-01-01-T1", "1")


SECRET = GOOD.replace("Login", "AKIA" + "Q3EGTCBRLTNPWZ7V")
CONFIG = "{root}/.yolo-planning/config.json"
TROUBLES: dict[str, Trouble] = {
    **{
        each.__name__: users_turn(each)
        for each in held.SITUATIONS
        if not each.__name__.startswith("rebase")
    },
    "a rebase that stops": rebase,
    "a branch that has no commit yet": orphan,
    "a branch whose ref is gone": changed("{git}/refs/heads/main", lambda _: None, "branch_broken"),
    "an empty ref after a power cut": changed(
        "{git}/refs/heads/main", lambda _: b"", "branch_broken"
    ),
    "an empty HEAD": changed("{git}/HEAD", lambda _: b"", "git_failed"),
    "an index of garbage": changed("{git}/index", lambda _: b"garbage", "git_failed"),
    "an index of a newer git": changed(
        "{git}/index", lambda data: data[:4] + b"\0\0\0\x09" + data[8:], "git_failed"
    ),
    "an extension that git does not know": changed(
        "{git}/config",
        lambda data: data + b"[core]\nrepositoryformatversion=1\n[extensions]\nnewest=1\n",
        "git_failed",
    ),
    "a configuration of git that is torn": changed(
        "{git}/config", lambda data: data + b"[core\n", "git_failed"
    ),
    "a branch of another tool": other_tools_branch,
    "an old index.lock": changed("{git}/index.lock", lambda _: b"", "index_locked", age_s=4000),
    "an old lock of HEAD": changed("{git}/HEAD.lock", lambda _: b"", "ref_locked", age_s=4000),
    "an old lock of the branch": changed(
        "{git}/refs/heads/main.lock", lambda _: b"", "ref_locked", age_s=4000
    ),
    "an object is lost": object_lost,
    "objects that cannot be written": unwritable("objects", "storage_failed"),
    "a branch that cannot be moved": unwritable("refs/heads", "git_failed"),
    "an index that cannot be locked": unwritable("", "storage_failed"),
    "our own files that cannot be written": unwritable("yolo-fs", "storage_failed"),
    "a full disk": disk_full,
    "a repository of another user": foreign_repository,
    "torn JSON": file_is("json_parse_error", CRITIQUE, '{"id": \n', GOOD),
    "a misnamed file": file_is("unknown_name", "01-1.plan.jsonl", artifact("plan", 0).data),
    "a twin by case": file_is("unknown_name", "01-01.PLAN.jsonl", artifact("plan", 0).data),
    "a line too long": file_is(
        "line_too_long", CRITIQUE, GOOD.replace("Login", "x" * 5_000_000), GOOD
    ),
    "not UTF-8": file_is("not_utf8", CRITIQUE, GOOD.encode().replace(b"Login", b"\xff"), GOOD),
    "a credential": file_is("secret|looks like a credential", CRITIQUE, SECRET, GOOD),
    "empty": file_is("empty_file", CRITIQUE, "", GOOD),
    "conflict markers": file_is(
        "conflict_marker", CRITIQUE, f"<<<<<<< HEAD\n{GOOD}=======\n{GOOD}>>>>>>> x\n", GOOD
    ),
    "a link": special("not_regular", CRITIQUE, lambda place: place.symlink_to("01-01.plan.jsonl")),
    "a pipe": special("not_regular", CRITIQUE, os.mkfifo),
    "a folder": special("not_regular", CRITIQUE, lambda place: place.mkdir()),
    "a file of another user": foreign_owner,
    "a second name": hard_linked,
    "an older version": older_version,
    "records are lost": records_lost,
    "a plan that waits for another": plan_waits,
    "automatic commits off": no_auto_commit,
    "a planning tree in a package": nested_tree,
    "a plan outside the planning tree": misplaced_plan,
    "two phases of one number": shared_number,
    "the planning tree is gone": tree_gone,
    "the planning tree is a link": linked(PLANNING),
    "a phase is a link": linked(FOLDER),
    "torn configuration": changed(CONFIG, lambda _: b"{torn", "bad_config"),
    "a setting of a wrong type": changed(
        CONFIG, lambda _: b'{"yolo_fs": {"rescan_s": "x"}}', "bad_config", waits=False
    ),
    "torn configuration of the user": changed(
        "{home}/.config/yolo-fs/config.json", lambda _: b"{torn", "bad_config"
    ),
    "a daemon that was killed": daemon_dead,
    "a daemon that is halted": daemon_halted,
    "claims that are damaged": changed(
        "{own}/state.db", lambda _: b"garbage", "unreadable", waits=False
    ),
    "claims that another program has locked": locked,
    "claims that cannot be written": unwritable("yolo-fs/state.db", "storage_failed"),
    "a folder in the place of the daemon's report": report_is_folder,
    "a host whose hooks are off": settings(
        lambda text: json.dumps(json.loads(text) | {"disableAllHooks": True})
    ),
    "a host's torn settings": settings(lambda text: text[:40]),
    "a hook whose program is gone": settings(lambda text: text.replace("yolo-fs", "/gone/yolo-fs")),
    "git's hooks are elsewhere": git_config("core.hooksPath", "elsewhere", "hook_broken"),
    "the script behind git's hooks calls a program that is gone": changed(
        "{own}/git-hook",
        lambda data: data.replace(b"python", b"gone-python"),
        "hook_broken",
        waits=False,
    ),
}


@contextmanager
def observer_is_halted(ground: Ground) -> Iterator[str]:
    """Halt it; the daemon starts another one."""
    until(lambda: len(observers_of(ground.repo)) == 1, "the observer runs")
    os.kill(observers_of(ground.repo)[0], signal.SIGSTOP)
    yield ""


@contextmanager
def sparse(ground: Ground) -> Iterator[str]:
    ground.repo.insist("sparse-checkout", "set", "src")
    yield ""
    ground.repo.insist("sparse-checkout", "disable")


def flagged(flag: str) -> Trouble:
    @contextmanager
    def put(ground: Ground) -> Iterator[str]:
        ground.repo.insist("update-index", f"--{flag}", artifact("plan", 0).path)
        yield ""

    return put


@contextmanager
def signing_fails(ground: Ground) -> Iterator[str]:
    ground.repo.git("config", "commit.gpgsign", "true")
    ground.repo.git("config", "gpg.program", "false")
    yield ""


@contextmanager
def link_to_itself(ground: Ground) -> Iterator[str]:
    (ground.root / "loop").symlink_to("loop")
    yield ""


NO_TROUBLES: dict[str, Trouble] = {
    "a link that leads to itself": link_to_itself,
    "an observer that is halted": observer_is_halted,
    "commits are signed by a program that fails": signing_fails,
    "a hook of the user's that refuses": changed(
        "{git}/hooks/pre-commit", lambda data: data + b"\nexit 1\n", "", waits=False
    ),
    "a sparse checkout": sparse,
    "skip-worktree": flagged("skip-worktree"),
    "assume-unchanged": flagged("assume-unchanged"),
    "a damaged index of the history": changed(
        "{own}/index.db", lambda _: b"garbage", "", waits=False
    ),
    "a journal that is torn": changed(
        "{own}/events.jsonl", lambda data: data + b"{torn", "", waits=False
    ),
    "a young lock of another branch": changed(
        "{git}/refs/heads/other.lock", lambda _: b"", "", waits=False
    ),
    "line ends by attribute": changed(
        "{root}/.gitattributes", lambda _: b"* text=auto eol=lf\n", "", waits=False
    ),
    "a note of a commit that ended": changed(
        "{own}/committing", lambda _: b"1 -\n", "", age_s=90_000, waits=False
    ),
}
