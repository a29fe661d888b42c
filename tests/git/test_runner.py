"""Git is run hardened: nothing that a repository or an environment names takes part.

Each canary first fires under plain git, so that its silence under ours means something. See
docs/dev/faults.md#f02, #f03, #f31, #f34, #f48 and #f57.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import re
import resource
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import git
import pytest

from tests.git.conftest import PHASE, PINNED, PLAN, REF_LOCK, Engine, Engines, Make, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import conversation
from yolo_fs.git.commit import CommitRequest
from yolo_fs.git.environment import ENVIRONMENT, forget_inherited_environment
from yolo_fs.git.failures import GitOutput, failure
from yolo_fs.git.history import abandoned, log, moves_of
from yolo_fs.git.runner import Git

LINE = b'{"p":"01"}\n'


def use_everything(one: Engine) -> None:
    """Do all that the engine ever does."""
    assert one.obstacle() in (None, Reason.INDEX_LOCKED)
    for path in (PLAN, "a.jsonl"):
        with contextlib.suppress(YoloError):
            one.rules.reason_to_hold(path, in_head=False)
    one.put_and_follow(PLAN, LINE)
    one.commit(
        *(CommitRequest(f"{PHASE}/{number}.jsonl", LINE, "docs(01): plan") for number in range(8))
    )
    one.put(PLAN, LINE * 2)
    assert one.follower.follow()
    head = one.repository.head()
    list(log(one.repository, "HEAD"))
    abandoned(one.repository, head.tip, moves_of(one.repository, head.ref))
    one.repository.identity()
    one.repository.refuse_unsafe()
    one.repository.commits_exist([head.tip[:8], "f" * 40])
    one.obstacle()


# --- canaries in the repository ---

HOOKS = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "reference-transaction",
    "post-index-change",
)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """Where each canary that fires leaves a file with its name."""
    place = tmp_path / "birds"
    place.mkdir()
    return place


def canary(birds: Path, name: str, then: str = "exit 0") -> str:
    """Return the path of a script that shows that it ran."""
    script = birds.parent / "canaries" / name
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\ntouch "{birds}/{name}"\n{then}\n')
    script.chmod(0o755)
    return str(script)


def plant_hooks(user: User, birds: Path) -> None:
    for name in HOOKS:
        (user.root / ".git/hooks").mkdir(exist_ok=True)
        (user.root / ".git/hooks" / name).symlink_to(canary(birds, name))


def plant_hooks_elsewhere(user: User, birds: Path) -> None:
    canary(birds, "post-index-change")
    user.git("config", "core.hooksPath", str(birds.parent / "canaries"))


def plant_filter(user: User, birds: Path) -> None:
    script = canary(birds, "filter", "cat")
    for kind in ("clean", "smudge"):
        user.git("config", f"filter.bird.{kind}", script)
    user.write(".gitattributes", "*.jsonl filter=bird\n")


def plant_process_filter(user: User, birds: Path) -> None:
    user.git("config", "filter.bird.process", canary(birds, "process", "exit 1"))
    user.write(".gitattributes", "*.jsonl filter=bird\n")


def plant_signed_commit(user: User, birds: Path) -> None:
    user.git("config", "gpg.program", canary(birds, "gpg", "exit 1"))
    user.git("config", "log.showSignature", "true")
    raw = user.git("cat-file", "commit", "HEAD").replace(
        b"\n\n",
        b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n",
        1,
    )
    user.git(
        "update-ref", "HEAD", user.text("hash-object", "-w", "-t", "commit", "--stdin", given=raw)
    )


def plant_signing(user: User, birds: Path) -> None:
    user.git("config", "commit.gpgSign", "true")
    user.git("config", "gpg.program", canary(birds, "gpg", "exit 1"))


def plant_aliases(user: User, birds: Path) -> None:
    for name in (
        "bird",
        "log",
        "cat-file",
        "update-ref",
        "update-index",
        "rev-parse",
        "check-attr",
    ):
        user.git("config", f"alias.{name}", f"!{canary(birds, 'alias')}")


def plant_lazy_fetch(user: User, birds: Path) -> None:
    """A promisor remote whose address is a command; the subtree that a commit needs is only promised."""
    user.commit_file(f"{PHASE}/old", "x\n")
    tree = user.tip(f"HEAD:{PHASE}")
    (user.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "bird",
        "remote.bird.promisor": "true",
        "remote.bird.url": f"ext::{canary(birds, 'lazy')}",
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
    }.items():
        user.git("config", name, value)


def setting(name: str, bird: str, then: str = "exit 0") -> Callable[[User, Path], object]:
    return lambda user, birds: user.git("config", name, canary(birds, bird, then))


def plant_diff(user: User, birds: Path) -> None:
    user.git("config", "diff.external", canary(birds, "external-diff"))
    user.git("config", "diff.bird.textconv", canary(birds, "textconv", "cat"))
    user.write(".git/info/attributes", "* diff=bird\n")


def on_terminal(user: User, *arguments: str) -> None:
    """Run git with a terminal as its output: only then does it start a pager."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, **PINNED, "TERM": "vt100"}
    subprocess.run(
        ["git", *arguments],
        cwd=user.root,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.close(ours)


def plain(*arguments: str, given: bytes = b"") -> Callable[[User], None]:
    def run(user: User) -> None:
        user.write("bird.jsonl", "x\n")
        user.git("add", "--intent-to-add", "bird.jsonl")
        user.git(*arguments, given=given, ok=range(256))

    return run


COMMIT = plain("commit", "--allow-empty", "-m", "x", "--", "bird.jsonl")

CANARIES: dict[
    str, tuple[Callable[[User, Path], object], Callable[[User], None], tuple[str, ...]]
] = {
    "hooks": (plant_hooks, COMMIT, HOOKS),
    "hooks elsewhere": (plant_hooks_elsewhere, COMMIT, ("post-index-change",)),
    "filter": (plant_filter, plain("add", "bird.jsonl"), ("filter",)),
    "process filter": (plant_process_filter, plain("add", "bird.jsonl"), ("process",)),
    "fsmonitor": (
        setting("core.fsmonitor", "fsmonitor", "exit 1"),
        plain("status"),
        ("fsmonitor",),
    ),
    "alias": (plant_aliases, plain("bird"), ("alias",)),
    "pager": (
        setting("core.pager", "pager", "cat >/dev/null"),
        lambda user: on_terminal(user, "log"),
        ("pager",),
    ),
    "signature": (plant_signed_commit, plain("log"), ("gpg",)),
    "signing": (plant_signing, COMMIT, ("gpg",)),
    "editor": (
        setting("core.editor", "editor", "exit 1"),
        plain("commit", "--allow-empty"),
        ("editor",),
    ),
    "ssh": (
        setting("core.sshCommand", "ssh", "exit 1"),
        plain("fetch", "ssh://none.invalid/x"),
        ("ssh",),
    ),
    "credential": (
        setting("credential.helper", "credential"),
        plain("credential", "fill", given=b"protocol=https\nhost=none.invalid\n\n"),
        ("credential",),
    ),
    "diff": (plant_diff, plain("diff"), ("external-diff",)),
    "trailer": (
        setting("trailer.bird.command", "trailer"),
        plain("interpret-trailers", "--trailer", "bird=x"),
        ("trailer",),
    ),
}


@pytest.mark.parametrize("kind", CANARIES)
def test_a_canary_fires_under_plain_git(user: User, birds: Path, kind: str) -> None:
    plant, provoke, names = CANARIES[kind]
    plant(user, birds)
    provoke(user)
    assert {path.name for path in birds.iterdir()} >= set(names)


@pytest.mark.parametrize("kind", CANARIES)
def test_no_canary_of_the_repository_fires_under_ours(
    user: User, engine: Engines, birds: Path, kind: str
) -> None:
    CANARIES[kind][0](user, birds)
    for bird in birds.iterdir():
        bird.unlink()
    use_everything(engine(user))
    assert list(birds.iterdir()) == []


def make_racy(user: User) -> None:
    """Let a tracked file be younger than the index, so that its size and time prove nothing."""
    user.commit_file("racy.jsonl", "x\n")
    os.utime(user.root / "racy.jsonl", (4_000_000_000, 4_000_000_000))
    user.git("update-index", "--refresh", "-q")


@pytest.mark.parametrize("kind", ["filter", "process filter"])
def test_a_filter_does_not_run_for_a_file_that_changed_as_the_index_did(
    user: User, engine: Engines, birds: Path, kind: str
) -> None:
    """Whenever git writes the index it compares the content of such a file, through its filter."""
    make_racy(user)
    CANARIES[kind][0](user, birds)
    engine(user).put_and_follow(PLAN, LINE)
    assert list(birds.iterdir()) == []


@pytest.mark.parametrize("name", ["a=b", "a.b", 'a"b', "ü", "core.x=1"])
def test_a_filter_of_any_name_does_not_run(
    user: User, engine: Engines, birds: Path, name: str
) -> None:
    make_racy(user)
    user.git("config", "filter.bird.clean", canary(birds, "filter", "cat"))
    user.git("config", "--rename-section", "filter.bird", f"filter.{name}")
    user.write(".git/info/attributes", f"*.jsonl filter={name}\n")
    engine(user).put_and_follow(PLAN, LINE)
    assert list(birds.iterdir()) == []


@pytest.mark.parametrize("kind", ["filter", "process filter"])
def test_that_filter_would_run_when_plain_git_writes_the_index(
    user: User, birds: Path, kind: str
) -> None:
    make_racy(user)
    CANARIES[kind][0](user, birds)
    blob = user.tip("HEAD:README.md")
    user.git("update-index", "--add", "--cacheinfo", f"100644,{blob},new", ok=range(256))
    assert list(birds.iterdir()) != []


def test_no_missing_object_is_fetched_by_a_command_that_the_repository_names(
    user: User, engine: Engines, birds: Path
) -> None:
    plant_lazy_fetch(user, birds)
    with pytest.raises(YoloError):
        engine(user).put(PLAN, LINE)
    assert list(birds.iterdir()) == []
    user.git("cat-file", "-p", f"HEAD:{PHASE}", ok=(128,), GIT_ALLOW_PROTOCOL="ext")
    assert [path.name for path in birds.iterdir()] == ["lazy"]


def test_a_git_that_knows_no_lazy_fetch_setting_still_runs_no_command_of_the_repository(
    user: User, engine: Engines, birds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`GIT_NO_LAZY_FETCH` is younger than git 2.34, and a named protocol's setting beats `protocol.allow`."""
    monkeypatch.delitem(ENVIRONMENT, "GIT_NO_LAZY_FETCH")
    plant_lazy_fetch(user, birds)
    with pytest.raises(YoloError):
        engine(user).put(PLAN, LINE)
    assert list(birds.iterdir()) == []


# --- an environment that names another repository ---


def fingerprint(user: User) -> dict[str, str]:
    files = (path for path in user.root.rglob("*") if path.is_file())
    return {str(path): hashlib.sha1(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def decoy(make: Make) -> User:
    decoy = make("decoy")
    decoy.add("staged", "x\n")
    return decoy


def poison(decoy: User, bird: str) -> dict[str, str]:
    git = decoy.root / ".git"
    return {
        "GIT_DIR": str(git),
        "GIT_COMMON_DIR": str(git),
        "GIT_WORK_TREE": str(decoy.root),
        "GIT_INDEX_FILE": str(git / "index"),
        "GIT_OBJECT_DIRECTORY": str(git / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git / "objects"),
        "GIT_NAMESPACE": "decoy",
        "GIT_PREFIX": "decoy/",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_CONFIG": str(git / "config"),
        "GIT_CONFIG_GLOBAL": str(git / "config"),
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": os.path.dirname(bird),
        "GIT_CONFIG_KEY_1": "core.fsmonitor",
        "GIT_CONFIG_VALUE_1": bird,
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{bird}'",
        "GIT_EXEC_PATH": os.path.dirname(bird),
        "GIT_EDITOR": bird,
        "GIT_PAGER": bird,
        "GIT_EXTERNAL_DIFF": bird,
        "GIT_SSH_COMMAND": bird,
        "GIT_ASKPASS": bird,
        "GIT_TRACE": "1",
        "GIT_TRACE2_EVENT": str(decoy.root / "trace"),
        "GIT_AUTHOR_DATE": "yesterday",
        "GIT_COMMITTER_NAME": "Decoy",
        "GIT_QUARANTINE_PATH": str(git / "objects"),
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_DEFAULT_HASH": "sha256",
    }


@pytest.mark.parametrize("moment", ["before", "between"])
def test_an_environment_that_names_another_repository_reaches_neither(
    user: User,
    decoy: User,
    engine: Engines,
    birds: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    before, poisoned = fingerprint(decoy), poison(decoy, canary(birds, "reference-transaction"))
    one = engine(user) if moment == "between" else None
    for name, value in poisoned.items():
        monkeypatch.setenv(name, value)
    one = one or engine(user)
    if moment == "between":
        forget_inherited_environment()
    use_everything(one)
    assert fingerprint(decoy) == before and list(birds.iterdir()) == []
    for name in poisoned:
        monkeypatch.delenv(name, raising=False)
    assert user.show(PLAN) == LINE * 2
    assert user.text("log", "-1", "--format=%cn") == "Engine"


def test_the_decoy_would_be_hit_without_forgetting(user: User, decoy: User) -> None:
    before = fingerprint(decoy)
    user.git(
        "commit",
        "--quiet",
        "-m",
        "x",
        **{name: value for name, value in poison(decoy, "true").items() if "DIR" in name},
    )
    assert fingerprint(decoy) != before


def test_what_was_inherited_is_returned_and_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_DEFAULT_REF_FORMAT", raising=False)
    monkeypatch.setenv("GIT_DIR", "/decoy")
    monkeypatch.setenv("GITHUB_TOKEN_IS_NOT_OURS", "kept")
    assert forget_inherited_environment() == {"GIT_DIR": "/decoy"}
    assert "GIT_DIR" not in os.environ and "GITHUB_TOKEN_IS_NOT_OURS" in os.environ


def test_a_foreign_language_does_not_change_what_is_understood(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "LC_ALL", "LANGUAGE", "LC_MESSAGES"):
        monkeypatch.setenv(name, "de_DE.UTF-8")
    (user.root / ".git" / REF_LOCK).touch()
    with pytest.raises(YoloError) as raised:
        engine(user).put(PLAN, LINE)
    assert raised.value.reason is Reason.REF_LOCKED


# --- running ---


def test_a_failed_command_says_what_git_said(user: User) -> None:
    with pytest.raises(YoloError, match=r"git cat-file: .*Not a valid object name") as raised:
        Git(str(user.root)).run("cat-file", "-t", "nothing")
    assert raised.value.reason is Reason.GIT_FAILED


def test_an_expected_exit_code_is_an_answer(user: User) -> None:
    assert Git(str(user.root)).run("config", "--get", "no.such", ok=(0, 1)).code == 1


@pytest.mark.parametrize("words", ["No space left on device", "Disk quota exceeded"])
@pytest.mark.parametrize("before", ["", "x" * 500])
def test_a_full_disk_is_told_apart(words: str, before: str) -> None:
    error = failure("index-pack", GitOutput(128, b"", f"fatal: {before} write error: {words}\n"))
    assert error.reason is Reason.NO_SPACE and error.exit_code == 75


def test_what_git_says_is_made_safe_for_a_terminal() -> None:
    assert "\x1b" not in failure("x", GitOutput(1, b"", "\x1b[31mred\nnext")).message


@pytest.mark.timeout(15)
def test_a_command_that_takes_too_long_is_ended(user: User) -> None:
    fifo = user.root / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(YoloError) as raised:
        Git(str(user.root)).run("hash-object", "--no-filters", str(fifo), timeout_s=0.2)
    assert raised.value.reason is Reason.GIT_TIMEOUT


def functions_of(thread: threading.Thread) -> Iterator[str]:
    """Yield where a thread is, innermost first."""
    assert thread.ident is not None
    frame = sys._current_frames().get(thread.ident)
    while frame:
        yield frame.f_code.co_name
        frame = frame.f_back


def test_whoever_is_interrupted_leaves_no_git_at_a_remote_that_never_answers(user: User) -> None:
    """Its session is its own: a terminal's Ctrl-C does not reach it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reached: list[socket.socket] = []

        def interrupt_once_reached() -> None:
            reached.append(server.accept()[0])
            while "communicate" not in functions_of(threading.main_thread()):
                time.sleep(0.01)  # git is reached before its parent begins to wait for it
            os.kill(os.getpid(), signal.SIGINT)

        waiter = threading.Thread(target=interrupt_once_reached)
        waiter.start()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                address = f"git://127.0.0.1:{server.getsockname()[1]}/x"
                Git(str(user.root)).run("ls-remote", address, networked=True)
        finally:
            signal.signal(signal.SIGINT, before)
        waiter.join()
        (connection,) = reached
        with connection:
            connection.settimeout(30)
            while connection.recv(4096):  # what git asked, and then its end
                pass


def test_a_helper_that_falls_silent_is_given_up(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = engine(user).repository.objects
    assert objects.read("HEAD") is not None
    monkeypatch.setattr(conversation, "TIMEOUT_S", 0.2)
    os.kill(objects._reader.pid, signal.SIGSTOP)
    found = objects.read("HEAD")
    assert found is not None and found.oid == user.tip()


def test_children_have_a_session_of_their_own_and_only_the_descriptors_they_may_have(
    user: User, tmp_path: Path
) -> None:
    kept, other = os.open(tmp_path, os.O_RDONLY), os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(other, True)
    reader = Git(str(user.root), keep_open=(kept,)).converse("cat-file", "--batch")
    reader.ask(b"HEAD\n")
    reader.line()
    open_there = set(os.listdir(f"/proc/{reader.pid}/fd"))
    assert os.getsid(reader.pid) == reader.pid != os.getsid(0)
    assert str(kept) in open_there and str(other) not in open_there
    reader.close()
    for descriptor in (kept, other):
        os.close(descriptor)


def test_a_closed_helper_is_gone(user: User) -> None:
    reader = Git(str(user.root)).converse("cat-file", "--batch")
    reader.close()
    assert not os.path.exists(f"/proc/{reader.pid}")
    reader.close()


def test_a_stopped_helper_is_gone_after_closing_too(user: User) -> None:
    reader = Git(str(user.root)).converse("cat-file", "--batch")
    os.kill(reader.pid, signal.SIGSTOP)
    reader.close()
    left = os.path.exists(f"/proc/{reader.pid}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(reader.pid, signal.SIGKILL)
    reader._process.wait()
    assert not left


def test_a_conversation_reads_exactly_what_is_asked_for(user: User) -> None:
    reader = Git(str(user.root)).converse("cat-file", "--batch")
    reader.ask(b"HEAD:README.md\nnothing\nHEAD:README.md\n")
    size = int(reader.line().split()[2])
    assert (reader.exactly(size), reader.line()) == (b"hello\n", b"")
    assert reader.line() == b"nothing missing"
    assert reader.until(b" ") == user.tip("HEAD:README.md").encode()
    reader.close()


def test_a_helper_answers_a_process_that_has_more_than_a_thousand_files_open(user: User) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most[1] < 2_000:
        pytest.skip("the system allows fewer")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2_000, most[1]))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        helper = Git(str(user.root)).converse("cat-file", "--batch-check")
        helper.ask(b"HEAD\n")
        assert helper.line().startswith(user.tip().encode())
        helper.close()
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, most)


def test_a_dead_helper_says_why(user: User) -> None:
    helper = Git(str(user.root)).converse("update-ref", "--stdin")
    helper.ask(b"nonsense\n")
    with pytest.raises(YoloError, match="unknown command: nonsense"):
        helper.line()


def test_without_git_it_is_said(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git.Git, "GIT_PYTHON_GIT_EXECUTABLE", "/no/such/git")
    with pytest.raises(YoloError) as raised:
        Git(str(user.root)).run("version")
    assert raised.value.reason is Reason.GIT_MISSING


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "doctor",
        "hooks install",
        "init",
        "uninstall",
        "inbox",
        "demo",
        "resume",
        "start",
        "restart",
    ],
)
def test_where_no_folder_of_the_path_has_git_it_is_no_defect_of_ours(
    user: User, tmp_path: Path, words: str
) -> None:
    (user.root / ".yolo-planning/phases").mkdir(parents=True)
    asked = subprocess.run(
        [sys.executable, "-m", "yolo_fs", *words.split()],
        cwd=user.root,
        env={**os.environ, "PATH": str(tmp_path / "empty")},
        capture_output=True,
        text=True,
        check=False,
    )
    told = asked.stdout + asked.stderr
    assert "git_missing" in told and "Install git" in told and "defect" not in told
    assert "starts" not in told, "a daemon without git ends at once"
    assert "branch:" not in told, "nobody knows where the team stands"


def test_a_torn_configuration_of_the_user_is_not_taken_for_a_missing_git(
    user: User, tmp_path: Path
) -> None:
    (user.root / ".yolo-planning/phases").mkdir(parents=True)
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Ada\n[core\n")
    asked = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "status", "-C", user.root],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"git_failed: git version: fatal: bad config line 3 in file {tmp_path}/.gitconfig" in (
        asked.stderr
    )
    assert "Correct that line" in asked.stderr and "Install git" not in asked.stderr


@pytest.mark.parametrize("key", ["log.diffMerges", "core.abbrev", "core.quotePath", "color.ui"])
def test_a_value_that_git_refuses_has_a_hint_with_a_command_that_runs(user: User, key: str) -> None:
    user.git("config", key, "x")
    with pytest.raises(YoloError) as raised:
        Git(str(user.root)).run("log", "-1")
    [command] = re.findall("'(git config .*)'", raised.value.hint)
    assert ".git/config" in user.text(*shlex.split(command)[1:])


def test_a_value_without_which_no_git_runs_is_corrected_in_an_editor(user: User) -> None:
    with open(user.root / ".git/config", "a") as file:
        file.write("[core]\n\tbare = x\n")
    with pytest.raises(YoloError) as raised:
        Git(str(user.root)).run("log", "-1")
    assert "in an editor" in raised.value.hint


def test_a_repository_that_vanished_is_an_error_of_ours(user: User, engine: Engines) -> None:
    git = engine(user).repository.git
    user.root.rename(user.root.parent / "moved")
    with pytest.raises(YoloError):
        git.run("rev-parse", "HEAD")
