"""Compiled contexts: which sections each role gets, what feeds them, in which form, and what goes
first when too large.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import NamedTuple

from yolo_fs.protocol.departments import Dept, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME


class Cut(IntEnum):
    """What goes first when a context is above its budget; `label` as document 002 has it."""

    label: str

    def __new__(cls, number: int, label: str) -> Cut:
        member = int.__new__(cls, number)
        member._value_ = number
        member.label = label
        return member

    NOTHING = 0, "nothing"
    CONVENTIONS = 1, "conventions to tag only"
    REQUIREMENTS = 2, "requirements to ids only"
    PROSE = 3, "prose to headings only"
    PRIOR = 4, "drop prior-phase context"
    LINES = 5, "whole lines, the vital sections last"
    """What the documents leave open: the four steps alone guarantee no budget."""


class SectionForm(StrEnum):
    """How a section is written."""

    VALUE = "one line"
    TABLE = "table"
    LIST = "list"
    NESTED = "indented"
    """TOON as it stands in its file, two spaces further in."""


class Feed(StrEnum):
    """What the lines of a section are taken from, by functions of `contexts.extractors`."""

    RECORDS = "one line for each record of the artifacts"
    ITEMS = "one line for each entry of a list in the records"
    COUNTS = "one line that counts the last word on each id"
    TEXT = "the lines of a file"
    HEADING = "the lines below a heading of a file"
    PHASE = "the phase's block of the roadmap"
    REQUIREMENTS = "the requirements"
    CONVENTIONS = "the project's conventions"
    FILES = "files that exist, by reference"
    NAMES = "names of files of the phase directory"
    COMMITS = "the last commits"
    TOOLS = "the tools of the roster"


class Only(StrEnum):
    """Which records count."""

    ALL = "all"
    HEADER = "line 1"
    TASKS = "tasks"
    SKETCHED = "tasks without specification"
    ENRICHED = "tasks with specification"
    TESTABLE = "tasks with test specification"
    OPEN = "status open"
    SEVERE = "critical and major"
    ANSWERED = "answered"


class Reach(StrEnum):
    """Of which plans and phases the artifacts count."""

    PHASE = "the phase"
    CURRENT = "the plans that are worked on"
    PRIOR = "the plans before the current one"
    EARLIER = "the phases before this one"
    HANDED = "lines of earlier phases that are meant for this one"


class Column(NamedTuple):
    """One value of each line of a table."""

    name: str
    """Name in the context."""
    keys: tuple[str, ...]
    """Keys of the record, the first that is there counts; `plan` may be the file's own plan."""
    cut: Cut | None = None
    """The cut from which on the column is left out."""


class Section(NamedTuple):
    """One section of a compiled context; it is there when there is something to say."""

    key: str
    """Its name in the context."""
    feed: Feed
    of: tuple[str, ...] = ()
    """Kinds of artifacts, files of the planning tree, or what else the feed looks for."""
    columns: tuple[Column, ...] = ()
    form: SectionForm = SectionForm.TABLE
    only: Only = Only.ALL
    reach: Reach = Reach.PHASE
    departments: tuple[Dept, ...] = ()
    """The departments whose agents get it; empty for everybody."""
    cut: Cut | None = None
    """The cut from which on it is left out; of indented text and lists, that leaves headings."""
    most: int = 0
    """Lines that it has at most; 0 for all."""
    is_vital: bool = False
    """Gives way last."""
    source: str = "the reference scripts"
    """Section that the row restates."""


class Context(NamedTuple):
    """The compiled context of a role, in whichever department."""

    role: Role
    sections: tuple[Section, ...]
    """In the order in which they are written, between the header and what everybody gets."""
    source: str = "the reference scripts"
    """Section that the row restates."""


def _columns(*names: str, cut: Cut | None = None) -> tuple[Column, ...]:
    return tuple(Column(name, (name,), cut) for name in names)


_RECEIVES = 'document 002 ("Per-Agent Context Scoping", column "Receives")'
_OWN = Column("plan", ("plan",))
_DOC_002_STEP_2 = 'document 002 ("11-Step Workflow", step 2)'

GOAL = Section("goal", Feed.PHASE, ("roadmap", "Goal"), form=SectionForm.VALUE, cut=Cut.PROSE)
_SUCCESS = Section("success_criteria", Feed.PHASE, ("roadmap", "Success"), form=SectionForm.LIST)
_REQS = Section(
    "reqs", Feed.REQUIREMENTS, ("reqs", "REQUIREMENTS.md"),
    (Column("id", ("id",)), Column("title", ("t",), Cut.REQUIREMENTS)),
)  # fmt: skip
_RESEARCH = Section(
    "research", Feed.RECORDS, ("research",), (*_columns("q"), *_columns("finding", cut=Cut.PROSE)),
    only=Only.ANSWERED,
)  # fmt: skip
_CODEBASE = Section(
    "codebase", Feed.FILES,
    ("codebase/INDEX.md", "codebase/ARCHITECTURE.md", "codebase/PATTERNS.md",
        "codebase/CONCERNS.md"), form=SectionForm.LIST,
)  # fmt: skip
_MAPPING = Section("codebase", Feed.FILES, _CODEBASE.of, form=SectionForm.LIST, source=_RECEIVES)
_PATTERNS = Section("patterns", Feed.FILES, ("codebase/PATTERNS.md",), form=SectionForm.VALUE)
_PROJECT = Section("project", Feed.FILES, ("PROJECT.md",), form=SectionForm.VALUE)
_ROADMAP = Section("roadmap", Feed.FILES, ("ROADMAP.md",), form=SectionForm.VALUE)
_REQUIREMENTS = Section(
    "requirements", Feed.FILES, ("REQUIREMENTS.md", "reqs.jsonl"), form=SectionForm.LIST
)
_DEPT_CONTEXT = Section(
    "context", Feed.FILES, ("{phase}/{NN}-CONTEXT-{department}.md", "{phase}/{NN}-CONTEXT.md"),
    form=SectionForm.VALUE, source=_RECEIVES,
)  # fmt: skip
_DESIGN_REF = Section(
    "design_handoff", Feed.FILES, ("{phase}/design-handoff.jsonl",), form=SectionForm.VALUE,
    departments=(Dept.FRONTEND,),
)  # fmt: skip
_HANDED = "document 000 (dept-handoff.jsonl), document 002 (UX handoff artifacts)"
_DEPT_HANDOFF = Section(
    "dept_handoff",
    Feed.RECORDS,
    ("dept-handoff",),
    (*_columns("from_dept", "to_dept", "artifacts", "contracts", "blockers"),
        *_columns("notes", cut=Cut.PROSE)),
    departments=(Dept.FRONTEND, Dept.BACKEND),
    source=_HANDED,
)  # fmt: skip
_PHASE_HANDOFF = Section(
    "phase_handoff",
    Feed.RECORDS,
    ("phase-handoff",),
    (*_columns("from_phase", "decisions", "open_items", "artifacts"),
        *_columns("research_refs", cut=Cut.PROSE)),
    reach=Reach.HANDED,
    cut=Cut.PRIOR,
    source="document 000 (phase-handoff.jsonl)",
)  # fmt: skip
_API_REF = Section(
    "api_contracts", Feed.FILES, ("{phase}/api-contracts.jsonl",), form=SectionForm.VALUE,
    departments=(Dept.FRONTEND,),
)  # fmt: skip
_TOKENS = Section(
    "design_tokens", Feed.RECORDS, ("design-tokens",),
    (*_columns("name", "val"), *_columns("sem", cut=Cut.PROSE)), departments=(Dept.FRONTEND,),
)  # fmt: skip
_COMPONENTS = Section(
    "component_specs", Feed.RECORDS, ("component-specs",),
    (*_columns("name", "status"), *_columns("desc", cut=Cut.PROSE)), departments=(Dept.FRONTEND,),
)  # fmt: skip
_TEST_RESULTS = Section(
    "test_results", Feed.RECORDS, ("test-results",), _columns("plan", "phase", "tc", "ps", "fl")
)
_TEST_PLAN = Section(
    "test_plan", Feed.RECORDS, ("test-plan",), _columns("id", "tf", "tc", "red", "plan"),
    source=_RECEIVES,
)  # fmt: skip
_PRIOR_PLANS = Section(
    "prior_plans", Feed.RECORDS, ("summary",), (_OWN, *_columns("s", "t", "fm")), reach=Reach.PRIOR,
    cut=Cut.PRIOR,
)  # fmt: skip
_PRIOR_SUMMARIES = Section(
    "prior_summaries", Feed.RECORDS, ("summary",), (_OWN, *_columns("s", "t", "fm")),
    reach=Reach.EARLIER, cut=Cut.PRIOR,
)  # fmt: skip
_LEADS_SUMMARIES = Section(
    "prior_plans", Feed.RECORDS, ("summary",), (_OWN, *_columns("s", "tc", "tt", "fm", "dv")),
    reach=Reach.PRIOR, cut=Cut.PRIOR, source=_RECEIVES,
)  # fmt: skip
_RECOVERY = Section(
    "error_recovery", Feed.RECORDS, ("gaps",),
    _columns("id", "sev", "desc", "exp", "act", "retry_context"), only=Only.OPEN,
)  # fmt: skip
_CONVENTIONS = Section(
    "conventions", Feed.CONVENTIONS, ("conventions.json",),
    (*_columns("category"), *_columns("rule", cut=Cut.CONVENTIONS)),
)  # fmt: skip
_TAGS = Section("conventions", Feed.CONVENTIONS, ("conventions.json",), _columns("category"))
_DEPT_CONVENTIONS = Section(
    "dept_conventions", Feed.TEXT, ("departments/{department}.toon",), form=SectionForm.NESTED,
    cut=Cut.PROSE,
)  # fmt: skip
_TASKS = (
    Column("id", ("id",)),
    Column("action", ("a",)),
    Column("files", ("f",)),
    Column("done", ("done",)),
)  # fmt: skip
_RESULTS = Section(
    "department_results", Feed.RECORDS, ("*department-result*.jsonl",),
    (Column("department", ("department", "dept")), Column("result", ("result", "r")),
     *_columns("plans_completed", "plans_total")),
)  # fmt: skip
_PLAN_SUMMARIES = Section(
    "plan_summaries", Feed.RECORDS, ("summary",),
    (_OWN, *_columns("s", "tc", "tt", "tst", "fm"), *_columns("dv", cut=Cut.PROSE)), is_vital=True,
)  # fmt: skip


def _critique(*names: str, prose: tuple[str, ...], only: Only, source: str) -> Section:
    columns = (*_columns(*names), *_columns(*prose, cut=Cut.PROSE))
    return Section("critique", Feed.RECORDS, ("critique",), columns, only=only, source=source)


CONTEXTS = (
    Context(
        Role.ARCHITECT,
        (
            _REQS,
            _critique("id", "cat", "sev", "q", "st", prose=("ctx", "sug"), only=Only.ALL,
                source=_RECEIVES),
            _RESEARCH,
            _CODEBASE,
            _DEPT_CONTEXT,
            _DESIGN_REF,
            _PHASE_HANDOFF,
            _SUCCESS,
        ),
    ),
    Context(Role.CRITIC, (_REQS, _RESEARCH, _CODEBASE, _PROJECT, _PHASE_HANDOFF, _SUCCESS)),
    Context(
        Role.LEAD,
        (
            Section("architecture", Feed.TEXT, ("architecture",), form=SectionForm.NESTED,
                cut=Cut.PROSE, is_vital=True),
            _REQS,
            Section(
                "decisions", Feed.RECORDS, ("decisions",),
                (*_columns("agent", "dec"), *_columns("reason", cut=Cut.PROSE)),
            ),
            Section("key_decisions", Feed.HEADING, ("STATE.md", "Key Decisions", "decisions"),
                form=SectionForm.LIST, most=5),
            _DESIGN_REF,
            _DEPT_HANDOFF,
            _API_REF,
            _TEST_RESULTS,
            _SUCCESS,
            _LEADS_SUMMARIES,
            _DEPT_CONTEXT,
            Section("roadmap", Feed.FILES, ("ROADMAP.md",), form=SectionForm.VALUE,
                source=_RECEIVES),
            _MAPPING,
        ),
    ),
    Context(
        Role.SENIOR,
        (
            _PRIOR_PLANS,
            _RECOVERY,
            Section("architecture", Feed.TEXT, ("architecture",), form=SectionForm.NESTED,
                cut=Cut.PROSE),
            Section(
                "tasks", Feed.RECORDS, ("plan",), (*_TASKS, Column("verify", ("v",)), _OWN),
                only=Only.SKETCHED, reach=Reach.CURRENT, is_vital=True, source=_RECEIVES,
            ),
            Section(
                "enriched_tasks", Feed.RECORDS, ("plan",),
                (*_TASKS, Column("spec", ("spec",)), Column("test_spec", ("ts",)), _OWN),
                only=Only.ENRICHED, reach=Reach.CURRENT, is_vital=True, source=_RECEIVES,
            ),
            _critique("id", "q", prose=("sug",), only=Only.OPEN, source=_RECEIVES),
            _TEST_PLAN,
            _REQS,
            _PATTERNS,
            _TOKENS,
            _COMPONENTS,
            Section("suggestions", Feed.ITEMS, ("summary",), _columns("sg"), form=SectionForm.LIST),
            _CONVENTIONS,
            _DEPT_CONVENTIONS,
        ),
    ),
    Context(
        Role.DEV,
        (
            _PRIOR_PLANS,
            _RECOVERY,
            Section(
                "tasks", Feed.RECORDS, ("plan",), (*_TASKS, Column("spec", ("spec",)), _OWN),
                only=Only.TASKS, reach=Reach.CURRENT, is_vital=True,
            ),
            Section(
                "red_tests", Feed.RECORDS, ("test-plan",), _columns("id", "tf", "plan"),
                reach=Reach.CURRENT, is_vital=True, source=_RECEIVES,
            ),
            _TOKENS,
            _TAGS,
            _DEPT_CONVENTIONS,
            Section("skills", Feed.ITEMS, ("plan",), _columns("sk"), form=SectionForm.LIST,
                reach=Reach.CURRENT),
        ),
    ),
    Context(
        Role.TESTER,
        (
            Section(
                "tasks", Feed.RECORDS, ("plan",),
                (*_TASKS, Column("spec", ("spec",)), Column("test_spec", ("ts",)), _OWN),
                only=Only.TESTABLE, reach=Reach.CURRENT, is_vital=True,
            ),
            _PATTERNS,
            _CONVENTIONS,
            _DEPT_CONVENTIONS,
        ),
    ),
    Context(
        Role.QA,
        (
            _PLAN_SUMMARIES,
            _SUCCESS,
            _TEST_RESULTS,
            Section(
                "plan_context", Feed.RECORDS, ("plan",), (_OWN, Column("objective", ("obj",))),
                only=Only.HEADER, is_vital=True,
            ),
            Section("must_have", Feed.ITEMS, ("plan",), (Column("tr", ("mh.tr",)),),
                form=SectionForm.LIST, is_vital=True),
            _REQS,
            _COMPONENTS,
            _CONVENTIONS,
            Section("escalations", Feed.COUNTS, ("escalation",), (Column("st", ("st",)),),
                form=SectionForm.VALUE),
        ),
    ),
    Context(
        Role.QA_CODE,
        (
            _PLAN_SUMMARIES,
            Section("files_to_check", Feed.ITEMS, ("summary",), _columns("fm"),
                form=SectionForm.LIST, is_vital=True),
            _TEST_PLAN,
            _CONVENTIONS,
            _DEPT_CONVENTIONS,
            _RESEARCH,
        ),
    ),
    Context(
        Role.SECURITY,
        (
            Section("files_to_audit", Feed.ITEMS, ("summary",), _columns("fm"),
                form=SectionForm.LIST, is_vital=True),
            Section(
                "dependency_files", Feed.FILES,
                tuple(f"/{name}" for name in
                      ("package.json", "requirements.txt", "go.mod", "Cargo.toml",
                          "pyproject.toml")),
                form=SectionForm.LIST,
            ),
        ),
    ),
    Context(
        Role.INTEGRATION_GATE,
        (
            _SUCCESS,
            _RESULTS,
            Section(
                "test_results", Feed.RECORDS, ("test-results",),
                    _columns("dept", "plan", "phase", "tc", "ps", "fl")
            ),
            Section(
                "api_contracts", Feed.RECORDS, ("api-contracts",),
                (Column("endpoint", ("endpoint", "endpoints")), *_columns("status")),
            ),
            Section(
                "design_handoff", Feed.RECORDS, ("design-handoff",),
                (Column("component", ("component", "ready_components")), *_columns("status")),
            ),
            Section("summaries", Feed.RECORDS, ("summary",), (_OWN,
                *_columns("s", "tc", "tt", "tst"))),
            Section("dept_handoff", Feed.RECORDS, _DEPT_HANDOFF.of, _DEPT_HANDOFF.columns,
                source=_HANDED),
            Section("handoff_sentinels", Feed.NAMES, (".handoff-*",), form=SectionForm.LIST),
        ),
    ),
    Context(
        Role.OWNER,
        (
            _REQS,
            _SUCCESS,
            Section("departments", Feed.RECORDS, _RESULTS.of, _RESULTS.columns),
            Section(
                "handoffs", Feed.FILES,
                tuple(f"{{phase}}/{name}.jsonl" for name in
                      ("design-handoff", "api-contracts", "dept-handoff", "phase-handoff")),
                form=SectionForm.LIST,
            ),
        ),
    ),
    Context(
        Role.DEBUGGER,
        (
            _ROADMAP,
            _REQUIREMENTS,
            _RESEARCH,
            Section("recent_commits", Feed.COMMITS, columns=_columns("commit", "subject"), most=10),
            Section(
                "gaps", Feed.RECORDS, ("gaps",),
                _columns("id", "sev", "desc", "exp", "act", "st", "res", "retry_context"),
                is_vital=True,
            ),
            _PRIOR_SUMMARIES,
            _CODEBASE,
        ),
    ),
    Context(
        Role.SCOUT,
        (
            _critique("id", "sev", "q", prose=(), only=Only.SEVERE, source=_DOC_002_STEP_2),
            _ROADMAP,
            _REQUIREMENTS,
            _PRIOR_SUMMARIES,
            _CODEBASE,
        ),
    ),
    *(
        Context(role, (_ROADMAP, _REQUIREMENTS, _PRIOR_SUMMARIES, _CODEBASE))
        for role in (Role.PO, Role.QUESTIONARY, Role.ROADMAP, Role.ANALYZE, Role.DOCUMENTER)
    ),
)  # fmt: skip
"""The eighteen roles that a context is compiled for."""

FOR_ALL = (
    Section("reference_package", Feed.FILES, ("/references/packages/{role}.toon",),
        form=SectionForm.VALUE),
    Section(
        "tool_restrictions", Feed.TOOLS, form=SectionForm.VALUE,
        source='document 002 ("Agent Roster")'
    ),
)  # fmt: skip
"""What every role gets after its own sections."""

CONTEXT_BY_ROLE = {row.role: row for row in CONTEXTS}

SECTIONS = tuple(
    dict.fromkeys((GOAL, *(section for row in CONTEXTS for section in row.sections), *FOR_ALL))
)
"""Every section once."""


class Filter(NamedTuple):
    """The only keys of a kind of artifact that a role is shown."""

    role: Role
    kind: str
    keys: tuple[str, ...]
    """Keys of its lines; of line 1 of a plan, those that the header has."""
    header: bool = False
    """The whole of line 1 as well."""
    source: str = "the reference scripts"
    """Section that the row restates."""


_SUMMARY = ("s", "tc", "tt", "fm", "dv")

FILTERS = (
    Filter(Role.ARCHITECT, "plan", (), header=True),
    Filter(Role.ARCHITECT, "critique", ("id", "cat", "sev", "q", "ctx", "sug", "st")),
    Filter(Role.ARCHITECT, "research", ("q", "finding", "conf", "rel", "brief_for")),
    Filter(Role.LEAD, "plan", ("id", "a", "f", "done", "v"), header=True),
    Filter(Role.LEAD, "summary", _SUMMARY),
    Filter(Role.SENIOR, "plan", ("id", "a", "f", "done", "v", "spec", "ts")),
    Filter(Role.SENIOR, "critique", ("id", "q", "sug")),
    Filter(Role.SENIOR, "test-plan", ("id", "tf", "tc", "red")),
    Filter(Role.DEV, "plan", ("id", "a", "f", "spec", "ts", "done")),
    Filter(Role.DEV, "gaps", ("id", "sev", "desc", "exp", "act", "st")),
    Filter(Role.TESTER, "plan", ("id", "a", "f", "ts", "spec")),
    Filter(Role.QA, "plan", ("mh", "obj")),
    Filter(Role.QA, "summary", (*_SUMMARY, "tst")),
    Filter(Role.QA_CODE, "summary", ("fm",)),
    Filter(Role.QA_CODE, "test-plan", ("id", "tf", "tc", "red")),
    Filter(Role.SECURITY, "summary", ("fm",)),
    Filter(Role.SCOUT, "critique", ("id", "sev", "q")),
    Filter(Role.CRITIC, "research", ("q", "finding", "conf")),
    Filter(Role.DEBUGGER, "summary", ("fm", "ch", "dv")),
    Filter(Role.DEBUGGER, "research", ("q", "finding")),
    Filter(Role.OWNER, "plan", (), header=True),
    Filter(Role.OWNER, "summary", ("s", "fm", "dv")),
)
"""Where document 002 names fewer keys, those alone are shown."""

NAMES = ("id", "f", "sk", "plan")
"""Keys that only say which: the task, its files, the skills, the plan.

No filter touches them, for without them nobody knows what the rest is about, and they tell nothing
of it."""


class Budget(NamedTuple):
    """The size of a role's context where documents differ, or document 002 says nothing."""

    role: Role
    printed: int
    """Tokens in document 002; 0 where it has no row."""
    manifest: int
    """Tokens in the manifest, which is preferred to the built-in table."""
    source: str = "the reference scripts"
    """Section that the row restates."""

    @property
    def tokens(self) -> int:
        """The smaller one: whatever keeps it keeps the other as well."""
        return min(self.printed or self.manifest, self.manifest)


BUDGETS = (
    Budget(Role.ANALYZE, 1000, 2000),
    Budget(Role.QA, 2000, 3000),
    Budget(Role.INTEGRATION_GATE, 2000, 3000),
    Budget(Role.OWNER, 0, 3000),
)
"""Everywhere else the roster's column "Token Budget" holds, and the manifest says the same."""

_BUDGET_BY_ROLE = {row.role: row.tokens for row in BUDGETS}


def budget_of(name: str) -> int:
    """Return the most tokens of an agent's context; a token is four bytes.

    `name`: short name, such as `fe-lead`.
    """
    agent = AGENT_BY_NAME[name]
    return _BUDGET_BY_ROLE.get(agent.role, agent.token_budget)
