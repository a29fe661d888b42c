"""An agent in any host works by the Model Context Protocol alone; asked by the official client over real stdio."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.e2e.company import Agents, Label, Write
from tests.e2e.test_resume import begin
from tests.support.teams import EXAMPLES, Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.mcp.parameters import ANSWERS
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.spelling import name_tools
from yolo_fs.mcp.tools import with_errors_as_text

if TYPE_CHECKING:  # a second of imports, which only the worker that runs these tests shall wait for
    from mcp.client import Client

PHASE = ".yolo-planning/phases/01-auth"
IS_LONG = any(os.environ.get(name) for name in ("YOLO_TORTURE", "YOLO_MCP"))
CLIENTS = 8 if IS_LONG else 3
APPENDS = 10_000 if IS_LONG else 36
PHASES = 50 if IS_LONG else 1  # each append judges its whole file
CRITIQUE = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "No rate limit?", "ctx": "login",
    "sug": "Add one", "st": "open",
}  # fmt: skip


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.plan_one()
    return team


@asynccontextmanager
async def client(team: Team, *words: str) -> AsyncIterator[Client]:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "yolo_fs", "mcp", *words],
        cwd=str(team.root),
        env=dict(os.environ),
    )
    async with Client(stdio_client(command), mode="2026-07-28") as asked:
        yield asked


def within(team: Team, use: Callable[[Client], Coroutine[Any, Any, None]], *words: str) -> None:
    async def main() -> None:
        async with client(team, *words) as asked:
            await use(asked)

    anyio.run(main)


async def call(asked: Client, tool: str, **given: Any) -> dict[str, Any]:
    """Return what a tool answers; its refusal as text."""
    answer = await asked.call_tool(tool, given)
    text = "".join(getattr(part, "text", "") for part in answer.content)
    if answer.is_error:
        return {"refused": text}
    return dict(answer.structured_content or {})


async def rows(asked: Client, uri: str) -> Any:
    found = (await asked.read_resource(uri)).contents[0]
    return json.loads(getattr(found, "text", ""))


def test_every_tool_and_resource_teaches_and_answers(team: Team) -> None:
    async def use(asked: Client) -> None:
        tools = (await asked.list_tools()).tools
        assert len(tools) == 11
        for tool in tools:
            assert len(tool.description or "") > 200
            assert "\n  " not in (tool.description or ""), "no indentation of a docstring"
            for name, schema in tool.input_schema["properties"].items():
                assert len(schema["description"]) > 10, (tool.name, name)
                assert "title" not in schema
            assert tool.output_schema
            assert set(tool.output_schema["properties"]) >= {"text", "faults", "data"}
        hints = {tool.name: tool.annotations for tool in tools}
        assert [name for name in hints if hints[name].destructive_hint] == ["write_artifact"]
        assert "whose_turn" in [name for name in hints if hints[name].read_only_hint]
        assert not hints["append_record"].read_only_hint
        assert "next: critic does critique" in (await call(asked, "team_status"))["text"]
        assert (await call(asked, "whose_turn"))["data"]["next"]["agent"] == "critic"
        assert (await call(asked, "validate_artifact"))["valid"] is True
        allowed = await call(
            asked, "check_permission", agent="dev", action="write", subject="src/auth/keys.ts"
        )
        assert allowed["allowed"] is True
        every = await call(asked, "gate_status")
        assert {gate["open"] for gate in every["data"]["gates"]} == {False}
        assert every["open"] is False
        closed = await call(asked, "gate_status", name="all-depts")
        assert (closed["open"], "no valid critique.jsonl" in closed["text"]) == (False, True)
        assert (await call(asked, "handoff", action="check"))["done"] is False
        claim = {"action": "claim", "task": "01-01/T1"}
        assert (await call(asked, "task", agent="dev-1", **claim))["done"] is True
        assert (await call(asked, "task", agent="dev-2", **claim))["done"] is False
        opened = await call(
            asked, "escalate", action="open", task="01-01/T1", agent="dev", reason="no key",
            evidence=["the vault is empty"], recommendation="ask for one",
        )  # fmt: skip
        assert opened["done"], opened
        assert "ESC-01-01-T1" in (await call(asked, "escalate", action="list"))["text"]
        for resource in (await asked.list_resources()).resources:
            assert await rows(asked, str(resource.uri))
        plan = await asked.read_resource(f"yolo-fs://artifacts/{PHASE}/01-01.plan.jsonl")
        assert getattr(plan.contents[0], "text", "").startswith("{")
        assert (await rows(asked, "yolo-fs://schema/artifact/critique"))["type"]

    within(team, use)


def test_a_model_reads_the_words_of_an_answer_once_and_a_valid_example(team: Team) -> None:
    async def use(asked: Client) -> None:
        for tool, given in (
            ("team_status", {}),
            ("inbox", {}),
            ("whose_turn", {}),
            ("gate_status", {}),
            ("gate_status", {"name": "all-depts"}),
        ):
            answer = await asked.call_tool(tool, given)
            told = dict(answer.structured_content or {})
            words = "".join(getattr(part, "text", "") for part in answer.content)
            is_closed = told.get("open") is False
            assert words == ("open: false\n" if is_closed else "") + told["text"]
            assert is_closed is (tool == "gate_status")
            assert len(words) < len(json.dumps(told)) / 2
        turn = await call(asked, "whose_turn")
        example = turn["text"].partition("A valid one:\n")[2]
        checked = await call(asked, "validate_artifact", text=example, kind="artifact/critique")
        assert checked.get("valid") is True, checked

    within(team, use)


def test_the_example_of_a_turn_is_that_of_the_command_and_completes_the_step(team: Team) -> None:
    team.begin()
    team.example("architecture/ok/backend.toon", "architecture.toon")
    team.once()

    async def use(asked: Client) -> None:
        turn = await call(asked, "whose_turn")
        assert turn["data"]["next"]["step"] == "design_review", turn["text"]
        example = turn["text"].partition("A valid one:\n")[2]
        plan = (team.root / f"{PHASE}/01-01.plan.jsonl").read_text()
        own, shown = ([json.loads(line) for line in text.splitlines()] for text in (plan, example))
        assert [each.get("a") for each in shown] == [each.get("a") for each in own]
        assert all(task["spec"] for task in shown[1:])

    within(team, use)


def test_a_server_that_is_started_outside_a_repository_says_so_in_its_answers(
    team: Team, tmp_path: Path
) -> None:
    outside = Team.__new__(Team)
    outside.root = tmp_path / "outside"
    outside.root.mkdir()

    async def use(asked: Client) -> None:
        for tool in ("team_status", "inbox", "whose_turn", "validate_artifact"):
            refused = (await call(asked, tool))["refused"]
            assert f"not_a_repository: no git repository at {outside.root}" in refused
            assert "use -C" in refused

    within(outside, use)
    within(outside, _stands, "-C", str(team.root))


async def _stands(asked: Client) -> None:
    assert "next: critic does critique" in (await call(asked, "team_status"))["text"]


def _with_roots(
    start: Path, places: Sequence[Path], use: Callable[[Client], Coroutine[Any, Any, None]]
) -> None:
    """Start a server in a folder, for a client that has others open."""
    from mcp.client import Client, ClientRequestContext
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.types import ListRootsResult, Root
    from pydantic import FileUrl

    async def roots(_: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(place.as_uri())) for place in places])

    async def main() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "yolo_fs", "mcp"],
            cwd=str(start),
            env=dict(os.environ),
        )
        async with Client(stdio_client(command), mode="legacy", list_roots_callback=roots) as asked:
            await use(asked)

    anyio.run(main)


def test_a_server_started_anywhere_works_where_its_client_does(team: Team, tmp_path: Path) -> None:
    async def use(asked: Client) -> None:
        await _stands(asked)
        assert (
            await call(asked, "append_record", path=f"{PHASE}/critique.jsonl", record=CRITIQUE)
        )["written"]
        assert await rows(asked, "yolo-fs://artifacts")

    outside = tmp_path / "out side"
    outside.mkdir()
    _with_roots(outside, (outside, team.root / ".yolo-planning"), use)


def test_a_record_that_is_refused_makes_no_file(team: Team) -> None:
    async def use(asked: Client) -> None:
        answer = await call(asked, "append_record", path=f"{PHASE}/gaps.jsonl", record={"id": 7})
        assert "gaps.jsonl was not written" in answer["refused"]

    within(team, use)
    assert not (team.root / PHASE / "gaps.jsonl").exists()


def test_a_draft_that_is_refused_is_told_as_it_has_to_be(team: Team) -> None:
    """No command can repair a text that is no file: the agent writes what it is told."""
    right = json.dumps(CRITIQUE) + "\n"
    wrong = json.dumps(CRITIQUE | {"sev": "Major"}, indent=1)

    async def use(asked: Client) -> None:
        for path, text in (
            (f"{PHASE}/critique.jsonl", f"```json\n{wrong}\n```\n"),
            (f"{PHASE}/Critiques.jsonl", wrong),
        ):
            told = (await call(asked, "write_artifact", path=path, text=text))["refused"]
            draft = told.partition("corrected text:\n")[2].partition("\nNext: ")[0] + "\n"
            assert draft == right, told
            name = told.partition("with the path ")[2] or path
            assert (await call(asked, "write_artifact", path=name, text=draft))["written"]

    within(team, use)
    assert (team.root / PHASE / "critique.jsonl").read_text() == right


def test_what_a_repaired_draft_still_lacks_is_told_with_it(team: Team) -> None:
    text = f"```json\n{json.dumps(CRITIQUE | {'q': ''}, indent=1)}\n```\n"

    async def use(asked: Client) -> None:
        path = f"{PHASE}/critique.jsonl"
        told = (await call(asked, "write_artifact", path=path, text=text))["refused"]
        assert "- then: " in told and "/q: empty_value" in told
        draft = {"path": path, "text": text, "agent": "lead"}
        asked_only = await call(asked, "validate_artifact", **draft)
        assert "Then fix by hand:" in asked_only["text"] and "yolo-fs fix" not in asked_only["text"]

    within(team, use)


def test_a_server_started_in_a_repository_stays_there_whatever_its_client_opens(
    team: Team, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "other")], check=True)
    _with_roots(team.root, (tmp_path / "other",), _stands)


def test_an_answer_to_a_write_says_who_commits_it_and_whether_anything_changed(team: Team) -> None:
    path = f"{PHASE}/critique.jsonl"
    line = json.dumps(CRITIQUE) + "\n"

    async def use(asked: Client) -> None:
        first = await call(asked, "write_artifact", path=path, text=line)
        assert "no daemon runs" in first["text"] and "yolo-fs start" in first["text"], first
        again = await call(asked, "write_artifact", path=path, text=line)
        assert again["written"] and "nothing changes" in again["text"], again
        more = await call(asked, "append_record", path=path, record=CRITIQUE | {"id": "C2"})
        assert "line 2 written; no daemon runs" in more["text"], more

    within(team, use)


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("run: yolo-fs phase sign-off 1", "run: `task` action=sign-off phase=1"),
        (
            "with 'yolo-fs phase sign-off N --as lead'; any",
            "with `task` action=sign-off phase=N; any",
        ),
        (
            "run: yolo-fs decide assign 01-01/T1 --as lead --reason …",
            "run: `task` action=assign task=01-01/T1 agent=lead reason …",
        ),
        (
            "run: yolo-fs escalate resolve ESC-01-01-T1 --by lead --decision 'no VAT'",
            "run: `escalate` action=resolve id=ESC-01-01-T1 agent=lead decision='no VAT'",
        ),
        (
            "('yolo-fs schema example a.jsonl' prints a valid one)",
            "(`whose_turn` prints a valid one)",
        ),
        ("lacks it  → yolo-fs status", "lacks it  → `team_status`"),
        ("'yolo-fs workflow next --phase N' names that", "`whose_turn` names that"),
        ("# yolo-fs resume\nphase", "# yolo-fs resume\nphase"),
        ("yolo-fs answer ESC-01-01-T1 CHOICE", "yolo-fs answer ESC-01-01-T1 CHOICE"),
        ("a person makes a phase with 'yolo-fs phase new SLUG'.",) * 2,
    ],
)
def test_a_model_that_sees_tools_alone_is_told_the_tool_and_not_the_command(
    command: str, tool: str
) -> None:
    assert name_tools(command) == tool


def test_a_lead_has_a_task_done_again_by_tools_alone(team: Team) -> None:
    async def use(asked: Client) -> None:
        words = {"action": "assign", "task": "01-01/T1", "agent": "lead"}
        assert "reason is empty" in (await call(asked, "task", **words))["refused"]
        other = await call(asked, "task", **(words | {"agent": "dev", "reason": "QA"}))
        assert "dev does not decide on task 01-01/T1" in other["refused"], other
        assert (await call(asked, "task", **words, reason="QA: it fails"))["done"]

    within(team, use)
    (line,) = (team.root / f"{PHASE}/decisions.jsonl").read_text().splitlines()
    assert (json.loads(line)["kind"], json.loads(line)["of"]) == ("assign", "01-01/T1")


def test_nobody_writes_by_the_name_of_an_agent_that_there_is_not(team: Team) -> None:
    path = f"{PHASE}/critique.jsonl"

    async def use(asked: Client) -> None:
        for tool, given in (
            ("append_record", {"path": path, "record": CRITIQUE}),
            ("write_artifact", {"path": path, "text": json.dumps(CRITIQUE) + "\n"}),
            ("validate_artifact", {"path": path}),
        ):
            refused = await call(asked, tool, agent="banana", **given)
            assert "unknown agent 'banana'" in refused.get("refused", ""), (tool, refused)
        for action in ("open", "raise", "resolve"):
            named = {"id": "ESC-01-01-T1", "task": "01-01/T1", "decision": "x"}
            refused = await call(asked, "escalate", action=action, **named)
            assert "agent is empty" in refused.get("refused", ""), (action, refused)

    within(team, use)
    assert not (team.root / path).exists()


def test_former_names_are_answered_and_near_ones_corrected(team: Team) -> None:
    async def use(asked: Client) -> None:
        assert (await call(asked, "stand"))["text"] == (await call(asked, "team_status"))["text"]
        assert "Did you mean `team_status`?" in (await call(asked, "teamstatus"))["refused"]
        assert "Did you mean `append_record`?" in (await call(asked, "apend"))["refused"]
        near = await call(asked, "append_record", pth=f"{PHASE}/critique.jsonl", record=CRITIQUE)
        assert "Did you mean `path`?" in near["refused"]
        for wrong in (f"{PHASE}/critiques.jsonl", "critique.jsonl", "docs/critique.jsonl"):
            near = await call(asked, "append_record", path=wrong, record=CRITIQUE)
            assert near["refused"].partition("the path ")[2].endswith("/critique.jsonl"), near
        right = await call(asked, "append_record", path=f"{PHASE}/critiques.jsonl", record=CRITIQUE)
        path = right["refused"].rpartition("the path ")[2]
        assert (await call(asked, "append_record", path=path, record=CRITIQUE))["written"]

    within(team, use)


def test_the_five_commands_are_prompts_that_name_what_the_user_said(team: Team) -> None:
    async def use(asked: Client) -> None:
        prompts = {prompt.name: prompt for prompt in (await asked.list_prompts()).prompts}
        assert prompts.keys() == {"go", "debug", "fix", "research", "qa"}
        for name, prompt in prompts.items():
            assert prompt.description
            given = await asked.get_prompt(name, {"about": "the login <fails>"})
            text = "".join(getattr(each.content, "text", "") for each in given.messages)
            assert "the login <fails>" in text
            assert "yolo-fs resume" in text
            assert not {"$ARGUMENTS", "/yolo:", "---", "!`"} & {*text.split(), *text.split("`")}

    within(team, use)


def test_nobody_decides_in_the_name_of_another(team: Team) -> None:
    path = f"{PHASE}/decisions.jsonl"
    said = {"ts": "2026-02-21T08:00:00Z", "agent": "lead", "dec": "accept 01-01", "reason": "small"}
    decided = said | {"kind": "accept", "of": "01-01"}
    of_user = said | {"agent": "user", "kind": "accept_risk", "of": "backend"}

    async def use(asked: Client) -> None:
        for record in (decided, of_user):
            refused = await call(asked, "append_record", path=path, record=record)
            assert f"that record speaks for {record['agent']}" in refused["refused"]
            refused = await call(asked, "write_artifact", path=path, text=json.dumps(record) + "\n")
            assert f"that record speaks for {record['agent']}" in refused["refused"]
            for spelled in (f"./{path}", str(team.root / path)):
                refused = await call(asked, "append_record", path=spelled, record=record)
                assert f"that record speaks for {record['agent']}" in refused["refused"], spelled
        assert (await call(asked, "append_record", path=path, record=said | {"agent": "dev"}))[
            "written"
        ]

    within(team, use, "--as", "yolo-dev")
    assert len((team.root / path).read_text().splitlines()) == 1

    async def decide(asked: Client) -> None:
        assert (await call(asked, "append_record", path=path, record=decided))["written"]
        kept = (team.root / path).read_text()
        assert (await call(asked, "write_artifact", path=path, text=kept))["written"]
        assert "refused" in await call(asked, "append_record", path=path, record=of_user)

    within(team, decide, "--as", "yolo-lead")


def test_roles_and_isolation_hold_as_in_the_hooks(team: Team) -> None:
    path = f"{PHASE}/critique.jsonl"

    async def use(asked: Client) -> None:
        refused = await call(asked, "append_record", path=path, record=CRITIQUE)
        assert "dev" in refused["refused"]
        assert "another" not in (await call(asked, "team_status"))["text"]
        other = await call(asked, "append_record", path=path, record=CRITIQUE, agent="critic")
        assert "speaks for yolo-dev alone" in other["refused"]
        secret = await call(asked, "validate_artifact", path=".yolo-planning/ROADMAP.md")
        assert "never receives" in secret["refused"]
        with pytest.raises(Exception, match="never receives"):
            await asked.read_resource("yolo-fs://artifacts/.yolo-planning/ROADMAP.md")

    within(team, use, "--as", "yolo-dev")
    assert not (team.root / path).exists()


@pytest.mark.timeout(1200 if IS_LONG else 120)
def test_many_clients_append_at_once_and_nothing_is_lost_or_torn(team: Team) -> None:
    folders = [PHASE, *(f".yolo-planning/phases/{2 + at:02}-more" for at in range(PHASES - 1))]
    names = [f"{folder}/{kind}.jsonl" for folder in folders for kind in ("critique", "research")]
    for folder in folders:
        (team.root / folder).mkdir(exist_ok=True)
    research = json.loads((EXAMPLES / "research/ok/findings.jsonl").read_text().splitlines()[0])

    async def one_client(number: int) -> None:
        async with client(team) as asked:
            for turn in range(APPENDS // CLIENTS):
                at = number * (APPENDS // CLIENTS) + turn
                record = CRITIQUE | {"id": f"C{at + 1}"} if at % 2 else research | {"q": f"Q{at}"}
                answer = await call(
                    asked, "append_record", path=names[(at + 1) % len(names)], record=record
                )
                assert answer.get("written"), answer

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for number in range(CLIENTS):
                group.start_soon(one_client, number)

    anyio.run(main)
    seen = set()
    for name in names:
        for line in (team.root / name).read_text().splitlines():
            record = json.loads(line)
            seen.add(record.get("id") or record["q"])
    expected = {f"C{at + 1}" if at % 2 else f"Q{at}" for at in range(APPENDS)}
    assert seen >= expected
    assert sum(len((team.root / name).read_text().splitlines()) for name in names) == APPENDS


HOSTILE: tuple[Mapping[str, Any], ...] = (
    {"path": "../outside/critique.jsonl"},
    {"path": "/etc/passwd"},
    {"path": "~/.ssh/authorized_keys"},
    {"path": "\0"},
    {"path": f"{PHASE}/critique.jsonl\0"},
    {"path": ""},
    {"path": "."},
    {"path": ".git/config"},
    {"path": f"{PHASE}"},
    {"path": f"{PHASE}/state.json"},
    {"path": f"{PHASE}/.dept-status-backend.json"},
    {"path": f"{PHASE}/.handoff-ux-complete"},
    {"path": f"{PHASE}/../../../.git/hooks/pre-commit"},
    {"path": ".yolo-planning/phases/99-none/critique.jsonl"},
    {"path": f"{PHASE}/crítique.jsonl"},
    {"path": "x" * 10_000},
    {"path": ["a"]},
    {"path": None},
    {"path": 7},
    {"path": f"{PHASE}/critique.jsonl", "record": {}, "agent": "nobody-we-know\n\x1b[31m"},
    {"path": f"{PHASE}/critique.jsonl", "record": {"id": "C1"}},
    {"path": f"{PHASE}/critique.jsonl", "record": CRITIQUE | {"q": "x" * 5_000_000}},
    {"path": f"{PHASE}/critique.jsonl", "record": CRITIQUE | {"q": "AKIA" + "IOSFODNN7EXAMPLF"}},
    {"path": f"{PHASE}/critique.jsonl", "record": "not an object"},
    {"path": f"{PHASE}/critique.jsonl", "record": [1]},
    {"path": f"{PHASE}/critique.jsonl", "record": None},
    {"path": f"{PHASE}/critique.jsonl"},
)
OTHERS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("validate_artifact", {"text": "\0", "kind": "no/such/kind"}),
    ("gate_status", {"name": "no-such-gate"}),
    ("gate_status", {"name": "all-depts", "phase": "../.."}),
    ("whose_turn", {"phase": "99"}),
    ("whose_turn", {"phase": {"a": 1}}),
    ("check_permission", {"action": "explode", "subject": "x"}),
    ("check_permission", {"action": "read", "subject": "x"}),
    ("check_permission", {"action": "read", "subject": "x", "agent": "emperor"}),
    ("handoff", {"action": "emit", "fields": {}}),
    ("handoff", {"action": "emit", "fields": {"no": "field"}}),
    ("escalate", {"action": "open", "task": "nonsense"}),
    ("escalate", {"action": "raise", "id": "ESC-"}),
    ("escalate", {"action": "resolve", "id": ""}),
    ("task", {"action": "claim", "task": "01-01/T1"}),
    ("task", {"action": "claim", "task": "; ls", "agent": "dev-1"}),
    ("no_such_tool", {}),
)


def test_a_department_is_played_by_these_tools_alone(team: Team) -> None:
    """No hook, no command of ours: who is next, what is written and what is wrong are all asked of the server."""
    company = begin(
        team.root.parent / "company", departments={}, department_workflow="backend_only"
    )
    agents, played = Agents(company.root), []

    async def use(asked: Client) -> None:
        while True:
            brief = (await call(asked, "team_status"))["data"]
            if not brief.get("next"):
                break
            label, writes = agents.writes(brief)
            assert label not in played, (label, brief)
            played.append(label)
            for each in writes:
                await _done(asked, agents, label, each)
            company.once()

    within(company, use)
    steps = [label.step for label in played]
    assert steps[0] == "critique"
    assert {"research", "planning", "implementation", "code_review", "qa", "signoff"} <= set(steps)
    assert run(["verify", "-q", "-C", str(company.root)]) == 0


async def _done(asked: Client, agents: Agents, label: Label, each: Write) -> None:
    """Write as an agent does: records one by one, other artifacts whole, its own source with its own git."""
    if not each.path.startswith(".yolo-planning/phases/"):
        agents.do(each)
        return
    if not each.path.endswith(".jsonl") or label.step == "design_review":
        answers = [await call(asked, "write_artifact", path=each.path, text=each.text)]
    else:
        answers = [
            await call(asked, "append_record", path=each.path, record=json.loads(line))
            for line in each.text.splitlines()
        ]
    assert all(answer.get("written") for answer in answers), (label, answers)


def test_whatever_is_hostile_gets_a_clear_error_and_changes_nothing(team: Team) -> None:
    """Two hundred by mixing; the seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    cases: list[tuple[str, Mapping[str, Any]]] = list(OTHERS)
    cases += [
        ("append_record", {"record": CRITIQUE, **each} if "record" not in each else each)
        for each in HOSTILE
    ]
    cases += [("write_artifact", {"path": each.get("path"), "text": "{}\n"}) for each in HOSTILE]
    total = 200 if IS_LONG else len(cases)
    cases += [rng.choice(cases) for _ in range(total - len(cases))]
    before = {path: path.read_bytes() for path in team.root.rglob("*") if path.is_file()}

    async def use(asked: Client) -> None:
        for tool, given in cases:
            if given == {"record": CRITIQUE, "path": f"{PHASE}/critique.jsonl"}:
                continue
            try:
                answer = await call(asked, tool, **given)
            except Exception as error:  # the protocol's own error
                answer = {"refused": str(error)}
            text = answer.get("refused", "")
            assert text or answer.get(ANSWERS[tool]) is False, (tool, given, answer)
            assert "Traceback" not in text, (tool, given, text)
            assert "\x1b" not in text, (tool, given, text)
        assert (await call(asked, "validate_artifact"))["valid"] is True  # and it still serves

    within(team, use)
    after = {path: path.read_bytes() for path in team.root.rglob("*") if path.is_file()}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert {path for path in changed if ".git" not in path.parts} == set()


# --- what is no request ---


def nested(depth: int) -> str:
    return '{"a":' * depth + "{}" + "}" * depth


def asked_raw(team: Team, *lines: bytes) -> list[dict[str, Any]]:
    """Send lines as they are, one after the other, and return what each is answered."""
    begin = {
        "jsonrpc": "2.0", "id": "begin", "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "x", "version": "1"}},
    }  # fmt: skip
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    command = [sys.executable, "-m", "yolo_fs", "mcp"]
    answers = []
    with subprocess.Popen(
        command, cwd=team.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for line in (json.dumps(begin).encode(), *lines):
            server.stdin.write(line + b"\n")
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
            if len(answers) == 1:
                server.stdin.write(ready + b"\n\n  \n")
        server.stdin.close()
        assert server.wait(60) == 0
    return answers[1:]


CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"append_record","arguments":%s}}'
LATE = '{"method":"tools/call","params":{"name":"append_record","arguments":%s},"jsonrpc":"2.0","id":%s}'


NO_REQUESTS: tuple[tuple[str, Any], ...] = (
    *((CALL % (7, nested(depth)), 7) for depth in (200, 250, 400)),
    (LATE % (nested(300), 7), 7),
    (LATE % (nested(300).replace("a", "id"), '"seven"'), "seven"),
    *((CALL % (7, nested(depth)), None) for depth in (5_000, 100_000, 2_000_000)),
    ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + "[" * 100_000, None),
    (CALL % (7, '{"a":"' + "x" * (17 << 20) + '"}'), None),
    ('[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None),
    ("[]", None),
    ("7", None),
    ('"text"', None),
    ("null", None),
    ("{", None),
    ("nonsense", None),
    ("{}", None),
    ('{"id":7}', 7),
    ('{"jsonrpc":"1.0","id":7,"method":"ping"}', 7),
    ('{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', 7),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', None),
    ('{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', None),
    ('{"a":{"id":8},"b":"\\"id\\":9","id":7}', 7),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
    ('{"id":7,"x":"torn', None),
)  # fmt: skip


def test_what_is_no_request_is_answered_and_never_dropped(team: Team) -> None:
    answers = asked_raw(team, *(line.encode() for line, _ in NO_REQUESTS), b"\xff\xfe{", PING)
    assert answers.pop() == {"jsonrpc": "2.0", "id": "ping", "result": {}}, "it goes on"
    for (line, id_), answer in zip((*NO_REQUESTS, ("not text", None)), answers, strict=True):
        assert (answer["id"], answer["error"]["code"]) == (id_, -32600), (line[:80], answer)
        assert answer["error"]["message"].startswith(REASONS), (line[:80], answer)


REASONS = ("not a request: ", "nested too deeply: ", "too large: ")
PING = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}'


def test_every_depth_gets_an_answer(team: Team) -> None:
    depths = (50, 100, 150, *range(185, 210), 254, 255, 256)
    for depth, answer in zip(
        depths, asked_raw(team, *((CALL % (7, nested(n))).encode() for n in depths)), strict=True
    ):
        assert answer["id"] == 7, depth
        assert "error" in answer or answer["result"]["isError"], depth


# --- rights ---


def test_an_unknown_field_and_a_path_outside_are_named(team: Team) -> None:
    async def use(asked: Client) -> None:
        emitted = await call(asked, "handoff", action="emit", fields={"asked": "x"})
        assert "unknown_key" in emitted["refused"]
        assert "asked" in emitted["refused"]
        assert "blocking_rule" in emitted["refused"], "what there is instead"
        for file in (
            "../../etc/passwd",
            "/etc/shadow",
            "~/x",
            "src/../../x",
            ".git/hooks/a",
            ".env",
        ):
            claim = await call(
                asked, "task", action="claim", task="01-01/T1", agent="dev-1", files=[file]
            )
            assert "refused" in claim, file
        assert (await call(asked, "task", action="claims"))["data"]["items"] == []
        one, same = "src/auth/tokens.ts", "src/auth/../auth//tokens.ts"
        for agent, file, granted in (("dev-1", one, True), ("dev-2", same, False)):
            claim = {"action": "claim", "task": f"01-01/T{agent[-1]}", "files": [file]}
            assert (await call(asked, "task", agent=agent, **claim))["done"] is granted, claim

    within(team, use)
    assert run(["task", "claim", "01-01/T2", "--as", "dev-3", "--file", "../x", "-C",
                str(team.root)]) == Exit.USAGE  # fmt: skip


def test_a_resource_is_an_artifact_that_its_reader_may_read(team: Team) -> None:
    (team.root / ".env").write_text("A=1\n")
    (team.root / "src").mkdir(exist_ok=True)
    (team.root / "src/a.ts").write_text("export {}\n")
    (team.root / ".yolo-planning/notes.md").write_text("notes\n")
    phase = team.root / PHASE
    (phase / "alias").symlink_to(team.root / ".git")
    (phase / "critique.jsonl").write_text("{}\n")
    hidden = (
        ".env", ".git/config", "src/a.ts", ".yolo-planning/notes.md", ".yolo-planning/config.json",
        f"{PHASE}/alias/config", f"{PHASE}/critique.jsonl", f"{PHASE}/none.jsonl",
    )  # fmt: skip

    async def use(asked: Client) -> None:
        for path in hidden:
            with pytest.raises(Exception, match=r"out_of_lane|not_an_artifact|Unknown"):
                await asked.read_resource(f"yolo-fs://artifacts/{path}")
        plan = await asked.read_resource(f"yolo-fs://artifacts/{PHASE}/01-01.plan.jsonl")
        assert getattr(plan.contents[0], "text", "").startswith("{")

    within(team, use)
    within(team, use, "--as", "yolo-dev")


def test_nobody_is_served_for_an_agent_that_there_is_not(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mcp", "--as", "emperor", "-C", str(team.root)]) == Exit.USAGE
    assert "emperor" in capsys.readouterr().err


def test_a_planning_tree_elsewhere_is_not_taken_for_this_one(team: Team) -> None:
    text = f"{json.dumps(CRITIQUE)}\n"

    async def use(asked: Client) -> None:
        for path in (f"~/x/{PHASE}/critique.jsonl", f"/tmp/x/{PHASE}/critique.jsonl",
                     f"../x/{PHASE}/critique.jsonl", f"~{PHASE}/critique.jsonl"):  # fmt: skip
            assert "refused" in await call(asked, "write_artifact", path=path, text=text)
            assert "refused" in await call(asked, "append_record", path=path, record=CRITIQUE)

    within(team, use)
    assert not (team.root / PHASE / "critique.jsonl").exists()


def test_a_defect_of_ours_is_named_too(team: Team) -> None:
    def broken() -> None:
        raise KeyError("no such thing")

    with pytest.raises(
        ToolRefusedError, match=r"internal_error: KeyError: 'no such thing'\nNext: "
    ):
        with_errors_as_text(broken)()


HIDDEN = "\x9b31m\u202e\u2028\u200b\ue0001"


def test_no_tool_and_no_list_passes_on_a_character_that_cannot_be_seen(team: Team) -> None:
    from yolo_fs.mcp.server import BOARD, LIST

    odd = {**CRITIQUE, f"k{HIDDEN}": {"x": HIDDEN}, "q": HIDDEN}
    team.artifact("critique.jsonl", json.dumps(odd, ensure_ascii=False) + "\n")
    team.artifact(f"odd{HIDDEN}.jsonl", "{}\n")
    team.file(f"{PHASE}/01-01.plan.jsonl", json.dumps({"p": "01", "n": "01", "t": HIDDEN}) + "\n")

    async def play() -> list[str]:
        async with client(team) as asked:
            said = [await asked.read_resource(uri) for uri in (BOARD, LIST)]
            told = [
                await asked.call_tool(name, given)
                for name, given in (("validate_artifact", {}), ("validate_artifact", {"path": f"{PHASE}/critique.jsonl"}), ("team_status", {}),
                                    ("whose_turn", {}), ("append_record", {"path": f"{PHASE}/critique.jsonl", "record": odd}))
            ]  # fmt: skip
            return [each.model_dump_json() for each in (*said, *told)]

    texts = anyio.run(play)
    for text in texts:
        assert not set(HIDDEN) - set("31m") & set(text)
        assert not any(json.dumps(char)[1:-1] in text.replace("\\\\", "") for char in "\x9b\u202e")
    assert any("u202e" in text for text in texts)  # it is told, and can be seen


def test_a_change_is_told_to_who_listens(team: Team) -> None:
    from mcp.client.subscriptions import ResourceUpdated

    async def use(asked: Client) -> None:
        async with asked.listen(resource_subscriptions=["yolo-fs://board"]) as changes:
            await anyio.sleep(0.6)  # the journal is looked at twice a second
            team.begin()
            with anyio.fail_after(30):
                async for event in changes:
                    assert event == ResourceUpdated(uri="yolo-fs://board")
                    break
        assert (await call(asked, "whose_turn"))["data"]["next"]["agent"] != "critic"

    within(team, use)


def test_a_host_waits_for_nothing_that_only_a_tool_needs() -> None:
    asked = "import sys, yolo_fs.mcp.server; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True
    ).stdout
    assert [
        name
        for name in loaded.split()
        if name.startswith(("yolo_fs.checking", "yolo_fs.hooks", "yolo_fs.schemas.base"))
    ] == []


def test_without_its_library_it_says_how_to_get_it(
    team: Team, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "yolo_fs.mcp.server", None)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run(["mcp", "-C", str(team.root)]) != 0
    assert "yolo-fs" in capsys.readouterr().err
