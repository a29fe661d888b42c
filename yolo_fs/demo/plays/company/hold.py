"""The company's phase again, with one failing test: HOLD with the reason, and SHIP once the test
passes.
"""

from __future__ import annotations

from dataclasses import replace

from yolo_fs.demo.plays.company.story import (
    BACKEND,
    COMPANY,
    DECIDED,
    FRONTEND,
    OPENING,
    PHASE,
    UIUX,
    WAVE_1,
    WAVE_2,
    asks,
    code_of,
    decides,
    filed,
    hands_in,
    judges,
)
from yolo_fs.demo.story import Act, Commits, CommitsEach, Manner, Play, Says, Scene, Write
from yolo_fs.protocol.names import Dept, Role

_RESULTS = f"{PHASE}/fe-test-results.jsonl"
_WHY = "1 tests of plan 01-02 fail (fe-test-results.jsonl:1)"


def _all_but_the_tests() -> Scene:
    """Return one scene of everything that the company writes before the sign-off, each file as it ends up."""
    scenes = [scene for act in (WAVE_1, WAVE_2) for scene in act.scenes]
    writes = {
        deed.path: deed for scene in scenes for deed in scene.deeds if isinstance(deed, Write)
    }
    commits = {one.path: one for scene in scenes for one in _commits(scene)}
    del writes[_RESULTS], commits[_RESULTS]
    return Scene(
        Role.LEAD,
        "write all the rest, at once",
        tuple(replace(deed, manner=Manner.PLAIN) for deed in writes.values()),
        CommitsEach(tuple(commits.values())),
        deadline_s=60.0,
        called="UX + FE + BE",
    )


def _commits(scene: Scene) -> tuple[Commits, ...]:
    if isinstance(scene.answer, CommitsEach):
        return scene.answer.commits
    return (scene.answer,) if isinstance(scene.answer, Commits) else ()


def _reports(does: str, content: str, manner: Manner) -> Scene:
    artifact = filed(f"{FRONTEND}/{content}", "fe-test-results.jsonl", "test results 01-02", manner)
    return hands_in(Role.DEV, does, artifact, dept=Dept.FRONTEND)


AGAIN = Act(
    "once more",
    "",
    (
        _all_but_the_tests(),
        _reports("reports 5 tests passed, 1 failed", "test-results-failing.jsonl", Manner.PLAIN),
        asks(
            "all-depts",
            (
                "frontend is at implementation: plan 01-02 is claimed: test-results of plan 01-02 end with 1 failing",
                "code, summary.jsonl",
            ),
            who=Role.OWNER,
        ),
        judges("FAIL"),
        decides("HOLD", _WHY),
        Scene(
            Role.OWNER,
            "runs: yolo-fs dept cleanup",
            (),
            Says(
                ("dept", "cleanup", "--phase", "1", "--reason", "complete"),
                {"/removed": 0},
                "refused: the phase is not complete",
                1,
                is_yes=False,
            ),
        ),
        _reports("mends it, and reports 6 passed", "test-results.jsonl", Manner.REWRITE),
        *DECIDED,
    ),
)

HOLD = Play(
    name="hold",
    intro="the same three departments, but one test fails at first.",
    opening=(*OPENING, *(code_of(folder) for folder in (UIUX, FRONTEND, BACKEND))),
    acts=(AGAIN,),
    folder=COMPANY.name,
    keeps_states=True,
    shows_log=False,
)
