"""What hostile and careless hands do: odd streams, limits and places, damaged files of ours, credentials
in disguise, forbidden acts in every spelling. See docs/dev/torture.md.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, product
from pathlib import Path

import pytest

from bench.table import Table, render
from tests.artifacts.test_examine_secrets import DISGUISES
from tests.daemon.test_own_files import COMMANDS, FILES, clear, corruptions
from tests.e2e.artifacts import artifact
from tests.e2e.daemon import until
from tests.e2e.repo import Repo
from tests.hooks.test_pre_tool_use import EVERYDAY, FORBIDDEN, made_team, verdict
from tests.security.asking import ask
from tests.security.test_disguises import SECRETS, SHOWN, standings, stored, with_line
from tests.security.test_secrets import own_files, tail
from tests.security.verbs import READERS, questions
from tests.support import forked
from tests.torture.surroundings import Ground
from yolo_fs.cli.main import VERBS
from yolo_fs.core.reasons import Exit

# --- verdicts on acts ------------------------------------------------------------------------------------------------

ACTS = [
    *(("forbidden", wanted, agent, command) for wanted, agent, command in FORBIDDEN),
    *(("innocent", "", agent, command) for agent, commands in EVERYDAY.items() for command in commands),
]  # fmt: skip
"""Kind, verdict wanted, agent and command."""


def acts(ground: Ground, count: int) -> None:
    """Ask our hook about each act, and give a table of its verdicts for each role and kind."""
    told: Counter[tuple[str, str, str]] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(ground.place))
        patch.setenv("XDG_CONFIG_HOME", str(ground.place / "no config"))
        _judge_acts(ground, ground.rng.sample(ACTS, count), told)
    rows = [
        (kind, "a session" if agent == "-" else agent, *(str(told[kind, agent, said]) for said in SAID))
        for kind, agent in sorted({(kind, agent) for kind, agent, _ in told})
    ]  # fmt: skip
    ground.tally.notes.append(render(Table("Verdicts", ("act", "role", *SAID), tuple(rows))))


def _judge_acts(
    ground: Ground, chosen: Sequence[tuple[str, str, str, str]], told: Counter[tuple[str, str, str]]
) -> None:
    team = made_team(ground.place)
    for kind, wanted, agent, command in chosen:
        name = {"-": "", "everybody": "yolo-dev"}.get(agent, f"yolo-{agent}")
        said = verdict(team, name, command)
        told[kind, agent, said.partition(" ")[0]] += 1
        ground.tally.count += 1
        if not said.startswith(wanted) or (kind == "innocent" and said.startswith("denied")):
            ground.fault(f"{kind}, {agent}: {command!r}: {said[:200]}")


SAID = ("denied", "undecided", "passes")


# --- verbs in odd surroundings ---------------------------------------------------------------------------------------

ODD = "TORTURE_ODD"
"""Environment: what is odd about a forked command, as `KIND:WHAT`; `make_odd` carries it out."""
GO_ON = ("run", "start", "restart", "board", "demo")
"""Verbs that do not end by themselves, or leave a daemon; asked for their help."""
LINES = (
    *READERS, *(f"{verb.name}{' --help' * (verb.name in GO_ON)}" for verb in VERBS), "phase new oddly", "task claim 01-01/T1 --as dev-1",
    "dept update backend --phase 01 --status running", "escalate tick", "context compile dev --phase 01", "gate check all-depts",
    "message check -", "commit --task 01-01/T1 --type feat -m x", "hooks install", "hooks uninstall", "setup claude", "kept list",
    "kept restore 1", "team list", "agent list", "schema show artifact/plan", "report --out ../report.html",
)  # fmt: skip
STREAMS = ("closed:0", "closed:1", "closed:2", "closed:012", "full:1", "full:2", "broken:1")
"""A folder for stdin is none: the interpreter itself does not start then."""
LIMITS = (
    "files:16",
    "files:32",
    "size:0",
    "size:4096",
    "memory:400000000",
    "stack:262144",
    "seconds:20",
    "umask:511",
)
VARIABLES: dict[str, dict[str, str | None]] = {
    "no PATH": {"PATH": "/nonexistent"}, "no HOME": {"HOME": None, "XDG_CONFIG_HOME": None}, "HOME is a file": {"HOME": "/etc/passwd"},
    "no TMPDIR": {"TMPDIR": "/nonexistent"}, "one column": {"COLUMNS": "1"}, "ASCII": {"LANG": "C", "LC_ALL": "C"},
    "git elsewhere": {"GIT_DIR": "/nonexistent"}, "a clock elsewhere": {"TZ": "Pacific/Kiritimati"},
}  # fmt: skip
PLACES = (
    "nowhere", "empty", "bare", "unborn", "detached", "no planning tree", "a file for a planning tree", "a link for a planning tree",
    "inside the planning tree", "inside .git", "a linked work tree", "a broken .git", "a name\nof two lines \x1b[2J", "deleted",
)  # fmt: skip
TRACED = re.compile(r"Traceback(?s:.*)\n(?!ResourceWarning)\w+(Error|Exception)")
"""A traceback, and not of what the interpreter says of files at its end, where warnings are errors."""
SURROUNDINGS = (*STREAMS, *LIMITS, *VARIABLES, *PLACES)
TRIALS = list(product(LINES, SURROUNDINGS))


def verbs(ground: Ground, count: int) -> None:
    """Run verbs with odd streams, limits, variables and places: each ends with a code of its own, and with no traceback.

    Fewer than there are surroundings are always the same ones.
    """
    repo = ground.repo()
    repo.write(artifact("plan", 0), artifact("critique", 0))
    places = {place: _place(ground, repo, place) for place in PLACES}
    few = TRIALS[:: len(TRIALS) // count][:count]
    for line, odd in few if count < len(SURROUNDINGS) else ground.rng.sample(TRIALS, count):
        variables = VARIABLES.get(odd, {})
        env = {name: text for name, text in {**repo.env, **variables}.items() if text is not None}
        try:
            ended = _ended(line.split(), places.get(odd, repo.root), {**env, ODD: odd})
        except TimeoutError:
            ground.fault(f"{line!r}, {odd!r}: does not end")
            continue
        ground.tally.count += 1
        said = ended.err.decode(errors="replace")
        if ended.code not in {*Exit} - {Exit.DEFECT} or TRACED.search(said):
            ground.fault(f"{line!r}, {odd!r}: {ended.code}: {said[-300:]!r}")


def _ended(words: Sequence[str], place: Path, env: dict[str, str]) -> forked.Ended:
    reading = [os.pipe() for _ in range(2)]
    with open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), *(writing for _, writing in reading)]
        begun = forked.begin(words, place, env, streams, prepare=f"{__name__}:make_odd")
    for _, writing in reading:
        os.close(writing)
    texts = {}

    def read(number: int, end: int) -> None:
        with open(end, "rb") as stream:
            texts[number] = stream.read()

    readers = [threading.Thread(target=read, args=(at, end)) for at, (end, _) in enumerate(reading)]
    for reader in readers:
        reader.start()
    try:
        code = begun.wait()
    except TimeoutError:
        begun.send(signal.SIGKILL)
        raise
    for reader in readers:
        reader.join()
    return forked.Ended(code, texts[0], texts[1])


def make_odd() -> None:
    """Close or replace streams, set a limit or leave a folder, as the environment of a forked process says."""
    kind, _, what = os.environ.pop(ODD, "").partition(":")
    match kind:
        case "closed":
            for name in (("stdin", "stdout", "stderr")[number] for number in map(int, what)):
                getattr(sys, name).close()
                setattr(sys, name, None)
        case "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), int(what))
        case "broken":
            end, writing = os.pipe()
            os.close(end)
            os.dup2(writing, int(what))
        case "umask":
            os.umask(int(what))
        case "deleted":
            gone = tempfile.mkdtemp()
            os.chdir(gone)
            os.rmdir(gone)
        case _ if kind in RESOURCES:
            hard = resource.getrlimit(RESOURCES[kind])[1]
            resource.setrlimit(RESOURCES[kind], (int(what), hard))


RESOURCES = {
    "files": resource.RLIMIT_NOFILE, "size": resource.RLIMIT_FSIZE, "memory": resource.RLIMIT_AS, "stack": resource.RLIMIT_STACK,
    "seconds": resource.RLIMIT_CPU,
}  # fmt: skip


def _place(ground: Ground, repo: Repo, name: str) -> Path:
    """Make an odd place to stand in."""
    root = ground.place / "places" / name
    if name in ("nowhere", "deleted"):
        return ground.place
    root.mkdir(parents=True)
    made = Repo(root, repo.env)
    if name not in ("empty", "a broken .git"):
        made.git("init", "-q", *(["--bare"] if name == "bare" else []))
    match name:
        case "a broken .git":
            made.file(".git", "gitdir: /nonexistent\n")
        case "a file for a planning tree":
            made.file(".yolo-planning", "")
        case "a link for a planning tree":
            (root / ".yolo-planning").symlink_to(repo.root / ".yolo-planning")
        case "detached":
            made.commit_file("a", "a")
            made.write(artifact("plan", 0))
            made.git("checkout", "-q", "--detach")
        case "a linked work tree":
            root.rmdir() if not any(root.iterdir()) else shutil.rmtree(root)
            repo.git("worktree", "add", "-q", "-b", "linked", str(root))
        case "inside .git":
            return root / ".git"
        case "inside the planning tree" | "a name\nof two lines \x1b[2J":
            made.commit_file("a", "a")
            made.write(artifact("plan", 0))
            return (root / artifact("plan", 0).path).parent
    return root


# --- files of ours ---------------------------------------------------------------------------------------------------

EACH = 20
"""Corruptions of each file."""
DAMAGES = [(name, at) for name in FILES for at in range(EACH)]
UNLOCKED = [row for row in DAMAGES if row[0] != ".git/yolo-fs/daemon.lock"]
"""Without the lock, whose loss ends a daemon on purpose."""
ASKED = [command for command in COMMANDS if command[0] not in ("stop", "run")]


def stopped_files(ground: Ground, count: int) -> None:
    """Damage a file of ours while no daemon runs: commands answer, and the next artifact is committed."""
    for number, (repo, name, corrupt) in enumerate(_damaged(ground, DAMAGES, count)):
        corrupt(repo.root / name)
        for command in (*islice(cycle(ASKED), 3 * number, 3 * number + 3), ["doctor", "--fix"]):
            _ask(ground, repo, command, name)
        one = artifact("plan", number % 400, version=1 + number)
        repo.write(one)
        _ask(ground, repo, ["run", "--once"], name)
        if one.blob() not in repo.look("ls-tree", "-r", "HEAD"):
            ground.fault(f"{name}, {_shown(repo, name)}: the next artifact is not committed")


def running_files(ground: Ground, count: int) -> None:
    """Damage a file of ours while a daemon runs: it goes on, and the next artifact is committed."""
    daemon = None
    for number, (repo, name, corrupt) in enumerate(_damaged(ground, UNLOCKED, count)):
        if daemon is None or not daemon.is_running:
            daemon = ground.daemon(repo)
            daemon.start()
        with contextlib.suppress(FileExistsError):  # the daemon wrote its own there first
            corrupt(repo.root / name)
        shown = _shown(repo, name)
        _ask(ground, repo, ASKED[number % len(ASKED)], name)
        one = artifact("plan", number % 400, version=1 + number)
        repo.write(one)
        try:
            daemon.wait_committed([one])
        except AssertionError as late:
            ground.fault(f"{name}, {shown}: {late}"[:600])
        if not daemon.is_running:
            ground.fault(f"{name}, {shown}: the daemon ended: {daemon.complaints()[-300:]}")


def _damaged(
    ground: Ground, rows: Sequence[tuple[str, int]], count: int
) -> Iterator[tuple[Repo, str, Callable[[Path], object]]]:
    """Yield a repository with everything of ours in use, a file of it, gone, and how to put another there."""
    repo = ground.repo(rescan_s=1)
    made = [artifact("plan", 0), artifact("critique", 0)]
    repo.write(*made)
    for command in (["run", "--once"], ["task", "claim", "01-01/T1", "--as", "dev-1"], ["hooks", "install"], ["setup", "claude"]):  # fmt: skip
        repo.yolo_fs(*command)
    for name, at in sorted(ground.rng.sample(rows, count)):
        known = corruptions(name)
        path = repo.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        clear(path)
        yield repo, name, known[at * len(known) // EACH]
        ground.tally.count += 1
        clear(path)


def _ask(ground: Ground, repo: Repo, command: Sequence[str], name: str) -> None:
    ended = forked.call(command, repo.root, repo.env)
    if ended.code == Exit.DEFECT or b"Traceback" in ended.err:
        said = ended.err.decode(errors="replace")[-300:]
        ground.fault(f"{name}, {_shown(repo, name)}: {command}: {said!r}")


def _shown(repo: Repo, name: str) -> str:
    path = repo.root / name
    if path.is_file() and not path.is_symlink():
        return repr(path.read_bytes()[:80])
    return "absent" if not os.path.lexists(path) else stat.filemode(path.lstat().st_mode)


# --- credentials -----------------------------------------------------------------------------------------------------

DISGUISED = [(secret, wear) for secret in SECRETS for wear in DISGUISES]


def credentials(ground: Ground, count: int) -> None:
    """Let artifacts mean credentials in disguise, before a daemon: in no object, log, record of ours or output."""
    for first in range(0, count, 100):
        _leaking(ground, DISGUISED[first : first + 100][: count - first])


def _leaking(ground: Ground, trials: Sequence[tuple[str, str]]) -> None:
    repo = ground.repo(rescan_s=1)
    daemon = ground.daemon(repo)
    daemon.start()
    texts = [(secret, DISGUISES[wear](secret).replace("\n", " ")) for secret, wear in trials]
    leaking = [with_line(artifact("plan", at), text) for at, (_, text) in enumerate(texts)]
    marker = artifact("critique", 0)
    repo.write(*leaking, marker)
    daemon.wait_committed([marker])
    until(lambda: len(standings(repo)) == len(trials) and {*standings(repo)} <= {"held", "rejected"}, "a verdict on every file")  # fmt: skip
    shown = ask(repo, questions(SHOWN))
    places = {str(said.question.words): said.out + said.err for said in shown}
    places |= {path.name: path.read_bytes() for path in own_files(repo)}
    places |= {"objects of git": stored(repo), "output of the daemon": daemon.complaints().encode()}
    for secret, text in texts:
        ground.tally.count += 1
        for part in (tail(secret), text.encode()[-24:]):
            for place in (place for place, shown in places.items() if part in shown):
                ground.fault(f"{secret[:6]}… in {place}")
    daemon.kill()
    ground.forget(repo)
