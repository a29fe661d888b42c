"""Whatever stands where a file of ours should be, commands answer and a scan goes on: never a defect, never a hang.

`YOLO_OWN_FILES=all` tries every command with every corruption of every file; otherwise each file gets a few of
them, others than its neighbours.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import artifact
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.system.store import Damaged, is_odd
from yolo_fs.workspace.own_files import SETUP_PARTS, own_files

ALL = os.environ.get("YOLO_OWN_FILES") == "all"
FEW = 1
"""Corruptions of each file in the small tier."""
SHARE = 1 if ALL else 3
"""One of so many commands meets a damaged file."""
DEFECT = 70
PLAN, CRITIQUE, DECISIONS, LATER = (
    artifact("plan", 0), artifact("critique", 0), artifact("decisions", 0), artifact("plan", 1)
)  # fmt: skip
PHASE = os.path.dirname(PLAN.path)
STATUS = {
    "dept": "backend", "status": "running", "step": "planning", "started_at": "", "updated_at": "",
    "plans_complete": 0, "plans_total": 0, "error": "", "percent_complete": 0, "blockers": [],
    "eta": "", "seq": 1, "declared": {"status": "complete"},
}  # fmt: skip
CONTENT: dict[str, dict[str, Any]] = {
    f"{PHASE}/.dept-status-backend.json": STATUS,
    f"{PHASE}/.execution-state.json": {"phase": 1, "status": "running", "skipped": [{"step": "2"}]},
    f"{PHASE}/.phase-orchestration.json": {"phase": "01", "departments": {"backend": {}}, "gates": {}},
    ".git/yolo-fs/boot.json": {"boot": "x"},
    ".git/yolo-fs/claims.json": {
        "claims": [{"agent": "dev-1", "task": "01-01/T1", "files": ["a"], "claimed_at": "2026-01-01T00:00:00Z"}]
    },
    ".git/yolo-fs/crew-clock.json": {"boot": "x", "since_s": {"step": 7.5}},
    ".git/yolo-fs/crew-told.json": {"told": ["x"]},
    ".git/yolo-fs/autofixed.json": {"files": [{"path": "x", "blob": "x", "mended": 1, "at": "x"}]},
    ".git/yolo-fs/verifications.json": {
        "runs": [{
            "commit": "x", "sources": "x", "how": "", "began": "", "output": "", "command": ["x"], "proof": None,
            "passed": True, "is_clean": True, "seconds": 1.5,
        }]
    },
    ".git/yolo-fs/escalation-clock.json": {"boot": "x", "since_s": {"turn": 7.5}},
    ".git/yolo-fs/handoff-overrides.json": {
        "overrides": [{"path": "a", "digest": "b", "branch": "main", "faults": ["x"], "because": "", "by": "", "at": ""}]
    },
    ".git/yolo-fs/health.json": {
        "pid": 4, "running": True, "headline": "", "last_scan_at": 1.5,
        "degraded": {"reason": "watch_limit", "detail": "", "hint": ""},
        "troubles": [{"duty": "index", "reason": "internal_error", "what": ""}], "held": 0, "rejected": 0,
    },
    ".git/yolo-fs/hooks.json": {"since": "x", "folders": ["y"], "version": "0"},
    ".git/yolo-fs/setup-claude.json": {"before": None, "after": "{}"},
    ".git/yolo-fs/handoff-accepted.json": {"stamps": {"a": "b"}, "roles": ["executor"]},
    ".git/yolo-fs/company-runs.json": {
        "runs": [{
            "id": "R202611290000000001", "phase": "01-auth", "intent": "x", "host": "command", "outcome": "",
            "chain": None, "again": None, "proof": None, "begins": None, "started": 1.5, "ended": None,
            "given_up": None, "asks": None, "acts": [],
        }]
    },
    ".git/yolo-fs/team-lane.json": {"reason": "x", "what": "y", "at": "z", "round_trip_s": 0.5},
    ".git/yolo-fs/team.json": {"team": "a", "clone": "b", "remote": "origin"},
}  # fmt: skip
"""Files of JSON, and what a whole one may hold."""
LINES: dict[str, dict[str, Any]] = {
    ".git/yolo-fs/agents.jsonl": {
        "at": "2026-01-01T00:00:00.000Z", "event": "pre-tool-use", "agent": "yolo-dev", "id": "a", "session": "s",
        "said": {"type": "dev_progress"},
    },
    ".git/yolo-fs/events.jsonl": {
        "specversion": "1.0", "id": "x", "source": "/r", "type": "dev.yolo_fs.daemon.started", "time": "2026-01-01T00:00:00Z",
        "subject": "", "seq": 1, "data": {"pid": 7},
    },
}  # fmt: skip
"""Files of lines, and what a line may hold."""
OTHERS = tuple(
    f".git/yolo-fs/{name}"
    for name in (
        "agents.1.jsonl", "daemon.lock", "daemon.log", "execution-state.lock",
        "handoffs.lock", "state.db", "state.db-wal", "state.db-shm", "state.db-journal", "index.db-journal", "index.db", "index.db.seal", "index.db-wal", "index.db-shm",
        "index-pending", "phases.lock", "ref-locks", "kept.turn", "kept-ref-lock", "states.turn", "packs-left", "company.lock",
        *(
            f"setup-{host}{part}.json" for host in HOST_BY_NAME for part in SETUP_PARTS
            if host + part != "claude"
        ),
    )
)  # fmt: skip
FILES = (*CONTENT, *LINES, *OTHERS)
COMMANDS = (
    ["run", "--once"], ["status"], ["resume"], ["gate", "list"], ["gate", "check", "all-depts", "--phase", "01"],
    ["doctor"], ["agent", "list"], ["agent", "stalls"], ["task", "claims"],
    ["task", "claim", "01-01/T1", "--as", "dev-2"], ["task", "release", "--as", "dev-2"],
    ["dept", "update", "backend", "--phase", "01", "--status", "running"], ["workflow", "show"],
    ["logs"], ["events"], ["escalate", "list"], ["escalate", "tick"], ["hooks", "check"], ["hooks", "uninstall"],
    ["setup", "claude"], ["setup", "claude", "--remove"], ["statusline"], ["verify"], ["stop"],
)  # fmt: skip


# --- corruptions -----------------------------------------------------------------------------------------------------

Corruption = Callable[[Path], object]
TEXTS = (
    b"", b"{", b"[]", b"null", b"7", b"1e308", b"9" * 5000, b'"x"', b"{}", b"[[{}]]", b"[" * 100_000,
    b"\xff\xfe\x00\x80", b"\0" * 64, b'{"pid": 1e400, "seq": NaN}', b'{"a": "\xff"}',
)  # fmt: skip
WRONG = ("x", -1, 1e308, 10**30, None, True, [], [None], {}, {"a": [None]})


def put_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").write_text("x")


def put_link(path: Path) -> None:
    outside = path.parent / "elsewhere"
    outside.write_text("not ours\n")
    path.symlink_to(outside)


def put_unreadable(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


NO_FILES: tuple[Corruption, ...] = (put_folder, os.mkfifo, put_link)
KINDS: tuple[Corruption, ...] = (
    *NO_FILES,
    lambda path: path.symlink_to("nowhere"),
    put_unreadable,
)


def with_wrong_field(value: Any, wrong: object) -> Iterator[Any]:
    """Yield the value with each of its fields replaced, one after another, at any depth."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(pairs):
        changed = value.copy()
        changed[key] = wrong
        yield changed
        if isinstance(part, dict | list):
            for inner in with_wrong_field(part, wrong):
                yield (value | {key: inner}) if isinstance(value, dict) else [inner]


def corruptions(name: str) -> list[Corruption]:
    """Return all corruptions of a file."""
    texts = list(TEXTS)
    whole = CONTENT.get(name) or LINES.get(name) or {}
    for wrong in WRONG:
        texts += [json.dumps(value).encode() + b"\n" for value in with_wrong_field(whole, wrong)]
    texts.append(json.dumps(whole).encode()[:-3])
    written: list[Corruption] = [lambda path, text=text: path.write_bytes(text) for text in texts]
    return [*KINDS, *written]


def few_of(name: str) -> list[Corruption]:
    """Return some corruptions of a file: others for each, so that all files together meet all."""
    known = corruptions(name)
    start = zlib.crc32(name.encode()) % len(known)
    step = max(1, len(known) // FEW)
    return [known[(start + step * number) % len(known)] for number in range(FEW)]


def share_of(name: str) -> int:
    """Return a number below `SHARE` that is another one for the next file."""
    return FILES.index(name) % SHARE


# --- the repository --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository in which everything of ours is in use."""
    place = tmp_path_factory.mktemp("own")
    root = place / "template"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setenv("XDG_CONFIG_HOME", str(place / ".config"))
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            subprocess.run(["git", "-C", str(root), "config", key, value], check=True)
        for made in (PLAN, CRITIQUE, DECISIONS):
            (root / made.path).parent.mkdir(parents=True, exist_ok=True)
            (root / made.path).write_bytes(made.data)
        config = {"departments": {"backend": True, "frontend": True}}
        (root / ".yolo-planning/config.json").write_text(json.dumps(config))
        for command in (
            ["run", "--once"],
            ["task", "claim", "01-01/T1", "--as", "dev-1"],
            ["hooks", "install"],
            ["setup", "claude"],
        ):
            assert run([*command, "-C", str(root)]) == 0, command
        yield root


@pytest.fixture
def root(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    root = tmp_path / "repo"
    shutil.copytree(template, root)
    return root


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def wrong_answers(
    root: Path, capsys: pytest.CaptureFixture[str], commands: tuple[list[str], ...] = COMMANDS
) -> dict[str, str]:
    """Return the commands that end by a defect of ours, and what they say."""
    ends: dict[str, str] = {}
    for command in commands:
        code = run([*command, "-C", str(root)])
        shown = capsys.readouterr()
        if code == DEFECT or "daemon.defect" in shown.err or "Traceback" in shown.err:
            ends[" ".join(command)] = shown.err[-300:]
    return ends


# --- tests -----------------------------------------------------------------------------------------------------------


def test_the_files_are_those_that_we_keep(root: Path) -> None:
    with Repository(str(root)) as repository:
        kept = {f".git/yolo-fs/{file.name}" for file in own_files(repository, tuple(HOST_BY_NAME))}
        names = {f".git/yolo-fs/{name}" for name in os.listdir(repository.own_dir)}
    assert names - {f".git/yolo-fs/{folder}" for folder in ("git-hook", "merged")} <= kept
    assert kept == {name for name in FILES if name.startswith(".git/")}


@pytest.mark.parametrize("name", [name for name in CONTENT if name.startswith(".git/")])
def test_a_value_of_another_type_is_damage(root: Path, name: str) -> None:
    with Repository(str(root)) as repository:
        files = {file.name: file for file in own_files(repository, tuple(HOST_BY_NAME))}
    file, whole = files[name.rpartition("/")[2]], CONTENT[name]
    assert isinstance(file.shape, dict)
    assert file.checked(whole) == whole
    for key in file.shape:
        assert isinstance(file.checked(whole | {key: object()}), Damaged), key


@pytest.mark.timeout(3600 if ALL else 120)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_costs_no_command(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = root / name
    for corrupt in corruptions(name) if ALL else few_of(name):
        clear(path)
        corrupt(path)
        kind = f"{corrupt}: {path.read_bytes()[:200]!r}" if path.is_file() else f"{corrupt}"
        assert wrong_answers(root, capsys, COMMANDS[share_of(name) :: SHARE]) == {}, kind


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(".git/")])
@pytest.mark.parametrize("corrupt", NO_FILES)
def test_doctor_names_what_is_no_file_and_puts_it_aside(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, corrupt: Corruption
) -> None:
    clear(root / name)
    corrupt(root / name)
    run(["doctor", "-C", str(root)])
    assert os.path.basename(name) in capsys.readouterr().err
    run(["doctor", "--fix", "-C", str(root)])
    assert not is_odd(str(root / name))  # a look after the repair may have made it anew
    if NO_FILES.index(corrupt) % SHARE == share_of(name):
        assert_the_next_artifact_is_committed(root)


def assert_the_next_artifact_is_committed(root: Path) -> None:
    (root / LATER.path).parent.mkdir()
    (root / LATER.path).write_bytes(LATER.data)
    assert run(["run", "--once", "-C", str(root)]) == 0
    log = subprocess.run(
        ["git", "-C", str(root), "log", "--format=%s"], capture_output=True, text=True, check=True
    )
    assert LATER.subject in log.stdout


DATABASE_OF_ANOTHER = b"SQLite format 3\0" + b"\x10\0\1\1\0@  " + bytes(4072)
NO_CLAIMS = b'{"claims": [{"agent": "dev-1"}]}'


def test_claims_of_the_version_before_count_until_one_is_changed(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its file stays as it was: a colleague's may still read it."""
    own = root / ".git/yolo-fs"
    (own / "state.db").unlink()
    claim = {
        "agent": "dev-7",
        "task": "01-01/T1",
        "files": ["a"],
        "claimed_at": "2026-01-01T00:00:00Z",
    }
    text = json.dumps({"claims": [claim]})
    (own / "claims.json").write_text(text)
    for command in (
        ["task", "claims"],
        ["task", "claim", "01-01/T1", "--as", "dev-8"],
        ["task", "claims"],
    ):
        run([*command, "-C", str(root)])
        shown = capsys.readouterr()
        assert "dev-7" in shown.out + shown.err, command
    run(["task", "release", "--as", "dev-7", "-C", str(root)])
    assert (own / "claims.json").read_text() == text
    capsys.readouterr()
    run(["task", "claims", "-C", str(root)])
    shown = capsys.readouterr().out
    assert "dev-8" in shown and "dev-7" not in shown


def test_what_is_beside_the_claims_is_put_aside_without_them(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A journal would be played back, and may name a file of the user that SQLite then deletes."""
    for odd in ("state.db-journal", "state.db-wal"):
        path = root / ".git/yolo-fs" / odd
        path.write_text("x") if odd.endswith("journal") else path.mkdir()
        assert run(["task", "claims", "-C", str(root)]) not in (0, DEFECT)
        run(["doctor", "--fix", "-C", str(root)])
        assert not os.path.lexists(path)
        capsys.readouterr()
        assert run(["task", "claims", "-C", str(root)]) == 0
        assert "dev-1" in capsys.readouterr().out


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "text"),
    [*(("claims.json", text) for text in (b"", b"garbage", b"[]", b"null", NO_CLAIMS)),
     *(("state.db", text) for text in (b"", b"garbage", bytes(4096), DATABASE_OF_ANOTHER))],
)  # fmt: skip
def test_damaged_claims_are_not_no_claims(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, text: bytes
) -> None:
    path = root / ".git/yolo-fs" / name
    (root / ".git/yolo-fs/state.db").unlink()
    path.write_bytes(text)
    for command in (["task", "claims"], ["task", "claim", "01-01/T1", "--as", "dev-2"]):
        assert run([*command, "-C", str(root)]) not in (0, DEFECT)
        assert name in capsys.readouterr().err
    assert path.read_bytes() == text
    assert run(["doctor", "-C", str(root)]) == 1
    assert name in capsys.readouterr().err
    run(["doctor", "--fix", "-C", str(root)])
    assert (root / f".git/yolo-fs/quarantine/{name}.1").read_bytes() == text
    assert run(["task", "claim", "01-01/T1", "--as", "dev-2", "-C", str(root)]) == 0


def test_tables_of_another_are_not_filled(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trigger would run with each claim."""
    state = root / ".git/yolo-fs/state.db"
    connection = sqlite3.connect(state)
    with connection:
        connection.execute("create trigger more after insert on notes begin delete from notes; end")
    connection.close()
    assert run(["task", "claim", "01-01/T1", "--as", "dev-2", "-C", str(root)]) not in (0, DEFECT)
    assert "other tables" in capsys.readouterr().err
    connection = sqlite3.connect(state)
    ((told,),) = connection.execute("select value from notes where name = 'claims'").fetchall()
    connection.close()
    assert "dev-1" in told and "dev-2" not in told


A_LARGE_VALUE = 64 * 1024 * 1024


@pytest.mark.parametrize("is_one_value", [True, False])
def test_a_database_larger_than_any_of_ours_is_not_read(
    root: Path, capsys: pytest.CaptureFixture[str], is_one_value: bool
) -> None:
    """It came with the folder: a value of a gigabyte would cost two at each command."""
    state = root / ".git/yolo-fs/state.db"
    connection = sqlite3.connect(state)
    if is_one_value:
        with connection:
            large = "replace into notes values ('claims', cast(zeroblob(?) as text))"
            connection.execute(large, (A_LARGE_VALUE,))
    connection.close()
    if not is_one_value:
        os.truncate(state, 2**40)
    tracemalloc.start()
    for command in (["task", "claims"], ["status"], ["doctor"]):
        run([*command, "-C", str(root)])
        said = "".join(capsys.readouterr())
        assert "state.db" in said and "unreadable" in said
    assert tracemalloc.get_traced_memory()[1] < A_LARGE_VALUE
    tracemalloc.stop()
    run(["doctor", "--fix", "-C", str(root)])
    assert run(["task", "claim", "01-01/T1", "--as", "dev-2", "-C", str(root)]) == 0
