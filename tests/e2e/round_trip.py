"""The round trip of an escalation as rows: who says what to whom, from the blocked Dev up and down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.departments import Dept, Mode, Role, name_in
from yolo_fs.protocol.escalation import CHAINS

PLAN, TASK = "01-02", "01-02/T1"
NAME = f"ESC-{TASK.replace('/', '-')}"
PHASE = ".yolo-planning/phases/01-auth"
LOG = f"{PHASE}/escalation.jsonl"
STATE = f"{PHASE}/.execution-state.json"
RESUMES = f"fix({PLAN}): resolve blocker of the gateway"
"""Subject of the commit by which the task goes on."""

DECISION = "Path /"
OPTIONS = (DECISION, "Strip it in the gateway")
INSTRUCTION = "Set Path=/"
_RECOMMENDS = "Path / as long as the gateway strips it"

EVIDENCE: Mapping[Role, str] = {
    Role.DEV: "curl shows Path=/login",
    Role.SENIOR: "the spec leaves the path open",
    Role.LEAD: "no plan of this phase owns the gateway",
    Role.ARCHITECT: "the design names no cookie path",
    Role.OWNER: "no other department reads the cookie",
}
"""What each level adds on the way up."""

RATIONALE: Mapping[Role, str] = {
    Role.USER: "The gateway is not ours",
    Role.OWNER: "It holds for the frontend alone",
    Role.ARCHITECT: "The design stays as it is",
    Role.LEAD: "The Senior of the plan takes it up",
}
"""What each level adds on the way down."""


@dataclass(frozen=True, slots=True)
class Move:
    """One level has its say."""

    role: Role
    agent: str
    """Who speaks, such as `fe-senior`."""
    holder: str
    """Who holds the escalation afterwards."""
    verb: str
    """Of `yolo-fs escalate`."""
    message: Mapping[str, Any]
    options: tuple[str, ...] = ()
    """What the user may choose from, as the Architect says."""
    level: Role = Role.SENIOR
    """`level` of the execution state afterwards."""

    @property
    def goes_down(self) -> bool:
        """Whether it carries the decision."""
        return self.verb == "resolve"

    @property
    def adds(self) -> tuple[str, ...]:
        """What this level adds, in words."""
        if self.role is Role.SENIOR and self.goes_down:
            return (f"src/a.ts:4: {INSTRUCTION}",)
        if self.goes_down:
            return (RATIONALE[self.role],)
        return (EVIDENCE[self.role], *(f"option {option}" for option in self.options))

    @property
    def wants(self) -> str:
        """What whoever asks needs, or would do; the log calls both a recommendation."""
        return str(self.message.get("recommendation") or self.message.get("needs") or "")

    def words(self, file: str) -> tuple[str, ...]:
        """Return the command that says it, with the message in a file; `-` for stdin."""
        about = () if self.verb == "open" else (NAME,)
        by = ("--by", self.agent) if self.goes_down and self.role is not Role.SENIOR else ()
        options = tuple(word for option in self.options for word in ("--option", option))
        return (self.verb, *about, "--message", file, *by, *options)


def path_of(mode: Mode) -> tuple[str, ...]:
    """Return the levels from the Dev up to the user: of the backend, or of the frontend where there are several."""
    chain = next(chain for chain in CHAINS if chain.mode is mode)
    return tuple(name_in(role, _DEPARTMENT[mode]) for role in chain.roles)


_DEPARTMENT = {Mode.SINGLE: Dept.BACKEND, Mode.MULTI: Dept.FRONTEND}


def moves_of(mode: Mode) -> Iterator[Move]:
    """Yield every move of the round trip, up and down; at its end the Dev knows how to go on."""
    roles, names = next(chain.roles for chain in CHAINS if chain.mode is mode), path_of(mode)
    top = len(roles) - 1
    for at in range(top):
        verb = "raise" if at else "open"
        options = OPTIONS if roles[at] is Role.ARCHITECT else ()
        message = _asks(roles[at], roles[at + 1])
        yield Move(roles[at], names[at], names[at + 1], verb, message, options, roles[at + 1])
    for at in range(top, 0, -1):
        message = _decides(roles[at]) if at > 1 else dict(_CHANGES)
        yield Move(
            roles[at], names[at], names[at - 1], "resolve", message, (), roles[max(1, at - 1)]
        )


def _asks(role: Role, above: Role) -> dict[str, Any]:
    if role is Role.DEV:
        return {
            "type": "dev_blocker",
            "task": TASK,
            "plan_id": PLAN,
            "blocker": "The gateway strips the path",
            "needs": "the path of the cookie",
            "attempted": [EVIDENCE[role]],
        }
    return {
        "type": "escalation",
        "from": role.value,
        "to": above.value,
        "issue": "The path of the cookie is beyond my authority",
        "evidence": [EVIDENCE[role]],
        "recommendation": _RECOMMENDS,
        "severity": "blocking",
    }


def _decides(role: Role) -> dict[str, Any]:
    return {
        "type": "escalation_resolution",
        "original_escalation": NAME,
        "decision": DECISION,
        "rationale": RATIONALE[role],
        "action_items": [INSTRUCTION],
        "resolved_by": Role.USER.value,
    }


_CHANGES: Mapping[str, Any] = {
    "type": "code_review_changes",
    "plan_id": PLAN,
    "cycle": 1,
    "must_fix": [],
    "rerun_tests": True,
    "changes": [{"f": "src/a.ts", "ln": 4, "issue": "path", "fix": INSTRUCTION}],
}
