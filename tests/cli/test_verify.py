"""`verify` reads history again: what the engine committed passes, and one altered byte is found and named."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.objects import unpack
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.naming import subject_of, trailers_of
from yolo_fs.checking.checker import previous_records
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.system.readers import READERS
from yolo_fs.workspace.settings import load

PHASE = ".yolo-planning/phases/01-auth"
FINDING = {
    "id": "C1",
    "cat": "gap",
    "sev": "major",
    "q": "Why?",
    "ctx": "Login",
    "sug": "Ask",
    "st": "open",
}
Commit = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    work_tree = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(work_tree)], check=True)
    return work_tree.resolve()


@pytest.fixture
def commit(root: Path) -> Iterator[Commit]:
    """Commit artifacts through the engine, each alone, and return the id of the last commit."""
    repository = Repository(str(root), durable=False)
    os.makedirs(repository.own_dir, exist_ok=True)
    branches = RefUpdater(repository, durable=False)
    committer = Committer(repository, branches, IndexSync(repository), lambda: datetime.now(UTC))

    def commit(*artifacts: tuple[str, bytes]) -> str:
        made = committer.commit(
            [entry(repository, *artifact) for artifact in artifacts], repository.head()
        )
        return str(made[-1].commit)

    yield commit
    branches.close()
    repository.close()


def entry(repository: Repository, name: str, data: bytes) -> CommitRequest:
    place = classify(f"{PHASE}/{name}")
    assert place is not None
    records = READERS[place.artifact.format](data, place.path, load(repository.root).limits).records
    before = previous_records(
        repository, place, repository.blob_at(repository.head().tip, place.path)
    )
    return CommitRequest(place.path, data, subject_of(place, records, before), trailers_of(place))


def jsonl(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def plan(number: str, wave: int, *needs: str) -> bytes:
    header = {"p": "01", "n": number, "t": "Login", "w": wave, "d": list(needs), "obj": "Log in"}
    task = {"id": "T1", "tp": "auto", "a": "Do", "f": ["a.ts"], "v": "Look", "done": "Done"}
    return jsonl({**header, "mh": {"tr": [], "ar": [], "kl": []}}, task)


CRITIQUE = ("critique.jsonl", jsonl(FINDING, FINDING | {"id": "C2", "q": "Where?"}))
DECISION = (
    "decisions.jsonl",
    jsonl({"ts": "2026-02-19T08:00:00Z", "agent": "dev", "dec": "Yes", "reason": "Why not"}),
)


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def rewrite(root: Path, before: bytes, after: bytes) -> None:
    """Rewrite history by plumbing, with something of the same length in the place of something else."""
    assert len(before) == len(after)
    history = subprocess.run(
        ["git", "fast-export", "main"], cwd=root, capture_output=True, check=True
    ).stdout
    assert before in history
    changed = history.replace(before, after)
    subprocess.run(
        ["git", "fast-import", "--force", "--quiet"], cwd=root, input=changed, check=True
    )


def verify(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = run(["verify", "-C", str(root), "--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def faults(answer: dict[str, Any], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(fault[key] for key in keys) for fault in answer["data"]["faults"]]


# --- what is right ---------------------------------------------------------------------------------------------------


def test_what_the_engine_commits_passes(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(
        CRITIQUE,
        ("01-01.plan.jsonl", plan("01", 1)),
        ("01-02.plan.jsonl", plan("02", 2, "01-01")),
        DECISION,
    )
    code, answer = verify(root, capsys)
    assert (code, answer["ok"], answer["data"]) == (Exit.DONE, True, {"verified": 4, "faults": []})


def test_each_commit_is_judged_by_its_own_tree(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(("01-01.plan.jsonl", plan("01", 1)), ("01-02.plan.jsonl", plan("02", 2, "01-01")))
    commit(("01-01.plan.jsonl", plan("01", 7)))
    assert verify(root, capsys)[0] == Exit.DONE
    circle = (
        ("01-03.plan.jsonl", plan("03", 3, "01-04")),
        ("01-04.plan.jsonl", plan("04", 4, "01-03")),
    )
    alone = commit(*circle)
    assert (alone, "dependency_cycle") in faults(verify(root, capsys)[1], "commit", "reason")


def test_commits_of_people_are_not_looked_at(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    (root / "broken.json").write_text("{")
    git(root, "add", "broken.json")
    git(root, "commit", "-qm", "whatever")
    assert verify(root, capsys)[1]["data"]["verified"] == 1


@pytest.mark.parametrize(
    ("data", "reason", "line"),
    [
        (b'{"id": "C1", "cat": "ga', "unterminated", 1),
        (b"\xff\xfe\n", "not_utf8", 1),
        (b"", "empty_file", 0),
    ],
    ids=["torn", "binary", "empty"],
)
def test_what_a_person_committed_and_nobody_can_read_is_named_as_it_holds_its_step(
    root: Path,
    commit: Commit,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
    reason: str,
    line: int,
) -> None:
    commit(CRITIQUE, DECISION)
    (root / PHASE).mkdir(parents=True)
    (root / PHASE / "critique.jsonl").write_bytes(data)
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "whatever")
    code, answer = verify(root, capsys)
    assert code == Exit.FINDINGS
    (found,) = answer["data"]["faults"]
    assert (found["commit"], found["path"]) == (
        git(root, "rev-parse", "HEAD"),
        f"{PHASE}/critique.jsonl",
    )
    assert (found["reason"], found.get("line", 0)) == (reason, line)
    assert run(["verify", "-C", str(root)]) == Exit.FINDINGS
    assert "1 artifact of the branch cannot be read" in capsys.readouterr().out

    commit(CRITIQUE)  # the last good version is back
    assert verify(root, capsys)[0] == Exit.DONE


def test_a_verdict_that_a_person_committed_against_its_own_evidence_is_named(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    failed = {"tier": "standard", "r": "PASS", "ps": 3, "fl": 1, "tt": 4, "dt": "2026-02-20"}
    check = {"c": "It signs", "r": "fail", "ev": "npm test", "cat": "must_have"}
    (root / PHASE).mkdir(parents=True, exist_ok=True)
    (root / PHASE / "verification.jsonl").write_bytes(jsonl(failed, check))
    git(root, "add", "-f", f"{PHASE}/verification.jsonl")
    git(root, "commit", "-qm", "whatever")
    found = faults(verify(root, capsys)[1], "reason", "at")
    assert found == [("state_conflict", "/fl"), ("state_conflict", "/r")]


def decided(what: str) -> dict[str, str]:
    return {"ts": "2026-02-19T08:00:00Z", "agent": "dev", "dec": what, "reason": "Why not"}


def commit_by_hand(root: Path, name: str, *records: dict[str, Any]) -> str:
    (root / PHASE).mkdir(parents=True, exist_ok=True)
    (root / PHASE / name).write_bytes(jsonl(*records))
    git(root, "add", "-f", PHASE)
    git(root, "commit", "-qm", f"docs: {name}")
    return git(root, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("decisions.jsonl", [decided(f"take {number}") for number in range(3)]),
        ("critique.jsonl", [FINDING | {"id": f"C{number}"} for number in range(3)]),
    ],
)
def test_a_merge_that_drops_records_of_a_side_is_named_until_the_branch_has_them_again(
    root: Path,
    commit: Commit,
    capsys: pytest.CaptureFixture[str],
    name: str,
    records: list[dict[str, Any]],
) -> None:
    first, mine, theirs = records
    commit((name, jsonl(first)))
    git(root, "reset", "-q", "--hard")
    git(root, "switch", "-qc", "theirs")
    tip = commit_by_hand(root, name, first, theirs)
    git(root, "switch", "-q", "main")
    commit_by_hand(root, name, first, mine)
    git(root, "merge", "-q", "-s", "ours", "--no-edit", "theirs")
    code, answer = verify(root, capsys)
    (found,) = answer["data"]["faults"]
    assert (code, found["reason"], found["line"]) == (Exit.FINDINGS, "records_lost", 2)
    assert (found["commit"], found["path"]) == (
        git(root, "rev-parse", "HEAD"),
        f"{PHASE}/{name}",
    )
    assert found["message"].endswith(f" of {tip[:12]}") and tip[:12] in found["hint"]
    assert run(["verify", "-C", str(root)]) == Exit.FINDINGS
    assert "1 merge dropped records that the branch still lacks" in capsys.readouterr().out
    commit((name, jsonl(first, mine, theirs)))
    assert verify(root, capsys)[0] == Exit.DONE


def test_a_merge_that_takes_what_a_side_removed_or_moved_has_dropped_nothing(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (FINDING | {"id": f"C{number}"} for number in range(2))
    commit(("critique.jsonl", jsonl(one, two)), DECISION)
    git(root, "reset", "-q", "--hard")
    git(root, "switch", "-qc", "moved")
    git(root, "mv", PHASE, PHASE.replace("auth", "login"))
    git(root, "commit", "-qm", "docs: rename it")
    git(root, "switch", "-q", "main")
    commit_by_hand(root, "critique.jsonl", two)
    commit_by_hand(root, "decisions.jsonl", json.loads(DECISION[1]), decided("go on"))
    git(root, "merge", "-q", "--no-edit", "moved")
    assert git(root, "ls-files", PHASE) == ""
    assert verify(root, capsys)[0] == Exit.DONE


def test_range_chooses_the_commits(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE, DECISION)
    assert verify(root, capsys, "HEAD~1..HEAD")[1]["data"]["verified"] == 1
    for unknown in ("nowhere", "nowhere..HEAD", "HEAD..nowhere", "--all"):
        code, answer = verify(root, capsys, "--", unknown)
        assert (code, answer["findings"][0]["reason"]) == (Exit.USAGE, "unknown_commit")


def test_repository_without_a_commit_has_nothing_wrong(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = verify(root, capsys)
    assert (code, answer["data"]["verified"]) == (Exit.DONE, 0)


def execution(*entries: tuple[str, str]) -> tuple[str, bytes]:
    """Return an execution state with escalations: id, status."""
    named = [{"id": f"ESC-01-02-{task}", "task": f"01-02/{task}", "plan": "01-02", "severity": "blocking",
              "status": status, "level": "senior", "escalated_at": "2026-02-19T08:00:00Z",
              "last_escalated_at": "2026-02-19T08:00:00Z", "resolved_at": "", "round_trips": 0,
              "resolution": ""} for task, status in entries]  # fmt: skip
    state = {"phase": 1, "phase_name": "01-auth", "status": "running", "started_at": "2026-02-19T08:00:00Z",
             "step": "planning", "wave": 1, "total_waves": 1, "plans": [],
             "steps": {"planning": {"status": "running"}}, "escalations": named}  # fmt: skip
    return ".execution-state.json", jsonl(state)


def test_escalations_that_come_and_go_have_their_subjects(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    for entries in ((), (("T1", "pending"),), (("T1", "resolved"),)):
        commit(execution(*entries))
    said = git(root, "log", "--reverse", "--format=%s", "main").splitlines()[-3:]
    assert [one.removeprefix("chore(state): ") for one in said] == [
        "execution state phase 1", "escalation received phase 1", "escalation resolved phase 1",
    ]  # fmt: skip
    assert verify(root, capsys)[0] == Exit.DONE


def test_history_from_before_escalations_had_subjects_passes(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(execution())
    commit(execution(("T1", "pending")))
    rewrite(root, b"escalation received phase 1", b"execution state phase 1    ")
    assert verify(root, capsys)[0] == Exit.DONE
    assert git(root, "log", "-1", "--format=%s", "main") == "chore(state): execution state phase 1"


def test_a_state_that_takes_no_escalation_in_may_not_be_called_so(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(execution(("T1", "pending")))
    commit(execution(("T1", "resolved")))
    rewrite(root, b"escalation resolved phase 1", b"escalation received phase 1")
    assert [reason for (reason,) in faults(verify(root, capsys)[1], "reason")] == [
        "subject_mismatch"
    ]


# --- what was altered ------------------------------------------------------------------------------------------------


def test_altered_byte_is_named_by_commit_file_and_line(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    commit(DECISION)
    rewrite(root, b'"C2", "cat": "gap"', b'"C2", "cat": "gaq"')
    altered = git(root, "rev-parse", "main~1")
    code, answer = verify(root, capsys)
    assert code == Exit.FINDINGS
    assert faults(answer, "commit", "reason", "path", "line", "at") == [
        (altered, "unknown_value", f"{PHASE}/critique.jsonl", 2, "/cat")
    ]
    assert answer["findings"][0]["path"] == f"{altered[:12]}:{PHASE}/critique.jsonl"


def test_line_of_broken_json_is_named(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    rewrite(root, b'"q": "Where?"', b'"q": "Where? ')
    assert faults(verify(root, capsys)[1], "reason", "line")[0] == ("json_parse_error", 2)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (b"docs(01): critique", b"docs(02): critique", "subject_mismatch"),
        (b"Yolo-Phase: 01-auth", b"Yolo-Phase: 02-auth", "trailer_mismatch"),
        (b"Yolo-Dept: backend", b"Yolo-Dept: uiux   ", "trailer_mismatch"),
        (f"{PHASE}/critique.jsonl".encode(), f"{PHASE}/critiqua.jsonl".encode(), "not_an_artifact"),
        (b"M 100644 :", b"M 120000 :", "not_regular"),
        (b"01-auth/critique", b"02-auth/critique", "subject_mismatch"),
    ],
)
def test_altered_message_or_name_is_found(
    root: Path,
    commit: Commit,
    capsys: pytest.CaptureFixture[str],
    before: bytes,
    after: bytes,
    reason: str,
) -> None:
    commit(CRITIQUE)
    rewrite(root, before, after)
    assert faults(verify(root, capsys)[1], "commit", "reason")[0] == (
        git(root, "rev-parse", "main"),
        reason,
    )


def test_second_path_in_a_commit_is_found(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    (root / "more.txt").write_text("more")
    git(root, "read-tree", "HEAD")
    git(root, "add", "more.txt")
    git(root, "commit", "-q", "--amend", "--no-edit")
    assert [reason for (reason,) in faults(verify(root, capsys)[1], "reason")] == ["several_paths"]


def test_deletion_in_our_name_is_found(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE)
    message = git(root, "log", "-1", "--format=%B")
    git(root, "read-tree", "--empty")
    git(root, "commit", "-qm", message)
    assert [reason for (reason,) in faults(verify(root, capsys)[1], "reason")] == ["deleted"]


def test_lost_blob_is_a_fault_of_its_commit_alone(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    first = commit(CRITIQUE)
    commit(DECISION)
    blob = git(root, "rev-parse", f"{first}:{PHASE}/critique.jsonl")
    unpack(root)
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    _, answer = verify(root, capsys)
    assert answer["data"]["verified"] == 2
    assert faults(answer, "commit", "reason") == [(first, "object_missing")]


def test_people_read_how_many_are_wrong(
    root: Path, commit: Commit, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(CRITIQUE, DECISION)
    rewrite(root, b"docs(01): critique", b"docs(02): critique")
    assert run(["verify", "-C", str(root)]) == Exit.FINDINGS
    seen = capsys.readouterr()
    assert seen.out == "2 commits verified: 1 with faults\n"
    assert "subject_mismatch" in seen.err
