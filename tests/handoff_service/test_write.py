"""Sessions on disk: a whole product run, the files that envelopes name, idempotency, hostile folders."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER, instant, read_name
from yolo_fs.checking.envelopes import ProductHandoffs
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.write import WrittenEnvelope, choose, send
from yolo_fs.handoffs.envelopes import mentioned_files, read, right_name
from yolo_fs.handoffs.session_progress import open_error, progress_line, standing
from yolo_fs.workspace.settings import load

RUN = Path(__file__).parents[2] / "fixtures/product"
STEPS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RUN.glob("[0-9]*.json"))]
FAILED = json.loads((RUN / "prd_failed.json").read_text(encoding="utf-8"))
SESSION = STEPS[0]["session_id"]
NOW = datetime(2026, 11, 20, tzinfo=UTC)


class Project:
    """A product in a real repository, and its agents."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repository = Repository(str(root))
        self.handoffs = ProductHandoffs(
            WorkTree(self.repository.root, 8 << 20), load(self.repository.root), NOW
        )

    def check(self, path: str) -> tuple[Finding, ...]:
        """Return everything that is wrong with a handoff of the project."""
        return self.handoffs.examine(path, (self.root / path).read_bytes())

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def file(self, path: str, data: bytes = b"content\n") -> Path:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(data)
        return full

    def make_files_of(self, value: dict[str, Any]) -> None:
        """Let the agent write what its envelope names."""
        sent, _ = read(value, "-", NOW)
        assert sent is not None
        for path in mentioned_files(sent).values():
            self.file(path)

    def send(self, value: dict[str, Any], *, again: bool = False) -> WrittenEnvelope:
        self.make_files_of(value)
        return send(self.handoffs, value, self.repository, again=again)

    def line(self) -> str:
        return progress_line(standing(self.handoffs.session(SESSION).session))

    def stored(self) -> list[str]:
        return (
            sorted(os.listdir(self.root / HANDOFF_FOLDER))
            if (self.root / HANDOFF_FOLDER).exists()
            else []
        )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    made = Project(root.resolve())
    yield made
    made.repository.close()


def step(number: int) -> dict[str, Any]:
    return copy.deepcopy(STEPS[number - 1])


def later(value: dict[str, Any], **delta: float) -> dict[str, Any]:
    moment = instant(value["timestamp"]) + timedelta(**delta)
    return value | {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}


def told(findings: Any) -> list[tuple[Reason, str]]:
    return [(finding.reason, finding.at) for finding in findings]


# --- a whole product run ---------------------------------------------------------------------------------------------

BAR = "Orchard Scout [{}] {} %, {} of 5 phases, {}"
BARS = {
    0: "-" * 20,
    20: "#" * 4 + "-" * 16,
    40: "#" * 8 + "-" * 12,
    60: "#" * 12 + "-" * 8,
    80: "#" * 16 + "-" * 4,
}
RETRY = later(step(8), minutes=5)
RUN_OF_THE_PRODUCT = (
    # envelope, attempt, percent, what the line says
    (step(1), 1, 0, "orchestrator does intake"),
    (step(2), 1, 0, "market-research does market-research"),
    (step(3), 1, 20, "orchestrator does ai-framing"),
    (step(4), 1, 20, "ai-framing does ai-framing"),
    (step(5), 1, 40, "orchestrator does prfaq"),
    (step(6), 1, 40, "prfaq does prfaq"),
    (step(7), 1, 60, "orchestrator does prd"),
    (step(8), 1, 60, "prd does prd"),
    (FAILED, 1, 60, "prd failed: GENERATION_FAILED"),
    (RETRY, 2, 60, "prd does prd, attempt 2"),
    (step(9), 2, 80, "orchestrator does prototype, attempt 2"),
    (step(10), 1, 80, "prototype does prototype"),
    (step(11), 1, 100, "complete"),
)


def test_a_product_is_handed_from_agent_to_agent_and_one_that_fails_is_retried(
    project: Project,
) -> None:
    for value, attempt, percent, doing in RUN_OF_THE_PRODUCT:
        written = project.send(value)
        assert (written.findings, written.attempt, written.is_new) == ((), attempt, True)
        assert project.check(written.path) == ()
        bar = BARS.get(percent, "#" * 20)
        assert project.line() == BAR.format(bar, percent, percent // 20, doing)
        if value is FAILED:
            choose(project.handoffs, SESSION, "retry", project.repository)
            assert project.line().endswith("prd does prd, attempt 2")
        project.git("add", "-A")
        project.git("commit", "-q", "-m", f"docs(handoffs): {written.path}")
    assert_history_is_whole(project)


def assert_history_is_whole(project: Project) -> None:
    assert project.git("status", "--porcelain") == ""
    tracked = project.git("ls-files", "-z", "documents").split("\0")[:-1]
    choices = f"{HANDOFF_FOLDER}/choices_{SESSION}.json"
    assert [path for path in tracked if read_name(path) is None] == [choices]
    handoffs = [path for path in tracked if path.startswith(f"{HANDOFF_FOLDER}/handoff_")]
    assert len(handoffs) == len(RUN_OF_THE_PRODUCT)
    assert project.git("rev-list", "--count", "HEAD").strip() == str(len(RUN_OF_THE_PRODUCT))
    assert [
        finding
        for path in tracked
        if path.startswith(HANDOFF_FOLDER)
        for finding in project.check(path)
    ] == []
    assert project.handoffs.session(SESSION).findings == ()


def test_the_whole_run_again_changes_nothing(project: Project) -> None:
    values = [value for value, *_ in RUN_OF_THE_PRODUCT]
    for value in values:
        project.send(value)
    before = {
        name: (project.root / HANDOFF_FOLDER / name).stat().st_mtime_ns for name in project.stored()
    }
    again = [project.send(value) for value in values]
    after = {
        name: (project.root / HANDOFF_FOLDER / name).stat().st_mtime_ns for name in project.stored()
    }
    assert [written.is_new for written in again] == [False] * len(values)
    assert after == before


# --- what a handoff names must be there ------------------------------------------------------------------------------


def test_a_file_that_is_missing_is_named_at_each_place(project: Project) -> None:
    written = send(project.handoffs, step(3), project.repository)
    assert told(written.findings) == [
        (Reason.FILE_MISSING, "/artifacts/created/0/path"),
        (Reason.FILE_MISSING, "/payload/full_research_path"),
    ]
    assert project.stored() == []


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("link", Reason.NOT_REGULAR),
        ("folder", Reason.NOT_REGULAR),
        ("pipe", Reason.NOT_REGULAR),
        ("link on the way", Reason.NOT_REGULAR),
        ("second name", Reason.HARD_LINKED),
        ("nothing in it", Reason.EMPTY_FILE),
    ],
)
def test_what_is_no_file_of_the_project_does_not_count(
    project: Project, kind: str, reason: Reason
) -> None:
    path = project.root / "inputs" / "trap_counts_2025.csv"
    outside = project.root.parent / "outside"
    outside.mkdir()
    (outside / path.name).write_text("secret\n")
    if kind == "link on the way":
        path.parent.symlink_to(outside)
    else:
        path.parent.mkdir()
        make = {
            "link": lambda: path.symlink_to(outside / path.name),
            "folder": path.mkdir,
            "pipe": lambda: os.mkfifo(path),
            "second name": lambda: path.hardlink_to(outside / path.name),
            "nothing in it": path.touch,
        }
        make[kind]()
    written = send(project.handoffs, step(1), project.repository)
    assert told(written.findings) == [(reason, "/payload/context_files/0")]


def test_a_large_file_is_there_without_being_read(project: Project) -> None:
    with open(project.file("inputs/trap_counts_2025.csv"), "r+b") as file:
        file.truncate(10 << 30)
    assert send(project.handoffs, step(1), project.repository).findings == ()


# --- attempts and repeats --------------------------------------------------------------------------------------------


def test_the_same_handoff_a_moment_later_is_the_same(project: Project) -> None:
    first = project.send(step(1))
    again = project.send(later(step(1), seconds=30))
    assert (again.path, again.attempt, again.is_new) == (first.path, 1, False)
    assert len(project.stored()) == 1


def test_the_same_first_handoff_without_a_session_begins_no_second_one(project: Project) -> None:
    project.make_files_of(STEPS[0])
    left_out = ("session_id", "timestamp")
    draft = {key: value for key, value in STEPS[0].items() if key not in left_out}

    def sent(value: dict[str, Any], *, again: bool = False) -> WrittenEnvelope:
        return send(project.handoffs, value, project.repository, again=again)

    first = sent(draft)
    repeated = sent(draft)
    assert (repeated.path, repeated.is_new) == (first.path, False)
    assert sent(draft, again=True).is_new
    assert len(project.stored()) == 2


def test_again_with_the_timestamp_of_a_handoff_that_is_there_says_why_nothing_is_written(
    project: Project,
) -> None:
    project.send(step(1))
    assert project.send(step(1)).findings == ()
    again = project.send(step(1), again=True)
    assert (again.is_new, [finding.at for finding in again.findings]) == (False, ["/timestamp"])
    assert errors(again.findings) == ()


def test_a_re_run_is_an_attempt_of_its_own(project: Project) -> None:
    project.send(step(1))
    again = project.send(later(step(1), seconds=30), again=True)
    assert (again.attempt, again.is_new, len(project.stored())) == (2, True, 2)


def test_two_handoffs_of_one_moment_do_not_overwrite_each_other(project: Project) -> None:
    first = project.send(step(2))
    other = step(2)
    other["payload"]["specific_questions"] = []
    refused = project.send(other)
    assert told(refused.findings)[0] == (Reason.STATE_CONFLICT, "/timestamp")
    assert json.loads((project.root / first.path).read_text()) == step(2)


def test_senders_at_once_write_the_same_handoff_once(project: Project) -> None:
    project.make_files_of(step(1))
    values = [later(step(1), seconds=second) for second in range(6)]
    results: list[WrittenEnvelope] = []
    threads = [
        threading.Thread(
            target=lambda one=value: results.append(send(project.handoffs, one, project.repository))
        )
        for value in values
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(results), sum(written.is_new for written in results), len(project.stored())) == (
        6,
        1,
        1,
    )


# --- drafts ----------------------------------------------------------------------------------------------------------


def test_a_draft_is_completed_with_what_can_be_known(project: Project) -> None:
    draft = step(1)
    for key in ("handoff_version", "timestamp", "session_id", "product_name_slug"):
        del draft[key]
    del draft["workflow_state"]["progress_percentage"]
    written = send(
        project.handoffs,
        draft | {"artifacts": {"created": [], "referenced": []}},
        project.repository,
    )
    assert told(written.findings) == [(Reason.FILE_MISSING, "/payload/context_files/0")]
    project.file("inputs/trap_counts_2025.csv")
    written = send(project.handoffs, draft, project.repository)
    value = json.loads((project.root / written.path).read_text())
    assert (value["product_name_slug"], value["workflow_state"]["progress_percentage"]) == (
        "Orchard_Scout",
        0,
    )
    assert list(value) == list(STEPS[0])
    assert written.path == right_name(read(value, "-", NOW)[0])  # type: ignore[arg-type]


def test_a_draft_without_session_is_refused_unless_it_is_the_first(project: Project) -> None:
    draft = step(2)
    del draft["session_id"]
    assert told(send(project.handoffs, draft, project.repository).findings) == [
        (Reason.MISSING_KEY, "/session_id")
    ]


@pytest.mark.parametrize(
    "draft",
    [{}, {"workflow_state": {"phases_completed": 1}}, {"source_agent": []}, {"product_name": 7}],
)
def test_a_hopeless_draft_writes_nothing(project: Project, draft: dict[str, Any]) -> None:
    written = send(project.handoffs, draft, project.repository)
    assert errors(written.findings)
    assert not (project.root / "documents").exists()


def test_a_written_handoff_is_readable_by_all_and_whole(project: Project) -> None:
    path = project.root / project.send(step(2)).path
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_bytes().endswith(b"}\n")
    assert [name for name in project.stored() if name.startswith(".")] == []


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["handoff.json", f"handoff_{SESSION}_prd_to_orchestrator_20260504T080005Z.json"]
)
def test_a_misnamed_handoff_is_a_finding_with_its_right_name(project: Project, name: str) -> None:
    project.file(f"{HANDOFF_FOLDER}/{name}", json.dumps(step(2)).encode() + b"\n")
    (finding,) = project.check(f"{HANDOFF_FOLDER}/{name}")
    assert (finding.reason, finding.path) == (Reason.NAME_MISMATCH, f"{HANDOFF_FOLDER}/{name}")
    assert (
        finding.expected
        == f"{HANDOFF_FOLDER}/handoff_{SESSION}_orchestrator_to_market-research_20260504T080005Z.json"
    )


def test_a_misnamed_handoff_still_counts_for_its_session(project: Project) -> None:
    project.file(f"{HANDOFF_FOLDER}/first.json", json.dumps(step(1)).encode() + b"\n")
    wrong = step(2)
    wrong["payload"]["research_request"]["product_name"] = "Orchid Scout"
    written = project.send(wrong)
    assert told(written.findings) == [
        (Reason.STATE_CONFLICT, "/payload/research_request/product_name")
    ]
    assert "documents/handoffs/first.json" in written.findings[0].message


def test_sessions_are_told_apart(project: Project) -> None:
    other = step(1) | {
        "session_id": "11111111-1111-4111-8111-111111111111",
        "product_name": "Other",
    }
    other["payload"]["product_concept"]["name"] = "Other"
    project.send(other | {"product_name_slug": "Other"})
    assert project.send(step(1)).findings == ()
    project.file(
        f"{HANDOFF_FOLDER}/misnamed.json", json.dumps(later(other, seconds=1)).encode() + b"\n"
    )
    assert project.handoffs.sessions() == (other["session_id"], SESSION)
    assert len(project.handoffs.session(SESSION).session.sent) == 1


# --- hostile folders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["documents", HANDOFF_FOLDER])
def test_nothing_is_written_through_a_link(project: Project, place: str) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    link = project.root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(YoloError) as raised:
        send(project.handoffs, step(2), project.repository)
    assert (raised.value.reason, raised.value.exit_code) == (Reason.NOT_REGULAR, Exit.NOT_HERE)
    assert list(outside.iterdir()) == []


def test_a_link_in_place_of_a_handoff_is_neither_read_nor_replaced(project: Project) -> None:
    outside = project.file("../outside.json", json.dumps(step(2)).encode())
    path = project.root / right_name(read(step(2), "-", NOW)[0])  # type: ignore[arg-type]
    path.parent.mkdir(parents=True)
    path.symlink_to(outside)
    assert told(project.handoffs.session(SESSION).findings) == [(Reason.NOT_REGULAR, "")]
    assert told(project.send(step(2)).findings) == [(Reason.STATE_CONFLICT, "/timestamp")]
    assert path.is_symlink()


HOSTILE = {
    "pipe": Reason.NOT_REGULAR,
    "deep": Reason.NESTING_TOO_DEEP,
    "nan": Reason.NOT_FINITE,
    "twice": Reason.DUPLICATE_KEY,
    "bytes": Reason.NOT_UTF8,
    "large": Reason.FILE_TOO_LARGE,
    "array": Reason.NOT_AN_OBJECT,
    "empty": Reason.EMPTY_FILE,
    "lone": Reason.LONE_SURROGATE,
}
BYTES = {
    "deep": b'{"a":' * 500 + b"1" + b"}" * 500,
    "nan": b'{"session_id": NaN}\n',
    "twice": b'{"a": 1, "a": 2}\n',
    "bytes": b'{"a": "\xff"}\n',
    "array": b"[]\n",
    "empty": b"",
    "lone": b'{"a": "\\ud800"}\n',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_a_finding_and_stops_nobody(project: Project, kind: str) -> None:
    name = f"{HANDOFF_FOLDER}/handoff_{SESSION}_user_to_orchestrator_20260504T070000Z.json"
    path = project.file(name, BYTES.get(kind, b""))
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    if kind == "large":
        os.truncate(path, 10 << 30)
    assert HOSTILE[kind] in {
        finding.reason for finding in project.handoffs.session(SESSION).findings
    }
    assert project.send(step(1)).is_new


def test_names_that_are_not_utf8_are_read_like_others(project: Project) -> None:
    folder = os.fsencode(project.root / HANDOFF_FOLDER)
    os.makedirs(folder)
    with open(folder + b"/\xff.json", "wb") as file:
        file.write(json.dumps(step(1)).encode() + b"\n")
    project.file("inputs/trap_counts_2025.csv")
    (one,) = project.handoffs.session(SESSION).session.sent
    assert told(project.check(one.path)) == [(Reason.NAME_MISMATCH, "")]


@pytest.mark.parametrize("evil", ["../../etc/passwd", "/etc/passwd", "documents/../../x", "a\x00b"])
def test_a_path_that_leaves_the_project_is_refused_before_it_is_looked_at(
    project: Project, evil: str
) -> None:
    value = step(1)
    value["payload"]["context_files"] = [evil]
    written = send(project.handoffs, value, project.repository)
    assert told(written.findings) == [(Reason.PATH_ESCAPES, "/payload/context_files/0")]


# --- choices ---------------------------------------------------------------------------------------------------------


def after_error(project: Project) -> None:
    for value in (*(step(number) for number in range(1, 9)), FAILED):
        assert project.send(value).is_new


def test_a_choice_is_recorded_once(project: Project) -> None:
    after_error(project)
    first = choose(project.handoffs, SESSION, "retry", project.repository)
    project.handoffs.now += timedelta(minutes=1)
    assert choose(project.handoffs, SESSION, "retry", project.repository) == first
    recorded = json.loads((project.root / HANDOFF_FOLDER / f"choices_{SESSION}.json").read_text())
    assert [(one["way"], one["leads_to"]["attempt"]) for one in recorded["choices"]] == [
        ("retry", 2)
    ]
    error = open_error(project.handoffs.session(SESSION).session)
    assert error is not None
    assert recorded["choices"][0]["error"] == error.path


def test_another_choice_replaces_the_first_and_both_are_kept(project: Project) -> None:
    after_error(project)
    choose(project.handoffs, SESSION, "ask", project.repository)
    choose(project.handoffs, SESSION, "skip", project.repository)
    assert [one.way for one in project.handoffs.session(SESSION).session.choices] == ["ask", "skip"]
    assert project.line().endswith("orchestrator does prototype, skipped: prd")


def test_after_an_abort_nothing_is_chosen_or_sent(project: Project) -> None:
    after_error(project)
    choose(project.handoffs, SESSION, "abort", project.repository)
    with pytest.raises(YoloError) as raised:
        choose(project.handoffs, SESSION, "retry", project.repository)
    assert raised.value.reason is Reason.STATE_CONFLICT
    written = project.send(step(8) | {"timestamp": "2026-11-20T00:00:30Z"})
    assert told(written.findings) == [(Reason.STATE_CONFLICT, "/session_id")]


def test_without_an_error_there_is_nothing_to_choose(project: Project) -> None:
    project.send(step(1))
    with pytest.raises(YoloError) as raised:
        choose(project.handoffs, SESSION, "retry", project.repository)
    assert raised.value.reason is Reason.STATE_CONFLICT


def test_a_way_that_does_not_exist_is_named_with_the_four(project: Project) -> None:
    after_error(project)
    with pytest.raises(YoloError) as raised:
        choose(project.handoffs, SESSION, "pray", project.repository)
    assert (raised.value.reason, raised.value.hint) == (
        Reason.UNKNOWN_NAME,
        "One of: retry, ask, skip, abort.",
    )


@pytest.mark.parametrize("damage", [b"", b"{", b'{"session_id": 1}\n', b"[]\n"])
def test_a_damaged_record_of_choices_is_kept(project: Project, damage: bytes) -> None:
    after_error(project)
    path = project.file(f"{HANDOFF_FOLDER}/choices_{SESSION}.json", damage)
    with pytest.raises(YoloError) as raised:
        choose(project.handoffs, SESSION, "retry", project.repository)
    assert raised.value.exit_code == Exit.UNREADABLE
    assert path.read_bytes() == damage


def test_choices_are_examined_like_handoffs(project: Project) -> None:
    after_error(project)
    choose(project.handoffs, SESSION, "retry", project.repository)
    path = project.root / HANDOFF_FOLDER / f"choices_{SESSION}.json"
    value = json.loads(path.read_text())
    value["choices"][0]["way"] = "pray"
    value["choices"][0]["chosen_at"] = "2026-05-04T08:37:00"
    found = project.handoffs.examine(
        f"{HANDOFF_FOLDER}/{path.name}", json.dumps(value).encode() + b"\n"
    )
    assert told(found) == [
        (Reason.UNKNOWN_VALUE, "/choices/0/way"),
        (Reason.BAD_FORMAT, "/choices/0/chosen_at"),
    ]
