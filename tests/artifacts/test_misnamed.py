"""A name that nearly is an artifact's is told with the one that was meant; everybody else's files are not mentioned."""

from __future__ import annotations

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.misnamed import intended_path, misnamed, with_phase
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Reason

PHASE = "phases/01-auth"
MEANT = {
    f"{PHASE}/plan.jsonl": f"{PHASE}/01-MM.plan.jsonl",
    f"{PHASE}/summary.jsonl": f"{PHASE}/01-MM.summary.jsonl",
    f"{PHASE}/plan-01-01.jsonl": f"{PHASE}/01-01.plan.jsonl",
    f"{PHASE}/01-01-plan.jsonl": f"{PHASE}/01-01.plan.jsonl",
    f"{PHASE}/01-02-summary.jsonl": f"{PHASE}/01-02.summary.jsonl",
    f"{PHASE}/01_02_SUMMARY.jsonl": f"{PHASE}/01-02.summary.jsonl",
    f"{PHASE}/01-2.plan.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/02.plan.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/01-02.plan.json": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/frontend-01-02.plan.jsonl": f"{PHASE}/fe-01-02.plan.jsonl",
    f"{PHASE}/critique.json": f"{PHASE}/critique.jsonl",
    f"{PHASE}/Critique.jsonl": f"{PHASE}/critique.jsonl",
    f"{PHASE}/critque.jsonl": f"{PHASE}/critique.jsonl",
    f"{PHASE}/ui-critique.jsonl": f"{PHASE}/ux-critique.jsonl",
    f"{PHASE}/frontend-critique.jsonl": f"{PHASE}/fe-critique.jsonl",
    f"{PHASE}/backend-critique.jsonl": f"{PHASE}/critique.jsonl",
    f"{PHASE}/code_review.jsonl": f"{PHASE}/code-review.jsonl",
    f"{PHASE}/decision.jsonl": f"{PHASE}/decisions.jsonl",
    f"{PHASE}/escalations.jsonl": f"{PHASE}/escalation.jsonl",
    f"{PHASE}/architecture.json": f"{PHASE}/architecture.toon",
    f"{PHASE}/plans/01-02.plan.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/frontend/critique.jsonl": f"{PHASE}/fe-critique.jsonl",
    f"{PHASE}/UX/01-02.plan.jsonl": f"{PHASE}/ux-01-02.plan.jsonl",
    f"{PHASE}/backend/critique.jsonl": f"{PHASE}/critique.jsonl",
    f"{PHASE}/frontend/ux-critique.jsonl": f"{PHASE}/ux-critique.jsonl",
    f"{PHASE}/01-02-login.plan.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/01-login-02.plan.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/plan-01-02-login.jsonl": f"{PHASE}/01-02.plan.jsonl",
    f"{PHASE}/01-02-T1.summary.jsonl": f"{PHASE}/01-02.summary.jsonl",
    f"{PHASE}/01-fe-02.plan.jsonl": f"{PHASE}/fe-01-02.plan.jsonl",
    f"{PHASE}/01-02-frontend.plan.jsonl": f"{PHASE}/fe-01-02.plan.jsonl",
    f"{PHASE}/fe-01-02-login.summary.jsonl": f"{PHASE}/fe-01-02.summary.jsonl",
    f"{PHASE}/test-plan-01-02.jsonl": f"{PHASE}/test-plan.jsonl",
    f"{PHASE}/state.json": "state.json",
    "phases/1-auth/critique.jsonl": f"{PHASE}/critique.jsonl",
    "phases/01_Auth/01-01.plan.jsonl": f"{PHASE}/01-01.plan.jsonl",
    "phase/01-auth/critique.jsonl": f"{PHASE}/critique.jsonl",
    "phases/auth/critique.jsonl": "phases/NN-auth/critique.jsonl",
    "critique.jsonl": "phases/NN-SLUG/critique.jsonl",
    f"milestones/one/{PHASE}/gap.jsonl": f"milestones/one/{PHASE}/gaps.jsonl",
}
NOBODYS = (
    "README.md", "notes.md", "screen.png", "package.json", "metrics.json", "data.jsonl", ".ctx-dev.toon",
    ".dept-status-backend.json", "handoff.json", "config.json", "planning-notes.md",
    "stats.json", "maps.jsonl", "logs/output.jsonl", ".session-log.jsonl",
    ".#critique.jsonl", "#critique.jsonl#", "._critique.jsonl", ".critique.jsonl.swp", "critique.jsonl~",
    "notes 2.jsonl", "sketch (1).png", "plan-b.jsonl", "summary-of-plan-01-02.jsonl", "frontend/notes.jsonl", ".~lock.critique.jsonl#", "critique.jsonl___jb_tmp___",
)  # fmt: skip


SESSION = "apps/web/.local/directives/4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"


@pytest.mark.proves("001:38")
@pytest.mark.parametrize("folder", [".yolo-planning", f".yolo-planning/{PHASE}", SESSION])
@pytest.mark.parametrize(
    "name",
    ["handoff.md", "Handoff.md", "HANDOFF.MD", "hand-off.md", "HANDOFF.markdown", "handoff.txt"],
)
def test_a_handoff_under_nearly_its_name_is_told_its_name(folder: str, name: str) -> None:
    finding = misnamed(f"{folder}/{name}")
    assert finding and finding.expected == f"{folder}/HANDOFF.md"
    assert misnamed(f"docs/{name}") is misnamed(f"{folder}/HANDOFF.md") is None


@pytest.mark.proves("002:71", "002:74", "002:251")
@pytest.mark.parametrize("name", MEANT)
def test_a_near_name_is_told_with_the_one_that_was_meant(name: str) -> None:
    path, meant = f".yolo-planning/{name}", f".yolo-planning/{MEANT[name]}"
    finding = misnamed(path)

    assert intended_path(path) == meant
    assert finding and (finding.reason, finding.expected) == (Reason.UNKNOWN_NAME, meant)


@pytest.mark.parametrize("name", ["phases/auth/critique.jsonl", "critique.jsonl"])
def test_whoever_has_to_fill_in_a_phase_is_told_where_they_are_listed(name: str) -> None:
    finding = misnamed(f".yolo-planning/{name}")
    assert finding and "'yolo-fs phase list'" in finding.hint


@pytest.mark.parametrize(
    ("name", "phases", "meant"),
    [
        ("critique.jsonl", ("01-auth",), "01-auth/critique.jsonl"),
        ("critique.jsonl", ("01-auth", "02-billing"), "NN-SLUG/critique.jsonl"),
        ("02-01.plan.jsonl", ("01-auth", "02-billing"), "02-billing/02-01.plan.jsonl"),
        ("phases/01-01.plan.jsonl", ("02-billing",), "NN-SLUG/01-01.plan.jsonl"),
        ("phases/2/critique.jsonl", ("01-auth", "02-billing"), "02-billing/critique.jsonl"),
        ("phases/auth/critique.jsonl", ("01-auth", "02-billing"), "01-auth/critique.jsonl"),
        ("phases/other/critique.jsonl", ("01-auth",), "NN-other/critique.jsonl"),
    ],
)
def test_the_phase_that_only_one_can_be_is_named(
    name: str, phases: tuple[str, ...], meant: str
) -> None:
    wrong = misnamed(f".yolo-planning/{name}")
    assert wrong
    finding = with_phase(wrong, filter(None, map(PhaseId.parse, phases)))
    assert finding.expected == f".yolo-planning/phases/{meant}"
    is_open = "NN-" in meant
    assert ("'yolo-fs phase list'" in finding.hint) is is_open is bool(finding.command)


@pytest.mark.parametrize("name", NOBODYS)
def test_what_is_nobodys_artifact_stays_unmentioned(name: str) -> None:
    path = f".yolo-planning/{PHASE}/{name}"
    assert intended_path(path) is None and misnamed(path) is None


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ("critique.jsonl", "critique.sync-conflict-20261128-120000-ABCDEFG.jsonl"),
        ("01-01.plan.jsonl", "01-01.plan (Ada's conflicted copy 2026-11-28).jsonl"),
        ("ux-research.jsonl", "ux-research (conflicted copy 2026-11-28 120000).jsonl"),
        ("critique.jsonl", "critique_conflict-20261128-120000.jsonl"),
        ("01-01.summary.jsonl", "01-01.summary 2.jsonl"),
        ("verification.jsonl", "verification (1).jsonl"),
        ("decisions.jsonl", "decisions - Copy (2).jsonl"),
        ("critique.jsonl", "critique copy.jsonl"),
    ],
)
def test_a_copy_of_a_program_that_synchronises_is_told_with_its_original(
    original: str, copy: str
) -> None:
    folder = ".yolo-planning/phases/01-login"
    finding = misnamed(f"{folder}/{copy}")
    assert finding and finding.reason is Reason.UNKNOWN_NAME
    assert finding.expected == f"{folder}/{original}"
    assert "add to it what only the copy has" in finding.hint


def test_an_artifact_and_a_file_elsewhere_are_not_misnamed() -> None:
    for artifact in ARTIFACTS:
        name = artifact.file.format(dept="", plan="01-02", NN="01", department="backend")
        for path in (f".yolo-planning/{PHASE}/{name}", f".yolo-planning/{name}"):
            if classify(path):
                assert intended_path(path) is None
    assert intended_path("src/critique.json") is None
    assert intended_path(".yolo-planning/codebase/critique.json") is None


@pytest.mark.proves("003:379a")
def test_a_handoff_under_another_name_is_told_the_form_of_a_handoffs_name() -> None:
    found = misnamed("documents/handoffs/my_handoff.json")

    assert found is not None
    assert found.expected == "handoff_[session-id]_[source]_to_[target]_[timestamp].json"
    assert misnamed("documents/handoffs/readme.md") is None
    assert misnamed("documents/notes.json") is None


@pytest.mark.proves("003:364")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("MarketResearch_Harbor.md", "MarketResearch_[ProductSlug]_[YYYY-MM-DD].json"),
        ("prd-harbor.html", "PRD_[ProductSlug]_[YYYY-MM-DD].html"),
        (
            "Screen_Login_Harbor_2026-2-9.html",
            "Screen_[ScreenName]_[ProductSlug]_[YYYY-MM-DD].html",
        ),
        ("PRFAQ_Harbor_Ledger_2026-02-19.md", ""),
        ("Screen_Login_Harbor_2026-02-19.html", ""),
        ("prd.docx", ""),
    ],
)
def test_a_document_under_nearly_its_name_is_told_the_form_of_its_name(
    name: str, meant: str
) -> None:
    found = misnamed(f"documents/{name}")

    assert (found.expected if found else "") == (meant and f"documents/{meant}")
