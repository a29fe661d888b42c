"""One valid example of each kind that `schema list` has, from the tested fixtures, and the skeleton
of a new file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from yolo_fs.artifacts.catalogue import find_kind
from yolo_fs.artifacts.classify import classify, place_of_name
from yolo_fs.artifacts.misnamed import artifact_called, name_meant_by
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, Home, by_kind
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import Reason, YoloError, hint_for_unknown, safe
from yolo_fs.evidence.facts import texts
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, DEPARTMENT_BY_NAME, Dept
from yolo_fs.schemas.layout import UNFINISHED, Format
from yolo_fs.system.packaged import packaged

_MOST_BYTES = 720
"""Size limit: the largest example within it is the most instructive."""
_COMPLETE = "complete"
"""The example of that name comes first: of what may also be partial, nobody is to be shown that."""
_UNFINISHED = f"{UNFINISHED}\n"
_SOURCE = "src/"
"""Where the files of examples lie."""
_PHASE = "01-auth"
"""The folder that examples lie in."""
_OF_PHASE = re.compile(r'(phase"?: ?")01(?=")')
_EARLIER = re.compile(r"(?m)^([ \t]*+[\w.\[\]{},-]++:) .*$")


def artifact_named(kind: str) -> Artifact:
    """Return the artifact of a kind, such as `plan`, `artifact/plan` or `plan.jsonl`.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    named_artifact = by_kind(kind.removeprefix("artifact/")) or artifact_called(kind)
    if named_artifact is None:
        names = (artifact.kind for artifact in ARTIFACTS)
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"no artifact is called {safe(kind)!r}",
            hint=hint_for_unknown(kind, names),
        )
    return named_artifact


def example_of(kind: str) -> str:
    """Return the text of one valid artifact, or message, envelope, handoff, state, configuration.

    Raises:
        YoloError: UNKNOWN_NAME; FILE_MISSING where the installation is not whole.
    """
    folder = _folder_of(kind) / "ok"
    sizes = {path: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    complete = [path for path in sizes if path.stem == _COMPLETE]
    small = (
        complete
        or [path for path, size in sizes.items() if size <= _MOST_BYTES]
        or [min(sizes, key=lambda path: sizes[path])]
    )
    return max(sorted(small), key=lambda path: sizes[path]).read_text(encoding="utf-8")


def _folder_of(kind: str) -> Path:
    """Return the examples of any kind that `schema list` has; an artifact's name comes first."""
    is_artifact = by_kind(kind) or artifact_called(kind)
    named = None if is_artifact else find_kind(kind)
    if named is None or named.name.startswith("artifact/"):
        return _examples("artifacts") / artifact_named(kind).kind
    family, _, own = named.name.partition("/")
    folder = _examples(f"{family}s") / (own or family)
    if not folder.is_dir():
        hint = f"'yolo-fs schema list' shows those there are, such as {family}/TYPE."
        raise YoloError(Reason.UNKNOWN_NAME, f"{family} is a family of kinds", hint=hint)
    return folder


def example_for(
    name: str, commits: Sequence[str] = (), plan: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return the text of one valid artifact, by kind, file name or path.

    By its path, it names the phase that it lies in, its number, and files of its department.
    `plan`: the records of the plan that the file belongs to, where that is written: its example is
    the same plan with specs, and a summary is one of its tasks. `commits`: hashes of this
    repository, for artifacts that name commits.

    Raises:
        YoloError: as `example_of`.
    """
    place = classify(name) or place_of_name(name) or place_of_name(name_meant_by(name))
    text = example_of(place.artifact.kind if place else name)
    if place and place.department:
        text = in_lane(text, place.department)
    if place and place.phase:
        number = place.phase.number
        text = _OF_PHASE.sub(rf"\g<1>{number}", text.replace(_PHASE, str(place.phase)))
    if place is None or place.plan is None or place.artifact.format is not Format.JSONL:
        return text
    records: Iterable[Mapping[str, Any]] = map(json.loads, text.splitlines())
    known: dict[str, Any] = {"p": place.plan.phase, "n": place.plan.number, "plan": str(place.plan)}
    if plan and place.artifact.kind == "plan":
        records = _with_specs(plan)
    elif plan and place.artifact.kind == "summary":
        header, *tasks = plan
        files = [name for task in tasks for name in texts(task.get("f"))]
        known |= {"t": header.get("t", ""), "fm": files, "tc": len(tasks), "tt": len(tasks)}
    if commits:
        known["ch"] = list(commits)
    filled = ({key: known.get(key, value) for key, value in each.items()} for each in records)
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in filled)


def _with_specs(plan: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a plan; a task that has no spec is given that of the example."""
    spec = json.loads(enriched_plan().splitlines()[1])["spec"]
    header, *tasks = plan
    yield header
    yield from ({**task, "spec": task.get("spec") or spec} for task in tasks)


def in_lane(text: str, department: str) -> str:
    """Return an example whose files are those that the Devs of a department may write, and no
    other's.
    """
    return text.replace(_SOURCE, DEPARTMENT_BY_NAME[Dept(department)].example_folder)


def enriched_plan() -> str:
    """Return a valid plan after enrichment by the Senior, with its first task only.

    Raises:
        YoloError: FILE_MISSING where the installation is not whole.
    """
    plans = (
        path.read_text(encoding="utf-8").splitlines(keepends=True)
        for path in sorted((_examples("artifacts") / "plan" / "ok").iterdir())
    )
    return next("".join(lines[:2]) for lines in plans if _is_enriched(lines[1:]))


def _is_enriched(tasks: Sequence[str]) -> bool:
    return bool(tasks) and all("spec" in json.loads(line) for line in tasks)


def place_of_new(kind: str, phase: PhaseId | None, plan: str, prefix: str) -> str:
    """Return the path of a new artifact, relative to the planning tree. `prefix`: `fe-` or `ux-`.

    Raises:
        YoloError: UNKNOWN_NAME; BAD_NAME where it needs a phase or a plan.
    """
    artifact = artifact_named(kind)
    if "{plan}" in artifact.file and PlanId.parse(plan) is None:
        hint = f"Say which: yolo-fs new {artifact.kind} --plan 01-01"
        message = f"{safe(plan)!r} is not a plan" if plan else "the number of the plan is missing"
        raise YoloError(Reason.BAD_NAME, message, hint=hint)
    if artifact.home is not Home.PHASE:
        return artifact.file
    if phase is None:
        hint = "Create one: yolo-fs phase new SLUG"
        raise YoloError(Reason.BAD_NAME, "there is no phase yet", hint=hint)
    department = DEFAULT_DEPARTMENT
    name = artifact.named(prefix, plan, phase=phase.number, department=department)
    return f"phases/{phase}/{name}"


def skeleton_of(kind: str, phase: PhaseId | None, plan: str) -> str:
    """Return the keys of a valid artifact with empty values, none of which is accepted.

    Its last line prevents it from being taken for a finished artifact.
    """
    text, artifact = example_of(kind), artifact_named(kind)
    if not artifact.file.endswith((".json", ".jsonl")):
        return _EARLIER.sub(r"\1", text) + _UNFINISHED
    number, _, own = plan.partition("-")
    known = {"p": number or (phase.number if phase else ""), "n": own, "plan": plan}
    lines: dict[tuple[str, ...], str] = {}
    for line in text.splitlines() if artifact.file.endswith(".jsonl") else [text]:
        record = json.loads(line)
        if isinstance(record, dict):
            empty = {key: known.get(key) or _cleared(value) for key, value in record.items()}
            lines.setdefault(tuple(record), json.dumps(empty, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines.values()) + _UNFINISHED


def is_skeleton(path: str, data: bytes) -> bool:
    """Return whether an artifact is as `skeleton_of` made it, so that nobody's work is in it."""
    place = classify(path) if data.endswith(_UNFINISHED.encode()) else None
    if place is None:
        return False
    return data == skeleton_of(place.artifact.kind, place.phase, str(place.plan or "")).encode()


def _cleared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cleared(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleared(each) for each in value[:1] if isinstance(each, dict)]
    return "" if isinstance(value, str) else None


def _examples(family: str) -> Path:
    return packaged(f"_examples/{family}", f"fixtures/examples/{family}")
