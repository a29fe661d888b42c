"""One checker: the daemon, `validate`, `validate --staged` and `verify` name the same findings of every example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.examples import FIXTURES, Example, examples
from yolo_fs.artifacts.catalogue import artifact_of
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.handoff_names import handoff_name
from yolo_fs.artifacts.table import Home
from yolo_fs.artifacts.verdicts import Accepted, Held, Rejected
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import AtCommit, BlobReader, WorkTree
from yolo_fs.checking.validate import Validator
from yolo_fs.checking.verify import Verifier
from yolo_fs.core.reasons import Finding, Level, Reason, errors
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs
from yolo_fs.handoff_service.sessions import PacketSource
from yolo_fs.scanning.pipeline import Pipeline
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.workspace.settings import Settings, load

PHASE = ".yolo-planning/phases/01-auth"
GAPS = {"dept": "", "plan": "01-02", "NN": "01", "department": "backend"}
NAMES = {
    "handoff/handoff-file": "HANDOFF.md",
    "handoff/handoff-json": "handoff.json",
    "state/dept-status": ".dept-status-backend.json",
    "config": "config.json",
}
"""Kinds that are no artifacts → the name that such a file has in the planning tree."""
NOT_COMMITTED = ("handoff.json", ".dept-status-backend.json", "config.json")
_SESSION = re.compile(rb'("session_id":\s*")[0-9A-Fa-f-]{36}"')
_HANDED = re.compile(rb"(  session_id: )([0-9A-Fa-f-]{36})(\n(?:.*\n)*?  directive_branch: (.*))")
_MENTIONED = re.compile(rb'"((?:design|documents|inputs|prototype)/[^"]+)"')

Told = list[tuple[str, int, str, str]]


class Planted(NamedTuple):
    """An example at its place in the repository."""

    path: str
    data: bytes
    name: str
    """Path of the example."""


def planted(example: Example, number: int) -> Planted | None:
    """Return an example with a place of its own, so that no two are neighbours; None for other kinds."""
    data = example.path.read_bytes()
    kind = example.kind.name
    folder = f"{PLANNING_ROOT}/milestones/m{number}"
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, example.name))
    data = _HANDED.sub(rb"\g<1>" + session.upper().encode() + rb"\g<3>", data)
    if artifact := artifact_of(example.kind):
        name = re.sub(r"\{(\w+)\}", lambda gap: GAPS[gap[1]], artifact.file)
        home = folder if artifact.home is Home.ROOT else f"{folder}/phases/01-auth"
        return Planted(f"{home}/{name}", data, example.name)
    if kind in NAMES:
        return Planted(f"{folder}/phases/01-auth/{NAMES[kind]}", data, example.name)
    if not kind.startswith("envelope/"):
        return None
    data = _SESSION.sub(rb"\g<1>" + session.encode() + b'"', data)
    path = handoff_name(session, "orchestrator", "prd", "2026-01-02T03:04:05Z")
    return Planted(path, data, example.name)


ALL = [file for number, example in enumerate(examples()) if (file := planted(example, number))]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    """A repository whose work tree holds every example, with the files and sessions they mention."""
    root = tmp_path_factory.mktemp("same") / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for file in ALL:
        write(root, file.path, file.data)
        for mentioned in _MENTIONED.findall(file.data):
            write(root, os.fsdecode(mentioned).rstrip("/"), b"something\n")
        if file.path.endswith("/HANDOFF.md") and (handed := _HANDED.search(file.data)):
            plan_session(root, handed[2].decode(), handed[4])
    begin = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "-q", "--allow-empty", "-m", "chore: begin"]  # fmt: skip
    subprocess.run(["git", *begin], cwd=root, check=True)
    with pytest.MonkeyPatch.context() as patch, Repository(str(root), durable=False) as found:
        patch.setenv("XDG_CONFIG_HOME", str(root.parent / "no config"))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        yield found


def plan_session(root: Path, session: str, branch: bytes) -> None:
    readme = b"---\nmeta:\n  session_priority: ultra\n  directive_branch: " + branch + b"\n---\n"
    write(root, f"apps/web/.local/directives/{session.lower()}/README.md", readme)


def write(root: Path, path: str, data: bytes) -> None:
    file = root / path
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def told(findings: tuple[Finding, ...]) -> Told:
    return [(one.reason.value, one.line, one.at, one.message) for one in findings]


def by_daemon(repository: Repository) -> dict[str, tuple[Finding, ...]]:
    intake = Pipeline(repository, load(repository.root).without_patience)
    found = {}
    for file in ALL:
        match intake.look(file.path, repository.head(), None).verdict:
            case Rejected(findings) | Held(_, findings):
                found[file.path] = findings
            case Accepted(warnings=warnings):
                found[file.path] = warnings
    intake.close()
    return found


def by_validate(repository: Repository, *, staged: bool) -> dict[str, tuple[Finding, ...]]:
    validator = Validator(repository.root)
    paths = [file.path for file in ALL]
    files = (
        validator.staged(paths)
        if staged
        else validator.paths([os.path.join(repository.root, path) for path in paths])
    )
    found = {
        os.path.relpath(file.path, repository.root) if not staged else file.path: file.findings
        for file in files
    }
    validator.close()
    return found


def by_verify(repository: Repository) -> dict[str, tuple[Finding, ...]]:
    branches = RefUpdater(repository, durable=False)
    committer = Committer(repository, branches, IndexSync(repository), lambda: datetime.now(UTC))
    requests = [
        CommitRequest(file.path, file.data, "forced", (("Yolo-Artifact", file.path),))
        for file in ALL
        if not file.path.endswith(NOT_COMMITTED)
    ]
    committer.commit(requests, repository.head())
    branches.close()
    verifier = Verifier(repository, load(repository.root))
    own = (Reason.SUBJECT_MISMATCH, Reason.TRAILER_MISMATCH)
    return {
        verified.commit.changes[0][1]: tuple(
            fault.finding for fault in verified.faults if fault.finding.reason not in own
        )
        for verified in verifier.verify("HEAD")
    }


def test_every_caller_names_the_same_findings(repository: Repository) -> None:
    work_tree = by_validate(repository, staged=False)
    assert work_tree.keys() == {file.path for file in ALL}
    daemon = by_daemon(repository)
    assert len(daemon) > 400
    for path, findings in daemon.items():
        assert told(findings) == told(work_tree[path]), path
    subprocess.run(["git", "add", "-A", "-f", "."], cwd=repository.root, check=True)
    staged = by_validate(repository, staged=True)
    assert staged.keys() == work_tree.keys()
    for path, findings in staged.items():
        assert told(findings) == told(work_tree[path]), path
    verified = by_verify(repository)
    assert verified.keys() == daemon.keys()
    for path, findings in verified.items():
        wrong = [one for one in errors(work_tree[path]) if one.reason is not Reason.WAITS_FOR]
        assert told(findings) == told(tuple(wrong)), path


@pytest.mark.proves("001:60")
def test_a_handoff_file_has_one_verdict(repository: Repository) -> None:
    settings = load(repository.root)
    handoffs = DirectiveHandoffs(repository, settings)
    data = min((FIXTURES / "examples/handoffs/handoff-file/ok").iterdir()).read_bytes()
    handed = _HANDED.search(data)
    assert handed
    plan_session(Path(repository.root), handed[2].decode(), handed[4])
    for name, text in (
        ("trigger", re.sub(rb"trigger: .*", b"trigger: no_such_trigger", data)),
        ("role", re.sub(rb"to_role: .*", b"to_role: developer", data)),
        ("ok", data),
    ):
        path = f".yolo-planning/handoffs/{name}/HANDOFF.md"
        write(Path(repository.root), path, text)
        place = classify(path)
        assert place
        checked = Checker(settings).check(place, text, WorkTree(repository.root, 1 << 20))
        received = handoffs.check(PacketSource(path, text), datetime.now(UTC))
        assert bool(errors(checked.findings)) == (name != "ok")
        assert set(told(checked.findings)) <= set(told(received.findings))


def test_a_neighbour_that_changes_is_read_again(tmp_path: Path) -> None:
    def plan(number: str, wave: int, *needs: str) -> bytes:
        header = {"p": "01", "n": number, "t": "Login", "w": wave, "d": needs, "obj": "Log in"}
        task = {"id": "T1", "tp": "auto", "a": "Do", "f": ["a.ts"], "v": "Look", "done": "Done"}
        lines = ({**header, "mh": {"tr": [], "ar": [], "kl": []}}, task)
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    checker, tree = Checker(Settings(Config(), Policy())), WorkTree(str(tmp_path), 1 << 20)
    place = classify(f"{PHASE}/01-02.plan.jsonl")
    assert place
    own, first = plan("02", 2, "01-01"), tmp_path / PHASE / "01-01.plan.jsonl"
    reasons = []
    for wave in (1, 2, 1):
        write(tmp_path, str(first.relative_to(tmp_path)), b"")
        first.write_bytes(plan("01", wave))
        os.utime(first, ns=(10**18 + wave, 10**18 + wave))
        reasons.append([one.reason for one in checker.check(place, own, tree).findings])
    assert reasons == [[], [Reason.WAVE_ORDER], []]
    first.unlink()
    (missing,) = checker.check(place, own, tree).findings
    assert missing.reason is Reason.WAITS_FOR


def test_history_does_not_prove_that_a_mentioned_file_is_absent(repository: Repository) -> None:
    blobs = BlobReader(repository, 1 << 20)
    tip = repository.head().tip
    assert tip
    assert AtCommit(repository, tip, blobs).why_absent("documents/never.md") is None
    assert WorkTree(repository.root, 1 << 20).why_absent("documents/never.md") is not None


@pytest.mark.parametrize(
    ("several", "path", "at"),
    [
        (True, "src/login.ts", ["/f/0"]),
        (True, "design/login.json", []),
        (True, "srcs/login.ts", []),
        (False, "src/login.ts", []),
    ],
)
def test_a_plan_that_names_a_file_of_another_lane_is_warned_of(
    tmp_path: Path, several: bool, path: str, at: list[str]
) -> None:
    config = Config(departments={"uiux": several, "frontend": several, "backend": True})
    header = {"p": "01", "n": "01", "t": "Login", "w": 1, "d": [], "xd": [], "mh": {}, "obj": "x", "sk": [], "fm": [path]}  # fmt: skip
    task = {"id": "T1", "tp": "auto", "a": "Draw it", "f": [path], "v": "", "done": "it is there"}
    data = b"".join(json.dumps(line).encode() + b"\n" for line in (header, task))
    place = classify(f"{PHASE}/ux-01-01.plan.jsonl")
    assert place is not None
    around = WorkTree(str(tmp_path), 1 << 20, lambda names: dict.fromkeys(names, True))
    faults = Checker(Settings(config, Policy())).check(place, data, around).faults
    told = [(one.at, one.level) for one in faults if one.reason is Reason.OUT_OF_LANE]
    assert told == [(each, Level.WARNING) for each in at]


PLAN = """\
{"p":"01","n":"01","t":"JWT","w":1,"d":[],"xd":[],"obj":"Log in","mh":{"tr":["It works"],"ar":[],"kl":[]}}
{"id":"T1","tp":"auto","a":"Do","f":["src/a.py"],"v":"Look","done":"Done"}
"""
ASSIGNED = {"agent": "lead", "dec": "again", "reason": "x", "kind": "assign", "dt": "2026-02-19"}


@pytest.mark.parametrize(
    ("name", "line", "at", "says", "expected"),
    [
        ("code-review", {"plan": "01-07", "r": "approve"}, "/plan", "no plan 01-07", "01-01"),
        ("code-review", {"plan": "01-01", "r": "approve"}, "", "", ""),
        ("decisions", {"of": "01-01/T9"}, "/of", "has no task 01-01/T9", "01-01/T1"),
        ("decisions", {"of": "01-07/T1"}, "/of", "no plan 01-07", "01-01"),
        ("decisions", {"of": "01-01/T1", "task": "01-01/T1"}, "", "", ""),
        ("decisions", {"of": "backend"}, "", "", ""),
        ("test-results", {"plan": "01-07"}, "/plan", "no plan 01-07", "01-01"),
    ],
)
def test_a_record_that_names_no_plan_or_task_of_its_phase_is_warned_of(
    tmp_path: Path, name: str, line: dict[str, str], at: str, says: str, expected: str
) -> None:
    found = _named_wrongly(tmp_path, f"{name}.jsonl", json.dumps(ASSIGNED | line) + "\n")
    assert found == []  # without any plan beside it, it may be any
    _put(tmp_path, "01-01.plan.jsonl", PLAN)
    found = _named_wrongly(tmp_path, f"{name}.jsonl", json.dumps(ASSIGNED | line) + "\n")
    assert [one.at for one in found] == ([at] if at else [])
    for one in found:
        assert (says in one.message, one.expected, one.level) == (True, expected, Level.WARNING)


def test_a_summary_of_no_plan_of_its_phase_is_warned_of(tmp_path: Path) -> None:
    text = json.dumps({"p": "01", "n": "02", "s": "complete"}) + "\n"
    assert _named_wrongly(tmp_path, "01-02.summary.jsonl", text) == []
    _put(tmp_path, "01-01.plan.jsonl", PLAN)
    (found,) = _named_wrongly(tmp_path, "01-02.summary.jsonl", text)
    assert (found.message, found.expected) == ("no plan 01-02 in this phase", "01-01")
    assert found.level is Level.WARNING
    _put(tmp_path, "01-02.plan.jsonl", PLAN)
    assert _named_wrongly(tmp_path, "01-02.summary.jsonl", text) == []


def test_a_disposition_of_a_finding_that_no_critique_has_is_warned_of(tmp_path: Path) -> None:
    text = (FIXTURES / "examples/artifacts/architecture/ok/backend.toon").read_text()
    assert _named_wrongly(tmp_path, "architecture.toon", text) == []
    _put(tmp_path, "critique.jsonl", '{"id":"C1"}\n{"id":"C2"}\n')
    (found,) = _named_wrongly(tmp_path, "architecture.toon", text)
    assert found.at == "/critique_disposition/1/id"
    assert ("'C3'" in found.message, found.expected) == (True, "C1, C2")
    _put(tmp_path, "fe-critique.jsonl", '{"id":"C3"}\n')
    assert _named_wrongly(tmp_path, "architecture.toon", text) == []


def _put(root: Path, name: str, text: str) -> None:
    (root / PHASE).mkdir(parents=True, exist_ok=True)
    (root / PHASE / name).write_text(text)


def _named_wrongly(root: Path, name: str, text: str) -> list[Finding]:
    _put(root, name, text)
    place = classify(f"{PHASE}/{name}")
    assert place is not None
    checked = Checker(load(str(root))).check(place, text.encode(), WorkTree(str(root), 10**6))
    return [one for one in checked.findings if one.reason is Reason.UNKNOWN_REFERENCE]
