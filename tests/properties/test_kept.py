"""What was folded and seen before is the same as what is folded and seen afresh, over random histories.

`YOLO_HISTORIES=200 .venv/bin/pytest tests/properties/test_kept.py` is the long tier; a failure prints its seed.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from yolo_fs.agents.snapshot import AgentsObserver
from yolo_fs.git.repository import Repository
from yolo_fs.history import facts_reader as kept_readers
from yolo_fs.history.facts_reader import FactsReader, loop_facts
from yolo_fs.observer.answers import Answerer
from yolo_fs.phase.phase import Phase
from yolo_fs.progress.board import board
from yolo_fs.reports import status as reports
from yolo_fs.reports.status import report
from yolo_fs.scanning import scanner as kept_looks
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.workspace.settings import Settings, load

HISTORIES = int(os.environ.get("YOLO_HISTORIES", "2"))
FIRST = int(os.environ.get("YOLO_SEED", "0"))
COMMITS = 24
PHASES = ("01-auth", "02-page", "03-shop", "03-shop-again")
EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"
FILES = {
    "critique.jsonl": "critique", "research.jsonl": "research", "architecture.toon": "architecture",
    "{phase}-01.plan.jsonl": "plan", "{phase}-02.plan.jsonl": "plan", "test-plan.jsonl": "test-plan",
    "{phase}-01.summary.jsonl": "summary", "{phase}-02.summary.jsonl": "summary", "code-review.jsonl": "code-review",
    "phase-handoff.jsonl": "phase-handoff", "decisions.jsonl": "decisions", "escalation.jsonl": "escalation",
    "verification.jsonl": "verification", "qa-code.jsonl": "qa-code",
}  # fmt: skip
SUBJECTS = ("feat({phase}-01): T1 load the keys", "fix({phase}-02): T2 again", "feat({phase}-02): more of it",
            "chore: elsewhere")  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    subprocess.run(["git", "init", "-q", "-b", "main", tmp_path / "tree"], check=True)
    yield tmp_path / "tree"
    kept_readers._HELD.clear()
    kept_looks._HELD.clear()
    reports._SHOWN.clear()


def a_change(chance: Random, phases: Sequence[str]) -> tuple[str, str, bytes | None]:
    """Return a subject, a path and its content; None where the file is taken away."""
    folder = chance.choice(phases)
    phase = folder[:2]
    if chance.random() < 0.3:
        subject = chance.choice(SUBJECTS).format(phase=phase)
        return subject, f"src/{chance.randrange(9)}.ts", b"%d\n" % chance.randrange(1 << 30)
    name = chance.choice(list(FILES))
    path = f".yolo-planning/phases/{folder}/{name.format(phase=phase)}"
    if chance.random() < 0.1:
        return f"chore: without {name}", path, None
    example = chance.choice(sorted((EXAMPLES / FILES[name] / "ok").iterdir())).read_text()
    text = example.replace('"p":"01"', f'"p":"{phase}"').replace("01-0", f"{phase}-0")
    return f"docs({phase}): {name}", path, text.encode()


def a_history(place: Path, chance: Random, phases: Sequence[str] = PHASES) -> list[str]:
    """Make a branch of random commits, and return them, oldest first."""
    stream, at_s = [], 1_700_000_000
    for number in range(COMMITS):
        subject, path, data = a_change(chance, phases)
        at_s += chance.choice((0, 1, 40, 4_000))
        change = f"D {path}\n".encode() if data is None else (
            f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        )  # fmt: skip
        who = f"committer Ada <ada@example.org> {at_s} +0000\ndata {len(subject)}\n{subject}\n"
        stream.append(f"commit refs/heads/main\nmark :{number + 1}\n{who}".encode() + change)
    given = b"".join(stream)
    subprocess.run(["git", "-C", place, "fast-import", "--quiet"], input=given, check=True)
    listed = subprocess.run(
        ["git", "-C", place, "rev-list", "--reverse", "main"], check=True, capture_output=True, text=True
    )  # fmt: skip
    return listed.stdout.split()


def told(repository: Repository, commit: str, facts_reader: FactsReader) -> object:
    """Return all that is shown of a commit."""
    shown = board(facts_reader, commit)
    phases = [(one.facts, one.folded, one.waits, one.integration_checks) for one in shown.phases]
    observer = AgentsObserver(repository, load(repository.root), facts_reader)
    agents = [(one.outcomes, one.turns) for one in observer.read_phases(commit)]
    known = [loop_facts(facts_reader, one.facts, 0) for one in shown.phases]
    loops = [(one.versions, one.work) for one in known]
    return (
        shown.as_json(),
        phases,
        loops,
        agents,
        facts_reader.tasks_done(commit),
        facts_reader.steps_said(),
    )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_a_team_that_remembers_says_what_one_says_that_begins(place: Path, seed: int) -> None:
    chance = Random(seed)
    commits = a_history(place, chance)
    with Repository(str(place)) as repository:
        settings = load(repository.root)
        old = FactsReader(repository, settings)
        for commit in commits:
            asked = chance.choice(commits) if chance.random() < 0.1 else commit
            repository.git.run("update-ref", "refs/heads/main", asked)
            with Repository(str(place)) as its_own:
                heir = FactsReader(its_own, settings)
                kept = told(repository, asked, old)
                after = told(its_own, asked, heir)
            kept_readers._HELD.clear()
            fresh = told(repository, asked, FactsReader(repository, settings))
            assert without_time(kept) == without_time(fresh) == without_time(after), f"seed {seed}"
            if chance.random() < 0.7:
                chance.choice((old, heir)).hold()


def test_the_next_command_folds_nothing_that_the_last_one_has_folded(place: Path) -> None:
    *_, tip = a_history(place, Random(FIRST))

    def command() -> tuple[Phase, ...]:
        with Repository(str(place)) as repository:
            facts_reader = FactsReader(repository, load(repository.root))
            phases = facts_reader.phases(tip)
            facts_reader.hold()
        return phases

    folded = command()
    assert folded
    assert all(later is earlier for later, earlier in zip(command(), folded, strict=True))


def without_time(seen: object) -> object:
    """Return what was told without the moment of the commit, which nothing depends on that was kept."""
    shown, phases, *others = seen  # type: ignore[misc]
    facts = [(vars(one[0]) | {"at_s": 0, **dict.fromkeys(DERIVED)}, *one[1:]) for one in phases]
    return shown, facts, others


DERIVED = ("_valid_by_kind", "plans", "_answers", "asks_time")
"""What facts hold once somebody has asked."""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + HISTORIES))
def test_a_scan_that_begins_with_what_was_held_sees_what_one_sees_that_does_not(
    place: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = Random(seed)
    later = SimpleNamespace(**vars(time) | {"time_ns": lambda: time.time_ns() + 3_600 * 10**9})
    monkeypatch.setattr(kept_looks, "time", later)  # no file is too young to be believed
    commits = a_history(place, chance, PHASES[:1])
    subprocess.run(["git", "-C", place, "reset", "-q", "--hard"], check=True)
    with Repository(str(place)) as repository:
        settings = load(repository.root).without_patience
        for _ in range(8):
            held = shown(repository, settings)
            kept_looks._HELD.clear()
            reports._SHOWN.clear()
            assert held == shown(repository, settings), f"seed {seed}"
            with Scanner(repository, settings) as scanner:
                scanner.hold()
            shown(repository, settings)
            let_clock_go_on(place)
            a_turn(place, chance, commits)


def test_files_that_were_new_are_looked_at_once_more_and_then_no_more(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_history(place, Random(FIRST), PHASES[:1])
    subprocess.run(["git", "-C", place, "reset", "-q", "--hard"], check=True)
    answerer = Answerer(str(place))
    assert not answerer.follow(), "a file that was written just now may be written again unseen"
    later = SimpleNamespace(**vars(time) | {"time_ns": lambda: time.time_ns() + 3_600 * 10**9})
    monkeypatch.setattr(kept_looks, "time", later)
    assert answerer.follow()
    with Repository(str(place)) as repository, Scanner(repository, load(str(place))) as scanner:
        scan = scanner.scan_all()
        before = set(map(id, kept_looks._HELD[str(place), scanner._place[1]][0].values()))
    assert scan.seen
    assert set(map(id, scan.seen.values())) <= before, "nothing is read again"


def shown(repository: Repository, settings: Settings) -> object:
    """Return what a scan sees, and what a report shows of it."""
    with Scanner(repository, settings) as scanner:
        found = seen(scanner.scan_all())
    return found, report(repository, settings).candidates


def let_clock_go_on(place: Path) -> None:
    """Wait until a change has another time than all before."""
    held, probe = kept_looks._HELD, place / ".git/probe"
    ((looks, _),) = held.values()
    last_ns = max((one.seen.stamp.ctime_ns for one in looks.values() if one.seen.stamp), default=0)
    while probe_ns(probe) <= last_ns:
        pass


def probe_ns(probe: Path) -> int:
    probe.write_bytes(b"")
    return probe.stat().st_ctime_ns


def seen(scan: kept_looks.Scan) -> list[tuple[str, object, object]]:
    found = [(path, one.seen.verdict, one.seen.stamp) for path, one in scan.seen.items()]
    assert found == sorted(found, key=lambda one: one[0])
    return found


def a_turn(place: Path, chance: Random, commits: list[str]) -> None:
    """Change a file in place, keep its times, take it away, put a link there, stage another, or move the branch."""
    files = sorted(path for path in place.glob(".yolo-planning/**/*") if path.is_file())
    path = chance.choice(files)
    status = path.stat()
    match chance.randrange(8):
        case 0:
            path.write_bytes(path.read_bytes()[::-1])
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        case 1:
            path.unlink()
        case 2:
            path.unlink()
            path.symlink_to("/etc/hostname")
        case 3:
            path.write_bytes(path.read_bytes() + b"{}\n")
        case 4:
            other = subprocess.check_output(
                ["git", "-C", place, "hash-object", "-w", chance.choice(files)], text=True
            )
            entry = f"100644,{other.strip()},{path.relative_to(place)}"
            subprocess.run(
                ["git", "-C", place, "update-index", "--add", "--cacheinfo", entry], check=True
            )
        case 5:
            subprocess.run(["git", "-C", place, "reset", "-q", "--hard"], check=True)
        case _:
            subprocess.run(
                ["git", "-C", place, "reset", "-q", "--soft", chance.choice(commits)], check=True
            )
