"""The input of an agent for one act: a text, and environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from yolo_fs.artifacts.classify import PLANNING_ROOT, place_of_name
from yolo_fs.company.answers import NOTHING_SPOKEN, Spoken
from yolo_fs.company.roles import model_of
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.reasons import safe, safe_lines
from yolo_fs.evidence.facts import plans_of
from yolo_fs.phase.acts import Act
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.report import input_files
from yolo_fs.protocol.departments import SHARED_NAMES, Role

_LONGEST = 2000
_WITH_SOURCE = frozenset({Role.DEV.value, Role.TESTER.value})
_MOST_BYTES = 1 << 16
"""Of a variable: Linux starts no process with one of 128 KiB."""
_OF_TASK = (("spec", "Specification"), ("v", "Verify"), ("done", "Done when"))


def brief_of(
    phase: Phase,
    act: Act,
    intent: str,
    reasons: Sequence[str],
    spoken: Spoken = NOTHING_SPOKEN,
    *,
    can_commit: bool = True,
) -> str:
    """Return the text of an act.

    `reasons`: why the try before was not enough; `spoken`: what of it is said rather than done;
    `can_commit`: whether its agent commits its source itself.
    """
    return "\n".join(_lines(phase, act, intent, reasons, spoken, can_commit)) + "\n"


def _lines(
    phase: Phase, act: Act, intent: str, reasons: Sequence[str], spoken: Spoken, can_commit: bool
) -> Iterator[str]:
    yield f"# {act.turn.sentence}"
    yield ""
    yield f"You are yolo-{act.agent}. Phase {phase.id}, step {act.turn.step}."
    if intent and act.role != "dev":  # a Dev is given its specification and nothing else
        yield from _quote("Intent", intent)
    if act.turn.why:
        yield f"Because: {safe(act.turn.why, _LONGEST)}"
    if spoken.decides:
        yield "End with one line: `Decision: ` and what you decide;"
        yield "or `Escalate: ` and the question, with 2 or 3 options, each after ` | `, best first."
    elif act.turn.command:
        yield f"Run: {act.turn.command}"
    yield from _task(phase, act)
    yield from _list("Read", _reads(phase, act))
    yield from _list("Write", (_written(path) for path in act.writes if path not in spoken.files))
    yield from _list("End with the whole content, each in one fenced block, of", spoken.files)
    if not can_commit and act.role in _WITH_SOURCE:
        yield "Commit nothing: your source is committed for you once you end."
    elif any(not _is_artifact(path) for path in act.writes) and act.task:
        yield "Commit the source yourself:"
        yield f"    yolo-fs commit --task {act.task} --type {act.commit_type} -m 'what was done'"
    if any(map(_is_artifact, act.writes)):
        yield "Files below .yolo-planning/ are committed for you once they are valid."
    yield from _list("Your step still lacks", act.lacks)
    if any("is older than" in lack for lack in act.lacks):
        yield "Judge again, with the time: an unchanged file is not a new verdict."
    yield from _list("Your last try was not enough", (safe(reason, _LONGEST) for reason in reasons))
    if spoken.files or spoken.decides:
        yield "The runner writes each block to its file, and uses nothing else of your answer."
    elif act.turn.command and "escalate" in act.turn.command:
        name = act.turn.command.split()[3]
        yield "When that is not yours to decide, hand it to the next level, and end:"
        yield f"    yolo-fs escalate raise {name} --by {act.agent} --reason … --recommendation …"
    elif act.task:
        yield "When you cannot continue, ask one level up, and end:"
        yield f"    yolo-fs escalate open --task {act.task} --from {act.agent} --reason …"
        yield "        --evidence … --recommendation … --boundary …"
    yield "Then end: what counts is what is on the branch, not what you say."


def _quote(title: str, text: str) -> Iterator[str]:
    """Yield a whole text, none of whose lines can be taken for one of the brief."""
    lines = safe_lines(text).split("\n")
    yield f"{title}: {lines[0]}" if len(lines) == 1 else f"{title}:"
    yield from (f"> {line}" for line in lines if len(lines) > 1)


def _task(phase: Phase, act: Act) -> Iterator[str]:
    ref = TaskRef.parse(act.task)
    if ref is None:
        return
    for plan in plans_of(phase.facts, act.department):
        for line in plan.tasks:
            if plan.id == ref.plan and line.get("id") == f"T{ref.number}":
                yield f"Task {act.task}: {safe(str(line.get('a', '')), _LONGEST)}"
                for key, name in _OF_TASK:
                    if line.get(key):
                        yield f"{name}: {safe(str(line[key]), _LONGEST)}"


def _reads(phase: Phase, act: Act) -> Sequence[str]:
    own = next(
        (status for status in phase.progress.departments if status.department == act.department),
        None,
    )
    files = input_files(phase.facts, act.turn, own)
    return files or act.turn.inputs


def _is_artifact(path: str) -> bool:
    return path.startswith(f"{PLANNING_ROOT}/")


def _written(path: str) -> str:
    place = place_of_name(path) if _is_artifact(path) else None
    if place is None:
        return path
    kind = place.artifact.kind
    shape = f"shape: yolo-fs schema show artifact/{kind}; example: yolo-fs schema example {path}"
    adds = "add to what it has; " if place.artifact.append_only else ""
    return f"{path} ({adds}{shape}; check: yolo-fs validate {path})"


def _list(title: str, items: Iterator[str] | Sequence[str]) -> Iterator[str]:
    entries = list(items)
    if entries:
        yield f"{title}:"
        yield from (f"- {entry}" for entry in entries)


def variables_of(
    phase: Phase, act: Act, run: str, brief_path: str, attempt: int
) -> Mapping[str, str]:
    """Return the environment variables that describe an act to a process of any host."""
    department = act.department or SHARED_NAMES[0]
    return {
        "YOLO_FS_AGENT": f"yolo-{act.agent}",
        "YOLO_FS_ROLE": act.role,
        "YOLO_FS_MODEL": model_of(phase.facts.options.config, act.agent),
        "YOLO_FS_DEPARTMENT": str(department),
        "YOLO_FS_PHASE": str(phase.id),
        "YOLO_FS_STEP": act.turn.step,
        "YOLO_FS_PLAN": act.plan,
        "YOLO_FS_TASK": act.task,
        "YOLO_FS_WRITES": _joined(act.writes, _MOST_BYTES),
        "YOLO_FS_BRIEF": brief_path,
        "YOLO_FS_RUN": run,
        "YOLO_FS_ATTEMPT": str(attempt),
    }


def _joined(lines: Sequence[str], most_bytes: int) -> str:
    """Return so many whole lines as have room."""
    sizes = accumulate(len(os.fsencode(line)) + 1 for line in lines)
    return "\n".join(line for line, size in zip(lines, sizes, strict=True) if size <= most_bytes)
