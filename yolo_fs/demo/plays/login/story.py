"""One backend department takes phase 01-auth through all eleven steps, with every mishap that is
worth seeing.
"""

from __future__ import annotations

from yolo_fs.demo.story import (
    Act,
    Code,
    Commits,
    Git,
    Holds,
    Manner,
    Nothing,
    Play,
    Refuses,
    Scene,
    Slip,
    Source,
    Stages,
    Waits,
    Write,
)
from yolo_fs.protocol.names import Role
from yolo_fs.reasons import Reason

ROOT = ".yolo-planning"
PHASE = f"{ROOT}/phases/01-auth"


def _hands_over(
    who: Role,
    content: str,
    subject: str,
    *,
    does: str = "",
    file: str = "",
    manner: Manner = Manner.PLAIN,
) -> Scene:
    """Return the scene of an artifact that is good; `content` names it, where `file` does not."""
    name = file or content.rpartition("/")[2]
    path = f"{PHASE}/{name}"
    return Scene(
        who, does or f"writes {name}", (Write(path, content, manner),), Commits(path, subject)
    )


def _codes(who: Role, task: str, path: str, content: str, subject: str) -> Scene:
    """Return the scene of a source commit, made with ordinary git while the user has something else staged."""
    return Scene(
        who, f"commits {path} with git", (Code(path, content, subject, task),), Source(subject)
    )


CRITIQUE = Act(
    "critique",
    "what could go wrong",
    (
        _hands_over(
            Role.CRITIC,
            "1-critique/critique.jsonl",
            "docs(01): critique and gap analysis",
            does="writes critique.jsonl, via the Lead",
            manner=Manner.LINES,
        ),
    ),
)

RESEARCH = Act(
    "research",
    "what is known about it; meanwhile the user merges",
    (
        Scene(
            Role.USER,
            "merges a branch, not yet concluded",
            (Git(("merge", "--quiet", "--no-ff", "--no-commit", "changelog")),),
            Nothing("a merge is in progress"),
        ),
        Scene(
            Role.SCOUT,
            "writes research.jsonl",
            (Write(f"{PHASE}/research.jsonl", "2-research/research.jsonl"),),
            Holds(f"{PHASE}/research.jsonl", Reason.MERGE_IN_PROGRESS),
        ),
        Scene(
            Role.USER,
            "concludes the merge",
            (Git(("commit", "--quiet", "--no-edit")),),
            Commits(f"{PHASE}/research.jsonl", "docs(01): research findings"),
        ),
    ),
)

ARCHITECTURE = Act(
    "architecture",
    "how it is built; one file holds a credential",
    (
        _hands_over(
            Role.ARCHITECT,
            "3-architecture/architecture.toon",
            "docs(01): architecture design",
            manner=Manner.RENAME,
        ),
        _hands_over(
            Role.ARCHITECT,
            "3-architecture/critique.jsonl",
            "docs(01): critique and gap analysis",
            does="answers each finding in critique.jsonl",
            manner=Manner.REWRITE,
        ),
        Scene(
            Role.ARCHITECT,
            "pastes a token into decisions.jsonl",
            (
                Write(
                    f"{PHASE}/decisions.jsonl",
                    "3-architecture/decisions.jsonl",
                    slip=Slip("Tried it with a test account", "Tried it with @secret@"),
                ),
            ),
            Holds(f"{PHASE}/decisions.jsonl", Reason.SECRET),
        ),
        _hands_over(
            Role.ARCHITECT,
            "3-architecture/decisions.jsonl",
            "docs(01): decisions",
            does="takes the token out again",
            manner=Manner.RENAME,
        ),
    ),
)

PLANNING = Act(
    "planning",
    "who does what, in two waves",
    (
        _hands_over(Role.LEAD, "4-planning/01-01.plan.jsonl", "docs(01): plan 01-01"),
        Scene(
            Role.LEAD,
            "writes 01-02.plan.jsonl, its wave twice",
            (
                Write(
                    f"{PHASE}/01-02.plan.jsonl",
                    "4-planning/01-02.plan.jsonl",
                    slip=Slip('"w":2,', '"w":1,"w":2,'),
                ),
            ),
            Refuses(f"{PHASE}/01-02.plan.jsonl", Reason.DUPLICATE_KEY, 1, "/w"),
        ),
        _hands_over(
            Role.LEAD,
            "4-planning/01-02.plan.jsonl",
            "docs(01): plan 01-02",
            does="corrects 01-02.plan.jsonl",
            manner=Manner.REWRITE,
        ),
    ),
)

DESIGN_REVIEW = Act(
    "design_review",
    "each task gets its spec",
    (
        _hands_over(
            Role.SENIOR,
            "5-design_review/01-01.plan.jsonl",
            "docs(01): enrich plan 01-01 specs",
            does="enriches 01-01.plan.jsonl",
            manner=Manner.REWRITE,
        ),
        _hands_over(
            Role.SENIOR,
            "5-design_review/01-02.plan.jsonl",
            "docs(01): enrich plan 01-02 specs",
            does="enriches 01-02.plan.jsonl",
            manner=Manner.RENAME,
        ),
        Scene(
            Role.USER,
            "stages half of a change to README.md",
            (
                Write("README.md", "5-design_review/README-staged.md"),
                Git(("add", "README.md")),
                Write("README.md", "5-design_review/README-unstaged.md"),
            ),
            Stages("staged, and to stay so to the end"),
        ),
    ),
)

TEST_AUTHORING = Act(
    "test_authoring",
    "tests that fail first",
    (
        _codes(
            Role.TESTER,
            "",
            "tests/auth/tokens.test.ts",
            "6-test_authoring/tokens.test.ts",
            "test(01-01): fresh tokens verify",
        ),
        _hands_over(Role.TESTER, "6-test_authoring/test-plan.jsonl", "test(01): RED phase tests"),
    ),
)

IMPLEMENTATION = Act(
    "implementation",
    "code, and a summary that names its commits",
    (
        _codes(
            Role.DEV,
            "01-01/T1",
            "src/auth/keys.ts",
            "7-implementation/keys.ts",
            "feat(01-01): T1 signing keys by kid",
        ),
        _codes(
            Role.DEV,
            "01-01/T2",
            "src/auth/tokens.ts",
            "7-implementation/tokens.ts",
            "feat(01-01): T2 sign and verify tokens",
        ),
        _hands_over(Role.DEV, "7-implementation/01-01.summary.jsonl", "docs(01): summary 01-01"),
        _codes(
            Role.DEV,
            "01-02/T1",
            "src/routes/auth.ts",
            "7-implementation/auth.ts",
            "feat(01-02): T1 POST /auth/login",
        ),
        _hands_over(Role.DEV, "7-implementation/01-02.summary.jsonl", "docs(01): summary 01-02"),
        _hands_over(Role.DEV, "7-implementation/test-results.jsonl", "docs(01): test results"),
    ),
)

CODE_REVIEW = Act(
    "code_review",
    "a second pair of eyes",
    (
        Scene(
            Role.SENIOR,
            "writes code-review.jsonl",
            (
                Write(
                    f"{PHASE}/code-review.jsonl",
                    "8-code_review/first.jsonl",
                    slip=Slip('"sev":"minor"', '"sev":"high"'),
                ),
            ),
            Refuses(f"{PHASE}/code-review.jsonl", Reason.UNKNOWN_VALUE, 2, "/sev"),
        ),
        _hands_over(
            Role.SENIOR,
            "8-code_review/first.jsonl",
            "docs(01): code review 01-01",
            does="corrects code-review.jsonl",
            file="code-review.jsonl",
            manner=Manner.RENAME,
        ),
        _hands_over(
            Role.SENIOR,
            "8-code_review/both.jsonl",
            "docs(01): code review",
            does="appends the review of plan 01-02",
            file="code-review.jsonl",
            manner=Manner.REST,
        ),
    ),
)

DOCUMENTATION = Act(
    "documentation",
    "what users have to know",
    (
        _hands_over(
            Role.DOCUMENTER,
            "8.5-documentation/docs.jsonl",
            "docs(01): documentation",
            manner=Manner.LINES,
        ),
    ),
)

QA = Act(
    "qa",
    "two agents at once, one of them interrupted",
    (
        Scene(
            Role.QA,
            "is interrupted within a line of verification.jsonl",
            (Write(f"{PHASE}/verification.jsonl", "9-qa/verification.jsonl", Manner.TORN),),
            Waits(f"{PHASE}/verification.jsonl", Reason.UNTERMINATED),
        ),
        _hands_over(Role.QA_CODE, "9-qa/qa-code.jsonl", "docs(01): code quality review"),
        _hands_over(
            Role.QA,
            "9-qa/verification.jsonl",
            "docs(01): verification results",
            does="writes the rest of verification.jsonl",
            manner=Manner.REST,
        ),
    ),
)

SECURITY = Act(
    "security",
    "the last look before the sign-off",
    (
        _hands_over(
            Role.SECURITY,
            "10-security/security-audit.jsonl",
            "docs(01): security audit",
            manner=Manner.SLOW,
        ),
    ),
)

SIGNOFF = Act(
    "signoff",
    "the phase is complete",
    (
        Scene(
            Role.LEAD,
            "writes state.json",
            (Write(f"{ROOT}/state.json", "11-signoff/state.json", Manner.RENAME),),
            Commits(f"{ROOT}/state.json", "chore(state): phase 1 complete"),
        ),
        Scene(
            Role.LEAD,
            "writes ROADMAP.md",
            (Write(f"{ROOT}/ROADMAP.md", "11-signoff/ROADMAP.md"),),
            Commits(f"{ROOT}/ROADMAP.md", "chore(state): ROADMAP"),
        ),
    ),
)

PLAY = Play(
    name="login",
    intro="A backend team builds a JWT login: scripted agents write files, the real daemon answers.",
    opening=(
        Write("README.md", "0-opening/README.md"),
        Write("src/server.ts", "0-opening/server.ts"),
        Git(("add", "README.md", "src/server.ts")),
        Git(("commit", "--quiet", "--message=chore(app): first berth")),
        Git(("switch", "--quiet", "--create", "changelog")),
        Write("CHANGELOG.md", "0-opening/CHANGELOG.md"),
        Git(("add", "CHANGELOG.md")),
        Git(("commit", "--quiet", "--message=docs(app): changelog")),
        Git(("switch", "--quiet", "main")),
    ),
    acts=(
        CRITIQUE,
        RESEARCH,
        ARCHITECTURE,
        PLANNING,
        DESIGN_REVIEW,
        TEST_AUTHORING,
        IMPLEMENTATION,
        CODE_REVIEW,
        DOCUMENTATION,
        QA,
        SECURITY,
        SIGNOFF,
    ),
    leaves=("MM README.md",),
)
