"""Escalations in a real work tree: whole lines only, one for each silent level, whatever the clock and the others do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.clocks import START, Clock
from yolo_fs.core.ids import EscalationId, PhaseId
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.core.timestamps import Instant
from yolo_fs.escalation_service import command_hook
from yolo_fs.escalation_service.clock import read_clock
from yolo_fs.escalation_service.command_hook import CommandHook, HookCommand, load_command
from yolo_fs.escalation_service.moves import Escalations, MoveResult
from yolo_fs.escalation_service.ticking import AddedLine, Ticker
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.escalations.log import EscalationStage
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Role
from yolo_fs.schemas.check import check
from yolo_fs.schemas.lines.escalation import EscalationLine
from yolo_fs.schemas.messages.catalogue import read_message
from yolo_fs.system.in_place import appending
from yolo_fs.system.system import is_running
from yolo_fs.workspace.settings import load

ROOT = Path(__file__).parents[2]
found_name = EscalationId.parse("ESC-01-02-T3")
assert found_name is not None
NAME = found_name
PHASE = PhaseId("01", "auth")
BLOCKER = EscalationRequest("dev", "The gateway strips the path", evidence=("curl shows Path=/",), recommendation="Change it",
               task="01-02/T3")  # fmt: skip


class Office:
    """A work tree, a clock, and what was told."""

    def __init__(self, root: Path, config: Mapping[str, Any]) -> None:
        self.root = root
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        for pair in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            subprocess.run(["git", "-C", str(root), "config", *pair], check=True)
        self.folder = root / ".yolo-planning/phases/01-auth"
        self.folder.mkdir(parents=True)
        (root / ".yolo-planning/config.json").write_text(json.dumps(config))
        self.repository = Repository(str(root))
        os.makedirs(self.repository.own_dir, exist_ok=True)
        self.clock = Clock()
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.heard: list[str] = []
        self.service = Escalations(self.repository, load(str(root)), self.clock)
        self.restart()

    def restart(self) -> None:
        self.ticker = Ticker(
            self.repository,
            load(str(self.root)),
            lambda event, _, data: self.told.append((event, data)),
            clock=self.clock,
            notify=lambda one, _: self.heard.append(f"{one.agent} {one.standing}"),
        )

    @property
    def log(self) -> Path:
        return self.folder / "escalation.jsonl"

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def after(self, seconds: float) -> tuple[AddedLine, ...]:
        self.clock.passes(seconds)
        return self.ticker.tick()

    def holder(self) -> str:
        (one,), _ = self.service.list(PHASE)
        return one.agent

    def says(self, agent: str, **said: Any) -> MoveResult:
        self.clock.passes(1)
        return self.service.resolve(NAME, EscalationRequest(agent, **said))

    def raises(self, agent: str, *options: str) -> MoveResult:
        self.clock.passes(1)
        said = EscalationRequest(
            agent, "beyond me", evidence=("seen",), recommendation="decide", options=options
        )
        return self.service.raise_(NAME, said)

    def commit(self, subject: str) -> str:
        date = {
            "GIT_COMMITTER_DATE": self.clock.now.wall.isoformat(),
            "GIT_AUTHOR_DATE": self.clock.now.wall.isoformat(),
        }
        command = ["git", "-C", str(self.root), "commit", "-q", "--allow-empty", "-m", subject]
        subprocess.run(command, check=True, env={**os.environ, **date})
        return subprocess.run(["git", "-C", str(self.root), "rev-parse", "HEAD"], check=True, capture_output=True,
                              text=True).stdout.strip()  # fmt: skip


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Office]]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    made: list[Office] = []

    def make(**config: Any) -> Office:
        made.append(Office(tmp_path / "work tree", config))
        return made[-1]

    yield make
    for one in made:
        one.repository.close()


# --- silence ---


@pytest.mark.proves("002:184", "000:347")
def test_silent_levels_are_handed_up_one_by_one_until_the_user_has_it(
    office: Callable[..., Office],
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    assert place.after(300) == ()
    for level, above in (("senior", "lead"), ("lead", "architect"), ("architect", "user")):
        (fired,) = place.after(1)
        assert (fired.line["agent"], fired.line["tgt"], fired.line["mv"]) == (
            level,
            above,
            "timeout",
        )
        assert fired.warning is not None and read_message(fired.warning)[1] == ()
        assert place.after(300) == ()
    assert place.after(10**7) == ()
    assert place.heard == ["lead rising", "architect rising", "user rising"]
    assert not any(check(EscalationLine, line)[1] for line in place.lines())


def test_a_level_has_its_full_time_although_nobody_wrote_the_report(
    office: Callable[..., Office],
) -> None:
    place = office()
    line = {"id": str(NAME), "dt": "2026-02-19T11:00:00Z", "agent": "dev", "reason": "r", "sb": "s", "tgt": "senior",
            "sev": "blocking", "st": "escalated"}  # fmt: skip
    place.log.write_text(json.dumps(line) + "\n")
    place.ticker.tick()
    assert [fired.line["agent"] for fired in place.after(301)] == ["senior"]
    assert place.after(299) == ()
    assert [fired.line["agent"] for fired in place.after(2)] == ["lead"]


def test_owner_stands_between_architect_and_user_in_a_company(
    office: Callable[..., Office],
) -> None:
    place = office(departments={"frontend": True}, department_workflow="parallel")
    (place.folder / "fe-01-02.plan.jsonl").write_text("")
    place.service.open(BLOCKER._replace(agent="fe-dev"))
    place.ticker.tick()
    assert [place.after(301)[0].line["tgt"] for _ in range(4)] == [
        "fe-lead",
        "fe-architect",
        "owner",
        "user",
    ]


def test_architect_is_reminded_where_nobody_above_is_to_be_asked(
    office: Callable[..., Office],
) -> None:
    place = office(escalation={"auto_owner_on_timeout": False})
    place.service.open(BLOCKER)
    for _ in range(2):
        place.ticker.tick()
        place.after(301)
    (fired,) = place.after(301)
    assert (fired.line["agent"], fired.line["tgt"], fired.line["mv"]) == (
        "lead",
        "architect",
        "remind",
    )
    assert place.after(10**6) == () and place.holder() == "architect"


def test_set_clock_changes_nothing(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    for jump_s in (3600, -7200, 315_360_000, -630_720_000):
        place.clock.is_set(jump_s)
        assert place.after(70) == ()
    (fired,) = place.after(21)
    assert fired.line["reason"] == "senior was silent for 301 s"


def test_while_the_machine_sleeps_nobody_is_silent(
    office: Callable[..., Office], monkeypatch: pytest.MonkeyPatch
) -> None:
    awake_s = asleep_s = 0.0

    def as_the_kernel_counts(number: int) -> float:
        counts_sleep = number == getattr(time, "CLOCK_BOOTTIME", None)
        return 1000 + awake_s + (asleep_s if counts_sleep else 0)

    def now() -> Instant:
        wall = START + timedelta(seconds=awake_s + asleep_s)
        return read_clock()._replace(wall=wall)

    place = office()
    place.service.open(BLOCKER)
    monkeypatch.setattr(time, "clock_gettime", as_the_kernel_counts)
    place.ticker = Ticker(place.repository, load(str(place.root)), lambda *_: None, clock=now)
    place.ticker.tick()
    awake_s, asleep_s = 200, 3600
    assert place.ticker.tick() == ()
    place.ticker = Ticker(place.repository, load(str(place.root)), lambda *_: None, clock=now)
    awake_s = 300
    assert place.ticker.tick() == (), "a restart does not count it either"
    awake_s = 301
    (fired,) = place.ticker.tick()
    assert fired.line["reason"] == "senior was silent for 301 s"


def test_restart_forgets_no_second(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    place.after(200)
    place.clock.is_set(-86_400)
    place.restart()
    assert place.after(100) == ()
    place.restart()
    assert len(place.after(1)) == 1
    place.restart()
    assert place.after(1) == () and place.heard == ["lead rising"]


def test_without_what_was_kept_the_log_counts(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    os.unlink(os.path.join(place.repository.own_dir, "state.db"))
    place.clock.now = place.clock.now._replace(boot="another", steady_s=1.0)
    place.restart()
    assert place.after(299) == ()
    assert len(place.after(2)) == 1


def test_where_boots_have_no_name_what_was_kept_of_an_earlier_one_does_not_count(
    office: Callable[..., Office],
) -> None:
    place = office()
    place.clock.now = place.clock.now._replace(boot="")
    place.service.open(BLOCKER)
    place.ticker.tick()
    place.clock.now = place.clock.now._replace(steady_s=1.0)
    place.restart()
    assert place.after(299) == ()
    assert len(place.after(2)) == 1


def test_wrong_moment_is_told_once_and_fires_once(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.log.write_text(
        place.log.read_text().replace("2026-02-19T11:00:00.000000Z", "2036-02-19T11:00:00")
    )
    os.utime(place.log, (START.timestamp(), START.timestamp()))
    place.ticker.tick()
    place.after(1)
    assert [data["reason"] for event, data in place.told if event == "escalation.finding"] == [
        "bad_format"
    ]
    assert len(place.after(301)) == 1 and place.holder() == "lead"


def test_torn_execution_state_loses_no_escalation(office: Callable[..., Office]) -> None:
    place = office()
    entry = {"id": str(NAME), "task": "01-02/T3", "plan": "01-02", "severity": "major", "status": "pending",
             "level": "senior", "escalated_at": "2026-02-19T11:00:00Z", "last_escalated_at": "2026-02-19T11:00:00Z"}  # fmt: skip
    state = place.folder / ".execution-state.json"
    state.write_text(json.dumps({"phase": 1, "escalations": [entry]}))
    place.ticker.tick()
    state.write_text('{"phase": 1, "escal')
    assert place.after(200) == ()
    assert {event for event, _ in place.told} == {"escalation.finding"}
    (fired,) = place.after(101)
    assert fired.line["tgt"] == "lead" and place.lines() == [fired.line]


def test_torn_line_is_not_continued_and_the_level_is_handed_up_once_it_is_whole(
    office: Callable[..., Office],
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    whole = place.log.read_bytes()
    place.log.write_bytes(whole + b'{"id":"ESC-01-0')
    assert place.after(301) == () and place.after(1) == ()
    assert [data["reason"] for event, data in place.told if event == "escalation.trouble"] == [
        "unterminated"
    ]
    place.log.write_bytes(whole)
    assert len(place.after(1)) == 1


def test_idle_tick_reads_nothing_and_writes_nothing(office: Callable[..., Office]) -> None:
    place = office()
    place.ticker.tick()
    before = sorted(os.listdir(place.repository.own_dir)), sorted(os.listdir(place.folder))
    assert all(place.after(1) == () for _ in range(100))
    assert (
        sorted(os.listdir(place.repository.own_dir)),
        sorted(os.listdir(place.folder)),
    ) == before
    assert place.told == []


def test_many_processes_that_tick_at_once_hand_up_once(office: Callable[..., Office]) -> None:
    place = office(escalation={"timeout_seconds": 1000})
    place.clock.now = place.clock.now._replace(wall=datetime.now(UTC) - timedelta(seconds=1001))
    place.service.open(BLOCKER)
    command = [sys.executable, "-m", "yolo_fs", "escalate", "tick", "--json", "-C", str(place.root)]
    ticks = [
        subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=os.environ)
        for _ in range(8)
    ]
    said = [json.loads(tick.communicate(timeout=60)[0])["data"] for tick in ticks]
    assert sum(map(len, said)) == 1
    assert [line["st"] for line in place.lines()] == ["open", "escalated"]


@pytest.mark.parametrize("reading", [1, 2, 3, 4])
def test_whoever_ticks_between_the_look_and_the_lock_has_handed_it_up(
    office: Callable[..., Office], reading: int
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.ticker.tick()
    place.clock.passes(301)
    read = 0

    def clock() -> Instant:
        nonlocal read
        read += 1
        if read == reading:
            place.ticker.tick()
        return place.clock()

    late = Ticker(place.repository, load(str(place.root)), lambda *_: None, clock=clock)
    assert late.tick() == ()
    assert [line["st"] for line in place.lines()] == ["open", "escalated"]


# --- moves ---


@pytest.mark.proves("002:182")
def test_round_trip_ends_when_a_commit_carries_the_task_on(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    steps = [place.raises("senior"), place.raises("lead"), place.raises("architect", "Path /", "Strip it"),
             place.says("user", decision="Path /", reason="cheaper", instructions=("Set Path=/",)),
             place.says("architect"), place.says("lead"), place.says("senior")]  # fmt: skip
    assert not any(done.findings for done in steps)
    place.clock.passes(1)
    assert place.ticker.tick() == () and place.holder() == "dev"
    place.commit("docs(01): something else")
    assert place.ticker.tick() == ()
    oid = place.commit("fix(01-02): resolve blocker of the gateway")
    (fired,) = place.ticker.tick()
    assert fired.line["st"] == "resolved" and oid.startswith(fired.line["ref"])
    assert fired.line["res"] == "Path /" and place.ticker.tick() == ()


def test_reminded_dev_who_had_gone_on_is_believed(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    place.ticker.tick()
    (reminder,) = place.after(301)
    assert (reminder.line["agent"], reminder.line["tgt"]) == ("senior", "dev")
    place.clock.passes(-200)
    place.commit("feat(01-02): T3 set the path")
    place.clock.passes(200)
    (fired,) = place.ticker.tick()
    assert fired.line["st"] == "resolved"


def test_a_commit_upon_the_decision_carries_the_task_on_whatever_its_clock_says(
    office: Callable[..., Office],
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    subprocess.run(["git", "-C", str(place.root), "add", "-A"], check=True)
    place.commit("docs(01): escalation")
    place.clock.passes(-3600)
    place.commit("feat(01-02): T3 set the path")
    place.commit("docs(01): something else")
    place.clock.passes(3600)
    (fired,) = place.ticker.tick()
    assert fired.line["st"] == "resolved"


def test_a_clone_without_trees_goes_by_the_clocks_of_commits(
    office: Callable[..., Office], tmp_path: Path
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    git = ("git", "-C", str(place.root))
    subprocess.run([*git, "add", "-A"], check=True)
    place.commit("docs(01): escalation")
    place.clock.passes(-3600)
    place.commit("feat(01-02): T3 set the path")
    (place.root / "other.txt").write_text("other\n")
    subprocess.run([*git, "add", "-A"], check=True)
    place.commit("docs(01): something else")
    place.clock.passes(3600)
    subprocess.run([*git, "config", "uploadpack.allowFilter", "true"], check=True)
    clone = tmp_path / "clone"
    words = ["clone", "-q", "--filter=tree:0", place.root.as_uri(), str(clone)]
    subprocess.run(["git", *words], check=True)
    with Repository(str(clone)) as repository:
        ticker = Ticker(
            repository, load(str(clone)), lambda *_: None, clock=place.clock, notify=lambda *_: None
        )
        assert ticker.tick() == ()


def test_commit_from_before_the_decision_resumes_nothing(office: Callable[..., Office]) -> None:
    place = office()
    place.commit("feat(01-02): T3 a first try")
    place.clock.passes(5)
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    assert place.ticker.tick() == ()


def test_dev_progress_ends_it_and_a_hash_that_is_none_does_not(
    office: Callable[..., Office],
) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    refused = place.says("dev", shown_by="abc1234")
    assert [finding.reason for finding in refused.findings] == [Reason.UNKNOWN_COMMIT]
    done = place.says("dev", shown_by="dev_progress: partial")
    assert done.progress is not None and done.progress.standing is EscalationStage.RESOLVED


def test_repeated_command_is_logged_once(office: Callable[..., Office]) -> None:
    place = office()
    assert not place.service.open(BLOCKER).already
    assert place.service.open(BLOCKER).already
    place.raises("senior")
    assert place.raises("senior").already and len(place.lines()) == 2


@pytest.mark.proves("002:184")
def test_round_trips_that_are_used_up_stop_the_work_with_a_report(
    office: Callable[..., Office],
) -> None:
    place = office(escalation={"max_round_trips": 1})
    place.service.open(BLOCKER)
    place.says("senior", decision="Path /")
    place.clock.passes(1)
    done = place.service.open(BLOCKER._replace(reason="It still strips it"))
    assert done.progress is not None and done.progress.standing is EscalationStage.STOPPED
    assert not done.is_refused and "Only the user's decision ends it" in done.findings[0].hint
    assert place.raises("senior").is_refused and place.after(10**6) == ()
    assert place.heard[-1] == "user stopped"
    assert (
        place.says("user", decision="Drop the task").progress is not None
        and place.holder() == "architect"
    )


@pytest.mark.proves("002:114")
def test_security_fail_goes_past_the_chain_only_with_an_audit_that_fails(
    office: Callable[..., Office],
) -> None:
    place = office()
    fail = BLOCKER._replace(agent="security", fails=True)
    assert [finding.reason for finding in place.service.open(fail).findings] == [Reason.WRONG_LEVEL]
    (place.folder / "security-audit.jsonl").write_text('{"r":"FAIL"}\n')
    done = place.service.open(fail)
    assert done.progress is not None and done.progress.holder is Role.USER


@pytest.mark.parametrize(
    "said, reason",
    [
        (EscalationRequest("senior", "no idea", recommendation="decide"), Reason.MISSING_KEY),
        (EscalationRequest("senior", "no idea", evidence=("seen",)), Reason.MISSING_KEY),
        (
            EscalationRequest("lead", "no idea", evidence=("seen",), recommendation="decide"),
            Reason.WRONG_LEVEL,
        ),
        (
            EscalationRequest("janitor", "no idea", evidence=("seen",), recommendation="decide"),
            Reason.UNKNOWN_NAME,
        ),
    ],
)
def test_refused_raise_leaves_the_log_alone(
    office: Callable[..., Office], said: EscalationRequest, reason: Reason
) -> None:
    place = office()
    place.service.open(BLOCKER)
    done = place.service.raise_(NAME, said)
    assert done.findings[0].reason is reason and len(place.lines()) == 1
    assert done.findings[0].path == ".yolo-planning/phases/01-auth/escalation.jsonl"


@pytest.mark.proves("002:162")
def test_architect_owes_two_or_three_options(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.raises("senior"), place.raises("lead")
    assert place.raises("architect").is_refused and place.raises("architect", "one").is_refused
    assert place.raises("architect", "a", "b", "c", "d").is_refused
    assert not place.raises("architect", "a", "b").is_refused


def test_moments_rise_although_the_clock_is_set_back(office: Callable[..., Office]) -> None:
    place = office()
    place.service.open(BLOCKER)
    place.clock.is_set(-3600)
    place.raises("senior")
    first, second = (line["dt"] for line in place.lines())
    assert first < second


# --- the log ---


def test_whole_line_that_lacks_its_newline_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}')
    with appending(str(path)) as log:
        log.add(b'{"b":2}')
    assert path.read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_full_disk_leaves_no_torn_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"a":1}\n')
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with appending(str(path)) as log, pytest.raises(YoloError) as refused:
        log.add(b'{"b":2}')
    assert refused.value.reason is Reason.NO_SPACE and path.read_bytes() == b'{"a":1}\n'


def test_lock_that_is_held_names_its_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    with appending(path), pytest.raises(YoloError) as refused, appending(path, timeout_s=0.02):
        pass
    assert refused.value.reason is Reason.LOCK_TIMEOUT


def test_log_that_is_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(YoloError) as refused, appending(str(tmp_path / "log.jsonl")):
        pass
    assert refused.value.reason is Reason.NOT_REGULAR


# --- people ---


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody has been told anything yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def _note(place: Office, hook: CommandHook) -> None:
    place.service.open(BLOCKER)
    (one,), _ = place.service.list(PHASE)
    hook.notify(one, PHASE)
    hook.close()


def test_command_of_the_user_reads_what_happened(
    office: Callable[..., Office], tmp_path: Path
) -> None:
    place, out = office(), tmp_path / "out"
    command = (
        sys.executable,
        "-c",
        "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())",
        str(out),
    )
    _note(place, CommandHook(HookCommand(command), lambda *_: None))
    (note,) = json.loads(out.read_text())["notes"]
    assert note["id"] == str(NAME) and note["issue"] == "The gateway strips the path"


@pytest.mark.parametrize(
    "command", [("/nowhere/at/all",), (sys.executable, "-c", "raise SystemExit(3)")]
)
def test_command_that_fails_is_told_and_stops_nothing(
    office: Callable[..., Office], command: tuple[str, ...]
) -> None:
    failed: list[str] = []
    _note(office(), CommandHook(HookCommand(command), lambda event, *_: failed.append(event)))
    assert failed == ["sink.failed"]


def test_relative_path_names_no_program_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    repository, own = tmp_path / "repository", tmp_path / "config/yolo-fs"
    for folder in (repository, own):
        folder.mkdir(parents=True)
        (folder / "tell").write_text('#!/bin/sh\ntouch "$0-was-run"\n')
        (folder / "tell").chmod(0o755)
    (own / "config.json").write_text(json.dumps({"sinks": {"command": ["./tell"]}}))
    monkeypatch.chdir(repository)
    hook = CommandHook(load_command(), lambda *_: None)
    hook.put({"title": "first"})
    hook.close()
    assert not (repository / "tell-was-run").exists()
    assert (own / "tell-was-run").exists()


COUNTS = "import json, sys; open(sys.argv[1], 'a').write(json.load(sys.stdin)['title'] + '\\n')"


def _hook(out: Path) -> CommandHook:
    return CommandHook(HookCommand((sys.executable, "-c", COUNTS, str(out))), lambda *_: None)


def test_the_daemons_of_two_work_trees_tell_their_user_once(
    office: Callable[..., Office], tmp_path: Path
) -> None:
    place, out = office(), tmp_path / "out"
    place.service.open(BLOCKER)
    (one,), _ = place.service.list(PHASE)
    last = one.history[-1]._replace(dt="2026-02-18T11:00:00Z")
    elsewhere = one._replace(history=(*one.history, last))
    for said in (one, elsewhere, one, elsewhere):
        hook = _hook(out)
        hook.notify(said, PHASE)
        hook.close()
    assert out.read_text().count("is asked") == 2


@pytest.mark.parametrize("harm", ["a file is in the way", "it is damaged"])
def test_who_cannot_remember_what_was_told_tells_it(
    office: Callable[..., Office], own_state: Path, tmp_path: Path, harm: str
) -> None:
    if harm == "it is damaged":
        (own_state / "yolo-fs").mkdir(parents=True)
        (own_state / "yolo-fs/told.json").write_text('{"told": {')
    else:
        own_state.write_text("no folder")
    out = tmp_path / "out"
    _note(office(), _hook(out))
    assert out.read_text().count("is asked") == 1


WAITS = """\
import os, sys, time
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
open(sys.argv[2], "a").write(sys.stdin.read() + "\\n")
"""


def test_what_comes_while_the_command_runs_is_told_together(tmp_path: Path) -> None:
    go, out = tmp_path / "go", tmp_path / "out"
    command = (sys.executable, "-c", WAITS, str(go), str(out))
    hook = CommandHook(HookCommand(command), lambda *_: None)

    for title in ("first", "second", "third"):
        hook.put({"title": title})
    go.touch()
    hook.close()

    messages = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one["title"], one["count"]) for one in messages] == [
        ("first", 1), ("2 escalations need you", 2),
    ]  # fmt: skip


def test_a_command_that_does_not_end_is_ended_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_hook, "TIMEOUT_S", 0.05)
    failed: list[Mapping[str, Any]] = []
    command = HookCommand((sys.executable, "-c", "import time; time.sleep(60)"))
    hook = CommandHook(command, lambda _event, _path, data: failed.append(data))
    hook.put({"title": "first"})
    hook.close()
    assert ["did not end" in one["what"] for one in failed] == [True]


LEAVES = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1] + ".new", "w") as file: file.write(str(child.pid))
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""
ASKS = """\
import os, sys
from yolo_fs.escalation_service.command_hook import CommandHook, HookCommand
CommandHook(HookCommand(tuple(sys.argv[2:])), lambda *_: None).put({"title": "first"})
while not os.path.exists(sys.argv[1]): pass
os.kill(os.getpid(), 9)
"""


def _wait_for_end(pid: int) -> None:
    while is_running(pid):
        time.sleep(0.01)


def test_nothing_of_a_command_outlives_the_process_that_was_killed_over_it(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    command = (sys.executable, "-c", LEAVES + "time.sleep(600)", str(noted))
    killed = subprocess.run([sys.executable, "-c", ASKS, str(noted), *command], check=False)
    assert killed.returncode == -signal.SIGKILL
    _wait_for_end(int(noted.read_text()))


def test_nothing_of_a_command_that_does_not_end_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noted = tmp_path / "pid"
    command = (sys.executable, "-c", LEAVES + "time.sleep(600)", str(noted))
    hook = CommandHook(HookCommand(command), lambda *_: None)
    hook.put({"title": "first"})
    while not noted.exists():
        time.sleep(0.01)
    monkeypatch.setattr(command_hook, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(hook, "_ends_at", 0.0)
    hook.look()
    _wait_for_end(int(noted.read_text()))


def test_what_a_command_that_ended_left_in_the_background_goes_on(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    hook = CommandHook(HookCommand((sys.executable, "-c", LEAVES, str(noted))), lambda *_: None)
    hook.put({"title": "first"})
    hook.close()
    left = int(noted.read_text())
    assert is_running(left)
    os.kill(left, signal.SIGKILL)


def test_only_the_user_names_a_command_and_what_is_read_no_more_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_command() == HookCommand()
    (tmp_path / "yolo-fs").mkdir()
    section = {"command": ["notify"], "webhook": "https://example.org", "every_s": 10}
    (tmp_path / "yolo-fs/config.json").write_text(json.dumps({"sinks": section}))
    said = load_command()
    assert said.words == ("notify",)
    assert [(one.reason, one.at) for one in said.findings] == [
        (Reason.UNKNOWN_KEY, "/sinks/webhook"), (Reason.UNKNOWN_KEY, "/sinks/every_s"),
    ]  # fmt: skip
    events: list[str] = []
    CommandHook(said, lambda event, *_: events.append(event))
    assert events == ["config.rejected", "config.rejected"]


@pytest.mark.parametrize("words", [["notify", "a\0b"], ["notify", ""], ["notify", 1], [], "notify"])
def test_a_command_that_validate_refuses_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: object
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "yolo-fs").mkdir()
    (tmp_path / "yolo-fs/config.json").write_text(json.dumps({"sinks": {"command": words}}))
    assert load_command().words == ()


@pytest.mark.parametrize("target", ["/nowhere", "/etc/hostname"])
def test_a_link_that_comes_where_no_log_was_is_told(
    office: Callable[..., Office], target: str
) -> None:
    made = office()
    made.after(1)
    assert made.told == []
    (made.folder / "escalation.jsonl").symlink_to(target)
    made.after(1)
    assert [said["reason"] for _, said in made.told] == [Reason.NOT_REGULAR]
