"""What somebody wants to read or write, and what the isolation tables mean by their words. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.isolation import BORDERS, SEALED, Item, Sealed, What
from yolo_fs.protocol.names import Dept, Role
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.rules.authz.actors import Actor

GIT_DIFF = "git diff"
"""Stands for the changes themselves, which no path is."""

_QA_KINDS = frozenset({"verification", "qa-code", "manual-qa", "gaps", "qa-gate-results"})
_CONTEXT = re.compile(r"(?:[0-9]{2}-)?CONTEXT(?:-(?P<department>[a-z]+))?\.md")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.[^/.]+$"
)
_PROSE = (".md", ".txt", ".rst")


@dataclass(frozen=True)
class Target:
    """What somebody wants to read or write."""

    path: str
    """POSIX path relative to the repository, resolved; `git diff` for the changes themselves."""
    tests: frozenset[str] = field(default=frozenset())
    """Test files that the test plan names."""

    @cached_property
    def place(self) -> Place | None:
        """Which artifact it is, if any."""
        return classify(self.path)

    @property
    def kind(self) -> str:
        """Kind of the artifact; empty when it is none."""
        return self.place.artifact.kind if self.place else ""

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]

    @property
    def is_planning(self) -> bool:
        """Whether it lies in the planning tree."""
        return self.path == PLANNING_ROOT or self.path.startswith(f"{PLANNING_ROOT}/")

    @property
    def is_test(self) -> bool:
        """Whether it is a test file."""
        return not self.is_planning and (
            self.path in self.tests or _TEST.search(self.path) is not None
        )

    @property
    def is_source(self) -> bool:
        """Whether it is code: outside of the planning tree, and no prose."""
        return (
            not self.is_planning
            and self.path != GIT_DIFF
            and not self.name.lower().endswith(_PROSE)
        )

    @property
    def department(self) -> Dept | None:
        """The department whose artifact it is; None for what several share."""
        if self.place is None:
            return None
        if self.place.artifact.made_by or "{dep" not in self.place.artifact.file:
            return self.place.artifact.made_by
        own = Dept(self.place.department)
        return None if own is DEFAULT_DEPARTMENT and self.kind in ("critique", "research") else own

    @property
    def context_of(self) -> str | None:
        """The department of a context file, empty when it names none; None when it is no context
        file.
        """
        found = _CONTEXT.fullmatch(self.name) if self.is_planning else None
        return (found["department"] or "") if found else None


# --- what the tables mean by their words ---

_Is = Callable[[Target, Item, Actor], bool]


def _of(*kinds: str) -> _Is:
    return lambda target, item, _: (
        target.kind in kinds and item.department in (None, target.department)
    )


def _below(folder: str, *names: str) -> _Is:
    return lambda target, *_: (
        target.path.startswith(f"{PLANNING_ROOT}/{folder}") and (not names or target.name in names)
    )


def _is_context(target: Target, item: Item, actor: Actor) -> bool:
    if target.context_of is None:
        return False
    if item.department:
        return target.context_of == item.department
    return target.context_of in ("", actor.department or DEFAULT_DEPARTMENT)


def _is_other_context(target: Target, _: Item, actor: Actor) -> bool:
    return target.context_of not in (None, "", actor.department or DEFAULT_DEPARTMENT)


def _is_other_artifact(target: Target, _: Item, actor: Actor) -> bool:
    """What a department was handed is its own from then on."""
    own = actor.department or DEFAULT_DEPARTMENT
    rows = (row for row in BORDERS if row.department is own)
    handed = any(means(item, target, actor) for row in rows for item in row.receives)
    return target.department not in (None, own) and not handed


def _is_compiled_for(role: Role) -> _Is:
    def is_compiled(target: Target, _: Item, actor: Actor) -> bool:
        return target.name in (f".ctx-{role}.toon", f".ctx-{actor.peer(role).name}.toon")

    return is_compiled


def _is_handed_over(target: Target) -> bool:
    made_by = target.place.artifact.made_by if target.place else None
    return made_by is not None or target.kind == "dept-handoff"


def _is_pattern(target: Target, *_: object) -> bool:
    return target.path.startswith(f"{PLANNING_ROOT}/codebase/") and target.name == "PATTERNS.md"


MEANS: Mapping[What, _Is] = {
    What.CONTEXT: _is_context,
    What.OTHER_CONTEXTS: _is_other_context,
    What.ALL_CONTEXTS: lambda target, *_: target.context_of is not None,
    What.ROADMAP: _of("roadmap"),
    What.REQUIREMENTS: lambda target, *_: (
        target.kind == "reqs" or _below("", "REQUIREMENTS.md")(target, *_)
    ),
    What.CODEBASE_MAP: _below("codebase/"),
    What.CODEBASE_PATTERNS: _is_pattern,
    What.ARCHITECTURE: _of("architecture"),
    What.CRITIQUE: _of("critique"),
    What.RESEARCH: _of("research"),
    What.PLAN: _of("plan"),
    What.SUMMARY: _of("summary"),
    What.TEST_PLAN: _of("test-plan"),
    What.TEST_FILES: lambda target, *_: target.is_test,
    What.GIT_DIFF: lambda target, *_: target.path == GIT_DIFF,
    What.GAPS: _of("gaps"),
    What.CODE_REVIEW: _of("code-review"),
    What.SECURITY_AUDIT: _of("security-audit"),
    What.QA_ARTIFACTS: _of(*_QA_KINDS),
    What.SOURCE_CODE: lambda target, *_: target.is_source,
    What.SOURCE_EDITS: lambda target, *_: target.path == GIT_DIFF,
    What.OTHER_ARTIFACTS: _is_other_artifact,
    What.CTX_QA: _is_compiled_for(Role.QA),
    What.CTX_QA_CODE: _is_compiled_for(Role.QA_CODE),
    What.HANDOFF: lambda target, *_: _is_handed_over(target),
    What.DESIGN_TOKENS: _of("design-tokens"),
    What.COMPONENT_SPECS: _of("component-specs"),
    What.API_CONTRACTS: _of("api-contracts"),
    What.PLANS_AND_ARCHITECTURE: _of("plan", "architecture"),
}


def sealed(target: Target) -> Sealed | None:
    """Return the row that keeps a file from every agent; None for all other files."""
    *folders, name = target.path.casefold().split("/")
    for row in SEALED:
        if any(fnmatchcase(name, pattern) for pattern in row.names) or not {
            *row.folders
        }.isdisjoint(folders):
            return row
    return None


def means(item: Item, target: Target, actor: Actor) -> bool:
    """Return whether an entry of the tables speaks of a target."""
    return MEANS[item.what](target, item, actor)
