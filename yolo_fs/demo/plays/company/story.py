"""Three departments take phase 01-auth from the design to the sign-off, through every gate between
them.
"""

from __future__ import annotations

from yolo_fs.demo.story import (
    Act,
    Answer,
    Code,
    Commits,
    CommitsEach,
    Deed,
    Git,
    Judge,
    Keeps,
    Manner,
    Play,
    Queue,
    Says,
    Scene,
    Sleeps,
    Source,
    Wakes,
    Write,
)
from yolo_fs.protocol.names import Dept, Role

ROOT = ".yolo-planning"
PHASE = f"{ROOT}/phases/01-auth"
ORCHESTRATION = f"{PHASE}/.phase-orchestration.json"
FE_BE = "FE + BE"
UIUX, FRONTEND, BACKEND = "2-uiux", "3-frontend", "3-backend"

SUBJECTS = {
    "critique.jsonl": "critique and gap analysis",
    "research.jsonl": "research findings",
    "architecture.toon": "architecture design",
    "fe-architecture.toon": "frontend architecture design",
    "ux-architecture.toon": "UX architecture design",
    "summary.jsonl": "summary {plan}",
    "test-results.jsonl": "test results {plan}",
    "code-review.jsonl": "code review {plan}",
    "verification.jsonl": "verification results",
    "qa-code.jsonl": "code quality review",
    "security-audit.jsonl": "security audit",
}
"""Name of an artifact → what its commit is called, where it is not called by its name."""

CHECKS = ("code-review.jsonl", "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")

PLAN_OF = {UIUX: "01-01", FRONTEND: "01-02", BACKEND: "01-03"}
PREFIX_OF = {UIUX: "ux-", FRONTEND: "fe-", BACKEND: ""}


def filed(
    content: str, name: str = "", subject: str = "", manner: Manner = Manner.PLAIN
) -> tuple[Write, Commits]:
    """Return an artifact of the phase as it is written, and its commit; `content` names both unless told otherwise."""
    name = name or content.rpartition("/")[2]
    path = f"{PHASE}/{name}"
    said = subject or SUBJECTS.get(name) or name.rpartition(".")[0]
    return Write(path, content, manner), Commits(path, f"docs(01): {said}")


def of(folder: str, *names: str, manner: Manner = Manner.PLAIN) -> list[tuple[Write, Commits]]:
    """Return artifacts that carry the prefix of their department, and the number of its plan where they have one."""
    plan, prefix = PLAN_OF[folder], PREFIX_OF[folder]
    found = []
    for name in names:
        file = f"{plan}.{name}" if name == "summary.jsonl" else name
        said = SUBJECTS.get(prefix + name, SUBJECTS[name]).format(plan=plan)
        found.append(filed(f"{folder}/{name}", prefix + file, said, manner))
    return found


def planned(folder: str, manner: Manner = Manner.PLAIN) -> tuple[Write, Commits]:
    """Return the plan of a department as its Lead writes it."""
    plan = PLAN_OF[folder]
    return filed(
        f"{folder}/planned.jsonl", f"{PREFIX_OF[folder]}{plan}.plan.jsonl", f"plan {plan}", manner
    )


def enriched(folder: str, manner: Manner = Manner.REWRITE) -> tuple[Write, Commits]:
    """Return the plan of a department with the specs of its Senior."""
    plan = PLAN_OF[folder]
    name = f"{PREFIX_OF[folder]}{plan}.plan.jsonl"
    return filed(f"{folder}/enriched.jsonl", name, f"enrich plan {plan} specs", manner)


def hands_in(
    who: Role,
    does: str,
    *artifacts: tuple[Write, Commits],
    dept: Dept = Dept.BACKEND,
    called: str = "",
) -> Scene:
    """Return the scene of artifacts that are all good."""
    deeds: tuple[Deed, ...] = tuple(write for write, _ in artifacts)
    commits = tuple(commit for _, commit in artifacts)
    answer: Answer = commits[0] if len(commits) == 1 else CommitsEach(commits)
    return Scene(who, does, deeds, answer, dept, called=called)


def code_of(folder: str) -> Code:
    """Return the source commit of a department."""
    path, content, what = {
        UIUX: ("design/tokens.css", "tokens.css", "design tokens"),
        FRONTEND: ("src/web/LoginForm.tsx", "LoginForm.tsx", "login form"),
        BACKEND: ("src/api/login.ts", "login.ts", "login route"),
    }[folder]
    plan = PLAN_OF[folder]
    return Code(path, f"{folder}/{content}", f"feat({plan}): T1 {what}", f"{plan}/T1")


def codes(folder: str, dept: Dept) -> Scene:
    """Return the scene of the source commit of a department, made with ordinary git."""
    code = code_of(folder)
    called = "BE Dev" if dept is Dept.BACKEND else ""
    return Scene(
        Role.DEV,
        f"commits {code.path} with git",
        (code,),
        Source(code.subject),
        dept,
        called=called,
    )


def asks(
    gate: str, *missing: tuple[str, str], who: Role = Role.LEAD, dept: Dept = Dept.BACKEND
) -> Scene:
    """Return the scene of a question at a gate: open, or closed for what is missing: (what, file)."""
    lacks: dict[str, object] = {"/open": not missing, "/missing": len(missing)}
    for number, (what, file) in enumerate(missing):
        lacks |= {f"/missing/{number}/what": what, f"/missing/{number}/file": file}
    said = f"closed: {'; '.join(what for what, _ in missing)}" if missing else "open"
    command = ("gate", "check", gate, "--phase", "1")
    return Scene(
        who,
        f"asks at gate {gate}",
        (),
        Says(command, lacks, said, int(bool(missing)), not missing),
        dept,
    )


def decides(decision: str, why: str) -> Scene:
    """Return the scene of the Owner's decision, as the matrix has it."""
    data = {"/sign_off/decision": decision, "/sign_off/why": why}
    answer = Says(
        ("gate", "list", "--phase", "1"), data, f"{decision}: {why}", 0, decision == "SHIP"
    )
    return Scene(Role.OWNER, "decides by the matrix", (), answer)


def judges(content: str) -> Scene:
    """Return the scene of the Integration Gate, whose result says `content`."""
    path = f"{PHASE}/integration-gate-result.jsonl"
    return Scene(
        Role.INTEGRATION_GATE,
        f"writes its result: {content}",
        (Judge(path),),
        Commits(path, "docs(01): integration gate"),
    )


WAVE_1 = Act(
    "wave 1",
    "UI/UX; the frontend waits at a gate",
    (
        hands_in(
            Role.CRITIC,
            "write for all departments",
            filed("1-together/critique.jsonl"),
            filed("1-together/research.jsonl"),
            called="Critic, Scout",
        ),
        Scene(
            Role.LEAD,
            "runs: yolo-fs gate wait ux-complete",
            (Queue("ux-complete"),),
            Sleeps(),
            Dept.FRONTEND,
        ),
        hands_in(
            Role.ARCHITECT,
            "design and plan",
            *of(UIUX, "architecture.toon", manner=Manner.RENAME),
            planned(UIUX, Manner.LINES),
            called="UX Architect, Lead",
        ),
        hands_in(Role.SENIOR, "enriches the plan", enriched(UIUX), dept=Dept.UIUX),
        codes(UIUX, Dept.UIUX),
        hands_in(
            Role.DEV,
            "writes tokens, specs and flows, one spec a draft",
            filed(f"{UIUX}/design-tokens.jsonl"),
            filed(f"{UIUX}/component-specs-draft.jsonl", "component-specs.jsonl"),
            filed(f"{UIUX}/user-flows.jsonl", manner=Manner.SLOW),
            dept=Dept.UIUX,
        ),
        asks(
            "ux-complete",
            ("no valid design-handoff.jsonl is committed", "design-handoff.jsonl"),
            ("WaitingHint is draft", "component-specs.jsonl"),
            dept=Dept.FRONTEND,
        ),
        hands_in(
            Role.DEV,
            "finishes the draft",
            filed(f"{UIUX}/component-specs.jsonl", manner=Manner.REWRITE),
            dept=Dept.UIUX,
        ),
        hands_in(
            Role.QA,
            "sum up, review, verify, audit, hand over",
            *of(UIUX, "summary.jsonl", *CHECKS),
            filed(f"{UIUX}/dept-handoff.jsonl"),
            called="UX Dev to Lead",
        ),
        asks(
            "ux-complete",
            ("no valid design-handoff.jsonl is committed", "design-handoff.jsonl"),
            dept=Dept.FRONTEND,
        ),
        hands_in(
            Role.LEAD,
            "writes the last piece",
            filed(f"{UIUX}/design-handoff.jsonl"),
            dept=Dept.UIUX,
        ),
        Scene(Role.LEAD, "goes on", (), Wakes(), Dept.FRONTEND),
    ),
)

WAVE_2 = Act(
    "wave 2",
    "frontend and backend, at once",
    (
        hands_in(
            Role.ARCHITECT,
            "design, each its side",
            *of(FRONTEND, "architecture.toon", manner=Manner.SLOW),
            *of(BACKEND, "architecture.toon", manner=Manner.SLOW),
            called=f"{FE_BE} Architect",
        ),
        hands_in(
            Role.LEAD,
            "proposes a contract",
            filed(f"{FRONTEND}/api-contracts.jsonl"),
            dept=Dept.FRONTEND,
        ),
        asks(
            "api-contract",
            ("no contract is agreed", "api-contracts.jsonl"),
            ("POST /auth/login is proposed", "api-contracts.jsonl"),
            dept=Dept.FRONTEND,
        ),
        hands_in(
            Role.LEAD,
            "agrees to it",
            filed(f"{BACKEND}/api-contracts.jsonl", manner=Manner.REST),
            called="BE Lead",
        ),
        hands_in(
            Role.LEAD,
            "plan",
            planned(FRONTEND, Manner.LINES),
            planned(BACKEND, Manner.LINES),
            called=f"{FE_BE} Lead",
        ),
        hands_in(
            Role.SENIOR,
            "enrich the plans",
            enriched(FRONTEND),
            enriched(BACKEND),
            called=f"{FE_BE} Senior",
        ),
        codes(FRONTEND, Dept.FRONTEND),
        codes(BACKEND, Dept.BACKEND),
        hands_in(
            Role.DEV,
            "sum up, with test results",
            *of(FRONTEND, "summary.jsonl", "test-results.jsonl"),
            *of(BACKEND, "summary.jsonl", "test-results.jsonl"),
            called=f"{FE_BE} Dev",
        ),
        hands_in(
            Role.QA,
            "review, verify, audit, hand over",
            *of(FRONTEND, *CHECKS),
            *of(BACKEND, *CHECKS),
            filed(f"{BACKEND}/dept-handoff.jsonl", manner=Manner.REST),
            called="FE + BE Senior to Lead",
        ),
    ),
)

ALL_PASS = "all departments, the integration gate and security pass"

DECIDED = (
    judges("PASS"),
    decides("SHIP", ALL_PASS),
    Scene(
        Role.LEAD,
        "signs off in state.json and ROADMAP.md",
        (
            Write(f"{ROOT}/state.json", "4-signoff/state.json"),
            Write(f"{ROOT}/ROADMAP.md", "4-signoff/ROADMAP.md"),
        ),
        CommitsEach(
            (
                Commits(f"{ROOT}/state.json", "chore(state): phase 1 complete"),
                Commits(f"{ROOT}/ROADMAP.md", "chore(state): ROADMAP"),
            )
        ),
    ),
)

STEPS_COMPLETE: dict[str, object] = {
    "/status": "complete",
    "/steps/signoff/status": "complete",
    "/steps/integration_gate/status": "complete",
}
WAVES_COMPLETE: dict[str, object] = {
    **{f"/departments/{dept}/status": "complete" for dept in ("uiux", "frontend", "backend")},
    **{f"/gates/{gate}/status": "passed" for gate in ("ux-complete", "api-contract", "all-depts")},
    "/owner_signoff/status": "SHIP",
}

SIGNOFF = Act(
    "sign-off",
    "what is committed decides",
    (
        asks("all-depts", who=Role.OWNER),
        *DECIDED,
        Scene(
            Role.OWNER,
            "reads what the daemon kept of the steps",
            (),
            Keeps(
                f"{PHASE}/.execution-state.json",
                STEPS_COMPLETE,
                "phase 1 is complete, each step a commit",
            ),
        ),
        Scene(
            Role.OWNER,
            "reads what the daemon kept of the waves",
            (),
            Keeps(ORCHESTRATION, WAVES_COMPLETE, "3 departments complete, 3 gates passed, SHIP"),
        ),
        Scene(
            Role.OWNER,
            "runs: yolo-fs dept cleanup",
            (),
            Says(
                ("dept", "cleanup", "--phase", "1", "--reason", "complete"),
                {"/left": 0},
                "coordination files are gone, artifacts stay",
            ),
        ),
    ),
)

OPENING: tuple[Deed, ...] = (
    Write("README.md", "0-opening/README.md"),
    Write(f"{ROOT}/.gitignore", "0-opening/gitignore"),
    Write(f"{ROOT}/config.json", "0-opening/config.json"),
    Git(("add", "README.md", ROOT)),
    Git(("commit", "--quiet", "--message=chore(app): first berth")),
)

COMPANY = Play(
    name="company",
    intro="UI/UX, frontend and backend build a login: scripted agents write files, the real daemon answers.",
    opening=OPENING,
    acts=(WAVE_1, WAVE_2, SIGNOFF),
    leaves=(f" D {ORCHESTRATION}",),
    keeps_states=True,
    shows_log=False,
)
