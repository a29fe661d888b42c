"""`validate-gates --step S --phase-dir P`: whether a step may begin, by the reference's rules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from yolo_fs.compat.script_io import Folder, UsageError, first, parse, print_json, says
from yolo_fs.core.ids import PlanId
from yolo_fs.core.reasons import safe

USAGE = "validate.sh --type gates --step STEP --phase-dir PATH"


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, USAGE, valued=("--step", "--phase-dir"))
    step, path = given.need("--step"), given.need("--phase-dir")
    if step not in SCRIPT_GATES:
        raise UsageError(
            f"ERROR: Unknown step: {step}", more=f"Valid steps: {', '.join(SCRIPT_GATES)}"
        )
    missing = _missing(step, path)
    print_json({"gate": "fail" if missing else "pass", "step": step, "missing": missing})
    return 1 if missing else 0


def _missing(step: str, path: str) -> Sequence[str]:
    missing = [safe(lack) for lack in SCRIPT_GATES[step](Folder(path))]
    if not missing and not os.path.isdir(path):
        return [f"phase directory {safe(path, 500)}"]
    return missing


PLAN = ".plan.jsonl"

Lacks = Callable[[Folder], Iterable[str]]


def _status(folder: Folder, step: str) -> object:
    steps = folder.object(".execution-state.json").get("steps")
    state = steps.get(step) if isinstance(steps, dict) else None
    return state.get("status") if isinstance(state, dict) else None


def _file(name: str, unless_skipped: str) -> Lacks:
    def lacks(folder: Folder) -> Iterator[str]:
        if not folder.has(name) and _status(folder, unless_skipped) != "skipped":
            yield name

    return lacks


def _some_plan(folder: Folder) -> Iterator[str]:
    if not folder.names("", PLAN):
        yield "*.plan.jsonl"


def _specs(folder: Folder) -> Iterator[str]:
    yield from _some_plan(folder)
    for name in folder.names("", PLAN):
        tasks = folder.rows(name)[1:]
        torn = [
            f"line {number} is not a JSON object"
            for number, row in enumerate(tasks, 2)
            if row is None
        ]
        lacking = [str(row.get("id")) for row in tasks if row is not None and not row.get("spec")]
        if torn or lacking:
            yield f"{name}: tasks missing spec field ({', '.join([*lacking, *torn])})"


def _red_tests(folder: Folder) -> Iterator[str]:
    yield from _specs(folder)
    if _status(folder, "test_authoring") == "complete" and not folder.has("test-plan.jsonl"):
        yield "test-plan.jsonl (test_authoring step completed)"


def _summaries(folder: Folder) -> Iterator[str]:
    yield from _some_plan(folder)
    for name in folder.names("", PLAN):
        header = first(folder.rows(name))
        plan = PlanId.parse(f"{header.get('p')}-{header.get('n')}")
        if plan is None:
            yield f"{name}: its header names no plan"
        elif not any(
            map(folder.has, (f"{plan}.summary.jsonl", name.replace(PLAN, ".summary.jsonl")))
        ):
            yield f"{plan}.summary.jsonl"


def _approved(folder: Folder) -> Iterator[str]:
    verdict = first(folder.rows("code-review.jsonl")).get("r", "")
    if not folder.has("code-review.jsonl"):
        yield "code-review.jsonl"
    elif verdict != "approve":
        yield f"code-review.jsonl: r must be 'approve' (got '{verdict}')"


def _check_signoff(folder: Folder) -> Iterator[str]:
    yield from _file("security-audit.jsonl", "security")(folder)
    yield from _approved(folder)


def _require_results(level: str, step: str) -> Lacks:
    name = ".qa-gate-results.jsonl"

    def lacks(folder: Folder) -> Iterator[str]:
        if not folder.has(name):
            yield from _file(name, step)(folder)
        elif not any(says(row, "gl", level) for row in folder.rows(name)):
            yield f"{level} gate results in {name}"

    return lacks


SCRIPT_GATES: Mapping[str, Lacks] = {
    "critique": lambda _: (),
    "research": _file("research.jsonl", "research"),
    "architecture": _file("critique.jsonl", "critique"),
    "planning": _file("architecture.toon", "architecture"),
    "design_review": _some_plan,
    "test_authoring": _specs,
    "implementation": _red_tests,
    "code_review": _summaries,
    "qa": _approved,
    "security": _file("verification.jsonl", "qa"),
    "signoff": _check_signoff,
    "post_task_qa": _require_results("post-task", "post_task_qa"),
    "post_plan_qa": _require_results("post-plan", "post_plan_qa"),
}
"""Step → the condition of its gate. The other steps of the workflow have no scripted gate."""
