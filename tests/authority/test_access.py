"""Every cell of the isolation tables is asked about; writes stay in a department's area and in the plan's files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolo_fs.authority.access import GIT_DIFF, MEANS, ActivePlan, Target, may_read, may_write
from yolo_fs.authority.actors import find_actor
from yolo_fs.core.ids import PlanId
from yolo_fs.protocol.departments import WORKING, WORKING_NAMES, Dept
from yolo_fs.protocol.isolation import PRINTED_BORDERS, SCOPES, What

SPEC = Path(__file__).parents[2] / "fixtures/spec"
ROOT = ".yolo-planning"
PHASE = f"{ROOT}/phases/01-auth"
AREAS = {row.name: row.off_limits for row in WORKING}
CONTEXTS = tuple(f"{PHASE}/01-CONTEXT-{department}.md" for department in WORKING_NAMES)
NONE = find_actor("dev", Dept.BACKEND)

PATHS: dict[str, tuple[str, ...]] = {
    "Dept CONTEXT": CONTEXTS[:1],
    "CONTEXT files": CONTEXTS,
    "Full CONTEXT file directly (only via architecture.toon)": CONTEXTS,
    "Other dept contexts": CONTEXTS[1:],
    "other dept contexts": CONTEXTS[1:],
    "BE context": CONTEXTS[:1],
    "FE context": CONTEXTS[1:2],
    "UX context": CONTEXTS[2:3],
    "`{phase}-CONTEXT-backend.md`": CONTEXTS[:1],
    "`{phase}-CONTEXT-frontend.md`": CONTEXTS[1:2],
    "`{phase}-CONTEXT-uiux.md`": CONTEXTS[2:3],
    "ROADMAP": (f"{ROOT}/ROADMAP.md",),
    "ROADMAP directly": (f"{ROOT}/ROADMAP.md",),
    "REQUIREMENTS": (f"{ROOT}/REQUIREMENTS.md", f"{ROOT}/reqs.jsonl"),
    "architecture.toon": (f"{PHASE}/architecture.toon",),
    "prior summaries": (f"{PHASE}/01-01.summary.jsonl",),
    "codebase mapping": (f"{ROOT}/codebase/INDEX.md",),
    "codebase patterns": (f"{ROOT}/codebase/PATTERNS.md",),
    "code-review.jsonl": (f"{PHASE}/code-review.jsonl",),
    "gaps.jsonl": (f"{PHASE}/gaps.jsonl",),
    "security-audit.jsonl": (f"{PHASE}/security-audit.jsonl",),
    "critique.jsonl": (f"{PHASE}/critique.jsonl",),
    "research.jsonl": (f"{PHASE}/research.jsonl",),
    "implementation code": ("src/auth.ts", "lib/token.py"),
    "QA artifacts": (
        f"{PHASE}/verification.jsonl",
        f"{PHASE}/qa-code.jsonl",
        f"{PHASE}/.qa-gate-results.jsonl",
    ),
    "plan.jsonl tasks": (f"{PHASE}/01-01.plan.jsonl",),
    "plan.jsonl": (f"{PHASE}/01-01.plan.jsonl",),
    "Enriched plan.jsonl (tasks with `ts` field)": (f"{PHASE}/01-01.plan.jsonl",),
    "Enriched plan.jsonl (`spec` field ONLY)": (f"{PHASE}/01-01.plan.jsonl",),
    "other dept artifacts": (f"{PHASE}/fe-architecture.toon", f"{PHASE}/ux-01-02.plan.jsonl"),
    "git diff": (GIT_DIFF,),
    "Source code modifications": (GIT_DIFF,),
    "test-plan.jsonl": (f"{PHASE}/test-plan.jsonl",),
    "test files (RED targets)": (
        "tests/auth.test.ts",
        "src/__tests__/token.ts",
        "pkg/test_token.py",
    ),
    "summary.jsonl": (f"{PHASE}/01-01.summary.jsonl",),
    "summary.jsonl (file list)": (f"{PHASE}/01-01.summary.jsonl",),
    ".ctx-qa.toon": (f"{PHASE}/.ctx-qa.toon",),
    ".ctx-qa-code.toon": (f"{PHASE}/.ctx-qa-code.toon",),
    "UX handoff artifacts": (f"{PHASE}/design-handoff.jsonl", f"{PHASE}/design-tokens.jsonl"),
    "design tokens": (f"{PHASE}/design-tokens.jsonl",),
    "component specs": (f"{PHASE}/component-specs.jsonl",),
    "API contracts": (f"{PHASE}/api-contracts.jsonl",),
    "UX internal plans/architecture": (
        f"{PHASE}/ux-01-02.plan.jsonl",
        f"{PHASE}/ux-architecture.toon",
    ),
}
"""Entry of a cell → paths that it speaks of."""


def entries(cell: str) -> list[str]:
    return [part for piece in cell.split(" + ") for part in piece.split(", ")]


def questions() -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield (agent, work, entry, path, may it be read)."""
    for row in json.loads((SPEC / "scopes.json").read_text())["rows"]:
        role, _, work = row["Agent"].partition(" (")
        for column, allowed in (("Receives", True), ("NEVER receives", False)):
            for entry in entries(row[column]):
                yield from ((role, work.rstrip(")"), entry, path, allowed) for path in PATHS[entry])
    agents = {
        "Backend": "documenter",
        "Frontend": "fe-documenter",
        "UI/UX": "ux-documenter",
    }  # no row of their own
    for row in json.loads((SPEC / "borders.json").read_text())["rows"]:
        for column, allowed in (("Receives", True), ("NEVER receives", False)):
            for entry in entries(row[column]):
                yield from (
                    (agents[row["Department"]], "", entry, path, allowed) for path in PATHS[entry]
                )


ASKED = list(questions())


@pytest.mark.proves("002:222-229", "002:239-243")
@pytest.mark.parametrize(("agent", "work", "entry", "path", "allowed"), ASKED)
def test_each_path_is_read_as_its_column_says(
    agent: str, work: str, entry: str, path: str, allowed: bool
) -> None:
    answer = may_read(find_actor(agent), Target(path), work)
    assert answer.allowed is allowed
    assert ("receives" in answer.rule) is True
    assert entry.split(" ")[-1].strip("`") in answer.rule
    assert bool(answer.ask) is not allowed


def test_no_cell_of_the_isolation_tables_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    in_code = sum(len(row.receives) + len(row.never) for row in (*SCOPES, *PRINTED_BORDERS))
    seen = {(agent, work, entry, allowed) for agent, work, entry, _, allowed in ASKED}
    with capsys.disabled():
        print(
            f"\nisolation: {len(seen)} entries in {2 * len((*SCOPES, *PRINTED_BORDERS))} cells, {len(ASKED)} paths exercised"
        )
    assert len(seen) == in_code


def test_every_kind_of_context_is_bound_to_paths() -> None:
    assert MEANS.keys() == set(What)


@pytest.mark.proves("002:231")
def test_a_dev_gets_nothing_of_the_creative_context() -> None:
    names = ("architecture.toon", "critique.jsonl", "01-CONTEXT.md", "01-CONTEXT-backend.md")
    for path in (
        *(f"{PHASE}/{name}" for name in names),
        f"{ROOT}/ROADMAP.md",
        f"{ROOT}/milestones/m1/reqs.jsonl",
    ):
        assert not may_read(find_actor("dev"), Target(path)).allowed, path
    assert "only spec" in may_read(find_actor("dev"), Target(f"{PHASE}/01-01.plan.jsonl")).rule


@pytest.mark.proves("002:231", "002:240", "002:241")
@pytest.mark.parametrize("role", ["dev", "tester", "qa", "qa-code"])
@pytest.mark.parametrize("name", ["fe-01-02.plan.jsonl", "ux-01-03.plan.jsonl", "01-01.plan.jsonl",
                                  "fe-code-review.jsonl", "ux-01-03.summary.jsonl"])  # fmt: skip
def test_whoever_is_below_a_senior_reads_no_artifact_of_another_department(
    role: str, name: str
) -> None:
    target = Target(f"{PHASE}/{name}")
    for row in WORKING:
        actor = find_actor(f"{row.prefix}{role}")
        assert may_read(actor, target).allowed == (target.department is row.name), actor.name


@pytest.mark.proves("002:231")
def test_a_dev_reads_none_of_the_planning_that_its_spec_comes_from() -> None:
    planning = (
        f"{ROOT}/PROJECT.md",
        f"{PHASE}/scope-document.json",
        f"{PHASE}/phase-handoff.jsonl",
    )
    for path in planning:
        assert not may_read(find_actor("dev"), Target(path)).allowed, path
        assert may_read(find_actor("lead"), Target(path)).allowed, path


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("dev", f"{PHASE}/user-flows.jsonl", False),
        ("fe-dev", f"{PHASE}/user-flows.jsonl", True),
        ("fe-senior", f"{PHASE}/design-tokens.jsonl", True),
        ("fe-senior", f"{PHASE}/ux-test-plan.jsonl", False),
        ("fe-senior", f"{PHASE}/critique.jsonl", True),
        ("dev", f"{PHASE}/.ctx-architect.toon", False),
        ("dev", f"{PHASE}/.ctx-dev.toon", True),
        ("fe-qa", f"{PHASE}/.ctx-fe-qa.toon", True),
        ("dev", f"{PHASE}/.ctx-fe-dev.toon", False),
        ("critic", f"{ROOT}/REQUIREMENTS.md", True),
        ("owner", f"{PHASE}/01-CONTEXT-uiux.md", True),
        ("architect", "docs/guide.md", True),
        ("lead", f"{PHASE}/01-CONTEXT.md", True),
    ],
)
def test_what_the_tables_leave_open_is_read(agent: str, path: str, allowed: bool) -> None:
    assert may_read(find_actor(agent), Target(path)).allowed is allowed


@pytest.mark.parametrize("work", ["", "Code Review", "lunch"])
def test_no_word_for_the_work_opens_what_a_role_never_receives(work: str) -> None:
    for agent, name in (
        ("dev", "architecture.toon"),
        ("senior", "01-CONTEXT-backend.md"),
        ("senior", "../../ROADMAP.md"),
    ):
        path = f"{PHASE}/{name}" if not name.startswith("../../") else f"{ROOT}/{name[6:]}"
        assert not may_read(find_actor(agent), Target(path), work).allowed
    assert may_read(find_actor("senior"), Target(f"{ROOT}/ROADMAP.md"), "Design Review").allowed


def test_a_test_plan_names_test_files_that_do_not_look_like_any() -> None:
    assert (
        "test files"
        in may_read(find_actor("dev"), Target("e2e/login.ts", frozenset({"e2e/login.ts"}))).rule
    )
    assert "No rule forbids it" in may_read(find_actor("dev"), Target("e2e/login.ts")).rule


# --- writing ---

PLAN = ActivePlan(PlanId("01", "02"), frozenset({"src/auth.ts", "src/login"}))


@pytest.mark.parametrize(
    ("agent", "path", "allowed", "ask"),
    [
        ("dev", "src/auth.ts", True, ()),
        ("dev", "src/login/form.ts", True, ()),
        ("dev", "src/login.ts", False, ("senior",)),
        ("dev", "src/auth.ts.bak", False, ("senior",)),
        ("dev", "README.md", False, ("senior",)),
        ("dev", "tests/auth.test.ts", False, ("senior",)),
        ("tester", "tests/auth.test.ts", True, ()),
        ("tester", "src/login.ts", False, ("senior",)),
        ("dev", f"{PHASE}/01-02.summary.jsonl", True, ()),
        ("dev", f"{PHASE}/fe-01-02.summary.jsonl", False, ("senior",)),
        ("fe-dev", f"{PHASE}/01-02.summary.jsonl", False, ("fe-senior",)),
        ("fe-lead", f"{PHASE}/01-02.summary.jsonl", False, ("lead",)),
        ("ux-lead", f"{PHASE}/01-02.summary.jsonl", False, ("fe-lead",)),
        ("dev", f"{PHASE}/design-tokens.jsonl", False, ("senior",)),
        ("ux-dev", f"{PHASE}/design-tokens.jsonl", True, ()),
        ("fe-dev", f"{PHASE}/design-tokens.jsonl", False, ("fe-senior",)),
        ("fe-lead", f"{PHASE}/decisions.jsonl", True, ()),
        ("fe-lead", f"{PHASE}/critique.jsonl", True, ()),
        ("lead", f"{PHASE}/fe-critique.jsonl", False, ("fe-lead",)),
        ("fe-lead", f"{PHASE}/.dept-status-frontend.json", False, ("yolo-fs dept update",)),
        ("dev", f"{PHASE}/architecture.toon", False, ("senior",)),
        ("dev", ".git/hooks/pre-commit", False, ("senior",)),
        ("dev", ".", False, ("senior",)),
        ("critic", f"{PHASE}/critique.jsonl", False, ("lead",)),
        ("qa", f"{PHASE}/verification.jsonl", False, ("lead",)),
        ("qa-code", f"{PHASE}/qa-code.jsonl", True, ()),
        ("qa-code", "src/auth.ts", False, ("lead",)),
        ("architect", "src/auth.ts", False, ("go.md", "user")),
        ("owner", "src/auth.ts", True, ()),
        ("debugger", "src/login/form.ts", True, ()),
    ],
)
def test_a_write_is_refused_outside_of_area_and_plan(
    agent: str, path: str, allowed: bool, ask: tuple[str, ...]
) -> None:
    answer = may_write(find_actor(agent), Target(path), PLAN)
    assert (answer.allowed, answer.ask) == (allowed, ask), answer.rule


@pytest.mark.parametrize(
    ("department", "area"), [(row, area) for row in AREAS for area in AREAS[row]]
)
def test_no_department_writes_into_the_area_of_another(department: Dept, area: str) -> None:
    actor = find_actor("dev", department)
    for path in (area.rstrip("/"), f"{area}x.ts"):
        assert not may_write(actor, Target(path)).allowed
    assert may_write(actor, Target(f"other-{area}x.ts")).allowed
    others = [
        row
        for row in AREAS
        if area not in AREAS[row] and not any(area.startswith(one) for one in AREAS[row])
    ]
    assert all(
        may_write(find_actor("dev", other), Target(f"{area}x.ts")).allowed for other in others
    )


@pytest.mark.parametrize("plan", [None, ActivePlan(PlanId("01", "01"), frozenset())])
def test_no_plan_and_a_plan_without_files_limit_nothing(plan: ActivePlan | None) -> None:
    assert may_write(find_actor("dev"), Target("anything.py"), plan).allowed


def test_who_may_not_read_may_not_write() -> None:
    paths = {path for paths in PATHS.values() for path in paths if path != GIT_DIFF}
    for agent, path in itertools.product(
        ("dev", "fe-dev", "senior", "tester", "architect", "lead", "ux-lead"), paths
    ):
        actor = find_actor(agent)
        if not may_read(actor, Target(path)).allowed:
            assert not may_write(actor, Target(path)).allowed, (agent, path)


# --- what is nobody's ---


@pytest.mark.parametrize(
    "path",
    [".env", "api/.env.production", "certs/Server.PEM", "deploy/id.key", "credentials.json", "x/service-account-7.json",
     "node_modules/left-pad/index.js", "web/dist/app.js", "build/main.o", ".git/config"],
)  # fmt: skip
@pytest.mark.parametrize("agent", ["dev", "senior", "lead", "fe-dev", "architect"])
def test_no_agent_reads_or_writes_what_is_sealed(agent: str, path: str) -> None:
    actor = find_actor(agent, None)
    for answer in (may_read(actor, Target(path)), may_write(actor, Target(path))):
        assert not answer.allowed and "security-filter" in answer.rule and answer.ask


@pytest.mark.parametrize(
    "path",
    [
        "rebuild/x.ts",
        "src/build.ts",
        "src/environment.ts",
        "docs/keys.md",
        "dist",
        f"{ROOT}/phases/01-build/x",
    ],
)
def test_names_that_only_look_like_it_are_read(path: str) -> None:
    assert may_read(NONE, Target(path)).allowed
