"""How a command ends: at once, with everything printed and every last duty done, unless something still runs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from pydantic_core import SchemaError

from tests.e2e.daemon import until
from tests.support.teams import Team
from yolo_fs.cli import main
from yolo_fs.core.reasons import Exit

PROGRAM = """
import atexit, sys, threading
atexit.register(print, "last duty")
{before}
from yolo_fs.__main__ import start
code = start()
print("the interpreter ends it")
sys.exit(code)
"""
THREAD = """
go_on = threading.Event()
threading.Thread(target=go_on.wait).start()
threading._register_atexit(go_on.set)
"""
INTERRUPT = """
class Interrupting:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""
"""Ctrl-C while the command is still being imported."""


def ended(
    words: list[str], before: str = "", flags: tuple[str, ...] = (), out: str = ""
) -> tuple[int, list[str]]:
    command = [sys.executable, *flags, "-c", PROGRAM.format(before=before), *words]
    with open(out or os.devnull, "wb") as full:
        done = subprocess.run(
            command, stdout=full if out else subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
            env={**os.environ, "YOLO_FS_COLD": "1"},
        )  # fmt: skip
    assert out or b"Traceback" not in done.stderr
    return done.returncode, (done.stdout or b"").decode().splitlines()[-3:]


def test_ctrl_c_while_it_is_still_imported_ends_it_without_a_traceback(tmp_path: Path) -> None:
    assert ended(["status", "-C", str(tmp_path)], before=INTERRUPT)[0] == 130


@pytest.mark.parametrize(("words", "code"), [(["--version"], 0), (["nonsense"], 2)])
def test_it_ends_at_once_with_its_code_and_its_last_duties_done(
    words: list[str], code: int, tmp_path: Path
) -> None:
    found, lines = ended(words)
    assert (found, lines[-1]) == (code, "last duty")
    assert "the interpreter ends it" not in lines


@pytest.mark.parametrize(("before", "flags"), [(THREAD, ()), ("", ("-X", "dev"))])
def test_where_something_still_runs_or_is_looked_into_the_interpreter_ends_it(
    before: str, flags: tuple[str, ...]
) -> None:
    code, lines = ended(["--version"], before, flags)
    assert code == 0 and "the interpreter ends it" in lines and "last duty" in lines


LOST = """
import signal, time
{before}
from yolo_fs.__main__ import _end_as_by_ctrl_c
_end_as_by_ctrl_c()
class Left:
    def __del__(self):
        signal.raise_signal(signal.{number})
Left()
try:
    time.sleep(5)
    print("lost")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize(
    ("before", "number"),
    [("", "SIGINT"), ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "SIGTERM")],
)
def test_an_interrupt_that_comes_in_a_finalizer_is_not_lost(before: str, number: str) -> None:
    program = LOST.format(before=before, number=number)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"stopped\n", b"", 0)


def test_what_cannot_be_written_is_told() -> None:
    code, _ = ended(["--version"], out="/dev/full")
    assert code != 0


def test_a_status_line_that_cannot_be_written_is_no_error_of_the_session(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".yolo-planning/phases").mkdir(parents=True)
    line = [sys.executable, "-m", "yolo_fs", "statusline", "-C", str(tmp_path)]
    assert b"no daemon" in subprocess.check_output(line)
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # what is left is tried again at the end
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, env=buffered, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_the_encoding_of_the_terminal_lacks_is_escaped(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    command = [sys.executable, "-m", "yolo_fs", "gate", "list", "-C", str(tmp_path)]
    folder = tmp_path / ".yolo-planning/phases/01-auth"
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr, b"\\u2192 yolo-fs" in done.stdout) == (0, b"", True)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_what_the_system_refuses_is_no_defect_of_ours(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(main.yolo_fs, "main", refuse)
    assert main.run(["status", "--json"]) == Exit.TRY_AGAIN
    assert "ulimit -n" in capsys.readouterr().out


def test_an_answer_is_whole_in_a_pipe_that_is_full_and_does_not_wait() -> None:
    command = [sys.executable, "-m", "yolo_fs", "schema", "show", "config"]
    whole = subprocess.run(command, capture_output=True, check=True).stdout
    reading, writing = os.pipe()
    room = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    with subprocess.Popen(command, stdout=writing) as process:
        os.close(writing)
        full = room.to_bytes(4, sys.byteorder)
        until(lambda: fcntl.ioctl(reading, termios.FIONREAD, bytes(4)) == full, "a full pipe")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)  # it waits for us; one that does not loses the rest
        with open(reading, "rb") as pipe:
            assert pipe.read() == whole
    assert process.returncode == 0 and len(whole) > room


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "words", [["gate", "check", "all-depts", "--phase", "1"], ["gate", "list", "--phase", "1"],
              ["workflow", "show", "--phase", "1"], ["validate"], ["may", "dev", "decide", "architecture"]]
)  # fmt: skip
def test_a_reader_that_closes_the_pipe_changes_no_exit_code(
    words: list[str], form: list[str], tmp_path: Path
) -> None:
    team = Team(tmp_path / "work")
    team.begin()
    team.artifact("critique.jsonl", "{}\n")
    command = [sys.executable, "-m", "yolo_fs", *words, *form, "-C", str(team.root)]
    environment = {**os.environ, "YOLO_FS_COLD": "1"}
    heard = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        unheard = subprocess.run(
            command,
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (unheard.returncode, unheard.stderr) == (heard.returncode, heard.stderr)


def test_ctrl_c_while_a_shape_is_built_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pydantic says of it what is below; seen at the board and at a lease on a loaded machine."""

    def build(**_: object) -> None:
        raise SchemaError('Error building "literal" validator:\n  KeyboardInterrupt: ')

    monkeypatch.setattr(main.yolo_fs, "main", build)
    assert main.run(["status"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", ["status", "resume", "inbox", "gate why all-depts --phase 1", "escalate list"]
)
def test_a_question_without_a_daemon_loads_nothing_that_only_a_check_needs(
    tmp_path: Path, words: str
) -> None:
    team = Team(tmp_path / "work")
    team.example("plan/ok/planned.jsonl", "01-02.plan.jsonl")
    team.user_commits("docs(01): plan 01-02", ".yolo-planning")
    code = (
        "import sys; from yolo_fs.__main__ import main; main();"
        "print(*(set(sys.modules) & {'pydantic', 'watchdog'}), file=sys.stderr)"
    )

    def loaded() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *words.split(), "-C", str(team.root)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return done.stderr.splitlines()[-1]

    loaded()  # what it reads of the history is kept for later ones
    assert loaded() == ""
