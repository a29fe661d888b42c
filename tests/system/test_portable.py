"""What only Linux has is a help and no need: the same program without it, tried by force.

The whole suite runs so with `YOLO_FS_PORTABLE=1 scripts/test`. See docs/operations.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import make_repo
from tests.support.objects import unpack
from yolo_fs.system import IS_LINUX, PORTABLE
from yolo_fs.system.watch import Doubt, Hint, Watcher, _PublicSession


@pytest.mark.skipif(not IS_LINUX, reason="there are no internals to differ")
@pytest.mark.parametrize("module", ["watchdog.observers.inotify_c", "yolo_fs.system.inotify"])
def test_where_watchdog_differs_inside_its_public_observer_tells_of_every_file(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "yolo_fs.system.inotify", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    seen: dict[str, set[Hint]] = {}
    watcher = Watcher(
        str(tmp_path),
        lambda path, hint: seen.setdefault(path, set()).add(hint),
        lambda _why: None,
    )
    watcher.start()
    try:
        assert isinstance(watcher._session, _PublicSession)
        assert watcher.degraded is None
        (tmp_path / "written").write_text("x")
        (tmp_path / "draft").write_text("y")
        (tmp_path / "draft").rename(tmp_path / "named")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder/below").write_text("z")
        until(lambda: {"written", "named", "folder/below"} <= seen.keys(), "all are told")
        (tmp_path / "written").unlink()
        until(lambda: Hint.GONE in seen["written"], "its end is told")
        watcher.check()
        assert watcher.degraded is None
    finally:
        watcher.stop()


@pytest.mark.skipif(
    sys.platform != "linux", reason="the public observer of inotify has such a thread"
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_end_of_a_thread_on_which_the_public_observer_relies_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.system.watch.IS_LINUX", False)
    before, doubts = set(threading.enumerate()), list[str]()
    watcher = Watcher(str(tmp_path), lambda *_: None, doubts.append)
    watcher.start()
    try:
        watcher.check()
        assert doubts == []
        (reader,) = (
            one for one in set(threading.enumerate()) - before if hasattr(one, "handle_event")
        )
        monkeypatch.setattr(reader, "handle_event", lambda _: 1 / 0)
        (tmp_path / "written").write_text("x")
        reader.join(60)
        watcher.check()
        assert doubts == [Doubt.EMITTER_DIED]
        (tmp_path / "later").write_text("y")
    finally:
        watcher.stop()


def test_without_anything_of_linux_a_write_becomes_a_commit_and_outlasts_a_power_loss(
    tmp_path: Path,
) -> None:
    repo = make_repo(tmp_path / "work", tmp_path / "home")
    more = {PORTABLE: "1"}
    # Not forked: what it imported would be without the variable.
    daemon = Daemon(repo, tmp_path / "daemon.log", more=more, under=["env"])
    daemon.start()
    try:
        written = [artifact("plan", number) for number in range(3)]
        for each in written:
            repo.write(each)
        daemon.wait_committed(written)
        for words in (
            ["status"],
            ["resume"],
            ["doctor"],
            ["gate", "list", "--phase", "1"],
            ["events"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "yolo_fs", *words], cwd=repo.root,
                env={**os.environ, **repo.env, **more}, capture_output=True, check=False,
            )  # fmt: skip
            assert b"Traceback" not in done.stderr, done.stderr
            assert done.returncode in (0, 1), (words, done.stderr)
        asked = subprocess.run(
            [sys.executable, "-m", "yolo_fs", "hook", "pre-tool-use", "--host", "claude"],
            cwd=repo.root, env={**os.environ, **repo.env, **more}, capture_output=True,
            input=b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":'
            b'{"command":"rm -rf .yolo-planning"}}', check=False,
        )  # fmt: skip
        assert b"deny" in asked.stdout, (asked.stdout, asked.stderr)
    finally:
        assert daemon.stop() == 0
    unpack(repo.root)
    lost = repo.git_dir / "objects" / written[0].blob()[:2] / written[0].blob()[2:]
    lost.chmod(0o600)
    lost.write_bytes(b"")
    daemon.start()
    assert daemon.stop() == 0
    assert repo.git("cat-file", "blob", written[0].blob()).encode() == written[0].data
