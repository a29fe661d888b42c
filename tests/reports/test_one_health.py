"""What stands in the way is one list: whoever asks is told the same, with what to do, until it is mended."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.links import behind_link
from tests.support.teams import Team
from tests.web.served import Client, served
from yolo_fs import __version__
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.install.doctor import standing_troubles
from yolo_fs.mcp.tools import Tools
from yolo_fs.system import database
from yolo_fs.system.lock import hold
from yolo_fs.system.system import boot_id
from yolo_fs.workspace.own_files import lock_path

TREE = ".yolo-planning"
SETTINGS = ".claude/settings.json"
Trouble = Callable[[Team], Any]


def prepare(folder: Path, patch: pytest.MonkeyPatch) -> Team:
    """Return a repository where all is in order: hooks, a host's settings, the merge driver."""
    patch.setenv("HOME", str(folder))
    patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    made = Team(folder / "work")
    made.plan_one()
    for words in (["hooks", "install"], ["setup", "claude"], ["merge", "install"]):
        assert run([*words, "-C", str(made.root)]) == 0, words
    return made


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with pytest.MonkeyPatch.context() as patch:
        yield prepare(tmp_path_factory.mktemp("health"), patch)


@pytest.fixture
def team(prepared: Team) -> Team:
    return prepared


def linked(path: str) -> Trouble:
    """Return the trouble that a link is in the place of a folder."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        with behind_link(team.root / path, team.root.parent / "elsewhere"):
            yield "symbolic link, which is not followed"

    return put


def file_says(
    words: str, path: str, text: str | None, *, adds: bool = False, **how: Any
) -> Trouble:
    """Return the trouble that a file holds `text` (None: that it is gone), and what is said of it.

    `{git}` is the git directory, `{home}` the user's, else the work tree. `adds`: at the end.
    """

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        file = team.root / path.format(git=team.root / ".git", home=team.root.parent)
        before, mode = (file.read_bytes(), file.stat().st_mode) if file.exists() else (None, 0)
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_bytes((before or b"" if adds else b"") + text.encode())
        if "mode" in how:
            file.chmod(how["mode"])
        if "age_s" in how:
            os.utime(file, (time.time() - how["age_s"],) * 2)
        yield words
        if before is None:
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(before)
            file.chmod(mode)

    return put


def settings_say(words: str, change: Callable[[Any], Any]) -> Trouble:
    """Return the trouble that the settings of a host are changed."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        text = json.dumps(change(json.loads((team.root / SETTINGS).read_text())))
        with file_says(words, SETTINGS, text)(team):
            yield words

    return put


def the_configuration_says(**policy: object) -> Trouble:
    """Return the trouble that the repository's configuration has some values."""
    name = next(iter(policy))
    return file_says(
        f"yolo_fs.{name} has no effect",
        f"{TREE}/config.json",
        json.dumps({"yolo_fs": policy}) + "\n",
    )


def git_says(words: str, key: str, value: str) -> Trouble:
    """Return the trouble that git's configuration has a value."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        before = team.git("config", "--default", "", "--get", key)
        team.git("config", key, value)
        yield words
        if before:
            team.git("config", key, before)
        else:
            team.git("config", "--unset", key)

    return put


def the_daemon_says(words: str, awake_s_ago: float = 0.0, **facts: object) -> Trouble:
    """Return the trouble that a daemon tells of itself; this process holds its lock meanwhile."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        with Repository(str(team.root)) as repository:
            repository.make_own_dir()
            held = hold(lock_path(repository))
            assert held is not None
            report = {"pid": os.getpid(), "running": True, "last_scan_at": time.time()}
            report |= {"awake_s": time.monotonic() - awake_s_ago, "version": __version__}
            file = team.root / ".git/yolo-fs/health.json"
            try:
                file.write_text(json.dumps(report | facts))
                yield words
            finally:
                file.unlink()
                held.release()

    return put


@contextmanager
def standing_still(team: Team) -> Iterator[str]:
    """A daemon that is stopped as a debugger, a paused container or Ctrl-Z stops it."""
    command = [sys.executable, "-m", "yolo_fs", "{}", "-C", str(team.root)]
    subprocess.run([*command[:3], "start", "--wait", *command[4:]], check=True, capture_output=True)
    health = team.root / ".git/yolo-fs/health.json"
    report = json.loads(health.read_text())
    os.kill(report["pid"], signal.SIGSTOP)
    try:
        health.write_text(json.dumps(report | {"awake_s": report["awake_s"] - 3600}))
        yield "has not scanned"
        health.write_text(json.dumps(report))
    finally:
        os.kill(report["pid"], signal.SIGCONT)
    subprocess.run([*command[:3], "stop", *command[4:]], check=True, capture_output=True)


def rules(text: str) -> str:
    """Return a file of rules that lies in no repository."""
    handle, path = tempfile.mkstemp()
    with open(handle, "w") as file:
        file.write(text)
    return path


def a_hook_becomes(words: str, change: Callable[[str], str]) -> Trouble:
    """Return the trouble that the hook of commit messages is changed."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        hook = team.root / ".git/hooks/commit-msg"
        with file_says(words, "{git}/hooks/commit-msg", change(hook.read_text()))(team):
            yield words

    return put


@contextmanager
def a_dead_link(team: Team) -> Iterator[str]:
    hook = team.root / ".git/hooks/commit-msg"
    content = hook.read_bytes()
    hook.unlink()
    hook.symlink_to("/gone/hooks/commit-msg")
    yield "commit-msg does not run"
    hook.unlink()
    hook.write_bytes(content)
    hook.chmod(0o755)


@contextmanager
def a_pipe(team: Team) -> Iterator[str]:
    pipe = team.root / TREE / ".gitignore"
    os.mkfifo(pipe)
    yield "not_regular"
    pipe.unlink()


@contextmanager
def a_submodule_elsewhere(team: Team) -> Iterator[str]:
    """The branch has a submodule in the place of the tree, as a clone has it that asks for none."""
    before = team.git("rev-parse", "HEAD")
    team.git("rm", "-rq", "--cached", TREE)
    team.git("update-index", "--add", "--cacheinfo", f"160000,{before},{TREE}")
    team.git("commit", "-qm", "chore(repo): plans are elsewhere", "--no-verify")
    (team.root / ".gitmodules").touch()
    yield "It is a submodule"
    (team.root / ".gitmodules").unlink()
    team.git("reset", "-q", before)


def together(*troubles: Trouble) -> Trouble:
    """Return several troubles as one."""

    @contextmanager
    def put(team: Team) -> Iterator[str]:
        with ExitStack() as stack:
            for trouble in troubles:
                stack.enter_context(trouble(team))
            yield ""

    return put


HOOK = "{git}/hooks"
TURNED_OFF = '{"disableAllHooks": true}'
DEGRADED = {"reason": "watch_limit", "detail": "fs.inotify is used up", "hint": "Raise it."}
FAILING = [{"duty": "team", "reason": "remote_away", "what": "the remote hangs up"}]
TROUBLES: dict[str, Trouble] = {
    "a link": linked(TREE),
    "a link to all phases": linked(f"{TREE}/phases"),
    "a link to a phase": linked(f"{TREE}/phases/01-auth"),
    "excluded here": file_says("gitignored", "{git}/info/exclude", f"\n/{TREE}/\n", adds=True),
    "ignored by the repository": file_says("gitignored", ".gitignore", f"{TREE}\n"),
    "ignored by kind": file_says("gitignored", ".gitignore", "*.jsonl\n"),
    "ignored by the user": file_says("gitignored", "{home}/config/git/ignore", f"{TREE}/\n"),
    "LFS": file_says("attr_filter", ".gitattributes", f"{TREE}/** filter=lfs\n", adds=True),
    "another encoding": file_says(
        "attr_filter", ".gitattributes", "*.jsonl working-tree-encoding=UTF-16\n", adds=True
    ),
    "keywords": file_says("attr_filter", "{git}/info/attributes", "*.jsonl ident\n"),
    "no merge driver": git_says(
        "another program", "merge.yolo-jsonl.driver", "/gone/python3 -m yolo_fs merge-driver"
    ),
    "another driver": file_says(
        "git uses the driver", ".gitattributes", f"{TREE}/**/*.jsonl merge=union\n", adds=True
    ),
    "no hook of commit messages": file_says("not installed", f"{HOOK}/commit-msg", None),
    "no hook before a push": file_says("not installed", f"{HOOK}/pre-push", None),
    "no hook before a commit": file_says("not installed", f"{HOOK}/pre-commit", None),
    "a hook that may not run": file_says(
        "not executable", f"{HOOK}/commit-msg", "", adds=True, mode=0o644
    ),
    "a hook written anew": file_says(
        "hook manager", f"{HOOK}/commit-msg", "#!/bin/sh\nexit 0\n", mode=0o755
    ),
    "an empty hook": file_says("hook manager", f"{HOOK}/pre-commit", "", mode=0o755),
    "no script behind the hooks": file_says("every section calls", "{git}/yolo-fs/git-hook", None),
    "another script behind them": file_says(
        "another version", "{git}/yolo-fs/git-hook", "#!/bin/sh\n", mode=0o755
    ),
    "hooks elsewhere": git_says("not installed", "core.hooksPath", "elsewhere"),
    "hooks of husky": git_says("husky", "core.hooksPath", ".husky/_"),
    "hooks off": git_says("leads out of", "core.hooksPath", "/dev/null"),
    "a host's hooks off for the team": settings_say(
        "disableAllHooks", lambda settings: {**settings, "disableAllHooks": True}
    ),
    "off for one's own": file_says("disableAllHooks", ".claude/settings.local.json", TURNED_OFF),
    "off for the user": file_says("disableAllHooks", "{home}/.claude/settings.json", TURNED_OFF),
    "a host with half of our hooks": settings_say(
        "no hook of ours",
        lambda settings: {**settings, "hooks": dict([*settings["hooks"].items()][1:])},
    ),
    "torn settings of a host": file_says("claude", SETTINGS, "{torn"),
    "an old lock of the index": file_says("index_locked", "{git}/index.lock", "", age_s=4000),
    "an old lock of HEAD": file_says("ref_locked", "{git}/HEAD.lock", "", age_s=4000),
    "an old lock of packed refs": file_says(
        "packed-refs.lock", "{git}/packed-refs.lock", "", age_s=4000
    ),
    "an old lock of the branch": file_says(
        "ref_locked", "{git}/refs/heads/main.lock", "", age_s=4000
    ),
    "damaged claims": file_says("state.db", "{git}/yolo-fs/state.db", "garbage"),
    "a damaged record of a host": file_says(
        "setup-claude", "{git}/yolo-fs/setup-claude.json", "[]"
    ),
    "a damaged record of the team": file_says("team.json", "{git}/yolo-fs/team.json", "{torn"),
    "a sink that does not exist": file_says(
        "sinks.webhook", "{home}/config/yolo-fs/config.json", '{"sinks": {"webhook": "x"}}'
    ),
    "a setting that only the user may make": the_configuration_says(product_handoffs=True),
    "a limit that only the user may raise": the_configuration_says(max_depth=1_000),
    "few watches": the_daemon_says("used up", degraded=DEGRADED),
    "a duty that fails": the_daemon_says("hangs up", troubles=FAILING),
    "a daemon of another version": the_daemon_says("other_version", version="0.9.0"),
    "a daemon that tells no version": the_daemon_says("other_version", version=None),
    "a daemon that stands still": the_daemon_says(
        "has not scanned", awake_s_ago=3600, boot=boot_id()
    ),
    "one of another boot that does": the_daemon_says("has not scanned", last_scan_at=1.0),
    "a stopped daemon": standing_still,
    "ignored from below": file_says("gitignored", f"{TREE}/.gitignore", "*\n"),
    "ignored by a file of the user's": git_says(
        "gitignored", "core.excludesFile", rules(f"{TREE}/\n")
    ),
    "filtered by a file of the user's": git_says(
        "attr_filter", "core.attributesFile", rules("* filter=crypt\n")
    ),
    "filtered from below": file_says("attr_filter", f"{TREE}/.gitattributes", "* filter=crypt\n"),
    "a submodule that is not checked out": a_submodule_elsewhere,
    "a repository of its own": file_says("Move its .git away", f"{TREE}/.git", ""),
    "a pipe in the place of rules": a_pipe,
    "another driver nearer to it": file_says(
        "git uses the driver", f"{TREE}/.gitattributes", "*.jsonl merge=union\n"
    ),
    "a hook with something above ours": a_hook_becomes(
        "above our section", lambda text: text.replace("\n", "\nexit 0\n", 1)
    ),
    "a hook whose end is gone": a_hook_becomes(
        "has lost its end", lambda text: text[: len(text) * 3 // 4]
    ),
    "a hook with Windows line ends": a_hook_becomes(
        "commit-msg does not run", lambda text: text.replace("\n", "\r\n")
    ),
    "a hook that is a dead link": a_dead_link,
}
NO_TROUBLES: dict[str, Trouble] = {
    "an ignored tree of somebody who allows it": together(
        file_says("", ".gitignore", f"{TREE}/\n"),
        file_says("", "{home}/config/yolo-fs/config.json", '{"policy": {"commit_ignored": true}}'),
    ),
    "a setting that its user made as well": together(
        the_configuration_says(product_handoffs=True),
        file_says(
            "", "{home}/config/yolo-fs/config.json", '{"policy": {"product_handoffs": true}}'
        ),
    ),
    "an ignore rule of ours": file_says("", "{git}/info/exclude", "*.local.json\n", adds=True),
    "line ends by attribute": file_says("", ".gitattributes", "* text=auto eol=lf\n", adds=True),
    "a hook beside ours that nobody calls": file_says("", f"{HOOK}/pre-commit.sample", "exit 1\n"),
    "a section of ours below the user's": a_hook_becomes("", lambda text: text + "echo mine\n"),
    "hooks switched off elsewhere": file_says("", ".claude/other.json", TURNED_OFF),
    "a lock of another branch": file_says("", "{git}/refs/heads/other.lock", "", age_s=4000),
    "an unfinished temporary file": file_says("", "{git}/objects/pack/tmp_pack_x", "", age_s=4000),
    "a daemon of a machine that slept": the_daemon_says("", boot=boot_id(), last_scan_at=1.0),
    "a daemon that waits for a tree that is there": the_daemon_says(
        "", degraded={"reason": "not_initialised", "detail": "it is not there", "hint": ""}
    ),
    "a young lock": file_says("", "{git}/HEAD.lock", "", age_s=1),
    "an attribute elsewhere": file_says("", ".gitattributes", "*.png filter=lfs\n", adds=True),
    "an ignored folder elsewhere": file_says("", ".gitignore", "build/\n"),
    "a hook of the user's beside ours": file_says("", f"{HOOK}/post-rewrite.local", "#!/bin/sh\n"),
    "other settings of a host": file_says("", ".claude/settings.local.json", '{"model": "x"}'),
}


@pytest.fixture(scope="module")
def board(prepared: Team) -> Iterator[Client]:
    with served(prepared.root) as client:
        yield client


def surfaces(team: Team, board: Client, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what each place says, as one text."""

    def said(*words: str) -> str:
        capsys.readouterr()
        run([*words, "-C", str(team.root)])
        return capsys.readouterr().out

    return {
        "inbox": str(json.loads(said("inbox", "--json"))["data"]),
        "status": str(json.loads(said("status", "--json"))["findings"]),
        "doctor": str(json.loads(said("doctor", "--json"))["findings"]),
        "resume": said("resume", "--no-write"),
        "a session's start": said("resume", "--no-write", "--format", "claude-hook"),
        "MCP": Tools(str(team.root)).team_status().text,
        "board": str(board.api("board").data["health"]),
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_what_stands_in_the_way_is_told_everywhere_and_goes_when_it_is_mended(
    team: Team, board: Client, capsys: pytest.CaptureFixture[str], trouble: Trouble
) -> None:
    with trouble(team) as words:
        told = surfaces(team, board, capsys)
    with Repository(str(team.root)) as repository:
        assert [*standing_troubles(repository)] == []
    assert {place: words in text for place, text in told.items()} == dict.fromkeys(told, True), told


@pytest.mark.sampled(6)
@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_each_finding_names_the_command_that_the_inbox_shows_and_one_of_ours_mends_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trouble: Trouble,
) -> None:
    team = prepare(tmp_path, monkeypatch)
    with trouble(team):
        capsys.readouterr()
        run(["status", "--json", "-C", str(team.root)])
        data = json.loads(capsys.readouterr().out)["data"]
        commands = {one["command"] for one in data["health"]}
        assert commands and "" not in commands, data["health"]
        items = {one["command"] for one in data["inbox"] if one["kind"] == "health"}
        assert items == commands
        for command in sorted(commands):
            words = shlex.split(command)
            if words[0] != "yolo-fs" or words[1] in (
                "restart",
                "events",
                "config",
            ):  # it shows the cause
                continue
            assert run([*words[1:], "-C", str(team.root)]) == 0, command
            with Repository(str(team.root)) as repository:
                assert command not in {one.command for one in standing_troubles(repository)}


@pytest.mark.parametrize("trouble", NO_TROUBLES.values(), ids=NO_TROUBLES)
def test_what_stands_in_nobodys_way_is_not_told(team: Team, trouble: Trouble) -> None:
    with Repository(str(team.root)) as repository, trouble(team):
        assert [*standing_troubles(repository)] == []


def test_the_commit_of_a_probe_leaves_no_log_no_ref_and_one_pack(team: Team) -> None:
    logs, packs = team.root / ".git/logs", team.root / ".git/objects/pack"
    before = sorted(logs.rglob("*")), team.git("for-each-ref")
    run(["doctor", "-C", str(team.root)])
    once = sorted(packs.iterdir())
    run(["doctor", "-C", str(team.root)])
    assert (sorted(logs.rglob("*")), team.git("for-each-ref")) == before
    assert sorted(packs.iterdir()) == once


def test_where_no_commit_can_be_made_doctor_says_so_without_an_artifact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "work")
    team.config({})
    team.user_commits("chore: begin", ".yolo-planning/config.json")
    shutil.rmtree(team.root / ".git/objects/pack")
    (team.root / ".git/objects/pack").write_text("no folder\n")
    assert run(["doctor", "--json", "-C", str(team.root)]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert "storage_failed" in [one["reason"] for one in found if one["level"] == "error"]


def test_doctor_names_the_repository_that_a_clone_borrows_from_when_it_is_gone(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest commits are the clone's own, and commits go on: nobody else would say so."""
    clone = tmp_path / "clone"
    team.git("clone", "-q", "--shared", str(team.root), str(clone))
    named = clone / ".git/objects/info/alternates"
    named.write_text(f"# the big one\n{named.read_text()}")
    run(["doctor", "-C", str(clone)])
    assert "borrows" not in capsys.readouterr().err
    named.write_text(f"{tmp_path}/gone/objects\n")
    assert run(["doctor", "-C", str(clone)]) == 1
    assert f"object_missing: it borrows objects from {tmp_path}/gone" in capsys.readouterr().err


def test_doctor_names_an_old_commit_that_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "work")
    team.plan_one()
    team.git("commit", "-q", "--allow-empty", "-m", "chore(repo): old")
    old = team.git("rev-parse", "HEAD").strip()
    team.git("commit", "-q", "--allow-empty", "-m", "chore(repo): new")
    (team.root / ".git/objects" / old[:2] / old[2:]).unlink()
    assert run(["doctor", "-C", str(team.root)]) == 1
    assert f"object_missing: commit {old} cannot be read" in capsys.readouterr().err


def test_a_daemon_does_not_begin_below_a_link(team: Team) -> None:
    with linked(TREE)(team):
        asked = [sys.executable, "-m", "yolo_fs", "start", "--wait", "-C", str(team.root)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "not_regular" in done.stderr


def test_what_is_only_busy_is_not_put_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    team = prepare(tmp_path, monkeypatch)
    assert run(["task", "claim", "01-01/T1", "--as", "dev-1", "-C", str(team.root)]) == 0
    monkeypatch.setattr(database, "_LONG_PATIENCE_S", 0.05)
    file = team.root / ".git/yolo-fs/state.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        capsys.readouterr()
        run(["doctor", "--fix", "--json", "-C", str(team.root)])
    answer = json.loads(capsys.readouterr().out)
    assert answer["data"]["mended"] == []
    assert "lock_timeout" in {one["reason"] for one in answer["findings"]}
    run(["task", "claims", "-C", str(team.root)])
    assert "dev-1" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_lies_on_a_read_only_mount_is_read_and_called_damaged_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = prepare(tmp_path, monkeypatch)
    assert run(["task", "claim", "01-01/T1", "--as", "dev-1", "-C", str(team.root)]) == 0
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" || exit 77; "$@"'
    program = [sys.executable, "-m", "yolo_fs"]
    for verb, words in (("task claims", "dev-1"), ("inbox", "cannot be written to")):
        command = ["unshare", "--mount", "sh", "-c", script, str(team.root), *program]
        done = subprocess.run(
            [*command, *verb.split()], capture_output=True, text=True, check=False
        )
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip("no mounts here")
        assert words in done.stdout
        assert "puts it aside" not in done.stdout + done.stderr
