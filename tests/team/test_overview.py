"""`status`, `resume`, `doctor` and the board know of the other clones: who holds what since when, how far apart they
are, and what waits, why.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.team.test_leases import take
from tests.team.test_remote_sync import settle
from tests.team.work_trees import GAPS, PLAN, Clones, TeamTree, gap, plan
from yolo_fs.agent_events import answer
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.core.timestamps import iso
from yolo_fs.hooks.hosts import HookInput
from yolo_fs.install.doctor import examine_repository
from yolo_fs.reports.resume import resume
from yolo_fs.team.overview import TeamObserver
from yolo_fs.team.reconcile import PendingMove, TeamOverview, obstructions
from yolo_fs.workspace.own_files import TEAM_LANE
from yolo_fs.workspace.settings import load

NewTree = Callable[[str], TeamTree]


def overview(tree: TeamTree) -> TeamOverview:
    seen = TeamObserver(tree.repository, load(str(tree.root))).look()
    assert seen is not None
    return seen


def answered(tree: TeamTree, capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    capsys.readouterr()
    run([*command, "--json", "-C", str(tree.root)])
    return json.loads(capsys.readouterr().out)


def test_each_work_tree_sees_how_far_all_others_are(new_tree: NewTree) -> None:
    first, second, third = (new_tree(name) for name in ("one", "two", "three"))
    first.join(), second.join()
    first.write(PLAN, plan("Tokens"))
    first.look()
    second.write(GAPS, gap(1))

    seen = {each.root: each for each in overview(first).clones}

    assert set(seen) == {str(first.root), str(second.root)}
    assert str(third.root) not in seen
    beside = seen[str(second.root)]
    assert (beside.branch, beside.behind, beside.ahead) == ("two", 1, 1)
    assert (beside.daemon_runs, beside.published) == (False, 0)
    here = seen[str(first.root)]
    assert (here.behind, here.ahead, here.published, here.is_here) == (0, 0, 1, True)


def test_what_waits_says_since_when_and_why(clones: Clones) -> None:
    a, b = clones
    lease = take(a)
    b.write(GAPS, gap(1))
    b.write(PLAN, plan("Tokens"))
    b.remote_sync.exchange()

    seen = overview(b)

    held = {each.path: each for each in seen.waiting}
    assert held[GAPS].reason is Reason.LEASE_HELD
    assert held[GAPS].what == f"backend: {lease.holder}"
    made = int(b.git("log", "-1", "--format=%ct", "--", GAPS))
    assert held[GAPS].since_s == made
    (backend,) = seen.leases
    passed = int(b.git("log", "-1", "--format=%ct", "--grep=lease of", seen.ref))
    assert (backend.dept, backend.holder, backend.epoch) == ("backend", lease.holder, 1)
    assert backend.since_s == passed
    assert any(GAPS in said and "lease_held" in said for said in obstructions(seen, iso))


def test_what_the_team_has_and_nobody_may_take_here_says_why(new_tree: NewTree) -> None:
    first, second = new_tree("one").join(), new_tree("two").join()
    first.write(GAPS, gap(1))
    first.look()
    second.place(GAPS, gap(2))  # its writer is still at work
    (waiting,) = overview(second).waiting

    assert (waiting.path, waiting.waits_for) == (GAPS, PendingMove.RECEIVE)
    assert waiting.reason is Reason.SETTLING


def test_status_resume_doctor_and_board_tell_of_a_refusing_remote_and_of_a_conflict(
    clones: Clones,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = clones
    for clone in clones:
        clone.write(PLAN, plan(clone.root.name))
    a.remote_sync.exchange()
    b.meet()
    noted = {"reason": "remote_refused", "what": "no bots here", "round_trip_s": 0.1}
    noted["at"] = "2026-01-01T10:00:00+00:00"
    Path(b.repository.own_dir).mkdir(exist_ok=True)
    Path(TEAM_LANE.path(b.repository)).write_text(json.dumps(noted))

    status = answered(b, capsys, "status")["data"]["machines"]
    assert status == answered(b, capsys, "team", "status")["data"]["machines"]
    assert [(each["path"], each["waits_for"]) for each in status["waiting"]] == [(PLAN, "choice")]
    assert status["lane"]["what"] == "no bots here"
    assert [each["published"] for each in status["clones"]] == [0, 1]

    sections = {section.key: section for section in resume(str(b.root), keep=False)}
    told = "\n".join(sections["machines"].lines)
    assert "no bots here" in told
    assert PLAN in told

    symptoms = {each.finding.reason for each in examine_repository(b.repository)}
    assert {Reason.REMOTE_REFUSED, Reason.REMOTE_CONFLICT} <= symptoms
    capsys.readouterr()
    run(["status", "-C", str(b.root)])
    assert "no bots here" in capsys.readouterr().out


def test_an_agent_is_told_of_its_team_in_utc_and_a_person_in_the_time_of_the_place(
    clones: Clones, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    a, b = clones
    take(a)
    b.write(GAPS, gap(1))
    b.remote_sync.exchange()
    note = {"reason": "remote_refused", "what": "", "at": "2026-01-01T15:45:00+05:45"}
    Path(b.repository.own_dir).mkdir(exist_ok=True)
    Path(TEAM_LANE.path(b.repository)).write_text(json.dumps({**note, "round_trip_s": 0.1}))

    told = answer(HookInput("session-start", "claude", str(b.root))).context
    capsys.readouterr()
    run(["team", "status", "-C", str(b.root)])
    shown = capsys.readouterr().out

    assert " since 2026-01-01T10:00:00Z" in told, told
    assert len(re.findall(r" since \S+Z\b", told)) == 3 and "+0545" not in told, told
    assert " since 2026-01-01 15:45:00 +0545" in shown, shown
    assert len(re.findall(r" since \S+ \S+ \+0545\b", shown)) == 3, shown
    monkeypatch.undo()
    time.tzset()


def test_who_is_in_no_team_hears_nothing_of_one(
    new_tree: NewTree, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = new_tree("one")

    assert answered(alone, capsys, "status")["data"]["machines"] is None
    assert "machines" not in {section.key for section in resume(str(alone.root), keep=False)}


def test_a_choice_that_is_damaged_hides_the_team_and_nothing_else(
    new_tree: NewTree, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = new_tree("one").join()
    Path(tree.repository.own_dir, "team.json").write_text('{"team": 1}')

    answer = answered(tree, capsys, "status")
    assert answer["data"]["team"] is not None
    assert "wrong_type" in {each["reason"] for each in answer["findings"]}


def test_what_was_read_of_the_team_is_not_read_again_and_a_moved_ref_is(clones: Clones) -> None:
    a, _ = clones
    observer = TeamObserver(a.repository, load(str(a.root)))
    name = a.synchronizer.membership.clone
    published = []
    for number in (1, 2, 3):
        a.write(GAPS, *map(gap, range(1, number + 1)))
        settle(*clones)
        seen = observer.look()
        assert seen is not None
        published.append({each.name: each.published for each in seen.clones}[name])
    a.git("update-ref", seen.ref, f"{seen.ref}~2")
    back = observer.look()

    assert published == [1, 2, 3]
    assert back is not None
    assert back.here.published == 1
    assert back.here.ahead == 2
    assert overview(a) == back


def test_a_refused_push_stays_told_until_it_is_taken(clones: Clones, tmp_path: Path) -> None:
    a, _ = clones
    hook = tmp_path / "remote.git/hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho no bots here >&2\nexit 1\n")
    hook.chmod(0o755)
    a.write(GAPS, gap(1))
    sync = a.remote_sync
    with pytest.raises(YoloError):
        sync.exchange()

    (held,) = sync.exchange().held
    assert (held.reason, held.path) == (Reason.REMOTE_REFUSED, "")
    assert "no bots here" in held.what
