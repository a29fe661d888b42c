"""The tables say what the documents say: row by row, cell by cell, against a copy made by hand.

`fixtures/spec/*.json` holds the cells as the documents print them. Here a row of the code is printed
back into such cells. Where a document abbreviates, a `read` function writes the cell out, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.protocol import (
    authority,
    departments,
    escalation,
    gates,
    hooks,
    isolation,
    roster,
    workflow,
)
from yolo_fs.protocol import authority as routes
from yolo_fs.protocol import gates as chains
from yolo_fs.protocol import handoffs as storage
from yolo_fs.protocol import handoffs as triggers
from yolo_fs.protocol import workflow as commits
from yolo_fs.protocol.departments import Dept, Mode, Role

SPEC = Path(__file__).parents[2] / "fixtures" / "spec"
Cells = dict[str, Any]


@dataclass(frozen=True)
class Table:
    rows: tuple[Any, ...]
    printed: Callable[[Any], Cells]
    """A row as the document prints it."""
    read: Callable[[Cells], Iterable[Cells]] = lambda cells: (cells,)
    """A row of the fixture, its abbreviations written out."""


# --- printing a row back into the document's cells -------------------------------------------------------------------


def numbers(keys: Iterable[str]) -> str:
    return ", ".join(workflow.STEP_BY_KEY[key].number for key in keys)


def noted(text: str, note: str) -> str:
    return f"{text} ({note})" if note else text


def templates(text: str) -> str:
    """Write the gaps as our templates do: one gap `{plan}` for NN-MM, `{artifact}` for a file name."""
    return (
        text.replace("{phase}-{plan}", "{plan}")
        .replace("{NN-MM}", "{plan}")
        .replace("{file}", "{artifact}")
    )


def printed_agent(row: roster.Agent) -> Cells:
    return {
        "Agent": row.full_name,
        "Role": row.title,
        "Model": row.model,
        "Tools": noted(",".join(row.tools), "read-only" if row.read_only else ""),
        "Produces": ", ".join(row.produces),
        "Token Budget": str(row.token_budget),
    }


def printed_department(row: departments.Department) -> Cells:
    return {
        "Department": row.label,
        "Agents": f"{', '.join(row.agents)} ({len(row.agents)})",
    }


def printed_spawn(row: tuple[str, bool | None, bool | None]) -> Cells:
    workflow, frontend, uiux = row
    active = {None: "*", True: "y", False: "n"}
    flags = {Dept.FRONTEND: bool(frontend), Dept.UIUX: bool(uiux)}
    waves = departments.waves_of(workflow, [name for name, is_on in flags.items() if is_on])
    return {
        "workflow": workflow,
        "FE": active[frontend],
        "UX": active[uiux],
        "leads_to_spawn": f"`{'|'.join(','.join(one.lead for one in wave) for wave in waves)}`",
        "spawn_order": departments.SPAWN_ORDERS[workflow],
    }


SPAWNS = (
    ("backend_only", None, None),
    ("parallel", True, False),
    ("parallel", False, True),
    ("parallel", True, True),
    ("sequential", True, True),
    ("sequential", True, False),
    ("sequential", False, True),
)


def printed_step_of_document(row: workflow.Step) -> Cells:
    return {
        "Step": row.number,
        "Agent": " + ".join(role.label for role in row.agents),
        "Input": " + ".join(row.inputs),
        "Output": " + ".join(row.outputs),
        "Commit": f"`{row.commits[0]}`",
    }


def read_step_of_document(cells: Cells) -> Iterator[Cells]:
    kept = {column: templates(cell) for column, cell in cells.items() if column != "Skip"}
    yield kept | {"Agent": cells["Agent"].replace("QA Lead + Code", "QA Lead + QA Code")}


def printed_step(row: workflow.Step) -> Cells:
    return {
        "#": row.number,
        "step": f"`{row.key}`",
        "Entry gate (protocol)": list(row.entry),
        "Exit artifact / check": list(row.exit),
        "State commit": [subject.template.replace("{step}", row.key) for subject in row.state],
        "Skip when": [skip.sentence for skip in row.skips],
    }


def read_step(cells: Cells) -> Iterator[Cells]:
    skips = cells["Skip when"].removesuffix(" (an existing file does NOT skip; append)")
    yield {
        "#": cells["#"],
        "step": cells["step"],
        "Entry gate (protocol)": [
            part.removeprefix("AND ") for part in cells["Entry gate (protocol)"].split("; ")
        ],
        "Exit artifact / check": cells["Exit artifact / check"].split("; "),
        "State commit": read_state_commit(cells),
        "Skip when": [] if skips == "never" else re.split("; |, ", skips),
    }


def read_state_commit(cells: Cells) -> list[str]:
    key = cells["step"].strip("`")
    cell = (
        cells["Artifact commit"]
        if cells["State commit"] == "same commit"
        else cells["State commit"]
    )
    if cell in ("…", f"… {key} …"):
        return [f"chore(state): {key} complete phase {{N}}"]
    written = re.sub(r"… (\w+) complete …", r"chore(state): \1 complete phase {N}", cell)
    return re.findall("`(.*?)`", written)


def printed_complexity(row: workflow.Complexity) -> Cells:
    runs = "all" if row.runs == tuple(workflow.STEP_BY_KEY) else numbers(row.runs)
    return {
        "complexity": row.name,
        "runs": noted(runs, f"+{numbers(row.inline)} inline" if row.inline else ""),
    }


def printed_committed(row: commits.StepCommit) -> Cells:
    return {
        "Step": row.name,
        "Agent": noted(" + ".join(role.label for role in row.agents), row.note),
        "Commits": " + ".join(row.commits),
    }


def printed_escalates(row: escalation.Escalates) -> Cells:
    return {
        "Agent": row.role.label,
        "Escalates to": noted(row.to.label, f"FAIL → {row.on_fail.label}" if row.on_fail else ""),
        "Trigger": ", ".join(row.triggers),
        "Notes": row.notes,
    }


def printed_chain(row: escalation.Chain) -> Cells:
    above = (Role.OWNER, Role.USER)
    dept = "Dept " if row.mode is Mode.MULTI else ""
    stations = (role.label if role in above else dept + role.label for role in row.roles)
    return {"chain": " → ".join(stations), "mode": f"({row.mode})"}


def printed_transformation(row: escalation.Transformation) -> Cells:
    return {
        "Level": row.level,
        "Agent": noted(row.role.label, row.mode_note),
        "Transformation": row.action,
        "Output": row.output,
    }


def printed_remedy(row: chains.Remedy) -> Cells:
    return {"line": " → ".join((row.occasion, *(move.text for move in row.moves)))}


def read_remedy(cells: Cells) -> Iterator[Cells]:
    yield {"line": re.sub(" +", " ", cells["line"])}


def printed_authority(row: authority.Authority) -> Cells:
    return {
        "Agent": row.role.label,
        "CAN Decide": ", ".join(row.decides),
        "MUST Escalate": ", ".join(str(topic) for topic in row.escalates),
    }


def read_authority(cells: Cells) -> Iterator[Cells]:
    yield cells | {
        "MUST Escalate": cells["MUST Escalate"].replace(". Remediation", ", Remediation")
    }


def printed_scope(row: isolation.Scope | isolation.Border) -> Cells:
    return {
        "Receives": " + ".join(item.text for item in row.receives),
        "NEVER receives": ", ".join(item.text for item in row.never),
    }


def department_label(name: Dept) -> str:
    found = departments.department(name)
    assert found
    return found.label


def printed_gate(row: gates.Gate) -> Cells:
    return {
        "Gate": row.name,
        "dept-gate checks (script)": list(row.needs),
        "Doc claims beyond the script": row.claim or "–",
    }


def read_gate(cells: Cells) -> Iterator[Cells]:
    checks = cells["dept-gate checks (script)"].removesuffix(
        ". `.handoff-api-contract` is never consulted"
    )
    yield cells | {"dept-gate checks (script)": re.split("; |, ", checks)}


def printed_trigger(row: triggers.Trigger) -> Cells:
    anybody = row.senders == tuple(triggers.DirectiveRole)
    sender = "Any role" if anybody else " or ".join(role.capitalize() for role in row.senders)
    return {
        "heading": f"{row.number}. {sender} to {row.receiver.capitalize()}",
        "trigger": f"`{row.id}`",
        "condition": row.condition,
    }


def printed_route(row: routes.Route) -> Cells:
    return {
        "Command": row.command,
        "Entry Point": row.entry.label,
        "Primary Spawn": ", ".join(role.label for role in row.spawns),
        "Hierarchy Chain": " -> ".join(row.chain),
        "Escalation Path": row.escalation,
    }


def printed_handoff(row: storage.Handoff) -> Cells:
    sender = row.sender.label if row.sender else "User"
    return {
        "heading": noted(f"{row.number}. {sender} → {row.receiver.label}", row.note),
        "payload": list(row.payload),
    }


def printed_git_hook(row: hooks.GitHook) -> Cells:
    verdict = "yes" if row.may_block else "no"
    return {"hook": row.name, "may block": verdict if row.installed else "avoid"}


def read_git_hook(cells: Cells) -> Iterator[Cells]:
    for name in cells["hook"].split(" / "):
        yield cells | {"hook": name}


def read_agent_hook(cells: Cells) -> Iterator[Cells]:
    for name, event in zip(cells["verb"].split("/"), cells["event"].split("/"), strict=True):
        yield {"verb": name, "event": event}


def documented(rows: Iterable[Any], column: str) -> tuple[Any, ...]:
    """Return the rows of the departments that the documents know."""
    return tuple(row for row in rows if getattr(row, column) in DOCUMENTED)


DOCUMENTED = (None, Dept.BACKEND, Dept.FRONTEND, Dept.UIUX, Dept.SHARED)

TABLES = {
    "roster": Table(roster.ROSTER, printed_agent),
    "departments": Table(documented(departments.DEPARTMENTS, "name"), printed_department),
    "spawns": Table(
        SPAWNS,
        printed_spawn,
        lambda cells: [cells | {"workflow": cells["workflow"].removesuffix(" / single")}],
    ),
    "workflow": Table(
        tuple(row for row in workflow.STEPS if row.number not in {"0", "11.5", "12"}),
        printed_step_of_document,
        read_step_of_document,
    ),
    "steps": Table(workflow.STEPS, printed_step, read_step),
    "mandatory": Table(
        tuple(row for row in workflow.STEPS if row.mandatory), lambda row: {"step": row.key}
    ),
    "complexities": Table(workflow.COMPLEXITIES, printed_complexity),
    "limits": Table(workflow.LIMITS, lambda row: {"limit": row.text, "value": row.value}),
    "commits": Table(commits.COMMITS, printed_committed),
    "escalations": Table(escalation.ESCALATIONS, printed_escalates),
    "primary_chains": Table(escalation.CHAINS, printed_chain),
    "escalation_rules": Table(
        escalation.RULES, lambda row: {"rule": f"{row.number}. **{row.head}** {row.text}"}
    ),
    "upward": Table(escalation.UPWARD, printed_transformation),
    "downward": Table(escalation.DOWNWARD, printed_transformation),
    "qa_remedies": Table(chains.QA_REMEDIES, printed_remedy, read_remedy),
    "review_remedies": Table(chains.REVIEW_REMEDIES, printed_remedy, read_remedy),
    "change_classes": Table(
        chains.CHANGE_CLASSES,
        lambda row: {"line": f"**{row.weight}**: {', '.join(row.kinds)}. {row.consequence}"},
    ),
    "metrics": Table(chains.METRICS, lambda row: {"metric": row.name}),
    "authority": Table(authority.AUTHORITY, printed_authority, read_authority),
    "scopes": Table(
        isolation.SCOPES,
        lambda row: {"Agent": noted(row.role.label, row.mode)} | printed_scope(row),
    ),
    "borders": Table(
        documented(isolation.PRINTED_BORDERS, "department"),
        lambda row: {"Department": department_label(row.department)} | printed_scope(row),
    ),
    "gates": Table(gates.GATES, printed_gate, read_gate),
    "wave_gates": Table(
        documented(gates.WAVE_GATES, "department"),
        lambda row: {"name": f"`{row.name}`", "dept-gate name": row.gate},
    ),
    "sentinels": Table(
        documented(gates.SENTINELS, "department"),
        lambda row: {"file": f"`{row.file}`", "department": row.department or ""},
    ),
    "integration_checks": Table(
        gates.INTEGRATION_CHECKS,
        lambda row: {"key": row.key, "name": row.name, "config": row.config},
    ),
    "sign_offs": Table(
        gates.SIGN_OFFS[::-1], lambda row: {"when": row.when, "decision": row.decision}
    ),
    "triggers": Table(triggers.TRIGGERS, printed_trigger),
    "directive_roles": Table(tuple(triggers.DirectiveRole), lambda role: {"role": role}),
    "packet_fields": Table(
        triggers.PACKET_FIELDS,
        lambda row: {
            "packet": f"{row.name}: {row.packet}",
            "front matter": f"{row.name}: {row.file}",
        },
    ),
    "routes": Table(routes.ROUTES, printed_route),
    "routing_rules": Table(routes.ROUTING_RULES, lambda row: {"rule": f"{row.number}. {row.text}"}),
    "storage": Table(
        storage.STORAGE, lambda row: {"directory": row.directory + "/", "file": row.name}
    ),
    "agent_types": Table(tuple(storage.AgentType), lambda kind: {"agent_type": kind}),
    "handoffs": Table(storage.HANDOFFS, printed_handoff),
    "recoveries": Table(storage.RECOVERIES, lambda row: {"way": f"{row.number}. {row.text}"}),
    "git_hooks": Table(hooks.GIT_HOOKS, printed_git_hook, read_git_hook),
    "agent_hooks": Table(
        hooks.AGENT_HOOKS,
        lambda row: {"verb": row.name, "event": row.event},
        read_agent_hook,
    ),
}

COMPARED_ELSEWHERE = {("workflow", "Skip"), ("steps", "Artifact commit")}
"""Columns that abbreviate so much that tests of their own compare them."""


def spec(name: str) -> list[Cells]:
    rows: list[Cells] = json.loads((SPEC / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    return rows


# --- the tables and the documents ------------------------------------------------------------------------------------


@pytest.mark.proves("002:9-29", "002:275a", "002:276-278", "002:311a", "002:312-323", "002:137")
@pytest.mark.parametrize("name", TABLES)
def test_table_says_what_the_document_says(name: str) -> None:
    table = TABLES[name]
    document = [cells for row in spec(name) for cells in table.read(row)]

    code = [table.printed(row) for row in table.rows]

    assert len(code) == len(document), f"fixtures/spec/{name}.json has another number of rows"
    for ours, theirs in zip(code, document, strict=True):
        assert ours == theirs


def test_every_column_of_the_documents_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(name, row) for name in TABLES for row in spec(name)]
    printed = {
        name: {column for row in table.rows for column in table.printed(row)}
        for name, table in TABLES.items()
    }

    left_out = {
        (name, column) for name, row in rows for column in row if column not in printed[name]
    }

    assert left_out == COMPARED_ELSEWHERE
    with capsys.disabled():
        print(
            f"\nspec: {len(TABLES)} tables, {len(rows)} rows, {sum(len(row) for _, row in rows)} cells compared"
        )


@pytest.mark.proves("002:68b", "002:73b", "002:77b", "002:78")
@pytest.mark.parametrize("cells", spec("workflow"), ids=lambda cells: cells["Step"])
def test_skips_begin_with_those_of_document_002(cells: Cells) -> None:
    step = next(row for row in workflow.STEPS if row.number == cells["Step"])

    stated = [] if cells["Skip"] == "--" else cells["Skip"].split(", ")

    assert list(step.skips[: len(stated)]) == stated
    assert bool(step.skips) == bool(stated)


def abbreviates(short: str, template: str) -> bool:
    """Return whether `docs plan` stands for `docs({phase}): plan {plan}`."""
    if short.startswith("`"):
        return template == templates(short.split("`")[1])
    kind, _, text = (
        short.partition(" ") if short.startswith(("docs ", "test RED")) else ("docs", "", short)
    )
    return template.startswith(f"{kind}({{phase}}): {text}")


@pytest.mark.proves(
    "002:68a",
    "002:69a",
    "002:70",
    "002:71",
    "002:72",
    "002:73a",
    "002:74",
    "002:75",
    "002:77a",
    "002:79a",
)
@pytest.mark.parametrize("cells", spec("steps"), ids=lambda cells: cells["#"])
def test_artifact_commits_are_those_of_the_protocol(cells: Cells) -> None:
    step = workflow.STEP_BY_KEY[cells["step"].strip("`")]
    cell = re.sub(r" \(.*\)", "", cells["Artifact commit"])
    shorts = [] if cell == "–" else re.split(r"; | \+ ", cell)

    subjects = [subject.template for subject in step.commits]

    assert all(any(abbreviates(short, subject) for subject in subjects) for short in shorts)
    assert all(any(abbreviates(short, subject) for short in shorts) for subject in subjects)


# --- the tables among themselves -------------------------------------------------------------------------------------


UNIQUE: dict[str, list[Any]] = {
    "agents": [row.name for row in roster.AGENTS],
    "departments": [row.name for row in departments.DEPARTMENTS],
    "step numbers": [row.number for row in workflow.STEPS],
    "step keys": [row.key for row in workflow.STEPS],
    "step subjects": [subject for row in workflow.STEPS for subject in row.commits],
    "complexities": [row.name for row in workflow.COMPLEXITIES],
    "limits": [row.key for row in workflow.LIMITS],
    "committing steps": [row.step for row in commits.COMMITS],
    "escalating roles": [row.role for row in escalation.ESCALATIONS],
    "rules": [row.rule for row in escalation.RULES],
    "upward levels": [row.level for row in escalation.UPWARD],
    "downward levels": [row.level for row in escalation.DOWNWARD],
    "deciding roles": [row.role for row in authority.AUTHORITY],
    "scopes": [(row.role, row.mode) for row in isolation.SCOPES],
    "borders": [row.department for row in isolation.BORDERS],
    "gates": [row.name for row in gates.GATES],
    "wave gates": [row.name for row in gates.WAVE_GATES],
    "sentinels": [row.file for row in gates.SENTINELS],
    "triggers": [row.id for row in triggers.TRIGGERS],
    "packet fields": [row.name for row in triggers.PACKET_FIELDS],
    "commands": [row.command for row in routes.ROUTES],
    "stored files": [row.name for row in storage.STORAGE],
    "handoffs": [(row.sender, row.receiver) for row in storage.HANDOFFS],
    "git hooks": [row.name for row in hooks.GIT_HOOKS],
    "agent hooks": [row.event for row in hooks.AGENT_HOOKS],
}


@pytest.mark.parametrize("name", UNIQUE)
def test_ids_are_unique(name: str) -> None:
    assert len(set(UNIQUE[name])) == len(UNIQUE[name])


def parts(value: Any) -> Iterator[Any]:
    """Yield a row and everything in it, however deep."""
    yield value
    inside = (
        [getattr(value, field.name) for field in fields(value)] if is_dataclass(value) else value
    )
    if isinstance(inside, tuple | list):
        for part in inside:
            yield from parts(part)


@pytest.mark.parametrize("name", TABLES)
def test_every_role_of_a_table_is_in_the_roster(name: str) -> None:
    named = {part for part in parts(TABLES[name].rows) if isinstance(part, Role)}

    assert named - {Role.GO, Role.USER} <= set(roster.AGENT_BY_NAME)


@pytest.mark.parametrize("name", TABLES)
def test_nothing_in_a_row_can_be_changed(name: str) -> None:
    for row in TABLES[name].rows:
        assert isinstance(row, tuple | str) or type(row).__dataclass_params__.frozen
        assert isinstance(row, str) or not hasattr(row, "__dict__")


def test_every_step_that_a_table_names_exists() -> None:
    named = {row.step for row in commits.COMMITS}
    named |= {key for row in workflow.COMPLEXITIES for key in (*row.runs, *row.inline)}

    assert named <= set(workflow.STEP_BY_KEY)


def test_every_step_agent_commits_what_the_commit_table_says() -> None:
    for row in commits.COMMITS:
        assert row.agents == workflow.STEP_BY_KEY[row.step].agents


@pytest.mark.proves("002:275a", "002:276-278")
def test_company_has_thirty_six_agents() -> None:
    rows = documented(departments.DEPARTMENTS, "name")
    by_department = [len(row.agents) for row in rows]
    listed = {name for row in rows for name in row.agents}
    agents = documented(roster.AGENTS, "department")
    planners = {row.name for row in agents if row.department is None}

    assert by_department == [9, 9, 9, 5]
    assert [row.name for row in rows if row.runs_workflow] == ["backend", "frontend", "uiux"]
    assert planners == {"analyze", "po", "questionary", "roadmap"}
    assert {row.name for row in agents} == listed | planners
    assert len(agents) == 36


def test_every_agent_belongs_to_the_department_that_lists_it() -> None:
    for row in departments.DEPARTMENTS:
        for name, role in zip(row.agents, row.roles, strict=True):
            assert (roster.agent(name).department, roster.agent(name).role) == (row.name, role)


def test_derived_agent_keeps_the_work_of_the_backend_agent() -> None:
    derived, backend = roster.agent("yolo-fe-lead"), roster.agent("lead")

    assert derived.title == "FE Tech Lead"
    assert (derived.tools, derived.token_budget) == (backend.tools, backend.token_budget)
    assert roster.agent("ux-security").token_budget == 2000


def test_unknown_agent_is_an_error_with_the_known_names() -> None:
    with pytest.raises(YoloError) as raised:
        roster.agent("be-lead")

    assert raised.value.reason is Reason.UNKNOWN_NAME
    assert "fe-lead" in raised.value.hint


def test_whom_to_ask_is_named_by_the_arrow() -> None:
    for row in authority.AUTHORITY:
        for topic in row.escalates:
            assert all(role.label in topic.arrow for role in topic.ask)
            assert bool(topic.ask) == bool(topic.arrow)


def test_escalation_table_follows_the_primary_chain() -> None:
    single = next(row for row in escalation.CHAINS if row.mode is Mode.SINGLE)

    for role in single.roles[:-1]:
        assert escalation.ESCALATES_BY_ROLE[role].to == single.above(role)
    assert single.above(Role.USER) is None
    assert single.above(Role.SCOUT) is None


def test_wave_gates_and_sentinels_mean_gates_that_exist() -> None:
    known = set(gates.GATE_BY_NAME)

    assert {row.gate for row in gates.WAVE_GATES} - {""} <= known
    assert {row.gate for row in gates.SENTINELS} - {""} <= known


def test_each_department_receives_its_own_context_file() -> None:
    for row in isolation.BORDERS:
        own = next(item.text for item in row.receives if item.what is isolation.What.CONTEXT)
        assert own == f"`{{phase}}-CONTEXT-{row.department}.md`"
