"""Contexts in a real repository: within budget, strictly valid, proved line by line, and blind to what is forbidden."""

from __future__ import annotations

import gc
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.authority.test_access import ASKED
from tests.e2e.company import CONFIG, DEPARTMENTS, Agents, deeds
from tests.support.marked_phase import PHASE, Planted
from tests.support.teams import EXAMPLES, THREE, Team
from yolo_fs.artifacts.classify import classify
from yolo_fs.authority.access import GIT_DIFF, Target, may_read
from yolo_fs.authority.actors import find_actor
from yolo_fs.cli import hook_fast
from yolo_fs.cli.main import run
from yolo_fs.contexts.gather import Gatherer
from yolo_fs.contexts.selection import ContextSource
from yolo_fs.contexts.store import ContextAudit, ContextStore
from yolo_fs.core.ids import PhaseId
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.report import as_data
from yolo_fs.protocol.contexts import budget_of
from yolo_fs.reports.resume import resume
from yolo_fs.system.toon import read_toon
from yolo_fs.workspace.settings import load

FIRST = PhaseId("01", "auth")


@pytest.fixture(autouse=True, scope="module")
def nobody_s_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no config"))
        yield


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    team = Planted(tmp_path_factory.mktemp("planted") / "work")
    team.grow()
    return team


@pytest.fixture(scope="module")
def proved(planted: Planted) -> list[ContextAudit]:
    return list(proofs(planted.root))


@pytest.fixture
def team(tmp_path: Path) -> Team:
    team = Team(tmp_path / "work")
    team.config(THREE)
    team.user_commits("chore: begin", ".yolo-planning/config.json")
    return team


def contexts_of(root: Path) -> tuple[Repository, ContextStore]:
    repository = Repository(str(root))
    settings = load(repository.root)
    return repository, ContextStore(repository, settings, FactsReader(repository, settings))


def proofs(root: Path) -> Iterator[ContextAudit]:
    """Compile the contexts of all agents, and yield the proof of each."""
    repository, contexts = contexts_of(root)
    with repository:
        contexts.compile(contexts.agents(), FIRST)
        yield from contexts.prove(contexts.agents(), FIRST)


def check(root: Path, proof: ContextAudit) -> int:
    """Check a context by the file on disk alone; return how many of its lines cite another file."""
    data = (root / proof.path).read_bytes()
    assert -(-len(data) // 4) <= budget_of(proof.compiled.agent)
    assert read_toon(data, proof.path).findings == ()
    assert proof.findings == (), proof.compiled.agent
    assert data.decode() == proof.compiled.text
    return sum(cited(root, line) for line in proof.compiled.lines)


def cited(root: Path, line: Any) -> bool:
    """Return whether a line cites lines of files, after checking that they say every value of it."""
    sources = [
        (root / one.path).read_text().split("\n")[one.line - 1] for one in line.origins if one.line
    ]
    for value in line.values if sources and not line.rule else ():
        parts = str(value).removeprefix("@").split(";")
        names = " ".join(one.path for one in line.origins)
        told = " ".join(sources).replace('\\"', '"')
        assert all(part in told or part.lower() in told or part in names for part in parts), (
            line,
            sources,
        )
    return bool(sources)


@pytest.mark.proves("002:220")
def test_contexts_of_all_agents_over_a_full_phase(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.config(CONFIG)
    seen, lines, largest = 0, 0, 0
    for number, (label, writes) in enumerate(deeds()):
        agents = Agents(team.root)
        for write in writes:
            agents.do(write)
        if label.task.endswith(" summary"):
            plan = DEPARTMENTS[label.task[:5]]
            done = [
                team.git("log", "-1", "--format=%h", f"--grep=T{n} {plan.title}") for n in (1, 2)
            ]
            agents.do(plan.summary(done))
        team.git("add", "-A", "-f")
        subprocess.run(
            ["git", "-C", team.root, "commit", "-q", "-m", f"chore: {label.step}"],
            check=False,
            capture_output=True,
        )
        if number % 9 == 0 or label.step == "integration_gate":
            for proof in proofs(team.root):
                seen, lines = seen + 1, lines + check(team.root, proof)
                largest = max(largest, proof.compiled.tokens)
    with capsys.disabled():
        print(
            f"\ncontexts over a phase: {seen} compiled, {lines} lines proved, the largest has {largest} tokens"
        )
    assert (seen % 36, seen >= 36 * 5) == (0, True)


def test_every_section_is_filled_and_proved_where_everything_is_there(
    planted: Planted, proved: list[ContextAudit]
) -> None:
    found = {proof.compiled.agent: proof for proof in proved}
    assert len(found) == 36
    for proof in found.values():
        assert check(planted.root, proof) or proof.compiled.agent in (
            "security",
            "fe-security",
            "ux-security",
        )


# --- canaries ---------------------------------------------------------------------------------------------------------


def forbidden(planted: Planted) -> set[tuple[str, str]]:
    """Return (agent, path) for every cell of the isolation tables, by the hand-made copy of the documents."""
    asked = {
        (find_actor(agent).name, path)
        for agent, _, _, path, allowed in ASKED
        if not allowed and path != GIT_DIFF
    }
    paths = set(planted.canaries.values())
    return {(agent, path) for agent, path in asked if path in paths}


@pytest.mark.proves("002:231", "002:239-243")
def test_canaries_in_forbidden_files_reach_no_context(
    planted: Planted, proved: list[ContextAudit], capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, seen, leaks = forbidden(planted), 0, []
    for proof in proved:
        agent = proof.compiled.agent
        denied = {path for who, path in pairs if who == agent}
        denied |= {
            path
            for path in planted.canaries.values()
            if not may_read(find_actor(agent), Target(path)).allowed
        }
        hidden = [name for name, path in planted.canaries.items() if path in denied]
        seen += len(hidden)
        leaks += [
            (agent, name) for name in hidden if name in (planted.root / proof.path).read_text()
        ]
    distinct = {
        name for name, path in planted.canaries.items() if path in {path for _, path in pairs}
    }
    with capsys.disabled():
        print(
            f"\ncanaries: {len(distinct)} in forbidden files, {seen} (agent, canary) pairs, {len(leaks)} leaks"
        )
    assert leaks == []
    assert len(distinct) >= 50


@pytest.mark.proves("002:216")
def test_no_read_hook_lets_a_forbidden_file_pass(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = sorted(forbidden(planted))
    for agent, path in pairs:
        for said in ({"tool_name": "Read", "tool_input": {"file_path": str(planted.root / path)}},
                     {"tool_name": "Bash", "tool_input": {"command": f"cat {path}"}}):  # fmt: skip
            event = {
                "hook_event_name": "PreToolUse",
                "cwd": str(planted.root),
                "agent_type": f"yolo-{agent}",
                **said,
            }
            answer, _, code = hook_fast.answer(json.dumps(event).encode())
            assert code == 0
            assert answer["hookSpecificOutput"]["permissionDecision"] == "deny", (agent, path)
    with capsys.disabled():
        print(f"\nread hook: {2 * len(pairs)} reads of forbidden files denied")
    assert len(pairs) >= 30


SHOWN = [
    ("architect", "critique.jsonl"), ("architect", "research.jsonl"), ("architect", "reqs.jsonl"),
    ("critic", "ROADMAP.md"), ("lead", "architecture.toon"), ("lead", "decisions.jsonl"),
    ("fe-lead", "fe-architecture.toon"), ("senior", "architecture.toon"), ("senior", "01-02.plan.jsonl"),
    ("senior", "01-01.summary.jsonl"), ("senior", "gaps.jsonl"), ("fe-senior", "component-specs.jsonl"),
    ("dev", "01-02.plan.jsonl"), ("fe-dev", "design-tokens.jsonl"), ("fe-dev", "fe-01-03.plan.jsonl"),
    ("tester", "01-02.plan.jsonl"), ("senior", "conventions.json"), ("dev", "backend.toon"), ("qa", "01-01.plan.jsonl"),
    ("qa", "ROADMAP.md"), ("qa-code", "research.jsonl"), ("debugger", "gaps.jsonl"), ("scout", "critique.jsonl"),
    ("integration-gate", "api-contracts.jsonl"), ("owner", "reqs.jsonl"), ("ux-senior", "ux-01-02.plan.jsonl"),
]  # fmt: skip
"""Who is shown something of which file."""


def test_every_canary_that_is_allowed_is_cited_with_its_source_line(
    planted: Planted, proved: list[ContextAudit], capsys: pytest.CaptureFixture[str]
) -> None:
    shown, count = set(), 0
    for proof in proved:
        for line in proof.compiled.lines:
            for name in (name for name in planted.canaries if name in line.text):
                path = planted.canaries[name]
                lines = (planted.root / path).read_text().split("\n")
                assert any(name in lines[one.line - 1] for one in line.origins if one.path == path)
                shown.add((proof.compiled.agent, path.rpartition("/")[2]))
                count += 1
    with capsys.disabled():
        print(f"\ncanaries that are allowed: {count} cited with their source lines")
    assert [one for one in SHOWN if one not in shown] == []


# --- keeping them true ------------------------------------------------------------------------------------------------


def test_a_context_is_no_artifact_and_git_ignores_it(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    assert run(["init", "-q", "--no-hooks", "-C", str(team.root)]) == 0
    assert classify(f"{PHASE}/.ctx-dev.toon") is None
    team.begin()
    compiled(team, "lead")
    team.once()
    assert ".ctx-lead.toon" not in team.git("log", "--name-only", "--format=")
    assert "ctx-lead" not in team.git("status", "--porcelain", "-uall")
    assert stat_mode(team) == 0o644


def compiled(team: Team, *arguments: str) -> Path:
    assert run(["context", "compile", *arguments, "-q", "-C", str(team.root)]) == 0
    return team.root / PHASE / f".ctx-{arguments[0]}.toon"


def stat_mode(team: Team) -> int:
    return os.stat(team.root / PHASE / ".ctx-lead.toon").st_mode & 0o777


def test_what_is_on_disk_and_valid_counts_before_it_is_committed(team: Team) -> None:
    team.plan_one()
    team.example("plan/ok/enriched.jsonl", "01-02.plan.jsonl")
    assert "RefreshStore" in compiled(team, "dev").read_text()


def test_a_file_that_is_invalid_gives_way_to_what_the_branch_has_of_it(team: Team) -> None:
    team.plan_one()
    team.example("plan/ok/enriched.jsonl", "01-02.plan.jsonl")
    team.once()
    before = compiled(team, "dev").read_text()
    team.artifact("01-02.plan.jsonl", '{"p":"01"\n')
    assert compiled(team, "dev").read_text() == before
    repository, contexts = contexts_of(team.root)
    with repository:
        (proof,) = contexts.prove(("dev",))
    origins = [str(origin) for line in proof.compiled.lines for origin in line.origins]
    assert proof.findings == ()
    assert f"{PHASE}/01-02.plan.jsonl:2@{team.head()[:12]}" in origins


def test_a_credential_on_disk_feeds_no_context(team: Team) -> None:
    key = "AKIA" + "Q3EGRJ7WZ5X2LM4K"
    lines = (team.examples / "plan/ok/enriched.jsonl").read_text().splitlines()
    record = json.loads(lines[1]) | {"spec": f"aws_access_key_id {key}"}
    team.plan_one()
    team.artifact("01-02.plan.jsonl", f"{lines[0]}\n{json.dumps(record)}\n")
    team.file(
        ".yolo-planning/conventions.json",
        json.dumps({"conventions": [{"category": key, "rule": key}]}),
    )
    assert key not in compiled(team, "dev").read_text()
    assert key not in compiled(team, "senior").read_text()


def test_the_daemon_keeps_contexts_true_and_leaves_those_that_are(team: Team) -> None:
    team.begin()
    path = compiled(team, "architect")
    before, moment = path.read_text(), 1_700_000_000
    os.utime(path, (moment, moment))
    team.once()
    assert (path.read_text(), path.stat().st_mtime) == (before, moment)
    team.file(".yolo-planning/reqs.jsonl", '{"id":"REQ-77","t":"Log out","pri":"must"}\n')
    team.once()
    assert "REQ-77,Log out" in path.read_text()
    assert path.stat().st_mtime == moment, "only its agent asking for it is a sign of life"
    assert not (team.root / PHASE / ".ctx-lead.toon").exists()


def test_a_context_keeps_the_plan_that_it_was_compiled_for(team: Team) -> None:
    team.plan()
    path = compiled(team, "senior", "--plan", "01-02")
    before = path.read_text()
    assert "plan: 01-02\n" in before
    path.write_text("phase: 01-auth\nplan: 01-02\nsomething: else\n")
    team.once()
    assert path.read_text() == before


def test_a_plan_that_nobody_wrote_hides_no_task(team: Team) -> None:
    team.plan()
    path = compiled(team, "senior")
    before = path.read_text()
    path.write_text("phase: 01-auth\nplan: 01-99\n")
    team.once()
    assert path.read_text() == before


@pytest.mark.parametrize(
    "config", [{"context_compiler": False}, {"yolo_fs": {"contexts": "never"}}]
)
def test_what_the_configuration_turns_off_is_left_as_it_is(
    team: Team, config: dict[str, Any]
) -> None:
    team.begin()
    path = compiled(team, "architect")
    path.write_text("old\n")
    team.config(THREE | config)
    team.once()
    assert path.read_text() == "old\n"


def test_the_contexts_of_all_agents_appear_where_the_configuration_says_so(team: Team) -> None:
    team.config({"department_workflow": "backend_only", "yolo_fs": {"contexts": "always"}})
    team.begin()
    names = sorted(name for name in os.listdir(team.root / PHASE) if name.startswith(".ctx-"))
    assert len(names) == 18
    assert not any("fe-" in name or "ux-" in name for name in names)


@pytest.mark.proves("002:302")
def test_resume_compiles_what_exists_anew_and_tells_so_twice_in_the_same_words(team: Team) -> None:
    team.begin()
    path = compiled(team, "architect")
    path.write_text("old\n")
    untouched = as_data(resume(str(team.root), keep=False))
    assert "contexts" not in untouched
    assert path.read_text() == "old\n"
    first = as_data(resume(str(team.root)))
    assert first["contexts"] == [{"path": f"{PHASE}/.ctx-architect.toon"}]
    assert "research[" in path.read_text()
    assert as_data(resume(str(team.root))) == first == as_data(resume(str(team.root), keep=False))


def test_whatever_stands_in_the_place_of_a_context_is_replaced_and_followed_nowhere(
    team: Team, tmp_path: Path
) -> None:
    team.begin()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (team.root / PHASE / ".ctx-lead.toon").symlink_to(elsewhere)
    path = compiled(team, "lead")
    assert elsewhere.read_text() == "mine\n"
    assert not path.is_symlink()


def test_a_phase_that_is_a_link_to_elsewhere_gets_no_context(team: Team, tmp_path: Path) -> None:
    team.begin()
    elsewhere = tmp_path / "elsewhere"
    (team.root / PHASE).rename(elsewhere)
    (team.root / PHASE).symlink_to(elsewhere)
    assert run(["context", "compile", "lead", "--phase", "1", "-q", "-C", str(team.root)]) == 3
    (elsewhere / ".ctx-lead.toon").write_text("mine\n")
    team.once()
    assert (elsewhere / ".ctx-lead.toon").read_text() == "mine\n"


def test_a_folder_in_the_place_of_a_context_is_left_alone(team: Team) -> None:
    team.begin()
    (team.root / PHASE / ".ctx-lead.toon").mkdir()
    team.once()
    assert "contexts" not in as_data(resume(str(team.root)))
    assert run(["context", "compile", "lead", "-q", "-C", str(team.root)]) == 75


def test_an_agent_that_starts_is_handed_its_context(planted: Planted) -> None:
    event = {
        "hook_event_name": "SubagentStart",
        "cwd": str(planted.root),
        "agent_type": "yolo-tester",
    }
    answer, _, code = hook_fast.answer(json.dumps(event).encode())
    told = answer["hookSpecificOutput"]["additionalContext"]
    assert code == 0
    assert f"## Your context, {PHASE}/.ctx-tester.toon\nphase: 01-auth\n" in told
    assert len(told) <= 10_000


def test_an_agent_whose_context_is_too_large_for_its_host_is_told_where_it_lies(team: Team) -> None:
    team.plan()
    lines = "".join(
        json.dumps({"id": f"REQ-{n:03}", "t": f"{n} " * 60, "pri": "must"}) + "\n"
        for n in range(99)
    )
    team.file(".yolo-planning/reqs.jsonl", lines)
    event = {
        "hook_event_name": "SubagentStart",
        "cwd": str(team.root),
        "agent_type": "yolo-architect",
    }
    answer, _, _ = hook_fast.answer(json.dumps(event).encode())
    told = answer["hookSpecificOutput"]["additionalContext"]
    assert told.endswith(f"Read your context first: @{PHASE}/.ctx-architect.toon")
    assert len(told) <= 10_000


ARCHITECTURE = """phase: 01-auth
goal: Sessions outlive the token
tech_decisions[2]{decision,rationale}:
  JWT,keys
  Redis,speed
components[1]:
  - TokenStore
risks[1]: clocks
"""


@pytest.mark.proves("002:222")
@pytest.mark.parametrize("agent", ["lead", "fe-lead"])
def test_a_lead_gets_the_whole_architecture(team: Team, agent: str) -> None:
    prefix = agent.rpartition("-")[0]
    name = f"{prefix}-architecture.toon" if prefix else "architecture.toon"
    team.artifact(name, ARCHITECTURE)
    team.once()
    repository, contexts = contexts_of(team.root)
    with repository:
        (kept,) = contexts.compile((agent,), FIRST)
    told = {line.strip() for line in kept.compiled.text.splitlines()}
    assert {line.strip() for line in ARCHITECTURE.splitlines()} <= told


def test_sources_that_were_committed_anew_are_held_once(team: Team) -> None:
    critique = (EXAMPLES / "critique/ok/two_rounds.jsonl").read_text()
    with Repository(str(team.root)) as repository:
        settings = load(repository.root)
        gatherer = Gatherer(repository, settings, FactsReader(repository, settings))
        held = []
        for number in range(20):
            team.artifact("critique.jsonl", critique.replace("?", f" {number}?"))
            team.user_commits(f"docs(01): critique {number}", f"{PHASE}/critique.jsonl")
            (team.root / PHASE / "critique.jsonl").unlink()
            sources = gatherer.look(repository.head().tip, {}).sources
            assert [source.commit for source in sources] == [team.head()]
            held.append(sum(isinstance(one, ContextSource) for one in gc.get_objects()))
    assert held[-1] == held[1]
