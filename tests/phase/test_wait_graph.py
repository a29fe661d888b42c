"""The wait-for graph: deadlocks and orphan waits are named, and nothing else is.

`fixtures/waits/` holds one phase directory per case: real artifacts, and `expected.json`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from tests.support import phases
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import shape_faults
from yolo_fs.core.reasons import errors
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, WorkflowOptions, plans_of
from yolo_fs.phase import waits
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.waits import Alarm, Deadlock, Orphan, Wait, cycles, orphans, suppliers
from yolo_fs.phase.waves import Wave
from yolo_fs.protocol.departments import Dept
from yolo_fs.schemas.layout import Strictness
from yolo_fs.system.readers import READERS
from yolo_fs.system.text_checks import Limits

CASES = Path(__file__).parents[2] / "fixtures/waits"
NAMES = sorted(case.name for case in CASES.iterdir())
BESIDE = {"expected.json", "config.json"}


def read(case: Path) -> PhaseFacts:
    """Return the facts of a case as the house reads them from a commit."""
    config = case / "config.json"
    said = json.loads(config.read_text()) if config.exists() else {}
    files = [file for file in case.iterdir() if file.name not in BESIDE]
    return PhaseFacts(
        phases.PHASE, tuple(map(read_artifact, files)), WorkflowOptions(config_from(said))
    )


def read_artifact(file: Path) -> CommittedArtifact:
    place = classify(f"{phases.FOLDER}/{file.name}")
    assert place is not None, file
    reading = READERS[place.artifact.format](file.read_bytes(), place.path, Limits())
    faults = list(shape_faults(place.artifact, reading.records, Strictness(strict=True)))
    assert not errors(reading.findings), file
    assert not faults, file
    return CommittedArtifact(place, tuple(record.value for record in reading.records), valid=True)


def raised(facts: PhaseFacts) -> tuple[Alarm, ...]:
    return Phase(facts).alarms


def names_of(found: tuple[Alarm, ...]) -> dict[str, list[list[str]]]:
    return {
        "deadlocks": [list(alarm.names) for alarm in found if isinstance(alarm, Deadlock)],
        "orphans": [
            [alarm.wait.waiter, alarm.wait.on] for alarm in found if isinstance(alarm, Orphan)
        ],
    }


def waiting(facts: PhaseFacts) -> set[tuple[str, str]]:
    return {(wait.waiter, wait.on) for wait in Phase(facts).waits}


# --- seeded phases ---


@pytest.mark.parametrize("name", NAMES)
def test_a_seeded_phase_raises_exactly_the_expected_alarms(name: str) -> None:
    expected = json.loads((CASES / name / "expected.json").read_text())
    about = expected.pop("about")
    assert names_of(raised(read(CASES / name))) == expected, about


def test_twelve_deadlocks_and_each_kind_of_orphan_are_seeded() -> None:
    kinds = Counter(name.partition("-")[0] for name in NAMES)
    assert kinds["deadlock"] >= 12
    assert kinds["orphan"] >= 5
    assert kinds["healthy"] >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("deadlock")])
def test_a_named_deadlock_is_a_circle_of_waits_that_the_phase_has(name: str) -> None:
    facts = read(CASES / name)
    found = set(Phase(facts).waits)
    for alarm in raised(facts):
        assert isinstance(alarm, Deadlock)
        assert_circle(alarm, found)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("healthy")])
def test_each_alarm_of_a_phase_says_how_to_break_it(name: str) -> None:
    for alarm in raised(read(CASES / name)):
        assert "To break it, " in str(alarm)
        assert str(alarm).isprintable()


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_arrival_makes_no_difference(name: str) -> None:
    facts = read(CASES / name)
    upside_down = PhaseFacts(facts.phase, facts.committed[::-1], facts.options)
    assert Phase(upside_down).waits == Phase(facts).waits
    assert raised(upside_down) == raised(facts)


def test_an_alarm_is_a_sentence() -> None:
    (alarm,) = raised(read(CASES / "deadlock-two-plans"))
    assert str(alarm) == (
        "deadlock: 01-01 waits for 01-02 (`d` names it, 01-01.plan.jsonl:1), "
        "which waits for 01-01 (`d` names it, 01-02.plan.jsonl:1). To break it, do one of these: "
        "remove 01-02 from `d` in 01-01.plan.jsonl; or remove 01-01 from `d` in 01-02.plan.jsonl"
    )


@pytest.mark.parametrize(
    ("name", "because"),
    [
        (
            "orphan-plan-nobody-wrote",
            "no active department has a valid plan of that number committed",
        ),
        ("orphan-handoff-of-an-inactive-department", "that department is not active"),
        ("orphan-inactive-senior", "no such agent works on this phase"),
        ("orphan-research-turned-off", "research on demand is turned off in config.json"),
        ("orphan-unknown-role", "nothing has that name"),
    ],
)
def test_an_orphan_says_why_nobody_comes(name: str, because: str) -> None:
    (alarm,) = raised(read(CASES / name))
    assert because in str(alarm)


def test_what_an_agent_wrote_reaches_an_alarm_escaped_and_cut() -> None:
    alarm = Orphan(
        Wait("ESC-01-01-T1", "\x1b[2J" + "a" * 900, "it holds the escalation", "escalation.jsonl:1")
    )
    assert "\\x1b" in str(alarm)
    assert str(alarm).isprintable()
    assert len(str(alarm)) < 300


# --- what waits, and what does not ---

FRONTEND = config_from({"departments": {"frontend": True}, "department_workflow": "sequential"})
TASK = {"id": "T1", "a": "sign tokens", "f": ["src/auth.ts"], "spec": "use RS256"}


def plan(number: str, *tasks: dict[str, Any], **header: Any) -> list[dict[str, Any]]:
    return [{"p": "01", "n": number, "t": "Tokens", "w": 1, "d": [], **header}, *(tasks or (TASK,))]


def held(level: str, at: str, **more: str) -> dict[str, list[dict[str, Any]]]:
    entry = {"id": "ESC-01-01-T1", "status": "pending", "level": level, "last_escalated_at": at}
    return {".execution-state.json": [{"phase": 1, "escalations": [entry | more]}]}


def escalated(status: str = "open", **more: str) -> dict[str, list[dict[str, Any]]]:
    line = {
        "id": "ESC-01-01-T1",
        "dt": "2026-02-19T11:00:00Z",
        "agent": "dev",
        "tgt": "senior",
        "sev": "blocking",
    }
    return {"escalation.jsonl": [line | {"st": status} | more]}


def test_a_complete_phase_waits_for_nothing() -> None:
    assert not waiting(phases.facts(phases.complete()))


def test_tasks_that_run_in_a_circle_are_named() -> None:
    tasks = [
        TASK | {"id": "T1", "td": ["T2"]},
        TASK | {"id": "T2", "td": ["T1"]},
        TASK | {"id": "T3", "td": ["T1"]},
    ]
    facts = phases.facts({"01-01.plan.jsonl": plan("01", *tasks)})
    assert names_of(raised(facts)) == {"deadlocks": [["01-01/T1", "01-01/T2"]], "orphans": []}
    assert ("01-01", "01-01/T1") in waiting(facts)


def test_a_committed_task_ends_the_circle_of_tasks() -> None:
    tasks = [TASK | {"id": "T1", "td": ["T2"]}, TASK | {"id": "T2", "td": ["T1"]}]
    facts = phases.facts(
        {"01-01.plan.jsonl": plan("01", *tasks)}, task_commits={"01-01/T1": "a" * 40}
    )
    assert not raised(facts)


def test_a_plan_of_another_phase_is_waited_for_until_its_summary_says_complete() -> None:
    content = {
        "01-01.plan.jsonl": plan("01", xd=[{"p": "00", "n": "02", "a": "src/keys.ts", "r": "keys"}])
    }
    assert ("01-01", "00-02") in waiting(phases.facts(content))
    assert not raised(phases.facts(content))
    assert ("01-01", "00-02") not in waiting(
        phases.facts(content, plans_of_all={(Dept.BACKEND, "00-02"): True})
    )


def test_a_cross_dependency_on_a_plan_that_this_phase_lacks_is_an_orphan() -> None:
    content = {
        "01-01.plan.jsonl": plan("01", xd=[{"p": "01", "n": "09", "a": "src/keys.ts", "r": "keys"}])
    }
    assert names_of(raised(phases.facts(content)))["orphans"] == [["01-01", "01-09"]]


def across(number: str) -> list[dict[str, str]]:
    """Return the `xd` that names a plan of the second phase."""
    return [{"p": "02", "n": number, "a": "src/keys.ts", "r": "keys"}]


def test_plans_of_two_phases_that_wait_for_each_other_are_a_deadlock_of_both() -> None:
    known: dict[str, Any] = {
        "plans_of_all": {(Dept.BACKEND, "02-01"): False, (Dept.BACKEND, "01-01"): False},
        "needs_of_all": {(Dept.BACKEND, "02-01"): ("01-01",)},
    }
    content = {"01-01.plan.jsonl": plan("01", xd=across("01"))}
    (alarm,) = raised(phases.facts(content, **known))
    assert str(alarm) == (
        "deadlock: 01-01 waits for 02-01 (`xd` names it, 01-01.plan.jsonl:1), "
        "which waits for 01-01 (`xd` names it, 02-01.plan.jsonl:1). To break it, do one of these: "
        "remove 02-01 from `xd` in 01-01.plan.jsonl; or remove 01-01 from `xd` in 02-01.plan.jsonl"
    )
    done = known["plans_of_all"] | {(Dept.BACKEND, "02-01"): True}
    assert not raised(phases.facts(content, **known | {"plans_of_all": done}))
    assert not raised(phases.facts(content, **known | {"needs_of_all": {}}))


@pytest.mark.parametrize(
    ("needs", "circles"),
    [
        ({"02-01": ("02-02",), "02-02": ("01-01",)}, [["01-01", "02-01"]]),
        ({"02-01": ("03-01",), "03-01": ("01-01",)}, [["01-01", "02-01", "03-01"]]),
        # Nobody begins a plan of a department before all that its plans name is complete.
        ({"02-02": ("01-01",)}, [["01-01", "02-01"]]),
        ({"02-01": ("01-02",)}, [["01-02", "02-01"]]),
        # A circle that this phase only waits for is told where it is.
        ({"02-01": ("03-01",), "03-01": ("02-01",)}, []),
        ({"02-01": ("03-09",), "03-01": ("01-01",)}, []),
    ],
)
def test_a_circle_over_several_phases_is_found_by_whatever_way_it_goes(
    needs: dict[str, tuple[str, ...]], circles: list[list[str]]
) -> None:
    content = {"01-01.plan.jsonl": plan("01", xd=across("01")), "01-02.plan.jsonl": plan("02")}
    names = ("02-01", "02-02", "03-01")
    found = phases.facts(
        content,
        plans_of_all={(Dept.BACKEND, name): False for name in names},
        needs_of_all={(Dept.BACKEND, name): needed for name, needed in needs.items()},
    )
    assert names_of(raised(found)) == {"deadlocks": circles, "orphans": []}


def test_a_plan_of_another_phase_is_that_of_the_department_that_names_it() -> None:
    known: dict[str, Any] = {
        "plans_of_all": {(Dept.BACKEND, "02-01"): False, (Dept.FRONTEND, "02-01"): False},
        "config": FRONTEND,
    }
    content = {"01-01.plan.jsonl": plan("01", xd=across("01"))}
    of_frontend, of_backend = (
        phases.facts(content, needs_of_all={(owner, "02-01"): ("01-01",)}, **known)
        for owner in (Dept.FRONTEND, Dept.BACKEND)
    )
    assert not raised(of_frontend)
    assert names_of(raised(of_backend))["deadlocks"] == [["01-01", "02-01"]]


def test_a_plan_of_a_later_wave_waits_at_the_gate_until_its_department_has_begun() -> None:
    content = {"fe-01-01.plan.jsonl": plan("01"), "01-02.plan.jsonl": plan("02")}
    behind = ("01-02", "gate:handoff-frontend-complete")
    assert behind in waiting(phases.facts(content, config=FRONTEND))
    assert behind not in waiting(
        phases.facts(content, config=FRONTEND, task_commits={"01-02/T1": "a" * 40})
    )
    assert behind not in waiting(phases.facts(content))


THREE = config_from(
    {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
)


def test_plans_of_one_number_in_two_departments_do_not_wait_for_themselves() -> None:
    content: phases.Content = {f"{dept}-01-02.plan.jsonl": plan("02") for dept in ("fe", "ux")}
    found = phases.facts(content, config=THREE)
    assert not raised(found)
    assert {("fe-01-02", "gate:ux-complete"), ("uiux", "ux-01-02")} <= waiting(found)
    assert {"ux-01-02", "fe-01-02"} <= suppliers(Phase(found))


def test_a_number_that_two_departments_have_means_the_plan_of_whoever_names_it() -> None:
    content: phases.Content = {f"{dept}01-01.plan.jsonl": plan("01") for dept in ("", "fe-")}
    content |= {
        "fe-01-03.plan.jsonl": plan("03", d=["01-01"]),
        "ux-01-04.plan.jsonl": plan("04", d=["01-01"]),
        **escalated(agent="fe-dev", tgt="fe-senior"),
        "fe-research.jsonl": [ASKED | {"brief_for": "01-01/T1"}],
    }
    pairs = waiting(phases.facts(content, config=THREE))
    assert {("01-03", "fe-01-01"), ("01-04", "fe-01-01"), ("01-04", "01-01")} <= pairs
    assert ("01-03", "01-01") not in pairs
    assert {on for waiter, on in pairs if waiter == "fe-01-01/T1"} == {
        "ESC-01-01-T1", "research:fe-research.jsonl:1",
    }  # fmt: skip
    assert ("fe-01-01", "fe-01-01/T1") in pairs and "01-01/T1" not in dict(pairs)


def test_a_plan_is_known_by_its_name_with_and_without_a_department() -> None:
    assert waits.plan_named("fe-01-02") == waits.plan_named("01-02") is not None
    for name in ("fe-dev", "ESC-01-02-T1", "01-02/T1", "gate:ux-complete", "fe"):
        assert waits.plan_named(name) is None


def test_an_open_gate_holds_nobody() -> None:
    config = config_from({"departments": {"uiux": True}, "department_workflow": "parallel"})
    content: phases.Content = {"ux-01-01.plan.jsonl": plan("01"), "01-02.plan.jsonl": plan("02")}
    assert ("01-02", "gate:ux-complete") in waiting(phases.facts(content, config=config))
    ready = {"status": "ready", "name": "LoginForm", "component": "LoginForm"}
    content |= {
        f"{kind}.jsonl": [ready] for kind in ("design-handoff", "design-tokens", "component-specs")
    }
    assert not {
        pair for pair in waiting(phases.facts(content, config=config)) if "gate:ux-complete" in pair
    }


def test_a_later_wave_waits_for_every_department_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, last = (Dept.UIUX, Dept.FRONTEND), (Dept.BACKEND,)
    found = (Wave(first, "handoff-ux-complete"), Wave(last, "all-depts-complete"))
    monkeypatch.setattr(waits, "waves", lambda _: found)
    config = config_from({"departments": {"uiux": True, "frontend": True}})
    ready = {"status": "ready", "name": "LoginForm", "component": "LoginForm"}
    content: phases.Content = {"fe-01-01.plan.jsonl": plan("01"), "01-02.plan.jsonl": plan("02")}
    content |= {
        f"{kind}.jsonl": [ready] for kind in ("design-handoff", "design-tokens", "component-specs")
    }
    behind = {
        on for waiter, on in waiting(phases.facts(content, config=config)) if waiter == "01-02"
    }
    assert "gate:handoff-frontend-complete" in behind


def test_a_lead_comes_with_his_wave_unless_his_plans_show_that_he_is_there() -> None:
    content: phases.Content = {
        "api-contracts.jsonl": [{"direction": "frontend_to_backend", "status": "proposed"}]
    }
    behind = ("lead", "gate:handoff-frontend-complete")
    assert behind in waiting(phases.facts(content, config=FRONTEND))
    assert behind not in waiting(
        phases.facts(content | {"01-01.plan.jsonl": plan("01")}, config=FRONTEND)
    )


@pytest.mark.parametrize(
    ("spelled", "agent"),
    [
        ("yolo-lead", "fe-lead"),
        ("Senior", "fe-senior"),
        ("QA Lead", "fe-qa"),
        ("ux-lead", "ux-lead"),
        ("User", "user"),
    ],
)
def test_a_role_means_the_agent_of_the_department_that_asks(spelled: str, agent: str) -> None:
    content = {"fe-01-01.plan.jsonl": plan("01"), **escalated(tgt=spelled)}
    assert ("ESC-01-01-T1", agent) in waiting(phases.facts(content, config=FRONTEND))


def test_a_request_comes_from_the_department_of_its_task() -> None:
    content = {
        "fe-01-01.plan.jsonl": plan("01"),
        "research.jsonl": [ASKED | {"brief_for": "01-01/T1"}],
    }
    assert ("fe-dev", "research:research.jsonl:1") in waiting(
        phases.facts(content, config=FRONTEND)
    )


def test_a_handoff_with_blockers_holds_no_department_that_is_done_or_not_active() -> None:
    content = phases.complete() | {
        "dept-handoff.jsonl": [
            {"from_dept": "uiux", "to_dept": to, "blockers": ["a draft"]}
            for to in ("backend", "frontend")
        ]
    }
    assert not {on for _, on in waiting(phases.facts(content)) if on == "uiux"}


@pytest.mark.parametrize("at", ["2026-02-19T12:00:00Z", "2026-02-19T10:00:00Z"])
def test_the_log_says_who_holds_an_escalation_whatever_the_state_says(at: str) -> None:
    content = {"01-01.plan.jsonl": plan("01"), **escalated(), **held("architect", at)}
    found = waiting(phases.facts(content))
    assert ("ESC-01-01-T1", "senior") in found
    assert {
        ("01-01", "01-01/T1"),
        ("01-01/T1", "ESC-01-01-T1"),
        ("backend", "ESC-01-01-T1"),
    } <= found


def test_an_escalation_that_only_the_state_knows_is_pending() -> None:
    content = {"01-01.plan.jsonl": plan("01"), **held("lead", "2026-02-19T10:00:00Z")}
    assert ("ESC-01-01-T1", "lead") in waiting(phases.facts(content))


@pytest.mark.parametrize("more", [{"status": "resolved"}, {"id": "ESC-02-01-T1"}])
def test_an_escalation_of_the_state_that_is_over_or_of_another_phase_holds_nobody(
    more: dict[str, str],
) -> None:
    content = {"01-01.plan.jsonl": plan("01"), **held("lead", "2026-02-19T10:00:00Z", **more)}
    assert "lead" not in {on for _, on in waiting(phases.facts(content))}


def test_an_escalation_holds_nobody_once_its_task_goes_on_whatever_the_state_says() -> None:
    (first,) = escalated()["escalation.jsonl"]
    down = first | {"agent": "senior", "tgt": "dev", "st": "escalated", "dec": "Path /"}
    content = {"01-01.plan.jsonl": plan("01"), **held("lead", "2026-02-19T12:00:00Z")}
    waits = waiting(phases.facts(content | {"escalation.jsonl": [first, down]}))
    assert ("ESC-01-01-T1", "dev") in waits and ("senior", "ESC-01-01-T1") not in waits
    resumed = first | {"st": "resolved", "res": "Path /", "ref": "abc1234"}
    waits = waiting(phases.facts(content | {"escalation.jsonl": [first, down, resumed]}))
    assert not {pair for pair in waits if "ESC-01-01-T1" in pair}


@pytest.mark.parametrize(
    ("severity", "pauses"), [("blocking", True), ("major", False), ("minor", False)]
)
def test_only_a_blocking_escalation_pauses_who_escalated(severity: str, pauses: bool) -> None:
    content = {"01-01.plan.jsonl": plan("01"), **escalated(sev=severity)}
    assert (("dev", "ESC-01-01-T1") in waiting(phases.facts(content))) is pauses


ASKED = {"q": "key rotation", "src": "pending", "rt": "blocking", "ra": "dev"}


@pytest.mark.proves("000:240a")
@pytest.mark.parametrize(
    ("lines", "paused"),
    [
        ([ASKED], {"dev"}),
        ([ASKED | {"task": "01-01/T1", "plan_id": "01-01"}], {"dev", "01-01/T1"}),
        ([ASKED | {"brief_for": "01-01"}], {"dev", "01-01"}),
        ([ASKED | {"brief_for": "C2"}], {"dev"}),
        ([ASKED | {"rt": "informational"}], set()),
        ([ASKED, {"q": "key rotation", "src": "web", "finding": "JWKS"}], set()),
    ],
)
def test_a_blocking_request_pauses_who_asked_until_it_is_answered(
    lines: list[Any], paused: set[str]
) -> None:
    facts = phases.facts({"01-01.plan.jsonl": plan("01"), "research.jsonl": lines})
    assert {waiter for waiter, on in waiting(facts) if on == "research:research.jsonl:1"} == paused
    assert (("research:research.jsonl:1", "scout") in waiting(facts)) is bool(paused)


@pytest.mark.parametrize(
    ("lines", "leads"),
    [
        ([], {"lead", "fe-lead"}),
        ([{"endpoint": "POST /login", "status": "disputed"}], {"lead", "fe-lead"}),
        (
            [{"direction": "frontend_to_backend", "endpoint": "POST /login", "status": "proposed"}],
            {"lead"},
        ),
        (
            [{"direction": "backend_to_frontend", "endpoint": "POST /login", "status": "proposed"}],
            {"fe-lead"},
        ),
        ([{"endpoint": "POST /login", "status": "agreed"}], set()),
    ],
)
def test_a_contract_waits_for_the_side_that_has_not_answered(
    lines: list[Any], leads: set[str]
) -> None:
    content = {"api-contracts.jsonl": lines} if lines else {}
    facts = phases.facts(content, config=FRONTEND)
    assert {on for waiter, on in waiting(facts) if waiter == "gate:api-contract"} == leads
    assert not raised(facts)


# --- random phases ---

WORKFLOWS = [("backend_only", ""), ("parallel", "fe"), ("parallel", "ux"), ("parallel", "fe ux"),
             ("sequential", "fe"), ("sequential", "ux"), ("sequential", "fe ux")]  # fmt: skip
UPWARD = ["dev", "senior", "lead", "architect", "owner", "user"]


def healthy(rng: random.Random) -> PhaseFacts:
    """Return a phase in which much waits and every wait can be met: all point to earlier waves, or upward."""
    workflow, active = rng.choice(WORKFLOWS)
    flags = {"frontend": "fe" in active, "uiux": "ux" in active}
    config = config_from({"departments": flags, "department_workflow": workflow})
    prefixes = [one for one in ("ux-", "fe-", "") if one.strip("-") in active.split() or not one]
    content: phases.Content = {}
    names: list[str] = []
    for prefix in sorted(
        (rng.choice(prefixes) for _ in range(rng.randrange(1, 9))), key=prefixes.index
    ):
        number = f"{len(names) + 1:02}"
        content[f"{prefix}01-{number}.plan.jsonl"] = plan(
            number, d=[name for name in names if rng.random() < 0.4]
        )
        names.append(f"01-{number}")
    content["escalation.jsonl"] = [_upward(rng, name) for name in names if rng.random() < 0.5]
    content["research.jsonl"] = [
        ASKED
        | {
            "q": f"question {number}",
            "ra": rng.choice(UPWARD[:4]),
            "brief_for": f"{rng.choice(names)}/T1",
        }
        for number in range(rng.randrange(4))
    ]
    done = {f"{name}/T1": "a" * 40 for name in names if rng.random() < 0.2}
    shuffled = dict(rng.sample(sorted(content.items()), k=len(content)))
    return phases.facts(shuffled, config=config, task_commits=done)


def _upward(rng: random.Random, name: str) -> dict[str, Any]:
    level = rng.randrange(len(UPWARD) - 1)
    return {"id": f"ESC-{name}-T1", "dt": "2026-02-19T11:00:00Z", "agent": UPWARD[level], "tgt": UPWARD[level + 1],
            "sev": rng.choice(["blocking", "major"]), "st": rng.choice(["open", "escalated", "resolved"])}  # fmt: skip


def test_random_phases_that_can_go_on_give_no_alarm() -> None:
    rng = seeded()
    waits = 0
    for _ in range(200):
        facts = healthy(rng)
        assert raised(facts) == ()
        waits += len(waiting(facts))
    assert waits > 2_000


def test_two_plans_turned_around_in_a_random_phase_are_always_named() -> None:
    rng = seeded()
    for _ in range(200):
        facts = healthy(rng)
        plans = [rng.choice(plans_of(facts)).id for _ in range(2)]
        for one, other in (plans, plans[::-1]):
            header: Any = next(
                artifact for artifact in facts.committed if artifact.place.plan == one
            ).lines[0]
            header["d"].append(str(other))
        turned = replace(facts)  # facts never change: these are others, about the same files
        assert any(isinstance(alarm, Deadlock) for alarm in raised(turned))


# --- random graphs ---


def seeded() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


def edge(waiter: int, on: int) -> Wait:
    return Wait(f"n{waiter}", f"n{on}", "because", "somewhere")


def acyclic(rng: random.Random) -> list[Wait]:
    """Return waits that all point downward in a hidden order."""
    order = rng.sample(range(1000), k=rng.randrange(2, 60))
    pairs = {
        tuple(sorted(rng.sample(range(len(order)), k=2)))
        for _ in range(rng.randrange(1, 4 * len(order)))
    }
    waits = [edge(order[high], order[low]) for low, high in pairs]
    rng.shuffle(waits)
    return waits


def assert_circle(alarm: Deadlock, waits: set[Wait]) -> None:
    """Check a named circle against the waits alone."""
    assert set(alarm.waits) <= waits
    assert all(
        one.on == after.waiter
        for one, after in zip(alarm.waits, alarm.waits[1:] + alarm.waits[:1], strict=True)
    )
    assert len(set(alarm.names)) == len(alarm.names)
    assert alarm.names[0] == min(alarm.names)


def test_a_thousand_random_acyclic_graphs_give_no_alarm() -> None:
    rng = seeded()
    for _ in range(1000):
        waits = acyclic(rng)
        assert cycles(waits) == ()
        assert orphans(waits, {wait.on for wait in waits}) == ()


def test_a_planted_circle_is_always_named_and_real() -> None:
    rng = seeded()
    for _ in range(1000):
        waits = acyclic(rng)
        ring = rng.sample(range(1000), k=rng.randrange(1, 8))
        waits += [edge(one, after) for one, after in zip(ring, ring[1:] + ring[:1], strict=True)]
        rng.shuffle(waits)
        found = cycles(waits)
        assert found
        for alarm in found:
            assert_circle(alarm, set(waits))


def reached(waits: set[Wait], start: str) -> set[str]:
    found: set[str] = set()
    while more := {wait.on for wait in waits if wait.waiter in found | {start}} - found:
        found |= more
    return found


def test_each_knot_of_a_random_graph_is_named_once() -> None:
    rng = seeded()
    for _ in range(300):
        waits = {edge(rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(1, 20))}
        beyond = {wait.waiter: reached(waits, wait.waiter) for wait in waits}
        knots = {
            frozenset({name, *(other for other in far if name in beyond.get(other, ()))})
            for name, far in beyond.items()
            if name in far
        }
        found = cycles(waits)
        assert Counter(
            next(knot for knot in knots if set(alarm.names) <= knot) for alarm in found
        ) == Counter(knots)


def test_alarm_or_none_agrees_with_the_standard_library() -> None:
    rng = seeded()
    for _ in range(500):
        waits = [edge(rng.randrange(30), rng.randrange(30)) for _ in range(rng.randrange(1, 40))]
        sorter = TopologicalSorter[str]()
        for wait in waits:
            sorter.add(wait.waiter, wait.on)
        try:
            sorter.prepare()
        except CycleError:
            assert cycles(waits)
        else:
            assert not cycles(waits)


def test_the_named_circle_is_a_shortest_one_through_its_first_name() -> None:
    waits = [edge(1, 2), edge(2, 3), edge(3, 1), edge(2, 1), edge(3, 4), edge(4, 2)]
    (alarm,) = cycles(waits)
    assert alarm.names == ("n1", "n2")


def test_the_order_of_waits_makes_no_difference() -> None:
    rng = seeded()
    for _ in range(200):
        waits = [edge(rng.randrange(20), rng.randrange(20)) for _ in range(30)]
        known = {f"n{number}" for number in range(0, 20, 3)}
        shuffled = rng.sample(waits, k=len(waits))
        assert cycles(shuffled) == cycles(waits)
        assert orphans(shuffled, known) == orphans(waits, known)


def test_a_circle_of_many_thousand_names_needs_no_deep_stack() -> None:
    size = 30_000
    waits = [edge(number, (number + 1) % size) for number in range(size)]
    (alarm,) = cycles(waits)
    assert len(alarm.waits) == size


def test_whoever_waits_itself_is_no_orphan() -> None:
    waits = [edge(1, 2), edge(2, 3), edge(1, 4)]
    assert [orphan.wait.on for orphan in orphans(waits, {"n3"})] == ["n4"]


def test_suppliers_are_those_that_the_phase_has() -> None:
    facts = phases.facts({"01-01.plan.jsonl": plan("01"), "fe-01-02.plan.jsonl": plan("02")})
    found = suppliers(Phase(facts))
    assert {"backend", "01-01", "lead", "owner", "user", "scout", "po", "gate:all-depts"} <= found
    assert not found & {"frontend", "01-02", "fe-lead", "gate:ux-complete"}
