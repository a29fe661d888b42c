"""Context isolation: what each role, and each department, receives and never receives.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from yolo_fs.protocol.departments import WORKING, Department, Dept, Role


class What(StrEnum):
    """A kind of context in the isolation tables; bound to paths by the rules of access."""

    CONTEXT = "context file of the department"
    OTHER_CONTEXTS = "context files of other departments"
    ALL_CONTEXTS = "context files of any department"
    ROADMAP = "roadmap"
    REQUIREMENTS = "requirements"
    CODEBASE_MAP = "codebase mapping"
    CODEBASE_PATTERNS = "codebase patterns"
    ARCHITECTURE = "architecture"
    CRITIQUE = "critique"
    RESEARCH = "research"
    PLAN = "plan"
    SUMMARY = "summary"
    TEST_PLAN = "test plan"
    TEST_FILES = "test files"
    GIT_DIFF = "git diff"
    GAPS = "gaps"
    CODE_REVIEW = "code review"
    SECURITY_AUDIT = "security audit"
    QA_ARTIFACTS = "artifacts of QA"
    SOURCE_CODE = "source code"
    SOURCE_EDITS = "changes of source code"
    OTHER_ARTIFACTS = "artifacts of other departments"
    CTX_QA = "compiled context of qa"
    CTX_QA_CODE = "compiled context of qa-code"
    HANDOFF = "handoff artifacts"
    DESIGN_TOKENS = "design tokens"
    COMPONENT_SPECS = "component specs"
    API_CONTRACTS = "API contracts"
    PLANS_AND_ARCHITECTURE = "plans and architecture"


class Item(NamedTuple):
    """One entry of a cell."""

    text: str
    """As printed."""
    what: What
    """The kind of context that is meant."""
    fields: tuple[str, ...] = ()
    """The only keys of its lines that are meant; empty for all."""
    department: Dept | None = None
    """The department whose context is meant, where the entry names one."""


class Scope(NamedTuple):
    """What one role receives and never receives within its department."""

    role: Role
    """Whose context it is."""
    receives: tuple[Item, ...]
    """What it gets."""
    never: tuple[Item, ...]
    """What it must not see."""
    mode: str = ""
    """The work during which it holds, such as `Code Review`; empty for all of the role's work."""
    source: str = 'document 002 ("Per-Agent Context Scoping")'
    """Section that the row restates."""


SCOPES = (
    Scope(
        role=Role.LEAD,
        receives=(
            Item("Dept CONTEXT", What.CONTEXT),
            Item("ROADMAP", What.ROADMAP),
            Item("REQUIREMENTS", What.REQUIREMENTS),
            Item("architecture.toon", What.ARCHITECTURE),
            Item("prior summaries", What.SUMMARY),
            Item("codebase mapping", What.CODEBASE_MAP),
        ),
        never=(
            Item("Other dept contexts", What.OTHER_CONTEXTS),
            Item("code-review.jsonl", What.CODE_REVIEW),
            Item("gaps.jsonl", What.GAPS),
            Item("security-audit.jsonl", What.SECURITY_AUDIT),
        ),
    ),
    Scope(
        role=Role.ARCHITECT,
        receives=(
            Item("Dept CONTEXT", What.CONTEXT),
            Item("REQUIREMENTS", What.REQUIREMENTS),
            Item("critique.jsonl", What.CRITIQUE),
            Item("codebase mapping", What.CODEBASE_MAP),
            Item("research.jsonl", What.RESEARCH),
        ),
        never=(
            Item("Other dept contexts", What.OTHER_CONTEXTS),
            Item("implementation code", What.SOURCE_CODE),
            Item("QA artifacts", What.QA_ARTIFACTS),
        ),
    ),
    Scope(
        role=Role.SENIOR,
        mode="Design Review",
        receives=(
            Item("architecture.toon", What.ARCHITECTURE),
            Item("plan.jsonl tasks", What.PLAN),
            Item("codebase patterns", What.CODEBASE_PATTERNS),
            Item("critique.jsonl", What.CRITIQUE),
        ),
        never=(
            Item("Full CONTEXT file directly (only via architecture.toon)", What.ALL_CONTEXTS),
            Item("other dept artifacts", What.OTHER_ARTIFACTS),
        ),
    ),
    Scope(
        role=Role.SENIOR,
        mode="Code Review",
        receives=(
            Item("plan.jsonl", What.PLAN),
            Item("git diff", What.GIT_DIFF),
            Item("test-plan.jsonl", What.TEST_PLAN),
        ),
        never=(Item("CONTEXT files", What.ALL_CONTEXTS), Item("ROADMAP directly", What.ROADMAP)),
    ),
    Scope(
        role=Role.TESTER,
        receives=(
            Item("Enriched plan.jsonl (tasks with `ts` field)", What.PLAN),
            Item("codebase patterns", What.CODEBASE_PATTERNS),
        ),
        never=(
            Item("CONTEXT files", What.ALL_CONTEXTS),
            Item("architecture.toon", What.ARCHITECTURE),
            Item("critique.jsonl", What.CRITIQUE),
        ),
    ),
    Scope(
        role=Role.DEV,
        receives=(
            Item("Enriched plan.jsonl (`spec` field ONLY)", What.PLAN, fields=("spec",)),
            Item("test files (RED targets)", What.TEST_FILES),
        ),
        never=(
            Item("architecture.toon", What.ARCHITECTURE),
            Item("CONTEXT files", What.ALL_CONTEXTS),
            Item("critique.jsonl", What.CRITIQUE),
            Item("ROADMAP", What.ROADMAP),
            Item("REQUIREMENTS", What.REQUIREMENTS),
        ),
    ),
    Scope(
        role=Role.QA,
        receives=(
            Item("plan.jsonl", What.PLAN),
            Item("summary.jsonl", What.SUMMARY),
            Item(".ctx-qa.toon", What.CTX_QA),
        ),
        never=(
            Item("Source code modifications", What.SOURCE_EDITS),
            Item("CONTEXT files", What.ALL_CONTEXTS),
        ),
    ),
    Scope(
        role=Role.QA_CODE,
        receives=(
            Item("summary.jsonl (file list)", What.SUMMARY, fields=("fm",)),
            Item("test-plan.jsonl", What.TEST_PLAN),
            Item(".ctx-qa-code.toon", What.CTX_QA_CODE),
        ),
        never=(
            Item("CONTEXT files", What.ALL_CONTEXTS),
            Item("architecture.toon", What.ARCHITECTURE),
        ),
    ),
)


CREATIVE = frozenset({
    "analysis", "discovery", "roadmap-plan", "scope-document", "phase-handoff",
})  # fmt: skip
"""Kinds that say what is wanted and why. A Dev receives none of them: document 002 ("Per-Agent
Context Scoping") gives it the `spec` field as the complete instruction set."""

BELOW_SENIOR = frozenset({Role.DEV, Role.TESTER, Role.QA, Role.QA_CODE})
"""Roles whose rows print nothing about other departments. Each level receives less than the one
above it, so they never receive what the Senior never does."""


class Border(NamedTuple):
    """What one department receives and never receives when several are active."""

    department: Dept
    """Whose context it is."""
    receives: tuple[Item, ...]
    """What its agents get."""
    never: tuple[Item, ...]
    """What its agents must not see."""
    source: str = 'document 002 ("Cross-Department Context Isolation")'
    """Section that the row restates."""


PRINTED_BORDERS = (
    Border(
        department=Dept.BACKEND,
        receives=(Item("`{phase}-CONTEXT-backend.md`", What.CONTEXT, department=Dept.BACKEND),),
        never=(
            Item("UX context", What.CONTEXT, department=Dept.UIUX),
            Item("FE context", What.CONTEXT, department=Dept.FRONTEND),
            Item("design tokens", What.DESIGN_TOKENS, department=Dept.UIUX),
            Item("component specs", What.COMPONENT_SPECS, department=Dept.UIUX),
        ),
    ),
    Border(
        department=Dept.UIUX,
        receives=(Item("`{phase}-CONTEXT-uiux.md`", What.CONTEXT, department=Dept.UIUX),),
        never=(
            Item("BE context", What.CONTEXT, department=Dept.BACKEND),
            Item("FE context", What.CONTEXT, department=Dept.FRONTEND),
            Item("API contracts", What.API_CONTRACTS),
        ),
    ),
    Border(
        department=Dept.FRONTEND,
        receives=(
            Item("`{phase}-CONTEXT-frontend.md`", What.CONTEXT, department=Dept.FRONTEND),
            Item("UX handoff artifacts", What.HANDOFF, department=Dept.UIUX),
        ),
        never=(
            Item("BE context", What.CONTEXT, department=Dept.BACKEND),
            Item(
                "UX internal plans/architecture", What.PLANS_AND_ARCHITECTURE, department=Dept.UIUX
            ),
        ),
    ),
)


"""As the document prints them."""

_PRINTED = {border.department for border in PRINTED_BORDERS}


def _derive_border(department: Dept) -> Border:
    """Return the border of a department that the document does not print: its own context, and
    nothing internal of another.
    """
    others = [row for row in WORKING if row.name is not department]
    return Border(
        department,
        (Item(f"`{{phase}}-CONTEXT-{department}.md`", What.CONTEXT, department=department),),
        (
            *(_context_of(row) for row in others),
            *(
                Item(
                    f"{row.label} internal plans/architecture",
                    What.PLANS_AND_ARCHITECTURE,
                    department=row.name,
                )
                for row in others
            ),
        ),
    )


def _context_of(row: Department) -> Item:
    return Item(f"{row.label} context", What.CONTEXT, department=row.name)


_UNPRINTED = [row for row in WORKING if row.name not in _PRINTED]

BORDERS = (
    *(
        border._replace(never=(*border.never, *map(_context_of, _UNPRINTED)))
        for border in PRINTED_BORDERS
    ),
    *(_derive_border(row.name) for row in _UNPRINTED),
)
"""Those printed, and those that follow for departments that the document does not know."""


class Sealed(NamedTuple):
    """Files that no agent of the company reads or writes, whatever its role."""

    what: str
    """What they are."""
    names: tuple[str, ...] = ()
    """Shell patterns of their names, compared without case."""
    folders: tuple[str, ...] = ()
    """Folders, anywhere in the tree, that they lie in."""
    source: str = 'the reference scripts ("security-filter")'
    """Section that the row restates; here whole names are compared: `rebuild/x` is no `build/`."""

    @property
    def is_secret(self) -> bool:
        """Whether a program must not be given one either; what is built or installed is run."""
        return "node_modules" not in self.folders


SEALED = (
    Sealed(
        "credentials",
        names=(
            ".env", ".env.*", "*.pem", "*.key", "*.cert", "*.p12", "*.pfx", "credentials.json",
            "secrets.json", "service-account*.json",
        ),
    ),
    Sealed("installed or generated", folders=("node_modules", "dist", "build")),
    Sealed("git's own", folders=(".git",)),
)  # fmt: skip


class Personal(NamedTuple):
    """A file of the planning tree by which a person says what agents may."""

    name: str
    """Of the file, directly below the planning tree."""
    what: str
    """What it says."""
    source: str = 'document 002 ("Decision Authority Matrix")'
    """Section that the row restates: nobody decides on their own authority."""


PERSONAL = (
    Personal("config.json", "says which rules hold for every agent"),
    Personal(".active-agent", "says which agent works, and whose rights it has"),
)


def is_withheld(role: Role, item: Item) -> bool:
    """Return whether a role never receives what the row of its department gives."""
    never = {each.what for row in SCOPES if row.role is role for each in row.never}
    return item.what in never or (item.what is What.CONTEXT and What.ALL_CONTEXTS in never)
