"""Access in a real repository: paths are resolved before any rule sees them, and the active plan is found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.agents.access import Access, out_of_lane
from yolo_fs.authority.access import GIT_DIFF
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Dept, Mode

PHASE = ".yolo-planning/phases/01-auth"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    found = Team(tmp_path / "work tree")
    found.file(".yolo-planning/ROADMAP.md", "# Roadmap\n")
    found.file("src/deep/a.ts", "export {}\n")
    return found


@pytest.fixture
def access(team: Team) -> Iterator[Access]:
    with Repository(str(team.root)) as repository:
        yield Access(repository)


def reads(access: Access, path: str, role: str = "dev") -> bool:
    return access.read(access.actor(role), path).allowed


def writes(access: Access, path: str, role: str = "dev", plan: str = "") -> bool:
    return access.write(access.actor(role), path, plan).allowed


def test_no_spelling_of_a_path_leads_around_a_rule(team: Team, access: Access) -> None:
    (team.root / "notes.md").symlink_to(".yolo-planning/ROADMAP.md")
    (team.root / "src/plans").symlink_to(team.root / ".yolo-planning")
    spellings = [
        ".yolo-planning/ROADMAP.md", "./src/../.yolo-planning/ROADMAP.md", "src/deep/../../.yolo-planning//ROADMAP.md",
        str(team.root / ".yolo-planning/ROADMAP.md"), "notes.md", "src/plans/ROADMAP.md", "ROADMAP.md",
    ]  # fmt: skip
    assert [path for path in spellings if reads(access, path)] == []
    assert reads(access, "src/deep/a.ts") and reads(access, str(team.root / "src/deep/a.ts"))


def test_what_lies_outside_is_refused(team: Team, access: Access) -> None:
    (team.root / "out").symlink_to(team.root.parent)
    for path in ("../x", "/etc/passwd", "out/x", f"{team.root}-beside/x", str(team.root.parent)):
        assert not reads(access, path)
        assert not writes(access, path)
    assert "outside the repository" in access.write(access.actor("dev"), "../x").rule


def test_a_repository_behind_a_link_is_the_same_repository(team: Team, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(team.root)
    with Repository(str(tmp_path / "link")) as repository:
        access = Access(repository)
        assert reads(access, str(tmp_path / "link/src/deep/a.ts"))
        assert not reads(access, str(tmp_path / "link/.yolo-planning/ROADMAP.md"))


def test_relative_paths_begin_where_the_caller_stands(team: Team) -> None:
    with Repository(str(team.root)) as repository:
        access = Access(repository, start=str(team.root / "src/deep"))
        assert not reads(access, "../../.yolo-planning/ROADMAP.md")
        assert not reads(access, "../../../x")


def test_a_bare_name_of_the_protocol_stands_for_all_files_of_that_name_when_read(
    access: Access,
) -> None:
    assert not reads(access, "architecture.toon")
    assert reads(access, "architecture.toon", "senior")
    assert not reads(access, GIT_DIFF, "qa")
    target = access.target("architecture.toon")
    assert target is not None and target.path == "architecture.toon"


def test_the_active_plan_of_the_department_limits_its_writes(team: Team, access: Access) -> None:
    assert writes(access, "anything.ts")
    team.begin()
    team.plan()
    with Repository(str(team.root)) as repository:
        found = Access(repository)
        assert writes(found, "src/auth/keys.ts") and not writes(found, "src/auth/refresh.ts")
        (team.root / "src/auth").mkdir()
        (team.root / "src/auth/refresh.ts").symlink_to(team.root / "src/auth/keys.ts")
        assert writes(found, "src/auth/refresh.ts")
        os.unlink(team.root / "src/auth/refresh.ts")
        assert writes(found, "src/auth/refresh.ts", plan="01-02") and not writes(
            found, "src/auth/keys.ts", plan="01-02"
        )
        assert writes(found, f"{PHASE}/01-01.summary.jsonl")
        assert writes(found, "web/a.ts", "fe-dev")  # no plan of the frontend is there
        with pytest.raises(YoloError) as raised:
            writes(found, "a.ts", plan="09-09")
    assert raised.value.reason is Reason.UNKNOWN_NAME


def test_a_plan_that_waits_for_another_is_not_the_active_one(team: Team) -> None:
    team.begin()
    first, second = (
        (team.examples / f"plan/ok/{name}.jsonl").read_text() for name in ("first_wave", "planned")
    )
    team.artifact("01-02.plan.jsonl", first.replace('"n":"01"', '"n":"02"', 1))
    team.artifact(
        "01-01.plan.jsonl",
        second.replace('"n":"02"', '"n":"01"', 1).replace('["01-01"]', '["01-02"]', 1),
    )
    team.once()
    with Repository(str(team.root)) as repository:
        plan = Access(repository).active_plan(Dept.BACKEND)
    assert plan is not None and str(plan.id) == "01-02"


def test_the_configuration_tells_the_mode(team: Team, access: Access) -> None:
    assert access.actor("architect").mode is Mode.SINGLE
    team.config(THREE)
    with Repository(str(team.root)) as repository:
        found = Access(repository)
        assert found.actor("architect").mode is Mode.MULTI
        assert found.actor("dev", Dept.FRONTEND).name == "fe-dev"


def test_without_a_repository_no_path_can_be_judged() -> None:
    access = Access(None)
    assert access.actor("dev").mode is Mode.SINGLE
    with pytest.raises(YoloError) as raised:
        access.read(access.actor("dev"), "a")
    assert raised.value.reason is Reason.NOT_A_REPOSITORY


@pytest.mark.proves("002:116")
def test_what_committed_files_show_to_be_out_of_its_lane_is_found(team: Team) -> None:
    team.begin()
    decision = '{"ts":"2026-02-19T08:00:00Z","agent":"dev","dec":"API design: one endpoint","reason":"simple"}\n'
    team.artifact("decisions.jsonl", decision)
    handoff = (
        '{"type":"dept_handoff","from_dept":"backend","to_dept":"uiux","dt":"2026-02-19T09:00:00Z",'
        '"artifacts":[],"contracts":[],"blockers":[],"notes":"n"}\n'
    )
    team.artifact("dept-handoff.jsonl", handoff)
    team.once()
    with Repository(str(team.root)) as repository:
        (facts,) = Access(repository).facts
        found = [(one.path, one.line, one.reason) for one in out_of_lane(facts)]
    assert found == [
        (f"{PHASE}/decisions.jsonl", 1, Reason.OUT_OF_LANE),
        (f"{PHASE}/dept-handoff.jsonl", 1, Reason.OUT_OF_LANE),
    ]


def test_who_serves_all_is_sent_to_the_department_at_work_where_the_backend_is_off(
    team: Team,
) -> None:
    team.config({"departments": {"backend": False, "frontend": True}})
    with Repository(str(team.root)) as repository:
        access = Access(repository)
        critic = access.actor("critic")
        refusals = [
            access.write(critic, f"{PHASE}/critique.jsonl"),
            access.write(critic, f"{PHASE}/design-handoff.jsonl"),
            access.use(critic, "Edit"),
            access.decide(critic, "scope"),
            access.contact(critic, "user"),
            access.escalate(critic, access.actor("dev")),
        ]
    assert [(one.allowed, one.ask) for one in refusals] == [(False, ("fe-lead",))] * 6
    assert [one.rule for one in refusals if " lead" in one.rule] == []
    assert [one.rule.count("findings to fe-lead, who") for one in refusals] == [1, 1, 1, 0, 0, 0]


def test_the_lead_of_the_department_at_work_writes_for_the_critic(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.config({"departments": {"backend": False, "frontend": True}})
    (team.root / PHASE).mkdir(parents=True)
    assert run(["workflow", "next", "-C", str(team.root)]) == 0
    assert "; fe-lead writes it: critic has no tool to" in capsys.readouterr().out
