"""Two plays, told by the documents alone: one department through every loop; three with a Recycle, a FAIL and a HOLD.

Before each deed `resume` and `workflow next` have to name whoever the documents name, and say why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.cast import DAY, Cast
from tests.e2e.company import CONFIG, DEPARTMENTS, PHASE, Label, Write, deeds
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.e2e.round_trip import RESUMES, moves_of
from yolo_fs.protocol.departments import Mode

Starter = Callable[[Repo], Daemon]
FILES = {"01-01": ("src/a.ts", "src/b.ts"), "01-02": ("src/c.ts",), "01-03": ("src/sso.ts",)}
OPEN = {"id": "C1", "cat": "gap", "sev": "critical", "q": "What if a key leaks?", "ctx": "Keys live a year",
        "sug": "Name keys by kid", "st": "open", "cf": 90, "rd": 1}  # fmt: skip
FINDING = {"q": "How are keys rotated?", "src": "web", "finding": "Publish both", "conf": "high", "dt": DAY,
           "rel": "01-01", "brief_for": "C1"}  # fmt: skip
ASKED = {"q": "Which store?", "src": "pending", "rt": "blocking", "ra": "dev", "finding": "", "conf": "", "dt": DAY,
         "rel": ""}  # fmt: skip
ANSWER = FINDING | {"q": "Which store?", "finding": "Redis", "ra": "dev", "rt": "blocking"}
ARCHITECTURE = (
    'phase: "01"\ntech_decisions[1]{decision,rationale}:\n  JWT,Services verify alone\n'
    "components[1]{name,desc}:\n  Part,Login\nintegration_points: none\nrisks: none\n"
    "critique_disposition[1]{id,disposition,detail}:\n  C1,addressed,Keys are named by kid"
)
FIX = {"f": "src/a.ts", "ln": 1, "issue": "An error is lost", "sug": "Throw after logging"}
VERDICT = {"type": "po_qa_verdict", "verdict": "patch", "target_dept": "backend", "re_scope_items": [],
           "findings": [{"check": "login", "result": "fail", "dept": "backend", "detail": "no refresh"}],
           "scope_confidence": 0.8}  # fmt: skip


def plan(number: str, spec: str = "") -> list[dict[str, Any]]:
    """Return a plan, with its specs once the Senior has looked at it."""
    header = {"p": "01", "n": number[3:], "t": f"Part {number}", "w": 1, "d": [], "xd": [], "obj": "Login",
              "mh": {"tr": ["It works"], "ar": [], "kl": []}}  # fmt: skip
    more = {"spec": spec, "ts": "It answers"} if spec else {}
    tasks = [{"id": f"T{n}", "tp": "auto", "a": f"Part {n}", "f": [file], "v": "npm test", "done": "Green"} | more
             for n, file in enumerate(FILES[number], 1)]  # fmt: skip
    return [header, *tasks]


def targets(*numbers: str) -> list[dict[str, Any]]:
    return [
        {"id": f"T{n}", "plan": number, "tf": [f"tests/{number}-{n}.ts"], "tc": 2, "red": True, "desc": "It answers"}
        for number in numbers
        for n, _ in enumerate(FILES[number], 1)
    ]  # fmt: skip


def summary(number: str, *commits: str) -> dict[str, Any]:
    count = len(FILES[number])
    return {"p": "01", "n": number[3:], "t": f"Part {number}", "s": "complete", "dt": DAY, "tc": count, "tt": count,
            "ch": list(commits), "fm": list(FILES[number]), "dv": [], "built": ["Login"], "tst": "red_green"}  # fmt: skip


def review(number: str, verdict: str, cycle: int = 1) -> dict[str, Any]:
    return {"plan": number, "r": verdict, "cycle": cycle, "dt": DAY, "tdd": "pass"}


def verified(result: str, day: int) -> list[dict[str, Any]]:
    passed = int(result == "PASS")
    header = {"tier": "standard", "r": result, "ps": passed, "fl": 1 - passed, "tt": 1, "dt": f"2026-02-{day}"}  # fmt: skip
    line = {"c": "It works", "r": result.lower(), "ev": f"npm test {day}", "cat": "must_have"}
    return [header, line]


@pytest.fixture
def backend(repo: Repo, start: Starter) -> Cast:
    """A backend alone, with a Product Owner."""
    cast = Cast(repo, {"po": {"enabled": True}})
    (repo.root / PHASE).mkdir(parents=True)
    start(repo)
    return cast


def scopes(cast: Cast) -> None:
    analysis = {"complexity": "high", "departments": ["backend"], "intent": "execute"}
    cast.turn("analyze")
    cast.writes("analysis.json", {**analysis, "confidence": 0.4})
    cast.turn("user", "0.4 sure of the intent")
    cast.writes("analysis.json", {**analysis, "confidence": 0.9})
    cast.turn("questionary", "asks in round 1")
    cast.writes("discovery.json", {"questions": [], "confidence": 0.5})
    cast.turn("questionary", "asks in round 2")
    cast.writes("discovery.json", {"questions": [{"q": "SSO?", "a": "No"}], "confidence": 0.9})
    cast.turn("roadmap")
    cast.writes("roadmap-plan.json", {"phases": [{"id": "01", "depends_on": []}]})
    cast.turn("po", "approves the scope")
    cast.writes("scope-document.json", {"status": "PO-APPROVED", "vision": "Login"})


def designs(cast: Cast) -> None:
    cast.turn("critic")
    cast.writes("critique.jsonl", OPEN)
    cast.turn("scout")
    cast.writes("research.jsonl", FINDING)
    cast.turn("architect")
    cast.writes("architecture.toon", ARCHITECTURE)
    cast.turn("architect", "Recycle: critique C1 is open")
    cast.writes("critique.jsonl", OPEN | {"st": "addressed"})


def plans(cast: Cast) -> None:
    cast.turn("lead")
    for number in ("01-01", "01-02"):
        cast.writes(f"{number}.plan.jsonl", *plan(number))
        cast.turn("senior")
    for number in ("01-01", "01-02"):
        cast.writes(f"{number}.plan.jsonl", *plan(number, "Write it"))
    cast.turn("tester")
    cast.writes("test-plan.jsonl", *targets("01-01"))
    cast.turn("tester")
    cast.writes("test-plan.jsonl", *targets("01-01", "01-02"))


def implements(cast: Cast) -> None:
    cast.turn("dev")
    first = cast.commits("src/a.ts", "feat(01-01): T1 Part 1")
    cast.turn("dev")
    cast.writes("research.jsonl", FINDING, ASKED)
    cast.turn("scout", "the agent waits for the answer")
    cast.writes("research.jsonl", FINDING, ASKED, ANSWER)
    cast.turn("dev")
    second = cast.commits("src/b.ts", "feat(01-01): T2 Part 2")
    cast.turn("dev")
    cast.writes("01-01.summary.jsonl", summary("01-01", first, second))
    for move in moves_of(Mode.SINGLE):
        words = move.words("-")
        name = "" if move.verb == "open" else words[1]
        cast.escalates(name, move.verb, move.message, *words[words.index("-") + 1 :])
        cast.turn(move.holder, f"{move.holder} has to act")
    cast.writes("01-02.summary.jsonl", summary("01-02", cast.commits("src/c.ts", RESUMES)))


ACCEPTED = {"ts": "2026-02-20T10:00:00Z", "agent": "lead", "reason": "It is rare",
            "dec": "Ship 01-01 as it is", "kind": "accept", "of": "01-01"}  # fmt: skip
ASSIGNED = {"ts": "2026-02-21T10:00:00Z", "agent": "lead", "reason": "QA found it",
            "dec": "T1 is done again", "kind": "assign", "of": "01-01/T1", "task": "01-01/T1"}  # fmt: skip
RISK = {"ts": "2026-02-24T10:00:00Z", "agent": "user", "reason": "It is a key of the tests",
        "dec": "Accept what Security found", "kind": "accept_risk", "of": "backend"}  # fmt: skip


def is_reviewed(cast: Cast) -> None:
    cast.turn("senior", "waits for its review")
    nit = [review("01-02", "changes_requested"), FIX | {"f": "src/c.ts", "sev": "nit"}]
    cast.writes("code-review.jsonl", *nit)
    cast.turn("senior", "code review 01-01: waits for its review")
    major = [review("01-01", "changes_requested"), FIX | {"sev": "major"}]
    cast.writes("code-review.jsonl", *nit, *major)
    cast.turn("dev", "code review 01-01: major findings")
    cast.commits("src/a.ts", "fix(01-01): throw after logging")
    cast.turn("senior", "Senior re-reviews (cycle 2)")
    again = [review("01-01", "changes_requested", 2), FIX | {"sev": "major"}]
    cast.writes("code-review.jsonl", *nit, *major, *again)
    cast.turn("lead", "escalation ESC-01-01-T1 is rising: lead has to act")
    more = {"type": "escalation_resolution", "original_escalation": "ESC-01-01-T1", "decision": "Try once more",
            "rationale": "It is small", "action_items": ["Throw"], "resolved_by": "lead"}  # fmt: skip
    cast.escalates("ESC-01-01-T1", "resolve", more, "--by", "lead")
    cast.turn("senior", "senior has to act")
    cast.writes("01-01.plan.jsonl", *plan("01-01", "Throw in the second place too"))
    cast.turn("dev", "code review 01-01: major findings")
    cast.commits("src/a.ts", "fix(01-01): throw in the second place too")
    cast.turn("senior", "Senior re-reviews")
    third = [review("01-01", "changes_requested", 3), FIX | {"sev": "major", "issue": "Still lost"}]
    cast.writes("code-review.jsonl", *nit, *major, *again, *third)
    cast.turn("lead", "escalation ESC-01-01-T1 is rising: lead has to act")
    cast.writes("decisions.jsonl", ACCEPTED)
    cast.turn("dev", "code review 01-02: minor findings")
    cast.commits("src/c.ts", "fix(01-02): a better name")


def is_verified(cast: Cast) -> None:
    for day, whose in ((21, "then Senior re-specs"), (22, "then Senior reviews approach")):
        cast.turn("qa")
        cast.writes("verification.jsonl", *verified("FAIL", day))
        cast.turn("lead", whose)
        if day == 21:
            cast.writes("decisions.jsonl", ACCEPTED, ASSIGNED)
            cast.turn("senior", "Senior re-specs")
        cast.writes("01-01.plan.jsonl", *plan("01-01", f"Write it as QA asks on {day}"))
        cast.turn("dev", "Dev fixes")
        cast.commits("src/a.ts", f"fix(01-01): what QA found on {day}")
    cast.turn("qa", "QA re-verifies")
    cast.writes("verification.jsonl", *verified("FAIL", 23))
    cast.turn("architect", "ESC-01-01-T2 is rising: architect has to act")
    cast.writes("architecture.toon", f"{ARCHITECTURE}\ngoal: One store for all tokens")
    down = {"type": "escalation_resolution", "original_escalation": "ESC-01-01-T2", "decision": "One store",
            "rationale": "It is simpler", "action_items": ["Use one store"], "resolved_by": "architect"}  # fmt: skip
    cast.escalates("ESC-01-01-T2", "resolve", down, "--by", "architect")
    cast.turn("senior", "design is re-evaluated")
    cast.writes("01-01.plan.jsonl", *plan("01-01", "Write it with one store"))
    cast.turn("dev", "Dev fixes")
    cast.commits("src/a.ts", "fix(01-01): one store")
    cast.turn("qa", "QA re-verifies")
    passes(cast, 24)


def passes(cast: Cast, day: int) -> None:
    cast.writes("verification.jsonl", *verified("PASS", day))
    cast.turn("qa-code")
    quality = {"r": "PASS", "tests": {"ps": 6, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}}
    cast.writes("qa-code.jsonl", quality | {"dt": f"2026-02-{day}"})


def is_signed_off(cast: Cast) -> None:
    cast.turn("security")
    hole = {
        "cat": "secrets",
        "sev": "critical",
        "f": "src/a.ts",
        "issue": "A key",
        "fix": "Move it",
    }
    cast.writes(
        "security-audit.jsonl", {"r": "FAIL", "findings": 1, "critical": 1, "dt": DAY}, hole
    )
    cast.turn("user", "security FAIL: hard stop")
    cast.writes("security-audit.jsonl", {"r": "PASS", "findings": 0, "critical": 0, "dt": DAY})
    cast.turn("user", "security FAIL: hard stop")
    cast.writes("decisions.jsonl", ACCEPTED, ASSIGNED, RISK)
    cast.turn("lead")
    state = {"ms": "v1", "ph": 1, "tt": 1, "st": "complete", "step": "signoff", "pr": 100, "started": DAY}  # fmt: skip
    cast.writes("../../state.json", state)
    cast.turn("lead")
    cast.writes("../../ROADMAP.md", "# Roadmap")


def is_delivered(cast: Cast) -> None:
    cast.turn("po")
    cast.writes("po-qa-verdict.jsonl", VERDICT)
    cast.turn("senior", "Senior re-specs the fix")
    cast.writes("01-01.plan.jsonl", *plan("01-01", "Refresh as the scope says"))
    cast.turn("dev", "Dev implements")
    cast.commits("src/a.ts", "fix(01-01): refresh the token")
    cast.turn("po", "gives its verdict")
    major = VERDICT | {"verdict": "major", "target_dept": "", "re_scope_items": ["SSO"]}
    cast.writes("po-qa-verdict.jsonl", VERDICT, major)
    cast.turn("questionary", "PO Mode 0")
    cast.writes("discovery.json", {"questions": [{"q": "SSO?", "a": "Yes"}], "confidence": 0.95})
    cast.turn("po", "approves the scope")
    cast.writes("scope-document.json", {"status": "PO-APPROVED", "vision": "Login with SSO"})
    cast.turn("lead", "plans what was re-scoped")
    cast.writes("01-03.plan.jsonl", *plan("01-03"))
    cast.turn("senior")
    cast.writes("01-03.plan.jsonl", *plan("01-03", "Write it"))
    cast.turn("tester")
    cast.writes("test-plan.jsonl", *targets("01-01", "01-02", "01-03"))
    cast.turn("dev")
    cast.writes("01-03.summary.jsonl", summary("01-03", cast.commits("src/sso.ts", "feat(01-03): T1 SSO")))  # fmt: skip
    cast.turn("senior", "code review 01-03: waits for its review")
    before = (cast.repo.root / PHASE / "code-review.jsonl").read_text().splitlines()
    cast.writes("code-review.jsonl", *before, review("01-03", "approve"))
    cast.turn("qa", "verification.jsonl is older than source of 01-03")
    passes(cast, 25)
    cast.turn("security", "security-audit.jsonl is older than source of 01-03")
    audit = {"r": "PASS", "findings": 0, "critical": 0, "dt": "2026-02-25"}
    cast.writes("security-audit.jsonl", audit)
    cast.turn("lead")
    assert cast.said("phase", "sign-off", "1", "--as", "lead")["state"] == "signed_off"
    cast.turn("po", "gives its verdict")
    approved = major | {"verdict": "approve", "findings": [], "re_scope_items": []}
    cast.writes("po-qa-verdict.jsonl", VERDICT, major, approved)
    cast.turn("nobody")


@pytest.mark.proves("more:1", "resume:3", "002:33", "002:121", "002:131", "002:132", "000:603a")
def test_one_department_goes_through_every_loop_and_each_turn_has_a_name(backend: Cast) -> None:
    for act in (scopes, designs, plans, implements, is_reviewed, is_verified, is_signed_off):
        act(backend)
    is_delivered(backend)
    assert [one["standing"] for one in backend.said("escalate", "list")["01-auth"]] == [
        "resolved", "resolved", "resolved",
    ]  # fmt: skip


# --- three departments ---

MENDED = Label("lead", "signoff")
"""What the gate has failed is signed off again, once it is reviewed."""
RECYCLED = Label("ux-architect", "architecture")
REVIEWED = {"type": "owner_review", "phase": "01", "departments_needed": ["backend", "frontend", "uiux"],
            "dispatch_order": ["uiux", "backend", "frontend"], "priorities": ["Tokens first"], "risks": []}  # fmt: skip
SIGNED = {"type": "owner_signoff", "phase": "01", "integration_qa": "PASS"}


@pytest.mark.proves("more:1", "resume:3", "002:53", "002:59a")
def test_three_departments_meet_a_recycle_a_fail_and_a_hold(repo: Repo, start: Starter) -> None:
    cast, todo = Cast(repo, {key: CONFIG[key] for key in CONFIG if key != "yolo_fs"}), dict(deeds())
    (repo.root / PHASE).mkdir(parents=True)
    start(repo)
    cast.writes("owner-review.jsonl", REVIEWED)
    while asked := cast.said("resume")["next"]:
        label = Label(asked["agent"], asked["step"], asked["task"])
        if label not in todo and label == MENDED:
            assert cast.said("phase", "sign-off", "1", "--as", "lead")["state"] == "signed_off"
            continue
        writes = todo.pop(label)
        if label.step == "critique":
            cast.puts(writes[0].path, writes[0].text.replace('"addressed"', '"open"'))
        elif label == RECYCLED:
            recycles(cast, writes[0])
        else:
            if label.step == "integration_gate":
                fails(cast)
            act(cast, label, writes)
    assert not todo
    held = SIGNED | {
        "decision": "HOLD",
        "departments_approved": [],
        "notes": "the login page is slow",
    }
    cast.writes("owner-signoff.jsonl", held)
    cast.turn("owner", "the Owner says HOLD: the login page is slow")
    shipped = SIGNED | {"decision": "SHIP", "departments_approved": REVIEWED["departments_needed"], "notes": ""}  # fmt: skip
    cast.writes("owner-signoff.jsonl", held, shipped)
    cast.turn("nobody")


def act(cast: Cast, label: Label, writes: tuple[Write, ...]) -> None:
    """Do what was asked for: write artifacts, commit source, or sum a plan up."""
    if label.task.endswith(" summary"):
        plan = label.task.partition(" ")[0]
        done = cast.repo.look("log", "--format=%h", "--fixed-strings", f"--grep=feat({plan}):")
        writes = (DEPARTMENTS[plan].summary(done.split()),)
    for write in writes:
        if write.subject:
            cast.repo.commit_file(write.path, write.text, write.subject)
        else:
            cast.puts(write.path, write.text)


def recycles(cast: Cast, design: Write) -> None:
    """Design while a finding is open: the design comes back until it is addressed."""
    cast.puts(design.path, design.text)
    cast.turn("ux-architect", "Recycle: critique C1 is open")
    path = f"{PHASE}/critique.jsonl"
    cast.puts(path, (cast.repo.root / path).read_text().replace('"open"', '"addressed"'))


def fails(cast: Cast) -> None:
    """Integrate, fail, and let the department act whose file shows it."""
    checks = {"api": "skip", "design": "fail", "handoffs": "skip", "tests": "pass"}
    failure = {"check": "design", "detail": "no button", "file": "component-specs.jsonl"}
    cast.writes("integration-gate-result.jsonl", {"r": "FAIL", "checks": checks, "failures": [failure], "dt": DAY})  # fmt: skip
    cast.turn("ux-lead", "the integration gate says FAIL: no button")
    task = {"kind": "assign", "of": "01-03/T1", "task": "01-03/T1"}
    cast.writes("decisions.jsonl", {"ts": "2026-02-21T10:00:00Z", "agent": "ux-lead", "dec": "a button", "reason": "FAIL"} | task)  # fmt: skip
    cast.turn("ux-dev", "the integration gate says FAIL: no button")
    cast.commits("design/states.md", "fix(01-03): a button")
    judge = {"ux-senior": "code-review", "ux-qa": "verification", "ux-qa-code": "qa-code", "ux-security": "security-audit"}  # fmt: skip
    for agent, kind in judge.items():
        cast.turn(agent)
        path = cast.repo.root / PHASE / f"ux-{kind}.jsonl"
        again = path.read_text().replace(DAY, "2026-02-25").replace('"cycle": 1', '"cycle": 2')
        cast.writes(path.name, *again.splitlines())
    cast.turn("integration-gate")
