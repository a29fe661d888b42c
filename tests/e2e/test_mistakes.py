"""What agents get wrong, each mended in one turn by whoever does what the refusal says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.obedient import Obedient, said_by
from yolo_fs.artifacts.catalogue import find_kind
from yolo_fs.artifacts.table import ARTIFACTS, Artifact
from yolo_fs.checking.examples import example_for, example_of
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Finding, Level, Reason

PHASE = "01-auth"
FOLDER = f".yolo-planning/phases/{PHASE}"
FINDING = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "Why?", "ctx": "Login", "sug": "Ask", "st": "open",
}  # fmt: skip


def lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def records_of(kind: str, name: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in example_for(name or kind).splitlines()]


GOOD = lines(FINDING)
HEADER, FIRST, SECOND = records_of("plan", "01-01.plan.jsonl")[:3]
[SUMMARY] = [
    record | {"ch": [], "s": "partial"} for record in records_of("", "01-01.summary.jsonl")
]
TEST_PLAN = records_of("test-plan")[0]


def finding(**changes: Any) -> str:
    return lines({key: value for key, value in (FINDING | changes).items() if value != "absent"})


def plan(header: dict[str, Any] | None = None, *tasks: dict[str, Any]) -> str:
    return lines(HEADER | (header or {}), *(tasks or (FIRST, SECOND)))


def summary(**changes: Any) -> str:
    return lines(SUMMARY | changes)


MISTAKES: dict[str, tuple[str, str | bytes]] = {
    # The twelve of the first user.
    "a word that is not listed": ("critique.jsonl", finding(sev="high")),
    "three missing keys": ("critique.jsonl", finding(q="absent", sev="absent", st="absent")),
    "a plural": ("critiques.jsonl", GOOD),
    "a torn line": ("critique.jsonl", GOOD + '{"id":"C2","cat":"ga'),
    "pretty JSON": ("critique.jsonl", json.dumps(FINDING, indent=2) + "\n"),
    "a fence": ("critique.jsonl", f"```json\n{GOOD}```\n"),
    "CRLF": ("critique.jsonl", GOOD.replace("\n", "\r\n")),
    "a byte order mark": ("critique.jsonl", "\ufeff" + GOOD),
    "a number as text": ("01-01.summary.jsonl", summary(tc="1")),
    "the number of another plan": ("01-01.plan.jsonl", plan({"n": "02"})),
    "a plan that is not there": ("01-01.plan.jsonl", plan({"d": ["01-09"]})),
    "the folder above": ("../critique.jsonl", GOOD),
    "a line twice": ("critique.jsonl", GOOD + GOOD),
    # Forms of text.
    "an array": ("critique.jsonl", json.dumps([FINDING]) + "\n"),
    "a trailing comma": ("critique.jsonl", GOOD.replace("}", ",}")),
    "single quotes": ("critique.jsonl", GOOD.replace('"', "'")),
    "no last newline": ("critique.jsonl", GOOD.strip()),
    "nothing": ("critique.jsonl", ""),
    "prose before it": ("critique.jsonl", f"Here is the critique:\n{GOOD}"),
    "prose around it": ("critique.jsonl", f"Here is the critique:\n{GOOD}Done.\n"),
    "typographic quotes": ("critique.jsonl", GOOD.replace('"', "\u201c")),
    "a comment": ("critique.jsonl", f"// findings\n{GOOD}"),
    "commas between the lines": ("critique.jsonl", f"{GOOD.strip()},\n{finding(id='C2')}"),
    "Python's repr": ("critique.jsonl", f"{FINDING!r}\n"),
    "two in a line": ("critique.jsonl", GOOD.strip() + GOOD),
    "NaN": ("critique.jsonl", GOOD.replace('"Ask"', "NaN")),
    "a key twice": ("critique.jsonl", '{"id":"C2",' + GOOD[1:]),
    "Markdown": ("critique.jsonl", "# Critique\n\n- Why does it expire?\n- Who signs?\n"),
    "Markdown that is torn": ("critique.jsonl", "# Critique\n\n- Why does it expire?"),
    "a lone string": ("critique.jsonl", '"hello"\n'),
    "null": ("critique.jsonl", "null\n"),
    "UTF-16": ("critique.jsonl", GOOD.encode("utf-16")),
    "UTF-16, big end first": ("critique.jsonl", b"\xfe\xff" + GOOD.encode("utf-16-be")),
    "NUL": ("critique.jsonl", GOOD.replace("Ask", "A\0k")),
    "Latin-1": ("critique.jsonl", GOOD.replace("Ask", "Gr\u00fc\u00dfe").encode("latin-1")),
    "a blank line": ("critique.jsonl", GOOD + "\n" + finding(id="C2")),
    "Python's words": ("test-plan.jsonl", lines(TEST_PLAN).replace("true", "True")),
    # Values.
    "a capital": ("critique.jsonl", finding(sev="Major")),
    "a word of another list": ("critique.jsonl", finding(cat="security")),
    "true for a number": ("critique.jsonl", finding(rd=True)),
    "a share for percent": ("critique.jsonl", finding(cf=0.9)),
    "a percent sign": ("critique.jsonl", finding(cf="90%")),
    "null in a text": ("critique.jsonl", finding(sug=None)),
    "a list for a text": ("critique.jsonl", finding(q=["a"])),
    "a text for a list": ("01-01.plan.jsonl", plan({"fm": "src/a.py"})),
    "a text for true": ("test-plan.jsonl", lines(TEST_PLAN | {"red": "true"})),
    "long names": (
        "critique.jsonl",
        lines({
            "id": "C1", "category": "gap", "severity": "major", "question": "Why?", "context": "x",
            "suggestion": "y", "status": "open",
        }),
    ),
    "a key of its own": ("critique.jsonl", finding(confidence=3)),
    "another form of id": ("critique.jsonl", finding(id="1")),
    "an empty text": ("critique.jsonl", finding(q="")),
    "an absolute path": ("01-01.plan.jsonl", plan({"fm": ["/etc/x"]})),
    "a path that leaves": ("01-01.plan.jsonl", plan({"fm": ["../x"]})),
    "a wave as text": ("01-01.plan.jsonl", plan({"w": "1"})),
    "no aim": ("01-01.plan.jsonl", plan({"obj": 3})),
    "must-haves as a list": ("01-01.plan.jsonl", plan({"mh": ["Tokens are signed"]})),
    "must-haves of one kind": ("01-01.plan.jsonl", plan({"mh": {"tr": ["Tokens are signed"]}})),
    "a day in words": ("01-01.summary.jsonl", summary(dt="yesterday")),
    "half a task": ("01-01.summary.jsonl", summary(tc=1.5)),
    "fewer than none": ("01-01.summary.jsonl", summary(tc=-1)),
    "a synonym": ("01-01.summary.jsonl", summary(s="done")),
    "deviations as objects": ("01-01.summary.jsonl", summary(dv=[{"t": "x", "d": "y"}])),
    "tests in a word of its own": ("01-01.summary.jsonl", summary(tst="all passed")),
    # What is referred to.
    "a commit of elsewhere": ("01-01.summary.jsonl", summary(ch=["4f1c2aa"])),
    "a header alone": ("01-01.plan.jsonl", lines(HEADER)),
    "a task that waits for itself": ("01-01.plan.jsonl", plan(None, FIRST | {"td": ["T1"]})),
    "two that wait for each other": (
        "01-01.plan.jsonl",
        plan(None, FIRST | {"td": ["T2"]}, SECOND | {"td": ["T1"]}),
    ),
    "a task that is not there": ("01-01.plan.jsonl", plan(None, FIRST | {"td": ["T9"]})),
    "a task's long name": ("01-01.plan.jsonl", plan(None, FIRST | {"id": "task-1"})),
    "a task twice": ("01-01.plan.jsonl", plan(None, FIRST, FIRST)),
    # Names.
    "a capital in the name": ("Critique.jsonl", GOOD),
    "a second ending": ("critique.jsonl.txt", GOOD),
    "another ending": ("critique.json", GOOD),
    "a folder too many": ("notes/critique.jsonl", GOOD),
    "the plan's kind first": ("plan-01.jsonl", plan()),
    # TOON.
    "Markdown for TOON": ("architecture.toon", "# Architecture\n\nWe use REST.\n"),
    "a title alone": ("architecture.toon", "title: x\n"),
    "empty sections": ("architecture.toon", "tech_decisions[0]:\ncomponents[0]:\n"),
    "JSON for TOON": ("architecture.toon", '{"title": "x"}\n'),
}  # fmt: skip


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a phase and a commit."""
    root = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        for words in (
            ("init", "-q", "-b", "main"),
            ("config", "user.email", "dev@example.com"),
            ("config", "user.name", "Dev"),
            ("commit", "-q", "--allow-empty", "-m", "chore(repo): begin"),
        ):
            subprocess.run(["git", *words], cwd=root, check=True)
        said_by("init", "-q", "--no-hooks", "-C", str(root))
    (root / FOLDER / "notes").mkdir(parents=True)
    return root


@pytest.fixture
def root(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "repo"
    shutil.copytree(ready, root)
    monkeypatch.chdir(root)
    yield root


def written(root: Path, name: str, content: str | bytes) -> Path:
    path = root / FOLDER / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


def told_by_validate(root: Path, path: Path) -> str:
    return said_by("validate", "-C", str(root))


def told_by_hook(root: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the host hands its agent after a write; nothing where the file is accepted."""
    import io

    payload = {
        "hook_event_name": "PostToolUse", "tool_name": "Write", "cwd": str(root), "session_id": "s",
        "tool_input": {"file_path": os.path.normpath(path)}, "tool_response": {"success": True},
    }  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode())))
    out = said_by("hook", "post-tool-use", "--host", "claude")
    told = json.loads(out) if out.strip() else {}
    return str(told.get("reason", ""))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_mended_in_one_turn_from_what_validate_prints(
    root: Path, mistake: str
) -> None:
    path = written(root, *MISTAKES[mistake])
    message = told_by_validate(root, path)
    Obedient(root, PHASE).obey(message)
    assert run(["validate"]) == 0, (message, told_by_validate(root, path))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_mended_in_one_turn_from_what_the_hook_tells_the_agent(
    root: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(root, *MISTAKES[mistake])
    is_refused = run(["validate"]) != 0
    message = told_by_hook(root, path, monkeypatch)
    assert bool(message) == is_refused
    Obedient(root, PHASE).obey(message)
    assert run(["validate"]) == 0, (message, told_by_validate(root, path))


def test_most_of_these_mistakes_are_refused(root: Path) -> None:
    """Else the two tests above would show nothing."""
    refused = 0
    for name, content in MISTAKES.values():
        path = written(root, name, content)
        refused += run(["validate", str(path)]) != 0
        path.unlink()
    assert refused >= 42, refused


KINDS = [
    artifact
    for artifact in ARTIFACTS
    if artifact.file.endswith((".json", ".jsonl")) and find_kind(f"artifact/{artifact.kind}")
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda artifact: artifact.kind)
def test_each_key_of_each_kind_that_is_absent_or_wrong_is_filled_in_from_the_message(
    kind: Artifact, root: Path
) -> None:
    """The message names the key, what is expected, and a value that is accepted in its place."""
    is_spread = kind.file.endswith(".json")
    text = example_of(kind.kind)
    records = [json.loads(each) for each in ([text] if is_spread else text.splitlines())]
    path = root / f"some{'.json' if is_spread else '.jsonl'}"
    asked = ("validate", path.name, "--type", f"artifact/{kind.kind}", "--json")
    for number, record in enumerate(records[:2]):
        for key in record:
            for value in (ABSENT, {"no": "value"}, 7.5):
                wrong = {**record, key: value}
                wrong = {name: each for name, each in wrong.items() if each is not ABSENT}
                changed = [*records[:number], wrong, *records[number + 1 :]]
                path.write_text(lines(*changed))
                found = [each for each in told(asked) if each["level"] == "error"]
                Obedient(root, PHASE).obey("\n".join(map(said, found)))
                left = {(each["reason"], each["at"]) for each in told(asked)}
                again = {(each["reason"], each["at"]) for each in found} & left
                again = {(reason, at) for reason, at in again if reason not in OF_TWO_VALUES}
                assert not again, (key, value, [said(each) for each in found], path.read_text())


ABSENT = object()
OF_TWO_VALUES = ("state_conflict", "totals_disagree")
"""Two values that exclude each other: which of them is wrong only the author knows."""


def told(asked: tuple[str, ...]) -> list[dict[str, Any]]:
    return list(json.loads(said_by(*asked))["findings"])


def said(found: dict[str, Any]) -> str:
    """Return a finding as people read it."""
    finding = Finding(**{**found, "reason": Reason.of(found["reason"]), "level": Level.ERROR})
    return str(finding)
