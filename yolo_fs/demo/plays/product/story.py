"""A product from the idea to the clickable prototype, eleven handoffs and one agent that fails at
first.
"""

from __future__ import annotations

from yolo_fs.demo.story import Act, Code, Commits, Git, Play, Says, Scene, Source, Write
from yolo_fs.protocol.names import Role
from yolo_fs.rules.artifacts.handoff_names import HANDOFF_FOLDER

SESSION = "5b0f7f52-6c1d-4a38-9e44-2d9a7c31e806"
DAY = "2026-05-04"
COUNTS = "inputs/trap_counts_2025.csv"


def _document(kind: str, ending: str = "md") -> str:
    return f"documents/{kind}_Orchard_Scout_{DAY}.{ending}"


RESEARCH = (_document("MarketResearch", "json"),)
FRAMING = (_document("AIFraming"), _document("AIFraming", "html"))
PRFAQ = (_document("PRFAQ"), _document("PRFAQ", "html"))
PRD = (_document("PRD"), _document("PRD", "html"))
PROTOTYPE = (
    _document("Prototype"),
    *(
        _document(kind, "html")
        for kind in ("ClickablePrototype", "DesignSystem", "Screen_MorningCounts", "Screen_TrapMap")
    ),
)


def _hands_over(
    who: str, does: str, file: str, at: str, writes: tuple[str, ...] = (), route: str = ""
) -> Scene:
    """Return the scene of an agent that writes its documents, and then the envelope that names them."""
    route = route or file.split("_", 1)[1]
    path = f"{HANDOFF_FOLDER}/handoff_{SESSION}_{route}_{DAY.replace('-', '')}T{at}Z.json"
    deeds = (*(Write(each, "document.md") for each in writes), Write(path, f"{file}.json"))
    return Scene(
        Role.PO, does, deeds, Commits(path, f"docs(handoffs): {route}"), called=who, in_turn=True
    )


def _stands(percent: int, doing: str) -> Scene:
    """Return the scene of the dashboard line: how far the product is, and who does what."""
    phases = percent // 20
    bar = ("#" * (4 * phases)).ljust(20, "-")
    line = f"Orchard Scout [{bar}] {percent} %, {phases} of 5 phases, {doing}"
    return Scene(
        Role.PO,
        "asks how far it is",
        (),
        Says(("envelope", "show", SESSION), {"/line": line}, line),
        called="User",
    )


def _asks(
    agent: str, name: str, file: str, at: str, percent: int, *, again: str = ""
) -> tuple[Scene, Scene]:
    handed = _hands_over("Orchestrator", f"asks {name}", file, at, route=f"orchestrator_to_{agent}")
    return handed, _stands(percent, f"{agent} does {agent}{again}")


BEGIN = Act(
    "intake",
    "the user has an idea",
    (
        _hands_over(
            "User", "describes the product", "01_user_to_orchestrator", "080000", (COUNTS,)
        ),
        _stands(0, "orchestrator does intake"),
    ),
)
WORK = Act(
    "work",
    "each agent takes over what the last one found",
    (
        *_asks(
            "market-research", "Market Research", "02_orchestrator_to_market-research", "080005", 0
        ),
        _hands_over(
            "Market Research", "reports", "03_market-research_to_orchestrator", "080941", RESEARCH
        ),
        _stands(20, "orchestrator does ai-framing"),
        *_asks("ai-framing", "AI Framing", "04_orchestrator_to_ai-framing", "081000", 20),
        _hands_over("AI Framing", "reports", "05_ai-framing_to_orchestrator", "082130", FRAMING),
        _stands(40, "orchestrator does prfaq"),
        *_asks("prfaq", "PRFAQ", "06_orchestrator_to_prfaq", "082200", 40),
        _hands_over("PRFAQ", "reports", "07_prfaq_to_orchestrator", "083112", PRFAQ),
        _stands(60, "orchestrator does prd"),
        *_asks("prd", "PRD", "08_orchestrator_to_prd", "083200", 60),
    ),
)
FAILURE = Act(
    "failure",
    "one agent fails, and is asked again",
    (
        _hands_over("PRD", "fails", "prd_failed", "083600", route="prd_to_orchestrator"),
        _stands(60, "prd failed: GENERATION_FAILED"),
        Scene(
            Role.PO,
            "chooses one of four ways: retry",
            (),
            Says(
                ("envelope", "choose", SESSION, "retry"),
                {"/way": "retry"},
                "retry: recorded, with where it leads",
            ),
            called="Orchestrator",
        ),
        Scene(
            Role.PO,
            "finds the choice kept",
            (),
            Commits(f"{HANDOFF_FOLDER}/choices_{SESSION}.json", "docs(handoffs): choices"),
            called="Orchestrator",
        ),
        *_asks("prd", "PRD again", "prd_again", "083700", 60, again=", attempt 2"),
        _hands_over("PRD", "reports", "09_prd_to_orchestrator", "085540", PRD),
        _stands(80, "orchestrator does prototype, attempt 2"),
    ),
)
END = Act(
    "end",
    "a prototype to click",
    (
        *_asks("prototype", "Prototype", "10_orchestrator_to_prototype", "085610", 80),
        _hands_over("Prototype", "reports", "11_prototype_to_orchestrator", "091400", PROTOTYPE),
        _stands(100, "complete"),
        Scene(
            Role.PO,
            "commits the documents with git",
            (
                Git(("add", "documents", "inputs")),
                Git(("commit", "--quiet", "--message=docs(product): Orchard Scout")),
            ),
            Source("docs(product): Orchard Scout"),
            called="User",
            in_turn=True,
        ),
    ),
)

PRODUCT = Play(
    name="product",
    intro="a product from the idea to the prototype; every handoff is checked beside those before it.",
    opening=(Code("README.md", "document.md", "chore(app): begin"),),
    acts=(BEGIN, WORK, FAILURE, END),
    policy={"product_handoffs": True},
)
