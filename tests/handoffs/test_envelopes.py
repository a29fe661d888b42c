"""One envelope, and one among others: arithmetic, routes, names, contradictions, attempts, ways after an error."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.handoff_names import (
    Wanted,
    compact,
    handoff_name,
    instant,
    is_slug_of,
    names_same_handoff,
    read_name,
    right_names,
    screen_name_of,
    slug_of,
    write_name,
)
from yolo_fs.artifacts.naming import subject_of
from yolo_fs.core.reasons import Fault, Level, Reason
from yolo_fs.handoffs.envelopes import Sent, mentioned_files, percentage, read, right_name
from yolo_fs.handoffs.product_facts import FACTS
from yolo_fs.handoffs.session_progress import progress_line, standing, ways_after
from yolo_fs.handoffs.sessions import ProductSession, attempts, faults_among, in_order
from yolo_fs.protocol.handoffs import HANDOFFS, RECOVERIES, STORAGE
from yolo_fs.schemas.envelope.envelope import Choice

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUN = sorted((FIXTURES / "product").glob("[0-9]*.json"))
CONTRADICTIONS = sorted((FIXTURES / "envelopes" / "contradictions").glob("*.json"))
EXAMPLES = sorted((FIXTURES / "examples" / "envelopes").glob("*/ok/*.json"))
NOW = datetime(2026, 11, 20, tzinfo=UTC)
GUID = "5b0f7f52-6c1d-4a38-9e44-2d9a7c31e806"


def value(number: int) -> dict[str, Any]:
    """Return a copy of one of the eleven handoffs of the run."""
    return dict(json.loads(RUN[number - 1].read_text(encoding="utf-8")))


def failed() -> dict[str, Any]:
    return dict(json.loads((FIXTURES / "product/prd_failed.json").read_text(encoding="utf-8")))


def sent(written: dict[str, Any], path: str = "") -> Sent:
    found, faults = read(written, path or "-", NOW)
    assert found is not None, faults
    return Sent(path or right_name(found), written, found.envelope)


def session(*written: dict[str, Any], choices: tuple[Choice, ...] = ()) -> ProductSession:
    return ProductSession(in_order([sent(one) for one in written]), choices)


def told(faults: Any) -> list[tuple[Reason, str]]:
    return [(fault.reason, fault.at) for fault in faults]


def replaced(written: dict[str, Any], at: str, new: Any) -> dict[str, Any]:
    whole = copy.deepcopy(written)
    *way, last = at.split("/")[1:]
    inside: Any = whole
    for step in way:
        inside = inside[int(step) if isinstance(inside, list) else step]
    inside[int(last) if isinstance(inside, list) else last] = new
    return whole


def later(written: dict[str, Any], **delta: float) -> dict[str, Any]:
    moment = instant(written["timestamp"]) + timedelta(**delta)
    return written | {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}


# --- good ones -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [*EXAMPLES, *RUN], ids=lambda path: f"{path.parts[-3]}/{path.stem}"
)
def test_every_good_envelope_is_good_by_itself(path: Path) -> None:
    found, faults = read(json.loads(path.read_text(encoding="utf-8")), path.name, NOW)
    assert found is not None
    hollow = {Reason.EMPTY_VALUE, Reason.TOO_LONG}
    assert [one for one in faults if one.level is Level.ERROR or one.reason not in hollow] == []


def test_the_run_agrees_with_itself() -> None:
    whole = session(*(value(number) for number in range(1, 12)))
    assert [fault for one in whole.sent for fault in faults_among(one, whole)] == []


@pytest.mark.parametrize("guid", ["7c0a4d52", "B2E61F08", "09f3c6ae"])
def test_examples_of_one_session_contradict_each_other_nowhere(guid: str) -> None:
    values = [json.loads(path.read_text(encoding="utf-8")) for path in EXAMPLES]
    whole = session(*(one for one in values if one["session_id"].startswith(guid)))
    faults = [fault for one in whole.sent for fault in faults_among(one, whole)]
    assert [fault.message for fault in faults if fault.level is Level.ERROR] == []


# --- route and moment ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [value(8), failed()], ids=["payload", "error"])
@pytest.mark.parametrize(
    ("target", "reason"),
    [("marketing", Reason.UNKNOWN_VALUE), ("self", Reason.SELF_REFERENCE)],
)
def test_a_handoff_to_nobody_or_to_oneself_is_one_finding(
    written: dict[str, Any], target: str, reason: Reason
) -> None:
    source = written["source_agent"]["agent_type"]
    wrong = replaced(written, "/target_agent/agent_type", source if target == "self" else target)
    found, faults = read(wrong, "-", NOW)
    assert found is None
    assert told(faults) == [(reason, "/target_agent/agent_type")]


@pytest.mark.parametrize(
    ("seconds", "faults"), [(59, []), (62, [(Reason.OUT_OF_RANGE, "/timestamp")])]
)
def test_a_handoff_from_the_future_is_a_finding_beyond_the_skew_of_clocks(
    seconds: int, faults: list[tuple[Reason, str]]
) -> None:
    moment = (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    _, found = read(value(2) | {"timestamp": moment}, "-", NOW)
    assert told(found) == faults


@pytest.mark.parametrize(
    "moment", ["2026-05-04T08:00:05", "2026-05-04 08:00:05Z", "2026-05-04", "1777881605"]
)
def test_a_moment_without_zone_is_refused(moment: str) -> None:
    found, faults = read(value(2) | {"timestamp": moment}, "-", NOW)
    assert found is None
    assert told(faults) == [(Reason.BAD_FORMAT, "/timestamp")]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_utc_does_not_have_never_raises(moment: str) -> None:
    found, faults = read(value(2) | {"timestamp": moment}, "-", NOW)
    assert found is None
    assert told(faults) == [(Reason.OUT_OF_RANGE, "/timestamp")]


# --- arithmetic ------------------------------------------------------------------------------------------------------


def state_faults(number: int, **state: Any) -> list[tuple[Reason, str]]:
    written = value(number)
    written["workflow_state"] |= state
    return told(read(written, "-", NOW)[1])


@pytest.mark.parametrize(
    ("completed", "remaining", "right"),
    [(0, 4, 0.0), (1, 3, 25.0), (1, 2, 33.33), (2, 1, 66.67), (5, 0, 100.0), (0, 0, 0.0)],
)
def test_percentage_is_the_share_of_completed_phases(
    completed: int, remaining: int, right: float
) -> None:
    assert percentage(["x"] * completed, ["y"] * remaining) == right


@pytest.mark.proves("003:129b")
@pytest.mark.parametrize(
    ("said", "good"), [(40, True), (40.9, True), (39.1, True), (41, False), (39, False), (0, False)]
)
def test_percentage_must_agree_with_the_lists(said: float, good: bool) -> None:
    expected = [] if good else [(Reason.TOTALS_DISAGREE, "/workflow_state/progress_percentage")]
    assert state_faults(6, progress_percentage=said) == expected


def test_a_third_may_be_rounded_either_way() -> None:
    lists = {"phases_completed": ["market-research", "ai-framing"], "phases_remaining": ["prfaq"]}
    assert [bool(state_faults(6, **lists, progress_percentage=said)) for said in (66, 66.67, 67, 65)] == [
        False, False, False, True
    ]  # fmt: skip


def test_a_phase_is_either_completed_or_remains() -> None:
    both = ["prfaq", "prd", "prototype", "market-research"]
    found = state_faults(6, phases_remaining=both, progress_percentage=33.3)
    assert found == [(Reason.STATE_CONFLICT, "/workflow_state/phases_remaining/3")]


@pytest.mark.parametrize("which", ["phases_completed", "phases_remaining"])
def test_a_phase_stands_once(which: str) -> None:
    twice = [*value(6)["workflow_state"][which]] * 2
    at = f"/workflow_state/{which}/{len(twice) // 2}"
    assert (Reason.DUPLICATE_ID, at) in state_faults(6, **{which: twice})


@pytest.mark.parametrize(
    ("written", "at", "phase"),
    [
        (value(3), "/source_agent/phase_completed", "prd"),
        (value(6), "/target_agent/phase_to_execute", "ai-framing"),
        (failed(), "/source_agent/phase_completed", "prfaq"),
    ],
    ids=["over, yet remains", "to do, yet completed", "failed, yet completed"],
)
def test_agents_and_lists_must_not_exclude_each_other(
    written: dict[str, Any], at: str, phase: str
) -> None:
    assert told(read(replaced(written, at, phase), "-", NOW)[1]) == [(Reason.STATE_CONFLICT, at)]


@pytest.mark.proves("003:129b")
@pytest.mark.parametrize("number", [4, 5])
def test_ai_framing_belongs_to_ai_products_only(number: int) -> None:
    assert state_faults(number, is_ai_ml_product=False) == [
        (Reason.STATE_CONFLICT, "/workflow_state/is_ai_ml_product")
    ]


def test_a_phase_that_was_completed_stays_completed() -> None:
    lost = value(9)
    lost["workflow_state"] |= {
        "phases_completed": ["market-research", "prfaq", "prd"],
        "progress_percentage": 75,
    }
    lost["workflow_state"]["phases_remaining"] = ["prototype"]
    whole = session(value(8), lost)
    (fault,) = faults_among(whole.sent[-1], whole)
    assert (fault.reason, fault.at) == (Reason.STATE_CONFLICT, "/workflow_state/phases_completed")
    assert "ai-framing" in fault.message
    assert whole.sent[0].path in fault.message


# --- contradictions --------------------------------------------------------------------------------------------------


def test_at_least_twenty_contradictions_are_planted() -> None:
    places = {
        (case["handoff"], case["at"])
        for case in (json.loads(path.read_text()) for path in CONTRADICTIONS)
    }
    assert len(places) >= 20


@pytest.mark.proves("003:382")
@pytest.mark.parametrize("path", CONTRADICTIONS, ids=lambda path: path.stem)
def test_a_planted_contradiction_is_named_with_both_places(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    earlier = [value(number) for number in range(1, case["handoff"])]
    own = sent(replaced(value(case["handoff"]), case["at"], case["value"]))
    whole = ProductSession(in_order([*(sent(one) for one in earlier), own]))
    faults = list(faults_among(own, whole))
    origin = whole.sent[case["contradicts"]["handoff"] - 1].path
    there = f"at {case['contradicts']['at']} of {origin}"
    found = [
        (fault.reason, fault.at, fault.level.value) for fault in faults if there in fault.message
    ]
    at = case["at"].removesuffix("/target").removesuffix("/role")
    assert found == [(Reason.STATE_CONFLICT, at, case["level"])]
    assert len(faults) == 1


def test_every_field_of_the_table_exists_in_the_run() -> None:
    whole = session(*(value(number) for number in range(1, 12)))
    for fact in FACTS:
        for field in fact.fields:
            written = whole.sent[max(field.handoff, 1) - 1].value
            for step in field.at.split("/")[1:]:
                written = written[0] if step == "*" else written[step.partition("+")[0]]
            assert written != [], (fact.name, field)


@pytest.mark.parametrize(
    ("new", "good"),
    [
        ("APPLE and pear growers,  5 to 80 hectares", True),
        ("Growers of apples", True),
        ("Apple growers with 80 ha", True),
        ("Apple growers with 8 hectares", False),
        ("Apple growers, 70% of them below 80 hectares", True),
        ("Vintners", False),
        ("5 to 80 ha", True),
        ("Apple growers on hillsides around lakes with cold nights", True),
    ],
)
def test_prose_may_be_condensed_but_not_contradicted(new: str, good: bool) -> None:
    whole = session(value(1), replaced(value(2), "/payload/research_request/target_audience", new))
    assert (not list(faults_among(whole.sent[1], whole))) is good


@pytest.mark.parametrize(
    ("new", "good"),
    [
        ("$210 million", True),
        ("210M USD", True),
        ("$0.21bn, growing 11% a year", True),
        ("$210,000,000", True),
        ("$210,000k", True),
        ("$0,21 billion", True),
        ("€210M", False),
        ("$21M", False),
        ("$210B", False),
    ],
)
def test_figures_agree_however_they_are_spelled(new: str, good: bool) -> None:
    whole = session(value(3), replaced(value(8), "/payload/market_context/market_size", new))
    assert (not list(faults_among(whole.sent[1], whole))) is good


@pytest.mark.parametrize(
    ("new", "good"),
    [
        ("{}, grower", True),
        ("{} (who picks the apples)", True),
        ("{}: the grower", True),
        ("{} - grower", True),
        ("Berta, grower", False),
        ("{}-Maria", False),
        (", {}", False),
    ],
)
def test_a_name_may_be_told_with_what_it_stands_for(new: str, good: bool) -> None:
    named = value(9)["payload"]["prd_summary"]["personas"][0]["name"]
    at = "/payload/prototype_summary/screens_created/0/primary_persona"
    told = replaced(value(11), at, new.format(named))
    whole = session(value(9), told)
    found = [fault.at for fault in faults_among(whole.sent[1], whole)]
    assert (not found) is good, found


def test_two_names_with_different_descriptions_are_not_taken_for_one() -> None:
    """What is in brackets may be what tells two requirements apart."""
    at = "/payload/prd_summary/screens_identified/0"
    other = "/payload/prd_context/screens_to_build/0"
    whole = session(
        replaced(value(9), at, "Login (SSO)"), replaced(value(10), other, "Login (key)")
    )
    assert [fault.at for fault in faults_among(whole.sent[1], whole)] == [
        other.rsplit("/", 1)[0] + "/0"
    ]


def test_a_text_may_mean_any_of_the_earlier_ones_that_are_like_it() -> None:
    metrics = ["nights sold, 10% more", "nights sold, 5% cheaper"]
    whole = session(
        replaced(value(7), "/payload/prfaq_summary/success_metrics", metrics),
        replaced(value(8), "/payload/prfaq_context/success_metrics", ["nights sold +5%"]),
    )
    assert list(faults_among(whole.sent[1], whole)) == []


def test_only_the_latest_attempt_of_a_handoff_counts() -> None:
    wrong = replaced(value(3), "/payload/market_research_summary/tam", "$1B")
    again = later(value(3), seconds=9)
    whole = session(wrong, again, value(8))
    assert list(faults_among(whole.sent[-1], whole)) == []


def test_an_earlier_handoff_is_not_blamed_for_a_later_one() -> None:
    whole = session(
        value(7), replaced(value(8), "/payload/prfaq_context/success_metrics/0", "lost below 50%")
    )
    assert list(faults_among(whole.sent[0], whole)) == []


# --- names -----------------------------------------------------------------------------------------------------------

GAPS = {
    "session-id": GUID,
    "source": "market-research",
    "target": "orchestrator",
    "timestamp": "20260504T080941Z",
    "ScreenName": "TrapMap",
    "ProductSlug": "Orchard_Scout_2",
    "YYYY-MM-DD": "2026-05-04",
}


@pytest.mark.proves("003:361", "003:364")
@pytest.mark.parametrize("row", STORAGE, ids=lambda row: row.name)
def test_every_row_reads_what_it_writes(row: Any) -> None:
    path = write_name(row, GAPS)
    found = read_name(path)
    assert found is not None
    assert found.row is row
    assert found.gaps == {gap: text for gap, text in GAPS.items() if f"[{gap}]" in row.name}


@pytest.mark.parametrize("row", STORAGE, ids=lambda row: row.name)
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("evil", ["", "../x", "a b", "a\n", "é", "a/b", "-rf", "x;y", "\x00"])
def test_no_row_writes_what_does_not_fit_its_gap(row: Any, gap: str, evil: str) -> None:
    if f"[{gap}]" in row.name:
        with pytest.raises(ValueError, match="is no"):
            write_name(row, GAPS | {gap: evil})


@pytest.mark.parametrize(
    "path",
    [
        "documents/PRD_Orchard Scout_2026-05-04.md",
        "documents/PRD_Orchard_Scout_2026-13-04.md",
        "documents/PRD_Orchard_Scout_2026-05-04.html.md",
        "documents/prd_Orchard_Scout_2026-05-04.md",
        "PRD_Orchard_Scout_2026-05-04.md",
        "documents/handoffs/PRD_Orchard_Scout_2026-05-04.md",
        f"documents/handoffs/handoff_{GUID}_prd_to_sales_20260504T080941Z.json",
        f"documents/handoffs/handoff_{GUID}_prd_to_orchestrator_20260504T080941.json",
        f"documents/handoffs/handoff_{GUID}_prd_to_orchestrator_20260532T080941Z.json",
        "documents/handoffs/handoff_1_prd_to_orchestrator_20260504T080941Z.json",
    ],
)
def test_another_name_is_not_read(path: str) -> None:
    assert read_name(path) is None


@pytest.mark.proves("003:361", "003:364")
@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("documents/PRD_Orchard_Scout_2026-05-04.md", ""),
        ("documents/PRD_orchard-scout_2026-05-04.md", "documents/PRD_Orchard_Scout_2026-05-04.md"),
        ("prd.md", "documents/PRD_Orchard_Scout_2026-05-09.md"),
        ("documents/prd 2026-05-04 final.md", "documents/PRD_Orchard_Scout_2026-05-04.md"),
        ("documents/requirements.md", "documents/PRD_Orchard_Scout_2026-05-09.md"),
        ("documents/PRD_Harbor_Ledger_2026-05-04.md", "documents/PRD_Orchard_Scout_2026-05-04.md"),
    ],
)
def test_a_misnamed_file_gets_its_right_name(path: str, right: str) -> None:
    written = replaced(value(9), "/artifacts/created/0/path", path)
    written["timestamp"] = "2026-05-09T08:55:40Z"
    faults = read(written, "-", NOW)[1]
    assert [(fault.reason, fault.at, fault.expected) for fault in faults] == (
        [(Reason.BAD_NAME, "/artifacts/created/0/path", right)] if right else []
    )


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("documents/screen-trap-map.html", ["Screen_TrapMap_Orchard_Scout_2026-05-04.html"]),
        (
            "documents/clickable_prototype.html",
            ["ClickablePrototype_Orchard_Scout_2026-05-04.html"],
        ),
        ("documents/design-system.html", ["DesignSystem_Orchard_Scout_2026-05-04.html"]),
        ("documents/prototype.md", ["Prototype_Orchard_Scout_2026-05-04.md"]),
    ],
)
def test_the_words_of_a_name_tell_which_file_it_is(path: str, right: list[str]) -> None:
    wanted = Wanted("Orchard_Scout", "2026-05-04", path.rpartition(".")[2])
    assert list(right_names(path, wanted)) == [f"documents/{name}" for name in right]


def test_a_screen_is_named_after_its_title() -> None:
    written = replaced(
        value(11), "/payload/prototype_summary/screens_created/0/screen_name", "Über uns"
    )
    (fault,) = read(written, "-", NOW)[1]
    assert fault.at == "/payload/prototype_summary/screens_created/0/path"
    assert fault.expected == "documents/Screen_UberUns_Orchard_Scout_2026-05-04.html"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Orchard Scout", "Orchard_Scout"),
        ("  Anna's   Shop! ", "Anna_s_Shop"),
        ("Förderband 3", "Forderband_3"),
        ("../../etc", "etc"),
        ("園芸", ""),
    ],
)
def test_a_slug_has_letters_digits_and_underscores(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@pytest.mark.parametrize(
    ("slug", "name", "good"),
    [
        ("Annas_Shop", "Anna's Shop", True),
        ("orchard_scout", "Orchard Scout", True),
        ("Foerderband", "Förderband", True),
        ("Harbor", "Orchard Scout", False),
    ],
)
def test_the_slug_spells_the_name(slug: str, name: str, good: bool) -> None:
    assert is_slug_of(slug, name) is good


def test_a_slug_of_another_product_is_a_finding_with_the_right_one() -> None:
    _, faults = read(value(2) | {"product_name_slug": "Harbor_Ledger"}, "-", NOW)
    assert [(fault.reason, fault.at, fault.expected) for fault in faults] == [
        (Reason.NAME_MISMATCH, "/product_name_slug", "Orchard_Scout")
    ]


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("2026-05-04T08:09:41Z", "20260504T080941Z"),
        ("2026-05-04T10:09:41+02:00", "20260504T080941Z"),
        ("2026-05-04T08:09:41.250Z", "20260504T080941.25Z"),
        ("2026-05-04T08:09:41.000Z", "20260504T080941Z"),
        ("0999-05-04T08:09:41Z", "09990504T080941Z"),
    ],
)
def test_a_name_spells_the_moment_in_utc(written: str, short: str) -> None:
    assert compact(written) == short


@pytest.mark.parametrize(
    "spelled", ["2026-05-04T08:09:41Z", "2026-05-04T08-09-41Z", "20260504T100941+0200"]
)
def test_a_name_may_spell_its_moment_otherwise(spelled: str) -> None:
    right = handoff_name(GUID, "prd", "orchestrator", "2026-05-04T08:09:41Z")
    assert names_same_handoff(right.replace("20260504T080941Z", spelled), right)
    assert not names_same_handoff(right.replace("20260504T080941Z", "20260504T080942Z"), right)


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        (
            handoff_name(GUID, "ai-framing", "orchestrator", "2026-05-04T08:00:00Z"),
            "docs(handoffs): ai-framing_to_orchestrator",
        ),
        (f"documents/handoffs/choices_{GUID}.json", "docs(handoffs): choices"),
        (f"documents/choices_{GUID}.json", None),
        ("documents/PRD_Orchard_Scout_2026-05-04.md", None),
        ("documents/handoffs/handoff.json", None),
    ],
)
def test_a_commit_is_called_after_the_route(path: str, subject: str | None) -> None:
    place = classify(path)
    assert (place and subject_of(place, (), ())) == subject


def test_screen_names_have_no_underscore() -> None:
    assert screen_name_of("sign-in / sign_up") == "SignInSignUp"


@pytest.mark.proves("003:381")
def test_every_file_that_an_envelope_names_is_found() -> None:
    assert mentioned_files(sent(value(1))) == {
        "/payload/context_files/0": "inputs/trap_counts_2025.csv"
    }
    assert set(mentioned_files(sent(value(11)))) == {
        *(f"/artifacts/created/{index}/path" for index in range(5)),
        "/artifacts/referenced/0",
        "/payload/prototype_summary/screens_created/0/path",
        "/payload/prototype_summary/screens_created/1/path",
        "/payload/prototype_summary/design_system_path",
        "/payload/prototype_summary/clickable_prototype_path",
    }


def test_partial_output_of_an_error_names_no_file() -> None:
    assert (
        mentioned_files(
            sent(replaced(failed(), "/payload/error/partial_output", {"path": "nowhere.md"}))
        )
        == {}
    )


# --- attempts and repeats --------------------------------------------------------------------------------------------


def numbers(*written: dict[str, Any]) -> list[tuple[int, bool]]:
    whole = session(*written)
    found = attempts(whole.sent)
    return [(found[one.path].number, bool(found[one.path].repeats)) for one in whole.sent]


@pytest.mark.proves("003:11a")
def test_the_same_handoff_again_is_a_repeat() -> None:
    assert numbers(value(2), later(value(2), minutes=1)) == [(1, False), (1, True)]


def test_other_content_is_another_attempt() -> None:
    other = replaced(later(value(2), minutes=1), "/payload/research_request/geographic_focus", None)
    assert numbers(value(2), other) == [(1, False), (2, False)]


def test_after_an_error_the_same_request_is_another_attempt() -> None:
    assert numbers(value(8), failed(), later(value(8), minutes=10), value(9)) == [
        (1, False), (1, False), (2, False), (2, False)
    ]  # fmt: skip


def test_an_agent_that_is_asked_anew_and_fails_alike_makes_another_attempt() -> None:
    again, failed_again = later(value(8), minutes=10), later(failed(), minutes=10)
    assert numbers(value(8), failed(), again, failed_again)[-1] == (2, False)


# --- after an error --------------------------------------------------------------------------------------------------


def after_error() -> ProductSession:
    return session(*(value(number) for number in range(1, 9)), failed())


@pytest.mark.proves("003:400")
def test_the_four_ways_are_the_documents() -> None:
    ways = ways_after(after_error().sent[-1], after_error())
    assert [way.text for way in ways] == [row.text for row in RECOVERIES]
    assert [way.name for way in ways] == ["retry", "ask", "skip", "abort"]


@pytest.mark.proves("003:400")
@pytest.mark.parametrize(
    ("name", "status", "agent", "phase", "attempt", "degraded", "remaining", "percent"),
    [
        ("retry", "running", "prd", "prd", 2, [], ["prd", "prototype"], 60),
        ("ask", "waiting", "user", "prd", 1, [], ["prd", "prototype"], 60),
        ("skip", "running", "orchestrator", "prototype", 1, ["prd"], ["prototype"], 75),
        ("abort", "aborted", None, None, 1, [], ["prd", "prototype"], 60),
    ],
)
def test_each_way_leads_to_its_state(
    name: str,
    status: str,
    agent: str,
    phase: str,
    attempt: int,
    degraded: list[str],
    remaining: list[str],
    percent: float,
) -> None:
    whole = after_error()
    then = next(way for way in ways_after(whole.sent[-1], whole) if way.name == name).leads_to
    assert (then.status, then.agent_type, then.phase_to_execute, then.attempt) == (
        status,
        agent,
        phase,
        attempt,
    )
    assert (then.degraded, then.phases_remaining, then.progress_percentage) == (
        degraded,
        remaining,
        percent,
    )


def test_to_skip_the_last_phase_completes_the_workflow() -> None:
    last = failed()
    last["source_agent"] |= {"agent_type": "prototype", "phase_completed": "prototype"}
    last["workflow_state"] = value(10)["workflow_state"]
    whole = session(last)
    then = ways_after(whole.sent[0], whole)[2].leads_to
    assert (then.status, then.phases_remaining, then.progress_percentage) == ("complete", [], 100)


def chosen(whole: ProductSession, name: str) -> ProductSession:
    error = whole.sent[-1]
    way = next(way for way in ways_after(error, whole) if way.name == name)
    choice = Choice(
        error=error.path, way=way.name, chosen_at="2026-05-04T08:37:00Z", leads_to=way.leads_to
    )
    return ProductSession(whole.sent, (choice,))


@pytest.mark.parametrize(
    ("way", "line"),
    [
        (
            "",
            "Orchard Scout [############--------] 60 %, 3 of 5 phases, prd failed: GENERATION_FAILED",
        ),
        (
            "retry",
            "Orchard Scout [############--------] 60 %, 3 of 5 phases, prd does prd, attempt 2",
        ),
        (
            "ask",
            "Orchard Scout [############--------] 60 %, 3 of 5 phases, waits for the user: GENERATION_FAILED",
        ),
        (
            "skip",
            "Orchard Scout [###############-----] 75 %, 3 of 4 phases, orchestrator does prototype, skipped: prd",
        ),
        (
            "abort",
            "Orchard Scout [############--------] 60 %, 3 of 5 phases, aborted: GENERATION_FAILED",
        ),
    ],
)
def test_the_line_of_progress_tells_what_was_chosen(way: str, line: str) -> None:
    whole = chosen(after_error(), way) if way else after_error()
    assert progress_line(standing(whole)) == line


@pytest.mark.parametrize("minutes", [4.5, 60], ids=["stamped before the choice", "after it"])
def test_nothing_follows_an_abort(minutes: float) -> None:
    whole = chosen(after_error(), "abort")
    own = sent(later(value(8), hours=minutes / 60))
    assert own.moment > whole.sent[-1].moment
    faults = list(faults_among(own, whole))
    assert told(faults) == [(Reason.STATE_CONFLICT, "/session_id")]
    assert whole.choices[0].error in faults[0].message


def test_without_handoffs_there_is_a_line_too() -> None:
    assert "no handoff yet" in progress_line(standing(ProductSession()))


def test_every_section_of_the_document_is_in_the_run() -> None:
    assert [sent(value(number)).section for number in range(1, 12)] == [
        row.number for row in HANDOFFS
    ]


def test_a_fault_says_what_was_expected() -> None:
    faults: list[Fault] = []
    for path in CONTRADICTIONS[:5]:
        case = json.loads(path.read_text(encoding="utf-8"))
        own = sent(replaced(value(case["handoff"]), case["at"], case["value"]))
        faults += faults_among(
            own,
            ProductSession(in_order([*(sent(value(n)) for n in range(1, case["handoff"])), own])),
        )
    assert all(fault.expected and fault.hint for fault in faults)


@pytest.mark.proves("003:364")
def test_a_file_of_a_type_for_which_its_agent_has_no_name_is_told_the_names_that_there_are() -> (
    None
):
    written = value(9)
    made = {"type": "json", "path": "documents/notes.json", "description": "notes"}
    written["artifacts"]["created"].append(made)
    found, faults = read(written, "-", NOW)
    assert found is not None
    (told_,) = [fault for fault in faults if fault.reason is Reason.BAD_NAME]
    assert (told_.level, told_.at) == (Level.WARNING, "/artifacts/created/2/type")
    assert "PRD_[ProductSlug]_[YYYY-MM-DD].md" in told_.expected
