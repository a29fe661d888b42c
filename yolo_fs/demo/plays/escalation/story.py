"""A Dev is blocked: the question rises to the user and the decision comes down, in one department
and in several.
"""

from __future__ import annotations

from collections.abc import Mapping

from yolo_fs.demo.plays.escalation.round_trip import (
    DECISION,
    LOG,
    PHASE,
    PLAN,
    RESUMES,
    STATE,
    Move,
    moves_of,
)
from yolo_fs.demo.story import (
    Act,
    Adds,
    Agrees,
    Code,
    Commits,
    Git,
    Keeps,
    Play,
    Says,
    Scene,
    Source,
    Tell,
    Write,
)
from yolo_fs.protocol.names import Dept, Mode, Role

ROOT = ".yolo-planning"
_SHOWN = "/team/phases/0/escalations/0"
_DOES: Mapping[Role, str] = {
    Role.DEV: "is blocked",
    Role.SENIOR: "adds the context of the spec",
    Role.LEAD: "adds whose decision it is not",
    Role.ARCHITECT: "adds the design, and 2 options",
    Role.OWNER: "adds what it means to the others",
    Role.USER: "chooses",
}
_PASSES: Mapping[Role, str] = {
    Role.USER: "chooses",
    Role.OWNER: "names the department's Lead",
    Role.ARCHITECT: "looks whether the design changes",
    Role.LEAD: "routes it to the Senior",
    Role.SENIOR: "translates it into instructions",
}


def _play(mode: Mode, intro: str, config: str) -> Play:
    dept, prefix = (Dept.FRONTEND, "fe-") if mode is Mode.MULTI else (Dept.BACKEND, "")
    moves = tuple(moves_of(mode))
    up, down = (
        [(at, move) for at, move in enumerate(moves) if move.goes_down is goes]
        for goes in (False, True)
    )
    plan = f"{PHASE}/{prefix}{PLAN}.plan.jsonl"
    planned = Scene(
        Role.LEAD,
        "plans",
        (Write(plan, "plan.jsonl"),),
        Commits(plan, f"docs(01): plan {PLAN}"),
        dept,
    )
    rising = [scene for at, move in up for scene in _level(at, move, dept)]
    falling = [scene for at, move in down for scene in _level(at, move, dept)]
    received = _told("received")
    return Play(
        name="escalation",
        intro=intro,
        opening=(
            Write("README.md", "README.md"),
            Write(f"{ROOT}/.gitignore", "gitignore"),
            Write(f"{ROOT}/config.json", config),
            Git(("add", "README.md", ROOT)),
            Git(("commit", "--quiet", "--message=chore(app): first berth")),
        ),
        acts=(
            Act(
                "up",
                "from the Dev to the user, one level at a time",
                (planned, rising[0], received, *rising[1:]),
            ),
            Act(
                "down", "the decision, until the task goes on", (*falling, *_end(len(moves), dept))
            ),
        ),
        keeps_states=True,
        policy={"state_files": "always"},
        shows_log=False,
    )


def _level(at: int, move: Move, dept: Dept) -> tuple[Scene, Scene]:
    """Return the scenes of one level: it has its say, and status shows what became of it."""
    does = (_PASSES if move.goes_down else _DOES)[move.role]
    own = dept if move.role in _OF_DEPARTMENT else Dept.BACKEND
    said = Scene(
        move.role,
        does,
        (Tell(move.words("-"), move.message),),
        Commits(LOG, "docs(01): escalation"),
        own,
    )
    standing = "descending" if move.goes_down else "rising"
    shown = {"standing": standing, "holder": move.holder, "history": at + 1, **_added(at, move)}
    words = f"{standing}, {move.holder} has it, with: {'; '.join(move.adds)}"
    words += "" if move.goes_down else f"; wants: {move.wants}"
    return said, _status(shown, {"status": "pending", "level": move.level.value}, words)


def _added(at: int, move: Move) -> dict[str, object]:
    """Return where status shows what a level added, by its place in the history, and that."""
    here = f"history/{at}"
    if move.goes_down:
        own = "action_items/0" if move.role is Role.SENIOR else f"{here}/reason"
        return {f"{here}/agent": move.agent, own: move.adds[0], "decision": DECISION}
    options = {f"{here}/options/{number}": option for number, option in enumerate(move.options)}
    asked = {f"{here}/evidence/0": move.adds[0], f"{here}/recommendation": move.wants}
    return {f"{here}/agent": move.agent, **asked, **options}


_OF_DEPARTMENT = (Role.DEV, Role.SENIOR, Role.LEAD, Role.ARCHITECT)


def _status(shown: Mapping[str, object], kept: Mapping[str, object], said: str) -> Scene:
    """Return the scene of a look at status, and at the execution state as committed."""
    status = Says(("status",), {f"{_SHOWN}/{key}": value for key, value in shown.items()}, said)
    state = Keeps(STATE, {f"/escalations/0/{key}": value for key, value in kept.items()}, said)
    return Scene(Role.LEAD, "says who has it", (), Agrees((state, status), said), called="status")


def _told(what: str) -> Scene:
    return Scene(
        Role.LEAD,
        "commits the state",
        (),
        Adds(STATE, f"chore(state): escalation {what} phase 1"),
        called="daemon",
    )


def _end(count: int, dept: Dept) -> tuple[Scene, ...]:
    shown = {"standing": "resolved", "holder": "", "decision": DECISION, "history": count + 1}
    kept = {"status": "resolved", "resolution": DECISION, "round_trips": 1}
    return (
        Scene(
            Role.DEV,
            "commits src/a.ts with git",
            (Code("src/a.ts", "a.ts", RESUMES),),
            Source(RESUMES),
            dept,
        ),
        Scene(
            Role.LEAD,
            "sees the task go on",
            (),
            Adds(LOG, "docs(01): escalation"),
            called="daemon",
            deadline_s=30.0,
        ),
        _told("resolved"),
        _status(shown, kept, f"resolved: {DECISION}; it went up and came back once"),
    )


ESCALATIONS = (
    _play(
        Mode.SINGLE,
        "a blocked Dev's question goes up to the user, and the decision comes down.",
        "single.json",
    ),
    _play(
        Mode.MULTI,
        "the same in a company of several departments, whose Owner is asked as well.",
        "multi.json",
    ),
)
