"""Handing over on real git: a receiver goes on only where everything agrees, and a packet is written whole or not at all."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from yolo_fs.artifacts.verdicts import Accepted, Rejected
from yolo_fs.checking.validate import Validator
from yolo_fs.cli import hook_fast
from yolo_fs.core.reasons import Level, Reason, YoloError, errors
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs, ReceivedHandoff
from yolo_fs.handoff_service.write import EmittedHandoff, emit
from yolo_fs.phase.report import as_text
from yolo_fs.reports.resume import resume
from yolo_fs.scanning.pipeline import Pipeline
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.system import IS_LINUX
from yolo_fs.workspace.settings import Settings

GUID = "4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"
SESSION = f"apps/web/.local/directives/{GUID}"
HANDOFF = f"{SESSION}/HANDOFF.md"
README = f"{SESSION}/README.md"
READING = "apps/web/docs/guides/component-paradigm.md"
BRANCH = "directive/login"
SETTINGS = Settings(Config(), Policy())
OF_AUDITOR = {"from_role": "auditor", "trigger": "auditor_ultra_open"}
GIVEN = {
    "from_role": "architect",
    "to_role": "executor",
    "trigger": "architect_ultra_detected",
    "session_id": GUID,
    "task_file": "tasks/02.md",
    "objective": "Build the form: now",
    "blocking_rule": "architects write no code",
}


class Team:
    """A repository with one directive session, and what its roles do."""

    def __init__(self, root: Path):
        self.root = root
        self.git("init", "-q", "-b", BRANCH)
        self.write(READING, "# Components\n")
        self.write(
            README,
            f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n---\n\n# Login\n",
        )
        self.write(f"{SESSION}/tasks/02.md", "# Form\n")
        self.commit("architect", "start")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)

    def commit(self, author: str, subject: str, *trailers: str) -> None:
        self.git("add", "-A")
        self.git(
            "-c", f"user.name={author}", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty",
            "-m", subject, *(part for trailer in trailers for part in ("--trailer", trailer)),
        )  # fmt: skip

    def emit(self, **changes: str) -> EmittedHandoff:
        with Repository(str(self.root)) as repository:
            return emit(repository, SETTINGS, GIVEN | changes)

    def check(
        self, path: str = HANDOFF, receiver: str = "", now: datetime | None = None
    ) -> ReceivedHandoff:
        with Repository(str(self.root)) as repository:
            handoffs = DirectiveHandoffs(repository, SETTINGS)
            return handoffs.check(handoffs.sessions.open(path), now or datetime.now(UTC), receiver)

    def later_work(self) -> list[tuple[str, Level]]:
        with Repository(str(self.root)) as repository:
            return [
                (f.path, f.level)
                for f in DirectiveHandoffs(repository, SETTINGS).later_work(self.check())
            ]

    def change(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return Team(tmp_path)


def told(handed: ReceivedHandoff | EmittedHandoff) -> list[tuple[Reason, str, str]]:
    return [(finding.reason, finding.path, finding.at) for finding in errors(handed.findings)]


# --- taking over -----------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:75", "001:78", "001:76")
def test_receiver_is_told_what_it_is_and_where_it_goes_on(team: Team) -> None:
    team.emit()
    handed = team.check()
    assert (handed.is_accepted, handed.findings) == (True, ())
    assert handed.packet is not None
    assert (handed.role, handed.packet.required_reading) == ("executor", READING)
    assert (handed.session_file, handed.task_file) == (README, "tasks/02.md")


def test_receiver_on_another_branch_stops_until_it_switches(team: Team) -> None:
    team.emit()
    team.git("switch", "-q", "-c", "main")
    handed = team.check()
    assert (handed.role, told(handed)) == (
        "",
        [(Reason.BRANCH_MISMATCH, HANDOFF, "/handoff/directive_branch")],
    )
    assert (handed.findings[0].line, f"git switch {BRANCH}" in handed.findings[0].hint) == (8, True)
    assert f"'status: archived' in meta of {README}" in handed.findings[0].hint
    assert handed.mender == "executor"
    (team.root / ".yolo-planning").mkdir(exist_ok=True)
    assert "executor has to fix it" in as_text(resume(str(team.root)))
    team.git("switch", "-q", BRANCH)
    assert team.check().role == "executor"


def test_a_branch_that_is_gone_is_named_anew_by_the_sender_and_nobody_is_sent_there(
    team: Team,
) -> None:
    team.emit()
    team.git("branch", "-m", "directive/renamed")
    handed = team.check()
    assert (handed.role, handed.mender) == ("", "architect")
    hint = handed.findings[0].hint
    assert hint.startswith("No branch has that name: ") and "git switch" not in hint
    team.git("update-ref", f"refs/remotes/origin/{BRANCH}", "HEAD")
    assert f"git switch {BRANCH}" in team.check().findings[0].hint


def test_what_the_sender_wrote_wrong_the_sender_mends_wherever_the_receiver_stands(
    team: Team,
) -> None:
    team.emit()
    team.change(HANDOFF, "tasks/02.md", "tasks/99.md")
    assert team.check().mender == "architect"
    team.git("switch", "-q", "-c", "main")
    assert team.check().mender == "architect"


def test_what_a_squash_merge_brought_in_lets_everybody_go_on_once_its_session_is_archived(
    team: Team,
) -> None:
    team.emit()
    team.git("add", "-A")
    team.git("commit", "-qm", "feat: work")
    team.git("switch", "-q", "--orphan", "main")
    team.git("read-tree", "-u", "--reset", BRANCH)
    team.git("commit", "-qm", "feat: the work of the session, squashed")
    assert "status: archived" in team.check().findings[0].hint
    team.change(README, "meta:\n", "meta:\n  status: archived\n")
    assert team.check().over


def test_detached_head_is_no_branch(team: Team) -> None:
    team.emit()
    team.git("switch", "-q", "--detach")
    assert told(team.check()) == [(Reason.BRANCH_MISMATCH, HANDOFF, "/handoff/directive_branch")]


@pytest.mark.proves("001:30", "001:61c")
@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        (README, BRANCH, "main", (Reason.BRANCH_MISMATCH, HANDOFF, "/handoff/directive_branch")),
        (
            README,
            "  directive_branch",
            "  branch",
            (Reason.MISSING_KEY, README, "/meta/directive_branch"),
        ),
        (README, BRANCH, f"&a {BRANCH}", (Reason.YAML_FEATURE, README, "/meta/directive_branch")),
        (
            README,
            BRANCH,
            f"x\n  directive_branch: {BRANCH}",
            (Reason.DUPLICATE_KEY, README, "/meta/directive_branch"),
        ),
        (
            HANDOFF,
            "tasks/02.md",
            "tasks/03.md",
            (Reason.FILE_MISSING, HANDOFF, "/handoff/task_file"),
        ),
        (HANDOFF, "tasks/02.md", "tasks", (Reason.FILE_MISSING, HANDOFF, "/handoff/task_file")),
        (
            HANDOFF,
            GUID,
            GUID.replace("4", "5"),
            (Reason.NAME_MISMATCH, HANDOFF, "/handoff/session_id"),
        ),
        (
            HANDOFF,
            "to_role: executor",
            "to_role: pair",
            (Reason.STATE_CONFLICT, HANDOFF, "/handoff/trigger"),
        ),
        (
            HANDOFF,
            READING,
            "docs/x.md",
            (Reason.FILE_MISSING, HANDOFF, "/handoff/required_reading"),
        ),
        (
            HANDOFF,
            "  objective: 'Build the form: now'\n",
            "",
            (Reason.MISSING_KEY, HANDOFF, "/handoff/objective"),
        ),
        (
            HANDOFF,
            "trigger: ",
            "trigger: !!str ",
            (Reason.YAML_FEATURE, HANDOFF, "/handoff/trigger"),
        ),
    ],
)
def test_what_does_not_agree_stops_the_receiver(
    team: Team, path: str, old: str, new: str, expected: tuple[Reason, str, str]
) -> None:
    team.emit()
    team.change(path, old, new)
    handed = team.check()
    assert not handed.is_accepted
    assert told(handed)[0] == expected


@pytest.mark.proves("001:22")
def test_files_that_are_gone_stop_the_receiver(team: Team) -> None:
    team.emit()
    (team.root / README).unlink()
    (team.root / READING).unlink()
    assert told(team.check()) == [
        (Reason.FILE_MISSING, README, ""),
        (Reason.FILE_MISSING, HANDOFF, "/handoff/required_reading"),
    ]
    (team.root / HANDOFF).unlink()
    assert told(team.check()) == [(Reason.FILE_MISSING, HANDOFF, "")]


def test_reading_behind_a_link_does_not_count(
    team: Team, tmp_path_factory: pytest.TempPathFactory
) -> None:
    team.emit()
    outside = tmp_path_factory.mktemp("outside") / "paradigm.md"
    outside.write_text("elsewhere")
    (team.root / READING).unlink()
    (team.root / READING).symlink_to(outside)
    assert told(team.check()) == [(Reason.FILE_MISSING, HANDOFF, "/handoff/required_reading")]


def test_handoff_from_the_future_is_refused(team: Team) -> None:
    team.emit()
    assert told(team.check(now=datetime(2020, 1, 1, tzinfo=UTC))) == [
        (Reason.OUT_OF_RANGE, HANDOFF, "/handoff")
    ]


def test_handoff_for_somebody_else_is_none(team: Team) -> None:
    team.emit()
    assert told(team.check(receiver="pair")) == [
        (Reason.STATE_CONFLICT, HANDOFF, "/handoff/to_role")
    ]
    assert told(team.check(receiver="architect")) == [
        (Reason.DISCRETIONARY_WORK, HANDOFF, "/handoff/from_role")
    ]


def test_session_is_found_by_its_id_whatever_the_letters(team: Team) -> None:
    text = team.emit(session_id=GUID.upper()).text
    team.write("chat.txt", text)
    assert team.check("chat.txt").session_file == README
    team.write("chat.txt", text.replace("4F1D", "0000"))
    assert told(team.check("chat.txt"))[0] == (Reason.UNKNOWN_REFERENCE, "chat.txt", "/session_id")


@pytest.mark.skipif(not IS_LINUX, reason="only a lease tells that a process has a file open")
def test_file_that_is_being_written_is_looked_at_again(team: Team) -> None:
    team.emit()
    with (team.root / HANDOFF).open("ab"):
        assert told(team.check()) == [(Reason.BEING_WRITTEN, HANDOFF, "")]
    assert team.check().is_accepted


# --- editing ---------------------------------------------------------------------------------------------------------


def may_edit(team: Team, **options: str) -> list[Reason] | None:
    """Return why not, or None for yes."""
    with Repository(str(team.root)) as repository:
        answer = DirectiveHandoffs(repository, SETTINGS).may_edit(datetime.now(UTC), **options)
    return None if answer.allowed else [finding.reason for finding in answer.findings]


def test_edits_are_free_where_nothing_was_handed_over(team: Team) -> None:
    assert may_edit(team) is None


@pytest.mark.proves("001:61a")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_no_handoff_for_its_executor(
    team: Team, make: Callable[[Path], None]
) -> None:
    make(team.root / HANDOFF)
    assert may_edit(team, receiver="executor") in ([Reason.FILE_MISSING], [Reason.NOT_REGULAR])
    with Repository(str(team.root)) as repository:
        due = DirectiveHandoffs(repository, SETTINGS).due()
    assert due == ((HANDOFF,) if make is os.mkdir else ())


@pytest.mark.proves("001:61b", "001:61c")
def test_edits_are_denied_until_the_handoff_is_mended(team: Team) -> None:
    team.emit()
    team.change(HANDOFF, "executor", "reviewer")
    assert may_edit(team) == [Reason.UNKNOWN_VALUE]
    assert may_edit(team, editing="src/a.ts") == [Reason.UNKNOWN_VALUE]
    assert may_edit(team, editing=HANDOFF) is None
    team.change(HANDOFF, "reviewer", "executor")
    assert may_edit(team) is None
    assert may_edit(team, receiver="architect") == [Reason.DISCRETIONARY_WORK]


@pytest.mark.proves("001:73")
def test_latest_handoff_of_several_decides(team: Team) -> None:
    team.emit()
    team.write(".yolo-planning/HANDOFF.md", "no front matter\n")
    os.utime(team.root / HANDOFF, ns=(1, 1))
    assert may_edit(team) == [Reason.FRONT_MATTER_MISSING]
    os.utime(team.root / ".yolo-planning/HANDOFF.md", ns=(0, 0))
    assert may_edit(team) is None


def test_link_in_place_of_a_handoff_is_not_overlooked(team: Team) -> None:
    (team.root / HANDOFF).symlink_to("/dev/null")
    assert may_edit(team) == [Reason.NOT_REGULAR]


# --- one verdict ---


@pytest.mark.proves("001:60")
@pytest.mark.parametrize("place", [HANDOFF, ".yolo-planning/HANDOFF.md"])
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (BRANCH, "other", Reason.BRANCH_MISMATCH),
        (f" {BRANCH}", "", Reason.EMPTY_VALUE),
        ("  directive_branch", "  branch", Reason.MISSING_KEY),
        (BRANCH, f"&a {BRANCH}", Reason.YAML_FEATURE),
        ("# Login", "# Login", None),
    ],
)
def test_a_handoff_and_its_readme_get_one_verdict_from_daemon_validate_and_receiver(
    team: Team, place: str, old: str, new: str, reason: Reason | None
) -> None:
    team.emit()
    team.write(place, (team.root / HANDOFF).read_text())
    team.change(README, old, new)
    assert verdicts(team, place) == [[reason] if reason else []] * 3


@pytest.mark.proves("001:60", "001:19")
def test_a_handoff_for_a_session_that_is_not_there_is_nobodys(team: Team) -> None:
    place = ".yolo-planning/HANDOFF.md"
    team.emit()
    unknown = GUID.replace("4", "5")
    task = f"  task_file: {SESSION}/tasks/02.md"
    text = (team.root / HANDOFF).read_text().replace("  task_file: tasks/02.md", task)
    team.write(place, text.replace(f"session_id: {GUID}", f"session_id: {unknown}"))
    assert verdicts(team, place) == [[Reason.UNKNOWN_REFERENCE]] * 3
    team.change(place, unknown, GUID)
    assert verdicts(team, place) == [[]] * 3
    (team.root / README).unlink()
    assert verdicts(team, place) == verdicts(team, HANDOFF) == [[Reason.FILE_MISSING]] * 3


@pytest.mark.parametrize("comment", [" # since Monday", "  #", "\t# x: y"])
def test_a_comment_in_the_readme_is_no_part_of_the_branch(team: Team, comment: str) -> None:
    team.emit()
    team.change(README, BRANCH, f"{BRANCH}{comment}")
    assert verdicts(team, HANDOFF) == [[]] * 3
    team.change(README, f" {BRANCH}", "")
    assert verdicts(team, HANDOFF) == [[Reason.EMPTY_VALUE]] * 3


def test_what_is_wrong_with_the_readme_is_told_at_its_own_line(team: Team) -> None:
    team.emit()
    team.change(README, f"directive_branch: {BRANCH}", "directive_branch:")
    validator = Validator(str(team.root))
    try:
        (file,) = validator.paths([HANDOFF])
    finally:
        validator.close()
    assert [(one.path, one.line) for one in file.findings] == [(README, 4)]
    assert [(one.path, one.line) for one in team.check().findings] == [(README, 4)]


@pytest.mark.proves("001:38")
def test_a_handoff_beside_the_folders_of_the_sessions_is_told_where_it_belongs(team: Team) -> None:
    place = f"{SESSION.rpartition('/')[0]}/HANDOFF.md"
    team.emit()
    text = (team.root / HANDOFF).read_text()
    team.write(place, text.replace("task_file: tasks/", f"task_file: {SESSION}/tasks/"))
    handed = team.check(place)
    assert told(handed) == [(Reason.NAME_MISMATCH, place, "/session_id")]
    assert handed.findings[0].expected == f"{SESSION}/HANDOFF.md"
    validator = Validator(str(team.root))
    try:
        (file,) = validator.paths([place])
    finally:
        validator.close()
    assert [one.reason for one in file.findings] == [Reason.NAME_MISMATCH]


def test_validate_names_a_handoff_of_a_session_that_is_spelled_otherwise(team: Team) -> None:
    team.write(".yolo-planning/config.json", "{}\n")
    team.write(f"{SESSION}/handoff.md", "---\n")
    validator = Validator(str(team.root))
    try:
        found = {file.path: [one.reason for one in file.findings] for file in validator.tree()}
    finally:
        validator.close()
    told = [Reason.UNKNOWN_NAME, Reason.FRONT_MATTER_UNCLOSED]
    assert found[f"{SESSION}/handoff.md"] == told, "the name and the contents in one turn"


def verdicts(team: Team, place: str) -> list[list[Reason]]:
    """Return what `validate`, the daemon and the receiver are told of a handoff."""
    validator = Validator(str(team.root))
    try:
        validated = [one.reason for file in validator.paths([place]) for one in file.findings]
    finally:
        validator.close()
    with Repository(str(team.root)) as repository:
        pipeline = Pipeline(repository, SETTINGS.without_patience)
        verdict = pipeline.look(place, repository.head(), None).verdict
        pipeline.close()
    assert isinstance(verdict, Rejected | Accepted)
    findings = verdict.findings if isinstance(verdict, Rejected) else ()
    return [
        validated,
        [one.reason for one in findings],
        [one for one, *_ in told(team.check(place))],
    ]


# --- a handoff ends ---


@pytest.mark.proves("001:73", "001:89")
@pytest.mark.parametrize("way", ["--ff-only", "--no-ff"])
def test_a_handoff_whose_work_has_come_into_this_branch_is_over(team: Team, way: str) -> None:
    team.git("branch", "main")
    team.emit()
    team.commit("architect", "chore(state): HANDOFF")
    team.write("src/form.ts", "form")
    team.commit("executor", "feat: the form")
    team.git("switch", "-q", "main")
    team.git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "merge", "-q", way, BRANCH)
    assert may_edit(team) is None
    handed = team.check()
    assert (handed.over, handed.role) == (f"main has all of {BRANCH}", "")
    team.git("branch", "-D", BRANCH)
    assert may_edit(team) is None


def test_a_handoff_that_the_base_has_is_over_there_once_its_work_is_merged(team: Team) -> None:
    """Whoever is on the base was stopped before: the work was to be done on the other branch."""
    team.git("switch", "-q", "-c", "base")
    team.emit()
    team.commit("architect", "chore(state): HANDOFF")
    team.git("branch", "-f", BRANCH)
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    team.git("switch", "-q", BRANCH)
    assert may_edit(team) is None
    team.write("src/form.ts", "form")
    team.commit("executor", "feat: the form")
    team.git("switch", "-q", "base")
    team.git("-c", "user.name=Ada", "-c", "user.email=a@b.c", "merge", "-q", "--no-ff", BRANCH)
    assert may_edit(team) is None
    assert team.check().over == f"base has all of {BRANCH}"


@pytest.mark.parametrize("branch", ["not there yet", "without a commit"])
def test_a_handoff_for_a_branch_that_nobody_has_worked_on_stops_whoever_is_elsewhere(
    team: Team, branch: str
) -> None:
    team.change(README, BRANCH, "feature/new-form")
    team.commit("architect", "docs: another branch")
    if branch == "without a commit":
        team.git("branch", "feature/new-form")
    team.emit(directive_branch="feature/new-form")
    team.commit("yolo_fs", "chore(state): HANDOFF")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    team.git("branch", "-f", "feature/new-form")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    team.git("switch", "-q", "feature/new-form")
    assert may_edit(team) is None


def test_a_branch_that_only_got_another_name_has_not_come_in(team: Team) -> None:
    team.git("switch", "-q", "-c", "aside")
    team.git("switch", "-q", BRANCH)
    team.emit()
    team.commit("architect", "chore: hand over")
    team.git("branch", "-m", "feature/new-form")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    assert team.check().over == ""


def test_a_branch_that_was_cut_from_the_directives_has_brought_nothing_in(team: Team) -> None:
    team.emit()
    team.commit("yolo_fs", "chore(state): HANDOFF")
    team.write("src/form.ts", "form")
    team.commit("executor", "feat: a part of the form")
    team.git("switch", "-q", "-c", "scratch")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    team.commit("executor", "feat: more, at the wrong place")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]


def test_a_handoff_goes_on_while_a_part_of_its_work_is_elsewhere(team: Team) -> None:
    team.emit()
    team.commit("architect", "chore: hand over")
    team.git("switch", "-q", "-c", "main")
    team.git("switch", "-q", BRANCH)
    team.commit("executor", "feat: the form")
    team.git("switch", "-q", "main")
    assert may_edit(team) == [Reason.BRANCH_MISMATCH]
    team.change(HANDOFF, "Build the form", "Build the other form")
    team.git("merge", "-q", "--ff-only", BRANCH)
    assert may_edit(team) == [Reason.BRANCH_MISMATCH], (
        "a new handoff is not the one that was merged"
    )


@pytest.mark.proves("001:89")
@pytest.mark.parametrize(
    "line",
    [
        "  status: archived",
        "  archived: true",
        "status: archived",
        '  "status": "archived"  # done',
    ],
)
def test_a_handoff_of_an_archived_session_is_over_whatever_it_says(team: Team, line: str) -> None:
    team.emit()
    team.change(README, "  session_priority: ultra", f"  session_priority: ultra\n{line}")
    if not line.startswith(" "):
        team.change(README, f"{line}\n", "")
        team.change(README, "meta:", f"{line}\nmeta:")
    assert team.check().over.endswith("marks the session as archived")
    team.change(HANDOFF, "executor", "reviewer")
    assert may_edit(team) is None


@pytest.mark.parametrize(
    "line", ["tasks:\n  - status: archived", "  status: not archived", "  x:\n    archived: true"]
)
def test_what_else_is_archived_ends_no_handoff(team: Team, line: str) -> None:
    team.emit()
    team.change(README, f"  directive_branch: {BRANCH}", f"  directive_branch: {BRANCH}\n{line}")
    assert team.check().over == ""


@pytest.mark.proves("001:95")
def test_a_priority_other_than_ultra_does_not_meet_the_trigger(team: Team) -> None:
    team.emit()
    team.change(README, "session_priority: ultra", "session_priority: normal")
    assert told(team.check()) == [(Reason.STATE_CONFLICT, HANDOFF, "/handoff/trigger")]
    assert may_edit(team) == [Reason.STATE_CONFLICT]
    team.change(README, "  session_priority: normal\n", "")
    assert told(team.check()) == [(Reason.STATE_CONFLICT, HANDOFF, "/handoff/trigger")]


@pytest.mark.proves("001:95")
@pytest.mark.parametrize(
    "line", ["session_priority: normal", "session_priority: ultra\n  status: archived"]
)
def test_a_packet_without_session_needs_one_that_is_ultra_and_open(team: Team, line: str) -> None:
    named = {"session_id": "n/a", "task_file": "n/a"}
    assert team.emit(**named).packet
    team.change(README, "session_priority: ultra", line)
    assert told(team.emit(**named)) == [(Reason.STATE_CONFLICT, "", "/trigger")]
    team.write("chat.txt", team.emit(**named | OF_AUDITOR).text)
    assert team.check("chat.txt").is_accepted, "that trigger is about a task"
    team.change("chat.txt", "from_role: auditor", "from_role: architect")
    team.change("chat.txt", OF_AUDITOR["trigger"], GIVEN["trigger"])
    assert [reason for reason, *_ in told(team.check("chat.txt"))] == [Reason.STATE_CONFLICT]


@pytest.mark.proves("001:67", "001:95")
def test_who_begins_is_told_of_an_ultra_session_that_nobody_has_handed_over(team: Team) -> None:
    team.write(".yolo-planning/config.json", "{}")
    assert f"{HANDOFF}: missing" in as_text(resume(str(team.root)))
    team.emit()
    assert "missing" not in as_text(resume(str(team.root)))


@pytest.mark.proves("001:73")
def test_in_a_clone_history_says_which_handoff_is_the_younger(team: Team, tmp_path: Path) -> None:
    other = GUID.replace("4f", "5f")
    folder = SESSION.replace(GUID, other)
    team.write(f"{folder}/README.md", (team.root / README).read_text())
    team.write(f"{folder}/tasks/02.md", "# Form\n")
    team.commit("architect", "another")
    team.emit(session_id=other)
    team.commit("architect", "older")
    team.emit()
    team.commit("architect", "younger")
    for path, at in ((HANDOFF, 1), (f"{folder}/HANDOFF.md", 2)):
        os.utime(team.root / path, ns=(at, at))
    with Repository(str(team.root)) as repository:
        assert DirectiveHandoffs(repository, SETTINGS).latest() == HANDOFF
    (team.root / folder / "HANDOFF.md").write_text("written now\n")
    with Repository(str(team.root)) as repository:
        assert DirectiveHandoffs(repository, SETTINGS).latest() == f"{folder}/HANDOFF.md"


# --- the operator ----------------------------------------------------------------------------------------------------


def override(team: Team, because: str = "the branch was renamed") -> ReceivedHandoff:
    with Repository(str(team.root)) as repository:
        handoffs = DirectiveHandoffs(repository, SETTINGS)
        return handoffs.override(team.check(), because, datetime(2026, 2, 19, 8, tzinfo=UTC))


@pytest.mark.proves("001:87")
def test_override_is_recorded_and_holds_for_the_hooks_too(team: Team) -> None:
    team.emit()
    team.git("switch", "-q", "-c", "login-2")
    override(team)
    handed = team.check()
    assert handed.role == "executor"
    assert [finding.level for finding in handed.findings] == [Level.WARNING]
    assert handed.override is not None
    assert (handed.override.because, handed.override.at) == (
        "the branch was renamed",
        "2026-02-19T08:00:00Z",
    )
    assert handed.override.faults == ("branch_mismatch at /handoff/directive_branch",)
    assert may_edit(team) is None


def test_what_somebody_else_overrode_does_not_come_with_the_folder(
    team: Team, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.emit()
    team.git("switch", "-q", "-c", "login-2")
    override(team)
    assert team.check().is_accepted
    for there in (tmp_path_factory.mktemp("state"), Path(os.devnull)):  # another key, and none
        monkeypatch.setenv("XDG_STATE_HOME", str(there))
        assert not team.check().is_accepted
    with pytest.raises(YoloError, match="no key"):
        override(team)


def test_override_covers_nothing_but_what_was_seen(team: Team) -> None:
    team.emit()
    team.git("switch", "-q", "-c", "login-2")
    override(team)
    task = team.root / SESSION / "tasks/02.md"
    task.rename(task.with_suffix(".old"))
    assert [reason for reason, _, _ in told(team.check())] == [
        Reason.BRANCH_MISMATCH,
        Reason.FILE_MISSING,
    ]
    task.with_suffix(".old").rename(task)
    assert team.check().is_accepted
    team.git("switch", "-q", "-c", "login-3")
    assert not team.check().is_accepted
    team.git("switch", "-q", "login-2")
    team.change(HANDOFF, "now", "later")
    assert not team.check().is_accepted


def test_override_needs_a_fault_a_reason_and_a_packet(team: Team) -> None:
    team.emit()
    with pytest.raises(YoloError, match="nothing is wrong"):
        override(team)
    team.git("switch", "-q", "-c", "login-2")
    with pytest.raises(YoloError, match="needs its reason"):
        override(team, because=" ")
    team.change(HANDOFF, "handoff:", "handof:")
    with pytest.raises(YoloError, match="the packet cannot be read"):
        override(team)


def test_damaged_record_overrides_nothing(team: Team) -> None:
    team.emit()
    team.git("switch", "-q", "-c", "login-2")
    override(team)
    state = team.root / ".git/yolo-fs/state.db"
    whole = state.read_bytes()
    spoil(state, '{"overrides": [1, {"faults": []}, {}]}')
    assert not team.check().is_accepted
    with pytest.raises(YoloError, match="another shape"):
        override(team, because="again")
    state.write_bytes(b"no database")
    assert not team.check().is_accepted
    with pytest.raises(YoloError, match="not a database"):
        override(team, because="again")
    state.write_bytes(whole)
    assert team.check().is_accepted


def spoil(state: Path, value: str) -> None:
    connection = sqlite3.connect(state)
    with connection:
        connection.execute("update notes set value = ? where name = 'handoff-overrides'", [value])
    connection.close()


# --- handing over ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:59")
def test_packet_and_file_say_the_same(team: Team) -> None:
    emitted = team.emit()
    assert (emitted.path, emitted.is_new, emitted.findings) == (HANDOFF, True, ())
    team.write("chat.txt", emitted.text)
    from_chat, from_file = team.check("chat.txt").packet, team.check().packet
    assert from_chat is not None
    assert from_file is not None
    assert from_chat.model_dump() == from_file.model_dump()
    assert not team.emit().is_new


def test_packet_outside_a_session_is_text_alone(team: Team) -> None:
    given = {
        "session_id": "n/a",
        "task_file": "n/a",
        "trigger": "role_policy_conflict",
        "to_role": "architect",
    }
    emitted = team.emit(**given, from_role="pair")
    assert (emitted.path, f"directive_branch: {BRANCH}\n" in emitted.text) == ("", True)
    assert team.git("status", "--porcelain") == ""


@pytest.mark.proves("001:68")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"to_role": "reviewer"}, Reason.UNKNOWN_VALUE),
        ({"to_role": "architect"}, Reason.SELF_REFERENCE),
        ({"trigger": "auditor_ultra_open"}, Reason.STATE_CONFLICT),
        ({"session_id": "0" * 8 + "-0000" * 3 + "-" + "0" * 12}, Reason.FILE_MISSING),
        ({"session_id": "../../../x"}, Reason.BAD_FORMAT),
        ({"task_file": "n/a"}, Reason.BAD_FORMAT),
        ({"task_file": "tasks/03.md"}, Reason.FILE_MISSING),
        ({"directive_branch": "main"}, Reason.BRANCH_MISMATCH),
        ({"objective": ""}, Reason.EMPTY_VALUE),
        ({"objective": "two\nlines"}, Reason.BAD_FORMAT),
        ({"objective": "clear the screen \x1b[2J"}, Reason.CONTROL_CHARACTER),
        ({"objective": "half \udcff"}, Reason.WRONG_TYPE),
        ({"blocking_rule": "use AKIA" + "ABCDEFGHIJKLMNO7"}, Reason.SECRET),
    ],
)
def test_incomplete_packet_leaves_everything_as_it_was(
    team: Team, changes: dict[str, str], reason: Reason
) -> None:
    before = team.emit(objective="The first one")
    text = (team.root / HANDOFF).read_bytes()
    emitted = team.emit(**changes)
    assert before.is_new
    assert (emitted.packet, emitted.text, errors(emitted.findings)[0].reason) == (None, "", reason)
    assert (team.root / HANDOFF).read_bytes() == text
    assert sorted(path.name for path in (team.root / SESSION).iterdir()) == [
        "HANDOFF.md",
        "README.md",
        "tasks",
    ]


def test_session_behind_a_link_is_not_written_to(
    team: Team, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / GUID
    (team.root / SESSION).rename(outside)
    (team.root / SESSION).symlink_to(outside)
    assert team.emit().packet is None
    assert not (outside / "HANDOFF.md").exists()


# --- after it --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:67")
def test_later_work_of_the_sender_is_reported(team: Team) -> None:
    team.emit()
    team.commit("architect", "chore(state): HANDOFF")
    assert team.later_work() == []
    team.write("src/a.ts", "x\n")
    team.commit("architect", "feat: a")
    team.write("src/b.ts", "x\n")
    team.commit("Ada", "feat: b", "Executed-By: architect")
    team.write("src/c.ts", "x\n")
    team.commit("executor", "feat: c")
    assert team.later_work() == [("src/b.ts", Level.WARNING), ("src/a.ts", Level.WARNING)]
    assert team.check().is_accepted


def test_later_work_is_looked_for_on_the_directive_branch_and_after_an_uncommitted_packet(
    team: Team,
) -> None:
    team.emit()
    os.utime(team.root / HANDOFF, (1, 1))
    team.git("switch", "-q", "-c", "main")
    team.write("src/a.ts", "x\n")
    team.git("add", "src")
    team.git("-c", "user.name=architect", "-c", "user.email=a@b", "commit", "-q", "-m", "feat: a")
    found = team.later_work()
    assert "src/a.ts" not in [path for path, _ in found]
    assert README in [path for path, _ in found]


def test_new_handoff_ends_the_old_one(team: Team) -> None:
    team.emit()
    team.commit("architect", "chore(state): HANDOFF")
    team.write("src/a.ts", "x\n")
    team.commit("architect", "feat: a")
    back = {
        "from_role": "executor",
        "to_role": "architect",
        "trigger": "executor_scope_or_contract_block",
    }
    team.emit(**back)
    team.commit("executor", "chore(state): HANDOFF")
    team.write("src/b.ts", "x\n")
    team.commit("architect", "feat: b")
    assert team.later_work() == []


def test_hooks_ask_for_the_whole_verdict_only_after_a_change(
    team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team.emit()
    changes: list[Callable[[], object]] = [
        lambda: team.write(HANDOFF, (team.root / HANDOFF).read_text() + "\n"),
        lambda: team.write(README, (team.root / README).read_text() + "\n"),
        lambda: (team.root / READING).unlink(),
        lambda: team.write(READING, "# Components\n"),
        lambda: (team.root / f"{SESSION}/tasks/02.md").rename(team.root / "away"),
        lambda: (team.root / "away").rename(team.root / f"{SESSION}/tasks/02.md"),
        lambda: team.git("checkout", "-q", "-b", "elsewhere"),
        lambda: team.git("checkout", "-q", BRANCH),
        lambda: team.write(f"{SESSION}-2/HANDOFF.md", "later\n"),
    ]
    for change in changes:
        settle(team)
        hook_fast.answer(question(team))
        is_allowed = hook_fast.answer(question(team))[0] == {}
        assert needs_all(team) is not is_allowed
        assert needs_all(team, "pair")
        change()
        assert needs_all(team)


def test_hooks_ask_of_a_handoff_that_is_over_only_after_a_branch_has_moved(
    team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team.emit()
    team.commit("yolo_fs", "chore(state): HANDOFF")
    team.commit("executor", "feat: the form")
    team.git("checkout", "-q", "-b", "main")
    settle(team)
    hook_fast.answer(question(team))
    assert hook_fast.answer(question(team))[0] == {}
    assert not needs_all(team), "it is over, and that is known"
    team.git("checkout", "-q", BRANCH)
    team.commit("executor", "feat: more")
    team.git("checkout", "-q", "main")
    settle(team)
    assert needs_all(team)
    assert "hookSpecificOutput" in hook_fast.answer(question(team))[0]


@pytest.mark.proves("001:61a")
@pytest.mark.parametrize(
    "name", ["executor", "yolo-executor", "crew:yolo-executor", "Executor", "executor-2"]
)
def test_an_executor_without_its_handoff_is_stopped_however_it_is_called_and_whoever_asked_before(
    team: Team, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team.write(".yolo-planning/config.json", "{}")
    settle(team)
    assert hook_fast.answer(question(team))[0] == {}, "others may edit, which is remembered"
    assert not needs_all(team)
    assert "has no handoff" in str(hook_fast.answer(question(team, name))[0])


def question(team: Team, agent: str = "") -> bytes:
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "src/a.py"}, "cwd": str(team.root)}
    return json.dumps({"hook_event_name": "PreToolUse", **edit, "agent_type": agent}).encode()


def needs_all(team: Team, agent: str = "") -> bool:
    asked, _ = hook_fast.understand(question(team, agent), "", "", "")
    return asked is not None and hook_fast.is_needed(asked)


def settle(team: Team) -> None:
    """Let everything be older than what might still change without a new stamp."""
    at = time.time() - 60
    for path in (team.root, *team.root.rglob("*")):
        os.utime(path, (at, at), follow_symlinks=False)
